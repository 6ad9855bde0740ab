"""One partition on its brokers, driven by events: produce, fetch, stop, start, time.

Each event returns the rows of the step table.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.protocol.election import isr_without
from kforensics.protocol.truncation import follower_truncation
from kforensics.protocol.visibility import Acks, accepts_write, follower_high_watermark
from kforensics.simulation.partition_control import ControlledPartition
from kforensics.simulation.replica import RemoteReplica, SimulatedBatch, SimulatedReplica
from kforensics.simulation.rows import BrokerEvent, ImpossibleEventError, Row

_STOPS = {"stop": "stops cleanly", "crash": "crashes", "power-loss": "loses power"}


@dataclass(slots=True)
class SimulatedPartition(ControlledPartition):
    """The partition with the events of clients, brokers and time."""

    def produce(self, records: Sequence[str] | int, acks: Acks = Acks.ALL) -> list[Row]:
        """Write one batch to the leader as a producer.

        Args:
            records: their values, or how many to make.

        Raises:
            ImpossibleEventError: there is no leader.
        """
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
        """Fetch once as a follower: request, the leader learns its log end, response, append, high watermark.

        Args:
            follower_id: the broker, running and no leader.

        Raises:
            ImpossibleEventError: it can't fetch, or there is no leader.
        """
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
        """Let a follower find where its log diverges from the leader's, and truncate there.

        Args:
            follower_id: the broker, running and no leader.

        Raises:
            ImpossibleEventError: it can't ask, or there is no leader.
        """
        follower, leader = self._follower_and_leader(follower_id)
        outcome = follower_truncation(
            follower.log_state(), leader.log_state(), protocol=self.protocol, rules=follower.rules
        )
        return [self.truncation(follower, outcome)]

    def stop(self, brokers: Iterable[int], *, kind: str = "stop") -> list[Row]:
        """Stop brokers at the same moment.

        Args:
            kind: `stop` is clean, `crash` loses memory, `power-loss` also the unflushed tail.

        Raises:
            ImpossibleEventError: one of them is not running, or has no replica.
        """
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
        """Start a broker: it loads its log and follows, or becomes leader if the controller has waited for it.

        Raises:
            ImpossibleEventError: it is running, or has no replica.
        """
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
        """Crash and restart a follower before its session ends: the controller does not notice, and the ISR stays.

        Raises:
            ImpossibleEventError: it is not running, or leads.
        """
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
        """Checkpoint a broker's high watermark.

        Returns:
            One row, which shows the partition afterwards.

        Raises:
            ImpossibleEventError: it is not running.
        """
        self._running(broker).checkpoint_high_watermark()
        return [self.row(f"broker {broker} checkpoints its HW", broker)]

    def flush(self, broker: int) -> list[Row]:
        """Flush a broker's log.

        Returns:
            One row, which shows the partition afterwards.

        Raises:
            ImpossibleEventError: it is not running.
        """
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
