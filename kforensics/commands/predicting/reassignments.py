"""Replicas that a reassignment removes from the nodes that hold them."""

from collections.abc import Sequence

from kforensics.commands.predicting.node_starts import NodeStarts
from kforensics.commands.predicting.surroundings import Surroundings
from kforensics.damage import Absent
from kforensics.protocol.loading.node import Fate
from kforensics.reconcile.logs.predicted_load import LeavingReplica


def leaving_replicas(started: Sequence[NodeStarts], surroundings: Surroundings) -> tuple[LeavingReplica, ...]:
    """Return the replicas that are assigned to their nodes, and that an unfinished reassignment removes (`removing_replicas` of PartitionRecord).

    Args:
        started: the starts of all nodes.
        surroundings: with the newest metadata.
    """
    state = surroundings.state
    if state is None:
        return ()
    moving = {(one.topic, one.partition): one for one in state.partitions.values() if one.removing_replicas}
    found = []
    for node in started if moving else ():
        for log in node.logs:
            if isinstance(log.topic, Absent) or isinstance(log.partition, Absent):
                continue
            one = moving.get((log.topic, log.partition))
            is_removed = one is not None and node.node.node_id in one.removing_replicas
            if one is not None and is_removed and log.start == 1 and log.fate is Fate.KEPT:
                found.append(LeavingReplica(log.node, log.path, one.when.offset, one.when.citation))
    return tuple(found)
