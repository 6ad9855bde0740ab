"""The answer of a command as a value, the states that it can have, and the exit code of each.

A state is the worst of its parts, in one order for all commands. Text, JSON and HTML show the same answer, and the exit code follows from
its state, so that nothing on a screen can be calmer than what a script reads.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kforensics.ask.commands import COMMANDS
from kforensics.damage import Absent
from kforensics.evidence.model import Input, Problem
from kforensics.exits import ExitCode
from kforensics.findings.model import Finding, Weight
from kforensics.words import Step, counted, form, in_short_sentences


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
    CAUSES = "causes"
    VIOLATED = "violated"
    HANGING = "hanging"
    TORN = "torn"
    PREPARED = "prepared"
    PAST_THE_END = "past-the-end"
    SET_BACK = "set-back"
    BELOW_THE_START = "below-the-start"
    WRONG_EPOCH = "wrong-epoch"
    SET_FORWARD = "set-forward"
    BYTES_LEFT = "bytes-left"
    UNKNOWN = "unknown"
    UNCOMMITTED_LOST = "uncommitted-lost"
    UNCOMMITTED_ONLY = "uncommitted-only"
    SYMPTOMS = "symptoms"
    REPAIRABLE = "repairable"
    STARTS_AND_REPAIRS = "starts-and-repairs"
    STARTS_UNCHANGED = "starts-unchanged"
    BEHIND = "behind"
    SAME_ENDS = "same-ends"
    AGREE = "agree"
    NOTHING_LOST = "nothing-lost"
    SOUND = "sound"
    HARMLESS = "harmless"
    UNCHANGED = "unchanged"
    SAVED = "saved"
    IN_TIME = "in-time"
    NONE_OPEN = "none-open"
    NO_SETBACK = "no-setback"
    IN_REMOTE_STORAGE = "in-remote-storage"
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
    State(state): weight
    for weight, states in {
        Weight.LOSS: "lost at-risk loses diverged",
        Weight.DAMAGE: "will-not-start maybe-lost maybe-at-risk damaged changed gaps causes violated hanging torn past-the-end",
        Weight.DECIDE: "prepared set-back below-the-start wrong-epoch set-forward bytes-left unknown uncommitted-lost uncommitted-only",
        Weight.NOTE: "symptoms repairable starts-and-repairs behind same-ends saved in-time in-remote-storage present superseded deleted-on-purpose never-here complete",
        Weight.CALM: "starts-unchanged agree nothing-lost sound harmless unchanged none-open no-setback no-bytes-left",
    }.items()
    for state in states.split()
}
_ORDER = {state: at for at, state in enumerate(State)}


STATES: dict[str, dict[State, int]] = {
    command: {state: state.exit_code for state in map(State, states.split())}
    for command, states in (
        *(
            (f"fleet {one.removeprefix('fleet-')}" if one.startswith("fleet-") else one, COMMANDS[one].states)
            for one in COMMANDS
        ),
        ("trace --erasure", "bytes-left unknown no-bytes-left"),
        ("fleet comparison", "changed unknown unchanged"),
    )
}
"""The states of each command, worst first, each with its exit code."""

# What a scenario shows is no finding about evidence.
STATES["simulate"] = {State.VIOLATED: 1, State.UNKNOWN: 3, State.LOST: 0, State.DIVERGED: 0, State.COMPLETE: 0}

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


def no_calmer_than_open(state: State) -> State:
    """Return a state, `unknown` for one that is calm: something beside it is open."""
    is_graver = state.weight >= Weight.DECIDE or state.exit_code == ExitCode.FINDINGS
    return state if is_graver else State.UNKNOWN


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
    """
    code = STATES[command][answer.state]
    if code:
        return code
    if any(finding.is_grave for finding in findings):
        return ExitCode.FINDINGS
    return ExitCode.INCOMPLETE if any(not one.is_foreign for one in problems) else ExitCode.NOTHING_FOUND


MEMBERSHIP_UNKNOWN = "Whether all these directories are of one cluster: not every meta.properties has a cluster.id (brokers before 2.4 write none)."
MEMBERSHIP_HEDGE = " It is not shown that all inputs are of one cluster."
JUDGED_TOGETHER = frozenset({"diff", "explain", "metadata"})
"""Commands that take their inputs for those of one cluster."""

