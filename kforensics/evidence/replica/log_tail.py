"""The end of a log, read from the end of its last segment; an index shortens the way if it leads to a sound batch."""

from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.captured.reading import captured_tail
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.formats.index.offset import INDEX_ENTRY_LENGTH
from kforensics.formats.log.record_batch import LOG_OVERHEAD
from kforensics.formats.segment.entries import SHORTEST_ENTRY
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.capture import CapturedSegment
from kforensics.source.mapped import EvidenceFile

NEWEST_MAGIC = 2

NO_EPOCH = -1
"""The value in batch tables of a batch without a leader epoch."""


class LogTail(NamedTuple):
    """The end of a log: the offset that comes next, and the leader epoch and time of the last sound batch."""

    log_end_offset: int
    leader_epoch: int | Absent
    max_timestamp_ms: int | Absent


def read_log_tail(one: FoundInput, segments: list[tuple[int, str]], indexes: dict[int, str]) -> LogTail | Absent:
    """The end of the log in these segments, given as base offset and path; absent where there is no segment.

    Raises:
        EvidenceError: a segment that had to be read can't be.
    """
    if not segments:
        return Absent.NOT_APPLICABLE
    last_base = max(base for base, _ in segments)
    for base_offset, path in sorted(segments, reverse=True):
        with one.open(path) as segment:
            if isinstance(segment, CapturedSegment):
                tail = _captured_tail(segment)
                if tail is not None:
                    return tail._replace(log_end_offset=max(tail.log_end_offset, last_base))
                continue
            start = _indexed_start(one, indexes.get(base_offset), segment, base_offset) if segment.size else 0
            tail = _tail_from(segment, start) or (_tail_from(segment, 0) if start else None)
        if tail is not None:
            # An empty segment behind it was rolled at its base offset, which is then the end.
            return tail._replace(log_end_offset=max(tail.log_end_offset, last_base))
    return LogTail(last_base, Absent.NOT_APPLICABLE, Absent.NOT_APPLICABLE)


def _captured_tail(segment: CapturedSegment) -> LogTail | None:
    """What the last window of the walk gave when the segment was captured."""
    tail = captured_tail(segment)
    if tail is None:
        return None
    end, epoch, timestamp = tail
    return LogTail(
        end,
        Absent.NOT_APPLICABLE if epoch == NO_EPOCH else epoch,
        Absent.NOT_WRITTEN if timestamp == NO_EPOCH else timestamp,
    )


def _tail_from(segment: EvidenceFile, start: int) -> LogTail | None:
    tail = None
    if not segment.size:
        return None
    for window in walk_segment(segment, level=Level.CRC, start=start):
        sound = window.batches[window.batches["crc_valid"]]
        if not len(sound):
            continue
        last = sound[-1]
        epoch, timestamp = int(last["partition_leader_epoch"]), int(last["max_timestamp"])
        tail = LogTail(
            int(sound["last_offset"].max()) + 1,
            Absent.NOT_APPLICABLE if epoch == NO_EPOCH else epoch,
            Absent.NOT_WRITTEN if timestamp == NO_EPOCH else timestamp,
        )
    return tail


def _indexed_start(one: FoundInput, index_path: str | None, segment: EvidenceFile, base_offset: int) -> int:
    """The position that the last entry of an offset index names; 0 if there is none, or if no batch seems to be there."""
    if index_path is None:
        return 0
    try:
        with one.open(index_path) as index:
            position = _last_position(index)
    except EvidenceError:
        return 0
    head = segment.read(position, SHORTEST_ENTRY)
    if not 0 < position < segment.size or len(head) < SHORTEST_ENTRY:
        return 0
    offset, length, magic = int.from_bytes(head[:8], signed=True), int.from_bytes(head[8:12], signed=True), head[16]
    fits = 0 < length <= segment.size - position - LOG_OVERHEAD
    return position if offset >= base_offset and fits and magic <= NEWEST_MAGIC else 0


def _last_position(index: EvidenceFile) -> int:
    # Positions rise to the last entry and are zero in the preallocated rest: the border is found by halving.
    low, high = 0, index.size // INDEX_ENTRY_LENGTH
    while low < high:
        middle = (low + high) // 2
        if _position(index, middle) > 0:
            low = middle + 1
        else:
            high = middle
    return _position(index, low - 1) if low else 0


def _position(index: EvidenceFile, entry: int) -> int:
    return int.from_bytes(index.read(entry * INDEX_ENTRY_LENGTH + 4, 4), signed=True)
