"""The directory that records are written to: its files, which are whole or not there, and the thread that writes them."""

import hashlib
import os
import queue
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kforensics.commands.outside import check_outside
from kforensics.errors import KforensicsError, UsageError

MOST_WAITING = 1
"""Pieces of work that wait: each holds some bytes, so there are few."""

MANY_WAITING = 8
"""Pieces of work that wait where they mostly hold places in files and no bytes."""

Work = Callable[[], None]


class Foreground:
    """Does work at once, in the thread that gives it: where other processes take the other cores, threads would only hold memory."""

    def do(self, work: Work) -> None:
        """Do the work at once."""
        work()

    def wait(self) -> None:
        """Return at once: all work was done when it was given."""

    def close(self) -> None:
        """Return at once: there is no thread to end."""


class Background:
    """One thread that does work in the order in which it is given; it begins with the first, and an error of it is raised by the next call.

    Args:
        most_waiting: pieces of work that may wait.
    """

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._queue: queue.Queue[Work | None] = queue.Queue(most_waiting)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def do(self, work: Work) -> None:
        """Do this after everything that was given before."""
        self._raise()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        self._queue.put(work)

    def wait(self) -> None:
        """Wait until everything is done."""
        self._queue.join()
        self._raise()

    def close(self) -> None:
        """End the thread when what was given is done; errors are put aside."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                if self._error is None:
                    work()
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                self._error = error
            finally:
                self._queue.task_done()
        self._queue.task_done()


PARTIAL = ".partial"
_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_UNSAFE = re.compile(r"[^a-zA-Z0-9._-]")
_LONGEST_NAME = 255
"""Bytes of a name that file systems take; what is written here is ASCII."""
_LONGEST_ENDING = len(".timeindex")
_BUFFER_LENGTH = 1 << 20
_PIECE_LENGTH = 256 << 10
_WRITTEN_AT_ONCE = 1 << 20
"""The most bytes of one write: for larger ones Linux looks for larger pieces of free memory, which takes longer than copying."""
_LEFT_IN_MEMORY = 64 << 20
"""Bytes at the end of a file that is written which the page cache may keep; what lies before them is asked to be written and dropped."""
_DROPPED_AT_ONCE = 8 << 20


class WriteFailed(KforensicsError):  # noqa: N818 - named like its siblings
    """A file of the output could not be written; what is there keeps its name ending in `.partial`."""

    def __init__(self, path: str, error: OSError | MemoryError) -> None:
        super().__init__(path, error)
        self.path = path
        self.error = error

    def __str__(self) -> str:
        if isinstance(self.error, MemoryError):
            return f"{self.path} can't be written: not enough memory"
        return f"{self.path} can't be written: {self.error.strerror or self.error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file of the output."""

    path: str
    """Relative to the directory."""
    bytes: int
    sha256: str


