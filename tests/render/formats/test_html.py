"""Pages: hostile texts change nothing in them but texts, and the same values give the same bytes."""

import re
from dataclasses import replace
from importlib.resources import files

import pytest

from kforensics.commands.cited import CitedFile
from kforensics.damage import Absent
from kforensics.findings.answers.model import Answer, State
from kforensics.render.blocks import Lanes, Prose
from kforensics.render.formats.lane_picture import Places, draw, ticks
from kforensics.render.frame import References
from kforensics.render.lanes import lane_words
from kforensics.render.views.incident import MOST_LANES, figure_of
from kforensics.words import Prohibition
from tests.builders.fleet import fleet_summary
from tests.builders.incidents import explanation
from tests.builders.pages import audit_page_of, outline, page_of

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><style>*{display:none}</style>",
    "</title></head><body onload=alert(1)>",
    "javascript:alert(1)",
    "<!-- --><svg/onload=alert(1)>",
    "&lt;script&gt;&#x3c;img&#62;",
    "{{ 7 * 7 }}{% raw %}",
    "]]><![CDATA[<a href=x>",
    "\x00\x1b[2J\u202eevil\u2028\n",
    "\udcff\ud800 \\ back",
]


ANCHOR = re.compile(r"#?partition[-.][A-Za-z0-9._-]+")


def without_anchors(elements):
    """The elements with one name for every anchor of a partition: it has the partition's name where that is plain, else a number."""
    return [
        element
        if isinstance(element, str)
        else (
            element[0],
            [(name, "partition" if value and ANCHOR.fullmatch(value) else value) for name, value in element[1]],
        )
        for element in elements
    ]


def page(word, **options):
    files = (
        CitedFile(input=0, path=f"dir/{word}.log", length=10, sha256="ab" * 32),
        CitedFile(input=1, path=".", length=Absent.UNREADABLE, sha256=Absent.UNREADABLE),
    )
    return page_of(explanation(word), files, **options)


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_change_no_element_and_no_attribute(hostile):
    harmless, attacked = outline(page("abc")), outline(page(hostile))

    assert without_anchors(harmless.elements) == without_anchors(attacked.elements)
    assert len(harmless.elements) > 200
    assert [] == attacked.others
    assert "".join(attacked.words).count("alert(1)") >= (12 if "alert(1)" in hostile else 0)


def test_no_character_steers_the_reader():
    text = page("\x00\x1b[2J\u202e\u2066\u2028\udcff")

    assert text.isprintable() or not {c for c in text if not c.isprintable()} - {"\n"}
    text.encode()


def test_there_is_one_script_to_run_and_nothing_to_load():
    parsed = outline(page("abc"))
    tags = {element[0] for element in parsed.elements if isinstance(element, tuple)}
    links = [
        value
        for element in parsed.elements
        if isinstance(element, tuple)
        for name, value in element[1]
        if name == "href"
    ]

    assert not tags & {"link", "img", "iframe", "object", "embed", "form", "base", "use", "image"}
    assert [("script", [])] == [one for one in parsed.elements if one[0] == "script"]
    assert all(link.startswith("#") for link in links)
    policy = next(
        dict(attributes)["content"]
        for tag, attributes in (one for one in parsed.elements if isinstance(one, tuple))
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attributes
    )
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; script-src 'sha256-[A-Za-z0-9+/]{43}='", policy
    )
    assert "url(http" not in page("abc")
    assert not any(
        name.startswith("on") for element in parsed.elements if isinstance(element, tuple) for name, _ in element[1]
    )


def test_every_link_leads_somewhere_and_ids_are_unique():
    elements = [element for element in outline(page("abc")).elements if isinstance(element, tuple)]
    ids = [value for _, attributes in elements for name, value in attributes if name == "id"]
    links = [value[1:] for _, attributes in elements for name, value in attributes if name == "href"]

    assert len(ids) == len(set(ids))
    assert set(links) <= set(ids)
    assert {"file-1", "file-2", "losses", "timeline"} <= set(links)


