"""The rules by which a broker deletes segments at the beginning of a log, by version: the one table that predictions, explanations and searches ask.

`UnifiedLog.deleteOldSegments` (4.1.0; `Log.deleteOldSegments` before 3.0). From the oldest segment on, while a rule holds: retention never takes one behind a segment
that it keeps.
"""

from collections import deque
from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple

from kforensics.protocol.versions import KafkaVersion

NO_LIMIT = -1


class RetentionRule(StrEnum):
    """The reason for which a segment is deleted."""

    LOG_START = "log-start"
    SIZE = "size"
    TIME = "time"


class RetentionRules(NamedTuple):
    """What versions do differently."""

    order: tuple[RetentionRule, ...] = (RetentionRule.LOG_START, RetentionRule.SIZE, RetentionRule.TIME)
    """Since 3.0 (KAFKA-12177); before, time came first."""
    is_bound_by_high_watermark: bool = True
    """1.0 (KAFKA-5634): no segment that ends above it is deleted."""
    has_log_start: bool = True
    """0.11 (KIP-107): a log start that a client asked for."""
    deletes_compacted_below_start: bool = True
    """2.1: segments below the log start go whatever `cleanup.policy` is."""
    has_timestamps: bool = True
    """0.10.1 (KIP-33): the largest timestamp of a segment is its age; before, and where its records have none, the last change of its file is."""


_BEFORE_3_0 = (RetentionRule.TIME, RetentionRule.SIZE, RetentionRule.LOG_START)


def retention_rules(version: KafkaVersion) -> RetentionRules:
    """Return what a version does."""
    return RetentionRules(
        order=RetentionRules().order if version >= (3, 0) else _BEFORE_3_0,
        is_bound_by_high_watermark=version >= (1, 0),
        has_log_start=version >= (0, 11),
        deletes_compacted_below_start=version >= (2, 1),
        has_timestamps=version >= (0, 10, 1),
    )


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

    @property
    def by_time(self) -> bool:
        """Whether age deletes a segment."""
        return self.deletes and self.retention_ms > NO_LIMIT

    @property
    def by_size(self) -> bool:
        """Whether the size of the log deletes a segment."""
        return self.deletes and self.retention_bytes > NO_LIMIT


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
        log_start_offset: segments that end at or below it are deleted whatever the policy is, by most versions.
        high_watermark: no segment that ends above it is deleted, by most versions.
    """
    left = deque(segments)
    size = sum(one.length for one in segments)
    # The last segment is never below the log start.
    tests: dict[RetentionRule, tuple[bool, Callable[[AgedSegment], bool]]] = {
        RetentionRule.LOG_START: (True, lambda one: len(left) > 1 and one.end_offset <= log_start_offset),
        RetentionRule.SIZE: (
            policy.by_size,
            lambda one: size - policy.retention_bytes >= one.length,
        ),
        RetentionRule.TIME: (policy.by_time, lambda one: is_aged(one.timestamp_ms, now_ms, policy.retention_ms)),
    }
    if not left or not any(is_asked and is_due(left[0]) for is_asked, is_due in tests.values()):
        return ()  # in no order of the rules anything is due
    rules = retention_rules(version)
    due: list[tuple[int, RetentionRule]] = []

    def take(rule: RetentionRule, is_due: Callable[[AgedSegment], bool]) -> None:
        nonlocal size
        while left:
            oldest, is_last = left[0], len(left) == 1
            is_held = rules.is_bound_by_high_watermark and oldest.end_offset > high_watermark
            if is_held or (is_last and not oldest.length) or not is_due(oldest):
                return
            left.popleft()
            size -= oldest.length
            due.append((oldest.base_offset, rule))

    is_below_asked = rules.has_log_start and (policy.deletes or rules.deletes_compacted_below_start)
    for rule in rules.order:
        is_asked, is_due = tests[rule]
        if is_asked and (is_below_asked or rule is not RetentionRule.LOG_START):
            take(rule, is_due)
    return tuple(due)


def is_aged(timestamp_ms: int, now_ms: int, retention_ms: int) -> bool:
    """Return whether retention by time deletes what has a timestamp, at a time."""
    return now_ms - timestamp_ms > retention_ms


def aged_out_at(timestamps_ms: Sequence[int], retention_ms: int) -> list[int]:
    """Return when retention by time may delete each segment of a log at the earliest: none before those in front of it.

    Args:
        timestamps_ms: the largest timestamp of each, oldest first; one of the future holds back all behind it.
    """
    return [newest + retention_ms for newest in accumulate(timestamps_ms, max)]
