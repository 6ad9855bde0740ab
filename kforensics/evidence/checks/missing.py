"""Missing segments: an index, a checkpoint or a hole in the log shows that they were there."""

from collections.abc import Iterator, Sequence

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.evidence.checks.context import PartitionContext, Remark, base_offset_of
from kforensics.evidence.checks.segments import ScannedSegment
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
from kforensics.formats.checkpoint.leader_epoch import LeaderEpochCheckpoint
from kforensics.source.naming import FileKind
from kforensics.units import EpochEntry, OffsetRange

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

    Args:
        context: the partition directory; only a live one whose segments were not left out on purpose is checked.
        segments: all of its segments, scanned, by base offset.
        epochs: its leader epochs, where they can be read.
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


def doubt_of_start(
    context: PartitionContext,
    segments: Sequence[ScannedSegment],
    epochs: EpochsFile | None = None,
) -> Remark | None:
    """Return that segments at the beginning of the log may have been taken away, where a broker that was killed or copied just then, or remote storage, may explain it too.

    Args:
        segments: all of its segments, scanned, by base offset.
        epochs: its leader epochs, where they can be read.
    """
    start = context.log_start
    stated = value_of(start)
    is_live = not isinstance(context.directory, Absent) and context.directory.state == "live"
    # A log in remote storage has a line whatever its log start; others have none for 0.
    may_be_remote = stated == 0 or (context.has_remote_logs and start is not Absent.NOT_WRITTEN)
    if not segments or not is_live or context.are_logs_left_out or may_be_remote or _is_start_settled(context):
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
