"""Work spread over processes: functions of small tasks, with what they share inherited rather than sent."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from kforensics.ask.model import Ask
from kforensics.errors import UsageError
from kforensics.evidence import parallel
from kforensics.source.mapped import limit_read_rate

Shared = TypeVar("Shared")
Task = TypeVar("Task")
Result = TypeVar("Result")

END_OF_LOG = 256 << 10
"""Bytes that take as long to read as opening a log and reading its end."""


class Progress(Protocol):
    """The progress that a command reports."""

    def expect(self, total: int) -> None:
        """Say how many bytes there are to read."""

    def __call__(self, count: int, found: int = 0) -> None:
        """Say how many bytes were read since the last call, and how many findings there are so far."""


def default_jobs() -> int:
    """Return the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def paced(ask: Ask) -> Ask:
    """Read evidence no faster than it is asked for from now on, and then in one process."""
    if ask.read_rate is not None and ask.jobs is not None and ask.jobs > 1:
        raise UsageError("--read-rate reads in one process: leave --jobs out")
    limit_read_rate(ask.read_rate)
    return ask if ask.read_rate is None else replace(ask, jobs=1)


def spread(
    function: Callable[[Shared, Task], Result],
    shared: Shared,
    tasks: Sequence[Task],
    *,
    jobs: int,
    weights: Sequence[int] | None = None,
    sizes: Sequence[int] = (),
    progress: Callable[[int], None] | None = None,
    joins: bool = False,
) -> list[Result]:
    """Return the results of `function(shared, task)` in the order of the tasks, each task worth a process of its own.

    Args:
        shared: what all tasks need; inherited by forked processes, so it may be large.
        tasks: small enough to be sent, as results have to be.
        weights: the larger ones are done first; all alike where not given.
        joins: this process takes tasks too, which are short.
    """

    def work(numbered: tuple[int, Task], report: Callable[[int], None]) -> Result:
        at, task = numbered
        result = function(shared, task)
        if sizes:
            report(sizes[at])
        return result

    return parallel.spread(
        work,
        list(enumerate(tasks)),
        weights=[parallel.WORTH_A_PROCESS + one for one in weights or [0] * len(tasks)],
        jobs=jobs,
        progress=progress or (lambda _: None),
        joins=joins,
    )


def in_chunks(weights: Iterable[int], *, weight: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield runs of indexes [first, end) whose weights add up to about `weight`, which the last member of a run may exceed."""
    first = total = 0
    end = 0
    for end, one in enumerate(weights, 1):
        total += one
        if total >= weight or end - first >= most:
            yield first, end
            first, total = end, 0
    if first < end:
        yield first, end
