"""The outcome of transactions by the markers of a log."""

import numpy as np

from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, empty_batches
from kforensics.reconcile.logs.loaded_log import Marker, Outcomes, are_markers, are_transactional


def rows(*those):
    """Batches of (offset, producer, attributes)."""
    table = empty_batches(len(those))
    table["magic"] = 2
    for at, (offset, producer, attributes) in enumerate(those):
        table[at]["base_offset"] = table[at]["last_offset"] = offset
        table[at]["producer_id"] = producer
        table[at]["attributes"] = attributes
    return table


def test_records_share_the_outcome_of_the_next_marker_of_their_producer():
    data = rows(
        *((offset, producer, TRANSACTIONAL_BIT) for offset, producer in [(0, 1), (1, 2), (4, 1), (7, 1), (8, 2)])
    )
    outcomes = Outcomes([Marker(1, 2, True), Marker(2, 3, False), Marker(1, 5, False), Marker(2, 9, True)])

    assert [True, False, False, False, True] == outcomes.are_aborted(data).tolist()


def test_what_no_marker_follows_is_undecided_and_what_is_no_transaction_is_not_aborted():
    data = rows(
        (0, 1, TRANSACTIONAL_BIT), (6, 1, TRANSACTIONAL_BIT), (0, 1, 0), (5, 1, TRANSACTIONAL_BIT | CONTROL_BIT)
    )
    outcomes = Outcomes([Marker(1, 5, True)])

    assert [True, False, False, False] == outcomes.are_aborted(data).tolist()
    assert [True, True, False, False] == are_transactional(data).tolist()
    assert [False, False, False, True] == are_markers(data).tolist()


def test_markers_of_one_outcome_count_as_one():
    many = Outcomes(Marker(7, offset, False) for offset in range(1, 200_001, 2))

    assert not many.has_aborted
    assert not many.are_aborted(rows((0, 7, TRANSACTIONAL_BIT))).any()
    assert 1 == len(many._ends[7])
    many.add(Marker(7, 200_003, True))
    data = rows((199_998, 7, TRANSACTIONAL_BIT), (200_000, 7, TRANSACTIONAL_BIT))
    assert [False, True] == many.are_aborted(data).tolist()
    assert not np.any(many.are_aborted(rows()))
