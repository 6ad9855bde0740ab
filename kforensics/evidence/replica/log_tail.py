"""The end of a log, read from the end of its last segment; an index shortens the way if it leads to a sound batch."""

from typing import NamedTuple

import numpy as np

from kforensics.damage import Absent, Gravity
from kforensics.evidence.captured.reading import captured_tail
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.replica.positions import indexed_start
from kforensics.formats.log.batch_table import CONTROL_BIT, NO_EPOCH, NO_TIMESTAMP
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.capture import CapturedSegment
from kforensics.source.mapped import EvidenceFile
from kforensics.units import Depth


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
        one: the input that they belong to.
        segments: base offset and path of each.
        indexes: paths of offset indexes by base offset, which shorten the way.
        depth: at depth content every batch of every segment is read, and no index is trusted.

    Raises:
        EvidenceError: a segment that had to be read can't be.
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
        one: the input that the segments belong to.
        segments: base offset and path of each.

    Returns:
        0 where the log ends in an incomplete batch, which no truncation leaves; None where a segment is only in a capture.

    Raises:
        EvidenceError: a segment can't be read.
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
