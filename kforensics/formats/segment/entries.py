"""The entries of a window of a segment: the chain of lengths, their checksums, and the batch table of them."""

from itertools import pairwise
from struct import Struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.log.batch_table import (
    BATCH_HEADER,
    CRC_COVERED_POSITION,
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MESSAGE_CRC_COVERED,
    MESSAGE_HEADER_1,
    SMALLEST_BATCH_LENGTH,
    SMALLEST_MESSAGE_LENGTH,
    BatchTable,
    empty_batches,
)
from kforensics.formats.primitives.checksum import crc32, crc32c
from kforensics.formats.primitives.word_buffer import WordBuffer

MOST_ENTRIES = 1 << 16
"""The most entries that are read at once: this bounds the work on bytes that are no entries."""

SMALLEST_LENGTH = {**SMALLEST_MESSAGE_LENGTH, 2: SMALLEST_BATCH_LENGTH}
"""The smallest length of an entry, by magic."""

_LENGTH = Struct(">8xI").unpack_from
_LENGTH_AND_MAGIC = Struct(">8xi4xb").unpack_from
_SAME_NAMES = (
    "base_offset",
    "partition_leader_epoch",
    "crc",
    "attributes",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
)


class Entries(NamedTuple):
    """A chain of entries in a window: their rows and computed checksums, which are absent if they were not requested."""

    table: BatchTable
    computed: NDArray[np.uint32] | None
    end: int
    """The position in the window where the chain breaks, leaves the window, or reaches `MOST_ENTRIES`."""
    is_full: bool = False
    """Whether the chain may continue at its end."""

    def part(self, first: int, end: int) -> "Entries":
        """Return the entries from `first` up to `end`, without `end`; the end of the whole chain stays."""
        return self._replace(
            table=self.table[first:end], computed=None if self.computed is None else self.computed[first:end]
        )


def read_entries(window: WordBuffer, start: int, stop: int, file_position: int, *, with_checksums: bool) -> Entries:
    """Return all whole entries that follow each other by their lengths, from a place in the window on.

    Args:
        stop: entries that begin here or behind it are left out, relative to the window.
        with_checksums: whether checksums are computed; without, every entry counts as valid.

    Returns:
        The entries up to the first whose header is impossible, whose end is behind the window, or that is one too many.
    """
    positions, end = _follow(window.view, start, min(stop - 1, window.filled - HEADER_UP_TO_MAGIC), window.filled)
    starts = np.array(positions, dtype=np.int64)
    headers = window.headers[starts].view(BATCH_HEADER.dtype)
    magic = headers["magic"]
    is_plain = bool((magic == 2).all())
    possible = headers["batch_length"] >= (SMALLEST_BATCH_LENGTH if is_plain else _SMALLEST_BY_MAGIC[magic])
    if not possible.all():
        kept = int(np.argmin(possible))
        end = positions[kept]
        positions, starts, headers, magic = positions[:kept], starts[:kept], headers[:kept], magic[:kept]
        is_plain = bool((magic == 2).all())
    table = _table(headers, starts, file_position)
    if not is_plain:
        _set_message_columns(table, headers, np.flatnonzero(magic < 2))
    computed = None
    if with_checksums:
        computed = np.array(
            _checksums(window.view, [*positions, end], None if is_plain else magic.tolist()), dtype=np.uint32
        )
        table["crc_valid"] = computed == table["crc"]
    return Entries(table, computed, end, len(table) == MOST_ENTRIES)


# Indexed by the magic as int8, from the end for negative ones; no length is large enough for a magic that does not exist.
_SMALLEST_BY_MAGIC = np.array([SMALLEST_LENGTH.get(magic, 1 << 31) for magic in range(256)])


def claimed_length(view: memoryview, place: int) -> int | None:
    """Return the length that an entry claims, its 12 bytes of offset and length included, or None if its header, of which 17 bytes must be there, is impossible."""
    length, magic = _LENGTH_AND_MAGIC(view, place)
    return length + LOG_OVERHEAD if magic in SMALLEST_LENGTH and length >= SMALLEST_LENGTH[magic] else None


def header_entry(window: WordBuffer, file_position: int) -> BatchTable:
    """Return the row of the entry at the start of the window, of which only the header needs to be there: its checksum is not checked yet."""
    headers = window.headers[:1].view(BATCH_HEADER.dtype)
    table = _table(headers, np.zeros(1, dtype=np.int64), file_position)
    if headers["magic"][0] < 2:
        _set_message_columns(table, headers, np.zeros(1, dtype=np.int64))
    return table


def _follow(view: memoryview, position: int, last: int, stop: int) -> tuple[list[int], int]:
    """Places of the entries of the length chain, and where it leaves the window.

    The loop runs once per batch and checks only that the chain advances: a length read as unsigned cannot lead back. The headers of all entries are
    checked at once afterwards.
    """
    positions: list[int] = []
    append = positions.append
    for _ in range(MOST_ENTRIES):
        if position > last:
            break
        end = position + _LENGTH(view, position)[0] + LOG_OVERHEAD
        if end > stop:
            break
        append(position)
        position = end
    return positions, position


def _checksums(view: memoryview, bounds: list[int], magics: list[int] | None) -> list[int]:
    if magics is None:
        return [crc32c(view[start + CRC_COVERED_POSITION : end]) for start, end in pairwise(bounds)]
    return [
        crc32c(view[start + CRC_COVERED_POSITION : end])
        if magic == 2
        else crc32(view[start + MESSAGE_CRC_COVERED : end])
        for (start, end), magic in zip(pairwise(bounds), magics, strict=True)
    ]


def _table(headers: NDArray[np.void], starts: NDArray[np.int64], file_position: int) -> BatchTable:
    table = empty_batches(len(headers))
    for name in _SAME_NAMES:
        table[name] = headers[name]
    table["magic"] = headers["magic"]
    table["count"] = headers["record_count"]
    # Added as int64: a damaged base offset may wrap, which the order checks then see.
    table["last_offset"] = headers["base_offset"].astype(np.int64) + headers["last_offset_delta"]
    table["position"] = starts + file_position
    table["length"] = headers["batch_length"].astype(np.int64) + LOG_OVERHEAD
    table["crc_valid"] = True
    return table


def _set_message_columns(table: BatchTable, headers: NDArray[np.void], rows: NDArray[np.int64]) -> None:
    """Magic 0 and 1 have other fields at the same places; a wrapper's first offset and count are filled in when it is opened."""
    messages = np.ascontiguousarray(headers[rows]).view(f"V{BATCH_HEADER.length}").view(np.uint8).reshape(len(rows), -1)
    fields = np.ascontiguousarray(messages[:, : MESSAGE_HEADER_1.length]).view(MESSAGE_HEADER_1.dtype)[:, 0]
    timestamps = np.where(fields["magic"] == 1, fields["timestamp"], -1)
    for name in ("partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence"):
        table[name][rows] = -1
    table["crc"][rows] = fields["crc"]
    table["attributes"][rows] = fields["attributes"]
    table["base_timestamp"][rows] = timestamps
    table["max_timestamp"][rows] = timestamps
    table["last_offset"][rows] = table["base_offset"][rows]
    table["count"][rows] = 1
