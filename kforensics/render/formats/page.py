"""Blocks as one page to keep: it loads nothing, and its policy allows its own style and the script that filters, sorts and folds it alone."""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import islice
from typing import Any, assert_never

from kforensics import __version__
from kforensics.commands.result import Result
from kforensics.exits import ExitCode
from kforensics.findings.answers.model import Answer, State
from kforensics.render.blocks import (
    Bars,
    Block,
    Cell,
    Chain,
    Column,
    Fact,
    Facts,
    FactsForm,
    Folded,
    Gap,
    Headline,
    Lanes,
    Lines,
    OverTime,
    Prose,
    Reference,
    Section,
    Steps,
    Table,
    Term,
    Timeline,
    Value,
    plain,
    utc,
)
from kforensics.render.escape import escape_text
from kforensics.render.formats.lane_picture import LEGEND, Places, draw, draw_bars, draw_over_time, time_legend
from kforensics.render.frame import Content, whole
from kforensics.render.view import View
from kforensics.words import Prohibition, Step, counted, utc_text


def hash_of(content: str) -> str:
    """Return the name under which the policy of a page allows a style or a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMark:
    """The tone and symbol of the answer; the symbol says the same as the colour."""

    tone: str
    mark: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One part of the answer: an id, a heading and its sentences."""

    anchor: str
    title: str
    sentences: tuple[str, ...]


_VERDICTS = {
    State.BYTES_LEFT: AnswerMark(tone="bad", mark="!", words="Bytes of the key are left"),
    State.LOST: AnswerMark(tone="bad", mark="✕", words="Committed records are lost"),
    State.MAYBE_LOST: AnswerMark(tone="bad", mark="?", words="Committed records may be lost"),
    State.AT_RISK: AnswerMark(tone="bad", mark="!", words="Committed records are at risk"),
    State.MAYBE_AT_RISK: AnswerMark(tone="bad", mark="?", words="Committed records may be at risk"),
    State.DIVERGED: AnswerMark(tone="bad", mark="!", words="Replicas hold different content"),
    State.DAMAGED: AnswerMark(tone="warning", mark="!", words="Files are damaged"),
    State.UNKNOWN: AnswerMark(tone="warning", mark="?", words="The evidence does not answer it"),
    State.UNCOMMITTED_LOST: AnswerMark(tone="warning", mark="!", words="Records that were not committed are lost"),
    State.UNCOMMITTED_ONLY: AnswerMark(tone="warning", mark="!", words="Truncations are due, of nothing committed"),
    State.BEHIND: AnswerMark(tone="warning", mark="!", words="A replica is behind"),
    State.SAME_ENDS: AnswerMark(tone="warning", mark="?", words="Content was not compared"),
    State.CHANGED: AnswerMark(tone="warning", mark="!", words="Findings are new, worse or changed"),
    State.UNCHANGED: AnswerMark(tone="good", mark="✓", words="No finding is new or worse"),
    State.AGREE: AnswerMark(tone="good", mark="✓", words="All replicas agree"),
    State.PRESENT: AnswerMark(tone="warning", mark="!", words="A live replica holds it"),
    State.SUPERSEDED: AnswerMark(tone="warning", mark="!", words="A later record of its key follows"),
    State.DELETED_ON_PURPOSE: AnswerMark(tone="warning", mark="!", words="It was deleted on purpose"),
    State.NEVER_HERE: AnswerMark(tone="warning", mark="!", words="No offset of these logs holds it"),
    State.NO_BYTES_LEFT: AnswerMark(tone="good", mark="✓", words="No file that was searched holds the key"),
    State.NOTHING_LOST: AnswerMark(tone="good", mark="✓", words="No committed record is lost"),
    State.COMPLETE: AnswerMark(tone="note", mark="i", words="All that was asked for was read"),
    State.SAVED: AnswerMark(tone="note", mark="i", words="Saved"),
    State.IN_TIME: AnswerMark(tone="note", mark="i", words="In time"),
}
"""The verdicts that have words of their own; only a state that proves that all is well has a tick."""


