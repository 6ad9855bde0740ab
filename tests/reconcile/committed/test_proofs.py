"""What a clean election proves of the records that the elected replica did not hold."""

from dataclasses import dataclass, replace

import pytest

from kforensics.damage import Absent
from kforensics.reconcile.committed.judge import CommitJudge
from kforensics.reconcile.committed.proofs import Moment
from kforensics.reconcile.logs.divergence import agreed_until
from kforensics.reconcile.logs.loaded_log import load_log
from kforensics.reconcile.observed.facts import ClusterFacts, Restart
from kforensics.units import OffsetRange
from tests.builders.history import leadership
from tests.builders.logs import MemoryReader, batch, replica

LOG = load_log(replica(1, [batch(0, 19, 0), batch(20, 29, 1)]))


@dataclass(frozen=True)
class Lines(ClusterFacts):
    """Lines of every broker, whole."""

    states: tuple = ()
    starts: tuple = ()
    metadata_end_ms: int = 1_000

    def ends_before(self, time_ms):
        return isinstance(time_ms, int) and self.metadata_end_ms < time_ms

    def leaderships(self, partition, topic_id):
        return tuple(replace(one, recorded_at=Absent.NOT_APPLICABLE) for one in self.states)

    def restarts(self, broker_id):
        return self.starts if broker_id == 1 else ()

    def first_line_times(self):
        return {1: 0, 2: 0, 3: 0}

    def is_unbroken(self, broker_id, since_ms, until_ms):
        return True


def bound(*states, starts=(), **asked):
    judge = CommitJudge(
        [LOG], lambda one, other: agreed_until(one, other, None), Lines(states, starts), MemoryReader({})
    )
    found = judge.never_after(0, 0, 2, **asked)
    return None if found is None else found.offset


def test_a_leader_that_came_back_in_its_epoch_does_not_show_where_its_log_ended_at_the_election():
    states = (leadership(2, 0, {1, 2}, time_ms=0), leadership(1, 1, {1}, time_ms=10))
    restart = Restart(recorded_at=Absent.UNKNOWN, time_ms=20, is_clean=False)

    assert 20 == bound(*states)
    assert bound(*states, starts=(restart._replace(is_clean=True),)) is None
    assert bound(*states, starts=(restart,)) is None


def test_records_that_a_later_leader_may_have_written_need_every_election_up_to_then_to_be_clean():
    clean, unclean = leadership(3, 2, {3}, time_ms=20), leadership(3, 2, {3}, time_ms=20, unclean=True)
    before = (leadership(2, 0, {1, 2}, time_ms=0), leadership(1, 1, {1, 3}, time_ms=10))

    assert [20, 20] == [bound(*before, clean), bound(*before, clean, until=2)]
    assert bound(*before, unclean, until=2) is None


def test_a_metadata_log_that_ends_before_a_truncation_leaves_open_who_led_by_then():
    states = (leadership(2, 0, {1, 2}, time_ms=0), leadership(1, 1, {1}, time_ms=10))

    assert [20, 20] == [bound(*states, by_ms=1_000), bound(*states, by_ms=Absent.NOT_APPLICABLE)]
    assert bound(*states, by_ms=1_001) is None


@pytest.mark.parametrize(
    ("own", "others", "states", "reason"),
    [
        (
            38,
            5,
            (leadership(1, 0),),
            "the recorded high watermark 38 is above the log end 30: it may be that of other records",
        ),
        (
            12,
            5,
            (leadership(1, 0),),
            "above the recorded high watermark 12, which is written every 5 s; nothing contradicts it",
        ),
        (
            None,
            5,
            (leadership(1, 0),),
            "no high watermark is recorded; nothing contradicts it",
        ),
        (12, 14, (), "above every recorded high watermark; no metadata shows which replicas were in sync"),
        (12, 26, (), "no recorded high watermark proves them committed; no metadata shows which replicas were in sync"),
    ],
)
def test_what_is_possibly_committed_is_above_a_high_watermark_only_where_it_is(own, others, states, reason):
    mine = load_log(replica(1, [batch(0, 19, 0), batch(20, 29, 1)], high_watermark=own))
    other = load_log(replica(2, [batch(0, 19, 0), batch(20, 29, 2)], high_watermark=others))
    judge = CommitJudge(
        [mine, other],
        lambda one, other: one.log_end_offset if one is other else 15,
        Lines(states),
        MemoryReader({}),
    )
    run = next(run for run in judge.runs(mine, OffsetRange(20, 29)) if run.certainty == "possible")

    assert reason == run.reason


@dataclass(frozen=True)
class Recorded(ClusterFacts):
    """States of the metadata log."""

    states: tuple

    def leaderships(self, partition, topic_id):
        return self.states


LED = leadership(1, 1, {1, 2}, 30)


