"""How the positions of groups stand to the logs of the partitions that they read: where these start and end, who deleted their beginning, and their leader epochs."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kforensics.case.leaders import Leaders
from kforensics.case.model import READ_WHOLE
from kforensics.case.settings import retention_of
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.coordinators.group_log import CommitKey
from kforensics.evidence.coordinators.replica_log import list_log
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, checkpoint_value
from kforensics.evidence.model import CheckpointValue, Problem
from kforensics.evidence.replica.ends import read_log_tail
from kforensics.evidence.replica.loader_reader import known_epochs
from kforensics.formats.log.batch_table import CONTROL_BIT, NEWEST_MAGIC
from kforensics.protocol.epochs import validated_position
from kforensics.protocol.retention import RetentionTimes
from kforensics.reconcile.groups.replay import Position
from kforensics.reconcile.groups.state import ShareState
from kforensics.reconcile.groups.views import GroupPosition
from kforensics.reconcile.history.log_starts import LogStart, LogStartMove, log_start_moves
from kforensics.units import TopicPartition


class _Tail(NamedTuple):
    """The end of one replica."""

    place: PartitionPlace
    leader_epoch: int
    end: int
    markers_from: int | Absent


class _Ends(NamedTuple):
    """What is known of the log of one partition."""

    end: int | Absent = Absent.UNKNOWN
    start: LogStart | None = None
    """The lowest one where it is not known who leads."""
    markers_from: int | Absent = Absent.UNKNOWN
    is_guessed: bool = False
    """No replica here is shown to lead, or to be one that is elected next."""
    absent_leader: int | None = None
    """The broker whose log would show where it ends."""
    logs: Sequence[_Tail] = ()
    """Of which one leads."""


class PartitionEnds:
    """The logs of partitions that groups read, now or at a time."""

    def __init__(self, given: Leaders, at_ms: int | None) -> None:
        self._given, self._at = given, at_ms
        self._live = given.live()
        self._known: dict[TopicPartition, _Ends] = {}
        self.problems: list[Problem] = []

    def view(self, key: CommitKey, position: Position, share: ShareState | None) -> GroupPosition:
        """Return a position with how it stands to its log, that of a share group with the state of its deliveries."""
        ends = self._of(key)
        goes_on_at, had_others = (
            (Absent.NOT_APPLICABLE, False) if share is not None else self._checked(key, ends, position)
        )
        recreated_ms, removed_ms = (None, None) if share is not None else self._topic_since(key, position)
        return GroupPosition(
            topic=key.topic,
            partition=key.partition,
            position=position,
            share=share,
            log_end_offset=ends.end,
            log_start_offset=Absent.UNKNOWN if ends.start is None else ends.start.offset,
            markers_from=ends.markers_from,
            may_have_more=ends.is_guessed,
            records_left=_records_left(ends, position.offset) if share is None else Absent.NOT_APPLICABLE,
            absent_leader=ends.absent_leader,
            removal=None if ends.start is None else ends.start.removal(position.offset),
            goes_on_at=goes_on_at,
            had_others=had_others,
            recreated_ms=recreated_ms,
            removed_ms=removed_ms,
        )

    def start_of(self, key: CommitKey) -> LogStart | None:
        """Return where the log begins that a position is of, now; none where it is not known."""
        return self._of(key).start

    def _of(self, key: CommitKey) -> _Ends:
        if not isinstance(key.topic, str):
            return _Ends()
        partition = TopicPartition(key.topic, key.partition)
        return self._known.get(partition) or self._known.setdefault(partition, self._find(partition))

    def _topic_since(self, key: CommitKey, position: Position) -> tuple[int | None, int | None]:
        """Return when the topic of now was created, where that was after a commit, else when it was deleted, where none of its name is left."""
        history = self._given.history
        named = history.topics_named(key.topic) if history is not None and isinstance(key.topic, str) else ()
        there = [one for one in named if self._at is None or one.created.timestamp_ms <= self._at]
        if not there:
            return None, None
        removed, created = there[-1].removed, there[-1].created
        if not isinstance(removed, Absent) and (self._at is None or removed.timestamp_ms <= self._at):
            # A commit behind it is of a topic that was created after the end of that metadata log.
            return None, removed.timestamp_ms if removed.timestamp_ms >= position.committed_ms else None
        # A migration from ZooKeeper writes every topic, however old, as if it was created then.
        is_first = len(there) == 1 and history is not None and history.migration != 0
        is_known = not (created.from_snapshot or is_first)
        is_later = is_known and created.timestamp_ms > position.committed_ms >= 0
        return (created.timestamp_ms if is_later else None), None

    def _find(self, partition: TopicPartition) -> _Ends:
        if self._at is not None:
            return self._find_at(partition, self._at)
        tails = [self._tail(place) for place in self._live.get(partition, ())]
        if not tails:
            return _Ends()
        leader = self._given.leader(partition, newest_epoch=max(one.leader_epoch for one in tails))
        absent = self._given.absent_leader(partition, leader)
        if absent is not None:
            return _Ends(absent_leader=absent)
        chosen = max(tails, key=lambda one: (one.place.state.broker_id == leader, one.leader_epoch, one.end))
        is_leader = chosen.place.state.broker_id == leader
        # What a checkpoint names was there: then the end that is here is none of the log's.
        epochs = {one.place.state.broker_id: one.leader_epoch for one in tails}
        promised = self._given.promised_end_of_leader(partition, leader, epochs)
        logs = [chosen] if is_leader else tails
        return _Ends(
            end=chosen.end if chosen.end >= promised else Absent.UNKNOWN,
            start=self._start(partition, [one.place for one in logs]),
            markers_from=chosen.markers_from,
            is_guessed=self._given.without_candidate(partition, leader) is not None,
            logs=logs,
        )

    def _find_at(self, partition: TopicPartition, at_ms: int) -> _Ends:
        copies = [place for place in self._given.copies(partition) if place.is_live]
        ends = [_end_at(place, at_ms) for place in copies]
        if not ends:
            return _Ends()
        epoch, end, is_followed = max(ends)
        absent = self._given.absent_leader(partition, self._given.leader(partition, newest_epoch=epoch))
        if absent is None or is_followed:
            return _Ends(end=end)
        # What that leader had beyond the copies that are here, and a truncation took, no later log has.
        return _Ends(absent_leader=absent)

    def _tail(self, place: PartitionPlace) -> _Tail:
        """Return the end of a replica; of the epoch -1 where it can't be read."""
        log = list_log(place)
        found = self._given.inputs.found[place.state.input]
        try:
            tail = read_log_tail(found, log.segments, dict(log.indexes))
        except EvidenceError as error:
            self.problems.append(Problem(input=place.state.input, path=place.path, message=error.problem))
            tail = Absent.UNREADABLE
        if isinstance(tail, Absent):
            return _Tail(place, -1, 0, Absent.UNKNOWN)
        epoch = -1 if isinstance(tail.leader_epoch, Absent) else tail.leader_epoch
        return _Tail(place, epoch, tail.log_end_offset, tail.markers_from)

    def _start(self, partition: TopicPartition, places: Sequence[PartitionPlace]) -> LogStart:
        """Return where the log starts by its checkpoint, else by the first segment, as its broker takes it."""
        starts = []
        for place in places:
            recorded, first = checkpoint_value(place.state, "log_start", partition), list_log(place).first_base
            # Without a line it begins in remote storage, where finished copies are on record that no disk holds.
            begins = [first, *(begin for _, begin in place.remote_starts)]
            start = min(begins) if isinstance(recorded, Absent) else recorded.value
            starts.append((start, first < start, None if isinstance(recorded, Absent) else recorded.citation, place))
        start, _, citation, place = min(starts, key=lambda one: one[0])
        bases = {base for one in self._live.get(partition, ()) for base, _ in list_log(one).segments}
        return LogStart(
            offset=start,
            moves=self._moves.get(partition, ()),
            # Segments of another replica end there: a follower takes over the start that retention gave its leader.
            is_inside=start not in bases and all(is_inside for _, is_inside, _, _ in starts),
            citation=citation,
            times=retention_of(self._given.case)(partition, place.state.broker_id) if start else RetentionTimes(),
            epochs_from=next((one.start_offset for one in (known_epochs(place) if start else ())), Absent.UNKNOWN),
        )

    @cached_property
    def _moves(self) -> dict[TopicPartition, list[LogStartMove]]:
        cluster = self._given.cluster
        return log_start_moves(cluster.events, is_zone_shown=cluster.is_zone_shown)

    def _checked(self, key: CommitKey, ends: _Ends, position: Position) -> tuple[int | Absent, bool]:
        """Return where a consumer goes on whose position's leader epoch every log that may lead contradicts, and whether the records in front of it are younger than the commit."""
        if not ends.logs:
            return Absent.NOT_APPLICABLE, False
        if position.leader_epoch < 0:
            states = self._given.leaderships(TopicPartition(str(key.topic), key.partition))
            # A producer's clock may run ahead: the epoch must have begun since, too.
            before = (
                one.leader_epoch
                for one in states
                if isinstance(one.time_ms, int) and one.time_ms <= position.committed_ms
            )
            epoch = max(before, default=-1)
            is_over = epoch < 0 or epoch == max(one.leader_epoch for one in states)
            return Absent.NOT_APPLICABLE, not is_over and all(
                _is_younger(log.place, position, epoch) for log in ends.logs
            )
        found: list[int | Absent] = []
        for log in ends.logs:
            epochs = known_epochs(log.place)
            # A log that does not know its own last epoch is no measure.
            if not epochs or epochs[-1].leader_epoch < log.leader_epoch:
                return Absent.NOT_APPLICABLE, False
            found.append(validated_position(epochs, log.end, position.offset, position.leader_epoch))
        if any(one == position.offset for one in found):
            return Absent.NOT_APPLICABLE, False
        known = [one for one in found if isinstance(one, int)]
        goes_on_at = max(known) if len(known) == len(found) else Absent.UNKNOWN
        return goes_on_at, all(_is_younger(log.place, position, position.leader_epoch) for log in ends.logs)


