"""Applies metadata records one after the other, as a controller does; of partitions see `steps.py`.

Records between BeginTransaction and EndTransaction count when the end is seen, and never where AbortTransaction
follows (KIP-868, 3.6).
(Kafka: org.apache.kafka.image, PartitionRegistration.merge, 2.8 to 4.4)
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.evidence.metadata.state import (
    METADATA_VERSION,
    TOPIC_RESOURCE,
    AbortedTransaction,
    AclChange,
    BrokerState,
    ConfigChange,
    ControllerState,
    FeatureChange,
    TopicState,
    When,
)
from kforensics.evidence.metadata.steps import Fields, Origin, PartitionReplay
from kforensics.formats.messages.metadata_bulk import PartitionRecords
from kforensics.formats.messages.schema import Decoded

MOST_UNAPPLIED = 1_000
OF_NO_TOPIC = " of no topic"
UNFINISHED = "the log ends inside the transaction"


class MetadataReplay:
    """The states met so far; histories are in the order of the log."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicState] = {}
        self._ids: dict[str, str] = {}
        """The id of each topic that is there, by name."""
        self.partitions = PartitionReplay()
        self.brokers: dict[int, list[BrokerState]] = {}
        self.cordoning: set[int] = set()
        """Brokers that say which of their directories are cordoned, be it none (4.3)."""
        self.controllers: dict[int, list[ControllerState]] = {}
        self.configs: list[ConfigChange] = []
        self._names_of_topic: dict[str, set[str]] = {}
        """The settings that each topic has of its own."""
        self.features: list[FeatureChange] = []
        self.migration = 0
        self.acls: list[AclChange] = []
        self.held: set[object] = set()
        """ACLs and SCRAM secrets that were ever set."""
        self.producer_ids: list[tuple[int, When]] = []
        self.aborted: list[AbortedTransaction] = []
        self.unapplied: list[tuple[str, When]] = []
        """The first records that fit no state, such as a change of a partition that was never created."""
        self._pending: list[tuple[Decoded, When, int]] | None = None
        self._begun: When | None = None

    @property
    def is_in_transaction(self) -> bool:
        """Return whether what comes next may still be dropped: it must be added record by record."""
        return self._pending is not None

    def add(self, message: Decoded, when: When, place: int) -> None:
        """Apply the next record of the log, or hold it back until its transaction ends (KIP-868)."""
        match message.name:
            case "BeginTransactionRecord":
                if self._pending is not None:
                    self._note_unfit(message.name, when)
                self.finish(when.offset - 1)
                self._pending, self._begun = [], when
            case "EndTransactionRecord":
                if self._pending is None:
                    self._note_unfit(message.name, when)
                pending, self._pending, self._begun = self._pending, None, None
                for one in pending or ():
                    self._apply(*one)
            case "AbortTransactionRecord":
                if self._pending is None:
                    self._note_unfit(message.name, when)
                self._drop(message.fields.get("reason") or "aborted by the controller", when.offset)
            case _ if self._pending is not None:
                self._pending.append((message, when, place))
            case _:
                self._apply(message, when, place)

    def add_partitions(
        self,
        records: PartitionRecords,
        offsets: NDArray[np.int64],
        times: NDArray[np.int64],
        places: NDArray[np.int64],
    ) -> list[int]:
        """Apply the next records of the log, outside of a transaction, and return the numbers of those left to `add`: of unknown partitions or topics, or undecodable."""
        if records.are_changes:
            return self.partitions.change_all(records, offsets, times, places)
        origins = map(Origin, offsets.tolist(), times.tolist(), places.tolist())
        return self.partitions.record_all(records, self.topics, origins)

    def finish(self, last_offset: int) -> None:
        """End the log behind an offset: what an open transaction holds does not count."""
        if self._pending is not None:
            self._drop(UNFINISHED, last_offset)

    def apply_snapshot(self, messages: Iterable[Decoded], when: When, place: int) -> None:
        """Replace the whole state by a snapshot, outside of a transaction: what the snapshot lacks is removed."""
        topics: set[str] = set()
        brokers: set[int] = set()
        controllers: set[int] = set()
        configs: set[tuple[int, str, str]] = set()
        acls = {one.acl_id: one.is_set for one in self.acls}
        kept: set[str] = set()
        current = {(one.resource_type, one.resource_name, one.name): one.value for one in self.configs}
        levels = {one.name: one.level for one in self.features}
        for message in messages:
            fields = message.fields
            match message.name:
                case "TopicRecord":
                    topics.add(fields["topic_id"])
                case "RegisterBrokerRecord":
                    brokers.add(fields["broker_id"])
                case "RegisterControllerRecord":
                    controllers.add(fields["controller_id"])
                case "ConfigRecord":
                    key = (fields["resource_type"], str(fields["resource_name"]), str(fields["name"]))
                    configs.add(key)
                    if current.get(key) == fields["value"]:
                        continue
                case "AccessControlEntryRecord":
                    kept.add(fields["id"])
                case "FeatureLevelRecord" if levels.get(str(fields["name"])) == fields.get("feature_level"):
                    continue
            self._apply(message, when, place)
        for topic in list(self.topics.values()):
            if topic.topic_id not in topics and isinstance(topic.removed, Absent):
                self.topics[topic.topic_id] = topic._replace(removed=when)
                self._forget_name(topic)
        for broker_id, history in self.brokers.items():
            if broker_id not in brokers and history[-1].is_registered:
                history.append(history[-1]._replace(is_registered=False, is_fenced=True, when=when))
        for controller_id in self.controllers.keys() - controllers:
            self._unregister_controller({"controller_id": controller_id}, when)
        self.acls += [
            AclChange(acl_id, False, when) for acl_id, is_set in acls.items() if is_set and acl_id not in kept
        ]
        for key, value in current.items():
            if value is not None and key not in configs:
                self._set(ConfigChange(*key, None, when))

    def _drop(self, reason: str, last_offset: int) -> None:
        if self._begun is not None:
            self.aborted.append(AbortedTransaction(self._begun.offset, last_offset, reason, self._begun))
        self._pending = self._begun = None

    def _apply(self, message: Decoded, when: When, place: int) -> None:
        apply = _APPLIED.get(message.name)
        is_applied = apply is None or apply(self, message.fields, when, Origin(when.offset, when.timestamp_ms, place))
        if not is_applied:
            topic_id = message.fields.get("topic_id")
            is_of_none = topic_id is not None and topic_id not in self.topics
            self._note_unfit(f"{message.name}{OF_NO_TOPIC if is_of_none else ''}", when)

    def _note_unfit(self, name: str, when: When) -> None:
        if len(self.unapplied) < MOST_UNAPPLIED:
            self.unapplied.append((name, when))

    def _topic(self, fields: Fields, when: When, _origin: Origin) -> bool:
        name, topic_id = str(fields["name"]), fields["topic_id"]
        known = self.topics.get(topic_id)
        if known is None or not when.from_snapshot:
            self.topics[topic_id] = TopicState(name, topic_id, when)
        is_free = name not in self._ids
        self._ids[name] = topic_id
        return is_free or when.from_snapshot

    def _remove_topic(self, fields: Fields, when: When, _origin: Origin) -> bool:
        topic = self.topics.get(fields["topic_id"])
        if topic is None:
            return False
        self.topics[topic.topic_id] = topic._replace(removed=when)
        self._forget_name(topic)
        # No record says so: a topic that is created again under the name begins without them.
        for name in sorted(self._names_of_topic.pop(topic.name, ())):
            self.configs.append(ConfigChange(TOPIC_RESOURCE, topic.name, name, None, when))
        return True

    def _forget_name(self, topic: TopicState) -> None:
        if self._ids.get(topic.name) == topic.topic_id:
            del self._ids[topic.name]

    def _partition(self, fields: Fields, when: When, origin: Origin) -> bool:
        topic = self.topics.get(fields["topic_id"])
        name = topic.name if topic is not None else ""
        self.partitions.record(fields, name, origin, from_snapshot=when.from_snapshot)
        return topic is not None

    def _clear_elr(self, fields: Fields, _when: When, origin: Origin) -> bool:
        self.partitions.clear_elr(fields["topic_name"], self._is_live, origin)
        return True

    def _is_live(self, topic_id: str) -> bool:
        topic = self.topics.get(topic_id)
        return topic is None or isinstance(topic.removed, Absent)

    def _register_broker(self, fields: Fields, when: When, _origin: Origin) -> bool:
        rack = fields["rack"]
        state = BrokerState(
            broker_id=fields["broker_id"],
            broker_epoch=fields["broker_epoch"],
            incarnation_id=fields["incarnation_id"],
            is_registered=True,
            # The 2.8 preview has no such field: a registration is fenced until it is unfenced.
            is_fenced=fields.get("fenced", True),
            is_in_controlled_shutdown=fields.get("in_controlled_shutdown", False),
            rack=Absent.NOT_WRITTEN if rack is None else str(rack),
            end_points=end_points(fields),
            log_dirs=fields.get("log_dirs") or (),
            when=when,
            newest_metadata_version=_newest_metadata_version(fields),
            is_migrating=fields.get("is_migrating_zk_broker", False),
        )
        is_taken = not when.from_snapshot and any(
            one[-1].is_registered
            and one[-1].broker_id != state.broker_id
            and not {*one[-1].log_dirs}.isdisjoint(state.log_dirs)
            for one in (self.brokers.values() if state.log_dirs else ())
        )
        is_cordoning = fields.get("cordoned_log_dirs") is not None
        (self.cordoning.add if is_cordoning else self.cordoning.discard)(state.broker_id)
        history = self.brokers.setdefault(state.broker_id, [])
        if not (when.from_snapshot and history and history[-1]._replace(when=when) == state):
            history.append(state)
        return not is_taken  # no controller writes a directory of another broker

    def _change_broker(self, broker_id: int, epoch: int, when: When, **changes: Any) -> bool:
        """Change a registration, and return whether it is there, of this epoch."""
        history = self.brokers.get(broker_id)
        if not history:
            return False
        before = history[-1]
        history.append(before._replace(when=when, **changes))
        return before.is_registered and before.broker_epoch == epoch

    def _broker_registration_change(self, fields: Fields, when: When, _origin: Origin) -> bool:
        changes: dict[str, Any] = {}
        if fields["fenced"]:
            changes["is_fenced"] = fields["fenced"] > 0
        if fields.get("in_controlled_shutdown", 0) > 0:
            changes["is_in_controlled_shutdown"] = True
        if fields.get("log_dirs"):
            changes["log_dirs"] = fields["log_dirs"]
        if fields.get("cordoned_log_dirs") is not None:
            self.cordoning.add(fields["broker_id"])
        return self._change_broker(fields["broker_id"], fields["broker_epoch"], when, **changes)

    def _register_controller(self, fields: Fields, when: When, _origin: Origin) -> bool:
        version = _newest_metadata_version(fields)
        state = ControllerState(fields["controller_id"], fields["incarnation_id"], end_points(fields), when, version)
        history = self.controllers.setdefault(state.controller_id, [])
        if not (when.from_snapshot and history and history[-1]._replace(when=when) == state):
            history.append(state)
        return True

    def _unregister_controller(self, fields: Fields, when: When) -> bool:
        history = self.controllers.get(fields["controller_id"])
        if not history or not history[-1].is_registered:
            return False
        history.append(history[-1]._replace(is_registered=False, when=when))
        return True

    def _config(self, fields: Fields, when: When, _origin: Origin) -> bool:
        value = fields["value"]
        subject = (fields["resource_type"], str(fields["resource_name"]), str(fields["name"]))
        self._set(ConfigChange(*subject, None if value is None else str(value), when))
        return True

    def _set(self, change: ConfigChange) -> None:
        self.configs.append(change)
        if change.resource_type == TOPIC_RESOURCE:
            names = self._names_of_topic.setdefault(change.resource_name, set())
            (names.discard if change.value is None else names.add)(change.name)

    def _feature(self, fields: Fields, when: When, _origin: Origin) -> bool:
        level = fields.get("feature_level", fields.get("max_feature_level", 0))
        self.features.append(FeatureChange(str(fields["name"]), level, when))
        return True


