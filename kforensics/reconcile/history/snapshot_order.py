"""The order of two moments of a cluster, by what the directories hold; the times of files are those of copying as often as not.

What never decreases is proof: the metadata log, leader epochs, log starts. Log ends and times of records decrease where a log was truncated, so they count only where
nothing better shows the order and the files' own times are those of copying.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.evidence.replica.progress import LogProgress, NodeProgress
from kforensics.units import METADATA_TOPICS

COPIED_WITHIN_MS = 5_000
"""Files of a directory tree that all carry one time got it from their copying."""

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
    """Return whether this moment was later than another (a positive `later`), and by what: the metadata log before all, file times only where nothing better shows it."""
    proofs = list(_proofs(one, other))
    if proofs and _has_same_controller(one, other):
        return Order(later=0, grade=Grade.UNKNOWN)
    for votes in ([vote for vote in proofs if vote.of_metadata_log], proofs):
        if order := _decided(_by_node(votes), Grade.PROVEN):
            return order
    hints = _by_node(_hints(one, other))
    if (one.was_copied or other.was_copied) and (order := _decided(hints, Grade.LIKELY)):
        return order
    if one.written_ms != other.written_ms:
        return Order(later=1 if one.written_ms < other.written_ms else -1, grade=Grade.FILE_TIMES)
    return _decided(hints, Grade.LIKELY) or Order(later=0, grade=Grade.UNKNOWN)


def seems_later(one: SnapshotNodes, other: SnapshotNodes) -> bool:
    """Whether the times of files say that another moment is the later one, and nothing proves either order, or what proves the opposite is of other nodes.

    Times count where its logs reach further, too, or where the files of the same nodes have the times of their writing: a log may end earlier than it did.
    Where nodes disagree, copies of different moments may be mixed.
    """
    order = order_of(one, other)
    if order.grade is Grade.PROVEN and order.later < 0:
        return not (one.was_copied or other.was_copied) and _has_later_node(one, other)
    if order.grade is not Grade.FILE_TIMES or order.later < 0:
        return False
    hinted = _decided(_by_node(_hints(one, other)), Grade.LIKELY)
    if hinted is not None and hinted.later > 0:
        return True
    return not (one.was_copied or other.was_copied) and _written_later(one, other)


def _has_later_node(one: SnapshotNodes, other: SnapshotNodes) -> bool:
    """Whether the logs of a node reach further in the other moment and were written to later there, and the node itself proves neither order."""
    deciding = {vote.node_id for vote in _proofs(one, other)}
    further = {vote.node_id for vote in _by_node(_hints(one, other)) if vote.sign > 0} - deciding
    alone = [
        SnapshotNodes(nodes=tuple(node for node in moment.nodes if node.node_id in further)) for moment in (one, other)
    ]
    return bool(further) and _written_later(alone[0], alone[1])


def _written_later(one: SnapshotNodes, other: SnapshotNodes) -> bool:
    """Whether more of the nodes that both moments show were last written to later in the other than were earlier."""
    theirs = {node.node_id: node.newest_write_ms for node in other.nodes if isinstance(node.node_id, int)}
    return sum(_sign(node.newest_write_ms, theirs[node.node_id]) for node in one.nodes if node.node_id in theirs) > 0


def in_order(moments: Sequence[SnapshotNodes]) -> list[int]:
    """Return the places of the moments, the earliest first, whatever order they are given in.

    Orders of pairs need not fit together. What is proven counts before what is likely, that before the times of files; orders of one grade that run in a circle count
    for nothing. Moments that nothing distinguishes then follow the times of their files, and where these are equal the ends of their logs: of two logs of which one goes on
    where the other ends, the longer one is the later.
    """
    orders = [
        (one, other, order_of(moments[one], moments[other])) for one, other in combinations(range(len(moments)), 2)
    ]
    before = np.zeros((len(moments), len(moments)), dtype=np.bool_)
    for grade in (Grade.PROVEN, Grade.LIKELY, Grade.FILE_TIMES):
        edges = before.copy()
        for one, other, order in orders:
            earlier, later = (one, other) if order.later > 0 else (other, one)
            if order.grade is grade and not before[later, earlier]:
                edges[earlier, later] = True
        reached = _closure(edges)
        before = _closure(before | (edges & ~reached.T))
    earlier_ones = before.sum(axis=0).tolist()
    return sorted(range(len(moments)), key=lambda at: (earlier_ones[at], moments[at].written_ms, _reached(moments[at])))


def _reached(moment: SnapshotNodes) -> tuple[int, str]:
    """Return how far all logs of a moment reach, and what tells it from others that reach as far."""
    ends = sum(log.log_end_offset for node in moment.nodes for log in node.logs.values())
    return ends, str(_content(moment))


def _closure(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which places can be reached from which (Warshall)."""
    reached = edges.copy()
    for through in range(len(reached)):
        reached |= np.outer(reached[:, through], reached[through])
    return reached


def is_same(one: SnapshotNodes, other: SnapshotNodes) -> bool:
    """Whether the logs of all nodes are the same in both: one moment given twice.

    Args:
        one: the nodes of one moment; without a known node, or without logs, it is no other's double.
    """
    return bool(one.node_ids) and any(node.logs for node in one.nodes) and _content(one) == _content(other)


def _content(moment: SnapshotNodes) -> list[tuple[str, str]]:
    """Its nodes and what their logs show, in one order whatever order they were given in; a node may be there twice."""
    return sorted((str(node.node_id), str(sorted(node.logs.items(), key=str))) for node in moment.nodes)


