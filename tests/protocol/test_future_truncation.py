"""Future replicas."""

from kforensics.damage import Absent
from kforensics.protocol.future_truncation import (
    future_replica_truncation,
)
from kforensics.protocol.outcome import StepKind, TruncationRule
from tests.builders.epochs import log_state as state

NOTHING = Absent.NOT_APPLICABLE


def test_a_future_replica_follows_the_current_one():
    current = state((0, 0), (2, 10), end=20, high_watermark=20)
    future = state((0, 0), (1, 8), end=15, high_watermark=6)
    outcome = future_replica_truncation(future, current)
    assert outcome.offset == 8
    marked = future_replica_truncation(future, current, truncated_to=5)
    assert (marked.offset, marked.rule) == (5, TruncationRule.CURRENT_REPLICA_TRUNCATION)
    assert marked.steps[0].kind is StepKind.CURRENT_REPLICA
    assert marked.steps[0].sentence() == "its log ends at 15, the current replica was truncated to 5: it truncates to 5"
    assert marked.below_high_watermark
    assert future_replica_truncation(future, current, truncated_to=99).offset == 8
    both = future_replica_truncation(future, current, truncated_to=12)
    assert (both.offset, both.rule) == (8, TruncationRule.DIVERGING_EPOCH)
