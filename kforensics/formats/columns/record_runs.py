"""Split chunks of records at control records, and at the batch where another reader takes over."""

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np

from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import CONTROL_BIT
from kforensics.formats.primitives.distinct import distinct

_SHARED = frozenset({"view", "batches"})
_COLUMNS = tuple(field.name for field in fields(RecordChunk) if field.name not in _SHARED)


def split_control(chunk: RecordChunk) -> Iterator[tuple[RecordChunk, bool]]:
    """Yield the parts of a chunk in their order, and whether a part holds control records.

    Args:
        chunk: at least one record; control records are those of batches of magic 2 with the control bit.
    """
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
    """Return the records whose batches begin at or behind a position in the file.

    Args:
        position: in bytes, of a batch and not of a record.
    """
    kept = chunk.batches["position"][chunk.rows] >= position
    return chunk if kept.all() else part_of(chunk, kept)


def part_of(chunk: RecordChunk, kept: slice | np.ndarray) -> RecordChunk:
    """Return some records of a chunk, which share its bytes and batch table.

    Args:
        kept: a slice, or a mask or row numbers as numpy takes them.
    """
    return replace(chunk, **{name: getattr(chunk, name)[kept] for name in _COLUMNS})
