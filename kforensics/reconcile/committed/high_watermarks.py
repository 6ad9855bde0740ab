"""The part of a log that a recorded high watermark still applies to; the file may be older than the records."""

from collections.abc import Sequence

from kforensics.damage import Absent
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.facts import ClusterFacts, Leadership

MARK_INTERVAL_MS = 5_000
"""`replica.high.watermark.checkpoint.interval.ms`, Kafka's default."""


def high_watermark_reach(view: LoadedLog, facts: ClusterFacts, leaderships: Sequence[Leadership]) -> int:
    """Return the offset below which the high watermark recorded for a log proves its records committed; 0 where none is recorded.

    Args:
        view: the log, once it is loaded.
        leaderships: the recorded states of the partition, the oldest first; without any, only the records below the log's newest epoch count
            after an unclean shutdown.
    """
    recorded = view.replica.high_watermark
    if isinstance(recorded, Absent):
        return 0
    if not leaderships and not view.replica.clean_shutdown:
        # It is up to 5 s old: where no input shows when the log was written, the log may have been truncated and written again since.
        return min(recorded.value, view.batch_epochs[-1].start_offset if view.batch_epochs else 0)
    reach = min(recorded.value, view.log_end_offset)
    if recorded.value > view.log_end_offset and view.batch_epochs:
        # The high watermark is older than the log's tail: it only covers what was below the newest term.
        reach = min(reach, view.batch_epochs[-1].start_offset)
    return min(reach, start_of_unmarked_term(view, facts, leaderships, reach))


def start_of_unmarked_term(
    view: LoadedLog, facts: ClusterFacts, leaderships: Sequence[Leadership], otherwise: int
) -> int:
    """Return where the log was written again since its broker came back from a crash so lately that the high watermark may be from before.

    A crash can take the end of a log while the high watermark stays, and the next leader writes other records there.

    Args:
        view: the log, once it is loaded.
        facts: what is known of unclean restarts.
        leaderships: the recorded states of the partition, the oldest first.
        otherwise: the offset to return where nothing was written again so lately.
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
    behind: list[tuple[int, Leadership]] = []
    """The terms that began after a restart of the broker which no earlier of the terms came after."""
    before = -1
    for entry in view.batch_epochs:
        first = began.get(entry.leader_epoch)
        if first is None or not isinstance(first.recorded_at, int):
            continue
        if any(before < restart < first.recorded_at for restart in restarts):
            behind.append((entry.start_offset, first))
        before = first.recorded_at
    ends = [*(state.time_ms for _, state in behind[1:]), newest_ms]
    for (start_offset, first), end_ms in zip(behind, ends, strict=False):
        is_marked_since = (
            isinstance(first.time_ms, int) and isinstance(end_ms, int) and end_ms - first.time_ms > 2 * MARK_INTERVAL_MS
        )
        if not is_marked_since:
            return start_offset
    return otherwise
