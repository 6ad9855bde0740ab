"""Transactions and producers that a loss tears, on made batches and on a recording."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kforensics.damage import Absent
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, empty_batches
from kforensics.reconcile.history.losses import LostBatch
from kforensics.reconcile.history.residuals import find_torn_transactions

DATA, MARKER = TRANSACTIONAL_BIT, TRANSACTIONAL_BIT | CONTROL_BIT


class Rows:
    def __init__(self, *rows):
        self._rows = empty_batches(len(rows))
        for row, (base, count, attributes, producer, sequence) in zip(self._rows, rows, strict=True):
            row["base_offset"], row["last_offset"], row["count"] = base, base + count - 1, count
            row["attributes"], row["producer_id"], row["base_sequence"], row["magic"] = (
                attributes,
                producer,
                sequence,
                2,
            )

    def batches(self, _replica, first, last):
        return self._rows[(self._rows["last_offset"] >= first) & (self._rows["base_offset"] <= last)]

    def records(self, *_):
        return iter(())


def lost(base, count, attributes, sequence=0, producer=7):
    return LostBatch(
        base_offset=base,
        last_offset=base + count - 1,
        crc=base,
        length=100,
        epoch=1,
        record_count=count,
        is_control=bool(attributes & CONTROL_BIT),
        is_transactional=bool(attributes & TRANSACTIONAL_BIT),
        producer_id=producer,
        producer_epoch=0,
        base_sequence=sequence,
        holders=(),
    )


def torn_transactions(reader, *batches):
    view = SimpleNamespace(log_start_offset=0, log_end_offset=100, replica=None)
    leader: Any = SimpleNamespace(view=view)
    return find_torn_transactions(leader, batches, reader)


@pytest.mark.parametrize(
    ("rows", "gone", "kinds"),
    [
        ([(0, 5, DATA, 7, 0)], [lost(5, 1, MARKER, -1)], ["marker-lost"]),
        ([(0, 5, DATA, 7, 0)], [lost(5, 5, DATA, 5), lost(10, 1, MARKER, -1)], ["partly-lost"]),
        ([(5, 1, MARKER, 7, -1)], [lost(5, 5, DATA, 5)], ["data-lost"]),
        ([(5, 5, DATA, 7, 0), (10, 1, MARKER, 7, -1)], [lost(5, 5, DATA, 5)], []),
        ([(0, 5, DATA, 7, 0), (5, 1, MARKER, 7, -1)], [lost(6, 5, DATA, 5), lost(11, 1, MARKER, -1)], []),
        ([], [lost(5, 5, DATA, 5), lost(10, 1, MARKER, -1)], []),
        ([(0, 5, 0, 7, 0)], [lost(5, 5, 0, 5)], []),
    ],
)
def test_transactions(rows, gone, kinds):
    found = torn_transactions(Rows(*rows), *gone)

    assert kinds == [one.kind for one in found.transactions]
    assert all(one.lost.first == gone[0].base_offset for one in found.transactions)


def test_a_producer_that_was_set_back_and_one_that_went_on():
    reader = Rows((0, 5, 0, 7, 0), (5, 9, 0, 8, 0))
    found = torn_transactions(reader, lost(14, 3, 0, 5), lost(17, 3, 0, 2, producer=8), lost(20, 3, 0, -1, producer=-1))

    assert [(7, 7, 4)] == [(one.producer_id, one.lost_sequence, one.kept_sequence) for one in found.producers]
    assert np.all(found.transactions == ())


def test_the_last_stable_offset_is_that_of_the_first_open_transaction():
    other = (2, 2, DATA, 8, 0)
    torn = (4, 3, DATA, 7, 0)
    gone = lost(7, 1, MARKER, -1)

    found = torn_transactions(Rows(other, torn), gone)
    assert (4, 2) == (found.transactions[0].open_from, found.stuck_at)

    found = torn_transactions(Rows(other, torn, (8, 1, MARKER, 8, -1)), gone)
    assert (4, 4) == (found.transactions[0].open_from, found.stuck_at)


def test_a_transaction_that_a_later_marker_ends_holds_nothing_back():
    ended = torn_transactions(Rows((0, 5, DATA, 7, 0), (9, 3, DATA, 7, 9), (12, 1, MARKER, 7, -1)), lost(5, 3, DATA, 5))
    without_data = torn_transactions(Rows((2, 2, DATA, 8, 0), (5, 1, MARKER, 7, -1)), lost(5, 5, DATA, 5))

    for found in (ended, without_data):
        assert Absent.NOT_APPLICABLE is found.stuck_at
