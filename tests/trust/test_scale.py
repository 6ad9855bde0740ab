"""Very many small things: minutes, so run by `pytest tests/trust/test_scale.py -m slow -s`; a short form of each is in the suite."""

import json
import sys

import numpy as np
import pytest

from tests.fuzz.commands import invoke
from tests.steps import steps
from tests.trust.hostile import batch_with_body, record, write_partition
from tests.trust.measured import measured

TINY = batch_with_body(0, record(b""))
SEGMENT_MEBIBYTES = 300
LINEAR = 1.3


def write_tiny_batches(path, mebibytes):
    """A segment of the smallest batches that hold a record; only their base offsets differ, which the checksum does not cover."""
    total = mebibytes * (1 << 20) // len(TINY)
    with path.open("wb") as file:
        for first in range(0, total, 1 << 17):
            count = min(1 << 17, total - first)
            block = np.frombuffer(TINY * count, np.uint8).reshape(count, len(TINY)).copy()
            block[:, :8] = np.arange(first, first + count, dtype=">i8").view(np.uint8).reshape(count, 8)
            file.write(block.tobytes())
    return total


def write_log_dir(tmp_path, mebibytes):
    log_dir = tmp_path / f"{mebibytes}"
    if not log_dir.exists():
        folder = write_partition(log_dir, "orders-0")
        (folder / "count").write_text(str(write_tiny_batches(folder / f"{0:020d}.log", mebibytes)))
    return log_dir


def walk(tmp_path, mebibytes, command, *options):
    log_dir = write_log_dir(tmp_path, mebibytes)
    run = measured(command, log_dir, "--format", "json", "--jobs", "1", *options, output=tmp_path / "out")
    assert run.code in {0, 1, 3}, run.err  # a single replica leaves it open whether others differ
    if command == "verify":
        document = json.loads((tmp_path / "out").read_text())
        segment = next(one for one in document["files"] if one["kind"] == "segment")
        assert segment["batches"] == segment["records"] == int((log_dir / "orders-0" / "count").read_text())
        assert segment["damage"] == []
    return run


def command_steps(*arguments):
    return steps(lambda: invoke([str(one) for one in arguments]))


@pytest.mark.slow
def test_tiny_batches_are_linear(tmp_path):
    few, many = write_log_dir(tmp_path, 2), write_log_dir(tmp_path, 6)
    small, large = (command_steps("verify", "--jobs", "1", tree) for tree in (few, many))

    assert large < small * 3 * LINEAR


@pytest.mark.slow
def test_tiny_batches_take_little_memory(tmp_path):
    assert walk(tmp_path, 30, "verify").peak_mebibytes < SEGMENT_MEBIBYTES


@pytest.mark.slow
@pytest.mark.parametrize("command", ["verify", "diff"])
def test_a_gibibyte_of_tiny_batches(tmp_path, command):
    few, many = write_log_dir(tmp_path, 10), write_log_dir(tmp_path, 100)
    small, large = (command_steps(command, "--jobs", "1", tree) for tree in (few, many))
    whole = walk(tmp_path, 1024, command)

    sys.stderr.write(
        f"{command}: {small:,} steps for 10 MiB, {large:,} for 100 MiB, "
        f"1 GiB {whole.seconds:.1f} s {whole.peak_mebibytes:.0f} MiB\n"
    )
    assert large < small * 10 * LINEAR
    assert whole.peak_mebibytes < SEGMENT_MEBIBYTES


def write_many_files(log_dir, partitions, files):
    for number in range(partitions):
        folder = log_dir / f"topic{number % 100}-{number}"
        folder.mkdir(parents=True)
        for place in range(files):
            base, kind = divmod(place, 4)
            name = f"strange{base}" if kind == 3 else f"{base:020d}{('.log', '.index', '.timeindex')[kind]}"
            (folder / name).write_bytes(b"")
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    return log_dir


def test_many_files_are_linear(tmp_path):
    few, many = write_many_files(tmp_path / "few", 10, 20), write_many_files(tmp_path / "many", 20, 40)

    for command in (["ls", "--format", "json"], ["seal", "--jobs", "1"]):
        code, _, err = invoke([*command, str(many)])
        small, large = (command_steps(*command, tree) for tree in (few, many))

        assert code in {0, 1}, err  # files of no known kind are found
        assert large < small * 4 * LINEAR


@pytest.mark.slow
def test_a_million_files(tmp_path):
    tree = write_many_files(tmp_path / "tree", 2_000, 500)
    manifest = tmp_path / "manifest"
    commands = {
        "ls": ["ls", tree, "--format", "json"],
        "seal": ["seal", tree, "--out", manifest, "--jobs", "1"],
        "seal --check": ["seal", "--check", manifest, "--jobs", "1"],
        "verify": ["verify", tree, "--format", "json", "--jobs", "1"],
        "diff": ["diff", tree, "--format", "json", "--jobs", "1"],
    }
    for name, arguments in commands.items():
        run = measured(*arguments, output=tmp_path / "out")
        sys.stderr.write(f"{name}: {run.seconds:.0f} s, {run.peak_mebibytes:.0f} MiB\n")
        # One replica of each partition compares with none.
        assert run.code in ({3} if name == "diff" else {0, 1}), run.err[-500:]
        assert run.peak_mebibytes < (1024 if name == "verify" else 256)
