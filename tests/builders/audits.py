"""Finished audits, written as the stages of one write them, without Spark."""

from kforensics.findings.model import Severity
from kforensics.fleet.auditing import _cluster_of
from kforensics.fleet.keeping import Kept
from kforensics.fleet.lock import hold_lock
from kforensics.fleet.output import open_output
from kforensics.fleet.publishing import publish, working_chunks
from kforensics.fleet.rows import finding_rows
from kforensics.fleet.schemas import AUDIT_TABLES, TABLES
from kforensics.fleet.tables import Tables
from kforensics.reconcile.replicas.report import WORST, Verdict
from kforensics.units import Depth, OffsetRange, TopicPartition
from tests.builders.findings import finding

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"


def one_finding(code="KF201", severity=Severity.CRITICAL, broker=2, partition=3, offsets=(10, 20), statement="words"):
    """A finding about a partition of the topic orders."""
    return finding(
        code,
        severity=severity,
        statement=statement,
        topic_partition=TopicPartition("orders", partition),
        broker_id=broker,
        offsets=OffsetRange(*offsets),
    )


def write_audit(
    out,
    findings=(),
    *,
    audit_id=None,
    is_history=False,
    nodes=(1, 2),
    cluster=CLUSTER,
    problems=(),
    scope=None,
    depth=Depth.CONTENT,
    judged=None,
    also_in=(),
    log_dirs=1,
    held=None,
    held_by=None,
    assigned=None,
    retired=(),
):
    """Write an audit of some findings; every node, a number or one with its cluster, holds a replica of every partition that they are about.

    Args:
        judged: state and verdict of each partition, by number, where they don't agree.
        also_in: further clusters that have the same partitions.
        log_dirs: how many each node has.
        held: the partitions of which the nodes hold a directory, by number, where not all.
        held_by: the clusters of the nodes that hold them, where not all.
        assigned: the brokers of every partition.
        retired: the nodes that the inventory expects no longer, each with a cluster or none.
    """
    judged = judged or {}
    tables = Tables(out)
    members = [one if isinstance(one, tuple) else (one, cluster) for one in nodes]
    with hold_lock(tables):
        output = open_output(out, is_history=is_history, audit_id=audit_id)
        begun = output.begin(
            {
                "tool_version": "0",
                "started_ns": output.stamp.audited_ns,
                "sources": [],
                "clusters": sorted({own or "" for _, own in members}),
                "depth": depth.value,
                "scope": scope or {"topics": [], "partitions": []},
                "retired": retired,
                "read_bytes": 0,
                "reused_segments": 0,
            },
            TABLES,
        )
        named = {(one.topic, one.partition) for one in findings} | {("orders", number) for number in judged}
        partitions = sorted(named or {("orders", 3)})
        verdicts = {number: (state, Verdict(verdict)) for number, (state, verdict) in judged.items()}
        rows = {
            "nodes": [
                {
                    "input": at,
                    "path": f"/mnt/{number}",
                    "kind": "broker",
                    "node_id": number,
                    "cluster_id": own,
                    "log_dirs": [f"data-{one}" for one in range(log_dirs)],
                    "absent": [],
                }
                for at, (number, own) in enumerate(members)
            ],
            "replicas": [
                {"input": at, "node_id": number, "topic": topic, "partition": partition, "state": "live"}
                for at, (number, own) in enumerate(members)
                for topic, partition in partitions
                if (held is None or partition in held) and (held_by is None or own in held_by)
            ],
            "partitions": [
                {
                    "cluster_id": own,
                    "topic": topic,
                    "partition": partition,
                    "state": state,
                    "verdict": verdict.value,
                    "verdict_rank": WORST[verdict],
                    "assigned": assigned,
                }
                for own in (cluster, *also_in)
                for topic, partition in partitions
                for state, verdict in (verdicts.get(partition, ("agree", Verdict.CONSISTENT)),)
            ],
            "findings": finding_rows(findings, cluster, ()),
            "problems": list(problems),
        }
        for table, content in rows.items():
            output.work.write(table, f"run-{output.run:04d}-driver", content)
        cluster_of = _cluster_of([own for _, own in members], ())
        counts = {
            table: publish(
                tables,
                output.stamp,
                table,
                working_chunks(output.work, table, output.run, cluster_of),
                empty_for=cluster,
            )
            for table in AUDIT_TABLES
            if table != "changes"
        }
        return output.finish(begun, {table: len(content) for table, content in rows.items()}, counts, Kept(), {})
