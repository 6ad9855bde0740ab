"""Leaders, in-sync replicas, restarts and settings from the metadata log; `broker_log_facts` adds those from broker logs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

from kforensics.damage import Absent
from kforensics.evidence.metadata.events import is_unclean_election
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.state import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    BrokerState,
    ConfigChange,
    PartitionState,
    QuorumChange,
)
from kforensics.reconcile.observed.facts import Commits, CommittedFacts, Leadership, Restart
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import form

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"
ELR_FEATURE = "eligible.leader.replicas.version"
MOST_UNREAD = 3
"""Records that are not understood and are named one by one."""


class MetadataFacts(CommittedFacts):
    """Facts of one cluster, as `facts.ClusterFacts` asks for them.

    Args:
        commits: committed consumer offsets of a partition.
        is_of_now: the log is as it is now, not out of an earlier snapshot, and most voters are among the inputs.
        set_back_to: the offset from which on the quorum goes on without what was committed.
    """

    def __init__(
        self,
        history: MetadataHistory,
        commits: Commits,
        *,
        is_of_now: bool = True,
        set_back_to: int | Absent = Absent.UNKNOWN,
    ) -> None:
        super().__init__(commits)
        self.history = history
        self.is_of_now = is_of_now
        self.set_back_to = set_back_to

    def goes_on_without(self) -> int | Absent:
        """Return the offset that the logs of the voters show."""
        return self.set_back_to

    def leaderships(self, partition: TopicPartition, topic_id: str | Absent) -> tuple[Leadership, ...]:
        """Return every recorded state of the partition, the oldest first."""
        if partition.topic in METADATA_TOPICS:
            if self.history.quorum_state is not None:
                # No record names the leader, so it has no place in the log.
                now = _quorum_leadership(self.history.quorum_state)
                return (replace(now, recorded_at=Absent.NOT_APPLICABLE, time_ms=Absent.NOT_APPLICABLE),)
            terms = [_quorum_leadership(change) for change in self.history.quorum]
            # Voters are added and removed within a term, too.
            return (*terms[:-1], *(replace(last, replicas=self.history.current_voters) for last in terms[-1:]))
        states: Sequence[PartitionState] = (
            self.history.partition_states(*partition)
            if isinstance(topic_id, Absent)
            else self.history.partitions.get((topic_id, partition.partition), ())
        )
        return tuple(_leadership(before, state) for before, state in pairwise((None, *states)) if state is not None)

    def topic_id(self, topic: str) -> str | Absent:
        """Return the id under which the metadata log knows the topic now."""
        known = [state for state in self.history.topics_named(topic) if isinstance(state.removed, Absent)]
        return known[-1].topic_id if known else Absent.UNKNOWN

    def is_of_another(self, topic: str, topic_id: str) -> bool:
        """Whether another topic has the id."""
        return topic_id in self.history.topics and self.history.topics[topic_id].name != topic

    def is_deleted(self, topic: str, topic_id: str | Absent) -> bool:
        """Whether a record removed the topic."""
        named = self.history.topics_named(topic)
        wanted = [state for state in named if isinstance(topic_id, Absent) or state.topic_id == topic_id]
        return bool(wanted) and not isinstance(wanted[-1].removed, Absent)

    def deletion_ms(self, topic: str, topic_id: str | Absent, directory: str) -> int | Absent:  # noqa: ARG002
        """Return the time of the record that removed the topic of that very id: that a snapshot lacks a topic is no request."""
        for one in self.history.topics_named(topic):
            if one.topic_id == topic_id and not isinstance(one.removed, Absent) and not one.removed.from_snapshot:
                return one.removed.timestamp_ms if one.removed.timestamp_ms >= 0 else Absent.UNKNOWN
        return Absent.UNKNOWN

    def knows_every_deletion(self) -> bool:
        """Whether no snapshot took the place of records."""
        return self.history.start_offset == 0 and not self.history.gaps

    def recreated_ms(self, topic: str) -> int | Absent:
        """Return when the newest topic of that name was created, where a record says so."""
        named = self.history.topics_named(topic)
        # A snapshot is younger than the topics in it.
        if len(named) < 2 or named[-1].created.from_snapshot:
            return Absent.UNKNOWN
        return self.exists_since_ms(topic)

    def exists_since_ms(self, topic: str) -> int | Absent:
        """Return the time of the record or snapshot that names the newest topic of that name first."""
        named = self.history.topics_named(topic)
        if not named or not isinstance(named[-1].removed, Absent) or named[-1].created.timestamp_ms < 0:
            return Absent.UNKNOWN
        return named[-1].created.timestamp_ms

    def unclean_restarts(self, broker_id: int) -> tuple[int, ...]:
        """Return the metadata offsets where the broker registered as a new incarnation without a controlled shutdown before."""
        return tuple(_unannounced_restarts(self.history.brokers.get(broker_id, ())))

    def restarts(self, broker_id: int) -> tuple[Restart, ...]:
        """Return the restarts by the incarnations that the broker registered."""
        return tuple(_restarts(self.history.brokers.get(broker_id, ())))

    def verifies_clean_stops(self) -> bool:
        """Whether eligible leader replicas were enabled from the first record on."""
        levels = [one for one in self.history.features if one.name == ELR_FEATURE]
        topics = [topic.created.offset for topic in self.history.topics.values()]
        return (
            bool(levels)
            and all(one.level > 0 for one in levels)
            and levels[0].when.offset <= min(topics, default=levels[0].when.offset)
        )

    def metadata_gaps(self) -> tuple[str, ...]:
        """Return parts of the metadata log that are missing, damaged or not understood."""
        missing = [f"what metadata records {first} to {last} say" for first, last in self.history.gaps if first]
        damaged = [
            f"what a damaged part of {path} says" for path, damage in self.history.damage if damage.hides_content
        ]
        unread = [f"what offset {one.offset} of the metadata log says ({one.words})" for one in self.history.unread]
        if len(unread) > MOST_UNREAD:
            more = sum(one.records for one in self.history.unread[MOST_UNREAD:])
            unread[MOST_UNREAD:] = [
                f"what {more:,} more {form(more, 'record')} of the metadata log {form(more, 'says', 'say')}"
            ]
        return tuple(dict.fromkeys((*missing, *damaged, *unread)))

    def is_newest_metadata(self) -> bool:
        """Return a voter's log as it is now; a broker only copies it, and may have stopped long before."""
        return self.is_of_now and self.history.is_of_voter

    def registered_directories(self, broker_id: int) -> frozenset[str] | Absent:
        """Return the directories that the broker registered last."""
        states = self.history.brokers.get(broker_id, ())
        registered = [state for state in states if state.is_registered]
        return frozenset(registered[-1].log_dirs) if registered and registered[-1].log_dirs else Absent.UNKNOWN

    def has_metadata_log(self) -> bool:
        """Return whether the cluster keeps its metadata in a log of its own (KRaft)."""
        return True

    def allows_unclean_election(self, topic: str, recorded_at: int | Absent) -> bool | Absent:
        """Return the topic's setting, else the cluster's; a setting in a broker's server.properties is not in the metadata."""
        chosen = self._setting(UNCLEAN_ELECTION, topic, recorded_at)
        return Absent.NOT_WRITTEN if chosen is None else chosen.strip().lower() == "true"

    def needed_in_sync(self, topic: str) -> int | Absent:
        """Return the topic's `min.insync.replicas`, else the cluster's; a setting in a broker's server.properties is not in the metadata."""
        chosen = self._setting(MIN_INSYNC_REPLICAS, topic, Absent.UNKNOWN) or ""
        return int(chosen) if chosen.isdecimal() else Absent.UNKNOWN

    def _setting(self, name: str, topic: str, at: int | Absent) -> str | None:
        return self._value((TOPIC_RESOURCE, topic, name), at) or self._value((BROKER_RESOURCE, "", name), at)

    def _value(self, setting: tuple[int, str, str], at: int | Absent) -> str | None:
        changes = reversed(self._changes.get(setting, ()))
        return next((one.value for one in changes if isinstance(at, Absent) or one.when.offset <= at), None)

    @cached_property
    def _changes(self) -> Mapping[tuple[int, str, str], Sequence[ConfigChange]]:
        """The changes of each setting, the oldest first, by resource and name: they are asked for of every partition."""
        found: dict[tuple[int, str, str], list[ConfigChange]] = {}
        for change in self.history.configs:
            found.setdefault((change.resource_type, change.resource_name, change.name), []).append(change)
        return found