_OF_METADATA = AnswerMark(tone="note", mark="i", words="What the metadata log records")
"""Of metadata whose copies agree: what it records may be anything but well."""


def verdict_of(answer: Answer, *, is_whole: bool = True, command: str = "") -> AnswerMark:
    """Return the verdict at the top of the page of an answer.

    Args:
        is_whole: all content was read that the answer is about; without it no state has a tick.
    """
    if command == "metadata" and answer.state is State.AGREE:
        return _OF_METADATA
    found = _VERDICTS.get(answer.state) or _by_exit_code(answer.state)
    if is_whole or not answer.state.is_calm:
        return found
    return AnswerMark(tone="warning", mark="?", words=f"{found.words}, by the ends of the logs")


def _by_exit_code(state: State) -> AnswerMark:
    words = state.value.replace("-", " ").capitalize()
    if state.is_calm:
        return AnswerMark(tone="good", mark="✓", words=words)
    return AnswerMark(tone="bad" if state.exit_code is ExitCode.FINDINGS else "warning", mark="!", words=words)


def advice_of(answer: Answer) -> list[Advice]:
    """Return the parts of an answer that have sentences, what not to do first."""
    forbidden = tuple(one for one in answer.now if isinstance(one, Prohibition))
    every = (
        Advice(anchor="never", title="What not to do", sentences=forbidden),
        Advice(
            anchor="do",
            title="What to do now",
            sentences=tuple(one for one in answer.now if not isinstance(one, Prohibition)),
        ),
        Advice(anchor="tell", title="Who to tell", sentences=answer.tell),
        Advice(anchor="later", title="Later", sentences=answer.later),
        Advice(anchor="cant-tell", title="Can't tell", sentences=answer.unknown),
    )
    return [one for one in every if one.sentences]


MOST_ROWS = 2_000
"""Rows of a table, events of a timeline and items of a list; the formats for programs have all."""
MOST_LINES = 20_000
MEDIUM, WIDE = 3, 5
"""Columns from which a table is so wide that it scrolls on a narrow screen."""

