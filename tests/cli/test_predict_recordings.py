"""Starts that lie in recordings: predicted from the snapshot before, and held against what the brokers logged and left."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kforensics.ask.model import Ask
from kforensics.case.processes import spread
from kforensics.cli.app import run as command_line
from kforensics.commands.predict import run
from kforensics.commands.predicting import log_starts
from kforensics.errors import EvidenceUnreadable
from kforensics.evidence import parallel, segment_parts
from kforensics.evidence.parallel import WORTH_A_PROCESS
from kforensics.evidence.replica import loader_scan
from kforensics.evidence.replica.loader_reader import read_needed
from kforensics.findings.answers.model import State
from tests.builders.directories import copied
from tests.oracle.loading.made import NOW_MS, Case, edited_files, write_files
from tests.started import compare


def check(root, starts, equal, unknown=0):
    compared = compare(root)
    assert compared.different == []
    assert (compared.starts, compared.total("equal"), compared.total("unknown")) == (starts, equal, unknown)
    return compared


def test_a_start_after_a_power_cut_does_what_was_predicted(incident):
    compared = check(incident("power-cut-2.8"), 1, 43)

    assert compared.counts["truncated"]["equal"] == 7


@pytest.mark.slow
def test_strays_of_a_start_are_those_predicted(incident):
    check(incident("recreated-topic-4.x"), 1, 21)


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.some(1)
def test_logs_that_other_processes_look_at_are_predicted_as_here(is_clean, incident, tmp_path, monkeypatch):
    found: list[object] = []

    def counted(*given, **options):
        found.extend(one for ahead in spread(*given, **options) for one in ahead)
        return spread(*given, **options)

    broker = tmp_path / "broker-1"
    copied(incident("silent-divergence-4.x") / "snapshots" / "99-final" / "broker-1", broker)
    one, other, third, *_ = sorted(broker.glob("*/*.timeindex"))
    one.unlink()
    (other.parent / "linked").symlink_to("/etc/passwd")
    if not is_clean:
        (broker / ".kafka_cleanshutdown").unlink()

    def read(folder, need, scans):
        if folder == third.parent and need.file == "leader-epoch-checkpoint":
            raise EvidenceUnreadable(need.file, "the disk gives an I/O error")
        return read_needed(folder, need, scans)

    monkeypatch.setattr("kforensics.commands.loading.read_needed", read)
    request = Ask(paths=(Path(broker),), kafka="4.1.0", now_ms=1_790_000_000_000, jobs=2)
    here = run(request)
    for name, value in {"CLEAN_LOG": WORTH_A_PROCESS, "UNCLEAN_LOG": WORTH_A_PROCESS, "spread": counted}.items():
        monkeypatch.setattr(log_starts, name, value)

    assert run(request) == here
    assert [problem.path for problem in here.problems] == [f"{third.parent.name}/leader-epoch-checkpoint"]
    assert found.count(None) == 2
    assert len(found) >= 5
    assert here.body.starts[0].logs_scanned == (0 if is_clean else len(found) - found.count(None))


@pytest.mark.parametrize("options", [{}, {"ways_out": True}], ids=["plain", "ways out"])
@pytest.mark.some(1)
def test_segments_in_parts_are_predicted_as_in_one_process(options, tmp_path, monkeypatch):
    edits: list[list[Any]] = [
        ["cut", f"{0:020d}.log", 3000],
        ["flip", f"{0:020d}.log", 900, 3],
        ["zeros", f"{0:020d}.log", 3000],
        ["remove", f"{0:020d}.index"],
    ]
    batches = [
        [2, 60, at // 9, 3 if at % 4 else -1, ("plain", "txn", "txn", "abort")[at % 4], 1000] for at in range(36)
    ]
    for at, one in enumerate([[], *edits]):
        case = Case(batches=batches, rolls=[24], edits=[one] if one else [])
        write_files(edited_files(case), tmp_path / "data" / f"orders-{at}")
    (tmp_path / "data" / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAw\n")
    request = Ask(paths=(tmp_path / "data",), kafka="3.9.1", now_ms=NOW_MS, jobs=1, **options)
    here = run(request)
    parts = []

    def counted(work, tasks, **given):
        parts.extend(tasks)
        return parallel.spread(work, tasks, **given)

    for module, name, value in (
        (segment_parts, "SMALLEST_PART", 512),
        (log_starts, "SMALLEST_PART", 512),
        (log_starts, "WORTH_COLUMNS", 0),
        (loader_scan, "WORTH_COLUMNS", 0),
        (loader_scan, "WORTH_A_PROCESS", 1),
        (loader_scan, "spread", counted),
        (parallel, "WORTH_A_PROCESS", 1),
    ):
        monkeypatch.setattr(module, name, value)

    assert run(replace(request, jobs=2)) == here
    assert len(parts) > 2 * len({path for path, _ in parts}) >= 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "starts", "equal", "unknown"),
    [
        ("power-loss-4.x", 2, 82, 4),
        ("unclean-election-2.8", 6, 404, 34),
        ("silent-divergence-4.x", 1, 19, 0),
        ("reassignment-jbod-2.8", 1, 71, 2),
        ("disk-replaced-4.x", 3, 43, 20),
        ("fast-failover-1.1", 3, 73, 2),
        ("kip101-saves-0.11", 2, 14, 0),
    ],
)
def test_every_start_does_what_was_predicted(incident, name, starts, equal, unknown):
    check(incident(name), starts, equal, unknown)


@pytest.mark.parametrize(
    ("name", "records", "state"),
    [("all-codecs-4.x", 21, State.UNKNOWN), ("mixed-magic-1.1", 72, State.STARTS_AND_REPAIRS)],
)
@pytest.mark.some(1)
def test_what_a_deletion_on_record_asked_for_is_no_alarm(name, records, state, incident, capsys):
    """The metadata log has the record of one, and an election that leaves open what it took; the lines of the controller that of the other."""
    place = incident(name)
    paths = (place / "snapshots" / "99-final", place / "logs")

    answer = run(Ask(paths=paths)).answer
    code = command_line([str(path) for path in paths])
    screen = " ".join(capsys.readouterr().out.split())

    assert answer.state is state
    assert ("became leader in an unclean election" in answer.headline) is (state is State.UNKNOWN)
    assert f"; {records} records of deleted topic gone go with its directories, as its deletion on 2026-11-21 06:" in (
        answer.headline
    )
    alarms = [one for one in answer.now if not one.startswith("Get back what was deleted of ")]
    assert not any("gone" in one or "Copy the log directories" in one for one in alarms)
    assert code != 1
    assert f"discards {records}" not in screen
    assert "Save" not in screen


@pytest.mark.parametrize("how", ["no metadata log", "another topic id", "no topic id"])
@pytest.mark.some(2)
def test_a_directory_that_no_deletion_on_record_is_about_stays_an_alarm(how, incident, tmp_path):
    """An operator may have renamed it, and a topic of the name may have been deleted before."""
    root = copied(incident("all-codecs-4.x") / "snapshots" / "99-final" / "broker-1", tmp_path / "broker-1")
    for one in [root, *root.rglob("*")]:
        one.chmod(0o755 if one.is_dir() else 0o644)
    if how == "no metadata log":
        shutil.rmtree(root / "__cluster_metadata-0")
    for one in root.glob("gone-*-delete"):
        if how == "another topic id":
            (one / "partition.metadata").write_text("version: 0\ntopic_id: 7q2nFuXrRiG-oQI24tJHSh")
        elif how == "no topic id":
            (one / "partition.metadata").unlink()

    answer = run(Ask(paths=(root,))).answer

    assert answer.state is State.LOSES
    assert (
        "discards 21 records of 2 logs: none below a checkpointed high watermark, 21 kept in no other log given"
        in answer.headline
    )
    assert "deleted topic" not in answer.headline


def test_without_the_lines_of_the_controller_a_directory_stays_an_alarm(incident, tmp_path):
    """A broker's own lines say that a replica went, as they do where it was moved to another broker."""
    place = incident("mixed-magic-1.1")
    logs = copied(place / "logs", tmp_path / "logs", ignore=shutil.ignore_patterns("controller.log*"))

    answer = run(Ask(paths=(place / "snapshots" / "99-final", logs))).answer

    assert answer.state is State.LOSES
    assert "72 kept in no other log given" in answer.headline


@pytest.mark.parametrize("name", ["operator-actions-2.5", "operator-actions-2.8"])
def test_a_topic_that_was_created_again_was_to_go_before_and_a_replica_that_moved_was_not(name, incident):
    """The lines say when each directory was renamed: before the deletion of its topic ended."""
    place = incident(name)

    found = run(Ask(paths=(place / "snapshots" / "99-final", place / "logs")))
    asked = {log.topic: isinstance(log.topic_deleted_ms, int) for log in found.body.logs if log.lost.records}

    assert asked == {"again": True, "moved": False}
    assert "discards 20 records of 1 log: " in found.answer.headline
    assert any("moved-0." in one and "-delete of broker 1 discards" in one for one in found.answer.now)
    assert not any("again-0" in one for one in found.answer.now)
