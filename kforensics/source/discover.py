"""Decide what a given path is: a file, a log directory, a partition directory, or a directory that holds several."""

import os
import re
import stat
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.errors import EvidenceNotFound, EvidenceUnreadable, NotADataDir, nearest_names
from kforensics.source.mapped import kind_of_mode, open_evidence
from kforensics.source.naming import LOG_DIR_MARKERS, FileKind, parse_file_name, parse_partition_directory
from kforensics.source.store import ForeignPath
from kforensics.source.walk import Listing, Listings, Obstacle, join
from kforensics.words import listed

DEEPEST_SEARCH = 8
"""The levels below a given directory that are searched for log directories."""

EMPTY_DIRECTORY = "an empty directory"
"""What is wrong with one."""

MOST_SEARCHED = 50_000
"""The most directories that a search for log directories reads."""


class Shape(StrEnum):
    """The kind of thing at a path."""

    FILE = "file"
    LOG_DIR = "log-dir"
    PARTITION = "partition"
    FILES = "files"
    """Files that a broker writes, outside of any log directory: server logs, a copied index cache."""
    PARENT = "parent"


class Place(NamedTuple):
    """A given path and what it holds; the other paths are relative to its root."""

    listings: Listings
    """The listings below the root, kept so that no directory is listed twice."""
    shape: Shape
    log_dirs: tuple[str, ...] = ()
    """The log directories of a parent; the empty path is the root itself."""
    partitions: tuple[str, ...] = ()
    """The partition directories of a parent that lie outside of any log directory."""
    file_dirs: tuple[str, ...] = ()
    """The directories of a parent that hold server logs and other files of a broker."""
    other_files: tuple[str, ...] = ()
    """Files below that have names which no broker writes: logs and archives may be among them."""
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def root(self) -> Path:
        """Return the path with its symbolic link resolved."""
        return self.listings.root


PARTITION_FILES = frozenset(
    {
        FileKind.SEGMENT,
        FileKind.OFFSET_INDEX,
        FileKind.TIME_INDEX,
        FileKind.TXN_INDEX,
        FileKind.PRODUCER_SNAPSHOT,
        FileKind.LEADER_EPOCH_CHECKPOINT,
        FileKind.PARTITION_METADATA,
        FileKind.QUORUM_STATE,
        FileKind.METADATA_SNAPSHOT,
    }
)

_REDPANDA_SEGMENT = re.compile(r"[0-9]+-[0-9]+-v[0-9]+\.(log|base_index|compaction_index)", re.ASCII)
_REDPANDA_NAMES = frozenset({".redpanda_data_dir", "config_cache.yaml", "startup_log"})
_ZOOKEEPER_FILE = re.compile(r"(log|snapshot)\.[0-9a-f]+", re.ASCII)

_REDPANDA = "it was written by Redpanda, which keeps its segments in another format"
_ZOOKEEPER = "it was written by ZooKeeper; kforensics reads what the brokers wrote"
_EMPTY_BELOW = "empty in it: {}; the volume is not mounted, or the disk is new or was emptied, and a broker with ZooKeeper would start there with empty logs"
_TOO_HIGH = "the data directories lie elsewhere: see log.dirs and metadata.log.dir in the broker's server.properties"


def discover(given: Path) -> Place:
    """Decide what a given path is; only here a symbolic link is followed.

    Raises:
        EvidenceUnreadable: it can't be read, or is neither a file nor a directory.
        NotADataDir: it is a directory with nothing that a Kafka broker writes.
    """
    root = _resolve(given)
    listings = Listings(root)
    mode = _mode(given, root)
    if stat.S_ISREG(mode):
        with open_evidence(root):  # a file that was named and can't be opened is no input
            pass
        return Place(listings=listings, shape=Shape.FILE)
    if not stat.S_ISDIR(mode):
        raise EvidenceUnreadable(str(given), f"{kind_of_mode(mode)}, neither a file nor a directory")
    listing = listings.of("")
    if not listing.entries and listing.obstacles:
        raise EvidenceUnreadable(str(given), listing.obstacles[0].message, ("run as the broker's user, or on a copy",))
    if not listing.entries:
        raise NotADataDir(str(given), EMPTY_DIRECTORY, ("the volume is not mounted", "the broker never started here"))
    if is_log_dir(listings, "", listing):
        return Place(listings=listings, shape=Shape.LOG_DIR, log_dirs=("",))
    if is_partition(listing):
        return Place(listings=listings, shape=Shape.PARTITION)
    search = _Search(listings)
    search.look_below("", listing, 0)
    if search.log_dirs or search.partitions:
        return Place(
            listings=listings,
            shape=Shape.PARENT,
            log_dirs=tuple(search.log_dirs),
            partitions=tuple(search.partitions),
            file_dirs=tuple(search.file_dirs),
            other_files=tuple(search.other_files),
            obstacles=tuple(search.obstacles),
        )
    if search.file_dirs:
        others, obstacles = tuple(search.other_files), tuple(search.obstacles)
        return Place(listings=listings, shape=Shape.FILES, other_files=others, obstacles=obstacles)
    if search.obstacles and not search.causes:
        raise EvidenceUnreadable(str(given / search.obstacles[0].path), search.obstacles[0].message)
    empty = (_EMPTY_BELOW.format(listed(search.empty)),) if search.empty else ()
    raise NotADataDir(
        str(given),
        "not a Kafka data directory, and none lies below it",
        (*search.causes, *empty) or (_TOO_HIGH,),
    )


