"""Files that are compressed whole, as logs are when they are rotated, archived or sent: gzip, bzip2, xz, zstd, lz4, and the members of a zip or a tar.

They are told by their first bytes and not by their names, and read piece by piece, whatever their length.
"""

import io
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

from kforensics.source.mapped import EvidenceFile

if TYPE_CHECKING:
    import tarfile
    import zipfile

    from _typeshed import WriteableBuffer

PIECE = 1 << 20
"""The most bytes that are yielded at a time."""

LARGEST_PACKED = 1 << 30
"""The most bytes of a zstd or lz4 file that are read: the codec library takes them at once."""

MOST_HELD, MOST_TIMES = 1 << 30, 1_000
"""The bytes, and the times its own length, beyond which no log has been seen to inflate: the lower one is no limit."""

MOST_MEMBERS = 10_000
"""The members of an archive that are looked into."""

LONGEST_MAGIC = 262
_TAR_AT, _TAR = 257, b"ustar"
_MAGICS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"PK\x03\x04": "zip",
}
_GZIP_WINDOW = 31
_XZ_MEMORY = 256 << 20
"""The most memory that the dictionary of an xz file may claim; `xz -9` claims 65 MB."""

Note = Callable[[int, str], None]
"""Takes the position and the words of what could not be read."""


def packing_of(begin: bytes) -> str:
    """Return how a file is compressed by its first bytes; empty where it is not."""
    if begin.startswith(_TAR, _TAR_AT):
        return "tar"
    return next((name for magic, name in _MAGICS.items() if begin.startswith(magic)), "")


