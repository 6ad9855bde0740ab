"""Leaders, in-sync replicas and settings and how far each log had grown, from the log lines of brokers and ZooKeeper controllers."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any, Concatenate, ParamSpec, TypeVar

from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.formats.log_lines.event import LogEvent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.protocol.versions import KafkaVersion, advances_only_at_min_isr, epoch_rules_of, parse_version
from kforensics.reconcile.observed.broker_lives import BrokerLife, broker_lives, log_loads
from kforensics.reconcile.observed.clocks import SKEW_TOLERATED_MS
from kforensics.reconcile.observed.facts import ClusterFacts, Leadership, LoggedEnd, LogLoad, OwnIsrLine, Restart
from kforensics.reconcile.observed.logged_events import (
    LoggedEvent,
    is_of_other_directory,
    of_kinds,
    places_of_kinds,
)
from kforensics.reconcile.observed.logged_leaderships import logged_assignments, logged_leaderships
from kforensics.reconcile.observed.logged_periods import logged_periods
from kforensics.reconcile.observed.logged_truncations import file_begins, loaded_short
from kforensics.reconcile.observed.refused_isr_changes import refused_isr_changes
from kforensics.units import METADATA_TOPICS, TopicPartition

_STARTS_LOGGED, _STARTS_ELSEWHERE = KafkaVersion(0, 11), KafkaVersion(2, 6)
"""The first version that logs that it leads in an epoch, and the first that does so in state-change.log."""


_TRUNCATES_ALWAYS = KafkaVersion(1, 1)
"""The first version that never halts for a fetch above its leader's end."""


Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