UNUSABLE = "unreadable"
"""Kind of a named path that can't be used."""

_NODES = frozenset({"broker", "combined", "controller", "snapshot-before"})


def skipped_words(count: int, topic: str, why: str) -> str:
    """Return the sentence on records of one of Kafka's own topics that are not understood, and why the first of them is not."""
    because = f": {why}" if why else ""
    return f"What {counted(count, 'record')} of {topic} {form(count, 'says', 'say')} that {form(count, 'is', 'are')} not understood{because}."


_MOST_SILENT = 3


def with_inputs(command: str, answer: Answer, inputs: Sequence[Input], problems: Sequence[Problem] = ()) -> Answer:
    """Return the answer, no calmer than its inputs allow.

    Args:
        command: a key of `STATES`.
        answer: of the command, from the inputs that could be used.
        inputs: all of them, those that could not be used among them.

    Returns:
        The same answer where every named path was used, or none; where the nodes need not be of one cluster, its headline says so. Else its headline says that it is incomplete, and a state that would exit with 0 is `unknown`.
    """
    if command in JUDGED_TOGETHER and not is_membership_shown(inputs):
        answer = replace(
            answer, headline=answer.headline + MEMBERSHIP_HEDGE, unknown=(*answer.unknown, MEMBERSHIP_UNKNOWN)
        )
    if sentences := silence_words(inputs, problems):
        answer = replace(answer, unknown=tuple(dict.fromkeys((*answer.unknown, *sentences))))
    hedge, unused = unusable_words(inputs)
    if not hedge:
        return answer
    is_calm = STATES[command][answer.state] == 0
    return replace(
        answer,
        state=State.UNKNOWN if is_calm else answer.state,
        headline=hedge + answer.headline,
        unknown=(*answer.unknown, *unused),
    )


def in_short(answer: Answer) -> Answer:
    """Return the answer with its long sentences broken between their clauses, and each point a whole sentence."""
    return Answer(
        state=answer.state,
        headline=in_short_sentences(answer.headline),
        now=tuple(map(_in_short, answer.now)),
        tell=tuple(map(_in_short, answer.tell)),
        later=tuple(map(_in_short, answer.later)),
        unknown=tuple(map(_in_short, answer.unknown)),
    )


def _in_short(one: str) -> str:
    if isinstance(one, Step):
        return type(one)(in_short_sentences(one.sentence), one.commands)
    begun = one[:1].upper() + one[1:] if one.startswith(("what ", "whether ")) else one
    return in_short_sentences(begun if begun.endswith((".", "?", "!", ":")) else f"{begun}.")


def unusable_words(inputs: Sequence[Input]) -> tuple[str, tuple[str, ...]]:
    """Return what a headline begins with where named paths can't be used and others can, and what is not known then; nothing where all can, or none."""
    unusable = [one.path for one in inputs if one.kind == UNUSABLE]
    if not unusable or len(unusable) == len(inputs):
        return "", ()
    named = unusable[0] if len(unusable) == 1 else counted(len(unusable), "named path")
    unused = tuple(f"What {path} would show: it can't be used." for path in unusable)
    return f"INCOMPLETE, without {named}: ", unused


def not_read_words(problems: Collection[Problem]) -> str:
    """Return how much could not be read, in a sentence."""
    return f"What could not be read: {counted(len(problems), 'thing')} (listed below, or by -v)."


def silence_words(inputs: Sequence[Input], problems: Sequence[Problem]) -> list[str]:
    """Return which log files say nothing, in sentences: the first by their names."""
    silent = [one for one in problems if one.is_silent]
    sentences = [f"What {one.place(inputs)} says: {one.message.removesuffix('.')}." for one in silent[:_MOST_SILENT]]
    if more := len(silent) - len(sentences):
        sentences.append(
            f"What {counted(more, 'more log file')} {form(more, 'says', 'say')}: no line of {form(more, 'it', 'them')} is known."
        )
    return sentences


def is_membership_shown(inputs: Sequence[Input]) -> bool:
    """Whether each of several nodes' directories names its cluster; true where there is one node."""
    nodes = [one for one in inputs if one.kind in _NODES]
    return len({one.broker_id for one in nodes}) < 2 or not any(isinstance(one.cluster_id, Absent) for one in nodes)
