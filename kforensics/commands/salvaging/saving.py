"""One partition saved: its best copy and its alternates, read run by run and handed to the writers of a form."""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.commands.salvaging.background import Background
from kforensics.commands.salvaging.folder import OutFile, OutFolder, WriteFailed, WrittenFile, safe_name
from kforensics.commands.salvaging.forms import BatchWriter, FormName, Given, RecordWriter, record_writer
from kforensics.commands.salvaging.jsonl import JsonRecords
from kforensics.commands.salvaging.reading import (
    BECAME_SHORTER,
    CERTAINTIES,
    CopyFiles,
    Merge,
    Run,
    outcomes_of,
    runs_of,
)
from kforensics.commands.salvaging.segments import LARGEST_HELD
from kforensics.damage import Absent, Damage, DamageKind
from kforensics.errors import EvidenceError, EvidenceUnreadable
from kforensics.evidence.model import BatchReader, CheckpointValue, Problem
from kforensics.evidence.parallel import InTurn
from kforensics.evidence.replica.positions import PartOfFile
from kforensics.formats.columns.record_runs import part_of
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import CONTROL_BIT, BatchTable
from kforensics.formats.primitives.word_buffer import SegmentBytes
from kforensics.formats.segment.walk import Buffers, iter_record_chunks
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.salvage.best_copy import MAIN, NO_EPOCH, BestCopies, Label, Selection, Wanted
from kforensics.reconcile.salvage.gaps import Gap, GapReason, HoleJudge, join_gaps, without_held
from kforensics.reconcile.salvage.transactions import Outcomes, are_transactional
from kforensics.units import OffsetRange, TopicPartition

_PIECE = 256 << 10

_IN_RECORDS = "--form jsonl holds them"

TASK_LENGTH = 4 << 20
"""Bytes of batches whose records one process writes at a time."""

WORTH_PROCESSES = 48 << 20
"""Bytes of a copy for which processes pay that write its records in turn."""

_HOLDING_RECORDS = frozenset({DamageKind.EPOCH, DamageKind.ORDER})
"""What is wrong between batches whose records can all be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The part of the records that is wanted."""

    offsets: OffsetRange | None = None
    time_ms: tuple[int, int] | None = None
    """From the first on, and before the second."""
    with_aborted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPlan:
    """The plan for one partition: what is to be saved, and the copies that there are of it."""

    partition: TopicPartition
    topic_id: str | Absent
    copies: tuple[LogCopy, ...]
    """The leader's first where there is one, the others with the preferred first."""
    leader: LogCopy | None
    leader_source: str
    """Who says that it leads."""
    wanted: tuple[Wanted, ...] | None
    """None for all that there is."""
    gaps: tuple[Gap, ...] = ()
    """Known before anything is read."""
    is_other_topic: bool = False
    """Its directories are of another topic that had the name."""
    only: int | None = None
    """The copy of which anything is saved; the others only show what need not be."""
    name: str = ""
    """What its files are called; the partition where it is empty."""
    is_named: bool = True
    """Whether it is proven which partition it is."""
    likely: str = ""
    """The partition that it likely is of, where none is proven."""
    certain_below: int = 0
    """The offset below which the leader's log is certainly committed."""


@dataclass(slots=True, kw_only=True)
class SavedRun:
    """Records that were saved out of one run of bytes."""

    offsets: OffsetRange
    records: int
    input: int
    path: str
    position: int
    length: int
    sha256: str
    leader_epochs: OffsetRange
    """The lowest and the highest one, -1 for none."""


