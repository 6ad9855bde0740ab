"""How long a capture will take and how large it will be, before it is taken."""

import time
from dataclasses import dataclass

from kforensics.commands.capturing.plan import CapturePlan, FolderPlan, batches_of
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
    """Look at names and lengths, and read at most 48 MiB to measure."""
    folders = list(plan.folders())
    length, records = _sampled(folders)
    segments = files = copied = 0
    size = 0.0
    for folder in folders:
        for entry, _, base in folder.segments():
            segments += 1
            batches = _share(folder, base, entry.length, folder.carried_from) * entry.length / length
            size += SEGMENT_BYTES + BATCH_BYTES * batches
            if with_tail:
                size += _share(folder, base, entry.length, folder.bytes_from) * entry.length
            if folder.by_record:
                size += RECORD_BYTES * records * entry.length / length
        for entry in folder.entries:
            if not entry.is_directory and folder.takes(entry):
                files, copied = files + 1, copied + entry.length
                is_log = parse_file_name(entry.name).kind in {FileKind.LOG_FILE, FileKind.UNKNOWN}
                size += entry.length * LOG_SHARE if is_log else 60 + entry.length * SMALL_SHARE
            else:
                size += 12
    read = plan.segment_bytes + copied
    speed = _measured(folders) if read else 0
    if rate is not None and speed:
        speed = min(speed, rate)
    return CaptureEstimate(
        replicas=len(plan.places),
        segments=segments,
        files=files,
        read_bytes=read,
        capture_bytes=int(size) + 4_096,
        bytes_per_second=speed,
        seconds=-(-read // speed) if speed else 0,
    )


def _share(folder: FolderPlan, base: int, length: int, start: int) -> float:
    """The share of a segment that lies above an offset, by the names of the segments."""
    bases = sorted(other for _, _, other in folder.segments())
    end = next((other for other in bases if other > base), None)
    if base >= start or not length:
        return 1.0
    if end is None:
        return 0.5
    return min(max((end - start) / (end - base), 0.0), 1.0)


def _sampled(folders: list[FolderPlan]) -> tuple[float, float]:
    """Bytes and records of a batch, on average over some segments."""
    largest = sorted(
        ((entry.length, folder, entry) for folder in folders for entry, _, _ in folder.segments() if entry.length),
        key=lambda one: -one[0],
    )[:_SAMPLES]
    batches = length = records = 0
    for _, folder, entry in largest:
        rows = batches_of(folder.path / entry.name, entry.length)
        if rows is not None:
            batches += len(rows)
            length += int(rows["length"].sum())
            records += int(rows["count"].sum())
    return (length / batches, records / batches) if batches and length else (USUAL_BATCH_LENGTH, USUAL_RECORDS)


def _measured(folders: list[FolderPlan]) -> int:
    """Bytes a second in which the beginning of the largest segment can be read."""
    longest = max(
        ((entry.length, folder.path / entry.name) for folder in folders for entry, _, _ in folder.segments()),
        default=(0, None),
    )[1]
    if longest is None:
        return 100 << 20
    buffer, position = memoryview(bytearray(1 << 20)), 0
    began = time.monotonic()
    try:
        with open_evidence(longest) as file:
            while position < _MEASURED_BYTES and (count := file.read_into(position, buffer)):
                position += count
    except EvidenceError:
        return _SLOWEST
    return max(int(position / max(time.monotonic() - began, 1e-6)), _SLOWEST)
