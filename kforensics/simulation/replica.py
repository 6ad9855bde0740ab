"""One simulated replica: its log, its epoch cache, its two checkpoints, and what each kind of stop leaves of them.

Beside it is what no broker knows, which records were committed and which acknowledged, and the rows in which a history is told.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.protocol.election import Acks, PartitionRegistration, is_acknowledged
from kforensics.protocol.epochs import CURRENT_RULES, EpochRules, Epochs, assign
from kforensics.protocol.loading.disk import NEWEST_RULES
from kforensics.protocol.loading.load import KnownSegment, load_known_log
from kforensics.protocol.truncation import (
    LogState,
    TruncationOutcome,
    leader_after_election,
    loaded_high_watermark,
)
from kforensics.units import EpochEntry


class SimulatedBatch(NamedTuple):
    """A batch as a leader wrote it; followers hold the very same."""

    base_offset: int
    records: tuple[str, ...]
    leader_epoch: int
    timestamp_ms: int

    @property
    def end_offset(self) -> int:
        """The offset behind the last record."""
        return self.base_offset + len(self.records)

    def part(self, first: int, end: int) -> "SimulatedBatch":
        """Return the records from one offset up to another, exclusive one, if they can be separated: before magic 2 each is a message of its own."""
        skip = max(first - self.base_offset, 0)
        return self._replace(
            base_offset=self.base_offset + skip, records=self.records[skip : max(end - self.base_offset, 0)]
        )


@dataclass(slots=True)
class RemoteReplica:
    """The leader's state of a follower, from its fetches."""

    log_end_offset: int = 0
    caught_up_ms: int = 0
    """When the follower last held everything the leader had."""
    fetched_end: int = 0
    """The leader's log end at the previous fetch."""
    fetched_ms: int = 0


