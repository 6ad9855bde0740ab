"""A result concludes when its content has been read, and its exit code follows from its state."""

import pytest

from kforensics.commands.result import Conclusion, Result
from kforensics.evidence.model import Problem
from kforensics.findings.answers.model import Answer, State
from kforensics.findings.model import Severity
from tests.builders.findings import finding

PROBLEM = Problem(input=0, path="x", message="gone")
WARNING = finding("KF504", severity=Severity.WARNING, statement="x")
NOTE = finding("KF505", severity=Severity.NOTE, statement="x")


def of(state, **more):
    return Result(
        command="verify", body=None, concluded=Conclusion(answer=Answer(state=state, headline="It is so."), **more)
    )


@pytest.mark.parametrize(
    ("state", "more", "code"),
    [
        (State.SOUND, {}, 0),
        (State.SOUND, {"findings": (NOTE,)}, 0),
        (State.SOUND, {"findings": (NOTE, WARNING)}, 1),
        (State.SOUND, {"problems": (PROBLEM,)}, 3),
        (State.UNKNOWN, {"findings": (WARNING,)}, 3),
        (State.DAMAGED, {"problems": (PROBLEM,)}, 1),
    ],
)
def test_the_exit_code_follows_from_the_state(state, more, code):
    assert code == of(state, **more).exit_code


def test_a_conclusion_is_asked_for_when_it_is_needed():
    asked = []

    def conclude():
        asked.append(1)
        return Conclusion(answer=Answer(state=State.COMPLETE, headline="It is so."), findings=(NOTE,))

    result = Result(command="dump", body=None, concluded=conclude)

    assert asked == []
    assert ("dump", (NOTE,)) == (result.shape, result.findings)
    assert asked == [1]
