"""Who leads, by which protocol the others follow, and where each of them truncates."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, Citation
from kforensics.protocol.truncation import (
    LogState,
    ProtocolName,
    TruncationOutcome,
    follower_truncation,
    leader_after_election,
    quorum_truncation,
)
from kforensics.protocol.versions import PROTOCOL_RULES, protocols_since
from kforensics.reconcile.committed.judge import CommitJudge, CommittedCounts, CommittedRun, count_runs
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.facts import Leadership
from kforensics.units import OffsetRange


class LeaderChoice(NamedTuple):
    """The replica taken as leader, and why."""

    view: LoadedLog
    leader_epoch: int | Absent
    source: str
    """`option`, `metadata`, the name of the log file that says it, such as `state-change.log`, or `inferred`."""
    reason: str
    is_known: bool
    """Some input names it; else it is guessed, and nothing that depends on it is certain."""
    tied_with: tuple[int | Absent, ...] = ()
    """Brokers whose logs speak for them as much, where it is guessed."""
    citations: tuple[Citation, ...] = ()

    @property
    def broker_id(self) -> int | Absent:
        """The broker that has the replica."""
        return self.view.replica.broker_id


class ProtocolChoice(NamedTuple):
    """The truncation protocol of a follower, and why."""

    name: ProtocolName
    reason: str
    alternatives: tuple[ProtocolName, ...] = ()
    """Protocols that it can be as well, where it is assumed."""
    halts_out_of_range: bool | Absent = False
    """Whether the broker halts where its log ends above the leader's, and truncates nothing."""


def choose_leader(
    views: Sequence[LoadedLog],
    *,
    wanted: int | None,
    leaderships: Sequence[Leadership],
    is_stopped: bool = False,
    has_newest: bool = False,
    outvoted: Collection[int | Absent] = (),
) -> LeaderChoice | None:
    """Return the leader from the option, else the newest metadata, else the highest last epoch and the longest log; none without live replicas.

    A record that is older than the logs names no leader: they hold leader epochs that it does not know.

    Args:
        is_stopped: no broker ran when the directories were copied: who stopped uncleanly leaves the ISR when it comes back (KIP-966).
        has_newest: the leaderships are those of now: a broker's copy of the metadata ends where the broker stopped.
        outvoted: brokers whose replicas are among the inputs, and which the logs of others keep from being elected.
    """
    if not views:
        return None
    by_broker = {view.replica.broker_id: view for view in views}
    if wanted is not None and wanted in by_broker:
        view = by_broker[wanted]
        return LeaderChoice(view, view.last_epoch, "option", "as given", is_known=True)
    newest = leaderships[-1] if leaderships else None
    asked = "" if wanted is None else f"broker {wanted} holds no replica here; "
    note = asked
    if newest is not None and not is_current(newest, views):
        note += f"the newest record is of leader epoch {newest.leader_epoch}, older than the logs; "
    elif newest is not None:
        led = by_broker.get(newest.leader) if not isinstance(newest.leader, Absent) else None
        source = source_of(newest)
        where = source if isinstance(newest.recorded_at, Absent) else f"metadata log, offset {newest.recorded_at}"
        instead = _eligible_instead(newest, led, by_broker) if is_stopped and led is not None else ()
        if led is not None and instead:
            return LeaderChoice(
                instead[0],
                newest.leader_epoch,
                source,
                f"{asked}{where}: {led.replica.owner} led and did not stop cleanly, so it leaves the ISR when it comes back,"
                f" and {instead[0].replica.owner} is eligible (KIP-966)",
                is_known=len(newest.eligible - {newest.leader}) == 1,
                citations=(newest.citation,),
            )
        if led is not None:
            return LeaderChoice(
                led, newest.leader_epoch, source, asked + where, is_known=True, citations=(newest.citation,)
            )
        returning = _next_leader(newest, leaderships, by_broker, is_stopped=is_stopped, has_newest=has_newest)
        if returning is not None:
            view, why, is_only = returning
            return LeaderChoice(
                view,
                newest.leader_epoch,
                source,
                f"{asked}{where}: it names no leader, and {view.replica.owner} is {why}",
                is_known=is_only,
                citations=(newest.citation,),
            )
        whose = "of which no replica is among the inputs"
        if newest.leader in outvoted:
            whose = "whose log here is older than those of a majority"
        note += (
            "the newest record names no leader; "
            if isinstance(newest.leader, Absent)
            else f"the newest record names broker {newest.leader}, {whose}; "
        )
    best = max(views, key=_strength)
    tied = [view.replica.broker_id for view in views if view is not best and _strength(view)[:2] == _strength(best)[:2]]
    return LeaderChoice(
        best,
        best.last_epoch,
        "inferred",
        f"{note}highest last leader epoch, then the longest log",
        is_known=False,
        tied_with=tuple(tied),
        citations=(newest.citation,) if newest is not None else (),
    )


