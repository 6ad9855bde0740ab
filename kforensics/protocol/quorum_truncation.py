"""Truncation of a member of the metadata quorum (KIP-595): its log follows the quorum leader's by rules of its own."""

from kforensics.damage import Absent
from kforensics.protocol.epochs import EpochEndOffset, end_offset_for_epoch, latest_epoch
from kforensics.protocol.outcome import (
    LogState,
    ProtocolName,
    StepKind,
    TruncationOutcome,
    TruncationRule,
    TruncationStep,
)
from kforensics.protocol.truncation import truncate_log


def quorum_end_offset_for_epoch(log: LogState, leader_epoch: int) -> EpochEndOffset:
    """Return the end of an epoch in a quorum log; there is always an answer (`KafkaMetadataLog.endOffsetForEpoch`).

    Args:
        log: that is asked.
    """
    found = end_offset_for_epoch(log.epochs, log.log_end_offset, leader_epoch)
    return EpochEndOffset(_last_epoch(log), log.log_end_offset) if isinstance(found, Absent) else found


def diverging_end(leader: LogState, fetch_offset: int, last_fetched_epoch: int) -> EpochEndOffset | None:
    """Return the end of the epoch at a quorum leader whose log diverges from that of a node that fetches, else None (KIP-595).

    Source: `ReplicatedLog.validateOffsetAndEpoch`.

    Args:
        fetch_offset: the log end offset of the node that fetches.
        last_fetched_epoch: the epoch of its last record, 0 for none.
    """
    if leader.log_start_offset == fetch_offset == last_fetched_epoch == 0:
        return None
    end = quorum_end_offset_for_epoch(leader, last_fetched_epoch)
    if end.leader_epoch != last_fetched_epoch or end.end_offset < fetch_offset:
        return end
    return None


def quorum_truncation(follower: LogState, leader: LogState) -> TruncationOutcome:
    """Compute what a member of the metadata quorum truncates against its leader (KIP-595, `KafkaRaftClient.handleFetchResponse`).

    A directory shows neither the high watermark of a member, which is only in memory, nor whether a leader would send a snapshot instead.

    Args:
        leader: the log of the quorum's leader, which entered its epoch at its log end.
    """
    log = follower
    steps: list[TruncationStep] = []
    endless = False
    while not endless:
        before, last_epoch = log, _last_epoch(log)
        end = diverging_end(leader, log.log_end_offset, last_epoch)
        if end is None:
            own: EpochEndOffset | Absent = Absent.NOT_APPLICABLE
        else:
            target, own = _quorum_target(log, end)
            log = truncate_log(log, target)
            endless = log == before
        is_truncated = log.log_end_offset < before.log_end_offset
        steps.append(
            TruncationStep(
                kind=StepKind.FETCH,
                fetch_offset=before.log_end_offset,
                requested_epoch=last_epoch,
                answer_epoch=Absent.NOT_APPLICABLE if end is None else end.leader_epoch,
                answer_offset=Absent.NOT_APPLICABLE if end is None else end.end_offset,
                own_epoch=own if isinstance(own, Absent) else own.leader_epoch,
                own_offset=own if isinstance(own, Absent) else own.end_offset,
                log_end_offset=before.log_end_offset,
                truncate_to=log.log_end_offset if is_truncated else Absent.NOT_APPLICABLE,
                rule=TruncationRule.NOTHING_TO_TRUNCATE if end is None else TruncationRule.DIVERGING_EPOCH,
            )
        )
        if end is None:
            break
    changed = log.log_end_offset < follower.log_end_offset
    rule = TruncationRule.DIVERGING_EPOCH if changed else TruncationRule.NOTHING_TO_TRUNCATE
    return TruncationOutcome(
        protocol=ProtocolName.KIP_595,
        offset=log.log_end_offset if changed else Absent.NOT_APPLICABLE,
        rule=TruncationRule.ENDLESS if endless else rule,
        steps=tuple(steps),
        after=log,
        endless=endless,
    )


def _last_epoch(log: LogState) -> int:
    last = latest_epoch(log.epochs)
    return 0 if isinstance(last, Absent) else last


def _quorum_target(log: LogState, end: EpochEndOffset) -> tuple[int, EpochEndOffset | Absent]:
    # ReplicatedLog.truncateToEndOffset: epoch 0 has no own lookup.
    if isinstance(end.leader_epoch, Absent) or end.leader_epoch == 0:
        return min(end.end_offset, log.log_end_offset), Absent.NOT_APPLICABLE
    own = quorum_end_offset_for_epoch(log, end.leader_epoch)
    if own.leader_epoch == end.leader_epoch:
        return min(own.end_offset, end.end_offset), own
    return own.end_offset, own
