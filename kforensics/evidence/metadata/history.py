"""Every state that a metadata log leads to, and the questions that can be asked of them."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

from kforensics.damage import Absent, Damage
from kforensics.errors import newer_than_known
from kforensics.evidence.metadata.partitions import PartitionHistories
from kforensics.evidence.metadata.state import (
    METADATA_VERSION,
    AbortedTransaction,
    AclChange,
    BrokerState,
    ConfigChange,
    ControllerState,
    FeatureChange,
    MetadataState,
    PartitionState,
    QuorumChange,
    SnapshotFile,
    TopicState,
    Unread,
    When,
)
from kforensics.evidence.model import Problem
from kforensics.formats.log.batch_table import BatchTable
from kforensics.units import EpochEntry

Changed = TypeVar("Changed", BrokerState, ConfigChange, FeatureChange, ControllerState, AclChange)

NEWEST_KRAFT_VERSION = 1
"""That of dynamic voters (KIP-853)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataHistory:
    """Every state in the metadata log and snapshots of one node."""

    input: int
    node_id: int | Absent
    directory: str
    """Relative to the input."""
    start_offset: int
    """The first offset in the log; that of the end where there are snapshots only."""
    end_offset: int
    epochs: tuple[EpochEntry, ...]
    """The offset at which each leader epoch of the metadata log begins."""
    batches: BatchTable
    topics: Mapping[str, TopicState]
    """The topics by topic id, removed ones included."""
    topic_ids: Mapping[str, Sequence[str]]
    """The topic ids by name, that of the oldest topic first."""
    partitions: PartitionHistories
    """The histories by topic id and partition."""
    brokers: Mapping[int, Sequence[BrokerState]]
    cordoning: Collection[int]
    """Brokers that say which of their directories are cordoned, be it none (4.3)."""
    controllers: Mapping[int, Sequence[ControllerState]]
    configs: Sequence[ConfigChange]
    features: Sequence[FeatureChange]
    acls: Sequence[AclChange]
    producer_ids: Sequence[tuple[int, When]]
    """The producer id that is handed out next, from each change on."""
    quorum: Sequence[QuorumChange]
    current_voters: tuple[int, ...]
    """The voters by the newest record that names them, else by a snapshot or by quorum-state: of a log that was compacted no record may name them any more."""
    voter_directories: Mapping[int, str]
    """The directory id of each voter, where the voters are dynamic (kraft.version 1): one with another is none (KIP-853)."""
    quorum_state: QuorumChange | None
    """The leader by quorum-state, where no record names one any more."""
    snapshots: tuple[SnapshotFile, ...]
    aborted: tuple[AbortedTransaction, ...]
    gaps: tuple[tuple[int, int], ...]
    """First and last offset of each part that could not be read and that a snapshot does not show step by step."""
    unapplied: tuple[tuple[str, When], ...]
    unread: tuple[Unread, ...]
    """Records that are not understood, or not as a whole: any of them may have changed leaders and in-sync replicas."""
    formats: Mapping[tuple[str, int], tuple[str, int]]
    """File and offset of the last record in the log of each type and version."""
    damage: tuple[tuple[str, Damage], ...]
    """The damage, with the path of the file."""
    problems: tuple[Problem, ...]
    has_no_voter: bool = False
    """The newest record of the voters names none (KIP-853): no controller is elected."""
    kraft_version: int = -1
    """The highest kraft.version that a control record gives (KIP-853, 3.9); -1 where none does."""
    is_log_known: bool = True
    """All of its segments could be read: else where it ends is unknown."""
    migration: int = 0
    """How far the migration from ZooKeeper has come by the newest record: 2 begun, 1 under way, 3 complete, 0 none (`ZkMigrationState`)."""

    @property
    def last_epoch(self) -> int:
        """The newest leader epoch of the metadata log, -1 where it is empty."""
        return self.epochs[-1].leader_epoch if self.epochs else -1

    @property
    def is_of_voter(self) -> bool:
        """Whether the node votes in the quorum."""
        return self.node_id in self.current_voters

    def newest_level_of(self, node_id: int | Absent) -> int:
        """Return the newest metadata.version that the node's last registration says it supports; 0 where none does."""
        if isinstance(node_id, Absent):
            return 0
        said = [one.newest_metadata_version for one in self.brokers.get(node_id, ())[-1:]]
        said += [one.newest_metadata_version for one in self.controllers.get(node_id, ())[-1:]]
        return max((level for level in said if not isinstance(level, Absent)), default=0)

    @property
    def unread_problems(self) -> tuple[Problem, ...]:
        """What of the records is not understood, as the report says it."""
        return tuple(Problem(input=self.input, path=one.path, message=one.message) for one in self.unread)

    def without_partitions(self) -> "MetadataHistory":
        """Return the history without the states of partitions, by far the most of it."""
        return replace(self, partitions=PartitionHistories.empty())

    def topics_named(self, name: str) -> tuple[TopicState, ...]:
        """Return every topic that ever had this name, oldest first."""
        return tuple(self.topics[topic_id] for topic_id in self.topic_ids.get(name, ()))

    def partition_states(self, topic: str, partition: int) -> tuple[PartitionState, ...]:
        """Return all states of a partition, through every topic of that name, oldest first."""
        return tuple(
            state for one in self.topics_named(topic) for state in self.partitions.get((one.topic_id, partition), ())
        )

    def newest(self, topic_id: str, partition: int) -> PartitionState | None:
        """Return the newest record for a partition of one topic id; none where the log does not know it."""
        return self.partitions.newest((topic_id, partition))

    @property
    def metadata_version(self) -> int | Absent:
        """The newest feature level of the metadata; not written before 3.3."""
        levels = [one.level for one in self.features if one.name == METADATA_VERSION]
        return levels[-1] if levels else Absent.NOT_WRITTEN

    def beyond_level(self) -> str:
        """Return what the registrations say that their own metadata.version has no place for: no controller loads them (`BrokerRegistration.toRecord`, `ClusterImage.write`, 3.4); empty where they say nothing more."""
        level = self.metadata_version
        if isinstance(level, Absent):
            return ""
        brokers = [one[-1] for one in self.brokers.values() if one[-1].is_registered]
        said = (
            ("inControlledShutdown state", 7, [one.is_in_controlled_shutdown for one in brokers]),
            ("isMigratingZkBroker state", 8, [one.is_migrating for one in brokers]),
            ("online log directories", 17, [one.log_dirs for one in brokers]),
            ("cordoned log directories", 30, [one.broker_id in self.cordoning for one in brokers]),
        )
        beyond = [f"the {what} of one or more brokers" for what, least, of in said if any(of) and level < least]
        if level < 15 and any(one[-1].is_registered for one in self.controllers.values()):
            beyond.append("controller registration data")
        return next(iter(beyond), "")

    @property
    def level_problems(self) -> tuple[Problem, ...]:
        """What is beyond the metadata.version, and a kraft.version that is newer than known, as the report says it."""
        words = []
        if beyond := self.beyond_level():
            words.append(
                f"metadata.version {self.metadata_version} has no place for {beyond}, and they are in it: no controller starts with it"
            )
        if self.kraft_version > NEWEST_KRAFT_VERSION:
            words.append(newer_than_known("kraft.version", self.kraft_version, NEWEST_KRAFT_VERSION))
        return tuple(Problem(input=self.input, path=self.directory, message=one) for one in words)

    def at(self, offset: int) -> MetadataState:
        """Return the metadata once the records up to and with an offset are applied."""
        topics = {key: topic for key, topic in self.topics.items() if topic.exists_at(offset)}
        partitions = {
            (state.topic_id, state.partition): state
            for state in self.partitions.all_at(offset)
            if state.topic_id in topics
        }
        brokers = {
            key: broker
            for key, registrations in self.brokers.items()
            if (broker := _last_at(registrations, offset)) is not None and broker.is_registered
        }
        configs = {(one.resource_type, one.resource_name, one.name): one for one in _up_to(self.configs, offset)}
        features = {one.name: one.level for one in _up_to(self.features, offset)}
        acls = {one.acl_id: one.is_set for one in _up_to(self.acls, offset)}
        producer_ids = [first for first, when in self.producer_ids if when.offset <= offset]
        return MetadataState(
            offset=offset,
            topics=topics,
            partitions=partitions,
            brokers=brokers,
            configs={key: one for key, one in configs.items() if one.value is not None},
            features=features,
            acls=frozenset(acl_id for acl_id, is_set in acls.items() if is_set),
            next_producer_id=producer_ids[-1] if producer_ids else 0,
        )

    def offset_at(self, time_ms: int) -> int | None:
        """Return the offset of the last change up to a time; none where no change is dated before it."""
        settings = (one.when for one in chain[ConfigChange | FeatureChange](self.configs, self.features))
        nodes = (one.when for one in chain.from_iterable(self.brokers.values()))
        dated = (when.offset for when in chain(settings, nodes) if 0 < when.timestamp_ms <= time_ms)
        last = max(self.partitions.last_offset_by(time_ms), max(dated, default=-1))
        return None if last < 0 else last

    def latest(self) -> MetadataState:
        """Return the metadata at the end of the log."""
        return self.at(max(self.end_offset - 1, 0))


def _last_at(states: Sequence[Changed], offset: int) -> Changed | None:
    place = bisect_right(states, offset, key=lambda state: state.when.offset)
    return states[place - 1] if place else None


def _up_to(changes: Sequence[Changed], offset: int) -> Sequence[Changed]:
    return changes[: bisect_right(changes, offset, key=lambda change: change.when.offset)]


def listening_hosts(histories: Sequence[MetadataHistory]) -> Iterator[str]:
    """Yield the hosts where the brokers and controllers listen, as they registered."""
    for history in histories:
        points = {point for brokers in history.brokers.values() for one in brokers for point in one.end_points}
        points |= {point for group in history.controllers.values() for one in group for point in one.end_points}
        yield from {point.rpartition("//")[2].rpartition(":")[0].strip("[]") for point in points}
