"""A metadata log that was compacted names no election from before its snapshot; the controller's own lines do."""

import pytest

from kforensics.reconcile.observed.broker_log_facts import facts_from_logs
from kforensics.reconcile.observed.facts import ClusterFacts
from tests.builders.history import PARTITION, leadership, logged_events, shifted

ID, OTHER = "Zq8KIhTgQRGCODuoiRsCKA", "33oKttVxWYgQiCwNhCh8aA"
LED = (
    f"[Broker id=1] Leader t-0 with topic id Some({ID}) starts at leader epoch 0 from offset 0 with partition epoch 0, high watermark 0, ISR [1,2],"
    " adding replicas [] and removing replicas [] . Previous leader Some(1) and previous leader epoch was 0."
)
UNCLEAN = (
    f"[QuorumController id=3] UNCLEAN partition change for t-0 with topic ID {ID}: isr: [1] -> [2], leader: -1 -> 2,"
    " leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 1 -> 2, partitionEpoch: 3 -> 4"
)
CLEAN = (
    f"[Broker id=2] Leader t-0 with topic id Some({ID}) starts at leader epoch 2 from offset 0 with partition epoch 0, high watermark 0, ISR [2],"
    " adding replicas [] and removing replicas [] . Previous leader Some(1) and previous leader epoch was 1."
)


@pytest.mark.parametrize(
    ("line", "topic_id", "recorded", "found"),
    [
        (UNCLEAN, ID, leadership(2, 2), [(1, 0, False), (2, 2, True)]),
        (UNCLEAN, ID, leadership(2, 1), []),
        (UNCLEAN, ID, leadership(2, 2, time_ms=1), []),
        (UNCLEAN, OTHER, leadership(2, 2), []),
        # The lines of brokers alone do not show who was in sync.
        (CLEAN, ID, leadership(2, 2), []),
    ],
)
def test_an_election_that_the_controller_calls_unclean_is_known(line, topic_id, recorded, found):
    (led,) = logged_events(LED)
    (elected,) = logged_events(line, node=3)
    assert isinstance(led.time_ms, int)
    first = recorded if recorded.time_ms == 1 else leadership(2, recorded.leader_epoch, time_ms=led.time_ms + 9_000)
    facts = facts_from_logs([led, shifted(elected, 1_000)], ClusterFacts())

    before = facts.unclean_elections_before(first, PARTITION, topic_id)

    assert found == [(one.leader, one.leader_epoch, one.unclean) for one in before]
    assert not before or before[0].isr == frozenset({1})
