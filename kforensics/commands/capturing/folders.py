"""The directories that a capture reads: where they are, how the capture calls them, and which of their files it takes along byte for byte."""

import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.discovery.log_heads import begins_like_a_log
from kforensics.evidence.discovery.partition_dirs import LogDirState, PartitionPlace
from kforensics.source.foreign import Entry
from kforensics.source.naming import (
    LOST_AND_FOUND,
    DirectoryState,
    FileKind,
    FileName,
    parse_file_name,
    parse_partition_directory,
)
from kforensics.source.walk import DEEPEST, Listings, Obstacle, PackedNames, join

_BYTE_FOR_BYTE = frozenset(
    {
        FileKind.TXN_INDEX,
        FileKind.PRODUCER_SNAPSHOT,
        FileKind.LEADER_EPOCH_CHECKPOINT,
        FileKind.OFFSET_CHECKPOINT,
        FileKind.META_PROPERTIES,
        FileKind.PARTITION_METADATA,
        FileKind.QUORUM_STATE,
        FileKind.METADATA_SNAPSHOT,
        FileKind.CLEAN_SHUTDOWN,
        FileKind.REMOTE_LOG_STATE,
        FileKind.LOG_FILE,
        FileKind.SERVER_PROPERTIES,
    }
)

LARGEST_COPY = 4 << 30
"""Bytes of a file that are taken along; a metadata log's segments end at 1 GiB, and longer logs are divided into files."""


