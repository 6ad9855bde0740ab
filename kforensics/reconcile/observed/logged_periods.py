"""From when to when the lines of each broker reach, and which brokers a ZooKeeper controller ever called alive."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.formats.log_lines.event import ELECTION_KINDS, LogEventKind
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.observed.rolled_files import files_before_missing, log_of, logs_without_newest


class LoggedPeriods(NamedTuple):
    """When the lines of brokers begin and end: what happened to a broker outside of that is not known from its lines."""

    first: Mapping[int, int]
    """When each broker's lines begin, in UTC ms, in files that show its starts; behind a rolled file that is missing, where one is."""
    too_old: Mapping[int, frozenset[int]]
    """By broker: the files of its server.log that are older than one that is missing, by identity."""
    without_newest: Mapping[int, tuple[str, ...]]
    """By broker: the names of its logs of which the file that is being written is not given."""
    last: Mapping[int, int]
    """When the lines of the server.log of these brokers end, in UTC ms; those of all others reach as far as anything does."""
    cluster: frozenset[int]
    """Every broker that a ZooKeeper controller ever called alive."""


def logged_periods(events: Sequence[LoggedEvent], files: Sequence[LogFile] = ()) -> LoggedPeriods:
    """Return where the lines of each broker begin, and where they end.

    Args:
        events: of all nodes; state-change.log and controller.log show no start, however far back they reach.
    """
    too_old = files_before_missing(events, files)
    without_newest = logs_without_newest(files)
    return LoggedPeriods(
        first=first_lines(events, too_old),
        too_old=too_old,
        without_newest=without_newest,
        last=_last_lines(events, [node for node, logs in without_newest.items() if "server.log" in logs]),
        cluster=_members(events),
    )


def first_lines(events: Iterable[LoggedEvent], too_old: Mapping[int, frozenset[int]]) -> dict[int, int]:
    """Return when each broker's lines begin, in UTC ms, in files that show its starts.

    Args:
        too_old: by broker: the files of its server.log that are older than one that is missing, by identity.
    """
    first: dict[tuple[int, int], int] = {}
    showing: set[tuple[int, int]] = set()
    for item in events:
        if not isinstance(item.node_id, int) or not isinstance(item.time_ms, int):
            continue
        key = (item.node_id, id(item.file))
        first[key] = min(item.time_ms, first.get(key, item.time_ms))
        if item.event.kind not in ELECTION_KINDS:
            showing.add(key)
    found: dict[int, int] = {}
    for node, file in showing:
        if file in too_old.get(node, ()):
            continue
        found[node] = min(first[node, file], found.get(node, first[node, file]))
    return found


def _last_lines(events: Iterable[LoggedEvent], nodes: Iterable[int]) -> dict[int, int]:
    """Return the newest time of a line in the server.log of each of the nodes; before all time where one has none."""
    found = dict.fromkeys(nodes, -1)
    for item in events if found else ():
        node, time_ms = item.node_id, item.time_ms
        if not isinstance(node, int) or not isinstance(time_ms, int) or time_ms <= found.get(node, time_ms):
            continue
        if log_of(item.file) == "server.log":
            found[node] = time_ms
    return found


def _members(events: Iterable[LoggedEvent]) -> frozenset[int]:
    found: set[int] = set()
    for item in events:
        is_alive = item.event.kind is LogEventKind.LIVE_BROKERS
        if is_alive and not isinstance(alive := item.event.brokers("all"), Absent):
            found |= set(alive)
    return frozenset(found)
