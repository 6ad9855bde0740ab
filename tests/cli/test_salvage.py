"""`kforensics salvage`: what comes out is what was on the disks, and what does not come out is said."""

import base64
import hashlib
import json
import os
import re
import runpy
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kforensics.cli.app import run
from kforensics.commands import salvage as salvage_command
from kforensics.commands.salvaging import part_files, run_records, saving
from kforensics.commands.salvaging.folder import OutFile, OutFolder, WriteFailed
from kforensics.errors import EvidenceUnreadable
from kforensics.evidence import parallel
from kforensics.source.mapped import EvidenceFile
from tests import salvaged
from tests.builders.directories import copied
from tests.schemas import reason
from tests.trust.hostile import sound_batch, write_partition

pytestmark = pytest.mark.usefixtures("read_once")


def salvage(capsys, *arguments):
    code = run(["salvage", *map(str, arguments), "--format", "json"])
    printed = capsys.readouterr()
    return code, json.loads(printed.out) if printed.out else printed.err


def slow(name):
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "name",
    [
        "unclean-election-4.x",
        "hw-divergence-0.10",
        slow("consumer-ahead-4.x"),
        slow("fast-failover-1.1"),
        slow("power-cut-2.8"),
    ],
)
@pytest.mark.some(1)
def test_what_is_lost_comes_out_as_it_was_produced(name, incident, tmp_path):
    assert [] == salvaged.check_lost(incident(name), tmp_path / "out")


@pytest.mark.parametrize(
    "name", ["all-codecs-4.x", slow("mixed-magic-1.1"), slow("recreated-topic-4.x"), slow("unclean-election-2.8")]
)
@pytest.mark.slow
def test_everything_on_the_disks_comes_out_once(name, incident, tmp_path):
    assert [] == salvaged.check_all(incident(name), tmp_path / "out")


@pytest.fixture
def unclean(incident):
    return incident("unclean-election-4.x") / "snapshots"


@pytest.fixture
def lost(unclean, tmp_path):
    """Arguments that find what the unclean election lost."""
    return [
        unclean / "99-final",
        unclean.parent / "logs",
        "--before",
        unclean / "02-old-leader-killed",
        "-o",
        tmp_path / "out",
    ]


def test_the_manifest_says_where_each_record_was(capsys, lost, tmp_path):
    code, document = salvage(capsys, *lost)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())

    # Of one partition no input shows whether anything is lost.
    assert (3, "unknown", 56, 0) == (code, document["answer"]["state"], document["records"], document["missing"])
    assert {"orders"} == {one["topic"] for one in manifest["partitions"]}
    for one in manifest["partitions"]:
        assert [] == one["gaps"] == one["alternates"]
        for run_ in one["runs"]:
            source = run_["source"]
            with Path(manifest["inputs"][source["input"]]["path"], source["path"]).open("rb") as file:
                file.seek(source["position"])
                data = file.read(source["length"])
            assert hashlib.sha256(data).hexdigest() == run_["sha256"]
            assert run_["offsets"]["first"] == int.from_bytes(data[:8])


def test_nothing_below_an_input_changes_and_nobody_else_can_read_what_comes_out(
    capsys, lost, unclean, tmp_path, untouched
):
    with untouched(unclean):
        salvage(capsys, *lost)

    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert files
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in files}
    assert 0o700 == stat.S_IMODE((tmp_path / "out").stat().st_mode)
    assert not [path for path in files if path.name.endswith(".partial")]


@pytest.mark.slow
def test_the_output_does_not_depend_on_when_it_is_made(capsys, lost, tmp_path):
    salvage(capsys, *lost)
    salvage(capsys, *lost[:-1], tmp_path / "again", "--jobs", 1)

    def content(folder):
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    assert content(tmp_path / "out") == content(tmp_path / "again")


def test_directories_of_a_deleted_topic_are_read_also_where_no_id_says_which(capsys, unclean, tmp_path):
    source = unclean / "99-final" / "broker-2" / "orders-0"
    folder = tmp_path / "data" / f"orders-0.{'0123456789abcdef' * 2}-delete"
    copied(source, folder)
    (folder / "partition.metadata").unlink()
    shutil.copyfile(unclean / "99-final" / "broker-2" / "meta.properties", tmp_path / "data" / "meta.properties")

    code, document = salvage(capsys, tmp_path / "data", "--what", "all", "-o", tmp_path / "out")
    disk, _ = salvaged.on_disk(tmp_path / "data")

    assert (0, len(disk)) == (code, document["records"])
    assert {content for content, _ in salvaged.saved(tmp_path / "out")} == disk
    assert len(disk) > 80


def test_a_swapped_segment_and_one_that_waits_for_deletion_are_read(capsys, unclean, tmp_path):
    source = unclean / "99-final" / "broker-2"
    data = tmp_path / "data"
    for state, name in (("deleted", "orders-0"), ("swap", "orders-1")):
        folder = copied(source / name, data / name)
        (segment,) = folder.glob("*.log")
        segment.rename(segment.with_name(f"{segment.name}.{state}"))
    shutil.copyfile(source / "meta.properties", data / "meta.properties")

    _, document = salvage(capsys, data, "--what", "all", "-o", tmp_path / "out")
    disk, _ = salvaged.on_disk(data)

    assert {("orders", 0), ("orders", 1)} == {(content.topic, content.partition) for content in disk}
    assert {content for content, _ in salvaged.saved(tmp_path / "out")} == disk
    assert len(disk) == document["records"]


