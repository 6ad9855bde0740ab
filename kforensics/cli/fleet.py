"""`kforensics fleet`: thousands of data directories at once, on Spark."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from kforensics.ask.fleet import FleetAsk
from kforensics.cli.command import Output, question
from kforensics.cli.help import ShortHelpOption, epilog_of, help_of
from kforensics.cli.own import capture, interrupted_by_signals
from kforensics.fleet.session import run
from kforensics.render.emit import OutputFormat
from kforensics.words import byte_count, counted

if TYPE_CHECKING:
    from kforensics.commands.result import Result
    from kforensics.fleet.watch import Stage

fleet = typer.Typer(
    name="fleet",
    no_args_is_help=True,
    help="Audit a whole fleet of data directories on Spark, and extract evidence on the brokers for it.",
    context_settings={"help_option_names": ["--help"]},
)


@fleet.callback()
def _fleet(short_help: ShortHelpOption = None) -> None:
    pass


@question("fleet-audit")
def audit(output: Output, ask: FleetAsk) -> None:
    """Run an audit with a bar for each stage."""
    output.check(())
    with interrupted_by_signals(), stage_progress(quiet=output.quiet, is_terminal=sys.stderr.isatty()) as progress:
        result = run("fleet-audit", ask, progress=progress)
    _finish(output, result)


@question("fleet-report")
def report(output: Output, ask: FleetAsk) -> None:
    """Show an audit, or what changed."""
    output.check((), "fleet comparison" if ask.since is not None else "fleet report")
    result = run("fleet-report", ask)
    if ask.since is None:
        _finish(output, result)
    output.finish(result)


@question("fleet-trend")
def trend(output: Output, ask: FleetAsk) -> None:
    """Count audit by audit."""
    output.check(())
    output.finish(run("fleet-trend", ask))


@question("fleet-history")
def history(output: Output, ask: FleetAsk) -> None:
    """Trim a history."""
    output.check(())
    with interrupted_by_signals():
        result = run("fleet-history", ask)
    output.finish(result)


def _finish(output: Output, result: "Result[Any]") -> NoReturn:
    """Write the result; name expired acceptances on standard error where the format has no place for sentences."""
    gate = result.body.gate
    if gate is not None and gate.expired and output.format is not OutputFormat.TEXT:
        typer.echo("\n".join(f"kforensics: {words}" for words in gate.sentences()[1:]), err=True)
    output.finish(result)


for _command in (audit, report, trend, history):
    fleet.command(help=help_of(_command), epilog=epilog_of(f"fleet {_command.__name__}"))(_command)
fleet.command("scan", help="Save the evidence of a broker for an audit: the old name of `kforensics capture`.")(capture)


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
    words = ""
    if stage.files:
        words += (
            f", {stage.files_done:,}/{stage.files:,} files, {byte_count(stage.bytes_done)} of {byte_count(stage.bytes)}"
        )
    if stage.findings:
        words += f", {counted(stage.findings, 'finding')}"
    return words
