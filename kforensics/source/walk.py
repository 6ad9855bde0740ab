"""Walk from a path to every file below it, and classify each by its name and place.

Nothing is skipped: a file that no broker writes is listed as `unknown`, and one that can't be read becomes an `Obstacle`.
Symbolic links are never followed. Listings are sorted: the same evidence is walked in the same order on any machine.
"""

import os
import re
import stat
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.source.mapped import scan_directory, status_of
from kforensics.source.naming import (
    LOST_AND_FOUND,
    REMOTE_INDEX_CACHE,
    FileKind,
    FileName,
    PartitionDirectoryName,
    parse_file_name,
    parse_partition_directory,
)
from kforensics.source.store import Entry, ForeignPath
from kforensics.units import TopicPartition

DEEPEST = 32
"""The levels below a log directory that are walked; brokers use two."""


SETTLED_NS = 2_000_000_000
"""A file whose last change is younger than this when it is read may change again without a new time of change."""


class DirectoryKind(StrEnum):
    """The kind of a directory inside a log directory."""

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
    segment_bytes: int | None = None
    """The bytes of its segments, where that is known and its files are not walked."""


Wants = Callable[[TopicPartition], bool]
"""Whether a partition is wanted."""


def of_wanted(directory: FoundDirectory | Absent, wants: Wants | None) -> bool:
    """Whether a directory is of a partition that is wanted: all are where nothing is asked for, and none that names no partition where something is."""
    return wants is None or (
        isinstance(directory, FoundDirectory)
        and isinstance(directory.name, PartitionDirectoryName)
        and wants(directory.name.topic_partition)
    )


class FoundFile(NamedTuple):
    """A file below the root of the walk; `partition` is the partition directory that holds it."""

    path: str
    log_dir: str
    partition: FoundDirectory | Absent
    name: FileName
    length: int
    mtime_ns: int

    @property
    def is_live_segment(self) -> bool:
        """Whether a broker loads it as a segment: in a partition directory itself, under the name that its records are read by."""
        name = self.name
        return name.kind is FileKind.SEGMENT and not name.is_transient and isinstance(self.partition, FoundDirectory)


class Obstacle(NamedTuple):
    """A place that could not be read, or was not read: the walk is incomplete there."""

    path: str
    message: str


Found = FoundDirectory | FoundFile | Obstacle


class Listing(NamedTuple):
    """The entries of a directory by name, and the obstacles met while it was read."""

    entries: tuple[Entry, ...]
    obstacles: tuple[Obstacle, ...] = ()


NOTHING_LISTED: "Mapping[str, _Packed]" = {}


