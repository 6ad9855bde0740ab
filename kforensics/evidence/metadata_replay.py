"""Applies metadata records one after the other, as a controller does, and keeps every state they lead to.

Records between BeginTransaction and EndTransaction count when the end is seen, and never where AbortTransaction
follows (KIP-868, 3.6).
(Kafka: org.apache.kafka.image, PartitionRegistration.merge, 2.8 to 4.3)
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kforensics.damage import Absent
from kforensics.evidence.metadata_state import (
    AbortedTransaction,
    BrokerState,
    ConfigChange,
    ControllerState,
    FeatureChange,
    PartitionState,
    TopicState,
    When,
)
from kforensics.formats.message_schema import Decoded
from kforensics.formats.metadata_record import LEADER_UNCHANGED, NO_CHANGE, NO_LEADER, RECOVERING

Fields = Mapping[str, Any]

UNFINISHED = "the log ends inside the transaction"


class MetadataReplay:
    """The states met so far; histories are in the order of the log."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicState] = {}
        self.partitions: dict[tuple[str, int], list[PartitionState]] = {}
        self.brokers: dict[int, list[BrokerState]] = {}
        self.controllers: dict[int, list[ControllerState]] = {}
        self.configs: list[ConfigChange] = []
        self.features: list[FeatureChange] = []
        self.aborted: list[AbortedTransaction] = []
        self.unapplied: list[tuple[str, When]] = []
        """Records that fit no state, such as a change of a partition that was never created."""
        self._pending: list[tuple[Decoded, When]] | None = None
        self._begun: When | None = None

    def add(self, message: Decoded, when: When) -> None:
        """Take the next record of the log."""
        match message.name:
            case "BeginTransactionRecord":
                self.finish()
                self._pending, self._begun = [], when
            case "EndTransactionRecord":
                pending, self._pending, self._begun = self._pending, None, None
                for one, place in pending or ():
                    self._apply(one, place)
            case "AbortTransactionRecord":
                self._drop(message.fields.get("reason") or "aborted by the controller", when.offset)
            case _ if self._pending is not None:
                self._pending.append((message, when))
            case _:
                self._apply(message, when)

    def finish(self) -> None:
        """The log ends here: what an open transaction holds does not count."""
        if self._pending is not None:
            last = self._pending[-1][1] if self._pending else self._begun
            self._drop(UNFINISHED, last.offset if last is not None else 0)

    def apply_snapshot(self, messages: Iterable[Decoded], when: When) -> None:
        """Take the whole state from a snapshot: what it does not hold is gone."""
        self.finish()
        topics: set[str] = set()
        brokers: set[int] = set()
        configs: set[tuple[int, str, str]] = set()
        current = {(one.resource_type, one.resource_name, one.name): one.value for one in self.configs}
        levels = {one.name: one.level for one in self.features}
        for message in messages:
            fields = message.fields
            match message.name:
                case "TopicRecord":
                    topics.add(fields["topic_id"])
                case "RegisterBrokerRecord":
                    brokers.add(fields["broker_id"])
                case "ConfigRecord":
                    key = (fields["resource_type"], str(fields["resource_name"]), str(fields["name"]))
                    configs.add(key)
                    if current.get(key) == fields["value"]:
                        continue
                case "FeatureLevelRecord" if levels.get(str(fields["name"])) == fields.get("feature_level"):
                    continue
            self._apply(message, when)
        for topic in self.topics.values():
            if topic.topic_id not in topics and isinstance(topic.removed, Absent):
                self.topics[topic.topic_id] = topic._replace(removed=when)
        for broker_id, history in self.brokers.items():
            if broker_id not in brokers and history[-1].is_registered:
                history.append(history[-1]._replace(is_registered=False, is_fenced=True, when=when))
        for key, value in current.items():
            if value is not None and key not in configs:
                self.configs.append(ConfigChange(*key, None, when))

    def _drop(self, reason: str, last_offset: int) -> None:
        if self._begun is not None:
            self.aborted.append(AbortedTransaction(self._begun.offset, last_offset, reason, self._begun))
        self._pending = self._begun = None

    def _apply(self, message: Decoded, when: When) -> None:
        apply = _APPLIED.get(message.name)
        if apply is not None and not apply(self, message.fields, when):
            self.unapplied.append((message.name, when))

    def _topic(self, fields: Fields, when: When) -> bool:
        known = self.topics.get(fields["topic_id"])
        if known is None or not when.from_snapshot:
            self.topics[fields["topic_id"]] = TopicState(str(fields["name"]), fields["topic_id"], when)
        return True

    def _remove_topic(self, fields: Fields, when: When) -> bool:
        topic = self.topics.get(fields["topic_id"])
        if topic is None:
            return False
        self.topics[topic.topic_id] = topic._replace(removed=when)
        return True

    def _partition(self, fields: Fields, when: When) -> bool:
        topic_id, number = fields["topic_id"], fields["partition_id"]
        topic = self.topics.get(topic_id)
        leader = fields["leader"]
        state = PartitionState(
            topic.name if topic is not None else "",
            topic_id,
            number,
            Absent.NOT_APPLICABLE if leader == NO_LEADER else leader,
            fields["leader_epoch"],
            fields["partition_epoch"],
            fields["isr"] or (),
            fields["replicas"] or (),
            fields["adding_replicas"] or (),
            fields["removing_replicas"] or (),
            fields.get("eligible_leader_replicas") or (),
            fields.get("last_known_elr") or (),
            fields.get("leader_recovery_state") == RECOVERING,
            fields.get("directories") or (),
            when,
        )
        history = self.partitions.setdefault((topic_id, number), [])
        if when.from_snapshot and history and history[-1]._replace(when=when) == state:
            return True
        history.append(state)
        return topic is not None

    def _partition_change(self, fields: Fields, when: When) -> bool:
        history = self.partitions.get((fields["topic_id"], fields["partition_id"]))
        if not history:
            return False
        before = history[-1]
        get = fields.get
        leader, leader_epoch = before.leader, before.leader_epoch
        if fields["leader"] != LEADER_UNCHANGED:
            # The epoch rises with every record that names a leader, even the one that leads already.
            leader = Absent.NOT_APPLICABLE if fields["leader"] == NO_LEADER else fields["leader"]
            leader_epoch += 1
        recovery = get("leader_recovery_state", NO_CHANGE)
        history.append(
            PartitionState(
                before.topic,
                before.topic_id,
                before.partition,
                leader,
                leader_epoch,
                before.partition_epoch + 1,
                _changed(fields["isr"], before.isr),
                _changed(get("replicas"), before.replicas),
                _changed(get("adding_replicas"), before.adding_replicas),
                _changed(get("removing_replicas"), before.removing_replicas),
                _changed(get("eligible_leader_replicas"), before.eligible_leader_replicas),
                _changed(get("last_known_elr"), before.last_known_elr),
                before.is_recovering if recovery == NO_CHANGE else recovery == RECOVERING,
                _changed(get("directories"), before.directories),
                when,
            )
        )
        return True

    def _clear_elr(self, fields: Fields, when: When) -> bool:
        name = fields["topic_name"]
        for history in self.partitions.values():
            last = history[-1]
            has_elr = last.eligible_leader_replicas or last.last_known_elr
            if has_elr and (not name or last.topic == name) and self._is_live(last.topic_id):
                epoch = last.partition_epoch + 1
                history.append(
                    last._replace(eligible_leader_replicas=(), last_known_elr=(), partition_epoch=epoch, when=when)
                )
        return True

    def _is_live(self, topic_id: str) -> bool:
        topic = self.topics.get(topic_id)
        return topic is None or isinstance(topic.removed, Absent)

    def _register_broker(self, fields: Fields, when: When) -> bool:
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
        )
        history = self.brokers.setdefault(state.broker_id, [])
        if not (when.from_snapshot and history and history[-1]._replace(when=when) == state):
            history.append(state)
        return True

    def _change_broker(self, broker_id: int, when: When, **changes: Any) -> bool:
        history = self.brokers.get(broker_id)
        if not history:
            return False
        history.append(history[-1]._replace(when=when, **changes))
        return True

    def _unregister_broker(self, fields: Fields, when: When) -> bool:
        return self._change_broker(fields["broker_id"], when, is_registered=False, is_fenced=True)

    def _fence_broker(self, fields: Fields, when: When) -> bool:
        return self._change_broker(fields["id"], when, is_fenced=True)

    def _unfence_broker(self, fields: Fields, when: When) -> bool:
        return self._change_broker(fields["id"], when, is_fenced=False)

    def _broker_registration_change(self, fields: Fields, when: When) -> bool:
        changes: dict[str, Any] = {}
        if fields["fenced"]:
            changes["is_fenced"] = fields["fenced"] > 0
        if fields.get("in_controlled_shutdown", 0) > 0:
            changes["is_in_controlled_shutdown"] = True
        if fields.get("log_dirs"):
            changes["log_dirs"] = fields["log_dirs"]
        return self._change_broker(fields["broker_id"], when, **changes)

    def _register_controller(self, fields: Fields, when: When) -> bool:
        state = ControllerState(fields["controller_id"], fields["incarnation_id"], end_points(fields), when)
        self.controllers.setdefault(state.controller_id, []).append(state)
        return True

    def _config(self, fields: Fields, when: When) -> bool:
        value = fields["value"]
        self.configs.append(
            ConfigChange(
                fields["resource_type"],
                str(fields["resource_name"]),
                str(fields["name"]),
                None if value is None else str(value),
                when,
            )
        )
        return True

    def _feature(self, fields: Fields, when: When) -> bool:
        level = fields.get("feature_level", fields.get("max_feature_level", 0))
        self.features.append(FeatureChange(str(fields["name"]), level, when))
        return True


