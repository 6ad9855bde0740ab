"""The leaders and in-sync replicas of each partition over time by the log lines of brokers and controllers, and when it was created."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.formats.log_lines.event import LogEvent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.formats.log_lines.partition_change import PartitionChange, parse_partition_change
from kforensics.protocol.versions import KafkaVersion, parse_version
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.logged_events import LoggedEvent, of_kinds, places_of_kinds
from kforensics.reconcile.observed.logged_periods import LoggedPeriods, logged_periods
from kforensics.reconcile.observed.refused_isr_changes import refused_isr_changes
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
        for item in of_kinds(events, {*_STARTS, *_JOINED}):
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


_WITH_STATE = frozenset({Kind.LEADER_AND_ISR, Kind.PARTITION_ONLINE, Kind.LEADER_SELECTED, Kind.LEADER_START})
_WITH_CHANGE = frozenset({Kind.UNCLEAN_ELECTION, Kind.PARTITION_CHANGE})
_WITH_ISR = frozenset({Kind.ISR_SHRINK, Kind.ISR_EXPAND, Kind.ISR_UPDATED})
_OF_LEADERS = frozenset(
    {*_WITH_STATE, *_WITH_CHANGE, *_WITH_ISR, Kind.LIVE_BROKERS, Kind.LEADER_RECOVERED, Kind.PARTITION_STATE}
)
_BY_ZOOKEEPER = frozenset(
    {Kind.LEADER_AND_ISR, Kind.PARTITION_ONLINE, Kind.LEADER_SELECTED, Kind.LIVE_BROKERS, Kind.REPLICAS_ASSIGNED}
)
_FIRST_WITH_KRAFT = KafkaVersion(2, 8)
_IS_RECOVERING = frozenset({"1", "RECOVERING"})
_CREATION_MS = 30_000
"""The most time between the controller's line about a new partition and the line of its first leader."""


def logged_leaderships(
    events: Sequence[LoggedEvent],
    periods: LoggedPeriods | None = None,
    refused: frozenset[int] | None = None,
) -> dict[TopicPartition, tuple[Leadership, ...]]:
    """Return the states of each partition, the oldest first; a line that repeats a state or is older than the last adds nothing.

    Args:
        events: of all nodes, in the order of time; what is before the newest creation of a partition is of another topic.
        refused: the lines that ask for an ISR that the leader did not get, by their place.
    """
    states: dict[TopicPartition, list[Leadership]] = {}
    periods = periods or logged_periods(events)
    brokers, alive = frozenset(periods.first), LiveBrokers(events, periods)
    refused = refused_isr_changes(events) if refused is None else refused
    is_zookeeper = _is_zookeeper(events)
    recovering: dict[tuple[int | Absent, TopicPartition], Citation] = {}
    """The lines of leaders that they were elected uncleanly: the line about the state itself follows."""
    for at in places_of_kinds(events, _OF_LEADERS):
        if at in refused:
            continue
        item = events[at]
        alive.follow(item)
        partition = item.event.topic_partition
        if isinstance(partition, Absent):
            continue
        known = states.setdefault(partition, [])
        if is_creation(item.event):
            if _is_repeated(known, item):
                known[:] = [replace(known[0], is_creation=True)]
            else:
                # The topic was recreated: earlier lines are about another topic of the same name.
                known.clear()
        current = known[-1] if known else None
        if item.event.kind is Kind.LEADER_RECOVERED:
            recovering[item.node_id, partition] = item.citation
        state = _next_state(current, item, brokers, alive)
        if state is not None:
            unlogged = _unlogged_isr(current, item)
            known.extend((unlogged, state) if unlogged is not None else (state,))
            known[-1] = replace(state, shows_isr_before=is_zookeeper or _names_isr_before(item))
        elif _is_newer(current, item):
            # The same ISR: replicas or directories changed, or the line answers one that asked for it.
            known[-1] = replace(known[-1], partition_epoch=_partition_epoch(item))
        if item.event.kind in {Kind.LEADER_START, Kind.PARTITION_STATE}:
            _mark_unclean(known, item, recovering.pop((item.node_id, partition), None))
    return {partition: tuple(known) for partition, known in states.items() if known}


def _is_zookeeper(events: Sequence[LoggedEvent]) -> bool:
    """Return whether lines show a cluster with ZooKeeper, whose controller raises the leader epoch with each change of the ISR and whose leaders log theirs; a KRaft controller does neither."""
    versions, roles = set(), set()
    is_by_lines = False
    for item in of_kinds(events, {Kind.VERSION, Kind.CONFIGURATION, Kind.LEADER_START, *_BY_ZOOKEEPER}):
        event = item.event
        if event.kind is Kind.VERSION:
            versions.add(str(event.fields.get("version")))
        elif event.kind is Kind.CONFIGURATION and isinstance(named := event.fields.get("process.roles"), str):
            roles.add(named.strip("[] "))
        is_old = event.kind is Kind.LEADER_START and isinstance(event.brokers("isr"), Absent)
        is_by_lines |= is_old or event.kind in _BY_ZOOKEEPER
    if roles:
        return roles == {""}
    return is_by_lines or (bool(versions) and all(map(_is_before_kraft, versions)))


