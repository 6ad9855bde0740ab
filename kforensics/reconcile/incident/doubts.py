"""What keeps a partition from being proven whole: each doubt names what is unknown, and the input that would show it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from kforensics.damage import Absent
from kforensics.protocol.loading.node import contradiction
from kforensics.reconcile.history.topic_incarnations import MadeAnew
from kforensics.reconcile.logs.tiers import RemoteCopies, Tiers
from kforensics.reconcile.observed.leadership import Election, GapKind, LeadershipAccount, Risk
from kforensics.reconcile.observed.outages import Outage, Took, outage_between
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import utc_words

if TYPE_CHECKING:
    from kforensics.reconcile.history.log_copies import LogCopy

WRITTEN_WITHIN_MS = 60_000
"""A broker writes a record within this time of the record's own timestamp; a file whose time is later has that of its copying."""


NO_META = "the meta.properties of the directory of which it is not known whose it is"
"""The input that says whose directory it is."""


class DoubtKind(StrEnum):
    """The reason why a partition can't be called whole."""

    LEADER = "leader"
    ACCOUNT = "account"
    REPLICA = "replica"
    DISK = "disk"
    ELECTION = "election"
    TRUNCATION = "truncation"
    COPY = "copy"
    DAMAGE = "damage"
    COMPACTION = "compaction"
    UNREADABLE = "unreadable"
    ORDER = "order"
    LOGGED_END = "logged-end"
    REMOTE = "remote"


class Doubt(NamedTuple):
    """One thing that is unknown of a partition."""

    kind: DoubtKind
    words: str
    """What is unknown, as a part of a sentence."""
    settled_by: str
    """The input that would show it."""
    leader_epoch: int | Absent = Absent.NOT_APPLICABLE
    """Of the election that it is about."""
    offsets: OffsetRange | Absent = Absent.NOT_APPLICABLE
    """The offsets of the truncation that it is about."""
    is_input: bool = True
    """Whether what would show it can be given to kforensics."""
    outage: Outage | Absent = Absent.NOT_APPLICABLE
    """The end of a broker that led before as well, and has lost only what its own disk lost when it went down."""

    @property
    def is_of_lines(self) -> bool:
        """Whether lines name offsets of this very partition that no log given reaches."""
        return self.kind is DoubtKind.LOGGED_END and not isinstance(self.offsets, Absent)


class WholeReturn(NamedTuple):
    """A follower that came back, and whose leader held all that it held: nothing was truncated."""

    broker_id: int
    log_end_offset: int
    time_ms: int | Absent


class Fencing(NamedTuple):
    """A broker whose session ended: it had stopped before."""

    recorded_at: int
    """The metadata offset of its fencing."""
    last_heartbeat_ms: int
    """The latest time at which it can have sent a heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The moments at which the inputs were taken, by what their metadata logs had reached."""

    metadata_ends: Mapping[int, int] = field(default_factory=dict)
    """The end offset of the longest metadata log of a snapshot, by its rank."""
    metadata_times: Mapping[int, int] = field(default_factory=dict)
    """The time of the last record of that metadata log, by rank of the snapshot; milliseconds UTC."""
    fencings: Mapping[int, tuple[Fencing, ...]] = field(default_factory=dict)
    """The fencings of each broker that had not announced its stop."""
    logs_held: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """The number of logs that a node held, by rank of the snapshot and node."""
    quorum_starts: frozenset[int] = frozenset()
    """Offsets in the metadata log at which a new controller took over: the one before had written nothing more."""
    brokers: frozenset[int] = frozenset()
    """Nodes whose directories as they are now are among the inputs."""
    without_directory: Mapping[TopicPartition, frozenset[int]] = field(default_factory=dict)
    """Brokers whose checkpoints as they are now name a partition of which they hold no directory: it was left out of the copy, or is lost."""
    unchanged: frozenset[tuple[int, int, int]] = frozenset()
    """An earlier rank, a later one and a node that had written nothing to any log in between."""
    since_ms: int | None = None
    """The time from which on the user asks; None where he asks for all that the inputs show."""
    outages: Mapping[int, Sequence[Outage]] = field(default_factory=dict)
    """The ends of each broker that were not in order, by its lines."""
    made_anew: Mapping[TopicPartition, Sequence[MadeAnew]] = field(default_factory=dict)
    """The logs that brokers made once they had been started, or a log directory of theirs had failed, by their lines."""
    remote_copies: RemoteCopies = field(default_factory=RemoteCopies)
    is_stopped: bool = False
    """The user says that no broker ran when the directories as they are now were copied."""