def end_points(fields: Fields) -> tuple[str, ...]:
    """The listeners of a registration as `name://host:port`."""
    return tuple(f"{one['name']}://{one['host']}:{one['port']}" for one in fields["end_points"] or ())


def _changed(new: tuple[Any, ...] | None, old: tuple[Any, ...]) -> tuple[Any, ...]:
    return old if new is None else new


_APPLIED: Mapping[str, Callable[[MetadataReplay, Fields, When], bool]] = {
    "TopicRecord": MetadataReplay._topic,  # noqa: SLF001 - the table belongs to the class
    "RemoveTopicRecord": MetadataReplay._remove_topic,  # noqa: SLF001
    "PartitionRecord": MetadataReplay._partition,  # noqa: SLF001
    "PartitionChangeRecord": MetadataReplay._partition_change,  # noqa: SLF001
    "ClearElrRecord": MetadataReplay._clear_elr,  # noqa: SLF001
    "RegisterBrokerRecord": MetadataReplay._register_broker,  # noqa: SLF001
    "UnregisterBrokerRecord": MetadataReplay._unregister_broker,  # noqa: SLF001
    "FenceBrokerRecord": MetadataReplay._fence_broker,  # noqa: SLF001
    "UnfenceBrokerRecord": MetadataReplay._unfence_broker,  # noqa: SLF001
    "BrokerRegistrationChangeRecord": MetadataReplay._broker_registration_change,  # noqa: SLF001
    "RegisterControllerRecord": MetadataReplay._register_controller,  # noqa: SLF001
    "ConfigRecord": MetadataReplay._config,  # noqa: SLF001
    "FeatureLevelRecord": MetadataReplay._feature,  # noqa: SLF001
    "RemoveFeatureLevelRecord": MetadataReplay._feature,  # noqa: SLF001
}
