"""The rules by which a broker loads a log: which segments it scans, where it truncates the log, what it deletes.

Rules of `LogLoader.load` and `LogManager.loadLog` (4.3.1; earlier in `Log.loadSegments` and `Log.recoverLog`); where no version is
named, the same since 0.11. No other module has these rules: `reconcile` applies them to replicas, `simulation` to simulated ones.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.protocol.epochs import (
    CURRENT_RULES,
    EpochRules,
    Epochs,
    assign,
    latest_epoch,
    truncate_from_end,
    truncate_from_start,
)
from kforensics.protocol.truncation import LogState, loaded_high_watermark


class SegmentState(NamedTuple):
    """The facts about one segment that loading uses."""

    base_offset: int
    end_offset: int
    """The offset behind its last batch, sound or not, which a load without recovery uses as the end."""
    recovered_end_offset: int
    """The offset behind the last batch before the first invalid one; the base offset if no batch is valid."""
    is_torn: bool = False
    """Whether bytes behind `recovered_end_offset` do not parse or have a wrong checksum."""
    epochs: Epochs = ()
    """The start offset of each leader epoch in this segment."""


class RecoveryRule(StrEnum):
    """The rule that decided the log end offset."""

    CLEAN = "clean-shutdown"
    """The log dir was closed cleanly: nothing is scanned."""
    SOUND = "recovered-sound"
    """The unflushed segments were scanned and are intact."""
    TRUNCATED = "recovered-cut"
    """A segment was truncated at its first invalid batch, and every later segment was deleted."""
    BELOW_LOG_START = "log-end-below-log-start"
    """The log ends below its checkpointed start: all segments are deleted."""
    EMPTY = "no-segments"


class RecoveryOutcome(NamedTuple):
    """The log as the broker has it once it is loaded."""

    rule: RecoveryRule
    scanned: tuple[int, ...]
    """Base offsets of the segments that recovery reads through."""
    truncate_segment: int | Absent
    """Base offset of the segment that is truncated."""
    deleted: tuple[int, ...]
    """Base offsets of the segments that are deleted, intact or not."""
    kept_count: int
    """The number of segments, from the first on, that are kept; if a segment is truncated, it is the last of them."""
    log: LogState
    recovery_point: int


def first_scanned(base_offsets: Sequence[int], recovery_point: int) -> int:
    """Return the index of the first segment that recovery scans, which holds the recovery point (`LogSegments.values`).

    Args:
        recovery_point: of the checkpoint; 0 of a log without one. Below the first segment, that one is scanned.
    """
    index = 0
    for candidate, base_offset in enumerate(base_offsets):
        if base_offset <= recovery_point:
            index = candidate
    return index


def repair_epochs_at_load(
    epochs: Epochs, log_start_offset: int, log_end_offset: int, rules: EpochRules = CURRENT_RULES
) -> Epochs:
    """Return the epoch cache once the log is loaded, without stale entries at both ends that were not flushed in time.

    Args:
        epochs: as read, with what a scan has added.
        log_start_offset: as checkpointed, 0 where it is not: the first segment's base offset does not count (`LogLoader.load`, 4.1.0).
    """
    return truncate_from_start(truncate_from_end(epochs, log_end_offset), log_start_offset, rules)


def epochs_after_scan(
    epochs: Epochs,
    found: Epochs,
    *,
    skips_epoch_zero: bool = False,
    rules: EpochRules = CURRENT_RULES,
) -> Epochs:
    """Return the cache after a scan: a batch adds its epoch if it is above the latest one (`LogSegment.recover`).

    Args:
        found: the epochs of the scanned batches with their base offsets, in the order of the log.
        skips_epoch_zero: KAFKA-10432: until 2.6.0 the first epoch of all was not restored.
        rules: what the version does with an entry that contradicts others.
    """
    for entry in found:
        latest = latest_epoch(epochs)
        is_news = entry.leader_epoch > (-1 if isinstance(latest, Absent) else latest)
        if is_news and not (skips_epoch_zero and entry.leader_epoch == 0):
            epochs = assign(epochs, entry.leader_epoch, entry.start_offset, rules)
    return epochs


def log_start_at_load(first_base: int, checkpointed: int | Absent, *, has_remote_storage: bool = False) -> int:
    """Return the start of the loaded log, which is below its first segment only with remote storage (`LogLoader.load`, 3.6).

    Args:
        first_base: the base offset of the first segment.
        checkpointed: the partition's entry of `log-start-offset-checkpoint`; absent where it has none.
        has_remote_storage: whether the topic has `remote.storage.enable`.
    """
    if isinstance(checkpointed, Absent):
        return first_base
    return checkpointed if has_remote_storage else max(checkpointed, first_base)


def recovery_point_at_load(checkpointed: int, log_end_offset: int, *, clean_shutdown: bool) -> int:
    """Return the recovery point of the loaded log: its end after a clean shutdown, else the checkpointed one within the log (2.8 and later).

    Args:
        checkpointed: the partition's entry of `recovery-point-offset-checkpoint`, 0 without one.
        clean_shutdown: whether the log directory holds the marker of a clean shutdown.
    """
    return log_end_offset if clean_shutdown else min(checkpointed, log_end_offset)


def _log_start(segments: Sequence[SegmentState], checkpointed: int | Absent, *, has_remote_storage: bool) -> int:
    if not segments:
        return 0 if isinstance(checkpointed, Absent) else checkpointed
    return log_start_at_load(segments[0].base_offset, checkpointed, has_remote_storage=has_remote_storage)


def recover_log(
    segments: Sequence[SegmentState],
    *,
    clean_shutdown: bool,
    recovery_point: int | Absent,
    log_start_offset: int | Absent,
    high_watermark: int | Absent,
    checkpoint_epochs: Epochs,
    has_remote_storage: bool = False,
    rules: EpochRules = CURRENT_RULES,
) -> RecoveryOutcome:
    """Return the log that a start leaves (`LogLoader.load`, 4.3.1).

    The epoch cache takes in what recovery scans before it is trimmed to the log, and nothing of segments that are not scanned:
    with an empty file and a clean shutdown it stays empty.

    Args:
        clean_shutdown: whether `.kafka_cleanshutdown` is in the log dir. The metadata log of a quorum is opened without it and
            with a recovery point of 0, whatever is there (`KafkaRaftLog.createLog`, 4.3.1).
        recovery_point: of `recovery-point-offset-checkpoint`; missing is 0.
        log_start_offset: of `log-start-offset-checkpoint`; missing is the first segment's base offset.
        checkpoint_epochs: of `leader-epoch-checkpoint`, as read; none where the file is missing or empty.
        has_remote_storage: the topic keeps older segments in remote storage (KIP-405, 3.6): the log starts where the checkpoint
            says, below the first segment on disk too.

    Returns:
        The log once it is loaded. A log that ends below its checkpointed start begins again there, empty (2.2 and later).
    """
    start = _log_start(segments, log_start_offset, has_remote_storage=has_remote_storage)
    point = 0 if isinstance(recovery_point, Absent) else recovery_point
    epochs = checkpoint_epochs
    kept, scanned = list(segments), []
    rule = RecoveryRule.CLEAN if segments else RecoveryRule.EMPTY
    truncate_segment: int | Absent = Absent.NOT_APPLICABLE
    if segments and not clean_shutdown:
        rule = RecoveryRule.SOUND
        for index in range(first_scanned([segment.base_offset for segment in segments], point), len(segments)):
            segment = segments[index]
            scanned.append(segment.base_offset)
            sound = tuple(entry for entry in segment.epochs if entry.start_offset < segment.recovered_end_offset)
            epochs = epochs_after_scan(epochs, sound, rules=rules)
            if segment.is_torn or segment.recovered_end_offset < segment.end_offset:
                rule, truncate_segment = RecoveryRule.TRUNCATED, segment.base_offset
                kept = list(segments[: index + 1])
                break
    end = start
    if kept:
        last = kept[-1]
        was_scanned = bool(scanned) and scanned[-1] == last.base_offset
        end = last.recovered_end_offset if was_scanned else last.end_offset
    if kept and end < start:
        rule, kept, end, epochs = RecoveryRule.BELOW_LOG_START, [], start, ()
    checkpointed_start = 0 if isinstance(log_start_offset, Absent) else log_start_offset
    return RecoveryOutcome(
        rule=rule,
        scanned=tuple(scanned),
        truncate_segment=truncate_segment,
        deleted=tuple(segment.base_offset for segment in segments[len(kept) :]),
        kept_count=len(kept),
        log=LogState(
            epochs=repair_epochs_at_load(epochs, checkpointed_start, end),
            log_start_offset=start,
            log_end_offset=end,
            high_watermark=loaded_high_watermark(high_watermark, start, end),
        ),
        recovery_point=recovery_point_at_load(point, end, clean_shutdown=clean_shutdown),
    )
