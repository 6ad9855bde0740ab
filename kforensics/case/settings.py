"""What a start depends on beside the logs: the metadata that the controllers hold, and the settings, each with where it is known from."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import islice
from typing import NamedTuple

from kforensics.case.cluster import cluster_of, newest_time
from kforensics.case.model import Case, fact, places_of
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.coordinators.replica_log import first_producers, list_log
from kforensics.evidence.discovery.inputs import Inputs, read_server_properties
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.metadata.compare import refuse_two_clusters
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.log import read_metadata_logs
from kforensics.evidence.metadata.set_back import QuorumSetBack, log_to_go_by, quorum_set_back
from kforensics.evidence.metadata.state import ConfigChange, MetadataState, newest_log
from kforensics.evidence.model import Problem
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.protocol.coordinators import CREATED_WITH, created_policy
from kforensics.protocol.loading.node import Assignment
from kforensics.protocol.loading.settings import is_migrating
from kforensics.protocol.retention import NO_LIMIT, RetentionPeriod, RetentionPolicy, RetentionTimes
from kforensics.reconcile.observed.logged_events import LoggedEvent, of_kinds
from kforensics.source.naming import FileKind
from kforensics.units import TopicPartition

TOPIC, BROKER = 2, 4
"""Resource types of configurations."""
_WITH_NO_OPS = 5
"""The metadata.version of 3.3-IV1, with which a controller that is idle writes records, too."""


@dataclass(frozen=True)
class Surroundings:
    """The newest metadata log among the inputs, server logs, and the `server.properties` of each node."""

    history: MetadataHistory | None
    log_files: tuple[LogFile, ...]
    properties: Sequence[Mapping[str, str]]
    is_of_one_moment: bool = True
    """No node is among the inputs twice: metadata of one moment say nothing of a node at another."""
    quorum: QuorumSetBack | None = None
    """The voters that can go on without metadata that was committed."""
    histories: tuple[MetadataHistory, ...] = ()
    """Every node's copy of the metadata log; none but the newest has its partitions."""
    printed: Mapping[str, Sequence[tuple[int, Mapping[str, str]]]] = field(default_factory=dict)
    """What each node printed of its settings, by its id, with the times."""
    voters_down: tuple[int, ...] = ()
    """Voters that do not start, where no controller is elected without them."""
    quorum_epoch: int | None = None
    """The newest leader epoch that the voters know; none where not all of them are given."""
    voters_in_doubt: tuple[int, ...] = ()
    """Voters of which it is not known whether they start, where no controller is elected without them."""

    @cached_property
    def state(self) -> MetadataState | None:
        """The metadata that the nodes go by: at the end of the newest log, or what the controllers go on with; none where there is none, or where part of it can't be read."""
        if self.quorum is not None and (self.quorum.mixed or self.quorum.can_mix):
            return None  # each node goes by its own copy until it has copied the log anew, or keeps some of it
        if self.quorum is not None and self.quorum.is_certain and not self.quorum.is_stuck:
            return self.quorum.state
        history = self.history
        if history is None or history.gaps or history.problems or not self.is_of_one_moment:
            return None
        return None if any(damage.hides_content for _, damage in history.damage) else history.latest()

    @cached_property
    def assigned(self) -> Mapping[tuple[str, int], Assignment] | None:
        """Every partition of the metadata, by topic id and partition; none where they are not known."""
        if self.state is None:
            return None
        return {
            key: Assignment(tuple(one.replicas), tuple(one.directories)) for key, one in self.state.partitions.items()
        }

    @property
    def controllers_migrate(self) -> bool | None:
        """Whether the settings of the controllers take part in a migration from ZooKeeper; none where they are not known, or differ."""
        enabled = {is_migrating(one) for one in self.properties if "controller" in one.get("process.roles", "")}
        return enabled.pop() if len(enabled) == 1 else None

    def has_no_replica(self, broker: int | Absent) -> bool:
        """Whether the metadata of a voter assigns no partition to a broker: that its disk holds no log is as it should be."""
        is_known = self.assigned is not None and self.history is not None and self.history.is_of_voter
        return is_known and not any(broker in one.replicas for one in (self.assigned or {}).values())

    @cached_property
    def registered(self) -> Mapping[int, Sequence[str]]:
        """The directory ids that each broker registered last."""
        return {} if self.state is None else {key: one.log_dirs for key, one in self.state.brokers.items()}

    @property
    def level(self) -> int | Absent:
        """The feature level of metadata.version."""
        return Absent.UNKNOWN if self.state is None else self.state.metadata_version


