"""Where files are: in a directory of this machine, in a capture, on other storage.

A `ForeignPath` is a path by name, so everything that joins, splits and shows paths works on it; only the places of this package that touch the disk ask it
instead of the operating system. Whoever has to know more of the place than its files asks `store_of`, never for the class of a path.
"""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kforensics.source.capture_file import Capture
    from kforensics.source.mapped import EvidenceFile


class Store(NamedTuple):
    """What is known of the place of files beside the files themselves."""

    is_here: bool = True
    """It is on this machine, a capture too: else each file is behind a network and has an interface of its own."""
    capture: "Capture | None" = None
    """The capture that it is in, of whose segments it holds what a scan found and at most some of the bytes."""
    inner: str = ""
    """The path in that capture."""

    @property
    def holds_bytes(self) -> bool:
        """Whether the bytes of all of its files can be read at any place."""
        return self.capture is None

    @property
    def container(self) -> Path | None:
        """The one file that all of it is in; none where each file is one."""
        return None if self.capture is None else self.capture.path

    @property
    def redaction(self) -> str | None:
        """What distinguishes its pseudonyms from those of others; none where names are as they are."""
        return None if self.capture is None else self.capture.redaction

    @property
    def origin(self) -> str | None:
        """The path on the broker that it was captured from; none where it is where the broker had it."""
        return None if self.capture is None else self.capture.origin(self.inner)

    def block(self, relative: str) -> int | None:
        """Return the block of its capture that has a directory, and is read as a whole; none where there is none."""
        return None if self.capture is None else self.capture.block_of(self.below(relative))

    def below(self, relative: str) -> str:
        """Return the path in the capture of something below the place."""
        return f"{self.inner}/{relative}" if self.inner and relative else self.inner or relative


def store_of(path: Path) -> Store:
    """Return what is known of the place that a path leads to."""
    return path.store() if isinstance(path, ForeignPath) else _HERE


class Entry(NamedTuple):
    """One name in a directory with its mode, size and time of change, as in `stat`."""

    name: str
    mode: int
    length: int
    mtime_ns: int

    @property
    def is_directory(self) -> bool:
        """Return whether it is a directory itself, not a link to one."""
        return stat.S_ISDIR(self.mode)


class ForeignPath(type(Path())):  # type: ignore[misc] # the concrete class of this system, which pathlib chooses at run time
    """A path that opens and lists itself."""

    def open_as_evidence(self) -> "EvidenceFile":
        """Open the file for reading; raise `EvidenceError` if that is impossible."""
        raise NotImplementedError

    def store(self) -> Store:
        """Return what is known of the place."""
        return _ELSEWHERE

    is_fixed = False
    """Whether what is below it never changes, so that listing it again gives the same."""

    def open_below(self, relative: str) -> "EvidenceFile":
        """Open a file for reading."""
        path: ForeignPath = self / relative
        return path.open_as_evidence()

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of the directory; raise `OSError` if it can't be listed."""
        raise NotImplementedError

    def entries_below(self, relative: str) -> Iterator[Entry]:
        """Yield the entries of a directory."""
        path: ForeignPath = self / relative
        return path.entries()

    def segment_bytes_below(self, relative: str) -> int | None:  # noqa: ARG002 - most storage does not know it
        """Return the bytes of the segments of a partition directory that holds files alone; none where listing it has to show them."""
        return None

    def mode(self) -> int:
        """Return its mode, as in `stat`; raise `FileNotFoundError` if nothing is there."""
        raise NotImplementedError

    def resolved(self) -> "ForeignPath":
        """Return the one name of the place, by which paths can be compared."""
        return self

    def exists(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - such storage has no links
        """Return whether anything is at the path, whatever `follow_symlinks` says."""
        try:
            self.mode()
        except OSError:
            return False
        return True


_HERE, _ELSEWHERE = Store(), Store(is_here=False)
