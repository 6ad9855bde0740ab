r"""Lines of a small text file with their number and position, and a bounded list of what is wrong with them.

Kafka reads these files with `BufferedReader.readLine`: a line ends with `\n`, `\r` or `\r\n`, the last one with
or without.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kforensics.damage import Damage, DamageKind, Gravity, Span
from kforensics.errors import FormatError, LimitReached

TEXT_FILE_LIMIT = 64 * 1024 * 1024
"""The most bytes of a text file that are read, enough for a million lines; the bytes behind them are reported as not read."""

MOST_DAMAGE = 100
"""The most damaged places of one file that are listed one by one; the last entry counts the others."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_SHOWN_BYTES = 60


class TextLine(NamedTuple):
    """One line: its number from 1, the position of its first byte, and its bytes without the line end."""

    number: int
    position: int
    content: bytes

    @property
    def span(self) -> Span:
        """The span of the line in the file."""
        return Span(self.position, len(self.content))


def walk_lines(data: bytes | memoryview) -> Iterator[TextLine]:
    """Yield the lines of the first `TEXT_FILE_LIMIT` bytes, as `BufferedReader.readLine` splits them; the last one may lack its line break."""
    text = bytes(data[:TEXT_FILE_LIMIT])
    position = 0
    number = 1
    for end in _LINE_END.finditer(text):
        yield TextLine(number, position, text[position : end.start()])
        number += 1
        position = end.end()
    if position < len(text):
        yield TextLine(number, position, text[position:])


def shown(content: bytes | memoryview) -> str:
    """Return bytes of a text file for a message: quoted, escaped and shortened."""
    part = bytes(content[:_SHOWN_BYTES])
    try:
        quoted = repr(part.decode("utf-8"))
    except UnicodeDecodeError:
        quoted = repr(part).removeprefix("b")
    return quoted + ("…" if len(content) > _SHOWN_BYTES else "")


def parse_integer(text: bytes, *, bits: int) -> int | None:
    """Return the number that `Integer.parseInt` (32 bits) or `Long.parseLong` (64 bits) reads, in digits of any script; None if it refuses the text, as for blanks."""
    found = text.decode("utf-8", "replace")
    if not re.fullmatch(r"[+-]?\d+", found) or max(found) > "\uffff":
        return None
    digits = found.lstrip("+-").lstrip("0")
    if len(digits) > bits:  # Python refuses to convert thousands of them
        return None
    value = int(digits or "0") * (-1 if found[0] == "-" else 1)
    return value if -(1 << (bits - 1)) <= value < 1 << (bits - 1) else None


def beyond_limit(length: int) -> tuple[Damage, ...]:
    """Return the place from which on a text file is not read, none for a smaller one."""
    if length <= TEXT_FILE_LIMIT:
        return ()
    rest = Span(TEXT_FILE_LIMIT, length - TEXT_FILE_LIMIT)
    return (
        Damage(
            span=rest,
            kind=DamageKind.TOO_LARGE,
            expected=f"at most {TEXT_FILE_LIMIT} bytes",
            found=f"{length} bytes",
            gravity=Gravity.UNREAD,
        ),
    )


class DamageList:
    """Damage in file order: the first `MOST_DAMAGE` places one by one, the others as one entry."""

    def __init__(self, gravity: Gravity = Gravity.DAMAGE) -> None:
        """Start without damage."""
        self._gravity = gravity
        self._places: list[Damage] = []
        self._more = 0
        self._rest = Span(0, 0)

    def add(self, span: Span, kind: DamageKind, *, expected: str, found: str, line: int | None = None) -> None:
        """Add a damaged place, or count it where `MOST_DAMAGE` are listed already; its message names the line, where the file has lines, before `found`."""
        if len(self._places) >= MOST_DAMAGE:
            start = self._rest.position if self._more else span.position
            self._more += 1
            self._rest = Span(start, span.end - start)
            return
        where = "" if line is None else f"line {line}: "
        self._places.append(Damage(span=span, kind=kind, expected=expected, found=where + found, gravity=self._gravity))

    def add_line(self, line: TextLine, expected: str, kind: DamageKind = DamageKind.TEXT) -> None:
        """Add a line as a damaged place, which shows its content."""
        self.add(line.span, kind, expected=expected, found=shown(line.content), line=line.number)

    def as_tuple(self) -> tuple[Damage, ...]:
        """Return all damaged places."""
        if not self._more:
            return tuple(self._places)
        last = self._places[-1]
        rest = replace(last, span=self._rest, expected="a sound file", found=f"{self._more} more damaged places")
        return (*self._places, rest)


# A small JSON file of one object, as Kafka's `quorum-state` and `.kafka_cleanshutdown` are.


JSON_FILE_LIMIT = 1024 * 1024
"""The most bytes of such a file; a broker writes some hundreds."""


def parse_json_object(data: bytes | memoryview, *, expected: str) -> Mapping[str, Any]:
    """Return the JSON object in the file."""
    if len(data) > JSON_FILE_LIMIT:
        raise LimitReached(
            Span(0, len(data)), expected=f"{expected} of at most {JSON_FILE_LIMIT} bytes", found=f"{len(data)} bytes"
        )
    try:
        value = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        # ValueError covers JSONDecodeError, UnicodeDecodeError and integers of too many digits.
        position = min(getattr(error, "pos", 0), len(data))
        raise FormatError(
            Span(position, len(data) - position),
            expected=expected,
            found=shown(data[position:]) if len(data) else "an empty file",
        ) from error
    if not isinstance(value, dict):
        raise FormatError(Span(0, len(data)), expected=expected, found=shown(data))
    return value


def integer_of(value: Any) -> int | None:
    """Return the value if it is a whole number (and not `true`), else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
