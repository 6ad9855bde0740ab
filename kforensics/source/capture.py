"""A capture as a tree of files: what `kforensics capture` wrote on a broker, read where it was brought to.

Nothing is unpacked to disk. `capture_file` reads the archive itself.
"""

import os
import stat
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.errors import EvidenceError, EvidenceNotFound, EvidenceUnreadable, MissingBytes
from kforensics.source.capture_file import (
    CHUNK_LENGTH,
    ENDING,
    LOCAL_HEADER,
    MARKER,
    Capture,
    CapturedEntry,
    checked_count,
    real_path,
)
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.store import Entry, ForeignPath, Store, store_of


class HeldBytes(NamedTuple):
    """Bytes of a segment that a capture holds, contiguous in one of its parts."""

    position: int
    """In the segment on the broker."""
    length: int
    part: int | None
    """The number of the part; none where all of the bytes are zero."""
    start: int
    """In that part."""

    @property
    def end(self) -> int:
        """The position behind the last of them."""
        return self.position + self.length


def is_capture(path: Path) -> bool:
    """Whether a regular file is a capture, or has the name of one; on other storage names alone are looked into, and what can't be read is none."""
    if isinstance(path, CapturePath) or (isinstance(path, ForeignPath) and path.suffix != ENDING):
        return False
    try:
        real = path if isinstance(path, ForeignPath) else Path(os.path.realpath(path, strict=True))
        if not stat.S_ISREG(real.mode() if isinstance(real, ForeignPath) else real.lstat().st_mode):
            return False
        with open_evidence(real) as file:
            head = file.read(0, 30 + len(MARKER))
    except (EvidenceError, OSError, ValueError):
        return False
    return (head[:4] == LOCAL_HEADER and head[30:] == MARKER.encode()) or path.suffix == ENDING


def captured_roots(path: Path) -> tuple[Path, ...]:
    """Return the roots that a capture was taken of; a path in a capture is one of its own."""
    store = store_of(path)
    if store.capture is not None and store.capture.is_interrupted:
        raise store.capture.refuse("taking it was interrupted: the command that took it continues from there")
    return (path,) if store.capture is None or store.inner else tuple(path / name for name in store.capture.roots)


def split_at_capture(path: Path) -> Path | None:
    """Return the path as one inside of a capture, where a part of it names one: `broker-7.kfc/data-0/orders-3`.

    Args:
        path: any path; a local one that exists either is a capture or leads into none.
    """
    if isinstance(path, CapturePath):
        return path
    if not isinstance(path, ForeignPath) and os.path.lexists(path):
        return _looked_at(path, path) if is_capture(path) else None
    for one in (path, *path.parents):
        if is_capture(one):
            if isinstance(one, ForeignPath):
                open_capture(one)
                return CapturePath(path)
            return _looked_at(path, one)
    return None


def _looked_at(path: Path, capture: Path) -> "CapturePath":
    """Return a path into a capture, which is opened again where the file was replaced since this process opened it."""
    known = _opened.get(_key(capture))
    if known is not None and known.is_replaced():
        del _opened[_key(capture)]
    return CapturePath(path)


def captures_in(folder: Path, entries: Iterable[Entry]) -> tuple[Path, ...]:
    """Return the captures in a directory, by name."""
    names = (one.name for one in entries if one.name.endswith(ENDING) and not one.name.startswith("."))
    found = (split_at_capture(folder / name) for name in names if not isinstance(folder, CapturePath))
    return tuple(one for one in found if one is not None)


def _held_bytes(rows: Any, size: int) -> tuple[HeldBytes, ...]:
    found: list[HeldBytes] = []
    end = 0
    for position, length, part, start in rows:
        one = HeldBytes(
            checked_count(position),
            checked_count(length),
            None if part is None else checked_count(part),
            checked_count(start),
        )
        if one.position < end or not one.length or one.end > size:
            raise ValueError("bytes that overlap, or lie behind the end")
        found.append(one)
        end = one.end
    return tuple(found)


_opened: dict[str, Capture] = {}
"""By path; a file that was replaced since it was opened is another capture."""


def open_capture(path: Path) -> Capture:
    """Return the capture at a path, opened once for as long as the same file is there."""
    key = _key(path)
    known = _opened.get(key)
    if known is None or known.is_replaced():
        known = _opened[key] = Capture(path)
    return known


