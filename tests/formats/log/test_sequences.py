"""Sequences of producers: gaps, repeats and the turn behind the largest, over windows and parts; never in a log that was cleaned."""

import numpy as np
import pytest

from kforensics.formats.index import ProducerEntry
from kforensics.formats.log.batch_table import CONTROL_BIT, empty_batches
from kforensics.formats.log.sequences import MOST_BREAKS, SequenceScan, joined_scans

LARGEST = 2**31 - 1


def rows(*batches):
    """Batches of (base offset, records, producer, epoch, base sequence)."""
    table = empty_batches(len(batches))
    for row, (base, count, producer, epoch, sequence) in zip(table, batches, strict=True):
        row["base_offset"], row["last_offset"], row["count"] = base, base + count - 1, count
        row["magic"], row["producer_id"], row["producer_epoch"], row["base_sequence"] = 2, producer, epoch, sequence
    return table


def scanned(*windows):
    scan = SequenceScan()
    for window in windows:
        scan.add(window)
    return scan


GAP = rows((0, 5, 7, 0, 0), (5, 5, 9, 1, 0), (10, 2, 7, 0, 8), (12, 2, 9, 1, 5))


@pytest.mark.parametrize("cut", range(5))
def test_a_gap_is_one_wherever_the_windows_end(cut):
    for scan in (
        scanned(GAP[:cut], GAP[cut:]),
        joined_scans([scanned(GAP[:cut]), SequenceScan(), scanned(GAP[cut:])]),
    ):
        (found,) = scan.breaks
        assert found == (7, 0, 4, 10, 5, 8)
        assert (found.is_repeat, found.length, found.first, found.last) == (False, 3, 5, 7)
        assert not scan.is_thinned


def test_sequences_that_are_there_again_are_a_repeat():
    (found,) = scanned(rows((0, 5, 7, 0, 3), (5, 2, 7, 0, 6))).breaks
    assert (found.is_repeat, found.length, found.first, found.last) == (True, 2, 6, 7)


def test_behind_the_largest_sequence_comes_0():
    assert not scanned(rows((0, 2, 7, 0, LARGEST - 1), (2, 1, 7, 0, 0))).breaks
    assert not scanned(rows((0, 4, 7, 0, LARGEST - 1), (4, 1, 7, 0, 2))).breaks
    (found,) = scanned(rows((0, 2, 7, 0, LARGEST - 2), (2, 1, 7, 0, 1))).breaks
    assert (found.is_repeat, found.length, found.first, found.last) == (False, 2, LARGEST, 0)


def test_a_new_epoch_a_new_beginning_and_batches_without_sequences_break_nothing():
    assert not scanned(rows((0, 5, 7, 0, 0), (5, 5, 7, 1, 0))).breaks
    assert not scanned(rows((0, 5, 7, 1, 0), (5, 5, 7, 0, 3))).breaks, "of a producer that was fenced"
    assert not scanned(rows((0, 5, 7, 0, 0), (5, 5, 7, 0, 0))).breaks
    assert not scanned(rows((0, 5, -1, -1, -1), (5, 5, 7, 0, -1), (10, 1, -1, -1, -1))).breaks
    marked = rows((0, 5, 7, 0, 0), (5, 1, 7, 0, 0), (6, 1, 7, 0, 5))
    marked["attributes"][1] = CONTROL_BIT
    marked["base_sequence"][1] = 90
    assert not scanned(marked).breaks


@pytest.mark.parametrize("cut", range(3))
def test_a_raised_epoch_that_does_not_begin_at_0_lacks_its_beginning(cut):
    batches = rows((0, 5, 7, 0, 0), (5, 5, 7, 1, 3))
    (found,) = joined_scans([scanned(batches[:cut]), scanned(batches[cut:])]).breaks

    assert (found.producer_epoch, found.after_offset, found.offset) == (1, 4, 5)
    assert (found.is_repeat, found.length, found.first, found.last) == (False, 3, 0, 2)


@pytest.mark.parametrize(
    ("sequence", "epoch", "expected"),
    [(158, 0, (156, 157)), (156, 0, None), (0, 0, None), (0, 1, None), (2, 1, (0, 1))],
)
def test_what_the_snapshot_at_the_beginning_of_a_log_names_comes_before_it(sequence, epoch, expected):
    known = [ProducerEntry(7, 0, 155, 99, 4, 1000, -1, -1), ProducerEntry(8, 0, -1, -1, 0, 1000, 3, -1)]
    log = rows((100, 5, 7, epoch, sequence), (105, 5, 8, 0, 4))
    found = joined_scans([scanned(log)], known).breaks

    assert [(one.first, one.last) for one in found] == [expected] * (expected is not None)
    assert all((one.after_offset, one.offset) == (99, 100) for one in found)


def test_a_log_without_offsets_or_records_of_its_batches_is_thinned():
    assert scanned(rows((0, 5, 7, 0, 0), (6, 5, 7, 0, 6))).is_thinned
    assert scanned(rows((0, 5, 7, 0, 0)), rows((6, 5, 7, 0, 6))).is_thinned
    assert joined_scans([scanned(rows((0, 5, 7, 0, 0))), scanned(rows((6, 5, 7, 0, 6)))]).is_thinned
    fewer = rows((0, 5, 7, 0, 0))
    fewer["count"] = 2
    assert scanned(fewer).is_thinned


def test_of_very_many_places_the_first_are_kept():
    many = rows(*((at, 1, 7, 0, 1 + 2 * at) for at in range(MOST_BREAKS + 5)))
    found = scanned(many).breaks
    assert len(found) == MOST_BREAKS
    assert np.all(np.diff([one.offset for one in found]) > 0)
