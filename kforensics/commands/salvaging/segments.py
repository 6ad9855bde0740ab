"""Whole batches as logs that a broker loads as they are: `--form segments`.

A directory holds what a clean stop leaves: segments with offset, time and transaction indexes, the leader epoch checkpoint, a producer snapshot at each segment
and at the log end, and `partition.metadata` where a topic id is known. Batches are copied byte for byte; `--from-zero` changes only their base offsets, which no
checksum covers (magic 2), or which the checksum of a message leaves out (magic 0 and 1). Kafka: `LogSegment.append`, `UnifiedLog.roll`, `ProducerStateManager`.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.commands.salvaging.folder import OutFile, OutFolder, WrittenFile
from kforensics.commands.salvaging.outputs import NotRebased
from kforensics.commands.salvaging.reading import BECAME_SHORTER, CopyFiles, Run, marker_of
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, EvidenceUnreadable
from kforensics.evidence.checks.producers import NONE, ProducerEvents, replay
from kforensics.formats.checkpoint.lines import (
    LeaderEpochCheckpoint,
    LeaderEpochLine,
    encode_leader_epoch_checkpoint,
)
from kforensics.formats.checkpoint.properties import PartitionMetadata, encode_partition_metadata
from kforensics.formats.index import (
    AbortedTransaction,
    ProducerEntry,
    encode_aborted_transactions,
    encode_index,
    encode_producers,
    offset_index,
    time_index,
)
from kforensics.formats.log.batch_table import CODEC_MASK, BatchTable
from kforensics.source.mapped import EvidenceFile
from kforensics.units import TopicPartition

SEGMENT_LENGTH = 1 << 30
"""`segment.bytes` of a broker that is not configured otherwise."""
INDEX_INTERVAL = 4096
LARGEST_RELATIVE = (1 << 31) - 1
LARGEST_INDEX = 10 << 20
"""`segment.index.bytes`: a full index ends a segment."""
LARGEST_OFFSET = (1 << 63) - 2
EVENTS_AT_ONCE = 4096

LARGEST_HELD = 32 << 20
"""Bytes of batches that are read before they are written; a larger batch is copied in pieces."""

_PIECE = 1 << 20
_OFFSET = struct.Struct(">q")


@dataclass(slots=True)
class _Segment:
    """One segment while it is written."""

    base_offset: int
    log: OutFile
    offsets: list[tuple[int, int]] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    since_entry: int = 0
    max_timestamp: int = -1
    max_timestamp_offset: int = 0

    def note(self, rows: BatchTable, position: int) -> None:
        """Note batches, with an index entry for each that more than `INDEX_INTERVAL` bytes have followed the last entry.

        Args:
            position: of the first byte of them in the new file.
        """
        lasts, lengths = rows["last_offset"] - self.base_offset, rows["length"].astype(np.int64)
        newest = np.maximum.accumulate(np.concatenate([[self.max_timestamp], rows["max_timestamp"]]))
        holders = np.maximum.accumulate(np.where(newest[1:] > newest[:-1], np.arange(len(rows)), -1))
        places = np.where(holders >= 0, lasts[holders], self.max_timestamp_offset - self.base_offset)
        starts = np.cumsum(lengths) - lengths
        chosen = self._with_entries(starts)
        self.offsets += zip(lasts[chosen].tolist(), (position + starts[chosen]).tolist(), strict=True)
        known = self.times[-1][0] if self.times else -1
        times = np.concatenate([[known], newest[1:][chosen]])
        rises = times[1:] > np.maximum(times[:-1], known)
        self.times += zip(times[1:][rises].tolist(), places[chosen][rises].tolist(), strict=True)
        self.max_timestamp, self.max_timestamp_offset = int(newest[-1]), int(places[-1]) + self.base_offset
        self.since_entry = int(starts[-1] + lengths[-1]) - (
            int(starts[chosen[-1]]) if len(chosen) else -self.since_entry
        )

    def _with_entries(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which batches get an entry in the offset index, by their places behind one another."""
        first = int(np.searchsorted(starts, INDEX_INTERVAL - self.since_entry, side="right"))
        if (np.diff(starts) > INDEX_INTERVAL).all():
            return np.arange(first, len(starts))
        following = np.searchsorted(starts, starts + INDEX_INTERVAL, side="right").tolist()
        chosen = []
        while first < len(following):
            chosen.append(first)
            first = following[first]
        return np.array(chosen, np.int64)

    def add_time(self) -> None:
        """Add an entry to the time index, where the newest timestamp rose since the last one."""
        if self.max_timestamp > (self.times[-1][0] if self.times else -1):
            self.times.append((self.max_timestamp, self.max_timestamp_offset - self.base_offset))


