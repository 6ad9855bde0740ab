"""What changed in the cluster, event by event, out of the states that the metadata log leads to."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.metadata_log import MetadataHistory
from kforensics.evidence.metadata_state import BrokerState, PartitionState, When


class EventKind(StrEnum):
    """What an event is."""

    TOPIC_CREATED = "topic-created"
    TOPIC_DELETED = "topic-deleted"
    PARTITION_CREATED = "partition-created"
    LEADER_CHANGE = "leader-change"
    UNCLEAN_ELECTION = "unclean-election"
    LEADER_EPOCH_BUMP = "leader-epoch-bump"
    LEADER_RECOVERED = "leader-recovered"
    ISR_SHRINK = "isr-shrink"
    ISR_EXPAND = "isr-expand"
    ELR_CHANGE = "elr-change"
    REASSIGNMENT = "reassignment"
    DIRECTORY_CHANGE = "directory-change"
    BROKER_REGISTERED = "broker-registered"
    BROKER_UNREGISTERED = "broker-unregistered"
    BROKER_FENCED = "broker-fenced"
    BROKER_UNFENCED = "broker-unfenced"
    BROKER_CONTROLLED_SHUTDOWN = "broker-controlled-shutdown"
    BROKER_LOG_DIRS = "broker-log-dirs"
    CONTROLLER_CHANGE = "controller-change"
    CONTROLLER_REGISTERED = "controller-registered"
    CONFIG_CHANGE = "config-change"
    FEATURE_CHANGE = "feature-change"
    SNAPSHOT = "snapshot"
    TRANSACTION_ABORTED = "metadata-transaction-aborted"


class MetadataEvent(NamedTuple):
    """One change, and the metadata record that says so."""

    kind: EventKind
    when: When
    topic: str | Absent = Absent.NOT_APPLICABLE
    topic_id: str | Absent = Absent.NOT_APPLICABLE
    partition: int | Absent = Absent.NOT_APPLICABLE
    leader_epoch: int | Absent = Absent.NOT_APPLICABLE
    broker_id: int | Absent = Absent.NOT_APPLICABLE
    """The broker or controller that the event is about: of an election the new leader."""
    detail: Mapping[str, Any] = {}


def change_events(history: MetadataHistory, *, topic: str | None = None) -> list[MetadataEvent]:
    """Every change that the history tells of, in the order of the metadata log; of partitions only those of `topic`."""
    events = [*_topic_events(history), *_cluster_events(history)]
    for states in history.partitions.values():
        if topic is None or states[0].topic == topic:
            events += partition_events(states)
    for registrations in history.brokers.values():
        events += broker_events(registrations)
    events.sort(key=lambda event: event.when.offset)
    return events


def is_unclean_election(before: PartitionState, after: PartitionState) -> bool:
    """Whether the leader of `after` was elected from outside of the in-sync and eligible replicas."""
    if isinstance(after.leader, Absent) or after.leader_epoch == before.leader_epoch:
        return False
    if after.is_recovering and not before.is_recovering:
        return True
    if after.leader == before.leader:
        return False
    return after.leader not in before.isr and after.leader not in before.eligible_leader_replicas


def partition_events(states: Sequence[PartitionState]) -> Iterator[MetadataEvent]:
    """The changes between the states of one partition."""
    if states and not states[0].when.from_snapshot:
        first = states[0]
        detail = {"leader": first.leader, "isr": first.isr, "replicas": first.replicas}
        yield _of_partition(EventKind.PARTITION_CREATED, first, detail, broker_id=first.leader)
    for before, after in pairwise(states):
        if before.topic_id != after.topic_id:
            continue  # another topic of the same name
        yield from _election_events(before, after)
        yield from _membership_events(before, after)


def broker_events(states: Sequence[BrokerState]) -> Iterator[MetadataEvent]:
    """The changes between the registrations of one broker."""
    before: BrokerState | None = None
    for after in states:
        yield from _broker_change(before, after)
        before = after


def _of_partition(
    kind: EventKind,
    state: PartitionState,
    detail: Mapping[str, Any],
    *,
    broker_id: int | Absent = Absent.NOT_APPLICABLE,
) -> MetadataEvent:
    return MetadataEvent(
        kind, state.when, state.topic, state.topic_id, state.partition, state.leader_epoch, broker_id, detail
    )


def _election_events(before: PartitionState, after: PartitionState) -> Iterator[MetadataEvent]:
    if is_unclean_election(before, after) or after.leader != before.leader:
        unclean = is_unclean_election(before, after)
        detail: dict[str, Any] = {"leader": after.leader, "previous_leader": before.leader}
        if unclean:
            detail |= {
                "previous_isr": before.isr,
                "previous_elr": before.eligible_leader_replicas,
                "last_known_elr": before.last_known_elr,
            }
        kind = EventKind.UNCLEAN_ELECTION if unclean else EventKind.LEADER_CHANGE
        yield _of_partition(kind, after, detail, broker_id=after.leader)
    elif after.leader_epoch != before.leader_epoch:
        detail = {"leader": after.leader, "previous_leader_epoch": before.leader_epoch}
        yield _of_partition(EventKind.LEADER_EPOCH_BUMP, after, detail, broker_id=after.leader)
    if before.is_recovering and not after.is_recovering:
        yield _of_partition(EventKind.LEADER_RECOVERED, after, {"leader": after.leader}, broker_id=after.leader)


def _membership_events(before: PartitionState, after: PartitionState) -> Iterator[MetadataEvent]:
    removed = tuple(replica for replica in before.isr if replica not in after.isr)
    added = tuple(replica for replica in after.isr if replica not in before.isr)
    if removed:
        yield _of_partition(EventKind.ISR_SHRINK, after, {"isr": after.isr, "removed": removed})
    if added:
        yield _of_partition(EventKind.ISR_EXPAND, after, {"isr": after.isr, "added": added})
    elr = (after.eligible_leader_replicas, after.last_known_elr)
    if elr != (before.eligible_leader_replicas, before.last_known_elr):
        yield _of_partition(EventKind.ELR_CHANGE, after, {"eligible_leader_replicas": elr[0], "last_known_elr": elr[1]})
    moved = (after.replicas, after.adding_replicas, after.removing_replicas)
    if moved != (before.replicas, before.adding_replicas, before.removing_replicas):
        detail = {
            "replicas": after.replicas,
            "previous_replicas": before.replicas,
            "adding_replicas": after.adding_replicas,
            "removing_replicas": after.removing_replicas,
        }
        yield _of_partition(EventKind.REASSIGNMENT, after, detail)
    elif after.directories != before.directories:
        yield _of_partition(EventKind.DIRECTORY_CHANGE, after, {"directories": after.directories})


def _broker_change(before: BrokerState | None, after: BrokerState) -> Iterator[MetadataEvent]:
    def event(kind: EventKind, **detail: Any) -> MetadataEvent:
        return MetadataEvent(kind, after.when, broker_id=after.broker_id, detail=detail)

    if before is not None and before.is_registered and not after.is_registered:
        yield event(EventKind.BROKER_UNREGISTERED, broker_epoch=after.broker_epoch)
        return
    is_new = before is None or not before.is_registered
    if is_new or (before is not None and before.broker_epoch != after.broker_epoch):
        yield event(
            EventKind.BROKER_REGISTERED,
            broker_epoch=after.broker_epoch,
            incarnation_id=after.incarnation_id,
            is_fenced=after.is_fenced,
            end_points=after.end_points,
        )
        return
    assert before is not None
    if after.is_in_controlled_shutdown and not before.is_in_controlled_shutdown:
        yield event(EventKind.BROKER_CONTROLLED_SHUTDOWN, broker_epoch=after.broker_epoch)
    if after.is_fenced != before.is_fenced:
        kind = EventKind.BROKER_FENCED if after.is_fenced else EventKind.BROKER_UNFENCED
        yield event(kind, broker_epoch=after.broker_epoch)
    if after.log_dirs != before.log_dirs:
        yield event(EventKind.BROKER_LOG_DIRS, log_dirs=after.log_dirs, previous_log_dirs=before.log_dirs)


def _topic_events(history: MetadataHistory) -> Iterator[MetadataEvent]:
    for topic in history.topics.values():
        if not topic.created.from_snapshot:
            yield MetadataEvent(EventKind.TOPIC_CREATED, topic.created, topic.name, topic.topic_id)
        if not isinstance(topic.removed, Absent):
            yield MetadataEvent(EventKind.TOPIC_DELETED, topic.removed, topic.name, topic.topic_id)


def _cluster_events(history: MetadataHistory) -> Iterator[MetadataEvent]:
    for quorum in history.quorum:
        detail: dict[str, Any] = {"raft_epoch": quorum.raft_epoch, "voters": quorum.voters}
        yield MetadataEvent(EventKind.CONTROLLER_CHANGE, quorum.when, broker_id=quorum.leader_id, detail=detail)
    for registrations in history.controllers.values():
        for controller in registrations:
            detail = {"incarnation_id": controller.incarnation_id, "end_points": controller.end_points}
            yield MetadataEvent(
                EventKind.CONTROLLER_REGISTERED, controller.when, broker_id=controller.controller_id, detail=detail
            )
    for config in history.configs:
        detail = {
            "resource_type": config.resource_type,
            "resource_name": config.resource_name,
            "name": config.name,
            "value": config.value,
        }
        topic = config.resource_name if config.resource_type == TOPIC_RESOURCE else Absent.NOT_APPLICABLE
        yield MetadataEvent(EventKind.CONFIG_CHANGE, config.when, topic, detail=detail)
    for feature in history.features:
        yield MetadataEvent(
            EventKind.FEATURE_CHANGE, feature.when, detail={"name": feature.name, "level": feature.level}
        )
    for aborted in history.aborted:
        detail = {"first_offset": aborted.first_offset, "last_offset": aborted.last_offset, "reason": aborted.reason}
        yield MetadataEvent(EventKind.TRANSACTION_ABORTED, aborted.when, detail=detail)
    for snapshot in history.snapshots:
        time = snapshot.last_contained_timestamp_ms
        when = When(
            max(snapshot.end_offset - 1, 0),
            snapshot.raft_epoch,
            -1 if isinstance(time, Absent) else time,
            snapshot.citation,
            from_snapshot=True,
        )
        detail = {"end_offset": snapshot.end_offset, "is_complete": snapshot.is_complete}
        yield MetadataEvent(EventKind.SNAPSHOT, when, detail=detail)


TOPIC_RESOURCE = 2
