"""The effect of the inputs themselves on an answer: named paths that could not be used, and nodes that no file shows to be of one cluster."""

from collections.abc import Sequence
from dataclasses import replace

from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.findings.answers.model import STATES, Answer, State
from kforensics.words import counted, form

MEMBERSHIP_UNKNOWN = "Whether all these directories are of one cluster: not every meta.properties has a cluster.id (brokers before 2.4 write none)."
MEMBERSHIP_HEDGE = " It is not shown that all inputs are of one cluster."
JUDGED_TOGETHER = frozenset({"diff", "explain", "metadata"})
"""Commands that take their inputs for those of one cluster."""

UNUSABLE = "unreadable"
"""Kind of a named path that can't be used."""

_NODES = frozenset({"broker", "combined", "controller", "snapshot-before"})


def skipped_words(count: int, topic: str, why: str) -> str:
    """Return the sentence on records of one of Kafka's own topics that are not understood.

    Args:
        why: the first of them is not.
    """
    because = f": {why}" if why else ""
    return f"What {counted(count, 'record')} of {topic} {form(count, 'says', 'say')} that {form(count, 'is', 'are')} not understood{because}."


def with_inputs(command: str, answer: Answer, inputs: Sequence[Input]) -> Answer:
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
    unusable = [one.path for one in inputs if one.kind == UNUSABLE]
    if not unusable or len(unusable) == len(inputs):
        return answer
    named = unusable[0] if len(unusable) == 1 else counted(len(unusable), "named path")
    is_calm = STATES[command][answer.state] == 0
    return replace(
        answer,
        state=State.UNKNOWN if is_calm else answer.state,
        headline=f"INCOMPLETE, without {named}: {answer.headline}",
        unknown=(*answer.unknown, *(f"What {path} would show: it can't be used." for path in unusable)),
    )


def is_membership_shown(inputs: Sequence[Input]) -> bool:
    """Whether each of several nodes' directories names its cluster; true where there is one node."""
    nodes = [one for one in inputs if one.kind in _NODES]
    return len({one.broker_id for one in nodes}) < 2 or not any(isinstance(one.cluster_id, Absent) for one in nodes)
