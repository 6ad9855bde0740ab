"""Two audits -> what changed between them; audits in their order -> what changed from each to the next."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from kforensics.damage import Absent
from kforensics.evidence.captured.columns import known_or
from kforensics.findings.changes import Change, FindingChange
from kforensics.findings.fleet_summary import AuditComparison, AuditTrend, TrendLine, VerdictChange
from kforensics.findings.gate import GatedFinding
from kforensics.findings.model import Severity
from kforensics.fleet.audit_tables import (
    AuditTables,
    Filters,
    all_of,
    counts_of,
    last_alike,
    one_of,
    previous_in_history,
)
from kforensics.fleet.lifecycle import changes_between, open_findings, written_changes
from kforensics.reconcile.replicas.report import Verdict
from kforensics.units import Depth

Scope = Mapping[str, frozenset[Any]]
"""The values of some columns that both of two audits looked for."""

MOST_LISTED = 10_000
"""Findings of each change that a comparison lists; it counts all."""

_RANK = {verdict.value: rank for rank, verdict in enumerate(Verdict)}


def compare_audits(before: AuditTables, after: AuditTables, filters: Filters | None = None) -> AuditComparison:
    """Compare two audits, finding by finding and partition by partition."""
    filters = filters or Filters()
    scope, limits = _scope(before, after)
    listed: dict[Change, list[FindingChange]] = {change: [] for change in Change}
    counts: Counter[str] = Counter()
    for row in _changed(before, after, filters, scope):
        if _gravity(row) < filters.least_severity.rank:
            continue
        counts[row.change.value] += 1
        if len(listed[row.change]) < MOST_LISTED:
            listed[row.change].append(row)
    new_nodes, gone_nodes = _other_nodes(before, after, filters)
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
        problem_count=sum(1 for _ in after.rows("problems", columns=["input"], where=filters.of_clusters()))
        if filters.clusters
        else after.row_count("problems"),
        limits=limits,
    )


def gated_findings(tables: AuditTables, earlier: AuditTables | None, filters: Filters) -> Iterator[GatedFinding]:
    """Yield the findings of an audit and what became of each since an earlier one; all are new where there is none."""
    if earlier is None:
        for one in tables.rows("findings", columns=["finding_id", "severity"], where=filters.of_findings()):
            yield GatedFinding(finding_id=one["finding_id"], severity=Severity(one["severity"]))
        return
    # What the earlier audit did not look at was not there as far as anyone knows.
    for row in _changed(earlier, tables, filters, {}):
        if row.severity is not None and Severity(row.severity).rank >= filters.least_severity.rank:
            yield GatedFinding(finding_id=row.finding_id, severity=Severity(row.severity), change=row.change)


def _scope(before: AuditTables, after: AuditTables) -> tuple[Scope, tuple[str, ...]]:
    """Return the values of columns that both audits looked for, and the sentences that say so."""
    limits = []
    if before.depth is not after.depth:
        deep, words = ("earlier", "no longer") if after.depth is Depth.TAILS else ("later", "not yet")
        limits.append(f"Only the {deep} audit read the content of logs: what only content shows is {words} looked at.")
    scope: dict[str, frozenset[Any]] = {}
    for name, column in (("topics", "topic"), ("partitions", "partition")):
        chosen = [frozenset(one.manifest.get("scope", {}).get(name, ())) for one in (before, after)]
        if chosen[0] == chosen[1]:
            continue
        both = chosen[0] & chosen[1] if all(chosen) else chosen[0] | chosen[1]
        scope[column] = both
        words = ", ".join(map(str, sorted(both))) or "none"
        limits.append(f"The two audits were not made of the same {name}: only these are compared: {words}.")
    return scope, tuple(limits)


def _changed(before: AuditTables, after: AuditTables, filters: Filters, scope: Scope) -> Iterator[FindingChange]:
    """Yield what became of findings between two audits; as the later one wrote it, where it is compared with what was before it."""
    earlier = previous_in_history(after) if before.location == after.location else None
    as_written = earlier is not None and earlier.audit_id == before.audit_id
    rows = written_changes(after) if as_written else changes_between(open_findings(before), after, [before])
    chosen = {"topic": filters.topics, "partition": filters.partitions, "node_id": filters.nodes, "code": filters.codes}
    for row in rows:
        if filters.clusters and (row.cluster_id or "") not in filters.clusters:
            continue
        if all(not wanted or getattr(row, name) in wanted for name, wanted in chosen.items()) and all(
            getattr(row, name) in wanted for name, wanted in scope.items()
        ):
            yield row


def _gravity(row: FindingChange) -> int:
    return max(Severity(one).rank for one in (row.severity, row.severity_before) if one is not None)


def _verdict_changes(before: AuditTables, after: AuditTables, filters: Filters, scope: Scope) -> list[VerdictChange]:
    kinds = {"topic": pa.string(), "partition": pa.int32()}
    of_both = (one_of(name, values, kinds[name]) for name, values in scope.items())
    where = all_of(filters.of_subject(), *of_both)
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


def _other_nodes(before: AuditTables, after: AuditTables, filters: Filters) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the nodes that only the later audit has, and those that only the earlier one has; a node of no known cluster may be of any."""
    several = len({*before.manifest.get("clusters", ()), *after.manifest.get("clusters", ())} - {""}) > 1
    columns = ["path", "node_id", "cluster_id"]
    where = filters.of_clusters()
    earlier, later = (list(one.rows("nodes", columns=columns, where=where)) for one in (before, after))

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


def trend_of(audits: Sequence[AuditTables], most: int, filters: Filters) -> AuditTrend:
    """Return the findings of audits, and what became of them from each to the next of the same cluster."""
    return AuditTrend(
        tables=tuple(dict.fromkeys(str(one) for one in audits)),
        audit_count=len(audits),
        lines=tuple(_lines(audits, max(len(audits) - most, 0), filters)),
    )


def _lines(audits: Sequence[AuditTables], first: int, filters: Filters) -> Iterator[TrendLine]:
    for at in range(first, len(audits)):
        one = audits[at]
        one.check_parts()
        clusters = set(one.manifest.get("clusters", ()))
        earlier = last_alike(one, audits[:at])
        findings = one.column_table("findings", ["severity"], filters.of_findings())
        partitions = one.column_table("partitions", ["state"], filters.of_partitions())
        counts = counts_of(findings, "severity")
        if earlier is not None and at == first:  # all later ones have been checked as lines of their own
            earlier.check_parts()
        comparison = None if earlier is None else compare_audits(earlier, one, filters)
        yield TrendLine(
            audit_id=one.audit_id,
            audited_ms=one.audited_ns // 1_000_000,
            clusters=tuple(sorted(clusters - {""})),
            partition_count=partitions.num_rows,
            states=counts_of(partitions, "state"),
            findings_by_severity={own.value: counts[own.value] for own in Severity if counts.get(own.value)},
            compared_with=Absent.NOT_APPLICABLE if earlier is None else earlier.audit_id,
            findings_by_change={} if comparison is None else comparison.findings_by_change,
            gone_nodes=() if comparison is None else comparison.gone_nodes,
            problem_count=one.row_count("problems"),
            limits=() if comparison is None else comparison.limits,
        )
