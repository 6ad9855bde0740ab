"""Earlier captures of the same node: what they hold of a segment that did not change since replaces reading it again."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from struct import Struct as Layout
from typing import Any

import numpy as np

from kforensics.commands.capturing.container import CaptureWriter
from kforensics.commands.capturing.segments import CapturedScan, SegmentTask
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.captured.columns import (
    BATCH_COLUMNS,
    RECORD_COLUMNS,
    BatchPacker,
    Columns,
    narrow,
    unpack_batches,
)
from kforensics.evidence.captured.reading import captured_columns, captured_segment, carried_from, has_records
from kforensics.source.capture import CapturedSegment, open_capture
from kforensics.source.capture_file import COORDINATORS_FOLDER, MARKER, PART_LIMIT, RECORDS_FOLDER, Capture
from kforensics.source.mapped import EvidenceFile, open_evidence

SETTLED_NS = 2_000_000_000
"""A file that was changed later than this before a capture began may have changed twice within one tick of the file system's clock."""


class EarlierCaptures:
    """The captures that segments need not be read again for.

    Args:
        paths: of the captures; of a segment that several hold the first is taken.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._captures = tuple((open_capture(path), path) for path in paths)
        self._roots = tuple(
            (capture, path, name, capture.started_ns)
            for capture, _ in self._captures
            for path, name in _roots_of(capture)
        )

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._roots)

    def described(self) -> list[dict[str, str]]:
        """Return the name, sha256 and time of each, for the manifest of the capture that is taken now."""
        return [
            {"name": path.name, "sha256": _sha256(path), "started": str(capture.manifest.get("started"))}
            for capture, path in self._captures
        ]

    def require_node(self, node: tuple[Any, Any]) -> None:
        """Refuse captures of another node."""
        for capture, path in self._captures:
            its = capture.manifest.get("node")
            if not isinstance(its, dict):
                continue
            other = (its.get("cluster_id"), its.get("node_id"))
            if any(a is not None and b is not None and a != b for a, b in zip(node, other, strict=True)):
                raise UsageError(f"{path} is a capture of node {other[1]} of cluster {other[0]}, not of this one")

    def scan(self, task: SegmentTask, *, with_bytes: bool) -> tuple[CapturedScan, CapturedSegment] | None:
        """Return the scan of a segment as a capture has it, and the segment there; none where the segment has to be read."""
        for capture, root, name, started_ns in self._roots:
            folder = str(task.path.parent)
            if folder != root and not folder.startswith(f"{root}/"):
                continue
            inner = f"{name}{folder[len(root) :]}/{task.path.name}"
            with contextlib.suppress(EvidenceError, KeyError, TypeError, ValueError, OSError):
                known = _unchanged(capture, inner, task.path, started_ns)
                found = known and _reused(known, task, with_bytes=with_bytes)
                if found:
                    found[0].indexes = dict(_indexes(capture, inner, task))
                    return found
        return None


def _roots_of(capture: Capture) -> list[tuple[str, str]]:
    try:
        return [(str(one["path"]), str(one["name"])) for one in capture.manifest.get("roots", ())]
    except (KeyError, TypeError) as error:
        raise capture.refuse("its manifest does not say what was captured") from error


def _unchanged(capture: Capture, inner: str, path: Path, started_ns: int) -> CapturedSegment | None:
    """Return the segment in the capture, where the file is the same inode with the same length and times, and was settled when it was read."""
    entry = capture.entry(inner)
    row = entry.content.get("segment") if entry is not None else None
    if entry is None or not isinstance(row, dict) or row["changed"]:
        return None
    now = path.lstat()
    same = [now.st_dev, now.st_ino, now.st_ctime_ns] == row["identity"]
    if not same or (now.st_size, now.st_mtime_ns) != (entry.length, entry.mtime_ns):
        return None
    if max(now.st_mtime_ns, now.st_ctime_ns) > started_ns - SETTLED_NS:
        return None
    return CapturedSegment(capture, inner, entry)


def _indexes(capture: Capture, inner: str, task: SegmentTask) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what the capture says of the indexes of a segment that is the same, where they are, too."""
    for ending in task.indexes:
        entry, now = capture.entry(inner.removesuffix(".log") + ending), task.path.with_suffix(ending).lstat()
        is_same = entry is not None and (now.st_size, now.st_mtime_ns) == (entry.length, entry.mtime_ns)
        if entry is not None and is_same and "index" in entry.content:
            yield ending, dict(entry.content)


