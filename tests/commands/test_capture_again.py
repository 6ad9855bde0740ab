"""Captures that go on from an earlier one: only what changed is read, and the new file is complete by itself."""

import fcntl
import io
import json
import os
import shutil
import signal
import tarfile
import time
import zipfile

import pytest

from kforensics.ask.model import Ask
from kforensics.cli.app import run
from kforensics.commands.capture import run as capture
from kforensics.commands.capturing import blocks, container, taking
from kforensics.commands.capturing import earlier_captures as reuse
from kforensics.commands.capturing.earlier_captures import resume_path
from kforensics.errors import EvidenceUnreadable, Stopped, UsageError
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.replica.collect import CAPTURED_EARLIER
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.source import walk
from kforensics.source.beside_broker import is_locked
from kforensics.source.capture import CapturePath
from tests.builders.captured_tails import tail_bytes
from tests.builders.directories import copied
from tests.captures import document, take


@pytest.fixture(autouse=True)
def _settled(monkeypatch):
    """Files count as settled at once: no test waits for a clock."""
    monkeypatch.setattr(reuse, "SETTLED_NS", -(10**12))


@pytest.fixture
def node(tmp_path, small_cluster):
    copied(small_cluster / "broker-1", tmp_path / "broker-1")
    return tmp_path / "broker-1"


def _figures(paths, out, **options):
    stops = {name: options.pop(name) for name in ("is_asked_to_stop",) if name in options}
    return capture(Ask(paths=tuple(paths), out=out, **options), **stops).body.capture


