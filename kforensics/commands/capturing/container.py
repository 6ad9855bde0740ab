"""The file of a capture while it is written: under a temporary name until all of it is there. `source/capture.py` reads it."""

import fcntl
import hashlib
import json
import os
import secrets
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kforensics.errors import UsageError
from kforensics.evidence.captured.columns import Columns, npy_of
from kforensics.source.capture import CHUNK_LENGTH, FORMAT, MARKER, PART_LIMIT, RECORDS_FOLDER, Part, comment_of
from kforensics.source.mapped import EvidenceFile

GROUP_ROWS = 1 << 18
"""Rows after which the columns of a group are written."""

MOST_PIECES = 1_024
"""Arrays of a column that are kept apart before they are joined."""

BLOCK_FOLDERS = 256
BLOCK_BYTES = 4 << 20
SMALL_LENGTH = 256 << 10
"""Bytes up to which a file goes into the tar file of its block; larger ones have parts of their own."""

_ENCODE = json.JSONEncoder(separators=(",", ":")).encode
_TIME = (1980, 1, 1, 0, 0, 0)
_LEVEL = 6
_USTAR_NAME = 100
"""Bytes of a name in the oldest kind of head of a tar file."""
_RECORDS_LEVEL = 1
"""Records are compressed by their producers, or there are too many of them to spend more time on."""