def _is_before_kraft(text: str) -> bool:
    try:
        return parse_version(text) < _FIRST_WITH_KRAFT
    except ValueError:
        return False


def _names_isr_before(item: LoggedEvent) -> bool:
    diff = item.event.fields.get("diff")
    return isinstance(diff, str) and not isinstance(parse_partition_change(diff).isr_before, Absent)


def _partition_epoch(item: LoggedEvent) -> int | Absent:
    diff = item.event.fields.get("diff")
    return (
        parse_partition_change(diff).partition_epoch if isinstance(diff, str) else item.event.number("partition_epoch")
    )


def _is_newer(current: Leadership | None, item: LoggedEvent) -> bool:
    """Return whether a line without news names a later partition epoch of the same leader epoch."""
    if current is None or item.event.kind not in {Kind.PARTITION_STATE, Kind.ISR_UPDATED}:
        return False
    epoch = item.event.number("leader_epoch")
    is_same = epoch == current.leader_epoch if isinstance(epoch, int) else item.node_id == current.leader
    return is_same and isinstance(_partition_epoch(item), int) and not _is_old(current, item)


def _mark_unclean(known: list[Leadership], item: LoggedEvent, line: Citation | None) -> None:
    """Mark the term that a line is about as begun by an unclean election, where the line says so or one of the leader before it."""
    event = item.event
    if str(event.fields.get("recovery_state")) in _IS_RECOVERING:
        line, leader = item.citation, event.number("leader")
    else:
        leader = item.node_id
    epoch = event.number("leader_epoch")
    first = next((at for at, one in enumerate(known) if (one.leader, one.leader_epoch) == (leader, epoch)), None)
    if line is not None and first is not None and not known[first].unclean:
        known[first] = replace(known[first], unclean=True, is_stated=True, recovering=(line,))


def creation_times(events: Iterable[LoggedEvent]) -> dict[TopicPartition, int]:
    """Return when each partition was last created, in UTC ms, by the lines of ZooKeeper controllers and first leaders."""
    return {
        item.event.topic_partition: item.time_ms
        for item in of_kinds(events, (Kind.LEADER_START, Kind.PARTITION_ONLINE))
        if is_creation(item.event)
        and not isinstance(item.event.topic_partition, Absent)
        and isinstance(item.time_ms, int)
    }


def is_creation(event: LogEvent) -> bool:
    """Return whether the line reports the creation of a partition: its first election, or its first leader."""
    if event.kind is Kind.LEADER_START:
        begins = {name: event.number(name) for name in ("leader_epoch", "offset", "previous_leader_epoch")}
        return begins == {"leader_epoch": 0, "offset": 0, "previous_leader_epoch": -1}
    return event.kind is Kind.PARTITION_ONLINE and event.fields.get("state") == "NewPartition"


def _is_repeated(known: Sequence[Leadership], item: LoggedEvent) -> bool:
    """Return whether the first leader's own line follows the controller's, which named the ISR too: one creation, not two."""
    if item.event.kind is not Kind.LEADER_START or len(known) != 1:
        return False
    (first,) = known
    if first.leader_epoch != 0 or first.leader != item.node_id:
        return False
    if isinstance(first.time_ms, Absent) or isinstance(item.time_ms, Absent):
        return False
    return abs(item.time_ms - first.time_ms) <= _CREATION_MS


def _next_state(
    current: Leadership | None, item: LoggedEvent, with_lines: frozenset[int], alive: LiveBrokers
) -> Leadership | None:
    event = item.event
    if event.kind in _WITH_CHANGE and isinstance(diff := event.fields.get("diff"), str):
        return _changed(current, item, parse_partition_change(diff))
    if event.kind is Kind.PARTITION_STATE:
        return _stated(current, item)
    if event.kind in _WITH_STATE:
        return _elected(current, item, with_lines, alive)
    if event.kind not in _WITH_ISR or current is None or item.node_id != current.leader:
        return None
    isr = event.brokers("isr" if event.kind is Kind.ISR_UPDATED else "to_isr")
    if isinstance(isr, Absent) or frozenset(isr) == current.isr or not isr or _is_old(current, item):
        return None
    return _leadership(item, leader=current.leader, leader_epoch=current.leader_epoch, isr=isr, unclean=False)


def _elected(
    current: Leadership | None, item: LoggedEvent, with_lines: frozenset[int], alive: LiveBrokers
) -> Leadership | None:
    event = item.event
    epoch, isr = event.number("leader_epoch"), event.brokers("isr")
    leader = item.node_id if event.kind is Kind.LEADER_START else event.number("leader")
    if not isinstance(epoch, int) or epoch < 0 or isinstance(leader, Absent):
        return None
    has_leader = leader >= 0
    if current is not None and epoch <= current.leader_epoch:
        is_same = epoch < current.leader_epoch or current.leader == leader or not has_leader
        if is_same and (isinstance(isr, Absent) or frozenset(isr) == current.isr or epoch < current.leader_epoch):
            return None
        if is_same and event.kind not in {Kind.PARTITION_ONLINE, Kind.LEADER_SELECTED}:
            # A broker that starts late repeats the ISR of the time of its request.
            return None
    unclean = (
        has_leader and event.kind is not Kind.LEADER_START and _was_out_of_sync(current, leader, epoch, with_lines)
    )
    if event.kind is Kind.LEADER_START and isinstance(isr, Absent):
        unclean = alive.is_unclean(current, leader, item)
        isr = (leader,) if unclean else alive.in_sync_with(leader, item)
    value = leader if has_leader else Absent.NOT_APPLICABLE
    return _leadership(item, leader=value, leader_epoch=epoch, isr=isr, unclean=unclean)


