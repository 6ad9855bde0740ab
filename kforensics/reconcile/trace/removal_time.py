"""When brokers remove the bytes of a copy of a record, by the settings of its topic and what a cleaner has left behind.

Kafka: LogCleaner, LogCleanerManager, Cleaner (KIP-71, KIP-354 for the lags, KIP-534 for the delete horizon); retention is that of `protocol.retention`.
"""

from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Segment
from kforensics.formats.log.records import Record
from kforensics.protocol.retention import RetentionPolicy, aged_out_at
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.trace.model import CopyKind, Until
from kforensics.words import duration, utc_words

NO_LIMIT = (1 << 63) - 1
NO_HORIZON = -1

_ELSEWHERE = {
    CopyKind.SNAPSHOT: "until this earlier copy is removed: no broker works on it",
    CopyKind.STRAY: "until the directory is removed by hand: no broker works on it",
    CopyKind.FUTURE: "as long as in the log that it is a copy of: a move between log directories makes it the replica",
}

_LEFT_OVER = {
    "swap": "it becomes part of the log at the next start: a cleaner wrote it, and was stopped",
    "deleted": "until file.delete.delay.ms after the file was renamed, or until the next start of its broker",
    "": "until file.delete.delay.ms after the directory was renamed, or until the next start of its broker",
}
"""By the suffix of the file's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalSettings:
    """The settings that decide when a broker removes records of a topic, in milliseconds."""

    cleanup_policy: str | Absent
    delete_retention_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    retention: RetentionPolicy
    is_known: bool
    """Whether the settings of the topic itself are among the inputs; else those of the broker or Kafka's defaults are taken."""

    @property
    def is_compacted(self) -> bool:
        """Whether a cleaner works on the topic."""
        return not isinstance(self.cleanup_policy, Absent) and "compact" in self.cleanup_policy

    @property
    def is_surely_compacted(self) -> bool:
        """Whether the topic's own settings say so, and not only a default that it may override."""
        return self.is_known and self.is_compacted

    @property
    def deletes(self) -> bool:
        """Whether retention works on the topic."""
        return not isinstance(self.cleanup_policy, Absent) and self.retention.deletes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """The place of the bytes of a record."""

    kind: CopyKind
    suffix: str
    """The suffix of the file's name, `deleted`, `swap` or none."""
    segment: Segment | None
    log: LoadedLog | None
    """The log of a live replica."""
    delete_horizon_ms: int = NO_HORIZON
    """The time from which on a cleaner removes tombstones and markers of the batch; a cleaner wrote it (KIP-534)."""


def until(record: Record, place: Bytes, settings: RemovalSettings, successor: Record | None) -> Until:
    """Return until when the bytes stay on disk."""
    if place.kind is CopyKind.DELETED:
        return Until(_LEFT_OVER.get(place.suffix, _LEFT_OVER[""]))
    if place.kind is not CopyKind.LIVE or place.log is None:
        return Until(_ELSEWHERE.get(place.kind, "unknown"))
    if record.offset >= place.log.log_end_offset:
        return Until(
            f"until {place.log.replica.owner} starts: that truncates its log to offset {place.log.log_end_offset:,}"
        )
    hedge = "" if settings.is_known else " (if the topic has no settings of its own: none are among the inputs)"
    has_policy = not isinstance(settings.cleanup_policy, Absent)
    cleaned = _cleaned(record, place, place.log, settings, successor) if _is_cleaned(place.log, settings) else None
    retained = _retained(record, place, settings) if settings.deletes else None
    passed = _passed(place.log) if record.offset < place.log.log_start_offset else None
    found = [one for one in (passed, cleaned, retained) if one is not None]
    if not found:
        words = (
            "without limit: no setting of its topic removes it"
            if has_policy
            else "unknown: no input shows the cleanup.policy of its topic"
        )
        return Until(words + (hedge if has_policy else ""))
    ends = [one.by_ms for one in found if not isinstance(one.by_ms, Absent)]
    return Until(
        "; or ".join(one.statement for one in found) + hedge,
        found[0].not_before_ms if len(found) == 1 else Absent.UNKNOWN,
        min(ends) if ends else Absent.UNKNOWN,
    )


def _passed(log: LoadedLog) -> Until:
    """Below the log start, whatever the policy (`deleteLogStartOffsetBreachedSegments`)."""
    return Until(
        f"until the log start of {log.replica.owner}, offset {log.log_start_offset:,}, has passed all of its segment"
    )


