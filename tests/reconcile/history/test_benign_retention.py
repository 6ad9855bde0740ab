"""What retention leaves behind for a while is no trace of a bug, and no cut."""

import pytest

from kforensics.reconcile.bugs.traces import of_files, of_stuck_replicas
from kforensics.reconcile.history.log_copies import Agreement
from kforensics.reconcile.history.truncations import find_truncations
from kforensics.units import TopicPartition
from tests.builders.history import leadership, log_copy, logged_truncation, trace_evidence
from tests.builders.logs import MemoryReader, batch, replica

HALVES = (batch(0, 99, 0), batch(100, 116, 0), batch(117, 199, 1))


def named(seen):
    return {one.jira for one in seen}


@pytest.mark.parametrize(("leaders_start", "known"), [(117, set()), (0, {"KAFKA-10432"})])
def test_epochs_go_with_the_log_start_before_the_segments_do(leaders_start, known):
    follower = log_copy(replica(2, HALVES, checkpoint=[(1, 117)]))
    leader = log_copy(replica(1, HALVES, log_start=leaders_start))

    assert known == named(of_files(trace_evidence("2.5.1", follower, leader, leader=leader)))


@pytest.mark.parametrize(("leaders_end", "known"), [(199, set()), (209, {"KAFKA-10706"})])
def test_a_stopped_replica_that_nobody_left_behind_is_not_stuck(leaders_end, known):
    follower = log_copy(replica(2, HALVES, checkpoint=[(0, 0), (2, 200)]))
    leader = log_copy(replica(1, (*HALVES, batch(200, leaders_end, 2)) if leaders_end > 199 else HALVES))
    known_states = trace_evidence("2.5.1", follower, leader, leader=leader, leaderships=(leadership(1, 2, isr=(1,)),))

    assert known == named(of_stuck_replicas(known_states))


def test_a_follower_that_starts_anew_at_its_leaders_start_cuts_nothing():
    told = logged_truncation(
        168, 171, rule="leader-start", broker=2, leader=1, leader_epoch=3, is_full=True, high_watermark=168
    )

    assert () == find_truncations(TopicPartition("t", 0), [told], [], Agreement(MemoryReader({})))
