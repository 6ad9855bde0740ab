"""Where a real broker had the offsets of a tiered topic: copied, cut off while it copied, copied again, and cut off while it deleted."""

import json
import shutil

import pytest

from kforensics import diff, explain, predict, trace, verify
from kforensics.damage import Absent
from kforensics.reconcile.logs.predicted_load import DueSegments

RECORDING = "tiers-3.9"
MOMENTS = {
    "10-copied": [(0, 29, "remote")],
    "20-cut-off": [(0, 29, "remote"), (30, 41, "local")],
    "30-copied-again": [(0, 41, "remote")],
    "40-deleting": [(0, 41, "deleted")],
}
NO_BROKER_READS = {
    "20-cut-off": ["1 never finished"],
    "30-copied-again": ["1 never finished"],
    "40-deleting": ["1 never finished", "1 whose deletion was not finished", "10 below the log start"],
}


@pytest.fixture(params=MOMENTS)
def moment(request, coordinators):
    return request.param, coordinators(RECORDING) / "snapshots" / request.param


def acts(root, what):
    return [one for one in json.loads((root / "incident.json").read_text())["acts"] if one["act"] == what]


@pytest.mark.some(2)
def test_the_offsets_are_where_the_storage_and_the_disk_had_them(moment):
    name, place = moment
    (found,) = [one for one in verify(place).to_dict()["tiers"] if one["topic"] == "archive"]
    held = acts(place.parent.parent, "held")[list(MOMENTS).index(name)]
    finished = {int(one.partition("-")[0]) for one in held["remote"]}

    assert MOMENTS[name] == [(one["offsets"]["first"], one["offsets"]["last"], one["tier"]) for one in found["ranges"]]
    for first, last, tier in MOMENTS[name]:
        bases = {base for base in finished if first <= base <= last}
        assert (tier in {"remote", "deleted"}) == bool(bases)
        assert tier != "local" or first in held["local"]


@pytest.mark.parametrize("command", [verify, explain])
@pytest.mark.some(3)
def test_copies_that_no_broker_reads_are_counted_by_what_became_of_them(moment, command):
    name, place = moment
    found = {one.code: one for one in command(place).findings}

    assert not {"KF122", "KF130"} & found.keys()
    assert ("KF123" in found) is (name in NO_BROKER_READS)
    for words in NO_BROKER_READS.get(name, ()):
        assert words in found["KF123"].statement
    assert "of other leader epochs" not in (found["KF123"].statement if "KF123" in found else "")


@pytest.mark.parametrize("command", [diff, predict])
def test_what_a_consumer_could_read_is_missing_nowhere(moment, command):
    _, place = moment

    assert "in no live log here" not in command(place).answer.headline


def test_a_record_that_was_copied_is_traced_to_the_copy_until_retention_took_it(coordinators):
    root = coordinators(RECORDING)
    read = acts(root, "read")[-1]
    assert read["offsets"] == list(range(42))
    states = [trace(root / "snapshots" / one, topics="archive", offset=35).answer.state for one in list(MOMENTS)[1:]]

    assert states == ["present", "in-remote-storage", "deleted-on-purpose"]


def test_lines_about_remote_storage_say_which_rule_deleted(coordinators):
    root = coordinators(RECORDING)
    of_then, alone = (
        trace([root / "snapshots" / "40-deleting", *logs], topics="archive", offset=1) for logs in ([root / "logs"], [])
    )
    said, without = (one.to_dict()["records"][0]["fate"][0]["statement"] for one in (of_then, alone))

    assert "2026-11-27 01:02:03 UTC by retention by time (retention.ms 2 seconds)" in said
    assert "no line names" not in said
    assert "2026-11-27 01:02:03 UTC" not in without


@pytest.mark.parametrize("command", [verify, diff, predict])
def test_without_the_record_of_the_copies_it_is_not_known_whether_they_are_there(command, coordinators, tmp_path):
    place = tmp_path / "now"
    shutil.copytree(coordinators(RECORDING) / "snapshots" / "30-copied-again", place)
    whole = command(place).answer
    shutil.rmtree(next(place.glob("*/__remote_log_metadata-0")))
    lacking = command(place)

    words = "Whether remote storage holds offsets 0 to 41 of archive-0, which no live log here holds"
    assert any(one.startswith(words) for one in lacking.answer.unknown)
    assert not any("remote storage holds" in one for one in whole.unknown)
    assert "KF122" not in {one.code for one in lacking.findings}, "what was not read may be there"


@pytest.mark.parametrize(
    ("name", "now", "expired"),
    [
        ("10-copied", "2026-11-27T02:00:00Z", None),
        (
            "10-copied",
            "2026-11-30T00:00:00Z",
            "8 copies in remote storage, offsets 0 to 29: they are due by retention.ms",
        ),
        # Older than any setting allows, and in no finished copy: it stays on disk.
        (
            "20-cut-off",
            "2026-11-30T00:00:00Z",
            "8 copies in remote storage, offsets 0 to 29: they are due by retention.ms",
        ),
        ("40-deleting", "2026-11-27T02:00:00Z", "offsets 4 to 41: they are due by retention.ms 2 seconds"),
    ],
)
def test_predict_says_which_copies_are_due_and_leaves_on_disk_what_is_not_copied(coordinators, name, now, expired):
    result = predict(coordinators("tiers-3.9") / "snapshots" / name, now=now)
    (log,) = [one for one in result.body.logs if one.topic == "archive"]
    assert log.due is Absent.NOT_APPLICABLE
    later = " ".join(map(str, result.answer.later))
    assert (expired is None) is ("in remote storage" not in later)
    assert (expired or "") in later
    assert "all of 1" not in result.answer.headline


def test_predict_takes_from_disk_what_has_a_finished_copy(coordinators, tmp_path):
    recorded = coordinators("tiers-3.9") / "snapshots"
    place = tmp_path / "broker-1"
    shutil.copytree(recorded / "30-copied-again/broker-1", place)
    shutil.rmtree(place / "archive-0")
    shutil.copytree(recorded / "20-cut-off/broker-1/archive-0", place / "archive-0")
    result = predict(place, now="2026-11-27T02:00:00Z")
    (log,) = [one for one in result.body.logs if one.topic == "archive"]
    assert isinstance(log.due, DueSegments)
    # By local.retention.ms; the active segment has no copy.
    assert (log.due.base_offsets, log.due.is_copied, log.due.is_whole_log) == ((30, 34), True, False)
    assert "Of 2 segments there are finished copies in remote storage." in " ".join(map(str, result.answer.later))
