"""Every format renders every kind of block, and no text of a block acts in any."""

import csv
import io
import re
from importlib import import_module
from typing import get_args

import pytest

from kforensics.commands.result import Conclusion, Result
from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.findings.answers.model import Answer, State
from kforensics.render import blocks
from kforensics.render.blocks import (
    GAP,
    Block,
    Cell,
    Column,
    Event,
    Fact,
    Facts,
    FactsForm,
    Folded,
    Headline,
    Lane,
    Lanes,
    Lines,
    Prose,
    Reference,
    Section,
    Steps,
    Table,
    Timeline,
    item,
)
from kforensics.render.emit import RENDERERS, OutputFormat
from kforensics.render.formats.rows import lines
from kforensics.render.view import View
from kforensics.units import EpochEntry
from tests.builders.pages import outline
from tests.render.html.page_checks import complaints

ANSWER = Answer(state=State.LOST, headline="The headline.", now=("Do this.",))
SOURCE = (Reference("a-source:3"),)


def samples(word):
    """One of each kind of block, each with words of its own."""
    return {
        "Headline": Headline("explain", ANSWER),
        "Gap": GAP,
        "Section": Section(title=f"a-section{word}", aside=f"an-aside{word}", mark=f"a-mark{word}", lead="a lead"),
        "Prose": Prose(f"some-prose{word}", references=SOURCE),
        "Fact": Fact(f"a-label{word}", f"a-fact{word}"),
        "Facts": Facts(name="Figures", form=FactsForm.FIGURES, rows=[(f"a-figure{word}", "17", blocks.Tone.BAD)]),
        "Steps": Steps([f"a-command{word} --with 'what it needs' and a long line that no format may ever break{word}"]),
        "Table": Table(
            name=f"a-table{word}",
            columns=[Column("a-title"), Column("number", is_number=True)],
            rows=[
                (f"a-cell{word}", 12345),
                (Cell(badge=f"a-badge{word}", below=f"below{word}"), Absent.UNKNOWN),
                f"a-remark{word}",
            ],
        ),
        "Lanes": Lanes(
            name=f"a-picture{word}",
            moments=[
                (
                    f"a-moment{word}",
                    [
                        Lane(
                            name=f"a-lane{word}",
                            end=100,
                            epochs=(EpochEntry(3, 0),),
                            note=f"a-note{word}",
                            truncated_from=60,
                        ),
                        Lane(name="other", instead=f"not drawn{word}"),
                    ],
                )
            ],
        ),
        "Timeline": Timeline(
            name="a-timeline",
            events=[Event(time_ms=0, words=f"an-event{word}"), Event(time_ms=Absent.UNKNOWN, words="then")],
        ),
        "Lines": Lines("a-listing", ["one-line\n", "another-line\n"]),
        "Folded": Folded(f"a-fold{word}", [Prose(f"what-is-folded{word}")]),
    }


WORDS = {
    "Headline": ("The headline.", "Do this."),
    "Gap": (),
    "Section": ("a-section", "an-aside", "a-mark"),
    "Prose": ("some-prose",),
    "Fact": ("a-label", "a-fact"),
    "Facts": ("a-figure", "17"),
    "Steps": ("a-command",),
    "Table": ("a-title", "a-cell", "12,345", "a-badge", "below", "a-remark"),
    "Lanes": ("a-moment", "a-lane", "a-note", "not drawn", "e3"),
    "Timeline": ("an-event", "then"),
    "Lines": ("one-line", "another-line"),
    "Folded": ("a-fold", "what-is-folded"),
}
WHOLE = [one for one in RENDERERS if one not in {OutputFormat.BRIEF, OutputFormat.CSV}]
"""The formats that render all blocks; of the others one has the answer alone, the other rows alone."""


def written(chosen, some):
    module = import_module(f"kforensics.render.formats.{RENDERERS[chosen]}")
    given = (Input(path="given", kind="broker"),)
    result = Result(
        command="explain", inputs=given, body=type("Body", (), {"files": ()})(), concluded=Conclusion(ANSWER)
    )
    return "".join(module.write(result, View(width=80), content=lambda _result, _view: some))


def test_there_is_a_sample_of_every_kind_of_block():
    kinds = {one.__name__ for one in get_args(Block)}

    assert set(samples("")) == set(WORDS) == kinds


@pytest.mark.parametrize("kind", WORDS)
@pytest.mark.parametrize("chosen", WHOLE)
def test_every_format_renders_every_kind_of_block(chosen, kind):
    text = written(chosen, [samples("")[kind]])

    assert [] == [words for words in WORDS[kind] if words not in text]


@pytest.mark.parametrize("chosen", WHOLE)
def test_a_command_stands_whole_on_a_line_of_its_own(chosen):
    (command,) = samples("")["Steps"].commands
    shown = {OutputFormat.HTML: command.replace("'", "&#x27;")}.get(chosen, command)

    lines_with_it = [line for line in written(chosen, [Steps([command])]).splitlines() if shown in line]
    assert 1 == len(lines_with_it)


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", "\x1b[2J\u202e", "](javascript:alert(1))", "|`*_[x](y)"]
)
@pytest.mark.parametrize("chosen", WHOLE)
def test_no_text_of_a_block_acts(chosen, hostile):
    text = written(chosen, samples(hostile).values())

    assert "\x1b" not in text
    assert "\u202e" not in text
    if chosen is OutputFormat.HTML:
        assert [] == complaints(text)
        plain = outline(written(chosen, samples("plain").values())).elements
        assert [one[0] for one in plain] == [one[0] for one in outline(text).elements]
    if chosen is OutputFormat.MARKDOWN:
        fences = iter(text.replace("```", "~~~").split("~~~"))
        outside = "".join(part for part, _ in zip(fences, iter(lambda: next(fences, ""), None), strict=False))
        assert "<script" not in outside
        assert not re.search(r"(?<!\\)\]\(javascript", outside)


def test_items_of_a_tree_are_nested_by_their_depth():
    page = written(OutputFormat.HTML, [item("one"), item("inner", depth=2), item("two"), Prose("after")])

    assert [] == complaints(page)
    assert page.index('<li class="plain">one<ul') < page.index("inner</li></ul></li>") < page.index("two</li></ul>")


def test_all_rows_of_a_table_are_in_its_csv_and_nothing_in_them_is_a_formula():
    rows = [(at, "=cmd()", Absent.UNREADABLE, True, 'quoted "text", with a comma') for at in range(10_000)]
    table = Table(name="rows", columns=blocks.columns_of("at text lacking is_so words"), rows=iter(rows))

    found = list(csv.reader(io.StringIO("".join(lines(table)))))

    assert ["at", "text", "lacking", "is_so", "words"] == found[0]
    assert 10_000 == len(found) - 1
    assert ["9999", "'=cmd()", "", "yes", 'quoted "text", with a comma'] == found[-1]
