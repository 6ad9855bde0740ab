"""Two audits -> what changed between them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kforensics.damage import Absent
from kforensics.evidence.captured.rows import known_or
from kforensics.findings.changes import TABLES, Change, ChangedRow, changed_rows
from kforensics.findings.fleet_summary import AuditComparison, FindingChange, VerdictChange
from kforensics.findings.gate import GatedFinding
from kforensics.findings.model import Severity
from kforensics.fleet.audit_tables import AuditTables, Filters, all_of, is_in, one_of
from kforensics.reconcile.replicas.report import Verdict
from kforensics.units import Depth, OffsetRange

MOST_LISTED = 10_000
"""Findings of each change that a comparison lists; it counts all."""

_RANK = {verdict.value: rank for rank, verdict in enumerate(Verdict)}


def compare_audits(before: AuditTables, after: AuditTables, filters: Filters | None = None) -> AuditComparison:
    """Compare two audits, finding by finding and partition by partition.

    Args:
        filters: which partitions and findings it is about.
    """
    filters = filters or Filters()
    scope, limits = _scope(before, after)
    listed: dict[Change, list[FindingChange]] = {change: [] for change in Change}
    counts: Counter[str] = Counter()
    for row in _changed(before, after, filters, scope):
        if _gravity(row) < filters.least_severity.rank:
            continue
        counts[row.change.value] += 1
        if len(listed[row.change]) < MOST_LISTED:
            listed[row.change].append(_finding_change(row))
    new_nodes, gone_nodes = _other_nodes(before, after)
    return AuditComparison(
        earlier=str(before),
        later=str(after),
        earlier_audit=before.audit_id,
        later_audit=after.audit_id,
        findings_by_change={change.value: counts[change.value] for change in Change if counts[change.value]},
        new_findings=tuple(listed[Change.NEW]),
        worse_findings=tuple(listed[Change.WORSE]),
        changed_findings=tuple(listed[Change.CHANGED]),
        better_findings=tuple(listed[Change.BETTER]),
        unchecked_findings=tuple(listed[Change.UNCHECKED]),
        gone_findings=tuple(listed[Change.GONE]),
        changes=tuple(_verdict_changes(before, after, filters, scope)),
        new_nodes=new_nodes,
        gone_nodes=gone_nodes,
        problem_count=after.row_count("problems"),
        limits=limits,
    )


def gated_findings(tables: AuditTables, earlier: AuditTables | None, filters: Filters) -> Iterator[GatedFinding]:
    """Yield the findings of an audit and what became of each since an earlier one; all are new where there is none."""
    if earlier is None:
        for one in tables.rows("findings", columns=["finding_id", "severity"], where=filters.of_findings()):
            yield GatedFinding(finding_id=one["finding_id"], severity=Severity(one["severity"]))
        return
    scope, _ = _scope(earlier, tables)
    compared = set()
    for row in _changed(earlier, tables, filters, scope):
        if row.severity is not None and Severity(row.severity).rank >= filters.least_severity.rank:
            compared.add(row.finding_id)
            yield GatedFinding(finding_id=row.finding_id, severity=Severity(row.severity), change=row.change)
    if scope is not None:  # what the earlier audit did not look at was not there as far as anyone knows
        yield from (one for one in gated_findings(tables, None, filters) if one.finding_id not in compared)


def _scope(before: AuditTables, after: AuditTables) -> tuple[Any, tuple[str, ...]]:
    """Return the rows that both audits looked for, as a condition, and the sentences that say so."""
    limits = []
    if before.depth is not after.depth:
        deep, words = ("earlier", "no longer") if after.depth is Depth.TAILS else ("later", "not yet")
        limits.append(f"Only the {deep} audit read the content of logs: what only content shows is {words} looked at.")
    condition = None
    for name, column, kind in (("topics", "topic", pa.string()), ("partitions", "partition", pa.int32())):
        chosen = [frozenset(one.manifest.get("scope", {}).get(name, ())) for one in (before, after)]
        if chosen[0] == chosen[1]:
            continue
        both = chosen[0] & chosen[1] if all(chosen) else chosen[0] | chosen[1]
        condition = all_of(condition, one_of(column, both, kind))
        words = ", ".join(map(str, sorted(both))) or "none"
        limits.append(f"The two audits were not made of the same {name}: only these are compared: {words}.")
    return condition, tuple(limits)


def _changed(before: AuditTables, after: AuditTables, filters: Filters, scope: Any) -> Iterator[ChangedRow]:
    # The least severity is no condition here: a finding that is less grave now is no finding that is gone.
    where = all_of(
        is_in("topic", filters.topics),
        is_in("partition", filters.partitions),
        is_in("node_id", filters.nodes),
        is_in("code", filters.codes),
        scope,
    )
    findings = {
        name: list(one.rows("findings", columns=TABLES[f"{name}_findings"], where=where))
        for name, one in (("earlier", before), ("later", after))
    }
    problems = list(after.rows("problems", columns=TABLES["later_problems"]))
    found = {row["finding_id"] for row in findings["later"]}
    # Replicas matter only where a finding is missing: whether all of them were read again.
    missing = [row for row in findings["earlier"] if row["finding_id"] not in found]
    asked = [row for row in (*missing, *problems) if row["topic"] is not None] if missing else []
    of_asked = all_of(
        one_of("topic", {row["topic"] for row in asked}, pa.string()),
        one_of("partition", {row["partition"] for row in asked}, pa.int32()),
    )
    replicas = before.rows("replicas", columns=TABLES["earlier_replicas"], where=of_asked)
    # What the ends of logs don't show may be there all the same.
    is_less = before.depth is Depth.CONTENT and after.depth is Depth.TAILS
    for row in changed_rows(
        {
            "earlier_findings": findings["earlier"],
            "later_findings": findings["later"],
            "earlier_nodes": _nodes(before),
            "later_nodes": _nodes(after),
            "later_problems": problems,
            "earlier_replicas": replicas,
        }
    ):
        yield replace(row, change=Change.UNCHECKED) if is_less and row.change is Change.GONE else row


def _nodes(tables: AuditTables) -> Iterator[Mapping[str, Any]]:
    """Yield the inputs with log directories: others, as directories of log files, show no replica."""
    for row in tables.rows("nodes", columns=[*TABLES["later_nodes"], "log_dirs"]):
        if row["log_dirs"]:
            yield row


def _gravity(row: ChangedRow) -> int:
    return max(Severity(one).rank for one in (row.severity, row.severity_before) if one is not None)


def _finding_change(row: ChangedRow) -> FindingChange:
    absent = Absent.NOT_APPLICABLE
    statement = row.statement if row.statement is not None else row.statement_before
    return FindingChange(
        finding_id=row.finding_id,
        change=row.change,
        code=row.code,
        cluster_id=known_or(row.cluster_id, Absent.UNKNOWN),
        topic=known_or(row.topic, absent),
        partition=known_or(row.partition, absent),
        broker_id=known_or(row.node_id, absent),
        statement=statement or "",
        severity=known_or(row.severity, absent),
        severity_before=known_or(row.severity_before, absent),
        offsets=_offsets(row.first_offset, row.last_offset),
        offsets_before=_offsets(row.first_offset_before, row.last_offset_before),
        statement_before=known_or(row.statement_before, absent),
    )


def _offsets(first: int | None, last: int | None) -> OffsetRange | Absent:
    return Absent.NOT_APPLICABLE if first is None or last is None else OffsetRange(first, last)


def _verdict_changes(before: AuditTables, after: AuditTables, filters: Filters, scope: Any) -> list[VerdictChange]:
    where = all_of(is_in("topic", filters.topics), is_in("partition", filters.partitions), scope)
    verdicts_before, verdicts_after = (_verdicts(one, where) for one in (before, after))
    changes = [
        VerdictChange(
            cluster_id=known_or(key[0], Absent.UNKNOWN),
            topic=key[1],
            partition=key[2],
            before=known_or(verdicts_before.get(key), Absent.NOT_APPLICABLE),
            after=known_or(verdicts_after.get(key), Absent.NOT_APPLICABLE),
        )
        for key in sorted({*verdicts_before, *verdicts_after}, key=lambda key: (key[0] or "", key[1], key[2]))
        if verdicts_before.get(key) != verdicts_after.get(key)
        and (not filters.verdicts or {verdicts_before.get(key), verdicts_after.get(key)} & filters.verdicts)
    ]
    return sorted(changes, key=lambda one: -_RANK.get(str(one.after), -1))


def _verdicts(tables: AuditTables, where: Any) -> dict[tuple[str | None, str, int], str]:
    rows = tables.rows("partitions", columns=["cluster_id", "topic", "partition", "verdict"], where=where)
    return {(row["cluster_id"], row["topic"], row["partition"]): row["verdict"] for row in rows}


def _other_nodes(before: AuditTables, after: AuditTables) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the nodes that only the later audit has, and those that only the earlier one has; a node of no known cluster may be of any."""
    several = len({*before.manifest.get("clusters", ()), *after.manifest.get("clusters", ())} - {""}) > 1
    columns = ["path", "node_id", "cluster_id"]
    earlier, later = (list(one.rows("nodes", columns=columns)) for one in (before, after))

    def lacking(rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        known: dict[int | str, set[str | None]] = {}
        for row in others:
            known.setdefault(_number(row), set()).add(row["cluster_id"])
        names = {
            _node_name(row, several=several)
            for row in rows
            if not known.get(_number(row), set()) & {row["cluster_id"], None}
            and not (row["cluster_id"] is None and _number(row) in known)
        }
        return tuple(sorted(names))

    return lacking(later, earlier), lacking(earlier, later)


def _number(row: Mapping[str, Any]) -> int | str:
    return str(row["path"]) if row["node_id"] is None else int(row["node_id"])


def _node_name(row: Mapping[str, Any], *, several: bool) -> str:
    if row["node_id"] is None:
        return str(row["path"])
    where = f" of cluster {row['cluster_id']}" if several and row["cluster_id"] else ""
    return f"node {row['node_id']}{where}"
