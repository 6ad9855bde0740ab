"""Blocks as a screen: words broken into lines of its width, columns, lanes of characters."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any

from rich.text import Text

from kforensics.commands.result import Result
from kforensics.render.blocks import (
    GAP,
    Bars,
    Block,
    Chain,
    Column,
    Event,
    Fact,
    Facts,
    Folded,
    Gap,
    Headline,
    Lane,
    Lanes,
    Lines,
    OverTime,
    Prose,
    Section,
    Steps,
    Table,
    Timeline,
    Tone,
    plain,
)
from kforensics.render.emit import CONTENT
from kforensics.render.escape import escape_text, shorten
from kforensics.render.frame import Content, whole
from kforensics.render.lanes import (
    ASCII_MARKS,
    UNICODE_MARKS,
    bounds_of,
    count_words,
    course_words,
    draw_lane,
    scale_of,
    span_words,
)
from kforensics.render.screen import INDENT, MOST_LINES, Line, Style, Words, answer_lines, columns, screen_pieces
from kforensics.render.view import View
from kforensics.words import time_of_day, utc_text

STYLES = {
    Tone.PLAIN: Style.PLAIN,
    Tone.STRONG: Style.HEADING,
    Tone.QUIET: Style.QUIET,
    Tone.GOOD: Style.ANSWER_GOOD,
    Tone.WARNING: Style.ANSWER_WARNING,
    Tone.BAD: Style.ANSWER_BAD,
}
LANE_WIDTH = 36
NAME_WIDTH = 11
LABEL_ROOM = 24
"""Columns that a heading leaves to what is before its aside."""
LEAST_NAME = 16
"""The least columns of a cell that is shortened."""
SCREEN = 30
"""Lines of a screen, where what to do now leaves room for the rest."""
_ALL = 1 << 30


def write(result: Result[Any], view: View, *, content: Content) -> Iterator[str]:
    """Yield the screen, line by line, with `content` between the answer and the seal; it is all where the answer is known only behind it."""
    if not view.verbose and result.shape not in CONTENT:
        answer = answer_lines(result.answer, command=result.command, width=view.width)
        view = view._replace(room=SCREEN - sum(1 for _ in answer))
    blocks = content(result, view) if result.shape in CONTENT else whole(result, view, content)
    for is_laid_out, some in groupby(blocks, key=lambda block: isinstance(block, Lines)):
        if is_laid_out:
            yield from chain.from_iterable(block.pieces for block in some if isinstance(block, Lines))
        else:
            lines = chain.from_iterable(render(block, view) for block in some)
            yield from screen_pieces(lines, width=view.width, colour=view.colour)


def render(block: Block, view: View) -> Iterable[Line]:
    """Return the lines of a block."""
    match block:
        case Headline(command, answer):
            most = _ALL if view.verbose else MOST_LINES
            return answer_lines(answer, command=command, width=view.width, most=most)
        case Gap():
            return [""]
        case Section():
            return _section(block, view)
        case Prose(text, tone, depth, hang):
            return [Words(escape_text(text), INDENT * (depth + hang), INDENT * depth, STYLES[tone])]
        case Fact(label, text, width, depth, hang):
            first = f"{INDENT * depth}{escape_text(label):<{width}}"
            if hang:
                return [Words(escape_text(text), INDENT * (depth + 1) + " " * hang, f"{first}  ")]
            return [Words(escape_text(text), " " * len(first), first)]
        case Facts():
            return chain.from_iterable(render(Fact(label, text, 32), view) for label, text, _ in block.rows)
        case Steps(commands):
            return [Text(f"{INDENT}$ {escape_text(one)}") for one in commands]
        case Table():
            return _table(block, view)
        case Lanes():
            return _lanes(block, view)
        case OverTime():
            return _over_time(block)
        case Timeline():
            return _timeline(block)
        case Bars():
            return _bars(block, view)
        case Chain(_, links):
            return chain.from_iterable(
                render(Fact(f"{at} {title}", words), view) for at, (title, words, _) in enumerate(links, 1)
            )
        case Lines(_, pieces):
            return (piece.removesuffix("\n") for piece in pieces)
        case Folded(title, blocks):
            inner = (line for one in blocks for line in render(one, view))
            return chain(render(GAP, view), render(Section(title=title, level=3), view), inner)


def _section(block: Section, view: View) -> Iterator[Line]:
    title = escape_text(block.title)
    if block.level == 2:
        yield ""
    if not block.aside and not block.mark:
        yield Words(title, style=Style.HEADING)
        return
    aside = (
        escape_text(block.aside)
        if block.mark
        else shorten(escape_text(block.aside), max(view.width - LABEL_ROOM, LEAST_NAME))
    )
    head = f"{title}  {aside}" if aside else title
    room = " " * max(view.width - len(head) - len(block.mark), 2) if block.mark else ""
    yield Text(f"{head}{room}{escape_text(block.mark)}", style=Style.HEADING)


def _table(block: Table, view: View) -> Iterator[Line]:
    shown = [column for column in block.columns if view.page or not column.on_pages_only]
    kept = [at for at, column in enumerate(block.columns) if column in shown]
    rows = list(block.rows)
    cells = [[escape_text(plain(row[at])) for at in kept if at < len(row)] for row in rows if not isinstance(row, str)]
    if block.has_heading and rows:
        cells.insert(0, [column.title for column in shown])
    cells, least = _within(cells, shown, block, view.width)
    right = frozenset(at for at, column in enumerate(shown) if column.is_number)
    drawn = iter(columns(cells, right=right, indent=INDENT * block.depth, least=least))
    if block.has_heading and rows:
        yield Text(next(drawn), style=Style.QUIET)
    for row in rows:
        if isinstance(row, str):
            yield Words(escape_text(row), indent=INDENT * 2, first=f"{INDENT}~ ", style=Style.QUIET)
        else:
            yield next(drawn)


def _within(
    cells: list[list[str]], shown: Sequence[Column], block: Table, width: int
) -> tuple[list[list[str]], Sequence[int]]:
    """Return cells and least widths with which the columns fit a line."""
    names = [at for at, column in enumerate(shown) if column.is_shortened]
    if not names:
        return cells, block.least
    (name,) = names
    least = [*block.least, *([0] * (len(shown) - len(block.least)))]
    fixed = [max([least[at], *(len(row[at]) for row in cells)]) for at in range(len(shown)) if at != name]
    room = max(width - len(INDENT) * block.depth - sum(fixed) - 2 * len(fixed), LEAST_NAME)
    least[name] = min(least[name], room)
    return [[shorten(cell, room) if at == name else cell for at, cell in enumerate(row)] for row in cells], least


def _lanes(block: Lanes, view: View) -> Iterator[Line]:
    every = [lane for _, lanes in block.moments for lane in lanes]
    drawn = [lane for lane in every if not lane.instead]
    scale = scale_of(drawn, LANE_WIDTH)
    numbers = max((len(str(end)) for lane in every for end in (lane.start, lane.end)), default=1)
    if block.below and scale.first > min((lane.start for lane in drawn), default=0):
        yield Text(f"{INDENT}(drawn from offset {scale.first} on: below, {block.below})", style=Style.QUIET)
    for moment, lanes in block.moments:
        if moment:
            yield Words(escape_text(moment), indent=INDENT)
        for lane in lanes:
            yield _lane(lane, draw_lane(lane, scale, marks=UNICODE_MARKS if view.unicode else ASCII_MARKS), numbers)
    for term in block.terms:
        words = f"leader epoch {term.epoch}: {f'{term.time} ' if term.time else ''}{term.words}"
        yield Words(escape_text(words), indent=INDENT * 2, first=INDENT)


def _lane(lane: Lane, drawn: str, numbers: int) -> Line:
    first = f"{INDENT}{escape_text(lane.name):<{NAME_WIDTH}} "
    if lane.instead:
        return Words(escape_text(lane.instead), indent=INDENT * 2, first=first)
    ends = f"{lane.start:>{numbers}} {drawn} {lane.end:<{numbers}}"
    return Text(f"{first}{ends}  {escape_text(lane.note)}", style=STYLES[lane.tone])


def _over_time(block: OverTime) -> Iterator[Line]:
    yield Words(f"{escape_text(block.name)}, {span_words(*bounds_of(block))}", indent=INDENT)
    for course in block.courses:
        yield Words(escape_text(course_words(course, block)), indent=INDENT * 3, first=INDENT * 2)


def _bars(block: Bars, view: View) -> Iterator[Line]:
    yield Words(escape_text(block.name), indent=INDENT)
    most = max((sum(counts) for _, counts in block.moments), default=0) or 1
    mark = "█" if view.unicode else "#"
    told = [(moment, sum(counts), count_words(block.kinds, counts)) for moment, counts in block.moments]
    rows = [
        (escape_text(moment), mark * -(-LANE_WIDTH * count // most), escape_text(words))
        for moment, count, words in told
    ]
    yield from columns(rows, indent=INDENT * 2)


def _timeline(block: Timeline) -> Iterator[Line]:
    """Yield the events by the time of day, with the day and the zone once above those of each day."""
    day = ""
    for event in block.events:
        text = utc_text(event.time_ms) if isinstance(event.time_ms, int) else ""
        if text[10:11] == "T" and text[:10] != day:
            day = text[:10]
            yield Text(f"{INDENT}{day}, times in UTC", style=Style.QUIET)
        yield _event(event)


def _event(event: Event) -> Line:
    time = time_of_day(event.time_ms) if isinstance(event.time_ms, int) else "time unknown"
    words = f"{event.words} [{event.source}]" if event.source else event.words
    return Words(escape_text(words), indent=INDENT + " " * 14, first=f"{INDENT}{time:<12}  ")