def look_around(
    inputs: Inputs,
    log_files: Sequence[LogFile],
    problems: list[Problem],
    *,
    case: Case | None = None,
    is_of_one_moment: bool = True,
) -> Surroundings:
    """Read the newest metadata log and the settings among the inputs; of a case with these inputs what it has read is taken."""
    histories = read_metadata_logs(inputs) if case is None else cluster_of(case).histories
    refuse_two_clusters(histories, inputs)
    quorum = quorum_set_back(histories, inputs) if is_of_one_moment else None
    return Surroundings(
        log_to_go_by(histories, inputs, quorum) if is_of_one_moment else newest_log(histories),
        tuple(log_files),
        server_properties(inputs, problems),
        is_of_one_moment,
        quorum,
        tuple(histories),
    )


def server_properties(inputs: Inputs, problems: list[Problem]) -> tuple[Mapping[str, str], ...]:
    """Return the settings of each node that has a `server.properties` among the inputs.

    Files of one input are of one node, unless they name several.
    """
    found: list[Mapping[str, str]] = []
    for number, one in enumerate(inputs.found):
        if one.described.kind not in {"log-files", FileKind.SERVER_PROPERTIES.value}:
            continue
        by_id: dict[str, dict[str, str]] = {}
        for path, settings in read_server_properties(one):
            if isinstance(settings, EvidenceError):
                problems.append(Problem(input=number, path=path, message=settings.problem))
            else:
                by_id.setdefault(node_id_of(settings), {}).update(settings)
        without_id = by_id.pop("", {})
        found += by_id.values() if len(by_id) > 1 else [without_id | one for one in by_id.values()] or [without_id]
    # A file that lies in a folder that is given, and is named too, is one.
    return tuple(
        one
        for at, one in enumerate(found)
        if one and one not in found[:at] and not any(one.items() < other.items() for other in found)
    )


def node_id_of(properties: Mapping[str, str]) -> str:
    """Return the id that a `server.properties` gives its node, as text; empty where it gives none: `node.id` counts before `broker.id`."""
    return properties.get("node.id", properties.get("broker.id", ""))


WEEK_MS, MINUTE_MS, HOUR_MS = 604_800_000, 60_000, 3_600_000
_OF_BROKER: dict[str, tuple[tuple[str, int], ...]] = {
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", MINUTE_MS),
        ("log.retention.hours", HOUR_MS),
    ),
    "retention.bytes": (("log.retention.bytes", 1),),
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
}
"""The settings of brokers that a topic has where it has none of its own, the first that is there; each with its unit."""
_OF_RETENTION = frozenset(
    name
    for setting in ("retention.ms", "retention.bytes", "cleanup.policy")
    for name in (setting, *(of_broker for of_broker, _ in _OF_BROKER[setting]))
)
OF_CLEANER = {
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
}
"""Those that only a cleaner depends on."""
OF_START = frozenset({"producer.id.expiration.ms", "transactional.id.expiration.ms"})
NAMES = frozenset(_OF_BROKER) | OF_START | {name for names in _OF_BROKER.values() for name, _ in names}
"""Every setting that what is predicted depends on."""
_LOCAL, _AS_ALL = ("retention.ms", "retention.bytes"), -2
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


class Policy(NamedTuple):
    """The retention of a topic, and whether it is known rather than Kafka's default."""

    policy: RetentionPolicy
    is_known: bool


def parse_settings(given: Mapping[str, str]) -> Mapping[str, str]:
    """Check settings that were given by hand, and return them."""
    for name, value in given.items():
        if name not in NAMES:
            raise UsageError(
                f"--set {name}: no setting that a prediction depends on; these are: {', '.join(sorted(NAMES))}"
            )
        if not name.endswith("cleanup.policy") and not value.lstrip("-").isdecimal():
            raise UsageError(f"--set {name}={value}: not a whole number")
    return given


