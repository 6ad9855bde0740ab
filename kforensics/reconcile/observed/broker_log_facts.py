"""Leaders, in-sync replicas and settings from the log lines of brokers and ZooKeeper controllers, for clusters without a metadata log."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.model import Citation
from kforensics.formats.log_lines.event import LogEvent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.formats.log_lines.partition_change import PartitionChange, parse_partition_change
from kforensics.protocol.versions import KafkaVersion, advances_only_at_min_isr, parse_version
from kforensics.reconcile.observed.facts import ClusterFacts, GroupCommit, Leadership, LogLoad, Restart
from kforensics.reconcile.observed.heard_lines import HeardLines, heard_lines
from kforensics.reconcile.observed.live_brokers import LiveBrokers
from kforensics.reconcile.observed.logged_events import LoggedEvent, log_written
from kforensics.reconcile.observed.refused_isr_changes import refused_isr_changes
from kforensics.units import METADATA_TOPICS, TopicPartition

_WITH_STATE = frozenset({Kind.LEADER_AND_ISR, Kind.PARTITION_ONLINE, Kind.LEADER_SELECTED, Kind.LEADER_START})
_WITH_CHANGE = frozenset({Kind.UNCLEAN_ELECTION, Kind.PARTITION_CHANGE})
_UNCLEAN_STARTS = frozenset(
    {Kind.RECOVERY_START, Kind.SEGMENT_RECOVERY, Kind.RECOVERY_TRUNCATION, Kind.INVALID_RECORDS, Kind.BROKER_HALTED}
)
"""The version from which a leader with too small an ISR does not advance its high watermark (KIP-966)."""
_STARTS = frozenset({Kind.BROKER_STARTED, Kind.CLEAN_START})

_SHORTENED = frozenset({Kind.TRUNCATION, Kind.FULL_TRUNCATION, Kind.RECOVERY_TRUNCATION})
_OTHER_LOGS = frozenset({Kind.LOG_DISCARDED, Kind.LOG_CREATED})
"""Behind them the directory holds another log, or none."""
_WITH_ISR = frozenset({Kind.ISR_SHRINK, Kind.ISR_EXPAND, Kind.ISR_UPDATED})
_STOP_MS = 60_000
"""The most time between the producer snapshots that a stop writes and the broker's last line."""
_CLOCK_MS = 10_000
"""A line may be this much older than one before it: threads write side by side, and a clock is set by small steps."""
_LINES_OF_A_START_MS = 10_000
"""A start says of each log directory within this time how it was left."""
_STARTS_LOGGED, _STARTS_ELSEWHERE = KafkaVersion(0, 11), KafkaVersion(2, 6)
"""The first version that logs that it leads in an epoch, and the first that does so in state-change.log."""
_CREATION_MS = 30_000
"""The most time between the controller's line about a new partition and the line of its first leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLife:
    """The time of the first line of a broker's server.log, and the times of its starts after an unclean shutdown; milliseconds UTC."""

    first_ms: int
    unclean_starts: tuple[int, ...]
    starts: tuple[int, ...] = ()
    """Every start, its first line in the file left out where it is one."""
    went_back: bool = False
    """Whether its clock went back while it logged, so that the order of its lines and those of others is unknown."""
    last_ms: int | None = None
    """The time of the last line, where the server.log that is being written is not given."""
    new_disks: tuple[int, ...] = ()
    """The starts at which a log directory had lost its identity, though the broker had started before."""

    def reaches(self, time_ms: int) -> bool:
        """Whether the lines reach as far as a time.

        Args:
            time_ms: in UTC.
        """
        return self.last_ms is None or time_ms <= self.last_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLogFacts(ClusterFacts):
    """`ClusterFacts` from the metadata log, and from log lines for partitions that it does not hold."""

    metadata: ClusterFacts
    by_partition: Mapping[TopicPartition, tuple[Leadership, ...]] = field(default_factory=dict)
    broker_min_insync: int | Absent = Absent.UNKNOWN
    """The highest `min.insync.replicas` that any broker started with."""
    unclean_election: bool | Absent = Absent.UNKNOWN
    """The value of `unclean.leader.election.enable` that all brokers were configured with; unknown where they differ or none says it."""
    newest_version: KafkaVersion | None = None
    """The newest version of all brokers, if the log lines of each broker name one."""
    assignments: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """The brokers that each partition was assigned to last, as a ZooKeeper-era controller logged it."""
    lives: Mapping[int, "BrokerLife"] = field(default_factory=dict)
    """The starts of each broker by its own lines."""
    logged_loads: Mapping[tuple[int, TopicPartition], tuple[LogLoad, ...]] = field(default_factory=dict)
    """The loads of each broker's logs."""
    named: frozenset[int] | None = None
    """The brokers that the states name, found once for all partitions."""

    without_newest: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """By broker: the names of its logs of which the file that is being written is not given."""
    deleted_topics: frozenset[str] = frozenset()
    """Topics that were deleted by log lines and not created again."""
    cluster: frozenset[int] = frozenset()
    """Every broker that a ZooKeeper controller ever called alive."""
    starts_are_logged: bool = False
    """Whether server.log alone names each leader epoch in which its broker leads: by the versions of all brokers (0.11 to 2.5)."""

    later_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The highest leader epoch of each partition that lines after the end of the metadata log name."""
    metadata_end_ms: int | Absent = Absent.UNKNOWN
    """The newest time in the metadata log."""

    def leaderships(self, partition: TopicPartition, topic_id: str | Absent) -> tuple[Leadership, ...]:
        """Return the states from the metadata log, else from log lines."""
        states = self.metadata.leaderships(partition, topic_id) or self.by_partition.get(partition, ())
        assigned = self.assignments.get(partition)
        if not states or assigned is None or not isinstance(states[-1].replicas, Absent):
            return states
        # Only of the newest state: what was assigned before a reassignment is not known.
        return (*states[:-1], replace(states[-1], replicas=assigned))

    def unclean_elections_before(
        self, first: Leadership, partition: TopicPartition, topic_id: str | Absent
    ) -> tuple[Leadership, ...]:
        """Return those that a controller itself calls unclean."""
        if isinstance(topic_id, Absent) or not isinstance(first.time_ms, int):
            return ()
        found: list[Leadership] = []
        for before, state in pairwise(self.by_partition.get(partition, ())):
            is_earlier = isinstance(state.time_ms, int) and state.time_ms < first.time_ms
            is_own = state.topic_id == topic_id and before.leader_epoch < state.leader_epoch <= first.leader_epoch
            if state.unclean and state.is_stated and is_earlier and is_own:
                found += [before, state]
        return tuple(found)

    def topic_id(self, topic: str) -> str | Absent:
        """Return the topic id from the metadata log."""
        return self.metadata.topic_id(topic)

    def is_deleted(self, topic: str, topic_id: str | Absent) -> bool:
        """Whether the metadata log says that the topic was deleted."""
        return self.metadata.is_deleted(topic, topic_id)

    def is_deletion_logged(self, topic: str) -> bool:
        """Whether the lines of a ZooKeeper cluster say so; of others the metadata log does."""
        # A new topic of that name is in the lines of the controller and in those of the brokers that hold it.
        is_blind = any(len(logs) > 1 and "server.log" in logs for logs in self.without_newest.values())
        return topic in self.deleted_topics and not is_blind and not self.has_metadata_log()

    def commits(self, partition: TopicPartition) -> tuple[GroupCommit, ...]:
        """Return the commits of consumer groups."""
        return self.metadata.commits(partition)

    def unclean_restarts(self, broker_id: int) -> tuple[int, ...]:
        """Return the unclean restarts from the metadata log."""
        return self.metadata.unclean_restarts(broker_id)

    def restarts(self, broker_id: int) -> tuple[Restart, ...]:
        """Return the restarts from the metadata log; where there is none, from the broker's own lines."""
        known = self.metadata.restarts(broker_id)
        life = self.lives.get(broker_id)
        if known or life is None or self.metadata.has_metadata_log():
            return known
        times = sorted({*life.starts, *life.unclean_starts, *life.new_disks})
        return tuple(
            Restart(
                recorded_at=Absent.UNKNOWN,
                time_ms=time,
                is_clean=time not in life.unclean_starts,
                other_disk=time in life.new_disks,
            )
            for time in times
        )

    def loads(self, broker_id: int, partition: TopicPartition) -> tuple[LogLoad, ...]:
        """Return the loads by the broker's own lines."""
        return self.logged_loads.get((broker_id, partition), ())

    def verifies_clean_stops(self) -> bool:
        """Return what the metadata log says."""
        return self.metadata.verifies_clean_stops()

    def metadata_gaps(self) -> tuple[str, ...]:
        """Return the gaps of the metadata log."""
        return self.metadata.metadata_gaps()

    def is_newest_metadata(self) -> bool:
        """Whether the metadata log is the newest."""
        return self.metadata.is_newest_metadata()

    def later_epoch(self, partition: TopicPartition) -> int | Absent:
        """Return the highest leader epoch by lines after the end of the metadata log."""
        return self.later_epochs.get(partition, Absent.NOT_APPLICABLE)

    def ends_before(self, time_ms: int | Absent) -> bool:
        """Whether the newest time in the metadata log is before."""
        return isinstance(self.metadata_end_ms, int) and isinstance(time_ms, int) and self.metadata_end_ms < time_ms

    def heard_brokers(self) -> Mapping[int, int | Absent]:
        """Return when the lines of each broker begin whose server.log is among the inputs, in UTC ms; unknown where its clock went back."""
        return {broker: Absent.UNKNOWN if life.went_back else life.first_ms for broker, life in self.lives.items()}

    def logs_without_newest(self) -> Mapping[int, tuple[str, ...]]:
        """Return the logs of which only rolled files are given."""
        return self.without_newest

    def reports_every_leader(self, since_ms: int) -> bool:
        """Whether the lines of all brokers that a controller ever called alive reach back, and their versions log every start of a leader."""
        heard = (self.lives.get(broker) for broker in self.cluster | self.named_brokers())
        is_heard = all(life is not None and not life.went_back and life.first_ms <= since_ms for life in heard)
        return bool(self.cluster) and self.starts_are_logged and is_heard

    def named_brokers(self) -> frozenset[int]:
        """Return the brokers that the states of the log lines name."""
        return _named_in(self.by_partition) if self.named is None else self.named

    def is_unbroken(self, broker_id: int, since_ms: int, until_ms: int) -> bool:
        """Whether the broker's own lines are unbroken."""
        life = self.lives.get(broker_id)
        if life is None or life.went_back or life.first_ms > since_ms or not life.reaches(until_ms):
            return False
        return not any(since_ms <= start <= until_ms for start in life.unclean_starts)

    def started_clean(self, broker_id: int, since_ms: int) -> bool:
        """By the lines of the broker, if they begin before."""
        life = self.lives.get(broker_id)
        if life is None or life.went_back or life.first_ms > since_ms:
            return False
        first = min((one for one in (*life.starts, *life.unclean_starts) if one >= since_ms), default=None)
        if first is None or not life.reaches(first + _LINES_OF_A_START_MS):
            return False
        return not any(first <= one <= first + _LINES_OF_A_START_MS for one in life.unclean_starts)

    def registered_directories(self, broker_id: int) -> frozenset[str] | Absent:
        """Return the directories from the metadata log."""
        return self.metadata.registered_directories(broker_id)

    def has_metadata_log(self) -> bool:
        """Return whether the cluster keeps its metadata in a log of its own."""
        return self.metadata.has_metadata_log()

    def allows_unclean_election(self, topic: str, recorded_at: int | Absent) -> bool | Absent:
        """Return the setting by the metadata log, else by what all brokers were configured with."""
        recorded = self.metadata.allows_unclean_election(topic, recorded_at)
        return recorded if isinstance(recorded, bool) else self.unclean_election

    def needed_in_sync(self, topic: str) -> int | Absent:
        """Return the higher of what metadata and brokers say; a topic's own setting shows only in the metadata."""
        if self.newest_version is not None and not advances_only_at_min_isr(self.newest_version):
            return 1
        known = (self.metadata.needed_in_sync(topic), self.broker_min_insync)
        return max((value for value in known if isinstance(value, int)), default=Absent.UNKNOWN)


