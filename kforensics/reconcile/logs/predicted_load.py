"""What a start makes of one log, and of its node: values that commands make and findings judge."""

from dataclasses import dataclass
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.protocol.loading.node import Fate
from kforensics.protocol.loading.retention import RetentionRule
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
class DueSegments:
    """Segments that retention deletes some 30 seconds after a start, once the high watermark has reached the log end."""

    base_offsets: tuple[int, ...]
    bytes: int
    rule: RetentionRule
    """By which the newest of them is deleted."""
    is_setting_known: bool
    """The settings are those of the metadata, of `server.properties` or of the command line, not Kafka's defaults."""
    is_whole_log: bool
    """Nothing is left of the log."""


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
    node: int
    """The input by which its node is named."""
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
    fate: Fate = Fate.KEPT
    """What becomes of the directory apart from how its log loads."""
    is_reached: bool = True
    """Whether the start comes as far as loading it; what is said of it otherwise is what would come of it."""
    is_unreadable: bool = False
    """A file of it can't be read here; what a broker finds that can read it is not known."""
    due: DueSegments | Absent = Absent.NOT_APPLICABLE
    takes_directory_offline: bool = False
    """Its load throws what takes its log directory offline, and not the process down (3.2.1)."""

    @property
    def start_word(self) -> str:
        """The whole in one word: what a start does to the directory, the gravest first."""
        if self.outcome == "unknown":
            return "unknown"
        if self.outcome == "fails" or self.fate is Fate.EXITS:
            return "offline" if self.takes_directory_offline else "exits"
        if self.fate in {Fate.STRAY, Fate.DELETED}:
            return self.fate.value
        return "scanned" if self.scanned else "kept"

    @property
    def is_changed(self) -> bool:
        """Whether more than the length of the active indexes changes."""
        if self.fate in {Fate.STRAY, Fate.PROMOTED, Fate.DELETED}:
            return True
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
    kafka: str
    """The version that is started."""
    loads_logs: bool
    """Whether it comes as far as loading logs; one that does not changes none of them."""
    bytes_scanned: int
    logs_scanned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLoad:
    """The metadata log of a node once it is opened, as after a crash whatever the marker says."""

    node: int
    input: int
    path: str
    log_end_offset: int | Absent
    snapshot_end: int | Absent
    """The log is dropped for a snapshot that ends here."""
    lost: LostRecords
    unknown: str = ""
    """Why it can't be told."""


class VersionOutcome(NamedTuple):
    """What another version that the evidence allows would do otherwise."""

    input: int
    kafka: str
    result: StartResult | Absent
    exception: str | Absent
    reason: str