class Settings:
    """The settings of one node: given by hand, of the topic, of the broker, of all brokers, of its file, and Kafka's defaults, in that order."""

    def __init__(
        self,
        given: Mapping[str, str],
        around: Surroundings,
        node_id: int | Absent,
        node_count: int,
        named: Mapping[str, str] | None = None,
    ) -> None:
        """Gather them.

        Args:
            named: those of the `server.properties` that names its log directories, whatever id it gives.
        """
        self._given = given
        self._node_id = node_id
        self._around = around
        self._take(around.state.configs.values() if around.state is not None else ())
        properties = around.properties
        mine = [named] if named else [one for one in properties if node_id_of(one) == str(node_id)]
        # A file without an id is the node's where both are alone.
        self.in_file = mine[0] if mine else properties[0] if node_count == 1 and len(properties) == 1 else {}
        """Value by name of its `server.properties`; empty where that is not known."""
        self.is_file_known = bool(self.in_file)
        self.log_dirs = log_dirs_of(self.in_file)
        """What its `server.properties` names; nothing where that is not known."""
        self.metadata_dir = self.in_file.get("metadata.log.dir", next(iter(self.log_dirs), "")).strip()
        """The one with the metadata log; empty where that is not known."""
        self.are_topics_known = around.state is not None
        """Whether the settings of topics are: those of a cluster with ZooKeeper are on no disk."""
        self._printed = around.printed.get(str(node_id), ())
        self._is_printed = False
        """What is taken for its file are values that it printed at a start."""

    @property
    def node_id(self) -> int | None:
        """The id that its file gives it; none where it gives none that can be one."""
        value = node_id_of(self.in_file)
        return int(value) if value.isdecimal() and len(value) < 10 else None

    def _take(self, configs: Iterable[ConfigChange]) -> None:
        self._topics: dict[str, dict[str, str]] = {}
        self._broker: dict[str, str] = {}
        own: dict[str, str] = {}
        for change in configs:
            if change.value is None:
                continue
            if change.resource_type == TOPIC:
                self._topics.setdefault(change.resource_name, {})[change.name] = change.value
            elif change.resource_type == BROKER and change.resource_name == "":
                self._broker[change.name] = change.value
            elif change.resource_type == BROKER and change.resource_name == str(self._node_id):
                own[change.name] = change.value
        self._broker |= own

    def of_topic(self, topic: str, name: str) -> tuple[str | None, bool]:
        """Return a setting of a topic, none where it has Kafka's default; and whether it is known."""
        own = self._topics.get(topic, {})
        for source in (self._given, own):
            if name in source:
                return source[name], True
        if not self.are_topics_known and name in CREATED_WITH.get(
            topic, {}
        ):  # a setting of the topic, whatever the broker's
            return CREATED_WITH[topic][name], self.is_file_known
        for source in (self._given, self._broker, self.in_file):
            for of_broker, unit in {**_OF_BROKER, **OF_CLEANER}[name]:
                if of_broker in source:
                    number = _number(source[of_broker])
                    value = source[of_broker] if unit == 1 else None if number is None else str(number * unit)
                    # What a topic sets of its own comes before what the file of a broker says.
                    return value, value is not None and (source is self._given or self.are_topics_known)
        return None, self.is_file_known

    @property
    def topics(self) -> Mapping[str, Mapping[str, str]]:
        """The settings that each topic has of its own, by name."""
        return self._topics

    def number(self, topic: str, name: str, default: int) -> int:
        """Return a whole number; Kafka's default where it is not known or none."""
        value, _ = self.of_topic(topic, name)
        number = None if value is None else _number(value)
        return default if number is None else number

    def of_broker(self, name: str, default: int) -> int:
        """Return a whole number that only brokers have; Kafka's default where nothing names the setting or its value is none."""
        value = next((one[name] for one in (self._given, self._broker, self.in_file) if name in one), "")
        number = _number(value)
        return default if number is None else number

    def retention(self, topic: str) -> Policy:
        """Return the retention of a topic, and whether it is known rather than taken for Kafka's default."""
        cleanup, is_cleanup_known = self.of_topic(topic, "cleanup.policy")
        if cleanup is None:
            cleanup = created_policy(topic)
        _, is_time_known = self.of_topic(topic, "retention.ms")
        policy = RetentionPolicy(
            retention_ms=self.number(topic, "retention.ms", WEEK_MS),
            retention_bytes=self.number(topic, "retention.bytes", NO_LIMIT),
            deletes="delete" in cleanup,
        )
        return Policy(policy, is_known=is_time_known and (is_cleanup_known or topic not in CREATED_WITH))

    def is_tiered(self, topic: str) -> bool:
        """Return whether closed segments of a topic are copied to remote storage."""
        return self._topics.get(topic, {}).get("remote.storage.enable", "").strip().lower() == "true"

    def local_retention(self, topic: str) -> Policy:
        """Return the retention of the logs on disk: of a tiered topic by its own settings, where these are not to be as those of all of it."""
        found = self.retention(topic)
        if not self.is_tiered(topic):
            return found
        of_all, local = found.policy, (self.number(topic, f"local.{one}", _AS_ALL) for one in _LOCAL)
        retention_ms, retention_bytes = (
            whole if one == _AS_ALL else one
            for one, whole in zip(local, (of_all.retention_ms, of_all.retention_bytes), strict=True)
        )
        return found._replace(policy=of_all._replace(retention_ms=retention_ms, retention_bytes=retention_bytes))

    def retentions(self, topic: str) -> tuple[RetentionPeriod, ...]:
        """Return every retention that a topic has had by the metadata, the oldest first; none where its settings are not known."""
        history = self._around.history
        if not self.are_topics_known or history is None:
            return ()
        is_whole = history.start_offset == 0 and not history.gaps
        began_ms = 0 if is_whole or not len(history.batches) else int(history.batches["max_timestamp"][0])
        then = self._with_configs(())
        found = [then.period(topic, began_ms)]
        changes: dict[tuple[int, str, str], ConfigChange] = {}
        own = (change for resource in ((TOPIC, topic), *self._brokers) for change in self._changes.get(resource, ()))
        steps: list[tuple[int, int, ConfigChange | Mapping[str, str]]] = [
            *((change.when.timestamp_ms, change.when.offset, change) for change in own),
            *((time_ms, -1, values) for time_ms, values in self._printed),
        ]
        for time_ms, _, step in sorted(steps, key=lambda one: one[:2]):
            if isinstance(step, ConfigChange):
                changes[step.resource_type, step.resource_name, step.name] = step
                then = then._with_configs(changes.values())  # noqa: SLF001 - it is of this class
            else:
                then = then._with_printed(step)  # noqa: SLF001 - the same
            since_ms = max(time_ms, found[-1].since_ms)
            if since_ms == found[-1].since_ms:
                found.pop()
            found.append(then.period(topic, since_ms))
        return tuple(found)

    @property
    def _brokers(self) -> tuple[tuple[int, str], ...]:
        return (BROKER, ""), (BROKER, str(self._node_id))

    @cached_property
    def _changes(self) -> Mapping[tuple[int, str], Sequence[ConfigChange]]:
        """The changes of what retention depends on, by resource."""
        found: dict[tuple[int, str], list[ConfigChange]] = {}
        for change in self._around.history.configs if self._around.history is not None else ():
            if change.name in _OF_RETENTION:
                found.setdefault((change.resource_type, change.resource_name), []).append(change)
        return found

    def _with_configs(self, configs: Iterable[ConfigChange]) -> "Settings":
        """Return the settings as they were when others were set in the metadata."""
        then = copy(self)
        then._take(configs)  # noqa: SLF001 - it is of this class
        return then

    def _with_printed(self, values: Mapping[str, str]) -> "Settings":
        then = copy(self)
        then.in_file, then._is_printed = values, True  # noqa: SLF001 - it is of this class
        return then

    def period(self, topic: str, since_ms: int) -> RetentionPeriod:
        """Return the retention of a topic as that of a time."""
        _, is_time_known = self.of_topic(topic, "retention.ms")
        names = ("retention.ms", *(of_broker for of_broker, _ in _OF_BROKER["retention.ms"]))
        is_dated = self._is_printed or any(
            name in source for name in names for source in (self._given, self._topics.get(topic, {}), self._broker)
        )
        return RetentionPeriod(since_ms, self.retention(topic).policy, is_time_known, is_dated)


