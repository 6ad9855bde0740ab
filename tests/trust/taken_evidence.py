"""Recordings of which evidence was taken away, damaged or mixed up, one thing or two at a time: each is a subject of `tests.trust.contradictions`."""

import re
import shutil
import struct
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.conftest import FIXTURES

RECORDINGS = tuple(sorted(path.name.removesuffix(".tar.xz") for path in (FIXTURES / "incidents").glob("*.tar.xz")))
TWICE = 0.3
"""How often two things are changed."""
TRIES = 8
"""Kinds of changes that are tried until one finds something to change."""
BATCH_HEAD = struct.Struct(">qi")
"""The base offset, and the length of what follows."""


@dataclass
class Copy:
    """A copy of one snapshot of a recording, which changes are made to."""

    recording: Path
    snapshot: Path
    """The one that was copied."""
    nodes: list[Path]
    logs: Path | None
    """The log files of its brokers, where they are given."""
    done: list[str] = field(default_factory=list)
    """The changes that were made."""


Change = Callable[[Random, Copy], str | None]
"""Changes a copy and says what it did; None where there is nothing to change."""


def kind_of(path: Path) -> str:
    """What a file of a broker is called whatever its offsets."""
    return re.sub(r"^\d+", "*", path.name)


def _files(nodes: Sequence[Path], *names: str) -> list[Path]:
    return sorted(path for node in nodes for path in node.rglob("*") if path.is_file() and any(map(path.match, names)))


def _some(dice: Random, nodes: Sequence[Path]) -> list[Path]:
    """Half of the time one of them, else all."""
    return [dice.choice(nodes)] if dice.random() < 0.5 else list(nodes)


def _segments(dice: Random, copy: Copy) -> list[Path]:
    """The segments of one directory of a partition, of a topic of users where there is one."""
    folders = sorted({path.parent for path in _files([dice.choice(copy.nodes)], "[0-9]*.log")})
    of_users = [one for one in folders if not one.name.startswith(("__", "@"))] or folders
    return sorted(dice.choice(of_users).glob("[0-9]*.log")) if of_users else []


def _nothing(_dice: Random, _copy: Copy) -> str:
    return "nothing"


def _segment(dice: Random, copy: Copy) -> str | None:
    """One segment, with its indexes."""
    if not (segments := _segments(dice, copy)):
        return None
    segment = dice.choice(segments)
    for path in segment.parent.glob(f"{segment.stem}.*"):
        path.unlink()
    return f"segment {segment}"


def _log_alone(dice: Random, copy: Copy) -> str | None:
    """The records of a segment, whose indexes stay."""
    if not (segments := _segments(dice, copy)):
        return None
    segment = dice.choice(segments)
    segment.unlink()
    return f"only {segment}"


def _partition(dice: Random, copy: Copy) -> str | None:
    if not (segments := _segments(dice, copy)):
        return None
    shutil.rmtree(segments[0].parent)
    return f"directory {segments[0].parent}"


def _without(*names: str) -> Change:
    """Files of these names are removed: all, those of one node, or one."""

    def change(dice: Random, copy: Copy) -> str | None:
        if not (found := _files(_some(dice, copy.nodes), *names)):
            return None
        gone = [dice.choice(found)] if dice.random() < 0.4 else found
        for path in gone:
            path.unlink()
        return f"{len(gone)} of {names[0]}, the first {gone[0]}"

    return change


def _without_directories(name: str) -> Change:
    """Directories of this name are removed from all nodes, or from one."""

    def change(dice: Random, copy: Copy) -> str | None:
        found = [path for node in _some(dice, copy.nodes) for path in sorted(node.rglob(name)) if path.is_dir()]
        for path in found:
            shutil.rmtree(path)
        return f"{len(found)} of {name}, the first {found[0]}" if found else None

    return change


def _node(dice: Random, copy: Copy) -> str | None:
    if len(copy.nodes) == 1:
        return None
    gone = copy.nodes.pop(dice.randrange(len(copy.nodes)))
    shutil.rmtree(gone)
    return f"node {gone.name}"


def _log_lines(dice: Random, copy: Copy) -> str | None:
    """The first lines of each log file, or the last."""
    if copy.logs is None:
        return None
    is_first = dice.random() < 0.5
    for path in _files([copy.logs], "*.log*"):
        lines = path.read_bytes().splitlines(keepends=True)
        at = int(len(lines) * dice.random())
        path.write_bytes(b"".join(lines[:at] if is_first else lines[at:]))
    return f"the {'last' if is_first else 'first'} lines of logs"


def _swapped(dice: Random, copy: Copy) -> str | None:
    """Two nodes have each other's names."""
    if len(copy.nodes) == 1:
        return None
    one, other = dice.sample(copy.nodes, 2)
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)
    return f"names of {one.name} and {other.name}"


def _renamed(dice: Random, copy: Copy) -> str:
    at = dice.randrange(len(copy.nodes))
    name, copy.nodes[at] = copy.nodes[at].name, copy.nodes[at].rename(copy.nodes[at].with_name("data-x"))
    return f"the name of {name}"


def _other_moment(dice: Random, copy: Copy) -> str | None:
    """One node is as it was at another moment."""
    others = [one for one in sorted(copy.snapshot.parent.iterdir()) if one != copy.snapshot]
    for other in dice.sample(others, len(others)):
        both = [node for node in copy.nodes if (other / node.name).is_dir()]
        if both and len(copy.nodes) > 1:
            node = dice.choice(both)
            shutil.rmtree(node)
            shutil.copytree(other / node.name, node, symlinks=True)
            return f"{node.name} of {other.name}"
    return None


