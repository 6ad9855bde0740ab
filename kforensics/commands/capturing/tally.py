"""What the directories of a capture come to, added up while their names are looked at."""

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kforensics.commands.capturing.folders import FolderPlan
from kforensics.source.foreign import Entry
from kforensics.source.naming import FileKind, parse_file_name

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
        """Add a directory.

        Args:
            folder: for which it is decided what is taken along.
        """
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
