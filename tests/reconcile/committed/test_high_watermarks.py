"""A recorded high watermark speaks of the records that were there when it was written, not of those that came in their place."""

from dataclasses import dataclass, replace

import pytest

from kforensics.damage import Absent
from kforensics.reconcile.committed.proofs import MARK_INTERVAL_MS, high_watermark_reach
from kforensics.reconcile.logs.loaded_log import load_log
from kforensics.reconcile.observed.facts import ClusterFacts
from tests.builders.history import leadership
from tests.builders.logs import batch
from tests.builders.logs import replica as made

RESTART, ELECTION = 20, 30
ELECTION_MS = 1_000_000


@dataclass(frozen=True)
class Restarts(ClusterFacts):
    at: tuple[int, ...] = ()

    def unclean_restarts(self, broker_id):
        return self.at


def term(epoch, recorded_at, time_ms=ELECTION_MS):
    return leadership(1, epoch, {1}, recorded_at, time_ms=time_ms)


TERMS = (term(0, 10), term(1, ELECTION))


def reach(*batches, mark, restarts=(RESTART,), terms=TERMS, newest_ms=ELECTION_MS + 20):
    replica = made(1, list(batches), high_watermark=mark)
    dated = tuple(replace(segment, max_timestamp_ms=newest_ms) for segment in replica.segments)
    return high_watermark_reach(load_log(replace(replica, segments=dated)), Restarts(at=restarts), terms)


def test_a_mark_from_before_a_crash_says_nothing_of_what_was_written_after_it():
    assert reach(batch(0, 4, 0), batch(5, 9, 1), mark=8) == 5
    assert reach(batch(0, 9, 1), mark=8) == 0


def test_without_a_crash_it_counts():
    assert reach(batch(0, 4, 0), batch(5, 9, 1), mark=8, restarts=()) == 8


def test_once_the_term_outlasted_the_interval_the_mark_is_of_the_term():
    later = ELECTION_MS + 2 * MARK_INTERVAL_MS + 1
    assert reach(batch(0, 4, 0), batch(5, 9, 1), mark=8, newest_ms=later) == 8
    assert reach(batch(0, 4, 0), batch(5, 9, 1), mark=8, newest_ms=Absent.UNKNOWN) == 5


@pytest.mark.parametrize("terms", [(), (term(0, 10), term(1, 15)), (*TERMS[:1], term(1, 15), term(1, ELECTION))])
def test_a_term_that_began_before_the_crash_counts(terms):
    assert reach(batch(0, 4, 0), batch(5, 9, 1), mark=8, terms=terms) == 8


def test_a_mark_above_the_log_end_speaks_of_what_lies_below_the_newest_term():
    assert reach(batch(0, 4, 0), batch(5, 9, 1), mark=12, restarts=()) == 5
    assert reach(batch(0, 4, 0), mark=None) == 0
