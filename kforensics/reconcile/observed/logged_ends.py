"""How far the log of each broker had grown, by its own lines, where no later line says that it was truncated or replaced."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from kforensics.damage import Absent
from kforensics.formats.log_lines.event import LogEvent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.clocks import SKEW_TOLERATED_MS
from kforensics.reconcile.observed.facts import LoggedEnd
from kforensics.reconcile.observed.logged_events import LoggedEvent, is_of_other_directory
from kforensics.units import METADATA_TOPICS, TopicPartition

_REACHED: Mapping[Kind, tuple[str, int]] = {
    Kind.SEGMENT_ROLLED: ("offset", 0),
    Kind.PRODUCER_SNAPSHOT: ("offset", 0),
    Kind.FOLLOWER_START: ("offset", 0),
    Kind.LEADER_START: ("offset", 0),
    Kind.LOG_LOADED: ("log_end_offset", 0),
    Kind.LOG_START_MOVED: ("log_start_offset", 0),
    Kind.TRUNCATION_DECISION: ("log_end_offset", 0),
    Kind.TRUNCATION_WITHOUT_EFFECT: ("last_offset", 1),
    Kind.FETCH_OFFSET_RESET: ("log_end_offset", 0),
}
"""The field that names an offset that the log had reached, and what lies between it and the log end offset."""
_ROLES = frozenset({Kind.FOLLOWER_START, Kind.LEADER_START})
"""Kinds of state-change.log: of lines of one millisecond their order beside those of server.log is not known."""
_TARGETS: Mapping[Kind, str] = {
    Kind.TRUNCATION: "offset",
    Kind.RECOVERY_TRUNCATION: "offset",
    Kind.SEGMENTS_DELETED: "base_offset",
}
_OTHER_LOGS = frozenset({Kind.LOG_CREATED, Kind.LOG_DISCARDED, Kind.STRAY_LOG, Kind.FULL_TRUNCATION})
"""Behind them the directory holds another log, none, or one that begins elsewhere."""

_DIRECTORY = re.compile(r"(?:^|[/\\])(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<number>[0-9]{1,9})$")

_Key = tuple[int, TopicPartition]


def logged_ends(
    events: Iterable[LoggedEvent], recreated_ms: Callable[[str], int | Absent]
) -> dict[TopicPartition, dict[int, LoggedEnd]]:
    """Return the highest offset that each log is known to have reached since it was last truncated, deleted or created.

    A later load that ends below is no truncation: it shows a log that has lost its end.

    Args:
        recreated_ms: when a topic was created again under its name, in UTC ms since 1970; earlier lines are of another log.
    """
    since = cache(recreated_ms)
    by_topic: dict[str, dict[_Key, LoggedEnd]] = {}
    truncated_ms: dict[_Key, int | Absent] = {}
    for item in events:
        event, node = item.event, item.node_id
        if event.kind is Kind.TOPIC_DELETED and isinstance(topic := event.fields.get("topic_name"), str):
            by_topic.pop(topic, None)
        if not isinstance(node, int) or not isinstance(partition := _partition_of(event), TopicPartition):
            continue
        if partition.topic in METADATA_TOPICS or is_of_other_directory(event):
            continue
        if _is_before(item.time_ms, since(partition.topic)):
            continue
        key, ends = (node, partition), by_topic.setdefault(partition.topic, {})
        reached = _reached(event)
        is_in_order = event.kind not in _ROLES or truncated_ms.get(key, Absent.UNKNOWN) != item.time_ms
        if reached is not None and is_in_order and (key not in ends or ends[key].offset < reached):
            ends[key] = LoggedEnd(reached, item.time_ms, item.citation)
        if _is_another_log(event):
            ends.pop(key, None)
        elif isinstance(target := _target(event), int):
            truncated_ms[key] = item.time_ms
            if key in ends and ends[key].offset > target:
                ends[key] = LoggedEnd(target, item.time_ms, item.citation)
    found: dict[TopicPartition, dict[int, LoggedEnd]] = {}
    for ends in by_topic.values():
        for (node, partition), end in ends.items():
            found.setdefault(partition, {})[node] = end
    return found


def _is_before(time_ms: int | Absent, created_ms: int | Absent) -> bool:
    """Whether a line is older than the topic, however the clocks of its broker and of the controller differ."""
    return isinstance(time_ms, int) and isinstance(created_ms, int) and time_ms + SKEW_TOLERATED_MS < created_ms


def _partition_of(event: LogEvent) -> TopicPartition | Absent:
    """Return the partition of a line; those of strays name directories alone."""
    if event.kind is not Kind.STRAY_LOG:
        return event.topic_partition
    directory = event.fields.get("directory")
    found = _DIRECTORY.search(directory) if isinstance(directory, str) else None
    return Absent.NOT_WRITTEN if found is None else TopicPartition(found["topic"], int(found["number"]))


def _reached(event: LogEvent) -> int | None:
    name, behind = _REACHED.get(event.kind, ("", 0))
    value = event.number(name) if name else Absent.NOT_WRITTEN
    return value + behind if isinstance(value, int) else None


def _is_another_log(event: LogEvent) -> bool:
    if event.kind is Kind.SEGMENTS_DELETED:
        return isinstance(event.number("base_offset"), Absent)
    if event.kind is Kind.FETCH_OFFSET_RESET and event.fields.get("rule") == "leader-start":
        own, target = event.number("log_end_offset"), event.number("offset")
        return isinstance(own, Absent) or isinstance(target, Absent) or target > own
    return event.kind in _OTHER_LOGS


def _target(event: LogEvent) -> int | Absent:
    """Return the offset that a log was truncated to."""
    if event.kind is Kind.FETCH_OFFSET_RESET:
        return event.number("offset") if event.fields.get("rule") == "leader-end" else Absent.NOT_APPLICABLE
    return event.number(_TARGETS[event.kind]) if event.kind in _TARGETS else Absent.NOT_APPLICABLE