def facts_from_logs(
    events: Sequence[LoggedEvent],
    metadata: ClusterFacts,
    *,
    newest_version: KafkaVersion | None = None,
    configured: Iterable[int] = (),
    unclean_elections: Iterable[bool] = (),
    metadata_end_ms: int | Absent = Absent.UNKNOWN,
    files: Sequence[LogFile] = (),
    deleted_topics: frozenset[str] = frozenset(),
) -> BrokerLogFacts:
    """Return the facts with the leaderships that log lines report.

    Args:
        events: of all log files.
        metadata: what the metadata log says.
        newest_version: of all brokers, where each names one.
        configured: values of `min.insync.replicas` in server.properties.
        unclean_elections: values of `unclean.leader.election.enable` there.
        metadata_end_ms: the newest time in the metadata log.
        files: all log files.
        deleted_topics: those that the lines call deleted.
    """
    flags = {
        *unclean_elections,
        *(
            value
            for item in events
            if item.event.kind is Kind.CONFIGURATION
            and isinstance(value := item.event.fields.get("unclean.leader.election.enable"), bool)
        ),
    }
    started = [
        value
        for item in events
        if item.event.kind is Kind.CONFIGURATION and isinstance(value := item.event.number("min.insync.replicas"), int)
    ]
    heard = heard_lines(events, files)
    by_partition = logged_leaderships(events, heard)
    return BrokerLogFacts(
        metadata=metadata,
        by_partition=by_partition,
        named=_named_in(by_partition),
        broker_min_insync=max([*started, *configured], default=Absent.UNKNOWN),
        unclean_election=flags.pop() if len(flags) == 1 else Absent.UNKNOWN,
        newest_version=newest_version,
        assignments=logged_assignments(events),
        cluster=heard.cluster,
        deleted_topics=deleted_topics,
        without_newest=heard.without_newest,
        starts_are_logged=not heard.too_old and not heard.last and _are_starts_logged(events, newest_version),
        lives=broker_lives(events, heard),
        logged_loads=log_loads(events),
        later_epochs=_later_epochs(by_partition, metadata_end_ms),
        metadata_end_ms=metadata_end_ms,
    )


