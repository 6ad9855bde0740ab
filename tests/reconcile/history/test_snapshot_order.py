"""Moments of a cluster: whether two are the same, also where a node is among them twice."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kforensics.damage import Absent
from kforensics.evidence.replica.progress import LogProgress, NodeProgress
from kforensics.reconcile.history.snapshot_order import (
    SnapshotNodes,
    in_order,
    is_same,
    order_of,
    seems_later,
    went_back_alone,
)
from kforensics.units import TopicPartition


def moment(written_ms, **starts):
    """One node whose partitions begin where they are said to."""
    logs = {
        TopicPartition(name, 0): LogProgress(
            leader_epoch=1, log_start_offset=start, log_end_offset=9, newest_record_ms=Absent.UNKNOWN, length=9
        )
        for name, start in starts.items()
    }
    one = NodeProgress(
        cluster_id=Absent.UNKNOWN, node_id=1, logs=logs, newest_write_ms=written_ms, oldest_write_ms=written_ms
    )
    return SnapshotNodes(nodes=(one,))


moments = st.builds(
    lambda starts, written_ms: moment(written_ms, **starts),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
    st.integers(1, 99),
)


@given(
    st.lists(moments, max_size=6, unique_by=lambda one: one.written_ms).flatmap(
        lambda given: st.tuples(st.just(given), st.permutations(given))
    )
)
def test_the_order_does_not_depend_on_the_order_of_the_inputs(both):
    one, other = ([given[at] for at in in_order(given)] for given in both)

    assert one == other


def test_a_circle_of_proofs_is_no_order_and_a_proof_outside_of_it_is():
    circle = [moment(30, a=1, b=2), moment(20, b=1, c=2), moment(10, c=1, a=2)]
    assert [order_of(one, other).later for one, other in pairwise([*circle, circle[0]])] == [-1, -1, -1]

    assert in_order(circle) == [2, 1, 0]
    assert in_order([moment(5, d=1), *circle, moment(1, d=2)]) == [0, 4, 3, 2, 1]


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


def test_a_moment_seems_later_by_the_times_of_files_unless_they_are_those_of_copying():
    def written(end, at_ms, node_id=1):
        return SnapshotNodes(nodes=(replace(node(node_id, end), newest_write_ms=at_ms, oldest_write_ms=at_ms - 1),))

    assert seems_later(written(10, 5), written(20, 9))
    assert not seems_later(written(20, 9), written(10, 5))
    assert not seems_later(written(10, 9), written(20, 5))
    assert seems_later(written(20, 5), written(10, 9))
    assert not seems_later(written(20, 5), written(10, 9, node_id=2))
    assert not seems_later(written(20, 5), written(10, 90_000))


def test_a_moment_with_one_older_node_may_be_the_later_one():
    """Node 2 is in an earlier leader epoch there, and node 1 was written to later."""

    def mixed(end, epoch, at_ms, copied_ms=0):
        nodes = node(1, end), node(2, 10)
        logs = {TopicPartition("t", 0): replace(nodes[1].logs[TopicPartition("t", 0)], leader_epoch=epoch)}
        first = replace(nodes[0], newest_write_ms=at_ms + copied_ms, oldest_write_ms=(at_ms - 1) + copied_ms)
        return SnapshotNodes(nodes=(first, replace(nodes[1], logs=logs)))

    earlier, later = mixed(20, 2, 5), mixed(30, 1, 9)
    assert -1 == order_of(earlier, later).later
    assert seems_later(earlier, later)
    assert not seems_later(later, earlier)
    # The longer log that was there before a power loss was not written to later.
    assert not seems_later(earlier, mixed(30, 1, 4))
    assert not seems_later(earlier, mixed(10, 1, 9))
    assert not seems_later(earlier, mixed(30, 1, 9, copied_ms=90_000))


def test_a_metadata_log_that_ends_earlier_with_newer_records_is_the_later_one():
    def ends(end, newest_ms):
        log = LogProgress(
            leader_epoch=1, log_start_offset=0, log_end_offset=end, newest_record_ms=newest_ms, length=end
        )
        return SnapshotNodes(nodes=(replace(node(1, end), logs={TopicPartition("__cluster_metadata", 0): log}),))

    assert order_of(ends(94, 1_000), ends(87, 2_000)).later == 1
    assert order_of(ends(94, 2_000), ends(87, 1_000)).later == -1
    assert order_of(ends(94, 1_000), ends(87, Absent.UNKNOWN)).later == -1


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


def test_a_disk_that_was_put_back_while_the_controller_stood_still_orders_nothing():
    """Nodes 2 and 100 wrote nothing in between; node 1 can't have gone on without the controller."""

    def stopped(metadata_end, epoch, controller_end=122):
        nodes = []
        for node_id, end, its_epoch in ((1, metadata_end, epoch), (2, 121, 2), (100, controller_end, 3)):
            log = LogProgress(
                leader_epoch=its_epoch,
                log_start_offset=0,
                log_end_offset=end,
                newest_record_ms=Absent.UNKNOWN,
                length=9,
            )
            nodes.append(replace(node(node_id, 9), logs={TopicPartition("__cluster_metadata", 0): log}))
        return SnapshotNodes(nodes=tuple(nodes))

    whole, put_back = stopped(120, 2), stopped(53, 1)
    assert 0 == order_of(whole, put_back).later == order_of(put_back, whole).later
    assert [1, 0] == in_order([whole, put_back])
    assert [0, 1] == in_order([put_back, whole])
    assert -1 == order_of(whole, stopped(53, 1, controller_end=60)).later


def test_a_minority_of_nodes_that_differ_may_have_got_other_disks():
    def moment_of(*ends):
        return SnapshotNodes(nodes=tuple(node(at, end) for at, end in enumerate(ends, start=1)))

    assert went_back_alone(moment_of(5, 9, 9), moment_of(9, 9, 9))
    assert went_back_alone(moment_of(5, 9), moment_of(9, 9))
    assert not went_back_alone(moment_of(5, 5, 9), moment_of(9, 9, 9))
    assert not went_back_alone(moment_of(9, 9), moment_of(9, 9))
    assert not went_back_alone(moment_of(5), moment_of(9))
