"""What a start makes of one log, and of its node: values that commands make and findings judge."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.protocol.election import ElectionKind
from kforensics.protocol.loading.disk import FileAction, FileChange
from kforensics.protocol.loading.node import Fate
from kforensics.protocol.loading.starts import StartResult
from kforensics.protocol.retention import RetentionRule
from kforensics.units import EpochEntry

IDENTITY_UNREAD = "its meta.properties can't be read here, and a start begins with it"


class LostPiece(NamedTuple):
    """Bytes of a log file that the broker will not read again."""

    file: str
    """Its name on disk."""
    position: int
    end: int
    """Where the file ended before the load; earlier starts may have truncated it."""
    first_offset: int = 0
    """Batches that end below it are not lost: they are kept, or lie below the log start."""


class DiscardHolder(NamedTuple):
    """A replica that holds records which are discarded."""

    input: int
    broker_id: int | Absent
    records: int


def committed_words(certain: int, records: int) -> str:
    """Return how many of some records are known to be committed, in words: high watermarks prove no more than a part."""
    if not certain:
        return "none below a checkpointed high watermark"
    return f"{certain:,} committed" if certain >= records else f"at least {certain:,} committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRecords:
    """The records that one load of one directory discards."""

    pieces: tuple[LostPiece, ...] = ()
    records: int = 0
    certain: int = 0
    """Below the high watermark that the broker checkpointed: certainly committed."""
    possible: int = 0
    held_by: tuple[DiscardHolder, ...] = ()
    only_here: int = 0
    """Records that no other input holds, or that it discards too."""

    @property
    def committed(self) -> str:
        """How many of them are known to be committed, in words."""
        return committed_words(self.certain, self.records)


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
    misdated: tuple[int, ...] = ()
    """Of these by time: those that their time index makes older than their records are, which are not due."""
    is_copied: bool = False
    """They are in finished copies in remote storage: they go from this disk alone."""


class PinnedRetention(NamedTuple):
    """A segment whose timestamp is of the future, so that retention by time deletes neither it nor one behind it."""

    base_offset: int
    timestamp_ms: int
    due_ms: int
    """When it is due."""


class FurtherEnd(NamedTuple):
    """A file that shows that a log was longer than it is."""

    file: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAtStart:
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
    """The result of one start for one directory, as its own load ends."""

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
    before: LogAtStart
    after: LogAtStart | Absent
    files: tuple[FileChange, ...]
    scanned: tuple[tuple[int, int, int], ...]
    """Segments that are read through: base offset, bytes before, bytes after."""
    lost: LostRecords
    topic_id: str | Absent = Absent.UNKNOWN
    topic_deleted_ms: int | Absent = Absent.NOT_APPLICABLE
    """When its topic was deleted, of a directory that goes with records of it: the deletion is on record, and asked for that."""
    fate: Fate = Fate.KEPT
    """What becomes of the directory apart from how its log loads."""
    is_reached: bool = True
    """Whether the start comes as far as loading it; what is said of it otherwise is what would come of it."""
    due: DueSegments | Absent = Absent.NOT_APPLICABLE
    pinned: PinnedRetention | None = None
    """By retention settings that are known."""
    further_end: FurtherEnd | Absent = Absent.NOT_APPLICABLE
    """The furthest end that files name above the one that the log has before the start."""
    has_only_indexes: bool = False
    """Indexes are there before the start, and no segment."""
    above_watermark: int = 0
    """Records that it loads above the high watermark that its broker checkpointed: a leader need not have them."""
    takes_directory_offline: bool = False
    """Its load throws what takes its log directory offline, and not the process down (3.2.1)."""

    @property
    def is_deletion_asked(self) -> bool:
        """Whether the deletion of its topic is on record: what goes with it was to go."""
        return isinstance(self.topic_deleted_ms, int)

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
    """Why it is not known."""
    lost_before: str = ""
    """What shows that records of it are missing before any start, in words."""


class LeavingReplica(NamedTuple):
    """A replica that a reassignment removes from its node, which was not complete when the metadata were copied."""

    node: int
    """The input by which the node is named."""
    path: str
    """Of its directory, relative to its input."""
    offset: int
    """In the metadata log: where that says so."""
    cited: Citation
    kept_by: int | Absent
    """The node of another replica that stays, and whose log holds the same offsets."""


class VersionOutcome(NamedTuple):
    """The result by another version that the evidence allows, where it differs."""

    input: int
    kafka: str
    result: StartResult | Absent
    exception: str | Absent
    reason: str


class ChangeKind(StrEnum):
    """What is taken as other than it is before a start."""

    MARKER_AWAY = "marker-away"
    MARKER_THERE = "marker-there"
    CHECKPOINT_AWAY = "checkpoint-away"
    INDEX_AWAY = "index-away"
    TIME_INDEX_AWAY = "time-index-away"
    TXN_INDEX_AWAY = "txn-index-away"
    SNAPSHOT_AWAY = "snapshot-away"
    SNAPSHOTS_AWAY = "snapshots-away"
    EPOCH_FILE_AWAY = "epoch-file-away"
    TOPIC_ID_AWAY = "topic-id-away"
    FILES_AWAY = "files-away"
    """Files whose names loading does not understand, or that an interrupted deletion or cleaning left."""
    DIRECTORY_AWAY = "directory-away"
    SPACE_FREED = "space-freed"
    RETENTION_OFF = "retention-off"
    OTHER_VERSION = "other-version"


class VirtualChange(NamedTuple):
    """One change that is played and not made."""

    kind: ChangeKind
    input: int
    """Of the paths; where there are none, of the node."""
    paths: tuple[str, ...] = ()
    """Relative to the input."""
    value: str = ""
    """A version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """What starts of a node come to after some changes; with none, as it is."""

    node: int
    changes: tuple[VirtualChange, ...]
    result: StartResult | Absent
    """Of the last start."""
    exception: str | Absent
    reason: str
    start_count: int
    records: int
    """That are discarded, or lie in a directory that was moved away or becomes a stray."""
    certain: int
    possible: int
    only_here: int
    holes: int
    """Segments that are truncated while later ones stay."""
    epochs_wrong: int
    """Logs whose epoch cache lacks an epoch of their batches, or has it begin too late."""
    transactions_forgotten: int
    """Logs whose last stable offset passes a transaction that is open."""
    bytes_scanned: int
    bytes_due: int
    """That retention deletes some 30 seconds later, by settings that are known."""
    assumed: tuple[str, ...]
    """What has to be so for this to come true."""


