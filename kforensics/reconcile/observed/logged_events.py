"""Events of all log files in one order of time, each with the node that wrote it and its time in UTC."""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.model import Citation
from kforensics.formats.log_lines.event import FieldValue, LogEvent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.clocks import Clock
from kforensics.units import PACKED_ENDING, TopicPartition

_ROTATED = re.compile(r"(?<=\.log)[.\-_](\d+|\d{4}-\d{2}-\d{2}.*?)" + PACKED_ENDING + r"?$")
"""The end of a rotated file's name, by number or by date; the file without one is written last."""
_OTHER_DIRECTORIES = ("-delete", "-future", "-stray")
_AS_FOLLOWER = frozenset(
    {Kind.TRUNCATION, Kind.TRUNCATION_DECISION, Kind.TRUNCATION_WITHOUT_EFFECT, Kind.FETCH_OFFSET_RESET}
)
_FIRST = frozenset({Kind.FOLLOWER_START, Kind.LOG_LOADED, Kind.TRUNCATION})
"""Kinds that may have to precede a line of another file."""
_ORDERED = _AS_FOLLOWER | _FIRST | {Kind.LEADER_START}
_Replica = tuple[int | Absent, TopicPartition | Absent]
_Followed = dict[_Replica, int | Absent | None]
"""The leader that each replica follows by the last line of its role; None where it was loaded, led, or was told of no leader, and no line says yet whom it follows."""


class LoggedEvent(NamedTuple):
    """One event with its node, its time in UTC, and its file; sequences of them are of all nodes, in the order of time."""

    event: LogEvent
    node_id: int | Absent
    time_ms: int | Absent
    file: LogFile

    @property
    def citation(self) -> Citation:
        """Return the citation of the event; it is made on demand, since most events are never cited."""
        return self.file.cite(self.event)


class NodeLines(NamedTuple):
    """What the lines of one node in one file, known or not kept, reach from and to."""

    node_id: int | Absent
    file: LogFile
    begin_ms: int | Absent
    """The time of the first line that has one; where a clock went back it is not the earliest."""
    first_ms: int | Absent
    """The earliest time."""
    last_ms: int | Absent
    """The latest time."""
    kinds: frozenset[Kind]


class LoggedEvents(tuple[LoggedEvent, ...]):  # noqa: SLOT001 - its indexes are kept with it
    """All events of a case; of kinds that are asked for only their places are gone through."""

    @cached_property
    def places(self) -> Mapping[Kind, Sequence[int]]:
        """The places of the events of each kind."""
        found: defaultdict[Kind, list[int]] = defaultdict(list)
        for at, item in enumerate(self):
            found[item.event.kind].append(at)
        return found

    @cached_property
    def lines(self) -> tuple[NodeLines, ...]:
        """By node and file, in the order of their first lines."""
        found: defaultdict[tuple[int | Absent, int], list[LoggedEvent]] = defaultdict(list)
        for item in self:
            found[item.node_id, id(item.file)].append(item)
        out = []
        for (node, _), items in found.items():
            times = [item.time_ms for item in items if isinstance(item.time_ms, int)]
            first, last = (min(times), max(times)) if times else (Absent.UNKNOWN, Absent.UNKNOWN)
            kinds = frozenset(item.event.kind for item in items)
            out.append(NodeLines(node, items[0].file, times[0] if times else Absent.UNKNOWN, first, last, kinds))
        return tuple(out)


def places_of_kinds(events: Sequence[LoggedEvent], kinds: Collection[Kind]) -> list[int]:
    """Return the places of the events of some kinds."""
    if not isinstance(events, LoggedEvents):
        return [at for at, item in enumerate(events) if item.event.kind in kinds]
    return sorted(chain.from_iterable(events.places.get(kind, ()) for kind in kinds))


def of_kinds(events: Iterable[LoggedEvent], kinds: Collection[Kind]) -> list[LoggedEvent]:
    """Return the events of some kinds, in their order."""
    if not isinstance(events, LoggedEvents):
        return [item for item in events if item.event.kind in kinds]
    return [events[at] for at in places_of_kinds(events, kinds)]


def lines_of_nodes(events: Iterable[LoggedEvent]) -> tuple[NodeLines, ...]:
    """Return what the lines of each node reach from and to, by file, in the order of their first lines."""
    return (events if isinstance(events, LoggedEvents) else LoggedEvents(events)).lines


