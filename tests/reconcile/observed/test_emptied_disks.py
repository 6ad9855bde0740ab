"""A start that makes logs anew which the broker had before: its log directory was emptied, whatever stands in meta.properties."""

import pytest

from kforensics.reconcile.observed.broker_lives import broker_lives
from kforensics.reconcile.observed.broker_log_facts import facts_from_logs
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.observed.leadership import Risk, account_of
from tests.builders.history import PARTITION, logged_events

CREATED = "Created log for partition {} in /d/{} with properties {{}} (kafka.log.LogManager)"
MADE, OTHER_MADE = CREATED.format("t-0", "t-0"), CREATED.format("u-0", "u-0")
LOADED = (
    "Completed load of Log(dir=/d/{0}, topic={1}, partition=0, highWatermark=0, lastStableOffset=0, logStartOffset=0, logEndOffset=9) with 1 segments in 7ms"
    " (1/1 loaded in /d) (kafka.log.LogManager)"
)
STARTED = "[KafkaServer id=1] started (kafka.server.KafkaServer)"
DISCARDED = "Log for partition t-0 is renamed to /d/t-0.abc-delete and is scheduled for deletion"
STRAY = "Log in /d/t-0 marked stray and renamed to /d/t-0.abc-stray"
LEADS = (
    "[Broker id=1] Leader t-0 starts at leader epoch {} from offset 0 with high watermark 0 ISR [1] addingReplicas [] removingReplicas []."
    " Previous leader epoch was {}."
)


def new_disks(*lines):
    return len(broker_lives(logged_events(*lines))[1].new_disks)


@pytest.mark.parametrize(
    ("between", "found"),
    [
        ((STARTED,), 1),
        # Its disk holds another log still: this one alone is gone, by what no line says.
        ((STARTED, LOADED.format("u-0", "u")), 0),
        ((DISCARDED, STARTED), 0),
        ((STARTED, STRAY), 0),
        (("Deletion of topic t successfully completed", STARTED), 0),
    ],
)
def test_a_log_that_is_made_twice_shows_an_emptied_directory_where_no_line_removed_it(between, found):
    assert found == new_disks(STARTED, MADE, OTHER_MADE, *between, MADE)
    assert not new_disks(STARTED, MADE, *between, OTHER_MADE)


def test_a_leader_with_an_emptied_directory_led_again_without_its_log():
    lines = (STARTED, MADE, LEADS.format(0, -1), LEADS.format(2, 0), MADE, STARTED, LEADS.format(3, 2))
    account = account_of(PARTITION, "", facts_from_logs(logged_events(*lines), ClusterFacts()))

    assert (3, Risk.OTHER_DISK) in [(one.state.leader_epoch, one.risk) for one in account.risky]
