"""`kforensics verify`: every file against its format and its neighbours."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kforensics.cli.exits import exit_code_of
from kforensics.cli.options import (
    CheckFormatOption,
    JobsOption,
    OutOption,
    OutputFormat,
    PathsArgument,
    QuietOption,
    ReadRateOption,
    SealOption,
    apply_read_rate,
    require_format,
)
from kforensics.cli.output import check_out, write_result
from kforensics.cli.sealed import add_seal, checked_seal, seal_part, with_seal_lines

if TYPE_CHECKING:
    from kforensics.commands.sealing.report import CheckedSeal
    from kforensics.evidence.checks.consistency import Verification
    from kforensics.evidence.discovery.inputs import Inputs
    from kforensics.findings.model import Finding
    from kforensics.reconcile.replicas.intact import IntactReplicas


class VerifyLevel(StrEnum):
    HEADERS = "headers"
    CRC = "crc"
    RECORDS = "records"


LevelOption = Annotated[
    VerifyLevel,
    typer.Option(
        "--level",
        help="How deep batches are looked into: headers, checksums too, or every record.",
        case_sensitive=False,
    ),
]


def verify(
    *,
    paths: PathsArgument,
    level: LevelOption = VerifyLevel.RECORDS,
    output_format: CheckFormatOption = OutputFormat.TEXT,
    jobs: JobsOption = None,
    read_rate: ReadRateOption = None,
    seal: SealOption = None,
    out: OutOption = None,
    quiet: QuietOption = False,
) -> None:
    """Check every file against its format and against its neighbours.

    Checksums, batch order, leader epochs, lengths and counts; indexes, transactions, producer snapshots and checkpoints
    against the log; names against content. Behind a damaged batch it goes on with the next good one. Where another
    replica among the inputs holds a damaged range intact, it is named. Exit code 0 says that nothing is damaged.
    """
    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.SARIF)
    check_out(out, paths)
    jobs = apply_read_rate(read_rate, jobs)

    from kforensics.commands.verify import verify_evidence
    from kforensics.evidence.discovery.inputs import find_inputs
    from kforensics.formats.segment.walk import Level

    inputs = find_inputs(paths)
    sealed = checked_seal(seal, paths, inputs.described, jobs)
    with _progress(inputs, quiet=quiet) as advance:
        result = verify_evidence(inputs, level=Level(level.value), jobs=jobs, progress=advance)
    verification, intact = result.verification, result.intact
    findings = add_seal(result.findings, sealed)
    code = exit_code_of(findings, (*verification.problems, *(sealed.problems if sealed else ())))
    if not quiet:
        match output_format:
            case OutputFormat.JSON:
                write_result(
                    _document(inputs, verification, intact, findings, sealed, level=level, exit_code=code), out
                )
            case OutputFormat.SARIF:
                write_result(_sarif(inputs, verification, findings, exit_code=code), out)
            case OutputFormat.JSONL:
                write_result(_lines(inputs, verification, intact, findings, sealed, exit_code=code), out)
            case _:
                write_result(
                    _screen(inputs, verification, intact, findings, sealed, level=level, colour_to=out is None), out
                )
    raise typer.Exit(code)


@contextmanager
def _progress(inputs: "Inputs", *, quiet: bool) -> "Iterator[Callable[[int], None]]":
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from kforensics.cli.progress import byte_progress
    from kforensics.evidence.checks.consistency import segment_bytes

    with byte_progress(quiet=False, total=segment_bytes(inputs)) as advance:
        yield lambda count: advance(count, 0) if advance else None


def _document(
    inputs: "Inputs",
    verification: "Verification",
    intact: "IntactReplicas",
    findings: "tuple[Finding, ...]",
    sealed: "CheckedSeal | None",
    *,
    level: VerifyLevel,
    exit_code: int,
) -> "Iterator[str]":
    """The document piece by piece: a row a file is too much to hold where there are a million."""
    import json

    from kforensics.render.json.document import document_pieces, to_plain
    from kforensics.render.json.verify import file_row, totals

    return document_pieces(
        "verify",
        inputs=inputs.described,
        findings=findings,
        problems=verification.problems,
        exit_code=exit_code,
        level=level.value,
        totals=totals(verification),
        **seal_part(sealed),
        streams={"files": (json.dumps(to_plain(file_row(report, intact))) for report in verification.files)},
    )


def _sarif(inputs: "Inputs", verification: "Verification", findings: "tuple[Finding, ...]", *, exit_code: int) -> str:
    from kforensics.render.sarif import sarif_document

    return sarif_document(
        "verify", inputs=inputs.described, findings=findings, problems=verification.problems, exit_code=exit_code
    )


def _lines(
    inputs: "Inputs",
    verification: "Verification",
    intact: "IntactReplicas",
    findings: "tuple[Finding, ...]",
    sealed: "CheckedSeal | None",
    *,
    exit_code: int,
) -> "Iterator[str]":
    from kforensics.render.json.document import json_line, to_plain
    from kforensics.render.json.verify import file_row, totals

    typed = (
        ("input", inputs.described),
        ("seal", seal_part(sealed).values()),
        ("file", (file_row(report, intact) for report in verification.files)),
        ("finding", findings),
        ("problem", verification.problems),
        ("totals", ({**totals(verification), "exit_code": exit_code},)),
    )
    for kind, values in typed:
        for value in values:
            yield json_line({"type": kind, **to_plain(value)})


def _screen(
    inputs: "Inputs",
    verification: "Verification",
    intact: "IntactReplicas",
    findings: "tuple[Finding, ...]",
    sealed: "CheckedSeal | None",
    *,
    level: VerifyLevel,
    colour_to: bool,
) -> str:
    from kforensics.render.text.screen import render_screen, screen_width, wants_colour
    from kforensics.render.text.verify import verify_screen

    width = screen_width()
    lines = verify_screen(verification, intact, inputs.described, findings, level=level.value, width=width)
    whole = with_seal_lines(lines, sealed, width)
    return render_screen(whole, colour=colour_to and wants_colour(sys.stdout))
