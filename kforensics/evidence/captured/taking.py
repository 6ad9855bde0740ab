"""What a capture takes of segments and indexes: digests in place of the content of records, and what the rules of loading ask of an index."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kforensics.errors import EvidenceError
from kforensics.evidence.captured.columns import NO_CONTROL
from kforensics.formats.index import SparseIndex, parse_offset_index, read_time_ends
from kforensics.formats.log.batch_table import CONTROL_BIT, BatchTable
from kforensics.formats.log.records import Record
from kforensics.formats.primitives.word_buffer import MemoryBytes, SegmentBytes, read_exactly, without_zero_tail
from kforensics.formats.segment.walk import iter_records
from kforensics.source.mapped import EvidenceFile, open_evidence

# Digests, which replace the content of records where the content itself stays on the broker.


CONTROL_BATCH_LIMIT = 4_096
"""Bytes of a control batch that are looked at; brokers write some 80."""

_DIGEST_SIZE = 16
_MARKERS, _MARKER_LENGTH = frozenset({0, 1}), 6
"""The types ABORT and COMMIT, and the length of the version and the coordinator's epoch in their values (EndTxnMarker.json)."""


def digest_record(record: Record, key: bytes = b"") -> Record:
    """Return the record with digests in the place of key, value and headers; control records, which hold nothing private, as they are.

    Args:
        key: of the digests; without one, whoever guesses the content can confirm the guess.
    """
    if record.is_control:
        return record
    headers = ((_digest(repr(record.headers).encode(), key), None),) if record.headers else ()
    return record._replace(key=_digest(record.key, key), value=_digest(record.value, key), headers=headers)


def _digest(content: bytes | None, key: bytes) -> Any:
    import hashlib  # noqa: PLC0415 - OpenSSL, 3 ms, for captures alone

    return None if content is None else hashlib.blake2b(content, digest_size=_DIGEST_SIZE, key=key).digest()


def control_types(batches: BatchTable, source: SegmentBytes) -> list[int | None]:
    """Return the type of each control batch of magic 2, none for all other batches and where it can't be read."""
    return [None if one == NO_CONTROL else one for one in controls(batches, source)[0].tolist()]


def controls(batches: BatchTable, source: SegmentBytes) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
    """Return the type of each control batch of magic 2, and the coordinator's epoch, -1 where it has none; `NO_CONTROL` for all other batches and where it can't be read.

    Args:
        source: the segment, of which `CONTROL_BATCH_LIMIT` bytes of a batch are read at most.
    """
    types = np.full(len(batches), NO_CONTROL, np.int16)
    epochs = np.full(len(batches), -1, np.int32)
    for at in np.flatnonzero(((batches["attributes"] & CONTROL_BIT) != 0) & (batches["magic"] == 2)):
        length = min(int(batches["length"][at]), CONTROL_BATCH_LIMIT)
        data = read_exactly(source, int(batches["position"][at]), length)
        record = next((one for one in iter_records(MemoryBytes(data)) if isinstance(one, Record)), None)
        if record is not None and record.key is not None and len(record.key) >= 4:
            kind, value = int.from_bytes(record.key[2:4], "big", signed=True), record.value or b""
            is_marker = kind in _MARKERS and len(value) >= _MARKER_LENGTH
            types[at] = kind
            epochs[at] = int.from_bytes(value[2:_MARKER_LENGTH], "big", signed=True) if is_marker else -1
    return types, epochs


# What a capture keeps of the indexes of a segment: what a broker looks up in them when it loads the log, and no more.
#
# An offset index whose entries all lead to batches comes to their number and the last of them: whichever entry a lookup ends at, the search behind it finds the same
# batch. Of a time index a start reads the last entry (`AbstractIndex`, `TimeIndex.lastEntry`), before 2.3 the first timestamp, too (`TimeIndex.sanityCheck`).


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
        """Look at the entries that name the places of some batches in file order, at least one, which follow those of the call before."""
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