def settings_by_node(case: Case, problems: list[Problem]) -> Callable[[int | Absent], Settings]:
    """Return a function that gives the settings of a node as they are now, by the newest metadata log and the files among the inputs; add problems with these."""
    gathered = cluster_of(case)
    newest = newest_log([one for one in gathered.histories if one.input not in case.ranks])
    files = server_properties(case.for_facts(), problems)
    printed = _printed(gathered.events)
    last = [
        values for node_id, each in printed.items() if node_id not in map(node_id_of, files) for _, values in each[-1:]
    ]
    around = Surroundings(newest, (), (*files, *last), printed=printed)
    count = len(case.nodes_by_rank().get(case.final_rank, frozenset()))
    return cache(lambda node_id: Settings({}, around, node_id, count))


def _printed(events: Iterable[LoggedEvent]) -> Mapping[str, Sequence[tuple[int, Mapping[str, str]]]]:
    """Return what each node printed of its settings at its starts, by its id, with the times; a setting that is not set is printed as null."""
    found: dict[str, list[tuple[int, Mapping[str, str]]]] = defaultdict(list)
    for one in of_kinds(events, (LogEventKind.CONFIGURATION,)):
        fields = one.event.fields
        if "log.retention.hours" in fields:
            values = {name: str(value) for name, value in fields.items() if value != "null"}
            time_ms = one.time_ms if isinstance(one.time_ms, int) else 0
            found[str(one.node_id)].append((time_ms, {**values, "node.id": str(one.node_id)}))
    return found


