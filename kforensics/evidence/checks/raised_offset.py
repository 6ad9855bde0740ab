"""Find a last batch whose base offset was raised: the segment does not contradict it, but other files that show the log end offset do.

The base offset lies outside the checksum. Between two batches the neighbours show a wrong one; the last has one neighbour only, and a gap before it is
what compaction leaves, too. Witnesses are the entries of both indexes, the names of the producer snapshots and of the next segment, the recovery point
and the high watermark.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kforensics.damage import Absent, Damage, DamageCause, DamageKind, Gravity, Span
from kforensics.evidence.checks.context import PartitionContext, base_offset_of, mismatch
from kforensics.evidence.checks.segment_scan import EpochRun, SegmentScan, TailBatch
from kforensics.evidence.checks.segments import ScannedSegment
from kforensics.evidence.model import CheckpointValue
from kforensics.formats.index.offset import SparseIndex
from kforensics.formats.segment.order import flip_between
from kforensics.source.naming import FileKind

ENOUGH_WITNESSES = 2


def settle_raised_offset(
    context: PartitionContext,
    segment: ScannedSegment,
    after: ScannedSegment | None,
    indexes: tuple[SparseIndex | None, SparseIndex | None],
) -> ScannedSegment:
    """Return the segment unchanged, or with the damage of its last batch and the end that the witnesses show.

    Args:
        after: the segment behind it, if there is one.
        indexes: of the segment, as far as they could be read.
    """
    scan = segment.scan
    if not scan.tail:
        return segment
    *before, batch = scan.tail
    previous = before[-1].last_offset if before else segment.base_offset - 1
    extent = batch.last_offset - batch.base_offset
    right_offset = previous + 1
    if batch.base_offset <= right_offset or extent < 0 or batch.last_offset != scan.last_offset:
        return segment
    contradicting = list(_contradicting(segment.base_offset, batch, right_offset, after, indexes))
    confirming = list(_confirming(context, right_offset + extent + 1))
    if len(contradicting) + len(confirming) < ENOUGH_WITNESSES or (not contradicting and _is_compacted(context, scan)):
        return segment
    damage = mismatch(
        Span(batch.position, batch.length),
        kind=DamageKind.ORDER,
        expected=f"base offset {right_offset}, as {', '.join([*contradicting, *confirming])} have it",
        found=f"{batch.base_offset} to {batch.last_offset}",
        gravity=Gravity.DAMAGE,
    )
    return replace(
        segment, scan=_corrected(scan, batch, right_offset, replace(damage, cause=_cause(batch, right_offset)))
    )


def _contradicting(
    segment_base: int,
    batch: TailBatch,
    right_offset: int,
    after: ScannedSegment | None,
    indexes: tuple[SparseIndex | None, SparseIndex | None],
) -> Iterator[str]:
    """Yield the evidence that contradicts the claimed offset of the batch and fits the offset behind its predecessor."""
    offset_index, time_index = indexes
    if offset_index is not None:
        here = offset_index.entries["position"] == batch.position
        if _within(offset_index.entries["relative_offset"][here].astype(np.int64) + segment_base, batch, right_offset):
            yield "the offset index"
    if time_index is not None:
        offsets = time_index.entries["relative_offset"].astype(np.int64) + segment_base
        if _within(offsets, batch, right_offset):
            yield "the time index"
    if after is not None and right_offset < after.base_offset <= batch.last_offset:
        yield "the next segment"


def _within(offsets: "np.ndarray[tuple[int], np.dtype[np.int64]]", batch: TailBatch, right_offset: int) -> bool:
    """Return whether one of the offsets lies in the batch where it follows its predecessor."""
    return bool(((offsets >= right_offset) & (offsets <= right_offset + batch.last_offset - batch.base_offset)).any())


def _is_compacted(context: PartitionContext, scan: SegmentScan) -> bool:
    """Return whether a gap before the batch may be what compaction left."""
    point = context.cleaner_point
    return scan.has_empty_batch or (isinstance(point, CheckpointValue) and point.value > 0)


def _confirming(context: PartitionContext, end: int) -> Iterator[str]:
    """Yield the sources that name the very offset at which the log ends then."""
    if any(base_offset_of(file) == end for file in context.of_kind(FileKind.PRODUCER_SNAPSHOT)):
        yield "a producer snapshot"
    for words, value in (
        ("the recovery point", context.recovery_point),
        ("the high watermark", context.high_watermark),
    ):
        if isinstance(value, CheckpointValue) and value.value == end:
            yield words


def _cause(batch: TailBatch, right_offset: int) -> DamageCause | Absent:
    flip = flip_between(batch.position, 8, batch.base_offset, right_offset)
    if flip is None:
        return Absent.UNKNOWN
    detail = f"one flipped bit in the base offset: {right_offset} became {batch.base_offset}"
    return DamageCause(kind="bit-flip", detail=detail, flip=flip)


def _corrected(scan: SegmentScan, batch: TailBatch, right_offset: int, damage: Damage) -> SegmentScan:
    """Return the scan with the batch where it belongs, so that its neighbours are not blamed."""
    last = right_offset + batch.last_offset - batch.base_offset
    return replace(
        scan,
        first_offset=right_offset if scan.first_offset == batch.base_offset else scan.first_offset,
        last_offset=last,
        damage=(*scan.damage, damage),
        epoch_runs=_corrected_runs(scan.epoch_runs, batch, right_offset, last),
        tail=(*scan.tail[:-1], batch._replace(base_offset=right_offset, last_offset=last)),
    )


def _corrected_runs(runs: Sequence[EpochRun], batch: TailBatch, right_offset: int, last: int) -> tuple[EpochRun, ...]:
    return tuple(
        replace(
            run,
            first_offset=right_offset if run.first_offset == batch.base_offset else run.first_offset,
            last_offset=last if run.last_offset == batch.last_offset else run.last_offset,
        )
        for run in runs
    )
