"""`kforensics fleet`: thousands of data directories at once, on Spark."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from kforensics.ask.fleet import FleetAsk
from kforensics.cli.command import Output, question
from kforensics.cli.examples import epilog_of, help_of
from kforensics.cli.help import ShortHelpOption
from kforensics.cli.own import interrupted_by_signals, take
from kforensics.errors import UsageError
from kforensics.render.emit import OutputFormat

if TYPE_CHECKING:
    from kforensics.commands.result import Result

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
    from kforensics.cli.fleet_progress import stage_progress
    from kforensics.fleet.commands import require_spark, run_audit

    output.check(())
    require_spark()
    with interrupted_by_signals(), stage_progress(quiet=output.quiet, is_terminal=sys.stderr.isatty()) as progress:
        result = run_audit(ask, progress)
    _finish(output, result)


@question("fleet-report")
def report(output: Output, ask: FleetAsk) -> None:
    """Show an audit, or what changed."""
    from kforensics.fleet.commands import require_pyarrow, run_comparison, run_report

    output.check((), "fleet comparison" if ask.since is not None else "fleet report")
    require_pyarrow()
    if ask.since is None:
        _finish(output, run_report(ask))
    output.finish(run_comparison(ask))


@question("fleet-trend")
def trend(output: Output, ask: FleetAsk) -> None:
    """Count audit by audit."""
    from kforensics.fleet.commands import require_pyarrow, run_trend

    output.check(())
    require_pyarrow()
    output.finish(run_trend(ask))


def _finish(output: Output, result: "Result[Any]") -> NoReturn:
    """Write the result; name expired acceptances on standard error where the format has no place for sentences."""
    gate = result.body.gate
    if gate is not None and gate.expired and output.format is not OutputFormat.TEXT:
        typer.echo("\n".join(f"kforensics: {words}" for words in gate.sentences()[1:]), err=True)
    output.finish(result)


@question("fleet-scan")
def scan(output: Output, ask: FleetAsk) -> None:
    """Extract what is asked for, or take a capture where the output has the name of one."""
    from kforensics.commands.capture import names_a_capture

    assert ask.evidence is not None
    if names_a_capture(ask.evidence):
        if ask.digests_only:
            raise UsageError(
                "a capture has rows of batches only where a truncation can still happen: leave out --digests-only"
            )
        from dataclasses import replace

        take(output._replace(command="capture"), replace(ask, out=Path(ask.evidence)))
        return
    sys.stderr.write("kforensics fleet scan is the old name of kforensics capture\n")
    from kforensics.fleet.commands import require_pyarrow, run_scan

    output.check(())
    require_pyarrow()
    with output.progress() as progress:
        result = run_scan(ask, progress)
    output.finish(result)


for _command in (audit, report, trend, scan):
    fleet.command(help=help_of(_command), epilog=epilog_of(f"fleet {_command.__name__}"))(_command)
