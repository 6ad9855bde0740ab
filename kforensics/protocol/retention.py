"""The rules by which a broker deletes segments at the beginning of a log, by version: the one table that predictions, explanations and searches ask.

`UnifiedLog.deleteOldSegments` (4.1.0; `Log.deleteOldSegments` before 3.0). From the oldest segment on, while a rule holds: retention never takes one behind a segment
that it keeps.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple

from kforensics.damage import Absent
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


_BEFORE_3_0 = (RetentionRule.TIME, RetentionRule.SIZE, RetentionRule.LOG_START)


def retention_rules(version: KafkaVersion) -> RetentionRules:
    """Return what a version does."""
    return RetentionRules(
        order=RetentionRules().order if version >= (3, 0) else _BEFORE_3_0,
        is_bound_by_high_watermark=version >= (1, 0),
        has_log_start=version >= (0, 11),
        deletes_compacted_below_start=version >= (2, 1),
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
    oldest, newest = left[0], left[-1]
    is_time_alone = not policy.by_size and log_start_offset < oldest.end_offset and newest.end_offset <= high_watermark
    rules = RetentionRules() if is_time_alone else retention_rules(version)  # which then decide nothing
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


_KAFKA_SINCE_S = 1_293_840_000
"""2011, in seconds: before it there was no Kafka."""
_DAY_MS = 86_400_000


def in_milliseconds(timestamp: int, until_ms: int | Absent) -> int:
    """Return a timestamp in milliseconds: one of January 1970 that is, taken for seconds, of a time since there is Kafka was written in seconds.

    Args:
        until_ms: the end of what is known; none where it is not, so that the timestamp is taken as it is.
    """
    is_in_seconds = isinstance(until_ms, int) and _KAFKA_SINCE_S <= timestamp <= (until_ms + _DAY_MS) // 1_000
    return timestamp * 1_000 if is_in_seconds else timestamp


def aged_out_at(timestamps_ms: Sequence[int], retention_ms: int) -> list[int]:
    """Return when retention by time may delete each segment of a log, oldest first, at the earliest: none before those in front of it."""
    return [newest + retention_ms for newest in accumulate(timestamps_ms, max)]


LEAST_USUAL_MS = 300_000
"""How often brokers look for what is due (`log.retention.check.interval.ms`): hardly a log keeps its records for less."""


class RetentionPeriod(NamedTuple):
    """A retention that a topic had for a time."""

    since_ms: int
    """0 for the first one that is known where nothing can have been set before."""
    policy: RetentionPolicy
    is_time_known: bool = True
    """`retention.ms` is set or by a file of the broker, not taken for Kafka's default."""
    is_dated: bool = True
    """Metadata or a line shows that `retention.ms` was in force then; a file of the broker says only what it is now."""


class PossibleRule(NamedTuple):
    """A rule that can have deleted a segment, and until when it was in force."""

    rule: RetentionRule
    limit: int
    until_ms: int | Absent
    """Absent where it is so still."""
    is_known: bool = True
    """The limit is set or by a file of the broker, not taken for Kafka's default."""


