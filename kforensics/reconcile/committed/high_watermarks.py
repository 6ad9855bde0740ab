"""The part of a log that a recorded high watermark still applies to; the file may be older than the records."""

from collections.abc import Sequence

from kforensics.damage import Absent
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.facts import ClusterFacts, Leadership

MARK_INTERVAL_MS = 5_000
"""`replica.high.watermark.checkpoint.interval.ms`, Kafka's default."""


def high_watermark_reach(view: LoadedLog, facts: ClusterFacts, leaderships: Sequence[Leadership]) -> int:
    """The offset below which the high watermark recorded for a log proves its records committed; 0 where none is recorded."""
    recorded = view.replica.high_watermark
    if isinstance(recorded, Absent):
        return 0
    reach = min(recorded.value, view.log_end_offset)
    if recorded.value > view.log_end_offset and view.batch_epochs:
        # The high watermark is older than the log's tail: it only covers what was below the newest term.
        reach = min(reach, view.batch_epochs[-1].start_offset)
    return min(reach, _start_of_unmarked_term(view, facts, leaderships, reach))


def _start_of_unmarked_term(
    view: LoadedLog, facts: ClusterFacts, leaderships: Sequence[Leadership], otherwise: int
) -> int:
    """Where the log was written again since its broker came back from a crash so lately that the high watermark may be from before.

    A crash can take the end of a log while the high watermark stays, and the next leader writes other records there.
    """
    broker = view.replica.broker_id
    restarts = facts.unclean_restarts(broker) if isinstance(broker, int) else ()
    if not restarts:
        return otherwise
    began: dict[int, Leadership] = {}
    for state in leaderships:
        began.setdefault(state.leader_epoch, state)
    newest_ms = max(
        (s.max_timestamp_ms for s in view.segments if isinstance(s.max_timestamp_ms, int)), default=Absent.UNKNOWN
    )
    for entry in view.batch_epochs:
        first = began.get(entry.leader_epoch)
        if first is None or not isinstance(first.recorded_at, int) or first.recorded_at <= restarts[-1]:
            continue
        is_marked_since = (
            isinstance(first.time_ms, int)
            and isinstance(newest_ms, int)
            and newest_ms - first.time_ms > 2 * MARK_INTERVAL_MS
        )
        return otherwise if is_marked_since else entry.start_offset
    return otherwise
