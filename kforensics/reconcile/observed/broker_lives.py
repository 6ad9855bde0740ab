"""When each broker ran and how it started, and where the logs ended that it loaded, by its own lines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.formats.log_lines.event import LogEvent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.facts import LogLoad
from kforensics.reconcile.observed.logged_events import (
    LoggedEvent,
    is_of_other_directory,
    lines_of_nodes,
    log_written,
    of_kinds,
)
from kforensics.reconcile.observed.logged_leaderships import is_creation
from kforensics.reconcile.observed.logged_periods import LoggedPeriods, logged_periods
from kforensics.units import METADATA_TOPICS, TopicPartition

_ROLES = frozenset({Kind.LEADER_START, Kind.FOLLOWER_START})
_UNCLEAN_STARTS = frozenset(
    {Kind.RECOVERY_START, Kind.SEGMENT_RECOVERY, Kind.RECOVERY_TRUNCATION, Kind.INVALID_RECORDS, Kind.BROKER_HALTED}
)
_STARTS = frozenset({Kind.BROKER_STARTED, Kind.CLEAN_START})
_SHORTENED = frozenset({Kind.TRUNCATION, Kind.FULL_TRUNCATION, Kind.RECOVERY_TRUNCATION})
_OTHER_LOGS = frozenset({Kind.LOG_DISCARDED, Kind.LOG_CREATED})
_OF_LOGS = frozenset(
    {*_OTHER_LOGS, Kind.BROKER_STOPPED, Kind.BROKER_STARTED, Kind.STRAY_LOG, Kind.TOPIC_DELETED, Kind.LOG_LOADED}
)
_OF_LOADS = frozenset({*_SHORTENED, *_OTHER_LOGS, Kind.BROKER_STOPPED, Kind.PRODUCER_SNAPSHOT, Kind.LOG_LOADED})
"""Behind them the directory holds another log, or none."""
_STOP_MS = 60_000
"""The most time between the producer snapshots that a stop writes and the broker's last line."""
_CLOCK_MS = 10_000
"""A line may be this much older than one before it: threads write side by side, and a clock is set by small steps."""
LINES_OF_A_START_MS = 10_000
"""The lines of one start are written within this time, those that say of each log directory how it was left among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLife:
    """The time of the first line of a broker's server.log, and the times of its starts after an unclean shutdown; milliseconds UTC."""

    first_ms: int
    unclean_starts: tuple[int, ...]
    starts: tuple[int, ...] = ()
    """Every start, its first line in the file left out where it is one."""
    went_back: bool = False
    """Whether its clock went back while it logged, so that the order of its lines and those of others is unknown."""
    last_ms: int | None = None
    """The time of the last line, where the server.log that is being written is not given."""
    new_disks: tuple[int, ...] = ()
    """The starts at which a log directory had lost its identity, or all its logs, though the broker had started before."""

    def reaches(self, time_ms: int) -> bool:
        """Whether the lines reach as far as a time."""
        return self.last_ms is None or time_ms <= self.last_ms

    def is_unbroken(self, since_ms: int, until_ms: int) -> bool:
        """Return whether the lines begin before a time, reach another, and report no start after an unclean shutdown in between."""
        if self.went_back or self.first_ms > since_ms or not self.reaches(until_ms):
            return False
        return not any(since_ms <= start <= until_ms for start in self.unclean_starts)

    def started_clean(self, since_ms: int) -> bool:
        """Return whether the lines begin before a time, and the first start since then found the marker of a clean stop."""
        if self.went_back or self.first_ms > since_ms:
            return False
        first = min((one for one in (*self.starts, *self.unclean_starts) if one >= since_ms), default=None)
        if first is None or not self.reaches(first + LINES_OF_A_START_MS):
            return False
        return not any(first <= one <= first + LINES_OF_A_START_MS for one in self.unclean_starts)