CopyKey = tuple[int, int]
"""The rank and node of a copy of a node's directories."""


class Reliance(NamedTuple):
    """A doubt that copies dispel, as long as their nodes have not lost the end of any log."""

    doubt: Doubt
    witnesses: tuple[frozenset[CopyKey], ...]
    """The copies, each set enough for itself."""

    def holds(self, shortened: Collection[CopyKey]) -> bool:
        """Whether a set of copies is left of which none shows that its node lost the end of a log."""
        return any(not one & frozenset(shortened) for one in self.witnesses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """The doubts about a partition."""

    open: tuple[Doubt, ...] = ()
    dispelled: tuple[Reliance, ...] = ()
    """Doubts that copies of other logs of the same nodes may bring back."""
    shortened: frozenset[CopyKey] = frozenset()
    """Copies in which the log of this partition shows that its node lost the end of it."""


def doubts_of(
    account: LeadershipAccount,
    leader: "LogCopy | None",
    copies: "Sequence[LogCopy]",
    moments: Moments,
    *,
    is_leader_known: bool,
    needed_in_sync: int | Absent = Absent.UNKNOWN,
    whole_returns: Sequence[WholeReturn] = (),
    with_earlier_topic: Collection[int | Absent] = (),
    unread: "Sequence[LogCopy]" = (),
    made_anew: Sequence[MadeAnew] = (),
) -> Doubts:
    """Return everything that keeps the partition from being proven whole.

    Args:
        with_earlier_topic: brokers that hold a directory of an earlier topic of the name instead, so their disks are where they were.
    """
    now_unread = {copy.broker_id for copy in unread if copy.is_final}
    elections = tuple(_of_elections(account, copies, moments, whole_returns, needed_in_sync))
    return Doubts(
        open=tuple(
            dict.fromkeys(
                (
                    *_of_unread(unread),
                    *(() if now_unread and leader is None else _of_leader(account, leader, is_known=is_leader_known)),
                    *_of_account(account, moments.since_ms),
                    *_of_contradiction(account),
                    *_of_replicas(account, copies, moments, {*with_earlier_topic, *now_unread}),
                    *_of_made_anew(account, copies, made_anew),
                    *(one.doubt for one in elections if not one.witnesses),
                    *_of_damage(leader, copies),
                    *_of_remote(leader, copies, moments),
                )
            )
        ),
        dispelled=tuple(one for one in elections if one.witnesses),
        shortened=frozenset(_shortened(copies)),
    )


def _shortened(copies: "Sequence[LogCopy]") -> Iterator[CopyKey]:
    """Earlier copies in which the log ends below what its node had written down of it, or in a part that can't be read."""
    for copy in copies:
        replica = copy.view.replica
        node = copy.broker_id
        if copy.is_final or not copy.is_live or not isinstance(node, int):
            continue
        if replica.clean_shutdown:
            continue
        end = replica.lineage.log_end_offset
        claimed = () if isinstance(replica.checkpoint_epochs, Absent) else replica.checkpoint_epochs
        named = [*replica.producer_snapshots, *(entry.start_offset for entry in claimed)]
        named += [one.value for one in (replica.high_watermark, replica.recovery_point) if not isinstance(one, Absent)]
        last = replica.segments[-1] if replica.segments else None
        is_torn = last is not None and last.valid_length < last.length
        if is_torn or any(offset > end for offset in named):
            yield copy.rank, node


def _of_contradiction(account: LeadershipAccount) -> Iterator[Doubt]:
    newest = account.states[-1] if account.states else None
    if newest is None or isinstance(newest.recorded_at, Absent) or isinstance(newest.replicas, Absent):
        return
    isr = () if isinstance(newest.isr, Absent) else newest.isr
    if words := contradiction(newest.replicas, isr):
        yield Doubt(
            DoubtKind.ACCOUNT,
            f"which replicas count: the metadata names {words}",
            "the metadata log of another controller",
        )


def _of_leader(account: LeadershipAccount, leader: "LogCopy | None", *, is_known: bool) -> Iterator[Doubt]:
    if leader is None:
        yield Doubt(DoubtKind.LEADER, "what the leader holds", "the directory of its leader")
        return
    if is_known:
        return
    last = account.last_leader
    if isinstance(last, int) and isinstance(leader.broker_id, Absent):
        settled = NO_META
    elif isinstance(last, int) and last != leader.broker_id:
        settled = f"the directory of broker {last}"
    else:
        settled = next(
            (gap.settled_by for gap in account.gaps), "the metadata log, or state-change.log and controller.log"
        )
    yield Doubt(DoubtKind.LEADER, "which replica leads", settled)


def _of_unread(unread: "Sequence[LogCopy]") -> Iterator[Doubt]:
    for copy in unread:
        replica = copy.view.replica
        holds, ends = ("holds", "ends") if copy.is_final else ("held", "ended")
        yield Doubt(
            DoubtKind.UNREADABLE,
            f"what the log of {replica.owner} {holds}, and where it {ends}: it {replica.lack}",
            f"a complete and readable copy of the directory of {replica.owner}",
        )


def _of_account(account: LeadershipAccount, since_ms: int | None) -> Iterator[Doubt]:
    begun = account.states[0].time_ms if account.states else Absent.UNKNOWN
    is_asked_later = since_ms is not None and isinstance(begun, int) and begun <= since_ms
    for gap in account.gaps:
        if gap.kind is GapKind.BEGINNING and is_asked_later:
            continue
        yield Doubt(DoubtKind.ACCOUNT, gap.words, gap.settled_by)


def _of_replicas(
    account: LeadershipAccount,
    copies: "Sequence[LogCopy]",
    moments: Moments,
    with_earlier_topic: Collection[int | Absent],
) -> Iterator[Doubt]:
    held = {
        copy.broker_id
        for copy in copies
        if copy.is_final and not copy.is_remnant and copy.view.replica.state in {"live", "future"}
    }
    if isinstance(account.assigned, Absent):
        if len(held) < 2:
            yield Doubt(
                DoubtKind.REPLICA,
                "what other replicas hold",
                "the metadata log, or the directories of the other replicas",
            )
        return
    for broker in sorted(account.assigned - {one for one in held if isinstance(one, int)}):
        if broker in with_earlier_topic:
            continue
        if any(copy.is_outdated and copy.broker_id == broker for copy in copies):
            yield Doubt(
                DoubtKind.REPLICA,
                f"what broker {broker} holds now, which truncated its log after its directory was copied",
                f"the directory of broker {broker} as it is now",
            )
        elif any(isinstance(one, Absent) for one in held):
            words = f"whether the directory without meta.properties is that of broker {broker}, a replica"
            yield Doubt(DoubtKind.REPLICA, words, NO_META)
        elif broker in moments.brokers and not _was_out_of_sync(broker, account, held):
            yield Doubt(
                DoubtKind.DISK,
                f"where the replica of broker {broker} is, whose directories are there and hold none",
                f"an earlier copy of the disks of broker {broker}",
            )
        elif broker not in moments.brokers:
            yield Doubt(
                DoubtKind.REPLICA, f"what broker {broker}, a replica, holds", f"the directory of broker {broker}"
            )


def _was_out_of_sync(broker: int, account: LeadershipAccount, held: Collection[int | Absent]) -> bool:
    """Whether the newest record names others alone that can be elected, whose logs are all here: what was committed is in these, and a broker that lacks its log copies it again."""
    newest = account.states[-1] if account.states else None
    in_sync = frozenset() if newest is None or isinstance(newest.isr, Absent) else newest.isr | newest.eligible
    return bool(in_sync) and broker not in in_sync and in_sync <= set(held)


def _of_made_anew(
    account: LeadershipAccount, copies: "Sequence[LogCopy]", made_anew: Sequence[MadeAnew]
) -> Iterator[Doubt]:
    """Yield the logs that a broker made anew of a partition that it held before, and led: what it held is in a directory that it does not use."""
    for one in made_anew:
        timed = [(state.time_ms, state) for state in account.states if isinstance(state.time_ms, int)]
        before = [state for time_ms, state in timed if time_ms <= one.since_ms]
        if not before or isinstance(before[-1].replicas, Absent) or one.broker_id not in before[-1].replicas:
            continue
        later = (state for time_ms, state in timed if time_ms > one.since_ms)
        led = next((state for state in (*later, before[-1]) if isinstance(state.leader, int)), before[-1])
        held = [copy for copy in copies if copy.is_final and copy.is_live and copy.broker_id == one.broker_id]
        if led.leader == one.broker_id and len(held) < 2:
            offline = f" while {one.failed} was offline" if one.failed else ""
            yield Doubt(
                DoubtKind.DISK,
                f"what its log on broker {one.broker_id} held before {utc_words(one.time_ms)}, when that broker made it anew, empty, in {one.directory}{offline}",
                f"the log directory {one.failed} of broker {one.broker_id}"
                if one.failed
                else f"the log directory of broker {one.broker_id} that had it",
            )


RISK_WORDS = {
    Risk.UNCLEAN: "became leader in an unclean election",
    Risk.UNCLEAN_RESTART: "led again after an unclean shutdown",
    Risk.OTHER_DISK: "came back with another disk",
    Risk.OLDER_DISK: "led again with an earlier state of its disk",
    Risk.RESTART: "led again after a restart, the only one in sync",
    Risk.HIGH_WATERMARK: "took over by the protocol that truncates to the high watermark",
}


def _of_elections(
    account: LeadershipAccount,
    copies: "Sequence[LogCopy]",
    moments: Moments,
    whole_returns: Sequence[WholeReturn],
    needed_in_sync: int | Absent,
) -> Iterator[Reliance]:
    """Yield the elections that may have lost something, with the copies that show that they did not."""
    for election in account.risky:
        if _returned_whole(election, copies, whole_returns):
            continue
        assert election.risk is not None
        state = election.state
        settled_by, is_input = _settled_by(election, account, copies, moments)
        outage = _outage(election, account, moments)
        yield Reliance(
            Doubt(
                DoubtKind.ELECTION,
                f"whether anything was lost when broker {state.leader} {RISK_WORDS[election.risk]} in leader epoch {state.leader_epoch}",
                settled_by,
                leader_epoch=state.leader_epoch,
                is_input=is_input,
                outage=outage,
            ),
            (
                *_witnesses(election, account, copies, moments, needed_in_sync),
                *([frozenset[CopyKey]()] if isinstance(outage, Outage) and outage.proven is Took.PROCESS else ()),
            ),
        )


def _outage(election: Election, account: LeadershipAccount, moments: Moments) -> Outage | Absent:
    """Return how a broker had gone down that leads again and was not exchanged meanwhile; a killed process takes nothing with it."""
    state = election.state
    if (
        not isinstance(state.leader, int)
        or election.previous != state.leader
        or election.risk not in {Risk.UNCLEAN, Risk.UNCLEAN_RESTART}
    ):
        return Absent.NOT_APPLICABLE
    until = election.restart.time_ms if election.restart is not None else state.time_ms
    led = [one for one in account.states[: account.states.index(state) + 1] if one.leader == state.leader]
    led = [one for one in led if one.leader_epoch < state.leader_epoch] or led
    return outage_between(led[-1].time_ms, until, state.leader, moments.outages)


def _settled_by(
    election: Election, account: LeadershipAccount, copies: "Sequence[LogCopy]", moments: Moments
) -> tuple[str, bool]:
    """Return what would show whether an election lost anything, and whether that is an input.

    A copy of the leader before settles it where that broker had stopped cleanly. One that was made after a kill holds all that was written, unless the machine had lost
    power: the disks do not show which.
    """
    state, who = election.state, _led_before(election)
    is_same_term = election.before is not None and election.before.leader_epoch == state.leader_epoch
    moment = (
        f"its restart in leader epoch {state.leader_epoch}" if is_same_term else f"leader epoch {state.leader_epoch}"
    )
    newest = state.leader_epoch if is_same_term else state.leader_epoch - 1
    own = [
        copy
        for copy in copies
        if copy.broker_id == who
        and copy.is_live
        and not copy.is_final
        and (not copy.view.batch_epochs or copy.view.batch_epochs[-1].leader_epoch <= newest)
    ]
    power = "machine (did it lose power?)"
    is_by_crash = election.risk in {Risk.UNCLEAN, Risk.UNCLEAN_RESTART}
    if is_by_crash and any(
        isinstance(who, int) and _was_stopped(who, copy.rank, election, account, moments) for copy in own
    ):
        return f"the system log of broker {who}'s {power}", False
    copy_of = f"later copy of broker {who}'s disks than those given," if own else f"copy of the disks of broker {who}"
    later = f"a {copy_of} from before {moment}"
    # The log of another broker was truncated since then, whatever became of its machine.
    return (f"{later}, or the system log of its {power}" if is_by_crash and who == state.leader else later), True


def _led_before(election: Election) -> int | Absent:
    return election.previous if isinstance(election.previous, int) else election.state.leader


def _witnesses(
    election: Election,
    account: LeadershipAccount,
    copies: "Sequence[LogCopy]",
    moments: Moments,
    needed_in_sync: int | Absent,
) -> Iterator[frozenset[CopyKey]]:
    """Yield copies that show the log of the leader before as it was when that broker had stopped, with all that it had committed.

    What such a copy holds and the final leader does not is among the losses then. A power loss takes the end of a log and may leave no sign, so a copy counts only where the
    broker had stopped cleanly, where its logs had not changed since an earlier copy, or where others in sync had to hold the same before anything was committed, and
    copies show their logs too.
    """
    previous = _led_before(election)
    own = [copy for copy in copies if copy.broker_id == previous and copy.is_live]
    members = _last_to_commit(election, account, needed_in_sync)
    for copy in own:
        node = copy.broker_id
        if not isinstance(node, int) or not _was_stopped(node, copy.rank, election, account, moments):
            continue
        if copy.view.replica.clean_shutdown or any(
            (other.rank, copy.rank, node) in moments.unchanged or _is_untouched(other, copy)
            for other in own
            if other.rank < copy.rank and not _is_after_stop(node, other.rank, election, account, moments)
        ):
            yield frozenset({(copy.rank, node)})
        elif len(members) > 1:
            running = [one for one in copies if not _is_after_stop(node, one.rank, election, account, moments)]
            kept_up = {
                one.broker_id
                for one in copies
                if one.rank == copy.rank and _has_kept_up(one, running, account, moments)
            }
            if members <= kept_up:
                yield frozenset((copy.rank, one) for one in members)
    if not any(copy.rank in moments.metadata_ends for copy in own) and _had_none(previous, election, account, moments):
        yield frozenset()


def _has_kept_up(copy: "LogCopy", copies: "Sequence[LogCopy]", account: LeadershipAccount, moments: Moments) -> bool:
    """Whether the log has grown since an earlier copy, or was not appended to: one that ends where it had ended, though it was written to, has lost what was written."""
    if not copy.is_live:
        return False
    before = [one for one in copies if one.broker_id == copy.broker_id and one.rank < copy.rank and not one.is_remnant]
    newest = max(before, key=lambda one: one.rank, default=None)
    if newest is None:
        return _is_younger(account, copy, moments) and copy.view.log_end_offset > 0
    return newest.view.log_end_offset < copy.view.log_end_offset or _is_untouched(newest, copy)


def _is_untouched(earlier: "LogCopy", copy: "LogCopy") -> bool:
    """Whether the log had not been appended to since an earlier copy, by the time of its file, which is that of its last records in both."""
    times = {earlier.taken_ms, copy.taken_ms}
    written = max(
        (one.max_timestamp_ms for one in copy.view.segments if isinstance(one.max_timestamp_ms, int)),
        default=Absent.UNKNOWN,
    )
    if len(times) != 1 or not isinstance(copy.taken_ms, int) or not isinstance(written, int):
        return False
    is_of_writing = abs(copy.taken_ms - written) <= WRITTEN_WITHIN_MS
    return is_of_writing and earlier.view.log_end_offset == copy.view.log_end_offset


def _last_to_commit(election: Election, account: LeadershipAccount, needed_in_sync: int | Absent) -> frozenset[int]:
    """Return the ISR that was the last one large enough to commit anything: each of its members held all that was committed. Empty where that is not known."""
    if not isinstance(needed_in_sync, int):
        return frozenset()
    for state in reversed(account.states[: account.states.index(election.state)]):
        if isinstance(state.isr, Absent):
            break
        if isinstance(state.leader, int) and len(state.isr) >= needed_in_sync:
            return state.isr
    return frozenset()


def _had_none(node: int | Absent, election: Election, account: LeadershipAccount, moments: Moments) -> bool:
    """Return the broker had stopped, its disk was as full as before, and it held no log of the partition: nothing had been written to it."""
    if not isinstance(node, int) or election.risk in {Risk.OTHER_DISK, Risk.OLDER_DISK}:
        return False
    for (rank, holder), count in moments.logs_held.items():
        earlier = [held for (other, who), held in moments.logs_held.items() if who == holder and other < rank]
        is_as_full = holder == node and bool(earlier) and count >= max(earlier) > 0
        if is_as_full and _was_stopped(node, rank, election, account, moments):
            return True
    return False


def _is_younger(account: LeadershipAccount, copy: "LogCopy", moments: Moments) -> bool:
    """Return whether the partition was created after an earlier snapshot, so that no older copy of its log can be."""
    created = account.states[0].recorded_at
    earlier = [end for rank, end in moments.metadata_ends.items() if rank < copy.rank]
    return isinstance(created, int) and bool(earlier) and max(earlier) <= created


def _returned_whole(election: Election, copies: "Sequence[LogCopy]", whole_returns: Sequence[WholeReturn]) -> bool:
    """Return the leader before came back with the log that an earlier copy of it shows, and the new leader held all of it."""
    if election.risk is not Risk.UNCLEAN_RESTART or election.previous == election.state.leader:
        return False
    ends = {
        copy.view.log_end_offset
        for copy in copies
        if copy.broker_id == election.previous and not copy.is_final and not copy.is_remnant
    }
    return any(
        one.broker_id == election.previous
        and one.log_end_offset in ends
        and isinstance(one.time_ms, int)
        and isinstance(election.state.time_ms, int)
        and one.time_ms >= election.state.time_ms
        for one in whole_returns
    )


def _was_stopped(node: int, rank: int, election: Election, account: LeadershipAccount, moments: Moments) -> bool:
    """Return whether the snapshot was taken after the leader before had stopped for good, and before it came back."""
    end = moments.metadata_ends.get(rank)
    state = election.state
    if end is None or not isinstance(state.recorded_at, int):
        return False
    since = _lost_leader_at(election, account)
    if since is None or any(
        isinstance(one.recorded_at, int) and since < one.recorded_at < end for one in account.restarts.get(node, ())
    ):
        return False
    if _is_after_stop(node, rank, election, account, moments):
        return True
    # Nothing was recorded between the copy and the last controller before: the node that wrote the metadata log had stopped.
    begun = max((start for start in moments.quorum_starts if start <= since), default=None)
    return end == begun and len(_restarts(account, node, end, since)) <= 1


def _is_after_stop(node: int, rank: int, election: Election, account: LeadershipAccount, moments: Moments) -> bool:
    """Whether the snapshot was taken after the partition had lost its leader, or after that broker's last heartbeat."""
    end, since = moments.metadata_ends.get(rank), _lost_leader_at(election, account)
    elected = election.state.recorded_at
    if end is None or since is None or not isinstance(elected, int):
        return False
    return since < end or _had_stopped(node, rank, (since, elected), account, moments)


def _restarts(account: LeadershipAccount, node: int, first: int, last: int) -> list[int]:
    """Return the metadata offsets of the node's restarts from one offset to another."""
    found = (one.recorded_at for one in account.restarts.get(node, ()))
    return [offset for offset in found if isinstance(offset, int) and first <= offset <= last]


def _had_stopped(
    node: int, rank: int, without_leader: tuple[int, int], account: LeadershipAccount, moments: Moments
) -> bool:
    """Whether the session of the broker ended so soon after the copy that it had sent no heartbeat any more when the copy was taken, and it did not come back before.

    The metadata offsets are those from which on the partition had no leader, and of the election.
    """
    taken, end = moments.metadata_times.get(rank), moments.metadata_ends[rank]
    since, elected = without_leader
    return taken is not None and any(
        end <= one.recorded_at < elected
        and one.last_heartbeat_ms <= taken
        and not _restarts(account, node, end, max(since, one.recorded_at))
        for one in moments.fencings.get(node, ())
    )


def _lost_leader_at(election: Election, account: LeadershipAccount) -> int | None:
    """Return the metadata offset from which on the partition had no leader before the election; of the election where there was no such time."""
    at = account.states.index(election.state)
    since = election.state.recorded_at
    for state in reversed(account.states[:at]):
        if isinstance(state.leader, int):
            break
        since = state.recorded_at
    return since if isinstance(since, int) else None


def _of_damage(leader: "LogCopy | None", copies: "Sequence[LogCopy]") -> Iterator[Doubt]:
    for copy in copies:
        if not copy.is_in_use:
            continue
        damaged = copy.view.damaged
        if damaged and copy is leader:
            yield Doubt(
                DoubtKind.DAMAGE,
                f"what damaged offsets {damaged[0].offsets.first} to {damaged[0].offsets.last} of {copy.view.replica.owner} held",
                "a sound copy of them",
            )
        elif copy is leader and copy.view.missing:
            lost = copy.view.missing[0]
            yield Doubt(
                DoubtKind.DAMAGE,
                f"what {lost.words} of {copy.view.replica.owner} held, which {lost.are} unaccounted for by its own files",
                "the files that were removed or left out of the copy, or an earlier copy of its log directory",
            )


def _of_remote(leader: "LogCopy | None", copies: "Sequence[LogCopy]", moments: Moments) -> Iterator[Doubt]:
    """Yield the offsets of the leader's log that are on no local disk, and of which no finished copy in remote storage is on record."""
    tiers = tiers_of(leader, copies, moments.remote_copies)
    for part in () if tiers is None else tiers.parts:
        if part.segment is not None or part.is_deleted:
            continue
        first, last = part.offsets
        yield Doubt(
            DoubtKind.REMOTE,
            f"whether remote storage holds offsets {first} to {last}, which no live log here holds and of which no finished copy is on record",
            f"{part.lacks.rstrip(',')} with the copies of its segments"
            if part.lacks
            else "a listing of what remote storage holds",
            offsets=part.offsets,
            is_input=bool(part.lacks),
        )
        return
    for there, _ in () if tiers is None else tiers.beside[:1]:
        yield Doubt(
            DoubtKind.REMOTE,
            f"what took offsets {there.first} to {there.last} out of the log, which a finished copy in remote storage holds",
            "the metadata log of that time, or an earlier copy of the log directories",
            offsets=there,
            is_input=False,
        )


def tiers_of(leader: "LogCopy | None", copies: "Sequence[LogCopy]", remote: RemoteCopies) -> Tiers | None:
    """Return where the offsets of the leader's log are, none where it is on disk from its start and nothing is on record of copies in remote storage."""
    if leader is None:
        return None
    view, replica = leader.view, leader.view.replica
    is_whole = view.log_start_offset >= view.content_start_offset
    if is_whole and replica.topic_partition not in remote.segments:
        return None
    held = [
        OffsetRange(copy.view.content_start_offset, copy.view.log_end_offset - 1)
        for copy in copies
        if copy.is_final and not copy.is_remnant and copy.view.log_end_offset > copy.view.content_start_offset
    ]
    held.append(OffsetRange(view.content_start_offset, view.log_end_offset - 1))
    log = OffsetRange(view.log_start_offset, view.log_end_offset - 1)
    return Tiers.of(replica.topic_partition, replica.topic_id, log, held, view.written_epochs, remote)
