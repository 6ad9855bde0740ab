"""`kforensics fleet`: thousands of data directories at once, on Spark."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kforensics.cli.command import Output, with_output
from kforensics.cli.examples import epilog_of
from kforensics.cli.helptext import help_of
from kforensics.cli.options import (
    KeepGoingOption,
    LeaderOption,
    PartitionsOption,
    Protocol,
    ReadRateOption,
    ReplicasOption,
    StoppedOption,
    TopicsOption,
    broker_list,
    parse_rate,
)
from kforensics.errors import UsageError

fleet = typer.Typer(
    name="fleet",
    no_args_is_help=True,
    help="Audit a whole fleet of data directories on Spark, and extract evidence on the brokers for it.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class LeastSeverity(StrEnum):
    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


SourcesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="Data directories, parents or globs of them, on local disk or as URIs (hdfs://, s3://, gs://, abfss://); inventories of "
        "nodes (.yaml, .csv, .parquet with node and location); captures (.kfc); evidence that `fleet scan` wrote. They can be mixed.",
        show_default=False,
    ),
]
StorageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="NAME=VALUE",
        help="An option of storage behind a URI, such as region or endpoint_override of s3://; SCHEME:NAME=VALUE for that scheme "
        "alone. Repeatable; credentials are better taken from the environment.",
        show_default=False,
    ),
]


def pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """The names and values of an option that is repeated.

    Args:
        given: as typed.
        option: its name, for the error.

    Raises:
        UsageError: one has no value.
    """
    out = {}
    for one in given or ():
        name, separator, value = one.partition("=")
        if not separator or not name:
            raise UsageError(f"{option} {name}: expected NAME=VALUE")
        out[name] = value
    return out


MostOption = Annotated[int, typer.Option("--most", metavar="N", min=0, help="Partitions that the summary shows.")]


@with_output("fleet audit", has_out=False)
def audit(
    output: Output,
    *,
    sources: SourcesArgument,
    tables: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="TABLES",
            help="A new directory, outside of every source, for the Parquet tables; that of an interrupted audit is continued.",
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
    storage_option: StorageOption = None,
    leader: LeaderOption = None,
    protocol: Annotated[
        Protocol | None,
        typer.Option("--protocol", help="The truncation protocol of the followers, as in diff.", show_default=False),
    ] = None,
    replicas: ReplicasOption = None,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
    most: MostOption = 100,
    stopped: StoppedOption = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="Take the lock of an audit that ended without releasing it, as one that was killed; one that is alive keeps it.",
        ),
    ] = False,
    keep_going: KeepGoingOption = False,
) -> None:
    """Judge every partition of a fleet as diff does, on Spark, and write Parquet tables and a summary.

    Every source must be readable from every worker by its path; what a broker extracted with `fleet scan` only has to be
    readable itself. Needs Java 17 or later, and kforensics installed with its extra named spark.
    """
    from kforensics.cli.fleet_progress import stage_progress
    from kforensics.fleet.commands import AuditRequest, require_spark, run_audit

    output.check(())
    require_spark()
    request = AuditRequest(
        sources=tuple(sources),
        tables=tables,
        since=since,
        master=master,
        settings=pairs(spark_conf, "--spark-conf"),
        storage=pairs(storage_option, "--storage-option"),
        leader=leader,
        protocol=protocol.value if protocol else None,
        replicas=broker_list(replicas),
        is_stopped=stopped,
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        most=most,
        keep_going=keep_going,
        take_over=take_over,
    )
    with stage_progress(quiet=output.quiet or not sys.stderr.isatty()) as progress:
        result = run_audit(request, progress)
    output.finish(result)


@with_output("fleet report")
def report(
    output: Output,
    *,
    tables: Annotated[
        str, typer.Argument(metavar="TABLES", help="Tables or a history that `fleet audit` wrote.", show_default=False)
    ],
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TABLES",
            help="Tables of an earlier audit, or of a history the name of an audit or `previous`: show which findings are new, gone, "
            "worse, better or unchanged since.",
            show_default=False,
        ),
    ] = None,
    audit_id: Annotated[
        str | None,
        typer.Option(
            "--audit", metavar="ID", help="An audit of a history; the latest where none is named.", show_default=False
        ),
    ] = None,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
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
    storage_option: StorageOption = None,
) -> None:
    """Show an audit again, a part of it, or what changed since an earlier one. Needs neither Spark nor Java."""
    from kforensics.fleet.commands import ComparisonRequest, ReportRequest, require_pyarrow, run_comparison, run_report

    output.check((), "fleet comparison" if since is not None else "fleet report")
    require_pyarrow()
    request = ReportRequest(
        tables=tables,
        audit_id=audit_id,
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        nodes=frozenset(node or ()),
        verdicts=frozenset(verdict or ()),
        codes=frozenset(code or ()),
        least_severity=severity.value,
        most=most,
        storage=pairs(storage_option, "--storage-option"),
    )
    output.finish(
        run_report(request) if since is None else run_comparison(ComparisonRequest(earlier=since, report=request))
    )


@with_output("fleet scan", has_out=False)
def scan(
    output: Output,
    *,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Data directories of this broker, or parents of them.",
            show_default=False,
            readable=False,
        ),
    ],
    evidence: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="EVIDENCE",
            help="A directory, outside of the data, for what is extracted; where a scan wrote before, only what changed is read.",
            show_default=False,
        ),
    ],
    read_rate: ReadRateOption = None,
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
    keep_going: KeepGoingOption = False,
    storage_option: StorageOption = None,
) -> None:
    """Extract on a broker what an audit needs of its disks, as Parquet: no keys, no values. Needs no Spark. `kforensics capture` is its successor.

    A capture is one file, needs no pyarrow, and is taken by `fleet audit` and by all other commands; this writes tables that only `fleet audit` takes.

    Reads at the lowest priority for disk and processor, and continues where it was interrupted. The evidence can be brought
    together from all brokers and given to `fleet audit`.
    """
    from kforensics.fleet.commands import ScanRequest, require_pyarrow, run_scan

    output.check(())
    require_pyarrow()
    request = ScanRequest(
        paths=tuple(paths),
        evidence=evidence,
        rate=parse_rate(read_rate, "--read-rate") if read_rate is not None else None,
        digests_only=digests_only,
        normal_priority=normal_priority,
        keep_going=keep_going,
        storage=pairs(storage_option, "--storage-option"),
    )
    with output.progress() as progress:
        result = run_scan(request, progress)
    output.finish(result)


for _command in (audit, report, scan):
    fleet.command(help=help_of(_command), epilog=epilog_of(f"fleet {_command.__name__}"))(_command)
