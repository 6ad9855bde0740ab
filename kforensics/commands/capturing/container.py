"""The file of a capture while it is written: under a temporary name until all of it is there. `source/capture_file.py` reads it."""

import fcntl
import hashlib
import json
import os
import secrets
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kforensics.commands.capturing.blocks import ENCODE, SMALL_LENGTH, Block, Gatherer, Group
from kforensics.errors import UsageError
from kforensics.source.capture_file import (
    CHUNK_LENGTH,
    FORMAT,
    LENGTHS,
    MARKER,
    PART_LIMIT,
    RECORDS_FOLDER,
    Part,
    comment_of,
)
from kforensics.source.mapped import EvidenceFile

_TIME = (1980, 1, 1, 0, 0, 0)
_LEVEL = 6
_HELD_LEVEL = 1
_RECORDS_LEVEL = 1
"""Records are compressed by their producers, or there are too many of them to spend more time on."""


class DeflatedObject:
    """The text of a JSON object of numbers, held deflated while members are added: that is a sixth of its length."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(_HELD_LEVEL)
        self._held = bytearray(self._deflate.compress(b"{"))
        self._is_empty = True

    def add(self, name: str, value: int) -> None:
        """Add a member."""
        self._held += self._deflate.compress(f"{'' if self._is_empty else ','}{ENCODE(name)}:{value}".encode())
        self._is_empty = False

    def pieces(self) -> Iterator[bytes]:
        """Yield the text in pieces, without what may be added later."""
        inflate, ended = zlib.decompressobj(), self._deflate.copy()
        for data in (self._held, ended.compress(b"}"), ended.flush()):
            rest: bytes | bytearray = data
            while rest:
                yield inflate.decompress(rest, CHUNK_LENGTH)
                rest = inflate.unconsumed_tail
        yield inflate.flush()


class CaptureWriter(Gatherer):
    """Writes a capture; leaving it without `finish` removes what was written.

    Args:
        out: the name that the file gets at the end.
    """

    def __init__(self, out: Path) -> None:
        super().__init__()
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
        self._tree = DeflatedObject()
        """What `tree.json` holds: there may be a million directories."""
        self._outline = DeflatedObject()
        """What `lengths.json` holds."""
        self._block = 0
        self._large = 0
        self._records: dict[str, tuple[int, bytearray]] = {}
        """By folder: the number of the part that is gathered, and its bytes."""
        self._record_parts = 0
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
        """Write one part, and return its number."""
        info = zipfile.ZipInfo(name, _TIME)
        try:
            self._zip.writestr(info, data, compress_type=zipfile.ZIP_DEFLATED, compresslevel=level)
        except OSError as error:
            raise UsageError(f"{self.out} can't be written: {error.strerror}") from error
        return self._written(info, hashlib.sha256(data).hexdigest())

    def add_text(self, name: str, pieces: Iterable[bytes]) -> int:
        """Write one part whose bytes come in pieces, and return its number."""
        info = zipfile.ZipInfo(name, _TIME)
        info.compress_type = zipfile.ZIP_DEFLATED
        digest = hashlib.sha256()
        try:
            with self._zip.open(info, "w") as part:
                for piece in pieces:
                    part.write(piece)
                    digest.update(piece)
        except OSError as error:
            raise UsageError(f"{self.out} can't be written: {error.strerror}") from error
        return self._written(info, digest.hexdigest())

    def _written(self, info: zipfile.ZipInfo, sha256: str) -> int:
        position = self._file.tell() - info.compress_size
        self._parts.append(Part(info.filename, position, info.compress_size, info.file_size, sha256))
        return len(self._parts) - 1

    # ------------------------------------------------------------ files

    def add_large(self, file: EvidenceFile, length: int) -> tuple[dict[str, Any], int]:
        """Copy a file chunk by chunk, fewer bytes where it has become shorter, and return its content for the entry and the number of bytes that were there."""
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
        """Keep a file that comes in pieces, and return its content for the entry, and its length in bytes."""
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
        """Keep bytes of a segment; gives where they are: position, length, part (none where all are zero), and where in it."""
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

    # ------------------------------------------------------------ directories

    def keep_block(self, block: Block) -> None:
        """Write directories, and what their small files hold."""
        if sum(map(len, block.text)) > PART_LIMIT:
            raise UsageError(f"a directory has more files than a capture can describe: {block.paths[0]}")
        for path, length in zip(block.paths, block.lengths, strict=True):
            self._tree.add(path, self._block)
            if length is not None:
                self._outline.add(path, length)
        if block.tar:
            self.add_part(f"files/{self._block:06d}.tar", block.tar + b"\0" * 1024)
        self.add_text(f"tree/{self._block:06d}.json", block.text)
        self._block += 1

    def keep_column(self, name: str, data: bytes) -> None:
        """Write a column of a group of rows."""
        self.add_part(name, data)

    def reserve_groups(self, count: int) -> int:
        """Return the first of some numbers that no group of batches has or gets."""
        self._flush("batches")
        first = self.next_group
        self._groups["batches"] = Group(first + count)
        return first

    def folders(self) -> frozenset[str]:
        """Return the directories that were kept so far."""
        return frozenset(json.loads(b"".join(self._tree.pieces()))) | self._folders.keys()

    # ------------------------------------------------------------ the end

    def finish(self, manifest: Mapping[str, Any], name: Path | None = None) -> int:
        """Write the rest and the manifest, and give the file its name; gives its length.

        Args:
            name: of what was captured before it was stopped; it replaces what was left by an earlier stop.
        """
        self.end()
        for folder in list(self._records):
            self._flush_records(folder)
        self.add_text("tree.json", self._tree.pieces())
        self.add_text(LENGTHS, self._outline.pieces())
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


class CannotRedact(Exception):  # noqa: N818 - it is no error of the caller's
    """A file that can't be redacted, so that it is left out; the words say why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCapture:
    """The file that was written, and what is in it."""

    path: str
    bytes: int
    replicas: int
    segments: int
    batches: int
    """Rows a batch that it holds."""
    files: int
    """Taken along byte for byte."""
    read_bytes: int
    record_bytes: int
    """Bytes of batches with records of users that it holds: 0 unless they were asked for."""
    reused_segments: int
    """Segments that were not read, since they are as an earlier capture has them."""
    reused_bytes: int
    """Bytes of those segments on the broker."""
    blanked_records: int
    """Records and lines that a redaction could not write again without names, so that it left them out."""
    changed: tuple[str, ...]
    """Files that changed while they were read, or between the beginning and the end: the broker was running."""
