"""All events of a case: those of some kinds, found by their places, and what the lines of each node reach from and to."""

from dataclasses import replace
from pathlib import Path

import pytest

from kforensics.damage import Absent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.clocks import Clock
from kforensics.reconcile.observed.logged_events import (
    LoggedEvents,
    lines_of_nodes,
    log_written,
    of_kinds,
    order_events,
    places_of_kinds,
)
from kforensics.reconcile.observed.logged_periods import first_lines
from tests.builders.history import read_log

LINES = """\
[2026-03-01 10:00:00,100] INFO [KafkaServer id=7] started (kafka.server.KafkaServer)
[2026-03-01 10:00:05,000] INFO [Log partition=t-0, dir=/d] Truncating to offset 7 (kafka.log.Log)
[2026-03-01 09:59:00,000] INFO [Log partition=t-0, dir=/d] Truncating to offset 5 (kafka.log.Log)
[2026-03-01 10:00:06,000] INFO [KafkaServer id=7] shut down completed (kafka.server.KafkaServer)
"""


@pytest.fixture
def events(tmp_path: Path) -> LoggedEvents:
    (tmp_path / "server.log").write_text(LINES)
    file = read_log(tmp_path, "server.log")
    assert file is not None
    return order_events([file], [Clock(shift_ms=0, source="assumed")])


def test_events_of_some_kinds_keep_their_order(events):
    kinds = (Kind.BROKER_STOPPED, Kind.TRUNCATION)

    assert [item for item in events if item.event.kind in kinds] == of_kinds(events, kinds)
    assert of_kinds(events, kinds) == of_kinds([*events], kinds)
    assert [1, 2, 3] == places_of_kinds(events, kinds) == places_of_kinds([*events], kinds)
    assert [] == of_kinds(events, (Kind.LOG_LOADED,))


def test_of_a_clock_that_went_back_the_earliest_time_is_not_the_first(events):
    (one,) = lines_of_nodes(events)

    assert (7, events[0].time_ms, events[2].time_ms) == (one.node_id, one.begin_ms, one.first_ms)
    assert events[3].time_ms == one.last_ms
    assert frozenset({Kind.BROKER_STARTED, Kind.TRUNCATION, Kind.BROKER_STOPPED}) == one.kinds
    assert {7: events[2].time_ms} == first_lines(events, {})
    assert lines_of_nodes([*events]) == lines_of_nodes(events)


def test_lines_without_a_time_have_none(tmp_path):
    (tmp_path / "server.log").write_text("INFO [KafkaServer id=7] started (kafka.server.KafkaServer)\n")
    file = read_log(tmp_path, "server.log")
    assert file is not None

    (one,) = lines_of_nodes(order_events([file], [Clock(shift_ms=0, source="assumed")]))

    assert [Absent.UNKNOWN] * 3 == [one.begin_ms, one.first_ms, one.last_ms]


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz", ".zst", ".zip"])
def test_a_rotated_file_is_of_its_log_whatever_it_is_compressed_by(ending, tmp_path):
    (tmp_path / "server.log").write_text(LINES)
    (tmp_path / f"server.log.1{ending}").write_text(LINES)
    current, rotated = (read_log(tmp_path, name) for name in ("server.log", f"server.log.1{ending}"))
    assert current is not None
    assert rotated is not None

    assert log_written(current) == log_written(rotated)


def test_lines_that_a_log_and_the_one_rotated_out_of_it_both_hold_are_one(tmp_path):
    lines = LINES.splitlines(keepends=True)
    (tmp_path / "server.log.1").write_text("".join(lines[:3]))
    (tmp_path / "server.log").write_text("".join(lines[1:]))
    files = [file for name in ("server.log", "server.log.1") if (file := read_log(tmp_path, name)) is not None]
    files = [replace(file, node_id=7) for file in files]

    events = order_events(files, [Clock(shift_ms=0, source="assumed")] * 2)

    assert [Absent.NOT_WRITTEN, 7, 5, Absent.NOT_WRITTEN] == [item.event.number("offset") for item in events]


@pytest.mark.parametrize(
    ("other", "nodes"), [(4, [7] * 5), (9, [7, 7, Absent.UNKNOWN, 7, Absent.UNKNOWN, 7, *[Absent.UNKNOWN] * 2])]
)
def test_the_same_output_under_an_input_of_no_node_is_counted_once(other, nodes, tmp_path):
    line = "[2026-03-01 10:00:0{},100] INFO [Log partition=t-0, dir=/d] Truncating to offset {} (kafka.log.Log)\n"
    (tmp_path / "server.log").write_text("".join(line.format(at, at) for at in (1, 2, 3, 4)))
    (tmp_path / "output.txt").write_text("".join(line.format(at, other if at == 4 else at) for at in (2, 3, 4, 5)))
    files = [file for name in ("output.txt", "server.log") if (file := read_log(tmp_path, name)) is not None]
    files = [replace(files[0], node_id=Absent.UNKNOWN), replace(files[1], node_id=7)]

    events = order_events(files, [Clock(shift_ms=0, source="assumed")] * 2)

    assert sorted(nodes, key=str) == sorted((item.node_id for item in events), key=str)
