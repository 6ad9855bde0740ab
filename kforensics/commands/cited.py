"""The files that a result rests on, each with its hash, so that anyone can see whether they hold the same bytes."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from kforensics.damage import Absent
from kforensics.errors import EvidenceError, MissingBytes
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs
from kforensics.evidence.model import Citation
from kforensics.source.mapped import open_evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedFile:
    """One file that citations name."""

    input: int
    path: str
    """The path relative to the input; `.` where the input is the file."""
    length: int | Absent
    """Bytes; absent where it can't be read."""
    sha256: str | Absent


class CitedCapture(CitedFile):
    """A capture in the place of files whose bytes stayed on the broker; its path is relative to no input."""

    __slots__ = ()


def cited_files(citations: Iterable[Citation], inputs: Inputs) -> tuple[CitedFile, ...]:
    """Return every file that is cited, read once more and hashed; directories are left out."""
    named = {(citation.input, citation.path) for citation in citations}
    files = (hashed_file(inputs.found[at], at, path) for at, path in sorted(named) if at < len(inputs.found))
    found = [*dict.fromkeys(file for file in files if file is not None)]
    left_there = sorted({file.input for file in found if file.sha256 is Absent.UNREADABLE})
    return (*found, *chain.from_iterable(_capture_of(inputs.found[at], at) for at in left_there))


def _capture_of(found: FoundInput, at: int) -> Iterator[CitedCapture]:
    """Yield the capture that an input is in: of segments whose bytes stayed on the broker it is what the conclusions rest on."""
    capture = found.store.container
    if capture is not None:
        with suppress(EvidenceError), open_evidence(Path(os.path.realpath(capture))) as file:
            yield CitedCapture(input=at, path=str(capture), length=file.size, sha256=file.sha256())


def hashed_file(found: FoundInput, at: int, path: str) -> CitedFile | None:
    """Return one file of an input with its hash, of a file in an archive the archive; none where it is a directory."""
    try:
        if stat.S_ISDIR((found.root / path).lstat().st_mode):
            return None
        with found.open(path) as file:
            try:
                sha256: str | Absent = file.sha256()
            except MissingBytes:  # a segment in a capture: its length is known, its bytes stayed on the broker
                sha256 = Absent.UNREADABLE
            return CitedFile(input=at, path=path, length=file.size, sha256=sha256)
    except NotADirectoryError:
        return hashed_file(found, at, path.rpartition("/")[0] or WHOLE_INPUT)
    except (EvidenceError, OSError, ValueError):
        return CitedFile(input=at, path=path, length=Absent.UNREADABLE, sha256=Absent.UNREADABLE)
