"""Partitions on the disks of logs that end before offsets which lines of their brokers name."""

from types import SimpleNamespace

import pytest

from kforensics.case.comparison import PartitionResult
from kforensics.commands.comparing import with_shortened_logs
from kforensics.findings.answers.model import State
from kforensics.findings.concern import Concern, ConcernKind, JudgedPartition
from kforensics.reconcile.replicas.report import Verdict
from kforensics.units import TopicPartition


def result(name, *concerns):
    partition = TopicPartition(name, 0)
    judged = JudgedPartition(partition, concerns)
    return PartitionResult(partition, Verdict.CONSISTENT, judged, None, None, (), (), 0)


def place(number, log_dir="", state="live"):
    return SimpleNamespace(
        state=SimpleNamespace(input=number, log_dir=log_dir, broker_id=number + 1),
        directory_state=state,
        is_live=state == "live",
    )


ENDED = result("ended", Concern(state=State.UNKNOWN, kind=ConcernKind.LOGGED_END, inputs=(0,)))
ON_BOTH = (TopicPartition("ended", 0), (place(0, "d1"), place(1)))


@pytest.mark.parametrize(
    ("concerns", "places", "state"),
    [
        ((), (place(0, "d1"), place(2)), State.UNKNOWN),
        ((), (place(1), place(2)), State.AGREE),  # broker 2 wrote no line that its log contradicts
        ((), (place(0, "d2"), place(2)), State.AGREE),  # another disk of the same broker
        ((), (place(0, "d1", "future"), place(2)), State.AGREE),
        ((Concern(state=State.SAME_ENDS, kind=ConcernKind.ENDS),), (place(0, "d1"),), State.UNKNOWN),
        ((Concern(state=State.BEHIND, kind=ConcernKind.BEHIND),), (place(0, "d1"), place(2)), State.BEHIND),
        ((Concern(state=State.BEHIND, kind=ConcernKind.BEHIND),), (place(0, "d1"),), State.UNKNOWN),
        ((Concern(state=State.DIVERGED, kind=ConcernKind.DIVERGENCE),), (place(0, "d1"),), State.DIVERGED),
        ((Concern(state=State.AGREE, kind=ConcernKind.DELETED),), (place(0, "d1"),), State.AGREE),
    ],
)
def test_only_what_is_calm_and_on_that_disk_is_in_doubt(concerns, places, state):
    other = result("other", *concerns)

    first, second = with_shortened_logs([ENDED, other], [ON_BOTH, (TopicPartition("other", 0), places)])

    assert ENDED == first
    assert state is second.state
    if second.state is State.UNKNOWN:
        assert ("broker 1",) == second.judged.concerns[-1].owners
    assert [other] == with_shortened_logs([other], [(TopicPartition("other", 0), places)])
