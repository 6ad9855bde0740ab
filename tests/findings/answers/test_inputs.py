"""What the inputs themselves do to an answer."""

import pytest

from kforensics.damage import Absent
from kforensics.evidence.model import Input
from kforensics.findings.answers.model import Answer, State, with_inputs

HEDGE = "It is not shown that all inputs are of one cluster."


def node(path, broker_id, cluster_id, kind="broker"):
    return Input(path=path, kind=kind, broker_id=broker_id, cluster_id=cluster_id, kafka_version_hint=Absent.UNKNOWN)


@pytest.mark.parametrize("command", ["diff", "explain", "metadata"])
@pytest.mark.parametrize(
    ("earlier", "is_shown"), [("A", True), (Absent.NOT_WRITTEN, False)], ids=["named", "without cluster.id"]
)
def test_the_headline_says_that_the_inputs_need_not_be_of_one_cluster(command, earlier, is_shown):
    inputs = [node("now/1", 1, "A"), node("before/2", 2, earlier, "snapshot-before")]
    state = State.NOTHING_LOST if command == "explain" else State.UNKNOWN

    answer = with_inputs(command, Answer(state=state, headline="Two records are lost."), inputs)

    assert answer.headline == ("Two records are lost." if is_shown else f"Two records are lost. {HEDGE}")
    assert is_shown == (not answer.unknown)


def test_a_command_that_takes_no_inputs_together_has_no_such_hedge():
    inputs = [node("1", 1, "A"), node("2", 2, Absent.NOT_WRITTEN)]

    assert with_inputs("ls", Answer(state=State.COMPLETE, headline="2 nodes."), inputs).headline == "2 nodes."
