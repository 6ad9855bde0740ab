"""Expected truncations: what a follower will truncate against a leader by the protocol, and how many records and committed records it discards."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader
from kforensics.protocol.truncation import (
    LogState,
    ProtocolName,
    TruncationOutcome,
    follower_truncation,
    leader_after_election,
    quorum_truncation,
)
from kforensics.protocol.versions import epoch_rules_of_protocol
from kforensics.reconcile.committed.judge import CommitJudge, CommittedCounts, CommittedRun, count_runs
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.replicas.leader import ProtocolChoice
from kforensics.units import OffsetRange


class ExpectedTruncation(NamedTuple):
    """A truncation that the protocol will make, and what it discards."""

    outcome: TruncationOutcome
    protocol: ProtocolChoice
    offset: int
    """The new log end offset."""
    target_offset: int
    """The offset that the protocol finds; above `offset` where it lies inside a wrapper message, which is dropped whole."""
    dropped: OffsetRange
    """The offsets that go, in batches as they lie in the file."""
    runs: tuple[CommittedRun, ...]
    """Runs of one certainty, in order of offset."""
    counts: CommittedCounts
    lost: CommittedCounts
    """The part of them that the leader does not hold either."""


def follower_outcome(
    follower: LoadedLog, leader: LoadedLog, *, protocol: ProtocolChoice, new_epoch: int, is_quorum: bool = False
) -> TruncationOutcome:
    """Return the protocol's answer for one follower, the leader taken as elected now in `new_epoch`.

    Args:
        leader: the replica it fetches from; the current replica of its own broker for a future one.
        is_quorum: the partition is the KRaft metadata log.
    """
    if follower.replica.state == "future" and leader.replica.broker_id == follower.replica.broker_id:
        # KIP-113, always by KIP-279.
        return follower_truncation(follower.state, leader.state, protocol=ProtocolName.KIP_279)
    if is_quorum:
        # Members keep their high watermark in memory only.
        elected = leader_after_election(leader.state, new_epoch)
        return quorum_truncation(follower.state._replace(high_watermark=Absent.NOT_WRITTEN), elected)
    # No protocol looks at the leader's high watermark.
    return _outcome(
        follower.state, leader.state_without_high_watermark, protocol.name, new_epoch, protocol.halts_out_of_range
    )


@lru_cache(maxsize=1 << 6)  # the logs of most partitions are alike
def _outcome(
    follower: LogState,
    leader: LogState,
    protocol: ProtocolName,
    new_epoch: int,
    halts: bool | Absent,
) -> TruncationOutcome:
    elected = leader_after_election(leader, new_epoch)
    rules = epoch_rules_of_protocol(protocol)
    return follower_truncation(follower, elected, protocol=protocol, rules=rules, halts_out_of_range=halts)


def expected_truncation(
    follower: LoadedLog,
    leader: LoadedLog,
    outcome: TruncationOutcome,
    *,
    protocol: ProtocolChoice,
    same_until: int,
    judge: CommitJudge,
    reader: BatchReader,
) -> ExpectedTruncation | None:
    """Return the truncation with its records judged, none where nothing in the log is discarded.

    Args:
        leader: the log that it will follow.
        protocol: by which the follower truncates, and why it is taken for that.
        same_until: the exclusive offset up to which both logs hold the same.
        reader: reads the follower's batches, to count records.
    """
    if isinstance(outcome.offset, Absent) or outcome.offset >= follower.log_end_offset:
        return None
    target = outcome.offset
    offset = _message_set_start(follower, target, reader)
    first = max(offset, follower.log_start_offset)
    dropped = OffsetRange(first, follower.log_end_offset - 1)
    runs = count_runs(judge.runs(follower, dropped), follower, reader)
    # What the leader holds in the same bytes comes back with the next fetch.
    discarded_from = max(first, min(leader.log_end_offset, same_until))
    lost_range = OffsetRange(discarded_from, dropped.last)
    lost = count_runs(judge.runs(follower, lost_range), follower, reader) if lost_range.count > 0 else ()
    return ExpectedTruncation(
        outcome=outcome,
        protocol=protocol,
        offset=offset,
        target_offset=target,
        dropped=dropped,
        runs=runs,
        counts=CommittedCounts.of(runs),
        lost=CommittedCounts.of(lost),
    )


def _message_set_start(follower: LoadedLog, target: int, reader: BatchReader) -> int:
    """Return where the log ends once its file is truncated at the position of an offset.

    Up to message format 1 a compressed message set is one wrapper message, and the file is truncated at the first message whose offset is not
    below the target: the wrapper that holds it (`LogSegment.truncateTo` and `translateOffset`, 0.10.2).
    """
    if isinstance(follower.oldest_magic, Absent) or follower.oldest_magic >= 2 or target <= follower.log_start_offset:
        return target
    rows = reader.batches(follower.replica, target, target)
    inside = rows[(rows["magic"] < 2) & (rows["base_offset"] < target) & (rows["last_offset"] >= target)]
    return max(int(inside["base_offset"].min()), follower.log_start_offset) if len(inside) else target


def next_epoch(views: Sequence[LoadedLog], known: int | Absent) -> int:
    """Return an epoch newer than all that any replica or the metadata knows.

    Args:
        views: the logs of the partition; what their checkpoints claim counts as well.
        known: the newest epoch of the metadata; absent where there is none.
    """
    seen = [entry.leader_epoch for view in views for entry in (*view.epochs, *view.batch_epochs)]
    claimed = [
        entry.leader_epoch
        for view in views
        if not isinstance(view.replica.checkpoint_epochs, Absent)
        for entry in view.replica.checkpoint_epochs
    ]
    return 1 + max((*seen, *claimed, -1 if isinstance(known, Absent) else known, -1))
