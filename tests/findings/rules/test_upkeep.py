"""A cleaner that stands still and a timestamp of the future: said where they are, and not of logs that a cleaner or a clock only is behind with."""

import os

import pytest

from kforensics import groups, ls, predict, verify
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.units import OFFSETS_TOPIC
from tests.builders.coordinators import batch, commit
from tests.builders.directories import CLUSTER, log_dir

NOW = 1_700_000_000_000
HOUR = 3_600_000
DAY = 24 * HOUR


def written(path, content, at_ms):
    path.write_bytes(content)
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


def offsets_log(root, *, closed, cleaner, apart_ms):
    name = f"{OFFSETS_TOPIC}-11"
    place = log_dir(root / "b3", 3, partitions=(name,))
    for at in range(closed + 1):
        content = batch(at, [commit("billing", "orders", 0, at)], time_ms=NOW + at * apart_ms)
        written(place / name / f"{at:020d}.log", content, NOW + at * apart_ms)
    if cleaner is not None:
        (place / "cleaner-offset-checkpoint").write_text(f"0\n1\n{OFFSETS_TOPIC} 11 {cleaner}\n")
    return place


def of(result, code):
    return [one for one in result.findings if one.code == code]


@pytest.mark.parametrize("command", [verify, ls, groups])
@pytest.mark.parametrize(
    ("cleaner", "words"), [(1, "the cleaner stands at offset 1"), (None, "no cleaner has been over it")]
)
def test_a_cleaner_that_stands_still_is_named(tmp_path, command, cleaner, words):
    (found,) = of(command(offsets_log(tmp_path, closed=6, cleaner=cleaner, apart_ms=HOUR)), "KF121")
    assert words in found.statement
    assert f"{OFFSETS_TOPIC}-11" in found.statement
    assert found.is_grave


@pytest.mark.parametrize(
    "made",
    [
        {"closed": 6, "cleaner": 6, "apart_ms": HOUR},  # up to the active segment
        {"closed": 6, "cleaner": 4, "apart_ms": HOUR},  # less than half is dirty
        {"closed": 6, "cleaner": 0, "apart_ms": 60_000},  # all of one moment, as after a copy
        {"closed": 2, "cleaner": 0, "apart_ms": HOUR},
    ],
)
def test_a_cleaner_that_is_only_behind_is_none(tmp_path, made):
    assert not of(verify(offsets_log(tmp_path, **made)), "KF121")


def events_log(root, *segments):
    """Segments of (base offset, stamps, when the file was written)."""
    place = log_dir(root / "b1", partitions=("events-2",))
    for base, stamps, at_ms in segments:
        content = encode_record_batch(build_record_batch(base, [(stamp, b"k", b"v") for stamp in stamps]))
        written(place / f"events-2/{base:020d}.log", content, at_ms)
    return place


def test_a_timestamp_of_the_future_is_a_note_with_its_offset(tmp_path):
    place = events_log(
        tmp_path,
        (0, [NOW, NOW + 400 * DAY, NOW + 1], NOW + 5),
        (3, [NOW + DAY], NOW + DAY),
    )
    (found,) = of(verify(place), "KF120")
    assert (
        "the record at offset 1 in segment 00000000000000000000.log is stamped 2024-12-18 22:13:20 UTC"
        in found.statement
    )
    assert not found.is_grave


@pytest.mark.parametrize(("settings", "is_said"), [({"log.retention.ms": "86400000"}, True), ({}, False)])
def test_predict_says_until_when_retention_waits(tmp_path, settings, is_said):
    place = events_log(
        tmp_path,
        (0, [NOW], NOW),
        (1, [NOW + 400 * DAY, NOW + DAY], NOW + DAY),
        (3, [NOW + 2 * DAY], NOW + 2 * DAY),
    )
    # With ZooKeeper: which directories are strays is then no question.
    (place / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n")
    result = predict(place, kafka="2.8.1", now="2024-01-20T00:00:00Z", set=settings)
    said = "deletes nothing more of events-2 before 2024-12-19 22:13:20 UTC" in " ".join(map(str, result.answer.later))
    assert said is is_said


def test_of_a_copy_without_times_only_what_is_ahead_of_now_is_said(tmp_path):
    epoch = 315_532_800_000
    place = events_log(tmp_path, (0, [NOW], epoch), (1, [NOW + DAY], epoch), (2, [NOW, 4_000_000_000_000], epoch))
    (found,) = of(verify(place), "KF120")
    assert "offset 3" in found.statement
    assert "ahead of the time now" in found.statement


def test_a_clock_a_few_hours_ahead_is_no_timestamp_of_the_future(tmp_path):
    assert not of(verify(events_log(tmp_path, (0, [NOW, NOW + 20 * HOUR], NOW + 5))), "KF120")
