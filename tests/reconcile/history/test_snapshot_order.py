"""Moments of a cluster: whether two are the same, also where a node is among them twice."""

from kforensics.damage import Absent
from kforensics.evidence.replica.progress import LogProgress, NodeProgress
from kforensics.reconcile.history.snapshot_order import SnapshotNodes, is_same
from kforensics.units import TopicPartition


def node(node_id, log_end_offset):
    log = LogProgress(
        leader_epoch=1, log_start_offset=0, log_end_offset=log_end_offset, newest_record_ms=1, length=log_end_offset
    )
    return NodeProgress(
        cluster_id=Absent.UNKNOWN,
        node_id=node_id,
        logs={TopicPartition("t", 0): log},
        newest_write_ms=0,
        oldest_write_ms=0,
    )


def test_a_node_that_is_there_twice_can_be_compared():
    twice = SnapshotNodes(nodes=(node(1, 10), node(1, 20)))

    assert is_same(twice, SnapshotNodes(nodes=(node(1, 20), node(1, 10))))
    assert not is_same(twice, SnapshotNodes(nodes=(node(1, 10), node(1, 21))))
    assert not is_same(twice, SnapshotNodes(nodes=(node(1, 10),)))
