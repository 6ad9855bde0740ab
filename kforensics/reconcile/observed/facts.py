"""What other evidence says of a partition: who led it, who was in sync, and what consumers and transactions prove committed."""

from dataclasses import dataclass, field
from typing import Protocol

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.units import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """The state of a partition from one moment on, as the controller recorded it."""

    leader: int | Absent
    """`NOT_APPLICABLE` where the partition had no leader."""
    leader_epoch: int
    isr: frozenset[int] | Absent
    replicas: tuple[int, ...] | Absent
    eligible: frozenset[int] = frozenset()
    """Out of the ISR, and known to hold all that was committed (KIP-966)."""
    unclean: bool
    """The leader was not in the ISR before, or the record says that it has to recover."""
    directories: tuple[tuple[int, str], ...] = ()
    """By replica, the id of the log directory that is to hold it, since 3.7."""
    recorded_at: int | Absent
    """The offset in the metadata log."""
    time_ms: int | Absent
    citation: Citation


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCommit:
    """A consumer group's committed offset: its members had read everything below."""

    group: str
    offset: int
    leader_epoch: int | Absent
    time_ms: int | Absent
    citation: Citation


class ClusterFacts(Protocol):
    """Facts beyond the replicas of one partition; any of them may be unknown."""

    def leaderships(self, partition: TopicPartition, topic_id: str | Absent) -> tuple[Leadership, ...]:
        """Every recorded state of the partition, oldest first; empty where no metadata is among the inputs."""
        ...

    def topic_id(self, topic: str) -> str | Absent:
        """The id under which the metadata log knows the topic now."""
        ...

    def is_deleted(self, topic: str, topic_id: str | Absent) -> bool:
        """Whether the metadata log records that the topic of that id was deleted; without an id, the last one of that name."""
        ...

    def commits(self, partition: TopicPartition) -> tuple[GroupCommit, ...]:
        """Committed offsets of consumer groups, newest of each group and epoch."""
        ...

    def unclean_restarts(self, broker_id: int) -> tuple[int, ...]:
        """Offsets in the metadata log where the broker registered anew without a clean shutdown before."""
        ...

    def is_unbroken(self, broker_id: int, since_ms: int, until_ms: int) -> bool:
        """Whether the broker's log lines begin before `since_ms` and tell of no start without a clean stop up to `until_ms`."""
        ...

    def registered_directories(self, broker_id: int) -> frozenset[str] | Absent:
        """The ids of the log directories that the broker registered last; unknown before 3.7 and without a metadata log."""
        ...

    def has_metadata_log(self) -> bool:
        """Whether the cluster keeps its metadata in a log of its own (KRaft)."""
        ...

    def needed_in_sync(self, topic: str) -> int | Absent:
        """How many replicas must be in sync before a leader commits anything; unknown where no input tells the setting.

        `min.insync.replicas` since 3.7 (KIP-966), 1 before, whatever the setting says.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoFacts:
    """Nothing is known beyond the replicas."""

    empty: tuple[()] = field(default=())

    def leaderships(self, partition: TopicPartition, topic_id: str | Absent) -> tuple[Leadership, ...]:  # noqa: ARG002
        """None."""
        return self.empty

    def topic_id(self, topic: str) -> str | Absent:  # noqa: ARG002
        """Unknown."""
        return Absent.UNKNOWN

    def is_deleted(self, topic: str, topic_id: str | Absent) -> bool:  # noqa: ARG002
        """Unknown, so no."""
        return False

    def commits(self, partition: TopicPartition) -> tuple[GroupCommit, ...]:  # noqa: ARG002
        """None."""
        return self.empty

    def unclean_restarts(self, broker_id: int) -> tuple[int, ...]:  # noqa: ARG002
        """None."""
        return self.empty

    def is_unbroken(self, broker_id: int, since_ms: int, until_ms: int) -> bool:  # noqa: ARG002
        """Unknown, so no."""
        return False

    def registered_directories(self, broker_id: int) -> frozenset[str] | Absent:  # noqa: ARG002
        """Unknown."""
        return Absent.UNKNOWN

    def has_metadata_log(self) -> bool:
        """Unknown, so no."""
        return False

    def needed_in_sync(self, topic: str) -> int | Absent:  # noqa: ARG002
        """Unknown."""
        return Absent.UNKNOWN