def _are_starts_logged(events: Iterable[LoggedEvent], newest: KafkaVersion | None) -> bool:
    """Whether every version that any broker names writes its starts as leader to server.log; later ones write them to state-change.log."""
    if newest is None or newest >= _STARTS_ELSEWHERE:
        return False
    named = {item.event.fields.get("version") for item in events if item.event.kind is Kind.VERSION}
    try:
        return all(parse_version(str(text)) >= _STARTS_LOGGED for text in named)
    except ValueError:
        return False


def _later_epochs(
    by_partition: Mapping[TopicPartition, Iterable[Leadership]], end_ms: int | Absent
) -> dict[TopicPartition, int]:
    """Return the highest leader epochs of states that lines name after a time."""
    if not isinstance(end_ms, int):
        return {}
    later: dict[TopicPartition, int] = {}
    for partition, states in by_partition.items():
        for state in states:
            if isinstance(state.time_ms, int) and state.time_ms > end_ms:
                later[partition] = max(state.leader_epoch, later.get(partition, -1))
    return later


def _named_in(by_partition: Mapping[TopicPartition, Iterable[Leadership]]) -> frozenset[int]:
    named: set[int] = set()
    for states in by_partition.values():
        for state in states:
            named |= {state.leader} if isinstance(state.leader, int) else set()
            named |= state.isr if isinstance(state.isr, frozenset) else set()
    return frozenset(named)


