"""The metadata quorum."""

from kforensics.damage import Absent
from kforensics.protocol.outcome import TruncationRule
from kforensics.protocol.quorum_truncation import (
    QuorumAnswer,
    quorum_answer,
    quorum_end_offset_for_epoch,
    quorum_truncation,
)
from kforensics.units import EpochEntry
from tests.builders.epochs import log_state as state

NOTHING = Absent.NOT_APPLICABLE


def test_a_candidate_truncates_what_only_it_wrote():
    outcome = quorum_truncation(state((1, 0), (4, 90), end=95, high_watermark=88), state((1, 0), (5, 90), end=91))
    assert outcome.offset == 90
    assert (outcome.steps[0].answer_epoch, outcome.steps[0].answer_offset, outcome.steps[0].own_offset) == (1, 90, 90)
    assert not outcome.below_high_watermark


def test_a_quorum_member_refuses_to_truncate_below_its_high_watermark():
    follower, leader = state((1, 0), (4, 90), end=95, high_watermark=93), state((1, 0), (5, 90), end=91)
    refused = quorum_truncation(follower, leader)
    assert refused.halted
    assert (refused.rule, refused.offset) == (TruncationRule.HALTED, NOTHING)
    still = quorum_truncation(follower, leader, refuses_below_high_watermark=False)
    assert still.halted


def test_only_since_3_0_the_target_is_checked_too():
    follower, leader = state((1, 0), (4, 10), end=95, high_watermark=20), state((1, 0), (5, 30), end=91)
    assert quorum_truncation(follower, leader).halted
    old = quorum_truncation(follower, leader, refuses_below_high_watermark=False)
    assert old.offset == 10
    assert old.below_high_watermark


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


def test_a_member_that_is_too_old_gets_a_snapshot():
    leader = state((3, 100), end=200, start=100)
    snapshot = EpochEntry(2, 100)
    outcome = quorum_truncation(state((1, 0), end=50), leader, leader_snapshot=snapshot)
    assert (outcome.rule, outcome.offset, outcome.full_restart) == (TruncationRule.SNAPSHOT, 100, True)
    assert quorum_answer(leader, 100, 1, snapshot) == (QuorumAnswer.SNAPSHOT, NOTHING)
    assert quorum_answer(leader, 100, 2, snapshot) == (QuorumAnswer.VALID, NOTHING)


def test_a_quorum_log_always_has_an_end():
    log = state((3, 100), end=200, start=100)
    snapshot = EpochEntry(2, 100)
    assert quorum_end_offset_for_epoch(log, 9, snapshot) == (3, 200)
    assert quorum_end_offset_for_epoch(log, 1, snapshot) == (2, 100)
    assert quorum_end_offset_for_epoch(state(end=0), 1, Absent.NOT_WRITTEN) == (0, 0)
    assert quorum_end_offset_for_epoch(state(end=100, start=100), 1, snapshot) == (2, 100)


def test_a_member_that_can_learn_nothing_is_stuck():
    outcome = quorum_truncation(state((5, 0), end=50), state(end=80))
    assert outcome.endless
    assert outcome.rule is TruncationRule.ENDLESS


def test_the_high_watermark_of_a_quorum_member_counts():
    follower = state((1, 0), end=50, high_watermark=40)
    leader = state((3, 100), end=200, start=100)
    outcome = quorum_truncation(follower, leader, leader_snapshot=EpochEntry(2, 20))
    assert outcome.below_high_watermark
