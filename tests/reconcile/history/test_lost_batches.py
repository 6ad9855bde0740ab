"""Which batches of a copy count as lost."""

from typing import cast

import pytest

from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT
from kforensics.reconcile.committed.judge import CommitJudge, CommittedRun
from kforensics.reconcile.history.log_copies import Agreement
from kforensics.reconcile.history.losses import find_losses, lost_batches
from tests.builders.history import log_copy
from tests.builders.logs import MemoryReader, batch, record, replica


@pytest.mark.parametrize(
    ("checkpoint", "epoch", "lost"),
    [
        # The leader's epoch 2 began at 96: what a copy holds of epoch 0 from there on was never in its log.
        ([(0, 0), (2, 96)], 0, [96, 100]),
        # Its epoch 0 reached to 106: a cleaner has removed the records.
        ([(0, 0), (2, 106)], 0, []),
        ([(0, 0), (2, 96)], 2, []),
        # Formats without epochs show no lineage.
        ([], -1, []),
    ],
)
def test_what_a_copy_holds_where_a_cleaner_emptied_the_leaders_log_is_lost_if_it_is_of_another_epoch(
    checkpoint, epoch, lost
):
    magic = 2 if epoch >= 0 else 1
    first = batch(0, 95, min(epoch, 0), crc=7, magic=magic)
    rest = [
        batch(106, 113, 2 if magic == 2 else -1, count=1, magic=magic),
        batch(114, 120, 2 if magic == 2 else -1, magic=magic),
    ]
    leader = replica(2, [first, *rest], checkpoint=checkpoint, cleaned=114)
    copy = replica(1, [first, *(batch(base, last, epoch, magic=magic) for base, last in ((96, 99), (100, 105)))])
    kept = [record(0), record(113), record(120)]
    reader = MemoryReader({leader.path: kept, copy.path: [record(offset) for offset in (0, *range(96, 106))]})
    copies = log_copy(leader), log_copy(copy, rank=0, is_final=False)
    agreement = Agreement(reader, [one.view for one in copies])

    assert agreement.divergence(copies[1].view, copies[0].view) is None
    assert lost == [one.base_offset for one in lost_batches(copies[0], copies[1:], agreement, reader)]


def _lost(leader, *copies, records=None):
    reader = MemoryReader(records or {})
    first, *others = [log_copy(leader), *copies]
    return lost_batches(first, others, Agreement(reader, [one.view for one in (first, *others)]), reader)


def test_what_a_replica_in_use_holds_is_not_lost_because_an_earlier_copy_of_the_leader_held_it():
    """The leader came back with another disk: others differ from it at the same offsets, in the same epoch."""
    common = [batch(0, 4, 0, crc=1), batch(5, 9, 0, crc=2)]
    leader = replica(3, [batch(0, 4, 0, crc=7), batch(5, 9, 0, crc=8)])
    follower = replica(2, common)
    earlier = [replica(broker, common) for broker in (12, 13)]
    before = [log_copy(one, rank=0, is_final=False) for one in earlier]

    assert () == _lost(leader, log_copy(follower), *before)
    # With no replica that holds them they are lost, and each copy is named.
    gone = _lost(leader, *before)
    assert [0, 5] == [one.base_offset for one in gone]
    assert [2, 2] == [len(one.holders) for one in gone]


def test_records_of_aborted_transactions_are_told_apart():
    data = {"attributes": TRANSACTIONAL_BIT, "producer": 7}
    control = TRANSACTIONAL_BIT | CONTROL_BIT
    leader = replica(1, [batch(0, 9, 0)])
    rows = [batch(0, 9, 0), batch(10, 12, 0, **data), batch(13, 13, 0, attributes=control, producer=7)]
    rows += [batch(14, 15, 0, **data), batch(16, 16, 0, attributes=control, producer=7)]
    copy = replica(2, rows)
    ends = [
        record(13, key=bytes([0, 0, 0, 0]), value=bytes(6), control=True),
        record(16, key=bytes([0, 0, 0, 1]), value=bytes(6), control=True),
    ]

    found = _lost(leader, log_copy(copy, rank=0, is_final=False), records={copy.path: ends})

    assert {10: True, 13: False, 14: False, 16: False} == {one.base_offset: one.is_aborted for one in found}


class _Certain:
    """A judge to whom all is committed."""

    def runs(self, _view, offsets):
        return (CommittedRun(offsets=offsets, certainty="certain", reason="acknowledged", citations=()),)


@pytest.mark.parametrize(
    ("deleted_below", "lost"),
    [
        # The log start fell inside of a batch: what was deleted on request is left out to the very offset.
        (25, [(25, 39, 15)]),
        # It is above a whole batch.
        (30, [(30, 39, 10)]),
        (34, [(34, 39, 6)]),
        # All that the leader lacks was deleted.
        (40, []),
        (2**63 - 1, []),
    ],
)
def test_batches_below_a_log_start_that_a_client_set_are_not_lost(deleted_below, lost):
    kept, gone = batch(0, 19, 0), [batch(20, 29, 0, crc=1), batch(30, 39, 0, crc=2)]
    leader, copy = replica(2, [kept]), replica(1, [kept, *gone])
    copies = log_copy(leader), log_copy(copy, rank=0, is_final=False)
    reader = MemoryReader({})
    batches = lost_batches(copies[0], copies[1:], Agreement(reader, [one.view for one in copies]), reader)
    assert [20, 30] == [one.base_offset for one in batches]

    losses = find_losses(
        copies[0], batches, cast("CommitJudge", _Certain()), reader, deleted_below=lambda _batch: deleted_below
    )

    assert lost == [(*one.offsets, one.records) for one, _ in losses]
