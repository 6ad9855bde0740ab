"""A search for records: by key, offset, header, value or time, whatever of these is given."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.records import parse_headers


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

    def find(self, chunk: RecordChunk) -> NDArray[np.int64]:
        """The records of a chunk that match, by their index in it."""
        kept = np.ones(len(chunk.rows), dtype=np.bool_)
        if self.offset is not None:
            kept &= chunk.offset == self.offset
        if self.time_ms is not None:
            kept &= (chunk.timestamp_ms >= self.time_ms[0]) & (chunk.timestamp_ms < self.time_ms[1])
        if self.keys is not None:
            kept &= np.isin(chunk.key_length, [len(key) for key in self.keys])
        if self.key_sha256 is not None:
            kept &= chunk.key_length >= 0
        if self.header is not None:
            kept &= chunk.header_count > 0
        if self.value is not None:
            kept &= chunk.value_length >= len(self.value)
        if self.value_pattern is not None:
            kept &= chunk.value_length >= 0
        found = [at for at in np.flatnonzero(kept).tolist() if self._matches(chunk, at)]
        return np.array(found, dtype=np.int64)

    def _matches(self, chunk: RecordChunk, at: int) -> bool:
        if self.keys is not None and _part(chunk, chunk.key_position, chunk.key_length, at) not in self.keys:
            return False
        if self.key_sha256 is not None:
            key = _part(chunk, chunk.key_position, chunk.key_length, at)
            if hashlib.sha256(key).digest() != self.key_sha256:
                return False
        if self.value is not None or self.value_pattern is not None:
            value = _part(chunk, chunk.value_position, chunk.value_length, at)
            if self.value is not None and self.value not in value:
                return False
            if self.value_pattern is not None and self.value_pattern.search(value) is None:
                return False
        return self.header is None or self._has_header(chunk, at)

    def _has_header(self, chunk: RecordChunk, at: int) -> bool:
        assert self.header is not None
        name, wanted = self.header
        headers = parse_headers(
            chunk.view, int(chunk.header_position[at]), int(chunk.end[at]), int(chunk.header_count[at])
        )
        return any(one == name and (wanted is None or value == wanted) for one, value in headers)


def _part(chunk: RecordChunk, positions: NDArray[np.int64], lengths: NDArray[np.int64], at: int) -> bytes:
    start = int(positions[at])
    return bytes(chunk.view[start : start + max(int(lengths[at]), 0)])
