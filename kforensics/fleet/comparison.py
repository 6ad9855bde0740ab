"""Two audits -> what changed between them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kforensics.damage import Absent
from kforensics.evidence.captured.rows import known_or
from kforensics.findings.fleet_summary import AuditComparison, FindingKey, VerdictChange
from kforensics.fleet.audit_tables import open_audit
from kforensics.fleet.tables import Tables
from kforensics.reconcile.replicas.partition import Verdict

_RANK = {verdict.value: rank for rank, verdict in enumerate(Verdict)}


def compare_audits(earlier: Path, later: Path) -> AuditComparison:
    """The new and the resolved findings, and the changed verdicts, between two audits."""
    before = open_audit(earlier)
    after = open_audit(later)
    found_before, found_after = _finding_keys(before), _finding_keys(after)
    verdicts_before, verdicts_after = _verdicts(before), _verdicts(after)
    changes = [
        VerdictChange(
            topic=key[1],
            partition=key[2],
            before=known_or(verdicts_before.get(key), Absent.NOT_APPLICABLE),
            after=known_or(verdicts_after.get(key), Absent.NOT_APPLICABLE),
        )
        for key in sorted({*verdicts_before, *verdicts_after}, key=lambda key: (key[0] or "", key[1], key[2]))
        if verdicts_before.get(key) != verdicts_after.get(key)
    ]
    nodes_before, nodes_after = ({_node_name(row) for row in one.rows("nodes")} for one in (before, after))
    return AuditComparison(
        earlier=str(earlier),
        later=str(later),
        new_findings=_only(found_after, found_before),
        gone_findings=_only(found_before, found_after),
        changes=tuple(sorted(changes, key=lambda one: -_RANK.get(str(one.after), -1))),
        new_nodes=tuple(sorted(nodes_after - nodes_before)),
        gone_nodes=tuple(sorted(nodes_before - nodes_after)),
        problem_count=after.dataset("problems").count_rows(),
    )


_Key = tuple[str, str | None, int | None, int | None]


def _finding_keys(tables: Tables) -> dict[_Key, list[str]]:
    out: dict[_Key, list[str]] = {}
    for row in tables.rows("findings", columns=["code", "topic", "partition", "node_id", "statement"]):
        out.setdefault((row["code"], row["topic"], row["partition"], row["node_id"]), []).append(row["statement"])
    return out


def _only(here: Mapping[_Key, list[str]], there: Mapping[_Key, list[str]]) -> tuple[FindingKey, ...]:
    return tuple(
        FindingKey(
            code=key[0],
            topic=known_or(key[1], Absent.NOT_APPLICABLE),
            partition=known_or(key[2], Absent.NOT_APPLICABLE),
            broker_id=known_or(key[3], Absent.NOT_APPLICABLE),
            statement=statement,
        )
        for key in sorted(here, key=str)
        for statement in sorted(here[key])[len(there.get(key, ())) :]
    )


def _verdicts(tables: Tables) -> dict[tuple[str | None, str, int], str]:
    rows = tables.rows("partitions", columns=["cluster_id", "topic", "partition", "verdict"])
    return {(row["cluster_id"], row["topic"], row["partition"]): row["verdict"] for row in rows}


def _node_name(row: Mapping[str, Any]) -> str:
    return row["path"] if row["node_id"] is None else f"node {row['node_id']}"
