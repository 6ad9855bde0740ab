"""Snapshots given in the wrong order, twice, of another cluster or node: named, and the rest is used."""

import os
import re
import shutil
from pathlib import Path

import pytest

from kforensics.cli.app import run
from kforensics.evidence.discovery.inputs import find_inputs
from tests.builders.directories import copied
from tests.builders.explained import explain

pytestmark = pytest.mark.usefixtures("read_once")

HOUR = 3_600


@pytest.fixture(scope="module")
def recording(incident):
    return incident("operator-actions-2.8") / "snapshots"


def copied_at(source, target, time_s):
    """A plain copy, all of whose files carry one time."""
    copied(source, target)
    for folder, _, names in os.walk(target):
        for name in names:
            os.utime(Path(folder, name), (time_s, time_s))
    return target


def test_file_times_that_mislead_are_overruled_by_what_the_snapshots_hold(recording, tmp_path, capsys):
    # The older snapshot was copied last, a month after the recording.
    newer = copied_at(recording / "02-broker-1-down-live", tmp_path / "newer", 1_800_000_000)
    older = copied_at(recording / "01-before-live", tmp_path / "older", 1_800_000_000 + HOUR)
    document, code = explain(capsys, "--before", newer, "--before", older, recording / "99-final")

    assert 3 == code
    assert [] == document["truncations"] == document["losses"]
    assert [note for note in document["notes"] if "put in order by what they hold" in note]

    right, _ = explain(capsys, "--before", older, "--before", newer, recording / "99-final")
    assert ["The times of the snapshots' files contradict what they hold"] == [
        note.split(";")[0] for note in right["notes"]
    ]


def test_a_snapshot_that_is_younger_than_what_is_now_changes_places_with_it(incident, capsys):
    root = incident("unclean-election-2.8")
    first = min((root / "snapshots").iterdir())
    right, _ = explain(capsys, "--before", first, root / "snapshots" / "99-final")
    swapped, _ = explain(capsys, "--before", root / "snapshots" / "99-final", first)

    assert [note for note in swapped["notes"] if "they change places" in note]
    assert right["conclusion"] == swapped["conclusion"]
    assert "not-used" not in {one["kind"] for one in swapped["inputs"]}


@pytest.mark.slow
def test_an_earlier_disk_of_one_broker_is_what_is_now(incident, capsys, tmp_path):
    """Broker 1 got the disk back that it had before; the others were not started since."""
    snapshots = incident("unclean-election-2.8") / "snapshots"
    copied(snapshots / "99-final", tmp_path / "now")
    shutil.rmtree(tmp_path / "now" / "broker-1")
    copied(min(snapshots.iterdir()) / "broker-1", tmp_path / "now" / "broker-1")
    document, code = explain(capsys, "--before", snapshots / "99-final", tmp_path / "now")

    assert [note for note in document["notes"] if "disks were put back to an earlier state" in note]
    assert not [note for note in document["notes"] if "they change places" in note]
    assert code
    assert "nothing-lost" != document["answer"]["state"]


def test_what_could_not_be_read_is_reported_although_snapshots_change_places(incident, capsys, tmp_path):
    root = incident("unclean-election-2.8")
    first, newest = min((root / "snapshots").iterdir()), root / "snapshots" / "99-final"
    document, code = explain(capsys, "--before", newest, tmp_path / "gone", first, "--keep-going")

    assert [note for note in document["notes"] if "they change places" in note]
    assert 3 == code
    assert [str(tmp_path / "gone")] == [document["inputs"][one["input"]]["path"] for one in document["problems"]]


def test_a_younger_snapshot_of_one_node_is_put_aside(incident, capsys):
    root = incident("unclean-election-2.8")
    first = min((root / "snapshots").iterdir())
    document, _ = explain(capsys, "--before", root / "snapshots" / "99-final" / "broker-1", first)

    assert [note for note in document["notes"] if "is younger than what is now" in note and "not used" in note]
    assert ["not-used"] == [one["kind"] for one in document["inputs"] if "99-final" in one["path"]]
    assert [] == document["losses"]


