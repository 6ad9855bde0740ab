"""What a capture holds of directories while it is gathered: entries, small files and rows, until they are worth parts of the archive."""

import json
import stat
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.commands.capturing.folders import FolderPlan
from kforensics.commands.capturing.segments import SegmentTask
from kforensics.evidence.captured.columns import Columns, npy_of
from kforensics.source.naming import FileKind, FileName, FileSuffix, parse_file_name
from kforensics.source.store import Entry
from kforensics.units import TopicPartition

GROUP_ROWS = 1 << 18
"""Rows after which the columns of a group are written."""

MOST_PIECES = 1_024
"""Arrays of a column that are kept apart before they are joined."""

BLOCK_FOLDERS = 256
BLOCK_BYTES = 4 << 20
PIECE_ENTRIES = 1_024
"""Entries of a directory whose text is one piece of its block."""

SMALL_LENGTH = 256 << 10
"""Bytes up to which a file goes into the tar file of its block; larger ones have parts of their own."""

ENCODE = json.JSONEncoder(separators=(",", ":")).encode
_USTAR_NAME = 100
"""Bytes of a name in the oldest kind of head of a tar file."""
_USTAR_LAST_SECOND = 8**11 - 1
"""Of the year 2242; the entry in the tree has the time as it is."""


class Block(NamedTuple):
    """Directories whose entries are one part of the archive, and whose small files are another."""

    paths: tuple[str, ...]
    text: list[bytes]
    """The entries by directory, as JSON, in pieces: a log directory may have a million of them, whose text is not joined."""
    tar: bytes
    lengths: tuple[int | None, ...]
    """Of each directory, the bytes of its segments; none where its entries have to be looked at to know what is in it."""


class Gatherer:
    """Gathers directories, and hands blocks and columns over as they become large; here it keeps them.

    Args:
        first_group: the number of the first group of rows.
    """

    def __init__(self, first_group: int = 0) -> None:
        self.blocks: list[Block] = []
        self.columns: list[tuple[str, bytes]] = []
        """Parts of the archive: names and bytes."""
        self._folders: dict[str, list[bytes]] = {}
        """Of the block that is gathered, by path, as pieces of JSON."""
        self._folder_bytes = 0
        self._lengths: list[int | None] = []
        self._tar = bytearray()
        self._groups = {"batches": Group(first_group), "records": Group()}

    @property
    def next_group(self) -> int:
        """The number that the next group of batches will have."""
        group = self._groups["batches"]
        return group.number + bool(group.rows)

    def keep_block(self, block: Block) -> None:
        """Hand a block over."""
        self.blocks.append(block)

    def keep_column(self, name: str, data: bytes) -> None:
        """Hand a column of a group of rows over."""
        self.columns.append((name, data))

    def add_small(self, path: str, data: bytes, mtime_ns: int) -> dict[str, Any]:
        """Keep a small file in the tar file of the block, and return its content for the entry."""
        info = tarfile.TarInfo(path)
        info.size, info.mtime = len(data), min(max(mtime_ns // 1_000_000_000, 0), _USTAR_LAST_SECOND)
        is_plain = (
            len(path) <= _USTAR_NAME and path.isascii()
        )  # a head of another kind takes five times as long to make
        self._tar += info.tobuf(tarfile.USTAR_FORMAT if is_plain else tarfile.PAX_FORMAT, errors="surrogateescape")
        start = len(self._tar)
        self._tar += data
        self._tar += b"\0" * (-len(data) % tarfile.BLOCKSIZE)
        return {"tar": start}

    def add_rows(self, table: str, pieces: list[Columns]) -> list[list[int]]:
        """Keep the rows of a segment, and return the runs that they are in: group, first row, count."""
        group = self._groups[table]
        runs: list[list[int]] = []
        for columns in pieces:
            size = len(next(iter(columns.values())))
            if runs and runs[-1][0] == group.number:
                runs[-1][2] += size
            else:
                runs.append([group.number, group.rows, size])
            group.add(columns, size)
            if group.rows >= GROUP_ROWS:
                self._flush(table)
        return runs

    def _flush(self, table: str) -> None:
        group = self._groups[table]
        for name, pieces in group.pieces.items():
            self.keep_column(f"{table}/{group.number:06d}/{name}.npy", npy_of(_joined(pieces)))
        self._groups[table] = Group(group.number + 1) if group.rows else group

    def add_folder(self, path: str, entries: Iterable[Mapping[str, Any]]) -> None:
        """Keep what a directory holds."""
        pieces: list[bytes] = []
        outline = _Outline()

        def texts() -> Iterator[str]:
            for one in entries:
                outline.add(one)
                yield ENCODE(one)

        each = texts()
        while text := ",".join(islice(each, PIECE_ENTRIES)):
            pieces += [b",", text.encode()] if pieces else [text.encode()]
        self._folders[path] = pieces
        self._lengths.append(outline.length)
        self._folder_bytes += sum(map(len, pieces))
        if len(self._folders) >= BLOCK_FOLDERS or self._folder_bytes >= BLOCK_BYTES or len(self._tar) >= BLOCK_BYTES:
            self.end_block()

    def end_block(self) -> None:
        """Hand the directories over that were kept since the last block.

        Raises:
            UsageError: one directory has more files than a part can describe, or the disk can't be written.
        """
        if not self._folders and not self._tar:
            return
        paths = tuple(self._folders)
        pieces = [b"{"]
        for path, text in self._folders.items():
            pieces += [b"," if len(pieces) > 1 else b"", ENCODE(path).encode(), b":[", *text, b"]"]
        self._folders, self._folder_bytes = {}, 0
        block = Block(paths, [*pieces, b"}"], bytes(self._tar), tuple(self._lengths))
        self._lengths, self._tar = [], bytearray()
        self.keep_block(block)

    def end(self) -> None:
        """Hand all over that is still gathered."""
        self.end_block()
        for table in self._groups:
            self._flush(table)


class _Outline:
    """What the names of a directory show: nothing but files, and segments in use among them."""

    def __init__(self) -> None:
        self._bytes = 0
        self._is_plain = True
        self._has_segments = False

    def add(self, entry: Mapping[str, Any]) -> None:
        self._is_plain &= stat.S_ISREG(entry["mode"])
        if ".log" in entry["name"]:
            name = parse_file_name(entry["name"])
            self._has_segments |= name.kind is FileKind.SEGMENT
            self._is_plain &= not name.is_transient
            self._bytes += entry["length"] if name.kind is FileKind.SEGMENT else 0

    @property
    def length(self) -> int | None:
        return self._bytes if self._is_plain and self._has_segments else None


class Group:
    """Columns that gather until they are worth parts of their own."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.rows = 0
        self.pieces: dict[str, list[NDArray[Any]]] = {}

    def add(self, columns: Columns, size: int) -> None:
        """Add rows."""
        for name, values in columns.items():
            pieces = self.pieces.setdefault(name, [])
            pieces.append(values)
            if len(pieces) >= MOST_PIECES:  # of tiny segments the arrays would take more than what is in them
                self.pieces[name] = [_joined(pieces)]
        self.rows += size


def _joined(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(pieces) if len(pieces) > 1 else pieces[0]


# The segments that a capture reads one by one, or handed to other processes in groups.


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
    """Yield the segments of a directory that a broker is about to remove."""
    for entry, name, base in folder.segments(entries):
        if folder.may_vanish or name.suffix is FileSuffix.DELETED:
            yield entry, name, base


def groups_of(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Yield the segments in groups, each of which is worth a result of another process."""
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
