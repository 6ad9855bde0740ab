"""The state that the KRaft metadata log gives of topics, partitions, brokers, configurations and features, when it did, and what more than half of the voters hold (KIP-595)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.units import TopicPartition

if TYPE_CHECKING:
    from kforensics.evidence.metadata.history import MetadataHistory

METADATA_VERSION = "metadata.version"
"""The feature whose level says which records the cluster writes."""


class When(NamedTuple):
    """The place of a change in the metadata log."""

    offset: int
    """The offset of the record, or of the last record that the snapshot covers."""
    raft_epoch: int
    """The leader epoch of the metadata log, which is that of the controller that wrote the record."""
    timestamp_ms: int
    """The time at which the controller appended it, -1 where the log does not say."""
    citation: Citation
    from_snapshot: bool = False
    """The change happened at this offset or before: only its result is known."""


class PartitionState(NamedTuple):
    """A partition from one metadata record up to the next that names it."""

    topic: str
    topic_id: str
    partition: int
    leader: int | Absent
    """Not applicable: the partition has no leader."""
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    is_recovering: bool
    """Whether the leader was elected in an unclean election and has not yet reported that it recovered."""
    directories: tuple[str, ...]
    """Directory ids in the order of the replicas; empty before 3.7."""
    when: When

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition by name."""
        return TopicPartition(self.topic, self.partition)


class TopicState(NamedTuple):
    """A topic: one id is one life of a name."""

    name: str
    topic_id: str
    created: When
    removed: When | Absent = Absent.NOT_APPLICABLE

    def exists_at(self, offset: int) -> bool:
        """Return whether the topic is there once the records up to and with an offset are applied."""
        return self.created.offset <= offset and (isinstance(self.removed, Absent) or self.removed.offset > offset)


class BrokerState(NamedTuple):
    """A broker's registration from one metadata record up to the next that changes it."""

    broker_id: int
    broker_epoch: int
    incarnation_id: str | Absent
    is_registered: bool
    is_fenced: bool
    is_in_controlled_shutdown: bool
    rack: str | Absent
    end_points: tuple[str, ...]
    """`listener://host:port` of each."""
    log_dirs: tuple[str, ...]
    """Ids of the directories that are online; empty before 3.7."""
    when: When
    newest_metadata_version: int | Absent = Absent.UNKNOWN
    """The newest metadata.version that its binary supports, as it said when it registered."""
    is_migrating: bool = False
    """It registered as a broker with ZooKeeper that takes part in a migration (3.4 to 3.9)."""


class ControllerState(NamedTuple):
    """A controller's registration (3.7 and later), or that it was unregistered (4.4), which leaves the voters as they are."""

    controller_id: int
    incarnation_id: str
    end_points: tuple[str, ...]
    when: When
    newest_metadata_version: int | Absent = Absent.UNKNOWN
    """The newest metadata.version that its binary supports, as it said when it registered."""
    is_registered: bool = True


TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
"""The types of a resource that is a topic, and of one that is a broker, or all brokers where it has no name."""


class ConfigChange(NamedTuple):
    """One configuration set or, with a value of None, removed."""

    resource_type: int
    """2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: str
    """The name of the resource; empty for the default of all brokers."""
    name: str
    value: str | None
    when: When


class FeatureChange(NamedTuple):
    """The level of a feature; 0 where it was removed."""

    name: str
    level: int
    when: When


class AclChange(NamedTuple):
    """One access control entry set or removed."""

    acl_id: str
    is_set: bool
    when: When


class QuorumChange(NamedTuple):
    """A controller became the leader of the metadata log."""

    leader_id: int
    raft_epoch: int
    voters: tuple[int, ...]
    when: When


class AbortedTransaction(NamedTuple):
    """Records between two offsets that never counted: their metadata transaction was aborted or not ended."""

    first_offset: int
    last_offset: int
    reason: str
    when: When


class Unread(NamedTuple):
    """Records of the metadata log, or parts of them, that are not understood for one reason: what they changed is not known."""

    path: str
    offset: int
    """That of the first."""
    words: str
    """What it is, and why it is not understood."""
    is_newer: bool
    """It is of a type, version or field that is newer than known; else it is damaged."""
    records: int = 1
    is_empty: bool = False
    """It has no bytes at all."""

    @property
    def message(self) -> str:
        """What a report says of them."""
        more = f" (and {self.records - 1:,} more like it)" if self.records > 1 else ""
        return f"offset {self.offset}: {self.words}{more}"


class SnapshotFile(NamedTuple):
    """A snapshot of the metadata: it covers every record below `end_offset`."""

    end_offset: int
    raft_epoch: int
    last_contained_timestamp_ms: int | Absent
    citation: Citation
    is_complete: bool
    """It ends with a footer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataState:
    """The metadata once the records up to and with `offset` are applied."""

    offset: int
    topics: Mapping[str, TopicState]
    """The topics by topic id."""
    partitions: Mapping[tuple[str, int], PartitionState]
    """The partitions by topic id and partition."""
    brokers: Mapping[int, BrokerState]
    configs: Mapping[tuple[int, str, str], ConfigChange]
    """The configurations by resource type, resource name and configuration name."""
    features: Mapping[str, int]
    acls: frozenset[str] = frozenset()
    """The ids of the access control entries."""
    next_producer_id: int = 0
    """The producer id that is handed out next; 0 where none was."""

    @property
    def metadata_version(self) -> int | Absent:
        """The feature level of the metadata, which says what the cluster's Kafka version is at least."""
        return self.features.get(METADATA_VERSION, Absent.NOT_WRITTEN)

    def partition(self, topic: str, partition: int) -> PartitionState | None:
        """Return a partition by the name of its topic, none where there is no such one."""
        found = next((topic_id for topic_id, one in self.topics.items() if one.name == topic), "")
        return self.partitions.get((found, partition))


_End = TypeVar("_End", int, float)


def newest_log(histories: "Sequence[MetadataHistory]") -> "MetadataHistory | None":
    """Return the log that a new controller would have to hold: highest last epoch, then the longest; a voter's before a copy, and that which begins first."""
    return max(
        histories, key=lambda one: (one.last_epoch, one.end_offset, one.is_of_voter, -one.start_offset), default=None
    )


def majority(voters: int) -> int:
    """Return how many voters elect a controller and commit a record: more than half."""
    return voters // 2 + 1


def reached_by_majority(ends: Iterable[_End], voters: int) -> _End | None:
    """Return the highest end that more than half of the voters reach; none where too few ends are given."""
    highest = sorted(ends, reverse=True)
    return highest[majority(voters) - 1] if len(highest) >= majority(voters) else None


def end_of_majority(newest: "MetadataHistory", histories: "Sequence[MetadataHistory]") -> float:
    """Return the exclusive offset up to which most voters may hold the metadata log (KIP-595): one whose log of that moment is not given may hold everything."""
    given = {one.node_id: one.end_offset for one in histories}
    voters = newest.current_voters
    end = reached_by_majority((given.get(voter, math.inf) for voter in voters), len(voters))
    return math.inf if end is None else end
