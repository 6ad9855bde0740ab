# Generated of the options in kforensics/ask: python -m kforensics.cli.manpage

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from kforensics.findings.fleet_summary import AuditTrend, FleetSummary, TrimmedHistory
from kforensics.library import Answered, Audited

__all__: list[str]

AnyPath = str | PathLike[str]
AnyPaths = AnyPath | Iterable[AnyPath]

def audit(
    *paths: AnyPaths,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    leader: int | None = ...,
    protocol: str | None = ...,
    replicas: Any | None = ...,
    stopped: bool = ...,
    depth: str | None = ...,
    keep_going: bool = ...,
    out: str | None = ...,
    history: str | None = ...,
    audit_id: str | None = ...,
    save_to: str | None = ...,
    master: str | None = ...,
    since: str | None = ...,
    spark_conf: Mapping[str, str] = ...,
    most: int | None = ...,
    fail_on: str | Iterable[str] = ...,
    accept: AnyPath | None = ...,
    metrics: AnyPath | None = ...,
    take_over: bool = ...,
    storage_option: Mapping[str, str] = ...,
    session: Any = ...,
) -> Audited[FleetSummary]:
    """Judge every partition of a fleet as diff does, on Spark, and write Parquet tables and a summary."""
def history(
    *paths: AnyPaths,
    keep: Any | None = ...,
    take_over: bool = ...,
    storage_option: Mapping[str, str] = ...,
) -> Answered[TrimmedHistory]:
    """Remove old audits of a history, and what only they hold. Needs neither Spark nor Java."""
def report(
    *paths: AnyPaths,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    cluster: str | None = ...,
    audit: str | None = ...,
    since: str | None = ...,
    nodes: int | Iterable[int] = ...,
    verdicts: str | Iterable[str] = ...,
    codes: str | Iterable[str] = ...,
    severity: str | None = ...,
    most: int | None = ...,
    fail_on: str | Iterable[str] = ...,
    accept: AnyPath | None = ...,
    metrics: AnyPath | None = ...,
    pages: AnyPath | None = ...,
    storage_option: Mapping[str, str] = ...,
) -> Audited[Any]:
    """Show an audit again, a part of it, or what changed since an earlier one. Needs neither Spark nor Java."""
def trend(
    *paths: AnyPaths,
    topics: str | Iterable[str] = ...,
    partitions: int | Iterable[int] = ...,
    cluster: str | None = ...,
    last: int | None = ...,
    nodes: int | Iterable[int] = ...,
    verdicts: str | Iterable[str] = ...,
    codes: str | Iterable[str] = ...,
    severity: str | None = ...,
    storage_option: Mapping[str, str] = ...,
) -> Answered[AuditTrend]:
    """Show audit by audit how many findings there were, and how many were new, gone, worse, better or unchanged. Needs neither Spark nor Java."""
