"""Arguments and options that mean the same in every command."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer.models import OptionInfo

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
        readable=False,  # what can't be read is incomplete evidence, not wrong usage
    ),
]


_MEANINGS = {
    OutputFormat.TEXT: "for people",
    OutputFormat.JSON: "one document for programs",
    OutputFormat.JSONL: "one object a line",
    OutputFormat.HTML: "a page to keep",
    OutputFormat.SARIF: "for viewers of CI results",
}


def _format_option(*offered: OutputFormat) -> OptionInfo:
    option: OptionInfo = typer.Option(
        "--format",
        metavar="|".join(offered),  # what the command has, not all that there are
        help=f"How the result is written: {', '.join(f'{one} {_MEANINGS[one]}' for one in offered)}.",
        case_sensitive=False,
    )
    return option


_PLAIN = (OutputFormat.TEXT, OutputFormat.JSON)

DocumentFormatOption = Annotated[OutputFormat, _format_option(*_PLAIN)]
PageFormatOption = Annotated[OutputFormat, _format_option(*_PLAIN, OutputFormat.HTML)]
LinesFormatOption = Annotated[OutputFormat, _format_option(*_PLAIN, OutputFormat.JSONL)]
ReportFormatOption = Annotated[OutputFormat, _format_option(*_PLAIN, OutputFormat.JSONL, OutputFormat.HTML)]
CheckFormatOption = Annotated[OutputFormat, _format_option(*_PLAIN, OutputFormat.JSONL, OutputFormat.SARIF)]

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

TopicsOption = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="NAME", help="Only this topic; repeatable.", show_default=False),
]

PartitionsOption = Annotated[
    list[int] | None,
    typer.Option(
        "--partition", "-p", metavar="N", help="Only partitions of this number; repeatable.", show_default=False
    ),
]

LeaderOption = Annotated[
    int | None,
    typer.Option(
        "--leader",
        metavar="ID",
        help="Take this broker as the leader of every partition it holds.",
        show_default=False,
    ),
]

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

ReadRateOption = Annotated[
    str | None,
    typer.Option(
        "--read-rate",
        metavar="RATE",
        help="Read no faster than this, such as 50MB/s, in one process: for the disks of a live broker.",
        show_default=False,
    ),
]

KeepGoingOption = Annotated[
    bool,
    typer.Option(
        "--keep-going",
        help="Analyse the rest where a named path can't be used; the answer then says that it is incomplete.",
    ),
]

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ID",
        help="Only what is of the cluster of this id, where the inputs are of several.",
        show_default=False,
    ),
]

StoppedOption = Annotated[
    bool,
    typer.Option(
        "--stopped",
        help="No broker ran while its directories were copied: ends of logs that don't fit then are no effect of copying.",
    ),
]

SealOption = Annotated[
    Path | None,
    typer.Option(
        "--seal",
        metavar="MANIFEST",
        help="Check the inputs against this manifest of `kforensics seal` first, and say in the report what was sealed, by its sha256 and case.",
        show_default=False,
    ),
]

_RATE = re.compile(r"([0-9]{1,12})(K|M|G|)B?(/s)?", re.ASCII | re.IGNORECASE)
_UNITS = {"": 1, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def apply_read_rate(rate: str | None, jobs: int | None) -> int | None:
    """Slow reading down where that is asked for; the processes to use then."""
    from kforensics.source.mapped import limit_read_rate

    if rate is None:
        limit_read_rate(None)
        return jobs
    match = _RATE.fullmatch(rate.strip())
    bytes_per_second = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    if not bytes_per_second:
        raise UsageError(f"--read-rate {rate} is no rate such as 50MB/s")
    if jobs is not None and jobs > 1:
        raise UsageError("--read-rate reads in one process: leave --jobs out")
    limit_read_rate(bytes_per_second)
    return 1


def require_format(chosen: OutputFormat, *offered: OutputFormat) -> None:
    """Refuse an output format that the command does not have."""
    if chosen not in offered:
        raise UsageError(f"--format {chosen} is not offered by this command; it has {', '.join(offered)}")