_COMMAND = re.compile(r"`([^`]+)`")
_WHOLE = re.compile(r"[\w.-]*\w-\d[\w.:-]*[;,]?")
"""A name of a partition, or a date with its time, which a headline does not break at a hyphen, nor before the mark behind it."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def write(result: Result[Any], view: View, *, content: Content) -> Iterator[str]:
    """Yield the page, with `content` between the answer and what it rests on."""
    view = view._replace(page=True, unicode=True, colour=False)
    page = Page(view)
    for block in whole(result, view, content):
        page.add(block)
    page.close()
    yield from page.pieces(result)


def text(words: str) -> str:
    """Return words in which nothing is markup and no character steers the reader."""
    return escape(escape_text(words))


def _sentence(words: str) -> str:
    """Return words in which commands are code."""
    return _COMMAND.sub(r"<code>\1</code>", text(words))


class Page:
    """A page as it is made, block by block."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._lead: list[str] = []
        self._head: list[str] = []
        self._body: list[str] = []
        self._answer: Headline | None = None
        self._identity: list[tuple[str, str]] = []
        self._contents: list[tuple[str, str]] = []
        self._open: list[str] = []
        self._depths: list[int] = []
        self._level = 1
        self._is_begun = False
        self._names: dict[str, int] = {}
        self._left_out = 0
        self._items = 0
        self._has_legend = False
        self._legends: set[str] = set()
        self.places = Places()

    def add(self, block: Block) -> None:
        """Render a block below what is there."""
        self._continue(block)
        match block:
            case Headline():
                self._answer = block
            case Gap():
                pass
            case Section():
                self._section(block)
            case Prose():
                self._prose(block)
            case Fact():
                self._put(
                    f"<dt>{text(block.label)}</dt><dd>{text(block.text)}{_folded(block.references, block.label)}</dd>"
                )
            case Facts():
                self._facts(block)
            case Steps():
                self._put(_commands(block.commands))
            case Table():
                self._table(block)
            case Lanes():
                self._lanes(block)
            case OverTime():
                self._over_time(block)
            case Timeline():
                self._timeline(block)
            case Bars():
                self._put(draw_bars(block, self._name))
            case Chain():
                self._chain(block)
            case Lines():
                self._lines(block)
            case Folded():
                self._fold(block)
            case _:
                assert_never(block)

    def close(self) -> None:
        """End what is open."""
        self._end_lists()
        self._end("section")

    def pieces(self, result: Result[Any]) -> Iterator[str]:
        """Yield the page of what was added."""
        assert self._answer is not None
        answer = self._answer.answer
        label = verdict_of(answer, is_whole=self._answer.is_whole, command=result.command)
        style, script = f"\n{_template('page.css')}{self.places.rules()}\n", _template("page.js")
        title = f"{label.words}: {answer.headline}"
        headline = _WHOLE.sub(r'<span class="whole">\g<0></span>', _sentence(answer.headline))
        yield (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{hash_of(style)}'; script-src '{hash_of(script)}'\">\n"
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n'
            f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
            '<a class="skip" href="#content">To the content</a>\n'
            f'<header class="top"><p><strong>kforensics</strong> {text(result.command)}</p>'
            f'<p>{counted(len(result.inputs), "input") if result.inputs else ""}</p></header>\n<main id="content">\n'
        )
        made = self._view.made_ms
        identity = [*self._identity, *([] if made is None else [("Page made", utc_text(made))])]
        if identity:
            rows = "".join(f"<div><dt>{text(term)}</dt><dd>{text(words)}</dd></div>\n" for term, words in identity)
            yield f'<dl class="identity" aria-label="What this page is about">\n{rows}</dl>\n'
        yield (
            f'<section class="verdict tone-{label.tone}" aria-labelledby="answer">\n'
            f'<p class="label"><span class="mark" aria-hidden="true">{label.mark}</span>{text(label.words)}</p>\n'
            f'<h1 id="answer">{headline}</h1>\n{"".join(self._lead)}</section>\n'
        )
        advice = "".join(
            f'<section class="{one.anchor}" aria-labelledby="{one.anchor}"><h2 id="{one.anchor}">{one.title}</h2>{_listed(one.sentences)}</section>\n'
            for one in advice_of(answer)
        )
        if advice:
            yield f'<div class="actions">\n{advice}</div>\n'
        yield from self._head
        if len(self._contents) > 1:
            links = "".join(
                f'<li><a href="#{anchor}">{text(title.rstrip(":"))}</a></li>' for anchor, title in self._contents
            )
            yield f'<nav class="contents" aria-label="Contents"><ul>{links}</ul></nav>\n'
        yield from self._body
        yield (
            f'</main>\n<footer class="foot"><p>Exit code {int(result.exit_code)}.</p><p>Made by kforensics {__version__}. The same evidence and '
            "options give the same page, but for the time when it was made. It loads nothing; its script filters, sorts and folds what is here.</p></footer>\n"
            f"<script>{script}</script>\n</body>\n</html>\n"
        )

    def _put(self, piece: str) -> None:
        (self._body if self._is_begun else self._lead).append(piece)

    def _continue(self, block: Block) -> None:
        """End the list or the facts before a block that is not of them, and begin one where it is."""
        if not isinstance(block, (Prose, Fact, Gap, Headline, Facts)):
            self._is_begun = self._is_begun or self._end_lists()
        is_item = isinstance(block, Prose) and block.hang > 0
        if not is_item and not isinstance(block, Gap):
            self._end_items()
        if isinstance(block, Fact) and "dl" not in self._open:
            self._open.append("dl")
            self._put(f'<dl class="facts" aria-label="{self._name("Facts")}">\n')
        elif not isinstance(block, (Fact, Gap)):
            self._end("dl")

    def _end_lists(self) -> bool:
        self._end_items()
        self._end("dl")
        return True

    def _end_items(self) -> None:
        while self._depths:
            self._depths.pop()
            self._put("</li></ul>\n")
        if self._left_out:
            self._put(f'<p class="quiet">{self._left_out:,} more: --format json has each.</p>\n')
        self._left_out = self._items = 0

    def _end(self, tag: str) -> None:
        if tag in self._open:
            self._open.remove(tag)
            self._put(f"</{tag}>\n")

    def _name(self, name: str) -> str:
        """Return a name for assistive technology that no other part of the page has."""
        words = text(name)
        self._names[words] = self._names.get(words, 0) + 1
        return words if self._names[words] == 1 else f"{words}, {self._names[words]}"

    def _anchor(self, block: Section) -> str:
        """Return the id of a section: one that stays the same on the next page of the same evidence, where the name allows it."""
        wanted = block.anchor or block.title.lower().replace(" ", "-")
        plain_name = wanted if not _UNSAFE.search(wanted) else f"part.{len(self._names) + len(self._body)}"
        return self._name(plain_name).replace(", ", ".")

    def _section(self, block: Section) -> None:
        self._end("section")
        anchor = self._anchor(block)
        level = min(block.level, self._level + 1)
        self._level = level
        words = text(block.title)
        beside = "".join(f' <span class="quiet">{text(one)}</span>' for one in (block.aside, block.mark) if one)
        if block.level == 2:
            self._contents.append((anchor, block.title))
            self._put(f'<h2 id="{anchor}">{words}{beside}</h2>\n')
        else:
            self._open.append("section")
            self._put(
                f'<section class="partition" id="{anchor}" aria-labelledby="{anchor}-name">\n'
                f'<h{level} id="{anchor}-name"><a href="#{block.link or anchor}">{words}</a>{beside}</h{level}>\n'
            )
            self._level = max(level - (level == 2), 1) if level == 2 else level
        if block.lead:
            self._put(f'<p class="lead">{text(block.lead)}</p>\n')

    def _prose(self, block: Prose) -> None:
        words = _sentence(block.text) + "".join(f" {_source(one)}" for one in block.references)
        if block.hang:
            self._items += 1
            if self._items > MOST_ROWS:
                self._left_out += 1
                return
            while self._depths and self._depths[-1] > block.depth:
                self._depths.pop()
                self._put("</li></ul>")
            if self._depths and self._depths[-1] == block.depth:
                self._put("</li>\n")
            else:
                self._depths.append(block.depth)
                self._put('<ul class="items">\n')
            self._put(f'<li class="{block.tone}">{words}')
        elif block.text.strip():
            self._put(f'<p class="{block.tone}">{words}</p>\n')

    def _facts(self, block: Facts) -> None:
        if block.form is FactsForm.IDENTITY:
            self._identity += [(label, words) for label, words, _ in block.rows]
            return
        rows = "".join(
            f'<div class="{tone}"><dt>{text(label)}</dt><dd{_class("" if words[:1].isdigit() else "none")}>{text(words)}</dd></div>\n'
            for label, words, tone in block.rows
        )
        self._head.append(f'<dl class="glance" aria-label="{self._name(block.name)}">\n{rows}</dl>\n')

    def _table(self, block: Table) -> None:
        rows = iter(block.rows)
        shown = list(islice(rows, MOST_ROWS))
        if not shown:
            return
        columns = block.columns
        roles = block.is_ledger
        heads = "".join(
            f'<th scope="col"{_role("columnheader", roles)}{_class("number" if one.is_number else "")}>{text(one.title)}</th>'
            for one in columns
        )
        name = self._name(block.name)
        body = "".join(
            f'<tr class="day"><td colspan="{len(columns)}">{text(row)}</td></tr>\n'
            if isinstance(row, str)
            else self._row(row, block, number)
            for number, row in enumerate(shown, 1)
        )
        group, row = _role("rowgroup", roles), _role("row", roles)
        hidden = _class("hidden" if roles or self._level > 2 else "")
        table = (
            f"<caption{hidden}>{text(block.name)}</caption>\n<thead{group}><tr{row}>{heads}</tr></thead>\n"
            f"<tbody{group}>\n{body}</tbody></table>"
        )
        if roles:
            self._put(f'<table class="ledger" role="table">{table}\n')
        else:
            width = ' class="wide"' if len(columns) >= WIDE else ' class="medium"' if len(columns) >= MEDIUM else ""
            self._put(
                f'<div class="scroll" role="region" tabindex="0" aria-label="{name}"><table{width}>{table}</div>\n'
            )
        rest = sum(1 for _ in rows)
        if rest:
            self._put(f'<p class="quiet">{rest:,} more rows: --format json has each.</p>\n')

    def _row(self, row: Sequence[Value], block: Table, number: int) -> str:
        padded = [*row, *([""] * (len(block.columns) - len(row)))]
        cells = "".join(
            _cell(value, column, self.places, is_first=at == 0, has_roles=block.is_ledger)
            for at, (value, column) in enumerate(zip(padded, block.columns, strict=True))
        )
        anchor = f' id="{block.row_anchor}-{number}"' if block.row_anchor else ""
        return f"<tr{_role('row', block.is_ledger)}{anchor}>{cells}</tr>\n"

    def _lanes(self, block: Lanes) -> None:
        if not self._has_legend and not block.in_frames:
            self._put(LEGEND)
        self._has_legend = True
        picture, kinds = draw(block, self.places, self._name)
        self._put(picture)
        if block.terms:
            rows = "".join(_term(term, kinds.get(term.epoch, "plain")) for term in block.terms)
            self._put(f'<ol class="terms" aria-label="{self._name(f"Leader epochs of {block.name}")}">{rows}</ol>\n')

    def _over_time(self, block: OverTime) -> None:
        legend = time_legend(block)
        if legend not in self._legends:
            self._legends.add(legend)
            self._put(legend)
        self._put(draw_over_time(block, self.places, self._name, _source))

    def _timeline(self, block: Timeline) -> None:
        rows, day = [], ""
        for event in block.events[:MOST_ROWS]:
            time = utc(event.time_ms)
            is_time = time[10:11] == "T"
            if is_time and time[:10] != day:
                day = time[:10]
                rows.append(f'<tr class="day"><td colspan="3">{day}</td></tr>\n')
            sources = _refs(event.references) if event.references else text(event.source)
            rows.append(
                f'<tr{_class("strong" if event.is_strong else "")}><td class="time">{time[11:23] if is_time else time}</td>'
                f'<td class="what">{text(event.words)}</td><td class="evidence">{sources}</td></tr>\n'
            )
        name = self._name(block.name)
        self._put(
            f'<p class="hint">Wide tables scroll sideways.</p>\n<div class="scroll" role="region" tabindex="0" aria-label="{name}">\n'
            f'<table class="medium"><caption class="hidden">{text(block.name)}, times in UTC</caption>\n'
            '<thead><tr><th scope="col">Time (UTC)</th><th scope="col">What happened</th><th scope="col">Evidence</th></tr></thead>\n'
            f"<tbody>\n{''.join(rows)}</tbody></table></div>\n"
        )
        more = len(block.events) - MOST_ROWS
        if more > 0:
            self._put(f'<p class="quiet">{more:,} more rows: --format json lists each event.</p>\n')

    def _chain(self, block: Chain) -> None:
        links = "".join(
            f'<li class="{tone}"><strong>{text(title)}</strong><span>{text(words)}</span></li>\n'
            for title, words, tone in block.links
        )
        self._put(f'<ol class="chain" aria-label="{self._name(block.name)}">\n{links}</ol>\n')

    def _lines(self, block: Lines) -> None:
        lines = (line for piece in block.pieces for line in piece.splitlines())
        shown = "\n".join(map(escape, islice(lines, MOST_LINES)))
        self._put(
            f'<pre class="scroll" role="region" tabindex="0" aria-label="{self._name(block.name)}">{shown}</pre>\n'
        )
        rest = sum(1 for _ in lines)
        if rest:
            self._put(f'<p class="quiet">{rest:,} more lines: --format text has all.</p>\n')

    def _fold(self, block: Folded) -> None:
        self._put(f"<details{_class('bulk' if block.is_bulk else '')}><summary>{text(block.title)}</summary>\n")
        for one in block.blocks:
            self.add(one)
        self._end_lists()
        self._put("</details>\n")