@dataclass(slots=True, kw_only=True)
class FolderPlan:
    """One directory: where it is, what it is in the capture, and what its listing said."""

    root: Path
    """Of the input that it belongs to."""
    relative: str
    """Of the directory below that root; citations use such paths."""
    inner: str
    """Of the directory in the capture."""
    listings: Listings | None = None
    """Of the root; none of a directory of which only what leads to data is taken along."""
    with_directories: bool = True
    held: tuple[Entry, ...] | None = None
    """Its entries, of a partition directory, which is listed when it is its turn."""
    obstacles: tuple[Obstacle, ...] = ()
    """What could not be read of it when it was listed."""
    children: dict[str, Entry] | None = None
    """Directories in it that its listing does not give, or that are all that is taken along."""
    place: PartitionPlace | None = None
    is_metadata: bool = False
    holds_logs: bool = False
    """A directory of log files: what is a log by its content is taken along whatever its name."""
    carried_from: int = 0
    """Rows are taken along of all batches that end at this offset or above."""
    bytes_from: int = 0
    """Likewise of their bytes, where bytes are asked for."""
    by_record: bool = False
    with_content: bool = False
    """A log of the coordinators, whose records are taken along."""

    @property
    def path(self) -> Path:
        """The path of the directory."""
        return self.root / self.relative

    @property
    def may_vanish(self) -> bool:
        """Whether a broker is about to remove the directory."""
        if not self.inner.endswith("-delete"):
            return False
        name = parse_partition_directory(self.inner.rpartition("/")[2])
        return name is not None and name.state is DirectoryState.DELETED

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries that are taken along."""
        return self.held if self.held is not None else tuple(self.each())

    def each(self) -> Iterator[Entry]:
        """Yield the entries that are taken along, made one by one: a log directory may have a million of them."""
        if self.held is not None:
            yield from self.held
            return
        for one in self.listings.each(self.relative) if self.listings is not None else ():
            if not one.is_directory or (self.with_directories and one.name != LOST_AND_FOUND):
                yield one
        yield from (self.children or {}).values()

    def segments(self, entries: Iterable[Entry] | None = None) -> Iterator[tuple[Entry, FileName, int]]:
        """Yield the segments that are scanned and stay where they are.

        Args:
            entries: of the directory, where they are at hand.
        """
        if self.is_metadata:
            return
        for entry in self.each() if entries is None else entries:
            if ".log" not in entry.name:
                continue
            name = parse_file_name(entry.name)
            if name.kind is FileKind.SEGMENT and isinstance(name.base_offset, int) and stat.S_ISREG(entry.mode):
                yield entry, name, name.base_offset

    def takes(self, entry: Entry) -> bool:
        """Whether a file is taken along byte for byte, by its name; of files without a known name the content decides.

        Args:
            entry: of the directory, as it was listed; one larger than `LARGEST_COPY` is not taken.
        """
        name = parse_file_name(entry.name)
        if not stat.S_ISREG(entry.mode) or entry.length > LARGEST_COPY:
            return False
        if name.kind in {FileKind.SEGMENT, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX}:
            return self.is_metadata
        if name.kind in _BYTE_FOR_BYTE:
            return name.remote_segment_id is Absent.NOT_APPLICABLE
        return name.kind is FileKind.UNKNOWN and self.holds_logs and begins_like_a_log(self.path / entry.name)


@dataclass(slots=True, kw_only=True)
class RootPlan:
    """One of the paths that were named."""

    given: Path
    name: str
    """In the capture."""
    real: Path
    folders: list[FolderPlan] = field(default_factory=list)
    """All but the partition directories of log directories."""
    log_dirs: list["LogDirPlan"] = field(default_factory=list)
    file: Path | None = None
    """The path itself, where it is a file."""


@dataclass(slots=True, kw_only=True)
class LogDirPlan:
    """A log directory, of whose partition directories nothing is kept but their names: there may be a million of them."""

    found: FoundInput
    path: str
    """Relative to the input."""
    inner: str
    """In the capture."""
    state: LogDirState | None = None
    """None where the input holds no logs, so that nothing of its partitions is to be decided."""
    urgent: list[str] = field(default_factory=list)
    """The partition directories that a broker is about to remove, or in which it is about to remove segments."""
    names: PackedNames = field(default_factory=PackedNames)
    """All partition directories but those that a broker is about to remove."""
    vanishing: tuple[str, ...] = ()
    """Those that a broker is about to remove."""

    def list_names(self) -> None:
        """Take the names of the partition directories from the listing of the log directory."""
        vanishing: list[str] = []

        def names() -> Iterator[str]:
            for entry in self.found.listings.each(self.path):
                parsed = parse_partition_directory(entry.name) if entry.is_directory else None
                if parsed is not None and parsed.state is DirectoryState.DELETED:
                    vanishing.append(entry.name)
                elif parsed is not None:
                    yield entry.name

        self.names = PackedNames.of(names())
        self.vanishing = tuple(vanishing)

    def place(self, name: str) -> PartitionPlace | None:
        """Return the place of a partition directory; none where the input holds no logs."""
        parsed = parse_partition_directory(name)
        if self.state is None or parsed is None:
            return None
        return PartitionPlace(
            state=self.state,
            path=join(self.path, name),
            topic_partition=parsed.topic_partition,
            directory_state=parsed.state.value,
        )

    def folders(self, name: str) -> list[FolderPlan]:
        """Return the plans of a partition directory and of what is below it, as they are listed now; nothing is decided yet."""
        path, inner = join(self.path, name), f"{self.inner}/{name}"
        listing = self.found.listings.once(path)
        entries = listing.entries
        if any(one.is_directory for one in entries):
            planned: dict[str, FolderPlan] = {}
            add_folders(planned, inner, self.found, path, DEEPEST - 1)
            for folder in planned.values():
                folder.held = folder.entries
            self.found.listings.forget(path)
        else:
            parsed = parse_partition_directory(name)
            is_metadata = parsed is not None and parsed.is_metadata
            root = self.found.root
            planned = {inner: FolderPlan(root=root, relative=path, inner=inner, held=entries, is_metadata=is_metadata)}
        planned[inner].place, planned[inner].obstacles = self.place(name), listing.obstacles
        return list(planned.values())


def add_folders(
    planned: dict[str, FolderPlan],
    inner: str,
    found: FoundInput,
    relative: str,
    levels: int,
    *,
    holds_logs: bool = False,
    without_partitions: bool = False,
) -> None:
    """Plan a directory and those below it, but for some of them.

    Args:
        planned: where they are added, by their names in the capture.
        found: the input that it belongs to.
        relative: of the directory below that input.
        holds_logs: it is a directory of log files.
        without_partitions: partition directories directly below it are left out.
    """
    below = [
        entry
        for entry in found.listings.each(relative)
        if entry.is_directory and not (without_partitions and parse_partition_directory(entry.name) is not None)
    ]
    name = parse_partition_directory((found.root / relative).name)
    if inner not in planned:
        planned[inner] = FolderPlan(
            root=found.root,
            relative=relative,
            inner=inner,
            listings=found.listings,
            with_directories=bool(levels),
            is_metadata=name is not None and name.is_metadata,
            holds_logs=holds_logs,
        )
    if levels:
        for entry in below:
            if entry.name != LOST_AND_FOUND:
                path = join(relative, entry.name)
                add_folders(planned, f"{inner}/{entry.name}", found, path, levels - 1, holds_logs=holds_logs)
