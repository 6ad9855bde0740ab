"""One partition over its brokers, moved on by events: producing, fetching, stopping, starting, electing, time.

Every rule is one of `protocol/`; here is only who applies it when. Each event returns the rows of the step table.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kforensics.damage import Absent
from kforensics.protocol.election import (
    ControllerKind,
    ElectionKind,
    PartitionRegistration,
    elect,
    elect_preferred,
    isr_with,
    isr_without,
)
from kforensics.protocol.outcome import ProtocolName, TruncationOutcome
from kforensics.protocol.truncation import follower_truncation
from kforensics.protocol.versions import epoch_rules_of_protocol
from kforensics.protocol.visibility import (
    Acks,
    accepts_write,
    follower_high_watermark,
    is_in_sync_by_messages,
    is_in_sync_by_time,
    leader_high_watermark,
    may_join_isr,
)
from kforensics.simulation.commit_truth import CommitTruth
from kforensics.simulation.replica import RemoteReplica, SimulatedBatch, SimulatedReplica
from kforensics.simulation.rows import Alignment, BrokerEvent, ImpossibleEventError, ReplicaRow, Row, Settings

_STOPS = {"stop": "stops cleanly", "crash": "crashes", "power-loss": "loses power"}


@dataclass(slots=True)
class SimulatedPartition:
    """The partition, its replicas, and the truth about what was committed."""

    brokers: tuple[int, ...]
    protocol: ProtocolName
    settings: Settings = field(default_factory=Settings)
    now_ms: int = 0
    replicas: dict[int, SimulatedReplica] = field(default_factory=dict)
    registration: PartitionRegistration = field(init=False)
    truth: CommitTruth = field(default_factory=CommitTruth)
    elections: list[tuple[int, ElectionKind, PartitionRegistration]] = field(default_factory=list)
    registrations: list[tuple[int, PartitionRegistration]] = field(default_factory=list)
    """Every registration with its time, the first included."""
    broker_events: list[BrokerEvent] = field(default_factory=list)
    truncations: list[Alignment] = field(default_factory=list)
    _written: int = 0
    _checkpointed_ms: int = 0
    _follower: int | Absent = Absent.NOT_APPLICABLE

    def __post_init__(self) -> None:
        self.now_ms = self._checkpointed_ms = self.settings.start_time_ms
        rules = epoch_rules_of_protocol(self.protocol)
        for broker in self.brokers:
            self.replicas[broker] = SimulatedReplica(
                broker_id=broker, keeps_epochs=self.protocol is not ProtocolName.HW, rules=rules
            )
        self.registration = PartitionRegistration(
            replicas=self.brokers, isr=self.brokers, leader=self.brokers[0], leader_epoch=0
        )
        self.registrations.append((self.now_ms, self.registration))
        self.replicas[self.brokers[0]].become_leader(0, self.brokers[1:], self.now_ms)

    @property
    def leader(self) -> SimulatedReplica | None:
        """The leader, where there is one and it runs."""
        leader = self.registration.leader
        if isinstance(leader, Absent) or not self.replicas[leader].is_running:
            return None
        return self.replicas[leader]

    @property
    def live(self) -> set[int]:
        """The brokers that run."""
        return {broker for broker, replica in self.replicas.items() if replica.is_running}

    def produce(self, records: Sequence[str] | int, acks: Acks = Acks.ALL) -> list[Row]:
        """A producer writes one batch to the leader."""
        leader = self._leader_or_refuse("a producer needs a leader")
        if not accepts_write(
            acks, isr_size=len(self.registration.isr), min_insync_replicas=self.settings.min_insync_replicas
        ):
            return [self._row("producer is refused: NOT_ENOUGH_REPLICAS", leader.broker_id)]
        if isinstance(records, int):
            records = [f"m{self._written + index}" for index in range(records)]
        self._written += len(records)
        base_offset = leader.log_end_offset
        batch = SimulatedBatch(base_offset, tuple(records), self.registration.leader_epoch, self.now_ms)
        leader.append(batch)
        self.truth.written(batch, acks)
        self._raise_high_watermark(leader)
        rows = [self._row("producer writes", leader.broker_id)]
        return rows + self._shrink_isr()

    def fetch(self, follower_id: int) -> list[Row]:
        """One fetch of a follower: ask, the leader learns its log end, answer, append, high watermark."""
        follower, leader = self._follower_and_leader(follower_id)
        rows = self.align(follower_id) if follower.needs_alignment else []
        offset = follower.log_end_offset
        remote = leader.remotes.setdefault(follower_id, RemoteReplica())
        remote.log_end_offset = offset
        if offset >= leader.log_end_offset:
            remote.caught_up_ms = self.now_ms
        elif offset >= remote.fetched_end:
            # It holds all that the leader had at the previous fetch, so it was caught up then (`Replica.updateFetchState`).
            remote.caught_up_ms = max(remote.caught_up_ms, remote.fetched_ms)
        remote.fetched_end, remote.fetched_ms = leader.log_end_offset, self.now_ms
        rows.append(self._row(f"follower fetches at {offset}", follower_id))
        rows += self._expand_isr(leader, follower_id, offset)
        self._raise_high_watermark(leader)
        rows.append(self._row("leader updates HW", leader.broker_id))
        answered_high_watermark = leader.high_watermark
        answer = [batch for batch in leader.log if batch.end_offset > offset]
        if answer and not follower.keeps_epochs:
            answer[0] = answer[0].part(offset, answer[0].end_offset)
        if answer and answer[0].base_offset < offset:
            # UnexpectedAppendOffsetException: a cut inside a batch leaves a log end at which no batch begins.
            rows.append(self._row("leader responds, follower can't append below its log end", follower_id))
            return rows
        for batch in answer:
            follower.append(batch)
        rows.append(self._row("leader responds, follower appends" if answer else "leader responds", follower_id))
        follower.high_watermark = follower_high_watermark(follower.log_end_offset, answered_high_watermark)
        rows.append(self._row("follower updates HW", follower_id))
        return rows

    def align(self, follower_id: int) -> list[Row]:
        """A follower finds where its log leaves the leader's, and cuts there."""
        follower, leader = self._follower_and_leader(follower_id)
        outcome = follower_truncation(
            follower.log_state(), leader.log_state(), protocol=self.protocol, rules=follower.rules
        )
        return [self._cut(follower, outcome)]

    def stop(self, brokers: Iterable[int], *, kind: str = "stop") -> list[Row]:
        """Brokers go at the same moment: `stop` is clean, `crash` loses memory, `power-loss` the unflushed tail too."""
        going = tuple(brokers)
        for broker in going:
            replica = self._known(broker)
            if not replica.is_running:
                message = f"broker {broker} is not running"
                raise ImpossibleEventError(message)
        for broker in going:
            replica = self.replicas[broker]
            self.broker_events.append(BrokerEvent(self.now_ms, broker, kind))
            {"stop": replica.stop_cleanly, "crash": replica.crash, "power-loss": replica.lose_power}[kind]()
        leaves = [broker for broker in going if broker in self.registration.isr]
        stays = [broker for broker in self.registration.isr if broker not in going]
        if stays or self.settings.eligible_leader_replicas:
            # Where all members go at once, nobody is left who could take them out of the ISR.
            self._register(
                isr_without(
                    self.registration,
                    leaves,
                    min_insync_replicas=self.settings.min_insync_replicas,
                    uses_elr=self.settings.eligible_leader_replicas,
                    unclean_shutdown=going if kind == "power-loss" else (),
                )
            )
        rows = [self._row(f"broker {broker} {_STOPS[kind]}", broker) for broker in going]
        if self.leader is not None:
            self._raise_high_watermark(self.leader)
        return rows + self.elect()

    def start(self, broker: int) -> list[Row]:
        """A broker comes back, loads its log, and follows, or leads where the controller has waited for it."""
        replica = self._known(broker)
        if replica.is_running:
            message = f"broker {broker} is already running"
            raise ImpossibleEventError(message)
        self.broker_events.append(BrokerEvent(self.now_ms, broker, "start"))
        was_clean = replica.stopped_cleanly
        replica.start()
        rows = [self._row(f"broker {broker} starts", broker)]
        if not was_clean and self.settings.eligible_leader_replicas and self.registration.leader != broker:
            rows += self._strip_after_unclean_shutdown(broker)
        rows += self.elect()
        if self.registration.leader != broker and self.leader is not None:
            rows += self._follow(replica)
        return rows

    def restart(self, broker: int) -> list[Row]:
        """A follower crashes and is back before its session ends: the controller has not noticed, the ISR stays."""
        replica = self._running(broker)
        if self.registration.leader == broker:
            message = f"broker {broker} leads: its restart is noticed"
            raise ImpossibleEventError(message)
        replica.crash()
        replica.start()
        rows = [self._row(f"broker {broker} restarts", broker)]
        return rows + (self._follow(replica) if self.leader is not None else [])

    def elect(self, *, preferred: bool = False, unclean: bool | None = None) -> list[Row]:
        """Let the controller decide; `unclean` overrides the setting for this once."""
        controller = ControllerKind.KRAFT if self.protocol is ProtocolName.KIP_595 else ControllerKind.ZOOKEEPER
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
        self._register(outcome.partition)
        gone = [member for member in self.registration.isr if member not in self.live]
        if outcome.kind is ElectionKind.CLEAN and gone:
            self._register(isr_without(self.registration, gone))
        self.elections.append((self.now_ms, outcome.kind, outcome.partition))
        leader = outcome.partition.leader
        if isinstance(leader, Absent):
            return [self._row("nobody can lead: the partition waits", Absent.NOT_APPLICABLE)]
        words = {
            ElectionKind.UNCLEAN: " uncleanly",
            ElectionKind.LAST_KNOWN: " as the last known leader, uncleanly",
            ElectionKind.ELIGIBLE: " out of the ELR",
            ElectionKind.PREFERRED: " as the preferred leader",
        }.get(outcome.kind, "")
        others = tuple(other for other in self.brokers if other != leader)
        self.replicas[leader].become_leader(outcome.partition.leader_epoch, others, self.now_ms)
        self._follower = Absent.NOT_APPLICABLE
        self.truth.elected(self.replicas[leader])
        rows = [self._row(f"broker {leader} is elected{words}", leader)]
        self._raise_high_watermark(self.replicas[leader])
        for other in others:
            if self.replicas[other].is_running:
                rows += self._follow(self.replicas[other])
        return rows

    def advance(self, milliseconds: int) -> list[Row]:
        """Time passes: high watermarks reach their checkpoint, and who fetched too long ago leaves the ISR."""
        self.now_ms += milliseconds
        if self.now_ms - self._checkpointed_ms >= self.settings.checkpoint_interval_ms:
            self._checkpointed_ms = self.now_ms
            for broker in self.live:
                self.replicas[broker].checkpoint_high_watermark()
        rows = [self._row(f"{milliseconds} ms pass", Absent.NOT_APPLICABLE)]
        return rows + self._shrink_isr()

    def checkpoint(self, broker: int) -> list[Row]:
        """A broker writes its high watermark down."""
        self._running(broker).checkpoint_high_watermark()
        return [self._row(f"broker {broker} checkpoints its HW", broker)]

    def flush(self, broker: int) -> list[Row]:
        """A broker writes its log to disk."""
        self._running(broker).flush()
        return [self._row(f"broker {broker} flushes its log", broker)]

    def say(self, words: str) -> list[Row]:
        """Words between two steps."""
        return [self._row(words, Absent.NOT_APPLICABLE)._replace(is_story=True)]

    def _follow(self, replica: SimulatedReplica) -> list[Row]:
        replica.needs_alignment = True
        if self.protocol is not ProtocolName.HW:
            return []
        # ReplicaManager.makeFollowers cuts at once, before the leader is asked for anything.
        outcome = follower_truncation(replica.log_state(), replica.log_state(), protocol=ProtocolName.HW)
        return [self._cut(replica, outcome, is_done=False)]

    def _cut(self, follower: SimulatedReplica, outcome: TruncationOutcome, *, is_done: bool = True) -> Row:
        before = follower.log_end_offset
        leader = self.registration.leader
        assert not isinstance(leader, Absent)
        self.truncations.append(
            Alignment(
                time_ms=self.now_ms,
                follower=follower.broker_id,
                leader=leader,
                leader_epoch=self.registration.leader_epoch,
                partition_epoch=self.registration.partition_epoch,
                log_end_offset=before,
                high_watermark=follower.high_watermark,
                outcome=outcome,
            )
        )
        follower.take_over(outcome.after)
        follower.needs_alignment = not is_done or outcome.endless
        cut = "cuts nothing" if isinstance(outcome.offset, Absent) else f"cuts {before} to {outcome.offset}"
        return self._row(f"broker {follower.broker_id} follows and {cut}", follower.broker_id, outcome)

    def _strip_after_unclean_shutdown(self, broker: int) -> list[Row]:
        before = self.registration
        without = tuple(member for member in before.eligible_leader_replicas if member != broker)
        if without == before.eligible_leader_replicas:
            return []
        self._register(replace(before, eligible_leader_replicas=without, partition_epoch=before.partition_epoch + 1))
        return [self._row(f"controller strikes broker {broker} off the ELR: unclean shutdown", broker)]

    def _raise_high_watermark(self, leader: SimulatedReplica) -> None:
        isr = self.registration.isr
        ends = [leader.log_end_offset if b == leader.broker_id else leader.remotes[b].log_end_offset for b in isr]
        leader.high_watermark = leader_high_watermark(
            leader.high_watermark,
            ends,
            isr_size=len(isr),
            min_insync_replicas=self.settings.min_insync_replicas,
            strict_min_isr=self.settings.strict_min_isr,
        )
        self.truth.raised(leader)

    def _expand_isr(self, leader: SimulatedReplica, follower_id: int, offset: int) -> list[Row]:
        joins = follower_id not in self.registration.isr and may_join_isr(
            offset, leader.high_watermark, leader.epoch_start_offset
        )
        if not joins:
            return []
        self._register(
            isr_with(
                self.registration,
                follower_id,
                min_insync_replicas=self.settings.min_insync_replicas,
                uses_elr=self.settings.eligible_leader_replicas,
            )
        )
        leader.remotes[follower_id].caught_up_ms = self.now_ms
        return [self._row(f"broker {follower_id} joins the ISR", follower_id)]

    def _shrink_isr(self) -> list[Row]:
        leader = self.leader
        if leader is None:
            return []
        leaving = [
            broker for broker in self.registration.isr if broker != leader.broker_id and self._lags(leader, broker)
        ]
        if not leaving:
            return []
        self._register(
            isr_without(
                self.registration,
                leaving,
                min_insync_replicas=self.settings.min_insync_replicas,
                uses_elr=self.settings.eligible_leader_replicas,
            )
        )
        self._raise_high_watermark(leader)
        return [self._row(f"broker {broker} leaves the ISR", broker) for broker in leaving]

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

    def _register(self, registration: PartitionRegistration) -> None:
        if registration != self.registration:
            self.registration = registration
            self.registrations.append((self.now_ms, registration))

    def _known(self, broker: int) -> SimulatedReplica:
        if broker not in self.replicas:
            message = f"there is no broker {broker}"
            raise ImpossibleEventError(message)
        return self.replicas[broker]

    def _running(self, broker: int) -> SimulatedReplica:
        replica = self._known(broker)
        if not replica.is_running:
            message = f"broker {broker} is not running"
            raise ImpossibleEventError(message)
        return replica

    def _leader_or_refuse(self, why: str) -> SimulatedReplica:
        leader = self.leader
        if leader is None:
            message = f"{why}, and there is none"
            raise ImpossibleEventError(message)
        return leader

    def _follower_and_leader(self, follower_id: int) -> tuple[SimulatedReplica, SimulatedReplica]:
        follower = self._running(follower_id)
        leader = self._leader_or_refuse("a follower needs a leader")
        if leader is follower:
            message = f"broker {follower_id} leads and can't fetch from itself"
            raise ImpossibleEventError(message)
        self._follower = follower_id
        return follower, leader

    def _row(
        self, event: str, broker: int | Absent, truncation: TruncationOutcome | Absent = Absent.NOT_APPLICABLE
    ) -> Row:
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
            replicas=tuple(
                ReplicaRow(broker, replica.is_running, replica.log_end_offset, replica.high_watermark, replica.epochs)
                for broker, replica in self.replicas.items()
            ),
            truncation=truncation,
        )