def _content(path):
    """All parts but those with the time at which the capture was begun."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name not in {"manifest.json", "begun.json"}]
        return {name: json.loads(archive.read(name)) if ".json" in name else archive.read(name) for name in names}


def _small_files(path):
    held: dict[str, bytes] = {}
    with zipfile.ZipFile(path) as archive:
        for name in (one for one in archive.namelist() if one.startswith("files/")):
            with tarfile.open(fileobj=io.BytesIO(archive.read(name))) as tar:
                held |= {one.name: file.read() for one in tar if (file := tar.extractfile(one)) is not None}
    return held


@pytest.mark.parametrize("options", [{}, {"with_tail": True}, {"all_batches": True}])
@pytest.mark.some(2)
def test_segments_that_did_not_change_are_not_read_again(options, node, tmp_path):
    first = take([node], tmp_path / "first.kfc", **options)
    second = _figures([node], tmp_path / "second.kfc", earlier_captures=[first], **options)
    with zipfile.ZipFile(tmp_path / "second.kfc") as archive:
        (base,) = json.loads(archive.read("manifest.json"))["since"]

    assert second.segments == second.reused_segments > 0
    assert _content(first) == _content(tmp_path / "second.kfc")
    assert ("first.kfc", 64) == (base["name"], len(base["sha256"]))
    first.unlink()  # it is complete without the earlier one
    assert document("diff", [node]) == document("diff", [tmp_path / "second.kfc"])


@pytest.mark.parametrize("options", [{}, {"with_tail": True}])
@pytest.mark.some(1)
def test_after_a_kill_the_same_command_goes_on_from_what_was_written(options, node, tmp_path, monkeypatch):
    monkeypatch.setattr(taking, "LIGHT_BYTES", -1)  # each directory is written when it was read
    monkeypatch.setattr(blocks, "BLOCK_FOLDERS", 1)
    monkeypatch.setattr(blocks, "GROUP_ROWS", 1)
    monkeypatch.setattr(container, "CHUNK_LENGTH", 8192)
    out, asked = tmp_path / "one.kfc", iter(range(99))

    def die_at_the_fourth():
        if next(asked) > 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    process = os.fork()
    if not process:
        try:
            _figures([node], out, is_asked_to_stop=die_at_the_fourth, **options)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    (part,) = tmp_path.glob(".one.kfc.*.part")
    part.write_bytes(part.read_bytes()[:-1])  # its last member was being written

    again = _figures([node], out, **options)
    whole = take([node], tmp_path / "whole.kfc", **options)

    assert 0 < again.reused_segments < again.segments
    assert list(tmp_path.glob(".*")) == []
    assert 0 == run(["seal", "--check", str(out)])
    assert document("diff", [whole]) == document("diff", [out])
    assert document("verify", [whole]) == document("verify", [out])


def test_what_a_running_capture_writes_is_left_alone_whatever_its_process_is_called(node, tmp_path):
    with container.CaptureWriter(tmp_path / "one.kfc") as writer:
        writer.add_part("begun.json", b"{}")
        written = writer.partial.read_bytes()
        take([node], tmp_path / "one.kfc")

        assert written == writer.partial.read_bytes()


def _member(name, data):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("kforensics-capture", b"1\n", compress_type=zipfile.ZIP_STORED)
        for each in ("begun.json", name):
            archive.writestr(each, data)
    return memory.getvalue()


@pytest.mark.parametrize(
    ("content", "is_ours"),
    [
        (b"PK", False),
        (b"not a capture at all", False),
        (_member("tree/000000.json", b"[1]"), True),
        (_member("tree/000000.json", b"{"), True),
        (_member("tree/000000.json", b'{"a": [{"name": "b", "content": {"segment": {"batches": 3}}}]}'), True),
        (_member("tree/000000.json", b"\xff" * 99), True),
    ],
)
def test_what_a_part_claims_harms_nothing(content, is_ours, node, tmp_path):
    part = tmp_path / ".one.kfc.12ab.part"
    part.write_bytes(content)
    (tmp_path / ".one.kfc.34cd.part").symlink_to(node / "meta.properties")
    (tmp_path / ".one.kfc.56ef.part").mkdir()

    assert 0 == _figures([node], tmp_path / "one.kfc").reused_segments
    assert is_ours != part.exists()
    assert (tmp_path / ".one.kfc.34cd.part").is_symlink()


def test_a_segment_that_changed_is_read(node, tmp_path):
    first = take([node], tmp_path / "first.kfc")
    log = node / "orders-0" / f"{0:020}.log"
    status = log.stat()
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    os.utime(log, ns=(status.st_atime_ns, status.st_mtime_ns))  # length and time of change are as before
    second = _figures([node], tmp_path / "second.kfc", earlier_captures=[first])

    assert second.segments - 1 == second.reused_segments
    assert document("diff", [node]) == document("diff", [tmp_path / "second.kfc"]) != document("diff", [first])


def test_what_was_changed_when_the_earlier_capture_began_is_read(node, tmp_path, monkeypatch):
    first = take([node], tmp_path / "first.kfc")
    monkeypatch.setattr(reuse, "SETTLED_NS", 10**15)

    assert 0 == _figures([node], tmp_path / "second.kfc", earlier_captures=[first]).reused_segments


def test_bytes_and_rows_that_the_earlier_capture_lacks_are_read(node, tmp_path):
    first = take([node], tmp_path / "first.kfc")
    second = _figures([node], tmp_path / "second.kfc", earlier_captures=[first], with_tail=True)
    log = node / "orders-0" / f"{0:020}.log"

    assert 0 == second.reused_segments
    assert log.read_bytes() == b"".join(
        data for _, data in tail_bytes(CapturePath(tmp_path / "second.kfc" / log.relative_to(tmp_path)))
    )


def test_a_capture_of_another_node_is_refused(node, tmp_path, small_cluster):
    other = take([small_cluster / "broker-2"], tmp_path / "other.kfc")

    with pytest.raises(UsageError, match="is a capture of node 2"):
        take([node], tmp_path / "out.kfc", earlier_captures=[other])
    assert not (tmp_path / "out.kfc").exists()


@pytest.mark.parametrize("after", [0, 1, 3, 5])
@pytest.mark.some(2)
def test_a_capture_that_was_stopped_goes_on_from_there(after, node, tmp_path):
    out, asked = tmp_path / "broker-1.kfc", iter(range(100))
    whole = take([node], tmp_path / "whole.kfc", with_tail=True)
    stopped = Ask(paths=(node,), out=out, with_tail=True)
    with pytest.raises(Stopped, match="the same command continues from there"):
        capture(stopped, is_asked_to_stop=lambda: next(asked) >= after)

    left = resume_path(out)
    assert not out.exists()
    assert [] == [path for path in tmp_path.iterdir() if path.suffix == ".part"]
    if after:
        with pytest.raises(EvidenceUnreadable, match="interrupted"):
            find_inputs([left])
        find_inputs([tmp_path])  # in a directory it is not taken for a capture
    again = _figures([node], out, with_tail=True)
    assert after == again.reused_segments
    assert not left.exists()
    assert _content(whole) == _content(out)


def test_a_second_stop_keeps_what_the_first_one_left(node, tmp_path):
    out = tmp_path / "broker-1.kfc"
    for after in (4, 1):
        answers = iter([False] * after + [True])
        with pytest.raises(Stopped):
            capture(Ask(paths=(node,), out=out), is_asked_to_stop=answers.__next__)

    assert 4 == _figures([node], out).reused_segments


def test_the_command_says_how_to_go_on(node, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("kforensics.cli.own.Stops.asked", lambda _: True)
    code = run(["capture", str(node), "--out", str(tmp_path / "out.kfc"), "--normal-priority"])

    assert 130 == code
    assert "the same command continues from there" in capsys.readouterr().err


def _grow(node, start):
    partition = node / "orders-0"
    log = partition / f"{0:020}.log"
    batch = build_record_batch(start, [(1_800_000_000_000, None, b"later")], partition_leader_epoch=1)
    with log.open("ab") as file:
        file.write(encode_record_batch(batch))
    later = time.time_ns() + 10**10
    os.utime(log, ns=(later, later))


@pytest.mark.parametrize("was_running", [True, False, None])
@pytest.mark.some(2)
def test_captures_of_running_brokers_are_not_of_one_moment(was_running, tmp_path, monkeypatch, small_cluster):
    monkeypatch.setattr("kforensics.commands.capturing.plan.is_locked", lambda _: was_running)
    nodes = [tmp_path / "broker-1", tmp_path / "broker-2"]
    for node in nodes:
        copied(small_cluster / node.name, node)
    first = take([nodes[0]], tmp_path / "broker-1.kfc")
    _grow(nodes[1], 500)
    found, _ = document("diff", [first, take([nodes[1]], tmp_path / "broker-2.kfc")])
    named = [one for one in found["problems"] if one["message"] == CAPTURED_EARLIER]

    assert ([(f"orders-0/{0:020}.log", 0)] if was_running else []) == [(one["path"], one["input"]) for one in named]


def test_the_lock_of_a_running_broker_is_seen_and_not_taken(tmp_path):
    lock = tmp_path / ".lock"
    lock.touch()
    if is_locked([lock]) is None:
        pytest.skip("this system does not say which files are locked")
    assert is_locked([lock, tmp_path / "missing"]) is False
    with lock.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert is_locked([tmp_path / "missing", lock]) is True
    assert is_locked([lock]) is False


def test_where_the_system_does_not_say_it_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setattr("kforensics.source.beside_broker.LOCKS", tmp_path / "missing")

    assert is_locked([tmp_path]) is None


@pytest.mark.parametrize(("light_bytes", "names_at_once"), [(-1, 1_024), (1 << 30, 1)])
@pytest.mark.some(1)
def test_a_capture_is_the_same_however_its_directories_are_spread(
    light_bytes, names_at_once, tmp_path, monkeypatch, small_cluster
):
    broker = small_cluster / "broker-1"
    usual = take([broker], tmp_path / "usual.kfc", jobs=1)
    monkeypatch.setattr(taking, "LIGHT_BYTES", light_bytes)
    monkeypatch.setattr(walk, "NAMES_AT_ONCE", names_at_once)
    spread = take([broker], tmp_path / "spread.kfc", jobs=2)

    for command in ("diff", "verify", "ls"):
        assert document(command, [usual]) == document(command, [spread])
    assert _small_files(usual) == _small_files(spread)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_directory_that_vanished_since_it_was_planned_is_named_and_not_called_empty(
    jobs, tmp_path, monkeypatch, small_cluster
):
    broker = copied(small_cluster / "broker-1", tmp_path / "broker-1")
    begin = taking.Taking.begin

    def after_the_plan(self, started):
        shutil.rmtree(broker / "orders-0")
        begin(self, started)

    monkeypatch.setattr(taking.Taking, "begin", after_the_plan)
    found = capture(Ask(paths=(broker,), out=tmp_path / "broker-1.kfc", jobs=jobs))

    assert [("orders-0", "the directory can't be listed: No such file or directory")] == [
        (one.path, one.message) for one in found.problems
    ]
