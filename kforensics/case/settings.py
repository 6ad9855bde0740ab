"""What a start depends on beside the logs: the metadata that the controllers hold, and the settings, each with where it is known from."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from kforensics.case.cluster import cluster_of
from kforensics.case.model import Case
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.discovery.beside_data import read_server_properties
from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.metadata.compare import refuse_two_clusters
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.log import read_metadata_logs
from kforensics.evidence.metadata.quorum import newest_log
from kforensics.evidence.metadata.set_back import QuorumSetBack, quorum_set_back
from kforensics.evidence.metadata.state import MetadataState
from kforensics.evidence.model import Problem
from kforensics.protocol.coordinators import CREATED_WITH, created_policy
from kforensics.protocol.loading.node import Assignment
from kforensics.protocol.retention import NO_LIMIT, RetentionPolicy
from kforensics.source.naming import FileKind

TOPIC, BROKER = 2, 4
"""Resource types of configurations."""


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

    @cached_property
    def state(self) -> MetadataState | None:
        """The metadata that the nodes go by: at the end of the newest log, or what the controllers go on with; none where there is none, or where part of it can't be read."""
        if self.quorum is not None and self.quorum.mixed:
            return None  # each node goes by its own copy until it has copied the log anew
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

    @cached_property
    def registered(self) -> Mapping[int, Sequence[str]]:
        """The directory ids that each broker registered last."""
        return {} if self.state is None else {key: one.log_dirs for key, one in self.state.brokers.items()}

    @property
    def level(self) -> int | Absent:
        """The feature level of metadata.version."""
        return Absent.UNKNOWN if self.state is None else self.state.metadata_version

    def configured_id(self, node_count: int) -> int | None:
        """Return the id that the only `server.properties` gives the only node, None where there are several of either."""
        if node_count != 1 or len(self.properties) != 1:
            return None
        value = node_id_of(self.properties[0])
        return int(value) if value.isdecimal() and len(value) < 10 else None


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
    return Surroundings(
        newest_log(histories),
        tuple(log_files),
        server_properties(inputs, problems),
        is_of_one_moment,
        quorum_set_back(histories, inputs) if is_of_one_moment else None,
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
    return tuple(one for one in found if one)


def node_id_of(properties: Mapping[str, str]) -> str:
    """Return the id that a `server.properties` gives its node, as text; empty where it gives none.

    Args:
        properties: value by name; `node.id` counts before `broker.id`.
    """
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
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
}
"""The settings of brokers that a topic has where it has none of its own, the first that is there; each with its unit."""
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

    def __init__(self, given: Mapping[str, str], around: Surroundings, node_id: int | Absent, node_count: int) -> None:
        self._given = given
        configs = around.state.configs if around.state is not None else {}
        self._topics: dict[str, dict[str, str]] = {}
        self._broker: dict[str, str] = {}
        own: dict[str, str] = {}
        for (kind, resource, name), change in configs.items():
            if change.value is None:
                continue
            if kind == TOPIC:
                self._topics.setdefault(resource, {})[name] = change.value
            elif kind == BROKER and resource == "":
                self._broker[name] = change.value
            elif kind == BROKER and resource == str(node_id):
                own[name] = change.value
        self._broker |= own
        properties = around.properties
        mine = [one for one in properties if node_id_of(one) == str(node_id)]
        # A file without an id is the node's where both are alone.
        self.in_file = mine[0] if mine else properties[0] if node_count == 1 and len(properties) == 1 else {}
        """Value by name of its `server.properties`; empty where that is not known."""
        self.is_file_known = bool(self.in_file)
        self.log_dirs = log_dirs_of(self.in_file)
        """What its `server.properties` names; nothing where that is not known."""
        self.metadata_dir = self.in_file.get("metadata.log.dir", "").strip() or next(iter(self.log_dirs), "")
        """The one with the metadata log; empty where that is not known."""
        self.are_topics_known = around.state is not None
        """Whether the settings of topics are: those of a cluster with ZooKeeper are on no disk."""

    def of_topic(self, topic: str, name: str) -> tuple[str | None, bool]:
        """Return a setting of a topic, none where it has Kafka's default; and whether it is known."""
        own = self._topics.get(topic, {})
        for source in (self._given, own):
            if name in source:
                return source[name], True
        if not self.are_topics_known and name == "retention.ms" and name in CREATED_WITH.get(topic, {}):
            return CREATED_WITH[topic][name], self.is_file_known
        for source in (self._given, self._broker, self.in_file):
            for of_broker, unit in {**_OF_BROKER, **OF_CLEANER}[name]:
                if of_broker in source:
                    value = source[of_broker]
                    if unit == 1:
                        return value, True
                    number = _number(value)
                    return (None, False) if number is None else (str(number * unit), True)
        return None, self.is_file_known

    def segment_bytes(self) -> Mapping[str, str]:
        """Return the size of segments of each topic that has one of its own, by name."""
        return {topic: own["segment.bytes"] for topic, own in self._topics.items() if "segment.bytes" in own}

    def number(self, topic: str, name: str, default: int) -> int:
        """Return a whole number; Kafka's default where it is not known or none."""
        value, _ = self.of_topic(topic, name)
        number = None if value is None else _number(value)
        return default if number is None else number

    def of_broker(self, name: str, default: int) -> int:
        """Return a whole number that only brokers have.

        Args:
            default: Kafka's, where nothing names the setting or its value is none.
        """
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


def settings_by_node(case: Case, problems: list[Problem]) -> Callable[[int | Absent], Settings]:
    """Return a function that gives the settings of a node as they are now, by the newest metadata log and the files among the inputs.

    Args:
        problems: what can't be read is added.
    """
    newest = newest_log([one for one in cluster_of(case).histories if one.input not in case.ranks])
    around = Surroundings(newest, (), server_properties(case.for_facts(), problems))
    count = len(case.nodes_by_rank().get(case.final_rank, frozenset()))
    return cache(lambda node_id: Settings({}, around, node_id, count))


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