class CaptureWriter:
    """Writes a capture; leaving it without `finish` removes what was written.

    Args:
        out: the name that the file gets at the end.

    Raises:
        UsageError: nothing can be written there.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        # In containers each process may have the number 1: a name of its own tells them apart, and the lock whether it is being written.
        self.partial = out.with_name(f".{out.name}.{secrets.token_hex(4)}.part")
        try:
            self._file = self.partial.open("xb")
            with suppress(OSError):  # a file system without locks
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"{out} can't be written: {error.strerror}") from error
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        self._parts: list[Part] = []
        self._tree = bytearray(b"{")
        """What `tree.json` holds, as its text: there may be a million directories."""
        self._block = 0
        self._folders: dict[str, bytes] = {}
        """Of the block that is gathered, by path, as JSON."""
        self._folder_bytes = 0
        self._tar = bytearray()
        self._large = 0
        self._records: dict[str, tuple[int, bytearray]] = {}
        """By folder: the number of the part that is gathered, and its bytes."""
        self._record_parts = 0
        self._groups = {"batches": _Group(), "records": _Group()}
        self._is_finished = False

    def __enter__(self) -> Self:
        try:
            self._zip.writestr(zipfile.ZipInfo(MARKER, _TIME), b"1\n", compress_type=zipfile.ZIP_STORED)
        except OSError as error:
            self._discard()
            raise UsageError(f"{self.out} can't be written: {error.strerror or error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_finished:
            self._discard()

    def _discard(self) -> None:
        self._zip.fp = None  # its directory is not to be written any more
        with suppress(OSError):  # what was not written yet does not fit, either
            self._file.close()
        self.partial.unlink(missing_ok=True)

    def add_part(self, name: str, data: bytes, level: int = _LEVEL) -> int:
        """Write one part, and return its number.

        Args:
            name: in the archive.
            data: all of its bytes, which are deflated.
            level: of zlib.

        Raises:
            UsageError: the disk is full, or can't be written for another reason.
        """
        info = zipfile.ZipInfo(name, _TIME)
        try:
            self._zip.writestr(info, data, compress_type=zipfile.ZIP_DEFLATED, compresslevel=level)
            position = self._file.tell() - info.compress_size
        except OSError as error:
            raise UsageError(f"{self.out} can't be written: {error.strerror}") from error
        self._parts.append(Part(name, position, info.compress_size, len(data), hashlib.sha256(data).hexdigest()))
        return len(self._parts) - 1

    # ------------------------------------------------------------ files

    def add_small(self, path: str, data: bytes, mtime_ns: int) -> dict[str, Any]:
        """Keep a small file in the tar file of the block, and return its content for the entry.

        Args:
            path: in the capture.
            data: all of its bytes.
            mtime_ns: when it was last changed, in ns since 1970.
        """
        info = tarfile.TarInfo(path)
        info.size, info.mtime = len(data), max(mtime_ns // 1_000_000_000, 0)
        is_plain = (
            len(path) <= _USTAR_NAME and path.isascii()
        )  # a head of another kind takes five times as long to make
        self._tar += info.tobuf(tarfile.USTAR_FORMAT if is_plain else tarfile.PAX_FORMAT, errors="surrogateescape")
        start = len(self._tar)
        self._tar += data
        self._tar += b"\0" * (-len(data) % tarfile.BLOCKSIZE)
        return {"tar": start}

    def add_large(self, file: EvidenceFile, length: int) -> tuple[dict[str, Any], int]:
        """Copy a file chunk by chunk, and return its content for the entry, and the number of bytes that were there.

        Args:
            file: open.
            length: how many bytes to copy; fewer are copied where the file has become shorter.

        Raises:
            UsageError: the capture can't be written.
            EvidenceUnreadable: the file can't be read.
        """
        first, count, copied = len(self._parts), 0, 0
        while copied < length or not count:
            data = file.read(copied, min(CHUNK_LENGTH, length - copied))
            self.add_part(f"large/{self._large:06d}/{count:06d}", data)
            count, copied = count + 1, copied + len(data)
            if len(data) < CHUNK_LENGTH:
                break
        self._large += 1
        return {"large": [first, count]}, copied

    def add_pieces(self, path: str, pieces: Iterable[bytes], mtime_ns: int) -> tuple[dict[str, Any], int]:
        """Keep a file that comes in pieces, and return its content for the entry, and its length in bytes.

        Args:
            path: in the capture.
            pieces: its bytes, in order.
            mtime_ns: when it was last changed, in ns since 1970.

        Raises:
            UsageError: the capture can't be written.
        """
        buffer, first, count, length = bytearray(), len(self._parts), 0, 0
        for piece in pieces:
            buffer += piece
            while len(buffer) >= CHUNK_LENGTH:
                self.add_part(f"large/{self._large:06d}/{count:06d}", bytes(buffer[:CHUNK_LENGTH]))
                count, length = count + 1, length + CHUNK_LENGTH
                del buffer[:CHUNK_LENGTH]
        if not count and len(buffer) <= SMALL_LENGTH:
            return self.add_small(path, bytes(buffer), mtime_ns), len(buffer)
        self.add_part(f"large/{self._large:06d}/{count:06d}", bytes(buffer))
        self._large += 1
        return {"large": [first, count + 1]}, length + len(buffer)

    # ------------------------------------------------------------ records

    def add_records(
        self, file: EvidenceFile, position: int, end: int, folder: str = RECORDS_FOLDER
    ) -> list[list[int | None]]:
        """Keep bytes of a segment; gives where they are: position, length, part (none where all are zero), and where in it.

        Args:
            file: the segment; one that is shorter by now gives fewer.
            position: of the first of the bytes.
            end: the position behind the last.
            folder: of the archive.
        """
        held: list[list[int | None]] = []
        while position < end:
            number, gathered = self._gathering(folder)
            data = file.read(position, min(CHUNK_LENGTH - len(gathered), end - position))
            if not data:
                break
            if data.count(0) == len(data):
                held.append([position, len(data), None, 0])
            else:
                held.append([position, len(data), number, len(gathered)])
                gathered += data
                if len(gathered) >= CHUNK_LENGTH:
                    self._flush_records(folder)
            position += len(data)
        return held

    def _gathering(self, folder: str) -> tuple[int, bytearray]:
        if folder not in self._records:
            self._records[folder] = self._record_parts, bytearray()
            self._record_parts += 1
        return self._records[folder]

    def _flush_records(self, folder: str) -> None:
        number, gathered = self._records.pop(folder)
        if gathered:
            self.add_part(f"{folder}/{number:06d}", bytes(gathered), _RECORDS_LEVEL)

    # ------------------------------------------------------------ rows

    def add_rows(self, table: str, pieces: list[Columns]) -> list[list[int]]:
        """Keep the rows of a segment, and return the runs that they are in: group, first row, count.

        Args:
            table: `batches` or `records`.
            pieces: columns of one length each, in file order.

        Raises:
            UsageError: the capture can't be written.
        """
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
            self.add_part(f"{table}/{group.number:06d}/{name}.npy", npy_of(_joined(pieces)))
        self._groups[table] = _Group(group.number + 1) if group.rows else group

    # ------------------------------------------------------------ the tree

    def add_folder(self, path: str, entries: Iterable[Mapping[str, Any]]) -> None:
        """Keep what a directory holds.

        Args:
            path: in the capture.
            entries: as the tree of a capture has them; they are made one by one.

        Raises:
            UsageError: the capture can't be written.
        """
        text = bytearray()
        for one in entries:
            text += b"," if text else b""
            text += _ENCODE(one).encode()
        self._tree += f"{'' if len(self._tree) == 1 else ','}{_ENCODE(path)}:{self._block}".encode()
        self._folders[path] = bytes(text)
        self._folder_bytes += len(text)
        if len(self._folders) >= BLOCK_FOLDERS or self._folder_bytes >= BLOCK_BYTES or len(self._tar) >= BLOCK_BYTES:
            self.end_block()

    def folders(self) -> frozenset[str]:
        """Return the directories that were kept so far."""
        return frozenset(json.loads(self._tree_data()))

    def _tree_data(self) -> bytes:
        return bytes(self._tree) + b"}"

    def end_block(self) -> None:
        """Write the directories that were kept since the last block.

        Raises:
            UsageError: one directory has more files than a part can describe, or the disk can't be written.
        """
        if not self._folders and not self._tar:
            return
        data = (
            b"{" + b",".join(b"%b:[%b]" % (_ENCODE(path).encode(), text) for path, text in self._folders.items()) + b"}"
        )
        if len(data) > PART_LIMIT:
            raise UsageError(f"a directory has more files than a capture can describe: {next(iter(self._folders))}")
        if self._tar:
            self.add_part(f"files/{self._block:06d}.tar", bytes(self._tar) + b"\0" * 1024)
        self.add_part(f"tree/{self._block:06d}.json", data)
        self._block += 1
        self._folders, self._folder_bytes, self._tar = {}, 0, bytearray()

    # ------------------------------------------------------------ the end

    def finish(self, manifest: Mapping[str, Any], name: Path | None = None) -> int:
        """Write the rest and the manifest, and give the file its name; gives its length.

        Args:
            manifest: what the capture says of itself.
            name: of what was captured before it was stopped; it replaces what was left by an earlier stop.

        Raises:
            UsageError: that is not possible.
        """
        self.end_block()
        for folder in list(self._records):
            self._flush_records(folder)
        for table in self._groups:
            self._flush(table)
        self.add_part("tree.json", self._tree_data())
        whole = {"schema": FORMAT, **manifest, "parts": [one._asdict() for one in self._parts]}
        self.add_part("manifest.json", json.dumps(whole, indent=1).encode())
        end = self._parts[-1]
        self._zip.comment = comment_of(end.position, end.stored, end.length, end.sha256)
        try:
            self._zip.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            length = self._file.tell()
            self._file.close()
            if name is None and os.path.lexists(self.out):
                raise UsageError(f"{self.out} exists; kforensics overwrites nothing")
            self.partial.replace(name or self.out)
        except OSError as error:
            raise UsageError(f"{self.out} can't be written: {error.strerror}") from error
        self._is_finished = True
        return length


class _Group:
    """Columns that gather until they are worth parts of their own."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.rows = 0
        self.pieces: dict[str, list[NDArray[Any]]] = {}

    def add(self, columns: Columns, size: int) -> None:
        for name, values in columns.items():
            pieces = self.pieces.setdefault(name, [])
            pieces.append(values)
            if len(pieces) >= MOST_PIECES:  # of tiny segments the arrays would take more than what is in them
                self.pieces[name] = [_joined(pieces)]
        self.rows += size


def _joined(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
