"""The best copy of a large partition as one file of JSON lines: processes make the lines of some batches each, and write them in turn."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from kforensics.commands.salvaging.folder import WriteFailed
from kforensics.commands.salvaging.jsonl import JsonRecords
from kforensics.commands.salvaging.outputs import Outputs
from kforensics.commands.salvaging.reading import Run
from kforensics.commands.salvaging.run_records import Part, RunRecords, is_worth_a_task, split_run
from kforensics.evidence.parallel import InTurn
from kforensics.reconcile.salvage.best_copy import MAIN
from kforensics.reconcile.salvage.gaps import Gap

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
