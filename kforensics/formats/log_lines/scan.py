r"""Broker logs of 0.8 to 4.x (server.log, state-change.log, controller.log) in any layout: the lines that report events.

    file     = line*                       lines end with LF or CR LF; the last may be incomplete
    line     = before message behind       before: time, level, thread, class, containers, collectors, in any order
             | JSON or CSV                 with such a line, or the message alone, in one of its values
             | indented                    a stack trace or a value of the configuration
             | anything else               counted, never an error

No checksum covers a log. A message is found by its own first words (`anchors`). Lines of kinds that are only counted are
counted by them alone, the others read one by one; what wraps a line is taken off only where a message is in it.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Span
from kforensics.formats.log_lines.anchors import counted_kinds, places_of
from kforensics.formats.log_lines.below import (
    SETTING,
    Cause,
    cause_in,
    exception_in,
    is_of_a_stack,
    parse_configuration,
    with_cause,
)
from kforensics.formats.log_lines.event import FOLDED, FieldValue, LineCensus, LogEvent, LogEventKind
from kforensics.formats.log_lines.stamps import (
    LEVEL,
    WIDEST_ZONE_MS,
    ZONE_STEP_MS,
    Head,
    Layout,
    LineTime,
    common_moment,
    head_of,
    stamps_in,
    vote,
    writer_of,
)
from kforensics.formats.log_lines.table import (
    LONGEST_REMEMBERED,
    MESSAGE_LENGTH_LIMIT,
    MOST_BEGINNINGS,
    Message,
    bulk_kinds,
    find_message_in,
    is_exception,
    message_at,
    rows,
    told_kinds,
)
from kforensics.formats.log_lines.unwrap import (
    FIELD,
    LINE_LENGTH_LIMIT,
    PRETTY,
    Encoding,
    Unwrapped,
    columns_behind,
    encoding_of,
    end_of_lines,
    is_log_line,
    json_object,
    line_moment,
    named_writer,
    of_fields,
    of_object,
    one_object_a_line,
    out_of_quotes,
    plain,
    strings,
    time_behind,
    unwrap,
)
from kforensics.formats.primitives.numbers import distinct
from kforensics.units import TopicPartition

SHAPES_SAMPLED = 64
_MOST_NUL_LINES = 64
"""The lines of a window that are looked at for messages that are not known; of the first window more."""
_FIRST_SAMPLED = 4_000

_LINE_END = 0x0A
WINDOW_LENGTH = 1 << 22
"""The bytes that are searched at once."""
_SAME_LIMIT = 1 << 12
_PROBED = 20
"""The lines that are looked at for a time as Kafka writes it."""
_MARKS = np.frombuffer(b",.:", np.uint8)
_BRACKET = ord("]")
_ONCE = 0, Absent.NOT_APPLICABLE, ""
"""Of an event that no other line repeats, and no writer is named before."""
_OPEN, _WITHOUT = -1, -2
"""Of a text: it is to be read; no message is in it."""
_TELLING_LINES, _MOSTLY_NEW, _TRIED_AGAIN = 1_000, 0.98, 8
"""Of a window of so many lines, of which hardly any repeats a text, no texts are kept; but of one in eight they are, whatever it is."""
_DIGITS, _DIGIT_VALUES = np.array([6, 5, 3, 2, 1]), np.array([10_000, 1_000, 100, 10, 1], np.int32)
_OBJECT_LIMIT = 200
"""The lines above and below one that may be of the same object."""
_SETTINGS_LIMIT = 4_000
"""The lines below one that may be of its configuration, and of other writers."""
_OF_FIELDS = re.compile(rb"\s*(\"[^\"\n]{1,100}\" ?: ?\"|[A-Z_]+=)")
"""What a journal, or a document, writes before a line among the lines of its other fields."""
_NEXT_ROW = re.compile(rb"\n\"(?![\",])")
"""The first column of a row of a table behind one whose column has many lines."""
_EXCEPTION_BEFORE = re.compile(rb"(?:Exception|Error): $")
"""Before a message that is the words of an exception, if it stands at the end."""
_BELOW_LIMIT = 60
"""The lines below a message that may belong to it."""
_SPECIAL = (
    FOLDED
    | {LogEventKind.CONFIGURATION, LogEventKind.START_TIME}
    | {row.section.kind for row in rows() if row.section.flags & {"below", "exception"}}
)
"""Kinds of which more than the line itself is looked at."""

_Found = tuple[Message | None, str]
"""The message in a text behind a time, if any is known, and the level before it."""
_NOTHING: _Found = None, ""

_HOUR_MS = 3_600_000
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
    zones: Mapping[tuple[int, int], int] = {}
    """The lines by what makes the times of lines without a zone UTC, as others in them, or beside them, show, and by the hour of their clock."""
    unknown: Mapping[bytes, int] = {}
    """Messages that are not known, without their numbers, among the lines that were looked at."""
    nul_lines: tuple[int, ...] = ()
    """The lines with NUL bytes, the last ones of very many."""


def scan_log(
    chunks: Iterable[bytes],
    *,
    position: int = 0,
    layout: Layout | None = None,
    encoding: Encoding | None = None,
    counted: frozenset[LogEventKind] = frozenset(),
    counted_now: Callable[[], frozenset[LogEventKind]] = frozenset,
) -> Iterator[LogWindow]:
    """Yield the events of a log, which is given as consecutive chunks of any size; each window ends at a line end.

    Args:
        chunks: the bytes, from the beginning of a line on.
        counted: kinds of which each window gives the first event alone, with the number of others.
        counted_now: more of them; it is asked before each window.
    """
    counted = counted | bulk_kinds()
    line = 1
    is_text = encoding is None or encoding.name == "utf-8"
    for whole, named, is_torn in _windows(one_object_a_line(chunks) if is_text else chunks, encoding):
        layout = layout or vote(plain(whole[: 1 << 16], named))
        result = _Window(whole, position, line, layout, named, counted | counted_now()).scan()
        position += len(whole)
        line += result.census.lines
        yield result._replace(census=result.census.plus(LineCensus(lines=1))) if is_torn else result


def _windows(chunks: Iterable[bytes], encoding: Encoding | None) -> Iterator[tuple[bytes, Encoding, bool]]:
    """Yield pieces of a log that end with lines, how they are encoded, and whether one is a line without an end."""
    parts: list[bytes] = []
    held = 0
    for chunk in chunks:
        parts.append(chunk)
        held += len(chunk)
        if held < WINDOW_LENGTH:
            continue
        encoding = encoding or encoding_of(b"".join(parts))
        # Most windows end in their last chunk: then all that is copied is the window.
        is_plain = encoding.name == "utf-8" and encoding.markup is None
        behind = len(chunk) - end_of_lines(chunk, encoding, are_whole=True) if is_plain else len(chunk)
        if behind == len(chunk):
            parts = [b"".join(parts)]
            behind = (held - end_of_lines(parts[0], encoding, are_whole=True)) % held
        left = parts[-1][len(parts[-1]) - behind :]
        parts[-1] = parts[-1][: len(parts[-1]) - behind]
        window, parts, held = b"".join(parts), [left], behind
        yield window, encoding, False
    window = b"".join(parts)
    encoding = encoding or encoding_of(window)
    split = 0 if encoding.markup is not None else end_of_lines(window, encoding)  # an event has many lines there
    if split:
        yield window[:split], encoding, False
    if split < len(window):
        yield window[split:], encoding, True


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
        self._text = plain(data, encoding)
        self._ends = np.flatnonzero(np.frombuffer(self._text, np.uint8) == _LINE_END)
        self._starts = np.concatenate(([0], self._ends[self._ends < len(self._text) - 1] + 1))
        self._stops = np.append(self._ends, len(self._text))
        self._raw_starts = self._starts if self._text is data else self._starts_of(data, encoding)
        self._is_wrapped = b'"' in self._text or b"\\n" in self._text
        self._events: list[LogEvent] = []
        self._repeats: defaultdict[int, int] = defaultdict(int)
        """The lines that repeat an event, by its number."""
        self._lasts: dict[int, int] = {}
        """The last of them."""
        self._latest: dict[TopicPartition | Absent, tuple[int, bytes]] = {}
        """The event of each partition that lines behind it may repeat, with its text."""
        self._firsts: dict[LogEventKind, int] = {}
        """The first event of each kind that is only counted."""
        self._zones: Counter[tuple[int, int]] = Counter()
        self._known = np.zeros(len(self._starts) + 1, np.bool_)
        """Lines with a message that is known."""
        self._same: dict[bytes, int] = {}
        """The events that a text behind a time repeats, as long as no other of its partition follows."""
        self._told = told_kinds()
        self._special = self._told | self._counted | _SPECIAL
        self._minutes: dict[bytes, int] = {}
        """The minutes at which lines begin."""
        self._has_fraction = True
        self._time_length = 0
        """The bytes of a line up to the end of its time."""
        self._below = -1
        """The last line that belongs to the message before it."""
        self._object_end = -1
        """The last line of the object over many lines that the message before it was read from with its stack."""
        self._owner: LogEvent | None = None
        self._held_twice: set[bytes] = set()
        """Lines of texts of many lines."""
        self._remembers = True
        """Whether texts are kept for the lines that repeat them: where hardly any does, that costs more than it saves."""
        self._plain_line = -1
        """The last line with quotes that nothing wraps: it may hold many beginnings of messages."""

    def _starts_of(self, data: bytes, encoding: Encoding) -> NDArray[np.intp]:
        if encoding.name == "utf-8":
            ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _LINE_END)
            return np.concatenate(([0], ends + 1))
        kind = "<u2" if encoding.name == "utf-16-le" else ">u2"
        ends = np.flatnonzero(np.frombuffer(data[: len(data) // 2 * 2], kind) == _LINE_END)
        return np.concatenate(([0], (ends + 1) * 2))

    def scan(self) -> LogWindow:
        text = self._text
        positions, anchors = places_of(text)
        lines = np.searchsorted(self._ends, positions)
        numbers, kinds = counted_kinds(self._counted)
        kind_of = numbers[anchors]
        is_first = np.ones(len(lines), np.bool_)
        is_first[1:] = lines[1:] != lines[:-1]
        begins = np.flatnonzero(is_first)
        # Where an anchor of another kind stands in the line, too, the message may be that one.
        is_of_one = (
            np.maximum.reduceat(kind_of, begins) == np.minimum.reduceat(kind_of, begins) if len(begins) else begins
        )
        told = begins[is_of_one & (kind_of[begins] >= 0)]
        told_lines, kinds_told = lines[told], kind_of[told]
        is_told = np.zeros(len(self._starts) + 1, np.bool_)
        is_told[told_lines] = True
        found, first = np.unique(kinds_told, return_index=True)
        is_told[told_lines[first]] = False  # the first line of each kind is read
        self._read_all(positions, lines, ~is_told[lines])
        for number, start in zip(found.tolist(), first.tolist(), strict=True):
            repeats = told_lines[start + 1 :][kinds_told[start + 1 :] == number]
            event = self._firsts.get(kinds[number])
            if event is None:
                is_told[:] = False
                is_told[repeats] = True
                self._read_all(positions, lines, is_told[lines])
            else:
                self._repeat_all(event, repeats)
        for event, times in self._repeats.items():
            moment = line_moment(self._line(self._lasts[event]))
            self._events[event] = self._events[event]._replace(repeats=times, last_time_ms=moment.time_ms)
        census = LineCensus(len(self._ends), len(self._events) + sum(self._repeats.values()))
        return LogWindow(tuple(self._events), census, self._zones, self._unknown(), self._nul_lines())

    def _read_all(self, positions: NDArray[np.intp], lines: NDArray[np.intp], wanted: NDArray[np.bool_]) -> None:
        """Read the messages that begin at positions of the wanted lines, one of each line."""
        wanted_lines, places = lines[wanted], positions[wanted].tolist()
        if not places:
            return
        first = np.flatnonzero(np.diff(wanted_lines, prepend=-1))
        lines = wanted_lines[first]
        starts, stops = self._starts[lines], self._stops[lines]
        lates = self._in_minute(starts)
        bounds = zip((starts + self._time_length).tolist(), stops.tolist(), strict=True)
        texts = [self._text[begin:stop] for begin, stop in bounds]
        is_open, counted = self._known_texts(lines, texts, lates)
        behind = np.minimum(np.append(first[1:], len(places)), first + MOST_BEGINNINGS)
        columns = lines, starts, stops, lates, first, behind
        self._read_lines(places, texts, columns, np.flatnonzero(is_open))
        for kind, at in counted.items():
            if kind in self._firsts:
                self._repeat_all(self._firsts[kind], lines[at])
            else:
                self._read_lines(places, texts, columns, at)

    def _known_texts(
        self, lines: NDArray[np.intp], texts: list[bytes], lates: NDArray[np.int32]
    ) -> tuple[NDArray[np.bool_], dict[LogEventKind, NDArray[np.intp]]]:
        """Return which lines are to be read, and those that are only counted: their texts were read before."""
        known = _KNOWN.get
        numbers = np.fromiter((known(text, _OPEN) for text in texts), np.intp, len(lines))
        if len(lines) >= _TELLING_LINES and self._position // WINDOW_LENGTH % _TRIED_AGAIN:
            self._remembers = int(np.count_nonzero(numbers == _OPEN)) < len(lines) * _MOSTLY_NEW
        numbers[lates < 0] = _OPEN
        groups, kinds = _groups(self._counted)
        of_lines = groups[numbers]
        is_open = of_lines == _OPEN
        counted: dict[LogEventKind, NDArray[np.intp]] = {}
        for number in np.flatnonzero(np.bincount(of_lines[of_lines >= 0])).tolist():
            kind, at = kinds[number], np.flatnonzero(of_lines == number)
            if kind not in self._firsts:
                is_open[at[0]] = True  # the first line of each kind is read
                at = at[1:]
            counted[kind] = at
        return is_open, counted

    def _read_lines(
        self, places: list[int], texts: list[bytes], columns: tuple[NDArray[Any], ...], wanted: NDArray[np.intp]
    ) -> None:
        """Read some lines one by one.

        Args:
            texts: what stands behind the time of each.
            columns: the number, the bounds and the time of each, as `_in_minute` gives it, and which of the places are in it.
        """
        same, repeats, lasts = self._same, self._repeats, self._lasts
        known: list[int] = []
        chosen = (one[wanted].tolist() for one in columns)
        for at, line, start, stop, late, first, end in zip(wanted.tolist(), *chosen, strict=True):
            rest = texts[at]
            number = same.get(rest)
            if number is not None:
                repeats[number] += 1
                lasts[number] = max(lasts.get(number, 0), line)  # lines are not read in their order
                known.append(line)
                continue
            time_ms = self._time_ms(start, late) if late >= 0 else None
            if time_ms is None:
                self._read_places(places[first:end], line, start, stop)
                continue
            found = _KNOWN.get(rest)
            if found is not None:
                self._add_known(_FOUND[found], line, start, stop, rest, time_ms)
            elif b'"' in rest or b"\\n" in rest or len(rest) > LONGEST_REMEMBERED:
                self._read_places(places[first:end], line, start, stop)
            else:
                for place in places[first:end]:
                    if self._read_plain(place, line, start, stop, rest, time_ms):
                        break
                else:
                    self._remember(rest, _NOTHING)
        self._known[known] = True

    def _read_places(self, places: list[int], line: int, start: int, stop: int) -> None:
        end = min(stop, start + LINE_LENGTH_LIMIT)
        any(self._read(place, line, start, end) for place in places)

    def _in_minute(self, starts: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the milliseconds since the last minute of lines whose times are as long as that of the first one; -1 for others."""
        if not self._time_length:
            commons = ((start, common_moment(self._text, start)) for start in starts[:_PROBED].tolist())
            self._time_length = next((one[0] - start for start, one in commons if one is not None), 0)
        ends = starts + self._time_length
        if not self._time_length or not len(ends) or ends[-1] > len(self._text):
            return np.full(len(starts), -1, np.int32)
        content = np.frombuffer(self._text, np.uint8)
        self._has_fraction = self._time_length > len("[20xx-01-01 00:00:00")
        places, values = (_DIGITS, _DIGIT_VALUES) if self._has_fraction else (_DIGITS[-2:], _DIGIT_VALUES[:2])
        digits = content[ends[:, None] - places].astype(np.int32) - ord("0")
        mark = content[ends - (4 if self._has_fraction else 3)]
        is_time = ((digits >= 0) & (digits <= 9)).all(axis=1) & (digits[:, 0] < 6) & np.isin(mark, _MARKS)
        late: NDArray[np.int32] = np.where(is_time, digits @ values, -1)
        return late

    def _time_ms(self, start: int, late: int) -> int | None:
        """Return the time at the start of a line, where it is as long as that of the first one.

        Args:
            late: the milliseconds since the last minute.
        """
        minute = self._text[start : start + self._time_length - (6 if self._has_fraction else 2)]
        time_ms = self._minutes.get(minute)
        if time_ms is None:
            common = common_moment(self._text, start)
            if common is None or common[0] - start != self._time_length or not isinstance(common[1].time_ms, int):
                return None
            time_ms = self._minutes[minute] = common[1].time_ms - late
        return time_ms + late

    def _bounds(self, line: int) -> tuple[int, int]:
        start = int(self._starts[line])
        end = int(self._ends[line]) if line < len(self._ends) else len(self._text)
        return start, min(end, start + LINE_LENGTH_LIMIT)

    def _line(self, line: int, most: int = LINE_LENGTH_LIMIT) -> bytes:
        start, end = self._bounds(line)
        return self._text[start : min(end, start + most)]

    def _read(self, position: int, line: int, start: int, end: int) -> bool:
        """Read the message that may begin at a position, and return whether the line is done with."""
        text = self._text
        if self._is_wrapped and (text.find(b'"', start, end) >= 0 or text.find(b"\\n", start, end) >= 0):
            if line != self._plain_line:
                unwrapped = self._unwrapped(start, end, line)
                self._plain_line = line if unwrapped is None else -1
            else:
                unwrapped = None
            if unwrapped is not None:
                self._add_unwrapped(unwrapped, line)
                return True
        common = common_moment(text, start)
        rest_start = common[0] if common is not None and position > common[0] else start
        rest_start = max(rest_start, position - MESSAGE_LENGTH_LIMIT)
        rest = text[rest_start : min(end, position + MESSAGE_LENGTH_LIMIT)]
        in_quotes = text[start] == 0x22 or rest[:2] == b',"'
        if in_quotes:
            rest = out_of_quotes(rest, position - rest_start)
        message = message_at(rest, position - rest_start)
        if message is None:
            return False
        level, has_time = _level_and_time(rest[: message.start])
        self._known[line] = True
        is_words = common is None and _EXCEPTION_BEFORE.search(text, start, position) is not None
        if (is_exception(message) or is_words) and not self._is_first(rest, position - rest_start, line):
            self._add_below(message, line, start, position)
            return True
        behind = columns_behind(text[position:end], 0) if in_quotes else ""
        if common is None or rest_start == start or has_time:
            head = head_of(text[start : rest_start + message.start], self._layout)
            if head.start < 0:
                stop = end
                if in_quotes and text.find(b'"', position, end) < 0:
                    most = min(position + MESSAGE_LENGTH_LIMIT, len(text))
                    next_row = _NEXT_ROW.search(text, position, most)
                    stop = most if next_row is None else next_row.start()
                head = self._time_around(line, text[position:stop] if in_quotes else b"") or head
            head = head if head.writer else head._replace(writer=behind)
        else:
            head = Head(common[1], None, behind, start, rest_start)
            self._add(message, line, head, level, rest)
            if (
                rest_start - start == self._time_length
                and not is_exception(message)
                and len(rest) <= LONGEST_REMEMBERED
            ):
                self._remember(rest, (message, level))
            return True
        self._add(message, line, head, level, text[start + head.end : end])
        return True

    def _read_plain(self, position: int, line: int, start: int, stop: int, rest: bytes, time_ms: int) -> bool:
        """Read the message that may begin at a position of a line that nothing wraps, behind a time; return whether the line is done with."""
        text, begin = self._text, start + self._time_length
        is_timed = position > begin and (text[begin] == _BRACKET or common_moment(text, start) is not None)
        message = message_at(text, position, begin, stop) if is_timed else None
        if message is None:
            return self._read(position, line, start, stop)
        level, has_time = _level_and_time(text[begin : message[-1]])
        if has_time or is_exception(message):
            return self._read(position, line, start, stop)
        self._add_known((message, level), line, start, stop, rest, time_ms)
        self._remember(rest, (message, level))
        return True

    def _remember(self, text: bytes, found: _Found) -> None:
        if self._remembers:
            _remember(text, found)

    def _add_known(self, known: _Found, line: int, start: int, stop: int, rest: bytes, time_ms: int) -> None:
        message, level = known
        if message is None:
            return
        kind = message.row.section.kind
        if kind in self._counted and self._count(kind, line):
            return
        self._known[line] = True
        if kind in self._special or self._text is not self._data:
            head = Head(LineTime(time_ms, zone_named=False), None, "", start, start + self._time_length)
            self._add(message, line, head, level, rest)
            return
        end = stop - (self._text[stop - 1 : stop] == b"\r")
        row, partition, node, fields, _ = message
        span = tuple.__new__(Span, (self._position + start, end - start))
        number = self._first_line + line
        # A call of the class itself takes three times as long.
        of_event = kind, time_ms, False, level, partition, node, fields, number, span, *_ONCE, row.number
        self._append(tuple.__new__(LogEvent, of_event))

    def _append(self, event: LogEvent) -> None:
        """Add an event behind which no other of its partition is folded into one before it."""
        self._owner = event
        if self._latest and (before := self._latest.pop(event.topic_partition, None)) is not None:
            self._same.pop(before[1], None)
        self._events.append(event)

    def _is_first(self, rest: bytes, position: int, line: int) -> bool:
        """Whether an exception stands in a line with its own level, as a message of its own."""
        return line > self._below and LEVEL.search(rest, 0, position) is not None

    def _count(self, kind: LogEventKind, line: int) -> bool:
        """Count a line of a kind that is not read after its first one; return whether that was done."""
        number = self._firsts.get(kind)
        if number is None:
            return False
        self._repeat(number, line)
        return True

    def _repeat(self, number: int, line: int) -> None:
        self._repeats[number] += 1
        self._lasts[number] = max(self._lasts.get(number, 0), line)
        self._known[line] = True

    def _repeat_all(self, number: int, lines: NDArray[np.intp]) -> None:
        if len(lines):
            self._repeats[number] += len(lines)
            self._lasts[number] = max(self._lasts.get(number, 0), int(lines[-1]))
            self._known[lines] = True

    def _add(
        self, message: Message, line: int, head: Head, level: str, text: bytes, *, stack: bytes | None = None
    ) -> None:
        row, fields = message.row, message.fields
        kind = row.section.kind
        if head.writer:
            text = head.writer.encode("utf-8", "replace") + b"\0" + text  # nobody repeats another's line
        if kind in FOLDED:
            before = self._latest.get(message.topic_partition)
            if before is not None and before[1] == text:
                self._same[text] = before[0]
                self._repeat(before[0], line)
                return
        is_counted = kind in self._counted
        if is_counted:
            if self._count(kind, line):
                if len(self._same) < _SAME_LIMIT:
                    self._same[text] = self._firsts[kind]
                return
            self._firsts[kind] = len(self._events)
        is_told = kind in self._told
        if is_told and (number := self._same.get(text)) is not None:
            self._repeat(number, line)
            return
        if head.moment.zone_named or head.outer_utc_ms is not None or kind is LogEventKind.START_TIME:
            self._note_zone(kind, head, fields)
        if kind is LogEventKind.CONFIGURATION:
            fields = parse_configuration(b"\n\t" + stack) if stack else self._settings_below(line, head.writer)
        if head.clock:
            fields = {**fields, "clock": head.clock}
        partition = message.topic_partition
        if "below" in row.section.flags and not is_counted:
            cause = cause_in(stack) if stack is not None else self._cause_below(line)
            if cause is not None:
                fields, partition = with_cause(fields, partition, cause)
        if fields is not message.fields or partition is not message.topic_partition:
            shown = message._replace(topic_partition=partition, fields=fields)
        else:
            shown = message
        event = self._event(line, shown, head, level)
        if is_counted or is_exception(message):
            self._owner = self._owner if is_exception(message) else event
            self._events.append(event)
            return
        if is_told:
            # Nothing rests on it: it stands for all like it, whatever is between, and does not part others that repeat.
            self._owner = event
            self._events.append(event)
        else:
            self._append(event)
        if kind in FOLDED:
            self._latest[message.topic_partition] = len(self._events) - 1, text
        if is_told or kind in FOLDED:
            self._same[text] = len(self._events) - 1

    def _settings_below(self, line: int, writer: str) -> Mapping[str, FieldValue]:
        """Return the configuration below a line; of one that a collector of lines took apart the lines of the same writer."""
        start, end = self._bounds(line)
        if self._text[end + 1 : end + 2] in {b" ", b"\t"} and not self._text[start : start + 1].isspace():
            return parse_configuration(self._text, end)
        if b"\\n" in (whole := self._line(line)):
            whole = whole.replace(b"\\n", b"\n").replace(b"\\t", b"\t")
            if fields := parse_configuration(whole, whole.find(b"\n")):
                return fields
        found: defaultdict[str, list[bytes]] = defaultdict(list)
        for number in range(line + 1, min(line + _SETTINGS_LIMIT, len(self._starts))):
            text, named = self._line(number), ""
            if self._is_wrapped and (value := json_object(text[text.find(b"{") :].rstrip(b",\r"))) is not None:
                texts = (one.encode("utf-8", "replace") for one in strings(value))
                text, named = next((one for one in texts if SETTING.search(one)), text), named_writer(value)
            setting = SETTING.search(text)
            level = LEVEL.search(text, 0, setting.start() if setting is not None else 400)
            if level is not None:
                if (head_of(text[: level.start()], self._layout).writer or named) == writer:
                    break
            elif setting is not None:
                found[writer_of(text[: setting.start()]) or named].append(setting["setting"])
        most = max(map(len, found.values()), default=0)
        many = [settings for settings in found.values() if len(settings) * 10 > most]  # words of exceptions look alike
        settings = found.get(writer) or (many[0] if len(many) == 1 else [])
        return parse_configuration(b"".join(b"\n\t" + setting for setting in settings))

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
            self._zones[behind, time_ms // _HOUR_MS * _HOUR_MS] += 1

    def _add_below(self, message: Message, line: int, start: int, position: int) -> None:
        """Add what an exception says, with the time of the line above that it belongs to."""
        owner = self._owner
        above = owner.line - self._first_line if owner is not None else -1
        between = range(above + 1, line + 1)
        if owner is not None and (
            line <= max(self._below, above) or (len(between) <= _BELOW_LIMIT and all(map(self._is_below, between)))
        ):
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
            if self._count(kind, line):
                return
            self._firsts[kind] = len(self._events)
        self._events.append(self._event(line, message, head, level))

    def _is_below(self, line: int) -> bool:
        """Whether a line is of a stack trace."""
        text = self._line(line, 2_000)
        if is_of_a_stack(text):
            return True
        return LEVEL.search(text, 0, 200) is None and (not text.strip() or exception_in(text) is not None)

    def _head_above(self, line: int) -> Head | None:
        for number in range(line - 1, max(-1, line - _BELOW_LIMIT), -1):
            text = self._line(number, 400)
            level = LEVEL.search(text)
            if level is not None:
                return head_of(text[: level.start()] or text, self._layout)
        return None

    def _time_around(self, line: int, in_quotes: bytes) -> Head | None:
        """Return the time of a message that none stands before: in a column behind it, in a field on a line around it, or on the line above.

        Args:
            in_quotes: the line from the message on, where that is a column of a table.
        """
        moment, writer = time_behind(in_quotes, self._layout), ""
        if not isinstance(moment.time_ms, int):
            first, last = line, line + 1
            own = FIELD.match(self._line(line))

            def goes_on(number: int) -> bool:
                field = FIELD.match(self._line(number))
                return field is not None and (own is None or field[1] != own[1])  # else it is of another record

            while first > max(0, line - _BELOW_LIMIT) and goes_on(first - 1):
                first -= 1
            while last < min(len(self._starts), line + _BELOW_LIMIT) and goes_on(last):
                last += 1
            found = [FIELD.match(self._line(number)) for number in range(first, last)]
            if found[line - first] is None:
                first = line
                if LEVEL.match(self._text, *self._bounds(line)) is None:
                    return None
            else:
                moment, writer = of_fields(one.groups() for one in found if one is not None)
            if not isinstance(moment.time_ms, int) and first:
                # As `java.util.logging` writes a time, and a journal one above the fields of a line.
                text = self._line(first - 1, 400)
                head = head_of(text, self._layout)
                if LEVEL.search(text) is None and 0 <= head.start < 5:  # behind a day of the week
                    return head._replace(writer=writer, start=-1, end=0)
        return Head(moment, None, writer, -1, 0) if isinstance(moment.time_ms, int) else None

    def _cause_below(self, line: int) -> Cause | None:
        """Return what the exception below a line says, and note how far it reaches."""
        found: list[bytes] = []
        field = _OF_FIELDS.match(self._line(line))
        for number in range(line + 1, min(line + _BELOW_LIMIT, len(self._starts))):
            text = self._line(number, 4_000)
            if not text.strip() or (field is not None and not text.lstrip().startswith(field[1])):
                continue
            level = LEVEL.search(text, 0, 200)
            if level is not None and b"xception" not in text[: level.start()]:
                break
            if self._is_wrapped and b'{"' in text and (value := json_object(text[text.find(b"{") :])) is not None:
                values = [one.encode("utf-8", "replace") for one in strings(value)]
                text = max(values, key=lambda one: (exception_in(one) is not None, len(one)), default=b"")
            if exception_in(text) is None and not is_of_a_stack(text):
                # The words of an exception may go on in a second line.
                is_first = not found or bool(stamps_in(text[:60]))
                if is_first or (len(found) > 1 and not is_of_a_stack(found[-1]) and exception_in(found[-1]) is None):
                    break
            self._below = number
            found.append(text)
        return cause_in(b"\n".join(found)) or cause_in(self._line(line))  # some layouts write it behind the message

    def _unwrapped(self, start: int, end: int, line: int) -> Unwrapped | None:
        text = self._text[start:end]
        if (pretty := PRETTY.match(text)) is not None:
            whole = self._in_objects(line)
            if whole is not None and pretty["key"]:
                return whole
            try:
                inner = json.loads(pretty["value"]).encode("utf-8", "replace")
            except ValueError:
                return whole
            if whole is None:
                return Unwrapped(inner, LineTime(Absent.NOT_WRITTEN, False), "", "")
            if len(inner) < len(whole.text) and inner in whole.text:
                return whole
            self._object_end = -1  # what else is in its list are lines of their own
            return whole._replace(text=inner, stack=b"")
        return unwrap(text)

    def _in_objects(self, line: int) -> Unwrapped | None:
        """Return the line in the object that is written over many lines around it, or in one around that, as far as none has a time."""
        first = last = line
        found, bounds = None, None
        while found is None or not isinstance(found.moment.time_ms, int):
            begins, ends = (b"{", b"}") if found is None else ((b"{", b"["), (b"}", b"]"))
            depth = self._depth(first)
            while first > max(0, line - _OBJECT_LIMIT) and not self._ends_with(begins, first, depth):
                first -= 1
            depth = self._depth(first)
            while last < min(len(self._starts) - 1, line + _OBJECT_LIMIT) and not self._begins_with(ends, last, depth):
                last += 1
            if bounds == (first, last):
                break
            bounds = first, last
            text = self._text[self._bounds(first)[0] : self._bounds(last)[1]]
            text = text[len(self._line(first).rstrip()) - 1 :].rstrip().rstrip(b",")
            whole = json_object(text if text[:1] == b"{" else b'{"":%b}' % text)
            outer = of_object(whole, b"") if whole is not None else None
            if outer is None or (found is not None and outer.text != found.text):
                break
            found = outer
            if found.stack:
                self._object_end = last
        return found

    def _depth(self, line: int) -> int:
        text = self._line(line)
        return len(text) - len(text.lstrip())

    def _ends_with(self, marks: bytes | tuple[bytes, ...], line: int, below: int) -> bool:
        return self._depth(line) < below and self._line(line).rstrip().endswith(marks)

    def _begins_with(self, marks: bytes | tuple[bytes, ...], line: int, most: int) -> bool:
        return self._depth(line) <= most and self._line(line).lstrip().startswith(marks)

    def _add_unwrapped(self, unwrapped: Unwrapped, line: int) -> None:
        """Add the message of an unwrapped line; of a text of many lines of a log those of all of them."""
        whole = unwrapped.text.split(b"\n")
        begins = [0, *(at for at, one in enumerate(whole) if at and is_log_line(one))]
        if begins[1:]:
            unwrapped = unwrapped._replace(stack=b"")
        for at, end in zip(begins, [*begins[1:], len(whole)], strict=True):
            text = b"\n".join(whole[at:end])
            if text in self._held_twice:
                self._known[line] = True  # documents hold what a command wrote as a whole, and line by line
            else:
                self._add_unwrapped_line(unwrapped._replace(text=text), line)
        if begins[1:]:
            self._held_twice.update(whole)

    def _add_unwrapped_line(self, unwrapped: Unwrapped, line: int) -> None:
        text, _, stack = unwrapped.text.partition(b"\n")
        found = find_message_in(text)
        if found is None and stack:
            found = find_message_in(stack.replace(b"\n", b" "))
        if found is None:
            return
        self._known[line] = True
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
        if is_exception(message):
            if line <= self._object_end and self._owner is not None and self._owner.line - self._first_line < line:
                return  # it was read with the message of its object
            if self._owner is not None and line <= max(self._below, self._owner.line - self._first_line + 3):
                self._add_below(message, line, int(self._starts[line]), int(self._starts[line]))
            else:
                self._append_exception(message, line, head, level)
            return
        count = len(self._events)
        self._add(
            message, line, head, level or unwrapped.level, text[head.end :], stack=stack or unwrapped.stack or None
        )
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
        for line in range(0, count, step):
            start, end = self._bounds(line)
            level = None if self._known[line] else LEVEL.search(self._text, start, min(end, start + 300))
            if level is not None and (shape := _shape(self._text[level.end() : min(end, level.end() + 200)])):
                found[shape] += step
        return found

    def _nul_lines(self) -> tuple[int, ...]:
        if b"\x00" not in self._text:
            return ()
        # A regular expression that looks back would be quadratic in long lines.
        lines = distinct(np.searchsorted(self._ends, np.flatnonzero(np.frombuffer(self._text, np.uint8) == 0)))
        return tuple((lines[-_MOST_NUL_LINES:] + self._first_line).tolist())


_SHAPE_NOISE = re.compile(rb"\[[^\]]*\][:,]?|\([\w$.]+\) *$|[\w.$]+:\d+ - |^[\s:|-]+")
_SHAPE_VALUES = re.compile(rb"[^\s]*[\d/][^\s]*")


def _shape(text: bytes) -> bytes:
    words = _SHAPE_VALUES.sub(b"*", _SHAPE_NOISE.sub(b"", text)).split()
    return b" ".join(words[:10])


# Brokers repeat themselves: most lines differ only in their time.
_KNOWN: dict[bytes, int] = {}
"""The number of what is found in a text behind the time of a line."""
_FOUND: list[_Found] = []
_KNOWN_LIMIT = 1 << 14
_GROUPS: dict[frozenset[LogEventKind], tuple[list[int], Sequence[LogEventKind]]] = {}


def _remember(text: bytes, found: _Found) -> None:
    if len(_FOUND) >= _KNOWN_LIMIT:
        _KNOWN.clear()
        _FOUND.clear()
        _GROUPS.clear()
    _KNOWN[text] = len(_FOUND)
    _FOUND.append(found)


def _groups(counted: frozenset[LogEventKind]) -> tuple[NDArray[np.intp], Sequence[LogEventKind]]:
    """Return what becomes of the lines with each text, of those that are not known last: the number of their kind among those that follow, where they are only counted."""
    groups, kinds = _GROUPS.setdefault(counted, ([], tuple(sorted(counted))))
    for message, _ in _FOUND[len(groups) :]:
        kind = message.row.section.kind if message is not None else None
        groups.append(_WITHOUT if kind is None else kinds.index(kind) if kind in counted else _OPEN)
    return np.array([*groups, _OPEN], np.intp), kinds


@lru_cache(maxsize=1 << 13)
def _level_and_time(before: bytes) -> tuple[str, bool]:
    """Return the level before a message, and whether a time stands there."""
    return _level_in(before), b":" in before and bool(stamps_in(before))


def _level_in(text: bytes) -> str:
    level = None
    for found in LEVEL.finditer(text):
        level = found[0]
    name = (level or b"").decode()
    return {"WARNING": "WARN", "SEVERE": "ERROR"}.get(name, name)
