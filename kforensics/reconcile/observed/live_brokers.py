"""In-sync replicas of elections whose lines name none: brokers of 0.11 to 2.5 log that they lead, and their ZooKeeper controller which brokers are alive.

A controller takes every broker that is not alive out of the ISR, but for the last member (`ReplicaStateMachine`, 0.11 to 2.8). Others join it only by the leader, which logs that.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from kforensics.damage import Absent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.observed.logged_periods import LoggedPeriods
from kforensics.units import TopicPartition

_HANDLED_MS = 10_000
"""A controller changes every ISR, and leaders take up their epoch, within this time of its line about the brokers alive."""
_STARTS = frozenset({Kind.BROKER_STARTED, Kind.RECOVERY_START, Kind.CLEAN_START})
_JOINED = {Kind.ISR_EXPAND: "to_isr", Kind.ISR_UPDATED: "isr"}


class LiveBrokers:
    """The brokers alive by the lines of controllers, followed in the order of time.

    Args:
        events: of all nodes, in the order of time.
        periods: where the lines of each broker begin.
    """

    def __init__(self, events: Sequence[LoggedEvent], periods: LoggedPeriods) -> None:
        self._cluster = periods.cluster
        self._without_gap = periods.first.keys() - periods.too_old.keys()
        self._last = periods.last
        self._starts: dict[int, list[int]] = {}
        self._joined: dict[tuple[int, TopicPartition], list[tuple[int, frozenset[int]]]] = {}
        self._live: tuple[int, frozenset[int]] | None = None
        self._asked: set[TopicPartition] = set()
        """Partitions whose leader asked for a smaller ISR, and no line shows that it was given."""
        if self._cluster:
            self._index(events)

    def _index(self, events: Iterable[LoggedEvent]) -> None:
        for item in events:
            event, partition = item.event, item.event.topic_partition
            if not isinstance(item.node_id, int) or not isinstance(item.time_ms, int):
                continue
            if event.kind in _STARTS:
                self._starts.setdefault(item.node_id, []).append(item.time_ms)
            elif event.kind in _JOINED and not isinstance(partition, Absent):
                isr = event.brokers(_JOINED[event.kind])
                members = frozenset() if isinstance(isr, Absent) else frozenset(isr)
                self._joined.setdefault((item.node_id, partition), []).append((item.time_ms, members))

    def follow(self, item: LoggedEvent) -> None:
        """Take note of a line."""
        event, partition = item.event, item.event.topic_partition
        if event.kind is Kind.LIVE_BROKERS:
            alive = event.brokers("all")
            known = isinstance(item.time_ms, int) and not isinstance(alive, Absent)
            self._live = (int(str(item.time_ms)), frozenset(alive)) if known and not isinstance(alive, Absent) else None
        elif not isinstance(partition, Absent):
            if event.kind is Kind.ISR_SHRINK:
                self._asked.add(partition)
            elif event.kind in _JOINED:
                self._asked.discard(partition)

    def in_sync_with(self, leader: int, item: LoggedEvent) -> tuple[int, ...] | Absent:
        """Return the ISR of a leader that takes up an epoch where it alone is alive; absent where others are."""
        if self._live is None or not isinstance(item.time_ms, int):
            return Absent.NOT_WRITTEN
        since_ms, alive = self._live
        is_soon = item.time_ms - since_ms <= _HANDLED_MS
        if not is_soon or alive != {leader}:
            return Absent.NOT_WRITTEN
        if isinstance(item.event.topic_partition, TopicPartition):
            self._asked.discard(item.event.topic_partition)
        return (leader,)

    def is_unclean(self, current: Leadership | None, leader: int, item: LoggedEvent) -> bool:
        """Whether a leader was elected that had not been in sync: the leader before had let no other join its ISR, by its own lines up to its next start."""
        partition, time_ms = item.event.topic_partition, item.time_ms
        if current is None or isinstance(partition, Absent) or not isinstance(time_ms, int):
            return False
        before, isr = current.leader, current.isr
        if not isinstance(before, int) or not isinstance(isr, frozenset) or not isr or leader in isr:
            return False
        concerned = self._cluster | isr | {leader, before}
        if not self._cluster or not concerned <= self._without_gap or partition in self._asked:
            return False
        if any(self._last.get(broker, time_ms) < time_ms for broker in concerned):
            return False
        starts = self._starts.get(before, [])
        again = bisect_right(starts, time_ms)
        if again == len(starts) or not isinstance(current.time_ms, int):
            # Its lines may end before it died.
            return False
        since = current.time_ms
        return not any(
            leader in members
            for at, members in self._joined.get((before, partition), ())
            if since < at <= starts[again]
        )
