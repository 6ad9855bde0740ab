"""Report the progress of Spark while it works."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

INTERVAL = 0.25
"""Seconds between looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The progress of a stage; of files and bytes, those that finished tasks have read, and the total."""

    name: str
    tasks: int
    tasks_done: int = 0
    files: int = 0
    files_done: int = 0
    bytes: int = 0
    bytes_done: int = 0
    findings: int = 0
    seconds: float | None = None
    """The time that the stage took, once it is over."""


Progress = Callable[[Stage], None]


class Counters:
    """Numbers that tasks add to while they run; none where Spark has no accumulators, as under Spark Connect."""

    def __init__(self, context: Any) -> None:
        self._files: Any = context and context.accumulator(0)
        self._bytes: Any = context and context.accumulator(0)
        self._findings: Any = context and context.accumulator(0)

    def add_read(self, files: int, length: int) -> None:
        """Add files and bytes that a task is done with; called on a worker."""
        if self._files is not None:
            self._files.add(files)
            self._bytes.add(length)

    def add_findings(self, count: int) -> None:
        """Add findings of a group; called on a worker."""
        if self._findings is not None:
            self._findings.add(count)

    def read_into(self, stage: Stage) -> Stage:
        """Return the stage with what the tasks added so far; called on the driver."""
        if self._files is None:
            return stage
        return replace(stage, files_done=self._files.value, bytes_done=self._bytes.value, findings=self._findings.value)


_GROUP, _DESCRIPTION, _INTERRUPT = "spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"


@contextmanager
def watch_tasks(
    context: Any, stage: Stage, counters: Counters, progress: Progress | None, words: str
) -> Iterator[None]:
    """Give the jobs that are started meanwhile a group and a description of their own, and report the progress of one whose first stage is the given one, if Spark reports it; those of the session's owner keep theirs."""
    if context is None:
        yield
        return
    before = {name: context.getLocalProperty(name) for name in (_GROUP, _DESCRIPTION, _INTERRUPT)}
    group = f"kforensics-{uuid.uuid4().hex[:12]}"
    context.setJobGroup(group, words)
    done = threading.Event()
    looking = (context.statusTracker(), group, stage, counters, progress, done)
    thread = threading.Thread(target=_look, args=looking, daemon=True)
    if progress:
        progress(stage)
        thread.start()
    try:
        yield
    except BaseException:
        context.cancelJobGroup(group)
        raise
    finally:
        if progress:
            done.set()
            thread.join()
            progress(counters.read_into(replace(stage, tasks_done=stage.tasks)))
        for name, value in before.items():
            context.setLocalProperty(name, value)


def _look(
    tracker: Any, group: str, stage: Stage, counters: Counters, progress: Progress, done: threading.Event
) -> None:
    furthest = 0
    reported: Stage | None = None
    while not done.wait(INTERVAL):
        for info in _running(tracker, group):
            is_first = info.numTasks == stage.tasks and (stage.name != "scan" or furthest < stage.tasks)
            if is_first:
                furthest = info.numCompletedTasks
            now = counters.read_into(
                replace(
                    stage,
                    name=stage.name if is_first else "reconcile",
                    tasks=info.numTasks,
                    tasks_done=info.numCompletedTasks,
                )
            )
            if now != reported:
                progress(now)
                reported = now


def _running(tracker: Any, group: str) -> list[Any]:
    try:
        jobs = (job for one in tracker.getJobIdsForGroup(group) if (job := tracker.getJobInfo(one)) is not None)
        own = {stage for job in jobs for stage in job.stageIds}
        return [info for one in tracker.getActiveStageIds() if one in own and (info := tracker.getStageInfo(one))]
    except Exception:  # noqa: BLE001 - a look that fails must not end the work
        return []
