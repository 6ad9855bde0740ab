"""Broker logs among the inputs: recognised by content, read in windows, each with the node that wrote it."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kforensics.damage import Absent
from kforensics.errors import EvidenceError, MissingBytes
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, LogPlace
from kforensics.evidence.discovery.log_spans import (
    TimeWindow,
    log_head,
    looks_like_log,
    ranges_inside,
)
from kforensics.evidence.model import Citation, Problem
from kforensics.evidence.parallel import Progress, spread
from kforensics.formats.log_lines.event import DECISIVE, LineCensus, LogEvent, LogEventKind
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import FileKind, parse_file_name
from kforensics.source.packed import LONGEST_MAGIC, Note, packing_of, unpacked
from kforensics.words import counted, form, listed

if TYPE_CHECKING:
    from kforensics.formats.log_lines.scan import LogWindow

WINDOW_LENGTH = 1 << 20
"""Bytes that are read and searched at a time."""

RANGE_LENGTH = 16 << 20
"""Bytes of a file that one of several processes reads at a time."""
_WHOLE = 1 << 62

EVENTS_KEPT = 250_000
"""Events of one file that are kept whatever they say, some 100 MB; above that only those in `DECISIVE`."""

_LINE_START = re.compile(rb"\n(?=[^\s}\]])")
_UNKNOWN_KEPT, _UNKNOWN_LIMIT = 20, 2_000
_LEAST_FALLS = 2
_TELLING_HEAD = 64
"""The first bytes by which a log may be another's: its first time is among them."""

_JOURNAL = re.compile(rb'(?m)^-- |"_BOOT_ID"|^\S[^\n]{0,100}? [\w.@-]+\[\d+\]: ')
"""What only a journal has in its first lines; in other logs no boots are looked for."""
_BOOT = re.compile(rb'(?m)^-- Boot ([0-9a-f]{32}) --|"_BOOT_ID" ?: ?"([0-9a-f]{32})"|^-- Reboot --')
_REBOOT = "-- Reboot --"
_LONGEST_BOOT = 64
_NODE_DIRECTORY = re.compile(r"(?:broker|controller|kafka|node)[-_.]?(?P<id>\d{1,9})", re.ASCII)
_CONTROLLER_KINDS = frozenset({LogEventKind.BROKER_REGISTERED, LogEventKind.BROKER_FENCED})
_OF_THE_FILE = frozenset({LogEventKind.CLUSTER_NAMED, LogEventKind.START_TIME})
"""What says something of the file, and is no event."""
_LEFT_OUT = frozenset(LogEventKind) - DECISIVE - _OF_THE_FILE - {LogEventKind.CONFIGURATION, LogEventKind.VERSION}
"""What is only counted in a file that holds more events than are kept; the first one of each window still names its node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One broker log, read."""

    input: int
    path: str
    """Relative to the input."""
    is_compressed: bool
    """Positions are then those in what the file holds, not in the file."""
    node_id: int | Absent
    """The node that wrote it, from its lines; where they do not say, from the names of the directories above; unknown where they name several."""
    events: tuple[LogEvent, ...]
    """The events, in file order."""
    census: LineCensus
    events_dropped: int
    problems: tuple[Problem, ...]
    mtime_ns: int
    clusters: Mapping[str, Citation] = field(default_factory=dict)
    """The clusters that its own lines say the node is of, each with the first such line; those of other clusters were left out where it names a wanted one."""
    nodes: frozenset[int] = frozenset()
    """All nodes that its lines name as their own."""
    unowned: frozenset[LogEventKind] = frozenset()
    """The kinds of events that were left out, since no line says whose they are."""
    zones: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """The lines by what makes their times UTC and by the hour of their clock, of those without a zone that name their own time in UTC, too, or beside which it stands."""
    counts: Mapping[int, int] = field(default_factory=dict)
    """The lines of each row of the table of lines."""
    sample: str = ""
    """A line of it, where none is known."""
    unknown: Mapping[str, int] = field(default_factory=dict)
    """The messages that are not known, without their numbers, as far as they were looked at; the most frequent ones."""
    not_searched: int = 0
    """The lines that are outside of the time that is asked about, and were only counted."""
    not_searched_later: int = 0
    """Those of them that are behind it."""
    is_understood: bool = True
    """Whether its lines are in a layout that is read; else there are no events, and only its name says that it is a log."""
    boots: tuple[tuple[int, str], ...] = ()
    """The lines from which on another boot of the machine is on record, with its id, as a journal marks them; none where it is no journal."""
    nul_lines: tuple[int, ...] = ()
    """The lines with NUL bytes, the last ones of very many."""
    location: str = ""
    """The real path of the file, by which files that are given singly are known as rotated out of one another."""

    @property
    def first_time_ms(self) -> int | Absent:
        """Time of the first event that has one, by the clock of the file."""
        return next((event.time_ms for event in self.events if isinstance(event.time_ms, int)), Absent.NOT_WRITTEN)

    @property
    def last_time_ms(self) -> int | Absent:
        """Time of the last event that has one, by the clock of the file."""
        times = (event.time_ms for event in reversed(self.events) if isinstance(event.time_ms, int))
        last = next(times, None)
        if last is None:
            return Absent.NOT_WRITTEN
        return max([last, *(one.last_time_ms for one in self.events if isinstance(one.last_time_ms, int))])

    def cite(self, event: LogEvent) -> Citation:
        """Return the line that an event was read from, as a citation."""
        return Citation(input=self.input, path=self.path, span=event.span, line=event.line)


