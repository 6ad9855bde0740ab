"""Where a follower cuts: the worked cases and the examples by version."""

import pytest

from kforensics.damage import Absent
from kforensics.protocol.epochs import RULES_BEFORE_1_0_2, RULES_BEFORE_2_0_1, RULES_BEFORE_2_6_1, Epochs, assign
from kforensics.protocol.truncation import (
    ProtocolName,
    StepKind,
    TruncationRule,
    follower_truncation,
    leader_after_election,
    truncate_log,
)
from kforensics.units import EpochEntry
from tests.builders.epochs import log_state as state

NOTHING = Absent.NOT_APPLICABLE


def state_of(leader_epochs, *, high_watermark=0):
    entries: Epochs = ()
    for offset, leader_epoch in enumerate(leader_epochs):
        entries = assign(entries, leader_epoch, offset)
    return state(*entries, end=len(leader_epochs), high_watermark=high_watermark)


SEVEN_CASES = [
    ("A", [1, 1], [1, 1, 1, 1], 2, None, NOTHING),
    ("B", [1, 1], [1, 1, 2, 2], 3, None, NOTHING),
    ("C", [1, 1, 1, 1], [1, 1], 2, (1, 2), 2),
    ("D", [1, 1, 2, 2], [1, 1], 3, (1, 2), 2),
    ("E", [1, 1, 2, 2], [1, 1, 3, 3], 4, (1, 2), 2),
    ("F", [1, 2, 2], [1, 1], 3, (1, 2), 1),
    ("G", [2], [1, 3], 4, (1, 1), 0),
]


@pytest.mark.parametrize("case", SEVEN_CASES, ids=lambda case: case[0])
def test_the_seven_worked_cases(case):
    _name, follower, leader, current_epoch, answer, expected = case
    elected = leader_after_election(state_of(leader), current_epoch)
    outcome = follower_truncation(state_of(follower), elected, protocol=ProtocolName.KIP_595)
    assert outcome.offset == expected
    first = outcome.steps[0]
    if answer is None:
        assert first.answer_offset is NOTHING
        assert outcome.rule is TruncationRule.NOTHING_TO_TRUNCATE
    else:
        assert (first.answer_epoch, first.answer_offset) == answer
        assert outcome.rule is TruncationRule.DIVERGING_EPOCH
    by_requests = follower_truncation(state_of(follower), elected, protocol=ProtocolName.KIP_279)
    assert by_requests.offset == expected
    assert not outcome.endless
    assert not by_requests.endless


def test_kip_101_leaves_the_divergence_that_kip_279_cuts():
    follower = state((0, 0), (1, 10), end=15, high_watermark=10)
    leader = state((0, 0), (2, 12), end=20)
    old = follower_truncation(follower, leader, protocol=ProtocolName.KIP_101, rules=RULES_BEFORE_2_0_1)
    assert old.offset == 12
    assert old.steps[0].sentence() == "it asks where epoch 1 ends; the leader answers offset 12: it truncates to 12"
    assert follower_truncation(follower, leader, protocol=ProtocolName.KIP_279).offset == 10


def test_kip_279_asks_twice():
    follower = state((0, 0), (1, 10), (3, 20), end=25, high_watermark=10)
    leader = state((0, 0), (2, 12), (4, 18), end=30)
    outcome = follower_truncation(follower, leader, protocol=ProtocolName.KIP_279)
    assert [
        (step.requested_epoch, step.answer_epoch, step.answer_offset, step.own_offset) for step in outcome.steps
    ] == [
        (3, 2, 18, 20),
        (1, 0, 12, 10),
    ]
    assert [step.truncate_to for step in outcome.steps] == [20, 10]
    assert outcome.offset == 10


def test_kip_595_diverging_epoch_on_fetch():
    follower = state((3, 0), (5, 40), end=55, high_watermark=40)
    leader = state((3, 0), (6, 48), end=60)
    outcome = follower_truncation(follower, leader, protocol=ProtocolName.KIP_595)
    assert [
        (step.fetch_offset, step.requested_epoch, step.answer_epoch, step.answer_offset) for step in outcome.steps
    ] == [
        (55, 5, 3, 48),
        (40, 3, NOTHING, NOTHING),
    ]
    assert outcome.offset == 40
    assert outcome.steps[0].sentence() == (
        "it fetches at 55 in epoch 5; on the leader epoch 3 ends at 48, its own epoch 3 ends at 40: it truncates to 40"
    )
    assert (
        outcome.steps[1].sentence()
        == "it fetches at 40 in epoch 3; the leader finds no divergence: it truncates nothing"
    )


