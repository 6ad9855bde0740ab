"""A leader logs the ISR that it asks for; whether it got it shows in what follows."""

import pytest

from kforensics.reconcile.observed.logged_leaderships import logged_leaderships
from tests.builders.history import PARTITION, logged_events, shifted

FIRST = "Changed partition t-0 from NewPartition to OnlinePartition with state LeaderAndIsr(leader=1, leaderEpoch=0, isr=List(1, 2, 3), controllerEpoch=1, zkVersion=0)"
LATER = "Changed partition t-0 from OnlinePartition to OnlinePartition with state LeaderAndIsr(leader={}, leaderEpoch=1, isr=List({}), controllerEpoch=1, zkVersion=1)"
ASKED = "[Partition t-0 broker=1] Shrinking ISR from 1,2,3 to 1. Leader: (highWatermark: 20, endOffset: 26). Out of sync replicas: (brokerId: 2, endOffset: 20)."
OLD = "Partition [t,0] on broker 1: Shrinking ISR for partition [t,0] from 1,2,3 to 1"
REFUSED = "Partition [t,0] on broker 1: Cached zkVersion [0] not equal to that in zookeeper, skip updating ISR"
REFUSED_24 = "[Partition t-0 broker=1] Cached zkVersion 0 not equal to that in zookeeper, skip updating ISR"
PENDING = "[Partition t-0 broker=1] Failed to {} to PendingShrinkIsr(isr=Set(1, 2, 3), outOfSyncReplicaIds=Set(2, 3)) due to unexpected UNKNOWN_SERVER_ERROR. Retrying."
GIVEN = "[Partition t-0 broker=1] ISR updated to 1 and version updated to [2]"
OTHER = "[Partition u-0 broker=1] Cached zkVersion [0] not equal to that in zookeeper, skip updating ISR"
VERSION = "Kafka version: {} (org.apache.kafka.common.utils.AppInfoParser)"
ALL, ONE = {1, 2, 3}, {1}


@pytest.mark.parametrize(
    ("lines", "isrs"),
    [
        ((ASKED,), [ALL, ONE]),
        ((OLD, REFUSED), [ALL]),
        ((ASKED, REFUSED_24), [ALL]),
        ((ASKED, OTHER), [ALL, ONE]),
        ((ASKED, PENDING.format("update ISR")), [ALL]),
        ((ASKED, PENDING.format("alter partition")), [ALL]),
        ((ASKED, PENDING.format("update ISR"), GIVEN), [ALL, ONE]),
        # The leader asks for the same again, and only then gets it.
        ((OLD, REFUSED, OLD), [ALL, ONE]),
        ((OLD, OLD, REFUSED), [ALL]),
        # Later versions log what they were given.
        ((VERSION.format("2.8.1"), ASKED), [ALL]),
        ((VERSION.format("2.8.1"), ASKED, GIVEN), [ALL, ONE]),
        ((VERSION.format("2.0.1"), ASKED), [ALL, ONE]),
        # The controller elects from the ISR, and only an unclean election leaves one that was not in it.
        ((ASKED, LATER.format(2, "2, 3")), [ALL, {2, 3}]),
        ((ASKED, LATER.format(2, "2")), [ALL, ONE, {2}]),
        ((ASKED, LATER.format(1, "1")), [ALL, ONE, ONE]),
    ],
)
def test_an_isr_counts_only_where_the_leader_got_it(lines, isrs):
    states = logged_leaderships(logged_events(FIRST, *lines))[PARTITION]

    assert [set(state.isr) for state in states] == isrs
    assert [state.unclean for state in states] == [isr == {2} for isr in isrs]


@pytest.mark.parametrize(("seconds", "isrs"), [(59, [ALL]), (61, [ALL, ONE])])
def test_a_leader_that_asks_again_much_later_may_have_led_again_meanwhile(seconds, isrs):
    first, *asked = logged_events(FIRST, OLD, OLD, REFUSED)
    events = [first, asked[0], *(shifted(event, seconds * 1_000 - 1_000) for event in asked[1:])]

    assert [set(state.isr) for state in logged_leaderships(events)[PARTITION]] == isrs