def unpacked(
    file: EvidenceFile, *, member: str = "", most: int | None = None, note: Note | None = None
) -> Iterator[bytes]:
    """Yield what a file holds, piece by piece; nothing behind damage can be read.

    Args:
        member: the file of a zip or a tar that is meant; all of its files one after another where none is named.
        most: so many bytes, or a few more, are wanted; no more than that is read.
        note: is told what could not be read, and where.
    """
    tell = note or _ignored
    packing = packing_of(file.read(0, LONGEST_MAGIC))
    limit = max(MOST_HELD, MOST_TIMES * file.size)
    if packing == "zip":
        pieces = _members(file, member, tell)
    elif packing == "tar":
        pieces = _of_tar(_Seekable(file), member, tell)
    elif packing:
        chunks = file.windows(PIECE)
        is_part = most is not None and not member
        inflated = _streamed(islice(chunks, max((most or 0) // PIECE, 1)) if is_part else chunks, packing, tell)
        first = next(inflated, b"")
        pieces = chain((first,), inflated)
        if packing_of(first) == "tar":
            pieces = _of_tar(_Piped(_limited(pieces, limit, tell)), member, _ignored if is_part else tell)
    else:
        pieces = file.windows(PIECE)
    total = 0
    for piece in _limited(pieces, limit, tell) if packing else pieces:
        yield piece
        total += len(piece)
        if most is not None and total >= most:
            return


def _limited(pieces: Iterable[bytes], limit: int, note: Note) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        yield piece
        total += len(piece)
        if total >= limit:
            note(0, f"it holds more than {total >> 20:,} MiB, which is too much for its length: the rest is not read")
            return


def members_of(file: EvidenceFile, *, most: int | None = None) -> Iterator[str]:
    """Yield the names of the files in a zip or a tar, compressed or not; none where it is neither, or one that can't be read.

    Args:
        most: so many bytes of a compressed tar, and of what it holds, are looked through.
    """
    with suppress(*_archive_errors()):
        yield from (name for name, _ in islice(_members_in(file, most), MOST_MEMBERS))


def heads_of(file: EvidenceFile, members: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield some files of a zip or a tar, each with its first bytes, inflated; the archive is read once for all of them."""
    with suppress(*_archive_errors()):
        for name, opened in islice(_members_in(file, None), MOST_MEMBERS):
            stream = opened() if name in members else None
            if stream is not None:
                yield name, next(_of_member(iter(partial(stream.read, PIECE), b""), _ignored), b"")


def _members_in(file: EvidenceFile, most: int | None) -> Iterator[tuple[str, Callable[[], IO[bytes] | None]]]:
    packing = packing_of(file.read(0, LONGEST_MAGIC))
    if packing == "zip":
        with _archive(file) as archive:
            yield from ((one.filename, partial(archive.open, one)) for one in archive.infolist() if not one.is_dir())
    elif packing:
        chunks = islice(file.windows(PIECE), None if most is None else -(-most // PIECE))
        inflated = chunks if packing == "tar" else _streamed(chunks, packing, _ignored)
        first = next(inflated, b"")
        if packing_of(first) == "tar":
            limit = max(MOST_HELD, MOST_TIMES * file.size) if most is None else most
            whole = _limited(chain((first,), inflated), limit, _ignored)
            tar = _tar(_Seekable(file) if packing == "tar" else _Piped(whole))
            yield from ((one.name, partial(tar.extractfile, one)) for one in tar if one.isfile())


def _ignored(_position: int, _words: str) -> None:
    return


def _decoder(packing: str) -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """Return what makes a decoder of one member of a stream, and what it raises where the stream is damaged."""
    if packing == "gzip":
        import zlib  # noqa: PLC0415 - one of the codecs is needed

        return lambda: zlib.decompressobj(_GZIP_WINDOW), (zlib.error,)
    if packing == "bzip2":
        import bz2  # noqa: PLC0415 - likewise

        return bz2.BZ2Decompressor, (OSError, ValueError)
    import lzma  # noqa: PLC0415 - likewise

    return lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY), (lzma.LZMAError,)


def _streamed(chunks: Iterable[bytes], packing: str, note: Note) -> Iterator[bytes]:
    """Yield the content of a compressed stream, member by member."""
    if packing in {"zstd", "lz4"}:
        yield from _piped(chunks, packing, note)
        return
    begin, damage = _decoder(packing)
    magic = next(magic for magic, name in _MAGICS.items() if name == packing)
    decoder, is_open, position = begin(), False, 0
    for chunk in chunks:
        pending, has_more = chunk, True
        while pending or has_more:
            is_open = is_open or bool(pending)
            try:
                piece = decoder.decompress(pending, PIECE)
            except damage as error:
                note(
                    position, f"the {packing} stream is damaged near byte {position}: {error}; what follows is not read"
                )
                return
            if piece:
                yield piece
            pending, has_more = getattr(decoder, "unconsumed_tail", b""), len(piece) == PIECE
            if decoder.eof:
                pending, decoder, is_open, has_more = decoder.unused_data, begin(), False, False
                if not pending.startswith(magic[: len(pending)]):
                    return
        position += len(chunk)
    if is_open:
        note(position, f"the {packing} stream ends early; what it still held is read")


def _piped(chunks: Iterable[bytes], packing: str, note: Note) -> Iterator[bytes]:
    """Yield what the codec library inflates into a file, which is a pipe here."""
    import cramjam  # noqa: PLC0415 - few logs are compressed so

    data = b"".join(islice(chunks, LARGEST_PACKED // PIECE))
    codec: Any = cramjam.zstd if packing == "zstd" else cramjam.lz4
    reading, writing = os.pipe()
    damage: list[str] = []

    def inflate() -> None:
        try:
            codec.decompress_into(data, cramjam.File(f"/dev/fd/{writing}", read=False, write=True, truncate=False))
        except (cramjam.DecompressionError, OSError) as error:  # also where nobody reads the pipe any more
            damage.append(str(error))
        finally:
            os.close(writing)

    thread = Thread(target=inflate)
    thread.start()
    try:
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            while piece := pipe.read(PIECE):
                yield piece
    finally:
        thread.join()
    if len(data) >= LARGEST_PACKED:
        note(len(data), f"it is longer than {LARGEST_PACKED >> 20} MiB, of which the first are read: decompress a copy")
    elif damage:
        note(0, f"the {packing} stream is damaged or ends early: {damage[0]}; what it still held before that is read")


class _Seekable(io.RawIOBase):
    """A file of evidence as the library for archives reads one."""

    def __init__(self, file: EvidenceFile) -> None:
        self._file, self._position = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        count = self._file.read_into(self._position, memoryview(buffer).cast("B"))
        self._position += count
        return count


class _Piped(io.RawIOBase):
    """Pieces of a stream as the library for archives reads one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._held = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        room = memoryview(buffer).cast("B")
        self._held = self._held or next(self._pieces, b"")
        count = min(len(room), len(self._held))
        room[:count], self._held = self._held[:count], self._held[count:]
        return count


def _tar(stream: io.RawIOBase) -> "tarfile.TarFile":
    import tarfile  # noqa: PLC0415 - few logs are in archives

    return tarfile.open(fileobj=io.BufferedReader(stream, PIECE), mode="r:" if stream.seekable() else "r|")


def _of_tar(stream: io.RawIOBase, member: str, note: Note) -> Iterator[bytes]:
    """Yield the content of one file in a tar, or of all."""
    try:
        with _tar(stream) as archive:
            for one in archive:
                content = archive.extractfile(one) if one.isfile() and member in {"", one.name} else None
                if content is not None:
                    yield from _of_member(iter(partial(content.read, PIECE), b""), note)
                    if member:
                        return
    except _archive_errors() as error:
        note(0, f"the tar archive can't be read whole: {error}; what could be read before that is")


def _archive(file: EvidenceFile) -> "zipfile.ZipFile":
    import zipfile  # noqa: PLC0415 - few logs are in archives

    return zipfile.ZipFile(io.BufferedReader(_Seekable(file)))


def _archive_errors() -> tuple[type[Exception], ...]:
    """Return what is raised where an archive is damaged, encrypted, or compressed in a way that is not known."""
    import lzma  # noqa: PLC0415 - few logs are in archives
    import tarfile  # noqa: PLC0415 - as above
    import zipfile  # noqa: PLC0415 - as above
    import zlib  # noqa: PLC0415 - as above

    return (
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        RuntimeError,
        ValueError,
        LookupError,
        OSError,
    )


def _members(file: EvidenceFile, member: str, note: Note) -> Iterator[bytes]:
    """Yield the content of one file in a zip, or of all."""
    try:
        with _archive(file) as archive:
            for name in [member] if member else [one.filename for one in archive.infolist() if not one.is_dir()]:
                with archive.open(name) as stream:
                    yield from _of_member(iter(lambda: stream.read(PIECE), b""), note)
    except _archive_errors() as error:
        note(0, f"the zip archive can't be read whole: {error}; what could be read before that is")


def _of_member(pieces: Iterator[bytes], note: Note) -> Iterator[bytes]:
    """Yield the content of a file in a zip, which may be a compressed log itself."""
    first = next(pieces, b"")
    packing = packing_of(first)
    whole = chain((first,), pieces)
    yield from _streamed(whole, packing, note) if packing not in {"", "zip", "tar"} else whole