def test_high_watermark_truncation_loses_a_committed_record():
    follower = state((0, 0), end=2, high_watermark=1)
    leader = state((0, 0), end=2, high_watermark=2)
    outcome = follower_truncation(follower, leader, protocol=ProtocolName.HW)
    assert (outcome.offset, outcome.rule) == (1, TruncationRule.HIGH_WATERMARK)
    assert outcome.steps[0].sentence() == "its log ends at 2, its high watermark is 1: it truncates to 1"
    for protocol in (ProtocolName.KIP_101, ProtocolName.KIP_279, ProtocolName.KIP_595):
        assert follower_truncation(follower, leader, protocol=protocol).offset is NOTHING


def test_high_watermark_truncation_keeps_a_divergence():
    returning = state((0, 0), end=2, high_watermark=2)
    leader = state((0, 0), (1, 1), end=2, high_watermark=2)
    assert follower_truncation(returning, leader, protocol=ProtocolName.HW).offset is NOTHING
    outcome = follower_truncation(returning, leader, protocol=ProtocolName.KIP_595)
    assert outcome.offset == 1
    assert outcome.below_high_watermark


@pytest.mark.parametrize("protocol", [ProtocolName.KIP_101, ProtocolName.KIP_279, ProtocolName.KIP_595])
def test_an_empty_epoch_cache_falls_back_to_the_high_watermark(protocol):
    outcome = follower_truncation(state(end=9, high_watermark=4), state((2, 3), end=12), protocol=protocol)
    assert (outcome.offset, outcome.rule) == (4, TruncationRule.EMPTY_EPOCH_CACHE)
    missing = follower_truncation(state(end=9), state((2, 0), end=12), protocol=protocol)
    assert missing.offset == 0
    assert not missing.full_restart


def test_kafka_6857_does_not_truncate_where_the_high_watermark_was_due():
    follower, leader = state(end=9, high_watermark=4), state(end=12)
    truncation = follower_truncation(follower, leader, protocol=ProtocolName.KIP_101, rules=RULES_BEFORE_2_0_1)
    kept = follower_truncation(follower, leader, protocol=ProtocolName.KIP_101, rules=RULES_BEFORE_1_0_2)
    assert truncation.offset == 4
    assert kept.offset is NOTHING


def test_an_epoch_unknown_to_the_leader_falls_back_to_the_high_watermark():
    follower, leader = state((7, 0), end=9, high_watermark=4), state((2, 0), end=12)
    for protocol in (ProtocolName.KIP_101, ProtocolName.KIP_279):
        outcome = follower_truncation(follower, leader, protocol=protocol)
        assert (outcome.offset, outcome.rule) == (4, TruncationRule.UNDEFINED_EPOCH)
        assert (
            outcome.steps[0].sentence() == "it asks where epoch 7 ends; the leader does not know: it truncates nothing"
        )


def test_an_epoch_below_the_leaders_first_differs_by_version():
    follower, leader = state((1, 0), end=9, high_watermark=4), state((7, 6), end=12)
    new = follower_truncation(follower, leader, protocol=ProtocolName.KIP_279)
    old = follower_truncation(follower, leader, protocol=ProtocolName.KIP_279, rules=RULES_BEFORE_2_0_1)
    assert (new.offset, old.offset) == (6, 4)


def test_own_epochs_all_above_the_answer():
    follower, leader = state((5, 3), end=9, start=3, high_watermark=4), state((1, 0), (6, 5), end=12)
    outcome = follower_truncation(follower, leader, protocol=ProtocolName.KIP_279, rules=RULES_BEFORE_2_6_1)
    assert outcome.offset == 3
    before = follower_truncation(
        follower, leader, protocol=ProtocolName.KIP_279, rules=RULES_BEFORE_2_0_1, leader_rules=RULES_BEFORE_2_6_1
    )
    assert before.offset == 5


