"""The steps of partitions from one status to the next, each computed once."""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.evidence.metadata.state import TopicState
from kforensics.formats.messages.metadata import (
    LEADER_UNCHANGED,
    NO_CHANGE,
    NO_LEADER,
    RECOVERING,
    parse_metadata_record,
)
from kforensics.formats.messages.metadata_bulk import PartitionRecords
from kforensics.formats.messages.schema import Decoded, not_understood
from kforensics.formats.primitives.numbers import distinct, uuid_bytes, uuid_text

Fields = Mapping[str, Any]


class PartitionStatus(NamedTuple):
    """The part of a partition's state beside its epochs in a metadata record; `PartitionState` explains the fields."""

    leader: int | Absent
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    is_recovering: bool
    directories: tuple[str, ...]


def stated_status(fields: Fields) -> PartitionStatus:
    """Return the status in a PartitionRecord."""
    leader = fields["leader"]
    return PartitionStatus(
        Absent.NOT_APPLICABLE if leader == NO_LEADER else leader,
        fields["isr"] or (),
        fields["replicas"] or (),
        fields["adding_replicas"] or (),
        fields["removing_replicas"] or (),
        fields.get("eligible_leader_replicas") or (),
        fields.get("last_known_elr") or (),
        fields.get("leader_recovery_state") == RECOVERING,
        fields.get("directories") or (),
    )


def changed_status(status: PartitionStatus, fields: Fields) -> PartitionStatus:
    """Return the status that a PartitionChangeRecord of any version leads to; a field that is null or unchanged keeps what was there (`PartitionRegistration.merge`)."""
    get = fields.get
    leader = status.leader
    if fields["leader"] != LEADER_UNCHANGED:
        leader = Absent.NOT_APPLICABLE if fields["leader"] == NO_LEADER else fields["leader"]
    recovery = get("leader_recovery_state", NO_CHANGE)
    return PartitionStatus(
        leader,
        _changed(fields["isr"], status.isr),
        _changed(get("replicas"), status.replicas),
        _changed(get("adding_replicas"), status.adding_replicas),
        _changed(get("removing_replicas"), status.removing_replicas),
        _changed(get("eligible_leader_replicas"), status.eligible_leader_replicas),
        _changed(get("last_known_elr"), status.last_known_elr),
        status.is_recovering if recovery == NO_CHANGE else recovery == RECOVERING,
        _changed(get("directories"), status.directories),
    )


def has_elr(status: PartitionStatus) -> bool:
    """Return whether a replica outside the ISR may become leader."""
    return bool(status.eligible_leader_replicas or status.last_known_elr)


def _changed(new: tuple[Any, ...] | None, old: tuple[Any, ...]) -> tuple[Any, ...]:
    return old if new is None else new


STEP_DTYPE = np.dtype(
    [
        ("offset", "<i8"),
        ("timestamp_ms", "<i8"),
        ("place", "<i4"),
        ("partition", "<i4"),
        ("status", "<i4"),
        ("leader_epoch", "<i8"),
        ("partition_epoch", "<i8"),
    ]
)
Steps = NDArray[np.void]

MOST_MOVES = 1 << 17
"""Moves and changes that are remembered at a time, some 40 MB of them."""

FEW_STEPS = 16
"""Below it steps are written down one by one."""

_PARTITION = struct.Struct(">i")


class Origin(NamedTuple):
    """The source of a step: the offset and time of its record, and the number of the place that holds the record."""

    offset: int
    timestamp_ms: int
    place: int


_Said = tuple[int, int, int]
"""Status, leader epoch and partition epoch."""


