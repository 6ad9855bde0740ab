"""The answer of a command as a value, the states that it can have, and the exit code of each.

A state is the worst of its parts: each command has its own list, worst first. Text, JSON and HTML show the same answer, and the exit code follows from
its state, so that nothing on a screen can be calmer than what a script reads.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from kforensics.evidence.model import Problem
from kforensics.exits import ExitCode
from kforensics.findings.model import Finding, Severity, Weight


class State(StrEnum):
    """The result of a command in one word; `STATES` lists those that each command can have."""

    LOST = "lost"
    MAYBE_LOST = "maybe-lost"
    AT_RISK = "at-risk"
    MAYBE_AT_RISK = "maybe-at-risk"
    DIVERGED = "diverged"
    WILL_NOT_START = "will-not-start"
    LOSES = "loses"
    DAMAGED = "damaged"
    CHANGED = "changed"
    GAPS = "gaps"
    VIOLATED = "violated"
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
    COMPLETE = "complete"
    SAVED = "saved"
    HANGING = "hanging"
    TORN = "torn"
    PREPARED = "prepared"
    IN_TIME = "in-time"
    NONE_OPEN = "none-open"
    PAST_THE_END = "past-the-end"
    SET_BACK = "set-back"
    BELOW_THE_START = "below-the-start"
    NO_SETBACK = "no-setback"
    PRESENT = "present"
    SUPERSEDED = "superseded"
    DELETED_ON_PURPOSE = "deleted-on-purpose"
    NEVER_HERE = "never-here"
    BYTES_LEFT = "bytes-left"
    NO_BYTES_LEFT = "no-bytes-left"


_DIFF = {
    State.AT_RISK: 1,
    State.MAYBE_AT_RISK: 1,
    State.DIVERGED: 1,
    State.UNKNOWN: 3,
    State.UNCOMMITTED_ONLY: 1,
    State.BEHIND: 0,
    State.SAME_ENDS: 0,
    State.AGREE: 0,
}

_FLEET = {State.AT_RISK: 1, State.MAYBE_AT_RISK: 1, State.DIVERGED: 1, State.DAMAGED: 1, **_DIFF}

STATES: dict[str, dict[State, int]] = {
    "triage": {
        State.LOST: 1,
        State.AT_RISK: 1,
        State.LOSES: 1,
        State.WILL_NOT_START: 1,
        State.MAYBE_LOST: 1,
        State.MAYBE_AT_RISK: 1,
        State.DIVERGED: 1,
        State.HANGING: 1,
        State.TORN: 1,
        State.PAST_THE_END: 1,
        State.SET_BACK: 1,
        State.BELOW_THE_START: 1,
        State.UNKNOWN: 3,
        State.PREPARED: 1,
        State.UNCOMMITTED_LOST: 1,
        State.UNCOMMITTED_ONLY: 1,
        State.NOTHING_LOST: 0,
    },
    "diff": _DIFF,
    "fleet audit": _FLEET,
    "explain": {
        State.LOST: 1,
        State.MAYBE_LOST: 1,
        State.DIVERGED: 1,
        State.UNKNOWN: 3,
        State.UNCOMMITTED_LOST: 1,
        State.NOTHING_LOST: 0,
    },
    "verify": {State.DAMAGED: 1, State.UNKNOWN: 3, State.REPAIRABLE: 0, State.SOUND: 0},
    "dump": {State.DAMAGED: 1, State.UNKNOWN: 3, State.COMPLETE: 0},
    "capture": {State.UNKNOWN: 3, State.COMPLETE: 0},
    "ls": {State.UNKNOWN: 3, State.COMPLETE: 0},
    "metadata": {State.DIVERGED: 1, State.UNKNOWN: 3, State.BEHIND: 0, State.AGREE: 0, State.COMPLETE: 0},
    "predict": {
        State.WILL_NOT_START: 1,
        State.LOSES: 1,
        State.UNKNOWN: 3,
        State.STARTS_AND_REPAIRS: 0,
        State.STARTS_UNCHANGED: 0,
    },
    "salvage": {State.GAPS: 1, State.UNKNOWN: 3, State.SAVED: 0},
    "transactions": {
        State.HANGING: 1,
        State.TORN: 1,
        State.PREPARED: 1,
        State.UNKNOWN: 3,
        State.IN_TIME: 0,
        State.NONE_OPEN: 0,
    },
    "groups": {
        State.PAST_THE_END: 1,
        State.SET_BACK: 1,
        State.BELOW_THE_START: 1,
        State.UNKNOWN: 3,
        State.NO_SETBACK: 0,
    },
    "trace": {
        State.LOST: 1,
        State.UNKNOWN: 3,
        State.PRESENT: 0,
        State.SUPERSEDED: 0,
        State.DELETED_ON_PURPOSE: 0,
        State.NEVER_HERE: 0,
    },
    "trace --erasure": {State.BYTES_LEFT: 1, State.UNKNOWN: 3, State.NO_BYTES_LEFT: 0},
    "seal": {State.CHANGED: 1, State.UNKNOWN: 3, State.UNCHANGED: 0, State.COMPLETE: 0},
    # What a scenario shows is no finding about evidence.
    "simulate": {State.VIOLATED: 1, State.UNKNOWN: 3, State.LOST: 0, State.DIVERGED: 0, State.COMPLETE: 0},
    "fleet scan": {State.UNKNOWN: 3, State.COMPLETE: 0},
    "fleet report": _FLEET,
    "fleet trend": {State.UNKNOWN: 3, State.COMPLETE: 0},
    "fleet comparison": {State.CHANGED: 1, State.UNKNOWN: 3, State.UNCHANGED: 0},
}
"""The states of each command, worst first, each with its exit code."""

CALM = frozenset(
    {
        State.NOTHING_LOST,
        State.AGREE,
        State.SOUND,
        State.UNCHANGED,
        State.STARTS_UNCHANGED,
        State.NONE_OPEN,
        State.NO_SETBACK,
        State.NO_BYTES_LEFT,
    }
)
"""States that say that all is well: only these get a tick on a page."""

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


def worst_state(command: str, states: Iterable[State]) -> State | None:
    """Return the worst of some states of one command, or None where there are none.

    Args:
        command: a key of `STATES`.
        states: states that this command can have.

    Returns:
        The one that `STATES` lists first.

    Raises:
        KeyError: the command, or a state of it, is not in `STATES`.
    """
    rank = {state: at for at, state in enumerate(STATES[command])}
    return min(states, key=lambda state: rank[state], default=None)


def weighed(findings: Iterable[Finding], state: State) -> tuple[Finding, ...]:
    """Return findings of which none is graver than a state that shows no harm: what is unknown is warned of."""
    return tuple(
        replace(one, severity=Severity.WARNING)
        if state is State.UNKNOWN and one.severity.weight > Weight.DECIDE
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
