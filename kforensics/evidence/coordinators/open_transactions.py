"""Transactions of one replica's log: those without an end marker, and commit markers without records.

A transaction of a partition begins with the first transactional batch of its producer and ends with the producer's next control batch
(`ProducerStateManager`, KIP-98, 0.11 and later). Where retention took its first batches, a producer snapshot still names its first offset.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Span
from kforensics.errors import EvidenceError
from kforensics.evidence.coordinators.replica_log import ReplicaLog, SegmentBatches, first_producers, list_log
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, checkpoint_value, problem_of
from kforensics.evidence.model import CheckpointValue, Citation, Problem
from kforensics.formats.index import ProducerEntry
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable, empty_batches
from kforensics.formats.messages.control import ControlType
from kforensics.formats.messages.schema import Decoded
from kforensics.source.mapped import open_evidence

MOST_LONE_MARKERS = 1_000
"""Commit markers without records of one log that are kept; more of them are only counted."""


class OpenTransaction(NamedTuple):
    """A transaction that has no end marker in the log."""

    producer_id: int
    producer_epoch: int
    """That of its last batch."""
    first_offset: int
    last_offset: int
    records: int | Absent
    """The records of its batches on disk; unknown where only a producer snapshot shows them."""
    first_time_ms: int
    """The newest record of its first batch; -1 where the batch is not on disk."""
    last_time_ms: int
    leader_epoch: int
    """That of its first batch; -1 where the batch is not on disk."""
    citation: Citation


class Marker(NamedTuple):
    """An end marker of a transaction."""

    producer_id: int
    producer_epoch: int
    offset: int
    kind: ControlType
    coordinator_epoch: int
    time_ms: int
    leader_epoch: int
    citation: Citation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaTransactions:
    """The transactions of one replica."""

    place: PartitionPlace
    log_start_offset: int
    read_from: int
    """The offset from which its batches were read: a capture leaves those far below the end on its broker."""
    log_end_offset: int
    high_watermark: CheckpointValue | Absent
    is_cleaned: bool
    """A cleaner passed over the log: records may be removed and their marker kept."""
    last_epoch: int
    """The highest leader epoch of its batches, -1 where there is none."""
    newest_ms: int
    """The newest time of its batches, -1 where there is none."""
    open: tuple[OpenTransaction, ...]
    lone: tuple[Marker, ...]
    """Markers that end nothing in this log, the first of them."""
    has_transactions: bool
    problems: tuple[Problem, ...]


@dataclass(slots=True)
class _Scan:
    log: ReplicaLog
    until_ms: int | None
    open: dict[int, OpenTransaction] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    """Producers of batches read so far, where the log before them is not here."""
    has_seeds: bool = False
    """Whether a producer snapshot names what was open where the batches begin; true where all of the log is here."""
    seeds: dict[int, tuple[ProducerEntry, int, str]] = field(default_factory=dict)
    """Producers whose open transaction begins below the log on disk: the entry, and offset and path of the snapshot."""
    lone: list[Marker] = field(default_factory=list)
    has_transactions: bool = False
    end: int = 0
    last_epoch: int = -1
    newest_ms: int = -1

    def decisive(self, rows: BatchTable) -> BatchTable:
        """Return the batches that `add` needs of a run of them, in their order: not those that lie within a transaction which begins and ends there."""
        rows = _until(rows, self.until_ms)
        is_kept = _is_outermost(rows)
        at = np.flatnonzero(_is_transactional(rows))
        order = at[np.argsort(rows["producer_id"][at], kind="stable")]
        starts, ends, matters = _producer_runs(rows[order])
        # The first batch and the last marker show that a transaction of the producer was ended.
        is_kept[order[starts]] = is_kept[order[ends - 1]] = True
        is_kept[order[np.repeat(matters, ends - starts)]] = True
        found: BatchTable = rows[is_kept]
        return found

    def add(self, batches: SegmentBatches) -> None:
        rows = _until(batches.rows, self.until_ms)
        if not len(rows):
            return
        self.end = max(self.end, int(rows["last_offset"].max()) + 1)
        self.last_epoch = max(self.last_epoch, int(rows["partition_leader_epoch"].max()))
        self.newest_ms = max(self.newest_ms, int(rows["max_timestamp"].max()))
        rows = transactional(rows)
        if not len(rows):
            return
        self.has_transactions = True
        rows = rows[np.argsort(rows["producer_id"], kind="stable")]
        starts, ends, matters = _producer_runs(rows)
        producers = rows["producer_id"][starts]
        # A producer whose transactions all begin and end among these batches leaves nothing behind.
        matters = matters | np.isin(producers, np.fromiter({*self.open, *self.seeds}, dtype=np.int64))
        if self.log.read_from:
            self.seen.update(producers[~matters].tolist())
        lone: list[np.void] = []
        for producer, start, end in zip(
            producers[matters].tolist(), starts[matters].tolist(), ends[matters].tolist(), strict=True
        ):
            lone += self._add_producer(producer, rows[start:end], batches.path)
        for row in sorted(lone, key=lambda one: int(one["base_offset"])):
            if len(self.lone) < MOST_LONE_MARKERS:
                self.lone.append(marker_of(row, batches, self.log.place))

    def _add_producer(self, producer: int, own: BatchTable, path: str) -> list[np.void]:
        """Take in the batches of a producer, and return the markers among them that end nothing."""
        control = (own["attributes"] & CONTROL_BIT) != 0
        ends = np.flatnonzero(control)
        # What a producer wrote below the batches that are here, its first marker may end.
        is_known = not self.log.read_from or producer in self.seen
        if self.log.read_from:
            self.seen.add(producer)
        if not len(ends):
            self._extend(producer, own, path)
            return []
        is_closed = is_known and producer not in self.open and producer not in self.seeds
        empty = control & np.concatenate(([is_closed], control[:-1]))
        seed = self.seeds.get(producer)
        if seed is not None and int(own["base_offset"][ends[-1]]) >= seed[1]:
            del self.seeds[producer]
        self.open.pop(producer, None)
        rest = own[ends[-1] + 1 :]
        if len(rest):
            self._extend(producer, rest, path)
        return [own[at] for at in np.flatnonzero(empty).tolist()]

    def _extend(self, producer: int, data: BatchTable, path: str) -> None:
        first, last = data[0], data[-1]
        records, last_time = int(data["count"].sum()), int(data["max_timestamp"].max())
        known = self.open.get(producer)
        if known is None:
            self.open[producer] = OpenTransaction(
                producer_id=producer,
                producer_epoch=int(last["producer_epoch"]),
                first_offset=int(first["base_offset"]),
                last_offset=int(last["last_offset"]),
                records=records,
                first_time_ms=int(first["max_timestamp"]),
                last_time_ms=last_time,
                leader_epoch=int(first["partition_leader_epoch"]),
                citation=self._cite(path, Span(int(first["position"]), int(first["length"]))),
            )
            return
        self.open[producer] = known._replace(
            producer_epoch=int(last["producer_epoch"]),
            last_offset=int(last["last_offset"]),
            records=known.records if isinstance(known.records, Absent) else known.records + records,
            last_time_ms=max(known.last_time_ms, last_time),
        )

    def _cite(self, path: str, span: Span) -> Citation:
        return Citation(input=self.log.place.state.input, path=path, span=span)

    def read_seeds(self) -> None:
        """Take transactions that begin below the batches that are here from the first producer snapshot behind their beginning."""
        base = max(self.log.first_base, self.log.read_from)
        self.has_seeds = not self.log.read_from
        for offset, path, entries in first_producers(self.log, base):
            for entry in entries:
                if 0 <= entry.current_transaction_first_offset < base:
                    self.seeds[entry.producer_id] = (entry, offset, path)
            self.has_seeds = True

    def note_unread(self) -> None:
        """Say that no input shows which transactions are open below the batches that are here."""
        path = next((path for base, path in reversed(self.log.segments) if base < self.log.read_from), "")
        with suppress(EvidenceError), open_evidence(self.log.place.state.root / path) as file:
            if file.where:
                self.log.problems.append(problem_of(self.log.place.state.input, path, file.missing()))

    def add_seeds(self) -> None:
        """Open transactions whose first batch is not on disk, as far as no marker ended them."""
        for producer, (entry, offset, path) in self.seeds.items():
            known = self.open.get(producer)
            first = entry.current_transaction_first_offset
            if known is not None or offset <= self.end or not self.log.segments:
                self.open[producer] = OpenTransaction(
                    producer_id=producer,
                    producer_epoch=known.producer_epoch if known else entry.producer_epoch,
                    first_offset=first,
                    last_offset=known.last_offset if known else max(entry.last_offset, first),
                    records=Absent.UNKNOWN,
                    first_time_ms=-1,
                    last_time_ms=known.last_time_ms if known else entry.timestamp,
                    leader_epoch=-1,
                    citation=self._cite(path, Span(0, 0)),
                )


def transactional(rows: BatchTable) -> BatchTable:
    """Return the transactional batches of a table, markers among them."""
    found: BatchTable = rows[_is_transactional(rows)]
    return found


def _is_transactional(rows: BatchTable) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = (
        (rows["magic"] == 2) & ((rows["attributes"] & TRANSACTIONAL_BIT) != 0) & (rows["producer_id"] >= 0)
    )
    return mask


def _producer_runs(rows: BatchTable) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return where the runs of rows of each producer begin and end; those of one are together, in the order of the log.

    Returns:
        Also whether a transaction is open behind them, or a marker has no batch before it among them.
    """
    if not len(rows):
        none = np.zeros(0, dtype=np.int64)
        return none, none, none.astype(np.bool_)
    producers, control = rows["producer_id"], (rows["attributes"] & CONTROL_BIT) != 0
    is_first = np.concatenate(([True], producers[1:] != producers[:-1]))
    starts = np.flatnonzero(is_first)
    ends = np.concatenate((starts[1:], [len(rows)]))
    is_double = np.concatenate(([False], control[1:] & control[:-1])) & ~is_first
    matters = ~control[ends - 1] | control[starts] | np.logical_or.reduceat(is_double, starts)
    return starts, ends, matters