def is_current(state: Leadership, views: Sequence[LoadedLog]) -> bool:
    """Whether no log holds a leader epoch that is newer than a recorded state of the partition."""
    known = [epoch for view in views if isinstance(epoch := view.last_epoch, int)]
    return state.leader_epoch >= max(known, default=-1)


def source_of(state: Leadership) -> str:
    """Return the source of a recorded state: `metadata`, `quorum-state`, or the name of a log file without the suffix that rolling adds."""
    if not isinstance(state.recorded_at, Absent):
        return "metadata"
    name = state.citation.path.rpartition("/")[2]
    return next(
        (kind for kind in ("state-change.log", "controller.log", "quorum-state") if name.startswith(kind)), "server.log"
    )


def _next_leader(
    newest: Leadership,
    leaderships: Sequence[Leadership],
    by_broker: Mapping[int | Absent, LoadedLog],
    *,
    is_stopped: bool,
    has_newest: bool,
) -> tuple[LoadedLog, str, bool] | None:
    """Return the replica that leads a partition without a leader when it returns, why, and whether no other one can be elected in its place: of the ISR the last leader, else by assignment; else one of the ELR; else the last known leader (KIP-966).

    A broker that did not stop cleanly is taken out of the ELR when it registers; one without a marker may have been copied while it ran.
    """
    if not isinstance(newest.leader, Absent) or isinstance(newest.isr, Absent):
        return None
    last = next((state.leader for state in reversed(leaderships) if not isinstance(state.leader, Absent)), None)
    order = () if isinstance(newest.replicas, Absent) else newest.replicas
    if newest.isr:
        found = (by_broker[b] for b in (last, *order) if b is not None and b in newest.isr and b in by_broker)
        view = next(found, None)
        return None if view is None else (view, "the next in its ISR", len(newest.isr) == 1)
    if newest.eligible - by_broker.keys() or not has_newest:
        return None
    clean = [b for b in order if b in newest.eligible and by_broker[b].replica.clean_shutdown]
    if clean:
        # Of several the first that is back is elected.
        only = by_broker[clean[0]] if len(clean) == 1 else None
        return None if only is None else (only, "in its ELR, which is elected cleanly (KIP-966)", True)
    known = [b for b in newest.last_known if b in by_broker]
    if len(newest.last_known) != 1 or not known or (newest.eligible and not is_stopped):
        return None
    view = by_broker[known[0]]
    if not is_stopped and not view.replica.clean_shutdown:
        return None  # it may have been copied while it ran
    empty = "ISR is empty, and ELR once it is back" if newest.eligible else "ISR and ELR are empty"
    why = f"the last known leader, which is elected uncleanly by itself: {empty} (KIP-966)"
    return view, why, True


def _eligible_instead(
    newest: Leadership, led: LoadedLog, by_broker: Mapping[int | Absent, LoadedLog]
) -> tuple[LoadedLog, ...]:
    """Return the eligible leader replicas, in the order of the assignment, where the last leader stopped uncleanly and no other replica is in sync."""
    leader = led.replica.broker_id
    if isinstance(newest.isr, Absent) or isinstance(newest.replicas, Absent) or led.replica.clean_shutdown:
        return ()
    if not isinstance(leader, int) or newest.isr != frozenset({leader}):
        return ()
    return tuple(
        by_broker[one] for one in newest.replicas if one in newest.eligible and one != leader and one in by_broker
    )


