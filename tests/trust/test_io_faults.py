"""Disks and file servers that fail while they are read: what failed is named, the rest is still read, and nobody dies."""

import errno
import json
import os
from pathlib import Path

import pytest

from kforensics.source.mapped import open_evidence
from tests.fuzz.commands import available, invoke, small_tree
from tests.opened import opened_path
from tests.trust.hostile import sound_batch, write_partition

JSON = {
    "ls": ["ls", "--format", "json", "--files"],
    "dump": ["dump", "--records", "--format", "json"],
    "diff": ["diff", "--jobs", "1", "--format", "json"],
    "verify": ["verify", "--jobs", "1", "--format", "json"],
    "explain": ["explain", "--format", "json"],
    "metadata": ["metadata", "--format", "json"],
    "seal": ["seal", "--jobs", "1"],
}
REAL_OPEN = os.open
COMMANDS = [name for name in available() if name in JSON]
FAULTS = {
    "EIO": errno.EIO,
    "ESTALE": errno.ESTALE,
    "EACCES": errno.EACCES,
    "ENOENT": errno.ENOENT,
    "ETIMEDOUT": errno.ETIMEDOUT,
    "EINTR": errno.EINTR,
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    return small_tree(tmp_path_factory.mktemp("faults") / "cluster")


def inputs_of(tree):
    return [str(path) for path in sorted(tree.iterdir()) if path.is_dir()]


class Faults:
    """Stands between the package and the system calls by which it reads; the n-th of one kind fails, and each later one of the same file."""

    def __init__(self, monkeypatch, call, action, at):
        self.count = 0
        self.hit = None
        self._at = at
        self._action = action
        self._real = getattr(os, call)
        monkeypatch.setattr(os, call, self._call)

    def _call(self, target, *arguments, **options):
        if self._real is REAL_OPEN and arguments[0] & os.O_DIRECTORY:  # of directories `scandir` is made to fail
            return self._real(target, *arguments, **options)
        self.count += 1
        place = opened_path(target, options.get("dir_fd")) if self.hit or self.count == self._at else None
        if self.count != self._at and (place is None or place != self.hit):
            return self._real(target, *arguments, **options)
        self.hit = place
        return self._action(self._real, target, *arguments, **options)


def failing(number):
    def action(_real, *_arguments, **_options):
        raise OSError(number, os.strerror(number))

    return action


def reads_of(monkeypatch, arguments, call):
    """How often a command makes a call, so that each of them can fail once."""
    with monkeypatch.context() as patch:
        faults = Faults(patch, call, None, at=-1)
        invoke(arguments)
        return faults.count


def spread_over(count, most):
    return sorted({1 + number * max(count - 1, 0) // max(most - 1, 1) for number in range(most)}) if count else []


def fail_each_in_turn(name, call, cluster, monkeypatch, most):
    """One call of a run fails, then another, up to `most` of them spread over the run."""
    arguments = [*JSON[name], *inputs_of(cluster)]
    sound_code, sound_out, _ = invoke(arguments)
    count = reads_of(monkeypatch, arguments, call)
    assert count > 5
    named = 0
    for number, at in enumerate(spread_over(count, most)):
        fault = list(FAULTS.values())[number % len(FAULTS)]
        with monkeypatch.context() as patch:
            faults = Faults(patch, call, failing(fault), at)
            code, out, err = invoke(arguments)
        context = (faults.hit, os.strerror(fault), err)
        assert faults.hit, context
        assert code in {sound_code, 1, 3}, context
        document = json.loads(out)
        if document["problems"]:
            # A problem never hides a worse state, and nothing is calm beside one.
            assert code in {1, 3}, context
            relative = faults.hit.removeprefix(f"{cluster}/")
            problems = [json.dumps(one) for one in document["problems"]]
            named += any(Path(relative).name in one for one in problems)
        assert len(out) > len(sound_out) / 3, context  # one file less is not half of the answer less
    assert named > 0 or name == "metadata"


@pytest.mark.parametrize("call", ["open", "preadv"])
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.some("ls-open", "diff-open", "dump-preadv", "explain-preadv")
def test_a_failing_read_is_named_and_the_rest_goes_on(name, call, cluster, monkeypatch):
    fail_each_in_turn(name, call, cluster, monkeypatch, most=3)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["open", "preadv"])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_read_may_fail(name, call, cluster, monkeypatch):
    fail_each_in_turn(name, call, cluster, monkeypatch, most=10_000)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.some(2)
def test_reads_that_come_in_pieces_change_nothing(name, cluster, monkeypatch):
    real = os.preadv

    def short(descriptor, buffers, position, *flags):
        return real(descriptor, [memoryview(buffers[0])[: max(len(buffers[0]) // 3, 1)]], position, *flags)

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    expected = invoke([*JSON[name], *inputs_of(cluster)])

    monkeypatch.setattr(os, "preadv", short)

    assert expected == invoke([*JSON[name], *inputs_of(cluster)])


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("moment", [3, 20, 60])
@pytest.mark.some(5)
def test_files_that_vanish_or_shrink_while_they_are_read(name, moment, tmp_path, monkeypatch):
    """From one moment on every segment that is opened is cut, and its neighbours are gone."""
    tree = small_tree(tmp_path / "cluster")
    real = os.open
    opened = 0

    def truncating(path, *arguments, **options):
        nonlocal opened
        opened += 1
        descriptor = real(path, *arguments, **options)
        if opened >= moment and str(path).endswith(".log"):
            segment = Path(opened_path(path, options.get("dir_fd")))
            os.truncate(segment, segment.stat().st_size * 2 // 3)
            for neighbour in segment.parent.iterdir():
                if neighbour.suffix in {".index", ".timeindex", ".snapshot"}:
                    neighbour.unlink()
        return descriptor

    monkeypatch.setattr(os, "open", truncating)

    code, out, err = invoke([*JSON[name], *inputs_of(tree)])

    assert code in {0, 1, 3}, err
    json.loads(out)


def test_a_file_that_shrinks_under_the_reader_kills_nobody(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    with open_evidence(path) as file:
        os.truncate(path, 10)

        assert file.read(0, 1 << 20) == bytes(10)
        assert file.read(5_000, 10) == b""
        assert file.changed()


@pytest.mark.parametrize("command", ["verify", "diff"])
def test_a_segment_that_shrinks_while_it_is_read_is_not_called_damaged(command, tmp_path, monkeypatch):
    folder = write_partition(tmp_path, "orders-0", b"".join(sound_batch(number) for number in range(50)))
    segment = folder / f"{0:020d}.log"
    real = os.preadv

    def truncating(descriptor, buffers, position):
        if Path(f"/proc/self/fd/{descriptor}").readlink() == segment:
            os.truncate(segment, len(sound_batch(0)) * 20 + 30)
        return real(descriptor, buffers, position)

    monkeypatch.setattr(os, "preadv", truncating)

    code, out, _ = invoke([command, "--jobs", "1", "--format", "json", str(tmp_path)])

    document = json.loads(out)
    assert code == 3, "a change of evidence while it is read must be told"
    assert any("orders-0" in one["path"] for one in document["problems"])
    if command == "verify":
        states = {one["path"]: one["state"] for one in document["files"]}
        assert states["orders-0/00000000000000000000.log"] != "damaged"


def test_a_directory_that_can_not_be_listed_is_named(cluster, monkeypatch):
    real = os.scandir

    def refuse(path="."):
        if opened_path(path).endswith("broker-2/orders-0"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    for name in COMMANDS:
        code, out, err = invoke([*JSON[name], *inputs_of(cluster)])

        assert code in {1, 3} or name == "metadata", (name, err)
        assert "orders-0" in json.dumps(json.loads(out)["problems"]) or name == "metadata"


@pytest.mark.parametrize("what", ["grown", "rolled", "gone"])
def test_a_log_that_moves_on_while_other_replicas_are_read(what, tmp_path, monkeypatch):
    segments = []
    for broker in ("broker-1", "broker-2"):
        folder = write_partition(tmp_path / broker, "orders-0", sound_batch(0))
        (tmp_path / broker / "meta.properties").write_text(f"version=1\nnode.id={broker[-1]}\ncluster.id=c\n")
        segments.append(folder / f"{0:020d}.log")
    real = os.open

    def moving(path, *arguments, **options):
        if opened_path(path, options.get("dir_fd")) == str(segments[1]):  # the first replica has been read by now
            match what:
                case "grown":
                    segments[0].write_bytes(sound_batch(0) + sound_batch(1))
                case "rolled":
                    (segments[0].parent / f"{1:020d}.log").write_bytes(sound_batch(1))
                case _:
                    segments[0].unlink(missing_ok=True)
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", moving)

    code, out, _ = invoke(
        ["diff", "--jobs", "1", "--format", "json", str(tmp_path / "broker-1"), str(tmp_path / "broker-2")]
    )

    assert code == 3
    assert ["orders-0/00000000000000000000.log"] == [one["path"] for one in json.loads(out)["problems"]]
