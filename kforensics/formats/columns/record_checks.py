"""The checks of every record of a batch whose checksum is right."""

from collections.abc import Iterator

import numpy as np

from kforensics.damage import DamageKind
from kforensics.formats.columns.batch_checks import WindowBatches
from kforensics.formats.columns.bodies import Bodies, BodyDamage, compressed_bodies, plain_bodies
from kforensics.formats.columns.record_columns import find_damaged_lanes
from kforensics.formats.log.batch_table import CODEC_MASK
from kforensics.formats.log.headers import BATCH_HEADER, MESSAGE_HEADER_0, MESSAGE_HEADER_1


def check_records(batches: WindowBatches) -> None:
    """Check every record of every sound batch: lengths, counts, rising offsets.

    Args:
        batches: malformed ones are rejected; bodies are decompressed into its payload buffer.
    """
    _check_messages(batches)
    for found in _bodies(batches):
        if isinstance(found, BodyDamage):
            batches.reject_body(found.row, found.error)
            continue
        for damaged in find_damaged_lanes(found.buffer, found.lanes, batches.exact):
            start = int(found.lanes.starts[damaged.lane])
            batches.reject_body(int(found.lanes.rows[damaged.lane]), damaged.error, start - BATCH_HEADER.length)


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
