"""Paths on storage that is no local file system; a class for the storage opens, lists and describes its files.

They are paths by name, so everything that joins, splits and shows paths works on them; only the three places that touch
the disk ask them instead of the operating system.
"""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kforensics.source.mapped import EvidenceFile


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

    is_fixed = False
    """Whether what is below it never changes, so that listing it again gives the same."""

    def open_below(self, relative: str) -> "EvidenceFile":
        """Open a file for reading.

        Raises:
            EvidenceError: that is impossible.
        """
        path: ForeignPath = self / relative
        return path.open_as_evidence()

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of the directory; raise `OSError` if it can't be listed."""
        raise NotImplementedError

    def entries_below(self, relative: str) -> Iterator[Entry]:
        """Yield the entries of a directory.

        Raises:
            OSError: it can't be listed.
        """
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
        """Return whether anything is at the path.

        Args:
            follow_symlinks: as pathlib has it; of no effect.
        """
        try:
            self.mode()
        except OSError:
            return False
        return True