def read_log_files(
    places: Sequence[LogPlace],
    *,
    keeps_told: bool = False,
    keeps_unowned: bool = False,
    jobs: int = 1,
    clusters: Collection[str] = (),
    window: TimeWindow | None = None,
) -> list[LogFile | Problem | EvidenceError | None]:
    """Read files, ranges of large ones and several at once; none for what is no broker's log, or is given twice, and a problem for a copy.

    Args:
        keeps_unowned: whether lines of a file of several nodes that do not say whose they are stand without a node.
        clusters: those that are wanted: lines of others are left out of a file that names one of these, too.
        window: the time that is asked about; lines of long files that are outside of it are counted and not searched.
    """
    plans = [_plan(place, window, RANGE_LENGTH if jobs > 1 else _WHOLE) for place in places]
    copies = _held_by_others(places, plans)
    for at in copies:
        plans[at] = None
    tasks = [(at, part) for at, plan in enumerate(plans) if isinstance(plan, list) for part in plan]

    def work(task: tuple[int, _Part], _progress: Progress) -> _Reading | EvidenceError:
        at, part = task
        try:
            return _read_part(places[at], part, keeps_told=keeps_told, is_all=window is None)
        except EvidenceError as error:
            return error

    readings = spread(work, tasks, weights=[part.end - part.start for _, part in tasks], jobs=jobs)
    by_place: dict[int, list[_Reading | EvidenceError]] = {}
    for (at, _), reading in zip(tasks, readings, strict=True):
        by_place.setdefault(at, []).append(reading)
    found: list[LogFile | Problem | EvidenceError | None] = [
        _joined(place, by_place[at], clusters, keeps_unowned=keeps_unowned)
        if isinstance(plan, list)
        else _copy_of(place, places[copies[at].by], copies[at].damage)
        if at in copies
        else plan
        for at, (place, plan) in enumerate(zip(places, plans, strict=True))
    ]
    for at, copy in copies.items():
        file = found[copy.by]
        # Lines and a path that name no node may be of the one by whose name a copy of their beginning lies.
        if isinstance(file, LogFile) and isinstance(file.node_id, Absent) and not file.nodes:
            found[copy.by] = replace(file, node_id=_node_of_place(places[at]))
    return found


