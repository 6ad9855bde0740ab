"""What wraps a line of a log: encodings, colours, containers that split lines, JSON and CSV, taken off only where a message is looked for."""

import codecs
import json
import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from kforensics.damage import Absent
from kforensics.formats.log_lines.below import exception_in, is_of_a_stack
from kforensics.formats.log_lines.elements import event_name, last_event_end, markup_of, of_elements
from kforensics.formats.log_lines.stamps import (
    LEVEL,
    Layout,
    LineTime,
    common_moment,
    epoch_ms,
    head_of,
    stamps_in,
    time_of,
    vote,
)
from kforensics.formats.log_lines.table import FoundMessage, find_message_in, is_exception

LINE_LENGTH_LIMIT = 1 << 20
"""The most bytes of a line that are read; every message that is known is much shorter."""

_HEAD_LENGTH = 1 << 14
_BYTES_TOLD = 256
"""The first bytes of a file by which its encoding is told where it does not name it."""
_LINE_END = 0x0A
_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b\n]*(?:\x07|\x1b\\))")
_UNSEEN = re.compile(
    rb"[\xa0\xc2\xe2\xef](?:(?<=\xc2)[\xa0\xad]|(?<=\xe2)(?:\x80[\x87\x8b-\x8d\xaf]|\x81\xa0)|(?<=\xef)\xbb\xbf|(?<![\x80-\xff]\xa0)(?<=\xa0))"
)
_BLANKS = {b"\xa0", b"\xc2\xa0", b"\xe2\x80\x87", b"\xe2\x80\xaf"}
"""What editors and pages write for a blank, and what they put into words unseen."""
_QUOTED = re.compile(rb"(?m)^(?:> ?)+")
_ESCAPED_BYTE = re.compile(rb"=([0-9A-F]{2})")
_BYTE_LISTS = re.compile(rb"\"(MESSAGE)\" ?: ?\[([\d, ]*)\]")
PRETTY = re.compile(rb"^\s*(?P<key>\"[^\"\n]{1,100}\" ?: ?)?(?P<value>\"(?:[^\"\\\n]|\\.)*\") ?,?\s*$")
FIELD = re.compile(rb"[ \t]*([A-Za-z_@][\w.@-]*)(?:[ \t]?=|:(?=\s|$))\s*(.*)")
"""A line with the name of a field and its value, as YAML and a journal write a record on many lines."""

_SPLIT = re.compile(rb" (?:stdout|stderr) [PF] ")
_PART = re.compile(rb"\S+ (?P<stream>stdout|stderr) (?P<flag>[PF]) ")
_NEXT_OBJECT = re.compile(rb'"(?:[^"\\]|\\.)*+"|(?P<mark>(?<=[}\]])[,\0](?=\s*+[{\[])|\}(?=\{))', re.DOTALL)
_DECODER = json.JSONDecoder()
_BEGINNING = re.compile(r"[{\[]")
_DOCUMENT_TOLD, _PARTS_TOLD = 1 << 16, 50
"""The first bytes of a document by which its objects are told, and how many of them are looked at."""
_MOST_OBJECTS_HELD = 1 << 22
_NARROWEST = 60
"""The least width of a terminal that folds lines."""
_LEAST_FOLDED = 5
_WRAPPED, _LONGEST_WRAPPED = range(50, 130), 1 << 18
"""The bytes of the longest line, and the most of a text, that a mail or a page wrapped between words."""
_ENDED = re.compile(rb"\([\w$.]+\)(?: \[[^\[\]]*\])?\s*$")
"""The logger, and the thread, that end a message."""
_DOCKER_TEXT, _DOCKER_STREAM = b'{"log":"', b'","stream":"'


class Encoding(NamedTuple):
    """How the text of a file is encoded."""

    name: str = "utf-8"
    bom: bytes = b""
    markup: re.Pattern[bytes] | None = None
    """What events are in XML, or HTML; None where it is neither."""


