"""A capture checked by its own manifest: every part has the sha256 that it says, and there is no other part."""

import hashlib
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from kforensics.commands.sealing.seal import MOST_NAMED, SealCheck
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.model import Problem
from kforensics.evidence.seal.manifest import Envelope, ManifestHead, SealCounts
from kforensics.evidence.seal.state import Change, Difference, EntryKind, SealEntry
from kforensics.source.capture_file import MARKER, Capture, Part
from kforensics.source.mapped import open_evidence

_MODE = "0644"


def check_capture(path: Path) -> SealCheck:
    """Compare the parts of a capture with its manifest; the work is done as the differences are asked for.

    Raises:
        EvidenceError: it is none, its end is missing, or its manifest is not the one that was written.
    """
    capture = Capture(path)
    parts = capture.parts()
    ended = str(capture.manifest.get("ended"))
    envelope = Envelope(
        sealed_ms=_milliseconds(ended),
        sealed_utc=ended,
        case_id=Absent.NOT_APPLICABLE,
        operator=Absent.NOT_APPLICABLE,
    )
    head = ManifestHead(tool_version=str(capture.manifest.get("tool_version")), envelope=envelope, inputs=(str(path),))
    sealed = SealCounts(files=len(parts), bytes=sum(one.length for one in parts))
    check = SealCheck(head=head, shown=(str(path),), sealed=sealed)

    def compare() -> Iterator[Difference]:
        for one in _differences(capture, check):
            check.counts[one.change] += 1
            if len(check.named[one.change]) < MOST_NAMED:
                check.named[one.change].append(one)
            yield one
        with open_evidence(path.resolve()) as file:
            check.manifest_sha256 = file.sha256()

    check.begin(compare())
    return check


def _differences(capture: Capture, check: SealCheck) -> Iterator[Difference]:
    there = _members(capture, check)
    for number, part in enumerate(capture.parts()):
        sealed = _entry(part.name, part.length, part.sha256)
        if there and part.name not in there:
            yield Difference(Change.MISSING, sealed, Absent.NOT_APPLICABLE)
            continue
        try:
            capture.part(number)
        except EvidenceError:
            yield Difference(Change.CONTENT, sealed, _found(capture, part))
        else:
            check.held += 1
    known = {one.name for one in capture.parts()} | {MARKER, "manifest.json"}
    for name in sorted(there - known):
        yield Difference(Change.ADDED, Absent.NOT_APPLICABLE, _entry(name, Absent.UNKNOWN, Absent.UNKNOWN))


def _members(capture: Capture, check: SealCheck) -> frozenset[str]:
    """Return what zip tools find in the file."""
    try:
        with zipfile.ZipFile(capture.path) as archive:
            return frozenset(archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        check.problems.append(Problem(input=0, path=".", message=f"its list of members can't be read: {error}"))
        return frozenset()


def _found(capture: Capture, part: Part) -> SealEntry:
    """Return the part as it is, as far as it can be inflated in bounds."""
    data = capture.salvaged(part)
    if data is None:
        return _entry(part.name, Absent.UNKNOWN, Absent.UNREADABLE)
    return _entry(part.name, len(data), hashlib.sha256(data).hexdigest())


def _entry(name: str, length: int | Absent, sha256: str | Absent) -> SealEntry:
    return SealEntry(0, name, EntryKind.FILE, length, Absent.NOT_APPLICABLE, Absent.NOT_APPLICABLE, _MODE, sha256)


def _milliseconds(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
