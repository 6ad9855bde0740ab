"""Rows of batches that wait in a file without a name until they are asked for: of a large partition they take more memory than all else."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.evidence.replica.segments import KEPT_BATCHES
from kforensics.formats.log.batch_table import BatchTable, empty_batches

_ROW_LENGTH = empty_batches().dtype.itemsize
_BLOCK_ROWS = 512
"""Rows that are read together."""


@dataclass(frozen=True, slots=True)
class SpooledTable:
    """Where the rows of a part of a segment are, and which offsets each block of them touches."""

    position: int
    count: int
    lowest: NDArray[np.int64]
    """The lowest base offset of each block."""
    highest: NDArray[np.int64]
    """The highest last offset of each block."""


class RowSpool:
    """Rows of segments by input and path; forked processes write theirs to places of their own.

    Args:
        folder: on whose file system the file is made.

    Raises:
        OSError: no file can be made there.
    """

    def __init__(self, folder: Path) -> None:
        import tempfile  # noqa: PLC0415 - of large partitions alone

        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - `close` closes it
        self._tables: dict[tuple[int, str], Sequence[SpooledTable]] = {}

    def write(self, number: int, rows: BatchTable) -> SpooledTable:
        """Write rows.

        Args:
            number: of the part, which no other has.
            rows: in file order, no more than are kept of a segment.

        Raises:
            OSError: the system takes no more.
        """
        position = number * KEPT_BATCHES * _ROW_LENGTH
        left, at = _octets(np.ascontiguousarray(rows)), position
        while left:
            count = os.pwrite(self._file.fileno(), left, at)
            left, at = left[count:], at + count
        edges = np.arange(0, len(rows), _BLOCK_ROWS)
        lowest = np.minimum.reduceat(rows["base_offset"], edges) if len(rows) else np.empty(0, np.int64)
        highest = np.maximum.reduceat(rows["last_offset"], edges) if len(rows) else np.empty(0, np.int64)
        return SpooledTable(position, len(rows), lowest, highest)

    def add(self, input_index: int, path: str, tables: Sequence[SpooledTable]) -> None:
        """Take note of all rows of a segment.

        Args:
            path: of the segment, relative to its input.
            tables: of its parts, in the order of the file.
        """
        self._tables[input_index, path] = tables

    def read(self, tables: Sequence[SpooledTable]) -> BatchTable:
        """Return all rows.

        Raises:
            OSError: they can't be read.
        """
        return np.concatenate([empty_batches(), *(self._rows(one, 0, one.count) for one in tables)])

    def rows(self, input_index: int, path: str, first_offset: int, last_offset: int) -> BatchTable | None:
        """Return the rows that touch the offsets, with others around them, in file order; none of a segment whose rows are not here, or can't be read any more.

        Args:
            path: of the segment, relative to its input.
        """
        tables = self._tables.get((input_index, path))
        if tables is None:
            return None
        found = [empty_batches()]
        try:
            for one in tables:
                touched = np.flatnonzero((one.lowest <= last_offset) & (one.highest >= first_offset))
                for run in np.split(touched, np.flatnonzero(np.diff(touched) > 1) + 1) if len(touched) else ():
                    first, end = int(run[0]) * _BLOCK_ROWS, min((int(run[-1]) + 1) * _BLOCK_ROWS, one.count)
                    found.append(self._rows(one, first, end))
        except OSError:
            return None  # the segment says the same
        return np.concatenate(found)

    def _rows(self, table: SpooledTable, first: int, end: int) -> BatchTable:
        rows = empty_batches(end - first)
        left, at = _octets(rows), table.position + first * _ROW_LENGTH
        while left:
            count = os.preadv(self._file.fileno(), [left], at)
            if not count:
                raise OSError("rows of batches that were put aside are not there any more")
            left, at = left[count:], at + count
        return rows

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


def _octets(rows: BatchTable) -> memoryview:
    octets: Any = rows.view(np.uint8)
    return memoryview(octets)