def _records_left(ends: _Ends, offset: int) -> int | Absent:
    """Return how many records a log has from an offset on at most, where its cleaner has passed that."""
    points = [checkpoint_value(one.place.state, "cleaner_point", one.place.topic_partition) for one in ends.logs]
    if not any(isinstance(one, CheckpointValue) and one.value > offset for one in points):
        return Absent.NOT_APPLICABLE
    place = ends.logs[0].place
    if len(ends.logs) > 1 or place.length > READ_WHOLE or not place.state.store.holds_bytes:
        return Absent.UNKNOWN
    log, count = list_log(place), 0
    below = sum(base <= offset for base, _ in log.segments)
    for _, rows, _ in log.batches(log.segments[max(below - 1, 0) :]):
        own = rows[(rows["last_offset"] >= offset) & (rows["attributes"] & CONTROL_BIT == 0)]
        if (own["magic"] < NEWEST_MAGIC).any():
            return Absent.UNKNOWN
        count += int(np.minimum(own["count"], own["last_offset"] - offset + 1).sum())
    return Absent.UNKNOWN if log.problems else count


def _is_younger(place: PartitionPlace, position: Position, leader_epoch: int) -> bool:
    """Whether a log has records in front of a position that were written after it was committed, in a later leader epoch than one."""
    log, offset = list_log(place), position.offset - 1
    holders = [one for one in log.segments if one[0] <= offset][-1:]
    for _, rows, _ in log.batches(holders):
        own = rows[(rows["base_offset"] <= offset) & (rows["last_offset"] >= offset)]
        if len(own):
            is_later = int(own["partition_leader_epoch"][-1]) > leader_epoch
            return is_later and int(own["base_timestamp"][-1]) > position.committed_ms >= 0
    return False


def _end_at(place: PartitionPlace, at_ms: int) -> tuple[int, int, bool]:
    """Return the last leader epoch and the log end offset that a copy had at a time, by the times of its batches, and whether a later batch of that epoch shows that there was no more."""
    log = list_log(place)
    epoch, end = -1, log.first_base
    for _, sound, _ in log.batches(log.segments):
        later = (sound["max_timestamp"] > at_ms).nonzero()[0]
        rows = sound[: later[0]] if len(later) else sound
        if len(rows):
            epoch = max(epoch, int(rows["partition_leader_epoch"].max()))
            end = int(rows["last_offset"][-1]) + 1
        if len(later):
            return epoch, end, int(sound[later[0]]["partition_leader_epoch"]) == epoch
    return epoch, end, False
