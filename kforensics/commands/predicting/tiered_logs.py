"""What retention takes of tiered topics: from disk what is in a finished copy, and in remote storage what is due by the settings of the whole topic."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, cached_property
from itertools import pairwise

from kforensics.case.model import Case
from kforensics.case.settings import Settings, Surroundings
from kforensics.damage import Absent
from kforensics.errors import InputsRefused
from kforensics.evidence.remote_copies import RemoteSegment
from kforensics.protocol.loading.node import Fate
from kforensics.protocol.retention import AgedSegment, RetentionRule, due_segments
from kforensics.protocol.versions import parse_version
from kforensics.reconcile.logs.predicted_load import DueSegments, LogAtStart, PredictedLog
from kforensics.reconcile.logs.tiers import RemoteCopies
from kforensics.units import TopicPartition
from kforensics.words import counted, duration


class TieredLogs:
    """The logs of tiered topics that a start loads.

    Args:
        node_count: how many nodes are started.
    """

    def __init__(self, case: Case, surroundings: Surroundings, *, now_ms: int, node_count: int) -> None:
        self._case, self._now_ms = case, now_ms
        self._of_node = cache(lambda node_id: Settings(case.ask.settings, surroundings, node_id, node_count))

    def on_disk(self, log: PredictedLog) -> PredictedLog:
        """Return a log with what retention takes from disk: of a tiered topic what is below the log start, or in a copy that is on record as finished."""
        due = log.due
        if not isinstance(due, DueSegments) or isinstance(log.after, Absent) or not self._is_tiered(log):
            return log
        copied = max((one.offsets.last + 1 for one in self._copies(log, log.after)), default=0)
        below = max(copied, log.after.log_start_offset if isinstance(log.after.log_start_offset, int) else 0)
        bases = [base for base, _ in log.after.segments]
        taken = tuple(base for base, end in pairwise(bases) if base in due.base_offsets and end <= below)
        if not taken:
            return replace(log, due=Absent.NOT_APPLICABLE)
        length = sum(length for base, length in log.after.segments if base in taken)
        kept = replace(
            due, base_offsets=taken, bytes=length, is_whole_log=False, misdated=(), is_copied=taken[-1] < copied
        )
        return replace(log, due=kept)

    def expiring(self, logs: Iterable[PredictedLog]) -> Iterator[str]:
        """Yield what retention deletes in remote storage once a broker that is started leads, in a sentence a partition; of copies that are on record."""
        told: set[TopicPartition] = set()
        for log in logs:
            if isinstance(log.after, Absent) or not log.is_reached or log.fate is not Fate.KEPT:
                continue
            if not isinstance(log.partition, int) or not self._is_tiered(log):
                continue
            partition = TopicPartition(str(log.topic), log.partition)
            if partition not in told and (said := self._expired(partition, log, log.after)):
                told.add(partition)
                yield said

    def _expired(self, partition: TopicPartition, log: PredictedLog, after: LogAtStart) -> str:
        copies, (policy, is_known) = self._copies(log, after), self._settings(log).retention(partition.topic)
        if not copies or not is_known:
            return ""
        end = copies[-1].offsets.last + 1
        held = [AgedSegment(one.offsets.first, one.offsets.last + 1, one.length, one.newest_ms) for one in copies]
        # What is on disk alone counts for the size of the log; it is deleted once it is copied.
        alone = [AgedSegment(base, base + 1, length, self._now_ms) for base, length in after.segments if base >= end]
        due = due_segments(
            [*held, *alone], policy, log_start_offset=0, high_watermark=end, now_ms=self._now_ms, version=_NEWEST
        )
        if not due:
            return ""
        last = next(one for one in copies if one.offsets.first == due[-1][0])
        is_time = due[-1][1] is RetentionRule.TIME
        by = (
            f"retention.ms {duration(policy.retention_ms)}"
            if is_time
            else f"retention.bytes {policy.retention_bytes:,}"
        )
        return (
            f"Once a broker leads {partition}, it deletes {counted(len(due), 'copy', 'copies')} in remote storage, offsets {copies[0].offsets.first}"
            f" to {last.offsets.last}: they are due by {by}."
        )

    def _is_tiered(self, log: PredictedLog) -> bool:
        return isinstance(log.topic, str) and self._settings(log).is_tiered(log.topic)

    def _settings(self, log: PredictedLog) -> Settings:
        return self._of_node(self._case.inputs.described[log.node].broker_id)

    def _copies(self, log: PredictedLog, after: LogAtStart) -> list[RemoteSegment]:
        """Return the finished copies that a leader with this log reads, in the order of their offsets."""
        epochs = () if isinstance(after.epochs, Absent) else after.epochs
        partition = TopicPartition(str(log.topic), log.partition if isinstance(log.partition, int) else 0)
        every = self._remote.of(partition, log.topic_id)
        return [one for one in every if one.is_finished and any(one.readable(epochs))]

    @cached_property
    def _remote(self) -> RemoteCopies:
        from kforensics.case.tiers import remote_copies_of  # noqa: PLC0415 - few clusters have remote storage

        try:
            return remote_copies_of(self._case)
        except InputsRefused:  # of several clusters: whose copies they are is not known
            return RemoteCopies()


_NEWEST = parse_version("4.0")
