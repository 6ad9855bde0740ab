"""From a path to every file below it: what stands where, and what it is by its name.

Nothing is skipped: what a broker does not write is listed as `unknown`, what can't be looked at becomes an `Obstacle`.
Symbolic links are never followed. Listings are sorted: the same evidence is walked in the same order on any machine.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.source.foreign import ForeignPath
from kforensics.source.naming import (
    LOST_AND_FOUND,
    FileKind,
    FileName,
    PartitionDirectoryName,
    parse_file_name,
    parse_partition_directory,
)

DEEPEST = 32
"""Levels below a log directory that are looked at; brokers use two."""


class DirectoryKind(StrEnum):
    """What a directory inside a log directory is."""

    PARTITION = "partition"
    REMOTE_INDEX_CACHE = "remote-index-cache"
    LOST_AND_FOUND = "lost-and-found"
    UNKNOWN = "unknown"


class FoundDirectory(NamedTuple):
    """A directory directly below a log directory; `path` and `log_dir` are relative to the root of the walk."""

    path: str
    log_dir: str
    kind: DirectoryKind
    name: PartitionDirectoryName | Absent


class FoundFile(NamedTuple):
    """A file below the root of the walk; `partition` is the partition directory it stands in."""

    path: str
    log_dir: str
    partition: FoundDirectory | Absent
    name: FileName
    length: int
    mtime_ns: int


class Obstacle(NamedTuple):
    """Something that could not be looked at, or was not: the look is incomplete there."""

    path: str
    message: str


Found = FoundDirectory | FoundFile | Obstacle


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One name in a directory, with what the file system says of it."""

    name: str
    mode: int
    length: int
    mtime_ns: int

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory, not through a link."""
        return stat.S_ISDIR(self.mode)


@dataclass(frozen=True, slots=True)
class Listing:
    """A directory's entries by name, and what went wrong while it was read."""

    entries: tuple[Entry, ...]
    obstacles: tuple[Obstacle, ...] = field(default=())


def list_directory(root: Path, relative: str) -> Listing:
    """What a directory holds, sorted by name; every failure is a value."""
    folder = root / relative
    if isinstance(folder, ForeignPath):
        return _list_foreign(folder, relative)
    entries = []
    obstacles = []
    try:
        with os.scandir(folder) as scan:
            for item in scan:
                path = join(relative, item.name)
                try:
                    status = item.stat(follow_symlinks=False)
                except FileNotFoundError:
                    if not may_vanish(item.name):
                        obstacles.append(Obstacle(path, "it vanished while its directory was read"))
                except OSError as error:
                    obstacles.append(Obstacle(path, f"it can't be looked at: {error.strerror}"))
                else:
                    entries.append(Entry(item.name, status.st_mode, status.st_size, status.st_mtime_ns))
    except OSError as error:
        obstacles.append(Obstacle(relative or ".", f"the directory can't be listed: {error.strerror}"))
    entries.sort(key=lambda entry: entry.name)
    return Listing(tuple(entries), tuple(obstacles))


def _list_foreign(folder: ForeignPath, relative: str) -> Listing:
    try:
        entries = sorted(Entry(*entry) for entry in folder.entries())
    except OSError as error:
        return Listing((), (Obstacle(relative or ".", f"the directory can't be listed: {error.strerror or error}"),))
    return Listing(tuple(entries))


def directory_names(root: Path, relative: str) -> tuple[str, ...]:
    """The bare names in a directory, in any order; `OSError` where it can't be read."""
    folder = root / relative
    if isinstance(folder, ForeignPath):
        return tuple(entry.name for entry in folder.entries())
    with os.scandir(folder) as scan:
        return tuple(item.name for item in scan)


def may_vanish(name: str) -> bool:
    """Whether a live broker takes such a thing away as a matter of course."""
    partition = parse_partition_directory(name)
    if partition is not None:
        return partition.unique_id is not Absent.NOT_APPLICABLE
    return parse_file_name(name).is_transient


def join(folder: str, name: str) -> str:
    """A path relative to the root of a walk, where the root itself is the empty path."""
    return f"{folder}/{name}" if folder else name


def walk_log_dir(root: Path, log_dir: str = "") -> Iterator[Found]:
    """Everything in a log directory: its own files, then each directory followed by the files in it."""
    listing = list_directory(root, log_dir)
    yield from listing.obstacles
    for entry in listing.entries:
        if not entry.is_directory:
            yield from _found_file(entry, log_dir, log_dir, Absent.NOT_APPLICABLE)
    for entry in listing.entries:
        if entry.is_directory:
            yield from _walk_directory(root, join(log_dir, entry.name), log_dir, entry.name)


def walk_partition(root: Path, relative: str = "", *, name: str | None = None) -> Iterator[Found]:
    """A partition directory that was named by itself, and everything in it."""
    parsed = parse_partition_directory(name if name is not None else root.name)
    directory = FoundDirectory(relative, "", DirectoryKind.PARTITION, parsed or Absent.UNKNOWN)
    yield directory
    yield from _walk_below(root, relative, "", directory, DEEPEST)


def walk_files(root: Path, relative: str = "") -> Iterator[Found]:
    """Every file below a directory that is no data directory, such as one of server logs."""
    yield from _walk_below(root, relative, "", Absent.NOT_APPLICABLE, DEEPEST)


def _walk_directory(root: Path, path: str, log_dir: str, name: str) -> Iterator[Found]:
    parsed = parse_partition_directory(name)
    if parsed is not None:
        directory = FoundDirectory(path, log_dir, DirectoryKind.PARTITION, parsed)
        yield directory
        yield from _walk_below(root, path, log_dir, directory, DEEPEST)
        return
    kind = _DIRECTORIES.get(name, DirectoryKind.UNKNOWN)
    yield FoundDirectory(path, log_dir, kind, Absent.NOT_APPLICABLE)
    if kind is not DirectoryKind.LOST_AND_FOUND:  # of the file system, and readable by root only
        yield from _walk_below(root, path, log_dir, Absent.NOT_APPLICABLE, DEEPEST)


_DIRECTORIES = {
    "remote-log-index-cache": DirectoryKind.REMOTE_INDEX_CACHE,
    LOST_AND_FOUND: DirectoryKind.LOST_AND_FOUND,
}


def _walk_below(
    root: Path, folder: str, log_dir: str, partition: FoundDirectory | Absent, levels: int
) -> Iterator[Found]:
    listing = list_directory(root, folder)
    yield from listing.obstacles
    for entry in listing.entries:
        path = join(folder, entry.name)
        if not entry.is_directory:
            yield from _found_file(entry, folder, log_dir, partition)
        elif levels == 0:
            yield Obstacle(path, f"directories are nested more than {DEEPEST} levels deep here; not looked into")
        else:
            # Brokers put no directories here: what is below belongs to no partition.
            yield from _walk_below(root, path, log_dir, Absent.NOT_APPLICABLE, levels - 1)


def _found_file(entry: Entry, folder: str, log_dir: str, partition: FoundDirectory | Absent) -> Iterator[Found]:
    path = join(folder, entry.name)
    if stat.S_ISREG(entry.mode):
        name = parse_file_name(entry.name)
    elif stat.S_ISLNK(entry.mode):
        name = FileName(kind=FileKind.SYMBOLIC_LINK)
        yield Obstacle(path, "a symbolic link, which is not followed: name its target as an input of its own")
    else:
        name = FileName(kind=FileKind.SPECIAL)
    yield FoundFile(path, log_dir, partition, name, entry.length, entry.mtime_ns)
