"""Arguments and options that mean the same in every command."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kforensics.errors import UsageError


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    HTML = "html"
    SARIF = "sarif"


PathsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="Data directories, parents of several of them, partition directories, or single files.",
        show_default=False,
    ),
]

FormatOption = Annotated[
    OutputFormat,
    typer.Option(
        "--format",
        help="How the result is written: text for people, json and jsonl for programs.",
        case_sensitive=False,
    ),
]

OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write the result to a new FILE, outside of every input, instead of standard output.",
        show_default=False,
    ),
]

VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Also list what is fine.")]

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Write nothing; the exit code is the answer.")]

JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        max=1024,
        help="Processes to work with; one for each core where it is not given.",
        show_default=False,
    ),
]


def require_format(chosen: OutputFormat, *offered: OutputFormat) -> None:
    """Refuse an output format that the command does not have."""
    if chosen not in offered:
        raise UsageError(f"--format {chosen} is not offered by this command; it has {', '.join(offered)}")
