"""One pass over a segment, or over a part of one: what its neighbours need to be checked against it, in memory that does not grow with the file."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Damage, DamageKind, Span
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.captured.reading import captured_extent, captured_segment
from kforensics.evidence.checks.producers import ProducerEvent, ProducerEvents, parse_marker
from kforensics.evidence.segment_parts import Extent, lack_epochs
from kforensics.formats.index import parse_offset_index, parse_time_index
from kforensics.formats.log.batch_table import BatchTable
from kforensics.formats.log.batches import iter_batch_records
from kforensics.formats.log.sequences import SequenceScan, joined_scans
from kforensics.formats.primitives.numbers import distinct
from kforensics.formats.primitives.word_buffer import without_zero_tail
from kforensics.formats.segment.walk import Buffers, Level, walk_segment
from kforensics.source.capture import CapturedSegment
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.units import OffsetRange

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
        """Look up the positions that lie in one window."""
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
        """Look up the offsets that lie in one window."""
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


INDEX_LIMIT = 1 << 30
"""Bytes of an index that are read; brokers preallocate 10 MiB."""

MOST_EPOCH_RUNS = 65_536
"""Runs of one leader epoch that are kept of one segment: sound logs have a handful, since epochs only rise."""

MOST_DAMAGE = 10_000
"""Damaged places of one segment that are kept one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """A segment, or the part of one from a batch's position to another's."""

    path: Path
    base_offset: int
    level: Level
    index_path: Path | None = None
    time_index_path: Path | None = None
    splits: tuple[int, ...] = ()
    """Offsets of producer snapshots that the segment can hold batches of."""
    start: int = 0
    end: int | None = None


@dataclass(slots=True)
class EpochRun:
    """Batches of one leader epoch in a row: their lowest base offset, highest last offset, and the position of the first."""

    leader_epoch: int
    first_offset: int
    last_offset: int
    position: int
    length: int


