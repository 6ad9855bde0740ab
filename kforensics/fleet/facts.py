"""What is known of a cluster beside its replicas, as data: what all of its partitions share, and for each partition what is about it alone.

The rows travel to where partitions are judged as those of their replicas do. Values are JSON, which only enumerations and records of the modules that are named here come out of.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, cast

from kforensics import damage, units
from kforensics.case.comparison import Knowledge
from kforensics.evidence import model
from kforensics.evidence.metadata import history, set_back, state
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.partitions import PartitionHistories
from kforensics.evidence.metadata.set_back import QuorumSetBack
from kforensics.evidence.metadata.state import TOPIC_RESOURCE, ConfigChange
from kforensics.evidence.model import GroupCommit, Problem
from kforensics.findings import model as findings
from kforensics.findings.model import Finding
from kforensics.findings.rules import inputs
from kforensics.fleet.sources import Assignments
from kforensics.protocol import truncation, versions
from kforensics.reconcile.observed import broker_lives, broker_log_facts, facts
from kforensics.reconcile.observed.broker_log_facts import BrokerLogFacts
from kforensics.reconcile.observed.facts import ClusterFacts, CommittedFacts, LogLoad
from kforensics.reconcile.observed.metadata_facts import MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION, MetadataFacts
from kforensics.source.naming import parse_partition_directory
from kforensics.units import METADATA_TOPICS, TopicPartition

NOTHING = "{}"
"""What is known of a partition of which nothing is."""

_SETTINGS = frozenset({MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterKnowledge(Knowledge):
    """What is known of a cluster of a fleet beyond its replicas."""

    racks: Mapping[int, str] = field(default_factory=dict)
    assignments: Assignments = field(default_factory=dict)
    """The brokers that each partition is assigned to, by the inventory."""
    remote_starts: Mapping[TopicPartition, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    """Where the copies of each partition in remote storage begin, by topic id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What is known of a cluster before any partition is read; the facts about its partitions are rows of the table `facts`."""

    cluster: str
    shared: str
    """What all of its partitions share, as `SplitKnowledge` gives it."""
    parts: tuple[str, ...]
    """The parts of the table."""
    racks: Mapping[int, str]
    has_metadata: bool
    """A metadata log is among the inputs."""
    problems: tuple[Problem, ...]
    topics: Mapping[str, str]
    """The topics that there are by the metadata, by id."""
    quorum: QuorumSetBack | None = None
    findings: tuple[Finding, ...] = ()
    """What is wrong with log directories of one broker as they lie side by side."""


def no_commits(_partition: TopicPartition) -> tuple[()]:
    """Return what groups committed where that is known elsewhere: nothing."""
    return ()


class SplitKnowledge:
    """The knowledge of a cluster in rows."""

    def __init__(
        self, knowledge: ClusterKnowledge, commits: Mapping[TopicPartition, tuple[GroupCommit, ...]] | None = None
    ) -> None:
        self._knowledge = knowledge
        self._commits = commits or {}
        logs = knowledge.facts if isinstance(knowledge.facts, BrokerLogFacts) else None
        metadata = knowledge.facts if logs is None else logs.metadata
        self._logs = logs
        self._history = metadata.history if isinstance(metadata, MetadataFacts) else None
        self._configs: dict[str, list[ConfigChange]] = {}
        for change in self._history.configs if self._history is not None else ():
            if change.resource_type == TOPIC_RESOURCE and change.name in _SETTINGS:
                self._configs.setdefault(change.resource_name, []).append(change)
        self._loads: dict[TopicPartition, dict[int, tuple[LogLoad, ...]]] = {}
        self._discarded: dict[TopicPartition, dict[str, int]] = {}
        if logs is not None:
            for (broker, partition), loads in logs.logged_loads.items():
                self._loads.setdefault(partition, {})[broker] = loads
            for directory, time_ms in logs.discarded.items():
                name = parse_partition_directory(directory)
                if name is not None:
                    self._discarded.setdefault(name.topic_partition, {})[directory] = time_ms

    def shared(self) -> str:
        """Return what all partitions share."""
        known = self._knowledge
        given = {broker: replace(one, named={}, other_case=frozenset()) for broker, one in known.given.items()}
        facts = known.facts if self._logs is None else self._logs.metadata
        if self._history is not None:
            assert isinstance(facts, MetadataFacts)
            facts = MetadataFacts(
                _shared_history(self._history),
                no_commits,
                is_of_now=facts.is_of_now,
                set_back_to=facts.set_back_to,
            )
        if self._logs is not None:
            logs = replace(self._logs, metadata=facts, named=self._logs.named_brokers())
            names = (name for of_one in _maps_of(logs) for name in of_one)
            empty: dict[str, Any] = {name: {} for name in (*names, "logged_loads", "discarded")}
            facts = replace(logs, **empty)
        return packed(replace(known, facts=facts, given=given, assignments={}, remote_starts={}))

    def own(self, partition: TopicPartition) -> str:
        """Return what is about one partition."""
        known = self._knowledge
        found = {
            "named": {broker: one.named[partition] for broker, one in known.given.items() if partition in one.named},
            "other_case": tuple(broker for broker, one in known.given.items() if partition in one.other_case),
            "assigned": known.assignments.get(partition, ()),
            "remote": known.remote_starts.get(partition, ()),
            "commits": self._commits.get(partition, ()),
            "metadata": {} if self._history is None else self._recorded(self._history, partition),
            "logs": {} if self._logs is None else self._logged(self._logs, partition),
        }
        return packed({name: value for name, value in found.items() if value})

    def _recorded(self, history: MetadataHistory, partition: TopicPartition) -> dict[str, Any]:
        if partition.topic in METADATA_TOPICS:
            return {"quorum": tuple(history.quorum), "quorum_state": history.quorum_state}
        topics = history.topics_named(partition.topic)
        states = ((one.topic_id, history.partitions.get((one.topic_id, partition.partition))) for one in topics)
        found = {
            "topics": topics,
            "states": {topic_id: tuple(own) for topic_id, own in states if own is not None},
            "configs": tuple(self._configs.get(partition.topic, ())),
        }
        return {name: value for name, value in found.items() if value}

    def _logged(self, logs: BrokerLogFacts, partition: TopicPartition) -> dict[str, Any]:
        by_topic, by_partition = _maps_of(logs)
        found: dict[str, Any] = {
            name: values[partition.topic] for name, values in by_topic.items() if partition.topic in values
        }
        found |= {name: values[partition] for name, values in by_partition.items() if partition in values}
        more = {"logged_loads": self._loads.get(partition), "discarded": self._discarded.get(partition)}
        return found | {name: values for name, values in more.items() if values}


def _maps_of(logs: BrokerLogFacts) -> tuple[dict[str, Mapping[str, Any]], dict[str, Mapping[TopicPartition, Any]]]:
    by_topic: dict[str, Mapping[str, Any]] = {
        "topic_min_insync": logs.topic_min_insync,
        "deleted_topics": logs.deleted_topics,
        "recreated_topics": logs.recreated_topics,
    }
    by_partition: dict[str, Mapping[TopicPartition, Any]] = {
        "by_partition": logs.by_partition,
        "assignments": logs.assignments,
        "ends": logs.ends,
        "later_epochs": logs.later_epochs,
        "isr_lines": logs.isr_lines,
    }
    return by_topic, by_partition


def _shared_history(history: MetadataHistory) -> MetadataHistory:
    """Return what judging asks of a metadata log whichever partition it judges: of its growth nothing."""
    oldest = min(history.topics.values(), key=lambda one: one.created.offset, default=None)
    return replace(
        history,
        start_offset=min(history.start_offset, 1),  # whether it begins at its first record
        end_offset=0,
        epochs=(),
        batches=cast("Any", None),
        topics={} if oldest is None else {oldest.topic_id: oldest},
        topic_ids={},
        partitions=PartitionHistories.empty(),
        controllers={},
        configs=tuple(one for one in history.configs if not one.resource_name and one.name in _SETTINGS),
        acls=(),
        producer_ids=(),
        quorum=(),
        quorum_state=None,
        snapshots=(),
        aborted=(),
        unapplied=(),
        problems=(),
    )


class JoinedKnowledge:
    """What the partitions of one cluster are judged with, where they are judged.

    Args:
        shared: what `SplitKnowledge.shared` gave.
    """

    def __init__(self, shared: str) -> None:
        found: ClusterKnowledge = unpacked(shared)
        self._shared = replace(found, facts=_facts(found.facts, {}, TopicPartition("", 0)))

    def of(self, partition: TopicPartition, own: str = NOTHING) -> ClusterKnowledge:
        """Return what is known for one partition, with what is about it alone."""
        if own == NOTHING:
            return self._shared
        found: Mapping[str, Any] = unpacked(own)
        given = dict(self._shared.given)
        for broker, value in found.get("named", {}).items():
            given[broker] = replace(given[broker], named={partition: value})
        for broker in found.get("other_case", ()):
            given[broker] = replace(given[broker], other_case=frozenset({partition}))
        assigned, remote = found.get("assigned", ()), found.get("remote", ())
        return replace(
            self._shared,
            facts=_facts(self._shared.facts, found, partition),
            given=given,
            assignments={partition: assigned} if assigned else {},
            remote_starts={partition: remote} if remote else {},
        )


def _facts(shared: ClusterFacts, own: Mapping[str, Any], partition: TopicPartition) -> ClusterFacts:
    recorded, logged = own.get("metadata", {}), own.get("logs", {})
    if isinstance(shared, BrokerLogFacts):
        by_topic, by_partition = _maps_of(shared)
        values: dict[str, Any] = {name: {partition.topic: logged[name]} for name in by_topic if name in logged}
        values |= {name: {partition: logged[name]} for name in by_partition if name in logged}
        values["discarded"] = logged.get("discarded", {})
        loads = logged.get("logged_loads", {})
        values["logged_loads"] = {(broker, partition): found for broker, found in loads.items()}
        return replace(shared, metadata=_facts(shared.metadata, own, partition), **values)
    committed: tuple[GroupCommit, ...] = own.get("commits", ())

    def commits(of: TopicPartition) -> tuple[GroupCommit, ...]:
        return committed if of == partition else ()

    if not isinstance(shared, MetadataFacts):
        return CommittedFacts(commits)
    topics = {one.topic_id: one for one in recorded.get("topics", ())}
    states = {(topic_id, partition.partition): found for topic_id, found in recorded.get("states", {}).items()}
    history = replace(
        shared.history,
        topics={**shared.history.topics, **topics},
        topic_ids={partition.topic: tuple(topics)},
        partitions=cast("PartitionHistories", states),
        configs=(*shared.history.configs, *recorded.get("configs", ())),
        quorum=recorded.get("quorum", ()),
        quorum_state=recorded.get("quorum_state"),
    )
    return MetadataFacts(history, commits, is_of_now=shared.is_of_now, set_back_to=shared.set_back_to)


# ---------------------------------------------------------------- values as JSON

_MODULES = (
    damage,
    units,
    model,
    history,
    set_back,
    state,
    findings,
    inputs,
    truncation,
    versions,
    broker_lives,
    broker_log_facts,
    facts,
)
_KINDS: dict[str, Any] = {
    name: one
    for module in _MODULES
    for name, one in {**vars(module), ClusterKnowledge.__name__: ClusterKnowledge, Gathered.__name__: Gathered}.items()
    if isinstance(one, type) and (issubclass(one, Enum) or is_dataclass(one) or hasattr(one, "_fields"))
}
_NAMES = {one: tuple(each.name for each in fields(one)) for one in _KINDS.values() if is_dataclass(one)}
"""The fields of a record with named values; others are sequences."""
_AS_THEY_ARE = frozenset({int, bool, float, str, type(None)})


def packed(value: Any) -> str:
    """Return a value as JSON, the same for equal values."""
    return json.dumps(_plain(value), separators=(",", ":"))


def unpacked(text: str) -> Any:
    """Return the value that JSON was made of; sequences are tuples."""
    return _value(json.loads(text))


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is tuple:
        return _each(value)
    if kind is PartitionHistories:
        return None  # of each partition they travel by themselves
    if _KINDS.get(kind.__name__) is kind:
        if isinstance(value, Enum):
            return {kind.__name__: value.value}
        names = _NAMES.get(kind)
        return {kind.__name__: _each(value if names is None else [getattr(value, name) for name in names])}
    if isinstance(value, MetadataFacts):
        return {"MetadataFacts": [_plain(value.history), value.is_of_now, _plain(value.set_back_to)]}
    if isinstance(value, CommittedFacts):
        return {"CommittedFacts": []}
    if isinstance(value, frozenset):
        return {"frozenset": sorted(map(_plain, value), key=json.dumps)}
    if isinstance(value, Mapping):
        return {"mapping": [_each(one) for one in value.items()]}
    if isinstance(value, Iterable):
        return _each(value)
    raise TypeError(f"{kind.__name__} is no fact")


def _each(values: Iterable[Any]) -> list[Any]:
    return [one if type(one) in _AS_THEY_ARE else _plain(one) for one in values]


def _value(plain: Any) -> Any:
    kind = type(plain)
    if kind is list:
        return tuple([_value(one) if type(one) is list or type(one) is dict else one for one in plain])
    if kind is not dict:
        return plain
    ((name, content),) = plain.items()
    found = _KINDS.get(name)
    if found in _NAMES:
        return found(**dict(zip(_NAMES[found], _value(content), strict=True)))
    if found is not None:
        return found(content) if issubclass(found, Enum) else found(*_value(content))
    match name:
        case "frozenset":
            return frozenset(_value(content))
        case "mapping":
            return {_value(key): _value(one) for key, one in content}
        case "CommittedFacts":
            return CommittedFacts(no_commits)
        case "MetadataFacts":
            history, is_of_now, set_back_to = content
            return MetadataFacts(_value(history), no_commits, is_of_now=is_of_now, set_back_to=_value(set_back_to))
    raise KeyError(name)