def _reused(
    file: CapturedSegment, task: SegmentTask, *, with_bytes: bool
) -> tuple[CapturedScan, CapturedSegment] | None:
    segment = captured_segment(file, path="", base_offset=task.base_offset)  # which refuses what can't be
    if task.by_record and not has_records(file):
        return None
    is_above = isinstance(segment.last_offset, int) and segment.last_offset >= task.carried_from
    start = carried_from(file)
    if is_above and (start is None or start > task.carried_from):
        return None
    columns = captured_columns(file, "batches")
    rows = unpack_batches(columns, file.row["first"]) if columns else None
    batches: list[Columns] = []
    first: dict[str, int] = {}
    bytes_from = 0
    if rows is not None:
        wanted = rows["last_offset"] >= task.carried_from
        packer = BatchPacker()
        if wanted.any():
            control, epochs = (columns[name][wanted] for name in ("control", "coordinator_epoch"))
            packed = packer.pack(rows[wanted], control.astype(np.int16), epochs.astype(np.int32))
            batches, first = [{name: narrow(values) for name, values in packed.items()}], packer.first
        at_stake = rows["last_offset"] >= task.bytes_from
        below = rows[: int(np.argmax(at_stake))] if at_stake.any() else rows
        if len(below):
            bytes_from = int(below["position"][-1]) + int(below["length"][-1])
    if with_bytes:
        if "bytes" not in file.row or file.row["bytes_from"] > task.bytes_from:
            return None
        held = file.held()
        bytes_from = max(bytes_from, held[0].position) if held else file.size
    row = {name: value for name, value in file.row.items() if name not in {"bytes", "bytes_from"}}
    row["carried_from"] = task.carried_from if batches else None
    row["first"] = first
    row["records"] = [] if task.by_record else None
    records = [captured_columns(file, "records")] if task.by_record else []
    scan = CapturedScan(
        content={"segment": row},
        length=file.size,
        mtime_ns=file.mtime_ns,
        batches=batches,
        records=[one for one in records if one],
        bytes_from=bytes_from,
    )
    return scan, file


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# What earlier runs left that were stopped or killed: the same command continues with what is complete of it.


BEGUN = "begun.json"
"""The member that says of which node and roots the capture is, before anything else is in it."""

_LOCAL = Layout("<4sHHHHHIIIHH")
"""Head of a member of a zip file: signature, version, flags, method, time, date, CRC-32, stored and inflated length, lengths of name and extra field."""

_SIGNATURE = b"PK\x03\x04"


def resume_path(out: Path) -> Path:
    """Return the path at which a stopped capture is kept."""
    return out.with_name(f".{out.name}.resume")


def keep_recovered(part: Path, left: Path) -> None:
    """Make what a killed run left one that was stopped, unless an earlier stop left more."""
    try:
        with tempfile.TemporaryDirectory(prefix=f".{left.name}.", dir=left.parent) as folder:
            recovered = Path(folder) / left.name
            if recover(part, recovered) and segments_of(recovered) > segments_of(left):
                recovered.replace(left)
    except OSError as error:
        raise UsageError(f"{left} can't be written: {error.strerror}") from error


def segments_of(path: Path) -> int:
    """Return the number of segments in what an earlier run left; 0 where that is of no use."""
    counts = [open_capture(one).manifest.get("counts") for one in left_behind(path)]
    found = [one.get("segments") for one in counts if isinstance(one, dict)]
    return sum(one for one in found if type(one) is int)


def left_behind(path: Path) -> list[Path]:
    """Return what an earlier run of the command left, unless it is of no use."""
    try:
        return [path] if open_capture(path).is_interrupted else []
    except EvidenceError:
        return []


def left_by_killed(out: Path) -> tuple[Path, ...]:
    """Return the files of captures under a name that no process writes any more."""
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
    """Write the whole members of a capture that was killed as one that was stopped; whether there was anything to go on from."""
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
