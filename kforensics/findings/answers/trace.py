"""The answer of `trace`: what became of a record, or why its absence is proven or not."""

from collections.abc import Iterator, Sequence

from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Problem
from kforensics.findings.answers.model import Answer, State, worst_state
from kforensics.findings.model import Finding, Severity, by_gravity, finding
from kforensics.protocol.partitioner import Placement
from kforensics.reconcile.trace.model import CopyKind, FateKind, SearchedPartition, TracedRecord
from kforensics.units import OffsetRange
from kforensics.words import counted, listed

_AT_RISK = frozenset({FateKind.WILL_BE_TRUNCATED, FateKind.OUTSIDE, FateKind.DIVERGED})
_MOST = 4
_PARTITIONS = "whether the topic has partitions of which nothing is among the inputs: no metadata shows their number"
_BEFORE = "whether a record that was truncated from these logs, and that no input shows, matched"


def trace_findings(records: Sequence[TracedRecord], placement: Placement | None) -> tuple[Finding, ...]:
    """What is wrong around the records that were found.

    Args:
        records: that were found.
        placement: where default partitioners put their key, if it is known.
    """
    return by_gravity((*_at_risk(records), *_misplaced(records, placement)))


def _at_risk(records: Sequence[TracedRecord]) -> Iterator[Finding]:
    for one in records:
        for fate in one.fate:
            if fate.kind in _AT_RISK:
                at_risk = {"certain": "KF201", "no": "KF203"}.get(one.committed, "KF202")
                yield finding(
                    "KF204" if fate.kind is FateKind.DIVERGED else at_risk,
                    severity=Severity.WARNING,
                    statement=f"{one.partition} offset {one.offset:,}: {fate.statement}",
                    topic_partition=one.partition,
                    offsets=OffsetRange(one.offset, one.offset),
                    citations=fate.citations,
                )


def _misplaced(records: Sequence[TracedRecord], placement: Placement | None) -> Iterator[Finding]:
    if placement is None:
        return
    for partition in sorted({one.partition for one in records}):
        if partition.partition in {placement.murmur2, placement.crc32}:
            continue
        those = [one for one in records if one.partition == partition]
        many = counted(placement.partitions, "partition")
        guessed = "" if placement.is_recorded else " (as many as are among the inputs; no metadata shows the number)"
        yield finding(
            "KF310",
            severity=Severity.NOTE,
            statement=f"{counted(len(those), 'record')} of the key in {partition}: of {many}{guessed} murmur2 chooses {placement.murmur2}, CRC-32 {placement.crc32}",
            topic_partition=partition,
            citations=tuple(Citation(input=copy.input, path=copy.path) for copy in those[0].copies[:1]),
        )


def trace_answer(
    records: Sequence[TracedRecord],
    looked: Sequence[SearchedPartition],
    *,
    offset: int | None,
    problems: Sequence[Problem],
    is_whole_topic: bool,
) -> Answer:
    """The answer of `trace`.

    Args:
        records: that were found, with what became of each.
        looked: what was searched.
        offset: that was asked for, if one was.
        problems: what could not be read.
        is_whole_topic: no partition can be missing, since metadata or the request names all of them.
    """
    gaps = [gap for one in looked for gap in one.gaps]
    unknown = tuple(str(gap) for gap in gaps)
    hedges = () if is_whole_topic else (_PARTITIONS,)
    if not records:
        return _absent(looked, unknown, hedges, offset=offset, problems=problems)
    state = worst_state("trace", (State(one.state) for one in records))
    assert state is not None
    those = [one for one in records if one.state == state]
    return Answer(
        state=state,
        headline=f"{_headline(state, those)}{_others(records, those)}.",
        now=tuple(_now(records)),
        tell=tuple(_tell(those)) if state is State.LOST else (),
        unknown=(*unknown, *hedges),
    )


