"""An audit's tables -> its summary, and two audits -> what changed; reads columns, never whole tables."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd

from kforensics.damage import Absent
from kforensics.errors import EvidenceUnreadable
from kforensics.findings.model import Severity
from kforensics.fleet.rows import finding_of, input_of, known_or, problem_of
from kforensics.fleet.tables import AUDIT_MANIFEST, Tables
from kforensics.pipeline.fleet_summary import (
    AuditComparison,
    BrokerHealth,
    DiskDamage,
    FindingKey,
    FleetSummary,
    LeaderShare,
    PartitionLine,
    VerdictChange,
)
from kforensics.reconcile.partition import Verdict
from kforensics.reconcile.placement import follows_assignment, leader_spread

MOST_FINDINGS = 10_000
MOST_PROBLEMS = 10_000
"""Findings and problems that a summary holds; the tables have all."""

_RANK = {verdict.value: rank for rank, verdict in enumerate(Verdict)}
_COUNTED = (
    "cluster_id",
    "topic",
    "partition",
    "verdict",
    "verdict_rank",
    "leader",
    "leader_source",
    "assigned",
    "missing",
    "excess",
    "is_offline",
    "is_under_replicated",
    "shares_rack",
    "unclean_elections",
    "lost_certain",
    "lost_possible",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which partitions, nodes and findings a report is about; empty means all."""

    topics: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    nodes: frozenset[int] = frozenset()
    verdicts: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    least_severity: Severity = Severity.NOTE

    def of_partitions(self) -> Any:
        """As a condition on the table of partitions."""
        return _all(
            _is_in("topic", self.topics), _is_in("partition", self.partitions), _is_in("verdict", self.verdicts)
        )

    def of_findings(self) -> Any:
        """As a condition on the table of findings."""
        return _all(
            _is_in("topic", self.topics),
            _is_in("partition", self.partitions),
            _is_in("node_id", self.nodes),
            _is_in("code", self.codes),
            pd.field("severity_rank") >= self.least_severity.rank,
        )


def _is_in(column: str, values: Iterable[Any]) -> Any:
    wanted = sorted(values)
    return pd.field(column).isin(wanted) if wanted else None


def _all(*conditions: Any) -> Any:
    found = None
    for one in conditions:
        if one is not None:
            found = one if found is None else found & one
    return found


def open_audit(location: Path) -> tuple[Tables, Mapping[str, Any]]:
    """The tables of a finished audit and its manifest.

    Raises:
        EvidenceUnreadable: there are none, or the audit did not finish.
    """
    tables = Tables(location)
    manifest = tables.read_manifest(AUDIT_MANIFEST)
    if manifest is None:
        raise EvidenceUnreadable(str(location), "no tables of an audit")
    if not manifest.get("is_complete"):
        causes = ("it was interrupted: the same `fleet audit` with the same --out goes on where it stopped",)
        raise EvidenceUnreadable(str(location), "the audit did not finish", causes)
    return tables, manifest


def summarise(location: Path, *, most: int, filters: Filters | None = None) -> FleetSummary:
    """The summary of a finished audit.

    Args:
        location: of its tables.
        most: partitions that are shown.
        filters: which partitions and findings it is about.
    """
    filters = filters or Filters()
    tables, manifest = open_audit(location)
    nodes = sorted(tables.rows("nodes"), key=lambda row: row["input"])
    parts = tables.column_table("partitions", _COUNTED, filters.of_partitions())
    replicas = tables.column_table(
        "replicas",
        ["input", "node_id", "log_dir", "state", "bytes", "segments", "damaged_places"],
        _all(
            _is_in("topic", filters.topics), _is_in("partition", filters.partitions), _is_in("node_id", filters.nodes)
        ),
    )
    findings = tables.column_table("findings", ["code", "severity", "severity_rank", "node_id"], filters.of_findings())
    problems = list(tables.rows("problems"))
    distinct = {(row["input"], row["path"], row["message"]): row for row in problems}
    shown = sorted(distinct.values(), key=lambda row: (row["input"], row["path"], row["message"]))
    return FleetSummary(
        inputs=tuple(input_of(row) for row in nodes),
        clusters=tuple(sorted({row["cluster_id"] for row in nodes if row["cluster_id"]})),
        nodes=sum(bool(row["log_dirs"]) or row["kind"] == "unreadable" for row in nodes),
        replicas=replicas.num_rows,
        segments=_sum(replicas, "segments"),
        bytes=_sum(replicas, "bytes"),
        partition_count=parts.num_rows,
        verdicts=_counts(parts, "verdict"),
        brokers=_health(nodes, replicas, findings, shown),
        damage_by_disk=_damage_by_disk(nodes, replicas),
        unclean_elections=_sum(parts, "unclean_elections"),
        **_set_aside(replicas),
        missing_replicas=_listed(parts, "missing"),
        excess_replicas=_listed(parts, "excess"),
        under_replicated=_sum(parts, "is_under_replicated"),
        offline=_sum(parts, "is_offline"),
        sharing_rack=_sum(parts, "shares_rack"),
        leaders=_leaders(nodes, parts),
        **_layout(nodes, parts),
        lost_certain=_sum(parts, "lost_certain"),
        lost_possible=_sum(parts, "lost_possible"),
        **_worst(tables, parts, most),
        findings=_gravest(tables, filters),
        finding_count=findings.num_rows,
        findings_by_severity={
            one.value: count for one in Severity if (count := _counts(findings, "severity").get(one.value, 0))
        },
        findings_by_code=_counts(findings, "code"),
        problems=tuple(problem_of(row) for row in shown[:MOST_PROBLEMS]),
        problem_count=len(shown),
        tables=str(location),
        read_bytes=int(manifest.get("read_bytes", 0)),
        reused_segments=int(manifest.get("reused_segments", 0)),
    )


