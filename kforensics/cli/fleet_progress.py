"""The progress of an audit, on standard error where it is a terminal: stage, tasks, files, bytes, findings, time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kforensics.fleet.watch import Stage


@contextmanager
def stage_progress(*, quiet: bool) -> "Iterator[Callable[[Stage], None] | None]":
    """A bar that shows how far a stage is; none where the output is not a terminal."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} tasks{task.fields[amount]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting Spark", total=1, amount="")

        def show(stage: "Stage") -> None:
            if bar.tasks[0].description != stage.name:
                bar.reset(task, total=max(stage.tasks, 1), description=stage.name)
            bar.update(task, completed=stage.tasks_done, total=max(stage.tasks, 1), amount=amount_words(stage))

        yield show


def amount_words(stage: "Stage") -> str:
    """Files, bytes and findings of a stage, as far as they are known."""
    from kforensics.words import byte_count, counted

    words = ""
    if stage.files:
        words += (
            f", {stage.files_done:,}/{stage.files:,} files, {byte_count(stage.bytes_done)} of {byte_count(stage.bytes)}"
        )
    if stage.findings:
        words += f", {counted(stage.findings, 'finding')}"
    return words
