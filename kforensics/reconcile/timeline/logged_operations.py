"""Creations and deletions of topics and reassignments in the lines of ZooKeeper controllers; KRaft's metadata log records the same."""

from collections.abc import Iterable, Iterator, Sequence

from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.formats.log_lines.event import LogEvent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.reconcile.timeline.metadata_events import WHOLE_TOPIC
from kforensics.units import TopicPartition

SAME_DELETION_MS = 60_000
"""Brokers that are running discard the replicas of a deleted topic within this time."""


_CREATIONS = frozenset({Kind.REPLICAS_ASSIGNED, Kind.LOG_CREATED})
"""The lines about the creation of a partition; controllers name its replicas only at DEBUG or TRACE, but brokers always log the new log."""


def logged_operations(events: Sequence[LoggedEvent]) -> Iterator[TimelineEntry]:
    """Yield entries for topics and reassignments that the lines of a controller report, or the lines of all brokers together."""
    yield from _moves(events)
    topics = [*_topics(events)]
    yield from topics
    named = {entry.topic_partition.topic for entry in topics if isinstance(entry.topic_partition, TopicPartition)}
    yield from _discarded_everywhere([item for item in events if _topic_of(item) not in named])


def _topic_of(item: LoggedEvent) -> str | None:
    partition = item.event.topic_partition
    return None if isinstance(partition, Absent) else partition.topic


def replicas_named(event: LogEvent) -> tuple[int, ...] | Absent:
    """Return the target replicas of a reassignment if the line names them, without those to be removed."""
    named = event.brokers("replicas")
    if isinstance(named, tuple):
        return named or Absent.NOT_WRITTEN
    every, removing = event.brokers("all"), event.brokers("removing")
    if isinstance(every, Absent) or isinstance(removing, Absent):
        return Absent.NOT_WRITTEN
    return tuple(broker for broker in every if broker not in removing)


def _moves(events: Iterable[LoggedEvent]) -> Iterator[TimelineEntry]:
    """Yield a reassignment each time that the named replicas change."""
    known: dict[TopicPartition, frozenset[int]] = {}
    order: dict[TopicPartition, tuple[int, ...]] = {}
    for item in events:
        partition = item.event.topic_partition
        if item.event.kind not in {Kind.REPLICAS_ASSIGNED, Kind.REASSIGNMENT} or isinstance(partition, Absent):
            continue
        replicas = replicas_named(item.event)
        if isinstance(replicas, Absent):
            continue
        if item.event.kind is Kind.REASSIGNMENT and known.get(partition) != frozenset(replicas):
            yield TimelineEntry(
                kind=EventKind.REASSIGNMENT,
                time_ms=item.time_ms,
                topic_partition=partition,
                detail={"replicas_before": _before(item.event, order.get(partition)), "replicas": replicas},
                citations=(item.citation,),
            )
        known[partition], order[partition] = frozenset(replicas), replicas


def _before(event: LogEvent, known: tuple[int, ...] | None) -> tuple[int, ...] | Absent:
    if known is not None:
        return known
    every, adding = event.brokers("all"), event.brokers("adding")
    if isinstance(every, Absent) or isinstance(adding, Absent):
        return Absent.UNKNOWN
    return tuple(broker for broker in every if broker not in adding)


def _topics(events: Iterable[LoggedEvent]) -> Iterator[TimelineEntry]:
    """Yield topics that a controller deleted, and their later creations; one entry for all partitions."""
    deleted: set[str] = set()
    for item in events:
        name = item.event.fields.get("topic_name")
        if item.event.kind is Kind.TOPIC_DELETED and isinstance(name, str):
            deleted.add(name)
            yield _of_topic(EventKind.TOPIC_DELETED, name, item)
        elif item.event.kind in _CREATIONS and (topic := _topic_of(item)) in deleted and topic is not None:
            deleted.discard(topic)
            yield _of_topic(EventKind.TOPIC_CREATED, topic, item)


def deletion_times(entries: Iterable[TimelineEntry]) -> dict[str, int]:
    """Return when each recreated topic was last deleted, in UTC ms: what was written before belongs to another topic."""
    deleted: dict[str, int] = {}
    again: dict[str, int] = {}
    for entry in entries:
        if isinstance(entry.topic_partition, Absent) or not isinstance(entry.time_ms, int):
            continue
        topic = entry.topic_partition.topic
        if entry.kind == EventKind.TOPIC_DELETED:
            deleted[topic] = max(entry.time_ms, deleted.get(topic, 0))
        elif entry.kind == EventKind.TOPIC_CREATED and topic in deleted:
            again[topic] = deleted[topic]
    return again


def deleted_topics(entries: Iterable[TimelineEntry]) -> frozenset[str]:
    """Return topics that were deleted and have not been created since."""
    deleted: dict[str, bool] = {}
    for entry in entries:
        is_stated = entry.kind in {EventKind.TOPIC_DELETED, EventKind.TOPIC_CREATED}
        if is_stated and isinstance(entry.topic_partition, TopicPartition):
            deleted[entry.topic_partition.topic] = entry.kind == EventKind.TOPIC_DELETED
    return frozenset(topic for topic, is_deleted in deleted.items() if is_deleted)


def _discarded_everywhere(events: Sequence[LoggedEvent]) -> Iterator[TimelineEntry]:
    """Infer deletions without a controller's lines: all brokers with a log of the topic discard it at one time, which only a deletion does."""
    holders: dict[TopicPartition, set[int | Absent]] = {}
    discarded: dict[TopicPartition, list[LoggedEvent]] = {}
    deleted: set[TopicPartition] = set()
    for item in events:
        partition = item.event.topic_partition
        if isinstance(partition, Absent):
            continue
        if item.event.kind is Kind.LOG_CREATED:
            if partition in deleted:
                deleted.discard(partition)
                yield _of_topic(EventKind.TOPIC_CREATED, partition.topic, item)
            holders.setdefault(partition, set()).add(item.node_id)
        elif item.event.kind is Kind.LOG_DISCARDED:
            recent = [one for one in discarded.get(partition, ()) if _is_close(one, item)]
            discarded[partition] = [*recent, item]
            nodes = {one.node_id for one in discarded[partition]}
            if len(nodes) > 1 and nodes >= holders.get(partition, nodes):
                holders[partition] = set()
                deleted.add(partition)
                yield _of_topic(EventKind.TOPIC_DELETED, partition.topic, item)


def _is_close(one: LoggedEvent, other: LoggedEvent) -> bool:
    if not isinstance(one.time_ms, int) or not isinstance(other.time_ms, int):
        return True
    return abs(other.time_ms - one.time_ms) <= SAME_DELETION_MS


def _of_topic(kind: EventKind, topic: str, item: LoggedEvent) -> TimelineEntry:
    return TimelineEntry(
        kind=kind,
        time_ms=item.time_ms,
        topic_partition=TopicPartition(topic, WHOLE_TOPIC),
        citations=(item.citation,),
        is_quiet=kind == EventKind.TOPIC_CREATED,
    )