@dataclass(slots=True, kw_only=True)
class SimulatedReplica:
    """A replica on its broker: its state in memory and on disk."""

    broker_id: int
    keeps_epochs: bool = True
    """False before KIP-101: batches carry no epoch and there is no cache."""
    rules: EpochRules = CURRENT_RULES
    log: list[SimulatedBatch] = field(default_factory=list)
    log_end_offset: int = 0
    """The log end offset; it is above the last batch if a truncation split a batch, until the broker restarts."""
    epochs: Epochs = ()
    high_watermark: int = 0
    is_running: bool = True
    stopped_cleanly: bool = False
    needs_alignment: bool = False
    """Whether it follows a leader without having been truncated against its log yet."""
    checkpointed_high_watermark: int | Absent = Absent.NOT_WRITTEN
    flushed_end: int = 0
    """The offset up to which the log is flushed, so that it survives a power loss."""
    recovery_point: int = 0
    """The recovery point in `recovery-point-offset-checkpoint`."""
    remotes: dict[int, RemoteReplica] = field(default_factory=dict)
    epoch_start_offset: int = 0
    """The start offset of its epoch as leader."""

    @property
    def records(self) -> dict[int, str]:
        """Every record by its offset."""
        return {offset: record for batch in self.log for offset, record in enumerate(batch.records, batch.base_offset)}

    def batches_above(self, offset: int) -> list[SimulatedBatch]:
        """Return the batches that end above an offset, of which the first may begin below it, found from the end of the log."""
        found = []
        for batch in reversed(self.log):
            if batch.end_offset <= offset:
                break
            found.append(batch)
        return found[::-1]

    def records_from(self, offset: int) -> dict[int, str]:
        """Return the records at an offset and above, by offset."""
        return {
            at: record
            for batch in self.batches_above(offset)
            for at, record in enumerate(batch.records, batch.base_offset)
            if at >= offset
        }

    @property
    def file_end_offset(self) -> int:
        """Behind the last batch: the log end that a restart finds."""
        return self.log[-1].end_offset if self.log else 0

    def log_state(self) -> LogState:
        """Return the log as the protocol sees it."""
        return LogState(
            epochs=self.epochs,
            log_start_offset=0,
            log_end_offset=self.log_end_offset,
            high_watermark=self.high_watermark,
        )

    def append(self, batch: SimulatedBatch) -> None:
        """Append a batch at the log end; its epoch enters the cache."""
        if self.keeps_epochs:
            self.epochs = assign(self.epochs, batch.leader_epoch, batch.base_offset, self.rules)
        self.log.append(batch)
        self.log_end_offset = batch.end_offset

    def become_leader(self, leader_epoch: int, followers: tuple[int, ...], now_ms: int) -> None:
        """Begin a term: the epoch is entered by the rules of the version, nothing is known of the followers."""
        self.needs_alignment = False
        self.epoch_start_offset = self.log_end_offset
        if self.keeps_epochs:
            self.epochs = leader_after_election(self.log_state(), leader_epoch, rules=self.rules).epochs
        self.remotes = {follower: RemoteReplica(caught_up_ms=now_ms) for follower in followers}

    def take_over(self, state: LogState) -> None:
        """Apply a truncation to the log: the whole batch that holds the target is removed, and the log end offset is the target."""
        end = state.log_end_offset
        while self.log and self.log[-1].end_offset > end:
            truncation = self.log.pop()
            if truncation.base_offset < end and not self.keeps_epochs:
                self.log.append(truncation.part(truncation.base_offset, end))
        self.log_end_offset = end
        self.epochs = state.epochs
        assert not isinstance(state.high_watermark, Absent)
        self.high_watermark = state.high_watermark
        if self.flushed_end > self.log_end_offset:
            self.flushed_end = self.log_end_offset
            self.checkpoint_recovery_point()  # as `LogManager.truncateTo` does, so that it is never above the log end

    def checkpoint_high_watermark(self) -> None:
        """Write `replication-offset-checkpoint`."""
        self.checkpointed_high_watermark = self.high_watermark

    def checkpoint_recovery_point(self) -> None:
        """Write `recovery-point-offset-checkpoint`."""
        self.recovery_point = self.flushed_end

    def flush(self) -> None:
        """Write the page cache to disk; the recovery point is checkpointed later."""
        self.flushed_end = self.log_end_offset

    def stop_cleanly(self) -> None:
        """Flush, write the checkpoints and the clean shutdown file, and stop."""
        self.flush()
        self.checkpoint_recovery_point()
        self.checkpoint_high_watermark()
        self.is_running, self.stopped_cleanly = False, True

    def crash(self) -> None:
        """Kill the process: memory is lost, but the page cache still reaches the disk."""
        self.is_running, self.stopped_cleanly = False, False
        self.remotes = {}
        self._recall_high_watermark()

    def lose_power(self) -> None:
        """Lose power: the log loses everything that was not flushed."""
        while self.log and self.log[-1].end_offset > self.flushed_end:
            self.log.pop()
        self.crash()

    def start(self) -> None:
        """Load the log from disk by the rules of `protocol.loading`: epochs, log end and high watermark are what they leave."""
        self._recall_high_watermark()
        loaded = load_known_log(
            [self._known_segment()],
            clean_shutdown=self.stopped_cleanly,
            recovery_point=self.recovery_point,
            checkpoint_epochs=self.epochs,
            rules=replace(NEWEST_RULES, epochs=self.rules),
        ).state
        self.epochs, self.log_end_offset = loaded.epochs, loaded.log_end_offset
        self.high_watermark = loaded_high_watermark(
            self.checkpointed_high_watermark, loaded.log_start_offset, loaded.log_end_offset
        )
        self.is_running, self.stopped_cleanly = True, False

    def _known_segment(self) -> KnownSegment:
        epochs: list[EpochEntry] = []
        for batch in self.log if self.keeps_epochs else ():
            if not epochs or epochs[-1].leader_epoch != batch.leader_epoch:
                epochs.append(EpochEntry(batch.leader_epoch, batch.base_offset))
        end = self.file_end_offset
        return KnownSegment(base_offset=0, end_offset=end, recovered_end_offset=end, epochs=tuple(epochs))

    def _recall_high_watermark(self) -> None:
        """Forget memory: the log ends where its files end, and the high watermark is that of the checkpoint."""
        self.log_end_offset = self.file_end_offset
        self.flushed_end = min(self.flushed_end, self.log_end_offset)
        self.high_watermark = (
            self.log_state()._replace(high_watermark=self.checkpointed_high_watermark).loaded_high_watermark
        )


class NumberedRecord(NamedTuple):
    """A record and its offset."""

    offset: int
    record: str