def broker_lives(events: Sequence[LoggedEvent], periods: LoggedPeriods | None = None) -> dict[int, BrokerLife]:
    """Return by broker when it ran and how it started, by its own lines and, where it is given, the time that they cover, in UTC ms."""
    periods = periods or logged_periods(events)
    went_back = _with_clocks_that_went_back(events)
    starts: dict[int, list[int]] = {}
    clean: dict[int, list[int]] = {}
    new_disks: dict[int, list[int]] = {}
    has_started: set[int] = set()
    for broker, time_ms in _made_again(events):
        new_disks.setdefault(broker, []).append(time_ms)
    for item in of_kinds(events, {Kind.NEW_LOG_DIR, *_UNCLEAN_STARTS, *_STARTS}):
        if not isinstance(item.node_id, int) or not isinstance(item.time_ms, int):
            continue
        if item.event.kind is Kind.NEW_LOG_DIR and item.node_id in has_started:
            new_disks.setdefault(item.node_id, []).append(item.time_ms)
        elif item.event.kind is Kind.BROKER_STARTED:
            has_started.add(item.node_id)
        if item.event.kind in _UNCLEAN_STARTS and not _is_of_metadata(item.event):
            starts.setdefault(item.node_id, []).append(item.time_ms)
        elif item.event.kind in _STARTS:
            clean.setdefault(item.node_id, []).append(item.time_ms)
    for broker, since_ms, time_ms in _returns(events):
        logged = (*starts.get(broker, ()), *clean.get(broker, ()))
        if not any(since_ms <= one <= time_ms + LINES_OF_A_START_MS for one in logged):
            clean.setdefault(broker, []).append(time_ms)
    return {
        broker: BrokerLife(
            first_ms=time_ms,
            unclean_starts=tuple(starts.get(broker, ())),
            starts=tuple(sorted(clean.get(broker, ()))),
            new_disks=tuple(new_disks.get(broker, ())),
            last_ms=periods.last.get(broker),
            went_back=broker in went_back,
        )
        for broker, time_ms in periods.first.items()
    }


def _returns(events: Iterable[LoggedEvent]) -> Iterator[tuple[int, int, int]]:
    """Yield broker, time before and time of each role in a partition that a broker took up as if for the first time, though it had one before: it had restarted.

    A broker knows the leader epoch before while it runs; lines of its start may be missing, as those of INFO are where server.log has only warnings.
    """
    latest: dict[tuple[int, TopicPartition], int] = {}
    for item in of_kinds(events, {*_OTHER_LOGS, *_ROLES}):
        event, partition = item.event, item.event.topic_partition
        if not isinstance(item.node_id, int) or not isinstance(item.time_ms, int) or isinstance(partition, Absent):
            continue
        key = (item.node_id, partition)
        if event.kind in _OTHER_LOGS and not is_of_other_directory(event):
            latest.pop(key, None)
        elif event.kind in _ROLES:
            if key in latest and event.number("previous_leader_epoch") == -1 and not is_creation(event):
                yield item.node_id, latest[key], item.time_ms
            latest[key] = item.time_ms


def _made_again(events: Sequence[LoggedEvent]) -> Iterator[tuple[int, int]]:
    """Yield broker and time of each start that found no log of those the broker had and none had removed, and made one of them anew: its log directory had been emptied."""
    held: dict[int, dict[str, set[int]]] = {}
    """Partitions by topic and broker: of thousands of deleted topics each is looked up."""
    has_loaded: set[int] = set()
    is_whole = not any(one.file.events_dropped for one in lines_of_nodes(events))
    for item in of_kinds(events, _OF_LOGS) if is_whole else events:
        event, node, partition = item.event, item.node_id, item.event.topic_partition
        if not isinstance(node, int) or not isinstance(item.time_ms, int):
            continue
        own = held.setdefault(node, {})
        if event.kind in {Kind.BROKER_STOPPED, Kind.BROKER_STARTED}:
            has_loaded.discard(node)
        elif event.kind is Kind.STRAY_LOG or item.file.events_dropped:
            # Which log was put aside is not always said, and of lines that were left out one may say it.
            own.clear()
        elif event.kind is Kind.TOPIC_DELETED:
            for logs in held.values():
                logs.pop(str(event.fields.get("topic_name")), None)
        elif isinstance(partition, Absent) or partition.topic in METADATA_TOPICS or is_of_other_directory(event):
            continue
        elif event.kind is Kind.LOG_DISCARDED:
            own.get(partition.topic, set()).discard(partition.partition)
        elif event.kind is Kind.LOG_LOADED:
            has_loaded.add(node)
            own.setdefault(partition.topic, set()).add(partition.partition)
        elif event.kind is Kind.LOG_CREATED:
            if partition.partition in own.get(partition.topic, ()) and node not in has_loaded:
                yield node, item.time_ms
                own.clear()
            own.setdefault(partition.topic, set()).add(partition.partition)


