"""Every format renders every kind of block, and no text of a block acts in any."""

import csv
import io
import json
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
    Bars,
    Block,
    Cell,
    Chain,
    Column,
    Course,
    Event,
    Fact,
    Facts,
    FactsForm,
    Folded,
    Headline,
    Lane,
    Lanes,
    Lines,
    Look,
    Moment,
    OverTime,
    Prose,
    Reference,
    Section,
    Steps,
    Stretch,
    Table,
    Timeline,
    item,
)
from kforensics.render.emit import RENDERERS, OutputFormat
from kforensics.render.formats import rows
from kforensics.render.view import View
from kforensics.units import EpochEntry
from tests.builders.pages import outline
from tests.render.formats.page_checks import complaints

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
                (Cell(text="a-bar", shares=((0.7, "certain"), (0.3, "no"))), 3),
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
        "OverTime": OverTime(
            name=f"the-time{word}",
            legend=[(Look.LEADS, f"what it is{word}")],
            courses=[
                Course(
                    name=f"a-course{word}",
                    stretches=[
                        Stretch(begin_ms=0, end_ms=90_000, words=f"a-stretch{word}", look=Look.AWAY, label=f"on{word}")
                    ],
                    moments=[Moment(time_ms=30_000, words=f"a-moment{word}", is_grave=True, references=SOURCE)],
                ),
                Course(name="a-blank-course"),
            ],
        ),
        "Timeline": Timeline(
            name="a-timeline",
            events=[Event(time_ms=0, words=f"an-event{word}"), Event(time_ms=Absent.UNKNOWN, words="then")],
        ),
        "Bars": Bars(name=f"the-counts{word}", kinds=(f"a-kind{word}", "another"), moments=((f"a-day{word}", (3, 1)),)),
        "Chain": Chain(
            "an-order", [(f"a-link{word}", f"below-it{word}", blocks.Tone.BAD), ("next", "", blocks.Tone.PLAIN)]
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
    "OverTime": (
        "the-time",
        "1970-01-01 00:00:00 to 00:01:30 UTC",
        "a-course",
        "a-stretch",
        "00:00:30.000 a-moment",
        "nothing is known",
    ),
    "Timeline": ("an-event", "then"),
    "Bars": ("the-counts", "a-day", "3 a-kind", "1 another"),
    "Chain": ("a-link", "below-it", "next"),
    "Lines": ("one-line", "another-line"),
    "Folded": ("a-fold", "what-is-folded"),
}
GROUPS = [
    {"name": "billing", "lag": 5, "positions": [{"lag": 3, "at": {"offset": 7}}, {"lag": None, "at": {"offset": 9}}]}
]
WHOLE = [one for one in RENDERERS if one is not OutputFormat.BRIEF]
"""The formats that render all blocks; the other has the answer alone."""


def written(chosen, some):
    module, _, name = RENDERERS[chosen].partition(":")
    write = getattr(import_module(f"kforensics.render.formats.{module}"), name)
    given = (Input(path="given", kind="broker"),)
    result = Result(
        command="explain", inputs=given, body=type("Body", (), {"files": ()})(), concluded=Conclusion(ANSWER)
    )
    return "".join(write(result, View(width=80), content=lambda _result, _view: some))


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


def rows_of(document, place):
    """The rows of a document as CSV, read again."""
    result = Result(
        command="explain", inputs=(Input(path="given", kind="broker"),), body=None, concluded=Conclusion(ANSWER)
    )
    text = rows.write(result, View(), place=place, source=lambda _result, _view: [json.dumps(document) + "\n"])
    return list(csv.DictReader(io.StringIO("".join(text))))


def test_all_rows_are_there_and_nothing_in_them_is_a_formula():
    one = {
        "input": 0,
        "text": "=cmd()",
        "lacking": None,
        "so": True,
        "words": 'quoted "text", with a comma',
        "ids": [1, 2],
    }
    found = rows_of({"rows": [{"at": at, **one, "citations": [1]} for at in range(10_000)]}, "rows")

    assert 10_000 == len(found)
    assert {
        "at": "9999",
        "input": "given",
        "text": "'=cmd()",
        "lacking": "",
        "so": "yes",
        "words": 'quoted "text", with a comma',
        "ids": "1 2",
    } == found[-1]


@pytest.mark.parametrize(("place", "document"), [("groups.positions", {"groups": GROUPS}), ("*.positions", GROUPS[0])])
def test_a_row_has_the_fields_of_what_it_is_in(place, document):
    found = rows_of(document, place)[:2]

    assert [{"name": "billing", "lag": "3", "at_offset": "7"}, {"name": "billing", "lag": "", "at_offset": "9"}] == [
        {key: value for key, value in one.items() if not key.endswith("_lag")} for one in found
    ]
    assert [{"5"}, {"5"}] == [{value for key, value in one.items() if key.endswith("_lag")} for one in found]


def test_what_holds_no_rows_is_one_and_lists_beside_each_other_are_named():
    found = rows_of(
        {"logs": [{"name": "a", "open": [{"id": 1}], "torn": [{"id": 2}]}, {"name": "b"}]}, "logs.open|torn"
    )

    assert [("a", "open", "1"), ("a", "torn", "2"), ("b", "", "")] == [
        (one["name"], one["row"], one["id"]) for one in found
    ]