def with_records(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the captures that are open in this process, hold records of users, and are, or hold, one of the paths."""
    given = tuple(paths)
    return tuple(
        sorted(
            {
                name
                for name, capture in ((str(one.path), one) for one in _opened.values())
                if capture.holds_records and any(one == name or one.startswith(f"{name}/") for one in given)
            }
        )
    )


def _key(path: Path) -> str:
    """Return all parts of a path; what a path on other storage shows of itself is less."""
    return Path.__str__(path)


def _arrived(path: Path, inner: str, sha256: str) -> "CapturePath":
    """Return the path of something in a capture, which is opened where it arrives: a process may have read another capture of that name before."""
    known = _opened.get(_key(path))
    if known is None or known.sha256 != sha256:
        open_capture(path)
    return CapturePath(path, inner) if inner else CapturePath(path)


class CapturePath(ForeignPath):
    """A path whose first parts name a capture, and whose others name something in it."""

    def __str__(self) -> str:
        capture = self._foreign()
        if capture is None:
            return _key(self)
        inner = self.place()[1]
        return f"{capture.path}/{inner}" if inner else str(capture.path)

    def __reduce__(self) -> tuple[Any, ...]:
        capture, inner = self.place()
        return _arrived, (capture.path, inner, capture.sha256)

    def _foreign(self) -> Capture | None:
        """Return the capture where it is on other storage, whose first part is the scheme of its URI."""
        if not self.parts or not self.parts[0].endswith(":"):
            return None
        key = _key(self)
        found = (one for name, one in _opened.items() if key == name or key.startswith(f"{name}/"))
        return next((one for one in found if isinstance(one.path, ForeignPath)), None)

    def store(self) -> Store:
        """Return the capture, and the path in it."""
        capture, inner = self.place()
        return Store(not isinstance(capture.path, ForeignPath), capture, inner)

    def place(self) -> tuple[Capture, str]:
        """Return the capture, and the path in it; empty for the capture itself."""
        if self._place is None:
            self._place = self._find_place()
        return self._place

    _place: tuple[Capture, str] | None = None

    def _find_place(self) -> tuple[Capture, str]:
        text = _key(self)
        parts = text.split("/")
        for at in range(len(parts), 0, -1):
            capture = _opened.get("/".join(parts[:at]))
            if capture is not None:
                return capture, "/".join(parts[at:])
        whole = Path(text)
        for one in (whole, *whole.parents):
            if is_capture(one):
                return open_capture(one), "/".join(parts[len(str(one).split("/")) :])
        raise EvidenceNotFound(text, "there is no such capture")

    def resolved(self) -> "CapturePath":
        """Return the path below the real path of the capture."""
        capture, inner = self.place()
        real = real_path(capture.path)
        open_capture(real)
        return CapturePath(real, inner) if inner else CapturePath(real)

    def resolve(self, strict: bool = False) -> "CapturePath":  # noqa: ARG002 - as pathlib has it
        """Return the path below the real path of the capture, whatever `strict` says."""
        return self.resolved()

    def _entry(self) -> CapturedEntry:
        capture, inner = self.place()
        entry = capture.entry(inner)
        if entry is None:
            raise FileNotFoundError(2, "there is no such file or directory", str(self))
        return entry

    def mode(self) -> int:
        """Return the mode on the broker; a `FileNotFoundError` where nothing was captured there."""
        capture, inner = self.place()
        if not inner or capture.has_folder(inner):
            return stat.S_IFDIR | 0o755
        return self._entry().mode

    def lstat(self) -> os.stat_result:
        """Return mode, length and time of change, as they were on the broker."""
        mode = self.mode()
        if stat.S_ISDIR(mode):
            return os.stat_result((mode, 0, 0, 1, 0, 0, 0, 0, 0, 0))
        entry = self._entry()
        seconds = entry.mtime_ns // 1_000_000_000
        numbers = (entry.mode, 0, 0, 1, 0, 0, entry.length, 0, seconds, 0)
        return os.stat_result(numbers, {"st_mtime_ns": entry.mtime_ns, "st_mtime": entry.mtime_ns / 1e9})

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - captures follow no links
        """Whether a directory was captured there, whatever `follow_symlinks` says."""
        try:
            return stat.S_ISDIR(self.mode())
        except OSError:
            return False

    is_fixed = True

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of the directory."""
        return self.entries_below("")

    def entries_below(self, relative: str) -> Iterator[Entry]:
        """Return the entries of a directory."""
        capture, inner = self._below(relative)
        try:
            found = capture.folder(inner)
        except KeyError:
            raise FileNotFoundError(2, "it is not in the capture", str(self / relative)) from None
        except EvidenceError as error:
            raise OSError(None, error.problem) from error
        return iter(found.entries)

    def segment_bytes_below(self, relative: str) -> int | None:
        """Return the bytes of the segments of a partition directory that holds files alone; none where listing it has to show them."""
        capture, inner = self._below(relative)
        return capture.segment_bytes(inner)

    def open_as_evidence(self) -> EvidenceFile:
        """Return the file, with its bytes or with what was found in them."""
        return self.open_below("")

    def open_below(self, relative: str) -> EvidenceFile:
        """Return a file, with its bytes or with what was found in them.

        Raises:
            EvidenceError: it is not in the capture, is no regular file, or its bytes stayed on the broker.
        """
        capture, inner = self._below(relative)
        entry = capture.entry(inner)
        if entry is None:
            raise EvidenceNotFound(str(self / relative), "there is no such file in the capture")
        if not stat.S_ISREG(entry.mode):
            raise EvidenceUnreadable(str(self / relative), "not a regular file")
        if "segment" in entry.content:
            return CapturedSegment(capture, inner, entry)
        try:
            return _bytes_of(capture, inner, entry)
        except (KeyError, TypeError, ValueError) as error:
            raise capture.refuse(f"what it says of the file {inner} is impossible: {error}") from error

    def _below(self, relative: str) -> tuple[Capture, str]:
        capture, inner = self.place()
        return capture, f"{inner}/{relative}" if inner and relative else inner or relative


class _Inside(EvidenceFile):
    """A file in a capture."""

    capture: Capture
    inner: str

    @cached_property
    def path(self) -> CapturePath:  # of thousands of files only a message needs it
        return CapturePath(self.capture.path, self.inner)

    def close(self) -> None:
        """Do nothing: the capture stays open."""


class CapturedFile(_Inside):
    """A file whose bytes a capture holds."""

    def __init__(self, capture: Capture, inner: str, entry: CapturedEntry, parts: tuple[int, ...], start: int) -> None:
        self.size = entry.length
        self.mtime_ns = entry.mtime_ns
        self.capture = capture
        self.inner = inner
        self._parts = parts
        self._start = start

    def _fill(self, position: int, buffer: memoryview) -> int:
        filled = 0
        while filled < len(buffer) and position + filled < self.size:
            at = self._start + position + filled
            number, within = (0, at) if self._start or len(self._parts) == 1 else divmod(at, CHUNK_LENGTH)
            data = self.capture.part(self._parts[number])
            piece = memoryview(data)[within : within + min(len(buffer) - filled, self.size - position - filled)]
            if not len(piece):
                break
            buffer[filled : filled + len(piece)] = piece
            filled += len(piece)
        return filled

    def read(self, position: int, length: int) -> bytes:
        """Return the bytes of a span, fewer if the file ends before; a negative position reads nothing."""
        if len(self._parts) > 1:
            return super().read(position, length)
        end = min(position + length, self.size)
        if not 0 <= position < end:
            return b""
        return self.capture.part(self._parts[0])[self._start + position : self._start + end]

    def changed(self) -> bool:
        """Return false: a capture never changes."""
        return False


class CapturedSegment(_Inside):
    """A segment of which a capture holds what a scan found, and perhaps some of its bytes."""

    def __init__(self, capture: Capture, inner: str, entry: CapturedEntry) -> None:
        self.size = entry.length
        self.mtime_ns = entry.mtime_ns
        self.capture = capture
        self.inner = inner
        self.block = entry.block
        self.row: Mapping[str, Any] = entry.content["segment"] if isinstance(entry.content["segment"], dict) else {}
        self._held: tuple[HeldBytes, ...] | None = None

    @property
    def where(self) -> str:
        """The file on the broker."""
        return self.capture.where(self.inner)

    def held(self) -> tuple[HeldBytes, ...]:
        """Return the bytes that the capture holds, in the order of their positions; none overlap."""
        if self._held is None:
            try:
                self._held = _held_bytes(self.row.get("bytes") or (), self.size)
            except (TypeError, ValueError) as error:
                raise self.capture.refuse(
                    f"what it says of the bytes of {self.inner} is impossible: {error}"
                ) from error
        return self._held

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer as from the file on the broker, and return the number of bytes read, fewer than fit only at its end.

        Raises:
            MissingBytes: some of the bytes stayed on the broker.
        """
        held, filled = self.held(), 0
        wanted = max(min(len(buffer), self.size - position), 0)
        at = bisect_right(held, position, key=lambda one: one.position) - 1
        while filled < wanted:
            if not 0 <= at < len(held) or not held[at].position <= position + filled < held[at].end:
                raise self.missing()
            one, within = held[at], position + filled - held[at].position
            count = min(wanted - filled, one.length - within)
            piece = bytes(count) if one.part is None else self.capture.record_bytes(one.part, one.start + within, count)
            buffer[filled : filled + count] = piece
            filled, at = filled + count, at + 1
        return filled

    def changed(self) -> bool:
        """Whether it changed while it was captured."""
        return bool(self.row.get("changed"))


def _bytes_of(capture: Capture, inner: str, entry: CapturedEntry) -> "CapturedFile":
    """Return a file whose bytes were taken along."""
    content = entry.content
    if "tar" in content:
        number = capture.tar_of(entry.block)
        start = checked_count(content["tar"])
        if start + entry.length > capture.part_length(number):
            raise capture.refuse(f"the file {inner} ends behind the part that it is in")
        return CapturedFile(capture, inner, entry, (number,), start)
    if "large" in content:
        first, count = (checked_count(one) for one in content["large"])
        numbers = tuple(range(first, first + min(count, len(capture.parts()))))
        lengths = [capture.part_length(number) for number in numbers]
        if sum(lengths) != entry.length or any(length != CHUNK_LENGTH for length in lengths[:-1]):
            raise capture.refuse(f"the parts of the file {inner} do not add up to its length")
        return CapturedFile(capture, inner, entry, numbers, 0)
    if "problem" in content:
        raise EvidenceUnreadable(f"{capture.path}/{inner}", str(content["problem"]))
    raise MissingBytes(f"{capture.path}/{inner}", capture.where(inner))