def order_events(files: Sequence[LogFile], clocks: Sequence[Clock]) -> LoggedEvents:
    """Return all events by time; lines of one file keep their order, and a line without a time follows the line before it.

    A file that is being written follows those that were rotated out of it, whatever its times say. Of lines of one time in
    several files of a node, that with which a replica began to follow precedes its truncation. A line that two files of
    a node hold, as where a container's output lies beside the log or a log was rotated between two copies, is one.
    """
    with_events = [(file, clock) for file, clock in zip(files, clocks, strict=True) if file.events]
    if len(with_events) == 1:
        (file, clock) = with_events[0]
        return LoggedEvents(_items(file, clock))
    keyed = []
    rotated = _ends_of_rotated(files, clocks)
    items = [list(_items(file, clock)) for file, clock in zip(files, clocks, strict=True)]
    once = _Once(items)
    for at, file in sorted(
        enumerate(files), key=lambda one: (isinstance(one[1].node_id, Absent), not _is_rotated(one[1]))
    ):
        latest = 0 if _is_rotated(file) else rotated.get(log_written(file), -1) + 1
        for number, item in enumerate(once.of_file(items[at])):
            # A clock that jumps back must not change the order of a file's lines.
            latest = max(latest, item.time_ms) if isinstance(item.time_ms, int) else latest
            keyed.append((latest, at, number, item))
    keyed.sort(key=itemgetter(0, 1, 2))
    ordered: list[LoggedEvent] = []
    followed: _Followed = {}
    for time_ms, tied in groupby(keyed, itemgetter(0)):
        by_file = [[item for *_, item in one] for _, one in groupby(tied, itemgetter(1))]
        ordered.extend(_Tie(time_ms, by_file, followed).lines())
    return LoggedEvents(ordered)


_LEAST_ALIKE = 3
_Place = tuple[int, int, TopicPartition | Absent]
_Fields = Mapping[str, FieldValue]


class _Once:
    """Lines without those that a file before holds, too; one that a file holds twice was written twice.

    A file of no known node, all lines of which that are of the time of a node's lines are among these, is of that node.
    """

    def __init__(self, files: Sequence[Sequence[LoggedEvent]]) -> None:
        """Note the nodes of which several files hold lines: those of others are not kept."""
        nodes = Counter(node for items in files for node in {item.node_id for item in items})
        is_one_unknown = any(isinstance(node, Absent) for node in nodes)
        self._shared = frozenset(node for node, count in nodes.items() if count > 1 or is_one_unknown)
        self._met: defaultdict[int | Absent, defaultdict[_Place, list[_Fields]]] = defaultdict(
            lambda: defaultdict(list)
        )

    def of_file(self, items: Sequence[LoggedEvent]) -> list[LoggedEvent]:
        unknown = [item for item in items if isinstance(item.node_id, Absent)]
        node = next((node for node in self._met if unknown and self._are_of(node, unknown)), Absent.UNKNOWN)
        own: defaultdict[tuple[int | Absent, _Place], list[_Fields]] = defaultdict(list)
        kept: list[tuple[_Place | None, LoggedEvent]] = []
        for one in items:
            item = one._replace(node_id=node) if isinstance(one.node_id, Absent) else one
            place = _place(item)
            if place is None or item.node_id not in self._shared or isinstance(item.node_id, Absent):
                kept.append((None, item))
                continue
            fields = item.event.fields
            own[item.node_id, place].append(fields)
            met = self._met[item.node_id].get(place, [])
            if not met or own[item.node_id, place].count(fields) > met.count(fields):
                kept.append((place, item))
        for place, item in kept:
            if place is not None:
                self._met[item.node_id][place].append(item.event.fields)
        return [item for _, item in kept]

    def _are_of(self, node: int | Absent, items: Sequence[LoggedEvent]) -> bool:
        met = self._met[node]
        first, last = min(time_ms for time_ms, *_ in met), max(time_ms for time_ms, *_ in met)
        places = ((_place(item), item.event.fields) for item in items)
        within = [(place, fields) for place, fields in places if place is not None and first <= place[0] <= last]
        return len(within) >= _LEAST_ALIKE and all(fields in met.get(place, ()) for place, fields in within)


def _place(item: LoggedEvent) -> _Place | None:
    return (item.time_ms, item.event.row, item.event.topic_partition) if isinstance(item.time_ms, int) else None


def _items(file: LogFile, clock: Clock) -> Iterator[LoggedEvent]:
    for event, time_ms in zip(file.events, clock.times_of(file.events), strict=True):
        node = file.node_id if isinstance(event.broker_id, Absent) else event.broker_id
        yield LoggedEvent(event, node, time_ms, file)


