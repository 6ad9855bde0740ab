"""The directories that a capture reads: where they are, how the capture calls them, and which of their files it takes along byte for byte."""

import heapq
import stat
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.discovery.log_spans import begins_like_a_log
from kforensics.evidence.discovery.partition_dirs import LogDirState, PartitionPlace
from kforensics.source.naming import (
    LOST_AND_FOUND,
    DirectoryState,
    FileKind,
    FileName,
    parse_file_name,
    parse_partition_directory,
)
from kforensics.source.store import Entry
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
        """Yield the segments that are scanned and stay where they are."""
        if self.is_metadata:
            return
        for entry in self.each() if entries is None else entries:
            if ".log" not in entry.name:
                continue
            name = parse_file_name(entry.name)
            if name.kind is FileKind.SEGMENT and isinstance(name.base_offset, int) and stat.S_ISREG(entry.mode):
                yield entry, name, name.base_offset

    def takes(self, entry: Entry) -> bool:
        """Whether a file, as it was listed, is taken along byte for byte, by its name and size; of files without a known name the content decides."""
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
        rows, obstacles = self.found.listings.rows(path, once=True)
        entries = tuple(map(Entry._make, rows))
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
        planned[inner].place, planned[inner].obstacles = self.place(name), obstacles
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
    """Plan a directory and those below it, but for some of them."""
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


# What the directories of a capture come to, added up while their names are looked at.


SAMPLES = 16
"""The longest segments that are kept, to estimate by."""

LOG_SHARE = 0.12
SMALL_SHARE = 0.25
"""What deflating leaves of log files, and of small files with their heads in a tar file."""

_ZERO_SHARE = 0.001
"""Likewise of zeros, which brokers preallocate behind the entries of an index."""

_BYTES_PER_ENTRY = 4_096
"""Of a segment, by the default of index.interval.bytes."""

_LONGEST_ENTRY = 12

_NAME_BYTES = 12
_HEAD_BYTES = 60


@dataclass(slots=True)
class Tally:
    """Numbers and lengths of files, and how much of them a capture takes along."""

    segments: int = 0
    files: int = 0
    """Taken along byte for byte."""
    copied: int = 0
    """Bytes of those files."""
    scanned: int = 0
    """Bytes of segments."""
    carried: float = 0.0
    """Bytes of batches of which rows are taken along."""
    recorded: int = 0
    """Bytes of batches of which digests of records are."""
    at_stake: float = 0.0
    """Bytes of batches that are themselves taken along where that is asked for."""
    size: float = 0.0
    """Of the capture in bytes, but for rows."""
    longest: list[tuple[int, str]] = field(default_factory=list)
    """The longest segments: length and path."""

    def add(self, folder: FolderPlan) -> None:
        """Add a directory."""
        found = list(folder.segments())
        bases = sorted(base for _, _, base in found)
        indexed = _entry_bytes(folder.each()) if folder.is_metadata else {}
        for entry, _, base in found:
            self.segments += 1
            self.scanned += entry.length
            self.carried += _share(bases, base, entry.length, folder.carried_from) * entry.length
            self.recorded += entry.length if folder.by_record else 0
            if folder.with_content:
                self.size += entry.length * SMALL_SHARE
            else:
                self.at_stake += _share(bases, base, entry.length, folder.bytes_from) * entry.length
            if len(self.longest) < SAMPLES or entry.length > self.longest[0][0]:
                self._keep((entry.length, str(folder.path / entry.name)))
        for entry in folder.each():
            if not entry.is_directory and folder.takes(entry):
                self.files += 1
                self.copied += entry.length
                self.size += _packed(entry, indexed)
            else:
                self.size += _NAME_BYTES

    def merge(self, other: "Tally") -> None:
        """Add what other directories come to."""
        self.segments += other.segments
        self.files += other.files
        self.copied += other.copied
        self.scanned += other.scanned
        self.carried += other.carried
        self.recorded += other.recorded
        self.at_stake += other.at_stake
        self.size += other.size
        for one in other.longest:
            self._keep(one)

    def _keep(self, one: tuple[int, str]) -> None:
        if len(self.longest) < SAMPLES:
            heapq.heappush(self.longest, one)
        else:
            heapq.heappushpop(self.longest, one)


def _entry_bytes(entries: Iterable[Entry]) -> dict[int, int]:
    """Return by base offset the most bytes that the entries of a segment's index take, where they are of the default interval."""
    named = ((parse_file_name(one.name), one.length) for one in entries if ".log" in one.name)
    return {
        name.base_offset: (length // _BYTES_PER_ENTRY + 1) * _LONGEST_ENTRY
        for name, length in named
        if name.kind is FileKind.SEGMENT and isinstance(name.base_offset, int)
    }


def _packed(entry: Entry, indexed: Mapping[int, int]) -> float:
    """Return the bytes that a file takes in a capture that takes it along byte for byte."""
    name = parse_file_name(entry.name)
    if name.kind in {FileKind.LOG_FILE, FileKind.UNKNOWN}:
        return entry.length * LOG_SHARE
    zeros = 0
    if name.kind in {FileKind.OFFSET_INDEX, FileKind.TIME_INDEX} and isinstance(name.base_offset, int):
        zeros = max(entry.length - indexed.get(name.base_offset, entry.length), 0)
    return _HEAD_BYTES + (entry.length - zeros) * SMALL_SHARE + zeros * _ZERO_SHARE


def _share(bases: Sequence[int], base: int, length: int, start: int) -> float:
    """Return the share of a segment that lies above an offset, by the base offsets of the segments."""
    if base >= start or not length:
        return 1.0
    at = bisect_right(bases, base)
    if at == len(bases):
        return 0.5
    return min(max((bases[at] - start) / (bases[at] - base), 0.0), 1.0)
