"""Truncation of a member of the metadata quorum (KIP-595): its log follows the quorum leader's by rules of its own."""

from dataclasses import replace
from enum import StrEnum

from kforensics.damage import Absent
from kforensics.protocol.epochs import EpochEndOffset, end_offset_for_epoch, latest_epoch
from kforensics.protocol.truncation import (
    LogState,
    ProtocolName,
    StepKind,
    TruncationOutcome,
    TruncationRule,
    TruncationStep,
    restart_log_at,
    truncate_log,
)
from kforensics.units import EpochEntry


class QuorumAnswer(StrEnum):
    """A quorum leader's validation of a fetch (`ReplicatedLog.validateOffsetAndEpoch`)."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


def quorum_end_offset_for_epoch(
    log: LogState, leader_epoch: int, earliest_snapshot: EpochEntry | Absent
) -> EpochEndOffset:
    """Return the end of an epoch in a quorum log; there is always an answer (`KafkaMetadataLog.endOffsetForEpoch`).

    Args:
        log: that is asked.
        leader_epoch: the epoch asked for.
        earliest_snapshot: epoch and end offset of the oldest snapshot; absent where there is none.
    """
    found = end_offset_for_epoch(log.epochs, log.log_end_offset, leader_epoch)
    last_epoch = latest_epoch(log.epochs)
    if isinstance(found, Absent):
        if isinstance(last_epoch, Absent):
            last_epoch = 0 if isinstance(earliest_snapshot, Absent) else earliest_snapshot.leader_epoch
        return EpochEndOffset(last_epoch, log.log_end_offset)
    if not isinstance(earliest_snapshot, Absent) and found == EpochEndOffset(
        leader_epoch, earliest_snapshot.start_offset
    ):
        # Smaller than every epoch of the log: the snapshot's own epoch is the last that is known to end there.
        return EpochEndOffset(earliest_snapshot.leader_epoch, earliest_snapshot.start_offset)
    return found


def quorum_answer(
    leader: LogState,
    fetch_offset: int,
    last_fetched_epoch: int,
    earliest_snapshot: EpochEntry | Absent = Absent.NOT_WRITTEN,
) -> tuple[QuorumAnswer, EpochEndOffset | Absent]:
    """Return a quorum leader's answer to a fetch (KIP-595).

    Args:
        leader: its log.
        fetch_offset: the log end offset of the node that fetches.
        last_fetched_epoch: the epoch of its last record, 0 for none.
        earliest_snapshot: epoch and end offset of the leader's oldest snapshot; absent where there is none.

    Returns:
        The answer, and where the logs diverge the end of the epoch at the leader.
    """
    if leader.log_start_offset == 0 and fetch_offset == 0 and last_fetched_epoch == 0:
        return QuorumAnswer.VALID, Absent.NOT_APPLICABLE
    if not isinstance(earliest_snapshot, Absent) and (
        fetch_offset < leader.log_start_offset
        or last_fetched_epoch < earliest_snapshot.leader_epoch
        or (fetch_offset == leader.log_start_offset and last_fetched_epoch != earliest_snapshot.leader_epoch)
    ):
        return QuorumAnswer.SNAPSHOT, Absent.NOT_APPLICABLE
    end = quorum_end_offset_for_epoch(leader, last_fetched_epoch, earliest_snapshot)
    if end.leader_epoch != last_fetched_epoch or end.end_offset < fetch_offset:
        return QuorumAnswer.DIVERGING, end
    return QuorumAnswer.VALID, Absent.NOT_APPLICABLE


def quorum_truncation(
    follower: LogState,
    leader: LogState,
    *,
    follower_snapshot: EpochEntry | Absent = Absent.NOT_WRITTEN,
    leader_snapshot: EpochEntry | Absent = Absent.NOT_WRITTEN,
    refuses_below_high_watermark: bool = True,
) -> TruncationOutcome:
    """Compute what a member of the metadata quorum truncates against its leader (KIP-595, `KafkaRaftClient.handleFetchResponse`).

    Args:
        follower: the member's log; its high watermark is only in memory, so it is absent in a directory.
        leader: the log of the quorum's leader, which entered its epoch at its log end.
        follower_snapshot: the follower's earliest snapshot, as epoch and end offset.
        leader_snapshot: the leader's earliest snapshot.
        refuses_below_high_watermark: KAFKA-12460, 3.0.0.
    """
    log, steps = follower, []
    halted = endless = full_restart = False
    while True:
        last_epoch = latest_epoch(log.epochs)
        if isinstance(last_epoch, Absent):
            last_epoch = 0 if isinstance(follower_snapshot, Absent) else follower_snapshot.leader_epoch
        answer, end = quorum_answer(leader, log.log_end_offset, last_epoch, leader_snapshot)
        step = TruncationStep(
            kind=StepKind.FETCH,
            fetch_offset=log.log_end_offset,
            requested_epoch=last_epoch,
            log_end_offset=log.log_end_offset,
        )
        if answer is QuorumAnswer.SNAPSHOT and not isinstance(leader_snapshot, Absent):
            log, full_restart = restart_log_at(leader_snapshot.start_offset), True
            steps.append(replace(step, truncate_to=log.log_end_offset, rule=TruncationRule.SNAPSHOT))
            break
        if isinstance(end, Absent):
            steps.append(step)
            break
        target, own = _quorum_target(log, end, follower_snapshot)
        step = replace(
            step,
            answer_epoch=end.leader_epoch,
            answer_offset=end.end_offset,
            own_epoch=own if isinstance(own, Absent) else own.leader_epoch,
            own_offset=own if isinstance(own, Absent) else own.end_offset,
        )
        floor = -1 if isinstance(log.high_watermark, Absent) else log.high_watermark
        if end.end_offset < floor or (refuses_below_high_watermark and target < floor):
            steps.append(replace(step, rule=TruncationRule.HALTED))
            halted = True
            break
        before, log = log, truncate_log(log, target)
        truncation = log.log_end_offset < before.log_end_offset
        steps.append(
            replace(
                step,
                truncate_to=log.log_end_offset if truncation else Absent.NOT_APPLICABLE,
                rule=TruncationRule.DIVERGING_EPOCH,
            )
        )
        if log == before:
            endless = True
            break
    changed = full_restart or log.log_end_offset < follower.log_end_offset
    deciding = [step.rule for step in steps if not isinstance(step.truncate_to, Absent)]
    rule = deciding[-1] if deciding else TruncationRule.NOTHING_TO_TRUNCATE
    if halted or endless:
        rule = TruncationRule.HALTED if halted else TruncationRule.ENDLESS
    return TruncationOutcome(
        protocol=ProtocolName.KIP_595,
        offset=log.log_end_offset if changed else Absent.NOT_APPLICABLE,
        rule=rule,
        steps=tuple(steps),
        after=log,
        full_restart=full_restart,
        endless=endless,
        halted=halted,
        below_high_watermark=changed
        and not isinstance(follower.high_watermark, Absent)
        and log.log_end_offset < follower.high_watermark,
    )


def _quorum_target(
    log: LogState, end: EpochEndOffset, earliest_snapshot: EpochEntry | Absent
) -> tuple[int, EpochEndOffset | Absent]:
    # ReplicatedLog.truncateToEndOffset: epoch 0 has no own lookup.
    if isinstance(end.leader_epoch, Absent) or end.leader_epoch == 0:
        return min(end.end_offset, log.log_end_offset), Absent.NOT_APPLICABLE
    own = quorum_end_offset_for_epoch(log, end.leader_epoch, earliest_snapshot)
    if own.leader_epoch == end.leader_epoch:
        return min(own.end_offset, end.end_offset), own
    return own.end_offset, own
