"""Offsets that consumer groups committed, from every replica of `__consumer_offsets` among the inputs."""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kforensics.damage import Absent, Span
from kforensics.errors import EvidenceError
from kforensics.evidence.captured.reading import captured_commits
from kforensics.evidence.coordinators.replica_log import ReplicaLog, read_producers
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Citation, GroupCommit
from kforensics.evidence.replica.collect import segment_paths
from kforensics.source.capture import CapturedSegment
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import parse_file_name
from kforensics.units import OFFSETS_TOPIC, TopicPartition

if TYPE_CHECKING:
    from kforensics.evidence.coordinators.group_log import Commit


def walk_group_commits(places: Iterable[PartitionPlace], *, most_bytes: int | None = None) -> Iterator[GroupCommit]:
    """Yield the offset commits that can be read, in the order of the logs, those of each position that no higher one follows at once; an unreadable file gives none.

    Commits inside a transaction that was aborted or is still open are left out: they never took effect.

    Args:
        most_bytes: of all logs, the last segments of each, which are read; none reads all.
    """
    logs = [(place, segment_paths(place)) for place in places if place.topic_partition.topic == OFFSETS_TOPIC]
    for place, paths in logs if most_bytes is None else _last_segments(logs, most_bytes):
        yield from commits_in_log(place, paths, [])


def commits_in_log(place: PartitionPlace, paths: Iterable[str], unread: list[str]) -> Iterator[GroupCommit]:
    """Yield the offset commits of the segments of one log, as `walk_group_commits` does; `unread` takes the paths of those that can't be read to their end."""
    whole: list[tuple[int, str]] = []
    for path in paths:
        try:
            with open_evidence(place.state.root / path) as file:
                if isinstance(file, CapturedSegment):
                    yield from _captured_commits(file, place, path)
                else:
                    whole.append((len(whole), path))
        except EvidenceError:
            unread.append(path)
    log = ReplicaLog(place, segments=whole)
    yield from _highest_of(log)
    # Damage has a position, and is the same when it is read again.
    unread += [one.path for one in log.problems if isinstance(one.position, Absent)]


def commits_in_file(place: PartitionPlace, path: str) -> Iterator[GroupCommit]:
    """Yield the offset commits that took effect in one segment, those of each position that no higher one follows at once.

    What a transaction committed counts in the segment of its marker, where that is cited: so what was read of an earlier segment stays as it is.
    """
    with open_evidence(place.state.root / path) as file:
        if isinstance(file, CapturedSegment):
            yield from _captured_commits(file, place, path)
            return
    yield from _highest_of(ReplicaLog(place, segments=[(0, path)]), carried=_Carried(place, path).of)


class _Carried:
    """What transactions had committed that were open where a segment begins: earlier segments are read once one of them ends."""

    def __init__(self, place: PartitionPlace, path: str) -> None:
        self._place, self._path = place, place.state.root / path
        self._segments: list[tuple[int, str]] | None = None
        self._opened: dict[int, int] | None = None
        """Where each began, by the producer snapshot there; without one it may be any of those of the segment before."""
        self._ended: set[int] = set()
        self._pending: dict[int, _Highest] = {}
        self._read_from = 0

    def of(self, producer_id: int) -> "_Highest":
        """Return what a producer's transaction had committed, which ends now."""
        if producer_id in self._ended:
            return {}
        self._ended.add(producer_id)
        if self._segments is None:
            self._segments = self._list()
            self._read_from = len(self._segments)
        first = self._first_of(producer_id, self._segments)
        if first < self._read_from:  # those that never end cause no reading
            self._read_from, self._pending = first, {}
            deque(
                _highest_of(ReplicaLog(self._place, segments=self._segments[first:]), pending=self._pending), maxlen=0
            )
        return self._pending.get(producer_id, {})

    def _first_of(self, producer_id: int, segments: list[tuple[int, str]]) -> int:
        if self._opened is None:
            return max(len(segments) - 1, 0)
        at = self._opened.get(producer_id, -1)
        return max(bisect_right(segments, at, key=lambda one: one[0]) - 1, 0) if at >= 0 else len(segments)

    def _list(self) -> list[tuple[int, str]]:
        base = parse_file_name(self._path.name).base_offset
        if not isinstance(base, int):
            return []
        snapshot = self._path.with_suffix(".snapshot")
        for _, _, producers in read_producers(self._path.parent, [(base, snapshot.name)]):
            self._opened = {one.producer_id: one.current_transaction_first_offset for one in producers}
        names = sorted(one for one in self._path.parent.glob("*.log") if one.name < self._path.name)
        named = [(parse_file_name(one.name).base_offset, str(one)) for one in names]
        return [(at, name) for at, name in named if isinstance(at, int)]


