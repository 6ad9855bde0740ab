"""What earlier runs left that were stopped or killed: the same command continues with what is complete of it."""

import fcntl
import json
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from struct import Struct as Layout
from typing import Any

from kforensics.commands.capturing.container import CaptureWriter
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.captured.columns import BATCH_COLUMNS, RECORD_COLUMNS
from kforensics.source.capture import open_capture
from kforensics.source.capture_file import COORDINATORS_FOLDER, MARKER, PART_LIMIT, RECORDS_FOLDER
from kforensics.source.mapped import EvidenceFile, open_evidence

BEGUN = "begun.json"
"""The member that says of which node and roots the capture is, before anything else is in it."""

_LOCAL = Layout("<4sHHHHHIIIHH")
"""Head of a member of a zip file: signature, version, flags, method, time, date, CRC-32, stored and inflated length, lengths of name and extra field."""

_SIGNATURE = b"PK\x03\x04"


def resume_path(out: Path) -> Path:
    """Return the path at which a stopped capture is kept.

    Args:
        out: the name that the finished capture will have.
    """
    return out.with_name(f".{out.name}.resume")


def keep_recovered(part: Path, left: Path) -> None:
    """Make what a killed run left one that was stopped, unless an earlier stop left more.

    Args:
        left: the name of captures that were stopped.

    Raises:
        UsageError: nothing can be written beside them.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=f".{left.name}.", dir=left.parent) as folder:
            recovered = Path(folder) / left.name
            if recover(part, recovered) and segments_of(recovered) > segments_of(left):
                recovered.replace(left)
    except OSError as error:
        raise UsageError(f"{left} can't be written: {error.strerror}") from error


def segments_of(path: Path) -> int:
    """Return the number of segments in what an earlier run left; 0 where that is of no use.

    Args:
        path: at which a stopped capture is kept.
    """
    counts = [open_capture(one).manifest.get("counts") for one in left_behind(path)]
    found = [one.get("segments") for one in counts if isinstance(one, dict)]
    return sum(one for one in found if type(one) is int)


def left_behind(path: Path) -> list[Path]:
    """Return what an earlier run of the command left, unless it is of no use.

    Args:
        path: at which a stopped capture is kept.
    """
    try:
        return [path] if open_capture(path).is_interrupted else []
    except EvidenceError:
        return []


def left_by_killed(out: Path) -> tuple[Path, ...]:
    """Return the files of captures under a name that no process writes any more.

    Args:
        out: the name that the finished capture would have had.
    """
    name = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]+\.part", re.ASCII)
    try:
        names = sorted(one.name for one in out.parent.iterdir() if name.fullmatch(one.name))
    except OSError:
        return ()
    return tuple(out.with_name(one) for one in names if _was_left(out.with_name(one)))


def _was_left(part: Path) -> bool:
    """Whether a file begins like a capture, and no process holds the lock that it is written under, in whatever container."""
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.pread(descriptor, len(MARKER), _LOCAL.size) == MARKER.encode()
    except OSError:
        return False
    finally:
        os.close(descriptor)


def recover(part: Path, left: Path) -> bool:
    """Write the whole members of a capture that was killed as one that was stopped; whether there was anything to go on from.

    Args:
        left: the name of captures that were stopped.
    """
    try:
        with open_evidence(part) as file:
            names: set[str] = set()
            said: dict[str, Any] = {}
            for name, data in _members(file):
                names.add(name)
                if name.startswith("tree/") or name == BEGUN:
                    said[name] = json.loads(data)
            begun = said.pop(BEGUN, None)
            folders = {path: _whole(entries, names) for block in said.values() for path, entries in block.items()}
            if begun is None or not any(folders.values()):
                return False
            with CaptureWriter(left) as writer:
                for name, data in _members(file):
                    if name not in said and name not in {MARKER, BEGUN}:
                        writer.add_part(name, data)
                for path, entries in folders.items():
                    writer.add_folder(path, entries)
                counts = {"segments": sum("segment" in one["content"] for one in chain(*folders.values()))}
                writer.finish({**begun, "counts": counts, "interrupted": True}, left)
    except (EvidenceError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return False  # no run can go on from it
    return True


def _members(file: EvidenceFile) -> Iterator[tuple[str, bytes]]:
    """Yield the members of a zip file in their order, up to the first that is not whole."""
    position = 0
    while position + _LOCAL.size <= file.size:
        head = file.read(position, _LOCAL.size)
        if len(head) < _LOCAL.size:
            return
        signature, _, _, method, _, _, crc, stored, length, name_length, extra = _LOCAL.unpack(head)
        start = position + _LOCAL.size + name_length + extra
        if signature != _SIGNATURE or not stored or length > PART_LIMIT or start + stored > file.size:
            return
        name = file.read(position + _LOCAL.size, name_length).decode(errors="replace")
        data = file.read(start, stored)
        if method == zlib.DEFLATED:
            try:
                data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, length + 1)
            except zlib.error:
                return
        if len(data) != length or zlib.crc32(data) != crc:
            return
        yield name, data
        position = start + stored


def _whole(entries: Iterable[dict[str, Any]], names: Collection[str]) -> list[dict[str, Any]]:
    """Return the segments of a directory of which all that their entries name is there, with what is said of indexes; other files are read again."""
    found = [(one, one.get("content", ())) for one in entries]
    segments = [one for one, content in found if "segment" in content and _is_there(content["segment"], names)]
    return segments and [*segments, *(one for one, content in found if "index" in content)]


def _is_there(row: Mapping[str, Any], members: Collection[str]) -> bool:
    tables = (("batches", BATCH_COLUMNS), ("records", RECORD_COLUMNS))
    names = (
        f"{table}/{run[0]:06d}/{column}.npy"
        for table, columns in tables
        for run in row.get(table) or ()
        for column in columns
    )
    parts = (one[2] for one in row.get("bytes") or () if one[2] is not None)
    return all(name in members for name in names) and all(
        any(f"{folder}/{number:06d}" in members for folder in (RECORDS_FOLDER, COORDINATORS_FOLDER)) for number in parts
    )