def test_kafka_10706_never_ends():
    follower = state((1, 0), (3, 9), end=9, high_watermark=9)
    leader = state((1, 0), (2, 9), (4, 10), end=12)
    stuck = follower_truncation(follower, leader, protocol=ProtocolName.KIP_279, rules=RULES_BEFORE_2_6_1)
    assert stuck.endless
    assert stuck.rule is TruncationRule.ENDLESS
    assert stuck.offset is NOTHING
    done = follower_truncation(follower, leader, protocol=ProtocolName.KIP_279)
    assert not done.endless
    assert done.after.epochs == (EpochEntry(1, 0),)


@pytest.mark.parametrize("protocol", list(ProtocolName))
@pytest.mark.parametrize(
    ("start", "end", "expected", "full_restart"),
    [(0, 80, 80, False), (150, 300, 150, True), (50, 300, NOTHING, False)],
)
def test_out_of_range(protocol, start, end, expected, full_restart):
    follower = state((1, 0), end=100, high_watermark=100)
    leader = state((1, start), end=end, start=start)
    outcome = follower_truncation(follower, leader, protocol=protocol)
    assert outcome.offset == expected
    assert outcome.full_restart is full_restart
    if full_restart:
        assert outcome.rule is TruncationRule.OUT_OF_RANGE_BELOW
        assert outcome.after.log_start_offset == 150
        assert outcome.after.epochs == ()


def test_out_of_range_truncates_to_the_leaders_end_without_comparing_epochs():
    outcome = follower_truncation(
        state((9, 0), end=100, high_watermark=90), state((1, 0), end=80), protocol=ProtocolName.KIP_595
    )
    assert outcome.steps[0].kind is StepKind.OUT_OF_RANGE
    assert (
        outcome.steps[0].sentence()
        == "its fetch at 100 is out of range, the leader's log is 0 to 80: it truncates to 80"
    )
    assert outcome.offset == 80
    assert outcome.endless


def test_a_truncation_below_the_log_start_restarts_the_log():
    follower, leader = state((5, 30), end=40, start=30, high_watermark=30), state((1, 0), (6, 20), end=50)
    outcome = follower_truncation(follower, leader, protocol=ProtocolName.KIP_101)
    assert outcome.full_restart
    assert (outcome.offset, outcome.after.log_start_offset) == (20, 20)


def test_truncate_log_lowers_what_is_above_the_target():
    truncation = truncate_log(state((1, 0), (2, 6), end=9, high_watermark=8), 6)
    assert (truncation.log_end_offset, truncation.high_watermark, truncation.epochs) == (6, 6, (EpochEntry(1, 0),))
    assert truncate_log(state((1, 0), end=9), 9) == state((1, 0), end=9)


def test_an_old_leader_enters_its_epoch_with_its_first_append():
    leader = state((1, 0), end=9)
    assert leader_after_election(leader, 4, rules=RULES_BEFORE_2_0_1) == leader
    assert leader_after_election(leader, 4).epochs == (EpochEntry(1, 0), EpochEntry(4, 9))


OLD_FOLLOWER, SHORT_LEADER = state(end=60, high_watermark=58), state(end=45)


@pytest.mark.parametrize(
    ("halts", "offset", "rule", "last"),
    [
        (False, 45, TruncationRule.OUT_OF_RANGE_ABOVE, "it truncates to 45"),
        # To its high watermark it truncates in any case, as it becomes a follower.
        (True, 58, TruncationRule.HIGH_WATERMARK, "its broker halts (unclean.leader.election.enable=false)"),
        (
            Absent.UNKNOWN,
            45,
            TruncationRule.OUT_OF_RANGE_ABOVE,
            "or its broker halts (unclean.leader.election.enable=false, up to 1.0)",
        ),
    ],
)
def test_a_follower_above_its_leaders_end_truncates_again_or_its_broker_halts(halts, offset, rule, last):
    outcome = follower_truncation(OLD_FOLLOWER, SHORT_LEADER, protocol=ProtocolName.HW, halts_out_of_range=halts)

    assert (offset, rule, halts is True) == (outcome.offset, outcome.rule, outcome.halts)
    assert outcome.steps[-1].sentence().endswith(last)
    assert not outcome.endless


def test_a_broker_that_halts_at_once_truncates_nothing():
    follower = OLD_FOLLOWER._replace(high_watermark=60)
    outcome = follower_truncation(follower, SHORT_LEADER, protocol=ProtocolName.HW, halts_out_of_range=True)

    assert (NOTHING, TruncationRule.HALTED, True) == (outcome.offset, outcome.rule, outcome.halts)
    assert 60 == outcome.after.log_end_offset
