"""The audit of a fleet, and the comparison of two, as JSON documents."""

import json
from typing import Any

from kforensics.commands.fleet_summary import AuditComparison, FleetSummary
from kforensics.render.json.document import document


def fleet_document(command: str, summary: FleetSummary, exit_code: int) -> str:
    """The document of `--format json`."""
    return document(
        command,
        inputs=summary.inputs,
        findings=summary.findings,
        problems=summary.problems,
        exit_code=exit_code,
        **plain_summary(summary),
    )


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
        "finding_count",
        "findings_by_severity",
        "findings_by_code",
        "problem_count",
        "read_bytes",
        "reused_segments",
    )
    return {
        **{name: getattr(summary, name) for name in names},
        "partitions": [json.loads(one.report) for one in summary.worst],
        "tables": summary.tables,
    }


def comparison_document(comparison: AuditComparison, exit_code: int) -> str:
    """The document of `fleet report --since`."""
    return document(
        "fleet-comparison",
        inputs=(),
        findings=(),
        problems=(),
        exit_code=exit_code,
        earlier=comparison.earlier,
        later=comparison.later,
        new_findings=comparison.new_findings,
        gone_findings=comparison.gone_findings,
        changes=comparison.changes,
        new_nodes=comparison.new_nodes,
        gone_nodes=comparison.gone_nodes,
        problem_count=comparison.problem_count,
    )
