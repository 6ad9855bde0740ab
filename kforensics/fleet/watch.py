"""How far Spark is, told while it works."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

INTERVAL = 0.25
"""Seconds between looks."""

Progress = Callable[[str, int, int, int, int], None]
"""Called with the stage, its tasks done and in all, its bytes, and the findings so far."""

Count = Callable[[], int]


@contextmanager
def watch_tasks(
    context: Any, stage: str, tasks: int, length: int, progress: Progress | None, findings: Count = int
) -> Iterator[None]:
    """Tell the progress of a job that has `tasks` tasks in its first stage; nothing where Spark does not tell it."""
    if progress is None or context is None:
        yield
        return
    progress(stage, 0, tasks, length, 0)
    done = threading.Event()
    thread = threading.Thread(
        target=_look, args=(context.statusTracker(), stage, tasks, length, progress, findings, done), daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        progress(stage, tasks, tasks, length, findings())


def _look(
    tracker: Any, stage: str, tasks: int, length: int, progress: Progress, findings: Count, done: threading.Event
) -> None:
    furthest = 0
    told: tuple[str, int, int] | None = None
    while not done.wait(INTERVAL):
        for info in _running(tracker):
            is_first = info.numTasks == tasks and (stage != "scan" or furthest < tasks)
            now = (stage if is_first else "reconcile", info.numCompletedTasks, info.numTasks)
            if is_first:
                furthest = info.numCompletedTasks
            if now != told:
                progress(*now, length if is_first else 0, findings())
                told = now


def _running(tracker: Any) -> list[Any]:
    try:
        return [info for one in tracker.getActiveStageIds() if (info := tracker.getStageInfo(one)) is not None]
    except Exception:  # noqa: BLE001 - a look that fails must not end the work
        return []