class RetentionTimes(NamedTuple):
    """What retention a topic has had, and the time in which segments of its log were written and deleted."""

    periods: Sequence[RetentionPeriod] = ()
    """The oldest first; none where its settings are not known."""
    created_ms: int | Absent = Absent.UNKNOWN
    """When the topic was created: no record was written before."""
    until_ms: int | Absent = Absent.UNKNOWN
    """When the log was copied, or shortly before."""
    elsewhere: Sequence[Sequence[RetentionPeriod]] = ()
    """What other brokers that can have led had instead."""
    stamps: Callable[[], Sequence[tuple[int, int]]] = tuple
    """Offsets and timestamps of records that producer snapshots name, the oldest first, whether or not their segments are left."""
    begins_ms: Callable[[], int | Absent] = lambda: Absent.UNKNOWN
    """The timestamp of the first batch that is left."""

    @property
    def every(self) -> tuple[RetentionPeriod, ...]:
        """Each retention that it had at a broker that can have led."""
        return tuple(one for periods in (*self.elsewhere, self.periods) for one in periods)

    def rules(
        self, newest_ms: int | Absent, *, since_ms: int | Absent = Absent.UNKNOWN, spare: int | Absent = Absent.UNKNOWN
    ) -> tuple[PossibleRule, ...]:
        """Return the rules by which retention can have deleted a segment, by time where it went by true timestamps.

        Args:
            newest_ms: the largest timestamp of the segment, or a time before it.
            since_ms: a time at which it was still there.
            spare: how many bytes of the log come behind it at most.
        """
        found: dict[tuple[RetentionRule, int], PossibleRule] = {}
        for one, until_ms in self._in_force(since_ms):
            policy = one.policy
            kept_ms = policy.retention_ms if one.is_dated else min(policy.retention_ms, LEAST_USUAL_MS)
            end_ms = until_ms if isinstance(until_ms, int) else self.until_ms
            is_old = (
                not isinstance(newest_ms, int) or not isinstance(end_ms, int) or is_aged(newest_ms, end_ms, kept_ms)
            )
            if policy.by_time and is_old:
                found[RetentionRule.TIME, policy.retention_ms] = PossibleRule(
                    RetentionRule.TIME, policy.retention_ms, until_ms, one.is_time_known
                )
            if policy.by_size and (not isinstance(spare, int) or spare >= policy.retention_bytes):
                found[RetentionRule.SIZE, policy.retention_bytes] = PossibleRule(
                    RetentionRule.SIZE, policy.retention_bytes, until_ms
                )
        return tuple(found.values())

    def is_early(
        self, newest_ms: int, *, since_ms: int | Absent = Absent.UNKNOWN, spare: int | Absent = Absent.UNKNOWN
    ) -> bool:
        """Return whether retention can have deleted a segment, told as to `rules`, only by taking it for older than its records are."""
        since_ms = since_ms if isinstance(since_ms, int) else newest_ms
        is_whole = isinstance(self.until_ms, int) and all(
            one and one[0].since_ms <= since_ms for one in (self.periods, *self.elsewhere)
        )
        by_time = any(one.policy.by_time for one, _ in self._in_force(since_ms))
        return is_whole and by_time and not self.rules(newest_ms, since_ms=since_ms, spare=spare)

    def early_from(self, offset: int, log_start: int) -> tuple[int, int] | None:
        """Return the first of the deleted offsets, from one on, that retention can only have taken for older than they are, and a time before which its record was not stamped."""
        if offset >= log_start or not isinstance(self.until_ms, int) or not self.is_early(self.until_ms):
            return None  # not even a record of the last moment
        if isinstance(self.created_ms, int) and self.is_early(self.created_ms):
            bound_ms = self.bound_ms
            if isinstance(bound_ms, int):
                return offset, bound_ms
        named = ((at, stamp) for at, stamp in self.stamps() if offset <= at < log_start and self.is_early(stamp))
        return next(named, None)

    @property
    def bound_ms(self) -> int | Absent:
        """A time before which no record of the topic is stamped: that of its creation, unless records show older timestamps, as mirrored ones have."""
        return self.created_ms if isinstance(self.older_ms, Absent) else Absent.UNKNOWN

    @property
    def older_ms(self) -> int | Absent:
        """The oldest timestamp of a record that is before the creation of the topic; none where no record shows one."""
        known = (self.begins_ms(), *(stamp for _, stamp in self.stamps()))
        older = (
            one
            for one in known
            if isinstance(one, int) and isinstance(self.created_ms, int)
            if 0 <= in_milliseconds(one, self.until_ms) < self.created_ms
        )
        return min(older, default=Absent.UNKNOWN)

    def _in_force(self, since_ms: int | Absent) -> Iterator[tuple[RetentionPeriod, int | Absent]]:
        """Yield each retention since a time, and when it ended; absent for the last one."""
        first_ms = since_ms if isinstance(since_ms, int) else self.created_ms
        for periods in (*self.elsewhere, self.periods):
            for at, one in enumerate(periods):
                end = periods[at + 1].since_ms if at + 1 < len(periods) else Absent.NOT_APPLICABLE
                if not isinstance(end, int) or not isinstance(first_ms, int) or end > first_ms:
                    yield one, end
