r"""Broker logs of 0.8 to 4.x (server.log, state-change.log, controller.log) in any layout: the lines that report events.

    file     = line*                       lines end with LF or CR LF; the last may be incomplete
    line     = before message behind       before: time, level, thread, class, containers, collectors, in any order
             | JSON or CSV                 with such a line, or the message alone, in one of its values
             | indented                    a stack trace or a value of the configuration
             | anything else               counted, never an error

No checksum covers a log. A message is found by its own first words: positions of capitals behind a blank or bracket are
compared with the beginnings of all known messages at once, so that a line without any of them costs only that pass. What
wraps a line is taken off only where a message is in it.
"""

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Span
from kforensics.formats.log_lines.configuration import parse_configuration
from kforensics.formats.log_lines.event import FOLDED, FieldValue, LineCensus, LogEvent, LogEventKind
from kforensics.formats.log_lines.stamps import (
    LEVEL,
    Head,
    Layout,
    LineTime,
    common_moment,
    epoch_ms,
    head_of,
    stamps_in,
    time_of,
    vote,
)
from kforensics.formats.log_lines.table import KEY_LENGTHS, LONGEST_REMEMBERED, Message, Row, keys, message_at, rows
from kforensics.formats.primitives.numbers import distinct
from kforensics.units import TopicPartition

LINE_LENGTH_LIMIT = 1 << 20
"""The most bytes of a line that are read; every message that is known is much shorter."""

MESSAGE_LENGTH_LIMIT = 1 << 16
"""The most bytes of a message that are read: a line may hold many beginnings of messages."""

SHAPES_SAMPLED = 64
"""The lines of a window that are looked at for messages that are not known; of the first window more."""
_FIRST_SAMPLED = 4_000

_CONFIGURATION_LIMIT = 1 << 17
_LINE_END = 0x0A
_NOT_ASCII = 0x80
_SEPARATOR, _CAPITAL, _OTHER = 100, 200, 255
_CLASSES = bytes(
    _SEPARATOR if chr(byte) in " \t\n\r\"'>|][:=.,(" else _CAPITAL if 65 <= byte <= 90 else _OTHER
    for byte in range(256)
)
_WORD = re.compile(rb"(?<![^ \t\n\r\"'>|\]\[:=.,(])[A-Z]")
_SHORT_KEY = np.uint64((1 << 8 * KEY_LENGTHS[-1]) - 1)
_KEY_FACTOR, _KEY_SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(48)
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_BYTE_LISTS = re.compile(rb"\"(MESSAGE)\" ?: ?\[([\d, ]*)\]")
_PRETTY = re.compile(rb"^\s*\"[^\"\n]{1,100}\" ?: ?(?P<value>\"(?:[^\"\\\n]|\\.)*\") ?,?\s*$")
_EXCEPTION = re.compile(
    rb"(?P<by>Caused by: )?(?:[a-z_][\w$]*\.)+(?P<name>(?:[A-Z]\w*[.$])?[A-Z]\w*(?:Exception|Error|Failure|Interrupted))\b(?:: (?P<words>[^\n\r]*))?"
)
_IN_A_STACK = re.compile(
    rb"(?:^|[\s|\"])(?:at [\w$.<>/@-]+\(|Caused by: |\.\.\. \d+ (?:more|common frames)|Suppressed: )"
)
_BELOW_LIMIT = 60
"""The lines below a message that may belong to it."""


ZONE_STEP_MS = 15 * 60_000
"""Time zones differ from UTC by multiples of a quarter of an hour."""

WIDEST_ZONE_MS = 14 * 3_600_000
_SKEW_MS = 3_000
_OF_THE_JVM = frozenset({LogEventKind.PAUSE, LogEventKind.PAUSE_SHORT})


def _whole_zone(difference: int, *, early_ms: int, late_ms: int) -> int | None:
    """Return the zone that a difference between two times of one moment shows; the one in UTC may be late."""
    zone = (difference + early_ms) // ZONE_STEP_MS * ZONE_STEP_MS
    return zone if abs(zone) <= WIDEST_ZONE_MS and difference - zone <= late_ms else None


class LogWindow(NamedTuple):
    """The events of one window of a log, in file order, and the census of its lines."""

    events: tuple[LogEvent, ...]
    census: LineCensus
    zones: Mapping[int, int] = {}
    """The lines by what makes the times of lines without a zone UTC, as others in them, or beside them, show."""
    unknown: Mapping[bytes, int] = {}
    """Messages that are not known, without their numbers, among the lines that were looked at."""


class Encoding(NamedTuple):
    """How the text of a file is encoded."""

    name: str = "utf-8"
    bom: bytes = b""


def encoding_of(head: bytes) -> Encoding:
    """Return the encoding of a file by its first bytes."""
    for bom, name in (
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF8, "utf-8"),
    ):
        if head.startswith(bom):
            return Encoding(name, bom)
    return Encoding()