def _cut(dice: Random, copy: Copy) -> str | None:
    """The newest segment ends anywhere."""
    if not (segments := _segments(dice, copy)) or not (length := segments[-1].stat().st_size):
        return None
    kept = dice.randrange(length)
    _shorten(segments[-1], kept)
    return f"{segments[-1]} from {kept} of {length} on"


def _cut_between_batches(dice: Random, copy: Copy) -> str | None:
    """The newest segment ends after one of its batches, as a truncation leaves it."""
    if not (segments := _segments(dice, copy)):
        return None
    content, starts = segments[-1].read_bytes(), [0]
    while starts[-1] + BATCH_HEAD.size <= len(content):
        _, length = BATCH_HEAD.unpack_from(content, starts[-1])
        if length <= 0:
            break
        starts.append(starts[-1] + BATCH_HEAD.size + length)
    if len(starts) < 3:
        return None
    kept = dice.choice(starts[:-2])
    _shorten(segments[-1], kept)
    return f"{segments[-1]} from the batch at {kept} of {len(content)} on"


def _shorten(path: Path, length: int) -> None:
    with path.open("r+b") as file:
        file.truncate(length)


def _bytes(dice: Random, copy: Copy) -> str | None:
    """A few bytes of a segment are others."""
    if not (segments := [one for one in _segments(dice, copy) if one.stat().st_size > 100]):
        return None
    segment = dice.choice(segments)
    length = segment.stat().st_size
    at, count = dice.randrange(length), dice.choice([1, 8, 200])
    with segment.open("r+b") as file:
        file.seek(at)
        file.write(dice.randbytes(min(count, length - at)))
    return f"{count} bytes at {at} of {length} of {segment}"


def _emptied(dice: Random, copy: Copy) -> str | None:
    """One file has no bytes, its kind chosen before."""
    found = [path for path in _files(_some(dice, copy.nodes), "*") if path.stat().st_size]
    if not found:
        return None
    kind = dice.choice(sorted({kind_of(path) for path in found}))
    path = dice.choice([one for one in found if kind_of(one) == kind])
    path.write_bytes(b"")
    return f"what was in {path}"


def _stranger(dice: Random, copy: Copy) -> str:
    """A node of another cluster is given, too."""
    name = dice.choice([one for one in RECORDINGS if one != copy.recording.name])
    with unpacked(name) as root:
        node = dice.choice(sorted((root / "snapshots" / "99-final").iterdir()))
        copy.nodes.append(copy.nodes[0].with_name("stranger"))
        shutil.copytree(node, copy.nodes[-1], symlinks=True)
    return f"a stranger, {node.name} of {name}"


CHANGES: dict[str, Change] = {
    "nothing": _nothing,
    "segment": _segment,
    "log-alone": _log_alone,
    "partition": _partition,
    "time-index": _without("*.timeindex"),
    "epochs": _without("leader-epoch-checkpoint"),
    "high-watermarks": _without("replication-offset-checkpoint"),
    "recovery-points": _without("recovery-point-offset-checkpoint"),
    "log-starts": _without("log-start-offset-checkpoint"),
    "identity": _without("meta.properties"),
    "partition-metadata": _without("partition.metadata"),
    "snapshots": _without("*.snapshot"),
    "clean-stop": _without(".kafka_cleanshutdown"),
    "metadata-log": _without_directories("__cluster_metadata-0"),
    "groups": _without_directories("__consumer_offsets-*"),
    "transactions": _without_directories("__transaction_state-*"),
    "node": _node,
    "log-lines": _log_lines,
    "swapped": _swapped,
    "renamed": _renamed,
    "other-moment": _other_moment,
    "cut": _cut,
    "cut-between-batches": _cut_between_batches,
    "bytes": _bytes,
    "emptied": _emptied,
    "stranger": _stranger,
}


@contextmanager
def unpacked(name: str) -> Iterator[Path]:
    """A recording, in a directory that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(FIXTURES / "incidents" / f"{name}.tar.xz") as archive:
            archive.extractall(folder, filter="tar")
        yield Path(folder, name)


@contextmanager
def changed(seed: int, recordings: Sequence[str], kinds: Sequence[str]) -> Iterator[Copy]:
    """A snapshot of a recording with one or two things changed, the last snapshot and log files half of the time.

    Args:
        seed: of what is chosen.
        recordings: to choose from.
        kinds: of changes, to choose from.
    """
    dice = Random(seed)
    with unpacked(dice.choice(recordings)) as root, tempfile.TemporaryDirectory() as folder:
        snapshots = sorted((root / "snapshots").iterdir())
        snapshot = snapshots[-1] if dice.random() < 0.5 else dice.choice(snapshots)
        now = Path(shutil.copytree(snapshot, Path(folder, "now"), symlinks=True))
        logs = None
        if dice.random() < 0.5 and (root / "logs").is_dir():
            logs = Path(shutil.copytree(root / "logs", Path(folder, "logs"), symlinks=True))
        copy = Copy(root, snapshot, sorted(now.iterdir()), logs)
        for _ in range(2 if dice.random() < TWICE else 1):
            for kind in dice.choices(kinds, k=TRIES):
                if done := CHANGES[kind](dice, copy):
                    copy.done.append(done.replace(f"{folder}/", ""))
                    break
        yield copy