@dataclass(slots=True)
class CommitTruth:
    """The records that wait to be committed, and the committed ones."""

    committed: list[NumberedRecord] = field(default_factory=list)
    acknowledged: list[NumberedRecord] = field(default_factory=list)
    on_whole_isr: set[NumberedRecord] = field(default_factory=set)
    """The records that every member of a large enough ISR held at one time, whether or not a high watermark covered them."""
    _pending: deque[NumberedRecord] = field(default_factory=deque)
    """Written with acks=all and not committed yet; offsets rise."""
    _copied_to: int = 0
    """The offset below which the whole ISR has held every record in this leader epoch."""
    _known: set[tuple[int, str]] = field(default_factory=set)

    def written(self, batch: SimulatedBatch, acks: Acks) -> None:
        """Note a batch that a leader has appended."""
        for offset, record in enumerate(batch.records, start=batch.base_offset):
            if acks is Acks.ALL:
                self._pending.append(NumberedRecord(offset, record))
            elif is_acknowledged(acks, offset, leader_log_end_offset=batch.end_offset, high_watermark=0):
                self.acknowledged.append(NumberedRecord(offset, record))

    def raised(self, leader: SimulatedReplica, before: int) -> None:
        """Note that a leader's high watermark may have risen."""
        end, high_watermark = leader.log_end_offset, leader.high_watermark
        while self._pending and is_acknowledged(
            Acks.ALL, self._pending[0].offset, leader_log_end_offset=end, high_watermark=high_watermark
        ):
            self.acknowledged.append(self._pending.popleft())
        for offset, record in leader.records_from(before).items() if high_watermark > before else ():
            if offset < high_watermark and (offset, record) not in self._known:
                self._known.add((offset, record))
                self.committed.append(NumberedRecord(offset, record))

    def copied(self, members: Sequence[SimulatedReplica]) -> None:
        """Note what all members of the ISR, the leader first, hold now."""
        if min(member.log_end_offset for member in members) <= self._copied_to:
            return
        first, *others = [member.records_from(self._copied_to) for member in members]
        for offset, record in first.items():
            if any(other.get(offset) != record for other in others):
                break
            self.on_whole_isr.add(NumberedRecord(offset, record))
            self._copied_to = offset + 1

    def elected(self) -> None:
        """Answer the requests that wait for the former leader with an error."""
        self._pending.clear()
        self._copied_to = 0


def missing_from(records: Mapping[int, str], wanted: Sequence[NumberedRecord]) -> list[NumberedRecord]:
    """Return the wanted records that a log does not hold at their offsets."""
    return [numbered for numbered in wanted if records.get(numbered.offset) != numbered.record]


class ImpossibleEventError(UsageError):
    """An event that can't happen now, such as the start of a running broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration of the cluster; times in milliseconds, with Kafka's names if Kafka has the setting."""

    min_insync_replicas: int = 1
    unclean_leader_election: bool = False
    eligible_leader_replicas: bool = False
    strict_min_isr: bool = False
    """KIP-966, since 3.7: no high watermark below min.insync.replicas."""
    lag_time_max_ms: int = 30_000
    lag_max_messages: int | Absent = Absent.NOT_APPLICABLE
    """The setting `replica.lag.max.messages` of 0.8; absent if only time counts."""
    checkpoint_interval_ms: int = 5_000
    """The interval of the high watermark checkpoint."""
    recovery_point_interval_ms: int = 60_000
    """The interval of the recovery point checkpoint."""
    start_time_ms: int = 1_700_000_000_000


class BrokerEvent(NamedTuple):
    """A start or stop of a broker: kind is `start`, `stop`, `crash` or `power-loss`."""

    time_ms: int
    broker_id: int
    kind: str


class RoleChange(NamedTuple):
    """A replica that took up the role of leader or follower, with its log as it was then."""

    time_ms: int
    broker_id: int
    registration: PartitionRegistration
    log_end_offset: int
    high_watermark: int


class Alignment(NamedTuple):
    """A follower that found where its log diverges from the leader's, whether or not it truncated; offsets are those before."""

    time_ms: int
    follower: int
    leader: int
    leader_epoch: int
    log_end_offset: int
    outcome: TruncationOutcome


class ReplicaRow(NamedTuple):
    """One replica after a step."""

    broker_id: int
    is_running: bool
    log_end_offset: int
    high_watermark: int
    epochs: tuple[EpochEntry, ...]
    records: tuple[NumberedRecord, ...] | Absent
    """The records of the log, if they are few enough to be shown."""


class Row(NamedTuple):
    """An event, and the numbers after it."""

    event: str
    broker_id: int | Absent
    time_ms: int
    leader: int | Absent
    leader_epoch: int
    isr: tuple[int, ...]
    follower: int | Absent
    remote_log_end_offset: int | Absent
    replicas: tuple[ReplicaRow, ...]
    truncation: TruncationOutcome | Absent = Absent.NOT_APPLICABLE
    is_scenario: bool = False
    """Whether the row is a comment of the scenario between two steps."""

    def replica(self, broker_id: int | Absent) -> ReplicaRow | None:
        """Return the row of one replica, None where the broker has none."""
        return next((replica for replica in self.replicas if replica.broker_id == broker_id), None)
