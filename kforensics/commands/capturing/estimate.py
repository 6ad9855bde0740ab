"""How long a capture will take and how large it will be, before it is taken."""

import heapq
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kforensics.commands.capturing.plan import CapturePlan, batches_of
from kforensics.errors import EvidenceError
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import FileKind, parse_file_name

SEGMENT_BYTES = 500
BATCH_BYTES = 12
RECORD_BYTES = 40
"""What a segment, a batch and the digests of a record take in a capture, some less than at most."""

LOG_SHARE = 0.12
SMALL_SHARE = 0.25
"""What deflating leaves of log files, and of small files with their heads in a tar file."""

USUAL_BATCH_LENGTH = 4_096
USUAL_RECORDS = 10
_SAMPLES = 16
_MEASURED_BYTES = 32 << 20
_SLOWEST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureEstimate:
    """The estimate of what a capture reads and writes."""

    replicas: int
    segments: int
    files: int
    """To be taken along byte for byte."""
    read_bytes: int
    capture_bytes: int
    """About as large the capture will be."""
    bytes_per_second: int
    """Of the disk, as measured on the beginning of the largest segment, or the rate that was asked for; 0 where nothing is to be read."""
    seconds: int


def estimate(plan: CapturePlan, *, rate: int | None = None, with_tail: bool = False) -> CaptureEstimate:
    """Look at names and lengths, and read at most 48 MiB to measure.

    Args:
        plan: of the capture.
        rate: bytes a second that reading is limited to.
        with_tail: whether bytes of batches are taken along.
    """
    longest: list[tuple[int, int, Path]] = []
    """The longest segments: length, a number that no other has, and path."""
    segments = files = copied = scanned = 0
    carried = recorded = size = 0.0
    for folder in plan.folders():
        entries = folder.entries
        found = list(folder.segments(entries))
        bases = sorted(base for _, _, base in found)
        for entry, _, base in found:
            segments, scanned = segments + 1, scanned + entry.length
            carried += _share(bases, base, entry.length, folder.carried_from) * entry.length
            recorded += entry.length if folder.by_record else 0
            if folder.with_content:
                size += entry.length * SMALL_SHARE
            elif with_tail:
                size += _share(bases, base, entry.length, folder.bytes_from) * entry.length
            if len(longest) < _SAMPLES or entry.length > longest[0][0]:
                add = heapq.heappush if len(longest) < _SAMPLES else heapq.heapreplace
                add(longest, (entry.length, segments, folder.path / entry.name))
        for entry in entries:
            if not entry.is_directory and folder.takes(entry):
                files, copied = files + 1, copied + entry.length
                is_log = parse_file_name(entry.name).kind in {FileKind.LOG_FILE, FileKind.UNKNOWN}
                size += entry.length * LOG_SHARE if is_log else 60 + entry.length * SMALL_SHARE
            else:
                size += 12
    length, records = _sampled(longest)
    size += segments * SEGMENT_BYTES + BATCH_BYTES * carried / length + RECORD_BYTES * records * recorded / length
    read = scanned + copied
    speed = _measured(longest) if read else 0
    if rate is not None and speed:
        speed = min(speed, rate)
    return CaptureEstimate(
        replicas=plan.replicas,
        segments=segments,
        files=files,
        read_bytes=read,
        capture_bytes=int(size) + 4_096,
        bytes_per_second=speed,
        seconds=-(-read // speed) if speed else 0,
    )


def _share(bases: Sequence[int], base: int, length: int, start: int) -> float:
    """Return the share of a segment that lies above an offset, by the base offsets of the segments."""
    if base >= start or not length:
        return 1.0
    at = bisect_right(bases, base)
    if at == len(bases):
        return 0.5
    return min(max((bases[at] - start) / (bases[at] - base), 0.0), 1.0)


def _sampled(longest: Sequence[tuple[int, int, Path]]) -> tuple[float, float]:
    """Bytes and records of a batch, on average over some segments."""
    batches = length = records = 0
    for size, _, path in longest:
        rows = batches_of(path, size) if size else None
        if rows is not None:
            batches += len(rows)
            length += int(rows["length"].sum())
            records += int(rows["count"].sum())
    return (length / batches, records / batches) if batches and length else (USUAL_BATCH_LENGTH, USUAL_RECORDS)


def _measured(longest: Sequence[tuple[int, int, Path]]) -> int:
    """Bytes a second in which the beginning of the largest segment can be read."""
    if not longest:
        return 100 << 20
    buffer, position = memoryview(bytearray(1 << 20)), 0
    began = time.monotonic()
    try:
        with open_evidence(max(longest)[2]) as file:
            while position < _MEASURED_BYTES and (count := file.read_into(position, buffer)):
                position += count
    except EvidenceError:
        return _SLOWEST
    return max(int(position / max(time.monotonic() - began, 1e-6)), _SLOWEST)
