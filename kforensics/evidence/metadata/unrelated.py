"""Metadata logs of two clusters that carry one cluster id, as those do that were formatted by the command of one tutorial.

A quorum has one log, so two logs that have no batch in common are not replicas of each other. A quorum whose controllers were formatted anew begins another
log for the same brokers, too: so something must show besides that these are other nodes.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from kforensics.damage import Absent
from kforensics.errors import EvidenceUnreadable, InputsRefused
from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.formats.checkpoint.properties import MetaProperties


def refuse_two_clusters(histories: Sequence[MetadataHistory], inputs: Inputs) -> None:
    """Stop where the metadata logs show two clusters.

    Raises:
        InputsRefused: some of them are of another cluster than the others, though of the same cluster id.
    """
    groups: list[list[MetadataHistory]] = []
    for one in histories:
        if not len(one.batches):
            continue
        mine = [group for group in groups if any(_may_be_one_log(one, other) for other in group)]
        groups = [group for group in groups if not any(group is other for other in mine)]
        groups.append([*(each for group in mine for each in group), one])
    for own, others in combinations(groups, 2):
        if _are_other_nodes(own, others, inputs):
            ids = {one.cluster_id for one in inputs.described if not isinstance(one.cluster_id, Absent)}
            named = f" that carry one cluster id ({ids.pop()})" if len(ids) == 1 else ""
            words = "its metadata log has nothing in common with that of {}"
            raise InputsRefused(
                f"the inputs are of two clusters{named}: their metadata logs differ from the first batch on, and each names other nodes",
                tuple(
                    EvidenceUnreadable(path, words.format(_paths(theirs, inputs)[0]))
                    for ours, theirs in ((own, others), (others, own))
                    for path in _paths(ours, inputs)
                ),
                ("name the directories of one of them",),
            )


def _paths(group: Iterable[MetadataHistory], inputs: Inputs) -> list[str]:
    return list(dict.fromkeys(inputs.described[one.input].path for one in group))


def _may_be_one_log(one: MetadataHistory, other: MetadataHistory) -> bool:
    """Whether two logs have a batch in common, or no offset: then nothing shows that they have not."""
    start = max(one.start_offset, other.start_offset)
    rows = [log.batches[log.batches["base_offset"] >= start] for log in (one, other)]
    shared, mine, its = np.intersect1d(rows[0]["base_offset"], rows[1]["base_offset"], return_indices=True)
    if not len(shared):
        return True
    left, right = rows[0][mine], rows[1][its]
    return bool(
        ((left["crc"] == right["crc"]) & (left["partition_leader_epoch"] == right["partition_leader_epoch"])).any()
    )


def _are_other_nodes(own: Sequence[MetadataHistory], others: Sequence[MetadataHistory], inputs: Inputs) -> bool:
    """Whether the logs show that the nodes of the other are none of their own, and nothing shows that one of them is."""
    if _nodes(own) & _nodes(others):
        return False  # of two moments of one node another rule speaks
    if _topics(own) & _topics(others):
        return False
    known, theirs = _registered(own, others, inputs), _registered(others, own, inputs)
    if any((*known, *theirs)):
        return False
    # A disk alone, or a quorum, that was formatted anew is another by one of the logs only.
    if known and theirs:
        return True
    return _brokers_differ(own, others)


def _nodes(group: Iterable[MetadataHistory]) -> set[int]:
    return {one.node_id for one in group if isinstance(one.node_id, int)}


def _topics(group: Iterable[MetadataHistory]) -> set[str]:
    return {topic_id for one in group for topic_id in one.topics}


def _registered(group: Sequence[MetadataHistory], others: Sequence[MetadataHistory], inputs: Inputs) -> list[bool]:
    """Return, for each node of the others that these logs register with directory ids (3.7 and later), whether it is that node by its own."""
    found = []
    for other in others:
        here = {
            one.meta.directory_id
            for one in inputs.found[other.input].log_dirs
            if isinstance(one.meta, MetaProperties) and not isinstance(one.meta.directory_id, Absent)
        }
        node = other.node_id
        named = {
            directory
            for one in group
            for state in (one.brokers.get(node, ()) if isinstance(node, int) else ())
            for directory in state.log_dirs
        }
        if here and named:
            found.append(bool(here & named))
    return found


def _brokers_differ(own: Sequence[MetadataHistory], others: Sequence[MetadataHistory]) -> bool:
    """Whether both logs register brokers that have neither an incarnation, a directory nor an address in common, and know other topics or other voters."""
    mine, its = _marks(own), _marks(others)
    if not mine or not its or any(mine[node] & its[node] for node in mine.keys() & its.keys()):
        return False
    voters, theirs = ({voter for one in group for voter in one.current_voters} for group in (own, others))
    return not voters & theirs or bool(_topics(own) and _topics(others))


def _marks(group: Iterable[MetadataHistory]) -> dict[int, set[str]]:
    """Return incarnations, directory ids and addresses of each broker that the logs register."""
    found: dict[int, set[str]] = {}
    for one in group:
        for node, states in one.brokers.items():
            for state in states:
                found.setdefault(node, set()).update((str(state.incarnation_id), *state.end_points, *state.log_dirs))
    return found
