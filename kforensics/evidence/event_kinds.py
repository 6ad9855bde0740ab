"""The one list of the kinds of events of a cluster, for the metadata log and for timelines, and the row that a log line of each kind becomes."""

from dataclasses import dataclass
from enum import StrEnum

from kforensics.formats.log_lines.event import LogEventKind as Kind


class EventKind(StrEnum):
    """The kind of an event; the value is the `event` of JSON documents."""

    TOPIC_CREATED = "topic-created"
    TOPIC_DELETED = "topic-deleted"
    PARTITION_CREATED = "partition-created"
    LEADER_CHANGE = "leader-change"
    LEADER_LOST = "leader-lost"
    UNCLEAN_ELECTION = "unclean-election"
    LEADER_EPOCH_BUMP = "leader-epoch-bump"
    LEADER_RECOVERED = "leader-recovered"
    ISR_SHRINK = "isr-shrink"
    ISR_EXPAND = "isr-expand"
    ELR_CHANGE = "elr-change"
    REASSIGNMENT = "reassignment"
    DIRECTORY_CHANGE = "directory-change"
    BROKER_REGISTERED = "broker-registered"
    BROKER_UNREGISTERED = "broker-unregistered"
    BROKER_FENCED = "broker-fenced"
    BROKER_UNFENCED = "broker-unfenced"
    BROKER_CONTROLLED_SHUTDOWN = "broker-controlled-shutdown"
    BROKER_LOG_DIRS = "broker-log-dirs"
    CONTROLLER_CHANGE = "controller-change"
    CONTROLLER_REGISTERED = "controller-registered"
    CONTROLLER_UNREGISTERED = "controller-unregistered"
    CONFIG_CHANGE = "config-change"
    FEATURE_CHANGE = "feature-change"
    SNAPSHOT = "snapshot"
    TRANSACTION_ABORTED = "metadata-transaction-aborted"
    BROKER_START = "broker-start"
    BROKER_STOP = "broker-stop"
    STOP_REQUESTED = "stop-requested"
    BROKER_HALTED = "broker-halted"
    RECOVERY = "recovery"
    CLEAN_START = "clean-start"
    INVALID_RECORDS = "invalid-records"
    SEGMENTS_DELETED = "segments-deleted"
    INDEX_REBUILT = "index-rebuilt"
    CHECKPOINT_UNREADABLE = "checkpoint-unreadable"
    HIGH_WATERMARK_REGRESSION = "high-watermark-regression"
    STRAY_LOG = "stray-log"
    EPOCH_CONFLICT = "epoch-conflict"
    BATCH_SKIPPED = "batch-skipped"
    FETCH_CORRUPTION = "fetch-corruption"
    TRUNCATION = "truncation"
    TRUNCATION_REFUSED = "truncation-refused"
    FETCH_FAILED = "fetch-failed"
    LOG_DIR_ERROR = "log-dir-error"
    LOG_DIR_FAILED = "log-dir-failed"
    LOG_CREATED = "log-created"
    LOG_DISCARDED = "log-discarded"
    LOG_START_MOVED = "log-start-moved"
    RETENTION = "retention"
    START_FAILED = "start-failed"
    FATAL_FAULT = "fatal-fault"
    CLEANER_STOPPED = "cleaner-stopped"
    TOPIC_ID_MISMATCH = "topic-id-mismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEventRow:
    """The row of a timeline that a log line becomes."""

    event: EventKind
    fields: tuple[str, ...] = ()
    """The fields of the line that the entry keeps."""
    is_quiet: bool = False
    """Whether the event has no consequence and is shown only on request."""
    words: str = ""
    """The sentence of the screen, with `{broker}`, `{names}` (of partitions) and the fields; `[…]` is left out where a field in it is missing.

    Empty where `render.events` has a sentence of its own, since other evidence shows the same event.
    """