def _acl(replay: MetadataReplay, fields: Fields, when: When, *, is_set: bool) -> bool:
    replay.acls.append(AclChange(fields["id"], is_set, when))
    return _is_held(replay, fields["id"], is_set=is_set)


def _scram(replay: MetadataReplay, fields: Fields, *, is_set: bool) -> bool:
    return _is_held(replay, (fields["name"], fields["mechanism"]), is_set=is_set)


def _is_held(replay: MetadataReplay, key: object, *, is_set: bool) -> bool:
    """Note an ACL or a secret that is set, and return whether one that is removed was there."""
    if is_set:
        replay.held.add(key)
    return is_set or key in replay.held


def _producer_ids(replay: MetadataReplay, fields: Fields, when: When, _origin: Origin) -> bool:
    replay.producer_ids.append((fields["next_producer_id"], when))
    return True


def _migration(replay: MetadataReplay, fields: Fields, _when: When, _origin: Origin) -> bool:
    replay.migration = fields["zk_migration_state"]
    return True


def _newest_metadata_version(fields: Fields) -> int | Absent:
    """Return the newest metadata.version in a registration; not before 3.3."""
    supported = (one["max_supported_version"] for one in fields["features"] or () if one["name"] == METADATA_VERSION)
    return next(supported, Absent.NOT_WRITTEN)


