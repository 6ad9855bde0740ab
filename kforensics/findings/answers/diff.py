"""The answer of a comparison: the state of each partition, and the first lines over all of them, folded from their concerns.

The worst concern is the state of its partition, the worst partition that of the whole. The headline is a sentence about the gravest kind of concern that leads to it.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from kforensics.evidence.model import Problem
from kforensics.findings.answers.model import CALM_OF_DIFF, Answer, State, not_read_words, worst_state
from kforensics.findings.concern import (
    MOST_NAMED,
    ORDER,
    Compared,
    Concern,
    ConcernKind,
    Concerns,
    JudgedPartition,
    first_ones,
    names_of,
    owners_of,
    partitions_of,
    topics_of,
)
from kforensics.findings.model import Finding
from kforensics.findings.rules import at_risk, not_shown, settled
from kforensics.findings.rules.inputs import RefusedStart
from kforensics.findings.rules.quorum import quorum_steps, quorum_tell, quorum_words
from kforensics.reconcile.replicas.report import PartitionReport, ReplicaReport, Verdict
from kforensics.units import METADATA_TOPICS, Depth, TopicPartition
from kforensics.words import Step, command_line, counted, form, joined_by_and, listed, with_place

if TYPE_CHECKING:
    from kforensics.evidence.metadata.set_back import QuorumSetBack

WORDS = {**not_shown.WORDS, **at_risk.WORDS, **settled.WORDS}
"""What is said of each kind of concern, in the order in which a reader is told what to do and what is unknown."""

_WITHOUT_ALARM = CALM_OF_DIFF | {State.UNCOMMITTED_ONLY}
_HEDGED_BY_DEPTH = frozenset({State.DIVERGED, State.UNKNOWN, State.UNCOMMITTED_ONLY, State.BEHIND, State.SAME_ENDS})
"""States whose headline says that content was not compared where it was not; graver ones do not depend on it."""


def judged_partition(report: PartitionReport, problems: Sequence[Problem] = ()) -> JudgedPartition:
    """Return the concerns about a partition."""
    concerns = tuple(_concerns(report))
    if problems or any(_is_unread(one) for one in report.replicas):
        # A log that is not read whole looks shorter than it is: nothing about its partition is certain.
        hedged = (c._replace(state=State.MAYBE_AT_RISK) if c.state is State.AT_RISK else c for c in concerns)
        concerns = (*hedged, Concern(state=State.UNKNOWN, kind=ConcernKind.UNREAD))
    judged = JudgedPartition(partition=report.partition, concerns=concerns)
    return judged if report.account is None else judged.led_by(report.account, report.not_compared_below)


def _is_unread(one: ReplicaReport) -> bool:
    """Whether a file that decides about a replica could not be read: of its log, or the checkpoint of its high watermark."""
    return bool(one.view.replica.unread_files) or (one.verdict is Verdict.UNREADABLE and one.compared_with is not None)


def partition_state(report: PartitionReport, problems: Sequence[Problem] = ()) -> State:
    """Return the state of one partition, by the words of the whole answer."""
    return judged_partition(report, problems).state


def _concerns(report: PartitionReport) -> Iterator[Concern]:
    compared = Compared.of(report)
    is_of_ends = report.depth is Depth.TAILS
    if report.is_deleted:
        yield Concern(state=State.SAME_ENDS if is_of_ends else State.AGREE, kind=ConcernKind.DELETED)
        # No replica is expected anywhere; of a topic created again under that name none is given.
        if report.is_replaced:
            views = (one.view for one in report.replicas)
            yield compared.concern(State.UNKNOWN, ConcernKind.OTHER_TOPIC, views)
        return
    if is_of_ends:
        yield Concern(state=State.SAME_ENDS, kind=ConcernKind.ENDS, records=report.not_compared_below)
    yield from at_risk.AT_RISK.of(compared)
    yield from not_shown.NOT_SHOWN.of(compared)
    yield from settled.SETTLED.of(compared)


def diff_answer(
    judged: Sequence[JudgedPartition],
    *,
    paths: Sequence[str],
    findings: Sequence[Finding] = (),
    problems: Sequence[Problem] = (),
    among: int | None = None,
    not_given: Collection[TopicPartition] = (),
    refused: Sequence[RefusedStart] = (),
    quorum: "QuorumSetBack | None" = None,
) -> Answer:
    """Return the answer over all partitions that were compared.

    Args:
        findings: of the whole result; several clusters, or a broker given twice, make the comparison itself unknown.
        among: the number of all partitions but those of deleted topics, where those in `judged` are only the worst of them.
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
    set_back = quorum_state(quorum)
    if quorum and set_back and worst_state((state, set_back)) is set_back:
        risk = {
            State.AT_RISK: "AT RISK: ",
            State.MAYBE_AT_RISK: "MAYBE AT RISK: ",
            State.DIVERGED: "METADATA LOGS DIFFER FOR GOOD: ",
        }.get(set_back, "UNKNOWN: ")
        # Of the metadata log the quorum's own words say it, and what to do.
        judged = [one for one in judged if one.partition.topic not in METADATA_TOPICS]
        state = _state_of_compared(judged)
        found = Concerns(judged, state, among=len(judged))
        return Answer(
            state=set_back,
            headline=f"{risk}{quorum_words(quorum)}" + (f" {_worst(found)}" if state not in CALM_OF_DIFF else ""),
            now=with_place((*quorum_steps(quorum), *_steps(found, paths))),
            tell=(*quorum_tell(quorum), *_tell(found)),
            unknown=tuple(_unknown(found, problems)),
        )
    found = Concerns(judged, state, among=among, not_starting={one.broker_id for one in refused if one.is_whole})
    refusals = "".join(f" {one.words[0].upper()}{one.words[1:]}." for one in refused)
    return Answer(
        state=state,
        headline=_worst(found)
        + _observers(found)
        + _without_epochs(found)
        + _left_bytes(found)
        + refusals
        + (f" {quorum_words(quorum)}" if quorum else "")
        + (f" Incomplete: {counted(len(problems), 'thing')} could not be read." if problems else ""),
        now=with_place(
            (*(quorum_steps(quorum) if quorum else ()), *_steps(found, paths), *_see_starts(refused, paths))
        ),
        tell=tuple(_tell(found)),
        later=tuple(_later(found)),
        unknown=tuple(_unknown(found, problems)),
    )


