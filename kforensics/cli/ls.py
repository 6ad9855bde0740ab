"""`kforensics ls`: what is here."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kforensics.cli.exits import exit_code_of
from kforensics.cli.options import (
    KeepGoingOption,
    LinesFormatOption,
    OutOption,
    OutputFormat,
    PathsArgument,
    VerboseOption,
    require_format,
)
from kforensics.cli.output import check_out, write_result

if TYPE_CHECKING:
    from kforensics.evidence.discovery.inputs import Inputs
    from kforensics.evidence.inventory import Inventory
    from kforensics.findings.model import Finding


def ls(
    *,
    paths: PathsArgument,
    output_format: LinesFormatOption = OutputFormat.TEXT,
    files: Annotated[
        bool, typer.Option("--files", help="List every file, not only counts by kind (json, jsonl).")
    ] = False,
    keep_going: KeepGoingOption = False,
    out: OutOption = None,
    verbose: VerboseOption = False,
) -> None:
    """List what is here: nodes, log directories, partitions with their offsets, every file by its kind.

    Of each log only the end is read. In the table, epoch is the leader epoch of the last batch, start and end are the
    log start and log end offset, HW is the high watermark and recovery the recovery point; a dash stands for a value
    that nothing here holds.
    """
    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON, OutputFormat.JSONL)
    check_out(out, paths)

    from kforensics.evidence.discovery.inputs import find_inputs, why_not_listed
    from kforensics.evidence.inventory import take_inventory
    from kforensics.findings.inventory import inventory_findings

    inputs = find_inputs(paths, with_server_logs=True, why_not=why_not_listed, keep_going=keep_going)
    inventory = take_inventory(inputs)
    findings = inventory_findings(inventory)
    code = exit_code_of(findings, inventory.problems)
    match output_format:
        case OutputFormat.JSON:
            write_result(_document(inputs, inventory, findings, exit_code=code, files=files), out)
        case OutputFormat.JSONL:
            write_result(_lines(inputs, inventory, findings, files=files), out)
        case _:
            write_result(_screen(inputs, inventory, findings, colour_to=out is None, verbose=verbose), out)
    raise typer.Exit(code)


def _document(
    inputs: "Inputs", inventory: "Inventory", findings: "tuple[Finding, ...]", *, exit_code: int, files: bool
) -> Iterator[str]:
    """The document piece by piece: rows of a million files are too much to hold."""
    import json

    from kforensics.render.json.document import document_pieces, to_plain

    lists: dict[str, Iterable[object]] = {
        "partitions": inventory.partitions,
        "directories": inventory.directories,
        "file_counts": inventory.files,
        "unknown_files": inventory.unknown,
    }
    if files:
        lists["files"] = _every_file(inputs)
    return document_pieces(
        "ls",
        inputs=inputs.described,
        findings=findings,
        problems=inventory.problems,
        exit_code=exit_code,
        nodes=inventory.nodes,
        streams={name: (json.dumps(to_plain(value)) for value in values) for name, values in lists.items()},
    )


def _lines(inputs: "Inputs", inventory: "Inventory", findings: "tuple[Finding, ...]", *, files: bool) -> Iterator[str]:
    from kforensics.render.json.document import json_line, to_plain

    typed = (
        ("input", inputs.described),
        ("node", inventory.nodes),
        ("partition", inventory.partitions),
        ("directory", inventory.directories),
        ("file-count", inventory.files),
        ("unknown-file", inventory.unknown),
        ("file", _every_file(inputs) if files else ()),
        ("finding", findings),
        ("problem", inventory.problems),
    )
    for kind, values in typed:
        for value in values:
            yield json_line({"type": kind, **to_plain(value)})


def _every_file(inputs: "Inputs") -> Iterator[dict[str, object]]:
    from kforensics.source.walk import FoundFile

    for index, one in enumerate(inputs.found):
        for found in one.walk():
            if isinstance(found, FoundFile):
                yield {
                    "input": index,
                    "path": found.path,
                    "kind": found.name.kind,
                    "suffix": found.name.suffix.value,
                    "bytes": found.length,
                }


def _screen(
    inputs: "Inputs", inventory: "Inventory", findings: "tuple[Finding, ...]", *, colour_to: bool, verbose: bool
) -> str:
    from kforensics.render.text.ls import inventory_screen
    from kforensics.render.text.screen import render_screen, screen_width, wants_colour

    lines = inventory_screen(inventory, inputs.described, findings, width=screen_width(), verbose=verbose)
    return render_screen(lines, colour=colour_to and wants_colour(sys.stdout))
