"""The batches at the places that index entries name, collected window by window; judged once the whole segment is read."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.log.batch_table import BatchTable

NO_BATCH = -(2**62)
"""The value for an entry that names a position without a batch."""

UNREADABLE = -(2**62) + 1
"""The value for a place whose batch is damaged, so that its header says nothing."""


class PositionLookups:
    """Base offsets of the batches that begin at the positions of offset index entries."""

    def __init__(self, positions: NDArray[Any]) -> None:
        """Start with nothing found."""
        self._order = np.argsort(positions, kind="stable")
        self._sorted = positions[self._order]
        self.base_offsets = np.full(len(positions), NO_BATCH, dtype=np.int64)

    def add(self, batches: BatchTable) -> None:
        """Look up the positions that lie in one window.

        Args:
            batches: those of the window in file order, damaged ones included.
        """
        if not len(batches) or not len(self._sorted):
            return
        positions = batches["position"]
        first = np.searchsorted(self._sorted, positions[0], side="left")
        last = np.searchsorted(self._sorted, positions[-1], side="right")
        wanted = self._sorted[first:last]
        if not len(wanted):
            return
        at = np.searchsorted(positions, wanted)
        is_start = positions[at] == wanted
        found = np.where(batches["crc_valid"][at], batches["base_offset"][at], UNREADABLE)
        self.base_offsets[self._order[first:last][is_start]] = found[is_start]


class OffsetLookups:
    """Largest timestamps of the batches that hold the offsets of time index entries, and of all batches up to there."""

    def __init__(self, offsets: NDArray[Any]) -> None:
        """Start with nothing found."""
        self._order = np.argsort(offsets, kind="stable")
        self._sorted = offsets[self._order]
        self._at = 0
        self.timestamps = np.full(len(offsets), NO_BATCH, dtype=np.int64)
        self.highest_so_far = np.full(len(offsets), NO_BATCH, dtype=np.int64)
        self.highest = NO_BATCH

    def add(self, batches: BatchTable) -> None:
        """Look up the offsets that lie in one window.

        Args:
            batches: those of the window in file order, damaged ones included; windows come in the order of the file.
        """
        if not len(batches) or not len(self._sorted):
            return
        # Sorted in sound logs; where it is not, the lookup still ends at a batch and is judged by what that holds.
        last_offsets = np.maximum.accumulate(batches["last_offset"])
        end = int(np.searchsorted(self._sorted, last_offsets[-1], side="right"))
        start, self._at = self._at, max(end, self._at)
        timestamps = batches["max_timestamp"]
        trusted = np.where(batches["crc_valid"], timestamps, NO_BATCH)
        highest = np.maximum(np.maximum.accumulate(trusted), self.highest)
        self.highest = int(highest[-1])
        wanted = self._sorted[start : self._at]
        if not len(wanted):
            return
        at = np.searchsorted(last_offsets, wanted)
        inside = batches["base_offset"][at] <= wanted
        found = np.where(batches["crc_valid"][at], timestamps[at], UNREADABLE)
        entries = self._order[start : self._at]
        self.timestamps[entries[inside]] = found[inside]
        self.highest_so_far[entries[inside]] = highest[at][inside]
