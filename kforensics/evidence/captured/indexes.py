"""What a capture keeps of the indexes of a segment: what a broker looks up in them when it loads the log, and no more.

An offset index whose entries all lead to batches comes to their number and the last of them: whichever entry a lookup ends at, the search behind it finds the same
batch. Of a time index a start reads the last entry (`AbstractIndex`, `TimeIndex.lastEntry`), before 2.3 the first timestamp, too (`TimeIndex.sanityCheck`).
"""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from kforensics.errors import EvidenceError
from kforensics.formats.index.sparse import SparseIndex, parse_offset_index, read_time_ends
from kforensics.formats.log.batch_table import BatchTable
from kforensics.formats.primitives.word_buffer import without_zero_tail
from kforensics.source.mapped import EvidenceFile, open_evidence

T = TypeVar("T")

OFFSET_INDEX, TIME_INDEX = ".index", ".timeindex"
LARGEST_INDEX = 64 << 20
"""Bytes of an offset index up to which its entries are held against the batches."""


class IndexWatch:
    """Holds the entries of a segment's offset index against its batches, window after window.

    Args:
        endings: of the indexes that it has under the names that a broker loads it by, none where they are empty.
    """

    def __init__(self, log: Path, base_offset: int, endings: Collection[str]) -> None:
        self._index = _opened(log.with_suffix(OFFSET_INDEX), _offset_index) if OFFSET_INDEX in endings else None
        self._time_ends = _opened(log.with_suffix(TIME_INDEX), _time_ends) if TIME_INDEX in endings else None
        self._led = 0
        self._is_sound = self._index is not None and not self._index.damage
        if self._index is not None:
            self._offsets = self._index.entries["relative_offset"].astype(np.int64) + base_offset
            self._positions = self._index.entries["position"].astype(np.int64)

    def see(self, sound: BatchTable) -> None:
        """Look at the entries that name the places of some batches, which follow those of the call before.

        Args:
            sound: a batch table with at least one row, in file order.
        """
        if not self._is_sound:
            return
        positions = sound["position"]
        first, end = np.searchsorted(self._positions, (int(positions[0]), int(positions[-1]) + 1))
        at = np.searchsorted(positions, self._positions[first:end])
        leads = positions[at] == self._positions[first:end]
        self._is_sound = bool((leads & (sound["base_offset"][at] <= self._offsets[first:end])).all())
        self._led += int(end - first)

    def contents(self, *, is_damaged: bool) -> dict[str, dict[str, Any]]:
        """Return what the capture says of each index, by its ending; nothing of one that has to be read itself.

        Args:
            is_damaged: whether the log is, so that a search does not find the same batch from every place before it.
        """
        out: dict[str, dict[str, Any]] = {}
        if self._index is not None and not is_damaged and self._is_sound and self._led == len(self._positions):
            last = self._index.entries[-1].tolist() if self._led else [0, 0]
            out[OFFSET_INDEX] = {"index": {"entries": self._led, "last": list(last)}}
        if self._time_ends is not None:
            out[TIME_INDEX] = {"index": self._time_ends}
        return out


def _opened(path: Path, read: Callable[[EvidenceFile], T]) -> T | None:
    try:
        with open_evidence(path) as file:
            return read(file)
    except EvidenceError:
        return None  # it is named where the file itself is asked for


def _offset_index(file: EvidenceFile) -> SparseIndex:
    file.require_at_most(LARGEST_INDEX)
    return parse_offset_index(without_zero_tail(file), file.size)


def _time_ends(file: EvidenceFile) -> dict[str, int]:
    ends = read_time_ends(file.read, file.size)
    return {"last_timestamp": -1} if ends is None else ends._asdict()
