"""Records of a window as columns over one buffer, in file order, so that listing many records copies no payload."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Damage, DamageKind
from kforensics.errors import FormatError
from kforensics.formats.columns.batch_checks import WindowBatches
from kforensics.formats.columns.record_chain import Positions, Values, Words
from kforensics.formats.columns.record_columns import (
    Bodies,
    BodyDamage,
    RecordColumns,
    compressed_bodies,
    find_damaged_bodies,
    iter_columns,
    plain_bodies,
)
from kforensics.formats.log.batch_table import (
    CODEC_MASK,
    CONTROL_BIT,
    MESSAGE_HEADER_0,
    MESSAGE_HEADER_1,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchTable,
)
from kforensics.formats.log.batches import iter_message_records
from kforensics.formats.log.records import Record, parse_headers, slice_nullable
from kforensics.formats.primitives.numbers import distinct

_LARGEST_SEQUENCE = (1 << 31) - 1
_MESSAGES_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class RecordChunk:
    """Records in file order; `view` and the positions in it hold until the next chunk is asked for."""

    view: memoryview
    batches: BatchTable
    """The batch table to which `rows` refers."""
    rows: NDArray[np.int64]
    """The row of the batch of each record."""
    offset: NDArray[np.int64]
    timestamp_ms: NDArray[np.int64]
    """The effective timestamp in milliseconds, -1 for none."""
    sequence: NDArray[np.int64]
    """-1 for none."""
    key_position: NDArray[np.int64]
    key_length: NDArray[np.int64]
    """-1 for null, as `value_length`."""
    value_position: NDArray[np.int64]
    value_length: NDArray[np.int64]
    header_position: NDArray[np.int64]
    header_count: NDArray[np.int64]
    end: NDArray[np.int64]
    """The position behind the record, where its headers end too."""

    def records(self) -> Iterator[Record]:
        """Yield the records as values with copies of their payloads."""
        view = self.view
        numbers = (self.offset, self.timestamp_ms, self.sequence)
        places = (self.key_position, self.key_length, self.value_position, self.value_length)
        columns = (*numbers, *places, self.header_position, self.header_count, self.end)
        batches = [_batch_fields(batch) for batch in self.batches[self.rows[0] : self.rows[-1] + 1]]
        rows = (self.rows - self.rows[0]).tolist()
        for row, (offset, time, sequence, key, key_length, value, value_length, headers, count, end) in zip(
            rows, zip(*(column.tolist() for column in columns), strict=True), strict=True
        ):
            yield Record(
                offset,
                time,
                slice_nullable(view, key, key_length),
                slice_nullable(view, value, value_length),
                parse_headers(view, headers, end, count) if count else (),
                sequence,
                *batches[row],
            )


def iter_chunks(batches: WindowBatches) -> Iterator[RecordChunk | Damage]:
    """Yield the records of all batches whose checksum holds, and of a batch that breaks off its damage behind the records before the break.

    Args:
        batches: the batches of one window, whole; what breaks off is also rejected there.

    Yields:
        Chunks, each valid until the next one is asked for, and damage in its place.
    """
    table = batches.table
    kinds = np.where(table["magic"] < 2, 2, table["attributes"] & CODEC_MASK > 0)
    rows = np.flatnonzero(table["crc_valid"])
    edges = np.flatnonzero(np.diff(kinds[rows])) + 1
    for run in np.split(rows, edges):
        if not len(run):
            continue
        kind = int(kinds[run[0]])
        if kind == 2:
            yield from _message_chunks(batches, run)
        elif kind == 1:
            for found in compressed_bodies(batches.window, batches.payload, table, run, batches.file_position):
                yield from _body_chunks(batches, found)
        else:
            yield from _body_chunks(batches, plain_bodies(batches.window, table, run, batches.file_position))


def _body_chunks(batches: WindowBatches, found: Bodies | BodyDamage) -> Iterator[RecordChunk | Damage]:
    for columns in [found] if isinstance(found, BodyDamage) else iter_columns(*found, batches.exact):
        if isinstance(columns, BodyDamage):
            batches.reject_body(*columns)
            yield batches.damage[-1]
        elif len(columns.rows):
            assert isinstance(found, Bodies)
            yield _chunk(found.buffer.view, batches.table, columns)


def _chunk(view: memoryview, table: BatchTable, columns: RecordColumns) -> RecordChunk:
    rows = columns.rows
    attributes = table["attributes"][rows]
    is_log_append = attributes & TIMESTAMP_TYPE_BIT > 0
    own_time = table["base_timestamp"][rows] + columns.timestamp_delta
    base_sequence = table["base_sequence"][rows].astype(np.int64)
    sequence = base_sequence + columns.offset_delta
    sequence = np.where(sequence > _LARGEST_SEQUENCE, sequence - _LARGEST_SEQUENCE - 1, sequence)
    return RecordChunk(
        view,
        table,
        rows,
        table["base_offset"][rows] + columns.offset_delta,
        np.where(is_log_append, table["max_timestamp"][rows], own_time),
        np.where(base_sequence < 0, -1, sequence),
        columns.key_position,
        columns.key_length,
        columns.value_position,
        columns.value_length,
        columns.header_position,
        columns.header_count,
        columns.end,
    )


def _message_chunks(batches: WindowBatches, rows: NDArray[np.int64]) -> Iterator[RecordChunk | Damage]:
    """Messages of magic 0 and 1, wrapped or not, by the exact reader."""
    gathered: list[tuple[int, Record]] = []
    for row in rows.tolist():
        start = int(batches.table["position"][row]) - batches.file_position
        data = batches.window.view[start : start + int(batches.table["length"][row])]
        error: FormatError | None = None
        try:
            for record in iter_message_records(data, 0):
                gathered.append((row, record))
                if len(gathered) >= _MESSAGES_AT_ONCE:
                    yield _message_chunk(batches.table, gathered)
                    gathered = []
        except FormatError as caught:
            error = caught.as_value()
        if error is not None:
            if gathered:
                yield _message_chunk(batches.table, gathered)
                gathered = []
            batches.reject_body(row, error)
            yield batches.damage[-1]
    if gathered:
        yield _message_chunk(batches.table, gathered)


def _message_chunk(table: BatchTable, gathered: list[tuple[int, Record]]) -> RecordChunk:
    keys = [record.key for _, record in gathered]
    values = [record.value for _, record in gathered]
    key_length = np.array([-1 if key is None else len(key) for key in keys], dtype=np.int64)
    value_length = np.array([-1 if value is None else len(value) for value in values], dtype=np.int64)
    end = np.cumsum(np.maximum(key_length, 0) + np.maximum(value_length, 0))
    value_position = end - np.maximum(value_length, 0)
    none = np.full(len(gathered), -1, dtype=np.int64)
    return RecordChunk(
        memoryview(b"".join(part or b"" for pair in zip(keys, values, strict=True) for part in pair)),
        table,
        np.array([row for row, _ in gathered], dtype=np.int64),
        np.array([record.offset for _, record in gathered], dtype=np.int64),
        np.array([record.timestamp_ms for _, record in gathered], dtype=np.int64),
        none,
        value_position - np.maximum(key_length, 0),
        key_length,
        value_position,
        value_length,
        end,
        np.zeros(len(gathered), dtype=np.int64),
        end,
    )


def _batch_fields(batch: np.void) -> tuple[int, int, int, int, int, int, bool, bool]:
    """Return the fields of a batch that a `Record` carries, in its order."""
    attributes = int(batch["attributes"])
    return (
        int(batch["position"]),
        int(batch["base_offset"]),
        int(batch["partition_leader_epoch"]),
        int(batch["producer_id"]),
        int(batch["producer_epoch"]),
        int(batch["magic"]),
        bool(attributes & TRANSACTIONAL_BIT),
        bool(attributes & CONTROL_BIT),
    )


# The checks of every record of a batch whose checksum is right.


def check_records(batches: WindowBatches) -> None:
    """Check every record of every sound batch, lengths, counts and rising offsets, and reject malformed batches."""
    _check_messages(batches)
    for found in _bodies(batches):
        for damaged in [found] if isinstance(found, BodyDamage) else find_damaged_bodies(*found, batches.exact):
            batches.reject_body(*damaged)


def _bodies(batches: WindowBatches) -> Iterator[Bodies | BodyDamage]:
    table = batches.table
    is_batch = batches.sound & (table["magic"] == 2)
    is_compressed = table["attributes"] & CODEC_MASK > 0
    plain = np.flatnonzero(is_batch & ~is_compressed)
    if len(plain):
        yield plain_bodies(batches.window, table, plain, batches.file_position)
    compressed = np.flatnonzero(is_batch & is_compressed)
    if len(compressed):
        yield from compressed_bodies(batches.window, batches.payload, table, compressed, batches.file_position)


def _check_messages(batches: WindowBatches) -> None:
    """Check that key and value fill the length of each plain message of magic 0 and 1."""
    table = batches.table
    rows = np.flatnonzero(batches.sound & (table["magic"] < 2) & (table["attributes"] & CODEC_MASK == 0))
    if not len(rows):
        return
    starts = table["position"][rows] - batches.file_position
    ends = starts + table["length"][rows]
    numbers = np.ndarray((batches.window.capacity,), ">i4", buffer=batches.window.view, strides=(1,))
    keys = starts + np.where(table["magic"][rows] == 1, MESSAGE_HEADER_1.length, MESSAGE_HEADER_0.length)
    key_lengths = numbers[keys].astype(np.int64)
    values = keys + 4 + np.maximum(key_lengths, 0)
    fits = (key_lengths >= -1) & (values + 4 <= ends)
    value_lengths = numbers[np.where(fits, values, keys)].astype(np.int64)
    fits &= (value_lengths >= -1) & (values + 4 + np.maximum(value_lengths, 0) == ends)
    for index in np.flatnonzero(~fits).tolist():
        found = f"key length {key_lengths[index]}, value length {value_lengths[index]}"
        batches.reject(
            int(rows[index]), DamageKind.RECORD, f"key and value in {ends[index] - keys[index]} bytes", found
        )


# Split chunks of records at control records, and at the batch where another reader takes over.


_SHARED = frozenset({"view", "batches"})
_COLUMNS = tuple(field.name for field in fields(RecordChunk) if field.name not in _SHARED)


def split_control(chunk: RecordChunk) -> Iterator[tuple[RecordChunk, bool]]:
    """Yield the parts of a chunk of at least one record in their order, and whether a part holds control records."""
    batches = chunk.batches
    is_control = (batches["magic"] >= 2) & (batches["attributes"] & CONTROL_BIT != 0)
    if not is_control.any():
        yield chunk, False
        return
    flags = is_control[chunk.rows]
    edges = distinct(np.array([0, *(np.flatnonzero(np.diff(flags)) + 1), len(flags)])).tolist()
    for first, end in pairwise(edges):
        yield part_of(chunk, slice(first, end)), bool(flags[first])


def behind(chunk: RecordChunk, position: int) -> RecordChunk:
    """Return the records whose batches begin at or behind a position in the file, in bytes."""
    kept = chunk.batches["position"][chunk.rows] >= position
    return chunk if kept.all() else part_of(chunk, kept)


def part_of(chunk: RecordChunk, kept: slice | np.ndarray) -> RecordChunk:
    """Return some records of a chunk, which share its bytes and batch table."""
    return replace(chunk, **{name: getattr(chunk, name)[kept] for name in _COLUMNS})


# Number the keys of records: the same bytes get the same number, many records at once.
#
# A key is looked up by a hash of its words of eight bytes and then compared word for word. What is not found so, because it is new, long, or has a hash that another
# key took first, is looked up in a dictionary.


MOST_WORDS = 16
"""Words of the longest key that is compared as words."""

MOST_COMPARED = 1 << 15
"""Keys that are compared as words: the first ones."""

_SLOT_BITS = 18
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SPREAD, _SHIFT = np.uint64(29), np.uint64(64 - _SLOT_BITS)
_MASKS = np.array([(1 << 8 * length) - 1 for length in range(9)], dtype=np.uint64)
_NONE = -1


class KnownKeys:
    """Keys with their numbers.

    Args:
        number: gives the number of a key that is met for the first time; several keys may have one number.
    """

    def __init__(self, number: Callable[[bytes], int]) -> None:
        self._number = number
        self._known: dict[bytes, int] = {}
        self._numbers = np.zeros(0, dtype=np.int64)
        self._lengths = np.zeros(0, dtype=np.int64)
        self._words = np.zeros((MOST_WORDS, 0), dtype=np.uint64)
        self._count = 0
        self._slots = np.full(1 << _SLOT_BITS, _NONE, dtype=np.int32)

    def numbers(self, data: bytearray, starts: Positions, lengths: Values) -> Values:
        """Return the number of each key.

        Args:
            data: the bytes that hold the keys, and eight more.
            lengths: of each key in bytes; one of a length below 0 counts as empty.
        """
        words = np.ndarray((len(data) - 8,), "<u8", buffer=data, strides=(1,))
        lengths = np.maximum(lengths, 0)
        slots, columns = _hashed(words, starts, lengths)
        found = self._slots[slots]
        is_same = found != _NONE
        if self._count:
            is_same &= self._lengths[found] == lengths
            for column, known in zip(columns, self._words, strict=False):
                is_same &= known[found] == column
            numbers = self._numbers[found]
        else:
            numbers = np.zeros(len(starts), dtype=np.int64)
        for at in np.flatnonzero(~is_same).tolist():
            start = int(starts[at])
            key = bytes(data[start : start + int(lengths[at])])
            number = self._known.get(key)
            if number is None:
                number = self._known[key] = self._number(key)
                if len(key) <= 8 * MOST_WORDS and self._count < MOST_COMPARED and self._slots[slots[at]] == _NONE:
                    self._add(int(slots[at]), number, len(key), [column[at] for column in columns])
            numbers[at] = number
        return numbers

    def _add(self, slot: int, number: int, length: int, words: list[np.uint64]) -> None:
        if self._count == len(self._numbers):
            more = max(self._count, 64)
            self._numbers = np.concatenate((self._numbers, np.zeros(more, dtype=np.int64)))
            self._lengths = np.concatenate((self._lengths, np.zeros(more, dtype=np.int64)))
            self._words = np.concatenate((self._words, np.zeros((MOST_WORDS, more), dtype=np.uint64)), axis=1)
        self._slots[slot] = self._count
        self._numbers[self._count], self._lengths[self._count] = number, length
        self._words[: len(words), self._count] = words
        self._count += 1


def _hashed(words: Words, starts: Positions, lengths: Values) -> tuple[NDArray[np.int64], list[Words]]:
    """Return the slot of each key, and its words: one column for each eight bytes, zero behind its end."""
    hashes = lengths.astype(np.uint64)
    columns: list[Words] = []
    for number in range(min(-(-int(lengths.max(initial=0)) // 8), MOST_WORDS)):
        left = np.clip(lengths - 8 * number, 0, 8)
        # Behind the end of a key nothing is kept of what is read.
        column = words[np.minimum(starts + 8 * number, len(words) - 1)] & _MASKS[left]
        hashes = (hashes ^ column) * _FACTOR
        hashes ^= hashes >> _SPREAD
        columns.append(column)
    return ((hashes * _FACTOR) >> _SHIFT).astype(np.int64), columns
