"""Which offsets of a log are in remote storage: those that brokers read from a copy whose finish is on record."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.remote_copies import CopyState, RemoteSegment
from kforensics.formats.primitives.numbers import uuid_bytes
from kforensics.protocol.coordinators import remote_log_partition
from kforensics.units import REMOTE_LOG_TOPIC, EpochEntry, OffsetRange, TopicPartition

_UUID_LENGTH = 16
_DELETED = frozenset({CopyState.DELETE_STARTED, CopyState.DELETE_FINISHED})


class RemotePart(NamedTuple):
    """Offsets of a log that are on no disk, and what is on record of their copies in remote storage."""

    offsets: OffsetRange
    segment: RemoteSegment | None = None
    """The finished copy that brokers read them from; None where none is on record."""
    others: tuple[RemoteSegment, ...] = ()
    """Copies of some of them that brokers do not read, the last one changed last."""
    is_deleted: bool = False
    """Brokers deleted the copies of these offsets and of all below them, as retention does."""
    copies: int = 1
    """How many finished copies hold them, the one above the first."""
    lacks: str = ""
    """The record that would name a copy and was not read whole; empty where it was."""

    @property
    def why(self) -> str:
        """What became of the newest copy that brokers do not read, in words; empty where none is on record."""
        if not self.others:
            return ""
        last = self.others[-1]
        return f"{last.words}, and its leader epochs are not those of the log" if last.is_finished else last.words

    @property
    def words(self) -> str:
        """Where they are, without naming them, and what shows it."""
        detail = f"{self.lacks} would name the copies" if self.lacks else self.why
        if self.segment is not None:
            what = "in remote storage, and in no live log here"
            detail = self.segment.words if self.copies == 1 else f"{self.copies:,} finished copies are on record"
        elif self.is_deleted:
            what = "deleted from remote storage, and in no live log here"
        elif self.lacks:
            what = "in no live log here: only remote storage, which was not searched, can hold them"
        else:
            what = "in no live log here, and in no finished copy in remote storage"
        return f"{what}{'; ' if detail else ''}{detail}"


@dataclass(frozen=True, slots=True)
class RemoteCopies:
    """Every copy on record, and how much of the record was read."""

    segments: Mapping[TopicPartition, Mapping[str, Sequence[RemoteSegment]]] = field(default_factory=dict)
    whole: frozenset[int] = frozenset()
    """Partitions of `__remote_log_metadata` of which every record was read."""
    partitions: int | Absent = Absent.UNKNOWN
    """How many it has."""

    def of(self, partition: TopicPartition, topic_id: str | Absent) -> Sequence[RemoteSegment]:
        """Return the copies of a partition; of one whose topic id is not known those of the only topic of its name."""
        named = self.segments.get(partition, {})
        if not isinstance(topic_id, Absent):
            return named.get(topic_id, ())
        return next(iter(named.values())) if len(named) == 1 else ()

    def former(self, partition: TopicPartition, topic_id: str | Absent) -> tuple[RemoteSegment, ...]:
        """Return the copies of a partition of that name whose topic has another id, and whose bytes may be left."""
        named = {} if isinstance(topic_id, Absent) else self.segments.get(partition, {})
        return tuple(
            one for other, copies in named.items() if other != topic_id for one in copies if one.may_hold_bytes
        )

    def lacks(self, partition: TopicPartition, topic_id: str | Absent) -> str:
        """Return the record of the copies of a partition where it was not read whole, in words."""
        raw, known = _uuid(topic_id), self.of(partition, topic_id)
        if known:
            number = known[0].recorded_in
        elif raw is None or isinstance(self.partitions, Absent):
            return f"{REMOTE_LOG_TOPIC} with all of its partitions"
        else:
            number = remote_log_partition(raw, partition.partition, self.partitions)
        return "" if number in self.whole else f"{REMOTE_LOG_TOPIC}-{number}, read whole,"

    def parts(
        self,
        offsets: OffsetRange,
        partition: TopicPartition,
        topic_id: str | Absent,
        epochs: Sequence[EpochEntry],
        log_start: int,
    ) -> Iterator[RemotePart]:
        """Yield offsets of the leader's log that are on no disk, by what is on record of their copies."""
        segments = self.of(partition, topic_id)
        begins = begins_at(log_start, epochs, segments)
        if begins > offsets.first:
            passed = tuple(one for one in segments if one.offsets.last < begins)
            yield RemotePart(OffsetRange(offsets.first, min(offsets.last, begins - 1)), None, passed, is_deleted=True)
            if begins > offsets.last:
                return
            offsets = OffsetRange(begins, offsets.last)
        lacks = self.lacks(partition, topic_id)
        held = _readable((one for one in segments if one.is_finished), epochs)
        deleted = _readable((one for one in segments if one.state in _DELETED), epochs)
        found = [RemotePart(there, one) for there, one in _cut(offsets, held)]
        for hole in offsets.without(part.offsets for part in found):
            gone = list(_cut(hole, deleted))
            found += [RemotePart(there, None, (one,), is_deleted=True) for there, one in gone]
            for rest in hole.without(there for there, _ in gone):
                near = [one for one in segments if one.offsets.meets(rest)]
                is_newer = any(one.state > CopyState.DELETE_FINISHED for one in near)
                open_by = lacks or ("a version that knows the states of these copies" if is_newer else "")
                found.append(RemotePart(rest, None, tuple(sorted(near, key=lambda one: one.changed_ms)), lacks=open_by))
        found.sort(key=lambda part: part.offsets)
        is_first = offsets.first in {log_start, begins}
        below = len(list(takewhile(lambda part: part.is_deleted, found))) if is_first else 0
        joined: list[RemotePart] = []
        before = None
        for one in (*found[:below], *(part._replace(is_deleted=False) for part in found[below:])):
            last = joined[-1] if joined else None
            if (
                last is None
                or last.segment is None
                or one.segment is None
                or last.offsets.last + 1 != one.offsets.first
            ):
                joined.append(one)
            else:
                offsets = OffsetRange(last.offsets.first, one.offsets.last)
                joined[-1] = last._replace(offsets=offsets, copies=last.copies + (one.segment != before))
            before = one.segment
        yield from joined


