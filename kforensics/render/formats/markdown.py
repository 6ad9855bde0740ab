"""Blocks as Markdown (GitHub's): a whole report for a ticket, with pictures as code; the answer alone for a chat."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, assert_never

from kforensics.commands.result import Result
from kforensics.findings.answers.model import Answer
from kforensics.render.blocks import (
    Bars,
    Block,
    Chain,
    Fact,
    Facts,
    Folded,
    Gap,
    Headline,
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
    utc,
)
from kforensics.render.escape import escape_text
from kforensics.render.formats.text import render as screen_lines
from kforensics.render.frame import ANSWER_PARTS, Content, whole
from kforensics.render.screen import screen_pieces
from kforensics.render.view import View
from kforensics.words import Step

MOST_ROWS = 1_000
"""Rows of a table, and lines of a listing; the formats for programs have all."""

_SPECIAL = re.compile(r"([\\*_\[\]|~#])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def write(result: Result[Any], view: View, *, content: Content) -> Iterator[str]:
    """Yield the report, with `content` between the answer and the seal."""
    view = view._replace(colour=False, unicode=True)
    is_list = False
    for block in whole(result, view, content):
        is_item = isinstance(block, Fact) or (isinstance(block, Prose) and block.hang > 0)
        if is_list and not is_item:
            yield "\n"
        is_list = is_item
        yield from (f"{line}\n" for line in render(block, view))


def write_brief(result: Result[Any], _view: View, *, content: Content) -> Iterator[str]:  # noqa: ARG001 - the answer says it all
    """Yield the answer of a result alone, for a chat: five lines at most."""
    return (f"{line}\n" for line in brief_lines(result.answer))


def brief_lines(answer: Answer) -> list[str]:
    """Return the headline and one line each of what to do, whom to tell, later and unknown, without line breaks."""
    lines = [f"**{answer.headline}**"]
    for label, name in ANSWER_PARTS:
        sentences = getattr(answer, name)
        if sentences:
            more = f" (+{len(sentences) - 1} more)" if len(sentences) > 1 else ""
            lines.append(f"- *{label.capitalize()}*: {sentences[0]}{more}")
    return [escape_text(line) for line in lines]


def render(block: Block, view: View) -> Iterable[str]:
    """Return the lines of a block, without line ends."""
    match block:
        case Headline():
            return _answer(block.answer)
        case Gap():
            return ()
        case Section():
            words = " ".join(part for part in (block.title, block.aside, block.mark) if part)
            return ["#" * block.level + f" {_words(words)}", ""]
        case Prose() if block.hang:
            return ["  " * (block.depth - 1) + f"- {_toned(block)}"]
        case Prose():
            return [_toned(block), ""] if block.text else ()
        case Fact():
            return [f"- {_words(block.label)}: {_words(block.text)}" if block.label else f"- {_words(block.text)}"]
        case Facts():
            return [*(f"- {_words(label)}: {_words(text)}" for label, text, _ in block.rows), ""]
        case Steps():
            return ["```sh", *map(escape_text, block.commands), "```", ""]
        case Table():
            return _table(block)
        case Lanes() | OverTime() | Bars():
            return _code(screen_pieces(screen_lines(block, view), width=view.width))
        case Timeline():
            return [*(f"- {utc(one.time_ms)} {_words(one.words)}" for one in block.events), ""]
        case Chain():
            links = enumerate(block.links, 1)
            return [*(f"{at}. {_words(title)}: {_words(words)}" for at, (title, words, _) in links), ""]
        case Lines():
            return _code(block.pieces)
        case Folded():
            inner = (line for one in block.blocks for line in render(one, view))
            return [f"<details><summary>{_words(block.title)}</summary>", "", *inner, "", "</details>", ""]
        case _:
            assert_never(block)


def _answer(answer: Answer) -> Iterator[str]:
    yield f"# {_words(answer.headline)}"
    yield ""
    for label, name in ANSWER_PARTS:
        sentences = getattr(answer, name)
        if sentences:
            yield f"**{label.capitalize()}**"
            yield ""
            for one in sentences:
                yield from _said(one)
            yield ""


def _said(sentence: str) -> Iterator[str]:
    if not isinstance(sentence, Step) or not sentence.commands:
        yield f"- {_words(sentence)}"
        return
    yield f"- {_words(sentence.sentence.rstrip('.:'))}:"
    yield from ("  ```sh", *(f"  {escape_text(one)}" for one in sentence.commands), "  ```")


def _toned(block: Prose) -> str:
    words = _words(block.text)
    return f"**{words}**" if block.tone in {Tone.BAD, Tone.WARNING, Tone.STRONG} else words


def _table(block: Table) -> Iterator[str]:
    rows = iter(block.rows)
    yield "| " + " | ".join(_words(column.title) for column in block.columns) + " |"
    yield "|" + "|".join("---:" if column.is_number else "---" for column in block.columns) + "|"
    for row in islice(rows, MOST_ROWS):
        cells = [row] if isinstance(row, str) else [plain(value) for value in row]
        yield "| " + " | ".join(_words(cell) for cell in cells) + " |"
    rest = sum(1 for _ in rows)
    yield ""
    if rest:
        yield from (f"{rest:,} more rows: --format csv and json have all.", "")


def _code(pieces: Iterable[str]) -> Iterator[str]:
    lines = (line for piece in pieces for line in piece.splitlines())
    yield "~~~"
    yield from (line.replace("~~~", "~ ~ ~") for line in islice(lines, MOST_ROWS))
    rest = sum(1 for _ in lines)
    yield "~~~"
    yield from (f"{rest:,} more lines: --format text has all.", "") if rest else ("",)


def _words(text: str) -> str:
    """Return words in which nothing is markup but the code that stands between backticks."""
    parts = escape_text(text).split("`")
    if len(parts) % 2 == 0:
        return r"\`".join(map(_escaped, parts))
    return "`".join(part.replace("|", r"\|") if at % 2 else _escaped(part) for at, part in enumerate(parts))


def _escaped(text: str) -> str:
    text = "".join(_ENTITIES.get(character, character) for character in text)
    return _SPECIAL.sub(r"\\\1", text)
