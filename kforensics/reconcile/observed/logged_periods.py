"""From when to when the lines of each broker reach, which of its rolled files are missing, and which brokers a ZooKeeper controller ever called alive."""

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.formats.log_lines.event import ELECTION_KINDS, LogEventKind
from kforensics.reconcile.observed.logged_events import LoggedEvent, lines_of_nodes, of_kinds
from kforensics.units import PACKED_ENDING

_ROLLED = re.compile(
    r"(?:^|/)server\.log(?:\.(?P<number>\d{1,4})|\.(?P<day>\d{4}-\d\d-\d\d)(?:-(?P<hour>\d\d))?)?"
    + PACKED_ENDING
    + "?$",
    re.ASCII,
)
_WRITTEN = re.compile(
    r"(?:^|/)(?P<log>(?:server|state-change|controller)\.log)(?P<rolled>[.\-_](?:\d{1,4}|\d{4}-\d\d-\d\d[^/]{0,16}?))?"
    + PACKED_ENDING
    + "?$",
    re.ASCII,
)
"""The logs that show how a broker started and who led, by the names in Kafka's own `log4j.properties`."""
_HOUR_MS, _DAY_HOURS = 3_600_000, 24


def log_of(file: LogFile) -> str | None:
    """Return the name of the log that a file is or was rolled out of; None for any other."""
    name = _WRITTEN.search(file.path)
    return name["log"] if name else None


def logs_without_newest(files: Sequence[LogFile]) -> dict[int, tuple[str, ...]]:
    """Return by node the names of the logs of which only rolled files are given: the appender makes the one without a suffix again at once.

    The few lines of a file that was begun lately need not name their node: it is that of the rolled files beside it.
    """
    named = [(file, name) for file in files if (name := _WRITTEN.search(file.path))]
    without_node = {
        (file.input, file.path)
        for file, name in named
        if isinstance(file.node_id, Absent) and name["rolled"] is None and not file.is_compressed
    }
    found: dict[tuple[int, str], bool] = {}
    for file, name in named:
        if isinstance(file.node_id, int):
            key = file.node_id, name["log"]
            is_beside = (file.input, file.path[: name.end("log")]) in without_node
            found[key] = found.get(key, True) and name["rolled"] is not None and not is_beside
    missing: dict[int, tuple[str, ...]] = {}
    for (node, log), is_missing in sorted(found.items()):
        if is_missing:
            missing[node] = (*missing.get(node, ()), log)
    return missing


def files_before_missing(events: Iterable[LoggedEvent], files: Iterable[LogFile] = ()) -> dict[int, frozenset[int]]:
    """Return by node the files of its server.log that are older than one that is missing, by identity; nodes of which none is missing are left out.

    Appenders of log4j name rolled files by numbers, 1 the newest, or by the hour or day of their lines, as Kafka's own `log4j.properties` does. An hour without any
    line has no file: it counts as missing, since nothing tells it from one that is.

    Args:
        files: all log files, so that those without any event are known to be here.
    """
    found: dict[int, dict[int, tuple[re.Match[str], int | None]]] = {}
    for one in lines_of_nodes(events):
        known = found.setdefault(one.node_id, {}) if isinstance(one.node_id, int) else {}
        if isinstance(one.begin_ms, int) and (name := _ROLLED.search(one.file.path)):
            known[id(one.file)] = name, one.begin_ms
    for file in files:
        known = found.setdefault(file.node_id, {}) if isinstance(file.node_id, int) else {}
        if id(file) not in known and (name := _ROLLED.search(file.path)):
            # One that is being written is of the hour in which it was last written to.
            known[id(file)] = name, None if name["day"] else file.mtime_ns // 1_000_000
    return {node: old for node, known in found.items() if (old := _before_missing(known))}


def _before_missing(files: dict[int, tuple[re.Match[str], int | None]]) -> frozenset[int]:
    places = _places(files)
    found: frozenset[int] = frozenset()
    # What is written last need not hold a line that says anything, but 1 follows it.
    newest = {0} if all(place <= 0 for place in places.values()) else set()
    for older, newer in pairwise(sorted({*places.values(), *newest})):
        if newer - older > 1:
            found = frozenset(file for file, place in places.items() if place <= older)
    return found


def _places(files: dict[int, tuple[re.Match[str], int | None]]) -> dict[int, int]:
    """Return the place of each file in time, by its name: one that follows another has the next higher number."""
    dated = {file: hour for file, (name, _) in files.items() if (hour := _hours(name)) is not None}
    if not dated:
        return {file: -int(name["number"] or 0) for file, (name, _) in files.items()}
    unit = 1 if any(files[file][0]["hour"] for file in dated) else _DAY_HOURS
    # Names are in the broker's own time zone: a dated file and its first line show it.
    times = {file: first_ms // _HOUR_MS for file, (_, first_ms) in files.items() if first_ms is not None}
    newest = max((file for file in dated if file in times), key=dated.__getitem__, default=None)
    zone = 0 if newest is None or unit > 1 else dated[newest] - times[newest]
    hours = {**({file: hour + zone for file, hour in times.items()} if newest is not None else {}), **dated}
    return {file: hour // unit for file, hour in hours.items()}


def _hours(name: re.Match[str]) -> int | None:
    if name["day"] is None:
        return None
    try:
        day = dt.date.fromisoformat(name["day"]).toordinal() - dt.date(1970, 1, 1).toordinal()
    except ValueError:
        return None
    return day * _DAY_HOURS + int(name["hour"] or 0)


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
    found: dict[int, int] = {}
    for one in lines_of_nodes(events):
        node, first = one.node_id, one.first_ms
        if not isinstance(node, int) or not isinstance(first, int) or one.kinds <= ELECTION_KINDS:
            continue
        if id(one.file) not in too_old.get(node, ()):
            found[node] = min(first, found.get(node, first))
    return found


def _last_lines(events: Iterable[LoggedEvent], nodes: Iterable[int]) -> dict[int, int]:
    """Return the newest time of a line in the server.log of each of the nodes; before all time where one has none."""
    found = dict.fromkeys(nodes, -1)
    for one in lines_of_nodes(events):
        node, last = one.node_id, one.last_ms
        if isinstance(node, int) and isinstance(last, int) and node in found and log_of(one.file) == "server.log":
            found[node] = max(last, found[node])
    return found


def _members(events: Iterable[LoggedEvent]) -> frozenset[int]:
    found: set[int] = set()
    for item in of_kinds(events, (LogEventKind.LIVE_BROKERS,)):
        if not isinstance(alive := item.event.brokers("all"), Absent):
            found |= set(alive)
    return frozenset(found)
