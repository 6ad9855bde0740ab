"""Metadata logs compared with each other: one cluster or two, and where their copies part."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from kforensics.damage import Absent
from kforensics.errors import EvidenceUnreadable, InputsRefused
from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.state import newest_log, reached_by_majority
from kforensics.formats.checkpoint.properties import MetaProperties
from kforensics.formats.log.batch_table import BatchTable

_COMPARED = ("base_offset", "last_offset", "partition_leader_epoch", "crc")


class MetadataTail(NamedTuple):
    """Records that a node holds and the newest log does not hold, or holds otherwise."""

    first_offset: int
    last_offset: int
    raft_epoch: int
    """The leader epoch of the first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLog:
    """One node's metadata log against the newest one."""

    history: MetadataHistory
    common_end_offset: int
    """The offset up to which both hold the same."""
    behind: int
    """Offsets of the newest log that this one lacks."""
    tail: MetadataTail | Absent
    is_mixed: bool = False
    """It differs within one leader epoch: two quorums wrote that epoch, and no truncation repairs it (KIP-595 compares epochs and ends alone)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogComparison:
    """The comparison of all metadata logs of one cluster."""

    newest: MetadataHistory
    logs: tuple[ComparedLog, ...]
    voters: tuple[int, ...]
    """The voters by the newest record that names them; empty where none does."""
    majority_end_offset: int | Absent
    """A majority of the voters holds everything below it; unknown where too few voters' logs are here."""


def compare_metadata_logs(histories: Sequence[MetadataHistory]) -> LogComparison | None:
    """Return each log against the newest; none where there are no logs. One that could not be read is compared only where none could."""
    histories = [one for one in histories if one.is_log_known] or histories
    newest = newest_log(histories)
    if newest is None:
        return None
    logs = tuple(_compare(history, newest) for history in histories)
    voters = newest.current_voters
    return LogComparison(newest=newest, logs=logs, voters=voters, majority_end_offset=_majority_end(logs, voters))


def common_end(history: MetadataHistory, other: MetadataHistory) -> int:
    """Return the offset up to which two logs hold the same."""
    equal, mine, _ = _equal_batches(history, other)
    start = max(history.start_offset, other.start_offset)
    return int(mine["last_offset"][equal - 1]) + 1 if equal else min(start, history.end_offset)


def mixed_from(history: MetadataHistory, other: MetadataHistory) -> int | None:
    """Return the offset from which two logs differ within one leader epoch; none where they do not."""
    both = _first_apart(history, other)
    return None if both is None else int(both[0]["base_offset"])


def began_later(history: MetadataHistory, other: MetadataHistory) -> bool:
    """Return whether of two logs that differ within one leader epoch the first was written later there: its quorum is the one that began anew."""
    both = _first_apart(history, other)
    return both is not None and bool(both[0]["max_timestamp"] > both[1]["max_timestamp"])


def _first_apart(history: MetadataHistory, other: MetadataHistory) -> tuple[np.void, np.void] | None:
    """Return the first batches of two logs that differ within one leader epoch, none where there are none."""
    equal, mine, its = _equal_batches(history, other)
    if equal >= min(len(mine), len(its)):
        return None
    one, two = mine[equal], its[equal]
    same = one["partition_leader_epoch"] == two["partition_leader_epoch"] and one["base_offset"] == two["base_offset"]
    return (one, two) if same else None


def former_end(history: MetadataHistory, other: MetadataHistory, start: int) -> int:
    """Return the offset at or above another one from which a log goes on with batches of the other log, its own end where it never does: of two quorums a node holds what the former wrote below it."""
    mine = _from(history.batches, start)
    its = {(int(one["base_offset"]), int(one["crc"])) for one in _from(other.batches, start)}
    taken = (int(one["base_offset"]) for one in mine if (int(one["base_offset"]), int(one["crc"])) in its)
    return next(taken, history.end_offset)


def _equal_batches(history: MetadataHistory, newest: MetadataHistory) -> tuple[int, BatchTable, BatchTable]:
    """Return the number of first batches that are equal, and those of both logs, without what one of them lacks only because it is damaged there."""
    start = max(history.start_offset, newest.start_offset)
    mine, other = _from(history.batches, start, newest.gaps), _from(newest.batches, start, history.gaps)
    count = min(len(mine), len(other))
    same = np.ones(count, dtype=bool)
    for name in _COMPARED:
        same &= mine[name][:count] == other[name][:count]
    return count if same.all() else int(np.argmin(same)), mine, other


def _compare(history: MetadataHistory, newest: MetadataHistory) -> ComparedLog:
    equal, mine, _ = _equal_batches(history, newest)
    end = common_end(history, newest)
    tail: MetadataTail | Absent = Absent.NOT_APPLICABLE
    if equal < len(mine):
        rest = mine[equal:]
        tail = MetadataTail(
            int(rest["base_offset"][0]), int(rest["last_offset"][-1]), int(rest["partition_leader_epoch"][0])
        )
    return ComparedLog(
        history=history,
        common_end_offset=end,
        behind=max(newest.end_offset - end, 0),
        tail=tail,
        is_mixed=mixed_from(history, newest) is not None,
    )


def _from(batches: BatchTable, offset: int, gaps: Iterable[tuple[int, int]] = ()) -> BatchTable:
    wanted = batches["base_offset"] >= offset
    for first, last in gaps:
        wanted &= (batches["last_offset"] < first) | (batches["base_offset"] > last)
    return batches[wanted]


def _majority_end(logs: Sequence[ComparedLog], voters: tuple[int, ...]) -> int | Absent:
    ends: dict[int, int] = {}
    for log in logs:
        node = log.history.node_id
        if not isinstance(node, Absent) and node in voters:
            ends[node] = max(ends.get(node, 0), log.common_end_offset)
    end = reached_by_majority(ends.values(), len(voters))
    return Absent.UNKNOWN if end is None else end


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
