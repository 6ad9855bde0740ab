"""The logs of an earlier topic of the same name: since when the topic of now exists, and which directories are from before its creation."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.logged_events import LoggedEvent, of_kinds
from kforensics.reconcile.observed.logged_leaderships import creation_times
from kforensics.reconcile.observed.logged_periods import files_before_missing, first_lines
from kforensics.reconcile.timeline.logged_operations import deletion_times, logged_operations
from kforensics.units import TopicPartition

MAKING_MS = 10_000
"""Brokers hear of a new partition within this time of one another."""

_STARTS = frozenset({Kind.LOG_CREATED, Kind.LEADER_START, Kind.FOLLOWER_START})


@dataclass(frozen=True, slots=True, kw_only=True)
class Incarnation:
    """The creation of one partition, by log lines."""

    created_ms: int | Absent = Absent.UNKNOWN
    """The time since which it exists; what was written before is of another topic."""
    is_after_deletion: bool = False
    """Whether lines report that a topic of the name was deleted before."""
    stale_ends: Mapping[int, int] = field(default_factory=dict)
    """The end of the log of an earlier topic that a broker still had when it came back, by broker."""
    begun_on: frozenset[int] = frozenset()
    """Brokers of which a line since then shows that they began its log."""

    def may_be_of_earlier(self, broker_id: int | Absent, time_ms: int | Absent) -> bool:
        """Return whether the log that a broker had at a time after the creation may be that of an earlier topic, as far as lines show."""
        is_after = isinstance(self.created_ms, int) and isinstance(time_ms, int) and time_ms > self.created_ms
        return is_after and broker_id not in self.begun_on


def incarnations(events: Sequence[LoggedEvent]) -> dict[TopicPartition, Incarnation]:
    """Return the creation of every partition that log lines report, in UTC."""
    created = creation_times(events)
    deleted = deletion_times(logged_operations(events))
    for item in events if deleted else ():
        partition = item.event.topic_partition
        if isinstance(partition, TopicPartition) and partition.topic in deleted:
            created[partition] = max(deleted[partition.topic], created.get(partition, 0))
    stale, begun = _stale_ends(events, created), _begun_on(events, created)
    return {
        partition: Incarnation(
            created_ms=time_ms,
            is_after_deletion=partition.topic in deleted,
            stale_ends=stale.get(partition, {}),
            begun_on=frozenset(begun.get(partition, ())),
        )
        for partition, time_ms in created.items()
    }


class MadeAnew(NamedTuple):
    """A log that a broker made in a start, or after a log directory of it had failed."""

    broker_id: int
    time_ms: int
    directory: str
    since_ms: int
    """When the broker had been started, or the log directory failed: what was assigned to it by then had a log already."""
    failed: str
    """The log directory that had failed by then; empty where none had."""


def logs_made_anew(events: Iterable[LoggedEvent]) -> dict[TopicPartition, tuple[MadeAnew, ...]]:
    """Return by partition the logs that brokers made once they had been started, or a log directory of theirs had failed, by lines in the order of time."""
    since: dict[int, tuple[int, str]] = {}
    loading: set[int] = set()
    found: dict[TopicPartition, list[MadeAnew]] = {}
    for item in events:
        event, node, time_ms = item.event, item.node_id, item.time_ms
        if not isinstance(node, int) or not isinstance(time_ms, int):
            continue
        if event.kind in {Kind.LOGS_LOADING, Kind.VERSION, Kind.LOG_DIR_FAILED}:
            failed = str(event.fields.get("directory", "")) if event.kind is Kind.LOG_DIR_FAILED else ""
            # A start names its version late: topics are created between that and the loading of its logs.
            is_same_start = event.kind is Kind.VERSION and node in loading
            if failed or not (is_same_start or since.get(node, (0, ""))[1]):
                since[node] = time_ms, failed
            (loading.add if event.kind is Kind.LOGS_LOADING else loading.discard)(node)
        partition, directory = event.topic_partition, str(event.fields.get("directory", ""))
        if (
            event.kind is Kind.LOG_CREATED
            and isinstance(partition, TopicPartition)
            and node in since
            and not directory.endswith("-future")
        ):
            found.setdefault(partition, []).append(MadeAnew(node, time_ms, directory, *since[node]))
    return {partition: tuple(made) for partition, made in found.items()}


def _created_on(
    events: Iterable[LoggedEvent], created: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the replicas that a controller's lines assign to each partition when it is created."""
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for item in of_kinds(events, (Kind.REPLICAS_ASSIGNED,)):
        partition, event = item.event.topic_partition, item.event
        if isinstance(partition, Absent) or isinstance(item.time_ms, Absent):
            continue
        brokers, since = event.brokers("replicas"), created.get(partition)
        if since is not None and not isinstance(brokers, Absent) and abs(item.time_ms - since) <= MAKING_MS:
            found[partition] = brokers
    return found


def _begun_on(events: Iterable[LoggedEvent], created: Mapping[TopicPartition, int]) -> dict[TopicPartition, set[int]]:
    """Return the brokers that began a log of the partition since its creation: they made its directory, or took up a role in it at offset 0."""
    begun: dict[TopicPartition, set[int]] = {}
    for item in of_kinds(events, _STARTS):
        partition, event = item.event.topic_partition, item.event
        if isinstance(partition, Absent):
            continue
        if not isinstance(item.node_id, int) or not isinstance(item.time_ms, int):
            continue
        is_new = event.kind is Kind.LOG_CREATED or event.number("offset") == 0
        if is_new and item.time_ms > created.get(partition, item.time_ms) - MAKING_MS:
            begun.setdefault(partition, set()).add(item.node_id)
    return begun


def _stale_ends(
    events: Sequence[LoggedEvent], created: Mapping[TopicPartition, int]
) -> dict[TopicPartition, dict[int, int]]:
    """Return logs with records that brokers loaded when they came back after the creation: they are not of it.

    Only of brokers that it was created on and whose lines reach back before it: others may have got the log by a copy of another disk, or at a start that no line is left of.
    """
    begins = first_lines(events, files_before_missing(events))
    members = _created_on(events, created)
    decided: set[tuple[int, TopicPartition]] = set()
    stale: dict[TopicPartition, dict[int, int]] = {}
    for item in of_kinds(events, {*_STARTS, Kind.LOG_LOADED}):
        partition, event = item.event.topic_partition, item.event
        if isinstance(partition, Absent) or not isinstance(item.node_id, int) or not isinstance(item.time_ms, int):
            continue
        since, node = created.get(partition), item.node_id
        if since is None or item.time_ms <= since - MAKING_MS or (node, partition) in decided:
            continue
        if begins.get(node, since) >= since or node not in members.get(partition, {node}):
            continue
        if event.kind in _STARTS:
            decided.add((node, partition))
        elif event.kind is Kind.LOG_LOADED:
            decided.add((node, partition))
            end = event.number("log_end_offset")
            if isinstance(end, int) and end > 0:
                stale.setdefault(partition, {})[node] = end
    return stale
