"""What retention deletes: rules in their order, by version, and what keeps a segment."""

import pytest

from kforensics.damage import Absent
from kforensics.protocol.retention import (
    AgedSegment,
    RetentionPeriod,
    RetentionPolicy,
    RetentionRule,
    RetentionTimes,
    aged_out_at,
    due_segments,
    in_milliseconds,
)
from kforensics.protocol.versions import KafkaVersion
from tests.steps import steps

NOW, DAY = 1_000_000_000_000, 86_400_000
NEW, OLD = KafkaVersion(4, 1), KafkaVersion(2, 0)
OFF = RetentionPolicy(-1, -1, deletes=True)


def segments(*ages, length=100):
    return [AgedSegment(at * 10, at * 10 + 10, length, NOW - age) for at, age in enumerate(ages)]


def due(logs, policy, *, start=0, watermark=1_000, version=NEW):
    found = due_segments(logs, policy, log_start_offset=start, high_watermark=watermark, now_ms=NOW, version=version)
    return [base for base, _ in found]


def test_time_takes_from_the_oldest_on_and_stops_at_the_first_that_is_young():
    policy = RetentionPolicy(DAY, -1, deletes=True)
    assert due(segments(3 * DAY, 2 * DAY, 1, 9 * DAY), policy) == [0, 10]
    assert due(segments(3 * DAY, 2 * DAY), policy) == [0, 10], "the active segment is rolled and deleted too"
    assert due(segments(DAY), policy) == []
    assert due(segments(3 * DAY, 2 * DAY), policy._replace(deletes=False)) == []


def test_no_segment_above_the_high_watermark_is_deleted():
    policy = RetentionPolicy(DAY, -1, deletes=True)
    assert due(segments(3 * DAY, 3 * DAY), policy, watermark=10) == [0]
    assert due(segments(3 * DAY), policy, watermark=0) == []


def test_an_empty_last_segment_stays():
    assert due(segments(3 * DAY, length=0), RetentionPolicy(DAY, -1, deletes=True)) == []


@pytest.mark.parametrize(("limit", "expected"), [(300, []), (200, [0]), (299, []), (0, [0, 10, 20]), (-1, [])])
def test_size_takes_what_is_above_it(limit, expected):
    assert due(segments(1, 1, 1), RetentionPolicy(-1, limit, deletes=True)) == expected


def test_a_log_of_many_segments_takes_steps_in_proportion():
    def of(count):
        return lambda: due(segments(*[1] * count), RetentionPolicy(-1, 0, deletes=True), watermark=1 << 40)

    assert len(of(2_000)()) == 2_000
    assert steps(of(2_000)) < 2.1 * steps(of(1_000))


def test_what_lies_below_the_log_start_is_deleted_whatever_the_policy():
    assert due(segments(1, 1, 1), OFF, start=20) == [0, 10]
    assert due(segments(1, 1, 1), OFF._replace(deletes=False), start=20) == [0, 10]
    assert due(segments(1, 1, 1), OFF._replace(deletes=False), start=20, version=OLD) == []
    assert due(segments(1), OFF, start=20) == [], "the last segment is never below the log start"


def test_the_rules_come_in_another_order_before_3_0():
    both = RetentionPolicy(DAY, 200, deletes=True)
    logs = segments(3 * DAY, 1, 1, 1)
    order = [
        [
            rule
            for _, rule in due_segments(logs, both, log_start_offset=0, high_watermark=99, now_ms=NOW, version=version)
        ]
        for version in (NEW, OLD)
    ]
    assert order == [[RetentionRule.SIZE, RetentionRule.SIZE], [RetentionRule.TIME, RetentionRule.SIZE]]


def test_before_1_0_no_high_watermark_keeps_a_segment():
    policy = RetentionPolicy(DAY, -1, deletes=True)
    assert due(segments(3 * DAY), policy, watermark=0, version=KafkaVersion(0, 11)) == [0]
    assert due(segments(1, 1, 1), OFF, start=20, version=KafkaVersion(0, 10)) == []


def test_no_segment_goes_before_one_in_front_of_it():
    assert aged_out_at([5, 90, 10], 100) == [105, 190, 190]