def _is_outermost(rows: BatchTable) -> NDArray[np.bool_]:
    """Return a mask of the batches that show the end of a run of them, its highest leader epoch and its newest time."""
    mask = np.zeros(len(rows), dtype=np.bool_)
    for name in ("last_offset", "partition_leader_epoch", "max_timestamp") if len(rows) else ():
        mask[int(np.argmax(rows[name]))] = True
    return mask


def _until(rows: BatchTable, until_ms: int | None) -> BatchTable:
    if until_ms is None:
        return rows
    found: BatchTable = rows[rows["max_timestamp"] <= until_ms]
    return found


def scan_transactions(place: PartitionPlace, *, until_ms: int | None = None, jobs: int = 1) -> ReplicaTransactions:
    """Read the transactions of a replica's log; what can't be read is among its problems."""
    log = list_log(place)
    # An empty segment behind the records was rolled at its base offset, which is then the end.
    scan = _Scan(log, until_ms, end=log.first_base if until_ms is not None else log.last_base)
    read_from = -1
    for batches in log.batches(log.segments, keep=scan.decisive, jobs=jobs):
        if log.read_from > read_from:
            read_from = log.read_from
            scan.read_seeds()
        scan.add(batches)
    if read_from < 0:
        scan.read_seeds()
    scan.add_seeds()
    if not scan.has_seeds:
        scan.note_unread()
    start = checkpoint_value(place.state, "log_start", place.topic_partition)
    start_offset = log.first_base if isinstance(start, Absent) else start.value
    cleaned = checkpoint_value(place.state, "cleaner_point", place.topic_partition)
    return ReplicaTransactions(
        place=place,
        log_start_offset=start_offset,
        read_from=log.read_from,
        log_end_offset=max(scan.end, start_offset),
        high_watermark=checkpoint_value(place.state, "high_watermark", place.topic_partition),
        is_cleaned=not isinstance(cleaned, Absent) and cleaned.value > 0,
        last_epoch=scan.last_epoch,
        newest_ms=scan.newest_ms,
        open=tuple(sorted(scan.open.values(), key=lambda one: one.first_offset)),
        lone=tuple(scan.lone),
        has_transactions=scan.has_transactions or bool(scan.seeds),
        problems=tuple(log.problems),
    )


