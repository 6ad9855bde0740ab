"""Segments of one log against their names, their order, and what a crash leaves behind."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.evidence.checks.context import PartitionContext, SoundRange, base_offset_of, mismatch
from kforensics.evidence.checks.segment_scan import SegmentScan
from kforensics.source.walk import FoundFile

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
    """Return the damage of each segment in the order of their base offsets, its gravity settled.

    Args:
        segments: all of its segments, scanned, by base offset.
    """
    results = []
    for at, segment in enumerate(segments):
        damage = [grade_tail(context, segment, place, is_last=at == len(segments) - 1) for place in segment.scan.damage]
        damage += _name_damage(segment)
        if at and (overlap := _overlap(segments[at - 1], segment)):
            damage.append(overlap)
        results.append(tuple(damage))
    return results


def grade_tail(context: PartitionContext, segment: ScannedSegment, place: Damage, *, is_last: bool) -> Damage:
    """Return the same damage, distinguished from the unfinished end of the log of a killed or running broker.

    Args:
        context: the partition directory; a clean shutdown leaves no unfinished end.
    """
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