def begins_at(log_start: int, epochs: Sequence[EpochEntry], copies: Sequence[RemoteSegment]) -> int:
    """Return where a log begins: above its checkpoint where its leader epochs begin later and brokers delete what was in remote storage from the old start on.

    A broker moves the log start, and takes the leader epochs below it out of their file, before it deletes anything; the checkpoint is written up to a minute later. When
    it leads again it takes the log start from the leader epochs and the copies that are left (`RemoteLogManager.findLogStartOffset`).
    """
    first = epochs[0].start_offset if epochs else log_start
    is_deleting = any(one.state in _DELETED and one.offsets.first <= log_start for one in copies)
    return first if first > log_start and is_deleting else log_start


class Tier(StrEnum):
    """Where offsets of a log are."""

    LOCAL = "local"
    REMOTE = "remote"
    BOTH = "both"
    DELETED = "deleted"
    """Nowhere, and brokers deleted the remote copy."""
    UNKNOWN = "unknown"
    """In no live log here, and the record of the copies was not read whole."""
    NEITHER = "neither"


class TierRange(NamedTuple):
    """A run of offsets that are in one place."""

    offsets: OffsetRange
    tier: Tier


Beside = tuple[tuple[OffsetRange, RemoteSegment], ...]
"""Offsets that a log has not, each run with the finished copy that holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiers:
    """One partition in both tiers."""

    partition: TopicPartition
    log_start_offset: int
    log_end_offset: int
    local: tuple[OffsetRange, ...]
    """What the disks here hold of it."""
    parts: tuple[RemotePart, ...]
    """What they do not hold."""
    copies: Sequence[RemoteSegment]
    """All copies in remote storage on record."""
    epochs: tuple[EpochEntry, ...]
    """Of its log."""
    former: tuple[RemoteSegment, ...]
    """Copies of a topic of that name with another id."""

    @classmethod
    def of(
        cls,
        partition: TopicPartition,
        topic_id: str | Absent,
        log: OffsetRange,
        local: Sequence[OffsetRange],
        epochs: Sequence[EpochEntry],
        remote: RemoteCopies,
    ) -> "Tiers":
        """Return where the offsets of the leader's log are, of which the disks here hold the local ones."""
        parts = (
            part for hole in log.without(local) for part in remote.parts(hole, partition, topic_id, epochs, log.first)
        )
        return cls(
            partition=partition,
            log_start_offset=log.first,
            log_end_offset=log.last + 1,
            local=tuple(local),
            parts=tuple(parts),
            copies=remote.of(partition, topic_id),
            epochs=tuple(epochs),
            former=remote.former(partition, topic_id),
        )

    @property
    def ranges(self) -> tuple[TierRange, ...]:
        """All offsets of the log in their order."""
        log = OffsetRange(self.log_start_offset, self.log_end_offset - 1)
        finished = [there for one in self.copies if one.is_finished for there in one.readable(self.epochs)]
        found = [TierRange(part.offsets, _tier(part)) for part in self.parts]
        here = log.without(part.offsets for part in self.parts)
        for run in here:
            alone = list(run.without(finished))
            found += [TierRange(one, Tier.LOCAL) for one in alone]
            found += [TierRange(one, Tier.BOTH) for one in run.without(alone)]
        joined: list[TierRange] = []
        for one in sorted(found):
            if joined and joined[-1].tier is one.tier and joined[-1].offsets.last + 1 == one.offsets.first:
                joined[-1] = TierRange(OffsetRange(joined[-1].offsets.first, one.offsets.last), one.tier)
            else:
                joined.append(one)
        return tuple(joined)

    def unread(self, beside: Beside) -> tuple[RemoteSegment, ...]:
        """Return the copies whose bytes may be in remote storage though brokers do not read all of them."""
        read = (one for one in self.copies if one.is_finished and any(one.readable(self.epochs)))
        whole = {one.segment_id for one in read} - {one.segment_id for _, one in beside}
        return tuple(one for one in self.copies if one.may_hold_bytes and one.segment_id not in whole)

    @property
    def beside(self) -> Beside:
        """Offsets of finished copies that the log has not: they were committed when a broker copied them.

        A broker takes the leader epochs along of what it deletes, before its checkpoint says so.
        """
        begins = max(self.log_start_offset, self.epochs[0].start_offset if self.epochs else 0)
        log = OffsetRange(begins, self.log_end_offset - 1)
        return tuple((there, one) for one in self.copies if one.is_finished for there in one.beside(self.epochs, log))


def _tier(part: RemotePart) -> Tier:
    if part.segment is not None:
        return Tier.REMOTE
    if part.is_deleted:
        return Tier.DELETED
    return Tier.UNKNOWN if part.lacks else Tier.NEITHER


_Held = list[tuple[OffsetRange, RemoteSegment]]


def _readable(segments: Iterator[RemoteSegment], epochs: Sequence[EpochEntry]) -> _Held:
    return sorted(
        ((there, one) for one in segments for there in one.readable(epochs)),
        key=lambda pair: (pair[0], pair[1].changed_ms),
    )


def _cut(offsets: OffsetRange, held: _Held) -> Iterator[tuple[OffsetRange, RemoteSegment]]:
    """Yield the parts of offsets that copies hold, each offset once."""
    begin = offsets.first
    for there, one in held:
        first, last = max(there.first, begin), min(there.last, offsets.last)
        if first <= last:
            yield OffsetRange(first, last), one
            begin = last + 1


def _uuid(topic_id: str) -> bytes | None:
    try:
        raw = uuid_bytes(topic_id)
    except ValueError:
        return None
    return raw if len(raw) == _UUID_LENGTH else None