class _Source(NamedTuple):
    """Where batches are copied from."""

    file: EvidenceFile
    data: memoryview | None
    """The bytes of all of them, none where they are more than may be held."""
    position: int
    """Of the first byte."""


def _read(file: EvidenceFile, start: int, end: int) -> memoryview:
    data = np.empty(end - start, np.uint8).data
    if file.read_into(start, data) < len(data):
        raise EvidenceUnreadable(str(file.path), BECAME_SHORTER)
    return data


class SegmentLog:
    """The log of one partition and label."""

    def __init__(
        self,
        folder: OutFolder,
        stem: str,
        partition: TopicPartition,
        *,
        topic_id: str | Absent = Absent.NOT_WRITTEN,
        from_zero: bool = False,
        segment_length: int = SEGMENT_LENGTH,
    ) -> None:
        self._folder, self._stem, self._partition = folder, stem, partition
        self._topic_id, self._from_zero, self._segment_length = topic_id, from_zero, segment_length
        self._part = 1
        self._written: list[WrittenFile] = []
        self._segment: _Segment | None = None
        self.copied: list[tuple[OutFile, int, int, int]] = []
        """The bytes that were added last as they were: to which file and position, and from which position up to which."""
        self._begins_segment = False
        """Whether the next batch began a segment where it was, so that it does so here."""
        self._begin()

    def _begin(self) -> None:
        self._epochs: list[LeaderEpochLine] = []
        self._state: Mapping[int, ProducerEntry] = {}
        self._shift: int | None = None
        self._end = -1
        self._has_modern = False
        self._events = ProducerEvents((), lambda _position, _length: None)

    @property
    def _path(self) -> str:
        return self._stem if self._part == 1 else f"{self._stem}.part-{self._part}/{self._stem.rpartition('/')[2]}"

    def add(self, run: Run, files: CopyFiles) -> BatchTable:
        """Copy batches; those of offsets that the log has already are left out and returned.

        Args:
            run: batches that lie behind each other in one file, no more of them than may be held, or one batch.

        Raises:
            EvidenceError: they can't be read; none of them is in the log then.
            NotRebased: `--from-zero` with messages that hold absolute offsets inside.
        """
        self.copied = []
        file = files.of(run.copy, run.segment)
        # All of it is read before any of it is written, since a file can't have gaps.
        data = _read(file, run.start, run.end) if run.end - run.start <= LARGEST_HELD else None
        self._begins_segment = run.start == 0
        parts, left = self._ordered(run.rows)
        for part in parts:
            self._copy(Run(copy=run.copy, label=run.label, rows=part), files, _Source(file, data, run.start))
        return run.rows[left]

    def _ordered(self, rows: BatchTable) -> tuple[list[BatchTable], list[int]]:
        """Return the rows in runs that continue the log, and the numbers of those that do not fit.

        An empty run comes before one of a lower epoch, which begins another log, since the epochs of one rise.
        """
        out: list[BatchTable] = []
        left: list[int] = []
        first, end, epoch = 0, self._end, self._epochs[-1].leader_epoch if self._epochs else -1
        if self._continues(rows, epoch):
            return [rows], left
        bases, lasts = rows["base_offset"].tolist(), rows["last_offset"].tolist()
        epochs = rows["partition_leader_epoch"].tolist()
        for at, (base, last) in enumerate(zip(bases, lasts, strict=True)):
            is_below = base < end or last > LARGEST_OFFSET
            if is_below or 0 <= epochs[at] < epoch:
                if at > first:
                    out.append(rows[first:at])
                if is_below:
                    left.append(at)
                    first = at + 1
                    continue
                first = at
                out.append(rows[at:at])
            epoch = max(epoch, epochs[at]) if not 0 <= epochs[at] < epoch else epochs[at]
            end = last + 1
        if first < len(rows):
            out.append(rows[first:])
        return out, left

    def _continues(self, rows: BatchTable, epoch: int) -> bool:
        """Return whether all of the rows continue the log, as nearly always."""
        lasts, epochs = rows["last_offset"], rows["partition_leader_epoch"]
        highest = np.maximum.accumulate(np.concatenate([[epoch], epochs[:-1]]))
        is_behind = rows["base_offset"] > np.concatenate([[self._end - 1], lasts[:-1]])
        return bool((is_behind & (lasts <= LARGEST_OFFSET) & ((epochs < 0) | (epochs >= highest))).all())

    def _copy(self, run: Run, files: CopyFiles, source: "_Source") -> None:
        if not len(run.rows):
            # Of a lower epoch than before: another log begins.
            self._close_log()
            self._part += 1
            self._begin()
            return
        rows = self._shifted(run.rows)
        at = 0
        while at < len(rows):
            segment = self._room_for(rows[at])
            stop = self._fitting(rows, at, segment)
            position = segment.log.tell()
            self._write(rows[at:stop], run.rows[at:stop], segment, source)
            self._append(rows[at:stop], position, segment)
            self._replay(rows[at:stop], run.rows[at:stop], run, files)
            at = stop

    def _shifted(self, rows: BatchTable) -> BatchTable:
        if self._shift is None:
            self._shift = int(rows["base_offset"][0]) if self._from_zero else 0
        if not self._shift:
            return rows
        wrapped = (rows["magic"] == 0) & (rows["attributes"] & CODEC_MASK > 0)
        if wrapped.any():
            raise NotRebased(self._partition, int(rows["base_offset"][wrapped][0]))
        moved: BatchTable = rows.copy()
        moved["base_offset"] -= self._shift
        moved["last_offset"] -= self._shift
        return moved

    def _room_for(self, row: np.void) -> _Segment:
        segment = self._segment
        begins, self._begins_segment = self._begins_segment, False
        is_full = segment is not None and (
            begins
            or segment.log.tell() + int(row["length"]) > self._segment_length
            or int(row["last_offset"]) - segment.base_offset > LARGEST_RELATIVE
            or (len(segment.offsets) + 1) * 8 > LARGEST_INDEX
            or (len(segment.times) + 2) * 12 > LARGEST_INDEX
        )
        if segment is None or (is_full and segment.log.tell()):
            if segment is not None:
                self._close_segment(int(row["base_offset"]))
            base = int(row["base_offset"])
            segment = _Segment(base, self._folder.open(f"{self._path}/{base:020d}.log"))
            self._segment = segment
        return segment

    def _fitting(self, rows: BatchTable, at: int, segment: _Segment) -> int:
        """How far rows go into the segment: by bytes, offsets, and a bound that keeps indexes small."""
        ends = segment.log.tell() + np.cumsum(rows["length"][at:].astype(np.int64))
        fits = (ends <= self._segment_length) & (rows["last_offset"][at:] - segment.base_offset <= LARGEST_RELATIVE)
        room = LARGEST_INDEX // 12 - max(len(segment.offsets), len(segment.times)) - 2
        count = len(fits) if fits.all() else int(np.argmin(fits))
        return at + max(1, min(count, room))

    def _append(self, rows: BatchTable, position: int, segment: _Segment) -> None:
        segment.note(rows, position)
        self._note_epochs(rows)
        self._has_modern |= bool((rows["magic"] == 2).any())
        self._end = int(rows["last_offset"].max()) + 1 + (self._shift or 0)

    def _note_epochs(self, rows: BatchTable) -> None:
        epochs, bases = rows["partition_leader_epoch"], rows["base_offset"]
        changes = [0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist()]
        for at in changes:
            epoch = int(epochs[at])
            if epoch >= 0 and (not self._epochs or self._epochs[-1].leader_epoch < epoch):
                self._epochs.append(LeaderEpochLine(epoch, int(bases[at])))

    def _replay(self, rows: BatchTable, source: BatchTable, run: Run, files: CopyFiles) -> None:
        """Follow the producers, for snapshots and the index of aborted transactions."""
        places = dict(zip(rows["position"].tolist(), range(len(source)), strict=True))
        events = ProducerEvents((), lambda position, _: marker_of(source[places[position]], run.copy, files))
        for first in range(0, len(rows), EVENTS_AT_ONCE):
            events.add(rows[first : first + EVENTS_AT_ONCE])
        history = replay(events.finish(), start=self._state, splits=(LARGEST_OFFSET,))
        self._state = history.states[LARGEST_OFFSET]
        assert self._segment is not None
        self._segment.aborted += [one for _, one in sorted(history.aborted.items()) if one.first_offset != NONE]

    def _write(self, rows: BatchTable, source_rows: BatchTable, segment: _Segment, source: "_Source") -> None:
        start = int(source_rows["position"][0])
        end = int(source_rows["position"][-1]) + int(source_rows["length"][-1])
        if source.data is None:
            self._write_in_pieces(int(rows["base_offset"][0]), start, end, segment.log, source.file)
        else:
            part = source.data[start - source.position : end - source.position]
            if self._shift:
                for position, base in zip(source_rows["position"].tolist(), rows["base_offset"].tolist(), strict=True):
                    _OFFSET.pack_into(part, position - start, base)
            segment.log.write(part)
        if not self._shift:
            at = segment.log.tell() - (end - start)
            if self.copied and (self.copied[-1][0], self.copied[-1][3]) == (segment.log, start):
                _, at, start, _ = self.copied.pop()
            self.copied.append((segment.log, at, start, end))

    def _write_in_pieces(self, base_offset: int, position: int, end: int, log: OutFile, file: EvidenceFile) -> None:
        """Copy one large batch; where it can't be read, the log is as long as before."""
        place = log.place()
        is_first = True
        try:
            while position < end:
                piece = _read(file, position, min(position + _PIECE, end))
                if is_first and self._shift:
                    _OFFSET.pack_into(piece, 0, base_offset)
                log.write(piece)
                position, is_first = position + len(piece), False
        except EvidenceError:
            if self._end < 0:  # the log begins with the batch behind it
                log.discard()
                self._segment = self._shift = None
            else:
                log.go_back(place)
            raise

    def _close_segment(self, end_offset: int, *, is_last: bool = False) -> None:
        segment = self._segment
        assert segment is not None
        self._segment = None
        segment.add_time()
        stem = f"{self._path}/{segment.base_offset:020d}"
        self._written.append(segment.log.finish())
        self._written.append(self._folder.write(f"{stem}.index", encode_index(offset_index(segment.offsets))))
        self._written.append(self._folder.write(f"{stem}.timeindex", encode_index(time_index(segment.times))))
        if segment.aborted:
            self._written.append(self._folder.write(f"{stem}.txnindex", encode_aborted_transactions(segment.aborted)))
        if self._has_modern or is_last:
            name = f"{self._path}/{end_offset:020d}.snapshot"
            entries = [self._state[producer] for producer in sorted(self._state)]
            self._written.append(self._folder.write(name, encode_producers(entries)))

    def _close_log(self) -> None:
        if self._segment is not None:
            self._close_segment(self._end - (self._shift or 0), is_last=True)
        checkpoint = encode_leader_epoch_checkpoint(LeaderEpochCheckpoint(lines=tuple(self._epochs)))
        self._written.append(self._folder.write(f"{self._path}/leader-epoch-checkpoint", checkpoint))
        topic_id = self._topic_id
        if not isinstance(topic_id, Absent):
            metadata = encode_partition_metadata(PartitionMetadata(version=0, topic_id=topic_id))
            self._written.append(self._folder.write(f"{self._path}/partition.metadata", metadata))

    def finish(self) -> tuple[WrittenFile, ...]:
        """End the log: the last segment, its producers, and the epochs."""
        self._close_log()
        return tuple(self._written)

    def close(self) -> None:
        """Give everything back; files that were not finished keep their names ending in `.partial`."""
        if self._segment is not None:
            self._segment.log.close()