class OutFile:
    """A file while it is written; without `finish` it stays as it is, named `.partial`.

    Args:
        name: relative to it.
    """

    def __init__(self, root: Path, name: str, *, beside: bool = True) -> None:
        self.name = name
        self.length = 0
        self._path = root / name
        self._partial = root / (name + PARTIAL)
        self._digest = hashlib.sha256()
        self._pieces: list[bytes | bytearray | memoryview] = []
        self._written = self._begun = self._dropped = 0
        """Positions up to which this process has written, has asked the system to bring to the disk, and to keep no more in memory."""
        self._waiting = 0
        self._background: Background | Foreground = Background() if beside else Foreground()
        self._hashing: Background | Foreground = Background() if beside else Foreground()
        try:
            self._descriptor = os.open(self._partial, _FLAGS, _FILE_MODE)
        except FileExistsError as error:
            # The folder was empty: a process that was killed leaves its task to another one.
            why = FileExistsError(error.errno, "a process that wrote it was killed, or another program made it")
            raise WriteFailed(str(self._partial), why) from error
        except OSError as error:
            raise WriteFailed(str(self._partial), error) from error

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Add bytes, which must not change any more, since they are written later, and return their number."""
        self._pieces.append(data)
        self._waiting += len(data)
        if self._waiting >= _BUFFER_LENGTH:
            self.flush()
        return len(data)

    def write_lines(self, lines: Iterable[bytes]) -> None:
        """Add lines, each with its line break."""
        self.write(b"".join(lines))

    def pause(self) -> None:
        """Write what waits and end the threads, so that processes can be forked that write to the same file."""
        self.digest()
        self._background.close()
        self._background = Background(MANY_WAITING)
        self._hashing.close()

    def digest(self) -> Any:
        """Return the SHA-256 of the bytes so far, which more can be added to."""
        self.flush()
        self._background.wait()
        self._hashing.wait()
        return self._digest.copy()

    def place(self) -> tuple[int, Any]:
        """Return what `go_back` needs to make the file as it is now."""
        digest = self.digest()
        return self.length, digest

    def go_back(self, place: tuple[int, Any]) -> None:
        """Take back what was added since."""
        self.digest()  # nothing waits any more
        try:
            os.ftruncate(self._descriptor, place[0])
            os.lseek(self._descriptor, place[0], os.SEEK_SET)
        except OSError as error:
            raise WriteFailed(str(self._partial), error) from error
        self.length, self._digest = place[0], place[1].copy()
        self._written, self._begun = self.length, min(self._begun, self.length)

    def append(self, pieces: Sequence[bytes | memoryview]) -> int:
        """Write bytes in a forked process while this one writes nothing, and return their number, for `appended` in this one."""
        for data in pieces:
            self._put(data)
        count = sum(map(len, pieces))
        end = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        if end > _LEFT_IN_MEMORY:
            self._drop(end - count, end)  # it begins to be written; it is dropped when the other process has hashed it
        return count

    def appended(self, count: int) -> None:
        """Take note of bytes that forked processes wrote behind those so far."""
        self._background.do(partial(self._hash, self.length, self.length + count))
        self.length += count

    def flush(self) -> None:
        """Give what waits to the system, beside the main thread."""
        if not self._pieces:
            return
        pieces, self._pieces, self._waiting = self._pieces, [], 0
        self.length += sum(map(len, pieces))
        self._background.do(partial(self._write, pieces))

    def _write(self, pieces: "list[bytes | bytearray | memoryview]") -> None:
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._hashing.do(partial(self._digest.update, data))
        self._put(data)
        self._written += len(data)
        if self._written - self._begun >= _DROPPED_AT_ONCE and self._written > _LEFT_IN_MEMORY:
            self._drop(self._begun, self._written)  # it begins to be written
            self._begun = self._written
            self._drop_behind(self._written)

    def _hash(self, position: int, end: int) -> None:
        buffer = memoryview(bytearray(min(_PIECE_LENGTH, end - position)))
        while position < end:
            try:
                count = os.preadv(self._descriptor, [buffer[: end - position]], position)
            except OSError as error:
                raise WriteFailed(str(self._partial), error) from error
            if not count:
                raise WriteFailed(str(self._partial), OSError("it became shorter meanwhile"))
            self._digest.update(buffer[:count])
            position += count
        self._drop_behind(end)

    def _drop_behind(self, end: int) -> None:
        """Let the page cache drop what lies well before the end of the bytes that are written and hashed.

        What is written is not read again, and other programs of this machine, such as its broker, need that memory.
        """
        to = (end - _LEFT_IN_MEMORY) // _DROPPED_AT_ONCE * _DROPPED_AT_ONCE
        if to > self._dropped:
            self._drop(self._dropped, to)
            self._dropped = to

    def _drop(self, position: int, end: int) -> None:
        """Ask the system to begin writing a range of the file, and to drop what of it is written already."""
        if hasattr(os, "posix_fadvise"):  # not on macOS
            with suppress(OSError):  # advice that a file system does not take
                os.posix_fadvise(self._descriptor, position, end - position, os.POSIX_FADV_DONTNEED)

    def _put(self, data: bytes | bytearray | memoryview) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._descriptor, left[:_WRITTEN_AT_ONCE]) :]
        except OSError as error:
            raise WriteFailed(str(self._partial), error) from error

    def tell(self) -> int:
        """Return the bytes that were added so far."""
        return self.length + self._waiting

    def finish(self) -> WrittenFile:
        """Give it its name, now that all of it is written; the system brings it to the disk when it will."""
        digest = self.digest()
        try:
            self.close()
            if os.path.lexists(self._path):
                raise FileExistsError(17, "File exists")
            self._partial.rename(self._path)
        except OSError as error:
            raise WriteFailed(str(self._path), error) from error
        return WrittenFile(path=self.name, bytes=self.length, sha256=digest.hexdigest())

    def discard(self) -> None:
        """Remove a file that is not finished."""
        self.close()
        self._partial.unlink(missing_ok=True)

    def close(self) -> None:
        """Give the descriptor back; a file that was not finished keeps its name ending in `.partial`."""
        self._background.close()
        self._hashing.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class OutFolder:
    """The directory; it is made when the first file is.

    Args:
        root: a new or empty directory; None where nothing is to be written.
    """

    def __init__(self, root: Path | None) -> None:
        self.is_plan = root is None
        self.root = root or Path(os.devnull)
        self._names: list[str] = []

    def make(self) -> None:
        """Make it, and keep it to its owner."""
        if self.is_plan:
            return
        try:
            self.root.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        except OSError as error:
            raise WriteFailed(str(self.root), error) from error

    def open(self, name: str, *, beside: bool = True) -> OutFile:
        """Return a new file, whose folders are made; parts of its name that are longer than a file system takes are shortened."""
        name = _fitting(name)
        folder = self.root
        try:
            for part in name.split("/")[:-1]:
                folder /= part
                with suppress(FileExistsError):  # another process may have made it a moment ago
                    folder.mkdir(mode=_FOLDER_MODE)
                if not folder.is_dir() or folder.is_symlink():
                    raise FileExistsError(17, "File exists")
        except OSError as error:
            raise WriteFailed(str(folder), error) from error
        file = OutFile(self.root, name, beside=beside)
        self._names.append(name)
        return file

    def discard(self, others: Iterable[str] = ()) -> None:
        """Remove the files that were made through this object, finished or not: what is refused leaves nothing behind."""
        for name in (*self._names, *map(_fitting, others)):
            for path in (self.root / name, self.root / (name + PARTIAL)):
                path.unlink(missing_ok=True)
        self._names.clear()

    def take_back(self, name: str) -> None:
        """Let the names of all files in a folder end in `.partial`, since others that belong to them are missing."""
        for path in sorted((self.root / _fitting(name)).glob("*")):
            if path.suffix != PARTIAL:
                with suppress(OSError):  # the failure that is reported came before
                    path.rename(f"{path}{PARTIAL}")

    def write(self, name: str, data: bytes) -> WrittenFile:
        """Write a whole file, and return what the manifest says of it."""
        with self.open(name) as file:
            file.write(data)
            return file.finish()


def check_folder(out: Path, inputs: Sequence[Path]) -> None:
    """Refuse a directory that would lie inside the evidence or holds anything already."""
    if os.path.lexists(out):
        if out.is_symlink() or not out.is_dir():
            raise UsageError(f"{out} is no directory; kforensics overwrites nothing")
        if any(out.iterdir()):
            raise UsageError(f"{out} is not empty; kforensics overwrites nothing: name a new directory")
    elif not out.parent.is_dir():
        raise UsageError(f"{out.parent} is no directory")
    check_outside(out, inputs)


def _fitting(path: str) -> str:
    """Return a path whose parts a file system takes: of a longer one the beginning, and a digest of the whole."""
    *folders, name = path.split("/")
    return "/".join(
        [*(_shortened(one, _LONGEST_NAME) for one in folders), _shortened(name, _LONGEST_NAME - len(PARTIAL))]
    )


def _shortened(part: str, longest: int) -> str:
    if len(part) <= longest:
        return part
    ending = Path(part).suffix
    ending = ending if len(ending) <= _LONGEST_ENDING else ""
    digest = hashlib.sha256(part.encode()).hexdigest()[:24]
    return f"{part[: longest - len(ending) - len(digest) - 1]}~{digest}{ending}"  # no topic and no number has the sign


def safe_name(name: str) -> str:
    """Return the name of a topic as part of a file name: every character that a topic may not have becomes `%` and two digits an octet."""
    safe = _UNSAFE.sub(lambda found: "".join(f"%{octet:02X}" for octet in os.fsencode(found[0])), name)
    return f"%2E{safe[1:]}" if safe.startswith(".") else safe
