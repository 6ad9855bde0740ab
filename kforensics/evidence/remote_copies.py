"""What is in remote storage by the records of `__remote_log_metadata` (KIP-405): every copy of a segment, how far it got, and which offsets brokers read from it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Any, NamedTuple

from kforensics.damage import Absent, Damage
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, checkpoint_value
from kforensics.evidence.model import Citation
from kforensics.evidence.replica.collect import collect_directory, segment_paths
from kforensics.formats.log.records import Record
from kforensics.formats.segment.walk import iter_records
from kforensics.source.mapped import open_below
from kforensics.source.naming import parse_file_name
from kforensics.units import EpochEntry, OffsetRange, TopicPartition
from kforensics.words import utc_words


class CopyState(IntEnum):
    """How far a copy of a segment has got (`RemoteLogSegmentState`): brokers read finished ones alone."""

    STARTED = 0
    FINISHED = 1
    DELETE_STARTED = 2
    DELETE_FINISHED = 3


_BECAME: dict[int, str] = {
    CopyState.STARTED: "was begun and never finished",
    CopyState.FINISHED: "was finished",
    CopyState.DELETE_STARTED: "is being deleted",
    CopyState.DELETE_FINISHED: "was deleted",
}


class RemoteSegment(NamedTuple):
    """One copy of a segment in remote storage, by its last record."""

    segment_id: str
    topic: str
    topic_id: str
    partition: int
    offsets: OffsetRange
    epochs: tuple[EpochEntry, ...]
    length: int
    state: int
    """A `CopyState`, or one that is newer than known."""
    broker_id: int
    changed_ms: int
    recorded_in: int
    """The partition of `__remote_log_metadata` with its records."""
    citation: Citation
    newest_ms: int = -1
    """The largest timestamp of its records, as its broker took it."""

    @property
    def state_name(self) -> str:
        """The state by name, or as the number that it is."""
        known = CopyState._value2member_map_.get(self.state)
        return str(self.state) if known is None else CopyState(self.state).name.lower().replace("_", "-")

    @property
    def is_finished(self) -> bool:
        """Whether brokers read it."""
        return self.state == CopyState.FINISHED

    @property
    def may_hold_bytes(self) -> bool:
        """Whether remote storage may hold bytes of it."""
        return self.state != CopyState.DELETE_FINISHED

    @property
    def words(self) -> str:
        """What became of the copy, as a sentence without its end."""
        what = _BECAME.get(self.state, f"has state {self.state}, which is newer than known")
        first, last = self.offsets
        return f"the copy of offsets {first} to {last} {what} ({utc_words(self.changed_ms)}, broker {self.broker_id}, segment {self.segment_id})"

    def beside(self, epochs: Sequence[EpochEntry], log: OffsetRange) -> Iterator[OffsetRange]:
        """Yield the offsets from the start of a log on that are not its own: of other leader epochs, or behind its end."""
        own = (
            OffsetRange(one.first, min(one.last, log.last)) for one in self.readable(epochs) if one.first <= log.last
        )
        yield from OffsetRange(max(self.offsets.first, log.first), self.offsets.last).without(own)

    def readable(self, epochs: Sequence[EpochEntry]) -> Iterator[OffsetRange]:
        """Yield the offsets that a leader reads from it: brokers look a segment up by the leader epoch that their own log has at an offset.

        Args:
            epochs: of the leader's log; none where they are not known, so that nothing speaks against the copy.
        """
        own = list(_runs(self.epochs, self.offsets.last))
        if not epochs or not own:
            yield self.offsets
            return
        of_leader = dict(_runs(epochs, self.offsets.last))
        for epoch, offsets in own:
            there = of_leader.get(epoch)
            if there is not None:
                first, last = max(offsets.first, there.first, self.offsets.first), min(offsets.last, there.last)
                if first <= last:
                    yield OffsetRange(first, last)


def _runs(epochs: Sequence[EpochEntry], last: int) -> Iterator[tuple[int, OffsetRange]]:
    """Yield leader epochs with their offsets up to one."""
    for one, following in pairwise((*epochs, EpochEntry(-1, last + 1))):
        end = min(following.start_offset, last + 1)
        if one.start_offset < end:
            yield one.leader_epoch, OffsetRange(one.start_offset, end - 1)


_States = dict[str | tuple[str, int], tuple[int, int, int]]
"""State, time and broker of the last record of each copy, and of the deletion of each partition."""

_PARTITION_DELETED = 2
"""`RemotePartitionDeleteState.DELETE_PARTITION_FINISHED`; below, it is marked or begun."""


class Replayed(NamedTuple):
    """Every copy on record, and how much of the record was read."""

    segments: Mapping[TopicPartition, Mapping[str, Sequence[RemoteSegment]]]
    """By partition and topic id, in the order of their offsets."""
    whole: frozenset[int]
    """Partitions of `__remote_log_metadata` of which every record was read."""


def may_begin_there(place: PartitionPlace) -> bool:
    """Whether a log may begin in remote storage where no checkpoint says so: its leader epochs begin below its first segment, or are not known."""
    paths = segment_paths(place)
    first = parse_file_name(paths[0].rpartition("/")[2]).base_offset if paths else 0
    if not isinstance(first, int) or not first:
        return False
    try:
        replica = collect_directory(place).replica
    except EvidenceError:
        return True
    begins = replica.epochs_from
    return begins < first and isinstance(replica.log_start, Absent) if isinstance(begins, int) else True


def replayed(places: Iterable[PartitionPlace], lost: Mapping[int, int] | None = None) -> Replayed:
    """Return every copy on record in the directories of `__remote_log_metadata`; what can't be read adds nothing.

    Args:
        lost: the offsets up to which checkpoints name its partitions where their node holds no directory of them.
    """
    copies: dict[str, RemoteSegment] = {}
    states: _States = {}
    ends: dict[int, int] = {}
    reached = dict(lost or {})
    for place in places:
        number = place.topic_partition.partition
        end = _read(place, copies, states)
        ends[number] = max(ends.get(number, -1), end)
        for name in ("high_watermark", "log_start"):
            claimed = checkpoint_value(place.state, name, place.topic_partition)
            if not isinstance(claimed, Absent):
                # Above the start of the log records of copies were deleted.
                most = claimed.value if name == "high_watermark" else (1 << 63) * (claimed.value > 0)
                reached[number] = max(reached.get(number, 0), most)
    found: dict[TopicPartition, dict[str, list[RemoteSegment]]] = {}
    for segment, copy in copies.items():
        key, now = (copy.topic_id, copy.partition), states[segment]
        removed = states.get(key, now)
        # The deletion of a partition takes every copy that was there.
        state, changed_ms, broker = max(now, removed) if removed[1] >= now[1] else now
        last = copy._replace(state=state, changed_ms=changed_ms, broker_id=broker)
        of_name = found.setdefault(TopicPartition(copy.topic, copy.partition), {})
        of_name.setdefault(copy.topic_id, []).append(last)
    for those in (those for named in found.values() for those in named.values()):
        those.sort(key=lambda one: (one.offsets, one.changed_ms))
    return Replayed(found, frozenset(number for number, end in ends.items() if end >= reached.get(number, 0)))


def _read(place: PartitionPlace, copies: dict[str, RemoteSegment], states: _States) -> int:
    """Note the records of one directory, and return the end of its log; -1 where it does not begin at 0, or is not read whole."""
    from kforensics.formats.messages.remote_log import parse_remote_log_record  # noqa: PLC0415 - few clusters have remote storage

    end, is_whole = 0, True
    for path in segment_paths(place):
        base = parse_file_name(path.rpartition("/")[2]).base_offset
        is_whole = is_whole and base == end
        citation = Citation(input=place.state.input, path=path)
        try:
            with open_below(place.state.root, path) as file:
                for record in iter_records(file):
                    if isinstance(record, Damage):
                        is_whole = False
                        continue
                    end = record.offset + 1
                    if isinstance(record, Record) and not record.is_control and record.value is not None:
                        message = parse_remote_log_record(record.value)
                        is_whole &= _note(message, place.topic_partition.partition, citation, copies, states)
        except EvidenceError:
            is_whole = False
    return end if is_whole else -1


def _note(message: object, number: int, citation: Citation, copies: dict[str, RemoteSegment], states: _States) -> bool:
    from kforensics.formats.messages import remote_log  # noqa: PLC0415 - likewise
    from kforensics.formats.messages.schema import Decoded  # noqa: PLC0415 - likewise

    if not isinstance(message, Decoded):
        return False
    fields: Mapping[str, Any] = message.fields
    if message.name == remote_log.REMOTE_LOG_SEGMENT_SNAPSHOT.name:
        return True  # which the topic does not hold
    if message.name == remote_log.REMOTE_PARTITION_DELETE.name:
        is_done = fields["remote_partition_delete_state"] >= _PARTITION_DELETED
        named, state = fields["topic_id_partition"], CopyState.DELETE_FINISHED if is_done else CopyState.DELETE_STARTED
        segment: Any = (named["id"], named["partition"])
    else:
        named, segment = fields["remote_log_segment_id"]["topic_id_partition"], fields["remote_log_segment_id"]["id"]
        state = fields["remote_log_segment_state"]
    # A replica may lag behind.
    now = (state, fields["event_timestamp_ms"], fields["broker_id"])
    states[segment] = max(states.get(segment, now), now)
    if message.name == remote_log.REMOTE_LOG_SEGMENT.name and fields["start_offset"] <= fields["end_offset"]:
        copies[segment] = RemoteSegment(
            segment,
            named["name"],
            named["id"],
            named["partition"],
            OffsetRange(fields["start_offset"], fields["end_offset"]),
            tuple(EpochEntry(one["leader_epoch"], one["offset"]) for one in fields["segment_leader_epochs"] or ()),
            fields["segment_size_in_bytes"],
            now[0],
            now[2],
            now[1],
            number,
            citation,
            fields["max_timestamp_ms"],
        )
    return True