def test_filters_leave_out_what_was_not_asked_for(capsys, lost, tmp_path):
    code, document = salvage(capsys, *lost, "--topic", "orders", "--partition", 0, "--offsets", "70..79")
    lines = [json.loads(line) for line in (tmp_path / "out" / "orders-0.jsonl").read_text().splitlines()]

    # Broker 1 may have lost power before it truncated: explain says the same of orders-0.
    assert (3, 10) == (code, document["records"])
    assert list(range(70, 80)) == [line["offset"] for line in lines]
    assert {"certain"} == {line["committed"] for line in lines}


def test_what_was_not_asked_for_is_no_gap_and_not_called_lost(capsys, lost, unclean, tmp_path):
    final = (unclean / "99-final", unclean.parent / "logs", "--topic", "orders", "--partition", "0")

    code, unheld = salvage(capsys, *final, "--offsets", "70..79", "-o", tmp_path / "gap")
    assert (1, 10) == (code, unheld["missing"])
    assert "0 of 10 records of orders-0 at offsets 70 to 79 that may be lost are saved" in unheld["answer"]["headline"]

    code, outside = salvage(capsys, *final, "--offsets", "500..", "-o", tmp_path / "outside")
    assert (3, 0) == (code, outside["missing"])
    assert "No lost records from offset 500 on are shown" in outside["answer"]["headline"]

    code, nothing = salvage(capsys, *lost, "--time", "2020-01-01..2020-01-02")
    assert (3, 0) == (code, nothing["records"])
    assert "No lost records with timestamps in --time" in nothing["answer"]["headline"]
    assert not list((tmp_path / "out").glob("orders-*"))

    code, found = salvage(capsys, *lost[:-1], tmp_path / "part", "--offsets", "60..70", "--partition", "0")
    manifest = json.loads((tmp_path / "part" / "manifest.json").read_text())
    assert "11 of 11 lost records of orders-0 at offsets 60 to 70 saved" in found["answer"]["headline"]
    assert {"first": 60, "last": 70} == manifest["partitions"][0]["runs"][0]["offsets"]


