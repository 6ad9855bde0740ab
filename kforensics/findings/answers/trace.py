"""The answer of `trace`: what became of a record, or why its absence is proven or not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kforensics.ask.model import Ask
from kforensics.ask.questions import command_of
from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Input, Problem
from kforensics.evidence.remote_copies import RemoteSegment
from kforensics.findings.answers.model import Answer, State, worst_state
from kforensics.findings.concern import copies_of_places
from kforensics.findings.model import Confidence, Finding, Weight, by_gravity
from kforensics.findings.rule import Rule
from kforensics.findings.rules.keys import misplaced_keys
from kforensics.findings.rules.replicas import DIFFERENT_CONTENT, DISCARDS_COMMITTED, MAY_DISCARD_COMMITTED, TRUNCATES
from kforensics.findings.rules.sequences import again_findings
from kforensics.formats.log.sequences import WrittenAgain
from kforensics.protocol.coordinators import Placement
from kforensics.reconcile.salvage import GapReason
from kforensics.reconcile.trace.model import CopyKind, Fate, FateKind, SearchedPartition, SearchGap, TracedRecord
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import SAFE, Step, counted, form, listed

_AT_RISK = frozenset({FateKind.WILL_BE_TRUNCATED, FateKind.OUTSIDE, FateKind.DIVERGED})
_MOST = 4
_PARTITIONS = "whether the topic has partitions of which nothing is among the inputs: no metadata shows their number"
_BEFORE = "whether a record that was truncated from these logs, and that no input shows, matched"


@dataclass(slots=True)
class _Of:
    """Records of one state."""

    records: int = 0
    copies: int = 0
    live: int = 0
    certain: int = 0
    offsets: dict[TopicPartition, list[int]] = field(default_factory=dict)
    """The first offsets of each partition, and one more where there are more."""
    partitions: dict[TopicPartition, int] = field(default_factory=dict)
    fates: dict[str, FateKind] = field(default_factory=dict)
    """What happened to them, in words; of many the first two."""


class TraceTally:
    """What the answer of `trace` needs of the records that were found, however many there are."""

    def __init__(self) -> None:
        self.states: dict[State, _Of] = {}
        self.records = 0
        self.copies = 0
        self.vanishing: set[tuple[int, str]] = set()
        """Directories with files that are about to be removed and hold lost records, by input."""
        self._at_risk: dict[tuple[Rule, TopicPartition, str], tuple[TracedRecord, Fate, OffsetRange, int]] = {}
        self._first: dict[TopicPartition, TracedRecord] = {}
        self._of_partition: dict[TopicPartition, int] = {}
        self._again: dict[TopicPartition, list[tuple[TracedRecord, TracedRecord]]] = {}
        self._of_producer: dict[tuple[TopicPartition, int], TracedRecord] = {}
        self._last: tuple[str, TopicPartition] | None = None
        self._last_of = _Of()

    def add(self, one: TracedRecord) -> None:
        """Count one more record."""
        if self._last != (one.state, one.partition):
            self._last = one.state, one.partition
            self._last_of = self.states.setdefault(State(one.state), _Of())
            self._last_of.partitions.setdefault(one.partition, 0)
            self._last_of.offsets.setdefault(one.partition, [])
            self._first.setdefault(one.partition, one)
            self._of_partition.setdefault(one.partition, 0)
        of = self._last_of
        of.records += 1
        of.copies += len(one.copies)
        for copy in one.copies:
            of.live += copy.kind is CopyKind.LIVE
        of.certain += one.committed == "certain"
        of.partitions[one.partition] += 1
        offsets = of.offsets[one.partition]
        if len(offsets) < _MOST:
            offsets.append(one.offset)
        if len(of.fates) < 2:
            of.fates.update({fate.statement: fate.kind for fate in one.fate[:1]})
        self.records += 1
        self.copies += len(one.copies)
        self._of_partition[one.partition] += 1
        if one.state == State.LOST:
            self.vanishing |= {
                (copy.input, copy.path.rpartition("/")[0]) for copy in one.copies if copy.kind is CopyKind.DELETED
            }
        self._note_again(one)
        for fate in one.fate:
            if fate.kind in _AT_RISK:
                self._add_at_risk(one, fate)

    def _note_again(self, one: TracedRecord) -> None:
        record = one.record
        if record is None or record.producer_id < 0 or record.is_transactional or not one.copies:
            return
        before = self._of_producer.get((one.partition, record.producer_id))
        first = None if before is None else before.record
        self._of_producer[one.partition, record.producer_id] = one
        if before is None or first is None or first.producer_epoch >= record.producer_epoch:
            return
        if (first.key, first.value, first.headers, first.timestamp_ms) == (
            record.key,
            record.value,
            record.headers,
            record.timestamp_ms,
        ):
            self._again.setdefault(one.partition, []).append((before, one))

    def _written_again(self) -> Iterator[Finding]:
        for partition, pairs in self._again.items():
            (first, second), record = pairs[0], pairs[0][1].record
            assert record is not None
            again = tuple(
                WrittenAgain(record.producer_id, record.producer_epoch, one.offset, other.offset, 1, (-1, -1), 0)
                for one, other in pairs
            )
            yield from again_findings(
                again,
                where=str(partition),
                topic_partition=partition,
                broker_id=Absent.NOT_APPLICABLE,
                citations=tuple(
                    Citation(input=each.copies[0].input, path=each.copies[0].path) for each in (first, second)
                ),
                confidence=Confidence.PROVEN,
            )

    def _add_at_risk(self, one: TracedRecord, fate: Fate) -> None:
        rule = {"certain": DISCARDS_COMMITTED, "no": TRUNCATES}.get(one.committed, MAY_DISCARD_COMMITTED)
        key = (DIFFERENT_CONTENT if fate.kind is FateKind.DIVERGED else rule, one.partition, fate.statement)
        first, at_first, offsets, count = self._at_risk.get(key, (one, fate, OffsetRange(one.offset, one.offset), 0))
        self._at_risk[key] = first, at_first, OffsetRange(offsets.first, one.offset), count + 1

    @property
    def is_at_risk(self) -> bool:
        """Whether a start or a leader takes any record away."""
        return bool(self._at_risk)

    @property
    def risk(self) -> str:
        """What a start or a leader takes away, the first of it in words; empty where it takes nothing."""
        first = next((fate.statement for _, fate, _, _ in self._at_risk.values()), "")
        more = len(self._at_risk) - 1
        return f"{first}, and {counted(more, 'more finding')} of this kind" if more > 0 else first

    def findings(self, placement: Placement | None) -> tuple[Finding, ...]:
        """Return what is wrong around the records."""
        copies = {partition: tuple(first.copies) for partition, first in sorted(self._first.items())}
        return by_gravity(
            (*self._risks(), *self._written_again(), *misplaced_keys(self._of_partition, copies, placement))
        )

    def _risks(self) -> Iterator[Finding]:
        for (rule, partition, statement), (_, fate, offsets, count) in self._at_risk.items():
            where = f"offset {offsets.first:,}"
            if count > 1:
                where = f"{counted(count, 'record')} of offsets {offsets.first:,}..{offsets.last:,}"
            yield rule.states(
                f"{partition} {where}: {statement}",
                weight=Weight.DECIDE,
                topic_partition=partition,
                offsets=offsets,
                citations=fate.citations,
            )


_WITHOUT_REPLICA = frozenset({"missing-replica", "unknown-replicas"})
_BYTES_ELSEWHERE = _WITHOUT_REPLICA | {
    GapReason.DAMAGED,
    GapReason.NOT_READ,
    GapReason.REMOTE,
    GapReason.IN_REMOTE,
    GapReason.NEITHER,
    GapReason.NOT_CAPTURED,
    "unreadable",
}
"""Gaps that may hide bytes of a record; offsets that no log has any more are none."""
_BEYOND_FILES = "other topics, values and headers of other records, free space of the disks, backups, consumers and remote storage were not searched for the key"


def trace_answer(
    tally: TraceTally,
    looked: Sequence[SearchedPartition],
    *,
    ask: Ask,
    inputs: Sequence[Input],
    problems: Sequence[Problem],
    is_whole_topic: bool,
) -> Answer:
    """Return the answer of `trace`."""
    offset = ask.offset
    # The gap that holds the offset is why it was not found.
    gaps = sorted((gap for one in looked for gap in one.gaps), key=lambda gap: not _holds(gap, offset))
    unknown = tuple(str(gap) for gap in gaps)
    hedges = () if is_whole_topic else (_PARTITIONS,)
    if not tally.records:
        return _absent(looked, unknown, hedges, offset=offset, problems=problems)
    state = worst_state(tally.states)
    assert state is not None
    those = tally.states[state]
    headline = _headline(state, those) + _others(tally, state)
    if tally.is_at_risk:
        headline += f"; but {tally.risk}"
    elif state is State.PRESENT and any(_may_lack_leader(one) for one in looked if one.partition in those.partitions):
        headline += f"; whether the leader holds {form(those.records, 'it', 'them')} is unknown"
    displaced = [words for one in looked for words in one.displaced]
    if offset is not None and displaced and state not in {State.LOST, State.UNKNOWN}:
        more = f", and {counted(len(displaced) - 1, 'further doubt')}" if len(displaced) > 1 else ""
        headline = (
            f"NOW {headline}. Another record may have had offset {offset:,} before: no input shows {displaced[0]}{more}"
        )
        state = State.UNKNOWN
    elif offset is not None and state is not State.LOST and any(_is_doubted(one, offset) for one in looked):
        headline += f"; no input shows whether another record had offset {offset:,} before"
    elif offset is None and state is not State.LOST and any(one.may_lack_truncated for one in looked):
        headline += "; truncated records that no input holds may have matched, too"
    return Answer(
        state=state,
        headline=f"{headline}.",
        now=tuple(_now(tally, ask, inputs)),
        tell=tuple(_tell(those)) if state is State.LOST else (),
        unknown=(*unknown, *hedges),
    )


def erasure_answer(
    tally: TraceTally,
    looked: Sequence[SearchedPartition],
    *,
    damaged: Sequence[str],
    files: int,
    problems: Sequence[Problem],
    is_whole_topic: bool,
) -> Answer:
    """Return the answer of `trace --erasure`: whether bytes of the key are left in any record that was searched."""
    names = listed([str(one.partition) for one in looked], most=_MOST)
    gaps = dict.fromkeys(str(gap) for one in looked for gap in one.gaps if gap.reason in _BYTES_ELSEWHERE)
    unknown = (
        *gaps,
        *(words for one in looked for words in _in_remote_storage(one)),
        *(f"{path} is damaged: what its bytes were is not known" for path in damaged),
        *(() if is_whole_topic else (_PARTITIONS,)),
    )
    beyond = (*unknown, _BEYOND_FILES)
    if tally.copies:
        live = sum(of.live for of in tally.states.values())
        words = f"BYTES LEFT: {counted(tally.records, 'record')} of the key in {counted(tally.copies, 'place')} of {names}, {live:,} of them on live replicas"
        return Answer(
            state=State.BYTES_LEFT,
            headline=f"{words}.",
            now=("Each place says until when its bytes stay on disk: a tombstone alone removes none of them",),
            unknown=beyond,
        )
    searched = f"{counted(files, 'file')} of {names}"
    if unknown or problems or not files:
        why = listed(unknown[:1]) or ("not everything could be read" if problems else "no file was searched")
        more = f", and {counted(len(unknown) - 1, 'further gap')}" if len(unknown) > 1 else ""
        words = f"NONE FOUND, AND THAT IS NO PROOF: no record of the key in {searched}; {why}{more}"
        return Answer(state=State.UNKNOWN, headline=f"{words}.", unknown=beyond)
    words = f"NO BYTES LEFT in the files that were searched: {searched} were read whole, and no record has the key"
    return Answer(state=State.NO_BYTES_LEFT, headline=f"{words}.", unknown=beyond)


def _in_remote_storage(one: SearchedPartition) -> Iterator[str]:
    """Yield what remote storage holds of offsets that were searched on disk, too."""
    if one.remote_bytes:
        first, last = one.remote_bytes[0].offsets.first, max(copy.offsets.last for copy in one.remote_bytes)
        many = counted(len(one.remote_bytes), "copy", "copies")
        yield f"{one.partition} at offsets {first:,} to {last:,}: {many} in remote storage on record, which was not searched"


def _absent(
    looked: Sequence[SearchedPartition],
    unknown: tuple[str, ...],
    hedges: tuple[str, ...],
    *,
    offset: int | None,
    problems: Sequence[Problem],
) -> Answer:
    names = listed([str(one.partition) for one in looked], most=_MOST)
    if offset is not None and len(looked) == 1 and (there := _remote_copy(looked[0], offset)) is not None:
        return Answer(
            state=State.IN_REMOTE_STORAGE,
            headline=f"IN REMOTE STORAGE, NOT ON THESE DISKS: offset {offset:,} of {names}; {there.words}.",
            unknown=("what remote storage holds: it was not read", *unknown, *hedges),
        )
    read = counted(sum(one.records for one in looked), "record")
    ends = [one.log_end_offset for one in looked]
    if offset is not None and not problems and all(_settles(one, offset) for one in looked):
        words = f"NEVER HERE: no record of {names} at offset {offset:,} matches; the logs hold it as a marker or as another record, or end before it"
        return Answer(state=State.NEVER_HERE, headline=f"{words}.", unknown=(_BEFORE, *hedges))
    if unknown or problems or any(isinstance(end, Absent) for end in ends):
        why = listed(unknown[:1]) or "not everything could be read"
        more = len(unknown) - 1
        words = f"NOT FOUND, AND THAT IS NO PROOF: {read} of {names} read, none matches. Open: {why}"
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


def _holds(gap: SearchGap, offset: int | None) -> bool:
    held = gap.offsets
    return isinstance(held, OffsetRange) and offset is not None and held.first <= offset <= held.last


def _remote_copy(one: SearchedPartition, offset: int) -> RemoteSegment | None:
    """Return the finished copy of an offset that is on no disk, none where no such copy is on record."""
    if not any(gap.reason == GapReason.IN_REMOTE and _holds(gap, offset) for gap in one.gaps):
        return None
    return next(
        (copy for copy in one.remote_bytes if copy.is_finished and copy.offsets.first <= offset <= copy.offsets.last),
        None,
    )


def _may_lack_leader(one: SearchedPartition) -> bool:
    """Whether a replica may lead a partition that is not among the inputs."""
    return not one.is_leader_known and any(gap.reason in _WITHOUT_REPLICA for gap in one.gaps)


def _settles(one: SearchedPartition, offset: int) -> bool:
    """Whether nothing that was not read can hold an offset of a partition."""
    if any(isinstance(gap.offsets, Absent) or gap.offsets.first <= offset <= gap.offsets.last for gap in one.gaps):
        return False
    return not isinstance(one.log_end_offset, Absent)


def _is_doubted(one: SearchedPartition, offset: int) -> bool:
    return isinstance(one.doubted_from, int) and offset >= one.doubted_from


def _headline(state: State, those: _Of) -> str:
    partitions = listed([str(one) for one in those.partitions], most=_MOST)
    many = counted(those.records, "matching record")
    left = f"its bytes are still in {counted(those.copies, 'place')}" if those.copies else "no input holds a copy"
    left = left if those.records == 1 else left.replace("its", "their")
    match state:
        case State.LOST:
            left = (
                f"{counted(those.copies, 'copy', 'copies')} left outside of the live replicas"
                if those.copies
                else "no copy was read"
            )
            proof = f"{those.certain:,} committed" if those.certain else "none proven committed"
            by_retention = set(those.fates.values()) == {FateKind.DELETED_EARLY}
            return f"LOST: {many} of {partitions} held by no live replica ({proof}; {left}){_why(those) if by_retention else ''}"
        case State.UNKNOWN:
            if not those.copies:
                return f"UNKNOWN: {many} of {partitions}, of which no input holds a copy{_why(those)}"
            return f"UNKNOWN: {many} of {partitions} in {counted(those.copies, 'copy', 'copies')} that no broker serves, and nothing shows why"
        case State.IN_REMOTE_STORAGE:
            return (
                f"IN REMOTE STORAGE: {many} of {partitions}, on no live disk, and a finished copy is on record; {left}"
            )
        case State.PRESENT:
            return f"PRESENT: {many} of {partitions}, in {counted(those.live, 'copy', 'copies')} on live replicas"
        case State.SUPERSEDED:
            return f"SUPERSEDED: {many} of {partitions} followed by a later one of the same key, or cleaned; {left}"
        case _:
            return f"DELETED ON PURPOSE: {many} of {partitions}; {left}{_why(those)}"


def _why(those: _Of) -> str:
    """Return what happened to the records as a sentence behind another, where it is one thing."""
    why = next(iter(those.fates), "") if len(those.fates) == 1 else ""
    return f". {why[:1].upper()}{why[1:]}" if why else ""


def _others(tally: TraceTally, state: State) -> str:
    words = [f"{of.records:,} {other}" for other, of in tally.states.items() if other is not state]
    return f"; also {', '.join(words)}" if words else ""


def _now(tally: TraceTally, ask: Ask, inputs: Sequence[Input]) -> Iterator[str]:
    if tally.vanishing:
        words = "Copy these directories before a broker starts: it removes files that were renamed after file.delete.delay.ms, or at its start"
        yield Step(words, copies_of_places([one.path for one in inputs], tally.vanishing))
    lost = tally.states.get(State.LOST)
    if lost is not None and lost.copies:
        salvage = f"{command_of('salvage', ask, '--what', 'lost')} -o {SAFE}/lost"
        yield Step("Save the lost records from the copies that are left", (salvage,))
    if tally.is_at_risk:
        words = "Copy the directories before their brokers start, and look at what a start discards"
        yield Step(words, (command_of("diff", ask),))


def _tell(those: _Of) -> Iterator[str]:
    for partition, count in those.partitions.items():
        offsets = those.offsets[partition]
        named = listed([f"{one:,}" for one in offsets], most=_MOST)
        more = f" and {count - len(offsets):,} more" if count > len(offsets) else ""
        what = f"offset {named} is" if count == 1 else f"offsets {named}{more} are"
        yield f"The producers and consumers of {partition}: {what} not served any more, or {form(count, 'holds another record', 'hold other records')}"