def quorum_state(quorum: "QuorumSetBack | None") -> State | None:
    """Return the state that a quorum gives an answer; none where it goes on as it was."""
    if quorum is None or quorum.is_stuck or quorum.is_open or not quorum.is_shown:
        return None if quorum is None else State.UNKNOWN
    if quorum.mixed:
        return State.DIVERGED
    return State.AT_RISK if quorum.is_certain and quorum.is_emptied else State.MAYBE_AT_RISK


def _state_of_compared(judged: Sequence[JudgedPartition]) -> State:
    """Return the worst state of what was compared: of deleted topics nothing was, whatever was read of others."""
    concerns = [one for partition in judged for one in partition.concerns if one.kind is not ConcernKind.DELETED]
    return worst_state(one.state for one in concerns) or State.AGREE


def _observers(found: Concerns) -> str:
    if found.state not in _WITHOUT_ALARM:
        return ""
    copies, ahead = found.of(ConcernKind.OBSERVERS, State.AGREE), found.of(ConcernKind.AHEAD, State.AGREE)
    lacks = f" The copy of the metadata log on {joined_by_and(owners_of(copies))} lacks a part." if copies else ""
    beyond = f" The copy of the metadata log on {joined_by_and(owners_of(ahead))} reaches beyond its leader's: it is truncated unless that was copied earlier."
    return f"{lacks}{beyond if ahead else ''}"


def _without_epochs(found: Concerns) -> str:
    items = found.of(ConcernKind.NO_EPOCHS, State.AGREE) if found.state in _WITHOUT_ALARM else ()
    if not items:
        return ""
    partition, first = items[0]
    return (
        f" Unless the copy left them out, leader-epoch-checkpoint files of {partitions_of(items)} are missing on {joined_by_and(owners_of(items))},"
        f" whose start then truncates these logs: {partition} {first.detail}."
    )


