"""What counts as committed and what consumers may read: high watermark, ISR, acknowledgement, last stable offset."""

from collections.abc import Iterable
from enum import IntEnum

from kforensics.damage import Absent


class Acks(IntEnum):
    """What a producer waits for."""

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
    """A leader's high watermark: the lowest log end of the ISR, the leader included, and never lower than before.

    Since 3.7.0 it stays where it is while the ISR is smaller than min.insync.replicas (`strict_min_isr`, KIP-966); up
    to 3.6 an ISR of one advanced it alone. `Partition.maybeIncrementLeaderHW`.
    """
    if strict_min_isr and isr_size < min_insync_replicas:
        return high_watermark
    return max(high_watermark, min(log_end_offsets, default=high_watermark))


def follower_high_watermark(log_end_offset: int, leader_high_watermark_in_answer: int) -> int:
    """A follower's high watermark after a fetch: what the answer says, at most its own log end."""
    return min(log_end_offset, leader_high_watermark_in_answer)


def may_join_isr(
    follower_log_end_offset: int, high_watermark: int, leader_epoch_start_offset: int, *, needs_epoch_start: bool = True
) -> bool:
    """Whether it has caught up: to the high watermark and, since KAFKA-7128 (2.0.1, 2.1.0), to the leader's term."""
    reached_epoch = follower_log_end_offset >= leader_epoch_start_offset or not needs_epoch_start
    return follower_log_end_offset >= high_watermark and reached_epoch


def is_in_sync_by_time(*, lag_ms: int, lag_time_max_ms: int) -> bool:
    """`replica.lag.time.max.ms`: it has fetched up to the leader's end within the time (the only rule since 0.9)."""
    return lag_ms <= lag_time_max_ms


def is_in_sync_by_messages(*, lag_messages: int, lag_max_messages: int) -> bool:
    """`replica.lag.max.messages`, 0.8 only: a burst throws out a follower that is well."""
    return lag_messages <= lag_max_messages


def accepts_write(acks: Acks, *, isr_size: int, min_insync_replicas: int) -> bool:
    """Whether a leader takes a write: acks=all wants an ISR of min.insync.replicas, else NOT_ENOUGH_REPLICAS."""
    return acks is not Acks.ALL or isr_size >= min_insync_replicas


def is_acknowledged(acks: Acks, last_offset: int, *, leader_log_end_offset: int, high_watermark: int) -> bool:
    """Whether the producer has been told that its record at `last_offset` is written."""
    match acks:
        case Acks.NONE:
            return False
        case Acks.LEADER:
            return last_offset < leader_log_end_offset
        case _:
            return last_offset < high_watermark


def last_stable_offset(high_watermark: int, first_open_transaction_offset: int | Absent) -> int:
    """Where read_committed stops: where the oldest open transaction begins, at most the high watermark (KIP-98)."""
    if isinstance(first_open_transaction_offset, Absent):
        return high_watermark
    return min(high_watermark, first_open_transaction_offset)
