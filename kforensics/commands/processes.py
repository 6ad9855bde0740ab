"""Work spread over processes: functions of small tasks, with what they share inherited rather than sent."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from kforensics.evidence import parallel

Shared = TypeVar("Shared")
Task = TypeVar("Task")
Result = TypeVar("Result")


def default_jobs() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(
    function: Callable[[Shared, Task], Result],
    shared: Shared,
    tasks: Sequence[Task],
    *,
    jobs: int,
    weights: Sequence[int] | None = None,
) -> list[Result]:
    """The results of `function(shared, task)` in the order of the tasks, each task worth a process of its own.

    Args:
        function: called in this process or in a forked one.
        shared: what all tasks need; inherited by forked processes, so it may be large.
        tasks: small enough to be sent, as results have to be.
        jobs: the most processes to use.
        weights: the larger ones are done first; all alike where not given.
    """
    return parallel.spread(
        lambda task, _: function(shared, task),
        tasks,
        weights=[parallel.WORTH_A_PROCESS + one for one in weights or [0] * len(tasks)],
        jobs=jobs,
    )


def in_chunks(weights: Iterable[int], *, weight: int, most: int) -> Iterator[tuple[int, int]]:
    """Runs of indexes [first, end) whose weights add up to about `weight`, of `most` members at most."""
    first = total = 0
    end = 0
    for end, one in enumerate(weights, 1):
        total += one
        if total >= weight or end - first >= most:
            yield first, end
            first, total = end, 0
    if first < end:
        yield first, end
