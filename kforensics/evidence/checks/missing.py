"""Missing segments: an index, a checkpoint or a hole in the log shows that they were there."""

from collections.abc import Iterator, Sequence

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.evidence.checks.context import PartitionContext, base_offset_of
from kforensics.evidence.checks.segments import ScannedSegment
from kforensics.evidence.model import CheckpointValue
from kforensics.evidence.replica.unaccounted import (
    Sign,
    Unaccounted,
    find_unaccounted,
    highest,
    lost_metadata,
    lost_metadata_log,
    orphan_indexes,
    value_of,
)
from kforensics.source.naming import FileKind
from kforensics.units import OffsetRange

_EXPECTED = {
    Sign.INDEX: "the segment that this index is of",
    Sign.CHECKPOINT: "a segment of the partition",
    Sign.HOLE: "a segment before this one that ends where it begins",
    Sign.REGISTRATION: "the registration of the broker, whose offset is the broker epoch in .kafka_cleanshutdown",
    Sign.NO_SEGMENT: "a segment of the metadata log",
}


def check_missing(context: PartitionContext, segments: Sequence[ScannedSegment]) -> tuple[tuple[str, Damage], ...]:
    """Return path and damage of each file that speaks of a segment that is not there.

    A number above the log end is left to the check of the checkpoints.

    Args:
        context: the partition directory; only a live one whose segments were not left out on purpose is checked.
        segments: all of its segments, scanned, by base offset.
    """
    if isinstance(context.directory, Absent) or context.directory.state != "live" or context.are_logs_left_out:
        return ()
    is_sound = not any(segment.scan.damage or segment.scan.changed for segment in segments)
    # Up to 0.10 and where the cleaner was, segments need not follow one another.
    is_whole = (
        is_sound
        and context.cleaner_point is Absent.NOT_WRITTEN
        and not any(segment.scan.has_empty_batch for segment in segments)
    )
    found = find_unaccounted(
        [(segment.base_offset, segment.claimed_end_offset, segment.file.path) for segment in segments],
        orphan_indexes([(file.name, file.path) for file in context.files]),
        log_start=value_of(context.log_start),
        reach=highest(context.high_watermark, context.recovery_point),
        explained={base_offset_of(file) for file in context.of_kind(FileKind.PRODUCER_SNAPSHOT)},
        is_whole=is_whole,
        longest_batch=longest_batch(segments),
    )
    return tuple(
        _damage(context, one) for one in (*found, *_lost_end(context, segments)) if one.sign is not Sign.ABOVE_END
    )


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
    """Return how many offsets the longest batch takes, 0 where there is none, and none where the scans do not show it.

    Args:
        segments: scanned.
    """
    longest = [segment.scan.longest_batch for segment in segments]
    return None if None in longest else max((one for one in longest if one is not None), default=0)


def _damage(context: PartitionContext, one: Unaccounted) -> tuple[str, Damage]:
    path, span, what = one.path, Span(0, 0), "none"
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
        found=f"{what}; {one.words} of {context.path} {one.are} unaccounted for",
        gravity=Gravity.DAMAGE,
        offsets_lost=Absent.UNKNOWN if isinstance(one.last, Absent) else OffsetRange(one.first, one.last),
    )
