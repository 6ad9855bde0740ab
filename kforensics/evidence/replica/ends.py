"""The ends of logs: found by their indexes, read in place of whole logs, and held in memory ahead of their use."""

import stat
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kforensics.damage import Absent, Gravity
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.formats.index import OFFSET_ENTRY_LENGTH, last_time_entry_span
from kforensics.formats.log.batch_table import (
    BATCH_HEADER,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    NEWEST_MAGIC,
    NO_EPOCH,
    NO_TIMESTAMP,
)
from kforensics.formats.primitives.word_buffer import SegmentBytes
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.capture import CapturedSegment
from kforensics.source.mapped import PAGE, EvidenceFile, directories_held, held_ranges, open_evidence, path_below
from kforensics.source.naming import FileKind, parse_file_name
from kforensics.source.ranges import Range, at_hand
from kforensics.source.walk import join
from kforensics.units import METADATA_TOPICS, Depth, TopicPartition

# Where in a segment the batches of some offsets are, by its offset index, as far as the index leads to batches.


HEADERS = 256
"""The bytes of a segment that are read at once where its headers alone are of use: those of a few small batches."""


class PartOfFile:
    """A segment up to a position: a walk of it reads nothing behind."""

    def __init__(self, file: SegmentBytes, end: int) -> None:
        self._file = file
        self.size = min(end, file.size)

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer up to the end of the part, and return the number of bytes read."""
        return self._file.read_into(position, buffer[: max(self.size - position, 0)])


class IndexEntries:
    """The entries of an offset index that are in use, read by pages; preallocated zeros behind them are found by halving."""

    def __init__(self, index: EvidenceFile) -> None:
        self._index = index
        self._pages: dict[int, bytes] = {}
        self.count = self._used()

    def _used(self) -> int:
        # Positions rise to the last entry and are zero in the preallocated rest.
        whole = self._index.size // OFFSET_ENTRY_LENGTH
        if whole and self.position(whole - 1) > 0:
            return whole
        return bisect_right(range(whole), 0, key=lambda at: int(self.position(at) <= 0))

    def position(self, at: int) -> int:
        """Return the position in the segment that an entry names, as it is on disk."""
        return int.from_bytes(self._entry(at)[4:], signed=True)

    def offset(self, at: int) -> int:
        """Return the offset that an entry names, relative to the base offset of the segment, as it is on disk."""
        return int.from_bytes(self._entry(at)[:4], signed=True)

    def at_or_below(self, offset: int) -> int | None:
        """Return the number of the last entry whose relative offset is not above another one, none where all are; of an index that does not rise it means nothing."""
        at = bisect_right(range(self.count), offset, key=self.offset)
        return at - 1 if at else None

    def _entry(self, at: int) -> bytes:
        page, within = divmod(at * OFFSET_ENTRY_LENGTH, PAGE)
        if page not in self._pages:
            self._pages[page] = self._index.read(page * PAGE, PAGE)
        return self._pages[page][within : within + OFFSET_ENTRY_LENGTH]


def indexed_position(index: Path | str, relative_offset: int | None = None) -> int:
    """Return the position that an index names for an offset; 0 where it names none, or can't be read.

    Args:
        index: the path of the offset index; what it says is not proven here.
        relative_offset: to the base offset of the segment; None for the position of its last entry.
    """
    try:
        with open_evidence(index) as file:
            entries = IndexEntries(file)
            at = entries.count - 1 if relative_offset is None else entries.at_or_below(relative_offset)
            return 0 if at is None or at < 0 else entries.position(at)
    except EvidenceError:
        return 0


def indexed_start(index: Path, segment: EvidenceFile, base_offset: int, offset: int | None = None) -> int:
    """Return the position of a batch at or before an offset, by an index.

    Args:
        offset: which; the last one that the index has an entry for where it is not given.

    Returns:
        The position, 0 where the index leads to none.
    """
    position = indexed_position(index, None if offset is None else offset - base_offset)
    found = batch_at(segment, position)
    highest = found is not None and base_offset <= found[0] and (offset is None or found[0] <= offset)
    return position if position and highest else 0


def batch_at(segment: EvidenceFile, position: int) -> tuple[int, int] | None:
    """Return the offset in the header of what may be a batch or a message at a claimed position, and its length in bytes; none where nothing seems to be there."""
    if not 0 <= position < segment.size:
        return None
    return _header(segment.read(position, HEADER_UP_TO_MAGIC), segment.size - position)


def _header(head: bytes, left: int) -> tuple[int, int] | None:
    if len(head) < HEADER_UP_TO_MAGIC:
        return None
    offset, length, magic = int.from_bytes(head[:8], signed=True), int.from_bytes(head[8:12], signed=True), head[16]
    fits = 0 < length <= left - LOG_OVERHEAD
    return (offset, length + LOG_OVERHEAD) if fits and magic <= NEWEST_MAGIC else None


def end_of_offsets(segment: EvidenceFile, start: int, last_offset: int) -> int:
    """Return the position behind the first batch that lies above an offset, going from header to header; the end of the file where a header can't be one.

    A message of magic 0 and 1 names the last offset that it wraps, so that the first one above the offset may hold it.
    """
    position, page, page_at = start, b"", start
    while position < segment.size:
        if not page_at <= position <= page_at + len(page) - HEADER_UP_TO_MAGIC:
            page_at, page = position, segment.read(position, HEADERS)
        found = _header(page[position - page_at : position - page_at + HEADER_UP_TO_MAGIC], segment.size - position)
        if found is None:
            return segment.size
        position += found[1]
        if found[0] > last_offset:
            return position
    return segment.size


# The end of a log, read from the end of its last segment; an index shortens the way if it leads to a sound batch.


class LogTail(NamedTuple):
    """The end of a log: the offset that comes next, and the leader epoch and time of the last sound batch."""

    log_end_offset: int
    leader_epoch: int | Absent
    max_timestamp_ms: int | Absent
    markers_from: int | Absent = Absent.UNKNOWN
    """The offset from which on the log holds markers of transactions alone, which no consumer is given; its end where its last batch is none."""


def read_log_tail(
    one: FoundInput, segments: list[tuple[int, str]], indexes: dict[int, str], *, depth: Depth = Depth.TAILS
) -> LogTail | Absent:
    """Return the end of the log in these segments; absent where there is no segment.

    Args:
        segments: base offset and path of each.
        indexes: paths of offset indexes by base offset, which shorten the way.
        depth: at depth content every batch of every segment is read, and no index is trusted.
    """
    if not segments:
        return Absent.NOT_APPLICABLE
    last_base = max(base for base, _ in segments)
    newest: LogTail | None = None
    for base_offset, path in sorted(segments, reverse=True):
        with one.open(path) as segment:
            if isinstance(segment, CapturedSegment):
                tail = _captured_tail(segment)
            else:
                index = indexes.get(base_offset) if depth is Depth.TAILS and segment.size else None
                start = indexed_start(one.root / index, segment, base_offset) if index is not None else 0
                tail = _tail_from(segment, start) or (_tail_from(segment, 0) if start else None)
        if tail is None:
            continue
        if newest is None:
            # An empty segment behind it was rolled at its base offset, which is then the end.
            newest = tail._replace(log_end_offset=max(tail.log_end_offset, last_base))
        else:
            newest = newest._replace(log_end_offset=max(tail.log_end_offset, newest.log_end_offset))
        if depth is Depth.TAILS:
            break
    return newest or LogTail(last_base, Absent.NOT_APPLICABLE, Absent.NOT_APPLICABLE)


def longest_truncated_batch(one: FoundInput, segments: list[tuple[int, str]]) -> int | None:
    """Return the most offsets by which a truncation may have left the end of its log below its target: those of the longest batch, of which headers alone are read.

    Args:
        segments: base offset and path of each.

    Returns:
        0 where the log ends in an incomplete batch, which no truncation leaves; None where a segment is only in a capture.
    """
    longest, ends_whole = 0, True
    for _, path in sorted(segments):
        with one.open(path) as segment:
            if isinstance(segment, CapturedSegment):
                return None
            for window in walk_segment(segment, level=Level.HEADERS) if segment.size else ():
                rows = window.batches
                if len(rows):
                    longest = max(longest, int((rows["last_offset"] - rows["base_offset"]).max()) + 1)
                ends_whole = not any(place.gravity is Gravity.TORN_TAIL for place in window.damage)
    return longest if ends_whole else 0


def _captured_tail(segment: CapturedSegment) -> LogTail | None:
    """Return what the last window of the walk gave when the segment was captured."""
    from kforensics.evidence.captured.reading import captured_tail  # noqa: PLC0415 - of captures alone

    tail = captured_tail(segment)
    if tail is None:
        return None
    end, epoch, timestamp = tail
    return LogTail(
        end,
        Absent.NOT_APPLICABLE if epoch == NO_EPOCH else epoch,
        Absent.NOT_WRITTEN if timestamp == NO_TIMESTAMP else timestamp,
    )


def _tail_from(segment: EvidenceFile, start: int) -> LogTail | None:
    tail, markers_from = None, None
    if not segment.size:
        return None
    for window in walk_segment(segment, level=Level.CRC, start=start):
        sound = window.batches[window.batches["crc_valid"]]
        if not len(sound):
            continue
        last = sound[-1]
        records = np.flatnonzero((sound["magic"] < 2) | ((sound["attributes"] & CONTROL_BIT) == 0))
        if len(records):
            markers_from = int(sound["last_offset"][records].max()) + 1
        elif markers_from is None:
            markers_from = int(sound["base_offset"][0])
        epoch, timestamp = int(last["partition_leader_epoch"]), int(last["max_timestamp"])
        tail = LogTail(
            int(sound["last_offset"].max()) + 1,
            Absent.NOT_APPLICABLE if epoch == NO_EPOCH else epoch,
            Absent.NOT_WRITTEN if timestamp == NO_TIMESTAMP else timestamp,
            markers_from,
        )
    return tail


# Read what the ends of many logs need in two rounds, with many requests at once, before each log is looked at by itself.


LARGEST_END = 1 << 20
"""The bytes of the end of a log that are read ahead; the end of a longer one is read when it is looked at."""

AROUND_PARTING = 64 << 10
"""The bytes of the end of a log that are read ahead where the epoch checkpoints of its replicas differ."""

SMALL_FILE = 64 << 10
"""The bytes of a larger epoch checkpoint or partition.metadata are not read ahead."""


class _End(NamedTuple):
    """The last segment of a log that was stopped cleanly."""

    log: Range
    """All of it."""
    offset_index: Path | str
    epochs: Range | None


@contextmanager
def ends_at_hand(groups: Iterable[Sequence[PartitionPlace]]) -> Iterator[None]:
    """Hold the ends of logs in memory for as long as the block runs, and their directories."""
    wanted: list[Range] = []
    ends: dict[TopicPartition, list[_End]] = defaultdict(list)
    for place in (place for group in groups for place in group):
        if not place.state.store.holds_bytes or place.topic_partition.topic in METADATA_TOPICS:
            continue
        end = _end_of(place, wanted)
        if end is not None:
            ends[place.topic_partition].append(end)
    with directories_held(), at_hand(wanted), at_hand(one for group in ends.values() for one in _last_batches(group)):
        yield


def _end_of(place: PartitionPlace, wanted: list[Range]) -> _End | None:
    """Note what is read of a log whatever its end is, and return its last segment where its end alone is read."""
    lengths: dict[FileKind, dict[str, int]] = defaultdict(dict)
    for name, mode, length, _ in place.state.listings.rows(place.path)[0]:
        parsed = parse_file_name(name)
        if stat.S_ISREG(mode) and not parsed.is_transient:
            lengths[parsed.kind][name] = length

    def whole(name: str, length: int) -> Range:
        return Range(path_below(place.state.root, join(place.path, name)), 0, length)

    epochs = [whole(*one) for one in lengths[FileKind.LEADER_EPOCH_CHECKPOINT].items()]
    small = (*epochs, *(whole(*one) for one in lengths[FileKind.PARTITION_METADATA].items()))
    wanted += [one for one in small if 0 < one.length <= SMALL_FILE]
    logs = sorted(one for one in lengths[FileKind.SEGMENT].items() if one[1])
    if not logs or not place.state.clean_shutdown:
        return None
    wanted.append(whole(logs[0][0], BATCH_HEADER.length))
    log, stem = whole(*logs[-1]), logs[-1][0].removesuffix(".log")
    times, index = f"{stem}.timeindex", f"{stem}.index"
    if (last := last_time_entry_span(lengths[FileKind.TIME_INDEX].get(times, 0))) is not None:
        wanted.append(whole(times, last.length)._replace(position=last.position))
    length = lengths[FileKind.OFFSET_INDEX].get(index, 0)
    if length < OFFSET_ENTRY_LENGTH:
        wanted.append(log._replace(length=min(log.length, LARGEST_END)))
        return None
    page = (length - OFFSET_ENTRY_LENGTH) // PAGE * PAGE
    wanted.append(whole(index, length - page)._replace(position=page))
    return _End(log, wanted[-1].path, epochs[0] if epochs else None)


def _last_batches(group: Sequence[_End]) -> Iterator[Range]:
    """Yield the end of each log of a partition, and more where their epoch checkpoints show that they part."""
    checkpoints = {
        bytes(held_ranges.find(str(one.epochs.path), 0, one.epochs.length) or b"")
        for one in group
        if one.epochs is not None
    }
    for one in group:
        start = indexed_position(one.offset_index)
        if len(checkpoints) > 1:
            start = min(start, max(one.log.length - AROUND_PARTING, 0))
        if 0 <= one.log.length - start <= LARGEST_END:
            yield Range(one.log.path, start, one.log.length - start)


# The time of the first record of a replica whose log is here from its first offset on.


_FIRST_SEGMENT = f"{0:020d}.log"


def first_record_times(
    places: Iterable[PartitionPlace], wanted: Collection[tuple[int, TopicPartition]]
) -> dict[tuple[int, TopicPartition], int]:
    """Return when the first record of each log of these brokers and partitions was written by its own timestamp, in UTC ms; none of one that begins above offset 0."""
    found: dict[tuple[int, TopicPartition], int] = {}
    for place in places:
        broker = place.state.broker_id
        if not place.is_live or isinstance(broker, Absent) or (broker, place.topic_partition) not in wanted:
            continue
        try:
            with open_evidence(place.state.root / place.path / _FIRST_SEGMENT) as file:
                window = next(walk_segment(file, level=Level.HEADERS, end=1), None)
        except EvidenceError:
            continue
        if window is None or not len(window.batches):
            continue
        first = window.batches[0]
        is_wrapper = first["magic"] < 2 and first["attributes"] & CODEC_MASK
        if not first["base_offset"] and not is_wrapper and first["base_timestamp"] > 0:
            found[broker, place.topic_partition] = int(first["base_timestamp"])
    return found
