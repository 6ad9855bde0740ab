"""`kforensics fleet`: thousands of data directories at once, on Spark."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from kforensics.cli.capture import capture
from kforensics.cli.command import Output, with_output
from kforensics.cli.examples import epilog_of, help_of
from kforensics.cli.metrics import check_metrics, write_metrics
from kforensics.cli.options import (
    DepthOption,
    KeepGoingOption,
    LeaderOption,
    NormalPriorityOption,
    PartitionsOption,
    Protocol,
    ReadRateOption,
    ReplicasOption,
    StoppedOption,
    TopicsOption,
    argument,
    broker_list,
    option,
    parse_pairs,
    parse_rate,
)
from kforensics.cli.stops import interrupted_by_signals
from kforensics.errors import UsageError
from kforensics.render.emit import OutputFormat
from kforensics.units import Depth

if TYPE_CHECKING:
    from kforensics.commands.result import Result
    from kforensics.fleet.commands import GateRequest

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


class TableFormat(StrEnum):
    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


class FailOn(StrEnum):
    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NEW = "new"
    WORSE = "worse"


NodesOption = Annotated[
    list[int] | None, option("--node", metavar="ID", help="Only replicas and findings of this node; repeatable.")
]
VerdictsOption = Annotated[
    list[str] | None, option("--verdict", metavar="NAME", help="Only partitions of this verdict; repeatable.")
]
CodesOption = Annotated[
    list[str] | None, option("--code", metavar="CODE", help="Only findings of this code; repeatable.")
]
SeverityOption = Annotated[LeastSeverity, typer.Option("--severity", help="Only findings that are at least as grave.")]
FailOnOption = Annotated[
    list[FailOn] | None,
    option(
        "--fail-on",
        help="End with exit code 1 only where a finding is at least as grave, or is new, or is worse than in the earlier audit; repeatable. "
        "Where something could not be read the exit code is 3 all the same.",
    ),
]
AcceptOption = Annotated[
    Path | None,
    option(
        "--accept",
        metavar="FILE",
        help="Findings that do not fail the audit, in YAML: finding (an id or a pattern), who, until, why. Findings whose entry has ended count again. "
        "Without --fail-on, warnings fail it.",
    ),
]
MetricsOption = Annotated[
    Path | None,
    option(
        "--metrics",
        metavar="FILE",
        help="Write the numbers in the text format of Prometheus; a file of an earlier run is replaced.",
    ),
]


SourcesArgument = Annotated[
    list[str],
    argument(
        metavar="SOURCE...",
        help="Data directories, parents or globs of them, on local disk or as URIs (hdfs://, s3://, gs://, abfss://); inventories of "
        "nodes (.yaml, .csv, .parquet with node and location); captures (.kfc); evidence that `fleet scan` wrote. They can be mixed.",
    ),
]
StorageOption = Annotated[
    list[str] | None,
    option(
        "--storage-option",
        metavar="NAME=VALUE",
        help="An option of storage behind a URI, such as region or endpoint_override of s3://; SCHEME:NAME=VALUE for that scheme "
        "alone. Repeatable; credentials are better taken from the environment.",
    ),
]


MostOption = Annotated[int, typer.Option("--most", metavar="N", min=0, help="Partitions that the summary shows.")]


@with_output("fleet audit", has_out=False)
def audit(
    output: Output,
    *,
    sources: SourcesArgument,
    tables: Annotated[
        str | None,
        option(
            "--out",
            "-o",
            metavar="TABLES",
            help="A new directory, outside of every source, for the Parquet tables; that of an interrupted audit is continued.",
        ),
    ] = None,
    history: Annotated[
        str | None,
        option(
            "--history",
            metavar="TABLES",
            help="Instead of --out: the tables of many audits, to which this one is appended; what has not changed since the latest is not read again.",
        ),
    ] = None,
    audit_id: Annotated[
        str | None,
        option(
            "--audit-id",
            metavar="ID",
            help="A name for the audit, such as the run id of a scheduler; where the history has an audit of this name, it is shown again and nothing is read.",
        ),
    ] = None,
    table_format: Annotated[
        TableFormat | None,
        option(
            "--table-format",
            help="The format of a history: parquet, files in folders of cluster and day; delta, and the log of Delta Lake; iceberg, and Iceberg tables that need no catalog. "
            "Where none is named, that of the history, else parquet.",
        ),
    ] = None,
    master: Annotated[
        str | None,
        option(
            "--master",
            metavar="URL",
            help="The Spark master, or a server of Spark Connect (sc://HOST:PORT); all cores of this machine (local[*]) "
            "where none is given and no session is there.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        option(
            "--since",
            metavar="TABLES",
            help="Tables of an earlier audit: segments that have not changed since are not read again.",
        ),
    ] = None,
    spark_conf: Annotated[
        list[str] | None, option("--spark-conf", metavar="NAME=VALUE", help="A Spark setting; repeatable.")
    ] = None,
    storage_option: StorageOption = None,
    leader: LeaderOption = None,
    protocol: Annotated[
        Protocol | None, option("--protocol", help="The truncation protocol of the followers, as in diff.")
    ] = None,
    replicas: ReplicasOption = None,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
    most: MostOption = 100,
    stopped: StoppedOption = False,
    fail_on: FailOnOption = None,
    accept: AcceptOption = None,
    metrics: MetricsOption = None,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="Take the lock of an audit that was killed, or ended otherwise without releasing it; an audit that runs keeps it.",
        ),
    ] = False,
    keep_going: KeepGoingOption = False,
    depth: DepthOption = None,
) -> None:
    """Judge every partition of a fleet as diff does, on Spark, and write Parquet tables and a summary.

    Every source must be readable from every worker by its path; what a broker extracted with `fleet scan` only has to be
    readable itself. Needs Java 17 or later, and kforensics installed with its extra named spark.
    """
    from kforensics.cli.fleet_progress import stage_progress
    from kforensics.fleet.commands import AuditRequest, require_spark, run_audit

    output.check(())
    require_spark()
    if table_format is not None and history is None:
        raise UsageError("--table-format needs --history")
    if (tables is None) == (history is None):
        raise UsageError(
            "give either --out, a directory for this audit alone, or --history, tables to which it is appended"
        )
    request = AuditRequest(
        sources=tuple(sources),
        tables=str(tables or history),
        is_history=history is not None,
        audit_id=audit_id,
        table_format=table_format.value if table_format else None,
        since=since,
        master=master,
        settings=parse_pairs(spark_conf or (), "--spark-conf"),
        storage=parse_pairs(storage_option or (), "--storage-option"),
        leader=leader,
        protocol=protocol.value if protocol else None,
        replicas=broker_list(replicas),
        is_stopped=stopped,
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        most=most,
        keep_going=keep_going,
        take_over=take_over,
        metrics=metrics,
        gate=_gate(fail_on, accept),
        depth=depth or Depth.CONTENT,
    )
    check_metrics(metrics)
    with interrupted_by_signals(), stage_progress(quiet=output.quiet, is_terminal=sys.stderr.isatty()) as progress:
        result = run_audit(request, progress)
    _finish(output, result, metrics)


@with_output("fleet report")
def report(
    output: Output,
    *,
    tables: Annotated[str, argument(metavar="TABLES", help="Tables or a history that `fleet audit` wrote.")],
    since: Annotated[
        str | None,
        option(
            "--since",
            metavar="TABLES",
            help="Tables of an earlier audit, or of a history the name of an audit or `previous`: show which findings are new, gone, "
            "worse, better or unchanged since.",
        ),
    ] = None,
    audit_id: Annotated[
        str | None, option("--audit", metavar="ID", help="An audit of a history; the latest where none is named.")
    ] = None,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
    node: NodesOption = None,
    verdict: VerdictsOption = None,
    code: CodesOption = None,
    severity: SeverityOption = LeastSeverity.NOTE,
    most: MostOption = 100,
    fail_on: FailOnOption = None,
    accept: AcceptOption = None,
    metrics: MetricsOption = None,
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
        gate=_gate(fail_on, accept),
        storage=parse_pairs(storage_option or (), "--storage-option"),
    )
    check_metrics(metrics)
    if since is None:
        _finish(output, run_report(request), metrics)
    if metrics is not None or request.gate is not None:
        raise UsageError("--since shows what changed; --fail-on, --accept and --metrics are for a report of one audit")
    output.finish(run_comparison(ComparisonRequest(earlier=since, report=request)))


@with_output("fleet trend")
def trend(
    output: Output,
    *,
    tables: Annotated[
        list[str],
        argument(
            metavar="TABLES...", help="A history that `fleet audit --history` wrote, or the tables of several audits."
        ),
    ],
    last: Annotated[
        int, typer.Option("--last", metavar="N", min=1, help="Audits that are shown, the latest ones.")
    ] = 30,
    topic: TopicsOption = None,
    partition: PartitionsOption = None,
    node: NodesOption = None,
    verdict: VerdictsOption = None,
    code: CodesOption = None,
    severity: SeverityOption = LeastSeverity.NOTE,
    storage_option: StorageOption = None,
) -> None:
    """Show audit by audit how many findings there were, and how many were new, gone, worse, better or unchanged. Needs neither Spark nor Java."""
    from kforensics.fleet.commands import ReportRequest, TrendRequest, require_pyarrow, run_trend

    output.check(())
    require_pyarrow()
    filters = ReportRequest(
        tables="",
        topics=frozenset(topic or ()),
        partitions=frozenset(partition or ()),
        nodes=frozenset(node or ()),
        verdicts=frozenset(verdict or ()),
        codes=frozenset(code or ()),
        storage=parse_pairs(storage_option or (), "--storage-option"),
        least_severity=severity.value,
    )
    output.finish(run_trend(TrendRequest(tables=tuple(tables), last=last, report=filters)))


def _gate(fail_on: list[FailOn] | None, accept: Path | None) -> "GateRequest | None":
    from kforensics.fleet.commands import GateRequest

    if not fail_on and accept is None:
        return None
    return GateRequest(fail_on=tuple(one.value for one in fail_on or ()), accept=accept)


def _finish(output: Output, result: "Result[Any]", metrics: Path | None) -> NoReturn:
    """Write metrics and result; name expired acceptances on standard error where the format has no place for sentences."""
    if metrics is not None:
        write_metrics(metrics, result)
    gate = result.body.gate
    if gate is not None and gate.expired and output.format is not OutputFormat.TEXT:
        typer.echo("\n".join(f"kforensics: {words}" for words in gate.sentences()[1:]), err=True)
    output.finish(result)


@with_output("fleet scan", has_out=False)
def scan(
    output: Output,
    *,
    paths: Annotated[
        list[Path],
        argument(metavar="DIR...", help="Data directories of this broker, or parents of them.", readable=False),
    ],
    evidence: Annotated[
        str,
        option(
            "--out",
            "-o",
            metavar="EVIDENCE",
            help="With the ending .kfc a capture, as `kforensics capture` writes it. Else a directory, outside of the data, for what is extracted; "
            "where an earlier scan wrote to it, only what has changed is read.",
        ),
    ],
    read_rate: ReadRateOption = None,
    digests_only: Annotated[
        bool,
        typer.Option(
            "--digests-only",
            help="Write no rows of batches: the evidence is smaller, but an audit can't show which batches differ.",
        ),
    ] = False,
    normal_priority: NormalPriorityOption = False,
    keep_going: KeepGoingOption = False,
    storage_option: StorageOption = None,
) -> None:
    """Extract on a broker what an audit needs of its disks: the old name of `kforensics capture`, which it is with --out NAME.kfc. Needs no Spark.

    A capture is one file, needs no pyarrow, and is taken by `fleet audit` and by all other commands. With another --out this writes tables, as Parquet, that only
    `fleet audit` takes: no keys, no values.

    Reads at the lowest priority for disk and processor, and continues where it was interrupted. The evidence can be brought
    together from all brokers and given to `fleet audit`.
    """
    from kforensics.commands.capture import names_a_capture

    if names_a_capture(evidence):
        if digests_only:
            raise UsageError(
                "a capture has rows of batches only where a truncation can still happen: leave out --digests-only"
            )
        capture(
            output.context,
            paths=paths,
            out=Path(evidence),
            read_rate=read_rate,
            normal_priority=normal_priority,
            output_format=output.format,
            color=output.colour,
            quiet=output.quiet,
            verbose=output.verbose,
        )
        return
    sys.stderr.write(
        "kforensics fleet scan is the old name of kforensics capture, whose file all commands take: --out NAME.kfc\n"
    )
    from kforensics.fleet.commands import ScanRequest, require_pyarrow, run_scan

    output.check(())
    require_pyarrow()
    request = ScanRequest(
        paths=tuple(paths),
        evidence=evidence,
        rate=parse_rate(read_rate, "--read-rate") if read_rate is not None else None,
        digests_only=digests_only,
        normal_priority=normal_priority,
        storage=parse_pairs(storage_option or (), "--storage-option"),
        keep_going=keep_going,
    )
    with output.progress() as progress:
        result = run_scan(request, progress)
    output.finish(result)


for _command in (audit, report, trend, scan):
    fleet.command(help=help_of(_command), epilog=epilog_of(f"fleet {_command.__name__}"))(_command)