def _absent(
    looked: Sequence[SearchedPartition],
    unknown: tuple[str, ...],
    hedges: tuple[str, ...],
    *,
    offset: int | None,
    problems: Sequence[Problem],
) -> Answer:
    names = listed([str(one.partition) for one in looked], most=_MOST)
    read = counted(sum(one.records for one in looked), "record")
    ends = [one.log_end_offset for one in looked]
    if offset is not None and not problems and all(_settles(one, offset) for one in looked):
        words = f"NEVER HERE: no record of {names} at offset {offset:,} matches; the logs hold it as a marker or as another record, or end before it"
        return Answer(state=State.NEVER_HERE, headline=f"{words}.", unknown=(_BEFORE, *hedges))
    if unknown or problems or any(isinstance(end, Absent) for end in ends):
        why = listed(unknown[:1]) or "not everything could be read"
        more = len(unknown) - 1
        words = f"NOT FOUND, AND THAT IS NO PROOF: {read} of {names} read, none matches; {why}"
        words += f", and {counted(more, 'further gap')}" if more > 0 else ""
        return Answer(
            state=State.UNKNOWN, headline=f"{words}.", unknown=(*(unknown or ("what could not be read",)), *hedges)
        )
    words = f"NEVER HERE: every offset of the logs of {names} from 0 up to their ends was read ({read} in all copies), and none matches"
    return Answer(
        state=State.NEVER_HERE,
        headline=f"{words}.",
        unknown=(_BEFORE, *hedges),
    )


def _settles(one: SearchedPartition, offset: int) -> bool:
    """Whether nothing that was not read can hold an offset of a partition."""
    if any(isinstance(gap.offsets, Absent) or gap.offsets.first <= offset <= gap.offsets.last for gap in one.gaps):
        return False
    return not isinstance(one.log_end_offset, Absent)


def _headline(state: State, those: Sequence[TracedRecord]) -> str:
    partitions = listed([str(one) for one in dict.fromkeys(record.partition for record in those)], most=_MOST)
    many = counted(len(those), "matching record")
    places = sum(len(one.copies) for one in those)
    left = f"its bytes still lie in {counted(places, 'place')}" if places else "no input holds a copy"
    left = left if len(those) == 1 else left.replace("its", "their")
    certain = sum(one.committed == "certain" for one in those)
    match state:
        case State.LOST:
            left = (
                f"{counted(places, 'copy', 'copies')} left outside of the live replicas" if places else "no copy left"
            )
            proof = f"{certain:,} certainly committed" if certain else "none proven committed"
            return f"LOST: {many} of {partitions} held by no live replica ({proof}; {left})"
        case State.UNKNOWN:
            return f"UNKNOWN: {many} of {partitions} in {counted(places, 'copy', 'copies')} that no broker serves, and nothing shows why"
        case State.PRESENT:
            live = sum(copy.kind is CopyKind.LIVE for one in those for copy in one.copies)
            return f"PRESENT: {many} of {partitions}, in {counted(live, 'copy', 'copies')} on live replicas"
        case State.SUPERSEDED:
            return f"SUPERSEDED: {many} of {partitions} followed by a later one of the same key, or cleaned; {left}"
        case _:
            return f"DELETED ON PURPOSE: {many} of {partitions}; {left}"


def _others(records: Sequence[TracedRecord], those: Sequence[TracedRecord]) -> str:
    counts: dict[str, int] = {}
    for one in records:
        if one.state != those[0].state:
            counts[one.state] = counts.get(one.state, 0) + 1
    words = [f"{count:,} {state}" for state, count in counts.items()]
    return f"; besides {', '.join(words)}" if words else ""


def _now(records: Sequence[TracedRecord]) -> Iterator[str]:
    vanishing = {
        copy.path for one in records if one.state == State.LOST for copy in one.copies if copy.kind is CopyKind.DELETED
    }
    if vanishing:
        paths = listed(sorted(vanishing), most=_MOST)
        yield f"Copy {paths} before a broker starts on it: it is removed after file.delete.delay.ms, or at the next start"
    if any(one.state == State.LOST and one.copies for one in records):
        yield "kforensics salvage gets lost records back out of the copies that are left"
    if any(fate.kind in _AT_RISK for one in records for fate in one.fate):
        yield "Copy the directories before their brokers start: kforensics diff shows what a start discards"


def _tell(those: Sequence[TracedRecord]) -> Iterator[str]:
    for partition in dict.fromkeys(one.partition for one in those):
        offsets = listed([f"{one.offset:,}" for one in those if one.partition == partition], most=_MOST)
        yield f"The producers and consumers of {partition}: offsets {offsets} are not served any more, or hold other records"