def _by_metadata(fact: Callable[Concatenate[Any, Asked], Answer]) -> Callable[Concatenate[Any, Asked], Answer]:
    """Return the method for a fact of which no log line says more than the metadata log."""

    def ask(self: "BrokerLogFacts", /, *args: Asked.args, **named: Asked.kwargs) -> Answer:
        answer: Answer = getattr(self.metadata, fact.__name__)(*args, **named)
        return answer

    return ask


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLogFacts(ClusterFacts):
    """`ClusterFacts` from the metadata log, and from log lines for partitions that it does not hold."""

    metadata: ClusterFacts
    by_partition: Mapping[TopicPartition, tuple[Leadership, ...]] = field(default_factory=dict)
    broker_min_insync: int | Absent = Absent.UNKNOWN
    """The highest `min.insync.replicas` that any broker started with."""
    topic_min_insync: Mapping[str, int] = field(default_factory=dict)
    """By topic: its own `min.insync.replicas`, the highest with which brokers created its logs."""
    unclean_election: bool | Absent = Absent.UNKNOWN
    """The value of `unclean.leader.election.enable` that all brokers were configured with; unknown where they differ or none says it."""
    newest_version: KafkaVersion | None = None
    """The newest version of all brokers, if the log lines of each broker name one."""
    assignments: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    """The brokers that each partition was assigned to last, as a ZooKeeper-era controller logged it."""
    lives: Mapping[int, BrokerLife] = field(default_factory=dict)
    """The starts of each broker by its own lines."""
    logged_loads: Mapping[tuple[int, TopicPartition], tuple[LogLoad, ...]] = field(default_factory=dict)
    """The loads of each broker's logs."""
    ends: Mapping[TopicPartition, Mapping[int, LoggedEnd]] = field(default_factory=dict)
    """How far each broker's log of a partition had grown by its lines."""
    named: frozenset[int] | None = None
    """The brokers that the states name, found once for all partitions."""

    without_newest: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """By broker: the names of its logs of which the file that is being written is not given."""
    deleted_topics: Mapping[str, int | Absent] = field(default_factory=dict)
    """Topics that were deleted by log lines and not created again, with the time of the deletion."""
    recreated_topics: Mapping[str, int] = field(default_factory=dict)
    """Those that were created again, with the time of their last deletion."""
    discarded: Mapping[str, int] = field(default_factory=dict)
    """When brokers renamed directories for deletion, by the name that they got."""
    cluster: frozenset[int] = frozenset()
    """Every broker that a ZooKeeper controller ever called alive."""
    starts_are_logged: bool = False
    """Whether server.log alone names each leader epoch in which its broker leads: by the versions of all brokers (0.11 to 2.5)."""

    later_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The highest leader epoch of each partition that lines after the end of the metadata log name."""
    metadata_end_ms: int | Absent = Absent.UNKNOWN
    """The newest time in the metadata log."""
    isr_lines: Mapping[TopicPartition, OwnIsrLine] = field(default_factory=dict)

    topic_id = _by_metadata(ClusterFacts.topic_id)
    is_deleted = _by_metadata(ClusterFacts.is_deleted)
    is_of_another = _by_metadata(ClusterFacts.is_of_another)
    knows_every_deletion = _by_metadata(ClusterFacts.knows_every_deletion)
    recreated_ms = _by_metadata(ClusterFacts.recreated_ms)
    exists_since_ms = _by_metadata(ClusterFacts.exists_since_ms)
    commits = _by_metadata(ClusterFacts.commits)
    unclean_restarts = _by_metadata(ClusterFacts.unclean_restarts)
    verifies_clean_stops = _by_metadata(ClusterFacts.verifies_clean_stops)
    metadata_gaps = _by_metadata(ClusterFacts.metadata_gaps)
    is_newest_metadata = _by_metadata(ClusterFacts.is_newest_metadata)
    registered_directories = _by_metadata(ClusterFacts.registered_directories)
    goes_on_without = _by_metadata(ClusterFacts.goes_on_without)
    has_metadata_log = _by_metadata(ClusterFacts.has_metadata_log)

    def leaderships(self, partition: TopicPartition, topic_id: str | Absent) -> tuple[Leadership, ...]:
        """Return the states from the metadata log, else from log lines."""
        states = self.metadata.leaderships(partition, topic_id) or self.by_partition.get(partition, ())
        assigned = self.assignments.get(partition)
        if not states or assigned is None or not isinstance(states[-1].replicas, Absent):
            return states
        # Only of the newest state: what was assigned before a reassignment is not known.
        return (*states[:-1], replace(states[-1], replicas=assigned))

    def own_isr_line(self, partition: TopicPartition) -> OwnIsrLine | None:
        """Return the line, where there is no metadata log."""
        return None if self.has_metadata_log() else self.isr_lines.get(partition)

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

    def deletion_ms(self, topic: str, topic_id: str | Absent, directory: str) -> int | Absent:
        """Return the time of the record, else of the line; where the topic was created again, the directory was to be renamed by then."""
        if self.has_metadata_log():
            return self.metadata.deletion_ms(topic, topic_id, directory)
        if self.is_deletion_logged(topic):
            return self.deleted_topics[topic]
        deleted, renamed = self.recreated_topics.get(topic), self.discarded.get(directory)
        return deleted if deleted is not None and renamed is not None and renamed <= deleted else Absent.UNKNOWN

    def is_deletion_logged(self, topic: str) -> bool:
        """Whether the lines of a ZooKeeper cluster say so; of others the metadata log does."""
        # A new topic of that name is in the lines of the controller and in those of the brokers that hold it.
        is_blind = any(len(logs) > 1 and "server.log" in logs for logs in self.without_newest.values())
        return topic in self.deleted_topics and not is_blind and not self.has_metadata_log()

    def enters_elected_epochs(self) -> bool:
        """Return it by the newest version that a line names."""
        return self.newest_version is None or epoch_rules_of(self.newest_version).enters_epoch_when_elected

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

    def logged_ends(self, partition: TopicPartition) -> Mapping[int, LoggedEnd]:
        """Return them by the brokers' own lines."""
        return self.ends.get(partition, {})

    def later_epoch(self, partition: TopicPartition) -> int | Absent:
        """Return the highest leader epoch by lines after the end of the metadata log."""
        return self.later_epochs.get(partition, Absent.NOT_APPLICABLE)

    def ends_before(self, time_ms: int | Absent) -> bool:
        """Whether the newest time in the metadata log is before."""
        return isinstance(self.metadata_end_ms, int) and isinstance(time_ms, int) and self.metadata_end_ms < time_ms

    def first_line_times(self) -> Mapping[int, int | Absent]:
        """Return when the lines of each broker begin whose server.log is among the inputs, in UTC ms; unknown where its clock went back."""
        return {broker: Absent.UNKNOWN if life.went_back else life.first_ms for broker, life in self.lives.items()}

    def logs_without_newest(self) -> Mapping[int, tuple[str, ...]]:
        """Return the logs of which only rolled files are given."""
        return self.without_newest

    def reports_every_leader(self, since_ms: int) -> bool:
        """Whether the lines of all brokers that a controller ever called alive reach back, and their versions log every start of a leader."""
        lives = (self.lives.get(broker) for broker in self.cluster | self.named_brokers())
        reach_back = all(life is not None and not life.went_back and life.first_ms <= since_ms for life in lives)
        return bool(self.cluster) and self.starts_are_logged and reach_back

    def named_brokers(self) -> frozenset[int]:
        """Return the brokers that the states of the log lines name."""
        return _named_in(self.by_partition) if self.named is None else self.named

    def is_unbroken(self, broker_id: int, since_ms: int, until_ms: int) -> bool:
        """Whether the broker's own lines are unbroken."""
        life = self.lives.get(broker_id)
        return life is not None and life.is_unbroken(since_ms, until_ms)

    def started_clean(self, broker_id: int, since_ms: int) -> bool:
        """Whether the lines of the broker begin before, and say so."""
        life = self.lives.get(broker_id)
        return life is not None and life.started_clean(since_ms)

    def allows_unclean_election(self, topic: str, recorded_at: int | Absent) -> bool | Absent:
        """Return the setting by the metadata log, else by what all brokers were configured with."""
        recorded = self.metadata.allows_unclean_election(topic, recorded_at)
        return recorded if isinstance(recorded, bool) else self.unclean_election

    def halts_out_of_range(self, topic: str) -> bool | Absent:
        """Whether versions and setting are known, and tell it."""
        if self.newest_version is None or self.newest_version >= _TRUNCATES_ALWAYS:
            return False if self.newest_version is not None else ClusterFacts.halts_out_of_range(self, topic)
        is_allowed = self.allows_unclean_election(topic, Absent.UNKNOWN)
        return is_allowed if isinstance(is_allowed, Absent) else not is_allowed

    def needed_in_sync(self, topic: str) -> int | Absent:
        """Return the setting by the metadata log, else the topic's own where brokers logged it, else the highest that they were configured with."""
        if self.newest_version is not None and not advances_only_at_min_isr(self.newest_version):
            return 1
        recorded = self.metadata.needed_in_sync(topic)
        if isinstance(recorded, int):
            return recorded
        own = self.topic_min_insync.get(topic, Absent.UNKNOWN)
        return own if isinstance(own, int) else self.broker_min_insync


