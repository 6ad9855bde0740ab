"""Gaps in the account of who led that the copies of logs show: what happened when no evidence is of that time."""

from collections.abc import Iterable, Iterator, Sequence

from kforensics.damage import Absent
from kforensics.reconcile.committed.proofs import FILE_TIME_SLACK_MS
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.logged_losses import unrecorded_time
from kforensics.reconcile.history.losses import is_in_use
from kforensics.reconcile.history.truncations import ObservedTruncation
from kforensics.reconcile.observed.broker_versions import BrokerVersions
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.observed.leadership import Gap, GapKind, LeadershipAccount
from kforensics.units import METADATA_TOPICS, EpochEntry, TopicPartition


def outside_metadata(
    partition: TopicPartition,
    account: LeadershipAccount,
    observed: Iterable[ObservedTruncation],
    facts: ClusterFacts,
) -> Iterator[Gap]:
    """Yield what the metadata log can't show: who led when a follower truncated its log, after its last record or, by a wrong clock, before an election on record."""
    states = account.states
    is_quorum = partition.topic in METADATA_TOPICS
    if is_quorum or account.source != "metadata-log" or not account.reaches_now:
        return
    elected = next((one.time_ms for one in states if one.leader_epoch > states[0].leader_epoch), None)
    for one in observed:
        time_ms = unrecorded_time(one, states)
        if one.rule == "recovery" or not isinstance(time_ms, int):
            continue
        is_before = elected is None or (isinstance(elected, int) and time_ms + FILE_TIME_SLACK_MS < elected)
        if is_before or facts.ends_before(time_ms):
            yield Gap(
                GapKind.END,
                f"who led when broker {one.broker_id} truncated its log, of which the metadata log shows no election before",
                "a newer metadata log",
            )
            return


def before_its_term(
    account: LeadershipAccount, leader: LogCopy | None, versions: BrokerVersions, copies: Iterable[LogCopy]
) -> Iterator[Gap]:
    """Yield a gap where the leader's directory was copied before it led: from its election on it would hold the epoch.

    Args:
        leader: the log that is taken for the leader's.
    """
    broker = account.last_leader
    if leader is None or not isinstance(broker, int) or leader.broker_id != broker:
        return
    end = leader.view.log_end_offset
    if leader.view.replica.clean_shutdown and not any(
        is_in_use(one) and one.view.log_end_offset > end for one in copies
    ):
        # A broker that is stopping can be elected and stop before it takes up its role. Where another holds more, its directory may be of another moment.
        return
    if account.source != "metadata-log" and not versions.keeps_epoch_of_election(broker):
        return
    led = [state for state in account.states if isinstance(state.leader, int)]
    before = next((at for at in range(len(led), 0, -1) if led[at - 1].leader != broker), 0)
    known = [entries[-1].leader_epoch for entries in recorded_epochs(leader) if entries]
    if known and max(known) < led[before].leader_epoch:
        yield Gap(
            GapKind.END,
            f"what broker {broker} wrote as the leader from leader epoch {led[before].leader_epoch} on, of which its directory holds nothing",
            f"the directory of broker {broker} as it is now",
        )


def recorded_epochs(copy: LogCopy) -> Iterator[Sequence[EpochEntry]]:
    """Yield the leader epochs of a log by its batches, and by leader-epoch-checkpoint, which names a leader that has written nothing too."""
    yield copy.view.batch_epochs
    if not isinstance(copy.view.replica.checkpoint_epochs, Absent):
        yield copy.view.replica.checkpoint_epochs
