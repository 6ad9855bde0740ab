"""Nodes, disks and placement out of an audit's tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kforensics.damage import Absent
from kforensics.evidence.captured.columns import known_or
from kforensics.findings.fleet_summary import BrokerHealth, DiskDamage, LeaderShare
from kforensics.findings.model import Severity
from kforensics.fleet.audit_tables import grouped
from kforensics.reconcile.replicas.placement import follows_assignment, leader_spread
from kforensics.units import Depth


def node_health(
    nodes: Sequence[Mapping[str, Any]],
    replicas: pa.Table,
    findings: pa.Table,
    problems: Sequence[Mapping[str, Any]],
    *,
    depth: Depth = Depth.CONTENT,
) -> tuple[BrokerHealth, ...]:
    """Return each node and how it is: the worst of what could not be read, damage, and findings.

    Args:
        depth: of the audit; where only ends of logs were read, no node is called sound.
    """
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


def _brokers_by_cluster(nodes: Sequence[Mapping[str, Any]]) -> dict[str | None, dict[int, str | None]]:
    """Brokers and their racks, by cluster."""
    only = _only_cluster(nodes)
    out: dict[str | None, dict[int, str | None]] = {}
    for row in nodes:
        if row["node_id"] is not None and row["log_dirs"] and row["kind"] != "controller":
            out.setdefault(row["cluster_id"] or only, {})[row["node_id"]] = row["rack"]
    return out


def leader_shares(nodes: Sequence[Mapping[str, Any]], parts: pa.Table) -> tuple[LeaderShare, ...]:
    """Return how evenly leaders are distributed over the nodes, by cluster.

    Args:
        parts: the table `partitions`, of which those count whose leader the metadata names.
    """
    recorded = parts.filter(pc.fill_null(pc.equal(parts["leader_source"], "metadata"), fill_value=False))
    counts: dict[str | None, list[int]] = {}
    for cluster, leader in zip(recorded["cluster_id"].to_pylist(), recorded["leader"].to_pylist(), strict=True):
        if leader is not None:
            counts.setdefault(cluster, []).append(leader)
    brokers = _brokers_by_cluster(nodes)
    out = []
    for cluster, leaders in sorted(counts.items(), key=lambda item: item[0] or ""):
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


def layout(nodes: Sequence[Mapping[str, Any]], parts: pa.Table) -> dict[str, Any]:
    """Return how many topics are placed by Kafka's rule of assignment, and how many were checked for it.

    Args:
        parts: the table `partitions`; topics of one partition, or with a gap in their numbers, are not checked.
    """
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
