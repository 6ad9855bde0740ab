"""`<base offset>.timeindex`: sparse entries from timestamps to offsets (KIP-33).

    entry := timestamp int64 ms, relative_offset int32     12 bytes; timestamps strictly rising, offsets not falling
    Entry (T, o): T is the largest timestamp of the segment up to o, and o lies in a batch whose largest timestamp is T.
    An active segment's file is preallocated: zeros behind the last entry. No checksum.

Kafka: `TimeIndex` (0.10.1 and later).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Damage, DamageKind, Span
from kforensics.formats.index.offset import check_rounded, entry_span, split_preallocated
from kforensics.formats.primitives.layout import INT32, INT64, FixedLayout
from kforensics.formats.primitives.text_lines import DamageList

TIME_INDEX_LAYOUT = FixedLayout(timestamp=INT64, relative_offset=INT32)
TIME_ENTRY_LENGTH = TIME_INDEX_LAYOUT.length


class TimeIndex(NamedTuple):
    """The entries of one time index, as a view of the bytes they were parsed from."""

    entries: NDArray[Any]
    """Fields `timestamp` (ms) and `relative_offset`, big-endian."""
    zero_tail: Span
    """Preallocated zeros behind the last entry; of length 0 where the file is trimmed."""
    damage: tuple[Damage, ...] = ()


def parse_time_index(data: bytes | memoryview, length: int | None = None) -> TimeIndex:
    """Parse a time index (`TimeIndex`); the preallocated zeros behind the entries are a span of their own.

    A first entry of timestamp 0 at the base offset is all zeros, and counts as part of the tail.

    Args:
        data: the file, or all of it but zeros at its end.
        length: of the file, where it is longer than `data`.
    """
    length = len(data) if length is None else length
    entries, tail = split_preallocated(data, length, TIME_INDEX_LAYOUT)
    damage = DamageList()
    check_rounded(length, tail, TIME_ENTRY_LENGTH, damage)
    times, offsets = entries["timestamp"].astype(np.int64), entries["relative_offset"].astype(np.int64)
    negative = (times < 0) | (offsets < 0)
    falling = np.zeros(len(entries), dtype=bool)
    falling[1:] = (times[1:] <= times[:-1]) | (offsets[1:] < offsets[:-1])
    for at in np.flatnonzero(negative | falling).tolist():
        expected = (
            "a timestamp and an offset of 0 or more"
            if negative[at]
            else "a later timestamp than the entry before, and no lower offset"
        )
        damage.add(
            entry_span(at, TIME_ENTRY_LENGTH),
            DamageKind.ORDER,
            expected=expected,
            found=f"entry {at}: timestamp {times[at]}, relative offset {offsets[at]}",
        )
    return TimeIndex(entries=entries, zero_tail=tail, damage=damage.as_tuple())


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
        length: of the file.

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


def encode_time_index(index: TimeIndex) -> bytes:
    """Encode the file with its preallocated tail of zeros (`TimeIndex`).

    Args:
        index: its entries are written as they are, malformed ones included.
    """
    return np.ascontiguousarray(index.entries, dtype=TIME_INDEX_LAYOUT.dtype).tobytes() + bytes(index.zero_tail.length)


def time_index(entries: list[tuple[int, int]], *, preallocated: int = 0) -> TimeIndex:
    """Build a time index for a file to be written.

    Args:
        entries: pairs of a timestamp in ms and an offset relative to the segment's base offset.
        preallocated: the length of the untrimmed file in bytes; 0 for a trimmed one.
    """
    array = np.array(entries, dtype=TIME_INDEX_LAYOUT.dtype)
    used = len(entries) * TIME_ENTRY_LENGTH
    return TimeIndex(entries=array, zero_tail=Span(used, max(preallocated - used, 0)))