def _sum(table: pa.Table, column: str) -> int:
    return int(pc.sum(pc.cast(table[column], pa.int64())).as_py() or 0)


def _listed(table: pa.Table, column: str) -> int:
    return int(pc.sum(pc.list_value_length(table[column])).as_py() or 0)


def _counts(table: pa.Table, column: str) -> dict[str, int]:
    return dict(sorted((one["values"], one["counts"]) for one in pc.value_counts(table[column]).to_pylist()))


def _grouped(table: pa.Table, keys: Sequence[str], sums: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        table.group_by(list(keys)).aggregate([*((one, "sum") for one in sums), ([], "count_all")]).to_pylist()
    )
    return rows


def _health(
    nodes: Sequence[Mapping[str, Any]], replicas: pa.Table, findings: pa.Table, problems: Sequence[Mapping[str, Any]]
) -> tuple[BrokerHealth, ...]:
    by_input = {row["input"]: row for row in _grouped(replicas, ["input"], ["bytes", "segments", "damaged_places"])}
    grave = findings.filter(pc.greater_equal(findings["severity_rank"], Severity.WARNING.rank))
    by_node = {row["node_id"]: row["count_all"] for row in _grouped(grave, ["node_id"], [])}
    by_problem = Counter(row["input"] for row in problems)
    out = []
    for row in nodes:
        if not row["log_dirs"] and row["kind"] != "unreadable":
            continue
        own = by_input.get(row["input"], {})
        damaged = own.get("damaged_places_sum") or 0
        found = by_node.get(row["node_id"], 0) if row["node_id"] is not None else 0
        unread = by_problem[row["input"]]
        health = "unreadable" if unread else "damaged" if damaged else "findings" if found else "sound"
        out.append(
            BrokerHealth(
                input=row["input"],
                node_id=known_or(row["node_id"], Absent.UNKNOWN),
                path=row["path"],
                kind=row["kind"],
                rack=known_or(row["rack"], Absent.UNKNOWN),
                health=health,
                replicas=own.get("count_all") or 0,
                segments=own.get("segments_sum") or 0,
                bytes=own.get("bytes_sum") or 0,
                damaged_places=damaged,
                grave_findings=found,
                problems=unread,
            )
        )
    return tuple(out)


def _damage_by_disk(nodes: Sequence[Mapping[str, Any]], replicas: pa.Table) -> tuple[DiskDamage, ...]:
    damaged = replicas.filter(pc.greater(replicas["damaged_places"], 0))
    paths = {row["input"]: row["path"] for row in nodes}
    disks = [
        DiskDamage(
            input=row["input"],
            node_id=known_or(row["node_id"], Absent.UNKNOWN),
            path=paths.get(row["input"], ""),
            log_dir=row["log_dir"],
            damaged_places=row["damaged_places_sum"],
            replicas=row["count_all"],
        )
        for row in _grouped(damaged, ["input", "node_id", "log_dir"], ["damaged_places"])
    ]
    return tuple(sorted(disks, key=lambda one: (-one.damaged_places, one.input, one.log_dir)))


def _set_aside(replicas: pa.Table) -> dict[str, Any]:
    by_state = {row["state"]: row for row in _grouped(replicas, ["state"], ["bytes"])}
    out = {}
    for state in ("stray", "deleted"):
        out[f"{state}_replicas"] = by_state.get(state, {}).get("count_all", 0)
        out[f"{state}_bytes"] = by_state.get(state, {}).get("bytes_sum", 0)
    return out


def _brokers_by_cluster(nodes: Sequence[Mapping[str, Any]]) -> dict[str | None, dict[int, str | None]]:
    """Brokers and their racks; where there is one cluster only, nodes that do not know it belong to it."""
    ids = {row["cluster_id"] for row in nodes if row["cluster_id"]}
    only = next(iter(ids)) if len(ids) == 1 else None
    out: dict[str | None, dict[int, str | None]] = {}
    for row in nodes:
        if row["node_id"] is not None and row["log_dirs"] and row["kind"] != "controller":
            out.setdefault(row["cluster_id"] or only, {})[row["node_id"]] = row["rack"]
    return out