def layout_of(head: bytes, *, changed_ms: int) -> Layout:
    """Return what a file shows of its times."""
    return vote(_plain(head, encoding_of(head)), changed_ms=changed_ms)


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines of a piece of a log, in UTF-8."""
    if b"\x00" in data[:64]:
        text = data[1:] if data[:1] == b"\x00" else data
        data = text.replace(b"\x00", b"")
    return _ESCAPES.sub(b"", data).splitlines()


def looks_like_broker_log(head: bytes, *, is_named: bool = False) -> bool:
    """Return whether the bytes hold a line of a broker's log.

    Args:
        is_named: whether its name is that of a log: then a message without time and level is enough.
    """
    encoding = encoding_of(head)
    text = _plain(head, encoding)
    for line in text.splitlines()[:2_000]:
        shown = line[: 1 << 13]
        level = LEVEL.search(shown)
        if level is not None and stamps_in(shown[: level.start()] or shown[:100]):
            return True
        value = _object(line) if shown.lstrip().startswith(b"{") else None
        if value is not None and any(isinstance(value.get(name), str) for name in ("message", "msg", "log")):
            return True
        found = find_message(shown)
        if found is not None and (is_named or level is not None or stamps_in(found.before[-400:])):
            return True
    return False


def line_moment(line: bytes) -> LineTime:
    """Return the time of a line, known or not; one that begins with none, as those of a stack trace, has none."""
    common = common_moment(line, 0)
    if common is not None:
        return common[1]
    if line.lstrip().startswith(b"{"):
        value = _object(line)
        return LineTime(Absent.NOT_WRITTEN, False) if value is None else _outer_time(value)
    level = LEVEL.search(line, 0, 400)
    found = stamps_in(line[: level.start() if level else 60])
    return time_of(found[-1], Layout()) if found else LineTime(Absent.NOT_WRITTEN, False)


def is_log_line(line: bytes) -> bool:
    """Return whether a line has a time, and a level behind it or the object of a JSON layout."""
    is_read = isinstance(line_moment(line).time_ms, int)
    return is_read and (line.lstrip().startswith(b"{") or LEVEL.search(line, 0, 400) is not None)


class FoundMessage(NamedTuple):
    """A known message in a text."""

    message: Message
    before: bytes
    text: bytes


def find_message(line: bytes) -> FoundMessage | None:
    """Return the known message in a line, taken out of what wraps it; None where none is in it.

    Args:
        line: of any layout; the lines below it, if they are given, are read as its stack trace.
    """
    unwrapped = _unwrapped(line) if b'"' in line else None
    text = line if unwrapped is None else unwrapped.text
    exception: FoundMessage | None = None
    for one in _lines(text):
        for word in _WORD.finditer(one):
            message = message_at(one, word.start())
            if message is None:
                continue
            found = FoundMessage(message, one[: message.start], text)
            if "exception" not in message.row.section.flags:
                return found
            exception = exception or found
            break
    return exception


def _lines(text: bytes) -> list[bytes]:
    return [line[:MESSAGE_LENGTH_LIMIT] for line in text.split(b"\n")]


def scan_log(
    chunks: Iterable[bytes],
    *,
    position: int = 0,
    layout: Layout | None = None,
    encoding: Encoding | None = None,
    counted: frozenset[LogEventKind] = frozenset(),
) -> Iterator[LogWindow]:
    """Yield the events of a log, which is given as consecutive chunks of any size; each window ends at a line end.

    Args:
        chunks: the bytes, from the beginning of a line on.
        counted: kinds of which each window gives the first event alone, with the number of others.
    """
    counted = counted | bulk_kinds()
    rest, line, wide = b"", 1, 1
    for chunk in chunks:
        if encoding is None:
            encoding = encoding_of(rest + chunk)
        wide = 2 if encoding.name.startswith("utf-16") else 1
        window = rest + chunk if rest else chunk
        split = _last_line_end(window, wide)
        if not split and len(window) < LINE_LENGTH_LIMIT:
            rest = window
            continue
        split = split or len(window) // wide * wide
        whole, rest = (window, b"") if split == len(window) else (window[:split], window[split:])
        layout = layout or vote(_plain(whole[: 1 << 16], encoding))
        result = _Window(whole, position, line, layout, encoding, counted).scan()
        position += split
        line += result.census.lines
        yield result
    if rest:
        encoding = encoding or Encoding()
        result = _Window(
            rest, position, line, layout or vote(_plain(rest[: 1 << 16], encoding)), encoding, counted
        ).scan()
        yield result._replace(census=result.census.plus(LineCensus(lines=1, torn_end=1)))


def _last_line_end(window: bytes, wide: int) -> int:
    if wide == 1:
        return window.rfind(b"\n") + 1
    ends = np.flatnonzero(np.frombuffer(window[: len(window) // 2 * 2], "<u2") == _LINE_END)
    if not len(ends):
        ends = np.flatnonzero(np.frombuffer(window[: len(window) // 2 * 2], ">u2") == _LINE_END)
    return int(ends[-1] + 1) * 2 if len(ends) else 0


def _plain(data: bytes, encoding: Encoding) -> bytes:
    """Return the text in UTF-8, without colours, with the same line ends."""
    if encoding.name != "utf-8":
        data = data.decode(encoding.name, "replace").encode()
    if encoding.bom and data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    if b"\x1b[" in data:
        data = _ESCAPES.sub(b"", data)
    if _SPLIT.search(data, 0, _HEAD_LENGTH) is not None:
        data = _PARTIAL.sub(_joined, data)
    if b'"MESSAGE"' in data[:_HEAD_LENGTH]:
        data = _BYTE_LISTS.sub(_listed_bytes, data)
    return data


_HEAD_LENGTH = 1 << 14
_SAME_LIMIT = 1 << 12
_TELLING = 9
"""The least bytes of the beginning of a message by which it is counted unread."""
_SPLIT = re.compile(rb" (?:stdout|stderr) [PF] ")
_PARTIAL = re.compile(
    rb"(?m)^\S+ (?P<stream>stdout|stderr) P [^\n]*(?:\n\S+ (?P=stream) P [^\n]*)*\n\S+ (?P=stream) F [^\n]*$"
)
_PART = re.compile(rb"^\S+ (?:stdout|stderr) [PF] ")


def _joined(found: re.Match[bytes]) -> bytes:
    """Return the parts of a line that a container runtime split as one, with empty lines for the others."""
    first, *others = found[0].split(b"\n")
    return first.rstrip(b"\r") + b"".join(_PART.sub(b"", part) for part in others) + b"\n" * len(others)


def _listed_bytes(found: re.Match[bytes]) -> bytes:
    values = [int(number) & 0xFF for number in found[2].replace(b",", b" ").split()]
    return b'"' + found[1] + b'": ' + json.dumps(bytes(values).decode("utf-8", "replace")).encode()


@cache
def _lookup(length: int) -> NDArray[np.bool_]:
    """Return by their hashes whether words of a length begin a message."""
    table = np.zeros(1 << 16, np.bool_)
    numbers = [int.from_bytes(key, "little") for key in keys() if len(key) == length]
    table[_hashed(np.array(numbers, np.uint64))] = True
    return table


def _hashed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    hashed: NDArray[np.uint64] = (values * _KEY_FACTOR) >> _KEY_SHIFT
    return hashed


def _candidates(text: bytes) -> NDArray[np.intp]:
    """Return the positions at which a known message may begin."""
    padded = b"\n" + text + b"\n" * 8
    classes = np.frombuffer(padded.translate(_CLASSES), np.uint8)
    size = len(text)
    found = np.flatnonzero((classes[1 : size + 1] - classes[:size]) == _CAPITAL - _SEPARATOR)
    found = found[found + 1 < len(padded) // 8 * 8 - 7]
    if not len(found):
        return found
    words = np.lib.stride_tricks.as_strided(
        np.frombuffer(padded[: len(padded) // 8 * 8], np.uint64), (len(padded) // 8 * 8 - 7,), (1,)
    )
    begun = words[found + 1]
    return found[_lookup(8)[_hashed(begun)] | _lookup(6)[_hashed(begun & _SHORT_KEY)]]


@cache
def _anchors() -> Mapping[bytes, tuple[bytes, ...]]:
    """Return the beginnings of messages by their first bytes."""
    return {key: tuple({row.anchor.encode() for row in rows}) for key, rows in keys().items()}


@lru_cache(maxsize=8)
def _counted_anchors(counted: frozenset[LogEventKind]) -> Mapping[bytes, tuple[tuple[bytes, Row | None], ...]]:
    """Return by their first bytes the beginnings of messages, the longest first, each with its row where it tells enough of a line that is counted and not read."""
    found: dict[bytes, tuple[tuple[bytes, Row | None], ...]] = {}
    for key, some in keys().items():
        by_anchor: dict[bytes, list[Row]] = {}
        for row in some:
            by_anchor.setdefault(row.anchor.encode(), []).append(row)
        found[key] = tuple(
            (anchor, rows[0] if len(anchor) >= _TELLING and all(_is_counted(row, counted) for row in rows) else None)
            for anchor, rows in sorted(by_anchor.items(), key=lambda one: -len(one[0]))
        )
    return found


def _is_counted(row: Row, counted: frozenset[LogEventKind]) -> bool:
    return row.section.kind in counted and not row.is_searched


@cache
def told_kinds() -> frozenset[LogEventKind]:
    """Return the kinds of lines on which no conclusion rests."""
    return frozenset(row.section.kind for row in rows() if row.section.flags & {"told", "bulk"})


@cache
def bulk_kinds() -> frozenset[LogEventKind]:
    """Return the kinds of lines that are only counted, whoever asks."""
    return frozenset(row.section.kind for row in rows() if "bulk" in row.section.flags)


class _Window:
    """One window of a log while it is searched."""

    def __init__(
        self,
        data: bytes,
        position: int,
        first_line: int,
        layout: Layout,
        encoding: Encoding,
        counted: frozenset[LogEventKind],
    ) -> None:
        self._data, self._position, self._first_line = data, position, first_line
        self._layout = layout
        self._counted = counted
        self._text = _plain(data, encoding)
        self._ends = np.flatnonzero(np.frombuffer(self._text, np.uint8) == _LINE_END)
        self._starts = np.concatenate(([0], self._ends[self._ends < len(self._text) - 1] + 1))
        self._raw_starts = self._starts if self._text is data else self._starts_of(data, encoding)
        self._is_wrapped = b'":' in self._text or b'" :' in self._text[:_HEAD_LENGTH]
        self._events: list[LogEvent] = []
        self._repeats: Counter[int] = Counter()
        """The lines that repeat an event, by its number."""
        self._last_repeats: dict[int, int] = {}
        self._latest: dict[TopicPartition | Absent, tuple[Message, int, bytes]] = {}
        """The last event of each partition that is no count, with its text."""
        self._firsts: dict[LogEventKind, int] = {}
        """The first event of each kind that is only counted."""
        self._zones: Counter[int] = Counter()
        self._near: set[int] = set()
        """Lines with the beginning of a known message."""
        self._known: list[int] = []
        """Lines with a message that is known."""
        self._same: dict[bytes, int] = {}
        """The events that a text behind a time repeats, as long as no other of its partition follows."""
        self._time_length = 0
        """The bytes of a line up to the end of its time, by the line before."""
        self._below = -1
        """The last line that belongs to the message before it."""
        self._owner: LogEvent | None = None

    def _starts_of(self, data: bytes, encoding: Encoding) -> NDArray[np.intp]:
        if encoding.name == "utf-8":
            ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _LINE_END)
            return np.concatenate(([0], ends + 1))
        kind = "<u2" if encoding.name == "utf-16-le" else ">u2"
        ends = np.flatnonzero(np.frombuffer(data[: len(data) // 2 * 2], kind) == _LINE_END)
        return np.concatenate(([0], (ends + 1) * 2))

    def scan(self) -> LogWindow:
        text, anchors, counted = self._text, _anchors(), _counted_anchors(self._counted)
        found = _candidates(text)
        lines = np.searchsorted(self._ends, found)
        starts = self._starts[lines]
        stops = np.concatenate((self._ends, [len(text)]))[lines]
        done = -1
        places = zip(found.tolist(), lines.tolist(), starts.tolist(), stops.tolist(), strict=True)
        for position, line, start, stop in places:
            if line == done:
                continue
            # Keys are compared by their hashes at first.
            key = text[position : position + 8]
            begun = anchors.get(key)
            if begun is None or not text.startswith(begun, position):
                key = key[:6]
                begun = anchors.get(key)
                if begun is None or not text.startswith(begun, position):
                    continue
            number = self._same.get(text[start + self._time_length : stop])
            if number is not None:
                self._repeat(number, line)
                done = line
                continue
            row = next(row for anchor, row in counted[key] if text.startswith(anchor, position))
            is_counted = row is not None and self._count(row, line)
            if is_counted or self._read(position, line, start, min(stop, start + LINE_LENGTH_LIMIT)):
                done = line
        for number, times in self._repeats.items():
            moment = line_moment(self._line(self._last_repeats[number]))
            self._events[number] = self._events[number]._replace(repeats=times, last_time_ms=moment.time_ms)
        repeated = self._repeats.total()
        census = self._census(len(self._events) + repeated)
        return LogWindow(tuple(self._events), census, self._zones, self._unknown())

    def _bounds(self, line: int) -> tuple[int, int]:
        start = int(self._starts[line])
        end = int(self._ends[line]) if line < len(self._ends) else len(self._text)
        return start, min(end, start + LINE_LENGTH_LIMIT)

    def _line(self, line: int) -> bytes:
        start, end = self._bounds(line)
        return self._text[start:end]

    def _read(self, position: int, line: int, start: int, end: int) -> bool:
        """Read the message that may begin at a position, and return whether the line is done with."""
        text = self._text
        if self._is_wrapped and (unwrapped := self._unwrapped(start, end, line)) is not None:
            self._add_unwrapped(unwrapped, line)
            return True
        common = common_moment(text, start)
        rest_start = common[0] if common is not None and position > common[0] else start
        rest = text[rest_start : min(end, position + MESSAGE_LENGTH_LIMIT)]
        if text[start] == 0x22 or rest[:2] == b',"':
            rest = _out_of_quotes(rest, position - rest_start)
        found = plain_message(rest, position - rest_start)
        if found is None:
            self._near.add(line)
            return False
        message = found.message
        self._known.append(line)
        if "exception" in message.row.section.flags and not self._is_first(rest, position - rest_start, line):
            self._add_below(message, line, start, position)
            return True
        if common is None or rest_start == start or found.has_time:
            head = head_of(text[start : rest_start + message.start], self._layout)
        else:
            head = Head(common[1], None, "", start, rest_start)
            self._time_length = rest_start - start
            self._add(message, line, head, found.level, text=rest)
            return True
        self._add(message, line, head, found.level)
        return True

    def _is_first(self, rest: bytes, position: int, line: int) -> bool:
        """Whether an exception stands in a line with its own level, as a message of its own."""
        return line > self._below and LEVEL.search(rest, 0, position) is not None

    def _count(self, row: Row, line: int) -> bool:
        """Count a line of a kind that is not read after its first one; return whether that was done."""
        number = self._firsts.get(row.section.kind)
        if number is None:
            return False
        self._repeat(number, line)
        return True

    def _repeat(self, number: int, line: int) -> None:
        self._repeats[number] += 1
        self._last_repeats[number] = line
        self._known.append(line)

    def _add(
        self, message: Message, line: int, head: Head, level: str, *, stack: bytes | None = None, text: bytes = b""
    ) -> None:
        row, fields = message.row, message.fields
        kind = row.section.kind
        if kind in FOLDED:
            before = self._latest.get(message.topic_partition)
            if before is not None and before[0] is message:
                if text:
                    self._same[text] = before[1]
                self._repeat(before[1], line)
                return
        is_counted = kind in self._counted
        if is_counted:
            if self._count(row, line):
                if text and len(self._same) < _SAME_LIMIT:
                    self._same[text] = self._firsts[kind]
                return
            self._firsts[kind] = len(self._events)
        if head.moment.zone_named or head.outer_utc_ms is not None or kind is LogEventKind.START_TIME:
            self._note_zone(kind, head, fields)
        if kind is LogEventKind.CONFIGURATION:
            end = self._bounds(line)[1]
            fields = parse_configuration(self._text[end : end + _CONFIGURATION_LIMIT])
        if head.clock:
            fields = {**fields, "clock": head.clock}
        partition = message.topic_partition
        if "below" in row.section.flags and not is_counted:
            cause = _cause_in(stack) if stack is not None else self._cause_below(line)
            if cause is not None:
                fields, partition = _with_cause(fields, partition, cause)
        if fields is not message.fields or partition is not message.topic_partition:
            shown = message._replace(topic_partition=partition, fields=fields)
        else:
            shown = message
        event = self._event(line, shown, head, level)
        if "exception" not in row.section.flags:
            self._owner = event
            if not is_counted:
                if (before := self._latest.get(message.topic_partition)) is not None:
                    self._same.pop(before[2], None)
                self._latest[message.topic_partition] = (message, len(self._events), text)
                if kind in FOLDED and text:
                    self._same[text] = len(self._events)
        self._events.append(event)

    def _note_zone(self, kind: LogEventKind, head: Head, fields: Mapping[str, FieldValue]) -> None:
        time_ms, behind = head.moment.time_ms, None
        if not isinstance(time_ms, int):
            return
        if head.moment.zone_named:
            # The JVM writes its own lines into the same file, with their zone.
            behind = -head.zone_ms if kind in _OF_THE_JVM and head.zone_ms is not None else None
        elif kind is LogEventKind.START_TIME and isinstance(utc_ms := fields.get("utc_ms"), int):
            behind = _whole_zone(utc_ms - time_ms, early_ms=_SKEW_MS, late_ms=_SKEW_MS)
        elif head.outer_utc_ms is not None:
            behind = _whole_zone(head.outer_utc_ms - time_ms, early_ms=_SKEW_MS, late_ms=ZONE_STEP_MS - _SKEW_MS)
        if behind is not None:
            self._zones[behind] += 1

    def _add_below(self, message: Message, line: int, start: int, position: int) -> None:
        """Add what an exception says, with the time of the line above that it belongs to."""
        owner = self._owner
        above = owner.line - self._first_line if owner is not None else -1
        if owner is not None and (line <= max(self._below, above) or self._belongs(above, line)):
            head = Head(
                LineTime(owner.time_ms, owner.zone_named), None, owner.writer, -1, 0, str(owner.fields.get("clock", ""))
            )
            partition = (
                owner.topic_partition if isinstance(message.topic_partition, Absent) else message.topic_partition
            )
            node = owner.broker_id if isinstance(message.broker_id, Absent) else message.broker_id
            message = message._replace(topic_partition=partition, broker_id=node)
        else:
            owner = None
            head = head_of(self._text[start:position], self._layout)
            if not isinstance(head.moment.time_ms, int):
                head = self._head_above(line) or head
        if head.clock:
            message = message._replace(fields={**message.fields, "clock": head.clock})
        self._append_exception(message, line, head, owner.level if owner is not None else "")

    def _append_exception(self, message: Message, line: int, head: Head, level: str) -> None:
        kind = message.row.section.kind
        if kind in self._counted:
            if self._count(message.row, line):
                return
            self._firsts[kind] = len(self._events)
        self._events.append(self._event(line, message, head, level))

    def _belongs(self, above: int, line: int) -> bool:
        """Whether all lines between two are of a stack trace."""
        if line - above > _BELOW_LIMIT:
            return False
        return all(self._is_below(number) for number in range(above + 1, line + 1))

    def _is_below(self, line: int) -> bool:
        start, end = self._bounds(line)
        text = self._text[start : min(end, start + 2_000)]
        if _is_of_a_stack(text):
            return True
        return LEVEL.search(text, 0, 200) is None and (not text.strip() or _exception_in(text) is not None)

    def _head_above(self, line: int) -> Head | None:
        for number in range(line - 1, max(-1, line - _BELOW_LIMIT), -1):
            start, end = self._bounds(number)
            text = self._text[start : min(end, start + 400)]
            level = LEVEL.search(text)
            if level is not None:
                return head_of(text[: level.start()] or text, self._layout)
        return None

    def _cause_below(self, line: int) -> "_Cause | None":
        """Return what the exception below a line says, and note how far it reaches."""
        found: list[bytes] = []
        for number in range(line + 1, min(line + _BELOW_LIMIT, len(self._starts))):
            start, end = self._bounds(number)
            text = self._text[start : min(end, start + 4_000)]
            level = LEVEL.search(text, 0, 200)
            if level is not None and b"xception" not in text[: level.start()]:
                break
            if self._is_wrapped and b'{"' in text and (value := _object(text[text.find(b"{") :])) is not None:
                strings = [one.encode("utf-8", "replace") for one in _strings(value)]
                text = max(strings, key=lambda one: (_exception_in(one) is not None, len(one)), default=b"")
            if _exception_in(text) is None and not _is_of_a_stack(text):
                # The words of an exception may go on in a second line.
                is_first = not found or not text.strip() or bool(stamps_in(text[:60]))
                if is_first or (len(found) > 1 and not _is_of_a_stack(found[-1]) and _exception_in(found[-1]) is None):
                    break
            self._below = number
            found.append(text)
        return _cause_in(b"\n".join(found)) if found else None

    def _unwrapped(self, start: int, end: int, line: int) -> "_Unwrapped | None":
        text = self._text[start:end]
        if (pretty := _PRETTY.match(text)) is not None:
            whole = self._object_around(line)
            if whole is not None:
                return _of_object(whole, b"")
            inner = json.loads(pretty["value"])
            return _Unwrapped(inner.encode(), LineTime(Absent.NOT_WRITTEN, False), "", "")
        return _unwrapped(text)

    def _object_around(self, line: int) -> dict[str, Any] | None:
        """Return the object that is written over many lines, one of which is given."""
        first = last = line
        while first > max(0, line - 100) and not self._line(first).rstrip().endswith(b"{"):
            first -= 1
        while last < min(len(self._starts) - 1, line + 100) and not self._line(last).strip().startswith(b"}"):
            last += 1
        text = self._text[self._bounds(first)[0] : self._bounds(last)[1]]
        brace = text.find(b"{")
        return _object(text[brace:].rstrip().rstrip(b",")) if brace >= 0 else None

    def _add_unwrapped(self, unwrapped: "_Unwrapped", line: int) -> None:
        text, _, stack = unwrapped.text.partition(b"\n")
        found = find_message_in(text)
        if found is None and stack:
            found = find_message_in(stack.replace(b"\n", b" "))
        if found is None:
            self._near.add(line)
            return
        self._known.append(line)
        level = _level_in(found.before[-400:])
        head = head_of(found.before, self._layout)
        outer = unwrapped.moment
        if head.start < 0:
            head = head._replace(moment=outer)
        elif not head.moment.zone_named and isinstance(outer.time_ms, int):
            if not isinstance(head.moment.time_ms, int):
                head = head._replace(moment=outer, clock="")
            elif outer.zone_named:
                head = head._replace(outer_utc_ms=outer.time_ms)
        head = head._replace(writer=head.writer or unwrapped.writer)
        message = found.message
        if "exception" in message.row.section.flags:
            if self._owner is not None and line <= max(self._below, self._owner.line - self._first_line + 3):
                self._add_below(message, line, int(self._starts[line]), int(self._starts[line]))
            else:
                self._append_exception(message, line, head, level)
            return
        count = len(self._events)
        self._add(message, line, head, level or unwrapped.level, stack=stack or unwrapped.stack or None)
        if (
            len(self._events) > count
            and (inner := find_message_in((stack or unwrapped.stack).replace(b"\n", b" "))) is not None
        ):
            self._below = line
            self._add_below(inner.message, line, 0, 0)

    def _event(self, line: int, message: Message, head: Head, level: str) -> LogEvent:
        start = int(self._raw_starts[line])
        end = int(self._raw_starts[line + 1]) if line + 1 < len(self._raw_starts) else len(self._data)
        while end > start and self._data[end - 1] in b"\r\n\x00":
            end -= 1
        return LogEvent(
            message.row.section.kind,
            head.moment.time_ms,
            head.moment.zone_named,
            level,
            message.topic_partition,
            message.broker_id,
            message.fields,
            self._first_line + line,
            Span(self._position + start, end - start),
            0,
            Absent.NOT_APPLICABLE,
            head.writer,
            message.row.number,
        )

    def _unknown(self) -> Counter[bytes]:
        """Return the messages that are not known, of the lines that are looked at."""
        count = len(self._starts)
        step = 1 if self._first_line == 1 and count <= _FIRST_SAMPLED else max(1, count // SHAPES_SAMPLED)
        found: Counter[bytes] = Counter()
        known = set(self._known)
        for line in range(0, count, step):
            if line in known:
                continue
            start, end = self._bounds(line)
            level = LEVEL.search(self._text, start, min(end, start + 300))
            if level is None:
                continue
            shape = _shape(self._text[level.end() : min(end, level.end() + 200)])
            if shape:
                found[shape] += step
        return found

    def _census(self, events: int) -> LineCensus:
        content = np.frombuffer(self._text, np.uint8)
        return LineCensus(
            lines=len(self._ends),
            events=events,
            unmatched=len(self._near.difference(self._known)),
            not_utf8=0 if _is_utf8(self._text) else _not_utf8_lines(self._text, content, self._ends),
            with_nul=len(_lines_with(content == 0, self._ends)) if b"\x00" in self._text else 0,
            over_long=int(len(self._ends) == 0 and len(self._text) >= LINE_LENGTH_LIMIT),
        )


_SHAPE_NOISE = re.compile(rb"\[[^\]]*\][:,]?|\([\w$.]+\) *$|[\w.$]+:\d+ - |^[\s:|-]+")
_SHAPE_VALUES = re.compile(rb"[^\s]*[\d/][^\s]*")


def _shape(text: bytes) -> bytes:
    words = _SHAPE_VALUES.sub(b"*", _SHAPE_NOISE.sub(b"", text)).split()
    return b" ".join(words[:10])


def find_message_in(text: bytes) -> FoundMessage | None:
    """Return the first known message in a text that nothing wraps, one of an exception only where there is no other."""
    exception: FoundMessage | None = None
    for word in _WORD.finditer(text, 0, MESSAGE_LENGTH_LIMIT):
        message = message_at(text, word.start())
        if message is None:
            continue
        found = FoundMessage(message, text[: message.start], text)
        if "exception" not in message.row.section.flags:
            return found
        exception = exception or found
    return exception


class _Plain(NamedTuple):
    """A message in a text behind a time, with what stands between."""

    message: Message
    level: str
    has_time: bool
    """Whether another time stands between."""


def plain_message(text: bytes, position: int) -> _Plain | None:
    """Return the message that begins at a position of a text; None if none is known."""
    return _remembered(text, position) if len(text) <= LONGEST_REMEMBERED else _plain_message(text, position)


# Brokers repeat themselves: most lines differ only in their time.
@lru_cache(maxsize=1 << 14)
def _remembered(text: bytes, position: int) -> _Plain | None:
    return _plain_message(text, position)


def _plain_message(text: bytes, position: int) -> _Plain | None:
    message = message_at(text, position)
    if message is None:
        return None
    before = text[: message.start]
    return _Plain(message, _level_in(before), b":" in before and bool(stamps_in(before)))


def _level_in(text: bytes) -> str:
    level = None
    for found in LEVEL.finditer(text):
        level = found[0]
    name = (level or b"").decode()
    return {"WARNING": "WARN", "SEVERE": "ERROR"}.get(name, name)


def _out_of_quotes(text: bytes, position: int) -> bytes:
    """Return a column of a table of which the beginning is given, with its quotes as they were."""
    end = position
    while True:
        end = text.find(b'"', end)
        if end < 0:
            break
        if text[end + 1 : end + 2] != b'"':
            return text[:position] + text[position:end].replace(b'""', b'"')
        end += 2
    return text[:position] + text[position:].replace(b'""', b'"')


class _Unwrapped(NamedTuple):
    """A line out of a JSON object."""

    text: bytes
    moment: LineTime
    level: str
    writer: str
    stack: bytes = b""


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unwrapped(line: bytes) -> _Unwrapped | None:
    """Return the line in a JSON object, with or without something before it; None where there is none."""
    brace = line.find(b"{")
    if brace < 0 or not line.rstrip().endswith(b"}"):
        return None
    value = _object(line[brace:])
    return None if value is None else _of_object(value, line[:brace])


_WRITERS = (
    "host",
    "hostname",
    "source_host",
    "pod",
    "pod_name",
    "logstreamname",
    "container",
    "container_name",
    "instance",
)
_TIMES = ("timestamp", "time", "ts", "asctime", "date", "datetime", "realtime_timestamp", "timemillis", "epochmillis")
_LEVEL_KEYS = ("level", "severity", "loglevel", "levelname")


def _of_object(value: dict[str, Any], before: bytes) -> _Unwrapped | None:
    texts = _strings(value)
    best: str | None = None
    stack = b""
    for text in texts:
        inner = _object(text.encode("utf-8", "replace")) if text.startswith("{") else None
        if inner is not None and (deeper := _of_object(inner, b"")) is not None:
            moment = deeper.moment if isinstance(deeper.moment.time_ms, int) else _outer_time(value)
            return deeper._replace(moment=moment, writer=deeper.writer or _named_writer(value))
        found = find_message_in(text.encode("utf-8", "replace"))
        if found is None:
            continue
        is_exception = "exception" in found.message.row.section.flags
        if is_exception or found.before.count(b"\n"):
            stack = max(stack, text.encode("utf-8", "replace"), key=len)
        if best is None or (not is_exception and not found.before.count(b"\n")):
            if best is not None and not _is_exception(best):
                continue
            best = text
    if best is None:
        exceptions = [text for text in texts if _exception_in(text.encode("utf-8", "replace"))]
        best = max(exceptions, key=len, default=None)
        if best is None:
            return None
    if best.encode("utf-8", "replace") == stack:
        stack = b""
    if not stack:
        others = [text for text in texts if text != best and _exception_in(text.encode("utf-8", "replace"))]
        stack = max(others, key=len, default="").encode("utf-8", "replace")
    head = head_of(before, Layout())
    moment = _outer_time(value)
    if not isinstance(moment.time_ms, int) and isinstance(head.moment.time_ms, int):
        moment = head.moment
    level = next((str(one) for name in _LEVEL_KEYS if isinstance(one := _value(value, name), str)), "")
    inside = _ESCAPES.sub(b"", best.encode("utf-8", "replace")).rstrip(b"\r\n")
    return _Unwrapped(inside, moment, level, head.writer or _named_writer(value), stack)


def _is_exception(text: str) -> bool:
    found = find_message_in(text.encode("utf-8", "replace"))
    return found is not None and "exception" in found.message.row.section.flags


def _strings(value: Any, depth: int = 0) -> list[str]:
    if isinstance(value, str):
        return [value]
    if depth > 4:
        return []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _strings(one, depth + 1)]


def _value(value: dict[str, Any], wanted: str) -> Any:
    """Return the value of a key, whatever its case and its parents."""
    for key, one in value.items():
        if key.rpartition(".")[2].lstrip("_@").lower() == wanted and not isinstance(one, (dict, list)):
            return one
    for one in value.values():
        if isinstance(one, dict) and (found := _value(one, wanted)) is not None:
            return found
    return None


def _named_writer(value: dict[str, Any]) -> str:
    names = (str(one) for name in _WRITERS if (one := _value(value, name)) is not None)
    full = value.get("kubernetes.pod.name")
    return str(full) if isinstance(full, str) else next(names, "")


def _outer_time(value: dict[str, Any]) -> LineTime:
    instant = value.get("instant")
    for parent, seconds, nanos in (
        (instant, "epochSecond", "nanoOfSecond"),
        (value, "timestampSeconds", "timestampNanos"),
    ):
        if isinstance(parent, dict) and isinstance(second := parent.get(seconds), int):
            nano = parent.get(nanos)
            time_ms = epoch_ms(second + (nano / 1e9 if isinstance(nano, int) else 0))
            return LineTime(Absent.UNREADABLE if time_ms is None else time_ms, time_ms is not None)
    for name in _TIMES:
        time = _value(value, name)
        if isinstance(time, (int, float)) and not isinstance(time, bool) and (time_ms := epoch_ms(time)) is not None:
            return LineTime(time_ms, True)
        if isinstance(time, str):
            found = stamps_in(time.encode("ascii", "replace"))
            if found:
                return time_of(found[-1], Layout())
            if (time_ms := epoch_ms(time)) is not None:
                return LineTime(time_ms, True)
            return LineTime(Absent.UNREADABLE, False)
    return LineTime(Absent.NOT_WRITTEN, False)


def _is_of_a_stack(text: bytes) -> bool:
    return text.startswith(b"\t") or _IN_A_STACK.search(text) is not None


def _exception_in(text: bytes) -> re.Match[bytes] | None:
    return _EXCEPTION.search(text) if b"xception" in text or b"Error" in text or b"Failure" in text else None


class _Cause(NamedTuple):
    """What the exception below a line says."""

    words: str
    message: Message | None


def _cause_in(stack: bytes) -> _Cause | None:
    """Return the innermost cause in a stack trace."""
    found = list(_EXCEPTION.finditer(stack))
    if not found:
        return None
    inner = next((one for one in reversed(found) if one["by"]), found[0])
    name = inner["name"].decode("utf-8", "replace")
    words = (inner["words"] or b"").decode("utf-8", "replace").strip().removesuffix('"')
    known = find_message_in(inner[0]) or find_message_in(found[0][0])
    return _Cause(f"{name}: {words}" if words else name, known.message if known else None)


def _with_cause(
    fields: Mapping[str, FieldValue], partition: TopicPartition | Absent, cause: _Cause
) -> tuple[Mapping[str, FieldValue], TopicPartition | Absent]:
    known = cause.message
    more = known.fields if known is not None else {}
    if known is not None and isinstance(partition, Absent):
        partition = known.topic_partition
    return {**more, **fields, "cause": cause.words}, partition


def _not_utf8_lines(window: bytes, content: NDArray[np.uint8], line_ends: NDArray[np.intp]) -> int:
    bounds = np.concatenate(([0], line_ends + 1, [len(window)]))
    lines = _lines_with(content >= _NOT_ASCII, line_ends)
    return sum(
        1
        for start, end in zip(bounds[lines].tolist(), bounds[lines + 1].tolist(), strict=True)
        if not _is_utf8(window[start:end])
    )


def _lines_with(flags: NDArray[np.bool_], line_ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the numbers, from 0, of the lines in which a byte is flagged; a regular expression that looks back would be quadratic in long lines."""
    return distinct(np.searchsorted(line_ends, np.flatnonzero(flags)))


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
