"""What retention deleted before its time is lost, in every command that speaks of it; what was old enough, or asked for, is not."""

import datetime as dt

import pytest

from kforensics.ask.model import Ask
from kforensics.commands.explain import run as explain
from kforensics.commands.verify import run as verify
from tests.builders.coordinators import batch, write_log

DAY = 86_400_000
BEGIN = 1_780_000_000_000
DUE = BEGIN + DAY
"""When the broker deletes the first two segments."""


def line(text, at_ms=DUE):
    at = dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC)
    return f"[{at:%Y-%m-%d %H:%M:%S},000] INFO {text}\n"


OF_LOG = "[Log partition=t-0, dir=/d] "
OF_CLASS = " (kafka.log.Log)"


def by_time(limit_ms):
    return line(
        f"{OF_LOG}Found deletable segments with base offsets [0,4] due to retention time {limit_ms}ms breach{OF_CLASS}"
    )


MOVED = line(f"{OF_LOG}Incrementing log start offset to 8{OF_CLASS}")
REQUEST = line(f"{OF_LOG}Incremented log start offset to 8 due to client delete records request{OF_CLASS}")


def node(root, *segments, lines=""):
    data = root / "data"
    data.mkdir(parents=True)
    (data / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (data / "replication-offset-checkpoint").write_text("0\n1\nt 0 12\n")
    write_log(data, "t-0", *((base, batch(base, [(b"k", b"v")] * 4, time_ms=time_ms)) for base, time_ms in segments))
    if lines:
        version = line("Kafka version: 2.4.1 (org.apache.kafka.common.utils.AppInfoParser)", BEGIN)
        (root / "server.log").write_text(version + lines)
    return root


def looked(tmp_path, lines, *, stamps=(DUE - 60_000, DUE - 50_000), zone="UTC"):
    before = node(tmp_path / "before", (0, stamps[0]), (4, stamps[1]), (8, DUE - 1))
    now = node(tmp_path / "now", (8, DUE - 1), lines=lines)
    ask = Ask(paths=(now,), before=(before,), log_timezone=zone, jobs=1)
    return explain(ask)


@pytest.mark.parametrize("limit_ms", [DAY, 7 * DAY])
def test_segments_that_were_too_young_are_lost(tmp_path, limit_ms):
    result = looked(tmp_path, by_time(limit_ms) + MOVED)
    (incident,) = [one for one in result.body.incidents if one.losses]
    (loss,) = incident.losses

    assert ((0, 7), 8, "early-retention", "proven") == (tuple(loss.offsets), loss.records, loss.cause, loss.confidence)
    assert [one.path for one in loss.held_by] == ["data/t-0"]
    assert "8 records of t-0" in result.answer.headline
    assert "retention that took them for older than they were" in result.answer.headline
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("lines", "stamps", "zone"),
    [
        (by_time(30_000) + MOVED, (DUE - 60_000, DUE - 50_000), "UTC"),
        (REQUEST, (DUE - 60_000, DUE - 50_000), "UTC"),
        # Without the zone of its lines a broker may have deleted them up to 14 hours later.
        (by_time(3_600_000) + MOVED, (DUE - 60_000, DUE - 50_000), None),
        (by_time(3_600_000) + line(f"{OF_LOG}Incrementing log start offset to 4{OF_CLASS}"), (DUE - DAY, DUE), "UTC"),
        ("", (DUE - 60_000, DUE - 50_000), "UTC"),
    ],
)
def test_what_was_old_enough_or_asked_for_is_not(tmp_path, lines, stamps, zone):
    result = looked(tmp_path, lines, stamps=stamps, zone=zone)

    assert not [one for incident in result.body.incidents for one in incident.losses]
    assert "are lost: retention" not in result.answer.headline


def test_a_log_without_segments_is_none_that_retention_took(tmp_path):
    before = node(tmp_path / "before", (8, DUE - 1))
    (before / "data" / "t-0" / f"{8:020d}.log").unlink()
    write_log(before / "data", "u-0", (0, b""))
    now = node(tmp_path / "now", (8, DUE - 1), lines=by_time(DAY) + MOVED)
    result = explain(Ask(paths=(now,), before=(before,), log_timezone="UTC", jobs=1))

    assert not [one for incident in result.body.incidents for one in incident.losses]


def test_only_the_young_of_them_are_lost(tmp_path):
    result = looked(tmp_path, by_time(3_600_000) + MOVED, stamps=(DUE - DAY, DUE - 50_000))
    losses = [one for incident in result.body.incidents for one in incident.losses]

    assert [(4, 7)] == [tuple(one.offsets) for one in losses]


@pytest.mark.parametrize(("largest", "is_told"), [(BEGIN - 400 * DAY, True), (0, True), (-1, False), (DUE, False)])
def test_a_segment_that_goes_soon_after_it_was_written_is_in_the_first_line(tmp_path, largest, is_told):
    segment = f"LogSegment(baseOffset=0, size=9, lastModifiedTime={DUE - 60_000}, largestRecordTimestamp={largest})"
    lines = line(
        f"[UnifiedLog partition=t-0, dir=/d] Deleting segment {segment} due to log retention time {7 * DAY}ms breach"
        " based on the largest record timestamp in the segment (org.apache.kafka.storage.internals.log.UnifiedLog)"
    )
    result = looked(tmp_path, lines)

    assert is_told is ("Retention by time deleted 1 segment of t-0" in result.answer.headline)
    assert is_told is ("KF127" in {one.code for one in result.findings})


@pytest.mark.parametrize(("index", "is_told"), [(bytes(24), True), (b"", False)])
def test_a_time_index_of_zeros_is_what_retention_goes_by(tmp_path, index, is_told):
    root = node(tmp_path / "now", (0, DUE), (4, DUE), (8, DUE))
    (root / "data" / ".kafka_cleanshutdown").write_text("")
    (root / "data" / "t-0" / f"{0:020d}.timeindex").write_bytes(index)
    found = [one for one in verify(Ask(paths=(root,), jobs=1)).findings if one.code == "KF103"]

    assert is_told is bool(found)
    assert all("one of 1970" in one.meaning and "retention.ms=-1" in one.advice for one in found)
