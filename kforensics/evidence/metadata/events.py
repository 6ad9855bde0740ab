"""The changes in the cluster, event by event, derived from the states that the metadata log leads to."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.partitions import PartitionHistories, Rows
from kforensics.evidence.metadata.state import TOPIC_RESOURCE, BrokerState, PartitionState, When


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSelection:
    """The changes that were asked for, in the order of the metadata log, made one after the other as they are taken.

    The steps of partitions are rows of numbers, a million where the log is large; all other changes are few.
    """

    partitions: PartitionHistories
    rows: Rows
    """Steps that may hold such changes."""
    before: Sequence[MetadataEvent]
    """The events of topics and the cluster; where offsets are equal they come first."""
    behind: Sequence[MetadataEvent]
    """The events of brokers; where offsets are equal they come last."""
    wants: Callable[[MetadataEvent], bool]

    def __iter__(self) -> Iterator[MetadataEvent]:
        for part in self.parts():
            if isinstance(part, MetadataEvent):
                yield part
            else:
                yield from self.step_events(part)

    def parts(self) -> Iterator[MetadataEvent | Rows]:
        """Yield runs of steps with the other changes between them, all in order."""
        others = [(event.when.offset, False, event) for event in self.before]
        others += [(event.when.offset, True, event) for event in self.behind]
        others.sort(key=itemgetter(0, 1))
        offsets = self.partitions.offsets(self.rows)
        first = 0
        for offset, is_behind, event in others:
            end = int(np.searchsorted(offsets, offset, side="right" if is_behind else "left"))
            if end > first:
                yield self.rows[first:end]
                first = end
            yield event
        if first < len(self.rows):
            yield self.rows[first:]

    def step_events(self, rows: Rows) -> Iterator[MetadataEvent]:
        """Yield the changes that steps of partitions make, those that are wanted."""
        for before, after in self.partitions.changes(rows):
            for event in partition_events(before, after):
                if self.wants(event):
                    yield event


def change_events(
    history: MetadataHistory,
    *,
    topics: Collection[str] = (),
    partitions: Collection[int] = (),
    up_to: int | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
    wants: Callable[[MetadataEvent], bool] = lambda _event: True,
) -> EventSelection:
    """Return every change in the history."""
    brokers = (event for registrations in history.brokers.values() for event in broker_events(registrations))
    return EventSelection(
        partitions=history.partitions,
        rows=history.partitions.rows(
            topics=topics, partitions=partitions, up_to=up_to, since_ms=since_ms, until_ms=until_ms
        ),
        before=[event for event in (*_topic_events(history), *_cluster_events(history)) if wants(event)],
        behind=[event for event in brokers if wants(event)],
        wants=wants,
    )


def is_unclean_election(before: PartitionState | None, after: PartitionState) -> bool:
    """Return whether the leader of `after` was elected from outside of the in-sync and eligible replicas (KIP-704, KIP-966).

    A leader that stays is elected again where its leader epoch rises; a leader epoch that falls is no election of Kafka's.

    Args:
        before: the state before, whose ISR and ELR count; None for the first one, which no election led to.
    """
    if before is None or isinstance(after.leader, Absent) or after.leader_epoch <= before.leader_epoch:
        return False
    if after.is_recovering and not before.is_recovering:
        return True
    # The record with which a new replica joins the ISR ends the reassignment, too, and lets it lead in place of a leader that goes.
    has_joined = after.leader in before.adding_replicas and not after.adding_replicas
    if has_joined and after.leader in after.replicas:
        return False
    return after.leader not in before.isr and after.leader not in before.eligible_leader_replicas


def partition_events(before: PartitionState | None, after: PartitionState) -> Iterator[MetadataEvent]:
    """Yield the changes between two states of one partition; without a first state it was created, or a snapshot holds it."""
    if before is not None:
        yield from _election_events(before, after)
        yield from _membership_events(before, after)
    elif not after.when.from_snapshot:
        detail = {"leader": after.leader, "isr": after.isr, "replicas": after.replicas}
        yield _of_partition(EventKind.PARTITION_CREATED, after, detail, broker_id=after.leader)


def broker_events(states: Sequence[BrokerState]) -> Iterator[MetadataEvent]:
    """Yield the changes between the registrations of one broker."""
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
    unclean = is_unclean_election(before, after)
    if unclean or after.leader != before.leader:
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
            kind = EventKind.CONTROLLER_REGISTERED if controller.is_registered else EventKind.CONTROLLER_UNREGISTERED
            yield MetadataEvent(kind, controller.when, broker_id=controller.controller_id, detail=detail)
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
