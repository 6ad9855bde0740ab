"""The numbers that a log directory's checkpoints give a partition, against its log.

A recovery point or high watermark above the log end means that records were lost (a lost page cache, a
deleted file), or that a truncation ended inside a batch: the broker then kept its target as log end, and wrote a producer snapshot there. A broker lowers
both when it loads the log.
"""

from collections.abc import Sequence

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.evidence.checks.context import PartitionContext, base_offset_of, mismatch
from kforensics.evidence.checks.missing import longest_batch
from kforensics.evidence.checks.segments import ScannedSegment
from kforensics.evidence.model import CheckpointValue
from kforensics.source.naming import FileKind
from kforensics.units import OffsetRange


def check_checkpoints(context: PartitionContext, segments: Sequence[ScannedSegment]) -> tuple[tuple[str, Damage], ...]:
    """Return path and damage of each checkpoint line that the log contradicts.

    Args:
        context: the partition directory; only a live one has lines of its own.
        segments: all of its segments, scanned; without any there is nothing to contradict.
    """
    if not segments:
        return ()
    end = max(segment.claimed_end_offset for segment in segments)
    # A directory that is moved, stray or deleted shares its name in the checkpoints with the live one.
    if isinstance(context.directory, Absent) or context.directory.state != "live":
        return ()
    explained = {base_offset_of(file) for file in context.of_kind(FileKind.PRODUCER_SNAPSHOT)}
    longest = longest_batch(segments)
    found = []
    named = (("recovery point", context.recovery_point), ("high watermark", context.high_watermark))
    highest = max((value.value for _, value in named if isinstance(value, CheckpointValue)), default=0)
    for words, value in named:
        if isinstance(value, CheckpointValue) and value.value > end:
            if value.value in explained and (longest is None or value.value - end <= longest):
                continue
            is_missing = context.clean_shutdown is True and value.value == highest
            found.append(_missing(words, value, end) if is_missing else _above_end(words, value, end, context))
            highest = -1 if is_missing else highest
    start = context.log_start
    if isinstance(start, CheckpointValue) and start.value > end:
        # A broker that loads such a log deletes every segment and begins an empty one at the log start.
        found.append(_line(start, f"a log start of at most {end}, the log end", "log start", Gravity.DAMAGE))
    return tuple(found)


def _above_end(words: str, value: CheckpointValue, end: int, context: PartitionContext) -> tuple[str, Damage]:
    gravity = Gravity.STALE if context.clean_shutdown is not True else Gravity.DAMAGE
    return _line(value, f"a {words} of at most {end}, the log end", words, gravity)


def _missing(words: str, value: CheckpointValue, end: int) -> tuple[str, Damage]:
    return value.citation.path, Damage(
        span=value.citation.span if isinstance(value.citation.span, Span) else Span(0, 0),
        kind=DamageKind.MISSING,
        expected=f"a log that reaches to its {words}",
        found=f"line {value.citation.line}: {words} {value.value}, and a log that ends at {end}",
        gravity=Gravity.DAMAGE,
        offsets_lost=OffsetRange(end, value.value - 1),
    )


def _line(value: CheckpointValue, expected: str, words: str, gravity: Gravity) -> tuple[str, Damage]:
    span = value.citation.span if isinstance(value.citation.span, Span) else Span(0, 0)
    damage = mismatch(
        span, expected=expected, found=f"line {value.citation.line}: {words} {value.value}", gravity=gravity
    )
    return value.citation.path, damage