@dataclass(slots=True, kw_only=True)
class SavedLabel:
    """The best copy, or one alternate."""

    leader_epoch: int | Absent
    owner: str
    """Who holds it; empty for the best copy."""
    is_of_leader: bool = False
    """Whether it is what the leader holds at offsets where another replica in use keeps other content."""
    records: int = 0
    certain: int = 0
    possible: int = 0
    runs: list[SavedRun] = field(default_factory=list)
    files: tuple[WrittenFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadEnd:
    """Bytes behind the last batch of a log that may hold records, of which not even the offsets can be read."""

    input: int
    path: str
    position: int
    length: int

    @property
    def words(self) -> str:
        """Which bytes they are."""
        return f"{self.length:,} bytes of {self.path} from byte {self.position:,} on"


@dataclass(slots=True, kw_only=True)
class SavedPartition:
    """The result for one partition."""

    partition: TopicPartition
    topic_id: str | Absent
    leader: int | Absent
    leader_source: str
    is_other_topic: bool
    labels: list[SavedLabel] = field(default_factory=list)
    """The best copy first."""
    gaps: list[Gap] = field(default_factory=list)
    aborted_records: int = 0
    """Of aborted transactions, and not taken."""
    unread_ends: tuple[UnreadEnd, ...] = ()
    markers: int = 0
    """Control records, which no form of records holds."""
    likely: str = ""
    """The partition that it likely is of, where none is proven."""
    is_named: bool = True
    """Whether the partition is proven; else its name is that of the files."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The partition, or what its files are called where none is proven."""
        return str(self.partition) if self.is_named else self.partition.topic

    @property
    def records(self) -> int:
        """Records that were saved, alternates included."""
        return sum(one.records for one in self.labels)

    @property
    def of_leader(self) -> int:
        """Those of them that the leader holds."""
        return sum(one.records for one in self.labels if one.is_of_leader)

    @property
    def certain(self) -> int:
        """Those of them that were certainly committed."""
        return sum(one.certain for one in self.labels)

    @property
    def missing(self) -> int:
        """Offsets that are not saved and were not removed by intention."""
        return sum(gap.count for gap in self.gaps if gap.is_loss)


def save_partition(
    plan: PartitionPlan,
    *,
    folder: OutFolder,
    form: FormName,
    filters: Filters,
    roots: Sequence[Path],
    reader: BatchReader,
    batch_writer: "Callable[[str, PartitionPlan], BatchWriter] | None" = None,
    jobs: int = 1,
) -> SavedPartition:
    """Write the records of one partition.

    Args:
        plan: what is wanted, and of which copies.
        folder: where files are made.
        form: of the files.
        filters: the part that is wanted.
        roots: where each input really is, by its index.
        reader: gives batch rows.
        batch_writer: makes the writer of a form of whole batches, by the stem of its files.
        jobs: the most processes to use.

    Raises:
        WriteFailed: the output can't be written.
        HoldsDelimiter: the form can't hold the records.
    """
    files = CopyFiles(copies=plan.copies, roots=roots)
    try:
        return _Saver(plan, folder, form, filters, files, reader, batch_writer, jobs).run()
    finally:
        files.close()


def _watermark(copy: LogCopy) -> int:
    value = copy.view.replica.high_watermark
    return value.value if isinstance(value, CheckpointValue) and copy.is_final and not copy.is_remnant else 0


@dataclass(slots=True)
class _Output:
    saved: SavedLabel
    records: RecordWriter | None
    batches: BatchWriter | None
    digest: Any = None
    """Of the bytes of the last run; a file where they are all that is in it so far."""


@dataclass(slots=True)
class _Part:
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


@dataclass(slots=True)
class _Written:
    """What a process made of a task, and then what it wrote of it."""

    parts: list[list[tuple[Run, _Part]]]
    """Of each run."""
    lines: list[bytes | memoryview] = field(default_factory=list)
    length: int = 0
    failure: WriteFailed | None = None


class _Saver:
    def __init__(
        self,
        plan: PartitionPlan,
        folder: OutFolder,
        form: FormName,
        filters: Filters,
        files: CopyFiles,
        reader: BatchReader,
        batch_writer: "Callable[[str, PartitionPlan], BatchWriter] | None",
        jobs: int,
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._form = form
        self._filters = filters
        self._files = files
        self._reader = reader
        self._batch_writer = batch_writer
        self._best = BestCopies(
            copies=plan.copies, leader=plan.leader, reader=reader, wanted=plan.wanted, only=plan.only
        )
        self._holes = HoleJudge(plan.copies, plan.leader)
        self._buffers = Buffers.empty()
        self._outcomes: dict[int, Outcomes] = {}
        self._outputs: dict[int, _Output] = {}
        self._background = Background()
        self._gaps: list[Gap] = []
        """Those before the next run of batches."""
        largest = max((sum(one.length for one in copy.view.segments) for copy in plan.copies), default=0)
        self._jobs = jobs if largest >= WORTH_PROCESSES and hasattr(os, "fork") else 1
        self._processes: InTurn[list[Run], _Written] | None = None
        self._task: list[tuple[Run, list[Gap]]] = []
        """Runs for the next process, each with the gaps before it."""
        self._tasks: deque[list[tuple[Run, list[Gap]]]] = deque()
        """Those that processes have."""
        files.before_close = self._background.wait
        self._next = self._first_offset()
        self._saved = SavedPartition(
            partition=plan.partition,
            topic_id=plan.topic_id,
            leader=plan.leader.broker_id if plan.leader is not None else Absent.UNKNOWN,
            leader_source=plan.leader_source,
            is_other_topic=plan.is_other_topic,
            gaps=self._in_view_of_gaps(plan.gaps),
            likely=plan.likely,
            is_named=plan.is_named,
        )

    def _first_offset(self) -> int:
        return max(self._filters.offsets.first if self._filters.offsets else 0, 0)

    def run(self) -> SavedPartition:
        """Save it."""
        try:
            for selection in self._best.selections():
                kept = self._in_view(selection)
                for part in runs_of(kept) if len(kept.rows) else ():
                    if isinstance(part, Merge):
                        self._merge(part)
                    else:
                        self._run(part)
            self._settle()
            self._end()
            for gap in self._gaps:
                join_gaps(self._saved.gaps, gap)
            for number in sorted(self._outputs):
                output = self._outputs[number]
                writer = output.records or output.batches
                assert writer is not None
                if output.records is not None and not output.saved.records:
                    output.records.close()
                    output.records.file.discard()
                    continue
                output.saved.files = writer.finish()
                self._seal(output)
        except ChildProcessError as error:
            raise WriteFailed(self._stem(None), error) from error
        finally:
            if self._processes is not None:
                self._processes.close()
            self._background.close()
            for output in self._outputs.values():
                for writer in (output.records, output.batches):
                    if writer is not None:
                        writer.close()
        written = (self._outputs[number].saved for number in sorted(self._outputs))
        self._saved.labels = [one for one in written if one.files]
        alternates = [one.offsets for label in self._saved.labels if label.owner for one in label.runs]
        self._saved.gaps = without_held(self._saved.gaps, alternates)
        return self._saved

    def _in_view(self, selection: Selection) -> Selection:
        wanted = self._filters.offsets
        if wanted is None:
            return selection
        kept = (selection.rows["last_offset"] >= wanted.first) & (selection.rows["base_offset"] <= wanted.last)
        return Selection(
            rows=selection.rows[kept],
            copies=selection.copies[kept],
            labels=selection.labels[kept],
            merged=selection.merged[kept],
        )

    def _in_view_of_gaps(self, gaps: Sequence[Gap]) -> list[Gap]:
        wanted = self._filters.offsets
        if wanted is None:
            return list(gaps)
        out = []
        for gap in gaps:
            first, last = max(gap.offsets.first, wanted.first), min(gap.offsets.last, wanted.last)
            if first <= last:
                out.append(replace(gap, offsets=OffsetRange(first, last), count=min(gap.count, last - first + 1)))
        return out

    # ---- holes ----

    def _hole_before(self, rows: BatchTable, label: int) -> None:
        """Offsets between what was taken before and these batches, where everything is wanted."""
        if self._plan.wanted is not None or self._plan.only is not None or label != MAIN:
            return
        bases, lasts = rows["base_offset"], rows["last_offset"]
        reached = np.maximum.accumulate(np.concatenate([[self._next - 1], lasts])) + 1
        for at in np.flatnonzero(bases > reached[:-1]).tolist():
            self._add_hole(OffsetRange(int(reached[at]), int(bases[at]) - 1))
        self._next = max(self._next, int(reached[-1]))

    def _end(self) -> None:
        if self._plan.wanted is not None or self._plan.only is not None:
            return
        copies = (self._plan.leader,) if self._plan.leader is not None else self._plan.copies
        end = max((copy.view.log_end_offset for copy in copies), default=0)
        # A log that ends below its own high watermark has lost what was in between.
        end = max(end, *(_watermark(copy) for copy in copies)) if copies else end
        ends = [
            one.offsets_lost.last + 1
            for copy in copies
            for segment in copy.view.replica.segments
            for one in segment.damage
            if isinstance(one.offsets_lost, OffsetRange)
        ]
        end = max(end, *ends) if ends else end
        self._saved.unread_ends = tuple(self._unread_ends(end))
        if self._filters.offsets is not None:
            end = min(end, self._filters.offsets.last + 1)
        if end > self._next:
            self._add_hole(OffsetRange(self._next, end - 1))

    def _unread_ends(self, end: int) -> Iterator[UnreadEnd]:
        """Yield the ends of logs that no other log passes."""
        for copy in self._plan.copies:
            if copy.view.log_end_offset < end:
                continue
            replica = copy.view.replica
            for segment in replica.segments:
                for one in segment.damage:
                    is_known = isinstance(one.offsets_lost, OffsetRange) or one.offsets_lost is Absent.NOT_APPLICABLE
                    if not is_known and isinstance(one.next_good, Absent) and one.kind is not DamageKind.ZEROS:
                        where = one.span.position
                        yield UnreadEnd(input=replica.input, path=segment.path, position=where, length=one.span.length)

    def _add_hole(self, hole: OffsetRange) -> None:
        self._gaps += self._holes.gaps(hole)

    def _lack(self, rows: BatchTable, reason: GapReason, detail: str) -> None:
        self._gaps += _lacking(rows, reason, detail)

    # ---- runs ----

    def _run(self, run: Run) -> None:
        self._hole_before(run.rows, run.label)
        for part in self._readable(run):
            self._take(part)

    def _readable(self, run: Run) -> Iterator[Run]:
        """Yield the run, or the same batches of other copies where its bytes are not here."""
        try:
            here = self._files.at_hand(run)
            detail = "" if here.all() else f"read {self._files.where_missing(run.copy, run.segment)}"
            reason = GapReason.NOT_CAPTURED
        except EvidenceError as error:
            self._problem(run, error)
            here = np.zeros(len(run.rows), dtype=np.bool_)
            detail, reason = error.problem, GapReason.DAMAGED
        edges = [0, *(np.flatnonzero(np.diff(here)) + 1).tolist(), len(here)]
        for first, end in pairwise(edges):
            rows = run.rows[first:end]
            if here[first]:
                yield run if len(rows) == len(here) else Run(copy=run.copy, label=run.label, rows=rows)
                continue
            for row in rows:
                elsewhere = self._elsewhere(run, row)
                if elsewhere is None:
                    self._lack(np.array([row], dtype=rows.dtype), reason, detail)
                else:
                    yield elsewhere

    def _elsewhere(self, run: Run, row: np.void) -> Run | None:
        for at, copy in enumerate(self._plan.copies):
            if at == run.copy:
                continue
            rows = self._reader.batches(copy.view.replica, int(row["base_offset"]), int(row["last_offset"]))
            same = rows[
                (rows["base_offset"] == row["base_offset"])
                & (rows["last_offset"] == row["last_offset"])
                & (rows["crc"] == row["crc"])
                & (rows["length"] == row["length"])
            ]
            for number in range(len(same)):
                other = Run(copy=at, label=run.label, rows=same[number : number + 1])
                try:
                    if self._files.at_hand(other).all():
                        return other
                except EvidenceError:
                    continue
        return None

    def _take(self, run: Run) -> None:
        if self._jobs > 1 and run.label == MAIN and self._form is FormName.JSONL:
            self._hand_out(run)
            return
        self._settle()
        output = self._output(run.label)
        if output.batches is not None:
            for found in self._copy(run, output):
                if isinstance(found, Gap):
                    self._gaps.append(found)
            return
        assert output.records is not None
        for one in _split(run):
            for taken, part in self._parts(one, output.records.add):
                self._add(taken, output, part, part.records)

    def _copy(self, run: Run, output: _Output) -> Iterator[BatchTable | Gap]:
        """Copy whole batches: yield those that were copied when they are, and what can't be read in its place."""
        assert output.batches is not None
        for one in _split(run):
            # A batch that is larger than may be held is copied in pieces, which ends well or leaves nothing.
            for part in (one,) if one.end - one.start <= LARGEST_HELD else _singly(one):
                yield from self._copy_readable(part, output, output.batches)

    def _copy_readable(self, run: Run, output: _Output, batches: BatchWriter) -> Iterator[BatchTable | Gap]:
        try:
            yield self._copy_batches(run, output, batches)
        except EvidenceError as error:
            self._problem(run, error)
            for rows, is_read in self._probed(run, run.rows):
                if is_read:
                    yield from self._copy_readable(Run(copy=run.copy, label=run.label, rows=rows), output, batches)
                else:
                    yield from _lacking(rows, GapReason.DAMAGED, error.problem)

    def _copy_batches(self, run: Run, output: _Output, batches: BatchWriter) -> BatchTable:
        part = _Part()
        if not self._continues(run, output):
            self._seal(output)
        left = batches.add(run, self._files)
        kept: BatchTable = run.rows[~np.isin(run.rows["position"], left["position"])] if len(left) else run.rows
        self._count_batches(run, kept, part)
        self._add(run, output, part, int(kept["count"].sum()))
        self._lack(left, GapReason.OVERLAPPING, _IN_RECORDS)
        return kept

    def _parts(
        self, run: Run, write: Callable[[RecordChunk, Given], None], seen: set[int] | None = None
    ) -> Iterator[tuple[Run, _Part]]:
        """Write the records of a run, and yield what came of it: in several parts where some of it can't be read."""
        part = _Part()
        try:
            for chunk, given in self._records(run, part, seen):
                write(chunk, given)
        except EvidenceError as caught:
            error = caught
        else:
            yield run, part
            return
        is_done = run.rows["position"] <= part.read_to
        part.problems.append(self._problem_of(run, error))
        yield Run(copy=run.copy, label=run.label, rows=run.rows[is_done] if is_done.any() else run.rows), part
        for rows, is_read in self._probed(run, run.rows[~is_done]):
            if is_read:
                yield from self._parts(Run(copy=run.copy, label=run.label, rows=rows), write, seen)
            else:
                yield run, _Part(gaps=list(_lacking(rows, GapReason.DAMAGED, error.problem)))

    def _probed(self, run: Run, rows: BatchTable) -> Iterator[tuple[BatchTable, bool]]:
        """Yield batches in stretches that can be read, and that can't; never all of them as one that can."""
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

    def _add(self, run: Run, output: _Output, part: _Part, records: int) -> None:
        """Take note of what came of a run, and of the gaps before it."""
        for gap in (*self._gaps, *part.gaps):
            join_gaps(self._saved.gaps, gap)
        self._gaps.clear()
        self._saved.markers += part.markers
        self._saved.aborted_records += part.aborted_records
        self._saved.problems += part.problems
        output.saved.records += part.records
        output.saved.certain += part.certain
        output.saved.possible += part.possible
        self._note(run, output, records)

    def _count_batches(self, run: Run, rows: BatchTable, part: _Part) -> None:
        control = (rows["magic"] == 2) & (rows["attributes"] & CONTROL_BIT > 0)
        part.markers += int(rows["count"][control].sum())
        part.records += int(rows["count"][~control].sum())
        if control.all():
            return
        kept = rows[~control]
        codes = self._certainty(run, kept["base_offset"], kept["partition_leader_epoch"].astype(np.int64))
        part.certain += int(kept["count"][codes == CERTAINTIES.index("certain")].sum())
        part.possible += int(kept["count"][codes == CERTAINTIES.index("possible")].sum())

    # ---- several processes ----

    def _hand_out(self, run: Run) -> None:
        """Give batches to a process as soon as they are enough; of a long run a part to each."""
        for one in _split(run):
            self._task.append((one, self._gaps))
            self._gaps = []
            if sum(other.end - other.start for other, _ in self._task) >= TASK_LENGTH // 2:
                self._submit()

    def _submit(self) -> None:
        if self._processes is None:
            for output in self._outputs.values():
                if isinstance(output.records, JsonRecords):
                    output.records.file.pause()
            writer = self._output(MAIN).records
            assert isinstance(writer, JsonRecords)
            writer.expect_many()
            self._background.wait()
            self._background.close()
            self._processes = InTurn(self._lines, self._append, jobs=self._jobs)
        task, self._task = self._task, []
        for done in self._processes.submit([run for run, _ in task]):
            self._take_over(done)
        self._tasks.append(task)

    def _settle(self) -> None:
        """Wait for what processes have."""
        if self._task:
            self._submit()
        for done in self._processes.results() if self._processes is not None else ():
            self._take_over(done)

    def _take_over(self, done: _Written) -> None:
        if done.failure is not None:
            raise done.failure
        output, after = self._output(MAIN), self._gaps
        assert isinstance(output.records, JsonRecords)
        output.records.file.appended(done.length)
        for (_, gaps), parts in zip(self._tasks.popleft(), done.parts, strict=True):
            self._gaps = gaps
            for run, part in parts:
                self._add(run, output, part, part.records)
        self._gaps = after

    def _lines(self, task: list[Run]) -> _Written:
        """Make the lines of some runs, in a process of its own."""
        writer = self._outputs[MAIN].records
        assert isinstance(writer, JsonRecords)
        done = _Written([])
        for run in task:
            done.parts.append(list(self._parts(run, lambda *found: done.lines.append(writer.lines(*found)))))
        return done

    def _append(self, done: _Written) -> _Written:
        """Write lines when those of every task before are written."""
        writer = self._outputs[MAIN].records
        assert isinstance(writer, JsonRecords)
        try:
            return _Written(done.parts, length=writer.file.append(done.lines))
        except WriteFailed as error:
            return _Written(done.parts, failure=error)

    # ---- records of a run ----

    def _chunks(self, run: Run, part: _Part) -> Iterator[RecordChunk]:
        """Yield the records of a run; damage is noted."""
        source = PartOfFile(self._files.source(run), run.end)  # what lies behind may be what can't be read
        for found in iter_record_chunks(source, start=run.start, end=run.end, buffers=self._buffers):
            if isinstance(found, Damage):
                self._damaged(run, found, part)
            else:
                part.read_to = int(found.batches["position"][found.rows[-1]])
                yield found

    def _damaged(self, run: Run, damage: Damage, part: _Part) -> None:
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
        part.gaps.append(Gap(offsets=offsets, count=offsets.count, reason=GapReason.DAMAGED, detail=where))

    def _problem(self, run: Run, error: EvidenceError) -> None:
        self._saved.problems.append(self._problem_of(run, error))

    def _problem_of(self, run: Run, error: EvidenceError) -> Problem:
        replica = self._plan.copies[run.copy].view.replica
        return Problem(input=replica.input, path=replica.segments[run.segment].path, message=error.problem)

    def _records(self, run: Run, part: _Part, seen: set[int] | None = None) -> Iterator[tuple[RecordChunk, Given]]:
        """Yield the records of a run that are wanted, and count them; control records and those of aborted transactions are counted apart.

        Args:
            run: batches.
            part: what is counted.
            seen: offsets that are taken already, to which these are added.
        """
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

    # ---- merged batches ----

    def _merge(self, merge: Merge) -> None:
        """Write records of batches over the same offsets, each offset once: of the preferred batch that has it."""
        self._settle()
        rows = np.concatenate([part.rows for part in merge.parts])
        self._hole_before(rows[np.argsort(rows["base_offset"], kind="stable")], merge.label)
        output = self._output(merge.label)
        if output.batches is not None:
            self._merge_batches(merge, output)
            return
        assert output.records is not None
        seen: set[int] = set()
        unread: list[Gap] = []
        for one in merge.parts:
            for readable in self._readable(one):
                for run, part in self._parts(readable, output.records.add, seen):
                    unread += [gap for gap in part.gaps if gap.reason is GapReason.DAMAGED]
                    part.gaps = [gap for gap in part.gaps if gap.reason is not GapReason.DAMAGED]
                    self._add(run, output, part, part.records)
        self._gaps += [left for gap in unread for left in _without_known(gap, seen)]
        if self._processes is not None:
            output.records.file.digest()  # what waits here is written and hashed before processes append to the file

    def _merge_batches(self, merge: Merge, output: _Output) -> None:
        """Copy the batches of the copy that has most records; what others have beside them is a gap, since no batch is built again."""
        copied: set[int] = set()
        beside: set[int] = set()
        unread: list[Gap] = []
        for one in sorted(merge.parts, key=lambda one: -int(one.rows["count"].sum())):
            is_chosen = not copied
            for readable in self._readable(one):
                if not is_chosen:
                    beside |= self._offsets_of(readable, unread)
                    continue
                for found in self._copy(readable, output):
                    if isinstance(found, Gap):
                        unread.append(found)
                    elif len(found):
                        copied |= self._offsets_of(Run(copy=readable.copy, label=readable.label, rows=found), unread)
        for offset in sorted(beside - copied):
            place = OffsetRange(offset, offset)
            self._gaps.append(Gap(offsets=place, count=1, reason=GapReason.OVERLAPPING, detail=_IN_RECORDS))
        self._gaps += [left for gap in unread for left in _without_known(gap, copied | beside)]

    def _offsets_of(self, run: Run, unread: list[Gap]) -> set[int]:
        """Return the offsets of the records that can be read; what can't be is added to the gaps."""
        found: set[int] = set()
        for _, part in self._parts(run, lambda chunk, _: found.update(chunk.offset.tolist())):
            unread += [gap for gap in part.gaps if gap.reason is GapReason.DAMAGED]
        return found

    # ---- outputs ----

    def _output(self, number: int) -> _Output:
        if number in self._outputs:
            return self._outputs[number]
        label = self._best.labels[number]
        stem = self._stem(label if number != MAIN else None)
        epoch = Absent.NOT_APPLICABLE if number == MAIN or label.leader_epoch == NO_EPOCH else label.leader_epoch
        saved = SavedLabel(leader_epoch=epoch, owner=label.owner if number != MAIN else "")
        leader = self._plan.leader
        if self._plan.wanted is not None and leader is not None and number != MAIN:
            saved.is_of_leader = label.owner == leader.view.replica.owner
        if self._form is FormName.SEGMENTS:
            assert self._batch_writer is not None
            output = _Output(saved, None, self._batch_writer(stem, self._plan))
        else:
            output = _Output(saved, record_writer(self._form, self._folder, stem, self._plan.partition), None)
        self._outputs[number] = output
        return output

    def _stem(self, label: Label | None) -> str:
        partition = self._plan.partition
        name = self._plan.name or f"{safe_name(partition.topic)}-{partition.partition}"
        folder = ""
        if self._plan.is_other_topic:
            topic_id = self._plan.topic_id
            folder = f"other-topics/{safe_name(topic_id) if not isinstance(topic_id, Absent) else 'unknown'}/"
        if label is None:
            return folder + name
        epoch = "no-epoch" if label.leader_epoch == NO_EPOCH else f"epoch-{label.leader_epoch}"
        owner = safe_name(label.owner.replace(" ", "-"))
        # A directory of its own for each: the loader of a broker takes only the name of the partition.
        return f"{folder}alternates/{name}/{epoch}.{owner}/{name}"

    def _note(self, run: Run, output: _Output, records: int) -> None:
        """Remember where records came from, with the SHA-256 of the bytes; runs that continue each other are one."""
        if not records and (output.batches is None or not output.batches.copied):
            return
        replica = self._plan.copies[run.copy].view.replica
        path = replica.segments[run.segment].path
        first_offset, last_offset = int(run.rows["base_offset"].min()), int(run.rows["last_offset"].max())
        if self._filters.offsets is not None and output.batches is None:
            first_offset = max(first_offset, self._filters.offsets.first)
            last_offset = min(last_offset, self._filters.offsets.last)
        epochs = run.rows["partition_leader_epoch"]
        if self._continues(run, output):
            last = output.saved.runs[-1]
            last.offsets = OffsetRange(min(last.offsets.first, first_offset), max(last.offsets.last, last_offset))
            last.records += records
            last.length += run.end - run.start
            last.leader_epochs = OffsetRange(
                min(last.leader_epochs.first, int(epochs.min())), max(last.leader_epochs.last, int(epochs.max()))
            )
        else:
            self._seal(output)
            output.saved.runs.append(
                SavedRun(
                    offsets=OffsetRange(first_offset, last_offset),
                    records=records,
                    input=replica.input,
                    path=path,
                    position=run.start,
                    length=run.end - run.start,
                    sha256="",
                    leader_epochs=OffsetRange(int(epochs.min()), int(epochs.max())),
                )
            )
        self._hash(run, output)

    def _continues(self, run: Run, output: _Output) -> bool:
        """Whether this run of bytes continues the last one."""
        if output.digest is None:
            return False
        last = output.saved.runs[-1]
        replica = self._plan.copies[run.copy].view.replica
        place = (replica.input, replica.segments[run.segment].path, run.start)
        return (last.input, last.path, last.position + last.length) == place

    def _hash(self, run: Run, output: _Output) -> None:
        """Hash the bytes of a run beside the main thread; what is copied to a file that holds nothing else is hashed once, with the file."""
        position = run.start
        if output.digest is None or isinstance(output.digest, OutFile):
            position = self._hashed_with_file(run, output)
        if position == run.end:
            return
        try:
            source = self._files.source(run)
        except EvidenceError as error:
            self._problem(run, error)
            return
        self._background.do(partial(_update, output.digest, source, position, run.end))

    def _hashed_with_file(self, run: Run, output: _Output) -> int:
        """Return the position up to which the digest of the run is that of the file that it is copied to."""
        begin, position = output.saved.runs[-1].position, run.start
        copied = output.batches.copied if output.batches is not None else []
        target = output.digest or (copied[0][0] if copied else None)
        there = [one for one in copied if one[0] is target]
        if len(there) == 1 and there[0][1:3] == (run.start - begin, run.start):
            output.digest, position = target, there[0][3]
        elif there:  # it holds something else, too, or not all of the run
            output.digest, position = None, begin
        if position < run.end:
            output.digest = output.digest.digest() if output.digest is not None else hashlib.sha256()
        return position

    def _seal(self, output: _Output) -> None:
        if output.digest is not None:
            self._background.wait()
            digest = output.digest.digest() if isinstance(output.digest, OutFile) else output.digest
            output.saved.runs[-1].sha256 = digest.hexdigest()
            output.digest = None


def _split(run: Run) -> Iterator[Run]:
    """Yield a run in parts that are small enough to be held as records."""
    ends = np.cumsum(run.rows["length"].astype(np.int64))
    edges = [0, *(np.flatnonzero(np.diff((ends - 1) // TASK_LENGTH)) + 1).tolist(), len(ends)]
    for first, end in pairwise(edges):
        yield Run(copy=run.copy, label=run.label, rows=run.rows[first:end])


def _singly(run: Run) -> Iterator[Run]:
    return (Run(copy=run.copy, label=run.label, rows=run.rows[at : at + 1]) for at in range(len(run.rows)))


def _without_known(gap: Gap, known: set[int]) -> Iterator[Gap]:
    """Yield what is left of a gap where other batches over its offsets hold some of them."""
    left = [offset for offset in range(gap.offsets.first, gap.offsets.last + 1) if offset not in known]
    if left:
        yield replace(gap, offsets=OffsetRange(left[0], left[-1]), count=min(gap.count, len(left)))


def _lacking(rows: BatchTable, reason: GapReason, detail: str) -> Iterator[Gap]:
    for row in rows:
        offsets = OffsetRange(int(row["base_offset"]), int(row["last_offset"]))
        yield Gap(offsets=offsets, count=int(row["count"]), reason=reason, detail=detail)


def _update(digest: Any, file: SegmentBytes, start: int, end: int) -> None:
    """Hash a run of a file; where it became shorter meanwhile, what is left of it."""
    position = start
    buffer = memoryview(bytearray(min(_PIECE, end - start)))
    while position < end:
        count = file.read_into(position, buffer[: min(len(buffer), end - position)])
        if not count:
            break
        digest.update(buffer[:count])
        position += count
