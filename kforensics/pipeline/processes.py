"""Work spread over processes: functions of small tasks, with what they share inherited rather than sent."""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_shared: Any = None
_function: Callable[[Any, Any], Any] | None = None


def default_jobs() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(
    function: Callable[[Any, Task], Result], shared: Any, tasks: Sequence[Task], *, jobs: int
) -> Iterator[Result]:
    """The results of `function(shared, task)` in the order of the tasks; in this process where one job is enough."""
    jobs = min(jobs, len(tasks))
    if jobs <= 1:
        yield from (function(shared, task) for task in tasks)
        return
    global _shared, _function  # noqa: PLW0603 - forked children inherit what would be costly to send
    _shared, _function = shared, function
    try:
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            yield from pool.imap(_run, tasks)
    finally:
        _shared = _function = None


def _run(task: Any) -> Any:
    assert _function is not None
    return _function(_shared, task)


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
