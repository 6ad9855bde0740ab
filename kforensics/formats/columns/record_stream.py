"""Records of a window as columns over one buffer, in file order, so that listing many records copies no payload."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Damage
from kforensics.errors import FormatError
from kforensics.formats.columns.batch_checks import WindowBatches
from kforensics.formats.columns.bodies import Bodies, BodyDamage, compressed_bodies, plain_bodies
from kforensics.formats.columns.record_columns import LaneDamage, RecordColumns, iter_columns
from kforensics.formats.log.batch_table import (
    CODEC_MASK,
    CONTROL_BIT,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchTable,
)
from kforensics.formats.log.headers import BATCH_HEADER
from kforensics.formats.log.message_set import iter_message_records
from kforensics.formats.log.records import Record, parse_headers, slice_nullable

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
    if isinstance(found, BodyDamage):
        batches.reject_body(found.row, found.error)
        yield batches.damage[-1]
        return
    for columns in iter_columns(found.buffer, found.lanes, batches.exact):
        if isinstance(columns, LaneDamage):
            start = int(found.lanes.starts[columns.lane])
            batches.reject_body(int(found.lanes.rows[columns.lane]), columns.error, start - BATCH_HEADER.length)
            yield batches.damage[-1]
        elif len(columns.rows):
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
