"""Earlier captures of the same node: what they hold of a segment that did not change since replaces reading it again."""

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kforensics.commands.capturing.container import CaptureWriter
from kforensics.commands.capturing.segments import CapturedScan, SegmentTask
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.captured.columns import (
    BatchPacker,
    Columns,
    narrow,
    unpack_batches,
)
from kforensics.evidence.captured.reading import (
    captured_columns,
    captured_segment,
    carried_from,
    has_records,
)
from kforensics.source.capture import CapturedSegment, open_capture
from kforensics.source.capture_file import Capture

SETTLED_NS = 2_000_000_000
"""A file that was changed later than this before a capture began may have changed twice within one tick of the file system's clock."""

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    file: CapturedSegment
    row: dict[str, Any]


class EarlierCaptures:
    """The captures that segments need not be read again for.

    Args:
        paths: of the captures; of a segment that several hold the first is taken.

    Raises:
        EvidenceError: one of them can't be read, or is none.
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
        """Refuse captures of another node.

        Args:
            node: cluster and number of the one that is captured, each none where it is not known.

        Raises:
            UsageError: one is of another.
        """
        for capture, path in self._captures:
            its = capture.manifest.get("node")
            if not isinstance(its, dict):
                continue
            other = (its.get("cluster_id"), its.get("node_id"))
            if any(a is not None and b is not None and a != b for a, b in zip(node, other, strict=True)):
                raise UsageError(f"{path} is a capture of node {other[1]} of cluster {other[0]}, not of this one")

    def scan(self, task: SegmentTask, *, with_bytes: bool) -> "ReusedScan | None":
        """Return the scan of a segment as a capture has it, none where the segment has to be read.

        Args:
            task: the segment, and what is wanted of it.
            with_bytes: the bytes of its batches are wanted, too.
        """
        for capture, root, name, started_ns in self._roots:
            folder = str(task.path.parent)
            if folder != root and not folder.startswith(f"{root}/"):
                continue
            inner = f"{name}{folder[len(root) :]}/{task.path.name}"
            with contextlib.suppress(EvidenceError, KeyError, TypeError, ValueError, OSError):
                known = _unchanged(capture, inner, task.path, started_ns)
                found = known and _reused(known, task, with_bytes=with_bytes)
                if found:
                    found.scan.indexes = dict(_indexes(capture, inner, task))
                    return found
        return None


def _roots_of(capture: Capture) -> list[tuple[str, str]]:
    try:
        return [(str(one["path"]), str(one["name"])) for one in capture.manifest.get("roots", ())]
    except (KeyError, TypeError) as error:
        raise capture.refuse("its manifest does not say what was captured") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ReusedScan:
    """A segment that was not read, with its bytes in the capture that it is taken from."""

    scan: CapturedScan
    file: CapturedSegment

    def copy_bytes(self, writer: CaptureWriter, folder: str) -> list[list[int | None]]:
        """Copy those of its bytes that are wanted into the capture, and return where they are.

        Raises:
            UsageError: the capture can't be written.
        """
        return writer.add_records(self.file, self.scan.bytes_from, self.scan.length, folder)


def _unchanged(capture: Capture, inner: str, path: Path, started_ns: int) -> _Known | None:
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
    return _Known(file=CapturedSegment(capture, inner, entry), row=row)


def _indexes(capture: Capture, inner: str, task: SegmentTask) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what the capture says of the indexes of a segment that is the same, where they are, too."""
    for ending in task.indexes:
        entry, now = capture.entry(inner.removesuffix(".log") + ending), task.path.with_suffix(ending).lstat()
        is_same = entry is not None and (now.st_size, now.st_mtime_ns) == (entry.length, entry.mtime_ns)
        if entry is not None and is_same and "index" in entry.content:
            yield ending, dict(entry.content)


def _reused(known: _Known, task: SegmentTask, *, with_bytes: bool) -> ReusedScan | None:
    file = known.file
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
        if "bytes" not in known.row or known.row["bytes_from"] > task.bytes_from:
            return None
        held = file.held()
        bytes_from = max(bytes_from, held[0].position) if held else file.size
    row = {name: value for name, value in known.row.items() if name not in {"bytes", "bytes_from"}}
    row["carried_from"] = task.carried_from if batches else None
    row["first"] = first
    row["records"] = [] if task.by_record else None
    records = [captured_columns(file, "records")] if task.by_record else []
    return ReusedScan(
        scan=CapturedScan(
            content={"segment": row},
            length=file.size,
            mtime_ns=file.mtime_ns,
            batches=batches,
            records=[one for one in records if one],
            bytes_from=bytes_from,
        ),
        file=file,
    )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_BLOCK):
            digest.update(data)
    return digest.hexdigest()
