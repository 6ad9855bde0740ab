"""What a leader's own line and own files show of its leadership, where no record and no other line does."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.facts import ClusterFacts, Leadership
from kforensics.reconcile.observed.leadership import LeadershipAccount
from kforensics.units import TopicPartition


class HeldEpochs(NamedTuple):
    """The leader epochs that one directory knows, and where its log ends."""

    broker_id: int | Absent
    written: int
    """The last one in `leader-epoch-checkpoint`; -1 where it has none."""
    in_batches: int
    log_end_offset: int
    citation: Citation


def held_epochs(log: LoadedLog) -> HeldEpochs:
    """Return the newest leader epochs of a log."""
    claimed = log.replica.checkpoint_epochs
    written = -1 if isinstance(claimed, Absent) or not claimed else claimed[-1].leader_epoch
    in_batches = log.batch_epochs[-1].leader_epoch if log.batch_epochs else -1
    citation = log.replica.cite("leader-epoch-checkpoint")
    return HeldEpochs(log.replica.broker_id, written, in_batches, log.log_end_offset, citation)


def states_of(
    partition: TopicPartition, topic_id: str | Absent, facts: ClusterFacts, held: Iterable[HeldEpochs]
) -> tuple[Leadership, ...]:
    """Return the recorded states of a partition, else the one that the leader's own line shows.

    Its leader epoch is the newest of its directory, where no replica that the line names has a later one, and its log had reached the end that the line names.
    """
    known = facts.leaderships(partition, topic_id)
    line = None if known else facts.own_isr_line(partition)
    if line is None:
        return known
    by_broker = {one.broker_id: one for one in held}
    own = by_broker.get(line.leader)
    newest = max((max(one.written, one.in_batches) for one in by_broker.values()), default=-1)
    if own is None or not line.named <= by_broker.keys() or own.log_end_offset < line.log_end_offset:
        return ()
    if newest < 0 or max(own.written, own.in_batches) < newest:
        return ()
    return (
        Leadership(
            leader=line.leader,
            leader_epoch=newest,
            isr=line.isr,
            replicas=Absent.UNKNOWN,
            unclean=False,
            recorded_at=Absent.NOT_APPLICABLE,
            time_ms=line.time_ms,
            citation=line.citation,
            is_stated=False,
        ),
    )


def term_after_copying(
    states: Sequence[Leadership], log: LoadedLog, others: Iterable[LoadedLog], *, keeps_epoch: bool
) -> int | None:
    """Return the leader epoch from which on the last leader led, where its directory knows none of that term: it was copied before.

    Args:
        log: of the last leader.
        keeps_epoch: whether the directory of a broker shows that it was elected, though it wrote nothing; what metadata records always counts.
    """
    led = [state for state in states if isinstance(state.leader, int)]
    if not led or not (keeps_epoch or isinstance(states[-1].recorded_at, int)):
        return None
    # A broker that is stopping can be elected and stop before it takes up its role. Where another goes on from what it holds, its directory may be of another moment.
    if log.replica.clean_shutdown and not any(_may_go_on(one, log) for one in others):
        return None
    term = next((at for at in range(len(led), 0, -1) if led[at - 1].leader != led[-1].leader), 0)
    held = held_epochs(log)
    return led[term].leader_epoch if 0 <= max(held.written, held.in_batches) < led[term].leader_epoch else None


def _may_go_on(other: LoadedLog, log: LoadedLog) -> bool:
    """Whether a log that is longer may have all of another: the epoch in which it ends is not an older one."""
    ends = other.last_epoch, log.last_epoch
    is_older = isinstance(ends[0], int) and isinstance(ends[1], int) and ends[0] < ends[1]
    return other.log_end_offset > log.log_end_offset and not is_older


class LackedEpoch(NamedTuple):
    """A leader whose `leader-epoch-checkpoint` ends below the epoch in which it leads, though nothing was written in that epoch."""

    leader: int
    leader_epoch: int
    written: int
    log_end_offset: int
    is_alone: bool
    """By the last state it is the only one in sync."""
    citations: tuple[Citation, ...]


def lacked_epoch(account: LeadershipAccount, held: Iterable[HeldEpochs]) -> LackedEpoch | None:
    """Return the epoch that the leader lacks, where the file of another replica has it, or the leader itself said that it began it and enters it then.

    Args:
        held: of the directories in use as they are now; those without a readable checkpoint are left out.
    """
    states = account.states
    last = states[-1] if states else None
    by_broker: Mapping[int | Absent, HeldEpochs] = {one.broker_id: one for one in held}
    own = None if last is None else by_broker.get(last.leader)
    if last is None or own is None or not isinstance(last.leader, int):
        return None
    epoch = last.leader_epoch
    if own.written >= epoch or own.written < 0 or any(one.in_batches >= epoch for one in by_broker.values()):
        return None
    others = [one for one in by_broker.values() if one is not own and one.written >= epoch]
    begun = [one for one in states if one.leader_epoch == epoch and one.is_own_line and one.leader == last.leader]
    if any(one.written > epoch for one in others) or not (others or (begun and account.enters_elected_epochs)):
        return None
    citations = (own.citation, *(one.citation for one in others[:2]), *(one.citation for one in (*begun[:1], last)))
    return LackedEpoch(
        last.leader,
        epoch,
        own.written,
        own.log_end_offset,
        last.isr == frozenset({last.leader}),
        tuple(dict.fromkeys(citations)),
    )