def test_times_choose_records_by_their_timestamps(capsys, unclean, tmp_path):
    everything = ["--what", "all", "--topic", "orders", "--partition", 0]
    salvage(capsys, unclean / "99-final", *everything, "-o", tmp_path / "all")
    times = [
        json.loads(line)["timestamp_ms"] for line in (tmp_path / "all" / "orders-0.jsonl").read_text().splitlines()
    ]
    middle = sorted(times)[len(times) // 2]

    salvage(capsys, unclean / "99-final", *everything, "--time", f"{middle}..{middle + 1}", "-o", tmp_path / "some")

    chosen = [
        json.loads(line)["timestamp_ms"] for line in (tmp_path / "some" / "orders-0.jsonl").read_text().splitlines()
    ]
    assert [middle] * times.count(middle) == chosen


def test_what_diff_calls_at_risk_is_saved_before_the_start(capsys, unclean, tmp_path):
    paths = [unclean / "02-old-leader-killed" / "broker-1", *(unclean / "99-final" / f"broker-{n}" for n in (2, 3))]
    code, document = salvage(
        capsys, *paths, unclean / "99-final" / "controller-100", "--what", "at-risk", "-o", tmp_path / "out"
    )
    saved = {(one["topic"], one["partition"]): one["records"] for one in document["partitions"]}

    assert (0, "saved") == (code, document["answer"]["state"])  # the only member of the ELR leads
    assert {("orders", 0): 43, ("orders", 1): 12, ("orders", 2): 1} == saved


def test_a_batch_that_fails_its_checksum_is_taken_from_another_replica(capsys, unclean, tmp_path):
    copied(unclean / "99-final", tmp_path / "evidence", symlinks=True)
    for broker in (1, 2, 3):
        (tmp_path / "evidence" / f"broker-{broker}" / "payments-0").chmod(0o755)
    leader = json.loads(_leader(capsys, tmp_path))
    segment = tmp_path / "evidence" / f"broker-{leader}" / "payments-0" / f"{0:020d}.log"
    segment.chmod(0o644)
    data = bytearray(segment.read_bytes())
    data[300] ^= 1
    segment.write_bytes(data)

    options = ["--what", "all", "--topic", "payments", "--partition", 0, "--leader", leader]
    code, document = salvage(capsys, tmp_path / "evidence", *options, "-o", tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    sources = {run_["source"]["input"] for run_ in manifest["partitions"][0]["runs"]}

    assert (0, 0) == (code, document["missing"])
    assert 2 == len(sources)


def _leader(capsys, tmp_path):
    _, document = salvage(
        capsys,
        tmp_path / "evidence",
        "--what",
        "all",
        "--topic",
        "payments",
        "--partition",
        0,
        "-o",
        tmp_path / "before",
    )
    return json.dumps(document["partitions"][0]["leader"]["broker_id"])


def test_damage_without_a_sound_copy_is_a_gap(capsys, unclean, tmp_path):
    copied(unclean / "99-final" / "broker-2" / "payments-0", tmp_path / "payments-0")
    segment = tmp_path / "payments-0" / f"{0:020d}.log"
    segment.chmod(0o644)
    data = bytearray(segment.read_bytes())
    data[300] ^= 1
    segment.write_bytes(data)

    code, document = salvage(capsys, tmp_path / "payments-0", "--what", "all", "-o", tmp_path / "out")
    (partition,) = document["partitions"]

    assert (1, "gaps") == (code, document["answer"]["state"])
    assert ["damaged"] == [gap["reason"] for gap in partition["gaps"]]
    assert f"{0:020d}.log, byte " in partition["gaps"][0]["detail"]
    assert document["missing"] == partition["gaps"][0]["count"] > 0
    assert " of " in document["answer"]["headline"]


@pytest.mark.parametrize("with_tail", [False, True])
@pytest.mark.some(1)
def test_a_capture_gives_the_bytes_that_it_holds_and_names_the_file_for_the_others(
    capsys, unclean, tmp_path, with_tail
):
    taken = [unclean / "02-old-leader-killed" / "broker-1", "-o", tmp_path / "broker-1.kfc", "--normal-priority"]
    run(["capture", *map(str, [*taken, *(["--with-tail"] if with_tail else [])])])
    capsys.readouterr()

    arguments = [
        unclean / "99-final",
        unclean.parent / "logs",
        "--before",
        tmp_path / "broker-1.kfc",
        "-o",
        tmp_path / "out",
    ]
    code, document = salvage(capsys, *arguments)
    gaps = [gap for one in document["partitions"] for gap in one["gaps"]]

    if with_tail:
        assert (3, 56, []) == (code, document["records"], gaps)  # whether more are lost in one partition is unknown
        assert {content for content, _ in salvaged.saved(tmp_path / "out")} <= salvaged.on_disk(unclean)[0]
    else:
        assert (1, 0, 56) == (code, document["records"], document["missing"])
        assert {"not-captured"} == {gap["reason"] for gap in gaps}
        assert all("orders-" in gap["detail"] and "of broker 1" in gap["detail"] for gap in gaps)


@pytest.mark.slow
def test_what_a_capture_lacks_is_taken_from_a_directory(capsys, unclean, tmp_path):
    broker = unclean / "02-old-leader-killed" / "broker-1"
    run(["capture", str(broker), "-o", str(tmp_path / "broker-1.kfc"), "--normal-priority"])
    capsys.readouterr()

    before = ["--before", tmp_path / "broker-1.kfc", "--before", unclean / "03-old-leader-down-live"]
    code, document = salvage(capsys, unclean / "99-final", unclean.parent / "logs", *before, "-o", tmp_path / "out")

    assert (0, 56, 0) == (code, document["records"], document["missing"])


@pytest.mark.slow
def test_records_of_aborted_transactions_come_only_where_they_are_asked_for(capsys, incident, tmp_path):
    final = incident("all-codecs-4.x") / "snapshots" / "99-final"
    _, without = salvage(capsys, final, "--what", "all", "-o", tmp_path / "without")
    _, beside = salvage(capsys, final, "--what", "all", "--with-aborted", "-o", tmp_path / "with")
    lines = [line for _, line in salvaged.saved(tmp_path / "with")]
    aborted = sum(one["aborted_records"] for one in without["partitions"])

    assert aborted == beside["records"] - without["records"] == sum(bool(line.get("aborted")) for line in lines) > 0
    assert {"aborted"} <= {gap["reason"] for one in without["partitions"] for gap in one["gaps"]}
    assert 0 == sum(one["aborted_records"] for one in beside["partitions"])


def test_calm_needs_proof_here_too(capsys, incident, tmp_path):
    root = incident("benign-rolling-restart-4.x")
    code, document = salvage(capsys, root / "snapshots" / "99-final", root / "logs", "-o", tmp_path / "out")
    alone, other = salvage(capsys, root / "snapshots" / "99-final" / "broker-2", "-o", tmp_path / "alone")

    assert (0, "saved", 0) == (code, document["answer"]["state"], document["records"])
    assert (3, "unknown", 0) == (alone, other["answer"]["state"], other["records"])


@pytest.mark.parametrize("inside", ["broker-2/rescue", "broker-2/orders-0/rescue", "."])
def test_the_output_never_lies_inside_an_input(capsys, unclean, inside, untouched):
    with untouched(unclean):
        code, words = salvage(capsys, unclean / "99-final", "-o", unclean / "99-final" / inside)

    assert 2 == code
    assert "inside the evidence" in words or "not empty" in words


def test_a_directory_that_holds_anything_is_refused(capsys, lost, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").touch()

    code, words = salvage(capsys, *lost)

    assert (2, ["file"]) == (code, [path.name for path in (tmp_path / "out").iterdir()])
    assert "not empty" in words


@pytest.fixture
def in_several_processes(monkeypatch):
    monkeypatch.setattr(saving, "WORTH_PROCESSES", 1)
    monkeypatch.setattr(run_records, "TASK_LENGTH", 2_000)
    monkeypatch.setattr(salvage_command, "LARGE", 1)
    return ["--jobs", "3"]


@pytest.mark.process
@pytest.mark.parametrize(("given", "writers"), [((), 2), (("--jobs", "3"), 3)])
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.some(1)
def test_few_processes_write_unless_more_are_asked_for(
    capsys, incident, tmp_path, monkeypatch, in_several_processes, form, given, writers
):
    monkeypatch.setattr("kforensics.case.model.default_jobs", lambda: 8)
    monkeypatch.setattr(part_files, "LARGEST_PART", 5_000)
    started = []
    start = parallel.InTurn.__init__

    def counted(*functions, jobs):
        started.append(jobs)
        start(*functions, jobs=jobs)

    monkeypatch.setattr(parallel.InTurn, "__init__", counted)
    final = incident("all-codecs-4.x") / "snapshots" / "99-final" / "broker-1"

    salvage(capsys, final, "--what", "all", "--topic", "tx", "--form", form, *given, "-o", tmp_path / "out")

    assert set(started) == {writers}


@pytest.mark.process
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.some(1)
def test_the_output_does_not_depend_on_processes(capsys, incident, tmp_path, monkeypatch, in_several_processes, form):
    monkeypatch.setattr(part_files, "LARGEST_PART", 5_000)
    topics = [word for name in ("codec-mixed", "edge-cases", "tx") for word in ("--topic", name)]
    inputs = (
        incident("all-codecs-4.x") / "snapshots" / "99-final" / "broker-1",
        "--what",
        "all",
        "--form",
        form,
        *topics,
    )
    started = []
    start = parallel.InTurn.__init__

    def counted(*given, **jobs):
        started.append(jobs)
        start(*given, **jobs)

    monkeypatch.setattr(parallel.InTurn, "__init__", counted)

    salvage(capsys, *inputs, *in_several_processes, "-o", tmp_path / "several")
    assert started
    count = len(started)
    salvage(capsys, *inputs, "--jobs", "1", "-o", tmp_path / "one")

    assert len(started) == count
    assert files_in(tmp_path / "one") == files_in(tmp_path / "several")


@pytest.mark.parametrize(
    ("error", "jobs", "words"),
    [
        (WriteFailed("out/part-00001.parquet", OSError(28, "No space left on device")), 1, "No space left on device"),
        (OSError(11, "Resource temporarily unavailable"), 1, "can't be written: Resource temporarily unavailable"),
        pytest.param(MemoryError(), 2, "can't be written: not enough memory", marks=pytest.mark.process),
    ],
)
@pytest.mark.some("error0-1-No space left on device")
def test_files_of_a_partition_of_which_one_is_missing_are_not_taken_for_all(
    capsys, lost, tmp_path, monkeypatch, error, jobs, words
):
    monkeypatch.setattr(saving, "WORTH_PROCESSES", 1)
    monkeypatch.setattr(salvage_command, "LARGE", 1)
    monkeypatch.setattr(part_files, "LARGEST_PART", 200)
    save = saving._Saver._save_part

    def full(saver, task):
        if task.number == 1:
            raise error
        return save(saver, task)

    monkeypatch.setattr(saving._Saver, "_save_part", full)

    code = run(["salvage", *map(str, lost), "--what", "all", "--form", "parquet", "--jobs", str(jobs)])
    shown = " ".join(capsys.readouterr().out.split())
    left = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}

    assert 3 == code
    assert {".partial"} == {Path(name).suffix for name in left}
    assert "NOT ALL IS WRITTEN" in shown
    assert words in shown
    assert "no partition is written whole" in shown


def test_two_processes_may_make_the_same_folder_at_once(tmp_path, monkeypatch):
    make = Path.mkdir

    def made_before(path, *arguments, **options):
        os.mkdir(path)  # noqa: PTH102 - by the other process
        make(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", made_before)

    OutFolder(tmp_path).write("orders-0/part-00000.parquet", b"rows")

    assert {"orders-0/part-00000.parquet": b"rows"} == files_in(tmp_path)


@pytest.mark.process
@pytest.mark.slow
def test_merged_batches_stay_in_order_between_what_processes_write(
    capsys, compaction, tmp_path, monkeypatch, in_several_processes
):
    monkeypatch.setattr(run_records, "TASK_LENGTH", 500)
    snapshots = compaction("compaction-4.x") / "snapshots"
    before = [
        word for name in ("02-tombstoned-live", "04-old-leader-down-live") for word in ("--before", snapshots / name)
    ]
    inputs = (snapshots / "99-final", *before, "--what", "all", "--topic", "ledger", "--topic", "accounts")

    salvage(capsys, *inputs, *in_several_processes, "-o", tmp_path / "several")
    salvage(capsys, *inputs, "--jobs", "1", "-o", tmp_path / "one")
    offsets = [
        line["offset"] for line in map(json.loads, (tmp_path / "several" / "ledger-0.jsonl").read_text().splitlines())
    ]

    assert sorted(offsets) == offsets
    assert files_in(tmp_path / "one") == files_in(tmp_path / "several")


@pytest.mark.process
@pytest.mark.slow
def test_files_of_a_large_partition_hold_what_one_file_would(
    capsys, compaction, tmp_path, monkeypatch, in_several_processes
):
    pq = pytest.importorskip("pyarrow.parquet")
    snapshots = compaction("compaction-4.x") / "snapshots"
    before = [
        word for name in ("02-tombstoned-live", "04-old-leader-down-live") for word in ("--before", snapshots / name)
    ]
    inputs = (snapshots / "99-final", *before, "--what", "all", "--topic", "ledger", "--topic", "accounts")
    form = ("--form", "parquet", "-o")

    salvage(capsys, *inputs, *form, tmp_path / "whole")
    monkeypatch.setattr(part_files, "LARGEST_PART", 1_000)
    monkeypatch.setattr(part_files, "MOST_BATCHES", 7)
    salvage(capsys, *inputs, *in_several_processes, *form, tmp_path / "several")
    salvage(capsys, *inputs, "--jobs", "1", *form, tmp_path / "one")

    whole, several = (json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("whole", "several"))
    assert files_in(tmp_path / "one") == files_in(tmp_path / "several")
    for before, now in zip(whole["partitions"], several["partitions"], strict=True):
        (file,) = before.pop("files")
        files = [tmp_path / "several" / one["path"] for one in now.pop("files")]
        rows = [row for path in files for row in pq.ParquetFile(path).read().to_pylist()]
        stem = file["path"].removesuffix(".parquet")
        assert [f"{stem}/part-{at:05d}.parquet" for at in range(len(files))] == [
            str(path.relative_to(tmp_path / "several")) for path in files
        ]
        assert pq.ParquetFile(tmp_path / "whole" / file["path"]).read().to_pylist() == rows
        _check_runs(snapshots, whole["inputs"], before.pop("runs"), now.pop("runs"))
        assert before == now
    assert (
        max(len(one["runs"]) for one in json.loads((tmp_path / "several" / "manifest.json").read_text())["partitions"])
        > 3
    )


def _check_runs(snapshots, inputs, whole, divided):
    """The same records of the same bytes, each run with the digest of its own."""
    for runs in (whole, divided):
        for one in runs:
            source = one["source"]
            data = (Path(inputs[source["input"]]["path"]) / source["path"]).read_bytes()
            part = data[source["position"] : source["position"] + source["length"]]
            assert hashlib.sha256(part).hexdigest() == one["sha256"]
    for name in ("records", "length"):
        totals = [sum(one[name] if name in one else one["source"][name] for one in runs) for runs in (whole, divided)]
        assert totals[0] == totals[1]


@pytest.mark.process
@pytest.mark.parametrize("how", ["refused", "killed"])
@pytest.mark.some(1)
def test_a_process_that_can_not_write_is_said(capsys, incident, tmp_path, monkeypatch, in_several_processes, how):
    def fail(file, _pieces):
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise WriteFailed(file.name, OSError(28, "No space left on device"))

    monkeypatch.setattr(OutFile, "append", fail)
    broker = incident("all-codecs-4.x") / "snapshots" / "99-final" / "broker-1"
    inputs = (broker, "--what", "all", "--topic", "codec-none")

    code, document = salvage(capsys, *inputs, *in_several_processes, "-o", tmp_path / "out")

    assert (3, "unknown") == (code, document["answer"]["state"])
    words = {"refused": "No space left on device", "killed": "was killed"}
    assert words[how] in document["answer"]["headline"]
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_bytes_that_can_not_be_read_once_more_have_no_digest(capsys, lost, tmp_path, monkeypatch):
    real = EvidenceFile.read_into

    def read_into(file, position, buffer):
        if threading.current_thread() is not threading.main_thread():  # where it is hashed
            raise EvidenceUnreadable(str(file.path), "Input/output error")
        return real(file, position, buffer)

    monkeypatch.setattr(EvidenceFile, "read_into", read_into)
    code, document = salvage(capsys, *lost, "--jobs", 1)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    runs = [one for partition in manifest["partitions"] for one in partition["runs"]]

    assert (3, "unknown") == (code, document["answer"]["state"])
    assert [(document["records"], [])] == [(sum(one["records"] for one in runs), manifest["partitions"][0]["gaps"])]
    assert all(reason(one, "sha256") == "unreadable" for one in runs)
    assert {"Input/output error"} == {one["message"] for one in document["problems"]}
    assert not list((tmp_path / "out").glob("*.partial"))


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_output_that_can_not_be_written_is_said(capsys, lost, tmp_path, monkeypatch):
    def full(_descriptor, _data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kforensics.commands.salvaging.folder.os.write", full)
    code, document = salvage(capsys, *lost, "--jobs", 1)

    assert (3, "unknown") == (code, document["answer"]["state"])
    assert "No space left on device" in document["answer"]["headline"]
    assert {".partial"} == {path.suffix for path in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize("form", ["kcat", "console"])
@pytest.mark.some(1)
def test_a_text_form_is_refused_with_the_offsets_that_it_can_not_hold(capsys, lost, form, tmp_path):
    code, words = salvage(capsys, *lost, "--form", form)

    assert 2 == code
    assert f"--form {form} can't hold orders-0" in words
    assert "at offset 6" in words
    assert [] == list((tmp_path / "out").iterdir())


def test_a_text_form_holds_what_it_can(capsys, incident, tmp_path):
    final = incident("recreated-topic-4.x") / "snapshots" / "99-final"
    chosen = []
    _, _ = salvage(capsys, final, "--what", "all", "-o", tmp_path / "json")
    for content, line in salvaged.saved(tmp_path / "json", with_other_topics=False):
        plain = all(one is not None and one and not set(b"\t\n\r") & set(one) for one in (content.key, content.value))
        if plain and not content.headers and not line["file"].startswith("alternates"):
            chosen.append(content)
    one = chosen[0]
    code, _ = salvage(
        capsys, final, "--what", "all", "--form", "kcat", "--topic", one.topic, "--partition", one.partition,
        "--offsets", f"{one.offset}..{one.offset}", "-o", tmp_path / "text",
    )  # fmt: skip

    assert 0 == code
    files = list((tmp_path / "text").glob("*.kcat.txt"))
    assert [b"%b\t%b\n" % (one.key or b"", one.value or b"")] == [path.read_bytes() for path in files]


def test_parquet_has_what_json_lines_have(capsys, incident, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    final = incident("all-codecs-4.x") / "snapshots" / "99-final"
    salvage(capsys, final, "--what", "all", "-o", tmp_path / "json")
    salvage(capsys, final, "--what", "all", "--form", "parquet", "-o", tmp_path / "parquet")

    lines = {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in (tmp_path / "json").glob("*.jsonl")
    }
    tables = {path.stem: pq.read_table(path).to_pylist() for path in (tmp_path / "parquet").glob("*.parquet")}
    assert lines.keys() == tables.keys()
    for name, rows in tables.items():
        assert [_plain(line) for line in lines[name]] == [_of_row(row) for row in rows]


def _plain(line):
    def payload(value):
        return None if value is None else base64.b64decode(value["base64"])

    return (
        line["topic"], line["partition"], line["offset"], line["timestamp_ms"], line["timestamp_type"],
        payload(line["key"]), payload(line["value"]), [(name.encode(), payload(value)) for name, value in line["headers"]],
        *(line[name] for name in ("leader_epoch", "producer_id", "producer_epoch", "sequence", "transactional", "committed")),
        *line["source"].values(),
    )  # fmt: skip


def _of_row(row):
    return (
        *(row[name] for name in ("topic", "partition", "offset", "timestamp_ms", "timestamp_type", "key", "value")),
        [(one["name"], one["value"]) for one in row["headers"]],
        *(row[name] for name in ("leader_epoch", "producer_id", "producer_epoch", "sequence", "transactional", "committed")),
        *(row[name] for name in ("source_input", "source_path", "source_position")),
    )  # fmt: skip


@pytest.mark.process
def test_the_script_reads_everything_without_sending_it(capsys, lost, tmp_path):
    salvage(capsys, *lost)
    command = [sys.executable, str(tmp_path / "out" / "put_back.py"), "--bootstrap", "127.0.0.1:1", "--dry-run"]

    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (0, "") == (done.returncode, done.stderr)
    assert "dry run: 56 records read, nothing was sent" in done.stdout

    (tmp_path / "out" / "orders-0.jsonl").write_bytes((tmp_path / "out" / "orders-0.jsonl").read_bytes()[:-2] + b"\n")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert 3 == done.returncode
    assert "not as it was written" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--offsets", "9..3"], "below the first"),
        (["--offsets", "-1..3"], "A..B"),
        (["--time", "2026-01-02..2026-01-01"], "not later"),
        (["--time", "x"], "A..B"),
        (["--topic", "order"], "did you mean orders"),
    ],
)
def test_options_that_can_mean_nothing_are_refused(capsys, lost, options, words, tmp_path):
    code, printed = salvage(capsys, *lost, *options)

    assert 2 == code
    assert words in printed
    assert not (tmp_path / "out").exists()


def test_alternates_are_not_called_held_by_no_input_nor_damaged(capsys, incident, tmp_path):
    root = incident("fast-failover-1.1")

    code, document = salvage(
        capsys, root / "snapshots" / "99-final", root / "logs", "--what", "all", "-o", tmp_path / "out"
    )

    # Broker 2 leads with a hole that broker 1 has records for, and the epochs of broker 1 go back: all can be read.
    assert (0, "saved", 142, 0) == (code, document["answer"]["state"], document["records"], document["missing"])
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [] == [gap for one in manifest["partitions"] for gap in one["gaps"]]


def test_certain_records_are_not_more_than_those_that_are_saved(capsys, incident, tmp_path):
    root = incident("fast-failover-1.1")

    _, document = salvage(
        capsys, root / "snapshots" / "99-final", root / "logs", "--what", "at-risk", "-o", tmp_path / "out"
    )

    assert "44 of 44 records at risk" in document["answer"]["headline"]
    assert "(44 committed)" in document["answer"]["headline"]


@pytest.mark.parametrize("missing", ["broker-1", "broker-2"])
def test_all_is_not_called_saved_without_the_leader_or_a_replica(capsys, incident, tmp_path, missing):
    snapshots = incident("unclean-election-4.x") / "snapshots"
    final = [one for one in (snapshots / "99-final").iterdir() if one.name != missing]
    before = [one for one in (snapshots / "02-old-leader-killed").iterdir() if one.name != missing]

    code, document = salvage(
        capsys, *final, *(word for one in before for word in ("--before", one)), "-o", tmp_path / "out"
    )

    assert (3, "unknown") == (code, document["answer"]["state"])


def test_a_log_that_ends_below_its_high_watermark_has_a_gap(capsys, unclean, tmp_path):
    copied(unclean / "99-final", tmp_path / "copy")
    logs = list((tmp_path / "copy").glob("broker-*/**/orders-0/*.log"))
    assert logs
    for log in logs:
        log.write_bytes(b"")

    code, document = salvage(
        capsys, tmp_path / "copy", "--what", "all", "--topic", "orders", "--partition", "0", "-o", tmp_path / "out"
    )

    assert (1, "gaps", 0) == (code, document["answer"]["state"], document["records"])
    assert "held by no input" in document["answer"]["headline"]


@pytest.mark.parametrize("form", ["jsonl", "segments"])
def test_bytes_behind_the_last_batch_that_no_one_can_read_are_not_called_saved(unclean, tmp_path, capsys, form):
    copied(unclean / "99-final" / "broker-1", tmp_path / "broker-1")
    (log,) = (tmp_path / "broker-1").rglob("orders-0/*.log")
    whole = log.read_bytes()
    first = 12 + int.from_bytes(whole[8:12], "big")
    log.write_bytes(whole[:first] + bytes([255]) * (len(whole) - first))

    code, document = salvage(capsys, log.parent, "--what", "all", "--form", form, "-o", tmp_path / "out")

    assert (code, document["answer"]["state"]) == (3, "unknown")
    assert "1 log ends in bytes that can't be read" in document["answer"]["headline"]
    assert any(f"from byte {first:,} on held, of orders-0" in words for words in document["answer"]["unknown"])
    (end,) = json.loads((tmp_path / "out" / "manifest.json").read_text())["partitions"][0]["unread_ends"]
    assert ([end], "unknown") == (document["partitions"][0]["unread_ends"], reason(end, "offsets"))
    assert (first, len(whole) - first) == (end["source"]["position"], end["source"]["length"])
    assert f"from byte {first:,} on can't be read" in (tmp_path / "out" / "README").read_text()
    run(["salvage", str(log.parent), "--what", "all", "--form", form, "-o", str(tmp_path / "again")])
    assert f"from byte {first:,} on can't be read" in " ".join(capsys.readouterr().out.split())


def test_the_headline_says_of_how_many_partitions_it_is_unknown_whether_more_is_lost(incident, tmp_path, capsys):
    snapshots = incident("power-loss-4.x") / "snapshots"
    before = snapshots / "02-killed-before-page-cache-loss"

    code, document = salvage(capsys, snapshots / "99-final", "--before", before, "-o", tmp_path / "out")

    assert (3, "unknown") == (code, document["answer"]["state"])
    assert "51 of 51 lost records" in document["answer"]["headline"]
    assert document["answer"]["headline"].endswith("; whether more are lost in 7 partitions is unknown.")


@pytest.mark.parametrize("nodes", [(1, 2, 3, 100), (1, 2), (1, 3, 100)])
@pytest.mark.some(2)
def test_what_a_broker_without_its_disk_makes_others_truncate_is_at_risk(capsys, incident, tmp_path, nodes):
    snapshot = incident("disk-replaced-4.x") / "snapshots" / "03-all-down-disk-replaced"
    paths = [str(one) for one in sorted(snapshot.iterdir()) if int(one.name.rpartition("-")[2]) in nodes]
    run(["diff", *paths, "--topic", "stock", "--topic", "bonds", "--format", "json"])
    ends = {
        (one["topic"], one["partition"]): max(replica["log_end_offset"] for replica in one["replicas"])
        for one in json.loads(capsys.readouterr().out)["partitions"]
    }

    _, document = salvage(
        capsys, *paths, "--topic", "stock", "--topic", "bonds", "--what", "at-risk", "-o", tmp_path / "out"
    )

    assert len(ends) == 5
    assert ends == {(one["topic"], one["partition"]): one["records"] for one in document["partitions"]}
    assert not list((tmp_path / "out").glob("*alternate*"))


def test_what_an_election_would_discard_is_at_risk_though_two_replicas_hold_it(capsys, incident, tmp_path):
    # Broker 3 is in the ISR by the metadata, and its directory is of an earlier moment.
    snapshots = incident("consumer-ahead-4.x") / "snapshots"
    paths = [*(snapshots / "99-final" / f"broker-{n}" for n in (1, 2)), snapshots / "01-before-live" / "broker-3"]
    paths.append(snapshots / "99-final" / "controller-100")
    run(["diff", *map(str, paths), "--format", "json"])
    diffed = json.loads(capsys.readouterr().out)

    _, document = salvage(capsys, *paths, "--what", "at-risk", "-o", tmp_path / "out")

    assert "if broker 3 is elected" in diffed["answer"]["headline"]
    (discarded,) = re.findall(r"([0-9]+) committed records", diffed["answer"]["headline"])
    assert document["records"] >= int(discarded)


def test_what_is_saved_is_not_called_all_where_more_may_be_lost_of_the_same_partition(capsys, unclean, tmp_path):
    # The leaders' logs are empty, others hold them; of what the unclean elections took no copy is among the inputs.
    copied(unclean / "99-final", tmp_path / "evidence", symlinks=True)
    for path in (tmp_path / "evidence" / "broker-3").rglob("orders-*/0*"):
        os.truncate(path, 0)

    code, document = salvage(capsys, tmp_path / "evidence", "--topic", "orders", "-o", tmp_path / "out")

    assert document["records"] > 100
    assert (3, "unknown") == (code, document["answer"]["state"])
    assert "is unknown" in document["answer"]["headline"]


def test_what_is_lost_at_other_offsets_is_no_doubt_about_those_that_were_asked_for(capsys, lost, tmp_path):
    code, document = salvage(capsys, *lost, "--topic", "orders", "--partition", 0, "--offsets", "5..7")

    assert (3, "unknown") == (code, document["answer"]["state"])
    assert "at offsets 5 to 7 are shown" in document["answer"]["headline"]
    assert "Elsewhere: 43 records" in document["answer"]["headline"]
    assert [] == document["answer"]["unknown"]


def test_other_content_of_several_epochs_is_named_by_its_holder_alone(fixtures, tmp_path):
    run(["salvage", str(fixtures / "unclean-election"), "-o", str(tmp_path / "out")])

    below = {str(path.parent.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("alternates/*/*/*")}
    assert below == {"alternates/orders-0/broker-2", "alternates/orders-1/broker-2", "alternates/orders-2/broker-3"}


def test_replicas_that_are_not_given_are_named_where_everything_is_saved(fixtures, tmp_path, capsys):
    lacking = "What replicas of orders-0 hold that are not among the inputs."
    asked = ("--what", "all", "--topic", "orders", "--partition", 0)
    cluster = fixtures / "unclean-election"

    _, alone = salvage(capsys, cluster / "broker-1", *asked, "-o", tmp_path / "alone")
    _, whole = salvage(capsys, cluster, *asked, "-o", tmp_path / "whole")

    assert lacking in alone["answer"]["unknown"]
    assert lacking not in whole["answer"]["unknown"]


@pytest.mark.parametrize("form", ["jsonl", "parquet", "segments"])
@pytest.mark.parametrize("topic", ["a" * 249, "b." * 120 + "payments", f"x.{'c' * 240}"])
@pytest.mark.some(3)
def test_topics_with_the_longest_names_come_out_beside_the_others(topic, form, tmp_path, capsys):
    for name in (f"{topic}-0", f"{topic[:-1]}-0", "orders-1"):
        write_partition(tmp_path / "evidence", name, b"".join(sound_batch(offset) for offset in range(5)))

    code, document = salvage(capsys, tmp_path / "evidence", "--what", "all", "--form", form, "-o", tmp_path / "out")

    assert code == 0, document
    assert "can't be written" not in json.dumps(document)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    paths = {}
    for one in manifest["partitions"]:
        assert one["records"] == 5
        paths[one["topic"]] = [file["path"] for file in one["files"]]
    assert set(paths) == {topic, topic[:-1], "orders"}, "the manifest has whole names"
    named = [path for some in paths.values() for path in some]
    assert len(set(named)) == len(named)
    for path in named:
        assert (tmp_path / "out" / path).is_file()
        assert max(map(len, path.split("/"))) <= 255
    if form == "segments":
        assert all(path.startswith(f"{topic}-0/") for path in paths[topic]), "a broker loads it by its name"
    if form == "jsonl":
        files = runpy.run_path(str(tmp_path / "out" / "put_back.py"))["files_of"](manifest, with_alternates=False)
        assert {(topic, 0), ("orders", 1)} < {(one, partition) for one, partition, _, _ in files}


def test_records_of_an_earlier_topic_whose_deletion_nobody_recorded_are_saved(incident, tmp_path, capsys):
    """The directories of brokers alone: other topic ids, and no metadata log that says why."""
    snapshots = incident("recreated-topic-4.x") / "snapshots"
    left_out = shutil.ignore_patterns("__cluster_metadata-*", "controller-*")
    now, before = (copied(snapshots / one, tmp_path / one, ignore=left_out) for one in ("99-final", "01-before-live"))
    code, document = salvage(capsys, now, "--before", before, "--what", "lost", "-o", tmp_path / "out")

    assert 3 == code
    assert document["answer"]["headline"].startswith("165 of 165 records of inventory-0, inventory-1 and inventory-2")
    run(["explain", str(now), "--before", str(before), "--format", "json"])
    explained = json.loads(capsys.readouterr().out)
    assert "maybe-lost" == explained["answer"]["state"]
    assert not [one for one in explained["operations"] if one["kind"] == "recreated-topic"]


def test_what_others_than_the_leader_hold_for_good_is_at_risk(incident, capsys):
    """The leader's log is damaged, and no rule makes it copy what another replica holds intact."""
    final = incident("damage-unread-2.8") / "snapshots" / "99-final"
    _, document = salvage(capsys, final, "--what", "at-risk", "--plan", "--leader", "1")

    assert document["answer"]["headline"].startswith("5 of 5 records at risk of audit-0 can be saved")


def test_what_a_damaged_leader_cannot_give_is_at_risk_beside_what_its_follower_will_discard(incident, tmp_path, capsys):
    root = incident("damage-unread-2.8")
    now = [tmp_path / f"broker-{number}" for number in (1, 2, 3)]
    for directory in now:
        copied(root / "snapshots" / "99-final" / directory.name, directory)
    (now[0] / "audit-0" / f"{60:020d}.log").write_bytes(b"")

    _, plan = salvage(capsys, *now, root / "logs", "--what", "at-risk", "--plan")

    assert "15 of 15 records at risk of audit-0 can be saved (15 committed)." == plan["answer"]["headline"]
