"""The best copy of a large partition in several files, each written from its first byte to its last by one process."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from kforensics.commands.salvaging.folder import WriteFailed
from kforensics.commands.salvaging.jsonl import JsonRecords
from kforensics.commands.salvaging.model import SavedLabel, SavedPartition
from kforensics.commands.salvaging.outputs import Outputs
from kforensics.commands.salvaging.reading import Merge, Run
from kforensics.commands.salvaging.run_records import Part, RunRecords, is_worth_a_task, split_run
from kforensics.evidence.parallel import InTurn
from kforensics.reconcile.salvage import MAIN, Gap, join_gaps

LARGEST_PART = 256 << 20
"""Bytes of batches in one file."""

MOST_BATCHES = 1 << 16
"""Batches in one file: their rows are sent to the process that writes it."""


class PartTask(NamedTuple):
    """What one file is made of."""

    number: int | None
    """The number of the file, from 0; None where it is the only one."""
    items: list[tuple[Run | Merge, list[Gap]]]
    """The batches of the file, each with the gaps before it."""
    is_one_of_many: bool
    """Whether other processes write other files meanwhile, so that threads have no core of their own."""


def part_length(length: int) -> int | None:
    """Return the most bytes of batches in each file, None where one file takes all."""
    if length <= LARGEST_PART:
        return None
    spare = LARGEST_PART // 256  # no file is filled to its last byte, and what is left would be a small file of its own
    count = -(-length // (LARGEST_PART - spare))
    return -(-length // count) + spare


class PartFiles:
    """Divides what is to be written among files, by bytes of batches alone, so that the files are the same however many processes write them.

    Args:
        length: the most bytes of batches in a file, but for a batch that is larger.
        save: writes one file; it may be called in another process.
        jobs: the processes; no thread may run yet where there are several.
    """

    def __init__(self, length: int, save: Callable[[PartTask], SavedPartition], *, jobs: int) -> None:
        self._length = length
        self._save = save
        self._items: list[tuple[Run | Merge, list[Gap]]] = []
        self._bytes = self._batches = self._count = 0
        self._processes = InTurn(save, _itself, jobs=jobs) if jobs > 1 and hasattr(os, "fork") else None
        self._saved: list[SavedPartition] = []

    def add(self, item: Run | Merge, gaps: list[Gap]) -> None:
        """Add batches behind those before."""
        if isinstance(item, Merge):
            self._add(item, gaps, item.parts)
            return
        while len(item.rows):
            ends = self._bytes + np.cumsum(item.rows["length"].astype(np.int64))
            count = min(int(np.searchsorted(ends, self._length, side="right")), MOST_BATCHES - self._batches)
            count = max(count, 0 if self._items else 1)
            if count:
                part = replace(item, rows=item.rows[:count])
                self._add(part, gaps, (part,))
                item, gaps = replace(item, rows=item.rows[count:]), []
            if len(item.rows):
                self._submit(self._count)

    def _add(self, item: Run | Merge, gaps: list[Gap], runs: Sequence[Run]) -> None:
        self._items.append((item, gaps))
        self._bytes += sum(run.end - run.start for run in runs)
        self._batches += sum(len(run.rows) for run in runs)

    def _submit(self, number: int | None) -> None:
        has_processes = self._processes is not None and number is not None
        task = PartTask(number, list(_together(self._items)), is_one_of_many=has_processes)
        self._items, self._bytes, self._batches = [], 0, 0
        self._count += 1
        if self._processes is None or number is None:
            self._saved.append(self._save(task))
        else:
            self._saved += self._processes.submit(task)

    def finish(self) -> list[SavedPartition]:
        """Write what is left, and return what came of each file, in their order."""
        if self._items:
            self._submit(self._count or None)
        if self._processes is not None:
            self._saved += self._processes.results()
        return self._saved

    def close(self) -> None:
        """End the processes."""
        if self._processes is not None:
            self._processes.close()


def _together(items: list[tuple[Run | Merge, list[Gap]]]) -> Iterator[tuple[Run | Merge, list[Gap]]]:
    """Yield the items, runs that continue each other as one: what is read of them at once is then never short."""
    waiting: list[Run] = []
    before: list[Gap] = []
    for item, gaps in items:
        if waiting and (gaps or isinstance(item, Merge) or not _continues(item, waiting[-1])):
            yield _joined(waiting), before
            waiting = []
        if isinstance(item, Merge):
            yield item, gaps
            continue
        if not waiting:
            before = gaps
        waiting.append(item)
    if waiting:
        yield _joined(waiting), before


def _continues(run: Run, last: Run) -> bool:
    return (last.copy, last.segment, last.end) == (run.copy, run.segment, run.start)


def _joined(runs: list[Run]) -> Run:
    return runs[0] if len(runs) == 1 else replace(runs[0], rows=np.concatenate([run.rows for run in runs]))


def _itself(saved: SavedPartition) -> SavedPartition:
    return saved


def add_parts(saved: SavedPartition, parts: Sequence[SavedPartition]) -> None:
    """Add what came of each file to what came of the partition."""
    best = SavedLabel.of_best_copy()
    for part in parts:
        saved.markers += part.markers
        saved.aborted_records += part.aborted_records
        saved.problems += part.problems
        for label in part.labels:
            best.records += label.records
            best.certain += label.certain
            best.possible += label.possible
            best.runs += label.runs
            best.files += label.files
    if best.files:
        saved.labels.insert(0, best)
    saved.gaps = _in_order(gap for one in (saved, *parts) for gap in one.gaps)


def _in_order(gaps: Iterable[Gap]) -> list[Gap]:
    out: list[Gap] = []
    for gap in sorted(gaps, key=lambda gap: gap.offsets.first):
        join_gaps(out, gap)
    return out


Taken = tuple[list[Gap], list[tuple[Run, Part]]]
"""The gaps before a run, and what came of its parts."""


@dataclass(slots=True)
class _Written:
    """What a process made of a task, and then what it wrote of it."""

    parts: list[list[tuple[Run, Part]]]
    """Of each run."""
    lines: list[bytes | memoryview] = field(default_factory=list)
    length: int = 0
    failure: WriteFailed | None = None


class LinesInTurn:
    """Processes that write the records of runs to one file, in the order of the runs.

    Args:
        outputs: of the partition; that of the best copy is written.
    """

    def __init__(self, outputs: Outputs, records: RunRecords, *, jobs: int) -> None:
        self._outputs = outputs
        self._records = records
        self._jobs = jobs
        self._processes: InTurn[list[Run], _Written] | None = None
        self._task: list[tuple[Run, list[Gap]]] = []
        """Runs for the next process, each with the gaps before it."""
        self._task_length = 0
        self._tasks: deque[list[tuple[Run, list[Gap]]]] = deque()
        """Those that processes have."""

    def add(self, run: Run, gaps: list[Gap]) -> Iterator[Taken]:
        """Give batches to a process as soon as they are enough, of a long run a part to each; yield what came of runs before."""
        for one in split_run(run):
            self._task.append((one, gaps))
            self._task_length += one.end - one.start
            gaps = []
            if is_worth_a_task(self._task_length):
                yield from self._submit()

    def settle(self) -> Iterator[Taken]:
        """Wait for what processes have, and yield what came of it."""
        if self._task:
            yield from self._submit()
        for done in self._processes.results() if self._processes is not None else ():
            yield from self._take_over(done)

    def close(self) -> None:
        """End the processes."""
        if self._processes is not None:
            self._processes.close()

    def _submit(self) -> Iterator[Taken]:
        if self._processes is None:
            self._processes = self._started()
        task, self._task, self._task_length = self._task, [], 0
        for done in self._processes.submit([run for run, _ in task]):
            yield from self._take_over(done)
        self._tasks.append(task)

    def _started(self) -> "InTurn[list[Run], _Written]":
        """Start the processes when no thread runs any more."""
        writer = self._writer()
        for output in self._outputs.by_number.values():
            if isinstance(output.records, JsonRecords):
                output.records.file.pause()
        writer.expect_many()
        self._outputs.background.wait()
        self._outputs.background.close()
        return InTurn(self._lines, self._append, jobs=self._jobs)

    def _take_over(self, done: _Written) -> Iterator[Taken]:
        if done.failure is not None:
            raise done.failure
        self._writer().file.appended(done.length)
        for (_, gaps), parts in zip(self._tasks.popleft(), done.parts, strict=True):
            yield gaps, parts

    def _writer(self) -> JsonRecords:
        writer = self._outputs.of(MAIN).records
        assert isinstance(writer, JsonRecords)
        return writer

    def _lines(self, task: list[Run]) -> _Written:
        """Make the lines of some runs, in a process of its own."""
        writer = self._writer()
        done = _Written([])
        for run in task:
            done.parts.append(list(self._records.parts(run, lambda *found: done.lines.append(writer.lines(*found)))))
        return done

    def _append(self, done: _Written) -> _Written:
        """Write lines when those of every task before are written."""
        try:
            return _Written(done.parts, length=self._writer().file.append(done.lines))
        except WriteFailed as error:
            return _Written(done.parts, failure=error)
