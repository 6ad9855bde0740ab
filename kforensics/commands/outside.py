"""The rule that nothing is written inside the evidence, by whatever name: links, and mounts of one directory at several places."""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kforensics.errors import UsageError
from kforensics.source.store import ForeignPath

_MOUNTS = Path("/proc/self/mountinfo")  # Linux only
_BLOCK_DEVICES = Path("/sys/dev/block")  # Linux only


def check_outside(out: Path, evidence: Iterable[Path]) -> None:
    """Refuse an output that would lie inside the evidence.

    Raises:
        UsageError: the output would be an input, or lie inside of one, or on a disk of which an input is the image.
    """
    target = _resolved(out)
    local = None if isinstance(out, ForeignPath) else _LocalOutput(target)
    for given in evidence:
        place = _resolved(given)
        if target == place or place in target.parents or (local and local.is_inside(place)):
            raise UsageError(f"{out} would lie inside the evidence {given}, where kforensics writes nothing")


def check_new_file(out: Path, evidence: Iterable[Path]) -> None:
    """Refuse a file that exists, has no directory, or would lie inside the evidence."""
    if os.path.lexists(out):
        raise UsageError(f"{out} exists; kforensics overwrites nothing")
    if not out.parent.is_dir():
        raise UsageError(f"{out.parent} is no directory")
    check_outside(out, evidence)


def _resolved(path: Path) -> Path:
    return path if isinstance(path, ForeignPath) else Path(os.path.realpath(path))  # of links in a circle, too


class _Mount(NamedTuple):
    device: str
    root: PurePosixPath
    """What of the file system is mounted."""
    point: Path

    def on_disk(self, path: Path) -> tuple[str, PurePosixPath]:
        """Return the file system that a path below the mount is on, and its path there, which is the same at every place where it is mounted."""
        return self.device, self.root / path.relative_to(self.point)


class _LocalOutput:
    """An output on this machine, as file system and disks know it."""

    def __init__(self, target: Path) -> None:
        self._mounts = tuple(_mounts())
        self._on_disk = self._place(target)
        above = [status for status in map(_status, (target, *target.parents)) if status]
        self._above = {(status.st_dev, status.st_ino) for status in above}
        self._disks, self._files = _stands_on(above[0].st_dev)

    def is_inside(self, place: Path) -> bool:
        """Return whether the output would lie below a place, or on the file system in it."""
        status = _status(place)
        if status is None or isinstance(place, ForeignPath):
            return False
        identity = (status.st_dev, status.st_ino)
        if identity in self._above or identity in self._files:
            return True
        if stat.S_ISBLK(status.st_mode):
            return status.st_rdev in self._disks
        mounts = (one.on_disk(one.point) for one in self._mounts if place in one.point.parents)
        return any(self._is_below(one) for one in (self._place(place), *mounts))

    def _place(self, path: Path) -> tuple[str, PurePosixPath] | None:
        holding = [one for one in self._mounts if one.point == path or one.point in path.parents]
        # Of several at one point the last hides the others.
        last = max(enumerate(holding), key=lambda one: (len(one[1].point.parts), one[0]), default=None)
        return None if last is None else last[1].on_disk(path)

    def _is_below(self, place: tuple[str, PurePosixPath] | None) -> bool:
        if place is None or self._on_disk is None or place[0] != self._on_disk[0]:
            return False
        return place[1] == self._on_disk[1] or place[1] in self._on_disk[1].parents


def _status(path: Path) -> os.stat_result | None:
    with suppress(OSError, ValueError):
        return path.stat()
    return None


def _mounts() -> Iterator[_Mount]:
    with suppress(OSError):
        for line in _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            _, _, device, root, point = line.split(" ")[:5]
            yield _Mount(device, PurePosixPath(_unescaped(root)), Path(_unescaped(point)))


def _unescaped(text: str) -> str:
    """Return a path as it is, of which `mountinfo` writes spaces and backslashes in octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _stands_on(device: int) -> tuple[set[int], set[tuple[int, int]]]:
    """Return the block devices that a file system is on, whole disks and those below them, and by device and inode the files that it is the content of."""
    disks: set[int] = set()
    files: set[tuple[int, int]] = set()
    waiting = [device]
    while waiting:
        device = waiting.pop()
        if device in disks:
            continue
        disks.add(device)
        folder = Path(os.path.realpath(_BLOCK_DEVICES / f"{os.major(device)}:{os.minor(device)}"))
        with suppress(OSError):
            file = _status(Path((folder / "loop" / "backing_file").read_text(encoding="utf-8").rstrip("\n")))
            if file is not None:
                files.add((file.st_dev, file.st_ino))
                waiting.append(file.st_dev)
        below = [folder.parent] if (folder / "partition").exists() else []
        with suppress(OSError):
            below += (folder / "slaves").iterdir()
        for one in below:
            with suppress(OSError, ValueError):
                major, minor = (one / "dev").read_text(encoding="ascii").strip().split(":")
                waiting.append(os.makedev(int(major), int(minor)))
    return disks, files
