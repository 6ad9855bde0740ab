"""The settings of a replay, and its rows: one per step with the numbers of every replica."""

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
        """Return the row of one replica, None where the broker has none.

        Args:
            broker_id: absent for none.
        """
        return next((replica for replica in self.replicas if replica.broker_id == broker_id), None)
