"""The order of two moments of a cluster, by what the directories hold; the times of files are those of copying as often as not.

What never decreases is proof: the metadata log, leader epochs, log starts. Log ends and times of records decrease where a log was truncated, so they count only where
nothing better shows the order and the files' own times are those of copying.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cmp_to_key
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.replica.progress import LogProgress, NodeProgress
from kforensics.units import METADATA_TOPICS

COPIED_WITHIN_MS = 5_000
"""Files of a directory tree that all carry one time got it from their copying."""

_METADATA = "the metadata log"

QUIET_MS = 60_000
"""A broker writes a record down within this time of its own timestamp."""


class Grade(StrEnum):
    """The certainty of an order."""

    PROVEN = "proven"
    LIKELY = "likely"
    FILE_TIMES = "file-times"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotNodes:
    """The nodes of one snapshot."""

    nodes: tuple[NodeProgress, ...]

    @property
    def written_ms(self) -> int:
        """The time at which anything was last written, by the times of the files."""
        return max((node.newest_write_ms for node in self.nodes), default=0)

    @property
    def node_ids(self) -> frozenset[int]:
        """Ids of its nodes, as far as they are known."""
        return frozenset(node.node_id for node in self.nodes if isinstance(node.node_id, int))

    @property
    def was_copied(self) -> bool:
        """Its files carry the time of their copying: all the same, and long after the newest record."""
        times = [time for node in self.nodes for time in (node.newest_write_ms, node.oldest_write_ms) if time]
        records = [
            log.newest_record_ms
            for node in self.nodes
            for log in node.logs.values()
            if isinstance(log.newest_record_ms, int)
        ]
        if not times or not records:
            return False
        return max(times) - min(times) <= COPIED_WITHIN_MS and min(times) - max(records) > QUIET_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The later of two moments: 1 the second, -1 the first, 0 neither."""

    later: int
    grade: Grade
    reason: str = ""


def order_of(one: SnapshotNodes, other: SnapshotNodes) -> Order:
    """Return which of two moments was later, and by what: the metadata log before all, file times only where nothing better shows it.

    Args:
        one: the nodes of one moment.
        other: those of the other; a positive `later` says that this is the later one.
    """
    proofs = list(_proofs(one, other))
    metadata = [vote for vote in proofs if vote.words.startswith(_METADATA)]
    for votes in (_by_node(metadata), _by_node(proofs)):
        sign = _decided(votes)
        if sign:
            reason = next(words for _, vote, words in votes if vote == sign)
            return Order(later=sign, grade=Grade.PROVEN, reason=reason)
    hints = _by_node(_hints(one, other))
    if (one.was_copied or other.was_copied) and (sign := _decided(hints)):
        reason = next(words for _, vote, words in hints if vote == sign)
        return Order(later=sign, grade=Grade.LIKELY, reason=reason)
    if one.written_ms != other.written_ms:
        return Order(later=1 if one.written_ms < other.written_ms else -1, grade=Grade.FILE_TIMES)
    if sign := _decided(hints):
        reason = next(words for _, vote, words in hints if vote == sign)
        return Order(later=sign, grade=Grade.LIKELY, reason=reason)
    return Order(later=0, grade=Grade.UNKNOWN)


def in_order(moments: Sequence[SnapshotNodes]) -> list[int]:
    """Return the places of the moments, the earliest first; those that nothing distinguishes stay as they were given.

    Args:
        moments: the nodes of each, in the order of their inputs.
    """

    def compare(one: int, other: int) -> int:
        found = order_of(moments[one], moments[other]).later
        return -found if found else one - other

    return sorted(range(len(moments)), key=cmp_to_key(compare))


def is_same(one: SnapshotNodes, other: SnapshotNodes) -> bool:
    """Whether the logs of all nodes are the same in both: one moment given twice.

    Args:
        one: the nodes of one moment; without a known node, or without logs, it is no other's double.
        other: those of the other.
    """
    return bool(one.node_ids) and any(node.logs for node in one.nodes) and _content(one) == _content(other)


