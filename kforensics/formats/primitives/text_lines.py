r"""Lines of a small text file with their number and position, and a bounded list of what is wrong with them.

Kafka reads these files with `BufferedReader.readLine`: a line ends with `\n`, `\r` or `\r\n`, the last one with
or without.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from kforensics.damage import Damage, DamageKind, Span

TEXT_FILE_LIMIT = 64 * 1024 * 1024
"""Bytes of a text file that are looked at: room for a million lines; what stands behind is named as damage."""

LINE_LENGTH_LIMIT = 1024 * 1024
"""Bytes of one line that are looked at."""

MOST_DAMAGE = 100
"""Damaged places of one file that are named one by one; the last names all that follow."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_SHOWN_BYTES = 60


class TextLine(NamedTuple):
    """One line: its number from 1, the position of its first byte, and its bytes without the line end."""

    number: int
    position: int
    content: bytes

    @property
    def span(self) -> Span:
        """The bytes of the line."""
        return Span(self.position, len(self.content))


def walk_lines(data: bytes | memoryview) -> Iterator[TextLine]:
    """The lines of the first `TEXT_FILE_LIMIT` bytes; the last one may lack its line break."""
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
    """Bytes of a text file in words: quoted, escaped, and short."""
    part = bytes(content[:_SHOWN_BYTES])
    try:
        quoted = repr(part.decode("utf-8"))
    except UnicodeDecodeError:
        quoted = repr(part).removeprefix("b")
    return quoted + ("…" if len(content) > _SHOWN_BYTES else "")


def parse_integer(text: bytes, *, bits: int) -> int | None:
    """What `Integer.parseInt` (32 bits) and `Long.parseLong` (64) take: an optional sign and ASCII digits, in range."""
    if len(text) > 40 or not re.fullmatch(rb"[+-]?[0-9]+", text):
        return None
    value = int(text)
    return value if -(1 << (bits - 1)) <= value < 1 << (bits - 1) else None


def beyond_limit(length: int) -> tuple[Damage, ...]:
    """The damage of a text file of `length` bytes that is too large to be one a broker wrote."""
    if length <= TEXT_FILE_LIMIT:
        return ()
    rest = Span(TEXT_FILE_LIMIT, length - TEXT_FILE_LIMIT)
    return (
        Damage(
            span=rest, kind=DamageKind.TOO_LARGE, expected=f"at most {TEXT_FILE_LIMIT} bytes", found=f"{length} bytes"
        ),
    )


class DamageList:
    """Damage in file order, the first `MOST_DAMAGE` places one by one, the rest in one."""

    def __init__(self) -> None:
        """Start with nothing wrong."""
        self._places: list[Damage] = []
        self._more = 0
        self._rest = Span(0, 0)

    def add(self, span: Span, kind: DamageKind, *, expected: str, found: str, line: int | None = None) -> None:
        """One more place; `line` is named in front of what was found."""
        if len(self._places) >= MOST_DAMAGE:
            start = self._rest.position if self._more else span.position
            self._more += 1
            self._rest = Span(start, span.end - start)
            return
        where = "" if line is None else f"line {line}: "
        self._places.append(Damage(span=span, kind=kind, expected=expected, found=where + found))

    def as_tuple(self) -> tuple[Damage, ...]:
        """All places."""
        if not self._more:
            return tuple(self._places)
        last = self._places[-1]
        rest = Damage(
            span=self._rest, kind=last.kind, expected="a sound file", found=f"{self._more} more damaged places"
        )
        return (*self._places, rest)