def test_a_snapshot_given_twice_counts_once(recording, capsys):
    before = recording / "01-before-live"
    once, _ = explain(capsys, "--before", before, recording / "99-final")
    twice, _ = explain(capsys, "--before", before, "--before", before, recording / "99-final")

    assert [f"{before} is given twice with --before; it is used once."] == twice["notes"]
    assert once["conclusion"] == twice["conclusion"]
    assert once["operations"] == twice["operations"]


def test_what_is_now_given_as_before_too_stays_what_is_now(recording, capsys):
    document, code = explain(capsys, "--before", recording / "99-final", recording / "99-final")

    assert 3 == code
    assert 1 == len(document["notes"])
    assert "it is taken for what is now" in document["notes"][0]


def test_a_snapshot_of_another_cluster_is_refused_or_left_out_where_one_is_chosen(recording, incident, capsys):
    other = incident("acks1-tail-2.8") / "snapshots" / "01-leader-killed-live"
    refused, code = explain(capsys, "--before", other, recording / "99-final")

    assert 3 == code
    assert "unknown" == refused["answer"]["state"]
    assert any(str(other) in one["path"] for one in refused["inputs"])
    assert "timeline" not in refused

    own = find_inputs([recording / "99-final"]).described[0].cluster_id
    document, code = explain(capsys, "--before", other, "--cluster", own, recording / "99-final")

    assert 3 == code
    assert [note for note in document["notes"] if "is of cluster" in note]
    assert {"not-used"} == {one["kind"] for one in document["inputs"] if str(other) in one["path"]}
    assert not any("payments" in str(one) for one in (document["losses"], document["partitions"]))


def test_a_snapshot_of_a_node_that_is_not_there_now_is_named_and_used(incident, capsys):
    root = incident("unclean-election-2.8")
    *earlier, now = sorted((root / "snapshots").iterdir())
    before = [arg for path in earlier for arg in ("--before", path)]
    document, _ = explain(capsys, *before, now / "broker-2", now / "broker-3")

    assert [note for note in document["notes"] if "shows node 1, whose directory as it is now" in note]
    assert any(holder["broker_id"] == 1 for loss in document["losses"] for holder in loss["held_by"])


def test_states_of_a_node_at_two_moments_are_no_one_state(incident, capsys):
    snapshots = sorted((incident("unclean-election-2.8") / "snapshots").iterdir())

    code = run(["explain", "--before", str(snapshots[0]), str(snapshots[1]), str(snapshots[-1])])

    shown = capsys.readouterr()
    assert code == 3
    assert "only on" not in shown.out
    assert "the inputs are of two moments" in shown.err
    assert "--before" in shown.err


def test_lines_of_after_the_metadata_log_deny_no_commit(incident, capsys):
    """The directories are of before an unclean election, the log files of after it."""
    root = incident("consumer-ahead-4.x")
    document, code = explain(capsys, *sorted((root / "snapshots" / "01-before-live").iterdir()), root / "logs/broker-1")
    derived = [one for one in document["losses"] if one["topic"] == "derived"]

    assert 1 == code
    assert derived
    assert {"possible"} == {one["was_committed"] for one in derived}
    assert [one for one in document["answer"]["unknown"] if "newer metadata log" in one]


def test_lines_of_a_clock_that_is_behind_the_metadata_log_deny_no_commit(incident, capsys, tmp_path):
    """By its clock the broker truncated its log before the partition was created."""
    root = incident("consumer-ahead-4.x")
    for name in ("server.log",):
        lines = (root / "logs/broker-1" / name).read_text()
        (tmp_path / "broker-1").mkdir(exist_ok=True)
        (tmp_path / "broker-1" / name).write_text(re.sub(r"(?m)^\[\d{4}-\d{2}-\d{2} \d{2}", "[2020-01-01 00", lines))
    document, _ = explain(
        capsys, *sorted((root / "snapshots" / "01-before-live").iterdir()), tmp_path / "broker-1/server.log"
    )

    assert "no" not in {one["was_committed"] for one in document["losses"]}
    assert document["answer"]["state"] in {"maybe-lost", "unknown"}