def _plan(place: LogPlace, window: TimeWindow | None, length: int) -> "list[_Part] | LogFile | EvidenceError | None":
    """Return the ranges that a file is read in; one where its lines don't end with single bytes. A log by its name alone is returned as it is."""
    from kforensics.formats.log_lines.unwrap import encoding_of  # noqa: PLC0415 - 30 ms, where no log is given

    try:
        with open_evidence(place.location) as file:
            is_named = (
                parse_file_name(Path(place.name if place.member else place.location).name).kind is FileKind.LOG_FILE
            )
            head = log_head(file, place.member)
            packing = packing_of(file.read(0, LONGEST_MAGIC))
            if not looks_like_log(head, is_named=is_named or place.path == WHOLE_INPUT):
                is_silent = is_named and file.size > 0
                return _not_understood(place, file.mtime_ns, head, packing) if is_silent else None
            if packing or encoding_of(head).name != "utf-8":
                return [_Part(0, file.size, head, is_compressed=bool(packing))]
            ranges = (ranges_inside(place.location, window) if window else None) or [(0, file.size)]
            edges = {edge for one in ranges for edge in one}
            bounds = sorted({*range(0, file.size, length), *edges, 0, file.size})
            return [
                _Part(
                    start,
                    stop,
                    head,
                    is_compressed=False,
                    is_searched=any(begin <= start and stop <= end for begin, end in ranges),
                    is_later=start >= ranges[0][1],
                )
                for start, stop in pairwise(bounds)
            ] or [_Part(0, 0, head, is_compressed=False)]
    except MissingBytes:
        return None  # a capture took all files along that are logs by name or content
    except EvidenceError as error:
        return error


class _Held(NamedTuple):
    """A log of which another one holds all bytes."""

    by: int
    damage: str
    """What ends it before its end."""


def _held_by_others(
    places: Sequence[LogPlace], plans: "Sequence[list[_Part] | LogFile | EvidenceError | None]"
) -> dict[int, _Held]:
    """Return the logs of which another one holds all bytes, as it is or compressed, from its beginning on, with that one."""
    by_head: dict[bytes, list[tuple[int, bytes]]] = {}
    for at, plan in enumerate(plans):
        if isinstance(plan, list) and len(head := plan[0].head) >= _TELLING_HEAD:
            by_head.setdefault(head[:_TELLING_HEAD], []).append((at, head))
    held: dict[int, _Held] = {}
    for alike in by_head.values():
        for (one, head), (two, other) in combinations(alike, 2):
            # In some layouts all lines begin alike: their files are not opened for that.
            if not (head.startswith(other) or other.startswith(head)) or not held.keys().isdisjoint({one, two}):
                continue
            nodes = [_node_of_place(places[at]) for at in (one, two)]
            if len({*nodes} - {Absent.UNKNOWN}) < 2:
                found = None
                with suppress(EvidenceError):  # named where it is read
                    found = _shorter_beginning(places[one], places[two])
                if found is not None:
                    shorter, damage = found
                    held[(one, two)[shorter]] = _Held((two, one)[shorter], damage)
    return held


def _node_of_place(place: LogPlace) -> int | Absent:
    return _node_of((), place.location / place.member)


def _shorter_beginning(one: LogPlace, two: LogPlace) -> tuple[int, str] | None:
    """Return which of two logs ends first, 1 where both end together, and what damage ends it; None where bytes before that differ."""
    with open_evidence(one.location) as first, open_evidence(two.location) as second:
        damage: list[str] = []
        streams = tuple(
            unpacked(file, member=place.member, note=lambda _position, words: damage.append(words))
            for file, place in ((first, one), (second, two))
        )
        rests = [b"", b""]
        while True:
            for at in (1, 0):
                rests[at] = rests[at] or next(streams[at], b"")
                if not rests[at]:
                    return at, "".join(damage[:1])
            length = min(map(len, rests))
            if rests[0][:length] != rests[1][:length]:
                return None
            rests = [rest[length:] for rest in rests]


def _copy_of(place: LogPlace, other: LogPlace, damage: str) -> Problem | None:
    """Return that a log is read from elsewhere; None where that is the same file, which two inputs hold."""
    held = other.location / other.member
    if (place.location / place.member).resolve() == held.resolve():
        return None
    where = other.name if other.input == place.input else held
    words = f"all that {'can be read of it' if damage else 'it holds'} is in {where}, too, from where its lines are read once"
    return Problem(
        input=place.input, path=place.name, message=f"{damage}; {words}" if damage else words, is_foreign=not damage
    )


def _not_understood(place: LogPlace, mtime_ns: int, head: bytes, packing: str) -> LogFile:
    is_unread = bool(packing) and not head
    words = f"it is compressed by {packing}, and damaged, cut off or encrypted: nothing of it can be read"
    problem = Problem(input=place.input, path=place.name, message=words, is_foreign=True, is_silent=True)
    return LogFile(
        input=place.input,
        path=place.name,
        is_compressed=bool(packing),
        node_id=_node_of(set(), place.location / place.member),
        events=(),
        census=LineCensus(lines=head.count(b"\n")),
        events_dropped=0,
        problems=(problem,) if is_unread else (),
        mtime_ns=mtime_ns,
        is_understood=False,
        sample=_sample(head),
        location=str(place.location / place.member),
    )