class PartitionReplay:
    """The partitions so far, each with its current status, and the steps in the order of the log."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, int]] = []
        """Topic id and partition of each, in the order in which they came."""
        self.topics: list[str] = []
        """The name of each one's topic, empty where the log does not know it."""
        self.statuses: list[PartitionStatus] = []
        self._status_numbers: dict[PartitionStatus, int] = {}
        self._numbers: dict[bytes, int] = {}
        self._status: list[int] = []
        self._leader_epoch: list[int] = []
        self._partition_epoch: list[int] = []
        self._moves: dict[int, dict[bytes, int]] = {}
        """The next status of each change by status, as twice its number, and one more where the leader epoch rises."""
        self._changes: dict[bytes, Fields] = {}
        self._said: dict[tuple[int, bytes], _Said] = {}
        """The contents of a PartitionRecord by version and tail."""
        self._version = -1
        self._move_count = 0
        self._blocks: list[Steps] = []
        self._rows: list[tuple[int, ...]] = []
        self._with_elr: dict[str, set[int]] = {}
        """The partitions by topic that had an ELR when their steps were last looked at."""
        self.odd: list[int] = []
        """Numbers of the records of the last run that are applied and not understood as a whole."""
        self._looked_at = 0
        """Blocks whose steps were looked at for an ELR."""

    def steps(self) -> Steps:
        """Return all steps; nothing may be applied after."""
        self._close_rows()
        self._moves, self._changes, self._said = {}, {}, {}
        steps = np.empty(sum(map(len, self._blocks)), STEP_DTYPE)
        end = len(steps)
        while self._blocks:
            # Each block is released as soon as it is copied.
            block = self._blocks.pop()
            steps[end - len(block) : end] = block
            end -= len(block)
        return steps

    def record(self, fields: Fields, topic: str, origin: Origin, *, from_snapshot: bool = False) -> None:
        """Apply a PartitionRecord, which says all about a partition; a snapshot that says what is known is no step."""
        subject = _subject(fields["topic_id"], fields["partition_id"])
        self._record(subject, topic, self._what(fields), origin, from_snapshot=from_snapshot)

    def record_all(
        self, records: PartitionRecords, topics: Mapping[str, TopicState], origins: Iterable[Origin]
    ) -> list[int]:
        """Apply many PartitionRecords, and return which of them were not applied: not understood, or all where a topic is not known."""
        names = [topics.get(uuid_text(subject[_PARTITION.size :])) for subject in records.subjects]
        if None in names:
            return list(range(len(names)))
        left: list[int] = []
        self.odd = []
        for at, (subject, tail, topic, origin) in enumerate(
            zip(records.subjects, records.tails, names, origins, strict=True)
        ):
            assert topic is not None
            said = self._said.get((records.version, tail))
            if said is None:
                message = parse_metadata_record(records.value(at))
                if not isinstance(message, Decoded):
                    left.append(at)
                    continue
                if not_understood(message):
                    self.odd.append(at)
                    said = self._what(message.fields)
                else:
                    if len(self._said) >= MOST_MOVES:
                        self._said = {}
                    said = self._said[records.version, tail] = self._what(message.fields)
            self._record(subject, topic.name, said, origin)
        return left

    def _what(self, fields: Fields) -> _Said:
        return self._number_of(stated_status(fields)), fields["leader_epoch"], fields["partition_epoch"]

    def _record(self, subject: bytes, topic: str, said: _Said, origin: Origin, *, from_snapshot: bool = False) -> None:
        status, leader_epoch, partition_epoch = said
        number = self._numbers.setdefault(subject, len(self.keys))
        if number == len(self.keys):
            self.keys.append((uuid_text(subject[_PARTITION.size :]), _PARTITION.unpack_from(subject)[0]))
            self.topics.append(topic)
            self._status.append(status)
            self._leader_epoch.append(leader_epoch)
            self._partition_epoch.append(partition_epoch)
        else:
            is_known = said == (self._status[number], self._leader_epoch[number], self._partition_epoch[number])
            if from_snapshot and is_known and self.topics[number] == topic:
                return
            self.topics[number] = topic or self.topics[number]
            self._status[number] = status
            self._leader_epoch[number] = leader_epoch
            self._partition_epoch[number] = partition_epoch
        self._write_now(number, status, origin)

    def change(self, fields: Fields, origin: Origin) -> bool:
        """Apply a PartitionChangeRecord, and return whether there is such a partition."""
        number = self._numbers.get(_subject(fields["topic_id"], fields["partition_id"]))
        if number is None:
            return False
        move = self._move(self._status[number], fields)
        self._status[number] = move >> 1
        self._write_step(number, move, origin)
        return True

    def change_all(
        self, changes: PartitionRecords, offsets: NDArray[np.int64], times: NDArray[np.int64], places: NDArray[np.int64]
    ) -> list[int]:
        """Apply many PartitionChangeRecords, and return which of them were not applied: no such partition, or not understood."""
        if changes.version != self._version:
            self._forget_moves()
            self._version = changes.version
        numbers, moves, statuses = self._numbers, self._moves, self._status
        left: list[int] = []
        self.odd = []
        taken: list[int] = []
        taken_moves: list[int] = []
        take, take_move = taken.append, taken_moves.append
        for at, (subject, tail) in enumerate(zip(changes.subjects, changes.tails, strict=True)):
            try:
                number = numbers[subject]
                move = moves[statuses[number]][tail]
            except KeyError:
                learned = self._learn(subject, tail, changes, at)
                if learned is None:
                    left.append(at)
                    continue
                number, move = numbers[subject], learned
                moves = self._moves
            statuses[number] = move >> 1
            take(number)
            take_move(move)
        if left:
            kept = np.delete(np.arange(len(offsets)), left)
            offsets, times, places = offsets[kept], times[kept], places[kept]
        if len(taken) < FEW_STEPS:
            origins = map(Origin, offsets.tolist(), times.tolist(), places.tolist())
            for number, move, origin in zip(taken, taken_moves, origins, strict=True):
                self._write_step(number, move, origin)
        else:
            self._write_steps(taken, taken_moves, offsets, times, places)
        return left

    def clear_elr(self, topic: str, is_live: Callable[[str], bool], origin: Origin) -> None:
        """Apply a ClearElrRecord, whose topic is empty for all topics (KIP-966)."""
        self._look_for_elr()
        names = [topic] if topic else list(self._with_elr)
        for number in sorted({number for name in names for number in self._with_elr.pop(name, ())}):
            status = self.statuses[self._status[number]]
            if has_elr(status) and (not topic or self.topics[number] == topic) and is_live(self.keys[number][0]):
                cleared = status._replace(eligible_leader_replicas=(), last_known_elr=())
                self._status[number] = self._number_of(cleared)
                self._write_step(number, self._status[number] << 1, origin)

    def _look_for_elr(self) -> None:
        """Go through the steps since the last time: a log that clears often must not cost all partitions each time."""
        self._close_rows()
        for block in self._blocks[self._looked_at :]:
            for number in distinct(block["partition"]).tolist():
                if has_elr(self.statuses[self._status[number]]):
                    self._with_elr.setdefault(self.topics[number], set()).add(number)
        self._looked_at = len(self._blocks)

    def _write_step(self, number: int, move: int, origin: Origin) -> None:
        self._leader_epoch[number] += move & 1
        self._partition_epoch[number] += 1
        self._write_now(number, move >> 1, origin)

    def _write_now(self, number: int, status: int, origin: Origin) -> None:
        self._rows.append((*origin, number, status, self._leader_epoch[number], self._partition_epoch[number]))

    def _write_steps(
        self,
        numbers: list[int],
        moves: list[int],
        offsets: NDArray[np.int64],
        times: NDArray[np.int64],
        places: NDArray[np.int64],
    ) -> None:
        self._close_rows()
        block = np.zeros(len(numbers), STEP_DTYPE)
        block["offset"], block["timestamp_ms"], block["place"] = offsets, times, places
        block["partition"], move = numbers, np.array(moves)
        block["status"] = move >> 1
        order = np.argsort(block["partition"], kind="stable")
        raised = (move & 1)[order]
        partitions = block["partition"][order]
        firsts = np.flatnonzero(np.diff(partitions, prepend=-1))
        counts = np.diff(firsts, append=len(order))
        each = partitions[firsts].tolist()
        total = np.cumsum(raised)
        before = np.array([self._leader_epoch[number] for number in each]) - (total - raised)[firsts]
        block["leader_epoch"][order] = np.repeat(before, counts) + total
        before = np.array([self._partition_epoch[number] for number in each]) - firsts
        block["partition_epoch"][order] = np.repeat(before, counts) + np.arange(1, len(order) + 1)
        last = order[firsts + counts - 1]
        ends = zip(each, block["leader_epoch"][last].tolist(), block["partition_epoch"][last].tolist(), strict=True)
        for number, leader_epoch, partition_epoch in ends:
            self._leader_epoch[number] = leader_epoch
            self._partition_epoch[number] = partition_epoch
        self._blocks.append(block)

    def _learn(self, subject: bytes, tail: bytes, changes: PartitionRecords, at: int) -> int | None:
        """Return the status that a change leads to, which was not met in this status yet."""
        number = self._numbers.get(subject)
        if number is None:
            return None
        fields = self._changes.get(tail)
        if fields is None:
            message = parse_metadata_record(changes.value(at))
            if not isinstance(message, Decoded):
                return None
            fields = message.fields
            if not_understood(message):
                self.odd.append(at)
                return self._move(self._status[number], fields)
        if self._move_count >= MOST_MOVES:
            self._forget_moves()
        before = self._status[number]
        move = self._move(before, fields)
        self._changes[tail] = fields
        self._moves.setdefault(before, {})[tail] = move
        self._move_count += 1
        return move

    def _forget_moves(self) -> None:
        self._moves = {}
        self._changes = {}
        self._move_count = 0

    def _move(self, before: int, fields: Fields) -> int:
        # The epoch rises with every record that names a leader, even the one that leads already.
        raised = int(fields["leader"] != LEADER_UNCHANGED)
        return self._number_of(changed_status(self.statuses[before], fields)) << 1 | raised

    def _number_of(self, status: PartitionStatus) -> int:
        number = self._status_numbers.setdefault(status, len(self.statuses))
        if number == len(self.statuses):
            self.statuses.append(status)
        return number

    def _close_rows(self) -> None:
        if self._rows:
            self._blocks.append(np.array(self._rows, STEP_DTYPE))
            self._rows = []


def _subject(topic_id: str, partition: int) -> bytes:
    """Return a partition as the log writes it."""
    return _PARTITION.pack(partition) + uuid_bytes(topic_id)
