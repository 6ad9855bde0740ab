"""The answer of a command as a value, the states that it can have, and the exit code of each.

A state is the worst of its parts, in one order for all commands. Text, JSON and HTML show the same answer, and the exit code follows from
its state, so that nothing on a screen can be calmer than what a script reads.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from kforensics.evidence.model import Problem
from kforensics.exits import ExitCode
from kforensics.findings.model import Finding, Weight


class State(StrEnum):
    """The result of a command in one word, the worst first: one order for all commands."""

    LOST = "lost"
    AT_RISK = "at-risk"
    WILL_NOT_START = "will-not-start"
    LOSES = "loses"
    MAYBE_LOST = "maybe-lost"
    MAYBE_AT_RISK = "maybe-at-risk"
    DIVERGED = "diverged"
    DAMAGED = "damaged"
    CHANGED = "changed"
    GAPS = "gaps"
    VIOLATED = "violated"
    HANGING = "hanging"
    TORN = "torn"
    PREPARED = "prepared"
    PAST_THE_END = "past-the-end"
    SET_BACK = "set-back"
    BELOW_THE_START = "below-the-start"
    BYTES_LEFT = "bytes-left"
    UNKNOWN = "unknown"
    UNCOMMITTED_LOST = "uncommitted-lost"
    UNCOMMITTED_ONLY = "uncommitted-only"
    REPAIRABLE = "repairable"
    STARTS_AND_REPAIRS = "starts-and-repairs"
    STARTS_UNCHANGED = "starts-unchanged"
    BEHIND = "behind"
    SAME_ENDS = "same-ends"
    AGREE = "agree"
    NOTHING_LOST = "nothing-lost"
    SOUND = "sound"
    UNCHANGED = "unchanged"
    SAVED = "saved"
    IN_TIME = "in-time"
    NONE_OPEN = "none-open"
    NO_SETBACK = "no-setback"
    PRESENT = "present"
    SUPERSEDED = "superseded"
    DELETED_ON_PURPOSE = "deleted-on-purpose"
    NEVER_HERE = "never-here"
    NO_BYTES_LEFT = "no-bytes-left"
    COMPLETE = "complete"

    @property
    def weight(self) -> Weight:
        """Its gravity, from which the exit code follows."""
        return _WEIGHTS[self]

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that it gives by itself."""
        if self is State.UNKNOWN:
            return ExitCode.INCOMPLETE
        return ExitCode.FINDINGS if self.weight >= Weight.DECIDE else ExitCode.NOTHING_FOUND

    @property
    def is_calm(self) -> bool:
        """Whether it says that all is well: only then a page has a tick."""
        return self.weight is Weight.CALM


_WEIGHTS = {
    state: weight
    for weight, states in {
        Weight.LOSS: (State.LOST, State.AT_RISK, State.DIVERGED, State.LOSES),
        Weight.DAMAGE: (
            State.MAYBE_LOST,
            State.MAYBE_AT_RISK,
            State.WILL_NOT_START,
            State.DAMAGED,
            State.CHANGED,
            State.GAPS,
            State.VIOLATED,
            State.HANGING,
            State.TORN,
            State.PAST_THE_END,
        ),
        Weight.DECIDE: (
            State.PREPARED,
            State.SET_BACK,
            State.BELOW_THE_START,
            State.BYTES_LEFT,
            State.UNKNOWN,
            State.UNCOMMITTED_LOST,
            State.UNCOMMITTED_ONLY,
        ),
        Weight.NOTE: (
            State.REPAIRABLE,
            State.STARTS_AND_REPAIRS,
            State.BEHIND,
            State.SAME_ENDS,
            State.SAVED,
            State.IN_TIME,
            State.PRESENT,
            State.SUPERSEDED,
            State.DELETED_ON_PURPOSE,
            State.NEVER_HERE,
            State.COMPLETE,
        ),
        Weight.CALM: (
            State.STARTS_UNCHANGED,
            State.AGREE,
            State.NOTHING_LOST,
            State.SOUND,
            State.UNCHANGED,
            State.NONE_OPEN,
            State.NO_SETBACK,
            State.NO_BYTES_LEFT,
        ),
    }.items()
    for state in states
}
_ORDER = {state: at for at, state in enumerate(State)}

_TRIAGE = (
    "lost at-risk will-not-start loses maybe-lost maybe-at-risk diverged hanging torn past-the-end set-back below-the-start "
    "unknown prepared uncommitted-lost uncommitted-only nothing-lost"
)
_DIFF = (
    State.AT_RISK,
    State.MAYBE_AT_RISK,
    State.DIVERGED,
    State.UNKNOWN,
    State.UNCOMMITTED_ONLY,
    State.BEHIND,
    State.SAME_ENDS,
    State.AGREE,
)
_FLEET = (
    State.AT_RISK,
    State.MAYBE_AT_RISK,
    State.DIVERGED,
    State.DAMAGED,
    State.UNKNOWN,
    State.UNCOMMITTED_ONLY,
    State.BEHIND,
    State.SAME_ENDS,
    State.AGREE,
)

