"""`kforensics fleet`: thousands of data directories at once, on Spark."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kforensics.cli.helptext import help_of
from kforensics.cli.options import (
    DocumentFormatOption,
    LeaderOption,
    OutOption,
    OutputFormat,
    PageFormatOption,
    VerboseOption,
    parse_rate,
    require_format,
)

if TYPE_CHECKING:
    from kforensics.commands.fleet_summary import FleetSummary

fleet = typer.Typer(
    name="fleet",
    no_args_is_help=True,
    help="Audit a whole fleet of data directories on Spark, and extract evidence on the brokers for it.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Protocol(StrEnum):
    """The truncation protocol that followers speak."""

    HW = "hw"
    KIP_101 = "kip-101"
    KIP_279 = "kip-279"
    KIP_595 = "kip-595"


class LeastSeverity(StrEnum):
    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


SourcesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="Data directories, parents or globs of them, on local disk or as URIs (hdfs://, s3://, gs://); inventories of "
        "nodes (.yaml, .csv, .parquet with node and location); evidence that `fleet scan` wrote. They can be mixed.",
        show_default=False,
    ),
]
MostOption = Annotated[int, typer.Option("--most", metavar="N", min=0, help="Partitions that the summary shows.")]
TopicOption = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="NAME", help="Only this topic; repeatable.", show_default=False),
]
PartitionOption = Annotated[
    list[int] | None,
    typer.Option(
        "--partition", "-p", metavar="N", help="Only partitions of this number; repeatable.", show_default=False
    ),
]


def audit(
    sources: SourcesArgument,
    *,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="TABLES",
            help="A new directory, outside of every source, for the Parquet tables; one of an interrupted audit is gone on with.",
            show_default=False,
        ),
    ],
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="URL",
            help="The Spark master, or a server of Spark Connect (sc://HOST:PORT); all cores of this machine (local[*]) "
            "where none is given and no session is there.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TABLES",
            help="Tables of an earlier audit: segments that are as they were then are not read again.",
            show_default=False,
        ),
    ] = None,
    spark_conf: Annotated[
        list[str] | None,
        typer.Option("--spark-conf", metavar="NAME=VALUE", help="A Spark setting; repeatable.", show_default=False),
    ] = None,
    leader: LeaderOption = None,
    protocol: Annotated[
        Protocol | None,
        typer.Option("--protocol", help="The truncation protocol of the followers, as in diff.", show_default=False),
    ] = None,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    most: MostOption = 100,
    output_format: PageFormatOption = OutputFormat.TEXT,
    verbose: VerboseOption = False,
) -> None:
    """Judge every partition of a fleet as diff does, on Spark, and write Parquet tables and a summary.

    Every source must be readable from every worker by its path; what a broker extracted with `fleet scan` only has to be
    readable itself. Needs Java 17 or later, and kforensics installed with its extra named spark.
    """
    import sys

    from kforensics.cli.fleet_progress import stage_progress
    from kforensics.errors import UsageError
    from kforensics.fleet.session import open_session, require_spark
    from kforensics.protocol.truncation import ProtocolName

    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON, OutputFormat.HTML)
    require_spark()
    from kforensics.commands.diff import DiffOptions
    from kforensics.fleet.audit import audit as run_audit
    from kforensics.fleet.sources import check_output, read_sources
    from kforensics.fleet.storage import parse_location

    settings = {}
    for one in spark_conf or ():
        name, separator, value = one.partition("=")
        if not separator:
            raise UsageError(f"--spark-conf {one}: expected NAME=VALUE")
        settings[name] = value
    found = read_sources(sources)
    target = parse_location(out)
    check_output(target, found)
    options = DiffOptions(
        leader=leader,
        protocol=ProtocolName(protocol.value) if protocol else None,
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
    )
    with stage_progress(quiet=not sys.stderr.isatty()) as progress, open_session(master, settings) as session:
        run_audit(
            session, found, target, options=options, since=parse_location(since) if since else None, progress=progress
        )
    from kforensics.fleet.summary import summarise

    _finish("fleet-audit", summarise(target, most=most), output_format, None, verbose=verbose)


def report(
    tables: Annotated[
        str, typer.Argument(metavar="TABLES", help="Tables that `fleet audit` wrote.", show_default=False)
    ],
    *,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TABLES",
            help="Tables of an earlier audit: show what is new and what is gone.",
            show_default=False,
        ),
    ] = None,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    node: Annotated[
        list[int] | None,
        typer.Option(
            "--node", metavar="ID", help="Only replicas and findings of this node; repeatable.", show_default=False
        ),
    ] = None,
    verdict: Annotated[
        list[str] | None,
        typer.Option(
            "--verdict", metavar="NAME", help="Only partitions of this verdict; repeatable.", show_default=False
        ),
    ] = None,
    code: Annotated[
        list[str] | None,
        typer.Option("--code", metavar="CODE", help="Only findings of this code; repeatable.", show_default=False),
    ] = None,
    severity: Annotated[
        LeastSeverity, typer.Option("--severity", help="Only findings that are at least as grave.")
    ] = LeastSeverity.NOTE,
    most: MostOption = 100,
    output_format: PageFormatOption = OutputFormat.TEXT,
    out: OutOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Show an audit again, a part of it, or what changed since an earlier one. Needs neither Spark nor Java."""
    from kforensics.cli.output import check_out
    from kforensics.fleet.storage import parse_location, require_pyarrow

    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON, OutputFormat.HTML)
    require_pyarrow()
    from kforensics.findings.model import Severity
    from kforensics.fleet.audit_tables import Filters
    from kforensics.fleet.summary import summarise

    check_out(out, [])
    if since is not None:
        _compare(parse_location(since), parse_location(tables), output_format, out, verbose=verbose)
        return
    filters = Filters(
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        nodes=frozenset(node or ()),
        verdicts=frozenset(verdict or ()),
        codes=frozenset(code or ()),
        least_severity=Severity(severity.value),
    )
    _finish(
        "fleet-report",
        summarise(parse_location(tables), most=most, filters=filters),
        output_format,
        out,
        verbose=verbose,
    )