def recorded_unclean_elections(history: MetadataHistory) -> Iterator[tuple[TopicPartition, Leadership, Leadership]]:
    """Yield every unclean election in the metadata log, with the state before it."""
    partitions = history.partitions
    for before, state in partitions.changes(partitions.rows_that(is_unclean_election)):
        if before is not None:
            yield TopicPartition(state.topic, state.partition), _leadership(None, before), _leadership(before, state)


def _leadership(before: PartitionState | None, state: PartitionState) -> Leadership:
    return Leadership(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=frozenset(state.isr),
        eligible=frozenset(state.eligible_leader_replicas),
        last_known=state.last_known_elr,
        replicas=state.replicas,
        directories=tuple(zip(state.replicas, state.directories, strict=False)),
        unclean=is_unclean_election(before, state),
        recorded_at=state.when.offset,
        time_ms=state.when.timestamp_ms,
        citation=state.when.citation,
    )


def _quorum_leadership(change: QuorumChange) -> Leadership:
    return Leadership(
        leader=change.leader_id,
        leader_epoch=change.raft_epoch,
        isr=Absent.NOT_APPLICABLE,
        replicas=change.voters,
        unclean=False,
        recorded_at=change.when.offset,
        time_ms=change.when.timestamp_ms,
        citation=change.when.citation,
    )


def _unannounced_restarts(states: Iterable[BrokerState]) -> Iterable[int]:
    before: BrokerState | None = None
    for state in states:
        is_new = before is not None and state.is_registered and state.incarnation_id != before.incarnation_id
        if is_new and before is not None and not before.is_in_controlled_shutdown:
            yield state.when.offset
        before = state


def _restarts(states: Iterable[BrokerState]) -> Iterator[Restart]:
    before: BrokerState | None = None
    for state in states:
        if before is not None and state.is_registered and state.incarnation_id != before.incarnation_id:
            missing = frozenset(before.log_dirs) - frozenset(state.log_dirs)
            yield Restart(
                recorded_at=state.when.offset,
                time_ms=state.when.timestamp_ms,
                is_clean=before.is_in_controlled_shutdown,
                other_disk=bool(missing),
                missing_directories=missing,
            )
        before = state