def _left_bytes(found: Concerns) -> str:
    items = found.of(ConcernKind.LEFT_BYTES, State.AGREE) if found.state in _WITHOUT_ALARM else ()
    if not items:
        return ""
    whose = f"{names_of(items)} on {joined_by_and(owners_of(items))}"
    what = items[0][1].detail if len(items) == 1 else "bytes that are no batch"
    return f" But behind the last batch of {whose}, stopped cleanly, are {what}: `kforensics predict` tells whether a start fails."


def _worst(found: Concerns) -> str:
    kinds = sorted((kind for state, kind in found.by_kind if state is found.state), key=ORDER.__getitem__)
    if found.state is State.AGREE or not kinds:
        if found.state is State.AGREE and found.is_metadata_alone:
            return (
                "All replicas of the metadata log agree, every voter given; no log of another partition was compared."
            )
        if found.state is State.AGREE:
            also = of_deleted_topics(sum(one.is_deleted for one in found.judged))
            return f"All replicas agree: {found.among} compared, every assigned replica given{also}."
        return f"UNKNOWN: {found.among} compared, and not all could be read.{_not_compared(found)}"
    items = found.of(kinds[0])
    sentence = WORDS[kinds[0]].in_headline(found, items)
    prefix = {
        State.MAYBE_AT_RISK: "MAYBE AT RISK: ",
        State.UNKNOWN: "UNKNOWN: ",
    }.get(found.state, "")
    said = {tp for tp, _ in items}
    more = ""
    for kind in kinds[1:]:
        others = [(tp, one) for tp, one in found.of(kind) if tp not in said]
        if others:
            more += f" Also {names_of(others)}: {WORDS[kind].short}."
            said |= {tp for tp, _ in others}
    return prefix + sentence + more + _not_compared(found)


def _not_compared(found: Concerns) -> str:
    unread = any(one.records for _, one in found.of(ConcernKind.ENDS, State.SAME_ENDS))
    if not unread or found.state not in _HEDGED_BY_DEPTH:
        return ""
    return " Content below the ends of the logs was not compared."


def _steps(found: Concerns, paths: Sequence[str]) -> Iterator[str]:
    for words in WORDS.values():
        yield from words.now(found, paths)


def _tell(found: Concerns) -> Iterator[str]:
    risky = [item for kind in WORDS for item in found.of(kind, State.AT_RISK)]
    if risky:
        yield f"Producers and consumers of {topics_of(risky)}: committed records can be lost at the next start."
    for words in WORDS.values():
        yield from words.tell(found)


def _unknown(found: Concerns, problems: Sequence[Problem]) -> Iterator[str]:
    for words in WORDS.values():
        yield from words.unknown(found)
    yield from lost_before(found.judged)
    if problems:
        yield not_read_words(problems)


def lost_before(judged: Sequence[JudgedPartition]) -> Iterator[str]:
    """Yield what elections on record leave unknown that may have lost records: replicas that agree now say nothing of that."""
    risky = [(one.partition, one.risks) for one in judged if one.risks]
    if risky:
        names = first_ones(str(partition) for partition, _ in risky)
        why = listed(list(dict.fromkeys(words for _, risks in risky for words in risks)), most=2)
        yield f"Whether records of {names} were lost before: {why} {'are' if ' and ' in why else 'is'} on record; `kforensics explain` answers that."


def _later(found: Concerns) -> Iterator[str]:
    if found.of(ConcernKind.SOLE, State.AT_RISK) or found.of(ConcernKind.DISCARD, State.AT_RISK):
        yield "Set min.insync.replicas=2 and acks=all: then no single replica holds the only copy of an acknowledged record."


def _see_starts(refused: Sequence[RefusedStart], paths: Sequence[str]) -> Iterator[str]:
    if refused:
        named = dict.fromkeys(paths[one.input] for one in refused)
        yield Step(
            "See what each start does, and what to mend",
            (command_line(("kforensics", "predict", *named, "--ways-out")),),
        )


def deleted_topics(count: int) -> str:
    """Return what some partitions are of."""
    return form(count, "a deleted topic", "deleted topics")


def of_deleted_topics(count: int) -> str:
    """Return, in brackets, how many partitions beside those that were compared are of deleted topics; nothing where none is."""
    partitions = f"{counted(count, 'other partition')} {form(count, 'is', 'are')}"
    return f" ({partitions} of {deleted_topics(count)})" if count else ""
