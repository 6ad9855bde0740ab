"""The first lines of every screen."""

from kforensics.findings.answers.model import Answer, State
from kforensics.render.json.document import plain_answer
from kforensics.render.text.answer import MOST_LINES, answer_lines, brief_lines
from kforensics.render.text.screen import Style

ANSWER = Answer(
    state=State.LOST,
    headline="43 committed records of orders-0 were lost to an unclean leader election.",
    now=("Copy broker-1 first: cp -a broker-1 /safe", "Do not start broker 1."),
    tell=("Producers with acks=all.",),
    later=("Set unclean.leader.election.enable=false.",),
    unknown=("Whether group billing read them: give __consumer_offsets.",),
)


def shown(answer, **options):
    return list(answer_lines(answer, command="explain", width=80, **options))


def test_the_headline_is_the_first_line_and_every_section_is_named_once():
    lines = [line.plain for line in shown(ANSWER)]

    assert lines[0] == ANSWER.headline
    assert [line[:13].strip() for line in lines[1:]] == ["NOW", "", "WHO TO TELL", "LATER", "CAN'T TELL"]
    assert all(len(line) <= 80 for line in lines)


def test_only_a_calm_state_is_green():
    assert shown(ANSWER)[0].style == Style.ANSWER_BAD
    assert shown(Answer(state=State.UNKNOWN, headline="x"))[0].style == Style.ANSWER_WARNING
    assert shown(Answer(state=State.NOTHING_LOST, headline="x"))[0].style == Style.ANSWER_GOOD


def test_a_long_answer_is_shortened_and_says_by_how_much():
    lines = [line.plain for line in shown(Answer(state=State.LOST, headline="x", now=("do this",) * 40))]

    assert len(lines) == MOST_LINES
    assert "30 more lines" in lines[-1]


def test_what_evidence_named_steers_no_terminal():
    lines = [line.plain for line in shown(Answer(state=State.LOST, headline="topic \x1b[2J lost"))]

    assert "\x1b" not in "".join(lines)


def test_the_brief_form_has_five_lines_at_most():
    lines = brief_lines(ANSWER)

    assert len(lines) == 5
    assert lines[0] == f"**{ANSWER.headline}**"
    assert lines[1].endswith("(+1 more)")


def test_the_document_has_every_field():
    assert list(plain_answer(ANSWER)) == ["state", "headline", "now", "tell", "later", "unknown"]
    assert plain_answer(ANSWER)["state"] == "lost"