class Listings:
    """The directories below a root, each listed once, when it is first asked for.

    Later calls return the first listing: whatever a live broker does meanwhile, all parts of a command read the same files. A listing is
    kept packed, in some 20 bytes per name beside the name itself. Another process lists the directories again, since the listings are not pickled.
    """

    def __init__(
        self, root: Path, *, kept: "dict[str, _Packed] | None" = None, known: "Mapping[str, _Packed]" = NOTHING_LISTED
    ) -> None:
        self.root = root
        # By the whole path as text, which takes a tenth of the room of a path.
        self._kept: dict[str, _Packed] = {} if kept is None else kept
        self._known = known
        self._prefix = f"{root}".rstrip("/")

    def __reduce__(self) -> "tuple[type[Listings], tuple[Path]]":
        return (Listings, (self.root,))

    def below(self, folder: str) -> "Listings":
        """Return the same listings relative to a directory below the root."""
        return Listings(self.root / folder, kept=self._kept, known=self._known) if folder else self

    def beside(self, other: "Listings") -> "Listings":
        """Return the same listings, in which directories that others have listed already are not listed again."""
        return Listings(self.root, kept=self._kept, known=other._kept)  # noqa: SLF001 - of its own class

    def of(self, relative: str) -> Listing:
        """Return the listing of a directory, sorted by name; each directory is listed once, but those of storage that never changes."""
        if isinstance(self.root, ForeignPath) and self.root.is_fixed:
            return list_directory(self.root, relative)
        return self.packed(relative).listing(relative)

    def each(self, relative: str) -> Iterator[Entry]:
        """Yield the entries of the directory, which are made one by one: there may be a million of them."""
        yield from self.lazily(relative)[0]

    def lazily(self, relative: str) -> tuple[Iterator[Entry], tuple[Obstacle, ...]]:
        """Return the entries of the directory, which are made one by one, and the obstacles."""
        if isinstance(self.root, ForeignPath) and self.root.is_fixed:
            listing = list_directory(self.root, relative)
            return iter(listing.entries), listing.obstacles
        packed = self.packed(relative)
        return packed.entries(), packed.obstacles_of(relative)

    def rows(
        self, relative: str, *, once: bool = False
    ) -> tuple[Iterable[tuple[str, int, int, int]], tuple[Obstacle, ...]]:
        """Return what the entries of the directory are made of, sorted by name, and the obstacles; of one that is asked for once its listing is not kept."""
        if isinstance(self.root, ForeignPath) and self.root.is_fixed:
            return list_directory(self.root, relative)
        if once and self._listed(f"{self._prefix}/{relative}") is None:
            return list_directory(self.root, relative)
        packed = self.packed(relative)
        return packed.rows(), packed.obstacles_of(relative)

    def packed(self, relative: str) -> "_Packed":
        """Return the listing of a directory as it is kept."""
        key = f"{self._prefix}/{relative}" if relative else self._prefix
        packed = self._listed(key)
        if packed is None:
            changed_ns = _settled_change(self.root, relative)
            packed = self._kept[key] = _Packed.of(list_directory(self.root, relative), relative, changed_ns)
        return packed

    def keep(self, relative: str, listed: "_Packed") -> None:
        """Take what another process has listed of a directory."""
        self._kept[f"{self._prefix}/{relative}"] = listed

    def _listed(self, key: str) -> "_Packed | None":
        packed = self._kept.get(key)
        return self._known.get(key) if packed is None else packed

    def forget(self, relative: str) -> None:
        """Drop the listings of a directory and of what is below it, which are not needed any more."""
        key = f"{self._prefix}/{relative}" if relative else self._prefix
        listing = self._kept.pop(key, None)
        if listing is not None and any(map(stat.S_ISDIR, islice(listing.numbers, len(listing.numbers) // 3))):
            for entry in listing.entries():
                if entry.is_directory:
                    self.forget(join(relative, entry.name))

    def may_have_changed(self, relative: str) -> bool:
        """Return whether names may have been added or removed in a directory since it was listed; false only if its time of change is old and unchanged."""
        place = f"{self._prefix}/{relative}" if relative else self._prefix
        packed = self._kept.get(place)
        if packed is None or packed.changed_ns is None or isinstance(self.root, ForeignPath):
            return True
        try:
            return os.stat(place).st_mtime_ns != packed.changed_ns  # noqa: PTH116 - of each of 100,000 directories
        except OSError:
            return True


class _Packed(NamedTuple):
    names: str
    numbers: Sequence[int]
    """The mode of each name, behind them the lengths, and behind these the times of change."""
    obstacles: tuple[tuple[str, str], ...]
    """The names with obstacles, and the obstacles; the empty name is the directory itself."""
    changed_ns: int | None
    """The directory's time of change before it was listed; None if a later change could have the same time."""

    @classmethod
    def of(cls, listing: Listing, relative: str, changed_ns: int | None) -> "_Packed":
        names, *columns = zip(*listing.entries, strict=True) if listing.entries else ((),)
        # From a list: an array that grows has room to spare.
        numbers: MutableSequence[int] = list(chain.from_iterable(columns))
        with suppress(OverflowError):  # a time of change after the year 2262 has more than 64 bits of nanoseconds
            numbers = array("q", numbers)
        own = relative or "."
        obstacles = tuple(
            ("" if one.path == own else one.path.rpartition("/")[2], one.message) for one in listing.obstacles
        )
        return cls("/".join(names), numbers, obstacles, changed_ns)

    def entries(self) -> Iterator[Entry]:
        return map(Entry, (found[0] for found in _NAME.finditer(self.names)), *self._columns())

    def rows(self) -> Iterator[tuple[str, int, int, int]]:
        return zip(self.names.split("/") if self.names else (), *self._columns(), strict=True)

    def _columns(self) -> tuple[Iterator[int], Iterator[int], Iterator[int]]:
        count, numbers = len(self.numbers) // 3, self.numbers
        return islice(numbers, count), islice(numbers, count, 2 * count), islice(numbers, 2 * count, None)

    def listing(self, relative: str) -> Listing:
        return Listing(tuple(map(Entry._make, self.rows())), self.obstacles_of(relative))

    def obstacles_of(self, relative: str) -> tuple[Obstacle, ...]:
        return tuple(Obstacle(join(relative, name) if name else relative or ".", text) for name, text in self.obstacles)


_NAME = re.compile("[^/]+")


def _settled_change(root: Path, relative: str) -> int | None:
    if isinstance(root, ForeignPath):
        return None
    try:
        changed_ns = os.stat(f"{root}/{relative}").st_mtime_ns  # noqa: PTH116 - of each of 100,000 directories
    except OSError:
        return None
    return changed_ns if time.time_ns() - changed_ns > SETTLED_NS else None


def list_directory(root: Path, relative: str) -> Listing:
    """List a directory now, sorted by name; every failure becomes an `Obstacle`."""
    if isinstance(root, ForeignPath):
        return _list_foreign(root, relative)
    entries = []
    obstacles = []
    try:
        with scan_directory(f"{root}/{relative}" if relative else root) as scan:
            for item in scan:
                try:
                    status = item.stat(follow_symlinks=False)
                except FileNotFoundError:
                    if not may_vanish(item.name):
                        words = "it vanished while its directory was read"
                        obstacles.append(Obstacle(join(relative, item.name), words))
                except OSError as error:
                    obstacles.append(Obstacle(join(relative, item.name), f"it can't be looked at: {error.strerror}"))
                else:
                    entries.append(Entry(item.name, status.st_mode, status.st_size, status.st_mtime_ns))
    except OSError as error:
        obstacles.append(Obstacle(relative or ".", f"the directory can't be listed: {error.strerror}"))
    entries.sort(key=itemgetter(0))  # by name
    return Listing(tuple(entries), tuple(obstacles))


def _list_foreign(root: ForeignPath, relative: str) -> Listing:
    try:
        entries = sorted(root.entries_below(relative) if relative else root.entries())
    except OSError as error:
        return Listing((), (Obstacle(relative or ".", f"the directory can't be listed: {error.strerror or error}"),))
    return Listing(tuple(entries))


def directory_names(root: Path, relative: str) -> tuple[str, ...]:
    """Return the names in a directory in any order."""
    folder = root / relative
    if isinstance(folder, ForeignPath):
        return tuple(entry.name for entry in folder.entries())
    with scan_directory(folder) as scan:
        return tuple(item.name for item in scan)


def may_vanish(name: str) -> bool:
    """Return whether a live broker deletes files of this name as a matter of course."""
    partition = parse_partition_directory(name)
    if partition is not None:
        return partition.unique_id is not Absent.NOT_APPLICABLE
    return parse_file_name(name).is_transient


def join(folder: str, name: str) -> str:
    """Return a folder and a name joined, relative to the root of a walk, whose own path is empty."""
    return f"{folder}/{name}" if folder else name


def walk_log_dir(
    listings: Listings, log_dir: str = "", *, within: Callable[[str], bool] | None = None, in_outline: bool = False
) -> Iterator[Found]:
    """Yield everything in a log directory: its own files, then each directory followed by the files in it."""
    entries, obstacles = listings.lazily(log_dir)
    yield from obstacles
    names: list[str] = []
    for entry in entries:
        if not entry.is_directory:
            yield from _found_files(entry, join(log_dir, entry.name), log_dir, Absent.NOT_APPLICABLE)
        elif within is None or within(entry.name):
            names.append(entry.name)
    for name in names:
        known = _outlined(listings, log_dir, name) if in_outline else None
        yield from walk_directory(listings, log_dir, name) if known is None else (known,)


def _outlined(listings: Listings, log_dir: str, name: str) -> FoundDirectory | None:
    parsed, path, root = parse_partition_directory(name), join(log_dir, name), listings.root
    if parsed is None:
        return None
    length = root.segment_bytes_below(path) if isinstance(root, ForeignPath) else _plain_segment_bytes(listings, path)
    return None if length is None else FoundDirectory(path, log_dir, DirectoryKind.PARTITION, parsed, length)


def _plain_segment_bytes(listings: Listings, path: str) -> int | None:
    """Return the bytes of the segments in a directory that holds plain files alone, segments in use among them; none of another one."""
    rows, obstacles = listings.rows(path)
    lengths: list[int] = []
    for name, mode, length, _ in rows:
        if not stat.S_ISREG(mode):
            return None
        if ".log" in name and (parsed := parse_file_name(name)).kind is FileKind.SEGMENT:
            if parsed.is_transient:
                return None
            lengths.append(length)
    return sum(lengths) if lengths and not obstacles else None


def walk_partition(listings: Listings, relative: str = "", *, name: str | None = None) -> Iterator[Found]:
    """Yield a partition directory that is an input of its own, and everything in it, by the name to take it for, where its own is another."""
    parsed = parse_partition_directory(name if name is not None else listings.root.name)
    directory = FoundDirectory(relative, "", DirectoryKind.PARTITION, parsed or Absent.UNKNOWN)
    yield directory
    yield from _walk_below(listings, relative, "", directory, DEEPEST)


def walk_files(listings: Listings) -> Iterator[Found]:
    """Yield every file below a directory that is no data directory, such as a directory of server logs."""
    yield from _walk_below(listings, "", "", Absent.NOT_APPLICABLE, DEEPEST)


def walk_directory(listings: Listings, log_dir: str, name: str) -> Iterator[Found]:
    """Yield one directory of a log directory, and the files in it."""
    parsed, path = parse_partition_directory(name), join(log_dir, name)
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
    REMOTE_INDEX_CACHE: DirectoryKind.REMOTE_INDEX_CACHE,
    LOST_AND_FOUND: DirectoryKind.LOST_AND_FOUND,
}


def _walk_below(
    listings: Listings, folder: str, log_dir: str, partition: FoundDirectory | Absent, levels: int
) -> Iterator[Found]:
    rows, obstacles = listings.rows(folder)
    yield from obstacles
    before = join(folder, "")
    for name, mode, length, mtime_ns in rows:
        path = before + name
        if stat.S_ISREG(mode):  # nearly all of them
            yield FoundFile(path, log_dir, partition, parse_file_name(name), length, mtime_ns)
        elif not stat.S_ISDIR(mode):
            yield from _found_files(Entry(name, mode, length, mtime_ns), path, log_dir, partition)
        elif levels == 0:
            yield Obstacle(path, f"directories are nested more than {DEEPEST} levels deep here; not looked into")
        else:
            # Brokers create no directories here: the files below belong to no partition.
            yield from _walk_below(listings, path, log_dir, Absent.NOT_APPLICABLE, levels - 1)


def _found_files(entry: Entry, path: str, log_dir: str, partition: FoundDirectory | Absent) -> tuple[Found, ...]:
    if stat.S_ISREG(entry.mode):
        return (FoundFile(path, log_dir, partition, parse_file_name(entry.name), entry.length, entry.mtime_ns),)
    kind = FileKind.SYMBOLIC_LINK if stat.S_ISLNK(entry.mode) else FileKind.SPECIAL
    found = FoundFile(path, log_dir, partition, FileName(kind=kind), entry.length, entry.mtime_ns)
    if kind is FileKind.SPECIAL:
        return (found,)
    return Obstacle(path, "a symbolic link, which is not followed: name its target as an input of its own"), found


NAMES_AT_ONCE = 1_024
"""Names of a group, and so partition directories that one process looks at before it hands over what it found."""


@dataclass(frozen=True, slots=True)
class PackedNames:
    """Names of directories in groups, each group in one text, which takes a fifth of the room of its names."""

    groups: tuple[str, ...] = ()
    """Names divided by slashes."""

    @classmethod
    def of(cls, names: Iterable[str]) -> "PackedNames":
        """Return names packed."""
        each = iter(names)
        return cls(tuple(iter(lambda: "/".join(islice(each, NAMES_AT_ONCE)), "")))

    def __iter__(self) -> Iterator[str]:
        for group in self.groups:
            yield from names_of(group)

    def __len__(self) -> int:
        return sum(group.count("/") + 1 for group in self.groups)


def names_of(group: str) -> list[str]:
    """Return the names of a group, in order."""
    return group.split("/")


# Walk everything below a path for a seal, which must miss nothing and follow no link.
#
# The order is that of path components, so that two walks over the same tree can be merged without holding either.


ITSELF = "."
"""The relative path of a root that is no directory."""


class TreeEntry(NamedTuple):
    """One file, directory or link below a root; `status` is its own, never that of a link's target."""

    path: str
    status: os.stat_result


def walk_tree(root: Path) -> Iterator[TreeEntry | Obstacle]:
    """Yield everything below the root in the order of path components, or the root itself if it is no directory.

    Args:
        root: a local path; no link below it, nor itself, is followed.

    Yields:
        Entries with paths relative to the root, and an obstacle for each that can't be looked at; a file that a broker deletes as a matter
        of course may vanish unmentioned.
    """
    try:
        status = status_of(root)
    except OSError as error:
        yield Obstacle(ITSELF, f"it can't be looked at: {error.strerror}")
        return
    if not stat.S_ISDIR(status.st_mode):
        yield TreeEntry(ITSELF, status)
        return
    names: list[Iterator[str]] = []
    folders: list[str] = []

    def enter(folder: str) -> Iterator[Obstacle]:
        try:
            with scan_directory(root / folder) as scan:
                listed = sorted(item.name for item in scan)
        except OSError as error:
            yield Obstacle(folder or ITSELF, f"the directory can't be listed: {error.strerror}")
        else:
            names.append(iter(listed))
            folders.append(folder)

    yield from enter("")
    while names:
        name = next(names[-1], None)
        if name is None:
            names.pop()
            folders.pop()
            continue
        path = join(folders[-1], name)
        try:
            status = status_of(root / path)
        except FileNotFoundError:
            if not may_vanish(name):
                yield Obstacle(path, "it vanished while its directory was read")
            continue
        except OSError as error:
            yield Obstacle(path, f"it can't be looked at: {error.strerror}")
            continue
        yield TreeEntry(path, status)
        if stat.S_ISDIR(status.st_mode):
            yield from enter(path)


_READ_WRITE = 0o6


def closed_to_owner(folder: Path, entries: Iterable[tuple[str, bool]]) -> list[str]:
    """Return what in a directory, and in those in it, its user may not read or write: what is another's, or has a mode unlike others of its kind there.

    Args:
        entries: the names in it, and which of them are directories.
    """
    found, open_kinds, inside = [], set(), []
    try:
        own = os.lstat(folder)
        if own.st_mode >> 6 & _READ_WRITE == _READ_WRITE:
            open_kinds.add(stat.S_IFDIR)
        for name, is_directory in entries if own.st_uid else ():
            status = os.lstat(folder / name)
            shift = 6 if status.st_uid == own.st_uid else 3 if status.st_gid == own.st_gid else 0
            if status.st_mode >> shift & _READ_WRITE != _READ_WRITE:
                found.append((name, status))
                continue
            open_kinds.add(stat.S_IFMT(status.st_mode))
            if is_directory:
                files = [(file, False) for file in directory_names(folder, name)]
                inside += [join(name, file) for file in closed_to_owner(folder / name, files)]
    except OSError:
        pass  # of the others it is known
    # Where none of a kind is open to its owner, the modes are those of a copy.
    closed = [name for name, one in found if one.st_uid != own.st_uid or stat.S_IFMT(one.st_mode) in open_kinds]
    return closed + inside