class Election(NamedTuple):
    """Which replica of a partition is to lead, and by what election."""

    topic: str
    partition: int
    leader: int
    is_unclean: bool | Absent
    """It is neither in the ISR nor eligible; unknown where no metadata say who is."""
    lost_certain: int
    lost_possible: int


class FirstStart(NamedTuple):
    """What other replicas hold that is discarded where a broker leads all that it holds."""

    broker_id: int
    certain: int
    possible: int


class ReturningLeader(NamedTuple):
    """Partitions without a leader that one broker leads once their brokers are back, or that none does by itself (KIP-966)."""

    kind: ElectionKind
    broker: int | None
    others: tuple[int, ...]
    """Brokers that may be elected in its place, where they are back before it."""
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOrder:
    """In which order to start the brokers of a stopped cluster."""

    brokers: tuple[int, ...]
    wait_for: tuple[int, ...]
    """Brokers that have to be there before anything is elected: without them records are discarded."""
    firsts: tuple[FirstStart, ...]
    elections: tuple[Election, ...]
    missing: tuple[int, ...]
    """Brokers that replicas are assigned to and whose directories are not among the inputs."""

    @property
    def unclean(self) -> list[Election]:
        """The elections that are unclean, or not known not to be."""
        return [one for one in self.elections if one.is_unclean is not False]


def election_file(elections: Iterable[Election]) -> dict[str, list[dict[str, str | int]]]:
    """Return what `kafka-leader-election.sh --path-to-json-file` takes."""
    return {"partitions": [{"topic": one.topic, "partition": one.partition} for one in elections]}
