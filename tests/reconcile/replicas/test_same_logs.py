"""Replicas that hold the same log are loaded once and judged at first sight, and as every other partition would be."""

from dataclasses import dataclass
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Absent
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.logs.loaded_log import load_log
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.replicas import partition, what_if
from tests.builders.history import leadership
from tests.builders.logs import batch, replica
from tests.builders.reports import report_on

_JUDGE = partition.PartitionJudge
_CHOICES = what_if.LeaderChoices


@dataclass(frozen=True)
class Facts(ClusterFacts):
    states: tuple = ()

    def leaderships(self, partition, topic_id):
        return self.states


@st.composite
def histories(draw):
    """Two or three replicas, most of them of the same batches, and what is known of their leaders."""
    starts = sorted(draw(st.sets(st.integers(1, 60), max_size=5)))
    raises = draw(st.sets(st.sampled_from(starts))) if starts else set()
    batches, epoch = [], 0
    for first, end in zip((0, *starts), (*starts, 61), strict=True):
        epoch += first in raises
        batches.append(batch(first, end - 1, epoch))
    replicas = [draw(_copies(broker, batches)) for broker in range(1, draw(st.integers(2, 3)) + 1)]
    isr = draw(st.sets(st.integers(1, 3)))
    states = (leadership(draw(st.integers(1, 3)), draw(st.integers(0, 4)), isr),)
    return replicas, Facts(states=draw(st.sampled_from(((), states))))


@st.composite
def _copies(draw, broker, batches):
    held = batches[: draw(st.sampled_from((len(batches), len(batches), len(batches), len(batches) - 1, 0)))]
    if held and draw(st.integers(0, 4)) == 0:
        first, last, epoch = held[-1][:3]
        held = [*held[:-1], batch(first, last, epoch + draw(st.integers(0, 1)), crc=7)]
    return replica(
        broker,
        held,
        checkpoint=draw(st.sampled_from((None, None, None, ((0, 0),), ()))),
        high_watermark=draw(st.sampled_from((None, 0, 30, 61, 70))),
        log_start=draw(st.sampled_from((None, None, 0, 5))),
        cleaned=draw(st.sampled_from((None, None, None, 40))),
        clean=draw(st.booleans()),
        topic_id=draw(st.sampled_from((Absent.NOT_WRITTEN, "a", "a", "b"))),
        state=draw(st.sampled_from(("live", "live", "live", "live", "future", "stray"))),
    )


@given(
    histories(),
    st.sampled_from((None, None, *ProtocolName)),
    st.sampled_from(((), (1, 2), (1, 2, 3))),
    st.sampled_from((None, 1)),
)
def test_the_short_way_says_what_the_long_one_says(history, protocol, stated, leader):
    replicas, facts = history

    def judged():
        return report_on(
            replicas,
            facts=facts,
            wanted_protocol=protocol,
            stated_replicas=stated,
            wanted_leader=leader,
        )

    short = judged()
    one_by_one = patch.object(partition, "load_logs", lambda replicas: [load_log(one) for one in replicas])
    with one_by_one, patch.object(_CHOICES, "nothing_to_lose", lambda _: None):
        long = judged()

    assert long == short


def test_equal_logs_are_not_compared_as_others_are():
    logs = [replica(broker, [batch(0, 59, 0), batch(60, 84, 1)], high_watermark=broker) for broker in (1, 2, 3)]
    never = AssertionError("the long way")

    with (
        patch.object(_CHOICES, "what_if", side_effect=never),
        patch.object(_JUDGE, "_sole_holders", side_effect=never),
    ):
        report = report_on(logs, stated_replicas=(1, 2, 3))

    assert [1, 2, 3] == [one.leader.replica.broker_id for one in report.what_if]
    assert {(0, 0)} == {(one.lost_certain, one.lost_possible) for one in report.what_if}
    assert () == report.sole_holders