def _sample(head: bytes) -> str:
    from kforensics.formats.log_lines.unwrap import encoding_of, plain  # noqa: PLC0415 - 30 ms, where no log is given

    text = plain(head, encoding_of(head)).decode("utf-8", "replace")
    return next((line.strip()[:160] for line in text.splitlines() if line.strip()), "")


_OF_ZOOKEEPER = re.compile(
    r"\bzookeeper\.server\.|\b(?:QuorumPeer\w*|QuorumCnxManager|FastLeaderElection|ZooKeeperServer\w*|NIOServerCnxn\w*|FileTxn\w*|PrepRequestProcessor)\b"
)
"""Classes of a ZooKeeper server, of which a broker's client logs none."""


def silence_of(file: LogFile) -> Problem | None:
    """Return that no line of a file is known, or none has a time that is, with one of them."""
    if file.events and file.first_time_ms is Absent.NOT_WRITTEN:
        clock = next((str(one) for event in file.events if (one := event.fields.get("clock"))), "")
        lack = "give the day first or the month, and nothing shows which" if "/" in clock else "name no date"
        words = f"its lines {lack} ({clock}): when they were written is unknown" if clock else "its lines name no time"
        return Problem(input=file.input, path=file.path, message=words, is_foreign=True, is_silent=True)
    if file.counts or file.not_searched or not file.sample:
        return None
    if _OF_ZOOKEEPER.search(file.sample):
        words = "it is the log of a ZooKeeper server, which does not say what became of records"
        return Problem(input=file.input, path=file.path, message=words, is_foreign=True)
    # Of one that is in no known layout lines are not counted.
    lines = counted(file.census.lines, "line") if file.census.lines else "lines"
    words = f"none of its {lines} is known. One of them: {file.sample}"
    return Problem(input=file.input, path=file.path, message=words, is_foreign=True, is_silent=True)


