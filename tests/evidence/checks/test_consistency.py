"""Every file of recorded directories against its neighbours: nothing wrong where nothing is, and each kind of damage where it was made."""

import shutil
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from kforensics.damage import DamageKind, Gravity
from kforensics.evidence import parallel, segment_parts
from kforensics.evidence.checks import consistency
from kforensics.evidence.checks.consistency import Verification, verify_inputs
from kforensics.evidence.checks.context import FileReport, FileState
from kforensics.evidence.checks.segment_scan import scan_segment_file
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.segment_parts import walk_sound_batches
from kforensics.findings.answers.verify import verify_answer
from kforensics.formats.checkpoint.lines import parse_leader_epoch_checkpoint
from kforensics.formats.index import (
    encode_aborted_transactions,
    encode_producers,
    parse_producer_snapshot,
    parse_txn_index,
)
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.segment.walk import Level
from kforensics.source.mapped import open_evidence
from tests.builders.directories import copied

DAMAGED = {
    ("power-cut-2.8", "02-after-power-loss"): {"broker-1/kafka-logs/readings-4/00000000000000000863.log"},
    ("silent-divergence-4.x", "03-follower-tampered"): {"broker-2/audit-0/00000000000000000040.log"},
    ("silent-divergence-4.x", "99-final"): {"audit-0/00000000000000000040.log"},
}
"""The only files of all recordings whose bytes are wrong; both were edited by hand."""


def look(*paths: Path, level: Level = Level.RECORDS, jobs: int = 1) -> Verification:
    return verify_inputs(find_inputs(paths), level=level, jobs=jobs)


def named(verification: Verification, path: str) -> FileReport:
    return next(report for report in verification.files if report.path == path)


def not_intact(verification: Verification) -> dict[str, FileState]:
    return {report.path: report.state for report in verification.files if report.state is not FileState.INTACT}


@pytest.mark.parametrize(
    "name",
    [
        "fast-failover-1.1",
        "hw-divergence-0.10",
        "mixed-magic-1.1",
        "power-cut-2.8",
        "silent-divergence-4.x",
        "tiered-3.9",
        "unclean-election-2.8",
    ],
)
@pytest.mark.some("power-cut-2.8", "silent-divergence-4.x", "fast-failover-1.1")
def test_only_damaged_bytes_are_called_damaged(incident, name):
    for snapshot in sorted((incident(name) / "snapshots").iterdir()):
        verification = look(snapshot)
        damaged = {report.path for report in verification.files if report.state is FileState.DAMAGED}
        assert damaged == DAMAGED.get((name, snapshot.name), set()), snapshot
        assert verification.problems == ()
        assert {report.state for report in verification.files} <= {
            FileState.INTACT,
            FileState.TORN_TAIL,
            FileState.DAMAGED,
        }


@pytest.fixture
def broker(incident, tmp_path):
    """A cleanly stopped 4.3 broker with transactions and every codec, free to be damaged."""
    source = incident("all-codecs-4.x") / "snapshots" / "99-final" / "broker-1"
    target = tmp_path / "broker-1"
    target.mkdir()
    for path in source.iterdir():
        if path.is_file():
            shutil.copy(path, target)
    for name in ("tx-0", "codec-mixed-0"):
        copied(source / name, target / name)
    return target


FIRST = "00000000000000000000"


