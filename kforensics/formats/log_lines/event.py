"""What one log line says, as a typed value; and what was counted about lines that say nothing of use."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from kforensics.damage import Absent, Span
from kforensics.units import TopicPartition

FieldValue = int | str | bool | tuple[int, ...]


class LogEventKind(StrEnum):
    """What a line reports; the fields that each kind may carry stand beside its shape."""

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
    ISR_SHRINK = "isr-shrink"
    ISR_EXPAND = "isr-expand"
    ISR_UPDATED = "isr-updated"
    EPOCH_ASSIGNED = "epoch-assigned"
    EPOCH_CONFLICT = "epoch-conflict"
    LOG_START_MOVED = "log-start-moved"
    BATCH_SKIPPED = "batch-skipped"
    FETCH_CORRUPTION = "fetch-corruption"
    LOG_DIR_ERROR = "log-dir-error"
    LOG_DIR_FAILED = "log-dir-failed"
    BROKER_HALTED = "broker-halted"
    BROKER_STARTED = "broker-started"
    BROKER_STOPPED = "broker-stopped"
    STOP_REQUESTED = "stop-requested"
    BROKER_REGISTERED = "broker-registered"
    BROKER_FENCED = "broker-fenced"
    BROKER_UNFENCED = "broker-unfenced"
    CONTROLLER_ELECTED = "controller-elected"
    VERSION = "version"
    CONFIGURATION = "configuration"


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
        LogEventKind.BROKER_STARTED,
        LogEventKind.RECOVERY_START,
    }
)
"""Kinds of which no event is left out where a file holds more events than are kept."""


class LogEvent(NamedTuple):
    """One line that says something about a log, a leader or a broker."""

    kind: LogEventKind
    time_ms: int | Absent
    """Milliseconds of the line's own clock since 1970, read as UTC where the line names no time zone."""
    zone_named: bool
    """The line itself names its time zone, so `time_ms` is UTC for certain."""
    level: str
    topic_partition: TopicPartition | Absent
    broker_id: int | Absent
    """The node that writes the line, where the line says so."""
    fields: Mapping[str, FieldValue]
    line: int
    """Counted from 1."""
    span: Span
    """The line's bytes; in a compressed file, of what it holds."""
    repeats: int = 0
    """How many more lines in the window say the same of the partition, with no other event of it between."""
    last_time_ms: int | Absent = Absent.NOT_APPLICABLE
    """Time of the last of the repeats."""

    def number(self, name: str) -> int | Absent:
        """A field that is a number, absent where this line has none of the name."""
        value = self.fields.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else Absent.NOT_WRITTEN

    def brokers(self, name: str) -> tuple[int, ...] | Absent:
        """A field that is a list of broker ids, absent where this line has none of the name."""
        value = self.fields.get(name)
        return value if isinstance(value, tuple) else Absent.NOT_WRITTEN


class LineCensus(NamedTuple):
    """How many lines there were of which sort; two of them add up."""

    lines: int = 0
    events: int = 0
    continuations: int = 0
    """Indented lines: stack traces and values of the configuration."""
    foreign: int = 0
    """Lines that begin like no broker's line: other programs, stack trace heads, torn beginnings."""
    unmatched: int = 0
    """Messages that begin like an event and go on otherwise: other messages, torn ones, texts of unknown versions."""
    not_utf8: int = 0
    with_nul: int = 0
    """Lines with NUL bytes, as a power cut leaves them."""
    over_long: int = 0
    torn_end: int = 0
    """1 where the last line has no line end."""

    def plus(self, other: "LineCensus") -> "LineCensus":
        """Both counted together."""
        return LineCensus(*(mine + yours for mine, yours in zip(self, other, strict=True)))