def facts_from_logs(
    events: Sequence[LoggedEvent],
    metadata: ClusterFacts,
    *,
    newest_version: KafkaVersion | None = None,
    configured: Iterable[int] = (),
    unclean_elections: Iterable[bool] = (),
    metadata_end_ms: int | Absent = Absent.UNKNOWN,
    files: Sequence[LogFile] = (),
    deleted_topics: Mapping[str, int | Absent] | None = None,
    recreated_topics: Mapping[str, int] | None = None,
) -> BrokerLogFacts:
    """Return the facts with the leaderships that log lines report."""
    configurations = of_kinds(events, (Kind.CONFIGURATION,))
    flags = {
        *unclean_elections,
        *(
            value
            for item in configurations
            if isinstance(value := item.event.fields.get("unclean.leader.election.enable"), bool)
        ),
    }
    started = [value for item in configurations if isinstance(value := item.event.number("min.insync.replicas"), int)]
    periods = logged_periods(events, files)
    refused = refused_isr_changes(events)
    by_partition = logged_leaderships(events, periods, refused)
    return BrokerLogFacts(
        metadata=metadata,
        by_partition=by_partition,
        named=_named_in(by_partition),
        broker_min_insync=max([*started, *configured], default=Absent.UNKNOWN),
        topic_min_insync=_topic_min_insync(events) if events else {},
        unclean_election=flags.pop() if len(flags) == 1 else Absent.UNKNOWN,
        newest_version=newest_version,
        assignments=logged_assignments(events),
        cluster=periods.cluster,
        deleted_topics=deleted_topics or {},
        recreated_topics=recreated_topics or {},
        discarded={
            path.rpartition("/")[2]: item.time_ms
            for item in of_kinds(events, (Kind.LOG_DISCARDED,))
            if isinstance(path := item.event.fields.get("path"), str) and isinstance(item.time_ms, int)
        },
        without_newest=periods.without_newest,
        starts_are_logged=not periods.too_old and not periods.last and _are_starts_logged(events, newest_version),
        lives=broker_lives(events, periods),
        logged_loads=log_loads(events),
        ends=logged_ends(events, metadata.recreated_ms),
        later_epochs=_later_epochs(by_partition, metadata_end_ms),
        metadata_end_ms=metadata_end_ms,
        isr_lines=own_isr_lines(events, refused),
    )


