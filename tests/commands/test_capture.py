"""Captures: what commands say of them, what standard tools make of them, and what a forged one can't do."""

import errno
import hashlib
import io
import json
import os
import pickle
import re
import shutil
import stat
import struct
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest

from kforensics.cli.app import run
from kforensics.commands.cited import cited_files
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, EvidenceUnreadable, MissingBytes, UsageError
from kforensics.evidence.captured.reading import readable_ranges
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.discovery.partition_dirs import find_places
from kforensics.evidence.model import Citation
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.capture import CapturePath, open_capture
from kforensics.source.capture_file import MARKER, PART_LIMIT, comment_of
from kforensics.source.mapped import open_evidence
from tests import schemas
from tests.builders.captured_tails import tail_bytes
from tests.builders.directories import copied
from tests.captures import compare_ends, compare_recording, document, take
from tests.conftest import FIXTURES, ROOT, tree_state
from tests.schemas import reason

RECORDINGS = sorted(path.name.removesuffix(".tar.xz") for path in (FIXTURES / "incidents").glob("*.tar.xz"))
BROKER = FIXTURES / "unclean-election" / "broker-1"


@pytest.fixture
def broker(small_cluster):
    return small_cluster / "broker-1"


@pytest.fixture(scope="module")
def taken_once(small_cluster, tmp_path_factory):
    return take([small_cluster / "broker-1"], tmp_path_factory.mktemp("taken") / "broker-1.kfc")


@pytest.fixture
def taken(taken_once, tmp_path):
    return Path(shutil.copyfile(taken_once, tmp_path / "broker-1.kfc"))


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.some("hw-loss-0.10", "kip101-saves-0.11", "damaged-leader-2.8", "tiered-3.9")
def test_commands_say_of_captures_what_they_say_of_the_directories(name, incident, tmp_path):
    schemas.switch(
        on=False
    )  # such documents are held against the schemas elsewhere, which takes longer than to make them

    assert [] == list(compare_recording(incident(name), tmp_path, of_every_moment=False))


def test_ends_of_logs_are_captured_and_what_is_not_in_them_is_said(incident, tmp_path):
    snapshot = incident("unclean-election-4.x") / "snapshots" / "99-final"
    found, code = document("diff", sorted(snapshot.iterdir()), "--depth", "tails")

    assert [] == list(compare_ends(snapshot, tmp_path / "ends"))
    assert (3, "unknown", "tails") == (code, found["answer"]["state"], found["depth"])  # elections were unclean

    printed, code = document("diff", [tmp_path / "ends"])
    verified, its_code = document("verify", [tmp_path / "ends" / "broker-2.kfc"])
    message = next(one["message"] for one in printed["problems"] if one["path"] == "orders-0")

    assert (3, "unknown") == (code, printed["answer"]["state"])
    assert re.match(
        r"the capture was taken at depth tails: of content below offset \d+ it holds nothing\. Compare the ends with --depth tails, or read INPUT/orders-0 of broker \d",
        message,
    )
    assert 3 == its_code
    assert "unknown" == verified["answer"]["state"]


def test_a_capture_of_ends_takes_nothing_along_that_needs_more(tmp_path, capsys, broker):
    arguments = ["capture", str(broker), "--depth", "tails", "--normal-priority", "-o"]
    assert 0 == run([*arguments, str(tmp_path / "one.kfc")])
    assert "one.kfc has the evidence of node 1, of logs their ends alone." in capsys.readouterr().out
    assert 2 == run([*arguments, str(tmp_path / "two.kfc"), "--with-tail"])
    assert "it does not go with --all-batches, --with-tail or --since" in " ".join(capsys.readouterr().err.split())
    assert ["one.kfc"] == [one.name for one in tmp_path.iterdir()]


@pytest.mark.slow
def test_captures_and_directories_are_mixed_freely(tmp_path):
    nodes = sorted(one for one in (FIXTURES / "unclean-election").iterdir() if one.is_dir())
    mixed = [take([node], tmp_path / f"{node.name}.kfc") if at % 2 else node for at, node in enumerate(nodes)]

    assert document("diff", nodes) == document("diff", mixed)
    assert document("explain", nodes) == document("explain", mixed)


@pytest.mark.parametrize("lost", ["*.log", "00000000000000000000.log"])
@pytest.mark.some(1)
def test_segments_that_are_missing_are_missing_of_a_capture_too(lost, tmp_path, small_cluster):
    nodes = []
    for node in sorted(one for one in small_cluster.iterdir() if one.is_dir()):
        nodes.append(tmp_path / node.name)
        copied(node, nodes[-1])
    for log in (nodes[0] / "orders-0").glob(lost):
        log.unlink()
    captures = [take([node], tmp_path / f"{node.name}.kfc") for node in nodes]

    there = document("diff", nodes)
    assert "KF116" in {one["code"] for one in there[0]["findings"]}
    assert there == document("diff", captures)
    (whole, code), (captured, its_code) = (document("verify", [one]) for one in (nodes[0], captures[0]))
    missing = [
        [
            (file["path"], damage["found"])
            for file in found["files"]
            for damage in file["damage"]
            if damage["kind"] == "missing"
        ]
        for found in (whole, captured)
    ]
    assert missing[0] == missing[1] != []
    assert 1 == code == its_code


