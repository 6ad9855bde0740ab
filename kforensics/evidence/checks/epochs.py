"""`leader-epoch-checkpoint` against the batches: the broker acts on the file, the batches are the fact.

A line (e, o) says that no batch of epoch e begins below o, and that no batch of a lower epoch ends at or above o. A
line without batches is a term without
records; lines that start at or above the log end, and a first line below the log start, are what brokers since 3.8
leave behind when they stop before
the file is written again, and what loading repairs.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.evidence.checks.context import PartitionContext, mismatch
from kforensics.evidence.checks.segment_scan import EpochRun
from kforensics.evidence.checks.segments import ScannedSegment
from kforensics.evidence.model import CheckpointValue
from kforensics.formats.checkpoint.leader_epoch import LeaderEpochCheckpoint, LeaderEpochLine


def check_epochs(
    context: PartitionContext,
    checkpoint: LeaderEpochCheckpoint,
    segments: Sequence[ScannedSegment],
    damaged: AbstractSet[tuple[str, int]] = frozenset(),
) -> tuple[Damage, ...]:
    """Return damage of lines that contradict the batches, and of batches whose epoch the file does not know.

    Args:
        damaged: path and position of batches whose own leader epoch is damaged.
    """
    runs = [
        run
        for segment in segments
        for run in segment.scan.epoch_runs
        if (segment.file.path, run.position) not in damaged
    ]
    end = max((segment.end_offset for segment in segments), default=0)
    gravity = Gravity.STALE if context.may_recover(end) else Gravity.DAMAGE
    lenient = context.clean_shutdown is not True or is_raised(context, checkpoint)
    lines = checkpoint.lines[1:] if lenient else checkpoint.lines
    found = [_line_damage(line, runs, end) for line in lines]
    damage = [place for place in found if place is not None]
    if checkpoint.lines and not checkpoint.damage:
        damage += _unknown_epochs(checkpoint, runs, gravity)
    return tuple(damage)


def is_raised(context: PartitionContext, checkpoint: LeaderEpochCheckpoint) -> bool:
    """Return whether the first line is at or below the log start offset, to which retention or DeleteRecords moved it: batches below it no longer belong to the log.

    Args:
        context: the partition directory, with what `log-start-offset-checkpoint` says of it.
        checkpoint: `leader-epoch-checkpoint` of the directory.
    """
    start = context.log_start
    return (
        bool(checkpoint.lines)
        and isinstance(start, CheckpointValue)
        and checkpoint.lines[0].start_offset <= start.value
    )


def settle_fallen_epochs(
    checkpoint: LeaderEpochCheckpoint, runs: Sequence[EpochRun], damage: Iterable[Damage]
) -> tuple[Damage, ...]:
    """Return the damage with batches of a leader epoch below the one before made stale where the checkpoint knows the epoch from the very same offset.

    One log then holds two histories, as the truncation of 0.11 to 1.1 could leave it (KIP-279); a flipped bit
    leaves no such line.

    Args:
        checkpoint: `leader-epoch-checkpoint` of the directory.
        runs: batches of one epoch that follow each other, over the whole log.
        damage: of one segment; other places stay as they are.
    """
    known = {(line.leader_epoch, line.start_offset) for line in checkpoint.lines}
    recorded = {run.position for run in runs if (run.leader_epoch, run.first_offset) in known}
    return tuple(
        replace(place, gravity=Gravity.STALE, cause=Absent.UNKNOWN)
        if place.kind is DamageKind.EPOCH and place.span.position in recorded
        else place
        for place in damage
    )


def _line_damage(line: LeaderEpochLine, runs: Sequence[EpochRun], log_end: int) -> Damage | None:
    if line.start_offset >= log_end:
        return None  # a term without records, or stale and dropped at load: both normal
    for run in runs:
        if run.leader_epoch == line.leader_epoch and run.first_offset < line.start_offset:
            expected = f"a start at or below offset {run.first_offset}, where a batch of leader epoch {run.leader_epoch} begins"
            return _contradiction(line, expected, Gravity.DAMAGE)
        if 0 <= run.leader_epoch < line.leader_epoch and run.last_offset >= line.start_offset:
            is_in_log = any(
                one.leader_epoch == line.leader_epoch and one.first_offset == line.start_offset for one in runs
            )
            gravity = Gravity.STALE if is_in_log else Gravity.DAMAGE
            expected = f"a start above offset {run.last_offset}, where a batch of leader epoch {run.leader_epoch} ends"
            return _contradiction(line, expected, gravity)
    return None


def _contradiction(line: LeaderEpochLine, expected: str, gravity: Gravity) -> Damage:
    return mismatch(
        line.span,
        expected=expected,
        found=f"line {line.line}: leader epoch {line.leader_epoch} from offset {line.start_offset}",
        gravity=gravity,
    )


def _unknown_epochs(checkpoint: LeaderEpochCheckpoint, runs: Sequence[EpochRun], gravity: Gravity) -> list[Damage]:
    known = {line.leader_epoch for line in checkpoint.lines}
    first_start = checkpoint.lines[0].start_offset
    missing = sorted(
        {run.leader_epoch for run in runs if run.leader_epoch not in known and run.last_offset >= first_start}
    )
    # Until 2.6.0 recovery left leader epoch 0 out (KAFKA-10432).
    missing = [epoch for epoch in missing if epoch > 0]
    if not missing:
        return []
    last = checkpoint.lines[-1]
    words = ", ".join(map(str, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    return [
        mismatch(
            Span(0, last.span.end),
            kind=DamageKind.EPOCH,
            expected=f"a line for each leader epoch of the batches, {words} among them",
            found=f"{len(checkpoint.lines)} lines without",
            gravity=gravity,
        )
    ]