def scan(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Data directories of this broker, or parents of them.",
            show_default=False,
            readable=False,
        ),
    ],
    *,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="EVIDENCE",
            help="A directory, outside of the data, for what is extracted; where a scan wrote before, only what changed is read.",
            show_default=False,
        ),
    ],
    read_rate: Annotated[
        str | None,
        typer.Option(
            "--read-rate", metavar="RATE", help="Most bytes to read in a second, such as 50MB/s.", show_default=False
        ),
    ] = None,
    digests_only: Annotated[
        bool,
        typer.Option(
            "--digests-only",
            help="Carry no row a batch: less where batches are small, but what differs can't be drilled into elsewhere.",
        ),
    ] = False,
    normal_priority: Annotated[
        bool, typer.Option("--normal-priority", help="Do not step behind the broker for disk and processor.")
    ] = False,
    output_format: DocumentFormatOption = OutputFormat.TEXT,
) -> None:
    """Extract on a broker what an audit needs of its disks, as Parquet: no keys, no values. Needs no Spark.

    Reads at the lowest priority for disk and processor, and goes on where it was interrupted. The evidence can be brought
    together from all brokers and given to `fleet audit`.
    """
    import sys

    from kforensics.cli.exits import exit_code_of
    from kforensics.cli.progress import byte_progress
    from kforensics.fleet.storage import parse_location, require_pyarrow

    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON)
    require_pyarrow()
    from kforensics.cli.output import write_result
    from kforensics.fleet.local_scan import scan_node
    from kforensics.fleet.throttle import lower_priority
    from kforensics.render.text.fleet_scan import scan_document, scan_screen
    from kforensics.render.text.screen import render_screen, screen_width, wants_colour

    rate = parse_rate(read_rate, "--read-rate") if read_rate is not None else None
    if not normal_priority:
        lower_priority()
    with byte_progress(quiet=not sys.stderr.isatty()) as progress:
        result = scan_node(paths, parse_location(out), rate=rate, digests_only=digests_only, progress=progress)
    code = exit_code_of(result.findings, result.problems)
    if output_format is OutputFormat.JSON:
        write_result(scan_document(result, int(code)))
    else:
        write_result(render_screen(scan_screen(result, screen_width()), colour=wants_colour(sys.stdout)))
    raise typer.Exit(code)


def _finish(
    command: str, summary: "FleetSummary", output_format: OutputFormat, out: Path | None, *, verbose: bool
) -> None:
    import sys

    from kforensics.cli.exits import exit_code_of
    from kforensics.cli.output import write_result
    from kforensics.render.json.fleet import fleet_document
    from kforensics.render.text.fleet import fleet_screen
    from kforensics.render.text.screen import render_screen, screen_width, wants_colour

    code = exit_code_of(summary.findings, summary.problems)
    if output_format is OutputFormat.JSON:
        write_result(fleet_document(command, summary, int(code)), out)
    elif output_format is OutputFormat.HTML:
        from kforensics.render.html.fleet_page import fleet_page

        write_result(fleet_page(summary), out)
    else:
        lines = fleet_screen(summary, verbose=verbose, width=screen_width())
        write_result(render_screen(lines, colour=out is None and wants_colour(sys.stdout)), out)
    raise typer.Exit(code)


def _compare(earlier: Path, later: Path, output_format: OutputFormat, out: Path | None, *, verbose: bool) -> None:
    import sys

    from kforensics.cli.exits import ExitCode
    from kforensics.cli.output import write_result
    from kforensics.fleet.comparison import compare_audits
    from kforensics.render.json.fleet import comparison_document
    from kforensics.render.text.fleet_comparison import comparison_screen
    from kforensics.render.text.screen import render_screen, screen_width, wants_colour

    require_format(output_format, OutputFormat.TEXT, OutputFormat.JSON)
    comparison = compare_audits(earlier, later)
    code = ExitCode.FINDINGS if comparison.new_findings else ExitCode.NOTHING_FOUND
    if comparison.problem_count:
        code = ExitCode.INCOMPLETE
    if output_format is OutputFormat.JSON:
        write_result(comparison_document(comparison, int(code)), out)
    else:
        lines = comparison_screen(comparison, verbose=verbose, width=screen_width())
        write_result(render_screen(lines, colour=out is None and wants_colour(sys.stdout)), out)
    raise typer.Exit(code)


for _command in (audit, report, scan):
    fleet.command(help=help_of(_command))(_command)
