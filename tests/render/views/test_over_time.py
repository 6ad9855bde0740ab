"""Lanes over time of a partition: who led and was there, what happened, zoomed to what was grave, and nothing that is not known."""

from dataclasses import replace

from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.render.blocks import Look, OverTime, Prose
from kforensics.render.frame import References
from kforensics.render.views.incident import over_time
from tests.builders.incidents import explanation

CREATED, HALTED, ELECTED, TRUNCATED = 1_795_243_190_000, 1_795_243_200_000, 1_795_243_207_719, 1_795_243_212_042


def drawn(timeline=None, **changes):
    made = explanation("")
    (incident,) = made.incidents
    shown = replace(incident, **changes)
    return list(over_time(shown, made.timeline if timeline is None else timeline, References(made.inputs)))


def fenced(broker, time_ms, kind=EventKind.BROKER_FENCED):
    return TimelineEntry(kind=kind, time_ms=time_ms, broker_id=broker)


def test_each_broker_has_a_lane_of_what_it_was_and_what_happened_to_it():
    (block,) = drawn()

    assert isinstance(block, OverTime)
    assert ["broker 1", "broker 2", "broker 3"] == [one.name for one in block.courses]
    first, second, third = block.courses
    assert [("not in sync", Look.BEHIND), ("halted", Look.AWAY), ("leads in epoch 1", Look.LEADS)] == [
        (one.words, one.look) for one in first.stretches
    ]
    assert [HALTED, ELECTED, TRUNCATED] == [one.time_ms for one in first.moments]
    assert "broker 1 becomes leader by unclean election, the ISR was [2]" == first.moments[1].words
    assert "truncates 103 → 60" == first.moments[2].words
    assert all(one.is_grave and one.references for one in first.moments)
    assert [("leads in epoch 0", ELECTED), ("not in sync", block.courses[1].stretches[-1].end_ms)] == [
        (one.words, one.end_ms) for one in second.stretches
    ]
    assert ["not in sync"] == [one.words for one in third.stretches]
    # Before the first record of the partition nothing is claimed of any broker.
    assert min(one.begin_ms for course in block.courses for one in course.stretches) >= CREATED


def test_a_broker_that_is_back_is_not_away():
    timeline = [fenced(2, CREATED + 1_000), fenced(2, CREATED + 3_000, EventKind.BROKER_UNFENCED)]

    (block,) = drawn(timeline)

    assert ["leads in epoch 0", "fenced, still in the ISR", "leads in epoch 0", "not in sync"] == [
        one.words for one in block.courses[1].stretches
    ]


def test_what_was_long_before_and_after_is_counted_and_not_drawn():
    early = [fenced(3, CREATED + 600 * at, EventKind.BROKER_STOP) for at in range(1, 20)]
    late = [fenced(3, TRUNCATED + 3_600_000 * 24, EventKind.BROKER_STOP)]

    block, rest = drawn([*early, *late])

    assert isinstance(rest, Prose)
    assert rest.text.startswith("11 events before or after are not drawn")
    assert max(one.end_ms for course in block.courses for one in course.stretches) < TRUNCATED + 60_000
    assert 9 == len(block.courses[2].moments)


def test_nothing_is_drawn_without_a_time():
    (incident,) = explanation("").incidents
    timeless = tuple(replace(one, time_ms=Absent.UNKNOWN) for one in incident.leaderships)

    assert [] == drawn(leaderships=timeless)
    assert [] == drawn([], truncations=(), account=None, leaderships=incident.leaderships[:1])
