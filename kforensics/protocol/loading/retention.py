"""What retention deletes in the first minute of a broker (`UnifiedLog.deleteOldSegments`, 4.1.0; `Log.deleteOldSegments` before 3.0)."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from kforensics.protocol.versions import KafkaVersion

NO_LIMIT = -1


class RetentionRule(StrEnum):
    """The reason for which a segment is deleted."""

    LOG_START = "log-start"
    SIZE = "size"
    TIME = "time"


class AgedSegment(NamedTuple):
    """A segment as retention sees it."""

    base_offset: int
    end_offset: int
    """The base offset of the next one, or the log end."""
    length: int
    timestamp_ms: int
    """The largest of its records; the time of its last change where they have none."""


class RetentionPolicy(NamedTuple):
    """The settings of a topic that retention depends on."""

    retention_ms: int
    retention_bytes: int
    deletes: bool
    """`cleanup.policy` contains `delete`."""


def due_segments(
    segments: Sequence[AgedSegment],
    policy: RetentionPolicy,
    *,
    log_start_offset: int,
    high_watermark: int,
    now_ms: int,
    version: KafkaVersion,
) -> tuple[tuple[int, RetentionRule], ...]:
    """Return the segments that retention deletes, oldest first, each with the rule.

    Args:
        segments: of the log, oldest first.
        log_start_offset: segments that end at or below it are deleted whatever the policy is (2.1).
        high_watermark: no segment that ends above it is deleted (1.0).
        version: since 3.0 the order is log start, size, time (KAFKA-12177).
    """
    left = list(segments)
    due: list[tuple[int, RetentionRule]] = []

    def take(rule: RetentionRule, is_due: Callable[[AgedSegment], bool]) -> None:
        while left:
            oldest, is_last = left[0], len(left) == 1
            if oldest.end_offset > high_watermark or (is_last and not oldest.length) or not is_due(oldest):
                return
            due.append((left.pop(0).base_offset, rule))

    def by_start() -> None:
        if policy.deletes or version >= (2, 1):
            # The last segment is never below the log start.
            take(RetentionRule.LOG_START, lambda one: len(left) > 1 and one.end_offset <= log_start_offset)

    def by_size() -> None:
        if policy.deletes and policy.retention_bytes > NO_LIMIT:
            take(
                RetentionRule.SIZE,
                lambda one: sum(each.length for each in left) - policy.retention_bytes >= one.length,
            )

    def by_time() -> None:
        if policy.deletes and policy.retention_ms > NO_LIMIT:
            take(RetentionRule.TIME, lambda one: now_ms - one.timestamp_ms > policy.retention_ms)

    for step in (by_start, by_size, by_time) if version >= (3, 0) else (by_time, by_size, by_start):
        step()
    return tuple(due)