class _Log(NamedTuple):
    """A log that both moments have, as it was at either."""

    node_id: int
    name: str
    is_metadata_log: bool
    before: LogProgress
    after: LogProgress


class _Vote(NamedTuple):
    """What one log of a node says: 1 that the second moment is later, -1 that the first one is."""

    node_id: int
    sign: int
    words: str
    of_metadata_log: bool


def unchanged_nodes(one: SnapshotNodes, other: SnapshotNodes) -> frozenset[int]:
    """Return the nodes that both moments show and that wrote nothing to any log in between."""
    theirs = {node.node_id: node for node in other.nodes}
    return frozenset(
        node.node_id
        for node in one.nodes
        if isinstance(node.node_id, int)
        and (then := theirs.get(node.node_id)) is not None
        and then.logs == node.logs
        and then.newest_write_ms == node.newest_write_ms
    )


def went_back_alone(one: SnapshotNodes, other: SnapshotNodes) -> bool:
    """Whether no more than half of the nodes differ and the others wrote nothing: rather than the moments, the disks of these may have been exchanged."""
    shared, same = one.node_ids & other.node_ids, unchanged_nodes(one, other)
    return bool(same) and len(same) < len(shared) <= 2 * len(same)


def _has_same_controller(one: SnapshotNodes, other: SnapshotNodes) -> bool:
    """Whether the longest metadata log is on a node that wrote nothing: a broker that starts has the controller write, so where brokers differ a disk was exchanged."""
    longest = [max(map(_metadata_end, moment.nodes), default=0) for moment in (one, other)]
    same = unchanged_nodes(one, other)
    ends = {_metadata_end(node) for node in one.nodes if node.node_id in same}
    return longest[0] == longest[1] > 0 and longest[0] in ends


def _metadata_end(node: NodeProgress) -> int:
    return max(
        (log.log_end_offset for partition, log in node.logs.items() if partition.topic in METADATA_TOPICS), default=0
    )


def _by_node(votes: Iterable[_Vote]) -> list[_Vote]:
    """Return one vote for each node: the disk of one that was put back to an earlier state has many logs that went back, and the other nodes went on."""
    found: dict[int, list[_Vote]] = defaultdict(list)
    for vote in votes:
        found[vote.node_id].append(vote)
    decided = [(own, _majority(own)) for own in found.values()]
    return [next(vote for vote in own if vote.sign == sign) for own, sign in decided if sign]


def _majority(votes: Sequence[_Vote]) -> int:
    """Return what all votes say, or more than two thirds of them; 0 where they say nothing or disagree."""
    total = sum(vote.sign for vote in votes)
    return 0 if 3 * abs(total) <= len(votes) else _sign(0, total)


def _decided(votes: Sequence[_Vote], grade: Grade) -> Order | None:
    later = _majority(votes)
    if not later:
        return None
    return Order(later=later, grade=grade, reason=next(vote.words for vote in votes if vote.sign == later))


def _pairs(one: SnapshotNodes, other: SnapshotNodes) -> Iterator[_Log]:
    """Yield the logs that both moments have."""
    theirs = {node.node_id: node for node in other.nodes if isinstance(node.node_id, int)}
    for node in one.nodes:
        if not isinstance(node.node_id, int) or node.node_id not in theirs:
            continue
        for partition, log in node.logs.items():
            same = theirs[node.node_id].logs.get(partition)
            if same is not None and not _is_other_topic(log, same):
                is_metadata_log = partition.topic in METADATA_TOPICS
                name = "the metadata log" if is_metadata_log else str(partition)
                yield _Log(node.node_id, f"{name} of node {node.node_id}", is_metadata_log, log, same)


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
    for log in _pairs(one, other):
        before, after = log.before, log.after
        epochs = (before.leader_epoch, after.leader_epoch)
        if isinstance(epochs[0], int) and isinstance(epochs[1], int) and epochs[0] != epochs[1]:
            words = "has reached leader epoch {} in the later one, {} in the earlier"
            yield from _votes(log, epochs[0], epochs[1], words)
            continue
        if log.is_metadata_log:
            yield from _hinted(log)
            continue
        words = "begins at {} in the later one, at {} in the earlier"
        yield from _votes(log, before.log_start_offset, after.log_start_offset, words)


def _votes(log: _Log, before: int, after: int, words: str, *, is_proof: bool = True) -> Iterator[_Vote]:
    """Yield what a number of a log says that never decreases, or of one that is no proof."""
    sign = _sign(before, after)
    if sign and not (is_proof and _is_contradicted(sign, log.before, log.after)):
        low, high = sorted((before, after))
        yield _Vote(log.node_id, sign, f"{log.name} {words.format(high, low)}", log.is_metadata_log)


def _hinted(log: _Log) -> Iterator[_Vote]:
    before, after = log.before.log_end_offset, log.after.log_end_offset
    words = "ends at {} in the later one, at {} in the earlier"
    if log.is_metadata_log and _is_contradicted(_sign(before, after), log.before, log.after):
        # Only a disk that is put back shortens it: from there it goes on with newer records.
        before, after = after, before
        words = "ends at {1} in the later one, at {0} in the earlier, whose newest record is older"
    return _votes(log, before, after, words, is_proof=False)


def _hints(one: SnapshotNodes, other: SnapshotNodes) -> Iterator[_Vote]:
    for log in _pairs(one, other):
        yield from _hinted(log)


def _sign(before: int, after: int) -> int:
    return (after > before) - (after < before)
