"""The segments of a partition directory as they follow each other: what is out of order, what is missing, and offsets that were raised."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from kforensics.damage import Absent, Damage, DamageCause, DamageKind, Gravity, Span
from kforensics.evidence.checks.context import PartitionContext, Remark, SoundRange, base_offset_of, mismatch
from kforensics.evidence.checks.segment_scan import EpochRun, SegmentScan, StampedBatch
from kforensics.evidence.model import CheckpointValue
from kforensics.evidence.replica.unaccounted import (
    EPOCHS_FILE,
    Sign,
    Unaccounted,
    find_unaccounted,
    highest,
    lost_metadata,
    lost_metadata_log,
    lost_start,
    orphan_indexes,
    value_of,
)
from kforensics.formats.checkpoint.lines import LeaderEpochCheckpoint
from kforensics.formats.index import SparseIndex
from kforensics.formats.segment.order import flip_between
from kforensics.source.naming import FileKind
from kforensics.source.walk import FoundFile
from kforensics.units import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, EpochEntry, OffsetRange, TopicPartition

LARGEST_RELATIVE_OFFSET = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedSegment:
    """A segment file and what one pass over it found."""

    file: FoundFile
    scan: SegmentScan

    @property
    def base_offset(self) -> int:
        """The offset that names the file."""
        return base_offset_of(self.file)

    @property
    def end_offset(self) -> int:
        """The offset behind the last sound batch; the base offset where there is none."""
        return self.base_offset if self.scan.last_offset is None else max(self.scan.last_offset + 1, self.base_offset)

    @property
    def claimed_end_offset(self) -> int:
        """The offset behind the last batch, damaged ones included as far as their offsets are known."""
        last = self.scan.claimed_last_offset
        return self.base_offset if last is None else max(last + 1, self.base_offset)


def check_segments(context: PartitionContext, segments: Sequence[ScannedSegment]) -> list[tuple[Damage, ...]]:
    """Return the damage of each segment in the order of their base offsets, its gravity settled."""
    results = []
    for at, segment in enumerate(segments):
        damage = [grade_tail(context, segment, place, is_last=at == len(segments) - 1) for place in segment.scan.damage]
        damage += _name_damage(segment)
        if at and (overlap := _overlap(segments[at - 1], segment)):
            damage.append(overlap)
        results.append(tuple(damage))
    return results


def grade_tail(context: PartitionContext, segment: ScannedSegment, place: Damage, *, is_last: bool) -> Damage:
    """Return the same damage, distinguished from the unfinished end of the log of a killed or running broker."""
    scan = segment.scan
    if place.gravity is Gravity.UNREAD:
        return place
    if place.kind is DamageKind.ORDER and scan.magics <= {0, 1}:
        # Up to 0.10 a follower checks only the last offset of a wrapper: logs of these formats may hold offsets twice.
        return replace(place, gravity=Gravity.STALE)
    if place.kind in {DamageKind.ORDER, DamageKind.EPOCH}:
        return replace(place, gravity=Gravity.DAMAGE)
    is_tail = place.span.position >= scan.valid_end and place.gravity is not Gravity.DAMAGE
    if is_tail and is_last and context.may_recover(segment.end_offset):
        return replace(place, gravity=Gravity.TORN_TAIL)
    return replace(place, gravity=Gravity.DAMAGE)


def sound_range(segment: ScannedSegment) -> SoundRange | None:
    """Return the offsets that the segment holds intact, none where it holds no sound batch."""
    scan = segment.scan
    if scan.first_offset is None or scan.last_offset is None:
        return None
    lost = tuple(
        (place.offsets_lost.first, place.offsets_lost.last)
        for place in scan.damage
        if not isinstance(place.offsets_lost, Absent)
    )
    epochs = tuple((run.leader_epoch, run.first_offset) for run in scan.epoch_runs)
    return SoundRange(first_offset=scan.first_offset, last_offset=scan.last_offset, lost=lost, epochs=epochs)


def _name_damage(segment: ScannedSegment) -> list[Damage]:
    scan, base = segment.scan, segment.base_offset
    found = []
    if scan.first_offset is not None and scan.first_offset < base:
        found.append(
            mismatch(
                scan.first_span,
                kind=DamageKind.NAME,
                expected=f"offsets from {base}, as the file's name says",
                found=f"offset {scan.first_offset}",
                gravity=Gravity.DAMAGE,
            )
        )
    if scan.last_offset is not None and scan.last_offset - base > LARGEST_RELATIVE_OFFSET:
        # Brokers before 2.0 could write such segments; later ones split them when they load (KAFKA-6264).
        found.append(
            mismatch(
                Span(0, scan.size),
                kind=DamageKind.NAME,
                expected=f"offsets up to {base + LARGEST_RELATIVE_OFFSET}, which relative offsets can express",
                found=f"offset {scan.last_offset}",
                gravity=Gravity.STALE,
            )
        )
    return found


def _overlap(before: ScannedSegment, segment: ScannedSegment) -> Damage | None:
    last = before.scan.last_offset
    if last is None or last < segment.base_offset:
        return None
    return mismatch(
        segment.scan.first_span,
        kind=DamageKind.ORDER,
        expected=f"a segment that begins above offset {last}, where {before.file.path.rpartition('/')[2]} ends",
        found=f"base offset {segment.base_offset}",
        gravity=Gravity.DAMAGE,
    )


_EXPECTED = {
    Sign.INDEX: "the segment that this index is of",
    Sign.CHECKPOINT: "a segment of the partition",
    Sign.HOLE: "a segment before this one that ends where it begins",
    Sign.REGISTRATION: "the registration of the broker, whose offset is the broker epoch in .kafka_cleanshutdown",
    Sign.NO_SEGMENT: "a segment of the metadata log",
    Sign.EPOCHS: "a segment that begins where the first line does, or below",
}


EpochsFile = tuple[str, LeaderEpochCheckpoint]
"""Path and content of a `leader-epoch-checkpoint`."""


def check_missing(
    context: PartitionContext,
    segments: Sequence[ScannedSegment],
    epochs: EpochsFile | None = None,
) -> tuple[tuple[str, Damage], ...]:
    """Return path and damage of each file that speaks of a segment that is not there.

    A number above the log end is left to the check of the checkpoints.
    """
    if not context.is_live or context.are_logs_left_out:
        return ()
    is_sound = not any(segment.scan.damage or segment.scan.changed for segment in segments)
    # Up to 0.10 and where the cleaner was, segments need not follow one another.
    is_whole = (
        is_sound
        and not context.is_replacing
        and context.cleaner_point is Absent.NOT_WRITTEN
        and not any(segment.scan.has_empty_batch for segment in segments)
    )
    found = find_unaccounted(
        [(segment.base_offset, segment.claimed_end_offset, segment.file.path) for segment in segments],
        orphan_indexes([(file.name, file.path) for file in context.files])
        | (_lost_start(context, epochs) if _is_start_settled(context) else {}),
        log_start=value_of(context.log_start),
        reach=highest(context.high_watermark, context.recovery_point),
        explained={base_offset_of(file) for file in context.of_kind(FileKind.PRODUCER_SNAPSHOT)},
        is_whole=is_whole,
        longest_batch=longest_batch(segments),
    )
    every = (*found, *_lost_end(context, segments))
    return tuple(_damage(context, one, epochs) for one in every if one.sign is not Sign.ABOVE_END)


def doubt_of_holes(context: PartitionContext, segments: Sequence[ScannedSegment]) -> Iterator[Remark]:
    """Yield the offsets between segments that no segment holds, where no checkpoint here says whether a cleaner has been there; it would have left gaps elsewhere, too."""
    if not context.is_live or context.are_logs_left_out or context.is_metadata or context.is_replacing:
        return
    is_known = context.cleaner_point is Absent.NOT_WRITTEN or isinstance(context.cleaner_point, CheckpointValue)
    partition = context.topic_partition
    is_compacted = isinstance(partition, TopicPartition) and partition.topic in {OFFSETS_TOPIC, TRANSACTIONS_TOPIC}
    scans = [segment.scan for segment in segments]
    is_thinned = any(one.has_empty_batch or one.sequences.is_thinned or one.damage or one.changed for one in scans)
    for before, behind in () if is_known or is_compacted or is_thinned else pairwise(segments):
        end = before.claimed_end_offset
        if behind.base_offset > end:
            lost = Unaccounted(first=end, last=behind.base_offset - 1, sign=Sign.HOLE, path=behind.file.path)
            yield Remark(
                path=behind.file.path,
                statement=f"{lost.words} of {_name(context)} may be missing: no segment holds {'it' if lost.are == 'is' else 'them'}, and no cleaner-offset-checkpoint here shows that a cleaner has been there",
                file_kind=FileKind.SEGMENT,
                offsets=OffsetRange(end, behind.base_offset - 1),
            )


def doubt_of_start(
    context: PartitionContext,
    segments: Sequence[ScannedSegment],
    epochs: EpochsFile | None = None,
) -> Remark | None:
    """Return that segments at the beginning of the log may have been taken away, where a broker that was killed or copied just then, or remote storage, may explain it too."""
    start = context.log_start
    stated = value_of(start)
    # A log in remote storage has a line whatever its log start; others have none for 0.
    may_be_remote = stated == 0 or (context.has_remote_logs and start is not Absent.NOT_WRITTEN)
    if not segments or not context.is_live or context.are_logs_left_out or may_be_remote or _is_start_settled(context):
        return None
    first = segments[0].base_offset
    if stated is not None and stated >= first:
        return None  # what is below was deleted on request, or by retention
    for begun, path in _lost_start(context, epochs).items():
        why = f"its {EPOCHS_FILE} begins at offset {begun}, its first segment at {first}"
        return _of_start(context, max(begun, stated or 0), first, path, why)
    if (
        isinstance(start, CheckpointValue)
        and context.clean_shutdown is True
        and (epochs is None or not epochs[1].lines)
    ):
        stated_in = start.citation.path
        if lost_start([EpochEntry(0, start.value)], [file.name for file in context.files], stated_in):
            why = f"line {start.citation.line} of {stated_in} has it begin at offset {start.value}, its first segment begins at {first}"
            return _of_start(context, start.value, first, stated_in, why)
    return None


def _of_start(context: PartitionContext, begun: int, first: int, path: str, why: str) -> Remark:
    lost = Unaccounted(first=begun, last=first - 1, sign=Sign.EPOCHS, path=path)
    return Remark(
        path=path,
        statement=f"{lost.words} of {_name(context)} may be missing: {why}",
        file_kind=FileKind.LEADER_EPOCH_CHECKPOINT,
        offsets=OffsetRange(begun, first - 1),
    )


def _name(context: PartitionContext) -> str:
    """Return the directory, or its partition where the directory itself is the input."""
    return context.path or str(context.topic_partition)


def _is_start_settled(context: PartitionContext) -> bool:
    """Whether a clean stop left no line of `log-start-offset-checkpoint` for the log: it began with its first segment then, and nothing of it is in remote storage."""
    return context.clean_shutdown is True and context.log_start is Absent.NOT_WRITTEN


def _lost_start(context: PartitionContext, epochs: EpochsFile | None) -> dict[int, str]:
    if epochs is None or context.is_metadata:
        return {}
    path, checkpoint = epochs
    return lost_start(checkpoint.entries, [file.name for file in context.files], path)


def _lost_end(context: PartitionContext, segments: Sequence[ScannedSegment]) -> Iterator[Unaccounted]:
    """Yield the end of a metadata log that is missing, by the registration of its broker; a snapshot holds what is before it."""
    if not context.is_metadata:
        return
    if not segments:
        none = lost_metadata_log((file.name, file.length, file.path) for file in context.files)
        if none is not None:
            yield none
        return
    ends = [segment.claimed_end_offset for segment in segments]
    lost = lost_metadata(
        max(*ends, *map(base_offset_of, context.of_kind(FileKind.METADATA_SNAPSHOT)), 0), (context.broker_epoch,)
    )
    if lost is not None:
        yield lost._replace(path=segments[-1].file.path)


def longest_batch(segments: Sequence[ScannedSegment]) -> int | None:
    """Return how many offsets the longest batch takes, 0 where there is none, and none where the scans do not show it."""
    longest = [segment.scan.longest_batch for segment in segments]
    return None if None in longest else max((one for one in longest if one is not None), default=0)


def _damage(context: PartitionContext, one: Unaccounted, epochs: EpochsFile | None) -> tuple[str, Damage]:
    path, span, what = one.path, Span(0, 0), "none"
    if one.sign is Sign.EPOCHS and epochs is not None:
        line = epochs[1].lines[0]
        span = line.span
        what = f"none, and line {line.line}: leader epoch {line.leader_epoch} from offset {line.start_offset}"
    if one.sign is Sign.CHECKPOINT:
        named = (("high watermark", context.high_watermark), ("recovery point", context.recovery_point))
        words, value = max(
            ((words, value) for words, value in named if isinstance(value, CheckpointValue)),
            key=lambda item: item[1].value,
        )
        path, what = value.citation.path, f"none, and line {value.citation.line}: {words} {value.value}"
        span = value.citation.span if isinstance(value.citation.span, Span) else span
    return path, Damage(
        span=span,
        kind=DamageKind.MISSING,
        expected=_EXPECTED[one.sign],
        found=f"{what}; {one.words} of {_name(context)} {one.are} unaccounted for",
        gravity=Gravity.DAMAGE,
        offsets_lost=Absent.UNKNOWN if isinstance(one.last, Absent) else OffsetRange(one.first, one.last),
    )


ENOUGH_WITNESSES = 2


def settle_raised_offset(
    context: PartitionContext,
    segment: ScannedSegment,
    after: ScannedSegment | None,
    indexes: tuple[SparseIndex | None, SparseIndex | None],
) -> ScannedSegment:
    """Return the segment unchanged, or with the damage of its last batch and the end that the witnesses show."""
    scan = segment.scan
    if not scan.tail:
        return segment
    *before, batch = scan.tail
    previous = before[-1].last_offset if before else segment.base_offset - 1
    extent = batch.last_offset - batch.first_offset
    right_offset = previous + 1
    if batch.first_offset <= right_offset or extent < 0 or batch.last_offset != scan.last_offset:
        return segment
    contradicting = list(_contradicting(segment.base_offset, batch, right_offset, after, indexes))
    confirming = list(_confirming(context, right_offset + extent + 1))
    if len(contradicting) + len(confirming) < ENOUGH_WITNESSES or (not contradicting and _is_compacted(context, scan)):
        return segment
    damage = mismatch(
        Span(batch.position, batch.length),
        kind=DamageKind.ORDER,
        expected=f"base offset {right_offset}, as {', '.join([*contradicting, *confirming])} have it",
        found=f"{batch.first_offset} to {batch.last_offset}",
        gravity=Gravity.DAMAGE,
    )
    return replace(
        segment, scan=_corrected(scan, batch, right_offset, replace(damage, cause=_cause(batch, right_offset)))
    )


def _contradicting(
    segment_base: int,
    batch: StampedBatch,
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


def _within(offsets: "np.ndarray[tuple[int], np.dtype[np.int64]]", batch: StampedBatch, right_offset: int) -> bool:
    """Return whether one of the offsets lies in the batch where it follows its predecessor."""
    return bool(((offsets >= right_offset) & (offsets <= right_offset + batch.last_offset - batch.first_offset)).any())


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


def _cause(batch: StampedBatch, right_offset: int) -> DamageCause | Absent:
    flip = flip_between(batch.position, 8, batch.first_offset, right_offset)
    if flip is None:
        return Absent.UNKNOWN
    detail = f"one flipped bit in the base offset: {right_offset} became {batch.first_offset}"
    return DamageCause(kind="bit-flip", detail=detail, flip=flip)


def _corrected(scan: SegmentScan, batch: StampedBatch, right_offset: int, damage: Damage) -> SegmentScan:
    """Return the scan with the batch where it belongs, so that its neighbours are not blamed."""
    last = right_offset + batch.last_offset - batch.first_offset
    return replace(
        scan,
        first_offset=right_offset if scan.first_offset == batch.first_offset else scan.first_offset,
        last_offset=last,
        damage=(*scan.damage, damage),
        epoch_runs=_corrected_runs(scan.epoch_runs, batch, right_offset, last),
        tail=(*scan.tail[:-1], batch._replace(first_offset=right_offset, last_offset=last)),
    )


def _corrected_runs(
    runs: Sequence[EpochRun], batch: StampedBatch, right_offset: int, last: int
) -> tuple[EpochRun, ...]:
    return tuple(
        replace(
            run,
            first_offset=right_offset if run.first_offset == batch.first_offset else run.first_offset,
            last_offset=last if run.last_offset == batch.last_offset else run.last_offset,
        )
        for run in runs
    )
