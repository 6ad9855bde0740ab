"""The facts about one partition directory before its files are read, and the reports on each file afterwards."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.evidence.discovery.partition_dirs import CleanerLag, left_by_cleaning
from kforensics.evidence.model import CheckpointValue
from kforensics.formats.log.sequences import SequenceBreak, WrittenAgain
from kforensics.source.naming import DirectoryState, FileKind, FileSuffix, PartitionDirectoryName
from kforensics.source.walk import FoundFile
from kforensics.units import EpochEntry, OffsetRange, TopicPartition

__all__ = [
    "CheckedPartition",
    "FileKind",  # for conclusions, which do not import what opens files
    "FileReport",
    "FileState",
    "PartitionContext",
    "Remark",
    "SoundRange",
    "base_offset_of",
    "mismatch",
    "state_of",
]


class FileState(StrEnum):
    """The verdict on one file."""

    INTACT = "intact"
    TORN_TAIL = "torn-tail"
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """One file, checked; `path` is relative to the input."""

    input: int
    path: str
    kind: FileKind
    length: int
    state: FileState
    batches: int | Absent = Absent.NOT_APPLICABLE
    records: int | Absent = Absent.NOT_APPLICABLE
    damage: tuple[Damage, ...] = ()
    is_leftover: bool = False
    """What an unfinished write left; it is not looked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something about a partition that is no damage of a file there: worth a note."""

    path: str
    statement: str
    file_kind: FileKind
    """The kind of the file that the remark is about."""
    offsets: OffsetRange | Absent = Absent.NOT_APPLICABLE
    """The offsets that may be missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionContext:
    """One partition directory with what its log directory says of it; small enough to be sent to another process."""

    input: int
    root: Path
    path: str
    directory: PartitionDirectoryName | Absent
    files: tuple[FoundFile, ...]
    clean_shutdown: bool | Absent
    """Unknown where the log directory around the partition is not among the inputs."""
    high_watermark: CheckpointValue | Absent = Absent.UNKNOWN
    recovery_point: CheckpointValue | Absent = Absent.UNKNOWN
    log_start: CheckpointValue | Absent = Absent.UNKNOWN
    cleaner_point: CheckpointValue | Absent = Absent.UNKNOWN
    broker_epoch: int | Absent = Absent.UNKNOWN
    """The highest that the markers of clean stops in the node's log directories name."""
    are_logs_left_out: bool = False
    """The copy holds no segment of any partition, or the directory could not be listed: what is not here need not be missing."""
    has_remote_logs: bool = False
    """Logs of the node are in remote storage, or can be (KIP-405): segments at the beginning of a log need not be here."""

    @property
    def topic_partition(self) -> TopicPartition | Absent:
        """Return the partition, if the name of the directory shows it."""
        return Absent.UNKNOWN if isinstance(self.directory, Absent) else self.directory.topic_partition

    @property
    def is_live(self) -> bool:
        """Whether it is the directory of a replica that its broker has: not set aside, moved or left over."""
        return not isinstance(self.directory, Absent) and self.directory.state is DirectoryState.LIVE

    @property
    def may_shrink_at_start(self) -> bool:
        """Whether a start can take sound records from the directory: it is set aside, or its log start is on record and may lie above its segments."""
        return not self.is_live or isinstance(self.log_start, CheckpointValue)

    @property
    def is_metadata(self) -> bool:
        """Return whether this is the KRaft log, which a node always recovers in full."""
        return not isinstance(self.directory, Absent) and self.directory.is_metadata

    def may_recover(self, end_offset: int) -> bool:
        """Return whether the next start would scan a segment that ends at the exclusive offset; true unless something contradicts it."""
        if self.is_metadata:
            return True
        if self.clean_shutdown is True:
            return False
        return isinstance(self.recovery_point, Absent) or self.recovery_point.value <= end_offset

    @property
    def is_replacing(self) -> bool:
        """Whether the next start puts segments in place that a cleaning has written: those that it replaces may be gone."""
        return any(is_taken for _, is_taken in left_by_cleaning(self.files))

    def of_kind(self, kind: FileKind) -> tuple[FoundFile, ...]:
        """Return the directory's files of a kind that are in use, in the order of their offsets."""
        chosen = [file for file in self.files if file.name.kind is kind and file.name.suffix is FileSuffix.NONE]
        return tuple(sorted(chosen, key=lambda file: (base_offset_of(file), file.path)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPartition:
    """Every file of one partition directory, checked, and what else there is to say."""

    context: PartitionContext
    reports: tuple[FileReport, ...]
    remarks: tuple[Remark, ...] = ()
    elsewhere: tuple[tuple[str, Damage], ...] = ()
    """Damage in files outside of the directory: checkpoint lines that contradict the log."""
    problems: tuple[tuple[str, str], ...] = ()
    """Path and what could not be read."""
    coverage: tuple["SoundRange", ...] = ()
    topic_id: str | Absent = Absent.NOT_WRITTEN
    cleaner_lag: CleanerLag | None = None
    stamped_ahead: tuple["StampedAhead", ...] = ()
    """Of each segment its largest timestamp, where it is of the future."""
    leader_epochs: tuple[EpochEntry, ...] = ()
    """Those in `leader-epoch-checkpoint`."""
    sequence_breaks: tuple[SequenceBreak, ...] = ()
    """Where the sequences of a producer do not follow each other, though nothing of the log is damaged and no cleaner has been over it."""
    remembered: tuple["Remembered", ...] = ()
    written_again: tuple[WrittenAgain, ...] = ()
    """Batches of a raised epoch with the records of one before."""


class Remembered(NamedTuple):
    """A missing sequence that a producer snapshot of the same directory names: its batch was in the log."""

    sequence: int
    offset: int
    path: str


class StampedAhead(NamedTuple):
    """A record stamped later than it can have been written, or in seconds."""

    path: str
    first_offset: int
    last_offset: int
    """Of its batch."""
    timestamp_ms: int
    known_ms: int
    """The time that it is ahead of, or far behind."""
    against: str
    """What that time is, in words."""
    producer_id: int
    """Of its batch; -1 of a producer that is not idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundRange:
    """Offsets of one segment between its first and last sound batch, and those of them that are lost."""

    first_offset: int
    last_offset: int
    lost: tuple[tuple[int, int], ...] = field(default=())
    epochs: tuple[tuple[int, int], ...] = field(default=())
    """Leader epochs and their first offsets, in file order."""


def base_offset_of(file: FoundFile) -> int:
    """Return the offset in a file's name, -1 where the name has none."""
    return file.name.base_offset if isinstance(file.name.base_offset, int) else -1


def state_of(damage: Iterable[Damage]) -> FileState:
    """Return the verdict that follows from what was met; what is stale by design leaves a file intact."""
    gravities = {place.gravity for place in damage}
    if Gravity.DAMAGE in gravities:
        return FileState.DAMAGED
    if Gravity.UNREAD in gravities:
        return FileState.UNREADABLE
    if gravities & {Gravity.TORN_TAIL, Gravity.REBUILDABLE}:
        return FileState.TORN_TAIL
    return FileState.INTACT


def mismatch(
    span: Span, *, expected: str, found: str, gravity: Gravity, kind: DamageKind = DamageKind.MISMATCH
) -> Damage:
    """Return a place that contradicts a neighbouring file."""
    return Damage(span=span, kind=kind, expected=expected, found=found, gravity=gravity)