def _is_of_metadata(event: LogEvent) -> bool:
    """Whether the line is about the metadata log, which every start recovers."""
    return isinstance(event.topic_partition, TopicPartition) and event.topic_partition.topic in METADATA_TOPICS


def _with_clocks_that_went_back(events: Sequence[LoggedEvent]) -> frozenset[int]:
    """Return the nodes of which a log, rotated files included, holds a line that is older than one before it, by more than threads and clock services bring about."""
    latest: dict[tuple[int, tuple[int | Absent, str]], int] = {}
    logs: dict[int, tuple[int | Absent, str]] = {}
    found: set[int] = set()
    for item in events if _goes_back(events) else ():
        if not isinstance(item.node_id, int) or not isinstance(item.time_ms, int):
            continue
        key = (item.node_id, logs.setdefault(id(item.file), log_written(item.file)))
        latest[key] = max(item.time_ms, latest.get(key, item.time_ms))
        if item.time_ms < latest[key] - _CLOCK_MS:
            found.add(item.node_id)
    return frozenset(found)


def _goes_back(events: Iterable[LoggedEvent]) -> bool:
    """Whether any line is older than one before it, of whatever log."""
    latest = 0
    for _, _, time_ms, _ in events:
        if isinstance(time_ms, int):
            if time_ms > latest:
                latest = time_ms
            elif time_ms < latest - _CLOCK_MS:
                return True
    return False


def log_loads(events: Sequence[LoggedEvent]) -> dict[tuple[int, TopicPartition], tuple[LogLoad, ...]]:
    """Return the loads of each broker's logs, with where each log had ended at the clean stop before, as far as lines show it.

    A stop writes a producer snapshot at the end of each log that was appended to since the last one.
    """
    out: dict[tuple[int, TopicPartition], list[LogLoad]] = {}
    ends: dict[tuple[int, TopicPartition], int] = {}
    written: set[tuple[int, TopicPartition]] = set()
    snapshot_ms: dict[int, int] = {}
    stop_ms: dict[int, int] = {}
    # Where not all lines of a node were kept, a snapshot or a new log may be among the others.
    lacking = {one.node_id for one in lines_of_nodes(events) if one.file.events_dropped}
    for item in of_kinds(events, _OF_LOADS):
        event, node, time_ms = item.event, item.node_id, item.time_ms
        if not isinstance(node, int) or not isinstance(time_ms, int):
            continue
        if event.kind is Kind.BROKER_STOPPED:
            stop_ms[node] = time_ms
        if isinstance(event.topic_partition, Absent) or is_of_other_directory(event):
            continue
        key, offset = (node, event.topic_partition), event.number("offset")
        if event.kind is Kind.PRODUCER_SNAPSHOT and isinstance(offset, int):
            ends[key], snapshot_ms[node] = offset, time_ms
            written.add(key)
        elif event.kind in _SHORTENED and isinstance(offset, int) and key in ends:
            ends[key] = min(ends[key], offset)
        elif event.kind in _OTHER_LOGS:
            ends.pop(key, None)
        elif event.kind is Kind.LOG_LOADED and isinstance(end := event.number("log_end_offset"), int):
            stopped = stop_ms.get(node, -_STOP_MS - 1)
            has_written = key in written or 0 <= stopped - snapshot_ms.get(node, 0) <= _STOP_MS
            known = ends.get(key, Absent.UNKNOWN) if has_written and node not in lacking else Absent.UNKNOWN
            out.setdefault(key, []).append(LogLoad(time_ms, end, known))
            ends[key] = end
            written.discard(key)
    return {key: tuple(found) for key, found in out.items()}
