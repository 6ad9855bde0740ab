"""What a follower writes into a transaction index when one fetch brings several transactions."""

import pytest

from kforensics.damage import Gravity
from kforensics.evidence.checks.producers import ProducerHistory, check_txn_index
from kforensics.formats.index import AbortedTransaction, TxnIndex

END = 34


def check(entry, aborted):
    history = ProducerHistory(states={}, aborted={entry.last_offset: aborted})
    index = TxnIndex(entries=(entry,), damage=())
    return check_txn_index(
        index, history, base_offset=0, end_offset=END, log_start=0, is_compacted=False, gravity=Gravity.DAMAGE
    )


def entry(last_stable_offset, first=6):
    return AbortedTransaction(0, 1000, first, 10, last_stable_offset)


@pytest.mark.parametrize("last_stable_offset", [11, 17])
def test_a_later_transaction_of_the_same_fetch_may_give_the_last_stable_offset(last_stable_offset):
    assert () == check(entry(last_stable_offset), entry(11))


@pytest.mark.parametrize(
    ("found", "aborted"),
    [
        (entry(10), entry(11)),
        (entry(END), entry(11)),
        (entry(17, first=7), entry(11)),
        (entry(17), entry(3)),
    ],
)
def test_anything_else_is_damage(found, aborted):
    assert 1 == len(check(found, aborted))
