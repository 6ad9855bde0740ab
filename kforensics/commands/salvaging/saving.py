"""One partition saved: its best copy and its alternates, read run by run and handed to the writers of a form."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from kforensics.commands.salvaging.folder import OutFolder, WriteFailed
from kforensics.commands.salvaging.model import Filters, PartitionPlan, SavedPartition, UnreadEnd
from kforensics.commands.salvaging.outputs import BatchWriter, FormName, Output, Outputs
from kforensics.commands.salvaging.part_files import LinesInTurn, PartFiles, PartTask, Taken, add_parts, part_length
from kforensics.commands.salvaging.reading import CopyFiles, Merge, Run, runs_of
from kforensics.commands.salvaging.run_records import Part, RunRecords, lacking, singly, split_run
from kforensics.commands.salvaging.segments import LARGEST_HELD
from kforensics.damage import Absent, DamageKind
from kforensics.errors import EvidenceError
from kforensics.evidence.model import BatchReader, CheckpointValue
from kforensics.formats.log.batch_table import BatchTable
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.salvage import (
    MAIN,
    UNREADABLE,
    BestCopies,
    Gap,
    GapReason,
    HoleJudge,
    Selection,
    join_gaps,
    without_held,
)
from kforensics.units import OffsetRange

_IN_RECORDS = "--form jsonl holds them"

WORTH_PROCESSES = 48 << 20
"""Bytes of a copy for which processes pay that write its records in turn."""

DEFAULT_WRITERS = 2
"""Processes that write one partition where the user names no number: each takes about 60 MB, and all of `salvage` together at most 200 MB."""


def save_partition(
    plan: PartitionPlan,
    *,
    folder: OutFolder,
    form: FormName | None,
    filters: Filters,
    roots: Sequence[Path],
    reader: BatchReader,
    batch_writer: "Callable[[str, PartitionPlan], BatchWriter] | None" = None,
    jobs: int = 1,
) -> SavedPartition:
    """Write the records of one partition."""
    files = CopyFiles(copies=plan.copies, roots=roots)
    try:
        return _Saver(plan, folder, form, filters, files, reader, batch_writer, jobs).run()
    finally:
        files.close()


def _watermark(copy: LogCopy) -> int:
    value = copy.view.replica.high_watermark
    return value.value if isinstance(value, CheckpointValue) and copy.is_final and not copy.is_remnant else 0


class _Saver:
    def __init__(
        self,
        plan: PartitionPlan,
        folder: OutFolder,
        form: FormName | None,
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
        self._best = BestCopies(
            copies=plan.copies, leader=plan.leader, reader=reader, wanted=plan.wanted, only=plan.only
        )
        self._holes = HoleJudge(
            [copy.view for copy in plan.copies], plan.leader.view if plan.leader is not None else None, plan.remote
        )
        self._records = RunRecords(plan, filters, files, reader)
        self._new_outputs = partial(
            Outputs,
            plan,
            folder=folder,
            form=form,
            filters=filters,
            files=files,
            labels=self._best.labels,
            batch_writer=batch_writer,
            report=self._problem,
        )
        self._outputs = self._new_outputs()
        self._gaps: list[Gap] = []
        """Those before the next run of batches."""
        largest = max((sum(one.length for one in copy.view.segments) for copy in plan.copies), default=0)
        self._jobs = jobs if largest >= WORTH_PROCESSES and hasattr(os, "fork") else 1
        self._lines: LinesInTurn | None = None
        self._next = max(self._filters.offsets.first if self._filters.offsets else 0, 0)
        self._saved = self._nothing_saved(plan.gaps)
        self._part_length = part_length(largest) if form is FormName.PARQUET else None
        self._parts: PartFiles | None = None

    def _nothing_saved(self, gaps: Sequence[Gap] = ()) -> SavedPartition:
        plan = self._plan
        return SavedPartition(
            partition=plan.partition,
            topic_id=plan.topic_id,
            leader=plan.leader.broker_id if plan.leader is not None else Absent.UNKNOWN,
            leader_source=plan.leader_source,
            is_other_topic=plan.is_other_topic,
            gaps=self._in_view_of_gaps(gaps),
            likely=plan.likely,
            is_named=plan.is_named,
        )

    def run(self) -> SavedPartition:
        is_whole = False
        try:
            if self._part_length is not None:
                self._parts = PartFiles(self._part_length, self._save_part, jobs=self._jobs)
            for selection in self._best.selections():
                kept = self._in_view(selection)
                for part in runs_of(kept) if len(kept.rows) else ():
                    if isinstance(part, Merge):
                        self._merge(part)
                    else:
                        self._hole_before(part.rows, part.label)
                        for readable in self._readable(part):
                            self._take(readable)
            self._settle()
            self._end()
            self._finish()
            if self._parts is not None:
                add_parts(self._saved, self._parts.finish())
            is_whole = True
        except EvidenceError:  # some of them are OSErrors, too
            raise
        except (OSError, MemoryError) as error:
            raise WriteFailed(self._outputs.stem(None), error) from error
        finally:
            if self._lines is not None:
                self._lines.close()
            if self._parts is not None:
                self._parts.close()
                if not is_whole:
                    self._folder.take_back(self._outputs.stem(None))
            self._outputs.close()
        alternates = [one.offsets for label in self._saved.labels if label.owner for one in label.runs]
        self._saved.gaps = without_held(self._saved.gaps, alternates)
        return self._saved

    def _finish(self) -> None:
        for gap in self._gaps:
            join_gaps(self._saved.gaps, gap)
        self._saved.labels = self._outputs.finish()

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

    def _problem(self, run: Run, error: EvidenceError) -> None:
        self._saved.problems.append(self._records.problem_of(run, error))

    def _lack(self, rows: BatchTable, reason: GapReason, detail: str) -> None:
        self._gaps += lacking(rows, reason, detail)

    # ---- runs ----

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
            self._to_processes(run)
            return
        if self._parts is not None and run.label == MAIN:
            self._to_part(run)
            return
        self._settle()
        output = self._outputs.of(run.label)
        if output.batches is not None:
            for found in self._copy(run, output):
                if isinstance(found, Gap):
                    self._gaps.append(found)
            return
        assert output.records is not None
        for one in split_run(run):
            for taken, part in self._records.parts(one, output.records.add):
                self._add(taken, output, part, part.records)

    def _copy(self, run: Run, output: Output) -> Iterator[BatchTable | Gap]:
        """Copy whole batches: yield those that were copied when they are, and what can't be read in its place."""
        assert output.batches is not None
        for one in split_run(run):
            # A batch that is larger than may be held is copied in pieces, which ends well or leaves nothing.
            for part in (one,) if one.end - one.start <= LARGEST_HELD else singly(one):
                yield from self._copy_readable(part, output, output.batches)

    def _copy_readable(self, run: Run, output: Output, batches: BatchWriter) -> Iterator[BatchTable | Gap]:
        try:
            yield self._copy_batches(run, output, batches)
        except EvidenceError as error:
            self._problem(run, error)
            for rows, is_read in self._records.probed(run, run.rows):
                if is_read:
                    yield from self._copy_readable(Run(copy=run.copy, label=run.label, rows=rows), output, batches)
                else:
                    yield from lacking(rows, GapReason.DAMAGED, error.problem)

    def _copy_batches(self, run: Run, output: Output, batches: BatchWriter) -> BatchTable:
        part = Part()
        if not self._outputs.continues(run, output):
            self._outputs.seal(output)
        left = batches.add(run, self._files)
        kept: BatchTable = run.rows[~np.isin(run.rows["position"], left["position"])] if len(left) else run.rows
        self._records.count_batches(run, kept, part)
        self._add(run, output, part, int(kept["count"].sum()))
        self._lack(left, GapReason.OVERLAPPING, _IN_RECORDS)
        return kept

    def _add(self, run: Run, output: Output, part: Part, records: int) -> None:
        for gap in (*self._gaps, *part.gaps):
            join_gaps(self._saved.gaps, gap)
        self._gaps.clear()
        self._saved.markers += part.markers
        self._saved.aborted_records += part.aborted_records
        self._saved.problems += part.problems
        output.saved.records += part.records
        output.saved.certain += part.certain
        output.saved.possible += part.possible
        self._outputs.note(run, output, records)

    # ---- several files ----

    def _to_part(self, item: Run | Merge) -> None:
        assert self._parts is not None
        gaps, self._gaps = self._gaps, []
        self._parts.add(item, gaps)

    def _save_part(self, task: PartTask) -> SavedPartition:
        """Write one of the files of the best copy, in this process or in one that was forked from it."""
        others = self._outputs, self._saved, self._gaps, self._parts
        self._outputs, self._saved = (
            self._new_outputs(part=task.number, beside=not task.is_one_of_many),
            self._nothing_saved(),
        )
        self._gaps, self._parts = [], None
        try:
            for item, gaps in task.items:
                self._gaps += gaps
                if isinstance(item, Merge):
                    self._write_merge(item)
                else:
                    self._take(item)
            self._finish()
            return self._saved
        finally:
            self._outputs.close()
            self._outputs, self._saved, self._gaps, self._parts = others
            self._outputs.use()

    # ---- several processes ----

    def _to_processes(self, run: Run) -> None:
        if self._lines is None:
            self._lines = LinesInTurn(self._outputs, self._records, jobs=self._jobs)
        gaps, self._gaps = self._gaps, []
        self._take_over(self._lines.add(run, gaps))

    def _settle(self) -> None:
        if self._lines is not None:
            self._take_over(self._lines.settle())

    def _take_over(self, done: Iterable[Taken]) -> None:
        after = self._gaps
        for gaps, parts in done:
            self._gaps = gaps
            for run, part in parts:
                self._add(run, self._outputs.of(MAIN), part, part.records)
        self._gaps = after

    # ---- merged batches ----

    def _merge(self, merge: Merge) -> None:
        """Write records of batches over the same offsets, each offset once: of the preferred batch that has it."""
        self._settle()
        rows = np.concatenate([part.rows for part in merge.parts])
        self._hole_before(rows[np.argsort(rows["base_offset"], kind="stable")], merge.label)
        if self._parts is not None and merge.label == MAIN:
            self._to_part(merge)
        else:
            self._write_merge(merge)

    def _write_merge(self, merge: Merge) -> None:
        output = self._outputs.of(merge.label)
        if output.batches is not None:
            self._merge_batches(merge, output)
            return
        assert output.records is not None
        seen: set[int] = set()
        unread: list[Gap] = []
        for one in merge.parts:
            for readable in self._readable(one):
                for run, part in self._records.parts(readable, output.records.add, seen):
                    unread += [gap for gap in part.gaps if gap.reason in UNREADABLE]
                    part.gaps = [gap for gap in part.gaps if gap.reason not in UNREADABLE]
                    self._add(run, output, part, part.records)
        self._gaps += [left for gap in unread for left in _without_known(gap, seen)]
        if self._lines is not None:
            output.records.file.digest()  # what waits here is written and hashed before processes append to the file

    def _merge_batches(self, merge: Merge, output: Output) -> None:
        """Copy the batches of the copy that has most records; what others have beside them is a gap, since no batch is built again."""
        is_copied = False
        copied: set[int] = set()
        beside: set[int] = set()
        unread: list[Gap] = []
        for one in sorted(merge.parts, key=lambda one: -int(one.rows["count"].sum())):
            is_chosen = not is_copied
            for readable in self._readable(one):
                if not is_chosen:
                    beside |= self._offsets_of(readable, unread)
                    continue
                for found in self._copy(readable, output):
                    if isinstance(found, Gap):
                        unread.append(found)
                    elif len(found):
                        is_copied = True
                        copied |= self._offsets_of(Run(copy=readable.copy, label=readable.label, rows=found), unread)
        for offset in sorted(beside - copied):
            place = OffsetRange(offset, offset)
            self._gaps.append(Gap(offsets=place, count=1, reason=GapReason.OVERLAPPING, detail=_IN_RECORDS))
        self._gaps += [left for gap in unread for left in _without_known(gap, copied | beside)]

    def _offsets_of(self, run: Run, unread: list[Gap]) -> set[int]:
        """Return the offsets of the records that can be read; what can't be is added to the gaps."""
        found: set[int] = set()
        for _, part in self._records.parts(run, lambda chunk, _: found.update(chunk.offset.tolist())):
            unread += [gap for gap in part.gaps if gap.reason in UNREADABLE]
        return found


def _without_known(gap: Gap, known: set[int]) -> Iterator[Gap]:
    """Yield what is left of a gap where other batches over its offsets hold some of them."""
    left = [offset for offset in range(gap.offsets.first, gap.offsets.last + 1) if offset not in known]
    if left:
        yield replace(gap, offsets=OffsetRange(left[0], left[-1]), count=min(gap.count, len(left)))
