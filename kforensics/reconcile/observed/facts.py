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
    recorded_at: int | Absent
    """The offset in the metadata log."""
    time_ms: int | Absent
    citation: Citation
    is_told: bool = True
    """The record or the line itself says whether the election was unclean; else it follows from the ISR that lines told last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A broker came back after a stop."""

    recorded_at: int | Absent
    """The offset of its registration in the metadata log."""
    time_ms: int | Absent
    is_clean: bool
    """It had announced its stop, or found the marker of a clean one."""
    other_disk: bool = False
    """A log directory that it had registered before is not there any more."""


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

    def commits(self, partition: TopicPartition) -> tuple[GroupCommit, ...]:
        """Committed offsets of consumer groups, newest of each group and epoch."""
        ...

    def unclean_restarts(self, broker_id: int) -> tuple[int, ...]:
        """Offsets in the metadata log where the broker registered anew without a clean shutdown before."""
        ...

    def restarts(self, broker_id: int) -> tuple[Restart, ...]:
        """Every time that the broker came back, oldest first, its first start left out."""
        ...

    def metadata_gaps(self) -> tuple[str, ...]:
        """What of the metadata log is missing or can't be read, as parts of a sentence."""
        ...

    def is_newest_metadata(self) -> bool:
        """Whether no later metadata can exist than that among the inputs: it is of a voter, as it is now."""
        ...

    def heard_brokers(self) -> frozenset[int]:
        """Brokers whose log files are among the inputs."""
        ...

    def named_brokers(self) -> frozenset[int]:
        """Brokers that any log line names as leader or in sync."""
        ...

    def is_unbroken(self, broker_id: int, since_ms: int, until_ms: int) -> bool:
        """Whether the broker's log lines begin before `since_ms` and tell of no start without a clean stop up to `until_ms`."""
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

    def commits(self, partition: TopicPartition) -> tuple[GroupCommit, ...]:  # noqa: ARG002
        """None."""
        return self.empty

    def unclean_restarts(self, broker_id: int) -> tuple[int, ...]:  # noqa: ARG002
        """None."""
        return self.empty

    def restarts(self, broker_id: int) -> tuple[Restart, ...]:
        """The unclean ones."""
        return tuple(
            Restart(recorded_at=at, time_ms=Absent.UNKNOWN, is_clean=False) for at in self.unclean_restarts(broker_id)
        )

    def metadata_gaps(self) -> tuple[str, ...]:
        """None."""
        return self.empty

    def is_newest_metadata(self) -> bool:
        """Unknown, so no."""
        return False

    def heard_brokers(self) -> frozenset[int]:
        """None."""
        return frozenset()

    def named_brokers(self) -> frozenset[int]:
        """None."""
        return frozenset()

    def is_unbroken(self, broker_id: int, since_ms: int, until_ms: int) -> bool:  # noqa: ARG002
        """Unknown, so no."""
        return False

    def has_metadata_log(self) -> bool:
        """Unknown, so no."""
        return False

    def needed_in_sync(self, topic: str) -> int | Absent:  # noqa: ARG002
        """Unknown."""
        return Absent.UNKNOWN
