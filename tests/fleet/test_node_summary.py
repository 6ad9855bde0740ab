"""Nodes of several clusters in one audit."""

import pyarrow as pa

from kforensics.fleet.summary import node_health


def test_findings_of_a_node_are_those_of_its_own_cluster():
    nodes = [
        {"input": at, "node_id": 1, "cluster_id": cluster, "path": f"/mnt/{at}", "kind": "broker", "rack": None}
        | {"log_dirs": ["."]}
        for at, cluster in enumerate(["a", "b"])
    ]
    replicas = pa.table({"input": [0, 1], "bytes": [5, 6], "segments": [1, 1], "damaged_places": [0, 0]})
    findings = pa.table(
        {"cluster_id": ["a", "a", None], "node_id": [1, 1, 1], "severity_rank": [3, 2, 3]},
        schema=pa.schema([("cluster_id", pa.string()), ("node_id", pa.int32()), ("severity_rank", pa.int16())]),
    )

    health = node_health(nodes, replicas, findings, [])

    assert [(2, "findings"), (0, "sound")] == [(one.grave_findings, one.health) for one in health]
    alone = node_health(
        [nodes[0] | {"cluster_id": None}, nodes[0] | {"input": 1, "node_id": 2}], replicas, findings, []
    )
    assert [2, 0] == [one.grave_findings for one in alone]
