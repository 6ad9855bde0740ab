"""The documents of audits of a fleet: of one, of two compared, of many in a row, and of the scan of a node."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.captured.columns import known_or
from kforensics.findings.answers.model import Answer
from kforensics.findings.changes import FindingChange
from kforensics.findings.fleet_summary import (
    AuditComparison,
    AuditTrend,
    FleetSummary,
    TrendLine,
    TrimmedHistory,
)
from kforensics.render.json.document import write_document
from kforensics.render.json.shape import Document, Field, Shape, own, shape
from kforensics.render.view import View
from kforensics.words import utc_text


def write(result: Result[FleetSummary], _view: View) -> Iterator[str]:
    """Return the document of an audit, or of a report of one."""
    return write_document(REPORT if result.command == "fleet report" else AUDIT, result)


class _Line(NamedTuple):
    body: FleetSummary
    answer: Answer
    exit_code: int


def _audited(summary: FleetSummary | TrendLine) -> str:
    return utc_text(summary.audited_ms)


def _worst(summary: FleetSummary) -> list[dict[str, Any]]:
    return [json.loads(one.report) for one in summary.worst]


_AUDITED = Field(_audited, "When it began.")
_GATE = Field("gate", "Only with `--fail-on` or `--accept`.", is_optional=True)
_COMPARED = own("findings_by_change gone_nodes", "body.comparison.")
shape(
    TrendLine,
    "One audit among others.",
    {
        **own("audit_id audited_ms clusters partition_count states findings_by_severity compared_with"),
        **own("findings_by_change gone_nodes problem_count limits"),
        "audited_utc": _AUDITED,
    },
)
shape(
    FindingChange,
    "A finding of one or both of two audits; what one of them does not have is absent.",
    {
        **own("finding_id change code"),
        "cluster_id": Field(lambda one: known_or(one.cluster_id, Absent.UNKNOWN), type=str | Absent),
        **own("topic partition"),
        "broker_id": "node_id",
        "statement": "said",
        **own("severity severity_before offsets offsets_before statement_before"),
    },
)
_SUMMARY: dict[str, Any] = {
    **own("clusters nodes replicas segments bytes partition_count deleted_partitions verdicts states brokers"),
    **own("damage_by_disk unclean_elections stray_replicas stray_bytes deleted_replicas deleted_bytes"),
    **own("missing_replicas excess_replicas under_replicated offline sharing_rack leaders"),
    **own("lost_certain lost_possible not_consistent finding_ids finding_count"),
    **own("findings_by_severity findings_by_code problem_count read_bytes reused_segments audit_id audited_ms"),
    **own("depth seconds findings_by_cluster states_by_cluster"),
    "gate": _GATE,
    "audited_utc": _AUDITED,
    "partitions": Field(
        _worst,
        "Those that are not consistent, the worst first and the first `--most` (100) of them.",
        "tuple[PartitionReport, ...]",
    ),
    "tables": "",
}
_LINE = Shape(
    _Line,
    "An audit in a line.",
    {
        **own("audit_id audited_ms depth tables clusters nodes replicas bytes partition_count states", "body."),
        **own("lost_certain lost_possible finding_count findings_by_severity problem_count read_bytes", "body."),
        **own("reused_segments seconds", "body."),
        "audited_utc": Field(lambda result: _audited(result.body), "When it began.", str),
        "state": "answer.state",
        "headline": "answer.headline",
        "compared_with": Field("body.comparison.earlier_audit", is_optional=True),
        **{name: Field(path, is_optional=True) for name, path in _COMPARED.items()},
        "gate": Field("body.gate", is_optional=True),
        "exit_code": "",
    },
)
_LINES = {"audit": Field(lambda result: (_LINE.plain(_Line(result.body, result.answer, result.exit_code)),), "", _LINE)}
AUDIT = Document("fleet-audit", FleetSummary, _SUMMARY, lines=_LINES, command="fleet audit")
REPORT = Document("fleet-report", FleetSummary, _SUMMARY, lines=_LINES, command="fleet audit")
COMPARISON = Document(
    "fleet-comparison",
    AuditComparison,
    {
        **own("earlier later earlier_audit later_audit findings_by_change new_findings worse_findings"),
        **own("changed_findings better_findings unchecked_findings gone_findings changes new_nodes gone_nodes"),
        **own("problem_count limits"),
    },
    command="fleet comparison",
)
HISTORY = Document(
    "fleet-history",
    TrimmedHistory,
    own("tables days audits trimmed_audits removed_files oldest_ms"),
    command="fleet history",
)
TREND = Document(
    "fleet-trend",
    AuditTrend,
    {"tables": "", "audit_count": "", "audits": "lines"},
    lines={"audit": "audits"},
    command="fleet trend",
)
