"""A search for records: by key, offset, header, value or time, whatever of these is given."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.records import parse_headers

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