@fact
def retention_of(case: Case) -> Callable[[TopicPartition, int | Absent], RetentionTimes]:
    """Return a function that gives what retention a partition has had at the brokers that can have led it, one of them first, and the time in which its log can have been shortened."""
    by_node, gathered, places = settings_by_node(case, []), cluster_of(case), places_of(case)
    until = {one.input: newest_time(one) for one in gathered.histories if one.input not in case.ranks}
    # Since 3.3 a controller writes a record at least twice a second.
    is_ticking = any(
        isinstance(level := one.metadata_version, int) and level >= _WITH_NO_OPS for one in gathered.histories
    )
    inputs = {one.broker_id: at for at, one in enumerate(case.inputs.described) if at not in case.ranks}
    periods = cache(lambda topic, broker_id: by_node(broker_id).retentions(topic))
    latest = max((one for one in until.values() if isinstance(one, int)), default=Absent.UNKNOWN)

    def of_partition(partition: TopicPartition, broker_id: int | Absent) -> RetentionTimes:
        facts = gathered.facts
        created = facts.exists_since_ms(partition.topic) if facts.knows_every_deletion() else Absent.UNKNOWN
        end = until.get(inputs.get(broker_id, -1), latest)
        held = [one for one in places.by_partition.get(partition, ()) if one.is_live]
        own = periods(partition.topic, broker_id)
        led = (one.leader for one in facts.leaderships(partition, facts.topic_id(partition.topic)))
        others = {one.state.broker_id for one in held} | {one for one in led if isinstance(one, int) and one >= 0}
        elsewhere = dict.fromkeys(periods(partition.topic, one) for one in others if one != broker_id)
        return RetentionTimes(
            own,
            created,
            end if is_ticking else Absent.UNKNOWN,
            [one for one in elsewhere if one != own],
            cache(lambda: _stamps(held)),
            cache(lambda: _begins_ms(held)),
        )

    return of_partition


def _stamps(places: Sequence[PartitionPlace]) -> tuple[tuple[int, int], ...]:
    """Return what the first producer snapshot at or behind the beginning of each log names: the last record of each producer, in the order of offsets, with its timestamp."""
    found = set()
    for place in places:
        log = list_log(place)
        for _, _, entries in first_producers(log, log.first_base):
            found |= {(one.last_offset, one.timestamp) for one in entries if one.last_offset >= 0 <= one.timestamp}
    return tuple(sorted(found))


def _begins_ms(places: Sequence[PartitionPlace]) -> int | Absent:
    """Return the timestamp of the oldest first batch of logs and of what they have renamed for deletion, by those whose bytes are here."""
    firsts = []
    for place in places:
        log = list_log(place)
        for segments in (log.segments[:1], log.deleted[:1]):
            firsts += [int(rows["max_timestamp"][0]) for _, rows, _ in islice(log.batches(segments), 1) if len(rows)]
    return min((one for one in firsts if one >= 0), default=Absent.UNKNOWN)


def log_dirs_of(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the log directories that a `server.properties` names, that of the metadata log among them; none where it has neither setting."""
    named = properties.get("log.dirs", properties.get("log.dir", ""))
    # A damaged file may have null bytes, which no path has: such a directory is one that is not here.
    each = (*named.split(","), properties.get("metadata.log.dir", ""))
    paths = [path.strip().replace("\0", "\N{REPLACEMENT CHARACTER}") for path in each]
    return tuple(dict.fromkeys(path.rstrip("/") or path for path in paths if path))


def _number(value: str) -> int | None:
    """Return a whole number of 64 bits or little more; none where a file has something else, as a template does that was never filled in."""
    return int(value) if _WHOLE_NUMBER.fullmatch(value) else None