@pytest.mark.parametrize(
    ("members", "end", "states", "found"),
    [
        ((1, 2), 40, (leadership(1, 0, {1}, 10), LED, leadership(2, 2, {2}, 50)), 25),
        ((1, 2), 40, (LED, leadership(1, 1, {1}, 45), leadership(2, 2, {2}, 50)), 25),
        # Another broker joined before the term ended: the copies may be of that time.
        ((1, 2), 40, (LED, leadership(1, 1, {1, 2, 3}, 45), leadership(2, 2, {2}, 50)), None),
        # One may have joined after the end of the metadata log.
        ((1, 2), 40, (LED,), 20),
        # The directories are older than the metadata log: broker 3 was in sync then, and led in between.
        (
            (1, 2),
            40,
            (
                leadership(1, 1, {1, 2, 3}, 30),
                leadership(3, 2, {3}, 35),
                leadership(1, 3, {1, 2}, 38),
                leadership(2, 4, {2}, 50),
            ),
            20,
        ),
        ((1,), 40, (LED, leadership(2, 2, {2}, 50)), 20),
        ((1, 2, 2), 40, (LED, leadership(2, 2, {2}, 50)), 20),
        ((1, 2), 20, (LED, leadership(2, 2, {2}, 50)), 20),
        # What was written in leader epoch 1 is later than the metadata log of the snapshot.
        ((1, 2), 40, (leadership(1, 0, {1, 2}, 10), replace(LED, recorded_at=45), leadership(2, 2, {2}, 50)), 20),
    ],
)
def test_what_all_in_sync_held_in_an_earlier_snapshot_was_committed(members, end, states, found):
    then = {1: LOG, 2: load_log(replica(2, [batch(0, 19, 0), batch(20, 24, 1)]))}
    now = load_log(replica(2, [batch(0, 19, 0), batch(20, 29, 2)]))
    judge = CommitJudge(
        [LOG, now],
        lambda one, other: 20 if one is now or other is now else 25,
        Recorded(states),
        MemoryReader({}),
        moments=[Moment(end, tuple(then[member] for member in members))],
    )

    certain = [run for run in judge.runs(LOG, OffsetRange(0, 29)) if run.certainty == "certain"]

    assert ([] if found is None else [found - 1]) == [run.offsets.last for run in certain]


@dataclass(frozen=True)
class OldLines(Lines):
    """Lines of brokers before 3.7."""

    def needed_in_sync(self, topic):
        return 1


ALONE = (
    leadership(1, 0, {1, 2}, time_ms=0),
    leadership(1, 1, {1}, time_ms=10_000),
    leadership(1, 1, {1, 2}, time_ms=30_000),
)


@pytest.mark.parametrize(
    ("states", "written", "found"),
    [
        (ALONE, 20_000, [29]),
        (ALONE, 29_000, []),
        (ALONE, 5_000, []),
        (ALONE, None, []),
        # Others were in sync when the term began.
        ((ALONE[0], leadership(1, 1, {1, 2}, time_ms=9_000), *ALONE[1:]), 20_000, []),
        (ALONE[:2], None, [29]),
    ],
)
def test_a_log_last_written_to_while_its_leader_was_alone_in_sync_was_committed(states, written, found):
    """A power loss took its end, the leader led on in its epoch, and another joined."""
    times = {} if written is None else {id(LOG): written}
    judge = CommitJudge([LOG], lambda one, other: 0, OldLines(states), MemoryReader({}), written_ms=times)

    assert found == [run.offsets.last for run in judge.runs(LOG, OffsetRange(20, 29)) if run.certainty == "certain"]


def quorum(ends, *, leader=2, empty=()):
    """What is said of the log of one of three voters, as runs of certainty: all of one leader epoch."""
    logs = [load_log(replica(voter, [batch(0, end - 1, 1)])) for voter, end in ends.items() if end]
    logs += [load_log(replica(voter)) for voter in empty]
    view = next(log for log in logs if log.replica.broker_id == 1)
    states = (replace(leadership(leader, 1), replicas=(1, 2, 3)),)
    judge = CommitJudge(
        logs,
        lambda one, other: agreed_until(one, other, None),
        Lines(states),
        MemoryReader({}),
        is_quorum=True,
    )
    return [(run.offsets.last + 1, run.certainty) for run in judge.runs(view, OffsetRange(0, view.log_end_offset - 1))]


def test_a_leader_of_the_quorum_that_was_copied_first_denies_nothing():
    # The leader's log is at least as long as that of any follower in its epoch: the copy is of an earlier moment.
    assert [(51, "certain"), (60, "possible")] == quorum({1: 60, 2: 38, 3: 51})
    assert [(51, "certain"), (60, "no")] == quorum({1: 60, 2: 38, 3: 51}, leader=1)


def test_what_a_majority_of_empty_voters_lacks_is_not_uncommitted():
    assert [(60, "possible")] == quorum({1: 60}, empty=(2, 3), leader=1)
    assert [(40, "certain"), (60, "possible")] == quorum({1: 60, 2: 40}, empty=(3,), leader=1)
