"""The audit of a fleet, and the comparison of two, as JSON documents."""

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from kforensics.commands.result import Result
from kforensics.findings.fleet_summary import AuditComparison, AuditTrend, FleetSummary, ScanResult, TrendLine
from kforensics.render.json.document import document, fields_of, json_line, typed_lines
from kforensics.render.view import View
from kforensics.words import utc_text


def write(result: Result[FleetSummary], _view: View) -> Iterator[str]:
    """Return the document of an audit, or of a report of one.

    Args:
        result: of `fleet audit` or `fleet report`.
    """
    return document(result, result.command.replace(" ", "-"), _plain_summary(result.body))


def write_comparison(result: Result[AuditComparison], _view: View) -> Iterator[str]:
    """Return the document of `fleet report --since`."""
    names = tuple(one.name for one in fields(AuditComparison))
    return document(result, "fleet-comparison", fields_of(result.body, *names))


def write_scan(result: Result[ScanResult], _view: View) -> Iterator[str]:
    """Return the document of `fleet scan`."""
    names = ("replicas", "segments", "read_bytes", "reused_segments", "evidence", "evidence_bytes")
    return document(result, "fleet-scan", fields_of(result.body, *names))


def write_trend(result: Result[AuditTrend], _view: View) -> Iterator[str]:
    """Return the document of `fleet trend`.

    Args:
        result: of `fleet trend`, an audit a line, the oldest first.
    """
    body = {"tables": result.body.tables, "audit_count": result.body.audit_count}
    return document(result, "fleet-trend", {**body, "audits": [*map(_plain_line, result.body.lines)]})


def write_trend_lines(result: Result[AuditTrend], _view: View) -> Iterator[str]:
    """Return one line for each audit."""
    return typed_lines(("audit", map(_plain_line, result.body.lines)))


def _plain_line(line: TrendLine) -> dict[str, Any]:
    return {**fields_of(line, *(one.name for one in fields(TrendLine))), "audited_utc": utc_text(line.audited_ms)}


def write_line(result: Result[FleetSummary], _view: View) -> Iterator[str]:
    """Yield the audit in one line."""
    summary = result.body
    names = (
        "audit_id",
        "audited_ms",
        "depth",
        "tables",
        "clusters",
        "nodes",
        "replicas",
        "bytes",
        "partition_count",
        "states",
        "lost_certain",
        "lost_possible",
        "finding_count",
        "findings_by_severity",
        "problem_count",
        "read_bytes",
        "reused_segments",
        "seconds",
    )
    comparison, compared = summary.comparison, {}
    if comparison is not None:
        changes = fields_of(comparison, "findings_by_change", "gone_nodes")
        compared = {"compared_with": comparison.earlier_audit, **changes}
    gate = {} if summary.gate is None else {"gate": summary.gate}
    yield json_line(
        {
            "type": "audit",
            **fields_of(summary, *names),
            "audited_utc": utc_text(summary.audited_ms),
            "state": result.answer.state,
            "headline": result.answer.headline,
            **compared,
            **gate,
            "exit_code": result.exit_code,
        }
    )


def _plain_summary(summary: FleetSummary) -> dict[str, Any]:
    """Return the numbers and the worst partitions, which are as `diff` gives them."""
    names = (
        "clusters",
        "nodes",
        "replicas",
        "segments",
        "bytes",
        "partition_count",
        "deleted_partitions",
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
        "audit_id",
        "audited_ms",
        "depth",
        "seconds",
        "findings_by_cluster",
        *(("gate",) if summary.gate else ()),
    )
    return {
        **fields_of(summary, *names),
        "audited_utc": utc_text(summary.audited_ms),
        "partitions": [json.loads(one.report) for one in summary.worst],
        "tables": summary.tables,
    }
