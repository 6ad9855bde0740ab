"""The part of a segment that can hold what is asked for, by its indexes; where they can't be trusted, all of it.

An entry's offset is the first one of its batches up to Kafka 1.1 and the last one since 2.0: an entry at or below the
offset asked for is a sound start
under both readings, and the batches of the second entry above it are a sound end.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kforensics.damage import Gravity
from kforensics.errors import EvidenceError, FormatError
from kforensics.formats.index import SparseIndex, parse_offset_index, parse_time_index
from kforensics.formats.primitives.word_buffer import without_zero_tail
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import EvidenceFile, open_evidence

INDEX_LIMIT = 1 << 26
"""Bytes that an index may have to be looked at; brokers preallocate 10 MiB."""


class ByteRange(NamedTuple):
    """The position where to start, and the position behind the last batch of the range; None means the end of the file."""

    start: int
    end: int | None


def find_range(
    segment: EvidenceFile,
    path: Path,
    base_offset: int,
    *,
    from_offset: int | None,
    to_offset: int | None,
    from_time_ms: int | None,
) -> ByteRange:
    """Return the part of the segment that can hold the offsets and times asked for; all of it where its indexes can't be trusted."""
    if from_time_ms is not None:
        behind = _offset_before(path, base_offset, from_time_ms)
        if behind is not None:
            from_offset = max(behind, from_offset if from_offset is not None else behind)
    if from_offset is None and to_offset is None:
        return ByteRange(0, None)
    entries = _offset_entries(path.with_suffix(".index"), base_offset)
    if entries is None:
        return ByteRange(0, None)
    offsets, positions = entries
    start = 0
    if from_offset is not None:
        place = int(np.searchsorted(offsets, from_offset, side="right")) - 1
        if place >= 0 and _begins_batch(segment, int(positions[place]), from_offset):
            start = int(positions[place])
    end = None
    if to_offset is not None:
        place = int(np.searchsorted(offsets, to_offset, side="right")) + 1
        if place < len(positions) and _begins_batch(segment, int(positions[place]), None):
            end = int(positions[place])
    return ByteRange(start, end)


def _offset_entries(path: Path, base_offset: int) -> tuple[np.ndarray, np.ndarray] | None:
    index = _sound(path, parse_offset_index)
    if index is None or not len(index.entries):
        return None
    offsets = index.entries["relative_offset"].astype(np.int64) + base_offset
    positions = index.entries["position"].astype(np.int64)
    if (np.diff(offsets) <= 0).any() or (np.diff(positions) <= 0).any():
        return None
    return offsets, positions


def time_entries(path: Path, base_offset: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return what the time index beside a segment says: rising timestamps, and for each the offset up to which no record is newer.

    Source: `TimeIndex.maybeAppend`.

    Returns:
        Timestamps in milliseconds and offsets, none where the index can't be read, is damaged, or does not rise.
    """
    index = _sound(path.with_suffix(".timeindex"), parse_time_index)
    if index is None:
        return None
    times = index.entries["timestamp"].astype(np.int64)
    offsets = index.entries["relative_offset"].astype(np.int64) + base_offset
    if (np.diff(times) <= 0).any() or (np.diff(offsets) < 0).any():
        return None
    return times, offsets


def _offset_before(path: Path, base_offset: int, time_ms: int) -> int | None:
    """Return the first offset that can hold a record of the time or a later one."""
    entries = time_entries(path, base_offset)
    if entries is None:
        return None
    times, offsets = entries
    place = int(np.searchsorted(times, time_ms, side="left")) - 1
    return int(offsets[place]) + 1 if place >= 0 else None


def _sound(path: Path, parse: Callable[[bytes], SparseIndex]) -> SparseIndex | None:
    """Return an index, none where it can't be read or is damaged."""
    try:
        with open_evidence(path) as file:
            file.require_at_most(INDEX_LIMIT)
            index = parse(without_zero_tail(file))
    except (EvidenceError, FormatError):
        return None
    return None if any(damage.gravity is Gravity.DAMAGE for damage in index.damage) else index


def _begins_batch(segment: EvidenceFile, position: int, not_above: int | None) -> bool:
    """Return whether a sound batch begins at the position, as an index claims; and not above an offset."""
    if not 0 <= position < segment.size:
        return False
    window = next(walk_segment(segment, level=Level.CRC, start=position, end=position + 1), None)
    if window is None or not len(window.batches):
        return False
    first = window.batches[0]
    sound = bool(first["crc_valid"]) and int(first["position"]) == position
    return sound and (not_above is None or int(first["base_offset"]) <= not_above)
