"""Open evidence; no other module of the package does.

Files are opened read-only, never locked, and read with pread in windows: a file that shrinks under the reader gives
short reads, where a memory map would kill the process. No part of a path may be a symbolic link, so that a directory that
is exchanged for one after it was listed leads nowhere; the path of an input is resolved once, when it is named.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

from kforensics.errors import EvidenceNotFound, EvidenceUnreadable, MissingBytes
from kforensics.source.beside_broker import Pace
from kforensics.source.naming import stand_in
from kforensics.source.store import ForeignPath

OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LISTING_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
PASSING_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
NO_ACCESS_TIME = getattr(os, "O_NOATIME", 0)  # Linux only, and only for the owner of the file

MOST_HELD = 112
"""Directories whose descriptors are kept for the next file in them: those of a few dozen partitions on three brokers, of the 256 that some systems let a process have."""

DEEP = 64
"""Parts of a path up to which each directory is reached by way of the one above it: evidence may have thousands within each other."""

READ_NO_WAIT = getattr(os, "RWF_NOWAIT", 0)  # Linux only

SMALLEST_HOLE = 1 << 20
"""Zeros in the middle of a file may be kept as a hole: only longer ones end a run of data."""

WINDOW_LENGTH = 1 << 20
"""The bytes that are read at a time when a whole file is read."""

PAGE = 4096
"""The unit in which operating systems keep files in memory; larger ones are multiples of it."""

_pace: Pace | None = None


class ReadCounts:
    """What this process has read from evidence on its own file systems since the last `reset`, for tests and benchmarks."""

    def __init__(self) -> None:
        self.requests = 0
        self.bytes = 0

    def add(self, count: int) -> None:
        """Count one answer of the operating system."""
        self.requests += 1
        self.bytes += count

    def reset(self) -> None:
        """Begin at zero again."""
        self.requests = self.bytes = 0


read_counts = ReadCounts()


class HeldRanges(dict[str, list[tuple[tuple[int, ...], int, bytes]]]):
    """Bytes of files that were read ahead of their use, by path; `source.ranges.at_hand` fills it."""

    def add(self, path: str, version: tuple[int, ...], position: int, data: bytes) -> None:
        """Hold the bytes of a version of a file from a position on: another size or time of change is another version."""
        self.setdefault(path, []).append((version, position, data))

    def find(self, path: str, position: int, length: int, version: tuple[int, ...] | None = None) -> memoryview | None:
        """Return the bytes of a span where all of them are held in one piece: what was read before a file changed is not given as its content now."""
        for known, start, data in self.get(path, ()):
            if version is not None and version != known:
                continue
            if start <= position and position + length <= start + len(data):
                return memoryview(data)[position - start : position - start + length]
        return None


held_ranges = HeldRanges()


def limit_read_rate(bytes_per_second: int | None) -> None:
    """Limit the read rate of this process from now on."""
    global _pace  # noqa: PLW0603 - the disks are shared by all that read them
    _pace = None if bytes_per_second is None else Pace(bytes_per_second)


def read_rate_is_limited() -> bool:
    """Return whether a rate was set for this process."""
    return _pace is not None


class EvidenceFile:
    """One regular file, open for reading; `size` and `mtime_ns` are those at the time of opening."""

    _descriptor = -1
    """Negative where the bytes are not those of a file of the operating system."""

    def __init__(self, path: Path | str, status: os.stat_result, descriptor: int | None = None) -> None:
        self._named = path
        self._status = status
        self.size = status.st_size
        self.mtime_ns = status.st_mtime_ns
        if descriptor is not None:
            self._descriptor = descriptor

    @property
    def identity(self) -> tuple[int, int, int]:
        """Device, inode, and the time of the last change of its content, its name or its mode."""
        return self._status.st_dev, self._status.st_ino, self._status.st_ctime_ns

    @property
    def where(self) -> str:
        """The file on the broker, where only what a scan found of it is here, and at most some of its bytes; else empty."""
        return ""

    @cached_property
    def path(self) -> Path:
        """Where it is: of thousands of files only a message needs it."""
        return Path(self._named)

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer and return the number of bytes read, fewer than fit only at the end of the file.

        Raises:
            EvidenceUnreadable: the operating system refuses, as at a bad sector, and the message names the byte; or the file only stands in for the one of its name.
        """
        filled = self._fill(position, buffer)
        if position == 0 and filled and buffer[0]:
            problem = stand_in(os.fspath(self._named), self.size, bytes(buffer[: min(filled, 8)]), self._bytes_of)
            if problem is not None:
                raise EvidenceUnreadable(str(self.path), problem)
        return filled

    def _bytes_of(self, position: int, length: int) -> bytes:
        buffer = bytearray(length)
        return bytes(buffer[: self._fill(position, memoryview(buffer))])

    def _fill(self, position: int, buffer: memoryview) -> int:
        filled = 0
        try:
            while filled < len(buffer):
                end = len(buffer) if _pace is None else filled + _pace.piece
                count = os.preadv(self._descriptor, [buffer[filled:end]], position + filled)
                read_counts.add(count)
                if count == 0:
                    break
                filled += count
                if _pace is not None:
                    _pace.spent(count)
        except OSError as error:
            raise unreadable(self.path, error, f" at byte {position + filled}") from error
        return filled

    @property
    def version(self) -> tuple[int, ...]:
        """Return what differs once the file was written to or replaced: its identity and its size when it was opened."""
        return (*self.identity, self.size)

    @property
    def is_of_the_system(self) -> bool:
        """Return whether the operating system reads it; captures and other storage are read by their own code."""
        return self._descriptor >= 0

    def read_from_memory(self, position: int, buffer: memoryview) -> int | None:
        """Fill the buffer as far as the page cache holds the bytes, without a wait for the disk, and return their number; None where the system does not say what is there."""
        if not self.is_of_the_system or not READ_NO_WAIT or not len(buffer):
            return None
        try:
            count = os.preadv(self._descriptor, [buffer], position, READ_NO_WAIT)
        except BlockingIOError:
            return 0
        except OSError:  # of the file system (it can't tell) or of the disk, which `read_into` will meet again
            return None
        read_counts.add(count)
        if _pace is not None:
            _pace.spent(count)
        return count

    def expect_random_reads(self) -> None:
        """Keep the operating system from reading ahead of what is asked for."""
        self._advise(0, 0, "POSIX_FADV_RANDOM")

    def leave_memory(self, position: int, end: int) -> None:
        """Give the pages of a span, rounded to whole ones, back: what we have read must not displace what a broker will read again."""
        start = position - position % PAGE
        self._advise(start, end + -end % PAGE - start, "POSIX_FADV_DONTNEED")

    def _advise(self, position: int, length: int, advice: str) -> None:
        if self.is_of_the_system and hasattr(os, "posix_fadvise"):
            with suppress(OSError):  # advice only
                os.posix_fadvise(self._descriptor, position, length, getattr(os, advice))

    def read(self, position: int, length: int) -> bytes:
        """Return the bytes of a span, fewer if the file ends before; a negative position, which a damaged index may give, reads nothing."""
        length = min(length, self.size - position)
        if position < 0 or length <= 0:
            return b""
        buffer = bytearray(length)
        count = self.read_into(position, memoryview(buffer))
        return bytes(buffer) if count == length else bytes(buffer[:count])

    def windows(self, length: int, position: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes from a position up to an end, or that of the file, so many at a time."""
        while data := self.read(position, length if end is None else min(length, end - position)):
            yield data
            position += len(data)

    def read_all(self, limit: int) -> bytes:
        """Return the whole file."""
        self.require_at_most(limit)
        return self.read(0, self.size)

    def require_at_most(self, limit: int) -> None:
        """Refuse a file that is larger than such a file can reasonably be."""
        if self.size > limit:
            raise EvidenceUnreadable(
                str(self.path), f"{self.size:,} bytes are more than the {limit:,} that such a file can reasonably have"
            )

    def sha256(self) -> str:
        """Return the SHA-256 of the file as hexadecimal digits."""
        import hashlib  # noqa: PLC0415 - loads OpenSSL, which few commands need

        digest = hashlib.sha256()
        buffer = memoryview(bytearray(min(WINDOW_LENGTH, self.size + 1)))  # most files are small
        position = 0
        while count := self._fill(position, buffer):
            digest.update(buffer[:count])
            position += count
        return digest.hexdigest()

    def next_data(self, position: int) -> tuple[int, int] | None:
        """Return start and end of the next run of bytes that is no hole, None behind the last.

        Args:
            position: where to begin; inside of a run, it is the start that is returned.

        Returns:
            The run; the rest of the file where its file system knows no holes.
        """
        try:
            start = os.lseek(self._descriptor, position, os.SEEK_DATA)
            return start, os.lseek(self._descriptor, start, os.SEEK_HOLE)
        except OSError as error:
            return None if error.errno == errno.ENXIO else (position, self.size)

    def changed(self) -> bool:
        """Return whether the file has grown, shrunk, or been written to, replaced, renamed or deleted since it was opened."""
        try:
            now = os.lstat(self._named)
        except OSError:
            return True
        return (now.st_size, now.st_mtime_ns, now.st_dev, now.st_ino) != (
            self.size,
            self.mtime_ns,
            *self.identity[:2],
        )

    def missing(self) -> MissingBytes:
        """Return the error that says where the bytes are that are not here."""
        return MissingBytes(str(self.path), self.where)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _UnopenedFile(EvidenceFile):
    """A file of which ranges are held: it is opened once other bytes of it are asked for."""

    def _fill(self, position: int, buffer: memoryview) -> int:
        length = max(min(len(buffer), self.size - position), 0)
        held = held_ranges.find(os.fspath(self._named), position, length, self.version)
        if held is None:
            return super()._fill(position, buffer)
        buffer[: len(held)] = held
        return len(held)

    @cached_property
    def _descriptor(self) -> int:  # type: ignore[override]
        return _open(self._named)

    @property
    def is_of_the_system(self) -> bool:
        """Return whether it has not been closed: the operating system reads it."""
        return bool(vars(self).get("_descriptor", 0) >= 0)

    def close(self) -> None:
        """Close the descriptor, if there is one."""
        if "_descriptor" in vars(self):
            super().close()
        self._descriptor = -1


def _unopened(path: Path | str) -> EvidenceFile | None:
    """Return a file that is as it was when ranges of it were read that are held; none of another one."""
    known = held_ranges.get(os.fspath(path))
    if known is None:
        return None
    try:
        file = _UnopenedFile(path, status_of(path))
    except (OSError, ValueError):
        return None  # whoever opens it says why
    return file if any(file.version == version for version, _, _ in known) else None


def open_evidence(path: Path | str) -> EvidenceFile:
    """Open a regular file for reading; no part of its path may be a symbolic link."""
    if isinstance(path, ForeignPath):
        return path.open_as_evidence()
    if held_ranges and (held := _unopened(path)) is not None:
        return held
    try:
        descriptor = _open(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    try:
        status = os.fstat(descriptor)
        _require_regular(path, status.st_mode)
        return EvidenceFile(path, status, descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def read_evidence(path: Path | str, limit: int) -> bytes:
    """Return the bytes of a small regular file; no part of its path may be a symbolic link.

    Raises:
        EvidenceError: it is no regular file, is larger than `limit` bytes, or can't be read.
    """
    with open_evidence(path) as file:
        return file.read_all(limit)


def open_named(path: Path) -> EvidenceFile:
    """Open a regular file that a person named for itself: the way to it may lead through symbolic links."""
    if isinstance(path, ForeignPath):
        return path.open_as_evidence()
    return open_evidence(Path(os.path.realpath(path.parent), path.name))


def open_below(root: Path, relative: str) -> EvidenceFile:
    """Open a regular file for reading."""
    # Joining paths takes longer than finding a file in a capture.
    return root.open_below(relative) if isinstance(root, ForeignPath) else open_evidence(path_below(root, relative))


def path_below(root: Path, relative: str) -> Path | str:
    """Return a path below a root; of the operating system's as text, which is made in a tenth of the time of a path."""
    return root / relative if isinstance(root, ForeignPath) else f"{root}/{relative}"


def open_image(path: Path | str) -> EvidenceFile:
    """Open a disk image or a block device for reading; a symbolic link to a device, as below /dev/disk, is followed."""
    path = Path(os.path.realpath(path))
    try:
        descriptor = _open(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISBLK(status.st_mode):
            _require_regular(path, status.st_mode)
        file = EvidenceFile(path, status, descriptor)
        file.size = os.lseek(descriptor, 0, os.SEEK_END)  # a device has no length of its own
    except BaseException:
        os.close(descriptor)
        raise
    return file


def data_extents(file: EvidenceFile) -> Iterator[tuple[int, int]]:
    """Yield the runs of bytes of an open file that are no holes, of which those below `SMALLEST_HOLE` count as data, by start and end; all of it where nothing says."""
    begin, end = 0, 0
    while end < file.size:
        found = file.next_data(end)
        if found is None:
            break
        if found[0] - end >= SMALLEST_HOLE:
            if end > begin:
                yield begin, end
            begin = found[0]
        end = found[1]
    if end > begin:
        yield begin, end


def _require_regular(path: Path | str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise EvidenceUnreadable(
            str(Path(path) if isinstance(path, str) else path), f"{kind_of_mode(mode)}, not a regular file"
        )


def kind_of_mode(mode: int) -> str:
    """Name the kind of a file for a message."""
    kinds = (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISBLK, "a block device"),
        (stat.S_ISCHR, "a character device"),
    )
    return next((words for test, words in kinds if test(mode)), "a regular file")


class _BehindALinkError(OSError):
    """A directory on the way is a symbolic link."""


class _Directory:
    """A directory that was reached through no link, closed when nothing holds it any more."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.descriptor)


_held_directories: dict[str, _Directory] | None = None


@contextmanager
def directories_held() -> Iterator[None]:
    """Look at the way to a directory once for as long as the block runs: whatever takes its place meanwhile, files are opened in the one that was there."""
    global _held_directories  # noqa: PLW0603 - as the descriptors are the process's
    is_outer = _held_directories is None
    try:
        _held_directories = {} if _held_directories is None else _held_directories
        yield
    finally:
        if is_outer:
            _held_directories = None


def _directory(path: str) -> _Directory:
    if _held_directories is not None and (held := _held_directories.get(path)) is not None:
        return held
    status = os.stat(path)  # noqa: PTH116 - of each file that is opened
    found = _reached(path, status.st_dev, status.st_ino)
    if _held_directories is not None:
        if len(_held_directories) == MOST_HELD:
            _held_directories.clear()
        _held_directories[path] = found
    return found


@lru_cache(maxsize=MOST_HELD)
def _reached(path: str, device: int, inode: int) -> _Directory:
    """Return the directory that was at a path when it was looked at: as long as the same is there, it is walked to once."""
    parent, _, name = path.rpartition("/")
    if not name:
        return _directory(parent) if parent else _root()
    found = _below(_walked(parent) if path.count("/") > DEEP else _directory(parent or "/"), name, path)
    status = os.fstat(found.descriptor)
    if (status.st_dev, status.st_ino) != (device, inode):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return found


def _walked(path: str) -> _Directory:
    """Return the directory at a path of any length."""
    found, so_far = _root(), ""
    for name in filter(None, path.split("/")):
        so_far = f"{so_far}/{name}"
        found = _below(found, name, so_far)
    return found


def _root() -> _Directory:
    return _Directory(os.open("/", PASSING_FLAGS))


def _below(above: _Directory, name: str, path: str) -> _Directory:
    try:
        return _Directory(os.open(name, PASSING_FLAGS, dir_fd=above.descriptor))
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=above.descriptor, follow_symlinks=False).st_mode):
            raise _BehindALinkError(errno.ELOOP, os.strerror(errno.ELOOP), path) from None
        raise


def _place_of(path: Path | str) -> tuple[_Directory, str]:
    """Return the directory that a path is in, reached through no link, and the name in it."""
    whole = os.fspath(path)
    folder, _, name = (whole if whole[:1] == "/" else os.path.abspath(whole)).rpartition("/")  # noqa: PTH100 - text
    held = None if _held_directories is None else _held_directories.get(folder)
    return held or _directory(folder or "/"), name or "."


def _open(path: Path | str, flags: int = OPEN_FLAGS) -> int:
    directory, name = _place_of(path)
    try:
        return os.open(name, flags | NO_ACCESS_TIME, dir_fd=directory.descriptor)
    except PermissionError:
        # Of another owner: reading it will leave an access time behind, as the operating system insists.
        return os.open(name, flags, dir_fd=directory.descriptor)


@contextmanager
def scan_directory(path: Path | str) -> Iterator[Iterator["os.DirEntry[str]"]]:
    """Give the entries of a directory, as `os.scandir` does; no part of its path may be a symbolic link."""
    descriptor = _open(path, LISTING_FLAGS)
    try:
        with os.scandir(descriptor) as scan:
            yield scan
    finally:
        os.close(descriptor)


def status_of(path: Path | str) -> os.stat_result:
    """Return what the file system says of a file or a link itself; no part of its path but the last may be a symbolic link."""
    directory, name = _place_of(path)
    return os.stat(name, dir_fd=directory.descriptor, follow_symlinks=False)


def length_and_time(root: Path, relative: str) -> tuple[int, int]:
    """Return the length of a file and the time of its last change, in nanoseconds, as they are now."""
    path = path_below(root, relative)
    if isinstance(path, ForeignPath):
        with path.open_as_evidence() as file:
            return file.size, file.mtime_ns
    status = status_of(path)
    return status.st_size, status.st_mtime_ns


def link_target(path: Path) -> str:
    """Return the target of a symbolic link as it is written; no other part of its path may be one."""
    directory, name = _place_of(path)
    return os.readlink(name, dir_fd=directory.descriptor)


def unreadable(path: Path | str, error: OSError | ValueError, where: str = "") -> EvidenceNotFound | EvidenceUnreadable:
    """Describe the refusal of the operating system with its likely causes.

    Args:
        where: words that follow the problem, such as " at byte 4096".

    Returns:
        The error to be raised, `EvidenceNotFound` where nothing is at the path.
    """
    path = Path(path) if isinstance(path, str) else path
    if isinstance(error, _BehindALinkError):
        return EvidenceUnreadable(str(path), f"behind a symbolic link, {error.filename}, which is not followed")
    number = error.errno if isinstance(error, OSError) else None
    match number:
        case errno.ENOENT | errno.ENOTDIR:
            return EvidenceNotFound(
                str(path),
                "there is no such file",
                ("a mistyped path", "it was deleted or renamed while it was looked at"),
            )
        case errno.EACCES | errno.EPERM:
            return EvidenceUnreadable(
                str(path), "no permission to read it", ("run as the broker's user, or on a copy",)
            )
        case errno.ELOOP:
            return EvidenceUnreadable(str(path), "a symbolic link, which is not followed", ("name its target instead",))
        case errno.ENXIO:
            return EvidenceUnreadable(str(path), "a socket or device, not a regular file")
        case errno.EIO:
            return EvidenceUnreadable(
                str(path),
                f"the disk gives an I/O error{where}",
                ("the disk or its controller is failing: copy what is left first",),
            )
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return EvidenceUnreadable(str(path), f"it can't be read{where}: {words}")
