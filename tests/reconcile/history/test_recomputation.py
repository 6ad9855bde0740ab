"""What a protocol would have done is recomputed only from a leader's log that still shows what it answered by."""

from dataclasses import replace

import pytest

from kforensics.damage import Absent
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.history.truncations import recompute
from tests.builders.history import log_copy, truncation
from tests.builders.logs import batch, replica


@pytest.mark.parametrize(("log_start", "expected"), [(0, 5), (5, 5), (12, None)])
def test_a_leader_whose_records_at_the_truncation_were_deleted_since_is_not_asked(log_start, expected):
    follower = log_copy(replica(1, [batch(0, 4, 1), batch(5, 9, 2)]), rank=1, is_final=False)
    kept = [(1, 0), (3, 5)] if log_start <= 5 else [(3, log_start)]
    leader = log_copy(
        replica(2, [batch(0, 4, 1), batch(5, 19, 3)], checkpoint=kept, log_start=log_start or None), rank=2
    )

    again = recompute(truncation(10, 5, leader_epoch=3, before=follower), [follower, leader], ProtocolName.KIP_595)

    assert (again and again.expected_offset) == expected


@pytest.mark.parametrize(("to_offset", "expected"), [(0, 0), (5, 5), (3, None)])
def test_a_copy_without_leader_epochs_is_of_a_log_with_or_without_them(to_offset, expected):
    bare = replace(replica(1, [batch(0, 4, 1), batch(5, 9, 2)]), checkpoint_epochs=Absent.NOT_WRITTEN)
    follower = log_copy(bare, rank=1, is_final=False)
    leader = log_copy(replica(2, [batch(0, 4, 1), batch(5, 19, 3)]), rank=2)

    again = recompute(
        truncation(10, to_offset, leader_epoch=3, before=follower), [follower, leader], ProtocolName.KIP_595
    )

    assert (again and again.expected_offset) == expected
