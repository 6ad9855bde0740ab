"""The outcome of transactions by the markers of one log.

The records of a producer up to its next marker share the marker's outcome (KIP-98); records that no marker follows are of a transaction that is undecided in
this log. Markers of one outcome that follow each other count as one, so that a log of commits alone needs one number a producer.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable
from kforensics.formats.primitives.numbers import distinct


class Marker(NamedTuple):
    """The end of a transaction in a log."""

    producer_id: int
    offset: int
    is_abort: bool


class Outcomes:
    """The outcomes of the transactions of a log, which say which records are of aborted ones.

    Args:
        markers: of the log, by rising offset.
    """

    def __init__(self, markers: Iterable[Marker] = ()) -> None:
        self._ends: dict[int, list[tuple[int, bool]]] = {}
        self._arrays: dict[int, tuple[NDArray[np.int64], NDArray[np.bool_]]] = {}
        self.has_aborted = False
        for marker in markers:
            self.add(marker)

    def add(self, marker: Marker) -> None:
        """Add the next marker of the log, at a higher offset than those before."""
        ends = self._ends.setdefault(marker.producer_id, [])
        self._arrays.pop(marker.producer_id, None)
        self.has_aborted |= marker.is_abort
        if ends and ends[-1][1] is marker.is_abort:
            ends[-1] = (max(ends[-1][0], marker.offset), marker.is_abort)
        else:
            ends.append((marker.offset, marker.is_abort))

    def are_aborted(self, rows: BatchTable) -> NDArray[np.bool_]:
        """Return whether each batch is of an aborted transaction; one that no marker follows is not."""
        out = np.zeros(len(rows), dtype=np.bool_)
        if not self.has_aborted:
            return out
        candidates = are_transactional(rows)
        for producer in distinct(rows["producer_id"][candidates]).tolist():
            if producer not in self._ends:
                continue
            offsets, aborts = self._of(producer)
            mine = candidates & (rows["producer_id"] == producer)
            at = np.searchsorted(offsets, rows["last_offset"][mine], side="right")
            out[mine] = np.append(aborts, False)[at]
        return out

    def _of(self, producer: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if producer not in self._arrays:
            ends = self._ends[producer]
            self._arrays[producer] = (
                np.array([offset for offset, _ in ends], dtype=np.int64),
                np.array([is_abort for _, is_abort in ends], dtype=np.bool_),
            )
        return self._arrays[producer]


def are_transactional(rows: BatchTable) -> NDArray[np.bool_]:
    """Return whether each batch holds data of a transaction."""
    kinds = rows["attributes"] & (TRANSACTIONAL_BIT | CONTROL_BIT)
    found: NDArray[np.bool_] = (rows["magic"] == 2) & (kinds == TRANSACTIONAL_BIT)
    return found


def are_markers(rows: BatchTable) -> NDArray[np.bool_]:
    """Return whether each batch is a control batch of a producer: the end of a transaction."""
    found: NDArray[np.bool_] = (
        (rows["magic"] == 2) & (rows["attributes"] & CONTROL_BIT > 0) & (rows["producer_id"] >= 0)
    )
    return found