def encoding_of(head: bytes) -> Encoding:
    """Return the encoding of a file by its first bytes: by its byte order mark, else by the zeros that half of its bytes are."""
    for bom, name in (
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF8, "utf-8"),
    ):
        if head.startswith(bom):
            return Encoding(name, bom, markup_of(head[len(bom) :]) if name == "utf-8" else None)
    first, second = (head[at:_BYTES_TOLD:2] for at in (0, 1))
    for zeros, text, name in ((second, first, "utf-16-le"), (first, second, "utf-16-be")):
        if zeros.count(0) * 2 > len(zeros) and not text.count(0):
            return Encoding(name)
    return Encoding(markup=markup_of(head))


def layout_of(head: bytes, *, changed_ms: int) -> Layout:
    """Return what a file shows of its times."""
    return vote(plain(head, encoding_of(head)), changed_ms=changed_ms)


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines of a piece of a log, in UTF-8."""
    if b"\x00" in data[:64]:
        text = data[1:] if data[:1] == b"\x00" else data
        data = text.replace(b"\x00", b"")
    return _ESCAPES.sub(b"", data).splitlines()


def looks_like_broker_log(head: bytes, *, is_named: bool = False) -> bool:
    """Return whether the bytes hold a line of a broker's log; in a file that is named as one a message without time and level is enough."""
    for line in _first_lines(head):
        shown = line[: 1 << 13]
        level = LEVEL.search(shown)
        if level is not None and stamps_in(shown[: level.start()] or shown[:100]):
            return True
        value = json_object(line) if shown.lstrip().startswith(b"{") else None
        if value is not None and any(isinstance(value.get(name), str) for name in ("message", "msg", "log")):
            return True
        found = find_message(shown)
        is_shown = (
            is_named or level is not None or value is not None or any(one.match(shown) for one in (PRETTY, FIELD))
        )
        if found is not None and (is_shown or stamps_in(found.before[-400:])):
            return True
    return False


def has_known_line(head: bytes) -> bool:
    """Return whether the bytes hold a line with a time, a level and a message of Kafka: other programs write the first two as well."""
    lines = (line[: 1 << 13] for line in _first_lines(head))
    return any(LEVEL.search(one) and stamps_in(one) and find_message(one) is not None for one in lines)


def _first_lines(head: bytes) -> list[bytes]:
    encoding = encoding_of(head)
    text = plain(b"".join(one_object_a_line([head])) if encoding.name == "utf-8" else head, encoding)
    return text.splitlines()[:2_000]


def line_moment(line: bytes, layout: Layout | None = None) -> LineTime:
    """Return the time of a line, known or not; one that begins with none, as those of a stack trace, has none."""
    common = common_moment(line, 0)
    if common is not None:
        return common[1]
    if line.lstrip().startswith(b"{"):
        value = json_object(line)
        return LineTime(Absent.NOT_WRITTEN, False) if value is None else _outer_time(value)
    level = LEVEL.search(line, 0, 400)
    found = stamps_in(line[: level.start() if level else 60])
    return time_of(found[-1], layout or Layout(), found) if found else LineTime(Absent.NOT_WRITTEN, False)


def is_log_line(line: bytes) -> bool:
    """Return whether a line has a time, and a level behind it or the object of a JSON layout."""
    is_read = isinstance(line_moment(line).time_ms, int)
    return is_read and (line.lstrip().startswith(b"{") or LEVEL.search(line, 0, 400) is not None)


def find_message(line: bytes) -> FoundMessage | None:
    """Return the known message in a line of any layout, with the lines below it, if any, as its stack trace; None where none is in it."""
    unwrapped = unwrap(line) if b'"' in line else None
    text = line if unwrapped is None else unwrapped.text
    found = [one for part in text.split(b"\n") if (one := find_message_in(part)) is not None]
    return next((one for one in found if not is_exception(one.message)), found[0] if found else None)


