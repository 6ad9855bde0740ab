"""Starts that failed, nodes that ended themselves, and recoveries that were cut short again and again, by the lines of each node."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.formats.log_lines.event import LogEvent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.logged_events import LoggedEvent, of_kinds
from kforensics.units import TopicPartition
from kforensics.words import counted, form, listed, utc_words

_SAME_END_MS = 60_000
"""A node that ends says so in several lines within this time, the cause first."""
_LEAST_LOOPS = 2
_BEGUN = frozenset({Kind.BROKER_STARTED, Kind.LEADER_START, Kind.FOLLOWER_START})
"""What only a node that has started writes."""
_OF_DISKS = frozenset({Kind.LOG_DIR_ERROR, Kind.LOG_DIR_FAILED})
_BEFORE_LOADING = (
    "create or validate data directory",
    "locking directory",
    "read meta.properties",
    "reading meta.properties",
    "writing meta.properties",
)
"""What a start does with log directories before it loads logs."""
_ENDED = frozenset({Kind.FATAL_FAULT, Kind.BROKER_HALTED})
OF_FAILURES = frozenset(
    {*_OF_DISKS, *_ENDED, Kind.START_FAILED, Kind.START_CAUSE, Kind.DISK_CAUSE, Kind.DISK_FILES, Kind.FILES_EXHAUSTED}
)
"""Kinds of lines that say what a failure says, or stand below such lines."""
_NO_CAUSE = "no exception stands below the line"
_WEAK_REASONS = ("NoSuchElementException", "InterruptedException")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailure:
    """The last end of a node that was not in order, a start that does not get on, or a log directory that a node went on without."""

    node_id: int | Absent
    time_ms: int | Absent
    is_start: bool
    """Whether it ended while it started; else it had been running."""
    cause: str
    """Why, in the words of the line and of the exception below it."""
    place: str = ""
    """The directory or file, where the words do not name it."""
    directory: str = ""
    """The log directory that failed, where the node went on."""
    unfinished: int = 0
    """How many starts in a row were cut short from outside, without an end of their own."""
    signal: str = ""
    topic_partition: TopicPartition | Absent = Absent.UNKNOWN
    segment: int | Absent = Absent.UNKNOWN
    """The segment whose recovery began last, each time."""
    citations: tuple[Citation, ...] = ()
    advice: str = ""
    """What to do about the cause; empty where it is not known."""

    @property
    def words(self) -> str:
        """The failure as a sentence."""
        who = f"Broker {self.node_id}" if isinstance(self.node_id, int) else "The broker"
        at = f" at {utc_words(self.time_ms)}" if isinstance(self.time_ms, int) else ""
        if self.unfinished:
            by = f" by {self.signal}" if self.signal else ""
            where = (
                f"; the last was recovering {self.topic_partition}"
                if isinstance(self.topic_partition, TopicPartition)
                else ""
            )
            segment = f" and began again at segment {self.segment}" if where and isinstance(self.segment, int) else ""
            return f"{who} did not finish its last {counted(self.unfinished, 'start')}, killed{by} each time{where}{segment}."
        if self.directory:
            return f"{who}'s {self.directory} failed{at}: {self.cause}."
        place = f" ({self.place})" if self.place and self.place not in self.cause else ""
        what = "last start failed" if self.is_start else "process ended by itself"
        return f"{who}'s {what}{at}: {self.cause}{place}."


@dataclass(slots=True)
class _Node:
    """What the lines of a node came to so far."""

    failure: NodeFailure | None = None
    errors: list[LoggedEvent] = field(default_factory=list)
    """Errors of log directories since the last start, the first first."""
    disks: dict[str, LoggedEvent] = field(default_factory=dict)
    """The first line of each log directory that failed since the last start began."""
    left_out: dict[str, LoggedEvent] = field(default_factory=dict)
    """Those that failed before a start came to loading logs, which goes on without them."""
    loads: list[LoggedEvent] = field(default_factory=list)
    """Starts without an end, each by its first line."""
    recovered: LoggedEvent | None = None
    signal: str = ""


_TOLD = frozenset(
    {*_BEGUN, *_OF_DISKS, *_ENDED, Kind.LOGS_LOADING, Kind.SEGMENT_RECOVERY, Kind.STOP_REQUESTED, Kind.START_FAILED}
)


def node_failures(events: Iterable[LoggedEvent]) -> tuple[NodeFailure, ...]:
    """Return how each node ended last, or which of its disks failed, where no start followed that came to its end."""
    nodes: dict[int | Absent | str, _Node] = {}
    for item in of_kinds(events, _TOLD):
        node = nodes.setdefault(item.node_id if isinstance(item.node_id, int) else item.file.location, _Node())
        _read(node, item)
    found = [one for node in nodes.values() if (one := node.failure or _loop(node) or _disk(node)) is not None]
    return tuple(sorted(found, key=lambda one: one.node_id if isinstance(one.node_id, int) else -1))


def _read(node: _Node, item: LoggedEvent) -> None:
    event = item.event
    if event.kind is Kind.LOGS_LOADING:
        node.disks, node.left_out = node.left_out, {}
    if event.kind in _OF_DISKS and (directory := event.fields.get("directory")):
        node.disks.setdefault(str(directory), item)
        if str(event.fields.get("reason")).startswith(_BEFORE_LOADING):
            node.left_out.setdefault(str(directory), item)
    if event.kind in _BEGUN:
        node.failure, node.errors, node.loads, node.signal = None, [], [], ""
    elif event.kind is Kind.LOGS_LOADING:
        node.loads.append(item)
        node.failure, node.errors = None, []
    elif event.kind is Kind.LOG_DIR_ERROR:
        node.errors.append(item)
    elif event.kind is Kind.SEGMENT_RECOVERY:
        node.recovered = item
    elif event.kind is Kind.STOP_REQUESTED and str(event.fields.get("reason")).startswith("SIG"):
        node.signal = str(event.fields["reason"])
    elif event.kind is Kind.START_FAILED or event.kind in _ENDED:
        node.failure = _joined(node.failure, _failure(node, item))
        node.loads = []


def _advice_of(event: LogEvent) -> str:
    from kforensics.formats.log_lines.table import advice_of  # noqa: PLC0415 - 55 ms, where no log is given

    return advice_of(event.fields, event.row)


def _failure(node: _Node, item: LoggedEvent) -> NodeFailure:
    event = item.event
    cause, place = _cause(event), str(event.fields.get("path") or event.fields.get("directory") or "")
    citations: tuple[Citation, ...] = (item.citation,)
    partition = event.topic_partition
    advice = _advice_of(event)
    if event.kind is Kind.BROKER_HALTED and node.errors:
        first = node.errors[0]
        advice = _advice_of(first.event) or advice
        why = first.event.fields.get("cause") or first.event.fields.get("reason") or ""
        doing = str(first.event.fields.get("reason", ""))
        cause = f"{cause}: {why}" + (f" ({doing})" if doing and doing != why else "")
        citations = (first.citation, *citations)
        partition = first.event.topic_partition
    return NodeFailure(
        node_id=item.node_id,
        time_ms=item.time_ms,
        is_start=event.kind is Kind.START_FAILED or bool(node.loads),
        cause=cause,
        place=place,
        topic_partition=partition,
        citations=citations,
        advice=advice,
    )


def _cause(event: LogEvent) -> str:
    cause = event.fields.get("cause") or event.fields.get("reason")
    if cause and event.kind is Kind.BROKER_HALTED and str(cause).startswith(("all log dirs", "the metadata log dir")):
        return f"{cause} {'have' if str(cause).startswith('all') else 'has'} failed"
    if cause and event.kind is Kind.START_FAILED and ": " not in str(cause) and (doing := event.fields.get("reason")):
        return str(cause) if doing == cause else f"{cause}, {doing}"  # the exception alone says nothing
    if cause:
        return str(cause).rstrip(".")
    return _NO_CAUSE


def _joined(before: NodeFailure | None, later: NodeFailure) -> NodeFailure:
    """Return one failure of the lines of one end: the first that names a cause says why."""
    if before is None or not isinstance(before.time_ms, int) or not isinstance(later.time_ms, int):
        return before or later
    if later.time_ms - before.time_ms > _SAME_END_MS:
        return later
    is_weak = before.cause.startswith((_NO_CAUSE, *_WEAK_REASONS))
    kept = later if is_weak and not later.cause.startswith(_NO_CAUSE) else before
    return NodeFailure(
        node_id=kept.node_id,
        time_ms=later.time_ms,
        is_start=before.is_start or later.is_start,
        cause=kept.cause,
        place=kept.place,
        topic_partition=kept.topic_partition,
        citations=(*before.citations, *later.citations)[:4],
        advice=kept.advice or before.advice or later.advice,
    )


def _disk(node: _Node) -> NodeFailure | None:
    if not node.disks:
        return None
    first = next(iter(node.disks.values()))
    doing, why = (first.event.fields.get(name) for name in ("reason", "cause"))
    cause = str(why or doing or "no line above says why").rstrip(".")
    return NodeFailure(
        node_id=first.node_id,
        time_ms=first.time_ms,
        is_start=False,
        cause=f"{cause} ({doing})" if why and doing else cause,
        directory=f"{form(len(node.disks), 'log directory', 'log directories')} {listed([*node.disks])}",
        topic_partition=first.event.topic_partition,
        citations=tuple(item.citation for item in node.disks.values())[:4],
        advice=_advice_of(first.event),
    )


def _loop(node: _Node) -> NodeFailure | None:
    """Return the starts that were cut short, where there are several in a row and no start came to its end since."""
    if len(node.loads) < _LEAST_LOOPS:
        return None
    last, recovered = node.loads[-1], node.recovered
    event = recovered.event if recovered is not None else None
    return NodeFailure(
        node_id=last.node_id,
        time_ms=last.time_ms,
        is_start=True,
        cause="it was killed",
        unfinished=len(node.loads),
        signal=node.signal,
        topic_partition=event.topic_partition if event is not None else Absent.UNKNOWN,
        segment=event.number("base_offset") if event is not None else Absent.UNKNOWN,
        citations=(
            *(one.citation for one in node.loads[-3:]),
            *((recovered.citation,) if recovered is not None else ()),
        ),
    )


def failure_words(failures: Sequence[NodeFailure], most: int = 2) -> str:
    """Return the failures as sentences, the first ones of many."""
    words = " ".join(one.words for one in failures[:most])
    more = len(failures) - most
    return f"{words} {counted(more, 'other node')} failed too." if more > 0 else words


def failure_steps(failures: Sequence[NodeFailure]) -> tuple[str, ...]:
    """Return what to do about the failures, each step once."""
    return tuple(dict.fromkeys(one.advice for one in failures if one.advice))
