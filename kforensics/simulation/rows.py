"""What a replay shows: its settings, and one row a step with the numbers of every replica."""

from dataclasses import dataclass
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.protocol.election import PartitionRegistration
from kforensics.protocol.outcome import TruncationOutcome
from kforensics.simulation.commit_truth import NumberedRecord
from kforensics.units import EpochEntry


class ImpossibleEventError(UsageError):
    """An event that can't happen now, such as the start of a running broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the cluster is configured to do; times in milliseconds, names as Kafka's where it has one."""

    min_insync_replicas: int = 1
    unclean_leader_election: bool = False
    eligible_leader_replicas: bool = False
    strict_min_isr: bool = False
    """KIP-966, since 3.7: no high watermark below min.insync.replicas."""
    lag_time_max_ms: int = 30_000
    lag_max_messages: int | Absent = Absent.NOT_APPLICABLE
    """The rule of 0.8; absent where only time counts."""
    checkpoint_interval_ms: int = 5_000
    """How often high watermarks are written down."""
    recovery_point_interval_ms: int = 60_000
    """How often it is written down how far logs are flushed."""
    start_time_ms: int = 1_700_000_000_000


class BrokerEvent(NamedTuple):
    """A broker went or came: kind is `start`, `stop`, `crash` or `power-loss`."""

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
    """A follower that found where its log leaves the leader's, whether or not it cut anything; offsets are those before."""

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
    """What the log holds, where that is little enough to be shown."""


class Row(NamedTuple):
    """What happened, and the numbers after it."""

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
    """Words of the scenario between two steps: nothing has happened."""

    def replica(self, broker_id: int | Absent) -> ReplicaRow | None:
        """The row of one replica."""
        return next((replica for replica in self.replicas if replica.broker_id == broker_id), None)
