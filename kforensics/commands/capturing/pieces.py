"""The segments that a capture reads one by one, or handed to other processes in groups."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kforensics.commands.capturing.folders import FolderPlan
from kforensics.commands.capturing.segments import SegmentTask
from kforensics.source.foreign import Entry
from kforensics.source.naming import FileName, FileSuffix, parse_file_name
from kforensics.units import TopicPartition

TASK_BYTES = 64 << 20
TASK_SEGMENTS = 256
"""Bytes and segments after which what a process read is handed over."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One segment of a directory."""

    folder: FolderPlan
    entry: Entry
    base_offset: int
    digest_key: bytes
    records_folder: str
    """The folder of the archive that its bytes go into; empty where they stay."""
    indexes: tuple[str, ...] = ()
    """Endings of the indexes that it has, but of empty ones."""

    @property
    def has_bytes(self) -> bool:
        """Whether bytes of it are taken along."""
        return bool(self.records_folder)

    @property
    def path(self) -> Path:
        """The path of the segment."""
        return self.folder.path / self.entry.name

    def task(self) -> SegmentTask:
        """Return what is to be read of it."""
        place = self.folder.place
        return SegmentTask(
            path=self.path,
            base_offset=self.base_offset,
            length=self.entry.length,
            topic_partition=TopicPartition("", 0) if place is None else place.topic_partition,
            carried_from=0 if parse_file_name(self.entry.name).is_transient else self.folder.carried_from,
            bytes_from=0 if parse_file_name(self.entry.name).is_transient else self.folder.bytes_from,
            digest_key=self.digest_key,
            by_record=self.folder.by_record,
            indexes=self.indexes,
        )


def about_to_be_removed(folder: FolderPlan, entries: Iterable[Entry]) -> Iterator[tuple[Entry, FileName, int]]:
    """Yield the segments of a directory that a broker is about to remove.

    Args:
        folder: where to look.
    """
    for entry, name, base in folder.segments(entries):
        if folder.may_vanish or name.suffix is FileSuffix.DELETED:
            yield entry, name, base


def groups_of(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Yield the segments in groups, each of which is worth a result of another process.

    Args:
        pieces: in the order in which they are read.
    """
    group: list[Piece] = []
    length = 0
    for piece in pieces:
        group.append(piece)
        length += piece.entry.length
        if length >= TASK_BYTES or len(group) >= TASK_SEGMENTS:
            yield group
            group, length = [], 0
    if group:
        yield group
