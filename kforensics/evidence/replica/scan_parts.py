"""A large segment scanned by several processes: each scans a part that begins at a batch, and the parts make one scan where nothing is wrong in or between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Segment
from kforensics.evidence.replica.segments import SegmentSummary
from kforensics.evidence.segment_parts import SMALLEST_PART, parts_of_file
from kforensics.formats.log.batch_table import BATCH_HEADER
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import open_below
from kforensics.source.naming import parse_file_name

_MAGIC = BATCH_HEADER.position_of("magic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a segment that is to be scanned."""

    path: str
    """Of the segment, relative to its input."""
    start: int
    end: int | None
    """None for the end of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedPart:
    """What a scan of a part found."""

    summary: SegmentSummary
    start: int
    stop: int
    """Where the next batch begins."""
    size: int
    mtime_ns: int
    changed: bool


def parts_of(place: PartitionPlace, path: str, count: int) -> list[Part]:
    """Return a segment in parts of about the same length; in none where it can't be read, is short, or is of an older format than batches of magic 2.

    Args:
        path: of the segment, relative to its input.
    """
    try:
        with open_below(place.state.root, path) as file:
            count = min(count, file.size // SMALLEST_PART)
            if count < 2 or not file.is_of_the_system or file.read(0, BATCH_HEADER.length)[_MAGIC] != 2:
                return []
            base_offset = parse_file_name(path.rpartition("/")[2]).base_offset
            lowest = base_offset if isinstance(base_offset, int) else None
            parts = parts_of_file(file, length=file.size, base_offset=lowest, count=count)
    except EvidenceError:
        return []
    return [Part(path=path, start=one.start, end=one.end) for one in parts]


def scan_part(place: PartitionPlace, part: Part) -> ScannedPart | None:
    """Return what a part of a segment holds, none where it can't be read."""
    base_offset = parse_file_name(part.path.rpartition("/")[2]).base_offset
    assert isinstance(base_offset, int)
    summary = SegmentSummary(base_offset)
    stop = part.start
    try:
        with open_below(place.state.root, part.path) as file:
            if not file.is_of_the_system:
                return None
            for window in walk_segment(file, level=Level.CRC, start=part.start, end=part.end):
                summary.add(window.batches, window.damage, window.record_count)
                stop = window.span.end
            return ScannedPart(
                summary=summary,
                start=part.start,
                stop=stop,
                size=file.size,
                mtime_ns=file.mtime_ns,
                changed=file.changed(),
            )
    except EvidenceError:
        return None


def joined(path: str, parts: Sequence[ScannedPart | None]) -> Segment | None:
    """Return the parts of a segment as one scan of it; none where only one scan of the whole says what is wrong with it.

    Args:
        path: of the segment, relative to its input.
        parts: in the order of the file; None for one that could not be read.
    """
    found = [one for one in parts if one is not None]
    if len(found) < len(parts) or not found:
        return None
    first, *others = found
    is_one_file = all((one.size, one.mtime_ns) == (first.size, first.mtime_ns) for one in others)
    follows = all(
        one.stop == other.start and one.summary.is_followed_by(other.summary) for one, other in pairwise(found)
    )
    if not is_one_file or not follows:
        return None
    for one in others:
        first.summary.extend(one.summary)
    changed = any(one.changed for one in found)
    return first.summary.segment(path=path, length=first.size, mtime_ns=first.mtime_ns, changed=changed)