LOGGED_EVENTS: dict[Kind, LoggedEventRow] = {
    Kind.BROKER_STARTED: LoggedEventRow(event=EventKind.BROKER_START),
    Kind.BROKER_STOPPED: LoggedEventRow(event=EventKind.BROKER_STOP),
    Kind.STOP_REQUESTED: LoggedEventRow(event=EventKind.STOP_REQUESTED, fields=("reason",)),
    Kind.BROKER_HALTED: LoggedEventRow(event=EventKind.BROKER_HALTED, fields=("reason", "cause")),
    Kind.START_FAILED: LoggedEventRow(
        event=EventKind.START_FAILED,
        fields=("reason", "cause", "directory", "path"),
        words="{broker} fails to start[: {cause}]",
    ),
    Kind.FATAL_FAULT: LoggedEventRow(
        event=EventKind.FATAL_FAULT,
        fields=("reason", "cause"),
        words="{broker} ends itself at once[: {reason}][: {cause}]",
    ),
    Kind.RECOVERY_START: LoggedEventRow(event=EventKind.RECOVERY, fields=("directory",)),
    Kind.CLEAN_START: LoggedEventRow(
        event=EventKind.CLEAN_START,
        fields=("directory",),
        is_quiet=True,
        words="{broker} finds a clean-shutdown marker[ in {directory}] and recovers no log",
    ),
    Kind.INVALID_RECORDS: LoggedEventRow(
        event=EventKind.INVALID_RECORDS,
        fields=("path", "position", "reason"),
        words="{broker} finds invalid records[ of {names}][ in {path}][ at byte {position}][: {reason}]",
    ),
    Kind.SEGMENTS_DELETED: LoggedEventRow(
        event=EventKind.SEGMENTS_DELETED, fields=("reason", "base_offset", "log_start_offset")
    ),
    Kind.INDEX_REBUILT: LoggedEventRow(
        event=EventKind.INDEX_REBUILT,
        fields=("path", "reason"),
        is_quiet=True,
        words="{broker} rebuilds an index[ of {names}][, {path}][: {reason}]",
    ),
    Kind.CHECKPOINT_UNREADABLE: LoggedEventRow(
        event=EventKind.CHECKPOINT_UNREADABLE,
        fields=("path", "directory"),
        words="{broker} can't read[ {path} of] a log directory[, {directory},] and begins the file again",
    ),
    Kind.HIGH_WATERMARK_REGRESSION: LoggedEventRow(
        event=EventKind.HIGH_WATERMARK_REGRESSION,
        fields=("high_watermark", "offset"),
        words="{broker} lowers the high watermark[ of {names}][ from {high_watermark}][ to {offset}]",
    ),
    Kind.STRAY_LOG: LoggedEventRow(
        event=EventKind.STRAY_LOG,
        fields=("directory", "path", "reason"),
        words="{broker} finds a log[ of {names}] that is not assigned to it[: {path}][ ({reason})]",
    ),
    Kind.EPOCH_CONFLICT: LoggedEventRow(
        event=EventKind.EPOCH_CONFLICT,
        fields=("leader_epoch", "offset"),
        words="{broker} removes leader epochs[ of {names}] that conflict with[ epoch {leader_epoch} from] offset {offset}",
    ),
    Kind.BATCH_SKIPPED: LoggedEventRow(
        event=EventKind.BATCH_SKIPPED,
        fields=("leader_epoch", "previous_leader_epoch"),
        words="{broker} skips a fetched batch[ of {names}] of leader epoch {leader_epoch}, since it follows epoch {previous_leader_epoch}",
    ),
    Kind.FETCH_CORRUPTION: LoggedEventRow(
        event=EventKind.FETCH_CORRUPTION,
        fields=("offset",),
        words="{broker} fetches invalid records[ of {names}][ at offset {offset}]",
    ),
    Kind.TRUNCATION_REFUSED: LoggedEventRow(
        event=EventKind.TRUNCATION_REFUSED, fields=("leader", "offset", "log_end_offset")
    ),
    Kind.PARTITION_FAILED: LoggedEventRow(
        event=EventKind.FETCH_FAILED,
        fields=("leader",),
        is_quiet=True,
        words="{broker} stops fetching[ {names}][ from broker {leader}] after an error",
    ),
    Kind.LEADER_RECOVERED: LoggedEventRow(event=EventKind.LEADER_RECOVERED),
    Kind.LOG_DIR_ERROR: LoggedEventRow(event=EventKind.LOG_DIR_ERROR, fields=("directory", "reason", "cause")),
    Kind.LOG_DIR_FAILED: LoggedEventRow(event=EventKind.LOG_DIR_FAILED, fields=("directory",)),
    Kind.BROKER_REGISTERED: LoggedEventRow(
        event=EventKind.BROKER_REGISTERED, fields=("broker", "broker_epoch", "records")
    ),
    Kind.BROKER_FENCED: LoggedEventRow(event=EventKind.BROKER_FENCED, fields=("broker", "broker_epoch", "reason")),
    Kind.BROKER_UNFENCED: LoggedEventRow(event=EventKind.BROKER_UNFENCED, fields=("broker",), is_quiet=True),
    Kind.CONTROLLER_UNREGISTERED: LoggedEventRow(
        event=EventKind.CONTROLLER_UNREGISTERED,
        fields=("broker",),
        is_quiet=True,
        words="{broker} is unregistered as a controller",
    ),
    Kind.CONTROLLER_ELECTED: LoggedEventRow(event=EventKind.CONTROLLER_CHANGE, fields=("controller_epoch", "offset")),
    Kind.LOG_CREATED: LoggedEventRow(event=EventKind.LOG_CREATED, fields=("directory",), is_quiet=True),
    Kind.LOG_DISCARDED: LoggedEventRow(event=EventKind.LOG_DISCARDED, fields=("path",), is_quiet=True),
    Kind.RETENTION: LoggedEventRow(
        event=EventKind.RETENTION,
        fields=(
            "segments",
            "rule",
            "log_start_offset",
            "remark",
            "until_ms",
            "largest_timestamp_ms",
            "last_modified_ms",
        ),
        words="{broker} deletes {segments}[ of {names}] by {rule}[. The log begins at {log_start_offset} from then on][. {remark}]",
    ),
    Kind.CLEANER_STOPPED: LoggedEventRow(
        event=EventKind.CLEANER_STOPPED, words="{broker} compacts[ {names}] no more until it restarts"
    ),
    Kind.TOPIC_ID_MISMATCH: LoggedEventRow(
        event=EventKind.TOPIC_ID_MISMATCH,
        fields=("topic_id", "other_topic_id"),
        words="{broker} has[ {names} with] topic id {topic_id}, and is told {other_topic_id}",
    ),
    Kind.LOG_START_MOVED: LoggedEventRow(
        event=EventKind.LOG_START_MOVED, fields=("log_start_offset", "reason"), is_quiet=True
    ),
}
"""The lines that become entries as they are; those about leaders, truncations, topics and moves are read together with others (`reconcile`)."""


def words_of(event: EventKind) -> str:
    """Return the sentence that `LOGGED_EVENTS` has for an event, empty where it has none."""
    return next((row.words for row in LOGGED_EVENTS.values() if row.event is event), "")