def test_nothing_below_the_input_changes_and_nothing_else_is_left(tmp_path):
    source = tmp_path / "broker-1"
    copied(BROKER, source)
    before = tree_state(source)
    code = run(["capture", str(source), "--out", str(tmp_path / "out.kfc"), "--normal-priority", "--quiet"])

    assert 0 == code
    assert before == tree_state(source)
    assert ["broker-1", "out.kfc"] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.process
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_no_system_call_tries_to_write_below_an_input(tmp_path):
    source, log = tmp_path / "broker-1", tmp_path / "trace"
    copied(BROKER, source)
    traced = ["strace", "-f", "-qq", "-y", "-s", "4096", "-e", "trace=%file,%desc", "-o", str(log)]
    command = ["-m", "kforensics", "capture", str(source), "--out", str(tmp_path / "out.kfc"), "--quiet"]
    result = subprocess.run([*traced, sys.executable, *command], capture_output=True, text=True, check=False, cwd=ROOT)
    if not log.exists() or "ptrace" in result.stderr:
        pytest.skip("processes can't be traced here")

    inside = [line for line in log.read_text(errors="replace").splitlines() if f"{source}" in line]
    opened = [line for line in inside if "openat(" in line or "open(" in line]
    writing = re.compile(
        r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|\b(write|pwrite64|pwritev|ftruncate|fallocate|unlink|unlinkat|rename|renameat2?|"
        r"mkdir|mkdirat|utimensat|fchmod|fchmodat|fchown|flock)\("
    )
    assert 0 == result.returncode
    assert len(opened) > 20
    assert [] == [line for line in inside if writing.search(line)]


def test_the_document_says_what_is_in_the_file(tmp_path, capsys, broker):
    out = tmp_path / "out.kfc"
    arguments = ["capture", str(broker), "--normal-priority", "--format", "json"]
    assert 0 == run([*arguments, "--out", str(out)])
    taken = json.loads(capsys.readouterr().out)
    assert 0 == run([*arguments, "--plan"])
    planned = json.loads(capsys.readouterr().out)

    assert "complete" == taken["answer"]["state"]
    assert out.stat().st_size == taken["capture"]["bytes"]
    assert taken["plan"]["segments"] == planned["plan"]["segments"] == taken["capture"]["segments"] > 0
    assert "not-written" == reason(planned, "capture")
    assert [] == taken["capture"]["changed"] == taken["problems"]


def test_an_estimate_takes_preallocated_indexes_for_zeros(tmp_path, capsys):
    broker = tmp_path / "broker"
    copied(BROKER, broker)
    (folder,) = broker.glob("**/__cluster_metadata-0")
    sizes = []
    for length in (24, 10 << 20):
        for index in (*folder.glob("*.index"), *folder.glob("*.timeindex")):
            os.truncate(index, length)
        assert 0 == run(["capture", str(broker), "--plan", "--normal-priority", "--format", "json"])
        sizes.append(json.loads(capsys.readouterr().out)["plan"]["capture_bytes"])

    assert 0 < sizes[0] < sizes[1] < sizes[0] + 50_000


def test_standard_tools_open_it(taken, broker):
    with zipfile.ZipFile(taken) as archive:
        assert archive.testzip() is None
        manifest = json.loads(archive.read("manifest.json"))
        for part in manifest["parts"]:
            data = archive.read(part["name"])
            assert (part["length"], part["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        held: dict[str, bytes] = {}
        for name in (one for one in archive.namelist() if one.startswith("files/")):
            with tarfile.open(fileobj=io.BytesIO(archive.read(name))) as small:
                held |= {one.name: file.read() for one in small if (file := small.extractfile(one)) is not None}
    columns = np.load(taken, allow_pickle=False)
    rows = len(columns["batches/000000/crc"])

    for path in ("meta.properties", "replication-offset-checkpoint", "orders-0/leader-epoch-checkpoint"):
        assert (broker / path).read_bytes() == held[f"broker-1/{path}"]
    assert rows == manifest["counts"]["batches"] > 0


def test_no_byte_of_a_record_is_in_it(taken, broker):
    """Every value that the recording's producer wrote is looked for in every part."""
    values = [b"value", b"order", b"payload"]
    log = (broker / "orders-0" / "00000000000000000000.log").read_bytes()
    sample = log[200:260]
    with zipfile.ZipFile(taken) as archive:
        for name in archive.namelist():
            assert sample not in archive.read(name), name
    assert any(value in log for value in values) or len(log) > 300


def test_small_files_are_dumped_out_of_it(taken, capsys, broker):
    path = "orders-0/leader-epoch-checkpoint"
    assert 0 == run(["dump", str(broker / path)])
    there = capsys.readouterr().out
    assert 0 == run(["dump", f"{taken}/broker-1/{path}"])

    assert there == capsys.readouterr().out


def test_bytes_that_it_lacks_are_asked_for_by_file_and_broker(taken, capsys, broker):
    assert 3 == run(["dump", "--records", f"{taken}/broker-1/orders-0/00000000000000000000.log"])

    err = " ".join(capsys.readouterr().err.split())
    assert "does not hold its bytes" in err
    assert f"{broker.resolve()}/orders-0/00000000000000000000.log of broker 1" in err


def test_records_that_would_be_truncated_are_shown_of_directories_and_asked_for_of_captures(incident, tmp_path, capsys):
    snapshots = incident("unclean-election-4.x") / "snapshots"
    killed, others = snapshots / "02-old-leader-killed" / "broker-1", snapshots / "03-old-leader-down-live"
    options = ["--show-records", "--show-payload"]
    assert 1 == run(["diff", str(killed), str(others / "broker-2"), str(others / "broker-3"), *options])
    there = capsys.readouterr().out
    taken = take([killed], tmp_path / "broker-1.kfc")
    run(["diff", str(taken), str(others / "broker-2"), str(others / "broker-3"), *options])
    here = capsys.readouterr().out

    assert "placed" in there
    assert "would be truncated can't be listed: the capture does not hold their content" in " ".join(here.split())
    assert "the capture does not hold" not in " ".join(there.split())
    assert f'$ cp -a {killed.resolve()} "${{SAFE:?}}"/02-old-leader-killed-broker-1\n' in here
    assert "placed" not in here

    with_bytes = take([killed], tmp_path / "with-bytes.kfc", with_tail=True)
    run(["diff", str(with_bytes), str(others / "broker-2"), str(others / "broker-3"), *options])
    carried = capsys.readouterr().out
    assert [line for line in there.splitlines() if "placed" in line] == [
        line for line in carried.splitlines() if "placed" in line
    ]
    assert "can't be listed" not in carried


@pytest.mark.slow
def test_records_of_the_metadata_log_that_would_be_truncated_are_listed_of_captures(incident, tmp_path, capsys):
    brokers = incident("epoch-truncate-2.8") / "snapshots" / "03-new-leader-live"
    names = ("broker-1", "broker-2", "broker-3")
    captures = [take([brokers / name], tmp_path / f"{name}.kfc", with_tail=True) for name in names]
    printed = []
    for inputs in ([brokers / name for name in names], captures):
        assert 3 == run(["diff", *map(str, inputs), "--leader", "1", "-t", "@metadata", "--show-records"])
        printed.append(capsys.readouterr().out)

    records = [text.partition("@metadata-0: records")[2] for text in printed]
    assert "  24  null" in records[0]
    assert records[0] == records[1]


def test_predict_says_of_a_capture_what_it_says_of_the_directory_and_names_what_stayed_there(
    tmp_path, monkeypatch, broker
):
    node = tmp_path / "broker-1"
    copied(broker, node)
    there, _ = document("predict", [node])
    (node / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    clean, _ = document("predict", [node])
    for name, with_marker in (("clean", True), ("killed", False)):
        if not with_marker:
            (node / ".kafka_cleanshutdown").unlink()
        taken = take([node], tmp_path / f"{name}.kfc")
        assert (clean if with_marker else there) == document("predict", [taken])[0]

    # Of longer logs the rows do not begin with the log: a start that finds no marker reads what is before them.
    monkeypatch.setattr("kforensics.commands.capturing.plan.stake", lambda *_: 20)
    monkeypatch.setattr("kforensics.commands.capturing.plan._scanned_from", lambda *_: 20)
    lacking = take([node], tmp_path / "lacking.kfc")
    found, code = document("predict", [lacking])
    unknown = {log["path"] for log in found["logs"] if log["outcome"] == "unknown"}

    assert 3 == code
    assert "unknown" == found["answer"]["state"]
    assert unknown
    message = next(log["message"] for log in found["logs"] if log["path"] in unknown)
    assert message.startswith("a start reads bytes that the capture does not hold: those of ")
    assert message.endswith("/00000000000000000000.log of broker 1")
    assert [log for log in found["logs"] if log["path"] not in unknown] == [
        log for log in there["logs"] if log["path"] not in unknown
    ]


def test_predict_says_of_captured_segments_about_to_be_removed_what_it_says_of_the_directory(tmp_path, broker):
    node = tmp_path / "broker-1"
    copied(broker, node)
    partition = next(one for one in sorted(node.iterdir()) if (one / f"{0:020}.timeindex").is_file())
    removed = node / f"gone-0.{'0123456789abcdef' * 2}-delete"
    copied(partition, removed)
    for name in (".index", ".timeindex"):
        (removed / f"{0:020}{name}").write_bytes(bytes(12 if name == ".timeindex" else 8))
    (partition / f"{0:020}.timeindex").rename(partition / f"{0:020}.timeindex.deleted")
    for ending in (".log.deleted", ".index.deleted"):
        (partition / f"{0:020}{ending}").write_bytes(
            (partition / f"{0:020}{ending.removesuffix('.deleted')}").read_bytes()
        )
    taken = take([node], tmp_path / "broker-1.kfc")

    there, here = document("predict", [node]), document("predict", [taken])

    assert removed.name in {log["path"].rpartition("/")[2] for log in there[0]["logs"]}
    assert there == here
    content = open_capture(taken).entry(f"broker-1/{removed.name}/{0:020}.timeindex")
    assert content is not None
    assert "index" in content.content


@pytest.mark.parametrize(("wrong", "version"), [(None, "3.9.1"), (7, "3.9.1"), (None, "2.0.1")])
def test_predict_looks_up_in_the_index_of_a_captured_segment(wrong, version, tmp_path, monkeypatch):
    node = tmp_path / "broker-1"
    partition = node / "orders-0"
    partition.mkdir(parents=True)
    for name in ("meta.properties", ".kafka_cleanshutdown"):
        (node / name).write_text("version=0\nbroker.id=1\ncluster.id=6It1kTHbTjKY3LNflMZizQ\n")
    batches = [
        encode_record_batch(
            build_record_batch(at, [(1_790_000_000_000 + at, None, b"value")], partition_leader_epoch=0)
        )
        for at in range(300)
    ]
    starts = [sum(map(len, batches[:at])) for at in range(300)]
    entries = [(at, starts[at]) for at in range(20, 300, 20)]
    if wrong is not None:
        entries[wrong] = (entries[wrong][0], entries[wrong][1] + 1)
    (partition / f"{0:020}.log").write_bytes(b"".join(batches))
    (partition / f"{0:020}.index").write_bytes(b"".join(struct.pack(">ii", *one) for one in entries))
    (partition / f"{0:020}.timeindex").write_bytes(struct.pack(">qi", 1_790_000_000_280, 280))
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    monkeypatch.setattr("kforensics.commands.capturing.plan.stake", lambda *_: 250)
    taken = take([node], tmp_path / "broker-1.kfc")
    options = ("--kafka", version)

    index = open_capture(taken).entry(f"broker-1/orders-0/{0:020}.index")
    assert index is not None
    there, here = document("predict", [node], *options), document("predict", [taken], *options)

    assert index is not None
    if wrong is None:
        assert {"index": {"entries": 14, "last": [280, starts[280]]}} == index.content
    else:
        assert "tar" in index.content  # one that does not lead to batches goes along itself
    assert "loads" == there[0]["logs"][0]["outcome"]
    assert 250 <= there[0]["logs"][0]["after"]["log_end_offset"]
    assert there == here


def test_a_path_that_can_not_be_used_is_named_and_the_rest_captured(tmp_path, broker):
    printed, code = document("capture", [broker, tmp_path / "missing"], "--plan", "--normal-priority", "--keep-going")
    assert 3 == code
    assert "unreadable" == printed["inputs"][1]["kind"]
    assert [1] == [one["input"] for one in printed["problems"]]
    assert printed["answer"]["headline"].startswith("INCOMPLETE, without")


@pytest.mark.parametrize("command", ["ls", "metadata"])
def test_other_commands_take_it(command, taken, broker):
    one, code = document(command, [broker])
    other, its_code = document(command, [taken])

    assert one == other
    assert code == its_code


def test_verify_says_what_was_found_and_that_the_rest_is_on_the_broker(incident, tmp_path):
    node = incident("silent-divergence-4.x") / "snapshots" / "99-final" / "broker-2"
    taken = take([node], tmp_path / "broker-2.kfc")
    there, code = document("verify", [node])
    here, its_code = document("verify", [taken])

    def damaged(found):
        return [(one["path"], one["state"]) for one in found["files"] if one["state"] == "damaged"]

    def spans(found):
        return [(d["position"], d["length"]) for one in found["files"] for d in one["damage"]]

    assert damaged(there) == damaged(here) != []
    assert spans(there) == spans(here)
    assert 1 == code == its_code
    assert ["index files"] == [
        words for one in here["problems"] for words in ("index files",) if words in one["message"]
    ]


def test_two_nodes_are_refused(tmp_path):
    with pytest.raises(UsageError, match="capture each by itself"):
        take([FIXTURES / "unclean-election"], tmp_path / "all.kfc")

    assert [] == list(tmp_path.iterdir())


def test_no_capture_is_taken_of_a_capture(taken, tmp_path):
    for given in (taken, taken.parent):
        with pytest.raises(UsageError, match="copy it as it is"):
            take([given], tmp_path.parent / f"{tmp_path.name}-again.kfc")


def test_passwords_in_settings_are_not_taken_along(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    text = b'broker.id=1\nssl.keystore.password=hunter2\nlistener.sasl.jaas.config=a \\\n  password="x";\nmin.insync.replicas=2\n'
    (logs / "server.properties").write_bytes(text)
    (logs / "server.log").write_text("[2026-01-01 00:00:00,000] INFO starting (kafka.server.KafkaServer)\n")
    taken = take([logs], tmp_path / "logs.kfc")
    with open_evidence(CapturePath(taken) / "logs" / "server.properties") as file:
        data = file.read_all(1000)

    assert b"hunter2" not in data
    assert b"x" not in data.replace(b"", b"").split(b"jaas")[1].split(b"min")[0]
    assert len(text) == len(data)
    assert b"min.insync.replicas=2" in data


def test_a_file_that_can_not_be_read_is_named(tmp_path, broker):
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    source = tmp_path / "broker-1"
    copied(broker, source)
    (source / "orders-0" / "00000000000000000000.log").chmod(0)
    out = tmp_path / "out.kfc"

    assert 3 == run(["capture", str(source), "--out", str(out), "--normal-priority", "--quiet"])
    assert 3 == run(["diff", str(out), "--quiet"])


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(UsageError, match="No space left"):
        take([BROKER], tmp_path / "out.kfc")

    assert [] == list(tmp_path.iterdir())


def _write_log_dir(folder, node_id, data, end):
    """A log directory of one partition whose high watermark and recovery point are the end of its log."""
    partition = folder / "orders-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020}.log").write_bytes(data)
    (partition / "leader-epoch-checkpoint").write_text(f"0\n1\n3 {end - 10_000}\n")
    (folder / "meta.properties").write_text(f"version=1\nnode.id={node_id}\ncluster.id=6It1kTHbTjKY3LNflMZizQ\n")
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (folder / name).write_text(f"0\n1\norders 0 {end}\n")


@cache
def _long_log(marked=None):
    """Twenty batches of 10,000 records; the records of the batch that is marked have another value."""
    return b"".join(
        encode_record_batch(
            build_record_batch(
                number * 10_000,
                [(1_700_000_000_000, None, b"b" if number == marked else b"a")] * 10_000,
                partition_leader_epoch=3,
            )
        )
        for number in range(20)
    )


@pytest.mark.slow
def test_rows_far_below_the_end_are_left_out_and_what_they_would_tell_is_unknown(tmp_path):
    """Batches differ far below the point from which a truncation can still happen: digests show it, and nothing more is claimed."""
    nodes = [tmp_path / "broker-1", tmp_path / "broker-2"]
    for number, node in enumerate(nodes):
        _write_log_dir(node, number + 1, _long_log(marked=2 if number else None), 200_000)
        (node / ".kafka_cleanshutdown").touch()  # without it the batches that a start reads go along
    there, code = document("diff", nodes)
    taken = [take([node], tmp_path / f"{node.name}.kfc") for node in nodes]
    here, its_code = document("diff", taken)
    whole = [take([node], tmp_path / f"all-{node.name}.kfc", all_batches=True) for node in nodes]

    assert 1 == code == its_code
    assert any("2 things" in words and "could not be read" in words for words in here["answer"]["unknown"])
    assert not any("could not be read" in words for words in there["answer"]["unknown"])
    assert [1, 2] == sorted(int(one["message"].rpartition(" ")[2]) for one in here["problems"])
    assert all("does not hold its batches below offset 65536" in one["message"] for one in here["problems"])
    assert "silent-divergence" == there["partitions"][0]["verdict"] == here["partitions"][0]["verdict"]
    assert (there, code) == document("diff", whole)


@pytest.mark.slow
def test_equal_digests_prove_what_rows_are_left_out_of(tmp_path):
    nodes = [tmp_path / "broker-1", tmp_path / "broker-2"]
    data = _long_log()
    for number, node in enumerate(nodes):
        _write_log_dir(node, number + 1, data, 200_000)
        (node / ".kafka_cleanshutdown").touch()
    taken = [take([node], tmp_path / f"{node.name}.kfc") for node in nodes]

    assert document("diff", nodes) == document("diff", taken)
    with zipfile.ZipFile(taken[0]) as archive:
        assert 14 == json.loads(archive.read("manifest.json"))["counts"]["batches"]
    (nodes[0] / ".kafka_cleanshutdown").unlink()
    with zipfile.ZipFile(take([nodes[0]], tmp_path / "killed.kfc")) as archive:
        assert 20 == json.loads(archive.read("manifest.json"))["counts"]["batches"]


def test_of_a_cited_segment_that_stayed_on_the_broker_the_capture_is_hashed(taken, broker):
    inputs = find_inputs([taken])
    paths = [f"orders-0/{0:020}.log", "orders-0/leader-epoch-checkpoint"]
    log, epochs, capture = cited_files((Citation(input=0, path=path) for path in paths), inputs)

    assert log.sha256 is Absent.UNREADABLE
    assert epochs.sha256 == hashlib.sha256((broker / paths[1]).read_bytes()).hexdigest()
    assert (str(taken), hashlib.sha256(taken.read_bytes()).hexdigest()) == (capture.path, capture.sha256)


# ---------------------------------------------------------------- with the records that are at stake


def _log_of(capture, node):
    return CapturePath(capture) / node / "orders-0" / f"{0:020}.log"


def test_trace_finds_in_a_capture_what_its_tails_hold_and_knows_nothing_of_the_rest(tmp_path, monkeypatch, broker):
    words = ("-t", "orders", "--value", "o")
    there, code = document("trace", [broker], *words)
    assert (there, code) == document("trace", [take([broker], tmp_path / "all.kfc", with_tail=True)], *words)
    assert (3, "unknown") == _traced(take([broker], tmp_path / "none.kfc"), *words)[:2]

    monkeypatch.setattr("kforensics.commands.capturing.plan.stake", lambda *_: 20)
    tails = take([broker], tmp_path / "tails.kfc", with_tail=True)
    code, _, found = _traced(tails, *words)
    places = {(one["partition"], one["offset"]) for one in there["records"]}

    assert (3, "unknown", set()) == _traced(tails, "-t", "orders", "--offset", "5")
    assert 0 == code
    assert {one for one in places if one[1] >= 20} <= found < places


def _traced(path, *words):
    printed, code = document("trace", [path], *words)
    return code, printed["answer"]["state"], {(one["partition"], one["offset"]) for one in printed["records"]}


@pytest.mark.slow
def test_the_bytes_of_batches_at_stake_are_those_of_the_file(tmp_path):
    node = tmp_path / "broker-1"
    data = _long_log()
    _write_log_dir(node, 1, data, 200_000)
    taken = take([node], tmp_path / "broker-1.kfc", with_tail=True)
    with open_evidence(_log_of(taken, "broker-1")) as file:
        (span,) = readable_ranges(file)
        walked = [
            batch for window in walk_segment(file, level=Level.CRC, start=span.position) for batch in window.batches
        ]
        with pytest.raises(MissingBytes, match="the capture does not hold its bytes"):
            file.read(span.position - 1, 2)

    assert span.end == len(data)
    # 190,000 is where the last epoch but one begins; one run of offsets earlier is 124,464, whose run begins at 65,536.
    assert (60_000, 3) == (int(walked[0]["base_offset"]), int(walked[0]["partition_leader_epoch"]))
    assert 14 == len(walked)
    assert data[span.position :] == b"".join(piece for _, piece in tail_bytes(_log_of(taken, "broker-1")))
    with zipfile.ZipFile(taken) as archive:
        assert any(name.startswith("private-records/") for name in archive.namelist())


def test_damage_and_segments_about_to_be_removed_travel_with_it(tmp_path):
    node = tmp_path / "broker-1"
    data = bytearray(_long_log())
    data[-10:] = b"\xff" * 10
    _write_log_dir(node, 1, bytes(data) + bytes(9 << 20), 200_000)
    removed = node / "orders-0" / f"{500_000:020}.log.deleted"
    removed.write_bytes(b"what is left\0")
    directory = node / "gone-0.0123456789abcdef0123456789abcdef-delete"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(_long_log())
    taken = take([node], tmp_path / "broker-1.kfc", with_tail=True)

    assert taken.stat().st_size < 1 << 20  # zeros take no room
    for path in (removed, directory / f"{0:020}.log"):
        captured = CapturePath(taken) / path.relative_to(tmp_path)
        assert path.read_bytes() == b"".join(piece for _, piece in tail_bytes(captured))
    with open_evidence(_log_of(taken, "broker-1")) as file:
        (span,) = readable_ranges(file)
        assert (bytes(data) + bytes(9 << 20))[span.position :] == file.read(span.position, span.length)


def test_without_it_no_bytes_can_be_read(taken):
    with open_evidence(_log_of(taken, "broker-1")) as file:
        assert () == readable_ranges(file)
        with pytest.raises(MissingBytes) as caught:
            file.read(0, 1)
    sent = pickle.loads(pickle.dumps(caught.value))  # by a process to the one that started it
    assert (str(caught.value), caught.value.where) == (str(sent), sent.where)
    assert [] == list(tail_bytes(_log_of(taken, "broker-1")))


@pytest.mark.parametrize("command", ["diff", "explain", "ls", "metadata", "verify"])
@pytest.mark.some(2)
def test_every_command_says_that_records_are_in_it(command, tmp_path, capsys, broker):
    plain = take([broker], tmp_path / "plain.kfc")
    taken = take([broker], tmp_path / "private.kfc", with_tail=True)
    run([command, str(plain), "--format", "json"])
    there = capsys.readouterr()
    run([command, str(taken), "--format", "json"])
    here = capsys.readouterr()

    assert "records of users" not in there.err
    assert f"{taken}: it holds records of users" in here.err
    assert there.out.replace("plain.kfc", "private.kfc") == here.out


# ---------------------------------------------------------------- forged captures


def rewritten(taken, tmp_path, change, change_manifest=lambda _: None):
    """The capture with some of its parts changed, its manifest made to fit unless it is what is changed."""
    with zipfile.ZipFile(taken) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(contents.pop("manifest.json"))
    contents.pop(MARKER)
    change(contents)
    out = tmp_path / "forged.kfc"
    parts = []
    with out.open("wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(MARKER), b"1\n", compress_type=zipfile.ZIP_STORED)

        def add(name, data):
            info = zipfile.ZipInfo(name)
            archive.writestr(info, data, compress_type=zipfile.ZIP_DEFLATED)
            part = {"name": name, "position": file.tell() - info.compress_size, "stored": info.compress_size}
            parts.append({**part, "length": len(data), "sha256": hashlib.sha256(data).hexdigest()})

        for name, data in contents.items():
            add(name, data)
        whole = {**manifest, "parts": list(parts)}
        change_manifest(whole)
        add("manifest.json", json.dumps(whole).encode())
        end = parts[-1]
        archive.comment = comment_of(end["position"], end["stored"], end["length"], end["sha256"])
    return out


def tree_change(edit):
    def change(contents):
        names = [name for name in contents if name.startswith("tree/")]
        blocks = {name: json.loads(contents[name]) for name in names}
        edit({path: entries for block in blocks.values() for path, entries in block.items()})
        contents.update({name: json.dumps(block).encode() for name, block in blocks.items()})

    return change


def segment_of(tree):
    return next(one for one in tree["broker-1/orders-0"] if one["name"].endswith(".log"))


def _edit(edit):
    return tree_change(lambda tree: edit(segment_of(tree)))


def _rename(name):
    return tree_change(lambda tree: tree["broker-1/orders-0"][0].update(name=name))


FORGED = {
    "a name that leads upwards": _rename(".."),
    "a name with a slash": _rename("../../etc/passwd"),
    "an absolute name": _rename("/etc/passwd"),
    "a length below zero": _edit(lambda one: one.update(length=-1)),
    "a length that is none": _edit(lambda one: one.update(length="many")),
    "a mode beyond all modes": _edit(lambda one: one.update(mode=2**62)),
    "a tree without a beginning": lambda contents: contents.update({"tree.json": b"{}"}),
    "a time beyond all times": _edit(lambda one: one.update(mtime_ns=2**70)),
    "rows that are not there": _edit(lambda one: one["content"]["segment"].update(batches=[[0, 0, 2**40]])),
    "a group that is not there": _edit(lambda one: one["content"]["segment"].update(batches=[[77, 0, 1]])),
    "rows named again and again": _edit(lambda one: one["content"]["segment"].update(batches=[[0, 0, 5]] * 100_000)),
    "counts below zero": _edit(lambda one: one["content"]["segment"].update(batch_count=-5)),
    "epochs that are none": _edit(lambda one: one["content"]["segment"].update(epochs=[[1]])),
    "digests beyond 64 bits": _edit(lambda one: one["content"]["segment"].update(digests=[[0, 2**80, 0, 1, 0]])),
    "no row": _edit(lambda one: one["content"].update(segment=None)),
    "damage of no kind": _edit(lambda one: one["content"]["segment"].update(damage=[{"kind": "none"}])),
    "a file behind its part": tree_change(
        lambda tree: [one.update(content={"tar": 2**50}) for one in tree["broker-1"] if "tar" in one.get("content", {})]
    ),
    "a file in parts that are not there": tree_change(
        lambda tree: [one.update(content={"large": [0, 2**60]}) for one in tree["broker-1"] if one.get("content")]
    ),
    "a tree that is a list": lambda contents: contents.update({"tree/000000.json": b"[]"}),
    "a tree that is deep": lambda contents: contents.update({"tree/000000.json": b"[" * 1_000_000}),
    "a tree that is missing": lambda contents: contents.pop("tree/000000.json"),
    "a column that lies": lambda contents: contents.update(
        {"batches/000000/crc.npy": contents["batches/000000/crc.npy"].replace(b"'shape': (", b"'shape': (9999")}
    ),
    "a column of objects": lambda contents: contents.update(
        {"batches/000000/crc.npy": contents["batches/000000/crc.npy"].replace(b"'<u4'", b"'|O'")}
    ),
}


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.some(8)
def test_a_forged_capture_is_refused_or_read_in_bounds(name, taken, tmp_path):
    forged = rewritten(taken, tmp_path, FORGED[name])

    for command in ("diff", "verify", "explain"):
        found, code = document(command, [forged])
        assert 3 == code, (command, found)
    assert document("ls", [forged])[1] in {0, 3}  # which needs no rows of segments


@pytest.mark.parametrize("lengths", [None, b"[]", b'{"broker-1/orders-0": -1}'])
def test_directories_are_found_by_their_entries_where_their_lengths_are_not_said(lengths, taken, tmp_path):
    def change(contents):
        said = contents.pop("lengths.json")
        assert {"broker-1/orders-0"} <= json.loads(said).keys()
        contents.update({} if lengths is None else {"lengths.json": lengths})

    def places(path):
        found = find_places(find_inputs([path])).by_partition
        return {partition: [(one.path, one.length) for one in group] for partition, group in found.items()}

    assert places(taken) == places(rewritten(taken, tmp_path, change))


def _leaves(value, path=()):
    """Every number, word and list in a document, as the container and the key that hold it."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(pairs):
        yield value, key
        yield from _leaves(item, (*path, key))


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.some(8)
def test_any_value_of_a_tree_may_be_wrong(seed, taken, tmp_path):
    """A command ends with a result or with words, never with a defect."""
    random = Random(seed)

    def spoil(tree):
        for holder, key in random.sample(list(_leaves(tree)), 3):
            holder[key] = random.choice([None, -1, 2**63, 2**64, 1.5, "", "..", [], [[]], {}, {"tar": -1}, True])

    forged = rewritten(taken, tmp_path, tree_change(spoil))

    for command in ("diff", "verify"):
        found, code = document(command, [forged])
        assert code in {0, 1, 3}, found


@pytest.mark.parametrize(
    "held",
    [
        [[0, 10, None, 0], [5, 10, None, 0]],
        [[0, 2**62, None, 0]],
        [[0, 10, 7, 0]],
        [[0, 10, 0, 2**62]],
        [[0, 0, None, 0]] * 100_000,
        [[-1, 10, 0, 0]],
        [["a", 10, 0, 0]],
        [[1, 2]],
        7,
    ],
)
@pytest.mark.some(3)
def test_bytes_that_can_not_be_are_refused(held, tmp_path, broker):
    taken = take([broker], tmp_path / "private.kfc", with_tail=True)
    forged = rewritten(taken, tmp_path, _edit(lambda one: one["content"]["segment"].update(bytes=held)))

    with pytest.raises(EvidenceUnreadable, match="the capture can't be used"):
        list(tail_bytes(_log_of(forged, "broker-1")))


def test_a_link_in_a_capture_is_not_followed(taken, tmp_path):
    def link(one):
        one.update(mode=stat.S_IFLNK | 0o777)

    found, code = document("ls", [rewritten(taken, tmp_path, _edit(link))])

    assert 3 == code
    assert any("symbolic link" in one["message"] for one in found["problems"])


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_capture_is_refused(share, taken, tmp_path):
    data = taken.read_bytes()
    cut = tmp_path / "cut.kfc"
    cut.write_bytes(data[: int(len(data) * share)])

    with pytest.raises(EvidenceUnreadable, match="the capture can't be used"):
        find_inputs([cut])


def test_a_flipped_bit_is_found(taken, tmp_path):
    """Every part is under the manifest's sha256, and the manifest under the one in the comment."""
    data = bytearray(taken.read_bytes())
    for part in open_capture(taken).parts():
        data[part.position + part.stored // 2] ^= 1
    flipped = tmp_path / "flipped.kfc"
    flipped.write_bytes(data)

    with pytest.raises(EvidenceError, match="the capture can't be used"):
        find_inputs([flipped])


def test_a_part_that_inflates_to_more_than_it_says_is_refused_in_bounds(taken, tmp_path):
    def bomb(contents):
        contents["tree/000000.json"] = b" " * (PART_LIMIT + 1)

    forged = rewritten(taken, tmp_path, bomb)

    assert 3 == document("ls", [forged])[1]

    def lie(contents):
        contents["tree/000000.json"] = b" " * (20 << 20)

    def shorten(manifest):
        next(one for one in manifest["parts"] if one["name"] == "tree/000000.json").update(length=100)

    assert 3 == document("ls", [rewritten(taken, tmp_path, lie, shorten)])[1]


def test_a_capture_of_a_later_format_says_so(taken, tmp_path):
    newer = tmp_path / "newer.kfc"
    newer.write_bytes(taken.read_bytes().replace(b"kforensics-capture 1 ", b"kforensics-capture 2 "))

    with pytest.raises(EvidenceUnreadable, match="format 2"):
        find_inputs([newer])
