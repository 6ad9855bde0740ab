"""The metadata quorum."""

from kforensics.damage import Absent
from kforensics.protocol.truncation import TruncationRule, quorum_end_offset_for_epoch, quorum_truncation
from tests.builders.epochs import log_state as state

NOTHING = Absent.NOT_APPLICABLE


def test_a_candidate_truncates_what_only_it_wrote():
    outcome = quorum_truncation(state((1, 0), (4, 90), end=95, high_watermark=88), state((1, 0), (5, 90), end=91))
    assert outcome.offset == 90
    assert (outcome.steps[0].answer_epoch, outcome.steps[0].answer_offset, outcome.steps[0].own_offset) == (1, 90, 90)


def test_an_up_to_date_member_truncates_nothing():
    outcome = quorum_truncation(state((1, 0), end=50), state((1, 0), (2, 60), end=61))
    assert (outcome.offset, outcome.rule) == (NOTHING, TruncationRule.NOTHING_TO_TRUNCATE)
    assert quorum_truncation(state(end=0), state((1, 0), end=9)).offset is NOTHING


def test_epoch_zero_has_no_own_lookup():
    outcome = quorum_truncation(state((0, 0), end=50), state((0, 0), (2, 40), end=61))
    assert outcome.offset == 40
    assert outcome.steps[0].own_offset is NOTHING


def test_a_member_that_lacks_the_answered_epoch_truncates_to_its_own_older_one():
    outcome = quorum_truncation(state((1, 0), (4, 10), end=95), state((1, 0), (3, 5), (5, 30), end=40))
    assert [(step.answer_epoch, step.answer_offset, step.truncate_to) for step in outcome.steps][:2] == [
        (3, 30, 10),
        (1, 5, 5),
    ]
    assert outcome.offset == 5


def test_a_quorum_log_always_has_an_end():
    assert quorum_end_offset_for_epoch(state((3, 100), end=200, start=100), 9) == (3, 200)
    assert quorum_end_offset_for_epoch(state(end=0), 1) == (0, 0)


def test_a_member_that_can_learn_nothing_is_stuck():
    outcome = quorum_truncation(state((5, 0), end=50), state(end=80))
    assert outcome.endless
    assert outcome.rule is TruncationRule.ENDLESS
