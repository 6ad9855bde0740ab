"""Data directories on disk, made or copied, that a test may alter."""

import os
import shutil
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

CLUSTER = "6It1kTHbTjKY3LNflMZizQ"


def log_dir(
    path: Path, node_id: int = 1, *, directory_id: str = "", partitions: tuple[str, ...] = ("orders-0",)
) -> Path:
    """A log directory of a node of `CLUSTER`, its partitions empty."""
    path.mkdir(parents=True)
    text = f"version=1\nnode.id={node_id}\ncluster.id={CLUSTER}\n"
    (path / "meta.properties").write_text(text + (f"directory.id={directory_id}\n" if directory_id else ""))
    (path / "replication-offset-checkpoint").write_text("0\n0\n")
    for name in partitions:
        (path / name).mkdir()
    return path


def copied(
    source: Path,
    target: Path,
    *,
    symlinks: bool = False,
    dirs_exist_ok: bool = False,
    ignore: Callable[[str, list[str]], Iterable[str]] | None = None,
) -> Path:
    """A copy of a directory that keeps times, and holes where files end in zeros: indexes are preallocated with 10 MB each.

    Args:
        source: The directory.
        target: What the copy is called.
        symlinks: Whether links are copied as links.
        dirs_exist_ok: Whether the target may be there.
        ignore: What is left out, as `shutil.copytree` takes it.

    Returns:
        The target.
    """
    return shutil.copytree(
        source, target, symlinks=symlinks, dirs_exist_ok=dirs_exist_ok, ignore=ignore, copy_function=_copy_with_holes
    )


LARGE = 1 << 20
"""From this size on a file is a preallocated index, whose few entries are kept in memory: reading all of its zeros for each copy took longer than many tests."""


def _without_zeros(path: str, *_when: int) -> bytes:
    return Path(path).read_bytes().rstrip(b"\0")


_without_zeros_once = lru_cache(maxsize=32)(_without_zeros)


def _copy_with_holes(source: str, target: str, *, follow_symlinks: bool = True) -> None:
    if not follow_symlinks and Path(source).is_symlink():
        shutil.copy2(source, target, follow_symlinks=False)
        return
    status = Path(source).stat()
    read = _without_zeros if status.st_size < LARGE else _without_zeros_once
    with Path(target).open("wb") as out:
        out.write(read(source, status.st_mtime_ns, status.st_ino))
        out.truncate(status.st_size)
    shutil.copystat(source, target)


def two_log_dirs(snapshot: Path, cluster: Path) -> tuple[Path, Path]:
    """The two log directories of broker 1, of which the second is empty, beside broker 2, which holds the same partitions."""
    copied(snapshot / "broker-2", cluster / "broker-2")
    first, second = cluster / "broker-1" / "d1", cluster / "broker-1" / "d2"
    copied(snapshot / "broker-1", first)
    second.mkdir()
    for name in ("meta.properties", "bootstrap.checkpoint", ".kafka_cleanshutdown"):
        shutil.copy(first / name, second / name)
    for one in first.glob("*-offset-checkpoint"):
        (second / one.name).write_text("0\n0\n")
    meta = second / "meta.properties"
    lines = [one for one in meta.read_text().splitlines() if not one.startswith("directory.id=")]
    meta.write_text("\n".join([*lines, "directory.id=Xk0wxQGCNPSes97VI4wl8Q", ""]))
    return first, second


def with_short_indexes(source: Path, target: Path) -> Path:
    """A copy of a directory whose indexes end with their entries, as a clean shutdown leaves them.

    Args:
        source: The directory.
        target: What the copy is called.

    Returns:
        The target.
    """
    copied(source, target)
    for ending, length in ((".index", 8), (".timeindex", 12)):
        for path in target.rglob(f"*{ending}"):
            used = len(path.read_bytes().rstrip(b"\0"))
            os.truncate(path, -(-used // length) * length)
    return target
