"""Replicas that are not served any more: those that a reassignment removes from the nodes that hold them, and those that lost their topic id."""

from collections.abc import Sequence

from kforensics.commands.predicting.node_starts import NodeStarts
from kforensics.commands.predicting.surroundings import Surroundings
from kforensics.damage import Absent
from kforensics.protocol.loading.node import Fate
from kforensics.reconcile.logs.predicted_load import LeavingReplica


def leaving_replicas(started: Sequence[NodeStarts], surroundings: Surroundings) -> tuple[LeavingReplica, ...]:
    """Return the replicas that are assigned to their nodes, and that an unfinished reassignment removes (`removing_replicas` of PartitionRecord)."""
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


def unserved_strays(started: Sequence[NodeStarts], surroundings: Surroundings) -> frozenset[tuple[int, str]]:
    """Return input and path of directories without a topic id that become strays of brokers that their partition is assigned to, where all of these are given and none keeps a log of it."""
    state = surroundings.state
    if state is None or not any(node.without_topic_id for node in started):
        return frozenset()
    assigned = {(one.topic, one.partition): set(one.replicas) for one in state.partitions.values()}
    strays: dict[tuple[str, int], list[tuple[int, str]]] = {}
    holders: dict[tuple[str, int], set[int]] = {}
    kept: set[tuple[str, int]] = set()
    for node in started:
        for log in node.logs:
            if (
                isinstance(log.topic, Absent)
                or isinstance(log.partition, Absent)
                or isinstance(node.node.node_id, Absent)
            ):
                continue
            name, place = (log.topic, log.partition), (log.input, log.path)
            if log.fate is Fate.STRAY and place in node.without_topic_id:
                strays.setdefault(name, []).append(place)
                holders.setdefault(name, set()).add(node.node.node_id)
            elif log.fate is not Fate.DELETED and not log.path.endswith(("-future", "-stray")):
                kept.add(name)
    return frozenset(
        place
        for name, places in strays.items()
        if name not in kept and name in assigned and assigned[name] <= holders[name]
        for place in places
    )
