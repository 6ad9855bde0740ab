"""Transactions that one partition commits and another aborts: what shows them, and what does not."""

from typing import NamedTuple

import numpy as np
import pytest

from kforensics.evidence.coordinators.open_transactions import read_producers
from kforensics.evidence.coordinators.transaction_log import TransactionState
from kforensics.protocol.coordinators import TransactionStatus
from kforensics.reconcile.transactions.partition import aborted_late, split_transactions
from tests.builders.coordinators import NOW, batch, marker, write_log

ELECTION = NOW + 100


class Case(NamedTuple):
    """The commit marker in orders-0, and the abort marker in orders-1."""

    commit: dict
    abort: dict
    is_split: bool


def state(status, time_ms, *, epoch, started_ms=NOW):
    return TransactionState(
        "payments", 1, epoch, time_ms, False, producer_id=7, producer_epoch=0, status=status, started_ms=started_ms
    )


LATE = {"time_ms": NOW + 200, "coordinator_epoch": 4}


@pytest.mark.parametrize(
    "case",
    [
        Case({"time_ms": NOW + 50, "coordinator_epoch": 3}, LATE, True),
        Case({"time_ms": NOW + 50, "coordinator_epoch": 3}, {**LATE, "producer_epoch": 1}, True),
        # The marker of the transaction before, of the same coordinator, and an abort of an epoch that this one never had.
        Case({"time_ms": NOW - 50, "coordinator_epoch": 3}, LATE, False),
        Case({"time_ms": NOW + 50, "coordinator_epoch": 4}, LATE, False),
        Case({"time_ms": NOW + 50, "coordinator_epoch": 3}, {**LATE, "producer_epoch": 2}, False),
    ],
)
def test_a_commit_beside_an_abort_is_of_one_transaction_where_its_times_and_epochs_fit(case, tmp_path):
    committed = write_log(
        tmp_path,
        "orders-0",
        (0, batch(0, [(b"k", b"v")], producer=7, transactional=True) + marker(1, 7, commits=True, **case.commit)),
    )
    data = batch(0, [(b"k", b"v")] * 3, producer=7, transactional=True)
    aborted = write_log(tmp_path, "orders-1", (0, data + marker(3, 7, commits=False, **case.abort)))
    history = [
        state(TransactionStatus.ONGOING, NOW, epoch=3),
        state(TransactionStatus.PREPARE_ABORT, NOW + 200, epoch=4),
        state(TransactionStatus.COMPLETE_ABORT, NOW + 210, epoch=4),
        state(TransactionStatus.EMPTY, NOW + 220, epoch=4, started_ms=-1),
    ]
    late = list(aborted_late(history, ELECTION))
    contents = {place.topic_partition: [read_producers(place, np.array([7]))] for place in (committed, aborted)}
    found = split_transactions(late, contents)

    assert [one.now.status for one in late] == [TransactionStatus.EMPTY]
    assert list(found) == ([(0, aborted.path)] if case.is_split else [])
    for torn in found.get((0, aborted.path), ()):
        assert (torn.first_offset, torn.last_offset, torn.records, torn.marker.offset) == (0, 2, 3, 3)
        assert (str(torn.committed_in), torn.commit_offset, torn.confidence) == ("orders-0", 1, "likely")
        assert len(torn.citations) == 2


def test_what_began_or_was_aborted_on_one_side_of_the_election_alone_is_none():
    before = [state(TransactionStatus.COMPLETE_ABORT, NOW + 50, epoch=3)]
    after = [state(TransactionStatus.COMPLETE_ABORT, NOW + 300, epoch=4, started_ms=NOW + 250)]

    assert list(aborted_late(before, ELECTION)) == list(aborted_late(after, ELECTION)) == []
    assert len(list(aborted_late(before, -1))) == 1
