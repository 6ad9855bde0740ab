"""From a path to every file below it: what stands where, and what it is by its name.

Nothing is skipped: what a broker does not write is listed as `unknown`, what can't be looked at becomes an `Obstacle`.
Symbolic links are never followed. Listings are sorted: the same evidence is walked in the same order on any machine.
"""

import os
import stat
import time
from array import array
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


SETTLED_NS = 2_000_000_000
"""A file whose last change is younger than this when it is read may change again without a new time of change."""


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


class Listings:
    """The directories below a root, each listed once, when it is first asked for.

    Every later look gives what the first one saw: whatever a live broker does meanwhile, all parts of a command speak of the same files. A listing is
    kept packed, some 20 bytes a name beside the name itself. Another process lists anew, since what was kept does not travel.
    """

    def __init__(self, root: Path, *, kept: "dict[Path, _Packed] | None" = None) -> None:
        self.root = root
        self._kept: dict[Path, _Packed] = {} if kept is None else kept

    def __reduce__(self) -> "tuple[type[Listings], tuple[Path]]":
        return (Listings, (self.root,))

    def below(self, folder: str) -> "Listings":
        """The same listings, seen from a directory further down."""
        return Listings(self.root / folder, kept=self._kept) if folder else self

    def of(self, relative: str) -> Listing:
        """What the directory at a path relative to the root holds, sorted by name."""
        place = self.root / relative
        packed = self._kept.get(place)
        if packed is None:
            changed_ns = _settled_change(place)
            packed = self._kept[place] = _Packed.of(list_directory(self.root, relative), relative, changed_ns)
        return packed.listing(relative)

    def may_have_changed(self, relative: str) -> bool:
        """Whether names may have come or gone in a directory since it was listed; false only where its own time of change is old and the same."""
        packed, place = self._kept.get(self.root / relative), self.root / relative
        if packed is None or packed.changed_ns is None or isinstance(place, ForeignPath):
            return True
        try:
            return place.stat().st_mtime_ns != packed.changed_ns
        except OSError:
            return True


class _Packed(NamedTuple):
    names: str
    numbers: "array[int]"
    """Mode, length and mtime of each name, one behind the other."""
    obstacles: tuple[tuple[str, str], ...]
    """Names, empty for the directory itself, and what was wrong."""
    changed_ns: int | None
    """The directory's time of change before it was listed; none where a later change could have the same."""

    @classmethod
    def of(cls, listing: Listing, relative: str, changed_ns: int | None) -> "_Packed":
        numbers = array("q")
        for entry in listing.entries:
            numbers.extend((entry.mode, entry.length, entry.mtime_ns))
        own = relative or "."
        obstacles = tuple(
            ("" if one.path == own else one.path.rpartition("/")[2], one.message) for one in listing.obstacles
        )
        return cls("/".join(entry.name for entry in listing.entries), numbers, obstacles, changed_ns)

    def listing(self, relative: str) -> Listing:
        names = self.names.split("/") if self.names else []
        numbers = iter(self.numbers)
        entries = tuple(map(Entry, names, numbers, numbers, numbers))
        return Listing(
            entries,
            tuple(Obstacle(join(relative, name) if name else relative or ".", text) for name, text in self.obstacles),
        )


def _settled_change(place: Path) -> int | None:
    if isinstance(place, ForeignPath):
        return None
    try:
        changed_ns = place.stat().st_mtime_ns
    except OSError:
        return None
    return changed_ns if time.time_ns() - changed_ns > SETTLED_NS else None


def list_directory(root: Path, relative: str) -> Listing:
    """What a directory holds now, sorted by name; every failure is a value."""
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


def walk_log_dir(listings: Listings, log_dir: str = "") -> Iterator[Found]:
    """Everything in a log directory: its own files, then each directory followed by the files in it."""
    listing = listings.of(log_dir)
    yield from listing.obstacles
    for entry in listing.entries:
        if not entry.is_directory:
            yield from _found_file(entry, log_dir, log_dir, Absent.NOT_APPLICABLE)
    for entry in listing.entries:
        if entry.is_directory:
            yield from _walk_directory(listings, join(log_dir, entry.name), log_dir, entry.name)


def walk_partition(listings: Listings, relative: str = "", *, name: str | None = None) -> Iterator[Found]:
    """A partition directory that was named by itself, and everything in it."""
    parsed = parse_partition_directory(name if name is not None else listings.root.name)
    directory = FoundDirectory(relative, "", DirectoryKind.PARTITION, parsed or Absent.UNKNOWN)
    yield directory
    yield from _walk_below(listings, relative, "", directory, DEEPEST)


def walk_files(listings: Listings, relative: str = "") -> Iterator[Found]:
    """Every file below a directory that is no data directory, such as one of server logs."""
    yield from _walk_below(listings, relative, "", Absent.NOT_APPLICABLE, DEEPEST)


def _walk_directory(listings: Listings, path: str, log_dir: str, name: str) -> Iterator[Found]:
    parsed = parse_partition_directory(name)
    if parsed is not None:
        directory = FoundDirectory(path, log_dir, DirectoryKind.PARTITION, parsed)
        yield directory
        yield from _walk_below(listings, path, log_dir, directory, DEEPEST)
        return
    kind = _DIRECTORIES.get(name, DirectoryKind.UNKNOWN)
    yield FoundDirectory(path, log_dir, kind, Absent.NOT_APPLICABLE)
    if kind is not DirectoryKind.LOST_AND_FOUND:  # of the file system, and readable by root only
        yield from _walk_below(listings, path, log_dir, Absent.NOT_APPLICABLE, DEEPEST)


_DIRECTORIES = {
    "remote-log-index-cache": DirectoryKind.REMOTE_INDEX_CACHE,
    LOST_AND_FOUND: DirectoryKind.LOST_AND_FOUND,
}


def _walk_below(
    listings: Listings, folder: str, log_dir: str, partition: FoundDirectory | Absent, levels: int
) -> Iterator[Found]:
    listing = listings.of(folder)
    yield from listing.obstacles
    for entry in listing.entries:
        path = join(folder, entry.name)
        if not entry.is_directory:
            yield from _found_file(entry, folder, log_dir, partition)
        elif levels == 0:
            yield Obstacle(path, f"directories are nested more than {DEEPEST} levels deep here; not looked into")
        else:
            # Brokers put no directories here: what is below belongs to no partition.
            yield from _walk_below(listings, path, log_dir, Absent.NOT_APPLICABLE, levels - 1)


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
