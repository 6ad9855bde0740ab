r"""Broker logs of 0.8 to 4.x (server.log, state-change.log, controller.log): the lines that report events.

    file     = line*                       lines end with LF or CR LF; the last may be incomplete
    line     = head identity? message      a text layout: "[2024-05-01 12:00:00,123] INFO [Log partition=t-0, dir=/d] …"
             | json                        a JSON layout, one object a line
             | indented                    a stack trace or a value of the configuration
             | anything else               counted, never an error

No checksum covers a log. One expression made of the beginnings of all declared messages runs once over large windows,
so that a line without an event costs only that pass. The lines are written by kafka.log.Log, UnifiedLog, LogLoader,
ReplicaFetcherThread, Partition, state.change.logger, ReplicationControlManager and related classes.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Span
from kforensics.formats.log_lines.configuration import parse_configuration
from kforensics.formats.log_lines.event import LineCensus, LogEvent, LogEventKind
from kforensics.formats.log_lines.message import MESSAGE_START, Message, parse_message
from kforensics.formats.log_lines.prefix import (
    JSON_HEAD,
    LEVELS,
    TEXT_HEAD,
    LineTime,
    parse_head_moment,
    parse_json_line,
    writer_before,
)
from kforensics.formats.primitives.numbers import distinct
from kforensics.units import TopicPartition

LINE_LENGTH_LIMIT = 1 << 20
"""The most bytes of a line that are read; every message that is declared here is much shorter."""

MESSAGE_LENGTH_LIMIT = 1 << 16
"""The most bytes of a message that are read: a line may hold many beginnings of messages."""

_TEXT_EVENT = re.compile(TEXT_HEAD + rb"(?=" + MESSAGE_START + rb")")
_JSON_EVENT = re.compile(JSON_HEAD + rb"(?=" + MESSAGE_START + rb")")
_TEXT_LINE = re.compile(TEXT_HEAD)
_CONFIGURATION_LIMIT = 1 << 17
_LINE_END = 0x0A
_NOT_ASCII = 0x80
_BRACE = 0x7B
_BLANKS = list(b"\t ")


class LogWindow(NamedTuple):
    """The events of one window of a log, in file order, and the census of its lines."""

    events: tuple[LogEvent, ...]
    census: LineCensus


def looks_like_broker_log(head: bytes) -> bool:
    """Return whether the bytes hold a line that begins as a broker's log line does, in a text or a JSON layout.

    Args:
        head: the beginning of a file; of a JSON layout, its first 50 lines are tried.
    """
    if _TEXT_LINE.search(head) is not None:
        return True
    return any(
        not isinstance(parse_json_line(line), Absent)
        for line in head.splitlines()[:50]
        if line.lstrip().startswith(b"{")
    )


def scan_log(chunks: Iterable[bytes], *, position: int = 0) -> Iterator[LogWindow]:
    """Yield the events of a log, which is given as consecutive chunks of any size; each window ends at a line end.

    Args:
        chunks: the bytes, from the beginning of a line on.
        position: the position of the first byte in the log.
    """
    rest, line = b"", 1
    for chunk in chunks:
        window = rest + chunk if rest else chunk
        split = window.rfind(b"\n") + 1
        if not split and len(window) < LINE_LENGTH_LIMIT:
            rest = window
            continue
        split = split or len(window)
        whole, rest = (window, b"") if split == len(window) else (window[:split], window[split:])
        result = _scan_window(whole, position, line)
        position += split
        line += result.census.lines
        yield result
    if rest:
        result = _scan_window(rest, position, line)
        yield LogWindow(result.events, result.census.plus(LineCensus(lines=1, torn_end=1)))


class _Found(NamedTuple):
    """A message in a window: where the match of its line begins, its content, its bytes, its time, its level, and what was put before it."""

    start: int
    message: Message
    span: Span
    moment: LineTime
    level: str
    writer: str


def _scan_window(window: bytes, position: int, first_line: int) -> LogWindow:
    content = np.frombuffer(window, np.uint8)
    line_ends = np.flatnonzero(content == _LINE_END)
    starts = np.concatenate(([0], line_ends[line_ends < len(window) - 1] + 1))
    found: list[_Found] = []
    repeats: dict[int, tuple[int, re.Match[bytes]]] = {}
    latest: dict[TopicPartition | Absent, tuple[Message, int]] = {}
    unmatched = parsed_end = 0
    for match in _candidates(window, may_hold_json=_begins_with_brace(content, starts)):
        text = match.end()
        end = window.find(b"\n", text, text + LINE_LENGTH_LIMIT)
        if end < 0:
            end = min(len(window), text + LINE_LENGTH_LIMIT)
        if match.re is _TEXT_EVENT:
            message = parse_message(window[text : min(end, text + MESSAGE_LENGTH_LIMIT)])
            if message is not None and message.is_folded:
                before = latest.get(message.topic_partition)
                if before is not None and before[0] is message:
                    index = before[1]
                    repeats[index] = (repeats[index][0] + 1 if index in repeats else 1, match)
                    continue
            item = None if message is None else _text_item(window, match, message, end)
        elif match.start() < parsed_end:
            continue  # a field of the object that was parsed already
        else:
            parsed_end = end
            item = _json_item(window, match, end)
        if item is None:
            unmatched += 1
            continue
        latest[item.message.topic_partition] = (item.message, len(found))
        found.append(item)
    lines = first_line + np.searchsorted(line_ends, np.fromiter((item.start for item in found), np.int64, len(found)))
    events = tuple(
        _event(item, position, line, repeats.get(index))
        for index, (item, line) in enumerate(zip(found, lines.tolist(), strict=True))
    )
    repeated = sum(count for count, _ in repeats.values())
    return LogWindow(events, _census(window, line_ends, len(events) + repeated, unmatched))


def _begins_with_brace(content: NDArray[np.uint8], starts: NDArray[np.intp]) -> bool:
    """Return whether any line begins with a brace, indented or not, as the lines of a JSON layout do."""
    while len(starts):
        first = content[starts]
        if (first == _BRACE).any():
            return True
        starts = starts[np.isin(first, _BLANKS)] + 1
        starts = starts[starts < len(content)]
    return False


def _candidates(window: bytes, *, may_hold_json: bool) -> Iterator[re.Match[bytes]]:
    if not may_hold_json or (b'"message"' not in window and b'"msg"' not in window):
        return _TEXT_EVENT.finditer(window)
    both = [*_TEXT_EVENT.finditer(window), *_JSON_EVENT.finditer(window)]
    both.sort(key=lambda match: match.start())
    return iter(both)


def _text_item(window: bytes, match: re.Match[bytes], message: Message, end: int) -> _Found:
    if message.kind is LogEventKind.CONFIGURATION:
        message = message._replace(fields=parse_configuration(window[end : end + _CONFIGURATION_LIMIT]))
    start = match.start() - (window[match.start() - 1 : match.start()] == b"[")
    writer = writer_before(window, match.start())
    return _Found(match.start(), message, Span(start, end - start), _text_moment(match), LEVELS[match["level"]], writer)


def _text_moment(match: re.Match[bytes]) -> LineTime:
    return parse_head_moment(match[0])


def _json_item(window: bytes, match: re.Match[bytes], end: int) -> _Found | None:
    start = window.rfind(b"\n", max(0, match.start() - LINE_LENGTH_LIMIT), match.start()) + 1
    parsed = parse_json_line(window[start:end])
    message = None if isinstance(parsed, Absent) else parse_message(parsed.message)
    if isinstance(parsed, Absent) or message is None:
        return None
    writer = writer_before(window, max(start, window.find(b"{", start)))
    return _Found(match.start(), message, Span(start, end - start), parsed.moment, parsed.level, writer)


def _event(item: _Found, position: int, line: int, repeats: tuple[int, re.Match[bytes]] | None) -> LogEvent:
    message, span = item.message, Span(position + item.span.position, item.span.length)
    event = LogEvent(
        message.kind,
        item.moment.time_ms,
        item.moment.zone_named,
        item.level,
        message.topic_partition,
        message.broker_id,
        message.fields,
        line,
        span,
        writer=item.writer,
    )
    if repeats is None:
        return event
    return event._replace(repeats=repeats[0], last_time_ms=_text_moment(repeats[1]).time_ms)


def _census(window: bytes, line_ends: NDArray[np.intp], events: int, unmatched: int) -> LineCensus:
    content = np.frombuffer(window, np.uint8)
    return LineCensus(
        lines=len(line_ends),
        events=events,
        unmatched=unmatched,
        not_utf8=0 if _is_utf8(window) else _not_utf8_lines(window, content, line_ends),
        with_nul=len(_lines_with(content == 0, line_ends)) if b"\x00" in window else 0,
        over_long=int(len(line_ends) == 0 and len(window) >= LINE_LENGTH_LIMIT),
    )


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
