"""The progress of an audit on standard error: a bar where it is a terminal, else a line for each stage."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from kforensics.words import byte_count, counted

if TYPE_CHECKING:
    from kforensics.fleet.watch import Stage


@contextmanager
def stage_progress(*, quiet: bool, is_terminal: bool) -> "Iterator[Callable[[Stage], None] | None]":
    """Yield a function that shows how far a stage is: tasks, files, bytes, findings, time left; None with `--quiet`."""
    if quiet:
        yield None
        return
    if not is_terminal:
        yield StageLog()
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
            if stage.seconds is not None:
                return
            if bar.tasks[0].description != stage.name:
                bar.reset(task, total=max(stage.tasks, 1), description=stage.name)
            bar.update(task, completed=stage.tasks_done, total=max(stage.tasks, 1), amount=_amount_words(stage))

        yield show


class StageLog:
    """Writes a line when a stage begins and one when it is over, each with its time."""

    def __init__(self) -> None:
        self._begun: set[str] = set()

    def __call__(self, stage: "Stage") -> None:
        """Note how far a stage is."""
        if stage.seconds is not None:
            self._write(f"{stage.name}: done in {stage.seconds:.1f} s")
        elif stage.name not in self._begun:
            self._begun.add(stage.name)
            amount = f", {counted(stage.files, 'file')}, {byte_count(stage.bytes)}" if stage.files else ""
            self._write(f"{stage.name}: {counted(stage.tasks, 'task')}{amount}")

    @staticmethod
    def _write(words: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        typer.echo(f"{now} kforensics fleet audit: {words}", err=True)


def _amount_words(stage: "Stage") -> str:
    """Return the files, bytes and findings of a stage, as far as they are known."""
    words = ""
    if stage.files:
        words += (
            f", {stage.files_done:,}/{stage.files:,} files, {byte_count(stage.bytes_done)} of {byte_count(stage.bytes)}"
        )
    if stage.findings:
        words += f", {counted(stage.findings, 'finding')}"
    return words