class ProducerBatches(NamedTuple):
    """The transactional batches of some producers in one copy of a log."""

    place: PartitionPlace
    rows: BatchTable
    """In the order of the log; `segment` counts `paths`."""
    markers: Mapping[int, Marker]
    """The markers among them by offset."""
    last_epoch: int


def read_producers(
    place: PartitionPlace,
    wanted: NDArray[np.int64],
    *,
    deleted: bool = False,
    until_ms: int | None = None,
    jobs: int = 1,
) -> ProducerBatches:
    """Read the batches of some producers."""
    log = list_log(place)
    segments = log.deleted if deleted else log.segments
    parts: list[BatchTable] = []
    markers: dict[int, Marker] = {}
    last_epoch = -1

    def keep(rows: BatchTable) -> BatchTable:
        rows = _until(rows, until_ms)
        found: BatchTable = rows[_is_outermost(rows) | (_is_transactional(rows) & np.isin(rows["producer_id"], wanted))]
        return found

    for batches in log.batches(segments, keep=keep, jobs=jobs):
        rows = _until(batches.rows, until_ms)
        if not len(rows):
            continue
        last_epoch = max(last_epoch, int(rows["partition_leader_epoch"].max()))
        rows = transactional(rows)
        rows = rows[np.isin(rows["producer_id"], wanted)]
        parts.append(rows)
        for row in rows[(rows["attributes"] & CONTROL_BIT) != 0]:
            markers[int(row["base_offset"])] = marker_of(row, batches, place)
    table = np.concatenate(parts) if parts else empty_batches()
    return ProducerBatches(place, table, markers, last_epoch)


def marker_of(row: np.void, batches: SegmentBatches, place: PartitionPlace) -> Marker:
    """Return a control batch as the marker that it holds; of unknown type where it can't be decoded."""
    control = batches.control(row)
    value = control.value.fields if isinstance(control.value, Decoded) else {}
    span = Span(int(row["position"]), int(row["length"]))
    return Marker(
        producer_id=int(row["producer_id"]),
        producer_epoch=int(row["producer_epoch"]),
        offset=int(row["base_offset"]),
        kind=control.type,
        coordinator_epoch=int(value.get("coordinator_epoch", -1)),
        time_ms=int(row["max_timestamp"]),
        leader_epoch=int(row["partition_leader_epoch"]),
        citation=Citation(input=place.state.input, path=batches.path, span=span),
    )