def _last_segments(
    logs: Sequence[tuple[PartitionPlace, Sequence[str]]], most_bytes: int
) -> Iterator[tuple[PartitionPlace, Sequence[str]]]:
    """Yield logs with so many of their last segments as fit: the last of each comes before the one before it of any."""
    from_end = sorted(
        (len(paths) - at, number, path) for number, (_, paths) in enumerate(logs) for at, path in enumerate(paths)
    )
    taken: set[tuple[int, str]] = set()
    for _, number, path in from_end:
        if most_bytes <= 0:
            break
        taken.add((number, path))
        try:
            most_bytes -= (logs[number][0].state.root / path).stat().st_size
        except OSError:
            continue  # deleted meanwhile, or inside a capture, which holds a few rows of it
    for number, (place, paths) in enumerate(logs):
        yield place, [path for path in paths if (number, path) in taken]


def _highest_of(
    log: ReplicaLog,
    *,
    pending: "dict[int, _Highest] | None" = None,
    carried: "Callable[[int], _Highest] | None" = None,
) -> Iterator[GroupCommit]:
    """Yield of each run of commits the first of the highest by position and leader epoch, and those of transactions when they end.

    Args:
        pending: takes what transactions committed that have not ended.
        carried: gives what a producer's transaction had committed before the log, once it ends; it is cited where it ends.
    """
    from kforensics.evidence.coordinators.group_log import Commit, CommitRun, GroupLogReader, TransactionEnd  # noqa: PLC0415 - where groups committed

    # A transaction that never ends must not hold all of a log: of its commits only those are kept that can count.
    pending = {} if pending is None else pending
    for one in GroupLogReader(log).parts():
        if isinstance(one, CommitRun):
            order = np.lexsort((-one.offsets, one.leader_epochs, one.ids))  # stable: the first of equal ones stays it
            ids, epochs = one.ids[order], one.leader_epochs[order]
            is_first = np.concatenate(([True], (np.diff(ids) != 0) | (np.diff(epochs) != 0)))
            for commit in one.decode(np.sort(order[is_first]).tolist()):
                yield _known_as(commit, log.place)
        elif isinstance(one, TransactionEnd):
            ended, before = pending.pop(one.producer_id, {}), carried(one.producer_id) if carried else {}
            if one.is_commit:
                yield from (commit._replace(citation=one.at.cite(log.place)) for commit in before.values())
                yield from ended.values()
        elif isinstance(one, Commit) and one.offset is not None:
            if one.producer_id >= 0:
                _keep(pending.setdefault(one.producer_id, {}), _known_as(one, log.place))
            else:
                yield _known_as(one, log.place)


def _known_as(commit: "Commit", place: PartitionPlace) -> GroupCommit:
    assert commit.offset is not None
    return GroupCommit(
        partition=TopicPartition(str(commit.key.topic), commit.key.partition),
        group=str(commit.key.group),
        offset=commit.offset,
        leader_epoch=commit.leader_epoch if commit.leader_epoch >= 0 else Absent.NOT_WRITTEN,
        time_ms=commit.committed_ms,
        citation=commit.at.cite(place),
    )


def _captured_commits(file: CapturedSegment, place: PartitionPlace, path: str) -> Iterator[GroupCommit]:
    """Yield the commits that a capture holds of a segment: the highest of each group, partition and leader epoch."""
    for topic, partition, group, offset, leader_epoch, time_ms, position in captured_commits(file):
        yield GroupCommit(
            partition=TopicPartition(topic, partition),
            group=group,
            offset=offset,
            leader_epoch=Absent.NOT_WRITTEN if leader_epoch is None else leader_epoch,
            time_ms=time_ms,
            citation=Citation(input=place.state.input, path=path, span=Span(position, 0)),
        )


def highest_commits(commits: Iterable[GroupCommit]) -> Iterable[GroupCommit]:
    """Return the first of the highest offsets that each group committed in each leader epoch of a partition."""
    best: _Highest = {}
    for commit in commits:
        _keep(best, commit)
    return best.values()


_Highest = dict[tuple[TopicPartition, str, int | Absent], GroupCommit]


def _keep(best: _Highest, commit: GroupCommit) -> None:
    key = (commit.partition, commit.group, commit.leader_epoch)
    if key not in best or best[key].offset < commit.offset:
        best[key] = commit
