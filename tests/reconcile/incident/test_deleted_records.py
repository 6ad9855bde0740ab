"""What a client had deleted is not lost where an unclean election takes the leader's log with it."""

from dataclasses import replace

import pytest

from kforensics.damage import Absent
from kforensics.reconcile.history.losses import LostBatch
from kforensics.reconcile.incident.logged_losses import DeletedRecords, DeletionRequest, deletion_requests
from kforensics.units import OffsetRange, TopicPartition
from tests.builders.history import leadership, log_copy, logged_events, truncation
from tests.builders.logs import batch, replica

REQUEST = DeletionRequest(broker_id=2, log_start_offset=28, time_ms=50)
LED = (leadership(2, 2, {2}, time_ms=10), leadership(1, 4, {1}, time_ms=60))
LOST = LostBatch(
    base_offset=26,
    last_offset=29,
    crc=1,
    length=200,
    epoch=2,
    record_count=4,
    is_control=False,
    is_transactional=False,
    producer_id=-1,
    producer_epoch=-1,
    base_sequence=-1,
    holders=(log_copy(replica(2, [batch(0, 25, 0), batch(26, 29, 2)]), is_final=False),),
)
TRUNCATED = truncation(30, 26, broker=2, time_ms=70)


def test_what_the_leader_held_when_it_served_the_request_was_deleted():
    deleted = DeletedRecords([REQUEST], LED, [TRUNCATED])

    assert 28 == deleted.below(LOST)
    assert [OffsetRange(26, 27)] == deleted.truncated()


@pytest.mark.parametrize(
    ("lost", "led", "truncated"),
    [
        # written after it, in a later leader epoch
        (LOST._replace(epoch=5), LED, TRUNCATED),
        # another replica's content
        (LOST._replace(holders=(log_copy(replica(3, [batch(0, 29, 2)]), is_final=False),)), LED, TRUNCATED),
        # truncated before the request, or nobody knows when
        (LOST, LED, replace(TRUNCATED, time_ms=40)),
        (LOST, LED, replace(TRUNCATED, time_ms=Absent.UNKNOWN)),
        # no input shows that the broker led
        (LOST, LED[1:], TRUNCATED),
    ],
)
def test_what_may_be_other_records_was_not(lost, led, truncated):
    assert 0 == DeletedRecords([REQUEST], led, [truncated]).below(lost)


def test_only_the_line_that_names_a_client_is_a_request():
    line = "[UnifiedLog partition=done-0, dir=/d] Incremented log start offset to {0} due to {1} (kafka.log.UnifiedLog)"
    reasons = ("client delete records request", "leader offset increment", "segment deletion")
    events = logged_events(*(line.format(20 + at, reason) for at, reason in enumerate(reasons)), node=2)

    ((partition, (request,)),) = deletion_requests(events).items()
    assert (TopicPartition("done", 0), 2, 20) == (partition, request.broker_id, request.log_start_offset)