STATES: dict[str, dict[State, int]] = {
    **{
        command: {state: state.exit_code for state in states}
        for command, states in {
            "triage": tuple(map(State, _TRIAGE.split())),
            "diff": _DIFF,
            "fleet audit": _FLEET,
            "explain": (
                State.LOST,
                State.MAYBE_LOST,
                State.DIVERGED,
                State.UNKNOWN,
                State.UNCOMMITTED_LOST,
                State.NOTHING_LOST,
            ),
            "verify": (State.DAMAGED, State.UNKNOWN, State.REPAIRABLE, State.SOUND),
            "dump": (State.DAMAGED, State.UNKNOWN, State.COMPLETE),
            "capture": (State.UNKNOWN, State.COMPLETE),
            "ls": (State.UNKNOWN, State.COMPLETE),
            "metadata": (State.DIVERGED, State.UNKNOWN, State.BEHIND, State.AGREE, State.COMPLETE),
            "predict": (
                State.WILL_NOT_START,
                State.LOSES,
                State.UNKNOWN,
                State.STARTS_AND_REPAIRS,
                State.STARTS_UNCHANGED,
            ),
            "salvage": (State.GAPS, State.UNKNOWN, State.SAVED),
            "transactions": (State.HANGING, State.TORN, State.PREPARED, State.UNKNOWN, State.IN_TIME, State.NONE_OPEN),
            "groups": (State.PAST_THE_END, State.SET_BACK, State.BELOW_THE_START, State.UNKNOWN, State.NO_SETBACK),
            "trace": (
                State.LOST,
                State.UNKNOWN,
                State.PRESENT,
                State.SUPERSEDED,
                State.DELETED_ON_PURPOSE,
                State.NEVER_HERE,
            ),
            "trace --erasure": (State.BYTES_LEFT, State.UNKNOWN, State.NO_BYTES_LEFT),
            "seal": (State.CHANGED, State.UNKNOWN, State.UNCHANGED, State.COMPLETE),
            "fleet scan": (State.UNKNOWN, State.COMPLETE),
            "fleet report": _FLEET,
            "fleet trend": (State.UNKNOWN, State.COMPLETE),
            "fleet comparison": (State.CHANGED, State.UNKNOWN, State.UNCHANGED),
        }.items()
    },
    # What a scenario shows is no finding about evidence.
    "simulate": {State.VIOLATED: 1, State.UNKNOWN: 3, State.LOST: 0, State.DIVERGED: 0, State.COMPLETE: 0},
}
"""The states of each command, worst first, each with its exit code."""

CALM_OF_DIFF = frozenset({State.AGREE, State.BEHIND, State.SAME_ENDS})
"""States of `diff` in which no replica truncates: what was not read or not compared makes them `unknown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer that a command gives first: the headline, what to do now, whom to inform, what to do later, and what is unknown."""

    state: State
    headline: str
    """One sentence, which claims no more than the weakest of what it sums up."""
    now: tuple[str, ...] = ()
    """What to do at once, with commands to paste, and what not to do (`Prohibition`)."""
    tell: tuple[str, ...] = ()
    """Whom to inform of what."""
    later: tuple[str, ...] = ()
    """Prevention."""
    unknown: tuple[str, ...] = ()
    """What is unknown, and which input would show it."""


def worst_state(states: Iterable[State]) -> State | None:
    """Return the worst of some states, or None where there are none."""
    return min(states, key=_ORDER.__getitem__, default=None)


def weighed(findings: Iterable[Finding], state: State) -> tuple[Finding, ...]:
    """Return findings of which none is graver than a state that shows no harm: what is unknown is warned of."""
    return tuple(
        replace(one, severity=state.weight.severity)
        if state is State.UNKNOWN and one.severity.weight > state.weight
        else one
        for one in findings
    )


def exit_code(command: str, answer: Answer, findings: Collection[Finding], problems: Collection[Problem]) -> int:
    """Return the exit code of a finished command.

    It follows from the state. A calm state beside a finding of severity `warning` or above gives 1, and beside something that could not be read 3; a
    problem never hides a worse state.

    Args:
        command: a key of `STATES`.
        problems: what could not be read; what is foreign was left out, and counts for nothing.

    Returns:
        0, 1 or 3.
    """
    code = STATES[command][answer.state]
    if code:
        return code
    if any(finding.is_grave for finding in findings):
        return ExitCode.FINDINGS
    return ExitCode.INCOMPLETE if any(not one.is_foreign for one in problems) else ExitCode.NOTHING_FOUND
