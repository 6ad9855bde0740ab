"""Values that are odd in evidence whose bytes are valid; the long form is `python -m tests.trust.values`, its figures are in docs/validation.md."""

import json
import os
from random import Random

import pytest

from kforensics.cli.app import run
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from tests.builders.directories import log_dir
from tests.builders.repeating import times
from tests.schemas import validate_document
from tests.trust.value_changes import EDGES, batches_of, change_batch, edge
from tests.trust.values import bounded, one_run

RECORDINGS = ("made", "unclean-election", "incidents/min-isr-4.1.tar.xz", "incidents/hw-loss-0.10.tar.xz")
INVOCATIONS = 6
MICROSECONDS = 1_700_000_000_000_000
COMMANDS = (
    "ls",
    "dump --records",
    "verify",
    "diff",
    "explain",
    "predict --kafka 3.9.0",
    "trace -t orders --key k",
    "trace -t orders -p 0 --offset 3",
)


@pytest.mark.parametrize("seed", range(1, 1 + times(6, 40)))
@pytest.mark.some(3)
def test_no_command_breaks_on_values_at_the_edges(tmp_path, seed):
    with bounded():
        done = one_run(seed, RECORDINGS, tmp_path, count=INVOCATIONS)

    assert not done.defects, done
    assert len(done.commands) >= INVOCATIONS


def test_a_changed_batch_is_as_valid_as_before(tmp_path):
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    path.parent.mkdir()
    for seed in range(20):
        sound = b"".join(encode_record_batch(build_record_batch(at, [(1, b"k", b"v")] * 3)) for at in (0, 3, 6))
        path.write_bytes(sound)
        change_batch(Random(seed), path)
        changed = path.read_bytes()
        assert changed != sound
        assert len(list(batches_of(changed))) == 3


def test_a_value_fits_its_field():
    random = Random(1)
    assert all(-128 <= edge(random, old, bits=8) <= 127 for old in range(-128, 128))
    assert {edge(random, 7, bits=64) for _ in range(5000)} >= set(EDGES)


def _evidence(root, *batches, base=0):
    for node in (1, 2):
        folder = log_dir(root / f"broker-{node}", node) / "orders-0"
        (folder / f"{base:020d}.log").write_bytes(b"".join(map(encode_record_batch, batches)))
    return root


def _answered(root, capsys, command, untouched):
    with untouched(root):
        code = run([*command.split(), str(root)])
    captured = capsys.readouterr()
    assert code in {0, 1, 3}, captured.err
    return captured.out


@pytest.mark.parametrize("command", COMMANDS)
def test_times_in_microseconds_are_told_as_numbers(tmp_path, capsys, untouched, command):
    root = _evidence(tmp_path / "in", build_record_batch(0, [(MICROSECONDS + at, b"k", b"v") for at in range(5)]))

    shown = _answered(root, capsys, command, untouched)

    assert "55840" not in shown
    if command.startswith(("dump", "trace -t orders --key")):
        assert f"{MICROSECONDS} ms" in " ".join(shown.split())


@pytest.mark.parametrize("base", [-1, -5, -(2**63)])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.some(8)
def test_a_batch_at_a_negative_offset_is_damage(tmp_path, capsys, untouched, command, base):
    first = build_record_batch(2**63 - 3, [(1_700_000_000_000, b"k", b"v")], partition_leader_epoch=5)
    second = build_record_batch(base, [(1_700_000_000_000, b"k", b"v")], partition_leader_epoch=6)
    root = _evidence(tmp_path / "in", first, second, base=2**63 - 3)

    shown = _answered(root, capsys, command, untouched)

    assert "All replicas agree" not in shown
    assert "Nothing that was committed is missing" not in shown
    if "--key" in command:
        assert f"offset {base:,}: unknown, committed: unknown" in " ".join(shown.split())


def test_a_log_that_ends_behind_the_last_offset_goes_into_a_capture(tmp_path, capsys):
    root = _evidence(tmp_path / "in", build_record_batch(2**63 - 3, [(1, b"k", b"v")] * 3), base=2**63 - 3)

    code = run(
        ["capture", str(root / "broker-1"), "--out", str(tmp_path / "1.kfc"), "--normal-priority", "--format", "json"]
    )

    out = capsys.readouterr().out
    assert code in {0, 3}
    validate_document(out)
    assert json.loads(out)["capture"]["segments"] == 1


@pytest.mark.parametrize("time_ns", [-(10**9), 2**63 + 10**9])
@pytest.mark.some(1)
def test_files_of_any_time_are_read_and_captured(tmp_path, capsys, untouched, time_ns):
    root = _evidence(tmp_path / "in", build_record_batch(0, [(1, b"k", b"v")]))
    for path in root.rglob("*"):
        os.utime(path, ns=(time_ns, time_ns))
    if next(root.rglob("*.log")).stat().st_mtime_ns != time_ns:
        pytest.skip("this file system keeps no such time")

    for command in ("ls --files", "verify", "diff", "explain", "seal", "groups", "transactions"):
        _answered(root, capsys, command, untouched)
    capture = tmp_path / "broker-1.kfc"
    _answered(root / "broker-1", capsys, f"capture --out {capture}", untouched)
    for command in ("ls --files", "diff", "explain"):
        _answered(capture, capsys, command, untouched)


def test_windows_of_any_time_are_taken(tmp_path, capsys):
    root = _evidence(tmp_path / "in", build_record_batch(0, [(1_700_000_000_000, b"k", b"v")]))
    for since, told in (
        ("0001-01-01T00:00:00+14:00", "since -62135647200000 ms"),
        (str(MICROSECONDS), f"since {MICROSECONDS} ms"),
    ):
        assert run(["explain", str(root), f"--since={since}", "--format", "json"]) in {0, 1, 3}
        document = json.loads(capsys.readouterr().out)
        assert document["answer"]["state"] == "unknown"
        assert told in json.dumps(document) or "since" not in document["answer"]["headline"]
