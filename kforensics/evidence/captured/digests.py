"""Digests, which replace the content of records where the content itself stays on the broker."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.evidence.captured.columns import NO_CONTROL
from kforensics.formats.log.batch_table import CONTROL_BIT, BatchTable
from kforensics.formats.log.records import Record
from kforensics.formats.primitives.word_buffer import MemoryBytes, SegmentBytes, read_exactly
from kforensics.formats.segment.walk import iter_records

CONTROL_BATCH_LIMIT = 4_096
"""Bytes of a control batch that are looked at; brokers write some 80."""

_DIGEST_SIZE = 16
_MARKERS, _MARKER_LENGTH = frozenset({0, 1}), 6
"""The types ABORT and COMMIT, and the length of the version and the coordinator's epoch in their values (EndTxnMarker.json)."""


def digest_record(record: Record, key: bytes = b"") -> Record:
    """Return the record with digests in the place of key, value and headers; control records, which hold nothing private, as they are.

    Args:
        record: as it is in the log.
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