class StampedBatch(NamedTuple):
    """A batch with its largest timestamp."""

    timestamp_ms: int
    first_offset: int
    last_offset: int
    position: int
    length: int
    producer_id: int
    """-1 of a producer that is not idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentScan:
    """The findings of one pass."""

    start: int
    stop: int
    """The position at which the walk ended: behind its last batch or damage."""
    size: int
    changed: bool
    batch_count: int
    record_count: int
    first_offset: int | None
    """The base offset of the first sound batch."""
    first_span: Span
    last_offset: int | None
    """The highest of all sound batches."""
    valid_end: int
    """The position behind the last sound batch."""
    magics: frozenset[int]
    epoch_runs: tuple[EpochRun, ...]
    damage: tuple[Damage, ...]
    index_base_offsets: NDArray[np.int64]
    time_found: NDArray[np.int64]
    time_highest: NDArray[np.int64]
    highest_timestamp: int
    producer_events: tuple[ProducerEvent, ...]
    has_empty_batch: bool
    """A batch without records, as compaction leaves it."""
    sequences: SequenceScan = field(default_factory=SequenceScan)
    newest: "StampedBatch | None" = None
    """The sound batch with the largest timestamp, the first of several."""
    oldest_ms: int | None = None
    """The smallest of the first and the largest timestamps of sound batches."""
    longest_batch: int | None = 0
    """The offsets of the longest sound batch, 0 where there is none; unknown of a capture that holds batches."""
    tail: tuple[StampedBatch, ...] = ()
    """The last sound batches, two at most; none where messages of magic 0 or 1 are among them."""
    lacks_epochs: bool = False
    """Whether a sound batch of magic 2 has no leader epoch."""
    is_captured: bool = False
    """It is what a capture holds of the segment: checked by checksums when it was taken, and nothing beside it can be held against it."""

    @property
    def extent(self) -> Extent:
        """What decides whether it fits to the parts of its segment before and behind it."""
        epochs = [run.leader_epoch for run in self.epoch_runs]
        first = epochs[0] if epochs else None
        return Extent(
            self.start,
            self.stop,
            self.first_offset,
            self.last_offset,
            first,
            max(epochs, default=None),
            lacks_epochs=self.lacks_epochs,
        )

    @property
    def claimed_last_offset(self) -> int | None:
        """The highest offset of sound batches and of damaged ones whose offsets are known."""
        lost = [place.offsets_lost.last for place in self.damage if isinstance(place.offsets_lost, OffsetRange)]
        return max((*lost, *(() if self.last_offset is None else (self.last_offset,))), default=None)

    @property
    def claimed_end(self) -> int:
        """The position behind the last batch, damaged ones included."""
        return max((self.valid_end, *(place.span.end for place in self.damage)))


def scan_segment_file(
    task: ScanTask, progress: Callable[[int], None] = lambda _: None, buffers: Buffers | None = None
) -> SegmentScan:
    """Walk the segment once."""
    with open_evidence(task.path) as file:
        if isinstance(file, CapturedSegment):
            return _captured_scan(file, task.base_offset)
        collector = _Collector(task, file)
        for window in walk_segment(file, level=task.level, start=task.start, end=task.end, buffers=buffers):
            collector.add(window.batches, window.damage, window.record_count, window.span)
            progress(window.span.length)
        return collector.finish(changed=file.changed())


def _captured_scan(file: CapturedSegment, base_offset: int) -> SegmentScan:
    segment = captured_segment(file, path=file.inner, base_offset=base_offset)
    if segment.unread_below:
        raise file.missing()
    first_span, valid_end = captured_extent(file)
    starts = [entry.start_offset for entry in segment.epochs]
    last = None if isinstance(segment.last_offset, Absent) else segment.last_offset
    ends = [start - 1 for start in starts[1:]] + ([last] if last is not None else [])
    nothing = np.zeros(0, dtype=np.int64)
    return SegmentScan(
        start=0,
        stop=file.size,
        size=file.size,
        changed=segment.changed,
        batch_count=segment.batch_count,
        record_count=segment.record_count,
        first_offset=None if isinstance(segment.first_offset, Absent) else segment.first_offset,
        first_span=first_span,
        last_offset=last,
        valid_end=valid_end,
        longest_batch=None if segment.batch_count else 0,
        magics=segment.magics,
        epoch_runs=tuple(
            EpochRun(entry.leader_epoch, entry.start_offset, end, 0, 0)
            for entry, end in zip(segment.epochs, ends, strict=False)
        ),
        damage=segment.damage[:MOST_DAMAGE],
        index_base_offsets=nothing,
        time_found=nothing,
        time_highest=nothing,
        highest_timestamp=-1 if isinstance(segment.max_timestamp_ms, Absent) else segment.max_timestamp_ms,
        producer_events=(),
        has_empty_batch=segment.is_thinned,
        is_captured=True,
    )


def _time_offsets(path: Path | None, base_offset: int) -> NDArray[np.int64]:
    return _entries(path, lambda data: parse_time_index(data).entries["relative_offset"].astype(np.int64) + base_offset)


def _entries(path: Path | None, parse: Callable[[bytes], NDArray[np.int64]]) -> NDArray[np.int64]:
    if path is not None:
        try:
            with open_evidence(path) as file:
                file.require_at_most(INDEX_LIMIT)
                return parse(without_zero_tail(file)).astype(np.int64)
        except EvidenceError:
            pass  # named where the index itself is checked
    return np.zeros(0, dtype=np.int64)


class _Collector:
    def __init__(self, task: ScanTask, file: EvidenceFile) -> None:
        self._task = task
        self._file = file
        self._stop = task.start
        self._batch_count = 0
        self._record_count = 0
        self._first_offset: int | None = None
        self._first_span = Span(0, 0)
        self._last_offset: int | None = None
        self._valid_end = task.start
        self._magics: set[int] = set()
        self._runs: list[EpochRun] = []
        self._damage: list[Damage] = []
        self._positions = PositionLookups(
            _entries(task.index_path, lambda data: parse_offset_index(data).entries["position"])
        )
        self._times = OffsetLookups(_time_offsets(task.time_index_path, task.base_offset))
        self._producers = ProducerEvents(task.splits, self._read_marker)
        self._sequences = SequenceScan()
        self._has_empty_batch = self._lacks_epochs = False
        self._longest_batch = 0
        self._tail: list[StampedBatch] = []
        self._newest: StampedBatch | None = None
        self._oldest_ms: int | None = None

    def add(self, batches: BatchTable, damage: tuple[Damage, ...], record_count: int, span: Span) -> None:
        self._stop = span.end
        self._record_count += record_count
        self._damage.extend(damage[: MOST_DAMAGE - len(self._damage)])
        self._batch_count += len(batches)
        self._positions.add(batches)
        batches = _in_order(batches, damage)
        self._times.add(batches)
        sound = batches if batches["crc_valid"].all() else batches[batches["crc_valid"]]
        if not len(sound):
            return
        if self._first_offset is None:
            self._first_offset = int(sound["base_offset"][0])
            self._first_span = Span(int(sound["position"][0]), int(sound["length"][0]))
        last = int(sound["last_offset"].max())
        self._last_offset = last if self._last_offset is None else max(self._last_offset, last)
        self._valid_end = int(sound["position"][-1]) + int(sound["length"][-1])
        self._magics.update(distinct(sound["magic"]).tolist())
        self._has_empty_batch = self._has_empty_batch or bool((sound["count"] == 0).any())
        self._longest_batch = max(self._longest_batch, int((sound["last_offset"] - sound["base_offset"]).max()) + 1)
        self._lacks_epochs = self._lacks_epochs or lack_epochs(sound)
        self._add_epochs(sound)
        self._producers.add(sound)
        self._sequences.add(sound)
        self._add_times(sound)
        self._tail = [*self._tail, *map(_stamped, sound[-2:])][-2:]

    def _add_epochs(self, sound: BatchTable) -> None:
        epochs = sound["partition_leader_epoch"]
        if epochs[0] == epochs[-1] and bool((epochs == epochs[0]).all()):
            starts = [0]
        else:
            starts = [0, *(np.flatnonzero(epochs[1:] != epochs[:-1]) + 1).tolist()]
        for at, end in zip(starts, [*starts[1:], len(sound)], strict=True):
            self._add_run(sound[at:end])

    def _add_run(self, rows: BatchTable) -> None:
        epoch = int(rows["partition_leader_epoch"][0])
        first, last = int(rows["base_offset"].min()), int(rows["last_offset"].max())
        if self._runs and self._runs[-1].leader_epoch == epoch:
            run = self._runs[-1]
            run.first_offset, run.last_offset = min(run.first_offset, first), max(run.last_offset, last)
        elif epoch >= 0 and len(self._runs) < MOST_EPOCH_RUNS:
            self._runs.append(EpochRun(epoch, first, last, int(rows["position"][0]), int(rows["length"][0])))

    def _add_times(self, sound: BatchTable) -> None:
        stamps = sound["max_timestamp"]
        newest = _stamped(sound[int(np.argmax(stamps))])
        if self._newest is None or newest.timestamp_ms > self._newest.timestamp_ms:
            self._newest = newest
        oldest = int(np.minimum(stamps, sound["base_timestamp"]).min())
        self._oldest_ms = oldest if self._oldest_ms is None else min(oldest, self._oldest_ms)

    def _read_marker(self, position: int, length: int) -> tuple[int, int] | None:
        try:
            for record in iter_batch_records(self._file.read(position, min(length, 4096)), position):
                return parse_marker(record.key, record.value)
        except FormatError:
            pass  # a control batch that does not decode is damage of the segment, named there
        return None

    def finish(self, *, changed: bool) -> SegmentScan:
        return SegmentScan(
            start=self._task.start,
            stop=self._stop,
            size=self._file.size,
            changed=changed,
            batch_count=self._batch_count,
            record_count=self._record_count,
            first_offset=self._first_offset,
            first_span=self._first_span,
            last_offset=self._last_offset,
            valid_end=self._valid_end,
            magics=frozenset(self._magics),
            epoch_runs=tuple(self._runs),
            damage=tuple(self._damage),
            index_base_offsets=self._positions.base_offsets,
            time_found=self._times.timestamps,
            time_highest=self._times.highest_so_far,
            highest_timestamp=self._times.highest,
            producer_events=self._producers.finish(),
            sequences=self._sequences,
            newest=self._newest,
            oldest_ms=self._oldest_ms,
            has_empty_batch=self._has_empty_batch,
            lacks_epochs=self._lacks_epochs,
            longest_batch=self._longest_batch,
            tail=() if self._magics - {2} else tuple(self._tail),
        )


def _stamped(row: "np.void") -> StampedBatch:
    names = ("max_timestamp", "base_offset", "last_offset", "position", "length", "producer_id")
    return StampedBatch(*(int(row[name]) for name in names))


def _in_order(batches: BatchTable, damage: tuple[Damage, ...]) -> BatchTable:
    """Return the batches without those whose offsets are wrong: what they claim says nothing about the neighbours.

    Logs of magic 0 and 1 may hold offsets twice, as the brokers of their time left them: these stay.
    """
    wrong = [place.span.position for place in damage if place.kind is DamageKind.ORDER]
    if not wrong:
        return batches
    kept: BatchTable = batches[~(np.isin(batches["position"], wrong) & (batches["magic"] == 2))]
    return kept


def fit_together(left: SegmentScan, right: SegmentScan) -> bool:
    """Return whether two parts of one segment, joined, say what one pass would: which of several batches is out of order is decided by those before and behind them."""
    is_in_order = not any(one.kind in {DamageKind.EPOCH, DamageKind.ORDER} for one in (*left.damage, *right.damage))
    # A broker may have written or removed an index between the two.
    same_lookups = len(left.index_base_offsets) == len(right.index_base_offsets)
    same_times = len(left.time_found) == len(right.time_found)
    return is_in_order and same_lookups and same_times and left.extent.is_followed_by(right.extent)


def join_scans(left: SegmentScan, right: SegmentScan) -> SegmentScan:
    """Return two parts of one segment as one; they must fit together."""
    damage = (*left.damage, *right.damage)
    runs = list(left.epoch_runs)
    later = list(right.epoch_runs)
    if runs and later and runs[-1].leader_epoch == later[0].leader_epoch:
        last, first = runs[-1], later.pop(0)
        runs[-1] = EpochRun(
            last.leader_epoch,
            min(last.first_offset, first.first_offset),
            max(last.last_offset, first.last_offset),
            last.position,
            last.length,
        )
    is_left = left.time_found != NO_BATCH
    return replace(
        left,
        stop=right.stop,
        changed=left.changed or right.changed,
        batch_count=left.batch_count + right.batch_count,
        record_count=left.record_count + right.record_count,
        first_offset=right.first_offset if left.first_offset is None else left.first_offset,
        first_span=right.first_span if left.first_offset is None else left.first_span,
        last_offset=max((value for value in (left.last_offset, right.last_offset) if value is not None), default=None),
        valid_end=left.valid_end if right.last_offset is None else right.valid_end,
        magics=left.magics | right.magics,
        epoch_runs=(*runs, *later),
        damage=damage,
        index_base_offsets=np.maximum(left.index_base_offsets, right.index_base_offsets),
        time_found=np.where(is_left, left.time_found, right.time_found),
        time_highest=np.where(is_left, left.time_highest, np.maximum(right.time_highest, left.highest_timestamp)),
        highest_timestamp=max(left.highest_timestamp, right.highest_timestamp),
        producer_events=(*left.producer_events, *right.producer_events),
        sequences=joined_scans([left.sequences, right.sequences]),
        newest=max(
            (one for one in (left.newest, right.newest) if one is not None),
            key=lambda one: one.timestamp_ms,
            default=None,
        ),
        oldest_ms=min((one for one in (left.oldest_ms, right.oldest_ms) if one is not None), default=None),
        has_empty_batch=left.has_empty_batch or right.has_empty_batch,
        lacks_epochs=left.lacks_epochs or right.lacks_epochs,
        longest_batch=None
        if left.longest_batch is None or right.longest_batch is None
        else max(left.longest_batch, right.longest_batch),
        tail=() if (left.magics | right.magics) - {2} else (*left.tail, *right.tail)[-2:],
    )
