"""How far back the lines of each broker reach, and which brokers a ZooKeeper controller ever called alive."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.formats.log_lines.event import ELECTION_KINDS, LogEventKind
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.observed.rolled_files import files_before_missing


class HeardLines(NamedTuple):
    """The beginnings of the lines of all brokers that are heard."""

    first: Mapping[int, int]
    """When each broker's lines begin, in UTC ms, in files that show its starts; behind a rolled file that is missing, where one is."""
    too_old: Mapping[int, frozenset[int]]
    """By broker: the files of its server.log that are older than one that is missing, by identity."""
    cluster: frozenset[int]
    """Every broker that a ZooKeeper controller ever called alive."""


def heard_lines(events: Sequence[LoggedEvent], files: Sequence[LogFile] = ()) -> HeardLines:
    """Return where the lines of each broker begin.

    Args:
        events: of all nodes; state-change.log and controller.log show no start, however far back they reach.
        files: all log files.
    """
    too_old = files_before_missing(events, files)
    return HeardLines(_first_lines(events, too_old), too_old, _members(events))


def _first_lines(events: Iterable[LoggedEvent], too_old: Mapping[int, frozenset[int]]) -> dict[int, int]:
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


def _members(events: Iterable[LoggedEvent]) -> frozenset[int]:
    found: set[int] = set()
    for item in events:
        is_alive = item.event.kind is LogEventKind.LIVE_BROKERS
        if is_alive and not isinstance(alive := item.event.brokers("all"), Absent):
            found |= set(alive)
    return frozenset(found)