def _topic_min_insync(events: Iterable[LoggedEvent]) -> dict[str, int]:
    from kforensics.formats.log_lines.table import rows  # noqa: PLC0415 - few inputs have lines

    found: dict[str, int] = {}
    kinds = {row.section.kind for row in rows() if "min_insync_replicas" in row.text}
    for item in of_kinds(events, kinds):
        partition, value = item.event.topic_partition, item.event.number("min_insync_replicas")
        if isinstance(partition, TopicPartition) and isinstance(value, int):
            found[partition.topic] = max(value, found.get(partition.topic, value))
    return found


def _are_starts_logged(events: Iterable[LoggedEvent], newest: KafkaVersion | None) -> bool:
    """Whether every version that any broker names writes its starts as leader to server.log; later ones write them to state-change.log."""
    if newest is None or newest >= _STARTS_ELSEWHERE:
        return False
    named = {item.event.fields.get("version") for item in of_kinds(events, (Kind.VERSION,))}
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


_ASKS = frozenset({Kind.ISR_SHRINK, Kind.ISR_EXPAND})


def own_isr_lines(events: Sequence[LoggedEvent], refused: frozenset[int]) -> dict[TopicPartition, OwnIsrLine]:
    """Return the newest line of each partition in which a broker asks for another ISR and names the end of its log: only leaders do."""
    found: dict[TopicPartition, OwnIsrLine] = {}
    for at in places_of_kinds(events, _ASKS):
        item = events[at]
        event, partition = item.event, item.event.topic_partition
        if at in refused or isinstance(partition, Absent):
            continue
        before, asked, end = event.brokers("from_isr"), event.brokers("to_isr"), event.number("log_end_offset")
        is_of_leader = isinstance(item.node_id, int) and isinstance(asked, tuple) and item.node_id in asked
        if is_of_leader and isinstance(before, tuple) and isinstance(end, int):
            assert isinstance(item.node_id, int)
            assert isinstance(asked, tuple)
            found[partition] = OwnIsrLine(
                item.node_id, frozenset(asked), frozenset((*before, *asked)), end, item.time_ms, item.citation
            )
        else:
            # A newer one that does not say as much: who led at the end is not known.
            found.pop(partition, None)
    return found


_REACHED: Mapping[Kind, tuple[str, int]] = {
    Kind.SEGMENT_ROLLED: ("offset", 0),
    Kind.PRODUCER_SNAPSHOT: ("offset", 0),
    Kind.FOLLOWER_START: ("offset", 0),
    Kind.LEADER_START: ("offset", 0),
    Kind.LOG_LOADED: ("log_end_offset", 0),
    Kind.LOG_START_MOVED: ("log_start_offset", 0),
    Kind.TRUNCATION_DECISION: ("log_end_offset", 0),
    Kind.TRUNCATION_WITHOUT_EFFECT: ("last_offset", 1),
    Kind.FETCH_OFFSET_RESET: ("log_end_offset", 0),
}
"""The field that names an offset that the log had reached, and what lies between it and the log end offset."""
_ROLES = frozenset({Kind.FOLLOWER_START, Kind.LEADER_START})
"""Kinds of state-change.log: of lines of one millisecond their order beside those of server.log is not known."""
_TARGETS: Mapping[Kind, str] = {
    Kind.TRUNCATION: "offset",
    Kind.RECOVERY_TRUNCATION: "offset",
    Kind.SEGMENTS_DELETED: "base_offset",
}
_OTHER_LOGS = frozenset({Kind.LOG_CREATED, Kind.LOG_DISCARDED, Kind.STRAY_LOG, Kind.FULL_TRUNCATION})
"""Behind them the directory holds another log, none, or one that begins elsewhere."""

