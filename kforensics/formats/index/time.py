"""`<base offset>.timeindex`: sparse entries from timestamps to offsets (KIP-33).

    entry := timestamp int64 ms, relative_offset int32     12 bytes; timestamps strictly rising, offsets not falling
    Entry (T, o): T is the largest timestamp of the segment up to o, and o lies in a batch whose largest timestamp is T.
    An active segment's file is preallocated: zeros behind the last entry. No checksum.

Kafka: `TimeIndex` (0.10.1 and later).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Span
from kforensics.formats.index.offset import (
    SparseIndex,
    build_index,
    entry_span,
    parse_sparse_index,
)
from kforensics.formats.primitives.layout import INT32, INT64, FixedLayout

TIME_INDEX_LAYOUT = FixedLayout(timestamp=INT64, relative_offset=INT32)
TIME_ENTRY_LENGTH = TIME_INDEX_LAYOUT.length


def parse_time_index(data: bytes | memoryview, length: int | None = None) -> SparseIndex:
    """Parse a time index (`TimeIndex`); the preallocated zeros behind the entries are a span of their own.

    A first entry of timestamp 0 at the base offset is all zeros, and counts as part of the tail.

    Args:
        data: the file, or all of it but zeros at its end.
        length: of the file, where it is longer than `data`.
    """

    def falling(times: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.append(
            np.zeros(min(len(times), 1), dtype=bool), (times[1:] <= times[:-1]) | (offsets[1:] < offsets[:-1])
        )

    return parse_sparse_index(
        data, length, TIME_INDEX_LAYOUT, falling, "a later timestamp than the entry before, and no lower offset"
    )


class TimeEnds(NamedTuple):
    """The first timestamp of a time index that has entries, and its last entry."""

    first_timestamp: int
    last_timestamp: int
    last_relative_offset: int


class TimeEntry(NamedTuple):
    """An entry of a time index."""

    timestamp: int
    relative_offset: int


def last_time_entry_span(length: int) -> Span | None:
    """Return where a broker finds the last entry of a time index, preallocated zeros and all; None where there is none.

    Args:
        length: of the file in bytes.
    """
    count = length // TIME_ENTRY_LENGTH
    return entry_span(count - 1, TIME_ENTRY_LENGTH) if count else None


def read_last_time_entry(read: Callable[[int, int], bytes], length: int) -> TimeEntry | None:
    """Return the last entry of a time index as a broker reads it: by its length alone (`TimeIndex.lastEntry`).

    Args:
        read: a function of a position and a length that gives bytes of the file, fewer where it ends before.

    Returns:
        None where the file holds no whole entry, or not as many bytes as its length says.
    """
    span = last_time_entry_span(length)
    return None if span is None else _entry(read(span.position, span.length))


def read_time_ends(read: Callable[[int, int], bytes], length: int) -> TimeEnds | None:
    """Return the first timestamp and the last entry, which a broker compares (`TimeIndex.sanityCheck`, before 2.3); None where there are none.

    Args:
        read: gives the bytes at a position of the file, fewer at its end.
        length: of the file in bytes.
    """
    first, last = _entry(read(0, TIME_ENTRY_LENGTH)), read_last_time_entry(read, length)
    return None if first is None or last is None else TimeEnds(first.timestamp, *last)


def _entry(data: bytes) -> TimeEntry | None:
    return TimeEntry(*TIME_INDEX_LAYOUT.struct.unpack(data)) if len(data) == TIME_ENTRY_LENGTH else None


def time_index(entries: list[tuple[int, int]], *, preallocated: int = 0) -> SparseIndex:
    """Build a time index for a file to be written.

    Args:
        entries: pairs of a timestamp in ms and an offset relative to the segment's base offset.
        preallocated: the length of the untrimmed file in bytes; 0 for a trimmed one.
    """
    return build_index(TIME_INDEX_LAYOUT, entries, preallocated)