def test_elements_are_closed_in_order():
    void = {"meta", "br", "rect", "path", "circle"}
    stack = []
    for element in outline(page("abc")).elements:
        if isinstance(element, tuple):
            if element[0] not in void:
                stack.append(element[0])
        elif element[1:] not in void:
            assert stack.pop() == element[1:]
    assert [] == stack


def test_the_same_values_give_the_same_bytes():
    assert page("abc") == page("abc")


def test_bugs_operations_and_open_questions_have_sections_of_their_own():
    words = " ".join(" ".join(outline(page("")).words).split())
    headings = (
        "Requested operations",
        "Known bugs of Kafka",
        "Replicas that stay different",
        "Open questions",
        "Findings",
    )

    places = [words.rindex(heading) for heading in headings]
    assert sorted(places) == places
    assert "KAFKA-13315" in words[places[1] : places[2]]
    assert "moved" in words[places[0] : places[1]]


def test_verdict_and_advice_come_first():
    words = " ".join(" ".join(outline(page("")).words).split())

    assert words.index("Committed records are lost") < words.index("43 records are lost from topic")
    assert (
        words.index("What not to do")
        < words.index("Do not start")
        < words.index("What to do")
        < words.index("Ledger of losses")
    )
    assert "as the broker did" in words
    assert "ab" * 32 in words
    assert "not readable" in words
    assert "pseudonyms" not in words
    assert "pseudonyms" in page("", is_redacted=True)


def test_a_calm_explanation_makes_a_calm_page():
    calm = replace(
        explanation(""),
        timeline=(),
        incidents=(),
        findings=(),
        problems=(),
        advice=(),
        missing=(),
        notes=(),
        clocks=(),
        answer=Answer(state=State.NOTHING_LOST, headline="Nothing that was committed is lost from 9 partitions."),
        conclusion=("Nothing that was committed is missing in 9 partitions.",),
    )

    text = page_of(calm, exit_code=0)

    assert "No committed record is lost" in text
    assert "tone-good" in text
    assert "Ledger of losses" not in text
    assert "<figure" not in text


def test_the_answer_of_a_command_heads_its_page():
    answer = Answer(
        state=State.UNKNOWN,
        headline="Neither shown nor excluded.",
        now=(Prohibition("Do not start broker 1."), "Copy its directory."),
        unknown=("Who led in epoch 3.",),
    )

    text = page("", answer=answer)

    assert '<h1 id="answer">Neither shown nor excluded.</h1>' in text
    assert "tone-warning" in text
    assert "✓</span>" not in text
    assert all(words in text for words in ("Do not start broker 1.", "Copy its directory.", "Who led in epoch 3."))


def figure(incident):
    """The lanes of an incident, and what is said beside them."""
    inputs = explanation("").inputs
    found = list(figure_of(incident, inputs, References(inputs)))
    (lanes,) = (one for one in found if isinstance(one, Lanes))
    return lanes, [one.text for one in found if isinstance(one, Prose)]


def test_pictures_say_in_words_what_they_show():
    drawn, beside = figure(explanation("").incidents[0])

    assert ["Before: input", "Now"] == [name for name, _ in drawn.moments]
    before = drawn.moments[0][1][0]
    assert "the leader lacks 60 to 102 (committed)" in lane_words(before)
    assert "end 103, HW 60, leader lacks 43" == before.note
    assert [((60, 102), "certain")] == [((run.first, run.last), kind) for run, kind in before.lost]
    assert [] == beside
    picture, _ = draw(drawn, places := Places(), str)
    assert 'class="lost certain ' in picture
    assert "left:58.25%;width:41.75%" in places.rules()


