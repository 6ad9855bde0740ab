"""The audit of a fleet, and the comparison of two, as JSON documents."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from kforensics.commands.result import Result
from kforensics.findings.fleet_summary import AuditComparison, FleetSummary, ScanResult
from kforensics.render.json.document import DocumentBody, document
from kforensics.render.view import View


def write(result: Result[FleetSummary], _view: View) -> Iterator[str]:
    """The document of an audit, or of a report of one."""
    return document(result, DocumentBody(name=result.command.replace(" ", "-"), fields=plain_summary(result.body)))


def write_comparison(result: Result[AuditComparison], _view: View) -> Iterator[str]:
    """The document of `fleet report --since`."""
    names = tuple(one.name for one in fields(AuditComparison))
    return document(result, DocumentBody(name="fleet-comparison", fields=_fields(result.body, names)))


def write_scan(result: Result[ScanResult], _view: View) -> Iterator[str]:
    """The document of `fleet scan`."""
    names = ("replicas", "segments", "read_bytes", "reused_segments", "evidence", "evidence_bytes")
    return document(result, DocumentBody(name="fleet-scan", fields=_fields(result.body, names)))


def _fields(value: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def plain_summary(summary: FleetSummary) -> dict[str, Any]:
    """The numbers and the worst partitions, which are as `diff` gives them."""
    names = (
        "clusters",
        "nodes",
        "replicas",
        "segments",
        "bytes",
        "partition_count",
        "verdicts",
        "states",
        "brokers",
        "damage_by_disk",
        "unclean_elections",
        "stray_replicas",
        "stray_bytes",
        "deleted_replicas",
        "deleted_bytes",
        "missing_replicas",
        "excess_replicas",
        "under_replicated",
        "offline",
        "sharing_rack",
        "leaders",
        "topics_checked",
        "topics_by_rule",
        "lost_certain",
        "lost_possible",
        "not_consistent",
        "finding_ids",
        "finding_count",
        "findings_by_severity",
        "findings_by_code",
        "problem_count",
        "read_bytes",
        "reused_segments",
    )
    return {
        **_fields(summary, names),
        "partitions": [json.loads(one.report) for one in summary.worst],
        "tables": summary.tables,
    }