def logged_assignments(events: Iterable[LoggedEvent]) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the brokers that each partition was assigned to last, at its creation or by a reassignment.

    Args:
        events: of all nodes, in the order of time.
    """
    out: dict[TopicPartition, tuple[int, ...]] = {}
    for item in events:
        partition = item.event.topic_partition
        if item.event.kind not in {Kind.REPLICAS_ASSIGNED, Kind.REASSIGNMENT} or isinstance(partition, Absent):
            continue
        for name in ("replicas", "all"):
            brokers = item.event.brokers(name)
            if not isinstance(brokers, Absent) and brokers:
                out[partition] = brokers
                break
    return out


def log_loads(events: Iterable[LoggedEvent]) -> dict[tuple[int, TopicPartition], tuple[LogLoad, ...]]:
    """Return the loads of each broker's logs, with where each log had ended at the clean stop before, as far as lines show it.

    A stop writes a producer snapshot at the end of each log that was appended to since the last one.

    Args:
        events: of all nodes, in the order of time; those without a node or a time are left out.
    """
    out: dict[tuple[int, TopicPartition], list[LogLoad]] = {}
    ends: dict[tuple[int, TopicPartition], int] = {}
    written: set[tuple[int, TopicPartition]] = set()
    snapshot_ms: dict[int, int] = {}
    stop_ms: dict[int, int] = {}
    lacking: set[int] = set()
    """Nodes of whose lines not all were kept: a snapshot or a new log may be among the others."""
    for item in events:
        event, node, time_ms = item.event, item.node_id, item.time_ms
        if not isinstance(node, int) or not isinstance(time_ms, int):
            continue
        if item.file.events_dropped:
            lacking.add(node)
        if event.kind is Kind.BROKER_STOPPED:
            stop_ms[node] = time_ms
        directory = event.fields.get("directory")
        if isinstance(event.topic_partition, Absent) or (
            isinstance(directory, str) and directory.endswith(("-delete", "-future", "-stray"))
        ):
            continue
        key, offset = (node, event.topic_partition), event.number("offset")
        if event.kind is Kind.PRODUCER_SNAPSHOT and isinstance(offset, int):
            ends[key], snapshot_ms[node] = offset, time_ms
            written.add(key)
        elif event.kind in _SHORTENED and isinstance(offset, int) and key in ends:
            ends[key] = min(ends[key], offset)
        elif event.kind in _OTHER_LOGS:
            ends.pop(key, None)
        elif event.kind is Kind.LOG_LOADED and isinstance(end := event.number("log_end_offset"), int):
            stopped = stop_ms.get(node, -_STOP_MS - 1)
            has_written = key in written or 0 <= stopped - snapshot_ms.get(node, 0) <= _STOP_MS
            known = ends.get(key, Absent.UNKNOWN) if has_written and node not in lacking else Absent.UNKNOWN
            out.setdefault(key, []).append(LogLoad(time_ms, end, known))
            ends[key] = end
            written.discard(key)
    return {key: tuple(found) for key, found in out.items()}


def broker_lives(events: Sequence[LoggedEvent], heard: HeardLines | None = None) -> dict[int, BrokerLife]:
    """Return by broker when it ran and how it started, by its own lines, in UTC ms.

    Args:
        events: of all nodes, in the order of time; those without a node or a time are left out.
        heard: where the lines of each broker begin and end; by the events alone where it is not given.
    """
    heard = heard or heard_lines(events)
    went_back = _with_clocks_that_went_back(events)
    starts: dict[int, list[int]] = {}
    clean: dict[int, list[int]] = {}
    new_disks: dict[int, list[int]] = {}
    has_started: set[int] = set()
    for item in events:
        if not isinstance(item.node_id, int) or not isinstance(item.time_ms, int):
            continue
        if item.event.kind is Kind.NEW_LOG_DIR and item.node_id in has_started:
            new_disks.setdefault(item.node_id, []).append(item.time_ms)
        elif item.event.kind is Kind.BROKER_STARTED:
            has_started.add(item.node_id)
        if item.event.kind in _UNCLEAN_STARTS and not _is_of_metadata(item.event):
            starts.setdefault(item.node_id, []).append(item.time_ms)
        elif item.event.kind in _STARTS:
            clean.setdefault(item.node_id, []).append(item.time_ms)
    return {
        broker: BrokerLife(
            first_ms=time_ms,
            unclean_starts=tuple(starts.get(broker, ())),
            starts=tuple(clean.get(broker, ())),
            new_disks=tuple(new_disks.get(broker, ())),
            last_ms=heard.last.get(broker),
            went_back=broker in went_back,
        )
        for broker, time_ms in heard.first.items()
    }


def _is_of_metadata(event: LogEvent) -> bool:
    """Whether the line is about the metadata log, which every start recovers."""
    return isinstance(event.topic_partition, TopicPartition) and event.topic_partition.topic in METADATA_TOPICS


def _with_clocks_that_went_back(events: Iterable[LoggedEvent]) -> frozenset[int]:
    """Return the nodes of which a log, rotated files included, holds a line that is older than one before it, by more than threads and clock services bring about."""
    latest: dict[tuple[int, tuple[int | Absent, str]], int] = {}
    logs: dict[int, tuple[int | Absent, str]] = {}
    found: set[int] = set()
    for item in events:
        if not isinstance(item.node_id, int) or not isinstance(item.time_ms, int):
            continue
        key = (item.node_id, logs.setdefault(id(item.file), log_written(item.file)))
        latest[key] = max(item.time_ms, latest.get(key, item.time_ms))
        if item.time_ms < latest[key] - _CLOCK_MS:
            found.add(item.node_id)
    return frozenset(found)


def logged_leaderships(
    events: Sequence[LoggedEvent], heard: HeardLines | None = None
) -> dict[TopicPartition, tuple[Leadership, ...]]:
    """Return the states of each partition, the oldest first; a line that repeats a state or is older than the last adds nothing.

    Args:
        events: of all nodes, in the order of time; what is before the newest creation of a partition is of another topic.
        heard: where the lines of each broker begin; by the events alone where it is not given.
    """
    states: dict[TopicPartition, list[Leadership]] = {}
    heard = heard or heard_lines(events)
    brokers, alive = frozenset(heard.first), LiveBrokers(events, heard)
    refused = refused_isr_changes(events)
    for at, item in enumerate(events):
        if at in refused:
            continue
        alive.follow(item)
        partition = item.event.topic_partition
        if isinstance(partition, Absent):
            continue
        known = states.setdefault(partition, [])
        if is_creation(item.event) and not _is_repeated(known, item):
            # The topic was recreated: earlier lines are about another topic of the same name.
            known.clear()
        current = known[-1] if known else None
        state = _next_state(current, item, brokers, alive)
        if state is None:
            continue
        unlogged = _unlogged_isr(current, item)
        known.extend((unlogged, state) if unlogged is not None else (state,))
    return {partition: tuple(known) for partition, known in states.items() if known}


def creation_times(events: Iterable[LoggedEvent]) -> dict[TopicPartition, int]:
    """Return when each partition was last created, in UTC ms, by the lines of ZooKeeper controllers and first leaders.

    Args:
        events: of all nodes, in the order of time; those without a time are left out.
    """
    return {
        item.event.topic_partition: item.time_ms
        for item in events
        if is_creation(item.event)
        and not isinstance(item.event.topic_partition, Absent)
        and isinstance(item.time_ms, int)
    }


def is_creation(event: LogEvent) -> bool:
    """Return whether the line reports the creation of a partition: its first election, or its first leader.

    Args:
        event: of any node.
    """
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
    current: Leadership | None, item: LoggedEvent, heard: frozenset[int], alive: LiveBrokers
) -> Leadership | None:
    event = item.event
    if event.kind in _WITH_CHANGE and isinstance(diff := event.fields.get("diff"), str):
        return _changed(current, item, parse_partition_change(diff))
    if event.kind in _WITH_STATE:
        return _elected(current, item, heard, alive)
    if event.kind not in _WITH_ISR or current is None or item.node_id != current.leader:
        return None
    isr = event.brokers("isr" if event.kind is Kind.ISR_UPDATED else "to_isr")
    if isinstance(isr, Absent) or frozenset(isr) == current.isr or not isr:
        return None
    return _leadership(item, leader=current.leader, leader_epoch=current.leader_epoch, isr=isr, unclean=False)


def _elected(
    current: Leadership | None, item: LoggedEvent, heard: frozenset[int], alive: LiveBrokers
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
    # Brokers do not log every ISR change of a KRaft controller: only the controller's own lines show the ISR.
    unclean = has_leader and event.kind is not Kind.LEADER_START and _was_out_of_sync(current, leader, epoch, heard)
    if event.kind is Kind.LEADER_START and isinstance(isr, Absent):
        unclean = alive.is_unclean(current, leader, item)
        isr = (leader,) if unclean else alive.in_sync_with(leader, item)
    value = leader if has_leader else Absent.NOT_APPLICABLE
    return _leadership(item, leader=value, leader_epoch=epoch, isr=isr, unclean=unclean)


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


def _was_out_of_sync(current: Leadership | None, leader: int, epoch: int, heard: frozenset[int]) -> bool:
    # A leader changes the ISR by itself, and only its own lines show this.
    if current is not None and isinstance(current.leader, int) and current.leader not in heard:
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
    )