def rewrite(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def patch(path: Path, position: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def test_the_broker_itself_is_sound(broker):
    assert not_intact(look(broker)) == {}


def test_an_index_entry_beside_every_batch(broker):
    path = broker / "codec-mixed-0" / f"{FIRST}.index"
    position = struct.unpack_from(">i", path.read_bytes(), 12)[0]
    patch(path, 12, struct.pack(">i", position + 1))
    report = named(look(broker), f"codec-mixed-0/{FIRST}.index")
    assert [(place.span, place.kind, place.gravity) for place in report.damage] == [
        ((8, 8), DamageKind.INDEX, Gravity.DAMAGE)
    ]
    (broker / ".kafka_cleanshutdown").unlink()
    (broker / "recovery-point-offset-checkpoint").write_bytes(b"0\n0\n")
    assert named(look(broker), f"codec-mixed-0/{FIRST}.index").state is FileState.TORN_TAIL


def test_an_index_entry_behind_the_log(broker):
    path = broker / "codec-mixed-0" / f"{FIRST}.index"
    rewrite(path, path.read_bytes() + struct.pack(">ii", 5000, 500_000))
    report = named(look(broker), f"codec-mixed-0/{FIRST}.index")
    assert (report.state, report.damage[0].span.length) == (FileState.DAMAGED, 8)


def test_a_time_index_entry_with_another_batch_s_time(broker):
    path = broker / "codec-mixed-0" / f"{FIRST}.timeindex"
    timestamp = struct.unpack_from(">q", path.read_bytes())[0]
    patch(path, 0, struct.pack(">q", timestamp - 1))
    report = named(look(broker), f"codec-mixed-0/{FIRST}.timeindex")
    assert [place.span for place in report.damage] == [(0, 12)]
    assert f"timestamp {timestamp}" in report.damage[0].expected


def test_a_lost_index_is_no_damage(broker):
    (broker / "codec-mixed-0" / f"{FIRST}.index").unlink()
    verification = look(broker)
    assert not_intact(verification) == {}
    assert [remark.path for one in verification.partitions for remark in one.remarks] == [f"codec-mixed-0/{FIRST}.log"]


def test_aborted_transactions_both_ways(broker):
    path = broker / "tx-0" / f"{FIRST}.txnindex"
    entries = parse_txn_index(path.read_bytes()).entries
    assert entries
    rewrite(path, encode_aborted_transactions(entries[1:]))
    report = named(look(broker), f"tx-0/{FIRST}.txnindex")
    assert f"aborted at offset {entries[0].last_offset}" in report.damage[0].expected
    rewrite(
        path, encode_aborted_transactions([entries[0]._replace(first_offset=entries[0].first_offset + 1), *entries[1:]])
    )
    report = named(look(broker), f"tx-0/{FIRST}.txnindex")
    assert [place.span for place in report.damage] == [(0, 34)]


def test_a_producer_snapshot_is_recomputed(broker):
    path = max((broker / "tx-0").glob("*.snapshot"))
    entries = parse_producer_snapshot(path.read_bytes()).entries
    assert entries
    rewrite(path, encode_producers([entries[0]._replace(last_sequence=entries[0].last_sequence + 1), *entries[1:]]))
    report = named(look(broker), f"tx-0/{path.name}")
    assert [(place.span, place.kind) for place in report.damage] == [((10, 46), DamageKind.MISMATCH)]
    rewrite(path, b"")
    assert named(look(broker), f"tx-0/{path.name}").state is FileState.TORN_TAIL


def test_a_leader_epoch_line_that_contradicts_the_batches(broker):
    path = broker / "tx-0" / "leader-epoch-checkpoint"
    lines = parse_leader_epoch_checkpoint(path.read_bytes()).lines
    assert lines[0][:2] == (0, 0)
    rewrite(path, b"0\n2\n0 0\n1 10\n")
    report = named(look(broker), "tx-0/leader-epoch-checkpoint")
    assert report.state is FileState.DAMAGED
    assert report.damage[0].found.startswith("line 4: leader epoch 1 from offset 10")
    rewrite(path, b"0\n2\n0 0\n9 100000\n")
    assert named(look(broker), "tx-0/leader-epoch-checkpoint").state is FileState.INTACT


def test_a_torn_tail_is_damage_only_after_a_clean_stop(broker):
    path = broker / "codec-mixed-0" / f"{FIRST}.log"
    size = path.stat().st_size
    rewrite(path, path.read_bytes()[: size - 3])
    assert named(look(broker), f"codec-mixed-0/{FIRST}.log").state is FileState.DAMAGED
    (broker / ".kafka_cleanshutdown").unlink()
    (broker / "recovery-point-offset-checkpoint").write_bytes(b"0\n0\n")
    verification = look(broker)
    assert not_intact(verification) == {f"codec-mixed-0/{FIRST}.log": FileState.TORN_TAIL}


def test_preallocated_zeros_of_a_killed_broker(broker):
    (broker / ".kafka_cleanshutdown").unlink()
    (broker / "recovery-point-offset-checkpoint").write_bytes(b"0\n0\n")
    path = broker / "codec-mixed-0" / f"{FIRST}.log"
    rewrite(path, path.read_bytes() + bytes(1 << 20))
    (place,) = named(look(broker), f"codec-mixed-0/{FIRST}.log").damage
    assert (place.kind, place.gravity) == (DamageKind.ZEROS, Gravity.TORN_TAIL)


def test_a_segment_under_a_wrong_name(broker):
    folder = broker / "codec-mixed-0"
    (folder / f"{FIRST}.log").rename(folder / "00000000000000000005.log")
    report = named(look(broker), "codec-mixed-0/00000000000000000005.log")
    assert DamageKind.NAME in {place.kind for place in report.damage}


def test_a_checkpoint_above_the_log_end(broker):
    (broker / "recovery-point-offset-checkpoint").write_bytes(b"0\n1\ncodec-mixed-0 0 7\n")
    assert not_intact(look(broker)) == {}
    (broker / "recovery-point-offset-checkpoint").write_bytes(b"0\n1\ncodec-mixed 0 99999\n")
    report = named(look(broker), "recovery-point-offset-checkpoint")
    assert report.damage[0].found == "line 3: recovery point 99999, and a log that ends at 77"
    assert report.state is FileState.DAMAGED
    (broker / "cleaner-offset-checkpoint").write_bytes(b"0\n1\ncodec-mixed 0 99999\n")
    report = named(look(broker), "cleaner-offset-checkpoint")
    assert report.damage[0].found == "line 3: cleaner's point 99999"


def test_what_a_malformed_small_file_is(broker):
    for name, content in {
        "meta.properties": b"\0" * 20,
        "tx-0/partition.metadata": b"version: nine\n",
        "cleaner-offset-checkpoint": b"zero",
    }.items():
        rewrite(broker / name, content)
    verification = look(broker)
    assert {path for path, state in not_intact(verification).items() if state is FileState.DAMAGED} == {
        "meta.properties",
        "tx-0/partition.metadata",
        "cleaner-offset-checkpoint",
    }


def test_a_metadata_snapshot_without_its_end(broker):
    path = broker / "bootstrap.checkpoint"
    rewrite(path, path.read_bytes()[:-20])
    assert named(look(broker), "bootstrap.checkpoint").state is FileState.DAMAGED
    data = (broker / "tx-0" / f"{FIRST}.log").read_bytes()
    rewrite(path, data)
    assert "snapshot-header" in named(look(broker), "bootstrap.checkpoint").damage[0].expected


def test_what_an_unfinished_write_left_is_no_damage_whatever_it_holds(broker):
    segment = broker / "tx-0" / f"{FIRST}.log"
    left = {
        "meta.properties.tmp": b"",
        "recovery-point-offset-checkpoint.tmp": b"\0" * 20,
        "tx-0/leader-epoch-checkpoint.tmp": b"zero",
        "tx-0/partition.metadata.tmp": b"version: 9\n",
        "tx-0/00000000000000000000-0000000001-17.checkpoint.part": b"half",
        f"tx-0/{FIRST}.log.cleaned": segment.read_bytes()[:100],
        f"tx-0/{FIRST}.index.cleaned": b"\1" * 9,
    }
    for name, content in left.items():
        (broker / name).write_bytes(content)

    verification = look(broker)

    assert {path: state for path, state in not_intact(verification).items() if path in left} == dict.fromkeys(
        left, FileState.UNCHECKED
    )
    assert not any(named(verification, name).damage for name in left)
    answer = verify_answer(replace(verification, problems=()), (), level=Level.RECORDS)
    assert (answer.state, answer.now) == ("sound", ())
    assert answer.headline.endswith("7 leftovers of an unfinished write, which no broker reads.")
    segment.with_suffix(".log.swap").write_bytes(segment.read_bytes()[:100])  # the next start puts it in place
    assert named(look(broker), f"tx-0/{FIRST}.log.swap").state is not FileState.UNCHECKED


def test_a_name_that_differs_in_case_only_may_be_the_same_directory(broker):
    path = broker / "replication-offset-checkpoint"
    for other in broker.glob("*-checkpoint"):
        rewrite(other, b"0\n0\n")
    rewrite(path, b"0\n2\ntx 0 6\nTx 0 6\n")

    verification = look(broker)

    assert named(verification, path.name).state is FileState.INTACT
    (problem,) = verification.problems
    assert problem.path == "tx-0"
    assert "the checkpoints also name Tx-0, which differs from it in case only" in problem.message
    (broker / "TX-0").mkdir()  # this disk tells case apart, so a directory of its own was there
    verification = look(broker)
    (place,) = named(verification, path.name).damage
    assert place.found.endswith("Tx-0 up to offset 6")
    assert not verification.problems


def test_a_file_that_can_t_be_read_is_a_problem(broker):
    path = broker / "tx-0" / f"{FIRST}.index"
    path.unlink()
    path.symlink_to("/etc/passwd")
    verification = look(broker)
    assert [problem.path for problem in verification.problems] == [f"tx-0/{FIRST}.index"]


@pytest.mark.slow
def test_processes_and_parts_change_nothing(incident, monkeypatch):
    snapshot = incident("power-cut-2.8") / "snapshots" / "02-after-power-loss"
    alone = look(snapshot)
    monkeypatch.setattr(parallel, "WORTH_A_PROCESS", 1)
    assert look(snapshot, jobs=3).files == alone.files
    monkeypatch.setattr(consistency, "SPLIT_LENGTH", 1)
    monkeypatch.setattr(segment_parts, "SMALLEST_PART", 4096)
    assert look(snapshot, jobs=3).files == alone.files


@pytest.mark.parametrize(
    "epochs",
    [[-1] * 10 + [3] * 10, [3] * 10 + [-1] * 10, [3] * 5 + [-1] * 10 + [3] * 5],
    ids=["begin", "end", "middle"],
)
@pytest.mark.some(2)
def test_batches_without_leader_epochs_are_found_in_parts_too(epochs, tmp_path, monkeypatch):
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    batches = [
        encode_record_batch(build_record_batch(at, [(at, None, b"v" * 40)], partition_leader_epoch=epoch))
        for at, epoch in enumerate(epochs)
    ]
    log = tmp_path / "orders-0" / f"{FIRST}.log"
    log.parent.mkdir()
    log.write_bytes(b"".join(batches))
    alone = look(tmp_path)
    monkeypatch.setattr(parallel, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(consistency, "SPLIT_LENGTH", 1)
    monkeypatch.setattr(segment_parts, "SMALLEST_PART", 3 * len(batches[0]))

    assert alone.files == look(tmp_path, jobs=2).files
    with open_evidence(log) as file:
        found = [
            [
                one
                for _, damage in walk_sound_batches(file, base_offset=0, keep=lambda rows: rows, jobs=jobs)
                for one in damage
            ]
            for jobs in (1, 2)
        ]
    assert {DamageKind.EPOCH} == {one.kind for one in found[0]}
    assert found[0] == found[1]


def test_an_index_that_is_removed_between_two_parts_is_missing(incident, tmp_path, monkeypatch):
    snapshot = incident("power-cut-2.8") / "snapshots" / "02-after-power-loss"
    broker = copied(next(one for one in sorted(snapshot.iterdir()) if any(one.rglob("*.index"))), tmp_path / "broker")
    monkeypatch.setattr(parallel, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(consistency, "SPLIT_LENGTH", 1)
    monkeypatch.setattr(segment_parts, "SMALLEST_PART", 4096)
    parts = []

    def removing(task, progress, buffers):
        found = scan_segment_file(task, progress, buffers)
        if task.end is not None and task.index_path is not None:
            task.index_path.unlink(missing_ok=True)
            parts.append(task.path)
        return found

    monkeypatch.setattr(consistency, "spread", lambda work, tasks, **_: [work(one, lambda _: None) for one in tasks])
    monkeypatch.setattr(consistency, "scan_segment_file", removing)
    found = look(broker, jobs=2)

    assert parts
    assert {str(one.relative_to(broker)) for one in parts} <= {one.path for one in found.files}


@pytest.mark.parametrize("level", Level)
def test_every_level_counts_the_same_records(broker, level):
    counts = {report.path: (report.batches, report.records) for report in look(broker).files}
    assert {report.path: (report.batches, report.records) for report in look(broker, level=level).files} == counts


def test_a_single_file_and_a_lone_partition(broker):
    assert [(report.kind, report.state) for report in look(broker / "tx-0" / f"{FIRST}.log").files] == [
        ("segment", FileState.INTACT)
    ]
    assert not_intact(look(broker / "tx-0")) == {}
    lone = broker / "tx-0" / "leader-epoch-checkpoint"
    assert [report.state for report in look(lone).files] == [FileState.INTACT]
