"""A traced record: its copies, what became of it, and which offsets were read."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.evidence.remote_copies import RemoteSegment
from kforensics.formats.log.records import Record
from kforensics.reconcile.salvage import GapReason
from kforensics.units import OffsetRange, TopicPartition

Commitment = Literal["certain", "possible", "no", "unknown"]
Visibility = Literal["visible", "aborted", "undecided", "unknown"]


class CopyKind(StrEnum):
    """What the copy of a record is in."""

    LIVE = "live"
    """A replica among the inputs as they are now."""
    SNAPSHOT = "snapshot"
    """An earlier snapshot."""
    DELETED = "deleted"
    """Files or a directory renamed for deletion."""
    STRAY = "stray"
    FUTURE = "future"


class FateKind(StrEnum):
    """What happened to a record, or will."""

    TRUNCATED = "truncated"
    WILL_BE_TRUNCATED = "will-be-truncated"
    SUPERSEDED = "superseded"
    TOMBSTONED = "tombstoned"
    TOMBSTONE = "tombstone"
    BELOW_LOG_START = "below-log-start"
    DELETED_EARLY = "deleted-early"
    """Retention took its segment for older than it was."""
    CLEANED = "cleaned"
    TOPIC_DELETED = "topic-deleted"
    ABORTED = "aborted"
    UNDECIDED = "undecided"
    """The transaction has no marker in this log."""
    OUTSIDE = "outside-of-the-log"
    """In a live directory, above what the start of its broker keeps or the leader holds, or of a broker that is no replica."""
    REMOTE = "remote"
    """Below the first local segment of a log that begins earlier: only remote storage can hold it."""
    DIVERGED = "diverged"
    """Held by replicas that keep other content than the leader: who reads from the leader is not given it."""
    UNEXPLAINED = "unexplained"


class Until(NamedTuple):
    """Until when bytes lie where they are."""

    statement: str
    not_before_ms: int | Absent = Absent.UNKNOWN
    """The earliest time at which a broker removes them, by the evidence."""
    by_ms: int | Absent = Absent.UNKNOWN
    """The time from which on a running broker is due to remove them."""


class TracedCopy(NamedTuple):
    """One copy of a record on a disk."""

    broker_id: int | Absent
    input: int
    path: str
    position: int
    """Of its batch in the file, in bytes."""
    kind: CopyKind
    until: Until


class Fate(NamedTuple):
    """One thing that happened to a record, or will."""

    kind: FateKind
    statement: str
    citations: tuple[Citation, ...] = ()


class TracedRecord(NamedTuple):
    """One record, with all that became of it."""

    partition: TopicPartition
    topic_id: str | Absent
    offset: int
    record: Record | None
    """None where no copy is left, and only log lines or other records show what became of it."""
    leader_epoch: int | Absent
    committed: Commitment
    read_committed: Visibility
    """What a consumer with `isolation.level=read_committed` is given of it."""
    state: str
    """One of the states of `trace`."""
    fate: tuple[Fate, ...]
    copies: tuple[TracedCopy, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchGap:
    """Offsets of a partition that were not searched, or files that were not."""

    partition: TopicPartition
    offsets: OffsetRange | Absent
    reason: GapReason | Literal["missing-replica", "unknown-replicas", "unknown-leader", "truncated", "unreadable"]
    detail: str

    def __str__(self) -> str:
        """Return the gap in words."""
        if isinstance(self.offsets, Absent):
            return f"{self.partition}: {self.detail}"
        many = "s" if self.offsets.last > self.offsets.first else ""
        last = f" to {self.offsets.last:,}" if many else ""
        return f"{self.partition} at offset{many} {self.offsets.first:,}{last}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedPartition:
    """What was searched of one partition."""

    partition: TopicPartition
    leader: int | Absent
    is_leader_known: bool
    replicas: int
    segments: int
    bytes: int
    records: int
    log_start_offset: int | Absent
    log_end_offset: int | Absent
    covered: tuple[OffsetRange, ...]
    """Offsets of the leader's lineage that were read, transaction markers among them."""
    gaps: tuple[SearchGap, ...]
    may_lack_truncated: bool = False
    """Records that no input holds were truncated, or may have been at an election that is on record."""
    doubted_from: int | Absent = Absent.NOT_APPLICABLE
    """The first offset at which no input would show that another record was truncated."""
    remote_bytes: tuple[RemoteSegment, ...] = ()
    """Copies on record whose bytes may be in remote storage, which was not searched."""
    displaced: tuple[str, ...] = ()
    """Why another record may have had the offset that was asked for, beside the one that has it now, as parts of sentences."""
