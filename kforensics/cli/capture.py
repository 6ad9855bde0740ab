"""`kforensics capture`: the evidence of a node in one file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kforensics.cli.options import (
    DocumentFormatOption,
    JobsOption,
    OutputFormat,
    QuietOption,
    ReadRateOption,
    VerboseOption,
    apply_read_rate,
    parse_rate,
    require_format,
)


def capture(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Data directories of one node, parents of some, and directories of its log files and server.properties.",
            show_default=False,
            readable=False,
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The capture: a new file, outside of the data. It gets its name when all of it is there.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say how long it will take and how large it will be.")
    ] = False,
    all_batches: Annotated[
        bool,
        typer.Option(
            "--all-batches",
            help="Take a row a batch along everywhere, not only where a truncation can still happen: for truncations long ago.",
        ),
    ] = False,
    read_rate: ReadRateOption = None,
    jobs: JobsOption = None,
    normal_priority: Annotated[
        bool, typer.Option("--normal-priority", help="Do not step behind the broker for disk and processor.")
    ] = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    output_format: DocumentFormatOption = OutputFormat.TEXT,
) -> None:
    """Take the evidence of a node along in one file, which every command takes where it takes directories.

    On each broker `kforensics capture`, and where the files are brought together `kforensics diff *.kfc`. Every small file, the metadata log and
    the log files are in it byte for byte; of segments offsets, leader epochs, damage and digests, and a row a batch where a truncation can still
    happen. No key, value or header of a user's record is in it. It reads at the lowest priority for disk and processor, and writes only FILE.
    """
    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON)
    from kforensics.cli.output import check_out, write_result
    from kforensics.errors import UsageError

    if (out is None) != plan:
        raise UsageError("--out FILE is needed" if out is None else "--plan writes no file: leave --out out")
    check_out(out, paths)
    rate = parse_rate(read_rate, "--read-rate") if read_rate is not None else None
    jobs = apply_read_rate(read_rate, jobs)
    from kforensics.cli.progress import byte_progress
    from kforensics.commands.capture import CaptureRequest, run
    from kforensics.findings.answers.model import exit_code
    from kforensics.fleet.throttle import lower_priority

    if not normal_priority:
        lower_priority()
    with byte_progress(quiet=quiet or not sys.stderr.isatty()) as progress:
        request = CaptureRequest(paths=paths, out=out, all_batches=all_batches, jobs=jobs, rate=rate, progress=progress)
        result = run(request)
    code = exit_code("capture", result.answer, result.findings, result.problems)
    if not quiet:
        if output_format is OutputFormat.JSON:
            from kforensics.render.json.capture import capture_document

            write_result(capture_document(result, code))
        else:
            from kforensics.render.text.capture import capture_screen
            from kforensics.render.text.screen import render_screen, screen_width, wants_colour

            lines = capture_screen(result, screen_width(), verbose=verbose)
            write_result(render_screen(lines, colour=wants_colour(sys.stdout)))
    raise typer.Exit(code)