def _is_cleaned(log: LoadedLog, settings: RemovalSettings) -> bool:
    return settings.is_compacted or log.cleaned_below > 0 or isinstance(log.replica.cleaner_point, CheckpointValue)


def _retained(record: Record, place: Bytes, settings: RemovalSettings) -> Until | None:
    if not settings.retention.by_time:
        return None
    retention_ms = settings.retention.retention_ms
    newest = place.segment.max_timestamp_ms if place.segment is not None else Absent.UNKNOWN
    words = f"until its segment is older than retention.ms ({duration(retention_ms)})"
    if isinstance(newest, Absent) or place.segment is None or place.log is None:
        return Until(words)
    stamps = [one.max_timestamp_ms for one in place.log.segments if one.base_offset < place.segment.base_offset]
    known = [one for one in stamps if isinstance(one, int)]
    if len(known) < len(stamps):
        return Until(words)
    own = max(newest, record.timestamp_ms)
    due_ms = aged_out_at([*known, own], retention_ms)[-1]
    if max(known, default=own) > own:
        words += f", and all before it, of which one is stamped {utc_words(max(known))}"
    return Until(words, by_ms=due_ms)


def _cleaned(
    record: Record, place: Bytes, log: LoadedLog, settings: RemovalSettings, successor: Record | None
) -> Until | None:
    if record.key is None:
        return None
    point = log.replica.cleaner_point.value if isinstance(log.replica.cleaner_point, CheckpointValue) else 0
    if successor is not None:
        return _superseded(successor, log, settings, point)
    if record.value is None:
        return _tombstone(record, place, log, settings, point)
    return None


def _superseded(successor: Record, log: LoadedLog, settings: RemovalSettings, point: int) -> Until:
    owner, offset = log.replica.owner, successor.offset
    lag = settings.min_compaction_lag_ms
    if offset < point:
        words = (
            f"until the cleaner of {owner} rewrites its segment: it has passed the later record at offset {offset:,}"
        )
    else:
        words = f"until the cleaner of {owner}, which has cleaned the log below offset {point:,}, passes the later record at offset {offset:,}"
        if log.segments and offset >= log.segments[-1].base_offset:
            words += ", whose segment is not rolled yet"
    if lag > 0:
        words += f", min.compaction.lag.ms ({duration(lag)}) after that was written"
    return Until(
        words,
        successor.timestamp_ms + lag if successor.timestamp_ms >= 0 and lag > 0 else Absent.UNKNOWN,
        _at_latest(successor, settings),
    )


def _tombstone(record: Record, place: Bytes, log: LoadedLog, settings: RemovalSettings, point: int) -> Until:
    kept = f"delete.retention.ms ({duration(settings.delete_retention_ms)})"
    owner = log.replica.owner
    if place.delete_horizon_ms >= 0:
        return Until(
            f"until the cleaner of {owner} passes it behind the delete horizon that it wrote into the batch",
            place.delete_horizon_ms,
        )
    if record.offset < point and place.segment is not None:
        # Before KIP-534 the time of the file counts (Cleaner.doClean, cleanSegments): a cleaner keeps it when it rewrites the file.
        changed_ms = place.segment.mtime_ns // 1_000_000
        return Until(
            f"until a pass of the cleaner of {owner} finds the log that it cleaned before {kept} younger than the file of the tombstone",
            changed_ms + settings.delete_retention_ms if changed_ms else Absent.UNKNOWN,
        )
    soonest = record.timestamp_ms + max(settings.min_compaction_lag_ms, 0) + settings.delete_retention_ms
    return Until(
        f"until {kept} after the cleaner of {owner}, which has cleaned the log below offset {point:,}, first passes it",
        soonest if record.timestamp_ms >= 0 else Absent.UNKNOWN,
    )


def _at_latest(record: Record, settings: RemovalSettings) -> int | Absent:
    """When max.compaction.lag.ms makes the cleaner due, which rolls the active segment too (KIP-354); it runs when it has a thread free."""
    is_set = 0 < settings.max_compaction_lag_ms < NO_LIMIT and record.timestamp_ms >= 0
    return record.timestamp_ms + settings.max_compaction_lag_ms if is_set else Absent.UNKNOWN
