"""Producer state: the events of a log that change it, their replay, and snapshots checked against it."""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kforensics.damage import Damage, DamageKind, Gravity, Span
from kforensics.formats.index import (
    SNAPSHOT_ENTRY_LENGTH,
    SNAPSHOT_HEADER_LENGTH,
    TXN_ENTRY_LENGTH,
    AbortedTransaction,
    ProducerEntry,
    ProducerSnapshot,
    TxnIndex,
    entry_span,
)
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable
from kforensics.formats.primitives.numbers import distinct, first_of_each
from kforensics.formats.primitives.text_lines import DamageList

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
        """Add the sound batches of one window."""
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
    """Return type, which is not checked, and coordinator epoch of a control record that ends a transaction; none where it is too short."""
    if key is None or value is None or len(key) < _CONTROL_KEY.size or len(value) < _END_TXN_VALUE.size:
        return None
    return _CONTROL_KEY.unpack_from(key)[1], _END_TXN_VALUE.unpack_from(value)[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerHistory:
    """The state at each offset asked for, and the transactions that ended."""

    states: Mapping[int, Mapping[int, ProducerEntry]]
    aborted: Mapping[int, AbortedTransaction] = field(default_factory=dict)
    """The aborted transactions by the offset of their ABORT marker, which is their last one; a first offset of -1 is one without records, or begun before the log."""
    committed: frozenset[tuple[int, int]] = frozenset()
    """Producer and offset of COMMIT markers."""


def replay(
    events: Iterable[ProducerEvent], *, start: Mapping[int, ProducerEntry], splits: Sequence[int]
) -> ProducerHistory:
    """Fold events in log order; the state is kept at the offsets of `splits`, those that no batch reaches get the last one."""
    state = dict(start)
    states: dict[int, Mapping[int, ProducerEntry]] = {}
    aborted: dict[int, AbortedTransaction] = {}
    committed: set[tuple[int, int]] = set()
    for event in events:
        match event:
            case Split(offset):
                for split in splits:
                    if split <= offset and split not in states:
                        states[split] = dict(state)
            case DataRun():
                state[event.producer_id] = _after_data(state.get(event.producer_id), event)
            case Marker():
                before = state.get(event.producer_id)
                first = NONE if before is None else before.current_transaction_first_offset
                if event.is_abort:
                    others = (
                        entry.current_transaction_first_offset
                        for producer_id, entry in state.items()
                        if producer_id != event.producer_id and entry.current_transaction_first_offset != NONE
                    )
                    stable = min(others, default=event.offset + 1)
                    aborted[event.offset] = AbortedTransaction(0, event.producer_id, first, event.offset, stable)
                else:
                    committed.add((event.producer_id, event.offset))
                state[event.producer_id] = _after_marker(before, event)
    for split in splits:
        states.setdefault(split, dict(state))
    return ProducerHistory(states=states, aborted=aborted, committed=frozenset(committed))


def _after_data(before: ProducerEntry | None, run: DataRun) -> ProducerEntry:
    open_first = NONE if before is None else before.current_transaction_first_offset
    return ProducerEntry(
        run.producer_id,
        run.producer_epoch,
        run.last_sequence,
        run.last_offset,
        run.offset_delta,
        run.timestamp,
        NONE if before is None else before.coordinator_epoch,
        run.transaction_first_offset if open_first == NONE else open_first,
    )


def _after_marker(before: ProducerEntry | None, marker: Marker) -> ProducerEntry:
    if before is None or before.producer_epoch != marker.producer_epoch:
        return ProducerEntry(
            marker.producer_id, marker.producer_epoch, NONE, NONE, 0, marker.timestamp, marker.coordinator_epoch, NONE
        )
    return before._replace(
        timestamp=marker.timestamp, coordinator_epoch=marker.coordinator_epoch, current_transaction_first_offset=NONE
    )


def check_snapshot(
    snapshot: ProducerSnapshot,
    state: Mapping[int, ProducerEntry],
    *,
    log_start: int,
    is_compacted: bool,
    gravity: Gravity,
) -> tuple[Damage, ...]:
    """Return the producers whose last batch or open transaction is not the log's."""
    damage = DamageList(gravity)
    for at, entry in enumerate(snapshot.entries):
        recomputed = state.get(entry.producer_id)
        span = Span(SNAPSHOT_HEADER_LENGTH + at * SNAPSHOT_ENTRY_LENGTH, SNAPSHOT_ENTRY_LENGTH)
        if recomputed is None:
            if entry.last_offset >= log_start and not is_compacted:
                damage.add(
                    span, DamageKind.MISMATCH, expected="a producer with a batch in the log", found=_shown(entry)
                )
            continue
        if _differs(entry, recomputed, log_start=log_start, is_compacted=is_compacted):
            damage.add(
                span, DamageKind.MISMATCH, expected=_shown(recomputed) + ", as the log has it", found=_shown(entry)
            )
    return damage.as_tuple()


def _differs(entry: ProducerEntry, recomputed: ProducerEntry, *, log_start: int, is_compacted: bool) -> bool:
    if entry.producer_epoch != recomputed.producer_epoch and not is_compacted:
        return True
    if (
        recomputed.last_offset == NONE
    ):  # only markers are left of it: its data was compacted away, or came before the log
        return False
    if (entry.last_offset, entry.last_sequence, entry.offset_delta) != (
        recomputed.last_offset,
        recomputed.last_sequence,
        recomputed.offset_delta,
    ):
        return True
    first, recomputed_first = entry.current_transaction_first_offset, recomputed.current_transaction_first_offset
    return first != recomputed_first and not is_compacted and min(first, recomputed_first) >= log_start


def _shown(entry: ProducerEntry) -> str:
    open_first = entry.current_transaction_first_offset
    transaction = "" if open_first == NONE else f", transaction open since {open_first}"
    return f"producer {entry.producer_id} epoch {entry.producer_epoch}: sequence {entry.last_sequence} at offset {entry.last_offset}{transaction}"


def _is_of_one_append(entry: AbortedTransaction, marker: AbortedTransaction, end_offset: int) -> bool:
    """Return the last stable offset is where a later transaction began, which a follower had appended along with this one.

    `UnifiedLog.append` opens every transaction of a fetch response before it closes the first (4.1), so that followers may write what the leader did not.
    """
    return (
        entry[1:4] == marker[1:4]
        and marker.last_stable_offset == entry.last_offset + 1
        and marker.last_stable_offset < entry.last_stable_offset < end_offset
    )


def check_txn_index(
    index: TxnIndex,
    history: ProducerHistory,
    *,
    base_offset: int,
    end_offset: int,
    log_start: int,
    is_compacted: bool,
    gravity: Gravity,
) -> tuple[Damage, ...]:
    """Return damage of entries without their ABORT marker, and of markers without their entry."""
    damage = DamageList(gravity)
    for at, entry in enumerate(index.entries):
        span = entry_span(at, TXN_ENTRY_LENGTH)
        marker = history.aborted.get(entry.last_offset)
        where = f"entry {at}: producer {entry.producer_id}, offsets {entry.first_offset} to {entry.last_offset}"
        if marker is None:
            if not base_offset <= entry.last_offset < end_offset:
                damage.add(
                    span,
                    DamageKind.INDEX,
                    expected=f"the offset of a marker in {base_offset}..{end_offset - 1}",
                    found=where,
                )
            elif not is_compacted:
                damage.add(span, DamageKind.INDEX, expected="the offset of an abort marker", found=where)
        elif not is_compacted and marker.first_offset >= log_start:
            if entry[1:] != marker[1:] and not _is_of_one_append(entry, marker, end_offset):
                expected, where = (
                    f"producer {one.producer_id} from offset {one.first_offset}, last stable offset {one.last_stable_offset}"
                    for one in (marker, entry)
                )
                damage.add(
                    span, DamageKind.INDEX, expected=f"{expected}, as the log has it", found=f"entry {at}: {where}"
                )
        elif marker.producer_id != entry.producer_id:
            damage.add(
                span, DamageKind.INDEX, expected=f"producer {marker.producer_id}, as the log has it", found=where
            )
    listed = {entry.last_offset for entry in index.entries}
    missing = [
        offset
        for offset, transaction in history.aborted.items()
        if base_offset <= offset < end_offset and transaction.first_offset != NONE and offset not in listed
    ]
    for offset in sorted(missing):
        end = len(index.entries) * TXN_ENTRY_LENGTH
        damage.add(
            Span(end, 0),
            DamageKind.INDEX,
            expected=f"an entry for the transaction aborted at offset {offset}",
            found="no entry",
        )
    return damage.as_tuple()
