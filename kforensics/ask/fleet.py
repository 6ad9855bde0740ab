"""The options that only the commands for fleets have."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kforensics.ask.model import Ask
from kforensics.ask.option import option, parse_days, parse_pairs, switch

SEVERITIES = ("critical", "error", "warning", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAsk(Ask):
    """What a command for fleets is asked."""

    sources: tuple[str, ...] = option(
        takes="fleet-audit",
        default=(),
        metavar="SOURCE...",
        help="Data directories, parents or globs of them, on local disk or as URIs (hdfs://, s3://, gs://, abfss://); inventories of "
        "nodes (.yaml, .csv, .parquet with node and location); captures (.kfc), or directories of them. They can be mixed.",
    )
    tables: str | None = option(
        takes="fleet-report fleet-history",
        metavar="TABLES",
        help={
            "fleet-report": "Tables or a history that `fleet audit` wrote.",
            "fleet-history": "A history that `fleet audit --history` wrote.",
        },
    )
    several_tables: tuple[str, ...] = option(
        takes="fleet-trend",
        name="tables",
        default=(),
        metavar="TABLES...",
        help="A history that `fleet audit --history` wrote, or the tables of several audits.",
    )
    keep_days: int = option(
        "--keep",
        takes="fleet-history",
        is_needed=True,
        default=0,
        metavar="DAYS",
        read=parse_days,
        help="Remove audits that began earlier, such as 90d; the latest of each cluster stays, and so do rows of older ones that hold still.",
    )
    new_tables: str | None = option(
        "--out",
        "-o",
        takes="fleet-audit",
        metavar="TABLES",
        help="A new directory, outside of every source, for the Parquet tables; that of an interrupted audit is continued.",
    )
    history_tables: str | None = option(
        "--history",
        takes="fleet-audit",
        metavar="TABLES",
        help="Instead of --out: the tables of many audits, to which this one is appended; what has not changed since the latest is not read again.",
    )
    audit_id: str | None = option(
        "--audit-id",
        takes="fleet-audit",
        metavar="ID",
        help="A name for the audit, such as the run id of a scheduler; where the history has an audit of this name, it is shown again and nothing is read.",
    )
    shown_audit: str | None = option(
        "--audit", takes="fleet-report", metavar="ID", help="An audit of a history; the latest where none is named."
    )
    save_to: str | None = option(
        "--save-to",
        takes="fleet-audit",
        metavar="SCHEMA",
        help="Also write the tables into those of a schema of a catalog of Spark, such as lake.kafka, which --spark-conf configures (Iceberg, Delta, REST, Glue, Unity); "
        "what they have of an audit of this id is replaced.",
    )
    master: str | None = option(
        "--master",
        takes="fleet-audit",
        metavar="URL",
        help="The Spark master, or a server of Spark Connect (sc://HOST:PORT); all cores of this machine (local[*]) "
        "where none is given and no session is there.",
    )
    since: str | None = option(
        "--since",
        takes="fleet-audit fleet-report",
        metavar="TABLES",
        help={
            "fleet-audit": "Tables of an earlier audit: segments that have not changed since are not read again.",
            "fleet-report": "Tables of an earlier audit, or of a history the name of an audit or `previous`: show which findings are new, gone, "
            "worse, better or unchanged since.",
        },
    )
    spark_conf: Mapping[str, str] = option(
        "--spark-conf",
        takes="fleet-audit",
        default={},
        metavar="NAME=VALUE",
        read=parse_pairs,
        help="A Spark setting; repeatable.",
    )
    last: int = option(
        "--last", takes="fleet-trend", default=30, metavar="N", least=1, help="Audits that are shown, the latest ones."
    )
    nodes: frozenset[int] = option(
        "--node",
        takes="fleet-report fleet-trend",
        default=frozenset(),
        metavar="ID",
        help="Only replicas and findings of this node; repeatable.",
    )
    verdicts: frozenset[str] = option(
        "--verdict",
        takes="fleet-report fleet-trend",
        default=frozenset(),
        metavar="NAME",
        help="Only partitions of this verdict; repeatable.",
    )
    codes: frozenset[str] = option(
        "--code",
        takes="fleet-report fleet-trend",
        default=frozenset(),
        metavar="CODE",
        help="Only findings of this code; repeatable.",
    )
    severity: str = option(
        "--severity",
        takes="fleet-report fleet-trend",
        default="note",
        choices=SEVERITIES,
        help="Only findings that are at least as grave.",
    )
    most: int = option(
        "--most",
        takes="fleet-audit fleet-report",
        default=100,
        metavar="N",
        least=0,
        help="Partitions that the summary shows.",
    )
    fail_on: tuple[str, ...] = option(
        "--fail-on",
        takes="fleet-audit fleet-report",
        default=(),
        choices=(*SEVERITIES, "new", "worse"),
        help="End with exit code 1 only where a finding is at least as grave, or is new, or is worse than in the earlier audit; repeatable. "
        "Where something could not be read the exit code is 3 all the same.",
    )
    accept: Path | None = option(
        "--accept",
        takes="fleet-audit fleet-report",
        metavar="FILE",
        help="Findings that do not fail the audit, in YAML: finding (an id or a pattern), who, until, why. Findings whose entry has ended count again. "
        "Without --fail-on, warnings fail it.",
    )
    metrics: Path | None = option(
        "--metrics",
        takes="fleet-audit fleet-report",
        metavar="FILE",
        help="Write the numbers in the text format of Prometheus; a file of an earlier run is replaced.",
    )
    pages: Path | None = option(
        "--pages",
        takes="fleet-report",
        metavar="DIRECTORY",
        help="Also write pages into this new directory: index.html of the whole audit, and one of each cluster, which it links to.",
    )
    take_over: bool = switch(
        "--take-over",
        takes="fleet-audit fleet-history",
        help="Take the lock of an audit that was killed, or ended otherwise without releasing it; an audit that runs keeps it.",
    )
    storage: Mapping[str, str] = option(
        "--storage-option",
        takes="fleet-audit fleet-report fleet-trend fleet-history",
        name="storage_option",
        default={},
        metavar="NAME=VALUE",
        read=parse_pairs,
        help="An option of storage behind a URI, such as region or endpoint_override of s3://; SCHEME:NAME=VALUE for that scheme "
        "alone. Repeatable; credentials are better taken from the environment.",
    )
