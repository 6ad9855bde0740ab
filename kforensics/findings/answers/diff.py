"""The answer of a comparison: the first lines over all partitions, from what each gives reason for.

The worst partition decides the state. The headline is a sentence about the gravest kind of concern that leads to it.
"""

import shlex
from collections.abc import Collection, Iterator, Sequence

from kforensics.evidence.metadata.quorum import QuorumSetBack
from kforensics.evidence.model import Problem
from kforensics.findings.answers.diff_concerns import MOST_NAMED, Concerns, topics_of
from kforensics.findings.answers.diff_headline import deleted_topics, diff_headline
from kforensics.findings.answers.diff_steps import diff_steps
from kforensics.findings.answers.diff_unknowns import diff_unknowns
from kforensics.findings.answers.model import CALM_OF_DIFF, Answer, State, worst_state
from kforensics.findings.answers.partition_state import ConcernKind, JudgedPartition
from kforensics.findings.model import Finding
from kforensics.findings.rules.inputs import RefusedStart
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import Step, counted, form, joined_by_and, listed


def diff_answer(
    judged: Sequence[JudgedPartition],
    *,
    paths: Sequence[str],
    findings: Sequence[Finding] = (),
    problems: Sequence[Problem] = (),
    among: int | None = None,
    not_given: Collection[TopicPartition] = (),
    refused: Sequence[RefusedStart] = (),
    quorum: QuorumSetBack | None = None,
) -> Answer:
    """Return the answer over all partitions that were compared.

    Args:
        paths: of the inputs, where their directories can be copied.
        findings: of the whole result; several clusters, or a broker given twice, make the comparison itself unknown.
        among: the number of all partitions but those of deleted topics, where those in `judged` are only the worst of them.
        not_given: partitions that the metadata names and of which no replica is among the inputs, some broker being there.
        refused: brokers that do not start as they are.
        quorum: the voters that can go on without metadata that was committed.
    """
    deleted = sum(one.is_deleted for one in judged)
    among = len(judged) - deleted if among is None else among
    mixed = next((one for one in findings if one.code in {"KF507", "KF508"}), None)
    if mixed is not None:
        headline = f"UNKNOWN: these inputs can't be compared as they are: {mixed.statement}."
        return Answer(state=State.UNKNOWN, headline=headline, now=(mixed.advice,) if mixed.advice else ())
    if not judged:
        return Answer(
            state=State.UNKNOWN,
            headline="UNKNOWN: nothing to compare: no partition was found.",
            unknown=("What the replicas hold: give the data directories of the brokers.",),
        )
    state = _state_of_compared(judged)
    if state in CALM_OF_DIFF and not among:
        return Answer(
            state=State.UNKNOWN,
            headline=f"UNKNOWN: nothing to compare: {counted(deleted, 'partition')}, of {deleted_topics(deleted)}.",
            unknown=("What other partitions hold: give the data directories of the brokers.",),
        )
    if state in CALM_OF_DIFF and not_given and all(one.partition.topic in METADATA_TOPICS for one in judged):
        names = listed([str(one) for one in sorted(not_given)], most=MOST_NAMED)
        return Answer(
            state=State.UNKNOWN,
            headline=f"UNKNOWN: only the metadata log was compared; of {counted(len(not_given), 'partition')} that it names no replica is given.",
            unknown=(f"What the replicas of {names} hold: give the data directories of their brokers.",),
        )
    if problems and state in CALM_OF_DIFF:
        state = State.UNKNOWN
    if quorum and state in CALM_OF_DIFF:
        return Answer(state=State.UNKNOWN, headline=f"UNKNOWN: {quorum.words}", now=(quorum.step,))
    found = Concerns(judged, state, among=among, not_starting={one.broker_id for one in refused if one.is_whole})
    refusals = "".join(f" {one.words[0].upper()}{one.words[1:]}." for one in refused)
    return Answer(
        state=state,
        headline=diff_headline(found)
        + refusals
        + (f" {quorum.words}" if quorum else "")
        + (_incomplete(problems) if problems else ""),
        now=(*([quorum.step] if quorum else []), *diff_steps(found, paths), *_see_starts(refused, paths)),
        tell=tuple(_tell(found)),
        later=tuple(_later(found)),
        unknown=tuple(diff_unknowns(found, problems)),
    )


def _state_of_compared(judged: Sequence[JudgedPartition]) -> State:
    """Return the worst state of what was compared: of deleted topics nothing was, whatever was read of others."""
    concerns = [one for partition in judged for one in partition.concerns if one.kind is not ConcernKind.DELETED]
    return worst_state("diff", (one.state for one in concerns)) or State.AGREE


def _tell(found: Concerns) -> Iterator[str]:
    risky = [
        item
        for kind in (
            ConcernKind.EMPTIED,
            ConcernKind.DISCARD,
            ConcernKind.SOLE,
            ConcernKind.ELECTED,
            ConcernKind.PAST_END,
        )
        for item in found.of(kind, State.AT_RISK)
    ]
    if risky:
        yield f"Producers and consumers of {topics_of(risky)}: committed records can be lost at the next start."
    parted = found.of(ConcernKind.DIVERGENCE, State.DIVERGED)
    if parted:
        led = dict.fromkeys(one.leader for _, one in parted if one.leader and not one.guess)
        served = f"; {joined_by_and(led)} {form(len(led), 'leads', 'lead')} now" if led else ""
        yield f"Consumers of {topics_of(parted)}: what they read depends on which broker led{served}."


def _later(found: Concerns) -> Iterator[str]:
    if found.of(ConcernKind.SOLE, State.AT_RISK) or found.of(ConcernKind.DISCARD, State.AT_RISK):
        yield "With min.insync.replicas of 2 or more and acks=all, no replica alone holds what was acknowledged."


def _see_starts(refused: Sequence[RefusedStart], paths: Sequence[str]) -> Iterator[str]:
    if refused:
        named = dict.fromkeys(paths[one.input] for one in refused)
        yield Step(
            "See what each start does, and what to mend", (shlex.join(("kforensics", "predict", *named, "--ways-out")),)
        )


def _incomplete(problems: Sequence[Problem]) -> str:
    return f" Incomplete: {counted(len(problems), 'thing')} could not be read."
