"""Partitions of which the same is to be said: all of their replicas hold one sound log, whatever its offsets and its name are.

The verdict on such a partition follows from which brokers hold it, who leads it, and the order of their high watermarks. So what was found for one of
them is found for all that are like it.
"""

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from kforensics.damage import Absent
from kforensics.evidence.replica.collect import ReplicaCopy
from kforensics.protocol.truncation import loaded_high_watermark
from kforensics.reconcile.logs.loaded_log import LoadedLog, are_loaded_alike
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.replicas.leader import enters_epochs_without_batches

if TYPE_CHECKING:
    from kforensics.reconcile.replicas.partition import PartitionJudge

Likeness = tuple[Hashable, ...]
"""Equal for partitions of one comparison whose reports differ in names, offsets and leader epochs alone."""


def likeness_of(judge: "PartitionJudge", copies: Sequence[ReplicaCopy] = ()) -> Likeness | None:
    """Return what decides the verdict on a partition whose replicas hold one sound log; none where they differ, or anything about them is out of the ordinary.

    Args:
        copies: more of its replicas, where it has one alone and they are the same as that one, high watermarks aside.
    """
    live = judge.live
    if not live or len(live) != len(judge.replicas) or judge.is_quorum or judge.is_deleted:
        return None
    log, topic_id = live[0], live[0].replica.topic_id
    if not are_loaded_alike(live) or not _is_ordinary(log):
        return None
    if any(one.replica.topic_id != topic_id or one.replica.damage or one.replica.deleted_segments for one in live):
        return None
    every = [*(_as_copy(one) for one in live), *copies]
    holders = {one.broker_id for one in every}
    leadership = _leadership(judge, holders, is_whole=not copies)
    if leadership is None or len(every) < 2:
        return None
    start, end = log.log_start_offset, log.log_end_offset
    if any(one.offset > end for one in judge.facts.logged_ends(judge.partition).values()):
        return None
    if log.replica.unread_below and not start < not_compared_below(judge):
        return None
    recorded = [one.high_watermark for one in every]
    if any(isinstance(one, int) and one > end for one in recorded):
        return None
    loaded = [loaded_high_watermark(one, start, end) for one in recorded]
    order = sorted({start, end, *loaded})
    return (
        tuple([one[:2] for one in every]),
        leadership,
        len(order),
        tuple([order.index(one) for one in loaded]),
        tuple([isinstance(one, Absent) for one in recorded]),
        log.replica.clean_shutdown,
        isinstance(topic_id, Absent),
        log.replica.has_records,
        log.replica.unread_below > 0,
        enters_epochs_without_batches(log),
    )


def not_compared_below(judge: "PartitionJudge") -> int:
    """Return the offset below which replicas that hold one log were not compared: where their last batch begins; 0 where all was read."""
    log = judge.live[0]
    if not log.replica.unread_below:
        return 0
    last = judge.reader.batches(log.replica, log.log_end_offset - 1, log.log_end_offset - 1)
    return int(last["base_offset"][0]) if len(last) and log.log_start_offset < log.replica.unread_below else 0


def _as_copy(log: LoadedLog) -> ReplicaCopy:
    replica = log.replica
    recorded = replica.high_watermark
    return ReplicaCopy(replica.input, replica.broker_id, recorded if isinstance(recorded, Absent) else recorded.value)


def _is_ordinary(log: LoadedLog) -> bool:
    """Whether a log holds batches of the newest format, all sound, and its checkpoint has leader epochs that rise."""
    replica = log.replica
    return (
        log.log_start_offset <= log.content_start_offset < log.log_end_offset
        and log.oldest_magic == 2
        and log.epochs_from == "checkpoint"
        and log.truncated_by_recovery is None
        and not (log.damaged or log.missing or log.lost_ranges or log.left_behind)
        and replica.is_read_whole
        and bool(log.epochs)
        and log.epochs[0].leader_epoch >= 0
        and all(
            one.leader_epoch < other.leader_epoch and one.start_offset < other.start_offset
            for one, other in pairwise(log.epochs)
        )
    )


def _leadership(judge: "PartitionJudge", holders: set[int | Absent], *, is_whole: bool) -> Likeness | None:
    """Return what is known of leader and replicas; none where it is not of these replicas, or another broker should hold one."""
    named = any(judge.partition in one.named for broker, one in judge.given.items() if broker not in holders)
    if named:
        return None
    if not judge.leaderships:
        return ()
    newest: Leadership | None = judge.current
    if newest is None or newest.leader not in holders:
        return None
    if isinstance(newest.replicas, tuple) and set(newest.replicas) != holders:
        return None
    by_lines = isinstance(newest.recorded_at, Absent)
    if by_lines and not is_whole:
        return None  # what log lines say is held against the log of the leader
    return newest.leader, newest.isr, newest.replicas, newest.eligible, by_lines