def _stated(current: Leadership | None, item: LoggedEvent) -> Leadership | None:
    """Return the state that a KRaft controller told a broker which keeps its role, where it is news."""
    epoch, leader, isr = (item.event.number("leader_epoch"), item.event.number("leader"), item.event.brokers("isr"))
    if not isinstance(epoch, int) or isinstance(leader, Absent) or isinstance(isr, Absent):
        return None
    if current is not None and (epoch < current.leader_epoch or _is_old(current, item)):
        return None
    eligible = item.event.brokers("elr")
    state = _leadership(
        item, leader=leader if leader >= 0 else Absent.NOT_APPLICABLE, leader_epoch=epoch, isr=isr, unclean=False
    )
    state = replace(state, eligible=frozenset() if isinstance(eligible, Absent) else frozenset(eligible))
    if current is None or epoch > current.leader_epoch:
        return state
    return None if (state.isr, state.eligible) == (current.isr, current.eligible) else state


def _is_old(current: Leadership, item: LoggedEvent) -> bool:
    """Whether a line of the same leader epoch is about a state that is known, or an earlier one: it reaches other brokers later."""
    number = _partition_epoch(item)
    return isinstance(number, int) and isinstance(current.partition_epoch, int) and number <= current.partition_epoch


def _changed(current: Leadership | None, item: LoggedEvent, change: PartitionChange) -> Leadership | None:
    epoch = change.leader_epoch
    if isinstance(epoch, Absent) or (
        current is not None and epoch <= current.leader_epoch and not change.is_recovering
    ):
        return None
    if current is not None and (epoch < current.leader_epoch or (epoch == current.leader_epoch and current.unclean)):
        return None
    known = Absent.UNKNOWN if current is None else current.leader
    leader = known if isinstance(change.leader, Absent) else change.leader
    if isinstance(leader, int) and leader < 0:
        leader = Absent.NOT_APPLICABLE
    return _leadership(item, leader=leader, leader_epoch=epoch, isr=change.isr, unclean=change.is_recovering)


def _unlogged_isr(current: Leadership | None, item: LoggedEvent) -> Leadership | None:
    """Return the ISR before a change that a controller logs, if no earlier line reported it: brokers do not log every change."""
    diff = item.event.fields.get("diff")
    if current is None or not isinstance(diff, str):
        return None
    before = parse_partition_change(diff).isr_before
    if isinstance(before, Absent) or frozenset(before) == current.isr:
        return None
    return replace(current, isr=frozenset(before), time_ms=item.time_ms, citation=item.citation, unclean=False)


def _was_out_of_sync(current: Leadership | None, leader: int, epoch: int, with_lines: frozenset[int]) -> bool:
    # A leader changes the ISR by itself, and only its own lines show this.
    if current is not None and isinstance(current.leader, int) and current.leader not in with_lines:
        return False
    if current is None or isinstance(current.isr, Absent) or epoch == current.leader_epoch:
        return False
    return bool(current.isr) and leader not in current.isr


def _leadership(
    item: LoggedEvent, *, leader: int | Absent, leader_epoch: int, isr: tuple[int, ...] | Absent, unclean: bool
) -> Leadership:
    citation: Citation = item.citation
    topic_id = item.event.fields.get("topic_id")
    return Leadership(
        is_stated=item.event.kind in _WITH_CHANGE,
        leader=leader,
        leader_epoch=leader_epoch,
        isr=isr if isinstance(isr, Absent) else frozenset(isr),
        replicas=Absent.UNKNOWN,
        unclean=unclean,
        recorded_at=Absent.NOT_APPLICABLE,
        time_ms=item.time_ms,
        citation=citation,
        topic_id=topic_id if isinstance(topic_id, str) else Absent.NOT_WRITTEN,
        is_creation=is_creation(item.event),
        partition_epoch=_partition_epoch(item),
        is_own_line=item.event.kind is Kind.LEADER_START,
    )


def logged_assignments(events: Iterable[LoggedEvent]) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the brokers that each partition was assigned to last, at its creation or by a reassignment."""
    out: dict[TopicPartition, tuple[int, ...]] = {}
    for item in of_kinds(events, (Kind.REPLICAS_ASSIGNED, Kind.REASSIGNMENT)):
        partition = item.event.topic_partition
        if isinstance(partition, Absent):
            continue
        for name in ("replicas", "all"):
            brokers = item.event.brokers(name)
            if not isinstance(brokers, Absent) and brokers:
                out[partition] = brokers
                break
    return out