_OF_ENDS = frozenset({Kind.TOPIC_DELETED, Kind.FETCH_OFFSET_RESET, *_REACHED, *_TARGETS, *_OTHER_LOGS})

_DIRECTORY = re.compile(r"(?:^|[/\\])(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<number>[0-9]{1,9})$")

_Key = tuple[int, TopicPartition]


def logged_ends(
    events: Sequence[LoggedEvent], recreated_ms: Callable[[str], int | Absent]
) -> dict[TopicPartition, dict[int, LoggedEnd]]:
    """Return the highest offset that each log is known to have reached since it was last truncated, loaded shorter, deleted or created.

    Args:
        recreated_ms: when a topic was created again under its name, in UTC ms since 1970; earlier lines are of another log.
    """
    since, begins = cache(recreated_ms), file_begins(events)
    by_topic: dict[str, dict[_Key, LoggedEnd]] = {}
    truncated_ms: dict[_Key, int | Absent] = {}
    for item in of_kinds(events, _OF_ENDS):
        event, node = item.event, item.node_id
        if event.kind is Kind.TOPIC_DELETED and isinstance(topic := event.fields.get("topic_name"), str):
            by_topic.pop(topic, None)
        if not isinstance(node, int) or not isinstance(partition := _partition_of(event), TopicPartition):
            continue
        if partition.topic in METADATA_TOPICS or is_of_other_directory(event):
            continue
        if _is_before(item.time_ms, since(partition.topic)):
            continue
        key, ends = (node, partition), by_topic.setdefault(partition.topic, {})
        name, behind = _REACHED.get(event.kind, ("", 0))
        value = event.number(name) if name else Absent.NOT_WRITTEN
        if key in ends and loaded_short(item, ends[key].offset, ends[key].time_ms, begins) is not None:
            ends.pop(key)
        reached = value + behind if isinstance(value, int) else None
        is_in_order = event.kind not in _ROLES or truncated_ms.get(key, Absent.UNKNOWN) != item.time_ms
        if reached is not None and is_in_order and (key not in ends or ends[key].offset < reached):
            ends[key] = LoggedEnd(reached, item.time_ms, item.citation)
        if _is_another_log(event):
            ends.pop(key, None)
        elif isinstance(target := _target(event), int):
            truncated_ms[key] = item.time_ms
            if key in ends and ends[key].offset > target:
                ends[key] = LoggedEnd(target, item.time_ms, item.citation)
    found: dict[TopicPartition, dict[int, LoggedEnd]] = {}
    for ends in by_topic.values():
        for (node, partition), end in ends.items():
            found.setdefault(partition, {})[node] = end
    return found


def _is_before(time_ms: int | Absent, created_ms: int | Absent) -> bool:
    """Whether a line is older than the topic, however the clocks of its broker and of the controller differ."""
    return isinstance(time_ms, int) and isinstance(created_ms, int) and time_ms + SKEW_TOLERATED_MS < created_ms


def _partition_of(event: LogEvent) -> TopicPartition | Absent:
    """Return the partition of a line; those of strays name directories alone."""
    if event.kind is not Kind.STRAY_LOG:
        return event.topic_partition
    directory = event.fields.get("directory")
    found = _DIRECTORY.search(directory) if isinstance(directory, str) else None
    return Absent.NOT_WRITTEN if found is None else TopicPartition(found["topic"], int(found["number"]))


def _is_another_log(event: LogEvent) -> bool:
    if event.kind is Kind.SEGMENTS_DELETED:
        return isinstance(event.number("base_offset"), Absent)
    if event.kind is Kind.FETCH_OFFSET_RESET and event.fields.get("rule") == "leader-start":
        own, target = event.number("log_end_offset"), event.number("offset")
        return isinstance(own, Absent) or isinstance(target, Absent) or target > own
    return event.kind in _OTHER_LOGS


def _target(event: LogEvent) -> int | Absent:
    if event.kind is Kind.FETCH_OFFSET_RESET:
        return event.number("offset") if event.fields.get("rule") == "leader-end" else Absent.NOT_APPLICABLE
    return event.number(_TARGETS[event.kind]) if event.kind in _TARGETS else Absent.NOT_APPLICABLE