def _content(moment: SnapshotNodes) -> list[tuple[str, str]]:
    """Its nodes and what their logs show, in one order whatever order they were given in; a node may be there twice."""
    return sorted((str(node.node_id), str(sorted(node.logs.items(), key=str))) for node in moment.nodes)


class _Vote(NamedTuple):
    """What one log of a node says of the order: 1 the second is later, -1 the first."""

    node_id: int
    sign: int
    words: str


def _by_node(votes: Iterable[_Vote]) -> list[_Vote]:
    """Return one vote for each node: the disk of one that was put back to an earlier state has many logs that went back, and the other nodes went on."""
    found: dict[int, list[_Vote]] = defaultdict(list)
    for vote in votes:
        found[vote.node_id].append(vote)
    decided = [(own, _decided(own)) for own in found.values()]
    return [next(vote for vote in own if vote.sign == sign) for own, sign in decided if sign]


def _decided(votes: Sequence[_Vote]) -> int:
    """Return what all votes say, or more than two thirds of them; 0 where they say nothing or disagree."""
    total = sum(vote.sign for vote in votes)
    return 0 if 3 * abs(total) <= len(votes) else (1 if total > 0 else -1)


def _pairs(one: SnapshotNodes, other: SnapshotNodes) -> Iterator[tuple[int, str, LogProgress, LogProgress]]:
    """Yield the logs that both moments have, each log as it was at either."""
    theirs = {node.node_id: node for node in other.nodes if isinstance(node.node_id, int)}
    for node in one.nodes:
        if not isinstance(node.node_id, int) or node.node_id not in theirs:
            continue
        for partition, log in node.logs.items():
            same = theirs[node.node_id].logs.get(partition)
            if same is not None and not _is_other_topic(log, same):
                name = _METADATA if partition.topic in METADATA_TOPICS else str(partition)
                yield node.node_id, f"{name} of node {node.node_id}", log, same


def _is_other_topic(one: LogProgress, other: LogProgress) -> bool:
    """Return a topic that was created again begins with epoch 0 and offset 0 again."""
    if isinstance(one.topic_id, Absent) or isinstance(other.topic_id, Absent):
        return False
    return one.topic_id != other.topic_id


def _is_contradicted(sign: int, before: LogProgress, after: LogProgress) -> bool:
    """Return the records say otherwise, as where a topic without an id was created again."""
    if isinstance(before.newest_record_ms, Absent) or isinstance(after.newest_record_ms, Absent):
        return False
    return _sign(before.newest_record_ms, after.newest_record_ms) == -sign


def _proofs(one: SnapshotNodes, other: SnapshotNodes) -> Iterator[_Vote]:
    for node, name, before, after in _pairs(one, other):
        if isinstance(before.leader_epoch, int) and isinstance(after.leader_epoch, int):
            sign = _sign(before.leader_epoch, after.leader_epoch)
            if sign and not _is_contradicted(sign, before, after):
                low, high = sorted((before.leader_epoch, after.leader_epoch))
                yield _Vote(
                    node, sign, f"{name} has reached leader epoch {high} in the later one, {low} in the earlier"
                )
            if sign:
                continue
        if name.startswith(_METADATA):
            sign = _sign(before.log_end_offset, after.log_end_offset)
            if sign:
                low, high = sorted((before.log_end_offset, after.log_end_offset))
                yield _Vote(node, sign, f"{name} ends at {high} in the later one, at {low} in the earlier")
            continue
        sign = _sign(before.log_start_offset, after.log_start_offset)
        if sign and not _is_contradicted(sign, before, after):
            low, high = sorted((before.log_start_offset, after.log_start_offset))
            yield _Vote(node, sign, f"{name} begins at {high} in the later one, at {low} in the earlier")


def _hints(one: SnapshotNodes, other: SnapshotNodes) -> Iterator[_Vote]:
    for node, name, before, after in _pairs(one, other):
        if sign := _sign(before.log_end_offset, after.log_end_offset):
            low, high = sorted((before.log_end_offset, after.log_end_offset))
            yield _Vote(node, sign, f"{name} ends at {high} in the later one, at {low} in the earlier")


def _sign(before: int, after: int) -> int:
    return (after > before) - (after < before)