def _leaders(nodes: Sequence[Mapping[str, Any]], parts: pa.Table) -> tuple[LeaderShare, ...]:
    recorded = parts.filter(pc.fill_null(pc.equal(parts["leader_source"], "metadata"), fill_value=False))
    led: dict[str | None, list[int]] = {}
    for cluster, leader in zip(recorded["cluster_id"].to_pylist(), recorded["leader"].to_pylist(), strict=True):
        if leader is not None:
            led.setdefault(cluster, []).append(leader)
    brokers = _brokers_by_cluster(nodes)
    out = []
    for cluster, leaders in sorted(led.items(), key=lambda item: item[0] or ""):
        spread = leader_spread(leaders, brokers.get(cluster, {}))
        busiest = max(spread.by_broker, key=lambda one: (spread.by_broker[one], -one))
        out.append(
            LeaderShare(
                cluster_id=known_or(cluster, Absent.UNKNOWN),
                most=spread.most,
                fewest=spread.fewest,
                mean=spread.mean,
                busiest=busiest,
            )
        )
    return tuple(out)


def _layout(nodes: Sequence[Mapping[str, Any]], parts: pa.Table) -> dict[str, Any]:
    brokers = _brokers_by_cluster(nodes)
    topics: dict[tuple[str | None, str], dict[int, list[int]]] = {}
    columns = [parts[name].to_pylist() for name in ("cluster_id", "topic", "partition", "assigned")]
    for cluster, topic, partition, assigned in zip(*columns, strict=True):
        if assigned:
            topics.setdefault((cluster, topic), {})[partition] = assigned
    checked = by_rule = 0
    for (cluster, _), found in topics.items():
        here = brokers.get(cluster, {})
        everyone = {broker for assigned in found.values() for broker in assigned} | set(here)
        if set(found) != set(range(len(found))) or len(found) < 2:
            continue
        known = {broker: rack for broker, rack in here.items() if rack is not None}
        racks = known if set(known) == everyone and len(set(known.values())) > 1 else None
        checked += 1
        by_rule += follows_assignment([found[number] for number in range(len(found))], everyone, racks)
    return {"topics_checked": checked, "topics_by_rule": by_rule}


def _worst(tables: Tables, parts: pa.Table, most: int) -> dict[str, Any]:
    unequal = parts.filter(pc.greater(parts["verdict_rank"], _RANK[Verdict.CONSISTENT.value]))
    order = pc.sort_indices(
        unequal,
        sort_keys=[
            ("verdict_rank", "descending"),
            ("lost_certain", "descending"),
            ("lost_possible", "descending"),
            ("topic", "ascending"),
            ("partition", "ascending"),
        ],
    )
    chosen = unequal.take(order[:most]).to_pylist()
    wanted = {(row["cluster_id"], row["topic"], row["partition"]): place for place, row in enumerate(chosen)}
    reports: dict[int, str] = {}
    if chosen:
        where = pd.field("topic").isin(sorted({row["topic"] for row in chosen})) & (
            pd.field("verdict_rank") > _RANK[Verdict.CONSISTENT.value]
        )
        for row in tables.rows("partitions", columns=["cluster_id", "topic", "partition", "report"], where=where):
            place = wanted.get((row["cluster_id"], row["topic"], row["partition"]))
            if place is not None:
                reports[place] = row["report"] or "{}"
    lines = tuple(
        PartitionLine(
            cluster_id=known_or(row["cluster_id"], Absent.UNKNOWN),
            topic=row["topic"],
            partition=row["partition"],
            verdict=row["verdict"],
            lost_certain=row["lost_certain"],
            lost_possible=row["lost_possible"],
            report=reports.get(place, "{}"),
        )
        for place, row in enumerate(chosen)
    )
    return {"worst": lines, "not_consistent": unequal.num_rows}


def _gravest(tables: Tables, filters: Filters) -> tuple[Any, ...]:
    found: list[Mapping[str, Any]] = []
    for batch in tables.dataset("findings").to_batches(filter=filters.of_findings()):
        found.extend(batch.to_pylist())
        if len(found) > 2 * MOST_FINDINGS:
            found = sorted(found, key=_gravity)[:MOST_FINDINGS]
    return tuple(finding_of(row) for row in sorted(found, key=_gravity)[:MOST_FINDINGS])


def _gravity(row: Mapping[str, Any]) -> tuple[int, str, int, int, str, str]:
    return (
        -row["severity_rank"],
        row["topic"] or "",
        -1 if row["partition"] is None else row["partition"],
        -1 if row["node_id"] is None else row["node_id"],
        row["code"],
        row["statement"],
    )


# ---------------------------------------------------------------- two audits


def compare_audits(earlier: Path, later: Path) -> AuditComparison:
    """What is new and what is gone between two audits."""
    before, _ = open_audit(earlier)
    after, _ = open_audit(later)
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
