"""The epoch cache: every example of the rules, and their differences by version."""

import pytest

from kforensics.damage import Absent
from kforensics.protocol.epochs import (
    RULES_BEFORE_1_0_2,
    RULES_BEFORE_2_0_1,
    EpochEndOffset,
    assign,
    end_offset_for_epoch,
    epoch_at,
    latest_epoch,
    truncate_from_end,
    truncate_from_start,
    validated_position,
)
from kforensics.units import EpochEntry


def cache(*entries):
    return tuple(EpochEntry(*entry) for entry in entries)


TWO_TERMS = cache((5, 10), (7, 20))


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (4, EpochEndOffset(4, 10)),
        (5, EpochEndOffset(5, 20)),
        (6, EpochEndOffset(5, 20)),
        (7, EpochEndOffset(7, 30)),
        (8, Absent.UNKNOWN),
        (Absent.NOT_APPLICABLE, Absent.UNKNOWN),
    ],
)
def test_end_offset_for_epoch(requested, expected):
    assert end_offset_for_epoch(TWO_TERMS, 30, requested) == expected


def test_below_the_first_epoch_is_undefined_before_kafka_7415():
    assert end_offset_for_epoch(TWO_TERMS, 30, 4, RULES_BEFORE_2_0_1) is Absent.UNKNOWN
    assert end_offset_for_epoch(TWO_TERMS, 30, 6, RULES_BEFORE_2_0_1) == EpochEndOffset(5, 20)


def test_undefined_epoch_on_an_empty_cache_is_answered_with_the_log_end_by_kafka_6857():
    assert end_offset_for_epoch((), 30, Absent.UNKNOWN, RULES_BEFORE_1_0_2) == EpochEndOffset(Absent.UNKNOWN, 30)
    assert end_offset_for_epoch((), 30, Absent.UNKNOWN, RULES_BEFORE_2_0_1) is Absent.UNKNOWN
    assert end_offset_for_epoch((), 30, 0, RULES_BEFORE_1_0_2) is Absent.UNKNOWN
    assert end_offset_for_epoch(TWO_TERMS, 30, Absent.UNKNOWN, RULES_BEFORE_1_0_2) is Absent.UNKNOWN


def test_assign():
    assert assign((), 0, 0) == cache((0, 0))
    assert assign(TWO_TERMS, 7, 25) == TWO_TERMS
    assert assign(TWO_TERMS, 8, 30) == cache((5, 10), (7, 20), (8, 30))
    assert assign(TWO_TERMS, 8, 20) == cache((5, 10), (8, 20))
    assert assign(TWO_TERMS, 6, 30) == cache((5, 10), (6, 30))
    assert assign(TWO_TERMS, 7, 15) == cache((5, 10), (7, 15))
    assert assign(TWO_TERMS, 1, 1) == cache((1, 1))


def test_assign_ignored_what_contradicts_before_kafka_7415():
    assert assign(TWO_TERMS, 6, 30, RULES_BEFORE_2_0_1) == TWO_TERMS
    assert assign(TWO_TERMS, 8, 19, RULES_BEFORE_2_0_1) == TWO_TERMS
    assert assign(TWO_TERMS, 8, 20, RULES_BEFORE_2_0_1) == cache((5, 10), (7, 20), (8, 20))


@pytest.mark.parametrize(("leader_epoch", "start_offset"), [(-1, 0), (0, -1)])
def test_assign_leaves_out_negative_numbers(leader_epoch, start_offset):
    assert assign(TWO_TERMS, leader_epoch, start_offset) == TWO_TERMS


def test_truncate_from_end():
    entries = cache((0, 0), (3, 10))
    assert truncate_from_end(entries, 10) == cache((0, 0))
    assert truncate_from_end(entries, 11) == entries
    assert truncate_from_end(entries, 0) == ()
    assert truncate_from_end(entries, -1) == entries
    assert truncate_from_end((), 5) == ()


def test_truncate_from_start():
    entries = cache((0, 0), (3, 10), (4, 25))
    assert truncate_from_start(entries, 15) == cache((3, 15), (4, 25))
    assert truncate_from_start(entries, 10) == cache((3, 10), (4, 25))
    assert truncate_from_start(entries, 100) == cache((4, 100))
    assert truncate_from_start(cache((3, 10)), 5) == cache((3, 10))
    assert truncate_from_start((), 5) == ()


def test_epoch_at_and_latest_epoch():
    assert [epoch_at(TWO_TERMS, offset) for offset in (9, 10, 19, 20, 99)] == [Absent.UNKNOWN, 5, 5, 7, 7]
    assert latest_epoch(TWO_TERMS) == 7
    assert latest_epoch(()) is Absent.NOT_APPLICABLE


def test_a_position_is_held_against_the_end_of_its_leader_epoch():
    assert validated_position(TWO_TERMS, 30, 25, -1) == 25  # committed without an epoch: nobody asks
    assert validated_position((), 30, 25, 5) == 25
    assert validated_position(TWO_TERMS, 30, 15, 5) == 15
    assert validated_position(TWO_TERMS, 30, 25, 5) == 20
    assert validated_position(TWO_TERMS, 30, 25, 8) is Absent.UNKNOWN
