"""A truncation that a line reports and the disks show is one truncation, whatever zone the line's time is of."""

from dataclasses import replace

import pytest

from kforensics.reconcile.history.log_copies import Agreement
from kforensics.reconcile.history.truncations import find_truncations
from tests.builders.history import PARTITION, log_copy, logged_truncation
from tests.builders.logs import MemoryReader, batch, replica

ZONE_MS = 9 * 3_600_000


def written(at_ms, batches, rank, *, is_final=False, base=None):
    held = replica(2, batches, base=base)
    return log_copy(
        replace(held, segments=(replace(held.segments[0], mtime_ns=at_ms * 1_000_000),)), rank=rank, is_final=is_final
    )


@pytest.mark.parametrize(("from_offset", "found"), [(34, [True]), (33, [False, True])])
def test_the_same_offsets_on_disk_and_in_a_line_are_one_truncation(from_offset, found):
    copies = [
        written(50_000_000, [batch(0, 27, 1), batch(28, 33, 3)], 1),
        written(60_000_000, [batch(0, 27, 1), batch(28, 31, 6)], 2, is_final=True),
    ]
    line = logged_truncation(
        from_offset, 28, broker=2, time_ms=55_000_000 + ZONE_MS, leader=3, leader_epoch=6, high_watermark=28
    )
    truncations = find_truncations(PARTITION, [line], copies, Agreement(MemoryReader({})))

    assert found == [one.is_logged for one in truncations]


def test_a_log_that_was_copied_anew_from_a_cleaned_one_was_not_truncated():
    """A disk was emptied, and the replica fetched what a cleaner had left into one segment, with no checkpoint of a cleaner."""
    anew = [batch(5, 18, 0, count=1), batch(43, 47, 1, count=1), batch(48, 52, 1)]
    copies = [
        written(50_000_000, [batch(0, 4, 0), batch(5, 18, 0), batch(19, 27, 0), batch(28, 39, 0)], 1),
        written(60_000_000, anew, 2, is_final=True, base=0),
    ]

    assert find_truncations(PARTITION, [], copies, Agreement(MemoryReader({}))) == ()


@pytest.mark.parametrize(
    ("epoch", "end", "is_before"),
    [
        # Written after the truncation, in the second in which the line was written: it followed the new leader already.
        (3, 33, False),
        # Written before it: the log grew to 42 in the old leader's epoch.
        (0, 35, True),
        (0, 41, True),
    ],
)
def test_a_copy_that_holds_what_the_new_leader_wrote_shows_nothing_of_what_was_truncated(epoch, end, is_before):
    copies = [
        written(55_000_100, [batch(0, 29, 0), batch(30, end, epoch)], 1),
        written(60_000_000, [batch(0, 29, 0), batch(30, 33, 3), batch(34, 50, 4)], 2, is_final=True),
    ]
    line = logged_truncation(42, 30, broker=2, time_ms=55_000_000, leader=1, leader_epoch=3)
    (found, *_) = find_truncations(PARTITION, [line], copies, Agreement(MemoryReader({})))

    assert (42, 30) == (found.from_offset, found.to_offset)
    assert is_before is (found.before is copies[0])


def test_a_second_round_takes_off_what_the_first_had_left_and_not_what_came_later():
    """The log grew to 60 in the second in which both rounds were written: a copy of then shows nothing of what they took."""
    copies = [
        written(54_000_000, [batch(0, 19, 1), batch(20, 27, 2), batch(28, 41, 3)], 1),
        written(55_000_000, [batch(0, 19, 1), batch(20, 59, 6)], 2),
        written(60_000_000, [batch(0, 19, 1), batch(20, 79, 6)], 3, is_final=True),
    ]
    common = {"broker": 2, "leader": 3, "leader_epoch": 6}
    first = logged_truncation(42, 28, time_ms=54_900_000, **common)
    second = replace(logged_truncation(28, 20, time_ms=54_900_050, **common), is_exact=False)
    found = find_truncations(PARTITION, [first, second], copies, Agreement(MemoryReader({})))

    assert [(42, 28), (28, 20)] == [(one.from_offset, one.to_offset) for one in found]
    assert all(one.before is copies[0] for one in found)


def test_a_copy_between_two_truncations_that_are_no_rounds_of_one_shows_what_the_second_took():
    copies = [
        written(55_000_000, [batch(0, 19, 1), batch(20, 59, 4)], 2),
        written(60_000_000, [batch(0, 19, 1), batch(20, 79, 6)], 3, is_final=True),
    ]
    first = logged_truncation(42, 20, broker=2, time_ms=40_000_000)
    second = replace(logged_truncation(28, 20, broker=2, time_ms=56_000_000), is_exact=False)
    found = find_truncations(PARTITION, [first, second], copies, Agreement(MemoryReader({})))

    assert [(42, 20), (60, 20)] == [(one.from_offset, one.to_offset) for one in found]
