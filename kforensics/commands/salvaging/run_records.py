"""The records of runs of batches: which of them are wanted, what is known of each, and what of a run can't be read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.commands.salvaging.model import Filters, PartitionPlan
from kforensics.commands.salvaging.outputs import Given
from kforensics.commands.salvaging.reading import BECAME_SHORTER, CERTAINTIES, CopyFiles, Run, outcomes_of
from kforensics.damage import Damage, DamageKind
from kforensics.errors import EvidenceError, EvidenceUnreadable
from kforensics.evidence.model import BatchReader, Problem
from kforensics.evidence.replica.ends import PartOfFile
from kforensics.formats.columns.record_stream import RecordChunk, part_of
from kforensics.formats.log.batch_table import CONTROL_BIT, BatchTable
from kforensics.formats.segment.walk import Buffers, iter_record_chunks
from kforensics.reconcile.logs.loaded_log import Outcomes, are_transactional
from kforensics.reconcile.salvage import MAIN, Gap, GapReason, join_gaps, reason_of
from kforensics.units import OffsetRange

TASK_LENGTH = 3 << 20
"""Bytes of batches whose records one process decodes at a time: the more batches are decoded together, the less each of them takes."""

_PIECE = 256 << 10

_HOLDING_RECORDS = frozenset({DamageKind.EPOCH, DamageKind.ORDER})
"""What is wrong between batches whose records can all be read."""


@dataclass(slots=True)
class Part:
    """What came of one run of batches."""

    records: int = 0
    certain: int = 0
    possible: int = 0
    markers: int = 0
    aborted_records: int = 0
    gaps: list[Gap] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    read_to: int = -1
    """The position of the last batch whose records were read."""


class RunRecords:
    """The records of a partition's runs.

    Args:
        plan: what is wanted, and of which copies.
        reader: gives batch rows.
    """

    def __init__(self, plan: PartitionPlan, filters: Filters, files: CopyFiles, reader: BatchReader) -> None:
        self._plan = plan
        self._filters = filters
        self._files = files
        self._reader = reader
        self._buffers = Buffers.empty()
        self._outcomes: dict[int, Outcomes] = {}

    def _chunks(self, run: Run, part: Part) -> Iterator[RecordChunk]:
        source = PartOfFile(self._files.source(run), run.end)  # what lies behind may be what can't be read
        for found in iter_record_chunks(source, start=run.start, end=run.end, buffers=self._buffers):
            if isinstance(found, Damage):
                self._damaged(run, found, part)
            else:
                part.read_to = int(found.batches["position"][found.rows[-1]])
                yield found

    def _damaged(self, run: Run, damage: Damage, part: Part) -> None:
        """Note records that break off although the checksum of their batch holds."""
        if damage.kind in _HOLDING_RECORDS:
            return
        at = int(np.searchsorted(run.rows["position"], damage.span.position, side="right")) - 1
        if not 0 <= at < len(run.rows):
            return
        row = run.rows[at]
        lost = damage.offsets_lost
        offsets = (
            lost if isinstance(lost, OffsetRange) else OffsetRange(int(row["base_offset"]), int(row["last_offset"]))
        )
        where = f"{self._files.segment(run.copy, run.segment).path}, byte {damage.span.position:,}: {damage.found}"
        part.gaps.append(Gap(offsets=offsets, count=offsets.count, reason=reason_of(damage), detail=where))

    def problem_of(self, run: Run, error: EvidenceError) -> Problem:
        """Return what can't be read of a run as a problem of its segment."""
        replica = self._plan.copies[run.copy].view.replica
        return Problem(input=replica.input, path=replica.segments[run.segment].path, message=error.problem)

    def _records(self, run: Run, part: Part, seen: set[int] | None = None) -> Iterator[tuple[RecordChunk, Given]]:
        """Yield the records of a run that are wanted, and count them; control records and those of aborted transactions are counted apart."""
        for chunk in self._chunks(run, part):
            batches, rows = chunk.batches, chunk.rows
            control = ((batches["magic"] == 2) & (batches["attributes"] & CONTROL_BIT > 0))[rows]
            in_view = self._wanted_records(chunk)
            if seen is not None:
                offsets = chunk.offset.tolist()
                in_view &= np.array([offset not in seen for offset in offsets], dtype=np.bool_)
                seen.update(offsets)
            aborted = self._aborted(batches, run)[rows]
            part.markers += int((control & in_view).sum())
            kept = in_view & ~control
            if not self._filters.with_aborted and aborted.any():
                for offset in chunk.offset[kept & aborted].tolist():
                    gap = Gap(offsets=OffsetRange(offset, offset), count=1, reason=GapReason.ABORTED)
                    join_gaps(part.gaps, gap)
                part.aborted_records += int((kept & aborted).sum())
                kept &= ~aborted
            if not kept.any():
                continue
            found = chunk if kept.all() else part_of(chunk, kept)
            epochs = found.batches["partition_leader_epoch"][found.rows].astype(np.int64)
            codes = self._certainty(run, found.offset, epochs)
            replica = self._plan.copies[run.copy].view.replica
            part.records += len(found.rows)
            part.certain += int((codes == CERTAINTIES.index("certain")).sum())
            part.possible += int((codes == CERTAINTIES.index("possible")).sum())
            path = replica.segments[run.segment].path
            yield found, Given(input=replica.input, path=path, committed=codes, aborted=aborted[kept])

    def _wanted_records(self, chunk: RecordChunk) -> NDArray[np.bool_]:
        kept = np.ones(len(chunk.rows), dtype=np.bool_)
        if self._filters.offsets is not None:
            kept &= (chunk.offset >= self._filters.offsets.first) & (chunk.offset <= self._filters.offsets.last)
        if self._filters.time_ms is not None:
            first, end = self._filters.time_ms
            kept &= (chunk.timestamp_ms >= first) & (chunk.timestamp_ms < end)
        return kept

    def _aborted(self, batches: BatchTable, run: Run) -> NDArray[np.bool_]:
        if not are_transactional(batches).any():
            return np.zeros(len(batches), dtype=np.bool_)
        found = self._outcomes_of(run.copy).are_aborted(batches)
        leader = self._plan.leader
        if self._plan.wanted is None and run.label == MAIN and leader is not None:
            # What is of the leader's lineage ends with the markers of the leader's log.
            at = next(at for at, copy in enumerate(self._plan.copies) if copy is leader)
            if at != run.copy:
                found = found | self._outcomes_of(at).are_aborted(batches)
        return found

    def _outcomes_of(self, at: int) -> Outcomes:
        if at not in self._outcomes:
            self._outcomes[at] = outcomes_of(at, self._files, self._reader)
        return self._outcomes[at]

    def _certainty(self, run: Run, offsets: NDArray[np.int64], epochs: NDArray[np.int64]) -> NDArray[np.int8]:
        codes = np.zeros(len(offsets), dtype=np.int8)
        if self._plan.wanted is None:
            codes[offsets < self._plan.certain_below] = CERTAINTIES.index("certain")
            return codes
        replica = self._plan.copies[run.copy].view.replica
        low, high = int(offsets.min()), int(offsets.max())
        for one in self._plan.wanted:
            if one.offsets.first <= high and one.offsets.last >= low:
                inside = (offsets >= one.offsets.first) & (offsets <= one.offsets.last)
                if one.leader_epoch is not None:
                    inside &= epochs == one.leader_epoch
                elif (replica.input, replica.path) not in one.holders:
                    continue
                codes[inside & (codes == 0)] = CERTAINTIES.index(one.committed)
        return codes

    def parts(
        self, run: Run, write: Callable[[RecordChunk, Given], None], seen: set[int] | None = None
    ) -> Iterator[tuple[Run, Part]]:
        """Write the records of a run, and yield what came of it: in several parts where some of it can't be read."""
        part = Part()
        try:
            for chunk, given in self._records(run, part, seen):
                write(chunk, given)
        except EvidenceError as caught:
            error = caught
        else:
            yield run, part
            return
        is_done = run.rows["position"] <= part.read_to
        part.problems.append(self.problem_of(run, error))
        yield Run(copy=run.copy, label=run.label, rows=run.rows[is_done] if is_done.any() else run.rows), part
        for rows, is_read in self.probed(run, run.rows[~is_done]):
            if is_read:
                yield from self.parts(Run(copy=run.copy, label=run.label, rows=rows), write, seen)
            else:
                yield run, Part(gaps=list(lacking(rows, GapReason.DAMAGED, error.problem)))

    def probed(self, run: Run, rows: BatchTable) -> Iterator[tuple[BatchTable, bool]]:
        """Yield batches in stretches that can be read, and stretches that can't; at least one can't."""
        ends = (rows["position"].astype(np.int64) + rows["length"]).tolist()
        is_read = np.array(
            [self._unread(run, start, end) is None for start, end in zip(rows["position"].tolist(), ends, strict=True)],
            dtype=np.bool_,
        )
        if is_read.all():
            is_read[:1] = False  # it could not be read a moment ago
        edges = [0, *(np.flatnonzero(np.diff(is_read)) + 1).tolist(), len(rows)]
        for first, end in pairwise(edges):
            yield rows[first:end], bool(is_read[first])

    def _unread(self, run: Run, start: int, end: int) -> EvidenceError | None:
        """Return why bytes of a run's file can't be read; None where they can."""
        buffer = memoryview(bytearray(min(_PIECE, end - start)))
        try:
            source = self._files.source(run)
            for position in range(start, end, _PIECE):
                wanted = buffer[: end - position]
                if source.read_into(position, wanted) < len(wanted):
                    return EvidenceUnreadable(self._files.segment(run.copy, run.segment).path, BECAME_SHORTER)
        except EvidenceError as error:
            return error
        return None

    def count_batches(self, run: Run, rows: BatchTable, part: Part) -> None:
        """Count the records of whole batches."""
        control = (rows["magic"] == 2) & (rows["attributes"] & CONTROL_BIT > 0)
        part.markers += int(rows["count"][control].sum())
        part.records += int(rows["count"][~control].sum())
        if control.all():
            return
        kept = rows[~control]
        epochs = kept["partition_leader_epoch"].astype(np.int64)
        codes = self._certainty(run, kept["base_offset"], epochs)
        is_split = codes != self._certainty(run, kept["last_offset"], epochs)
        self._count(kept["count"][~is_split], codes[~is_split], part)
        for row, epoch in zip(kept[is_split], epochs[is_split].tolist(), strict=True):
            offsets = np.arange(row["base_offset"], row["last_offset"] + 1, dtype=np.int64)
            # Which offsets a cleaner has left in a batch only its records say.
            if len(offsets) == row["count"]:
                each = self._certainty(run, offsets, np.full(len(offsets), epoch, dtype=np.int64))
                self._count(np.ones(len(offsets), dtype=np.int64), each, part)

    def _count(self, counts: NDArray[Any], codes: NDArray[np.int8], part: Part) -> None:
        part.certain += int(counts[codes == CERTAINTIES.index("certain")].sum())
        part.possible += int(counts[codes == CERTAINTIES.index("possible")].sum())


def split_run(run: Run) -> Iterator[Run]:
    """Yield a run in parts that are small enough to be held as records."""
    ends = np.cumsum(run.rows["length"].astype(np.int64))
    edges = [0, *(np.flatnonzero(np.diff((ends - 1) // TASK_LENGTH)) + 1).tolist(), len(ends)]
    for first, end in pairwise(edges):
        yield Run(copy=run.copy, label=run.label, rows=run.rows[first:end])


def is_worth_a_task(length: int) -> bool:
    """Return whether so many bytes of batches are enough for a process to begin with, rather than wait for more of them."""
    return length >= TASK_LENGTH // 2


def singly(run: Run) -> Iterator[Run]:
    """Return each batch as a run."""
    return (Run(copy=run.copy, label=run.label, rows=run.rows[at : at + 1]) for at in range(len(run.rows)))


def lacking(rows: BatchTable, reason: GapReason, detail: str) -> Iterator[Gap]:
    """Yield a gap for each batch."""
    for row in rows:
        offsets = OffsetRange(int(row["base_offset"]), int(row["last_offset"]))
        yield Gap(offsets=offsets, count=int(row["count"]), reason=reason, detail=detail)
