"""The states of every command, and the exit code that follows from each."""

import pytest

from kforensics.evidence.model import Problem
from kforensics.findings.answers.graver import with_findings
from kforensics.findings.answers.model import STATES, Answer, State, exit_code, worst_state
from kforensics.findings.model import Severity
from tests.builders.findings import finding

PROBLEM = Problem(input=0, path="orders-0/00000000000000000000.log", message="Permission denied")


def test_every_command_can_be_unsure_and_only_unsure_exits_with_3():
    for command, states in STATES.items():
        assert [state for state, code in states.items() if code == 3] == (
            [State.UNKNOWN] if State.UNKNOWN in states else []
        ), command


@pytest.mark.parametrize("command", STATES)
def test_no_calm_state_is_worse_than_unknown(command):
    states = list(STATES[command])

    assert all(states.index(state) > states.index(State.UNKNOWN) for state in states if state.is_calm)
    assert all(STATES[command][state] == 0 for state in states if state.is_calm)


def test_the_worst_state_is_the_one_listed_first():
    assert worst_state([State.NOTHING_LOST, State.UNKNOWN, State.MAYBE_LOST]) is State.MAYBE_LOST
    assert worst_state([State.AGREE, State.BEHIND]) is State.BEHIND
    assert worst_state([]) is None


def test_a_problem_hides_no_worse_state_and_leaves_nothing_calm():
    assert exit_code("explain", Answer(state=State.LOST, headline=""), (), (PROBLEM,)) == 1
    assert exit_code("explain", Answer(state=State.NOTHING_LOST, headline=""), (), (PROBLEM,)) == 3
    assert exit_code("explain", Answer(state=State.NOTHING_LOST, headline=""), (), ()) == 0


def test_a_warning_beside_a_calm_state_is_no_calm_exit():
    found = [
        finding("KF101", severity=severity, statement="a batch fails its checksum")
        for severity in (Severity.NOTE, Severity.WARNING)
    ]

    assert exit_code("verify", Answer(state=State.SOUND, headline=""), found[:1], ()) == 0
    assert exit_code("verify", Answer(state=State.SOUND, headline=""), found, ()) == 1


@pytest.mark.parametrize(
    ("state", "severity", "headline"),
    [
        (State.AGREE, Severity.ERROR, "All agree. it is so. 1 more such finding, below."),
        (State.AGREE, Severity.NOTE, "All agree."),
        (State.DIVERGED, Severity.ERROR, "All agree."),
    ],
)
def test_a_calm_headline_names_what_alone_gives_the_exit_code(state, severity, headline):
    found = tuple(finding("KF206", severity=severity, statement=words) for words in ("it is so", "and so"))

    assert headline == with_findings("diff", Answer(state=state, headline="All agree."), found).headline
