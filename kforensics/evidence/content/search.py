"""A search for records: by key, offset, header, value or time; and the part of a segment that can hold them, by its indexes, where these can be trusted."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Gravity
from kforensics.errors import EvidenceError, FormatError
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.index import SparseIndex, parse_offset_index, parse_time_index
from kforensics.formats.log.records import parse_headers
from kforensics.formats.primitives.word_buffer import without_zero_tail
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import EvidenceFile, open_evidence

FEW = 32
"""Candidates that are compared one by one."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSearch:
    """What a record must be to be found: all that is given."""

    keys: frozenset[bytes] | None = None
    """One of these keys."""
    key_sha256: bytes | None = None
    """The SHA-256 of the key."""
    offset: int | None = None
    header: tuple[bytes, bytes | None] | None = None
    """The name of a header, and its value unless any will do."""
    value: bytes | None = None
    """Bytes that the value holds somewhere."""
    value_pattern: Any = None
    """A compiled pattern of RE2 that the value matches somewhere."""
    time_ms: tuple[int, int] | None = None
    """From the first on, and before the second."""

    @property
    def is_by_key(self) -> bool:
        """Whether all records of a key are found, or none of them."""
        others = (self.offset, self.header, self.value, self.value_pattern, self.time_ms)
        return all(one is None for one in others)

    @property
    def is_by_offset(self) -> bool:
        """Whether any record at an offset is found."""
        others = (self.keys, self.key_sha256, self.header, self.value, self.value_pattern, self.time_ms)
        return self.offset is not None and all(one is None for one in others)

    def find(self, chunk: RecordChunk) -> Rows:
        """Return the records of a chunk that match, by their index in it; the cheapest conditions are asked first."""
        rows = self._by_columns(chunk)
        if self.keys is not None and len(rows):
            rows = _with_keys(chunk, rows, self.keys)
        if self.value is not None and len(rows):
            rows = _with_literal(chunk, rows, self.value)
        tests = [
            (self.key_sha256, self._has_hash),
            (self.value_pattern, self._has_pattern),
            (self.header, self._has_header),
        ]
        for wanted, test in tests:
            if wanted is not None and len(rows):
                rows = np.array([at for at in rows.tolist() if test(chunk, at)], dtype=np.int64)
        return rows

    def _by_columns(self, chunk: RecordChunk) -> Rows:
        kept = np.ones(len(chunk.rows), dtype=np.bool_)
        if self.offset is not None:
            kept &= chunk.offset == self.offset
        if self.time_ms is not None:
            kept &= (chunk.timestamp_ms >= self.time_ms[0]) & (chunk.timestamp_ms < self.time_ms[1])
        if self.keys is not None:
            kept &= np.logical_or.reduce([chunk.key_length == length for length in {len(key) for key in self.keys}])
        if self.key_sha256 is not None:
            kept &= chunk.key_length >= 0
        if self.header is not None:
            kept &= chunk.header_count > 0
        if self.value is not None:
            kept &= chunk.value_length >= len(self.value)
        if self.value_pattern is not None:
            kept &= chunk.value_length >= 0
        return np.flatnonzero(kept)

    def _has_hash(self, chunk: RecordChunk, at: int) -> bool:
        key = _part(chunk, chunk.key_position, chunk.key_length, at)
        return hashlib.sha256(key).digest() == self.key_sha256

    def _has_pattern(self, chunk: RecordChunk, at: int) -> bool:
        value = bytes(_part(chunk, chunk.value_position, chunk.value_length, at))
        return self.value_pattern.search(value) is not None

    def _has_header(self, chunk: RecordChunk, at: int) -> bool:
        assert self.header is not None
        name, wanted = self.header
        headers = parse_headers(
            chunk.view, int(chunk.header_position[at]), int(chunk.end[at]), int(chunk.header_count[at])
        )
        return any(one == name and (wanted is None or value == wanted) for one, value in headers)


def _part(chunk: RecordChunk, positions: Rows, lengths: Rows, at: int) -> memoryview:
    start = int(positions[at])
    return chunk.view[start : start + max(int(lengths[at]), 0)]


def _with_keys(chunk: RecordChunk, rows: Rows, keys: frozenset[bytes]) -> Rows:
    """Rows whose key is one of some; byte by byte of all rows at once where it is one key, its end first, in which keys differ most."""
    if len(keys) == 1:
        [key] = keys
        octets = np.frombuffer(chunk.view, np.uint8)
        for at in reversed(range(len(key))):
            if len(rows) < FEW:
                break
            rows = rows[octets[chunk.key_position[rows] + at] == key[at]]
    found = [at for at in rows.tolist() if bytes(_part(chunk, chunk.key_position, chunk.key_length, at)) in keys]
    return np.array(found, dtype=np.int64)


def _with_literal(chunk: RecordChunk, rows: Rows, literal: bytes) -> Rows:
    """Rows whose value holds some bytes, which are searched for in all values at once."""
    if not literal:
        return rows
    starts = chunk.value_position[rows]
    ends = starts + chunk.value_length[rows]
    found = list(
        _holding(bytes(chunk.view[int(starts[0]) : int(ends[-1])]), starts - starts[0], ends - starts[0], literal)
    )
    return rows[found]


def _holding(data: bytes, starts: Rows, ends: Rows, literal: bytes) -> Iterator[int]:
    """Which runs of bytes, one behind the other, hold some bytes."""
    at = data.find(literal)
    while at >= 0:
        row = int(np.searchsorted(starts, at, side="right")) - 1
        is_inside = row >= 0 and at + len(literal) <= ends[row]
        if is_inside:
            yield row
        # A place that crosses the end of a value may overlap one inside the next.
        at = data.find(literal, max(int(ends[row]), at + 1) if is_inside else at + 1)


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
