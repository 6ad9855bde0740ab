"""An audit's tables -> its summary; reads columns, never whole tables."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd

from kforensics.damage import Absent
from kforensics.errors import EvidenceUnreadable
from kforensics.evidence.captured.columns import known_or
from kforensics.exits import ExitCode
from kforensics.findings.answers.model import STATES, State, worst_state
from kforensics.findings.concern import ConcernKind, JudgedPartition, concern_of
from kforensics.findings.fleet_summary import (
    AGES,
    BrokerHealth,
    DiskDamage,
    FleetSummary,
    LeaderShare,
    OpenFindings,
    PartitionLine,
)
from kforensics.findings.model import Severity
from kforensics.fleet.audit_tables import (
    AuditTables,
    Filters,
    all_of,
    counts_of,
    grouped,
    history_of,
    is_in,
    list_length,
    sum_of,
)
from kforensics.fleet.facts import unpacked
from kforensics.fleet.lifecycle import FindingState
from kforensics.fleet.rows import finding_of, input_of, problem_of
from kforensics.fleet.tables import Tables
from kforensics.reconcile.replicas.placement import leader_spread
from kforensics.reconcile.replicas.report import Verdict
from kforensics.units import Depth, TopicPartition

MOST_FINDINGS = 10_000
MOST_JUDGED = 10_000
MOST_PROBLEMS = 10_000
"""Findings and problems that a summary holds; the tables have all."""
MOST_AUDITS = 30
"""Audits of a history whose findings are counted."""

_RANK = {verdict.value: rank for rank, verdict in enumerate(Verdict)}
_GRAVE = [one.value for one, code in STATES["diff"].items() if code == ExitCode.FINDINGS]
_WITHOUT_REPLICAS = [one.value for one in (Verdict.NOT_ASSIGNED, Verdict.UNREADABLE, Verdict.DIFFERENT_TOPIC)]
_Key = tuple[str | None, str, int]
_NAMES = ("cluster_id", "topic", "partition")
_COUNTED = (
    *_NAMES,
    "state",
    "verdict",
    "verdict_rank",
    "leader",
    "leader_source",
    "missing",
    "excess",
    "is_offline",
    "is_under_replicated",
    "shares_rack",
    "unclean_elections",
    "lost_certain",
    "lost_possible",
)


def summarise(tables: AuditTables, *, most: int, filters: Filters | None = None) -> FleetSummary:
    """Return the summary of a finished audit."""
    filters = filters or Filters()
    nodes = sorted(tables.rows("nodes", where=filters.of_clusters()), key=lambda row: row["input"])
    parts = tables.column_table("partitions", _COUNTED, filters.of_partitions())
    replicas = tables.column_table(
        "replicas",
        ["input", "node_id", "log_dir", "state", "bytes", "segments", "damaged_places"],
        all_of(filters.of_subject(), is_in("node_id", filters.nodes)),
    )
    findings = tables.column_table(
        "findings", ["code", "severity", "severity_rank", "cluster_id", "node_id"], filters.of_findings()
    )
    problems = list(tables.rows("problems", where=filters.of_clusters()))
    distinct = {(row["input"], row["path"], row["message"]): row for row in problems}
    shown = sorted(distinct.values(), key=lambda row: (row["input"], row["path"], row["message"]))
    gravest = _gravest(tables, filters)
    places = {row["input"]: place for place, row in enumerate(nodes)}
    return FleetSummary(
        inputs=tuple(input_of(row) for row in nodes),
        clusters=tuple(sorted({row["cluster_id"] for row in nodes if row["cluster_id"]})),
        nodes=sum(bool(row["log_dirs"]) or row["kind"] == "unreadable" for row in nodes),
        replicas=replicas.num_rows,
        segments=sum_of(replicas, "segments"),
        bytes=sum_of(replicas, "bytes"),
        partition_count=parts.num_rows,
        deleted_partitions=len(deleted := _deleted(tables, filters)),
        verdicts=counts_of(parts, "verdict"),
        states=(states := _worst_first(counts_of(parts, "state"))),
        states_by_cluster=_states_by_cluster(parts),
        judged=_judged(tables, filters, states),
        quorums=tuple(_told_of(tables, "quorums", filters)),
        refused=tuple(
            one._replace(input=places[one.input]) for own in _told_of(tables, "refused", filters) for one in own
        ),
        brokers=node_health(nodes, replicas, findings, shown, depth=tables.depth),
        damage_by_disk=damage_by_disk(nodes, replicas),
        unclean_elections=sum_of(parts, "unclean_elections"),
        **set_aside(replicas),
        missing_replicas=list_length(parts, "missing"),
        excess_replicas=list_length(parts, "excess"),
        under_replicated=sum_of(parts, "is_under_replicated"),
        offline=sum_of(parts, "is_offline"),
        sharing_rack=sum_of(parts, "shares_rack"),
        leaders=leader_shares(nodes, parts),
        lost_certain=sum_of(parts, "lost_certain"),
        lost_possible=sum_of(parts, "lost_possible"),
        **_worst(tables, parts, deleted, most),
        findings=tuple(finding_of(row) for row in gravest),
        finding_ids=tuple(row["finding_id"] for row in gravest),
        finding_count=findings.num_rows,
        findings_by_severity={
            one.value: count for one in Severity if (count := counts_of(findings, "severity").get(one.value, 0))
        },
        findings_by_code=counts_of(findings, "code"),
        problems=tuple(problem_of(row) for row in shown[:MOST_PROBLEMS]),
        problem_count=len(shown),
        tables=str(tables),
        read_bytes=int(tables.manifest.get("read_bytes", 0)),
        reused_segments=int(tables.manifest.get("reused_segments", 0)),
        audit_id=tables.audit_id,
        audited_ms=tables.audited_ns // 1_000_000,
        counts=_counts(tables) if filters == Filters() else (),
        seconds=dict(tables.manifest.get("seconds", {})),
        findings_by_cluster=_by_cluster(findings, "severity"),
        depth=tables.depth,
        open_findings=tuple(_open_findings(tables, filters)),
    )


def _told_of(tables: AuditTables, name: str, filters: Filters) -> Iterator[Any]:
    """Yield what the manifest says of clusters."""
    for cluster, own in tables.manifest.get(name, {}).items():
        if not filters.clusters or cluster in filters.clusters:
            try:
                yield unpacked(own)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise EvidenceUnreadable(str(tables), "its manifest is of another version of kforensics") from error


def _open_findings(tables: AuditTables, filters: Filters) -> Iterator[OpenFindings]:
    now = tables.audited_ns // 1_000_000
    where = all_of(filters.of_findings(), pd.field("state") != FindingState.CLOSED.value)
    counts: Counter[tuple[str, str, str, str]] = Counter()
    oldest: dict[tuple[str, str, str, str], int] = {}
    for row in tables.rows(
        "changes", columns=["cluster_id", "severity", "severity_before", "state", "first_seen"], where=where
    ):
        seen = round(row["first_seen"].timestamp() * 1000)
        age = next(name for name, days in AGES.items() if now - seen < days * 86_400_000)
        key = (row["cluster_id"] or "", row["severity"] or row["severity_before"], row["state"], age)
        counts[key] += 1
        oldest[key] = min(seen, oldest.get(key, seen))
    for key, count in sorted(counts.items()):
        yield OpenFindings(*key, count, oldest[key])


def _worst_first(states: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(states.items(), key=lambda item: _place_of(item[0])))


def _place_of(state: str) -> int:
    return next(at for at, one in enumerate(STATES["diff"]) if one.value == state)


def _states_by_cluster(parts: pa.Table) -> dict[str, dict[str, int]]:
    ordered = {cluster: _worst_first(own) for cluster, own in _by_cluster(parts, "state").items()}
    return dict(sorted(ordered.items(), key=lambda item: (_place_of(next(iter(item[1]))), item[0])))


def _by_cluster(rows: pa.Table, column: str) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    for row in sorted(grouped(rows, ["cluster_id", column], []), key=lambda row: row["cluster_id"] or ""):
        out.setdefault(row["cluster_id"] or "", {})[row[column]] = row["count_all"]
    return out


def _counts(tables: AuditTables) -> tuple[tuple[int, int], ...]:
    clusters = tables.manifest.get("clusters")
    alike = [
        one
        for one in history_of(tables)
        if one.audited_ns <= tables.audited_ns and one.manifest.get("clusters") == clusters
    ]
    return tuple((one.audited_ns // 1_000_000, one.row_count("findings")) for one in alike[-MOST_AUDITS:])


def _judged(tables: Tables, filters: Filters, states: Mapping[str, int]) -> tuple[JudgedPartition, ...]:
    worst = worst_state(map(State, states))
    if worst is None:
        return ()
    where = all_of(filters.of_partitions(), pd.field("state") == worst.value)
    rows = tables.dataset("partitions").scanner(columns=["topic", "partition", "concerns"], filter=where)
    found = rows.head(MOST_JUDGED).to_pylist()
    return tuple(
        JudgedPartition(
            partition=TopicPartition(row["topic"], row["partition"]),
            concerns=tuple(map(concern_of, json.loads(row["concerns"] or "[]"))),
        )
        for row in sorted(found, key=lambda row: (row["topic"], row["partition"]))
    )


def _deleted(tables: Tables, filters: Filters) -> set[_Key]:
    """Return the partitions of deleted topics: of those without a judged replica the ones whose concerns say so."""
    where = all_of(
        filters.of_partitions(), pd.field("verdict").isin(_WITHOUT_REPLICAS), pd.field("concerns").is_valid()
    )
    rows = tables.rows("partitions", columns=[*_NAMES, "concerns"], where=where)
    return {
        _key(row)
        for row in rows
        if any(concern_of(one).kind is ConcernKind.DELETED for one in json.loads(row["concerns"]))
    }


def _key(row: Mapping[str, Any]) -> _Key:
    return row["cluster_id"], row["topic"], row["partition"]


def _worst(tables: Tables, parts: pa.Table, deleted: Collection[_Key], most: int) -> dict[str, Any]:
    # Replicas may agree on what is left: a loss is no smaller for that.
    is_unequal = (pd.field("verdict_rank") > _RANK[Verdict.CONSISTENT.value]) | pd.field("state").isin(_GRAVE)
    unequal = parts.filter(is_unequal)
    if deleted:
        names = (unequal[name].to_pylist() for name in _NAMES)
        unequal = unequal.filter(pa.array([key not in deleted for key in zip(*names, strict=True)], pa.bool_()))
    states = pa.array([one.value for one in STATES["diff"]])
    order = pc.sort_indices(
        unequal.append_column("order", pc.index_in(unequal["state"], value_set=states)),
        sort_keys=[
            ("order", "ascending"),
            ("verdict_rank", "descending"),
            ("lost_certain", "descending"),
            ("lost_possible", "descending"),
            ("topic", "ascending"),
            ("partition", "ascending"),
        ],
    )
    chosen = unequal.take(order[:most]).to_pylist()
    wanted = {_key(row): place for place, row in enumerate(chosen)}
    reports: dict[int, str] = {}
    if chosen:
        where = pd.field("topic").isin(sorted({row["topic"] for row in chosen})) & is_unequal
        for row in tables.rows("partitions", columns=[*_NAMES, "report"], where=where):
            place = wanted.get(_key(row))
            if place is not None:
                reports[place] = row["report"] or "{}"
    lines = tuple(
        PartitionLine(
            cluster_id=known_or(row["cluster_id"], Absent.UNKNOWN),
            topic=row["topic"],
            partition=row["partition"],
            verdict=row["verdict"],
            state=row["state"],
            lost_certain=row["lost_certain"],
            lost_possible=row["lost_possible"],
            report=reports.get(place, "{}"),
        )
        for place, row in enumerate(chosen)
    )
    return {"worst": lines, "not_consistent": unequal.num_rows}


def _gravest(tables: Tables, filters: Filters) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for batch in tables.dataset("findings").to_batches(filter=filters.of_findings()):
        found.extend(batch.to_pylist())
        if len(found) > 2 * MOST_FINDINGS:
            found = sorted(found, key=_gravity)[:MOST_FINDINGS]
    return sorted(found, key=_gravity)[:MOST_FINDINGS]


def _gravity(row: Mapping[str, Any]) -> tuple[int, str, int, int, str, str]:
    return (
        -row["severity_rank"],
        row["topic"] or "",
        -1 if row["partition"] is None else row["partition"],
        -1 if row["node_id"] is None else row["node_id"],
        row["code"],
        row["statement"],
    )


# ---------------------------------------------------------------- nodes, disks and placement


def node_health(
    nodes: Sequence[Mapping[str, Any]],
    replicas: pa.Table,
    findings: pa.Table,
    problems: Sequence[Mapping[str, Any]],
    *,
    depth: Depth = Depth.CONTENT,
) -> tuple[BrokerHealth, ...]:
    """Return each node and how it is: the worst of what could not be read, damage, and findings; at depth `tails` none is called sound."""
    by_input = {row["input"]: row for row in grouped(replicas, ["input"], ["bytes", "segments", "damaged_places"])}
    grave = findings.filter(pc.greater_equal(findings["severity_rank"], Severity.WARNING.rank))
    by_node = {
        (row["cluster_id"], row["node_id"]): row["count_all"] for row in grouped(grave, ["cluster_id", "node_id"], [])
    }
    only = _only_cluster(nodes)
    by_problem = Counter(row["input"] for row in problems)
    out = []
    for row in nodes:
        if not row["log_dirs"] and row["kind"] != "unreadable":
            continue
        own = by_input.get(row["input"], {})
        damaged = own.get("damaged_places_sum") or 0
        found = 0 if row["node_id"] is None else by_node.get((row["cluster_id"] or only, row["node_id"]), 0)
        unread = by_problem[row["input"]]
        # The evidence of a scan is of whole logs.
        best = "sound" if depth is Depth.CONTENT or row.get("is_evidence") else "ends-read"
        health = "unreadable" if unread else "damaged" if damaged else "findings" if found else best
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


def damage_by_disk(nodes: Sequence[Mapping[str, Any]], replicas: pa.Table) -> tuple[DiskDamage, ...]:
    """Return log directories with damaged places, the worst first."""
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
        for row in grouped(damaged, ["input", "node_id", "log_dir"], ["damaged_places"])
    ]
    return tuple(sorted(disks, key=lambda one: (-one.damaged_places, one.input, one.log_dir)))


def set_aside(replicas: pa.Table) -> dict[str, Any]:
    """Return number and bytes of stray directories and of those on the way to deletion."""
    by_state = {row["state"]: row for row in grouped(replicas, ["state"], ["bytes"])}
    out = {}
    for state in ("stray", "deleted"):
        out[f"{state}_replicas"] = by_state.get(state, {}).get("count_all", 0)
        out[f"{state}_bytes"] = by_state.get(state, {}).get("bytes_sum", 0)
    return out


def _only_cluster(nodes: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the cluster of nodes that do not know theirs: the only one that there is."""
    ids = {row["cluster_id"] for row in nodes if row["cluster_id"]}
    return next(iter(ids)) if len(ids) == 1 else None


def leader_shares(nodes: Sequence[Mapping[str, Any]], parts: pa.Table) -> tuple[LeaderShare, ...]:
    """Return how evenly the leaders that the metadata names are distributed over the nodes, by cluster."""
    recorded = parts.filter(pc.fill_null(pc.equal(parts["leader_source"], "metadata"), fill_value=False))
    counts: dict[str | None, list[int]] = {}
    for cluster, leader in zip(recorded["cluster_id"].to_pylist(), recorded["leader"].to_pylist(), strict=True):
        if leader is not None:
            counts.setdefault(cluster, []).append(leader)
    only = _only_cluster(nodes)
    brokers: dict[str | None, set[int]] = {}
    for row in nodes:
        if row["node_id"] is not None and row["log_dirs"] and row["kind"] != "controller":
            brokers.setdefault(row["cluster_id"] or only, set()).add(row["node_id"])
    out = []
    for cluster, leaders in sorted(counts.items(), key=lambda item: item[0] or ""):
        spread = leader_spread(leaders, brokers.get(cluster, ()))
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
