"""The parts of screens that all commands share: rich texts, laid out for 80 columns, with colour only on a terminal.

The first line of a screen is its answer, the second what to do. Text that comes from evidence has been through
`escape_text` before it gets here.
"""

import io
import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

DEFAULT_WIDTH = 80
WIDEST = 120
"""The longest line: longer ones are hard to read, however wide the terminal is."""

INDENT = "  "


class Style:
    """The named styles of all screens."""

    ANSWER_BAD = "bold red"
    ANSWER_WARNING = "bold yellow"
    ANSWER_GOOD = "bold green"
    HEADING = "bold"
    QUIET = "dim"
    PLAIN = ""


def screen_width(stream: IO[str] | None = None) -> int:
    """Return the columns of a screen: COLUMNS if it is set, else those of the terminal, at most 120; 80 without a terminal."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and len(chosen) < 6 and int(chosen) >= 20:
        return min(int(chosen), WIDEST)
    stream = stream or sys.stdout
    try:
        return min(max(os.get_terminal_size(stream.fileno()).columns, 40), WIDEST)
    except (OSError, ValueError, AttributeError):
        return DEFAULT_WIDTH


def speaks_unicode(stream: IO[str] | None = None) -> bool:
    """Return whether characters beyond ASCII can be written to the stream."""
    encoding = getattr(stream or sys.stdout, "encoding", None) or "ascii"
    try:
        "━─╳≠…→".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def render_screen(lines: Iterable[Text | str], *, colour: bool = False) -> str:
    """Return the lines as one string, with terminal colours or without any escape; lines are not wrapped here."""
    texts = [line if isinstance(line, Text) else Text(line) for line in lines]
    if not colour:
        return "".join(f"{text.plain.rstrip()}\n" for text in texts)
    target = io.StringIO()
    console = Console(
        file=target,
        force_terminal=True,
        width=10_000,  # lines are laid out already: rich must not wrap them again
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        color_system="standard",
    )
    for text in texts:
        text.rstrip()
        console.print(text, soft_wrap=True)
    return target.getvalue()


def wants_colour(stream: IO[str]) -> bool:
    """Return whether to write colour: only to a terminal, and not if NO_COLOR or a dumb terminal forbids it."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") != "dumb"


def wrapped(text: str, *, width: int, indent: str = "", first: str | None = None, style: str = "") -> list[Text]:
    """Wrap the text to lines of at most `width` columns, with `first` before the first; only a single longer word is longer."""
    lead = indent if first is None else first
    lines: list[Text] = []
    current = lead
    empty = True
    for word in text.split():
        if not empty and cell_len(current) + 1 + cell_len(word) > width:
            lines.append(Text(current, style=style))
            current, empty = indent, True
        current = current + word if empty else f"{current} {word}"
        empty = False
    if not empty or first is not None:
        lines.append(Text(current, style=style))
    return lines


def column_lines(
    rows: Sequence[Sequence[str]],
    *,
    right: frozenset[int] = frozenset(),
    indent: str = INDENT,
    gap: int = 2,
    least: Sequence[int] = (),
) -> list[str]:
    """Set rows in columns that are as wide as their widest cell, at least `least`; the columns in `right` are flush right."""
    widths = [
        max((_width(row[place]) for row in rows if place < len(row)), default=0)
        for place in range(max(map(len, rows), default=0))
    ]
    widths[: len(least)] = [max(width, wanted) for width, wanted in zip(widths, least, strict=False)]
    lines = []
    for row in rows:
        cells = [_padded(cell, widths[place], right=place in right) for place, cell in enumerate(row)]
        lines.append((indent + (" " * gap).join(cells)).rstrip())
    return lines


def columns(
    rows: Sequence[Sequence[str]],
    *,
    right: frozenset[int] = frozenset(),
    indent: str = INDENT,
    gap: int = 2,
    least: Sequence[int] = (),
) -> list[Text]:
    """Set rows in columns as `column_lines` does, as rich texts."""
    return [Text(line) for line in column_lines(rows, right=right, indent=indent, gap=gap, least=least)]


def _width(cell: str) -> int:
    return len(cell) if cell.isascii() else cell_len(cell)


def _padded(cell: str, width: int, *, right: bool) -> str:
    fill = " " * (width - _width(cell))
    return fill + cell if right else cell + fill


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun: `1 record`, `43 records`, `1,204 batches`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def byte_count(count: int) -> str:
    """Return a number of bytes in units of 1024: `0 B`, `1.5 KB`, `10 MB`."""
    size = float(count)
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size < 1024 or unit == "TB":
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}" if size < 10 else f"{size:.0f} {unit}"
        size /= 1024
    raise AssertionError


def listed(items: Sequence[str], *, most: int = 5) -> str:
    """Join items for a sentence: `1, 2 and 3`; those above `most` are only counted."""
    if len(items) > most:
        return ", ".join(items[:most]) + f" and {len(items) - most} more"
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + " and " + items[-1]