def _template(name: str) -> str:
    return files("kforensics.render.formats").joinpath(f"templates/{name}").read_text(encoding="utf-8")


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _role(name: str, has_roles: bool) -> str:
    return f' role="{name}"' if has_roles else ""


def _term(term: Term, kind: str) -> str:
    words = text(term.words)
    said = f"<strong>{words}</strong>" if term.is_unclean else words
    time = f'<span class="time">{text(term.time)}</span> ' if term.time else ""
    sources = "".join(f" {_source(one)}" for one in term.references)
    return f'<li><span class="key epoch {kind}">e{term.epoch}</span> <span>{time}{said}{sources}</span></li>'


def _source(one: Reference) -> str:
    if one.file is None:
        return f'<span class="source">{text(one.words)}</span>'
    return f'<a class="source" href="#file-{one.file}">{text(one.words)}</a>'


def _refs(references: Iterable[Reference]) -> str:
    listed = "".join(
        f'<li><a href="#file-{one.file}">{text(one.words)}</a></li>'
        if one.file is not None
        else f"<li>{text(one.words)}</li>"
        for one in references
    )
    return f'<ul class="refs">{listed}</ul>' if listed else ""


def _folded(references: Sequence[Reference], of: str) -> str:
    if not references:
        return ""
    summary = f'{counted(len(references), "source")}<span class="hidden"> of {text(of)}</span>'
    return f'<details class="sources"><summary>{summary}</summary>{_refs(references)}</details>'


