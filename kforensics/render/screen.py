"""The parts of screens that all commands share: rich texts, laid out for 80 columns, with colour only on a terminal.

The first line of a screen is its answer, the second what to do. Text that comes from evidence has been through
`escape_text` before it gets here.
"""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from kforensics.findings.answers.model import STATES, Answer
from kforensics.render.escape import escape_text
from kforensics.render.frame import ANSWER_PARTS
from kforensics.words import SENTENCES, Prohibition, Rescue, Step, counted

INDENT = "  "


@dataclass(frozen=True, slots=True)
class Words:
    """Words that the screen breaks into lines of its width."""

    text: str
    indent: str = ""
    first: str | None = None
    """Before the first line; None for the indent."""
    style: str = ""


Line = Text | Words | str
"""What a screen is made of: lines that are laid out already, and words that are not."""


class Style:
    """The named styles of all screens."""

    ANSWER_BAD = "bold red"
    ANSWER_WARNING = "bold yellow"
    ANSWER_GOOD = "bold green"
    HEADING = "bold"
    QUIET = "dim"
    PLAIN = ""


def hanging(text: str, *, style: str = "") -> Words:
    """Return words of which all lines but the first are indented further."""
    return Words(text, indent=INDENT * 2, first=INDENT, style=style)


def section(heading: str) -> tuple[Line, Line]:
    """Return an empty line and a heading."""
    return "", Text(heading, style=Style.HEADING)


def screen_pieces(lines: Iterable[Line], *, width: int = 80, colour: bool = False) -> Iterator[str]:
    """Yield the lines of a screen, each with its line end; only styled text needs a console."""
    target = io.StringIO()
    console = None
    for line in _laid_out(lines, width):
        if isinstance(line, str) or not colour:
            yield f"{str(line).rstrip()}\n"
            continue
        console = console or Console(
            file=target,
            force_terminal=True,
            width=10_000,  # lines are laid out already: rich must not wrap them again
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
            color_system="standard",
        )
        line.rstrip()
        console.print(line, soft_wrap=True)
        yield target.getvalue()
        target.seek(0)
        target.truncate()


def _laid_out(lines: Iterable[Line], width: int) -> Iterator[Text | str]:
    for line in lines:
        if isinstance(line, Words):
            yield from wrapped(line.text, width=width, indent=line.indent, first=line.first, style=line.style)
        else:
            yield line


_UNBROKEN = re.compile(r"[^\s`]*`[^`]+`\S*|\S+")


def _words_of(text: str, width: int) -> list[str]:
    """Return the words of a text; what stands in backticks, such as a command, is one of them where a line has room for it."""
    if "`" not in text:
        return text.split()
    found = [" ".join(one.split()) for one in _UNBROKEN.findall(text)]
    return [word for one in found for word in ([one] if cell_len(one) <= width else one.split())]


def wrapped(text: str, *, width: int, indent: str = "", first: str | None = None, style: str = "") -> list[Text]:
    """Return the text wrapped to lines of at most `width` columns; only a single longer word is longer."""
    lead = indent if first is None else first
    lines: list[Text] = []
    current = lead
    empty = True
    for word in _words_of(text, width - cell_len(indent)):
        if not empty and cell_len(current) + 1 + cell_len(word) > width:
            lines.append(Text(current, style=style))
            current, empty = indent, True
        current = current + word if empty else f"{current} {word}"
        empty = False
    if not empty or first is not None:
        lines.append(Text(current, style=style))
    return lines


def columns(
    rows: Sequence[Sequence[str]],
    *,
    right: frozenset[int] = frozenset(),
    indent: str = INDENT,
    least: Sequence[int] = (),
) -> list[str]:
    """Return rows set in columns that are as wide as their widest cell, the first ones at least as wide as is said."""
    widths = [
        max((_width(row[place]) for row in rows if place < len(row)), default=0)
        for place in range(max(map(len, rows), default=0))
    ]
    widths[: len(least)] = [max(width, wanted) for width, wanted in zip(widths, least, strict=False)]
    lines = []
    for row in rows:
        cells = [_padded(cell, widths[place], right=place in right) for place, cell in enumerate(row)]
        lines.append((indent + "  ".join(cells)).rstrip())
    return lines