def is_log_dir(listings: Listings, relative: str, listing: Listing) -> bool:
    """Return whether a broker's `log.dirs` could name the directory: by a file that only log directories hold, or a partition directory in it."""
    if has_marker(listing):
        return True
    folders = [entry.name for entry in listing.entries if entry.is_directory]
    is_any = any(parse_partition_directory(one) and is_partition(listings.of(join(relative, one))) for one in folders)
    # Beside whole log directories a partition directory is a copy that somebody put there.
    return is_any and not any(has_marker(listings.of(join(relative, one))) for one in folders)


def has_marker(listing: Listing) -> bool:
    """Return whether a directory holds a file that only log directories hold."""
    return any(entry.name in LOG_DIR_MARKERS for entry in listing.entries if not entry.is_directory)


def is_partition(listing: Listing) -> bool:
    """Return whether the directory holds a file that only partition directories hold."""
    if any(entry.name in LOG_DIR_MARKERS for entry in listing.entries):
        return False
    names = (parse_file_name(entry.name) for entry in listing.entries if not entry.is_directory)
    return any(name.kind in PARTITION_FILES and name.remote_segment_id is Absent.NOT_APPLICABLE for name in names)


class _Search:
    """A search for log directories below a directory, bounded in breadth, never through symbolic links."""

    def __init__(self, listings: Listings) -> None:
        self._listings = listings
        self._searched = 0
        self.log_dirs: list[str] = []
        self.partitions: list[str] = []
        self.file_dirs: list[str] = []
        self.other_files: list[str] = []
        self.obstacles: list[Obstacle] = []
        self.causes: list[str] = []
        self.empty: list[str] = []
        """Folders that hold nothing."""

    def look_below(self, folder: str, listing: Listing, level: int) -> None:
        self._searched += 1
        self.obstacles.extend(listing.obstacles)
        names = [entry.name for entry in listing.entries if not entry.is_directory]
        if any(parse_file_name(name).kind is not FileKind.UNKNOWN for name in names):
            self.file_dirs.append(folder)
        self.other_files += [join(folder, one) for one in names if parse_file_name(one).kind is FileKind.UNKNOWN]
        if any(name in _REDPANDA_NAMES or _REDPANDA_SEGMENT.fullmatch(name) for name in names):
            self._add_cause(_REDPANDA)
        elif any(_ZOOKEEPER_FILE.fullmatch(name) for name in names):
            self._add_cause(_ZOOKEEPER)
        if folder and not listing.entries and not listing.obstacles:
            self.empty.append(folder)
        for entry in listing.entries:
            if not entry.is_directory:
                continue
            path = join(folder, entry.name)
            if level == DEEPEST_SEARCH or self._searched >= MOST_SEARCHED:
                self.obstacles.append(Obstacle(path, "not looked into: name the data directories themselves"))
                return
            below = self._listings.of(path)
            if is_log_dir(self._listings, path, below):
                self.log_dirs.append(path)
                self.obstacles.extend(below.obstacles)
            elif is_partition(below):
                self.partitions.append(path)
            else:
                self.look_below(path, below, level + 1)

    def _add_cause(self, cause: str) -> None:
        if cause not in self.causes:
            self.causes.append(cause)


def _resolve(given: Path) -> Path:
    if isinstance(given, ForeignPath):
        return given.resolved()
    try:
        return Path(os.path.realpath(given, strict=True))
    except FileNotFoundError as error:
        nearest = nearest_paths(given)
        if given.is_symlink():
            link = f"a symbolic link to {os.readlink(given)}, which is not there"  # noqa: PTH115 - as it is written
            raise EvidenceNotFound(str(given), link, ("the volume is not mounted",), nearest=nearest) from error
        causes = ("a mistyped path", "the volume is not mounted")
        raise EvidenceNotFound(str(given), "there is no such file or directory", causes, nearest=nearest) from error
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise EvidenceUnreadable(str(given), f"it can't be looked at: {words}") from error


def nearest_paths(given: Path) -> tuple[str, ...]:
    """Return paths that exist and are most like one that does not: the first of its parts that is missing, replaced by its likest neighbours."""
    parent, missing = given, []
    try:
        while not parent.is_dir():
            if parent == parent.parent:
                return ()
            missing.append(parent.name)
            parent = parent.parent
        names = [one.name for one in parent.iterdir()]
    except OSError:
        return ()
    if not missing:
        return ()
    below = missing[-2::-1]
    found = (parent.joinpath(name, *below) for name in nearest_names(missing[-1], names))
    return tuple(str(path) for path in found if path.exists())


def _mode(given: Path, root: Path) -> int:
    try:
        return root.mode() if isinstance(root, ForeignPath) else root.lstat().st_mode
    except FileNotFoundError as error:
        raise EvidenceNotFound(str(given), "there is no such file or directory", ("a mistyped path",)) from error
    except OSError as error:
        raise EvidenceUnreadable(str(given), f"it can't be looked at: {error.strerror}") from error
