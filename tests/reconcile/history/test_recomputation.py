"""What a protocol would have done is recomputed only from a leader's log that still shows what it answered by."""

import pytest

from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.history.recomputation import recompute
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
