"""High watermarks that log lines state beside a truncation: which of them are of the records that were truncated."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from kforensics.damage import Absent
from kforensics.reconcile.committed.proofs import LoggedHighWatermark
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.truncations import ObservedTruncation
from kforensics.reconcile.observed.broker_lives import LINES_OF_A_START_MS
from kforensics.reconcile.observed.facts import ClusterFacts

MOST_UNCLEAN_STARTS = 2


def with_trusted_high_watermarks(
    observed: Sequence[ObservedTruncation], facts: ClusterFacts, doubted: Mapping[int, int]
) -> tuple[ObservedTruncation, ...]:
    """Return the truncations, without the high watermarks of their lines that may be of other records.

    Args:
        doubted: brokers whose high watermarks a known bug may have falsified.
    """
    return tuple(_with_trusted_high_watermark(one, observed, facts, doubted) for one in observed)


def _with_trusted_high_watermark(
    truncation: ObservedTruncation,
    observed: Iterable[ObservedTruncation],
    facts: ClusterFacts,
    doubted: Mapping[int, int],
) -> ObservedTruncation:
    """Return the truncation without the high watermark of its line where that may speak of other records than those truncated.

    No log has a high watermark above its end: where the line's is, it is of another moment. A checkpoint that an unclean stop left is up to 5 s old. Where the log had been shortened or truncated, and written again, before that stop, it may be older than the records.
    """
    if isinstance(truncation.high_watermark, Absent):
        return truncation
    broker, time_ms = truncation.broker_id, truncation.time_ms
    is_trusted = isinstance(broker, int) and isinstance(time_ms, int) and broker not in doubted
    is_trusted &= truncation.high_watermark.value <= truncation.from_offset
    if isinstance(broker, int) and isinstance(time_ms, int):
        stops = [
            restart.time_ms
            for restart in facts.restarts(broker)
            if not restart.is_clean and isinstance(restart.time_ms, int) and restart.time_ms <= time_ms
        ]
        earlier = [
            other
            for other in observed
            if other.broker_id == broker and isinstance(other.time_ms, int) and other.time_ms < min(stops, default=0)
        ]
        is_trusted &= len(_apart(stops)) < MOST_UNCLEAN_STARTS and not earlier
    return truncation if is_trusted else replace(truncation, high_watermark=Absent.UNKNOWN)


def logged_high_watermarks(
    observed: Iterable[ObservedTruncation], copies: Collection[LogCopy]
) -> list[LoggedHighWatermark]:
    """Return the high watermarks that lines state of logs before a truncation, where a copy shows that log."""
    found = []
    for one in observed:
        before, known = one.before, one.high_watermark
        if before is None or before not in copies or isinstance(known, Absent):
            continue
        # Without its time a copy may be of before an earlier truncation, and hold other records at these offsets.
        if before.view.log_end_offset == one.from_offset and isinstance(before.taken_ms, int):
            found.append(LoggedHighWatermark(before.view, known.value, known.citation))
    return found


def _apart(times_ms: Iterable[int]) -> list[int]:
    """Return the starts, of whose several lines only the first counts."""
    found: list[int] = []
    for time_ms in sorted(times_ms):
        if not found or time_ms - found[-1] > LINES_OF_A_START_MS:
            found.append(time_ms)
    return found