def end_of_lines(window: bytes, encoding: Encoding, *, are_whole: bool = False) -> int:
    """Return the position behind the last line end, 0 where there is none.

    Args:
        are_whole: whether the last lines, as far as a container split them, are left to the next window.
    """
    if encoding.name.startswith("utf-16"):
        kind = "<u2" if encoding.name == "utf-16-le" else ">u2"
        ends = np.flatnonzero(np.frombuffer(window[: len(window) // 2 * 2], kind) == _LINE_END)
        return int(ends[-1] + 1) * 2 if len(ends) else 0
    behind = -1 if encoding.markup is None or not are_whole else last_event_end(window, encoding.markup)
    end = (window.rfind(b"\n") if behind < 0 else window.find(b"\n", behind)) + 1
    last = end
    while are_whole and last > 0 and end - last < LINE_LENGTH_LIMIT:
        start = window.rfind(b"\n", 0, last - 1) + 1
        part = _part(window[start:last])
        if part is None or part.is_last:
            return last
        last = start
    return end


def plain(data: bytes, encoding: Encoding) -> bytes:
    """Return the text in UTF-8, without colours, with as many lines; a line that a container split is one, with empty lines for its other parts."""
    if encoding.name != "utf-8":
        data = data.decode(encoding.name, "replace").encode()
    if encoding.bom and data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    if b"\x1b" in data:
        data = _ESCAPES.sub(b"", data)
    head = data[:_HEAD_LENGTH]
    if _DOCKER_TEXT in head or (_SPLIT.search(head) is not None and b" P " in data):
        data = _joined(data)
    if not data.isascii():
        data = _UNSEEN.sub(_blank, data)
    if b"=\n" in head and b"=3D" in head:
        data = _of_mail(data)
    if data[:1] == b">" or b"\n>" in data:
        data = _QUOTED.sub(b"", data)
    if (width := _width(head)) > 0:
        data = re.sub(rb"(?m)^[^\n]{%d}\n(?:[^\n]{%d}\n)*+[^\n]*" % (width, width), _unfolded, data)
    elif len(data) < _LONGEST_WRAPPED:
        data = _without_wraps(data)
    if encoding.markup is not None:
        data = _UNSEEN.sub(_blank, of_elements(data, encoding.markup))
    if b'"MESSAGE"' in head:
        data = _BYTE_LISTS.sub(_listed_bytes, data)
    return data


def _blank(found: re.Match[bytes]) -> bytes:
    return b" " if found[0] in _BLANKS else b""


def _of_mail(data: bytes) -> bytes:
    """Return a text out of the lines in which a mail carries it ("quoted-printable"), with as many line ends."""
    lines = data.split(b"\n")
    parts = {at for at in range(1, len(lines)) if lines[at - 1].endswith(b"=")}
    whole = _with_parts([line[:-1] if line.endswith(b"=") else line for line in lines], parts)
    return _ESCAPED_BYTE.sub(lambda found: bytes.fromhex(found[1].decode()), whole)


def _width(head: bytes) -> int:
    """Return the length at which a terminal folded the lines of a text; 0 where none did."""
    lines = head.split(b"\n")
    width = max(map(len, lines))
    full = {line: behind for line, behind in pairwise(lines[:-1]) if len(line) == width}
    is_folded = width >= _NARROWEST and len(full) >= _LEAST_FOLDED
    return width if is_folded and sum(map(_begins_line, full.values())) * 4 < len(full) else 0


def _begins_line(line: bytes) -> bool:
    return (
        not line
        or line[:1] == b"{"
        or bool(stamps_in(line[:60]))
        or is_of_a_stack(line)
        or common_moment(line, 0) is not None
    )


def _unfolded(found: re.Match[bytes]) -> bytes:
    lines = found[0].split(b"\n")
    return _with_parts(lines, {at for at, line in enumerate(lines) if at and not _begins_line(line)})


def _with_parts(lines: list[bytes], parts: Collection[int]) -> bytes:
    """Return lines of which some are parts of the one above, with as many line ends."""
    first = 0
    for at in range(len(lines)):
        if at in parts:
            lines[first] += lines[at]
            lines[at] = b""
        else:
            first = at
    return b"\n".join(lines)


@lru_cache(maxsize=4)  # who tells what a file is, and who votes on its times, look at the same beginning
def _without_wraps(text: bytes) -> bytes:
    """Return a text whose lines a mail, or a page, broke between words with whole lines, and with as many line ends."""
    lines = text.split(b"\n")
    goes_on = [at for at in range(1, len(lines)) if _goes_on(lines[at - 1], lines[at])]
    width = max((len(lines[at - 1].rstrip()) for at in goes_on), default=0)
    full = {at for at in goes_on if len(lines[at - 1].rstrip()) + len(lines[at].split()[0]) >= width}
    are_fields = sum(FIELD.match(line) is not None or PRETTY.match(line) is not None for line in lines) * 2 > len(lines)
    if width not in _WRAPPED or len(full) * 5 < len(goes_on) * 4 or are_fields:
        return text
    for at in full:
        lines[at - 1], lines[at] = lines[at - 1].rstrip(), b" " + lines[at].strip()
    return _with_parts(lines, full)


def _goes_on(line: bytes, behind: bytes) -> bool:
    """Return whether the line behind one may be of the same message: it begins nothing of its own."""
    if not line.strip() or not behind.strip() or _ENDED.search(line) or _begins_line(behind):
        return False
    begins = exception_in(behind) or LEVEL.search(behind, 0, 40)
    if begins is not None and line.lstrip().startswith(behind[: begins.start()].strip()):
        return False  # behind nothing, or what a container writes before each line
    # Of messages without a time each is a line of its own; behind a time one may begin in the next line.
    found = find_message_in(behind)
    return found is None or (_begins_line(line) and (is_exception(found.message) or find_message_in(line) is None))


class _Part(NamedTuple):
    """A line of a container's runtime, which may hold a part of one only."""

    stream: bytes
    begin: int
    end: int
    """The text lies between."""
    is_last: bool


def _part(line: bytes) -> _Part | None:
    found = _PART.match(line)
    if found is not None:
        end = len(line) - line.endswith(b"\r")
        return _Part(found["stream"], found.end(), end, found["flag"] == b"F")
    end = line.find(_DOCKER_STREAM) if line.startswith(_DOCKER_TEXT) else -1
    if end < 0:
        return None
    stream = line[end + len(_DOCKER_STREAM) :].partition(b'"')[0]
    return _Part(stream, len(_DOCKER_TEXT), end, _has_line_end(line, end))


def _has_line_end(line: bytes, end: int) -> bool:
    text = line[:end]
    slashes = text[:-1].rstrip(b"\\")
    return text.endswith(b"\\n") and (end - 1 - len(slashes)) % 2 == 1


def _joined(data: bytes) -> bytes:
    """Return the lines of containers whole: a part goes on in the next line of its stream."""
    lines = data.split(b"\n")
    open_: dict[bytes, list[tuple[int, _Part]]] = {}
    for number, line in enumerate(lines):
        part = _part(line)
        if part is None or (part.is_last and part.stream not in open_):
            continue
        open_.setdefault(part.stream, []).append((number, part))
        if part.is_last:
            _join_parts(lines, open_.pop(part.stream))
    for parts in open_.values():
        _join_parts(lines, parts)
    return b"\n".join(lines)


def _join_parts(lines: list[bytes], parts: list[tuple[int, _Part]]) -> None:
    (first, begun), (last, ended) = parts[0], parts[-1]
    texts = [lines[number][part.begin : part.end] for number, part in parts]
    lines[first] = lines[first][: begun.begin] + b"".join(texts) + lines[last][ended.end :]
    for number, _ in parts[1:]:
        lines[number] = b""


def _listed_bytes(found: re.Match[bytes]) -> bytes:
    values = [int(number[:3]) & 0xFF for number in found[2].replace(b",", b" ").split()]
    return b'"' + found[1] + b'": ' + json.dumps(bytes(values).decode("utf-8", "replace")).encode()


def out_of_quotes(text: bytes, position: int) -> bytes:
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


def columns_behind(text: bytes, position: int) -> str:
    """Return the names in the columns of a table behind one of which the beginning is given; none where it goes on in the next line."""
    end = _COLUMN_END.search(text, position)
    columns = (column.strip(b'"') for column in text[end.end() :].split(b",")) if end is not None else ()
    named = (column for column in columns if _NAME.fullmatch(column) and LEVEL.fullmatch(column) is None)
    return " ".join(column.decode("utf-8", "replace") for column in named)


def time_behind(text: bytes, layout: Layout) -> LineTime:
    """Return the time in the columns of a table behind one of which the beginning is given."""
    end = _COLUMN_END.search(text)
    found = stamps_in(text[end.end() :][:_TIME_BEHIND]) if end is not None else []
    return time_of(found[0], layout) if found else LineTime(Absent.NOT_WRITTEN, False)


def of_fields(fields: Iterable[tuple[bytes, ...]]) -> tuple[LineTime, str]:
    """Return the time and the writer of a record, of which each field is a name and a value."""
    value = {key.decode(): one.strip(b"'\" \t\r").decode("utf-8", "replace") for key, one in fields}
    return _outer_time(value), named_writer(value)


_TIME_BEHIND = 400
_COLUMN_END = re.compile(rb'(?<!")(?:"")*",')
_NAME = re.compile(rb"(?=.*[A-Za-z])(?!\d{4}-)[\w./:@-]{1,100}")


class Unwrapped(NamedTuple):
    """A line out of a JSON object."""

    text: bytes
    moment: LineTime
    level: str
    writer: str
    stack: bytes = b""


def one_object_a_line(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield chunks as they are; of a document that has many objects, or elements of XML, on one line, with line ends in place of a mark between them."""
    held, is_document, next_one = b"", False, None
    for chunk in chunks:
        held += chunk
        if next_one is None and held:
            line = held[:_DOCUMENT_TOLD].partition(b"\n")[0]
            begin = held.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
            name = event_name(held[:_DOCUMENT_TOLD]) if begin == b"<" else None
            next_one = _NEXT_OBJECT if name is None else re.compile(b"</%b(?P<mark>>)(?=<%b[\\s>])" % (name, name))
            is_document = (begin in {b"{", b"["} or name is not None) and _has_many(line, next_one)
        split = len(held)
        if next_one is not None and is_document:
            text = bytearray(held)
            split = 0
            for found in next_one.finditer(held):
                if found["mark"]:
                    text[found.start("mark")] = _LINE_END
                    split = found.end("mark")
            split = split if split or len(held) < _MOST_OBJECTS_HELD else len(held)
            yield bytes(text[:split])
        else:
            yield held
        held = held[split:]
    if held:
        yield held


def _has_many(line: bytes, next_one: re.Pattern[bytes]) -> bool:
    """Whether several objects on a line have times or levels of their own."""
    ends = [found.start("mark") for found in next_one.finditer(line) if found["mark"]]
    parts = (line[start:end] for start, end in pairwise([0, *ends[:_PARTS_TOLD], len(line)]))
    return sum(LEVEL.search(part) is not None or bool(stamps_in(part)) for part in parts) > 1


def json_object(text: bytes) -> dict[str, Any] | None:
    """Return the JSON object that a text is; None where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def unwrap(line: bytes) -> Unwrapped | None:
    """Return the line in a JSON object, with or without something before it; None where there is none."""
    brace = line.find(b"{")
    whole = line[brace:].rstrip()
    if brace >= 0 and (value := json_object(whole) or json_object(whole + b"}")) is not None:
        return of_object(value, line[:brace])  # of one that another follows at once the end is a line's
    if line.lstrip()[:1] not in {b"{", b"["}:
        return _of_one_line(line)
    text = line.decode("utf-8", "replace")
    # Of a document: what stands before its first object, or behind its last one, is on their lines.
    for begin in islice(_BEGINNING.finditer(text), _PARTS_TOLD):
        try:
            inner, _ = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            continue
        if (found := of_object(inner if isinstance(inner, dict) else {"": inner}, b"")) is not None:
            return found
    return _of_one_line(line)


def _of_one_line(line: bytes) -> Unwrapped | None:
    """Return a line that holds its stack trace, or other lines, with the line ends written as escapes; None where it does not."""
    if b"\\n" not in line:
        return None
    whole = line.replace(b"\\n", b"\n").replace(b"\\t", b"\t")
    if sum(map(is_log_line, whole.split(b"\n"))) > 1:
        return Unwrapped(whole, LineTime(Absent.NOT_WRITTEN, False), "", "")
    exception = exception_in(whole)
    if exception is None:
        return None
    return Unwrapped(whole.partition(b"\n")[0], LineTime(Absent.NOT_WRITTEN, False), "", "", whole[exception.start() :])


_PODS = ("pod", "pod_name", "podname", "pod.name", "logstreamname", "logstream")
_WRITERS = ("host", "hostname", "host.name", "source_host", "instance", "container", "container_name", "container.name")
_TAGS = ("tag", "service")
_TIMES = ("timestamp", "time", "ts", "asctime", "date", "datetime", "realtime_timestamp", "timemillis", "epochmillis")
_LIKE_A_TIME = re.compile(r"(?i)time|date")
_LONGEST_TIME = 40
_DEEPEST = 10
_LONGEST_NAME = 200
_LEVEL_KEYS = ("level", "severity", "loglevel", "levelname")


def of_object(value: dict[str, Any], before: bytes) -> Unwrapped | None:
    """Return the line in an object, by the value that holds a known message."""
    texts = strings(value)
    best: str | None = None
    is_best_below, stack = False, b""
    for text in texts:
        inner = json_object(text.encode("utf-8", "replace")) if text.startswith("{") else None
        if inner is not None and (deeper := of_object(inner, b"")) is not None:
            moment = deeper.moment if isinstance(deeper.moment.time_ms, int) else _outer_time(value)
            return deeper._replace(moment=moment, writer=deeper.writer or named_writer(value))
        found = find_message_in(text.encode("utf-8", "replace"))
        if found is None:
            continue
        is_below = is_exception(found.message)
        if is_below or found.before.count(b"\n"):
            stack = max(stack, text.encode("utf-8", "replace"), key=len)
        if best is None or (is_best_below and not is_below and not found.before.count(b"\n")):
            best, is_best_below = text, is_below
    if best is None:
        exceptions = [text for text in texts if exception_in(text.encode("utf-8", "replace"))]
        best = max(exceptions, key=len, default=None)
        if best is None:
            return None
    message = best.encode("utf-8", "replace")
    if stack == message:
        stack = b""
    if not stack:
        others = [
            text
            for text in texts
            if text != best and (text.startswith(f"{best}\n") or exception_in(text.encode("utf-8", "replace")))
        ]
        stack = max(others, key=len, default="").encode("utf-8", "replace").removeprefix(message).lstrip()
    head = head_of(before, Layout())
    moment = _outer_time(value)
    if not isinstance(moment.time_ms, int) and isinstance(head.moment.time_ms, int):
        moment = head.moment
    level = next((str(one) for name in _LEVEL_KEYS if isinstance(one := _value(value, name), str)), "")
    inside = _ESCAPES.sub(b"", message).rstrip(b"\r\n")
    return Unwrapped(inside, moment, level, head.writer or named_writer(value), stack)


def strings(value: Any, depth: int = 0) -> list[str]:
    """Return all texts in a value."""
    if isinstance(value, str):
        return [value]
    if depth > _DEEPEST:
        return []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in strings(one, depth + 1)]


def _value(value: dict[str, Any], wanted: str, depth: int = 0) -> Any:
    """Return the value of a key, whatever its case and its parents."""
    for key, one in value.items():
        is_wanted = key.rpartition(".")[2].lstrip("_@").lower() == wanted
        single = one[0] if isinstance(one, list) and len(one) == 1 else one
        if is_wanted and not isinstance(single, (dict, list)):
            return single
    for one in value.values():
        inner = one[0] if isinstance(one, list) and len(one) == 1 else one
        if isinstance(inner, dict) and depth < _DEEPEST and (found := _value(inner, wanted, depth + 1)) is not None:
            return found
    return None


def named_writer(value: dict[str, Any]) -> str:
    """Return what tells the writer of a line from others: its pod; else its host and its container, of which a host may have several."""
    named = list(_paths(value))
    for names in (_PODS, _WRITERS, _TAGS):
        shown = [text for name in names for path, text in named if path.endswith(f".{name}")]
        if shown:
            return shown[0] if names is _PODS else " ".join(dict.fromkeys(shown))
    return ""


def _paths(value: dict[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the texts in an object, each behind a dot and the last of the names that lead to it."""
    for key, one in value.items():
        # An object in a list of many would hold a long name each.
        path = f"{before}.{key[-_LONGEST_NAME:].lstrip('_@').lower()}"[-_LONGEST_NAME:]
        for inner in one if isinstance(one, list) else [one]:
            if isinstance(inner, (dict, list)):
                if depth < _DEEPEST:
                    yield from _paths(inner if isinstance(inner, dict) else {"": inner}, path, depth + 1)
            elif isinstance(inner, (str, int)) and inner != "":
                yield path, str(inner)


def _outer_time(value: dict[str, Any]) -> LineTime:
    instant = value.get("instant", value.get("Instant"))
    for parent, seconds, nanos in (
        (instant, "epochSecond", "nanoOfSecond"),
        (value, "timestampSeconds", "timestampNanos"),
    ):
        if isinstance(parent, dict) and isinstance(second := parent.get(seconds), int):
            time_ms, nano = epoch_ms(second), parent.get(nanos)
            if time_ms is None:
                return LineTime(Absent.UNREADABLE, False)
            fraction_ms = nano // 1_000_000 if isinstance(nano, int) and 0 <= nano < 1_000_000_000 else 0
            return LineTime(time_ms + fraction_ms, True)
    for name in _TIMES:
        time = _value(value, name)
        if isinstance(time, (int, float)) and not isinstance(time, bool) and (time_ms := epoch_ms(time)) is not None:
            return LineTime(time_ms, True)
        if isinstance(time, str):
            return _time_in(time)
    # Every collector has a name of its own for it.
    for path, text in _paths(value):
        if _LIKE_A_TIME.search(path.rpartition(".")[2]):
            moment = _time_in(text)
            if isinstance(moment.time_ms, int):
                return moment
    for _, text in _paths(value):
        found = stamps_in(text[:_LONGEST_TIME].encode("ascii", "replace"))
        if len(found) == 1 and found[0].end - found[0].start == len(text):
            return time_of(found[0], Layout())
    return LineTime(Absent.NOT_WRITTEN, False)


def _time_in(text: str) -> LineTime:
    found = stamps_in(text.encode("ascii", "replace"))
    if found:
        return time_of(found[-1], Layout())
    time_ms = epoch_ms(text)
    return LineTime(Absent.UNREADABLE if time_ms is None else time_ms, time_ms is not None)
