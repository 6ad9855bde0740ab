"""The first lines of every screen."""

import pickle

from kforensics.evidence.plain import to_plain
from kforensics.findings.answers.model import Answer, State
from kforensics.render.formats.markdown import brief_lines
from kforensics.render.screen import MOST_LINES, Style, answer_lines
from kforensics.words import Step

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
    lines = [line.plain for line in shown(Answer(state=State.LOST, headline="x", unknown=("which one",) * 40))]

    assert len(lines) == MOST_LINES
    assert "29 more points" in lines[-1]


def test_what_to_do_now_is_never_cut():
    lines = [
        line.plain for line in shown(Answer(state=State.LOST, headline="x", now=("do this",) * 40, tell=("y", "z")))
    ]

    assert sum(line.endswith("do this") for line in lines) == 40
    assert "2 more points" in lines[-1]


def test_the_first_open_question_is_never_cut_and_no_sentence_is_cut_in_two():
    long = "a question of which each half would say something else " * 4
    answer = Answer(state=State.LOST, headline="x", now=("do this",) * 11, tell=("y",), unknown=(long, "z"))
    text = " ".join(" ".join(line.plain for line in shown(answer)).split())

    assert f"CAN'T TELL {long}".strip() in text
    assert text.endswith("… 2 more points of this answer: -v shows all.")
    assert "WHO TO TELL" not in text


def test_a_first_answer_keeps_of_an_open_question_what_settles_it():
    question = f"Whether it was killed. {'Evidence for it. ' * 40}Its journal settles it."
    answer = Answer(state=State.LOST, headline="x", now=("do this",) * 5, unknown=(question,))
    first, other = (
        " ".join(" ".join(line.plain for line in answer_lines(answer, command=name, width=80)).split())
        for name in ("triage", "explain")
    )

    assert "Whether it was killed. … Its journal settles it." in first
    assert first.count("do this") == 5
    assert question in other


def test_a_command_stands_whole_on_a_line_of_its_own():
    command = f"cp -a {'d' * 100} {'e' * 100}"
    step = Step("Copy the directory first", (command,))
    lines = [line.plain for line in shown(Answer(state=State.LOST, headline="x", now=(step,)))]

    assert lines[1:] == ["NOW          Copy the directory first:", f"             $ {command}"]
    assert to_plain(Answer(state=State.LOST, headline="x", now=(step,)))["now"] == [
        f"Copy the directory first: {command}"
    ]
    assert pickle.loads(pickle.dumps(step)).commands == (command,)


def test_what_evidence_named_steers_no_terminal():
    lines = [line.plain for line in shown(Answer(state=State.LOST, headline="topic \x1b[2J lost"))]

    assert "\x1b" not in "".join(lines)


def test_the_brief_form_has_five_lines_at_most():
    lines = brief_lines(ANSWER)

    assert len(lines) == 5
    assert lines[0] == f"**{ANSWER.headline}**"
    assert lines[1].endswith("(+1 more)")


def test_the_document_has_every_field():
    assert list(to_plain(ANSWER)) == ["state", "headline", "now", "tell", "later", "unknown"]
    assert to_plain(ANSWER)["state"] == "lost"