def test_every_snapshot_is_drawn_even_where_nothing_changed():
    incident = explanation("").incidents[0]
    first = incident.logs[0]
    same = [first._replace(rank=rank, is_final=False) for rank in range(5)]
    now = [one._replace(rank=5) for one in incident.logs[1:]]

    drawn, _ = figure(replace(incident, logs=(*same, *now)))

    assert [1, 1, 1, 1, 1, 2] == [len(lanes) for _, lanes in drawn.moments]


def test_of_too_many_logs_those_of_now_are_drawn():
    incident = explanation("").incidents[0]
    many = [incident.logs[0]._replace(rank=rank, is_final=False) for rank in range(MOST_LANES + 10)]
    now = [one._replace(rank=MOST_LANES + 10) for one in incident.logs[1:]]

    drawn, beside = figure(replace(incident, logs=(*many, *now)))

    assert ["12 older copies are not drawn."] == beside
    assert "Now" == drawn.moments[-1][0]
    assert MOST_LANES == sum(len(lanes) for _, lanes in drawn.moments)


def test_an_election_is_marked_where_its_epoch_begins_with_its_time_on_the_log_of_its_leader():
    drawn, _ = figure(explanation("").incidents[0])
    now = {lane.name: lane for lane in drawn.moments[-1][1]}
    elected, other = now["broker 1"], now["broker 3 (state)"]

    assert [(0, False), (60, True)] == [(one.offset, one.is_unclean) for one in other.elections]
    assert ["", ""] == [one.time for one in other.elections]
    assert ["", "06:40:07"] == [one.time for one in elected.elections if one.time or not one.offset]
    assert ["e0", "e1"] == [f"e{term.epoch}" for term in drawn.terms]
    assert "broker 1 becomes leader by unclean election, the ISR was [2]" == drawn.terms[1].words
    picture, kinds = draw(drawn, Places(), str)
    assert 2 == len(set(kinds.values()))
    assert 1 == picture.count("<span>06:40:07</span>")
    # An epoch of which no election is known gets no mark, and the list says so.
    unknown, _ = figure(replace(explanation("").incidents[0], account=None))
    assert not any(lane.elections for _, lanes in unknown.moments for lane in lanes)
    assert {"no input shows who led"} == {term.words for term in unknown.terms}


@pytest.mark.parametrize(("first", "last"), [(0, 1), (0, 103), (59, 79), (0, 2**63 - 1), (10**12, 10**12 + 7)])
def test_ticks_are_few_and_in_order(first, last):
    marks = ticks(first, last)

    assert marks == sorted(set(marks))
    assert (first, last) == (marks[0], marks[-1])
    assert len(marks) <= 9


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_change_nothing_in_the_page_of_an_audit(hostile):
    def parsed(word):
        answer = Answer(
            state=State.AT_RISK, headline=f"headline{word}", now=(Prohibition(f"Do not {word}"), word), unknown=(word,)
        )
        return outline(audit_page_of(fleet_summary(word), answer))

    harmless, attacked = parsed("abc"), parsed(hostile)

    assert harmless.elements == attacked.elements
    assert len(harmless.elements) > 100
    assert [] == attacked.others


def test_the_script_writes_no_markup_and_makes_patterns_of_names_alone():
    script = files("kforensics.render.formats").joinpath("templates/page.js").read_text(encoding="utf-8")

    assert len(script) < 7_000
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(|fetch|XMLHttp|import\b", script
    )
    assert 1 == script.count("new RegExp")
    assert r"/^[\w.-]+-\d+$/.test(one.textContent)" in script
    assert r"if (/^[\w.-]+$/.test(name)) topics.add(name)" in script


def test_a_headline_does_not_begin_a_line_with_the_mark_behind_a_name():
    shown = page_of(
        replace(explanation(""), answer=Answer(state=State.LOST, headline="Lost of t-0, u-1; v-2 is whole."))
    )

    assert '<span class="whole">t-0,</span> <span class="whole">u-1;</span> <span class="whole">v-2</span> is' in shown
