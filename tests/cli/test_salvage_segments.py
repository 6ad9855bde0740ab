"""`kforensics salvage --form segments`: logs byte for byte, which loading leaves as they are."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kforensics.cli.app import run
from kforensics.commands import salvage as salvage_command
from kforensics.commands.loading import DirectoryOnDisk
from kforensics.commands.salvaging import run_records, saving, segments
from kforensics.damage import Damage
from kforensics.errors import EvidenceUnreadable
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.log.records import Record
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import Level, iter_records, walk_segment
from kforensics.protocol.loading.disk import LoadOutcome, LoadSettings
from kforensics.protocol.loading.versions import loading_rules
from kforensics.protocol.versions import parse_version
from kforensics.source.mapped import EvidenceFile
from tests.builders.coordinators import batch
from tests.builders.directories import copied, log_dir
from tests.cli.test_salvage import salvage
from tests.oracle.loading.salvaged import changes, logs_in, tree_of, write_sources
from tests.oracle.loading.salvaged import salvage as salvage_segments

NOW_MS = 1_795_300_000_000


@pytest.fixture
def final(incident):
    return incident("all-codecs-4.x") / "snapshots" / "99-final"


def load(folder):
    """What loading makes of a directory by the rules that Kafka's loader agreed with."""
    rules = loading_rules(parse_version("4.1.0"))
    tree = tree_of(folder)
    end = max(int(name.split(".")[0]) for name in tree if name.endswith(".snapshot"))
    settings = LoadSettings(now_ms=NOW_MS, producer_expiration_ms=rules.default_producer_expiration_ms)
    start = min(int(name.split(".")[0]) for name in tree if name.endswith(".log"))
    outcome = DirectoryOnDisk(folder, tree).load(
        clean_shutdown=True, recovery_point=end, log_start_offset=start, settings=settings, rules=rules
    )
    assert isinstance(outcome, LoadOutcome)
    return outcome, changes(tree, dict(outcome.tree)), end


def records_of(folder):
    found = list(iter_records(MemoryBytes(log_of(folder))))
    return (
        [one for one in found if isinstance(one, Record)] if not any(isinstance(one, Damage) for one in found) else []
    )


def require_digests(out):
    """Every run and every file has the SHA-256 that the manifest gives it."""
    manifest = json.loads((out / "manifest.json").read_text())
    for one in [saved for partition in manifest["partitions"] for saved in (partition, *partition["alternates"])]:
        for file in one["files"]:
            assert hashlib.sha256((out / file["path"]).read_bytes()).hexdigest() == file["sha256"], file
        for run_ in one["runs"]:
            source = run_["source"]
            data = Path(manifest["inputs"][source["input"]]["path"], source["path"]).read_bytes()
            part = data[source["position"] : source["position"] + source["length"]]
            assert hashlib.sha256(part).hexdigest() == run_["sha256"], run_


