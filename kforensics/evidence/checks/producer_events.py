"""The effect of a run of batches on the producer state, small enough to be sent between processes and folded in log order.

A run of data batches of one producer between two markers is one `DataRun`, since only its first transactional offset
and its last batch matter;
a transaction's end is a `Marker`. Batches of a producer without transactions are one run.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable
from kforensics.formats.primitives.distinct import distinct, first_of_each

NONE = -1
ABORT = 0
COMMIT = 1

_CONTROL_KEY = struct.Struct(">hh")
_END_TXN_VALUE = struct.Struct(">hi")


class DataRun(NamedTuple):
    """The last batch of a run of one producer, and where its transaction began if one began or continued in the run (-1: none)."""

    producer_id: int
    transaction_first_offset: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int


class Marker(NamedTuple):
    """The end of a transaction."""

    producer_id: int
    producer_epoch: int
    offset: int
    is_abort: bool
    coordinator_epoch: int
    timestamp: int


class Split(NamedTuple):
    """All batches below this offset lie before, all others behind."""

    offset: int


ProducerEvent = DataRun | Marker | Split
MarkerReader = Callable[[int, int], "tuple[int, int] | None"]
"""Type and coordinator epoch of the control batch at a position and length, nothing where it is no marker."""


class ProducerEvents:
    """Collects events window by window.

    Args:
        splits: offsets, rising, at which the state will be asked for.
    """

    def __init__(self, splits: tuple[int, ...], read_marker: MarkerReader) -> None:
        """Start with nothing pending."""
        self._splits = list(splits)
        self._read_marker = read_marker
        self._pending: dict[int, DataRun] = {}
        self.events: list[ProducerEvent] = []

    def add(self, batches: BatchTable) -> None:
        """Add the sound batches of one window.

        Args:
            batches: in file order; windows come in the order of the file.
        """
        if not len(batches):
            return
        while self._splits and self._splits[0] <= int(batches["base_offset"].max()):
            offset = self._splits.pop(0)
            at = int(np.argmax(batches["base_offset"] >= offset))
            self._add_whole(batches[:at])
            batches = batches[at:]
            self._flush()
            self.events.append(Split(offset))
        self._add_whole(batches)

    def finish(self) -> tuple[ProducerEvent, ...]:
        """Return all events without the split points that no batch reached, since a later part of the log may reach them."""
        self._flush()
        return tuple(self.events)

    def _flush(self) -> None:
        self.events.extend(self._pending.values())
        self._pending.clear()

    def _add_whole(self, batches: BatchTable) -> None:
        of_producers = batches[(batches["producer_id"] >= 0) & (batches["magic"] == 2)]
        if not len(of_producers):
            return
        is_special = (of_producers["attributes"] & (CONTROL_BIT | TRANSACTIONAL_BIT)) != 0
        if is_special.any():
            special_ids = distinct(of_producers["producer_id"][is_special])
            by_row = np.isin(of_producers["producer_id"], special_ids)
            for row in of_producers[by_row]:
                self._add_row(row)
            of_producers = of_producers[~by_row]
        for row in _last_of_each(of_producers):
            self._pending[int(row["producer_id"])] = _data_run(row, NONE)

    def _add_row(self, row: Any) -> None:
        producer_id = int(row["producer_id"])
        attributes = int(row["attributes"])
        if attributes & CONTROL_BIT:
            marker = self._read_marker(int(row["position"]), int(row["length"]))
            if marker is None or marker[0] not in (ABORT, COMMIT):
                return
            # The last stable offset at an abort depends on every transaction that is open there.
            self._flush()
            self.events.append(
                Marker(
                    producer_id,
                    int(row["producer_epoch"]),
                    int(row["last_offset"]),
                    marker[0] == ABORT,
                    marker[1],
                    int(row["max_timestamp"]),
                )
            )
            return
        before = self._pending.get(producer_id)
        first = NONE if before is None else before.transaction_first_offset
        if first == NONE and attributes & TRANSACTIONAL_BIT:
            first = int(row["base_offset"])
        self._pending[producer_id] = _data_run(row, first)


def _last_of_each(batches: BatchTable) -> Iterator[Any]:
    if len(batches):
        _, from_end = first_of_each(batches["producer_id"][::-1])
        yield from batches[np.sort(len(batches) - 1 - from_end)]


def _data_run(row: Any, transaction_first_offset: int) -> DataRun:
    delta = int(row["last_offset"]) - int(row["base_offset"])
    base_sequence = int(row["base_sequence"])
    last_sequence = NONE if base_sequence < 0 else (base_sequence + delta) & 0x7FFFFFFF
    return DataRun(
        int(row["producer_id"]),
        transaction_first_offset,
        int(row["producer_epoch"]),
        last_sequence,
        int(row["last_offset"]),
        delta,
        int(row["max_timestamp"]),
    )


def parse_marker(key: bytes | None, value: bytes | None) -> tuple[int, int] | None:
    """Return type and coordinator epoch of a control record that ends a transaction, none where it is too short.

    Args:
        key: version and type; the type is not checked.
        value: version and coordinator epoch (`EndTransactionMarker`).
    """
    if key is None or value is None or len(key) < _CONTROL_KEY.size or len(value) < _END_TXN_VALUE.size:
        return None
    return _CONTROL_KEY.unpack_from(key)[1], _END_TXN_VALUE.unpack_from(value)[1]
