"""Where a real broker had the offsets of a tiered topic: copied, cut off while it copied, copied again, and cut off while it deleted."""

import json
import shutil

import pytest

from kforensics import diff, explain, predict, trace, verify

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
def test_copies_that_no_broker_reads_are_counted_by_what_became_of_them(moment, command):
    name, place = moment
    found = {one.code: one for one in command(place).findings}

    assert "KF122" not in found
    if command is explain and name == "40-deleting":
        return  # no offset of its log is left to explain
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
