"""How long a capture will take and how large it will be, before it is taken."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kforensics.commands.capturing.plan import CapturePlan
from kforensics.errors import EvidenceError
from kforensics.formats.log.batch_table import BatchTable
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import open_evidence

SEGMENT_BYTES = 500
BATCH_BYTES = 12
RECORD_BYTES = 40
"""What a segment, a batch and the digests of a record take in a capture, some less than at most."""

USUAL_BATCH_LENGTH = 4_096
USUAL_RECORDS = 10
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
    """Estimate by names and lengths, and read at most 48 MiB to measure.

    Args:
        rate: bytes a second that reading is limited to.
        with_tail: whether bytes of batches are taken along.
    """
    tally = plan.tally
    size = tally.size + (tally.at_stake if with_tail else 0.0)
    length, records = _sampled(tally.longest)
    size += tally.segments * SEGMENT_BYTES + BATCH_BYTES * tally.carried / length
    size += RECORD_BYTES * records * tally.recorded / length
    read = tally.scanned + tally.copied
    speed = _measured(tally.longest) if read else 0
    if rate is not None and speed:
        speed = min(speed, rate)
    return CaptureEstimate(
        replicas=plan.replicas,
        segments=tally.segments,
        files=tally.files,
        read_bytes=read,
        capture_bytes=int(size) + 4_096,
        bytes_per_second=speed,
        seconds=-(-read // speed) if speed else 0,
    )


def _sampled(longest: Sequence[tuple[int, str]]) -> tuple[float, float]:
    """Bytes and records of a batch, on average over some segments."""
    batches = length = records = 0
    for size, path in longest:
        rows = _batches_of(Path(path), size) if size else None
        if rows is not None:
            batches += len(rows)
            length += int(rows["length"].sum())
            records += int(rows["count"].sum())
    return (length / batches, records / batches) if batches and length else (USUAL_BATCH_LENGTH, USUAL_RECORDS)


def _measured(longest: Sequence[tuple[int, str]]) -> int:
    """Bytes a second in which the beginning of the largest segment can be read."""
    if not longest:
        return 100 << 20
    buffer, position = memoryview(bytearray(1 << 20)), 0
    began = time.monotonic()
    try:
        with open_evidence(Path(max(longest)[1])) as file:
            while position < _MEASURED_BYTES and (count := file.read_into(position, buffer)):
                position += count
    except EvidenceError:
        return _SLOWEST
    return max(int(position / max(time.monotonic() - began, 1e-6)), _SLOWEST)


def _batches_of(path: Path, length: int) -> BatchTable | None:
    """Return some batches at the beginning of a segment, to estimate by; none where there are none, or it can't be read."""
    try:
        with open_evidence(path) as file:
            for window in walk_segment(file, level=Level.CRC, end=min(length, 1 << 20)):
                if len(window.batches):
                    return window.batches
    except EvidenceError:
        return None
    return None