def _strength(view: LoadedLog) -> tuple[int, int, int, int, int]:
    epoch = view.last_epoch
    broker = view.replica.broker_id
    return (
        -1 if isinstance(epoch, Absent) else epoch,
        view.log_end_offset,
        # A damaged log is no measure for the others where it need not be.
        -len(view.damaged),
        view.high_watermark,
        0 if isinstance(broker, Absent) else -broker,
    )


def choose_protocol(
    follower: LoadedLog,
    *,
    wanted: ProtocolName | None,
    is_kraft: bool,
    hint: ProtocolName | None = None,
    possible: Sequence[ProtocolName] = (),
) -> ProtocolChoice:
    """Return the protocol from the option, else from the message format, the broker version or the feature level, else the likeliest that is possible.

    Args:
        possible: what the broker's directory leaves possible, the likeliest first; empty where it shows nothing.
    """
    if wanted is not None:
        return ProtocolChoice(name=wanted, reason="as given")
    newest = newest_magic(follower)
    if newest is not None and newest < 2:
        return ProtocolChoice(name=ProtocolName.HW, reason=f"message format {newest} carries no leader epochs")
    if hint is not None:
        return ProtocolChoice(name=hint, reason="broker version in the log files")
    has_id = not isinstance(follower.replica.topic_id, Absent)
    if is_kraft or has_id:
        name, *others = protocols_since((2, 8))
        reason = "KRaft cluster" if is_kraft else "broker 2.8 or later (partition.metadata)"
        return ProtocolChoice(name=name, reason=reason, alternatives=tuple(others))
    if len(possible) == 1:
        return ProtocolChoice(name=possible[0], reason="broker version by the files of its log directories")
    if enters_epochs_without_batches(follower):
        # A leader older than 2.0.1 entered its epoch with its first batch (KAFKA-7415).
        possible = [name for name in possible or tuple(ProtocolName) if PROTOCOL_RULES[name].is_after_2_0_1]
    if newest is not None:
        # Batches of the newest format are written from 0.11 on only, and then epochs are compared.
        possible = [name for name in possible or tuple(reversed(ProtocolName)) if PROTOCOL_RULES[name].keeps_epochs]
    name, *others = possible or tuple(reversed(ProtocolName))
    return ProtocolChoice(name=name, reason="assumed: no input shows the broker version", alternatives=tuple(others))


def enters_epochs_without_batches(view: LoadedLog) -> bool:
    """Whether a checkpoint has a leader epoch of which the log holds no batch: a leader entered it when it was elected."""
    claimed = view.replica.checkpoint_epochs
    if isinstance(claimed, Absent) or not claimed:
        return False
    carried = {entry.leader_epoch for entry in view.batch_epochs}
    return any(entry.leader_epoch not in carried and entry.start_offset == view.log_end_offset for entry in claimed)


def newest_magic(view: LoadedLog) -> int | None:
    """Return the message format of the newest segment that holds batches, None of an empty log."""
    for segment in reversed(view.segments):
        if segment.magics:
            return max(segment.magics)
    return None


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
    """Return the protocol's answer for one follower, its leader, of a future replica the current one of its broker, taken as elected now in `new_epoch`."""
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
    rules = PROTOCOL_RULES[protocol].epoch_rules
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
    """Return the truncation with its records judged, none where nothing in the log is discarded; both logs hold the same up to the exclusive `same_until`."""
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
    """Return an epoch newer than all that any replica, its checkpoint or the metadata knows."""
    seen = [entry.leader_epoch for view in views for entry in (*view.epochs, *view.batch_epochs)]
    claimed = [
        entry.leader_epoch
        for view in views
        if not isinstance(view.replica.checkpoint_epochs, Absent)
        for entry in view.replica.checkpoint_epochs
    ]
    return 1 + max((*seen, *claimed, -1 if isinstance(known, Absent) else known, -1))