def log_of(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def test_logs_are_copied_byte_for_byte(capsys, final, tmp_path):
    code, _ = salvage(capsys, final, "--what", "all", "--form", "segments", "-o", tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())

    assert (0, []) == (code, list((tmp_path / "out").glob("*.py")))
    require_digests(tmp_path / "out")
    for one in manifest["partitions"]:
        folder = tmp_path / "out" / f"{one['topic']}-{one['partition']}"
        sources = {run_["source"]["path"] for run_ in one["runs"]}
        inputs = {run_["source"]["input"] for run_ in one["runs"]}
        if one["topic"].startswith("compact") or not inputs:
            continue  # empty, or what a cleaner left, and what it was made of, lie in several files
        (source,) = inputs
        root = manifest["inputs"][source]["path"]
        whole = b"".join(Path(root, path).read_bytes() for path in sorted(sources))
        assert log_of(folder) == whole, folder.name
        assert (folder / "leader-epoch-checkpoint").exists()
        assert manifest["inputs"][source]["broker_id"] == one["leader"]["broker_id"]


def test_loading_leaves_them_as_they_are_and_nothing_is_damaged(capsys, final, tmp_path):
    salvage(capsys, final, "--what", "all", "--form", "segments", "-o", tmp_path / "out")
    folders = [folder for folder in logs_in(tmp_path / "out") if not folder.name.startswith("__cluster_metadata")]

    assert len(folders) > 20
    for folder in folders:
        outcome, changed, end = load(folder)
        assert (end, {}) == (outcome.state.log_end_offset, changed), folder.name
    code = run(["verify", *map(str, folders), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert 0 == code
    assert {"sound"} == {document["answer"]["state"]}


@pytest.mark.slow
def test_made_logs_with_damage_load_too(tmp_path):
    write_sources(tmp_path / "broker-1", range(100, 112))
    salvage_segments(tmp_path / "broker-1", tmp_path / "out", small=True)
    folders = logs_in(tmp_path / "out")

    assert len(folders) > 8
    assert any(len(list(folder.glob("*.log"))) > 1 for folder in folders)
    require_digests(tmp_path / "out")
    for folder in folders:
        outcome, changed, end = load(folder)
        assert (end, {}) == (outcome.state.log_end_offset, changed), folder.name


def test_from_zero_moves_offsets_and_nothing_else(capsys, final, tmp_path):
    options = ["--what", "all", "--topic", "compact-delete", "--form", "segments"]
    salvage(capsys, final, *options, "-o", tmp_path / "as-it-is")
    salvage(capsys, final, *options, "--from-zero", "-o", tmp_path / "moved")
    (one,), (other,) = logs_in(tmp_path / "as-it-is"), logs_in(tmp_path / "moved")

    before, after = (records_of(folder) for folder in (one, other))
    shift = before[0].batch_base_offset
    assert shift > 0
    assert 0 == after[0].batch_base_offset
    moved = [
        record._replace(offset=record.offset - shift, batch_base_offset=record.batch_base_offset - shift)
        for record in before
    ]
    assert moved == after
    for window in walk_segment(MemoryBytes(log_of(other)), level=Level.RECORDS):
        assert not window.damage
    assert {} == load(other)[1]


def test_what_a_topic_lost_is_a_log_of_its_own(capsys, incident, tmp_path):
    root = incident("unclean-election-4.x") / "snapshots"
    arguments = [
        root / "99-final",
        root.parent / "logs",
        "--before",
        root / "02-old-leader-killed",
        "--form",
        "segments",
    ]
    topic_id = "Zn7nXw1aQ6uO0t0zMfDkyw"
    _, document = salvage(capsys, *arguments, "--topic-id", topic_id, "-o", tmp_path / "out")
    folder = tmp_path / "out" / "orders-0"

    assert 56 == document["records"]
    assert {"00000000000000000060.log", "00000000000000000103.snapshot"} <= {path.name for path in folder.iterdir()}
    assert f"version: 0\ntopic_id: {topic_id}" == (folder / "partition.metadata").read_text()
    assert "0\n1\n0 60\n" == (folder / "leader-epoch-checkpoint").read_text()
    offsets = [record.offset for record in records_of(folder)]
    assert list(range(60, 103)) == offsets


def test_a_lower_leader_epoch_begins_another_log(tmp_path, capsys, incident, monkeypatch):
    root = incident("unclean-election-4.x") / "snapshots"
    copied(root / "99-final" / "broker-2" / "orders-1", tmp_path / "orders-1")
    (segment,) = (tmp_path / "orders-1").glob("*.log")
    segment.chmod(0o644)
    data = bytearray(segment.read_bytes())
    position = 0
    for _ in range(2):
        position += 12 + int.from_bytes(data[position + 8 : position + 12])
    data[position + 12 : position + 16] = (9).to_bytes(4)  # outside of the checksum
    segment.write_bytes(data)

    salvage(capsys, tmp_path / "orders-1", "--what", "all", "--form", "segments", "-o", tmp_path / "out")

    folders = logs_in(tmp_path / "out")
    assert len(folders) >= 2
    assert all({} == load(folder)[1] for folder in folders)


@pytest.mark.parametrize(
    ("kept", "missing"),
    [(({1, 3, 5, 9}, {3, 9}), []), (({1, 3, 5, 9}, {2, 3, 9}), [(2, 2)])],
    ids=["nested", "not nested"],
)
def test_the_most_complete_copy_of_a_cleaned_batch_is_copied_whole(tmp_path, capsys, kept, missing):
    whole = build_record_batch(0, [(1_700_000_000_000, b"%d" % at, b"value") for at in range(10)])
    batches = [
        encode_record_batch(replace(whole, records=tuple(one for one in whole.records if one.offset_delta in those)))
        for those in kept
    ]
    for broker, data in enumerate(batches):
        folder = tmp_path / f"broker-{broker}" / "orders-0"
        folder.mkdir(parents=True)
        (folder / f"{0:020d}.log").write_bytes(data)
        (folder.parent / "meta.properties").write_text(f"version=1\nbroker.id={broker}\ncluster.id=a\n")
    brokers = [tmp_path / "broker-1", tmp_path / "broker-0"]

    code, document = salvage(
        capsys, *brokers, "--what", "all", "--leader", "1", "--form", "segments", "-o", tmp_path / "out"
    )
    salvage(capsys, *brokers, "--what", "all", "--leader", "1", "-o", tmp_path / "records")
    (partition,) = document["partitions"]
    lines = (tmp_path / "records" / "orders-0.jsonl").read_text().splitlines()

    assert batches[0] == log_of(tmp_path / "out" / "orders-0")
    assert missing == [(gap["offsets"]["first"], gap["offsets"]["last"]) for gap in partition["gaps"]]
    assert {"overlapping"} >= {gap["reason"] for gap in partition["gaps"]}
    assert (1 if missing else 0) == code
    assert kept[0] | kept[1] == {json.loads(line)["offset"] for line in lines}


def test_a_batch_that_a_cleaner_left_empty_is_copied_once(tmp_path, capsys):
    empty = replace(build_record_batch(2, [(1_700_000_000_000, b"k", b"v")] * 3), records=())
    head = encode_record_batch(build_record_batch(0, [(1_700_000_000_000, b"k", b"v")] * 2))
    for broker in (1, 0):
        root = log_dir(tmp_path / f"broker-{broker}", broker)
        batches = head + encode_record_batch(replace(empty, base_timestamp=1_700_000_000_000 + broker))
        (root / "orders-0" / f"{0:020d}.log").write_bytes(batches)
    brokers = [tmp_path / "broker-1", tmp_path / "broker-0"]

    code, document = salvage(
        capsys, *brokers, "--what", "all", "--leader", "1", "--form", "segments", "-o", tmp_path / "out"
    )

    assert (0, []) == (code, [gap for gap in document["partitions"][0]["gaps"] if gap["reason"] == "overlapping"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--from-zero"], "for --form segments"),
        (["--topic-id", "Zn7nXw1aQ6uO0t0zMfDkyw"], "for --form segments"),
        (["--form", "segments", "--topic-id", "x"], "22 characters"),
        (["--form", "segments", "--time", "1..2"], "does not go with"),
    ],
)
def test_options_that_belong_together(capsys, final, tmp_path, options, words):
    code, printed = salvage(capsys, final, *options, "-o", tmp_path / "out")

    assert 2 == code
    assert words in printed


def test_messages_with_absolute_offsets_inside_are_not_moved(capsys, incident, tmp_path):
    final = incident("mixed-magic-1.1") / "snapshots" / "99-final"
    code, words = salvage(
        capsys, final, "--what", "all", "--form", "segments", "--from-zero", "-t", "profiles.m0", "-o", tmp_path / "out"
    )

    assert 2 == code
    assert "absolute offsets" in words
    assert segments.SEGMENT_LENGTH == 1 << 30


@pytest.mark.process
def test_what_is_refused_in_one_process_leaves_no_files_of_any(capsys, incident, tmp_path, monkeypatch):
    monkeypatch.setattr(salvage_command, "SMALL_WORK", 0)
    final = incident("mixed-magic-1.1") / "snapshots" / "99-final"

    code, words = salvage(
        capsys, final, "--what", "all", "--form", "segments", "--from-zero", "--jobs", "3", "-o", tmp_path / "out"
    )

    assert (2, True) == (code, "absolute offsets" in words)
    assert [] == [path for path in (tmp_path / "out").rglob("*") if not path.is_dir()]


@pytest.mark.parametrize(("form", "unread"), [("segments", 1), ("segments", 0), ("jsonl", 1), ("jsonl", 0)])
def test_a_cleaned_batch_that_can_not_be_read_any_more_is_taken_of_the_other_copy(
    tmp_path, capsys, monkeypatch, form, unread
):
    whole = build_record_batch(0, [(1_700_000_000_000, b"%d" % at, b"value") for at in range(10)])
    kept = {1: {1, 3, 5, 9}, 0: {3, 9}}
    batches = {
        broker: encode_record_batch(
            replace(whole, records=tuple(one for one in whole.records if one.offset_delta in those))
        )
        for broker, those in kept.items()
    }
    for broker, data in batches.items():
        root = log_dir(tmp_path / f"broker-{broker}", broker)
        (root / "orders-0" / f"{0:020d}.log").write_bytes(data)
    real, save = EvidenceFile.read_into, saving._Saver.run

    def read_into(self, position, buffer):
        if f"broker-{unread}" in str(self.path):
            raise EvidenceUnreadable(str(self.path), "Input/output error")
        return real(self, position, buffer)

    def broken_from_here_on(self):
        monkeypatch.setattr(EvidenceFile, "read_into", read_into)
        return save(self)

    monkeypatch.setattr(saving._Saver, "run", broken_from_here_on)
    brokers = [str(tmp_path / f"broker-{broker}") for broker in (1, 0)]
    out = tmp_path / "out"
    code = run(
        ["salvage", *brokers, "--what", "all", "--leader", "1", "--form", form, "-o", str(out), "--format", "json"]
    )
    monkeypatch.undo()
    (partition,) = json.loads(capsys.readouterr().out)["partitions"]
    gaps = [(gap["offsets"]["first"], gap["offsets"]["last"], gap["count"]) for gap in partition["gaps"]]
    found = (
        [record.offset for record in records_of(out / "orders-0")]
        if form == "segments"
        else [json.loads(line)["offset"] for line in (out / "orders-0.jsonl").read_text().splitlines()]
    )

    # The unreadable batch has so many records of which the offsets are not known: they may be others than those of the readable one.
    assert (code, sorted(kept[1 - unread])) == (1, found)
    assert gaps == ([(0, 8, 4)] if unread else [(0, 8, 2)])
    assert {"damaged"} == {gap["reason"] for gap in partition["gaps"]}
    require_digests(out)


@pytest.mark.parametrize("is_behind_a_part", [False, True])
@pytest.mark.parametrize("options", [("segments",), ("segments in pieces",), ("jsonl",), ("jsonl", "--jobs", "2")])
def test_a_place_that_can_not_be_read_any_more_is_a_gap(capsys, tmp_path, monkeypatch, options, is_behind_a_part):
    batches = [batch(at, [(b"k%d" % at, b"v" * 50)]) for at in range(30)]
    root = log_dir(tmp_path / "broker-1")
    (root / "orders-0" / f"{0:020d}.log").write_bytes(b"".join(batches))
    (root / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    first = sum(map(len, batches[:12]))
    bad = range(first + 5, first + len(batches[12]) + 5)  # in two batches
    real = EvidenceFile.read_into
    is_broken: list[bool] = []

    def read_into(self, position, buffer):
        if is_broken and position < bad.stop and position + len(buffer) > bad.start:
            raise EvidenceUnreadable(str(self.path), "Input/output error")
        return real(self, position, buffer)

    monkeypatch.setattr(EvidenceFile, "read_into", read_into)
    monkeypatch.setattr(saving, "WORTH_PROCESSES", 0)
    if is_behind_a_part:
        # The part before it can be read, and what lies behind can't.
        monkeypatch.setattr(run_records, "TASK_LENGTH", first)
    save = saving._Saver.run

    def broken_from_here_on(self):
        is_broken.append(True)
        return save(self)

    monkeypatch.setattr(saving._Saver, "run", broken_from_here_on)
    form, *more = options
    if form == "segments in pieces":  # as a batch that is larger than may be held
        form = "segments"
        for module in (saving, segments):
            monkeypatch.setattr(module, "LARGEST_HELD", 1)
        monkeypatch.setattr(segments, "_PIECE", 4)
    out = tmp_path / "out"
    code = run(["salvage", str(root), "--what", "all", "--form", form, *more, "-o", str(out), "--format", "json"])
    (partition,) = json.loads((out / "manifest.json").read_text())["partitions"]

    assert code == 1
    assert "can't be read" in capsys.readouterr().err or partition["gaps"]
    lost = [(gap["offsets"]["first"], gap["offsets"]["last"], gap["reason"]) for gap in partition["gaps"]]
    assert lost == [(12, 13, "damaged")]
    assert (partition["records"], list(out.rglob("*.partial"))) == (28, [])
    require_digests(out)
    kept = (
        b"".join(batches[:12] + batches[14:])
        if form == "segments"
        else [json.loads(line)["offset"] for line in (out / "orders-0.jsonl").read_text().splitlines()]
    )
    assert kept == (log_of(out / "orders-0") if form == "segments" else [*range(12), *range(14, 30)])


@pytest.mark.parametrize("count", [1, 2])
def test_a_log_begins_with_the_first_batch_that_can_be_read_to_its_end(capsys, tmp_path, monkeypatch, count):
    batches = [batch(at, [(b"k%d" % at, b"v" * 50)]) for at in range(7, 7 + count)]
    root = log_dir(tmp_path / "broker-1")
    (root / "orders-0" / f"{7:020d}.log").write_bytes(b"".join(batches))
    real, save = EvidenceFile.read_into, saving._Saver.run
    is_broken: list[bool] = []

    def read_into(self, position, buffer):
        if is_broken and position <= len(batches[0]) - 1 < position + len(buffer):
            raise EvidenceUnreadable(str(self.path), "Input/output error")
        return real(self, position, buffer)

    def broken_from_here_on(self):
        is_broken.append(True)
        return save(self)

    monkeypatch.setattr(EvidenceFile, "read_into", read_into)
    monkeypatch.setattr(saving._Saver, "run", broken_from_here_on)
    for module in (saving, segments):  # it is larger than may be held
        monkeypatch.setattr(module, "LARGEST_HELD", 1)
    monkeypatch.setattr(segments, "_PIECE", 16)
    out = tmp_path / "out"
    code, document = salvage(capsys, root, "--what", "all", "--form", "segments", "--from-zero", "-o", out)
    (partition,) = json.loads((out / "manifest.json").read_text())["partitions"]

    assert 1 == code
    assert [(7, 7)] == [
        (one["offsets"]["first"], one["offsets"]["last"]) for one in partition["gaps"] if one["reason"] == "damaged"
    ]
    assert count - 1 == document["records"]
    names = {path.name for path in (out / "orders-0").glob("*")}
    if count == 1:
        assert not [name for name in names if name.endswith((".log", ".snapshot", ".partial"))]
    else:
        assert {f"{0:020d}.log", f"{1:020d}.snapshot"} <= names
        assert [0] == [record.offset for record in records_of(out / "orders-0")]
    require_digests(out)


def test_of_a_batch_that_is_committed_in_part_every_form_counts_the_same(tmp_path, capsys):
    root = log_dir(tmp_path / "broker-1")
    records = [(b"k%d" % at, b"v") for at in range(5)]
    (root / "orders-0" / f"{0:020}.log").write_bytes(b"".join(batch(at, records, epoch=0) for at in (0, 5)))
    (root / "replication-offset-checkpoint").write_text("0\n1\norders 0 7\n")

    for form in ("jsonl", "segments"):
        given = ("--what", "all", "--leader", "1", "--form", form, "-o", tmp_path / form)
        _, document = salvage(capsys, root, *given)
        assert "10 of 10 records of orders-0 saved (7 committed)" in document["answer"]["headline"]