def end_points(fields: Fields) -> tuple[str, ...]:
    """Return the listeners of a registration as `name://host:port`."""
    return tuple(f"{one['name']}://{one['host']}:{one['port']}" for one in fields["end_points"] or ())


_Apply = Callable[[MetadataReplay, Fields, When, Origin], bool]
# ruff: noqa: SLF001 - the table belongs to the class
_APPLIED: Mapping[str, _Apply] = {
    "TopicRecord": MetadataReplay._topic,
    "RemoveTopicRecord": MetadataReplay._remove_topic,
    "PartitionRecord": MetadataReplay._partition,
    "PartitionChangeRecord": lambda replay, fields, _when, origin: replay.partitions.change(fields, origin),
    "ClearElrRecord": MetadataReplay._clear_elr,
    "RegisterBrokerRecord": MetadataReplay._register_broker,
    "UnregisterBrokerRecord": lambda replay, fields, when, _origin: replay._change_broker(
        fields["broker_id"], fields["broker_epoch"], when, is_registered=False, is_fenced=True
    ),
    "FenceBrokerRecord": lambda replay, fields, when, _origin: replay._change_broker(
        fields["id"], fields["epoch"], when, is_fenced=True
    ),
    "UnfenceBrokerRecord": lambda replay, fields, when, _origin: replay._change_broker(
        fields["id"], fields["epoch"], when, is_fenced=False
    ),
    "BrokerRegistrationChangeRecord": MetadataReplay._broker_registration_change,
    "RegisterControllerRecord": MetadataReplay._register_controller,
    "UnregisterControllerRecord": lambda replay, fields, when, _origin: replay._unregister_controller(fields, when),
    "ConfigRecord": MetadataReplay._config,
    "FeatureLevelRecord": MetadataReplay._feature,
    "RemoveFeatureLevelRecord": MetadataReplay._feature,
    "AccessControlEntryRecord": lambda replay, fields, when, _origin: _acl(replay, fields, when, is_set=True),
    "RemoveAccessControlEntryRecord": lambda replay, fields, when, _origin: _acl(replay, fields, when, is_set=False),
    "UserScramCredentialRecord": lambda replay, fields, _when, _origin: _scram(replay, fields, is_set=True),
    "RemoveUserScramCredentialRecord": lambda replay, fields, _when, _origin: _scram(replay, fields, is_set=False),
    "ProducerIdsRecord": _producer_ids,
    "ZkMigrationStateRecord": _migration,
}
