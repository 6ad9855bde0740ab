"""How far two logs agree: the offsets that both hold, the batches that are the same, and the runs whose digests do not prove it."""

from collections.abc import Iterator

import numpy as np

from kforensics.evidence.model import BUCKET_OFFSETS, BatchReader
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.units import OffsetRange

_CHUNK_BUCKETS = 16

_SAME_BATCH = ("base_offset", "last_offset", "crc", "length", "magic")
"""The parts of two batches that are equal where they hold the same records: the checksum covers all but base offset, length and leader epoch."""


def common_range(one: LoadedLog, other: LoadedLog) -> OffsetRange | None:
    """Return the offsets that both logs hold on local disk, or None if the ranges do not overlap."""
    first = max(one.content_start_offset, other.content_start_offset)
    last = min(one.log_end_offset, other.log_end_offset) - 1
    return OffsetRange(first, last) if first <= last else None


def same_batches_until(one: LoadedLog, other: LoadedLog, start: int, reader: BatchReader) -> int:
    """Return the offset up to which two logs go on with the same batches from an offset on, leader epochs aside."""
    last = min(one.log_end_offset, other.log_end_offset) - 1
    if start > last:
        return start
    until = start
    for mine, its in zip(
        reader.batches(one.replica, start, last), reader.batches(other.replica, start, last), strict=False
    ):
        if mine["base_offset"] != until or any(mine[name] != its[name] for name in _SAME_BATCH):
            break
        until = int(mine["last_offset"]) + 1
    return until


def same_batches_from(one: LoadedLog, other: LoadedLog, start: int, reader: BatchReader) -> int:
    """Return the offset from which on two logs hold the same batches up to the end of the shorter one, leader epochs aside.

    Returns:
        The offset; the end of the shorter log where their last batches below it differ.
    """
    end = min(one.log_end_offset, other.log_end_offset)
    if start >= end:
        return end
    mine, its = (reader.batches(view.replica, start, end - 1)[::-1] for view in (one, other))
    since = end
    for left, right in zip(mine, its, strict=False):
        if left["last_offset"] != since - 1 or any(left[name] != right[name] for name in _SAME_BATCH):
            break
        since = int(left["base_offset"])
    return max(since, start)


def suspect_ranges(one: LoadedLog, other: LoadedLog, common: OffsetRange) -> Iterator[OffsetRange]:
    """Yield runs of offsets, of bounded size, whose digests do not prove them equal."""
    left, right = one.digests, other.digests
    # numpy's own union loads its masked arrays, which takes 10 ms.
    buckets = {*left["bucket"].tolist(), *right["bucket"].tolist()}
    first, last = common.first // BUCKET_OFFSETS, common.last // BUCKET_OFFSETS
    run: list[int] = []
    for bucket in sorted(one for one in buckets if first <= one <= last):
        if _same_digest(left, right, bucket):
            continue
        if run and (bucket != run[-1] + 1 or len(run) >= _CHUNK_BUCKETS):
            yield _clip(run, common)
            run = []
        run.append(bucket)
    if run:
        yield _clip(run, common)


def _same_digest(left: np.ndarray, right: np.ndarray, bucket: int) -> bool:
    here, there = np.searchsorted(left["bucket"], bucket), np.searchsorted(right["bucket"], bucket)
    if here >= len(left) or there >= len(right):
        return False
    mine, its = left[here], right[there]
    return all(mine[name] == its[name] for name in ("bucket", "low", "high", "batches"))


def _clip(buckets: list[int], common: OffsetRange) -> OffsetRange:
    return OffsetRange(
        max(common.first, buckets[0] * BUCKET_OFFSETS), min(common.last, (buckets[-1] + 1) * BUCKET_OFFSETS - 1)
    )
