"""A simulated partition: its controller with leader and ISR, and its replicas, which write, fetch and truncate.

Every rule is in `protocol/`; this module decides only when it is applied.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kforensics.damage import Absent
from kforensics.protocol.election import (
    Acks,
    ControllerKind,
    ElectionKind,
    PartitionRegistration,
    accepts_write,
    elect,
    elect_preferred,
    follower_high_watermark,
    is_in_sync_by_messages,
    is_in_sync_by_time,
    isr_with,
    isr_without,
    leader_high_watermark,
    may_join_isr,
)
from kforensics.protocol.truncation import ProtocolName, TruncationOutcome, follower_truncation
from kforensics.protocol.versions import PROTOCOL_RULES
from kforensics.simulation.replica import (
    Alignment,
    BrokerEvent,
    CommitTruth,
    ImpossibleEventError,
    NumberedRecord,
    RemoteReplica,
    ReplicaRow,
    RoleChange,
    Row,
    Settings,
    SimulatedBatch,
    SimulatedReplica,
)

MOST_RECORDS_SHOWN = 12
"""The longest log whose records a row lists."""


_STOPS = {"stop": "stops cleanly", "crash": "crashes", "power-loss": "loses power"}


@dataclass(slots=True)
class SimulatedPartition:
    """The partition, its replicas, its history so far, the truth about what was committed, and the events of clients, brokers and time."""

    brokers: tuple[int, ...]
    protocol: ProtocolName
    settings: Settings = field(default_factory=Settings)
    now_ms: int = 0
    replicas: dict[int, SimulatedReplica] = field(default_factory=dict)
    registration: PartitionRegistration = field(init=False)
    truth: CommitTruth = field(default_factory=CommitTruth)
    elections: list[tuple[int, ElectionKind, PartitionRegistration]] = field(default_factory=list)
    registrations: list[tuple[int, PartitionRegistration]] = field(default_factory=list)
    """Every registration with its time, from the first on."""
    broker_events: list[BrokerEvent] = field(default_factory=list)
    role_changes: list[RoleChange] = field(default_factory=list)
    truncations: list[Alignment] = field(default_factory=list)
    _written: int = 0
    _checkpointed_ms: int = 0
    _recovery_points_ms: int = 0
    _follower: int | Absent = Absent.NOT_APPLICABLE

    def __post_init__(self) -> None:
        self.now_ms = self._checkpointed_ms = self._recovery_points_ms = self.settings.start_time_ms
        protocol = PROTOCOL_RULES[self.protocol]
        for broker in self.brokers:
            self.replicas[broker] = SimulatedReplica(
                broker_id=broker, keeps_epochs=protocol.keeps_epochs, rules=protocol.epoch_rules
            )
        self.registration = PartitionRegistration(
            replicas=self.brokers, isr=self.brokers, leader=self.brokers[0], leader_epoch=0
        )
        self.registrations.append((self.now_ms, self.registration))
        self.replicas[self.brokers[0]].become_leader(0, self.brokers[1:], self.now_ms)

    @property
    def leader(self) -> SimulatedReplica | None:
        """Return the leader, or None if there is none or it is not running."""
        leader = self.registration.leader
        if isinstance(leader, Absent) or not self.replicas[leader].is_running:
            return None
        return self.replicas[leader]

    @property
    def live(self) -> set[int]:
        """Return the running brokers."""
        return {broker for broker, replica in self.replicas.items() if replica.is_running}

    def elect(self, *, preferred: bool = False, unclean: bool | None = None) -> list[Row]:
        """Let the controller elect a leader, and return the rows of what follows; none where the leader stays."""
        controller = ControllerKind.KRAFT if PROTOCOL_RULES[self.protocol].is_kraft else ControllerKind.ZOOKEEPER
        if preferred:
            outcome = elect_preferred(self.registration, self.live, controller=controller)
        else:
            outcome = elect(
                self.registration,
                self.live,
                unclean_allowed=self.settings.unclean_leader_election if unclean is None else unclean,
                controller=controller,
                uses_elr=self.settings.eligible_leader_replicas,
            )
        if outcome.kind is ElectionKind.UNCHANGED:
            return []
        elected = outcome.partition
        if outcome.kind is ElectionKind.CLEAN:
            elected = isr_without(elected, [member for member in elected.isr if member not in self.live])
        self.register(elected)
        self.elections.append((self.now_ms, outcome.kind, elected))
        leader = elected.leader
        if isinstance(leader, Absent):
            return [self.row("no replica can lead: the partition stays offline", Absent.NOT_APPLICABLE)]
        words = {
            ElectionKind.UNCLEAN: " uncleanly",
            ElectionKind.LAST_KNOWN: " as the last known leader, uncleanly",
            ElectionKind.ELIGIBLE: " out of the ELR",
            ElectionKind.PREFERRED: " as the preferred leader",
        }.get(outcome.kind, "")
        others = tuple(other for other in self.brokers if other != leader)
        self.replicas[leader].become_leader(elected.leader_epoch, others, self.now_ms)
        self._take_role(self.replicas[leader])
        self._follower = Absent.NOT_APPLICABLE
        self.truth.elected()
        rows = [self.row(f"broker {leader} is elected{words}", leader)]
        self.raise_high_watermark(self.replicas[leader])
        for other in others:
            if self.replicas[other].is_running:
                rows += self.follow(self.replicas[other])
        return rows

    def follow(self, replica: SimulatedReplica) -> list[Row]:
        """Make a replica a follower; before KIP-101 it truncates to its high watermark at once."""
        replica.needs_alignment = True
        self._take_role(replica)
        if PROTOCOL_RULES[self.protocol].keeps_epochs:
            return []
        # ReplicaManager.makeFollowers truncates at once, before the follower asks the leader for anything.
        outcome = follower_truncation(replica.log_state(), replica.log_state(), protocol=self.protocol)
        return [self.truncation(replica, outcome, is_done=False)]

    def _take_role(self, replica: SimulatedReplica) -> None:
        self.role_changes.append(
            RoleChange(
                self.now_ms, replica.broker_id, self.registration, replica.log_end_offset, replica.high_watermark
            )
        )

    def truncation(self, follower: SimulatedReplica, outcome: TruncationOutcome, *, is_done: bool = True) -> Row:
        """Apply a truncation to a follower, note it, and return its row.

        Args:
            is_done: whether the follower has asked the leader already, as it has not before KIP-101.
        """
        before = follower.log_end_offset
        leader = self.registration.leader
        assert not isinstance(leader, Absent)
        self.truncations.append(
            Alignment(
                time_ms=self.now_ms,
                follower=follower.broker_id,
                leader=leader,
                leader_epoch=self.registration.leader_epoch,
                log_end_offset=before,
                outcome=outcome,
            )
        )
        follower.take_over(outcome.after)
        follower.needs_alignment = not is_done or outcome.endless
        truncation = (
            "truncates nothing" if isinstance(outcome.offset, Absent) else f"truncates {before} to {outcome.offset}"
        )
        return self.row(f"broker {follower.broker_id} follows, {truncation}", follower.broker_id, outcome)

    def strip_after_unclean_shutdown(self, broker: int) -> list[Row]:
        """Remove a broker that returned after an unclean shutdown from the ELR (KIP-966); no row where it was not in it."""
        before = self.registration
        without = tuple(member for member in before.eligible_leader_replicas if member != broker)
        if without == before.eligible_leader_replicas:
            return []
        self.register(replace(before, eligible_leader_replicas=without, partition_epoch=before.partition_epoch + 1))
        return [self.row(f"controller removes broker {broker} from the ELR: unclean shutdown", broker)]

    def raise_high_watermark(self, leader: SimulatedReplica) -> None:
        """Let the leader raise its high watermark as far as its ISR allows."""
        isr, before = self.registration.isr, leader.high_watermark
        ends = [leader.log_end_offset if b == leader.broker_id else leader.remotes[b].log_end_offset for b in isr]
        leader.high_watermark = leader_high_watermark(
            leader.high_watermark,
            ends,
            isr_size=len(isr),
            min_insync_replicas=self.settings.min_insync_replicas,
            strict_min_isr=self.settings.strict_min_isr,
        )
        self.truth.raised(leader, before)
        self.note_copies(leader)

    def note_copies(self, leader: SimulatedReplica) -> None:
        """Note what the whole ISR holds, if the ISR is large enough to commit."""
        isr = self.registration.isr
        if len(isr) >= self.settings.min_insync_replicas or not self.settings.strict_min_isr:
            others = [self.replicas[broker] for broker in isr if broker != leader.broker_id]
            self.truth.copied([leader, *others])

    def expand_isr(self, leader: SimulatedReplica, follower_id: int, offset: int) -> list[Row]:
        """Add a follower that has caught up, fetching at its log end offset, to the ISR."""
        joins = follower_id not in self.registration.isr and may_join_isr(
            offset,
            leader.high_watermark,
            leader.epoch_start_offset,
            needs_epoch_start=PROTOCOL_RULES[self.protocol].is_after_2_0_1,
        )
        if not joins:
            return []
        self.register(
            isr_with(
                self.registration,
                follower_id,
                min_insync_replicas=self.settings.min_insync_replicas,
                uses_elr=self.settings.eligible_leader_replicas,
            )
        )
        leader.remotes[follower_id].caught_up_ms = self.now_ms
        return [self.row(f"broker {follower_id} joins the ISR", follower_id)]

    def shrink_isr(self) -> list[Row]:
        """Remove lagging followers from the ISR."""
        leader = self.leader
        if leader is None:
            return []
        leaving = [
            broker for broker in self.registration.isr if broker != leader.broker_id and self._lags(leader, broker)
        ]
        if not leaving:
            return []
        self.register(
            isr_without(
                self.registration,
                leaving,
                min_insync_replicas=self.settings.min_insync_replicas,
                uses_elr=self.settings.eligible_leader_replicas,
            )
        )
        self.raise_high_watermark(leader)
        return [self.row(f"broker {broker} leaves the ISR", broker) for broker in leaving]

    def _lags(self, leader: SimulatedReplica, broker: int) -> bool:
        remote = leader.remotes[broker]
        if remote.log_end_offset >= leader.log_end_offset:
            return False
        in_time = is_in_sync_by_time(
            lag_ms=self.now_ms - remote.caught_up_ms, lag_time_max_ms=self.settings.lag_time_max_ms
        )
        most = self.settings.lag_max_messages
        in_number = isinstance(most, Absent) or is_in_sync_by_messages(
            lag_messages=leader.log_end_offset - remote.log_end_offset, lag_max_messages=most
        )
        return not (in_time and in_number)

    def register(self, registration: PartitionRegistration) -> None:
        """Note a new state of the partition, whose partition epoch is set: one record of the controller, however many fields it changes, and none for the same state."""
        recorded = self.registrations[-1][1]
        if registration != recorded:
            self.registration = replace(registration, partition_epoch=recorded.partition_epoch + 1)
            self.registrations.append((self.now_ms, self.registration))

    def known(self, broker: int) -> SimulatedReplica:
        """Return the replica on a broker."""
        if broker not in self.replicas:
            raise ImpossibleEventError(f"there is no broker {broker}")
        return self.replicas[broker]

    def row(
        self, event: str, broker: int | Absent, truncation: TruncationOutcome | Absent = Absent.NOT_APPLICABLE
    ) -> Row:
        """Return the row of the step table for the last event."""
        leader = self.registration.leader
        follower = self._follower
        if isinstance(follower, Absent) or follower == leader:
            others = [other for other in self.brokers if other != leader]
            follower = others[0] if others else Absent.NOT_APPLICABLE
        remote: int | Absent = Absent.NOT_APPLICABLE
        if not isinstance(leader, Absent) and not isinstance(follower, Absent):
            known = self.replicas[leader].remotes.get(follower)
            remote = known.log_end_offset if known else Absent.UNKNOWN
        return Row(
            event=event,
            broker_id=broker,
            time_ms=self.now_ms,
            leader=leader,
            leader_epoch=self.registration.leader_epoch,
            isr=self.registration.isr,
            follower=follower,
            remote_log_end_offset=remote,
            replicas=tuple(_standing(replica) for replica in self.replicas.values()),
            truncation=truncation,
        )

    def produce(self, records: Sequence[str] | int, acks: Acks = Acks.ALL) -> list[Row]:
        """Write one batch to the leader as a producer."""
        leader = self._leader_or_refuse("a producer needs a leader")
        if not accepts_write(
            acks, isr_size=len(self.registration.isr), min_insync_replicas=self.settings.min_insync_replicas
        ):
            return [self.row("producer is refused: NOT_ENOUGH_REPLICAS", leader.broker_id)]
        if isinstance(records, int):
            records = [f"m{self._written + index}" for index in range(records)]
        self._written += len(records)
        base_offset = leader.log_end_offset
        batch = SimulatedBatch(base_offset, tuple(records), self.registration.leader_epoch, self.now_ms)
        leader.append(batch)
        self.truth.written(batch, acks)
        self.raise_high_watermark(leader)
        rows = [self.row("producer writes", leader.broker_id)]
        return rows + self.shrink_isr()

    def fetch(self, follower_id: int) -> list[Row]:
        """Fetch once as a follower: request, the leader learns its log end, response, append, high watermark."""
        follower, leader = self._follower_and_leader(follower_id)
        rows = self.align(follower_id) if follower.needs_alignment else []
        offset = follower.log_end_offset
        remote = leader.remotes.setdefault(follower_id, RemoteReplica())
        remote.log_end_offset = offset
        if offset >= leader.log_end_offset:
            remote.caught_up_ms = self.now_ms
        elif offset >= remote.fetched_end:
            # It holds everything that the leader had at the previous fetch, so it was caught up then (`Replica.updateFetchState`).
            remote.caught_up_ms = max(remote.caught_up_ms, remote.fetched_ms)
        remote.fetched_end, remote.fetched_ms = leader.log_end_offset, self.now_ms
        rows.append(self.row(f"follower fetches at {offset}", follower_id))
        rows += self.expand_isr(leader, follower_id, offset)
        self.raise_high_watermark(leader)
        rows.append(self.row("leader updates HW", leader.broker_id))
        answered_high_watermark = leader.high_watermark
        answer = leader.batches_above(offset)
        if answer and not follower.keeps_epochs:
            answer[0] = answer[0].part(offset, answer[0].end_offset)
        if answer and answer[0].base_offset < offset:
            # UnexpectedAppendOffsetException: a truncation inside a batch leaves a log end at which no batch begins.
            rows.append(self.row("leader responds, follower can't append below its log end", follower_id))
            return rows
        for batch in answer:
            follower.append(batch)
        self.note_copies(leader)
        rows.append(self.row("leader responds, follower appends" if answer else "leader responds", follower_id))
        follower.high_watermark = follower_high_watermark(follower.log_end_offset, answered_high_watermark)
        rows.append(self.row("follower updates HW", follower_id))
        return rows

    def align(self, follower_id: int) -> list[Row]:
        """Let a follower find where its log diverges from the leader's, and truncate there."""
        follower, leader = self._follower_and_leader(follower_id)
        outcome = follower_truncation(
            follower.log_state(), leader.log_state(), protocol=self.protocol, rules=follower.rules
        )
        return [self.truncation(follower, outcome)]

    def stop(self, brokers: Iterable[int], *, kind: str = "stop") -> list[Row]:
        """Stop brokers at the same moment: `stop` is clean, `crash` loses memory, `power-loss` also the unflushed tail."""
        stopping = tuple(brokers)
        for replica in [self._running(broker) for broker in stopping]:
            self.broker_events.append(BrokerEvent(self.now_ms, replica.broker_id, kind))
            {"stop": replica.stop_cleanly, "crash": replica.crash, "power-loss": replica.lose_power}[kind]()
        leaves = [broker for broker in stopping if broker in self.registration.isr]
        stays = [broker for broker in self.registration.isr if broker not in stopping]
        # If all members stop at once, no leader is left that could remove them from the ISR.
        for broker in leaves if stays or self.settings.eligible_leader_replicas else ():
            # A controller fences one broker after the other: the last one of a large enough ISR alone is eligible.
            self.registration = isr_without(
                self.registration,
                [broker],
                min_insync_replicas=self.settings.min_insync_replicas,
                uses_elr=self.settings.eligible_leader_replicas,
                unclean_shutdown=stopping if kind == "power-loss" else (),
            )
        rows = [self.row(f"broker {broker} {_STOPS[kind]}", broker) for broker in stopping]
        if self.leader is not None:
            self.raise_high_watermark(self.leader)
        rows += self.elect()
        self.register(self.registration)
        return rows

    def start(self, broker: int) -> list[Row]:
        """Start a broker: it loads its log and follows, or becomes leader if the controller has waited for it."""
        replica = self.known(broker)
        if replica.is_running:
            raise ImpossibleEventError(f"broker {broker} is already running")
        self.broker_events.append(BrokerEvent(self.now_ms, broker, "start"))
        was_clean = replica.stopped_cleanly
        replica.start()
        rows = [self.row(f"broker {broker} starts", broker)]
        if not was_clean and self.settings.eligible_leader_replicas and self.registration.leader != broker:
            rows += self.strip_after_unclean_shutdown(broker)
        rows += self.elect()
        if self.registration.leader != broker and self.leader is not None:
            rows += self.follow(replica)
        return rows

    def restart(self, broker: int) -> list[Row]:
        """Crash and restart a follower before its session ends: the controller does not notice, and the ISR stays."""
        replica = self._running(broker)
        if self.registration.leader == broker:
            raise ImpossibleEventError(f"broker {broker} leads: its restart is noticed")
        replica.crash()
        replica.start()
        rows = [self.row(f"broker {broker} restarts", broker)]
        return rows + (self.follow(replica) if self.leader is not None else [])

    def advance(self, milliseconds: int) -> list[Row]:
        """Advance the time: both checkpoints are written when they are due, and followers that fetched too long ago leave the ISR."""
        self.now_ms += milliseconds
        running = [self.replicas[broker] for broker in self.live]
        if self.now_ms - self._checkpointed_ms >= self.settings.checkpoint_interval_ms:
            self._checkpointed_ms = self.now_ms
            for replica in running:
                replica.checkpoint_high_watermark()
        if self.now_ms - self._recovery_points_ms >= self.settings.recovery_point_interval_ms:
            self._recovery_points_ms = self.now_ms
            for replica in running:
                replica.checkpoint_recovery_point()
        rows = [self.row(f"{milliseconds} ms pass", Absent.NOT_APPLICABLE)]
        return rows + self.shrink_isr()

    def checkpoint(self, broker: int) -> list[Row]:
        """Checkpoint a broker's high watermark."""
        self._running(broker).checkpoint_high_watermark()
        return [self.row(f"broker {broker} checkpoints its HW", broker)]

    def flush(self, broker: int) -> list[Row]:
        """Flush a broker's log."""
        self._running(broker).flush()
        return [self.row(f"broker {broker} flushes its log", broker)]

    def say(self, words: str) -> list[Row]:
        """Add a comment between two steps."""
        return [self.row(words, Absent.NOT_APPLICABLE)._replace(is_scenario=True)]

    def _running(self, broker: int) -> SimulatedReplica:
        replica = self.known(broker)
        if not replica.is_running:
            raise ImpossibleEventError(f"broker {broker} is not running")
        return replica

    def _leader_or_refuse(self, why: str) -> SimulatedReplica:
        leader = self.leader
        if leader is None:
            raise ImpossibleEventError(f"{why}, and there is none")
        return leader

    def _follower_and_leader(self, follower_id: int) -> tuple[SimulatedReplica, SimulatedReplica]:
        follower = self._running(follower_id)
        leader = self._leader_or_refuse("a follower needs a leader")
        if leader is follower:
            raise ImpossibleEventError(f"broker {follower_id} leads and can't fetch from itself")
        self._follower = follower_id
        return follower, leader


def _standing(replica: SimulatedReplica) -> ReplicaRow:
    is_short = replica.log_end_offset <= MOST_RECORDS_SHOWN
    return ReplicaRow(
        broker_id=replica.broker_id,
        is_running=replica.is_running,
        log_end_offset=replica.log_end_offset,
        high_watermark=replica.high_watermark,
        epochs=replica.epochs,
        records=tuple(NumberedRecord(*one) for one in replica.records.items()) if is_short else Absent.UNKNOWN,
    )