def _width(cell: str) -> int:
    return len(cell) if cell.isascii() else cell_len(cell)


def _padded(cell: str, width: int, *, right: bool) -> str:
    fill = " " * (width - _width(cell))
    return fill + cell if right else cell + fill


MOST_LINES = 13
"""Lines of an answer before the first fact: whoever reads it has to act on it."""
MOST_FIRST_LINES = 22
"""Lines of a first answer, which has the rest of its one screen for what happened and what a start does."""

_LABEL_WIDTH = 13


def answer_lines(answer: Answer, *, command: str, width: int, most: int = MOST_LINES) -> Iterator[Text]:
    """Yield the lines of an answer, the headline first, all of what to do at once, and behind less than `most` lines the first open question; the other points are counted where there is no room.

    A first answer, which is one screen, keeps of a long list of what to do what not to start, what to copy, whom to start and how to get records; of a long open question it keeps the
    first sentence, and the last, which says what settles it.
    """
    is_one_screen = command == "triage" and most == MOST_LINES
    lines = wrapped(escape_text(answer.headline), width=width, style=_answer_style(answer, command))
    points: list[list[Text]] = []
    spare: list[int] = []
    folded: list[int] = []
    is_long = False
    for label, name in ANSWER_PARTS:
        for at, advice in enumerate(getattr(answer, name)):
            lead = f"{label if not at else '':<{_LABEL_WIDTH}}"
            point = _advice_lines(advice, lead=lead, width=width)
            if is_one_screen and name == "unknown" and len(lines) + sum(map(len, points)) + len(point) > most:
                point = _advice_lines(_first_and_last(advice), lead=lead, width=width)
            if name != "now" and (at or name != "unknown" or is_long):
                spare.append(len(points))
            if name == "now" and at and is_one_screen and not _is_kept(advice):
                folded.append(len(points))
            points.append(point)
        if name == "now":
            is_long = len(lines) + sum(map(len, points)) > most
    left = most - len(lines) - sum(map(len, points))
    hidden = 0
    while left < 0 and spare:
        at = spare.pop()
        left += len(points[at]) - (not hidden)
        points[at], hidden = [], hidden + 1
    steps = 0
    folded.sort(key=lambda at: len(points[at]))
    while left < most - MOST_FIRST_LINES and folded:
        at = folded.pop()
        left += len(points[at]) - (not hidden + steps)
        points[at], steps = [], steps + 1
    yield from lines
    for point in points:
        yield from point
    if steps:
        more = f"{counted(hidden + steps, 'more point')}, {steps} of them to do"
        yield Text(f"… {more}: -v shows all, --steps FILE writes a script.", style=Style.QUIET)
    elif hidden:
        yield Text(f"… {counted(hidden, 'more point')} of this answer: -v shows all.", style=Style.QUIET)


def _is_kept(advice: str) -> bool:
    """Whether a step is one that a first answer keeps: what not to do, what to copy, whom to start, and how to get records."""
    if not isinstance(advice, Step):
        return False
    return (
        isinstance(advice, (Prohibition, Rescue))
        or not advice.commands
        or any("cp -a " in one for one in advice.commands)
    )


def _first_and_last(question: str) -> str:
    sentences = SENTENCES.split(question)
    return f"{sentences[0]} … {sentences[-1]}" if len(sentences) > 2 else question


def _advice_lines(advice: str, *, lead: str, width: int) -> list[Text]:
    """Return the lines of one piece of advice: its words wrapped, and each of its commands on a line of its own, as long as it is."""
    indent = " " * _LABEL_WIDTH
    if not isinstance(advice, Step) or not advice.commands:
        return wrapped(escape_text(advice), width=width, first=lead, indent=indent)
    lines = wrapped(f"{escape_text(advice.sentence.rstrip('.:'))}:", width=width, first=lead, indent=indent)
    return [*lines, *(Text(f"{indent}$ {escape_text(command)}") for command in advice.commands)]


def _answer_style(answer: Answer, command: str) -> str:
    """Return the style of a headline: good only where the state is calm, bad where it exits with 1."""
    if answer.state.is_calm:
        return Style.ANSWER_GOOD
    return {0: Style.HEADING, 1: Style.ANSWER_BAD}.get(STATES[command][answer.state], Style.ANSWER_WARNING)
