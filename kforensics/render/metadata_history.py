"""The history of a cluster's metadata as text, offset by offset.

A large log makes millions of lines, but few kinds of changes: the words for each kind are made once.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.evidence.metadata.events import EventSelection, MetadataEvent
from kforensics.evidence.metadata.partitions import Rows
from kforensics.evidence.metadata.state import When
from kforensics.evidence.parallel import stream
from kforensics.protocol.versions import NEWEST_FEATURE_LEVELS
from kforensics.render.escape import escape_text
from kforensics.render.screen import INDENT, columns
from kforensics.words import utc_text

QUIET_KINDS = frozenset(
    {
        EventKind.LEADER_EPOCH_BUMP,
        EventKind.DIRECTORY_CHANGE,
        EventKind.ELR_CHANGE,
        EventKind.SNAPSHOT,
        EventKind.CONTROLLER_REGISTERED,
        EventKind.BROKER_LOG_DIRS,
    }
)
"""The kinds that are shown only with -v: they change no replica."""

_OF_CONTROLLERS = frozenset(
    {EventKind.CONTROLLER_CHANGE, EventKind.CONTROLLER_REGISTERED, EventKind.CONTROLLER_UNREGISTERED}
)

ROWS_AT_ONCE = 1 << 14
"""The number of steps that are formatted together; the columns of so few steps are as wide as their widest cell."""

MOST_KINDS = 1 << 16
"""The number of kinds of steps whose words are cached."""

TIME_UNKNOWN = "time unknown"
OR_BEFORE = " or before"

_RESOURCES = {2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}


Page = list[MetadataEvent | Rows]
"""The number of changes that are formatted together."""


class _Worded(NamedTuple):
    """The words that all steps of one kind share."""

    changes: tuple[tuple[str, str, str | None], ...]
    """The kind of each change that is shown, and the words before and behind the leader epoch."""
    hidden: int
    margin: str
    """The text behind the time."""


class _Widths(NamedTuple):
    """The widths of the columns of a long history."""

    offset: int
    kind: int
    subject: int


def history_pieces(events: EventSelection, *, verbose: bool = False, jobs: int = 1) -> Iterator[str]:
    """Yield the history in pieces of many lines, one line per change, and the number of changes that are not shown."""
    history = _HistoryText(events, frozenset() if verbose else QUIET_KINDS)
    if len(events.rows) <= ROWS_AT_ONCE:
        yield history.few()
    else:
        yield from history.many(jobs)
    if history.hidden:
        yield f"  ({history.hidden} more that change no replica: -v lists them)\n"


class _HistoryText:
    """The changes of a selection in words."""

    def __init__(self, events: EventSelection, quiet: frozenset[EventKind]) -> None:
        self.hidden = 0
        self._events = events
        self._quiet = quiet
        self._worded: dict[int, _Worded] = {}

    def few(self) -> str:
        """Return the lines in columns as wide as their widest cell."""
        shown = [event for event in self._events if event.kind not in self._quiet]
        self.hidden = sum(1 for _ in self._events) - len(shown)
        rows = [
            (str(event.when.offset), _time(event.when), event.kind.value, subject(event), _event_words(event))
            for event in shown
        ]
        return "".join(f"{line}\n" for line in columns(rows, right=frozenset({0})))

    def many(self, jobs: int) -> Iterator[str]:
        """Yield the lines in columns as wide as any cell may become; several processes make them if `jobs` allows."""
        widths = self._widths()
        subjects = [f"{name:<{widths.subject}}  " for name in self._subjects()]
        for text, hidden in stream(lambda page: self._page(page, subjects, widths), list(self._pages()), jobs=jobs):
            self.hidden += hidden
            yield text

    def _page(self, page: Page, subjects: list[str], widths: _Widths) -> tuple[str, int]:
        """Return the lines of a page, and how many changes are not shown."""
        lines: list[str] = []
        hidden = 0
        for part in page:
            if not isinstance(part, MetadataEvent):
                hidden += self._add_steps(lines, part, subjects, widths)
            elif part.kind in self._quiet:
                hidden += 1
            else:
                lines.append(_event_line(part, widths))
        lines.append("")
        return "\n".join(lines), hidden

    def _subjects(self) -> list[str]:
        """Return the name of each partition by its number."""
        partitions = self._events.partitions
        return [
            f"{escape_text(topic)}-{partition}"
            for topic, (_, partition) in zip(partitions.topics, partitions.keys_by_number, strict=True)
        ]

    def _widths(self) -> _Widths:
        events, subjects = self._events, self._subjects()
        others = (event.when.offset for event in (*events.before, *events.behind))
        last = max(int(events.partitions.offsets(events.rows[-1:])[0]), *others, 0)
        return _Widths(
            offset=len(str(last)),
            kind=max(len(kind) for kind in EventKind if kind not in self._quiet),
            subject=max(len(subjects[number]) for number in events.partitions.numbers(events.rows)),
        )

    def _pages(self) -> Iterator[Page]:
        """Yield the changes in runs of so many steps."""
        page: Page = []
        count = 0
        for part in self._events.parts():
            pieces = (
                [part]
                if isinstance(part, MetadataEvent)
                else np.split(part, range(ROWS_AT_ONCE, len(part), ROWS_AT_ONCE))
            )
            for piece in pieces:
                page.append(piece)
                count += 1 if isinstance(piece, MetadataEvent) else len(piece)
                if count >= ROWS_AT_ONCE:
                    yield page
                    page, count = [], 0
        if page:
            yield page

    def _add_steps(self, lines: list[str], rows: Rows, subjects: list[str], widths: _Widths) -> int:
        add, known, offset_width = lines.append, self._worded, widths.offset
        hidden = 0
        for row, offset, time_ms, partition, leader_epoch, kind in zip(
            *self._events.partitions.columns(rows), strict=True
        ):
            worded = known.get(kind) or self._word(kind, row, widths)
            hidden += worded.hidden
            if not worded.changes:
                continue
            start = f"{INDENT}{offset:>{offset_width}}  {utc_text(time_ms) if time_ms >= 0 else TIME_UNKNOWN}{worded.margin}"
            for change, words, behind in worded.changes:
                if behind is None:
                    add(f"{start}{change}{subjects[partition]}{words}")
                else:
                    add(f"{start}{change}{subjects[partition]}{words}{leader_epoch}{behind}")
        return hidden

    def _word(self, kind: int, row: int, widths: _Widths) -> _Worded:
        if len(self._worded) >= MOST_KINDS:
            self._worded.clear()
        events = list(self._events.step_events(np.array([row])))
        shown = [event for event in events if event.kind not in self._quiet]
        changes = tuple((f"{event.kind.value:<{widths.kind}}  ", *_words_around_epoch(event)) for event in shown)
        margin = f"{OR_BEFORE}  " if events and events[0].when.from_snapshot else "  "
        worded = _Worded(changes, len(events) - len(shown), margin)
        self._worded[kind] = worded
        return worded


def _event_line(event: MetadataEvent, widths: _Widths) -> str:
    place = f"{INDENT}{event.when.offset:>{widths.offset}}  {_time(event.when)}"
    rest = f"{event.kind.value:<{widths.kind}}  {subject(event):<{widths.subject}}  {_event_words(event)}"
    return f"{place}  {rest}".rstrip()


def _time(when: When) -> str:
    time = utc_text(when.timestamp_ms) if when.timestamp_ms >= 0 else TIME_UNKNOWN
    return time + OR_BEFORE if when.from_snapshot else time


def subject(event: MetadataEvent) -> str:
    """Return the name of the subject of an event, empty where it has none."""
    if not isinstance(event.partition, Absent):
        return f"{escape_text(str(event.topic))}-{event.partition}"
    if not isinstance(event.topic, Absent):
        return escape_text(event.topic)
    if isinstance(event.broker_id, Absent):
        return ""
    is_controller = event.kind in _OF_CONTROLLERS
    return f"{'controller' if is_controller else 'broker'} {event.broker_id}"


def _event_words(event: MetadataEvent) -> str:
    words, behind = _words_around_epoch(event)
    return words if behind is None else f"{words}{event.leader_epoch}{behind}"


def _words_around_epoch(event: MetadataEvent) -> tuple[str, str | None]:
    """Return the words before and behind the leader epoch, which is all that differs between changes of one kind, or all words."""
    detail = event.detail
    match event.kind:
        case EventKind.LEADER_CHANGE:
            return f"leader {_leader(detail['previous_leader'])} -> {_leader(detail['leader'])}, epoch ", ""
        case EventKind.UNCLEAN_ELECTION:
            eligible = f", ELR {ids_text(detail['previous_elr'])}" if detail["previous_elr"] else ""
            return (
                f"leader {_leader(detail['previous_leader'])} -> {_leader(detail['leader'])}, epoch ",
                f"; the ISR was {ids_text(detail['previous_isr'])}{eligible}",
            )
        case EventKind.LEADER_EPOCH_BUMP:
            return "epoch ", f", leader still {_leader(detail['leader'])}"
    return _other_words(event.kind, detail), None


def _other_words(kind: EventKind, detail: Mapping[str, Any]) -> str:
    match kind:
        case EventKind.PARTITION_CREATED:
            return (
                f"leader {_leader(detail['leader'])}, ISR {ids_text(detail['isr'])} of {ids_text(detail['replicas'])}"
            )
        case EventKind.LEADER_RECOVERED:
            return f"leader {_leader(detail['leader'])} recovered from an unclean election"
        case EventKind.ISR_SHRINK:
            return f"ISR {ids_text(detail['isr'])} without {ids_text(detail['removed'])}"
        case EventKind.ISR_EXPAND:
            return f"ISR {ids_text(detail['isr'])} with {ids_text(detail['added'])}"
        case EventKind.ELR_CHANGE:
            return (
                f"ELR {ids_text(detail['eligible_leader_replicas'])}, last known {ids_text(detail['last_known_elr'])}"
            )
        case EventKind.REASSIGNMENT:
            return (
                f"replicas {ids_text(detail['previous_replicas'])} -> {ids_text(detail['replicas'])}, "
                f"adding {ids_text(detail['adding_replicas'])}, removing {ids_text(detail['removing_replicas'])}"
            )
        case EventKind.CONFIG_CHANGE:
            return _config_words(detail)
        case EventKind.FEATURE_CHANGE if detail["level"] > NEWEST_FEATURE_LEVELS.get(detail["name"], 0):
            return f"name {escape_text(detail['name'])}, level {detail['level']}, newer than kforensics knows"
        case EventKind.SNAPSHOT:
            complete = "" if detail["is_complete"] else ", incomplete: not used"
            return f"covers every record below {detail['end_offset']}{complete}"
    return ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in detail.items())


def _config_words(detail: Any) -> str:
    kind = _RESOURCES.get(detail["resource_type"], f"resource type {detail['resource_type']}")
    name = escape_text(detail["resource_name"]) or "default"
    value = "removed" if detail["value"] is None else f"= {escape_text(detail['value'])}"
    return f"{kind} {name}: {escape_text(detail['name'])} {value}"


def _plain(value: Any) -> str:
    if isinstance(value, Absent):
        return value.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "[" + ", ".join(escape_text(str(one)) for one in value) + "]"
    return escape_text(str(value))


def _leader(leader: int | Absent) -> str:
    return "none" if isinstance(leader, Absent) else str(leader)


def ids_text(ids: tuple[int, ...]) -> str:
    """Return numbers of brokers as `[1,2]`."""
    return "[" + ",".join(map(str, ids)) + "]"
