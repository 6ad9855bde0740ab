"""Every page is usable by every reader: headings in order, landmarks and names, contrast, lanes that fit every width."""

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

import kforensics.render.formats
from kforensics.commands.cited import CitedFile
from kforensics.damage import Absent
from kforensics.findings.answers.model import STATES, Answer, State
from kforensics.render.emit import OutputFormat, emit, formats_of
from kforensics.render.formats.lane_picture import COLOURS
from kforensics.render.view import View
from kforensics.words import Prohibition
from tests.builders.fleet import fleet_summary
from tests.builders.incidents import explanation
from tests.builders.pages import audit_page_of, page_of
from tests.builders.results import RESULTS
from tests.render.formats.page_checks import SIGHTS, Tree, colours, complaints, contrast, difference

TEMPLATES = Path(kforensics.render.formats.__file__).parent / "templates"
SCHEMES = colours((TEMPLATES / "page.css").read_text(encoding="utf-8"))
FILES = (
    CitedFile(input=0, path="dir/.log", length=10, sha256="ab" * 32),
    CitedFile(input=1, path=".", length=Absent.UNREADABLE, sha256=Absent.UNREADABLE),
)

ON_PAGE = [(ink, ground) for ink in ("ink", "soft", "link", "bad", "warning", "good") for ground in ("page", "panel")]
ON_TONES = [(ink, f"{tone}-soft") for tone in ("bad", "warning", "good") for ink in ("ink", tone, "link", "soft")]
ON_EPOCHS = [("on-light" if at % 2 else "on-dark", f"c{at}") for at in range(COLOURS)] + [("on-dark", "neutral")]


def incident_page():
    return page_of(explanation(""), FILES, made_ms=1_795_316_400_000)


def calm_page():
    nothing = replace(
        explanation(""), incidents=(), timeline=(), findings=(), problems=(), operations=(), broker_bugs=()
    )
    answer = Answer(state=State.NOTHING_LOST, headline="Nothing that was committed is lost from 9 partitions.")
    return page_of(replace(nothing, conclusion=(answer.headline,)), answer=answer, exit_code=0)


def audit_page():
    answer = Answer(
        state=State.AT_RISK, headline="56 committed records are at risk.", now=(Prohibition("Do not start broker 1."),)
    )
    return audit_page_of(fleet_summary(), answer, made_ms=1_795_316_400_000)


def page_of_shape(shape, scratch):
    return "".join(emit(RESULTS[shape](scratch), OutputFormat.HTML, View(made_ms=1_795_316_400_000)))


PAGES = {"incident": incident_page, "calm": calm_page, "audit": audit_page}
SHAPES_WITH_PAGES = [shape for shape in RESULTS if OutputFormat.HTML in formats_of(shape)]


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wrong_with_the_structure(name):
    page = PAGES[name]()

    assert [] == complaints(page)
    assert len(Tree(page).elements) > 60


@pytest.mark.parametrize("shape", SHAPES_WITH_PAGES)
@pytest.mark.some(8)
def test_nothing_is_wrong_with_the_page_of_any_command(shape, tmp_path):
    page = page_of_shape(shape, tmp_path)

    assert [] == complaints(page)
    assert len(Tree(page).elements) > 20


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("<h2", "<h4", "skips a level"),
        ('id="timeline"', 'id="losses"', "is there twice"),
        ("<main", "<div", "main is there 0 times"),
        ('aria-label="Contents"', "", "nav has no name"),
        ('scope="col"', "", "names no scope"),
        ("left:58.25%", "left:58.25px", "has no place on its lane"),
        ("width:41.75%", "width:81.75%", "leads out of its lane"),
        ("color-scheme: light dark", "color-scheme: light", "policy is not that of its style"),
        ('class="owner"', 'class="owner" style="left:1px"', "which the policy forbids"),
        (' tabindex="0"', "", "can't be reached by keyboard"),
        ("<caption", "<b", "has no caption"),
        ('role="img" aria-label', 'role="img" data-label', "img has no name"),
    ],
)
def test_what_is_wrong_is_found(before, after, complaint):
    page = incident_page()
    assert before in page
    broken = page.replace(before, after)
    if before in {"<main", "<h2", "<caption"}:
        broken = broken.replace(before.replace("<", "</"), after.replace("<", "</"))

    assert any(complaint in one for one in complaints(broken))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("ink", "ground"), [*ON_PAGE, *ON_TONES, *ON_EPOCHS])
def test_words_can_be_read(scheme, ink, ground):
    assert contrast(SCHEMES[scheme][ink], SCHEMES[scheme][ground]) >= 4.5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("mark", ["ink", "bad", "warning", "soft", "neutral"])
def test_marks_and_outlines_can_be_seen(scheme, mark):
    wanted = 3.0 if (scheme, mark) != ("dark", "neutral") else 1.0  # an outline in ink is around it
    assert contrast(SCHEMES[scheme][mark], SCHEMES[scheme]["page"]) >= wanted


@pytest.mark.parametrize("sight", SIGHTS)
def test_leader_epochs_differ_with_every_kind_of_sight(sight):
    palette = [SCHEMES["light"][f"c{at}"] for at in range(COLOURS)]

    assert len(set(palette)) == COLOURS
    assert all(difference(one, other, sight) >= 15 for one, other in combinations(palette, 2))
    # What stands for nothing is not taken for a difference.
    assert difference(palette[0], palette[0], sight) == 0


def test_every_epoch_has_a_label_and_not_a_colour_alone():
    tree = Tree(incident_page())
    drawn = [one for one in tree.all("span") if "epoch" in (one.get("class") or "").split()]
    on_lanes = [one for one in drawn if "track" in (one.parent.get("class") or "").split()]

    assert len(on_lanes) >= 5
    # The run that is lost may cover a whole epoch: then its words name it.
    assert all(re.fullmatch(r"e\d+|", one.text) for one in on_lanes)
    assert all("epoch" in one.parent.get("aria-label") for one in on_lanes)
    assert {"e0", "e1"} <= {one.text for one in drawn}


@pytest.mark.parametrize("state", STATES["explain"])
def test_only_a_calm_page_has_a_tick(state):
    page = page_of(explanation(""), FILES, answer=Answer(state=State(state), headline="It is so."))

    assert ("✓" in page) == (state.is_calm)


def test_each_heading_stays_with_what_it_is_of_when_printed():
    css = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    printed = css[css.index("@media print") :]

    kept = {
        name
        for names in re.findall(r"([\w\s,.-]+)\{ break-after: avoid; \}", printed)
        for name in names.replace(" ", "").split(",")
    }
    whole = re.search(r"\}([^{}]*)\{ break-inside: avoid; \}", printed)
    assert {"h1", "h2", "h3", "caption", ".lead"} <= {name.strip() for name in kept}
    assert whole is not None
    assert {"tr", ".lane", ".snapshot"} <= {name.strip() for name in whole[1].split(",")}
