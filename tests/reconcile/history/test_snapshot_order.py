"""Moments of a cluster: whether two are the same, also where a node is among them twice."""

from dataclasses import replace

from kforensics.damage import Absent
from kforensics.evidence.replica.progress import LogProgress, NodeProgress
from kforensics.reconcile.history.snapshot_order import SnapshotNodes, is_same, order_of
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


def test_a_disk_that_was_put_back_has_one_vote_however_many_logs_it_holds():
    """Node 2 went back in three logs, nodes 1 and 3 went on in one each."""
    logs = {
        epoch: LogProgress(leader_epoch=epoch, log_start_offset=0, log_end_offset=9, newest_record_ms=epoch, length=9)
        for epoch in (1, 2)
    }
    earlier = [{1: 1}, {1: 2, 2: 2, 3: 2}, {1: 1}]
    later = [{1: 2}, {1: 1, 2: 1, 3: 1}, {1: 2}]
    moments = [
        SnapshotNodes(
            nodes=tuple(
                replace(node(number, 9), logs={TopicPartition("t", at): logs[epoch] for at, epoch in held.items()})
                for number, held in enumerate(moment, start=1)
            )
        )
        for moment in (earlier, later)
    ]

    assert 0 == order_of(moments[0], moments[1]).later
    assert 1 == order_of(*(SnapshotNodes(nodes=one.nodes[::2]) for one in moments)).later