def _read_part(place: LogPlace, part: "_Part", *, keeps_told: bool, is_all: bool) -> "_Reading":
    from kforensics.formats.log_lines.scan import scan_log  # noqa: PLC0415 - 55 ms, where no log is given
    from kforensics.formats.log_lines.table import ended_kinds, harmless_kinds, told_kinds  # noqa: PLC0415 - as above
    from kforensics.formats.log_lines.unwrap import encoding_of, layout_of, one_object_a_line  # noqa: PLC0415 - as above

    reading = _Reading(is_compressed=part.is_compressed, sample=_sample(part.head))
    told = frozenset[LogEventKind]() if keeps_told else told_kinds() - ended_kinds()
    counted_only = harmless_kinds() - ended_kinds() if keeps_told and is_all else told
    with open_evidence(place.location) as file:
        reading.mtime_ns = file.mtime_ns
        layout = layout_of(part.head, changed_ms=file.mtime_ns // 1_000_000)
        encoding, first = encoding_of(part.head), 0
        if part.is_compressed:
            chunks = unpacked(file, member=place.member, note=reading.noting_damage(place))
        else:
            first = _next_line(file, part.start)
            end = _next_line(file, part.end) if part.end < file.size else file.size
            chunks = file.windows(WINDOW_LENGTH, first, end)
            if not part.is_searched:
                reading.not_searched = sum(chunk.count(b"\n") for chunk in chunks)
                reading.not_searched_later = reading.not_searched if part.is_later else 0
                reading.census = LineCensus(lines=reading.not_searched)
                return reading
        if _JOURNAL.search(part.head) is not None:
            chunks = reading.noting_boots(one_object_a_line(chunks) if encoding.name == "utf-8" else chunks)
        windows = scan_log(
            chunks,
            position=first,
            layout=layout,
            encoding=encoding,
            counted=counted_only,
            counted_now=lambda: _LEFT_OUT if len(reading.events) >= EVENTS_KEPT else frozenset(),
        )
        for window in windows:
            reading.add(window, told)
    return reading


def _next_line(file: EvidenceFile, position: int) -> int:
    """Return the position of the first line that begins at `position` or behind it, and that no stack trace or object goes on in."""
    at = position - 1
    while position and (chunk := file.read(at, WINDOW_LENGTH)):
        end = _LINE_START.search(chunk)
        if end is not None:
            return at + end.end()
        at += len(chunk)
    return min(position, file.size) if not position else at


def _joined(
    place: LogPlace,
    parts: "Sequence[_Reading | EvidenceError]",
    clusters: Collection[str],
    *,
    keeps_unowned: bool = False,
) -> LogFile | EvidenceError:
    whole = _Reading()
    for part in parts:
        if isinstance(part, EvidenceError):
            return part
        whole.join(part)
    problems = list(whole.problems)
    if whole.dropped:
        message = f"{whole.dropped:,} events of {whole.census.events:,} were left out to bound memory"
        problems.append(Problem(input=place.input, path=place.name, message=message))
    if words := whole.leave_out_others(clusters):
        problems.append(Problem(input=place.input, path=place.name, message=words, is_foreign=True))
    nodes = whole.nodes
    events = tuple(whole.events)
    if _is_newest_first(events):
        events = events[::-1]
    unowned: frozenset[LogEventKind] = frozenset()
    writers = {event.writer for event in events}
    if len(nodes) > 1 or (nodes and len(writers) > 1 and len(whole.by_writer.keys() & writers) < len(writers)):
        owned = _of_each_node(events, whole.by_writer)
        if len(owned) < len(events):
            lines = {event.line for event in owned}
            others = [event for event in events if event.line not in lines]
            unowned = frozenset(event.kind for event in others)
            named = listed([str(one) for one in sorted(nodes)])
            who = f"lines of nodes {named}" if len(nodes) > 1 else f"lines of node {named} and of others"
            # Of several nodes, none is taken for the writer of what does not say it.
            keeps_unowned &= len(nodes) > 1
            one, more = ("stands", "stand") if keeps_unowned else ("was", "were")
            what = f"{form(len(others), one, more)} {'without a node' if keeps_unowned else 'left out'}"
            message = f"{who} are in one file, and {counted(len(others), 'event')} of lines that do not say whose they are {what}: give the log files of each node, or lines that begin with the name of their node"
            problems.append(Problem(input=place.input, path=place.name, message=message))
            if keeps_unowned:
                of_nodes = {event.line: event for event in owned}
                owned = tuple(of_nodes.get(event.line, event) for event in events)
        events = owned
    return LogFile(
        input=place.input,
        location=str(place.location / place.member),
        path=place.name,
        is_compressed=whole.is_compressed,
        node_id=_node_of(nodes, place.location / place.member),
        events=events,
        census=whole.census,
        events_dropped=whole.dropped,
        problems=tuple(problems),
        mtime_ns=whole.mtime_ns,
        clusters={
            name: Citation(input=place.input, path=place.name, span=event.span, line=event.line)
            for name, event in whole.clusters.items()
        },
        nodes=frozenset(nodes),
        unowned=unowned,
        zones=dict(whole.zones),
        counts=dict(whole.counts),
        sample="" if whole.counts else whole.sample,
        boots=whole.boots_of_one(),
        nul_lines=tuple(whole.nul_lines),
        not_searched=whole.not_searched,
        not_searched_later=whole.not_searched_later,
        unknown=dict(whole.unknown.most_common(_UNKNOWN_KEPT)),
    )


class _Part(NamedTuple):
    """A range of a file; the lines that begin in it belong to it."""

    start: int
    end: int
    head: bytes
    """The beginning of the file, inflated."""
    is_compressed: bool
    is_searched: bool = True
    """Whether its lines may be of the time that is asked about; else they are only counted."""
    is_later: bool = False
    """Whether its lines are behind that time."""


@dataclass(slots=True)
class _Reading:
    """The events kept of a file so far."""

    events: list[LogEvent] = field(default_factory=list)
    census: LineCensus = field(default_factory=LineCensus)
    dropped: int = 0
    by_writer: dict[str, set[int]] = field(default_factory=dict)
    """The nodes that lines name as their own, by what a collector of lines put before them."""
    clusters: dict[str, LogEvent] = field(default_factory=dict)
    runs: list[LogEvent] = field(default_factory=list)
    """The lines by which a writer names another cluster than in its line of this kind before."""
    last_named: dict[str, str] = field(default_factory=dict)
    """The cluster that each writer named last."""
    zones: Counter[tuple[int, int]] = field(default_factory=Counter)
    counts: Counter[int] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    sample: str = ""
    not_searched: int = 0
    not_searched_later: int = 0
    problems: list[Problem] = field(default_factory=list)
    mtime_ns: int = 0
    is_compressed: bool = False
    boots: list[tuple[int, str]] = field(default_factory=list)
    nul_lines: list[int] = field(default_factory=list)
    lines_seen: int = 0

    def noting_damage(self, place: LogPlace) -> Note:
        return lambda position, words: self.problems.append(
            Problem(input=place.input, path=place.name, message=words, position=position)
        )

    def noting_boots(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the chunks as they are, and note where a journal marks that another boot begins."""
        before = b""
        for chunk in chunks:
            text, done, line = before + chunk, 0, self.lines_seen - before.count(b"\n")
            for found in _BOOT.finditer(text):
                if found.end() > len(before):  # the mark may have begun in the chunk before
                    line, done = line + text.count(b"\n", done, found.start()), found.start()
                    self._note_boot(line + 1, (found[1] or found[2] or found[0]).decode())
            self.lines_seen += chunk.count(b"\n")
            before = text[-_LONGEST_BOOT:]
            yield chunk

    def boots_of_one(self) -> tuple[tuple[int, str], ...]:
        """Return the boots of the machine; none where one comes again, as in the lines of several machines."""
        named = [boot for _, boot in self.boots if boot != _REBOOT]
        return tuple(self.boots) if len(set(named)) == len(named) else ()

    def _note_boot(self, line: int, boot: str) -> None:
        if not self.boots or self.boots[-1][1] != boot or boot == _REBOOT:
            self.boots.append((line, boot))

    @property
    def nodes(self) -> set[int]:
        return set().union(*self.by_writer.values())

    def join(self, later: "_Reading") -> None:
        lines = self.census.lines
        for line, boot in later.boots:
            self._note_boot(line + lines, boot)
        self.nul_lines += [line + lines for line in later.nul_lines]
        self._keep([event._replace(line=event.line + lines) for event in later.events] if lines else later.events)
        for name, event in later.clusters.items():
            self.clusters.setdefault(name, event._replace(line=event.line + lines))
        for event in later.runs:
            self._name_cluster(event._replace(line=event.line + lines))
        self.dropped += later.dropped
        self.census = self.census.plus(later.census)
        for writer, nodes in later.by_writer.items():
            self.by_writer.setdefault(writer, set()).update(nodes)
        self.zones.update(later.zones)
        self.counts.update(later.counts)
        self._note_unknown(later.unknown)
        self.problems += later.problems
        self.not_searched += later.not_searched
        self.not_searched_later += later.not_searched_later
        self.mtime_ns = later.mtime_ns
        self.is_compressed = later.is_compressed
        self.sample = self.sample or later.sample

    def add(self, window: "LogWindow", told: Collection[LogEventKind]) -> None:
        self.census = self.census.plus(window.census)
        self.nul_lines += window.nul_lines
        self.zones.update(window.zones)
        self._note_unknown({shape.decode("utf-8", "replace"): count for shape, count in window.unknown.items()})
        self.counts.update([event.row for event in window.events])
        self._note_nodes(window.events)
        for event in window.events:
            if event.repeats:
                self.counts[event.row] += event.repeats
            if event.kind is LogEventKind.CLUSTER_NAMED:
                self.clusters.setdefault(str(event.fields["cluster"]), event)
                self._name_cluster(event)
        self._keep([event for event in window.events if event.kind not in _OF_THE_FILE and event.kind not in told])

    def _note_unknown(self, more: Mapping[str, int]) -> None:
        self.unknown.update(more)
        if len(self.unknown) > _UNKNOWN_LIMIT:
            self.unknown = Counter(dict(self.unknown.most_common(_UNKNOWN_LIMIT // 2)))

    def _note_nodes(self, events: Iterable[LogEvent]) -> None:
        named = {(event.writer, event.broker_id) for event in events if event.kind not in _CONTROLLER_KINDS}
        for event in events:
            if event.kind is LogEventKind.CONFIGURATION:
                ids = (event.number(name) for name in ("node.id", "broker.id"))
                named.add(
                    (event.writer, next((one for one in ids if isinstance(one, int) and one >= 0), Absent.UNKNOWN))
                )
        for writer, node in named:
            if isinstance(node, int):
                self.by_writer.setdefault(writer, set()).add(node)

    def _name_cluster(self, event: LogEvent) -> None:
        cluster = str(event.fields["cluster"])
        if self.last_named.get(event.writer) != cluster:
            self.last_named[event.writer] = cluster
            self.runs.append(event)

    def leave_out_others(self, wanted: Collection[str]) -> str:
        """Leave out the events of other clusters, where the file names a wanted one, and return in words what was left out.

        A line is of the cluster that its writer named last, or names next where its broker was stopped since, or where it had named none.
        """
        others = self.clusters.keys() - set(wanted)
        if not others or len(others) == len(self.clusters):
            return ""
        runs: dict[str, list[LogEvent]] = {}
        for one in self.runs:
            runs.setdefault(one.writer, []).append(one)
        stops = {writer: _stops_before(self.events, named) for writer, named in runs.items()}
        kept = []
        for event in self.events:
            own = runs.get(event.writer)
            at = bisect_right(stops[event.writer], event.line) - 1 if own else -1
            if own is None or own[max(at, 0)].fields["cluster"] in wanted:
                kept.append(event)
        count = len(self.events) - len(kept)
        self.events, self.by_writer = kept, {}
        self._note_nodes(kept)
        self.clusters = {name: event for name, event in self.clusters.items() if name not in others}
        return f"{counted(count, 'event')} of lines of {form(len(others), 'cluster', 'clusters')} {listed(sorted(others))} were left out"

    def _keep(self, events: list[LogEvent]) -> None:
        if len(self.events) + len(events) <= EVENTS_KEPT:
            self.events += events
            return
        for event in events:
            if len(self.events) < EVENTS_KEPT or (event.kind in DECISIVE and len(self.events) < 2 * EVENTS_KEPT):
                self.events.append(event)
            else:
                self.dropped += 1 + event.repeats


def _is_newest_first(events: Sequence[LogEvent]) -> bool:
    """Whether times fall far more often than they rise, as in exports of log collectors."""
    times = [event.time_ms for event in events if isinstance(event.time_ms, int)]
    falls = sum(one > two for one, two in pairwise(times))
    return falls > _LEAST_FALLS and falls > 3 * sum(one < two for one, two in pairwise(times))


def _stops_before(events: Sequence[LogEvent], named: Sequence[LogEvent]) -> list[int]:
    """Return the line from which on each of a writer's clusters counts: behind the last line of a stop before it is named, else where it is."""
    stops = [one.line for one in events if one.kind is LogEventKind.BROKER_STOPPED and one.writer == named[0].writer]
    lines: list[int] = []
    for one in named:
        before = bisect_left(stops, one.line)
        stop = stops[before - 1] if before else 0
        lines.append(stop + 1 if stop and (not lines or stop + 1 > lines[-1]) else one.line)
    return lines


def _of_each_node(events: Sequence[LogEvent], by_writer: Mapping[str, Collection[int]]) -> tuple[LogEvent, ...]:
    """Return the events of a file of several nodes with their nodes, those left out of which none is known; none at all where lines of several nodes begin alike."""
    if any(len(nodes) > 1 for nodes in by_writer.values()):
        return ()
    owners = {writer: node for writer, nodes in by_writer.items() for node in nodes}
    return tuple(
        event if isinstance(event.broker_id, int) else event._replace(broker_id=owners[event.writer])
        for event in events
        if isinstance(event.broker_id, int) or event.writer in owners
    )


def _node_of(nodes: Collection[int], location: Path) -> int | Absent:
    if nodes:
        return next(iter(nodes)) if len(nodes) == 1 else Absent.UNKNOWN
    for part in reversed(location.parts):
        named = _NODE_DIRECTORY.fullmatch(part)
        if named is not None:
            return int(named["id"])
    return Absent.UNKNOWN
