"""Where another record may have had an offset before: what a leader held that was replaced, and that the log as it is now does not show."""

from collections.abc import Sequence

from kforensics.reconcile.observed.leadership import LeadershipAccount
from kforensics.units import EpochEntry


def displaced_from(leader_epoch: int, account: LeadershipAccount, epochs: Sequence[EpochEntry]) -> int | None:
    """Return the first offset at which a leader before may have held another record than the log does now; None where there is none.

    What a replica has of a leader epoch is what the leader of that epoch wrote, so up to the end of the last epoch that it shares with the leader before, it holds
    the same (KIP-101). Where brokers that led in between left no epoch in its log, the end of that shared part is not known, only its beginning.

    Args:
        leader_epoch: of an election after which the new leader may have lacked records.
    """
    since = next((entry.start_offset for entry in epochs if entry.leader_epoch >= leader_epoch), None)
    earlier = [entry for entry in epochs if entry.leader_epoch < leader_epoch]
    if not earlier:
        return since or 0
    last = earlier[-1]
    epochs_between = [state.leader_epoch for state in account.states if state.leader_epoch < leader_epoch]
    leaders = {
        state.leader
        for state in account.states
        if isinstance(state.leader, int) and last.leader_epoch <= state.leader_epoch < leader_epoch
    }
    is_on_record = bool(epochs_between) and min(epochs_between) <= last.leader_epoch
    is_repeated = any(last.leader_epoch < one.state.leader_epoch < leader_epoch for one in account.risky)
    return since if is_on_record and len(leaders) <= 1 and not is_repeated else last.start_offset


def may_be_displaced(offset: int, account: LeadershipAccount, epochs: Sequence[EpochEntry]) -> bool:
    """Whether an election may have replaced the record that an offset had before."""
    starts = (displaced_from(one.state.leader_epoch, account, epochs) for one in account.risky)
    return any(start is not None and offset >= start for start in starts)
