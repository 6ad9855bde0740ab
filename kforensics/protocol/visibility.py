"""The rules of committed and readable records: high watermark, ISR, acknowledgement, last stable offset."""

from collections.abc import Iterable
from enum import IntEnum

from kforensics.damage import Absent


class Acks(IntEnum):
    """The acknowledgements that a producer waits for."""

    NONE = 0
    LEADER = 1
    ALL = -1


def leader_high_watermark(
    high_watermark: int,
    log_end_offsets: Iterable[int],
    *,
    isr_size: int,
    min_insync_replicas: int = 1,
    strict_min_isr: bool = True,
) -> int:
    """Return the leader's high watermark: the lowest log end offset of the ISR with the leader, and never lower than before.

    Since 3.7.0 it stays where it is while the ISR is smaller than min.insync.replicas (`strict_min_isr`, KIP-966); up
    to 3.6 an ISR of one advanced it alone. `Partition.maybeIncrementLeaderHW`.

    Args:
        log_end_offsets: those of the ISR, the leader's own included; without any the high watermark stays.
    """
    if strict_min_isr and isr_size < min_insync_replicas:
        return high_watermark
    return max(high_watermark, min(log_end_offsets, default=high_watermark))


def follower_high_watermark(log_end_offset: int, leader_high_watermark_in_answer: int) -> int:
    """Return a follower's high watermark after it appended what a fetch brought: the leader's from the response, at most its own log end offset."""
    return min(log_end_offset, leader_high_watermark_in_answer)


def may_join_isr(
    follower_log_end_offset: int, high_watermark: int, leader_epoch_start_offset: int, *, needs_epoch_start: bool
) -> bool:
    """Return whether a follower may join the ISR: it has reached the high watermark and, since KAFKA-7128 (2.0.1, 2.1.0), the start of the leader's epoch."""
    reached_epoch = follower_log_end_offset >= leader_epoch_start_offset or not needs_epoch_start
    return follower_log_end_offset >= high_watermark and reached_epoch


def is_in_sync_by_time(*, lag_ms: int, lag_time_max_ms: int) -> bool:
    """Return whether a follower has fetched up to the leader's log end offset within `replica.lag.time.max.ms` (the only rule since 0.9)."""
    return lag_ms <= lag_time_max_ms


def is_in_sync_by_messages(*, lag_messages: int, lag_max_messages: int) -> bool:
    """Return whether a follower is in sync by `replica.lag.max.messages` (0.8 only), which a burst of writes removes although it keeps up."""
    return lag_messages <= lag_max_messages


def accepts_write(acks: Acks, *, isr_size: int, min_insync_replicas: int) -> bool:
    """Return whether a leader accepts a write: with acks=all and an ISR below min.insync.replicas it answers NOT_ENOUGH_REPLICAS."""
    return acks is not Acks.ALL or isr_size >= min_insync_replicas


def is_acknowledged(acks: Acks, last_offset: int, *, leader_log_end_offset: int, high_watermark: int) -> bool:
    """Return whether the producer has got the acknowledgement of its record at `last_offset` (`DelayedProduce`)."""
    match acks:
        case Acks.NONE:
            return False
        case Acks.LEADER:
            return last_offset < leader_log_end_offset
        case Acks.ALL:  # pragma: no branch - every member is named
            return last_offset < high_watermark


def last_stable_offset(high_watermark: int, first_open_transaction_offset: int | Absent) -> int:
    """Return the last stable offset: the first offset of the oldest open transaction, at most the high watermark (KIP-98)."""
    if isinstance(first_open_transaction_offset, Absent):
        return high_watermark
    return min(high_watermark, first_open_transaction_offset)
