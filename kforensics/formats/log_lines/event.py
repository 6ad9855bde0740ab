"""One log line as a typed value, and the counts of the lines that report no event."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from kforensics.damage import Absent, Span
from kforensics.units import TopicPartition

FieldValue = int | str | bool | tuple[int, ...]


class LogEventKind(StrEnum):
    """The event that a line reports; the shape of a message declares the fields of its kind."""

    TRUNCATION = "truncation"
    TRUNCATION_WITHOUT_EFFECT = "truncation-without-effect"
    TRUNCATION_BELOW_HIGH_WATERMARK = "truncation-below-high-watermark"
    TRUNCATION_DECISION = "truncation-decision"
    FULL_TRUNCATION = "full-truncation"
    TRUNCATION_REFUSED = "truncation-refused"
    FETCH_OFFSET_RESET = "fetch-offset-reset"
    SEGMENTS_TRUNCATED = "segments-truncated"
    METADATA_TRUNCATION = "metadata-truncation"
    LEADER_START = "leader-start"
    FOLLOWER_START = "follower-start"
    LEADER_AND_ISR = "leader-and-isr"
    PARTITION_STATE = "partition-state"
    PARTITION_ONLINE = "partition-online"
    LEADER_RECOVERED = "leader-recovered"
    PARTITION_FAILED = "partition-failed"
    UNCLEAN_ELECTION = "unclean-election"
    PARTITION_CHANGE = "partition-change"
    LEADER_SELECTED = "leader-selected"
    REPLICAS_ASSIGNED = "replicas-assigned"
    REASSIGNMENT = "reassignment"
    CLEAN_START = "clean-start"
    RECOVERY_START = "recovery-start"
    SEGMENT_RECOVERY = "segment-recovery"
    RECOVERY_TRUNCATION = "recovery-truncation"
    INVALID_RECORDS = "invalid-records"
    LOG_LOADED = "log-loaded"
    PRODUCER_SNAPSHOT = "producer-snapshot"
    SEGMENT_ROLLED = "segment-rolled"
    INDEX_REBUILT = "index-rebuilt"
    SEGMENTS_DELETED = "segments-deleted"
    CHECKPOINT_UNREADABLE = "checkpoint-unreadable"
    HIGH_WATERMARK_LOADED = "high-watermark-loaded"
    HIGH_WATERMARK_MISSING = "high-watermark-missing"
    HIGH_WATERMARK_REGRESSION = "high-watermark-regression"
    STRAY_LOG = "stray-log"
    LOG_CREATED = "log-created"
    LOG_DISCARDED = "log-discarded"
    TOPIC_DELETED = "topic-deleted"
    TOPIC_SETTINGS = "topic-settings"
    ISR_SHRINK = "isr-shrink"
    ISR_EXPAND = "isr-expand"
    ISR_UPDATED = "isr-updated"
    ISR_REFUSED = "isr-refused"
    EPOCH_ASSIGNED = "epoch-assigned"
    EPOCH_CONFLICT = "epoch-conflict"
    LOG_START_MOVED = "log-start-moved"
    BATCH_SKIPPED = "batch-skipped"
    FETCH_CORRUPTION = "fetch-corruption"
    LOG_DIR_ERROR = "log-dir-error"
    LOG_DIR_FAILED = "log-dir-failed"
    BROKER_HALTED = "broker-halted"
    NEW_LOG_DIR = "new-log-dir"
    BROKER_STARTED = "broker-started"
    MACHINE_STARTED = "machine-started"
    BROKER_STOPPED = "broker-stopped"
    STOP_REQUESTED = "stop-requested"
    BROKER_REGISTERED = "broker-registered"
    BROKER_FENCED = "broker-fenced"
    SESSION_LOST = "session-lost"
    BROKER_UNFENCED = "broker-unfenced"
    CONTROLLER_UNREGISTERED = "controller-unregistered"
    CONTROLLER_ELECTED = "controller-elected"
    VERSION = "version"
    CONFIGURATION = "configuration"
    CLUSTER_NAMED = "cluster-named"
    START_TIME = "start-time"
    """The time in UTC that a node prints beside its own at each start, since 2.3."""
    LIVE_BROKERS = "live-brokers"
    OFFSETS_EXPIRED = "offsets-expired"
    ROLES_TAKEN = "roles-taken"
    THREAD_STEP = "thread-step"
    STALE_REQUEST = "stale-request"
    LEADER_OFFLINE = "leader-offline"
    ELR_ELECTION = "elr-election"
    UNCLEAN_ENABLED = "unclean-enabled"
    LEADER_NOT_MOVED = "leader-not-moved"
    ELECTION_FAILED = "election-failed"
    LOGS_LOADING = "logs-loading"
    LOGS_LOADED = "logs-loaded"
    PRODUCER_STATE = "producer-state"
    PRODUCER_STATE_UNREADABLE = "producer-state-unreadable"
    LOG_REMOVED = "log-removed"
    EPOCH_CACHE_CLEARED = "epoch-cache-cleared"
    LOCAL_LOG_START_MOVED = "local-log-start-moved"
    RETENTION = "retention"
    LOCAL_RETENTION = "local-retention"
    RETENTION_ROLL = "retention-roll"
    FUTURE_TIMESTAMP = "future-timestamp"
    FILES_DELETED = "files-deleted"
    SEGMENTS_SCHEDULED = "segments-scheduled"
    ISR_REJECTED = "isr-rejected"
    NOT_ENOUGH_REPLICAS = "not-enough-replicas"
    FETCHER_STOPPED = "fetcher-stopped"
    FETCH_TROUBLE = "fetch-trouble"
    THREAD_STOPPED = "thread-stopped"
    FETCH_RETRIED = "fetch-retried"
    OFFSETS_MISMATCH = "offsets-mismatch"
    OFFSET_OUT_OF_RANGE = "offset-out-of-range"
    APPEND_REFUSED = "append-refused"
    READ_FAILED = "read-failed"
    START_FAILED = "start-failed"
    FATAL_FAULT = "fatal-fault"
    STOP_FAILED = "stop-failed"
    MEMORY_OUT = "memory-out"
    METADATA_FAULT = "metadata-fault"
    START_CAUSE = "start-cause"
    RECORD_CAUSE = "record-cause"
    REGISTRATION_REFUSED = "registration-refused"
    QUORUM_STATE_DOUBTED = "quorum-state-doubted"
    MARKER_DOUBTED = "marker-doubted"
    BUILD = "build"
    LOG_DIR_MISSING = "log-dir-missing"
    LIFE_STEP = "life-step"
    PARTITIONS_OFFLINE = "partitions-offline"
    TASK_FAILED = "task-failed"
    DISK_CAUSE = "disk-cause"
    REGISTERED = "registered"
    REGISTRATION = "registration"
    CONTROLLER_OVERLOADED = "controller-overloaded"
    CONTROLLER_STEP = "controller-step"
    QUORUM_WITHOUT_LEADER = "quorum-without-leader"
    CONTROLLER_RESIGNED = "controller-resigned"
    PARTITION_REPLAYED = "partition-replayed"
    FEATURE_LEVEL = "feature-level"
    QUORUM_STEP = "quorum-step"
    QUORUM_LOST = "quorum-lost"
    QUORUM_LOST_DATA = "quorum-lost-data"
    SNAPSHOT_STEP = "snapshot-step"
    SNAPSHOT_TROUBLE = "snapshot-trouble"
    OFFSETS_KEPT = "offsets-kept"
    GROUP_DELETED = "group-deleted"
    GROUP_REBALANCE = "group-rebalance"
    GROUP_MEMBER_LOST = "group-member-lost"
    COORDINATOR_STEP = "coordinator-step"
    COORDINATOR_FAILED = "coordinator-failed"
    COORDINATOR_WRITE_FAILED = "coordinator-write-failed"
    TRANSACTION_STEP = "transaction-step"
    TRANSACTION_ROLLED_BACK = "transaction-rolled-back"
    TRANSACTION_MARKER_FAILED = "transaction-marker-failed"
    TRANSACTION_NOTE = "transaction-note"
    PRODUCER_SEQUENCE = "producer-sequence"
    PRODUCER_UNKNOWN = "producer-unknown"
    PRODUCER_FENCED = "producer-fenced"
    TOPIC_ID_MISMATCH = "topic-id-mismatch"
    TOPIC_ID_DIFFERS = "topic-id-differs"
    TOPIC_ID_STEP = "topic-id-step"
    CLEANER_STOPPED = "cleaner-stopped"
    CLEANER_STARTED = "cleaner-started"
    CLEANER_CAUSE = "cleaner-cause"
    CLEANER_STEP = "cleaner-step"
    CLEANER_DOUBT = "cleaner-doubt"
    REMOTE_STEP = "remote-step"
    REMOTE_DELETED = "remote-deleted"
    REMOTE_TROUBLE = "remote-trouble"
    MIGRATION_STEP = "migration-step"
    MIGRATION_TROUBLE = "migration-trouble"
    PAUSE = "pause"
    PAUSE_SHORT = "pause-short"
    REPLICA_REFUSED = "replica-refused"
    REQUEST_FAILED = "request-failed"
    CONNECTION_TROUBLE = "connection-trouble"
    CONNECTION_NOTE = "connection-note"
    CONNECTION_CAUSE = "connection-cause"
    FILES_EXHAUSTED = "files-exhausted"
    NOT_LEADER = "not-leader"
    ACCESS_DENIED = "access-denied"
    ACCESS_GRANTED = "access-granted"
    CONTROLLER_REQUEST_FAILED = "controller-request-failed"
    CONTROLLER_TROUBLE = "controller-trouble"
    CONTROLLER_NOTE = "controller-note"
    ZOOKEEPER_TROUBLE = "zookeeper-trouble"
    SESSION_NODE_TAKEN = "session-node-taken"
    ZOOKEEPER_STEP = "zookeeper-step"
    ASSIGNMENT_TROUBLE = "assignment-trouble"
    SETTINGS_REFUSED = "settings-refused"
    SETTINGS_NOTE = "settings-note"
    DISK_FILES = "disk-files"
    QUORUM_TROUBLE = "quorum-trouble"
    GROUP_TROUBLE = "group-trouble"
    CONSUMER_RESET = "consumer-reset"
    CONSUMER_LATE = "consumer-late"
    CONSUMER_REMOVED = "consumer-removed"
    COMMIT_FAILED = "commit-failed"
    RECORDS_UNSENT = "records-unsent"
    LEADER_UNKNOWN = "leader-unknown"
    TOPIC_UNKNOWN = "topic-unknown"
    REQUEST_RETRIED = "request-retried"
    PRODUCER_IDS = "producer-ids"
    SHARE_TROUBLE = "share-trouble"
    JVM_DIED = "jvm-died"
    THREAD_DIED = "thread-died"
    ROUTINE = "routine"


EMPTIED_SEGMENT = "segment emptied"
"""`reason` of a recovery that gave up a whole segment and not only what is behind a bad batch."""

ELECTION_KINDS = frozenset(
    {
        LogEventKind.LEADER_START,
        LogEventKind.FOLLOWER_START,
        LogEventKind.LEADER_AND_ISR,
        LogEventKind.PARTITION_STATE,
        LogEventKind.LEADER_RECOVERED,
        LogEventKind.LEADER_SELECTED,
        LogEventKind.PARTITION_ONLINE,
        LogEventKind.PARTITION_CHANGE,
        LogEventKind.UNCLEAN_ELECTION,
        LogEventKind.REPLICAS_ASSIGNED,
        LogEventKind.REASSIGNMENT,
        LogEventKind.TOPIC_DELETED,
        LogEventKind.BROKER_REGISTERED,
        LogEventKind.BROKER_FENCED,
        LogEventKind.BROKER_UNFENCED,
        LogEventKind.CONTROLLER_ELECTED,
        LogEventKind.LIVE_BROKERS,
    }
)
"""Kinds that state-change.log and controller.log hold too: a file with no other kind does not show how its broker started, nor what its logs lost."""

FOLDED = frozenset(
    {
        LogEventKind.FETCH_OFFSET_RESET,
        LogEventKind.PARTITION_FAILED,
        LogEventKind.TRUNCATION_WITHOUT_EFFECT,
        LogEventKind.HIGH_WATERMARK_REGRESSION,
        LogEventKind.FETCH_CORRUPTION,
        LogEventKind.LOG_DIR_ERROR,
        LogEventKind.LEADER_AND_ISR,
    }
)
"""Kinds that a broker in trouble repeats thousands of times a minute; saying them once with a count loses nothing."""

DECISIVE = frozenset(
    {
        LogEventKind.TRUNCATION,
        LogEventKind.FULL_TRUNCATION,
        LogEventKind.METADATA_TRUNCATION,
        LogEventKind.RECOVERY_TRUNCATION,
        LogEventKind.TRUNCATION_REFUSED,
        LogEventKind.UNCLEAN_ELECTION,
        LogEventKind.SEGMENTS_DELETED,
        LogEventKind.LOG_DIR_FAILED,
        LogEventKind.BROKER_HALTED,
        LogEventKind.START_FAILED,
        LogEventKind.FATAL_FAULT,
        LogEventKind.NEW_LOG_DIR,
        LogEventKind.BROKER_STARTED,
        LogEventKind.CLEANER_STARTED,
        LogEventKind.CLEANER_STOPPED,
        LogEventKind.RECOVERY_START,
    }
)
"""Kinds of which no event is left out where a file holds more events than are kept."""


class Weight(StrEnum):
    """What a line is worth to an operator."""

    HARMLESS = "harmless"
    SYMPTOM = "symptom"
    CAUSE = "cause"


class Section(NamedTuple):
    """Lines that report one kind of event."""

    kind: LogEventKind
    weight: Weight
    meaning: str
    flags: frozenset[str]
    """`below`: an exception on the lines below says why; `exception`: stands below another line; `bulk`: is only counted."""
    advice: str = ""
    ended_by: frozenset[LogEventKind] = frozenset()
    """The kinds of later lines that show it to be over, of the same node and partition."""

    @property
    def words(self) -> str:
        """The kind in words: `ISR shrink`, `disk error`."""
        name = self.kind.replace("-cause", "-error").replace("isr", "ISR").replace("jvm", "JVM")
        return name.replace("-", " ")


class LogEvent(NamedTuple):
    """One line that reports an event of a log, a leader or a broker."""

    kind: LogEventKind
    time_ms: int | Absent
    """Milliseconds of the line's own clock since 1970, read as UTC where the line names no time zone."""
    zone_named: bool
    """Whether the line names its time zone, so that `time_ms` is certainly UTC."""
    level: str
    topic_partition: TopicPartition | Absent
    broker_id: int | Absent
    """The node that wrote the line, if the line names it."""
    fields: Mapping[str, FieldValue]
    line: int
    """The number of the line, from 1."""
    span: Span
    """The bytes of the line; in a compressed file, those of the decompressed text."""
    repeats: int = 0
    """How many more lines of the window repeat this event of the partition without another event of it between them."""
    last_time_ms: int | Absent = Absent.NOT_APPLICABLE
    """The time of the last repeat."""
    writer: str = ""
    """What stands before the time and is the same in all lines of a container or host whose lines were collected: `broker-1 |`, `[pod/kafka-0/kafka]`."""
    row: int = -1
    """The row of the table of lines."""

    def number(self, name: str) -> int | Absent:
        """Return the number in the field, absent if the line lacks the field; a boolean is no number."""
        value = self.fields.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else Absent.NOT_WRITTEN

    def brokers(self, name: str) -> tuple[int, ...] | Absent:
        """Return the broker ids in the field, absent if the line lacks the field; an empty list is not absent."""
        value = self.fields.get(name)
        return value if isinstance(value, tuple) else Absent.NOT_WRITTEN


class LineCensus(NamedTuple):
    """The number of lines, and of those that are events."""

    lines: int = 0
    events: int = 0

    def plus(self, other: "LineCensus") -> "LineCensus":
        """Return the sum of both counts."""
        return LineCensus(*(mine + yours for mine, yours in zip(self, other, strict=True)))
