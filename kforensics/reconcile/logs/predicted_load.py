"""What a start makes of one log, and of its node: values that commands make and findings judge."""

from dataclasses import dataclass
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.protocol.loading.starts import StartResult
from kforensics.protocol.loading.values import FileAction, FileChange
from kforensics.units import EpochEntry


class LostPiece(NamedTuple):
    """Bytes of a log file that the broker will not read again."""

    file: str
    """Its name on disk."""
    position: int
    end: int
    """Where the file ended before the load; earlier starts may have cut it."""
    first_offset: int = 0
    """Batches that end below it are not lost: they are kept, or lie below the log start."""


class Holder(NamedTuple):
    """A replica that holds records which are discarded."""

    input: int
    broker_id: int | Absent
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRecords:
    """What one load of one directory discards."""

    pieces: tuple[LostPiece, ...] = ()
    records: int = 0
    certain: int = 0
    """Below the high watermark that the broker checkpointed: certainly committed."""
    possible: int = 0
    held_by: tuple[Holder, ...] = ()
    only_here: int = 0
    """Records that no other input holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """A log before or after a start."""

    log_start_offset: int | Absent
    log_end_offset: int | Absent
    recovery_point: int | Absent
    last_stable_offset: int | Absent
    epochs: tuple[EpochEntry, ...] | Absent
    segments: tuple[tuple[int, int], ...]
    """Base offset and bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLog:
    """What one start makes of one directory, as its own load ends."""

    start: int
    input: int
    path: str
    topic: str | Absent
    partition: int | Absent
    outcome: str
    """`loads`, `fails` or `unknown`."""
    exception: str | Absent
    message: str
    before: LogState
    after: LogState | Absent
    files: tuple[FileChange, ...]
    scanned: tuple[tuple[int, int, int], ...]
    """Segments that are read through: base offset, bytes before, bytes after."""
    lost: LostRecords

    @property
    def is_changed(self) -> bool:
        """Whether more than the length of the active indexes changes."""
        return any(one.action is not FileAction.EXTEND or one.rule != "active-index-extended" for one in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedStart:
    """One start of one node."""

    number: int
    input: int
    result: StartResult | Absent
    exception: str | Absent
    reason: str
    clean: bool
    """All of its log directories hold `.kafka_cleanshutdown` as it begins."""
    bytes_scanned: int
    logs_scanned: int