def _listed(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{_said(one)}</li>' for one in sentences)}</ul>"


def _said(sentence: str) -> str:
    if not isinstance(sentence, Step) or not sentence.commands:
        return _sentence(sentence)
    return f"{_sentence(sentence.sentence.rstrip('.:'))}:{_commands(sentence.commands)}"


def _commands(commands: Iterable[str]) -> str:
    return "".join(f'<pre class="step" tabindex="0"><code>{text(one)}</code></pre>\n' for one in commands)


def _cell(value: Value, column: Column, places: Places, *, is_first: bool, has_roles: bool) -> str:
    classes = [
        name for name, has in (("number", column.is_number), ("mono", column.is_mono), ("name", is_first)) if has
    ]
    attributes = f' class="{" ".join(classes)}"' if classes else ""
    if has_roles:
        attributes += ' role="rowheader"' if is_first else f' role="cell" data-label="{text(column.title)}"'
    inner = _rich(value, places) if isinstance(value, Cell) else text(plain(value))
    return f'<th scope="row"{attributes}>{inner}</th>' if is_first else f"<td{attributes}>{inner}</td>"


def _rich(cell: Cell, places: Places) -> str:
    words = text(cell.text)
    link = cell.link if cell.link.endswith(".html") else f"#{cell.link}"
    parts = [f'<a href="{text(link)}">{words}</a>' if cell.link else words]
    if cell.badge:
        parts.insert(0, f'<span class="badge {cell.tone}">{text(cell.badge)}</span> ')
    if cell.below:
        parts.append(f'{"<br>" if cell.text or cell.badge else ""}<span class="quiet">{text(cell.below)}</span>')
    if cell.items:
        parts.append(_listed(cell.items))
    if cell.more:
        parts.append(
            f'<details class="sources"><summary>{text(cell.more_title)}</summary>{_listed(cell.more)}</details>'
        )
    left = 0.0
    for share, kind in cell.shares:
        width = min(max(share * 100, 0.5), 100 - left)
        parts.append(f'<span class="lost {kind} {places.at(left, width)}"></span>')
        left += width
    bar = f'<span class="shares" aria-hidden="true">{"".join(parts[-len(cell.shares) :])}</span>' if cell.shares else ""
    return "".join(parts[: len(parts) - len(cell.shares)]) + bar + _refs(cell.references)