class _Tie:
    """The lines of one time, which one file orders and several don't."""

    def __init__(self, time_ms: int, files: Sequence[Sequence[LoggedEvent]], followed: _Followed) -> None:
        """Find the lines that may precede those of other files."""
        self._files, self._followed = files, followed
        self._done = [0] * len(files)
        self._places: defaultdict[tuple[_Replica, Kind], deque[tuple[int, int]]] = defaultdict(deque)
        if len(files) > 1:
            for at, file in enumerate(files):
                for number, item in enumerate(file):
                    if item.event.kind in _FIRST and item.time_ms == time_ms:
                        self._places[_replica(item), item.event.kind].append((at, number))

    def lines(self) -> Iterator[LoggedEvent]:
        for at, file in enumerate(self._files):
            yield from self._until(at, len(file), frozenset({at}))

    def _until(self, at: int, end: int, open_: frozenset[int]) -> Iterator[LoggedEvent]:
        while self._done[at] < end:
            item = self._files[at][self._done[at]]
            kind = item.event.kind
            if kind in _ORDERED:
                replica = _replica(item)
                while self._places and (first := self._before(item, replica)) is not None and first[0] not in open_:
                    yield from self._until(first[0], first[1] + 1, open_ | {first[0]})
                    if kind is Kind.FOLLOWER_START:
                        break
                if kind is Kind.FOLLOWER_START:
                    leader = item.event.number("leader")
                    self._followed[replica] = None if isinstance(leader, int) and leader < 0 else leader
                elif kind not in _AS_FOLLOWER:
                    self._followed[replica] = None
            self._done[at] += 1
            yield item

    def _before(self, item: LoggedEvent, replica: _Replica) -> tuple[int, int] | None:
        """Return the line that precedes a line: no replica truncates to a leader before it follows one, nor follows from an offset that it has not come to."""
        if item.event.kind is not Kind.FOLLOWER_START:
            is_due = item.event.kind in _AS_FOLLOWER and self._follows_other(item, replica)
            return self._next(replica, Kind.FOLLOWER_START) if is_due else None
        is_awaiting = self._followed.get(replica, Absent.UNKNOWN) is None
        for kind, field in ((Kind.LOG_LOADED, "log_end_offset"), (Kind.TRUNCATION, "offset")):
            place = self._next(replica, kind) if kind is Kind.LOG_LOADED or not is_awaiting else None
            if place is not None:
                reached = self._files[place[0]][place[1]].event.number(field)
                if reached == item.event.number("offset"):
                    return place
        return None

    def _follows_other(self, item: LoggedEvent, replica: _Replica) -> bool:
        """Whether a replica does not follow yet the leader by which it truncates."""
        followed, leader = self._followed.get(replica, Absent.UNKNOWN), item.event.number("leader")
        if followed is None or isinstance(followed, Absent) or isinstance(leader, Absent) or leader == followed:
            return followed is None
        places = self._places.get((replica, Kind.FOLLOWER_START), ())
        return any(
            self._done[at] <= number and self._files[at][number].event.number("leader") == leader
            for at, number in places
        )

    def _next(self, replica: _Replica, kind: Kind) -> tuple[int, int] | None:
        places = self._places.get((replica, kind))
        while places and places[0][1] < self._done[places[0][0]]:
            places.popleft()
        return places[0] if places else None


def _replica(item: LoggedEvent) -> _Replica:
    return item.node_id, item.event.topic_partition


def is_of_other_directory(event: LogEvent) -> bool:
    """Whether a line is about a directory of a partition that is not its log: it was put aside, or is a future replica."""
    directory = event.fields.get("directory")
    return isinstance(directory, str) and directory.endswith(_OTHER_DIRECTORIES)


def log_written(file: LogFile) -> tuple[int | Absent, str]:
    """Return what is the same of a file and of those that were rotated out of it, whether they are given singly or by their directory.

    Args:
        file: of any node; copies in two directories are two logs.
    """
    return file.node_id, _ROTATED.sub("", file.location)


def _is_rotated(file: LogFile) -> bool:
    return _ROTATED.search(file.location) is not None


def _ends_of_rotated(files: Sequence[LogFile], clocks: Sequence[Clock]) -> dict[tuple[int | Absent, str], int]:
    """Return the latest time of the files that were rotated out of each, in UTC ms."""
    ends: dict[tuple[int | Absent, str], int] = {}
    for file, clock in zip(files, clocks, strict=True):
        if _is_rotated(file):
            times = [time for time in clock.times_of(file.events) if isinstance(time, int)]
            key = log_written(file)
            ends[key] = max(*times, ends.get(key, 0), 0) if times else ends.get(key, 0)
    return ends