WEEK = RetentionPolicy(604_800_000, -1, deletes=True)
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("policy", "asked", "is_early"),
    [
        (WEEK, {}, True),
        (WEEK._replace(retention_ms=MINUTE_MS), {}, False),
        (WEEK._replace(retention_ms=-1), {}, False),
        (WEEK._replace(deletes=False), {}, False),
        (WEEK._replace(retention_bytes=100), {}, False),
        (WEEK._replace(retention_bytes=100), {"spare": 99}, True),
        (WEEK._replace(retention_bytes=100), {"spare": 100}, False),
        # It was there before anything is known of its settings.
        (WEEK, {"since_ms": 5}, False),
    ],
)
def test_records_went_early_only_where_no_rule_can_have_come_to_them(policy, asked, is_early):
    times = RetentionTimes((RetentionPeriod(10, policy),), until_ms=DAY_MS)

    assert times.is_early(20, **asked) is is_early


def test_nothing_went_early_by_an_end_that_is_not_known():
    assert not RetentionTimes((RetentionPeriod(0, WEEK),)).is_early(20)
    assert not RetentionTimes(until_ms=DAY_MS).is_early(20)


def test_a_default_that_may_be_shortened_by_a_file_excludes_minutes_alone():
    by_default = RetentionTimes((RetentionPeriod(0, WEEK, is_time_known=False, is_dated=False),), until_ms=DAY_MS)

    assert by_default.is_early(DAY_MS - 2 * MINUTE_MS)
    assert not by_default.is_early(DAY_MS - 60 * MINUTE_MS)
    assert [one.is_known for one in by_default.rules(20)] == [False]


def test_a_rule_counts_as_long_as_it_was_set_and_the_segment_was_there():
    short, long = WEEK._replace(retention_ms=MINUTE_MS), WEEK
    times = RetentionTimes((RetentionPeriod(0, short), RetentionPeriod(DAY_MS, long)), until_ms=2 * DAY_MS)

    assert [(one.limit, one.until_ms) for one in times.rules(20)] == [(MINUTE_MS, DAY_MS)]
    assert times.rules(20, since_ms=DAY_MS) == ()
    assert times.rules(DAY_MS - 1) == ()


def test_a_setting_that_only_the_file_of_today_has_says_nothing_of_the_past():
    of_file = RetentionTimes((RetentionPeriod(0, WEEK, is_dated=False),), until_ms=DAY_MS)

    assert not of_file.is_early(DAY_MS - 60 * MINUTE_MS)
    assert [one.is_known for one in of_file.rules(20)] == [True]


def test_what_another_broker_had_that_can_have_led_counts():
    short = (RetentionPeriod(0, WEEK._replace(retention_ms=MINUTE_MS)),)
    times = RetentionTimes((RetentionPeriod(0, WEEK),), until_ms=DAY_MS, elsewhere=[short])

    assert not times.is_early(20)
    assert [one.limit for one in times.rules(20)] == [MINUTE_MS]
    assert not times._replace(elsewhere=[()]).is_early(20), "nothing is known of that broker"


@pytest.mark.parametrize(
    ("created_ms", "stamps", "begins_ms", "expected"),
    [
        (HOUR_MS, (), HOUR_MS, (3, HOUR_MS)),
        # Records that are left, or that a snapshot names, are stamped before their topic: mirrored ones.
        (HOUR_MS, (), HOUR_MS - 1, None),
        (HOUR_MS, ((1, 7),), HOUR_MS, None),
        (Absent.UNKNOWN, ((1, DAY_MS - 9), (8, DAY_MS - 8), (9, DAY_MS - 7)), HOUR_MS, (8, DAY_MS - 8)),
        # It is behind the log start, so that it is there.
        (Absent.UNKNOWN, ((12, DAY_MS - 8),), HOUR_MS, None),
        (Absent.UNKNOWN, (), HOUR_MS, None),
    ],
)
def test_from_where_records_went_early(created_ms, stamps, begins_ms, expected):
    times = RetentionTimes(
        (RetentionPeriod(0, WEEK),), created_ms, DAY_MS, stamps=lambda: stamps, begins_ms=lambda: begins_ms
    )

    assert times.early_from(3, 12) == expected
    assert times.early_from(12, 12) is None


@pytest.mark.parametrize(
    ("timestamp", "until_ms", "expected"),
    [
        (1_795_838_777, 1_795_838_781_000, 1_795_838_777_000),
        (1_795_838_777, Absent.UNKNOWN, 1_795_838_777),
        (1_795_838_777_000, 1_795_838_781_000, 1_795_838_777_000),
        (1_895_838_777, 1_795_838_781_000, 1_895_838_777),  # as seconds, of the future
        (1_200_000_000, 1_795_838_781_000, 1_200_000_000),  # as seconds, before Kafka
        (-1, 1_795_838_781_000, -1),
    ],
)
def test_a_timestamp_in_seconds_is_one_of_kafka_s_time(timestamp, until_ms, expected):
    assert in_milliseconds(timestamp, until_ms) == expected
