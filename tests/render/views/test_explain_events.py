"""The default timeline of `explain`: what decided something, alike events as one, the rest counted, and the day and zone where they change."""

from dataclasses import replace

import kforensics
from kforensics.commands.result import Conclusion, Result
from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.evidence.model import Input
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.render.emit import OutputFormat, emit
from kforensics.render.view import View
from kforensics.units import TopicPartition
from tests.builders.incidents import explanation

DAY_MS = 86_400_000
START = 1_795_243_212_042


def shown(body, **view):
    result = Result(command="explain", inputs=body.inputs, body=body, concluded=Conclusion(body.answer))
    return "".join(emit(result, OutputFormat.TEXT, View(**view)))


def incident_with(count, *, apart_ms=10):
    """An explanation of so many truncations of one broker, each of another partition and of one offset more."""
    body = explanation("")
    (incident,) = body.incidents
    (one,) = incident.truncations
    partitions = [TopicPartition("orders", at) for at in range(count)]
    truncations = tuple(
        replace(one, topic_partition=tp, time_ms=START + at * apart_ms, from_offset=61 + at)
        for at, tp in enumerate(partitions)
    )
    return replace(body, incidents=(replace(incident, truncations=truncations),))


def test_truncations_of_a_broker_that_followed_each_other_are_one_event():
    screen = shown(incident_with(38))

    assert "06:40:12.042  broker 1 truncates 38 logs by 1 to 38 offsets each, until" in screen
    assert "06:40:12.412: orders-0, orders-1, orders-2, orders-3 and 34 more" in screen
    assert "truncates orders-7 68 -> 60" in shown(incident_with(38), verbose=True)


def test_few_truncations_and_those_of_another_time_are_told_one_by_one():
    assert "truncates orders-1 62 -> 60" in shown(incident_with(2))
    assert "truncates 3 logs" not in shown(incident_with(3, apart_ms=DAY_MS))


def test_the_day_and_the_zone_stand_at_the_head_and_where_a_day_changes():
    screen = shown(incident_with(3, apart_ms=DAY_MS))

    days = [line.strip() for line in screen.splitlines() if line.endswith(", times in UTC")]
    assert ["2026-11-21, times in UTC", "2026-11-22, times in UTC", "2026-11-23, times in UTC"] == days


def test_what_decided_nothing_is_counted():
    body = explanation("")
    partition = body.incidents[0].partition
    late = TimelineEntry(kind=EventKind.ISR_EXPAND, time_ms=START, topic_partition=partition)
    start = TimelineEntry(kind=EventKind.BROKER_START, time_ms=START, broker_id=1)
    grown = replace(body, timeline=(*body.timeline, late, start))

    more = {
        len(one.timeline): [line for line in shown(one).splitlines() if "other event" in line] for one in (body, grown)
    }

    counts = [int(lines[0].partition(" ")[0]) for lines in more.values()]
    assert counts[1] == counts[0] + 2
    assert "has started" not in shown(grown)
    assert "has started" in shown(grown, verbose=True)


def test_a_controller_of_its_own_is_called_one_and_a_broker_is_not():
    body = explanation("")
    own = Input(path="c", kind="controller", broker_id=102)
    starts = tuple(
        TimelineEntry(kind=kind, time_ms=START, broker_id=node)
        for kind in (EventKind.BROKER_START, EventKind.CONTROLLER_CHANGE)
        for node in (1, 102)
    )
    screen = shown(replace(body, inputs=(*body.inputs, own), timeline=starts), verbose=True)

    assert "controller 102 has started" in screen
    assert "controller 102 becomes the active controller" in screen
    assert "broker 1 has started" in screen
    assert "node 1 becomes the active controller" in screen
    assert "broker 102" not in screen


def test_a_controller_of_which_only_the_log_is_given_is_one_in_every_event(incident):
    root = incident("unclean-election-4.x")

    result = kforensics.explain(root / "snapshots" / "99-final" / "broker-1", root / "logs")
    screen = "".join(emit(result, OutputFormat.TEXT, View(verbose=True)))

    assert "controller 100 has started" in screen
    assert "controller 100 begins to shut down" in screen
    assert "broker 2 has started" in screen
    assert "broker 100" not in screen


def test_only_an_isr_of_one_and_an_election_before_a_truncation_decided_something():
    body = explanation("")
    partition = body.incidents[0].partition

    def entry(kind, isr=(), epoch=Absent.NOT_APPLICABLE):
        detail = {"isr": isr, "isr_before": (1, 2, 3)} if isr else {}
        return TimelineEntry(
            kind=kind, time_ms=START - 1, topic_partition=partition, broker_id=2, leader_epoch=epoch, detail=detail
        )

    screen = shown(
        replace(
            body,
            timeline=(
                entry(EventKind.ISR_SHRINK, (1, 2)),
                entry(EventKind.ISR_SHRINK, (1,)),
                entry(EventKind.LEADER_CHANGE, epoch=1),
                entry(EventKind.LEADER_CHANGE, epoch=7),
            ),
        )
    )

    assert "shrinks from [1, 2, 3] to [1] " in screen.replace("\n", " ") + " "
    assert "to [1, 2]" not in screen
    assert "(epoch 1)" in screen
    assert "(epoch 7)" not in screen
