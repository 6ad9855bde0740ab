"""What log lines show of operations: topics, their settings and reassignments with ZooKeeper, of which KRaft's metadata log records the same, and deletions by retention."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.formats.log_lines.event import LogEvent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.logged_events import LoggedEvent, of_kinds
from kforensics.reconcile.timeline.events import WHOLE_TOPIC, Detail, DetailValue, TimelineEntry
from kforensics.units import TopicPartition
from kforensics.words import counted, utc_words

SAME_DELETION_MS = 60_000
"""Running brokers discard the replicas of a deleted topic, and move a log start and delete the segments below it, within this time."""


_LOGS = (Kind.LOG_CREATED, Kind.LOG_DISCARDED)
_CREATIONS = frozenset({Kind.REPLICAS_ASSIGNED, Kind.LOG_CREATED})
"""The lines about the creation of a partition; controllers name its replicas only at DEBUG or TRACE, but brokers always log the new log."""


def logged_operations(events: Sequence[LoggedEvent]) -> Iterator[TimelineEntry]:
    """Yield entries for topics and reassignments that the lines of a controller report, or the lines of all brokers together."""
    yield from _moves(events)
    yield from _settings(events)
    topics = [*_topics(events)]
    yield from topics
    named = {entry.topic_partition.topic for entry in topics if isinstance(entry.topic_partition, TopicPartition)}
    yield from _discarded_everywhere([item for item in of_kinds(events, _LOGS) if _topic_of(item) not in named])


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
    for item in of_kinds(events, (Kind.REPLICAS_ASSIGNED, Kind.REASSIGNMENT)):
        partition = item.event.topic_partition
        if isinstance(partition, Absent):
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
    for item in of_kinds(events, {Kind.TOPIC_DELETED, *_CREATIONS}):
        name = item.event.fields.get("topic_name")
        if item.event.kind is Kind.TOPIC_DELETED and isinstance(name, str):
            deleted.add(name)
            yield _of_topic(EventKind.TOPIC_DELETED, name, item)
        elif item.event.kind in _CREATIONS and (topic := _topic_of(item)) in deleted and topic is not None:
            deleted.discard(topic)
            yield _of_topic(EventKind.TOPIC_CREATED, topic, item)


def _settings(events: Iterable[LoggedEvent]) -> Iterator[TimelineEntry]:
    """Yield the settings by which records go that a line has of a topic and the one before had not; the first line says nothing of the policy before it, but that about a new log does."""
    known: dict[str, dict[str, str]] = {}
    for item in of_kinds(events, (Kind.LOG_CREATED, Kind.TOPIC_SETTINGS)):
        if item.event.kind is Kind.LOG_CREATED:
            policy = item.event.fields.get("cleanup_policy")
            if (topic := _topic_of(item)) is not None:
                known.setdefault(topic, {})["cleanup.policy"] = policy if isinstance(policy, str) else "delete"
            continue
        name = str(item.event.fields.get("topic_name"))
        had = known.setdefault(name, {})
        for setting, value in _SETTING.findall(str(item.event.fields.get("settings"))):
            is_changed = had.get(setting, value if setting == "cleanup.policy" else None) != value
            had[setting] = value
            if is_changed:
                entry = _of_topic(EventKind.CONFIG_CHANGE, name, item)
                yield replace(entry, detail={"name": setting, "value": value}, is_quiet=True)


_SETTING = re.compile(
    r"(cleanup\.policy|retention\.(?:ms|bytes))(?:=| -> )\[?((?:compact|delete)(?:, ?(?:compact|delete))?|-?\d{1,19})"
)


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


def deleted_topics(entries: Iterable[TimelineEntry]) -> dict[str, int | Absent]:
    """Return topics that were deleted and have not been created since, with the time of the deletion."""
    deleted: dict[str, int | Absent] = {}
    for entry in entries:
        if not isinstance(entry.topic_partition, TopicPartition):
            continue
        if entry.kind == EventKind.TOPIC_DELETED:
            deleted[entry.topic_partition.topic] = entry.time_ms
        elif entry.kind == EventKind.TOPIC_CREATED:
            deleted.pop(entry.topic_partition.topic, None)
    return deleted


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
            recent = [one for one in discarded.get(partition, ()) if is_soon(one, item)]
            discarded[partition] = [*recent, item]
            nodes = {one.node_id for one in discarded[partition]}
            if len(nodes) > 1 and nodes >= holders.get(partition, nodes):
                holders[partition] = set()
                deleted.add(partition)
                yield _of_topic(EventKind.TOPIC_DELETED, partition.topic, item)


def _of_topic(kind: EventKind, topic: str, item: LoggedEvent) -> TimelineEntry:
    return TimelineEntry(
        kind=kind,
        time_ms=item.time_ms,
        topic_partition=TopicPartition(topic, WHOLE_TOPIC),
        citations=(item.citation,),
        is_quiet=kind == EventKind.TOPIC_CREATED,
    )


_FAR_MS = 30 * 86_400_000
"""A largest timestamp further than that from the last write of its segment is of a clock that was wrong, or of old records written anew."""


@dataclass(slots=True)
class _Deletion:
    """What was deleted so far."""

    first: LoggedEvent
    last: LoggedEvent
    segments: int = 0
    far: tuple[int, int] | None = None
    """The largest timestamp of a segment and when it was last written, where these are far from each other."""
    log_start_offset: int | Absent = Absent.UNKNOWN


def retention_entries(events: Iterable[LoggedEvent]) -> Iterator[TimelineEntry]:
    """Yield an entry for each partition, broker and rule, with the offset at which the log begins since."""
    found: dict[tuple[object, TopicPartition, str], _Deletion] = {}
    latest: dict[tuple[object, TopicPartition], _Deletion] = {}
    moved: dict[tuple[object, TopicPartition], LoggedEvent] = {}
    for item in of_kinds(events, (Kind.RETENTION, Kind.REMOTE_DELETED, Kind.LOG_START_MOVED)):
        partition = item.event.topic_partition
        if isinstance(partition, Absent):
            continue
        place = (item.node_id, partition)
        rule = rule_of(item.event)
        if rule:
            one = found.setdefault((*place, rule), _Deletion(item, item))
            one.last = item
            one.far = one.far or _stamped_far(item.event)
            bases = item.event.brokers("base_offsets")
            one.segments += len(bases) if isinstance(bases, tuple) else 1
            latest[place] = one
            # Since 3.0 the log start moves before the lines about the segments.
            if place in moved and is_soon(moved[place], item):
                one.log_start_offset = moved[place].event.number("log_start_offset")
        elif item.event.kind is Kind.LOG_START_MOVED:
            moved[place] = item
            if place in latest and is_soon(latest[place].last, item):
                latest[place].log_start_offset = item.event.number("log_start_offset")
    for (_, partition, rule), one in found.items():
        yield TimelineEntry(
            kind=EventKind.RETENTION,
            time_ms=one.first.time_ms,
            broker_id=one.first.node_id,
            topic_partition=partition,
            detail=_detail(one, rule),
            citations=tuple(dict.fromkeys((one.first.citation, one.last.citation))),
            is_quiet=rule == "log-start",
        )


def rule_of(event: LogEvent) -> str:
    """Return the rule by which retention deleted a segment, in remote storage too; empty where a line says nothing of that."""
    if event.kind not in {Kind.RETENTION, Kind.REMOTE_DELETED}:
        return ""
    by_start = "log-start" if event.fields.get("reason") == "log-start-offset" else ""
    return str(event.fields.get("rule", by_start))


def is_soon(before: LoggedEvent, item: LoggedEvent) -> bool:
    """Whether two lines can be about one deletion, by their times."""
    if not isinstance(before.time_ms, int) or not isinstance(item.time_ms, int):
        return True
    return abs(item.time_ms - before.time_ms) <= SAME_DELETION_MS


def _detail(one: _Deletion, rule: str) -> Detail:
    limit = one.last.event.number("limit")
    where = " in remote storage" if one.last.event.kind is Kind.REMOTE_DELETED else ""
    detail: dict[str, DetailValue] = {"segments": counted(one.segments, "segment") + where, "rule": _rule(rule, limit)}
    if isinstance(one.log_start_offset, int):
        detail["log_start_offset"] = one.log_start_offset
    if isinstance(one.last.time_ms, int) and one.last.time_ms != one.first.time_ms:
        detail["until_ms"] = one.last.time_ms
    if rule == "time" and one.far is not None:
        largest, modified = detail["largest_timestamp_ms"], detail["last_modified_ms"] = one.far
        detail["remark"] = (
            f"Its largest timestamp is {utc_words(largest)}, though it was last written {utc_words(modified)}"
        )
    elif rule == "time" and one.last.event.fields.get("basis") == "last modified time":
        detail["remark"] = "No timestamp of the records was usable: the time of the file decided"
    return detail


def _rule(rule: str, limit: int | Absent) -> str:
    match rule:
        case "time":
            return "retention by time" + (f" ({limit:,} ms)" if isinstance(limit, int) else "")
        case "size":
            return "retention by size" + (f" ({limit:,} bytes)" if isinstance(limit, int) else "")
        case _:
            return "its log start offset"


def _stamped_far(event: LogEvent) -> tuple[int, int] | None:
    """Return the largest timestamp of a segment and when it was last written, where these are far from each other; -1 was not read when the line was written."""
    largest, modified = event.number("largest_timestamp_ms"), event.number("last_modified_ms")
    if not isinstance(largest, int) or not isinstance(modified, int):
        return None
    return (largest, modified) if largest >= 0 and abs(largest - modified) >= _FAR_MS else None
