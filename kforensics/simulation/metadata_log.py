"""The metadata log of a simulated KRaft cluster: the controller's records of its brokers and partitions, in order."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kforensics.damage import Absent
from kforensics.formats.log.batch_table import CONTROL_BIT
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.messages.control import ControlType, encode_control_record
from kforensics.formats.messages.metadata import (
    BROKER_REGISTRATION_CHANGE,
    CONFIG,
    FEATURE_LEVEL,
    LEADER_UNCHANGED,
    NO_CHANGE,
    NO_LEADER,
    PARTITION,
    PARTITION_CHANGE,
    RECOVERED,
    RECOVERING,
    REGISTER_BROKER,
    TOPIC,
    encode_metadata_record,
)
from kforensics.formats.messages.schema import Message
from kforensics.protocol.election import PartitionRegistration, RecoveryState
from kforensics.simulation.cluster import SimulatedCluster, stable_id
from kforensics.units import TopicPartition

CONTROLLER_ID = 100
METADATA_EPOCH = 1
METADATA_VERSION_LEVEL = 27
_TOPIC_RESOURCE = 2
_UNFENCED, _FENCED = -1, 1


class MetadataEntry(NamedTuple):
    """One record, ready to be written."""

    time_ms: int
    table: Message
    version: int
    fields: dict[str, Any]


class _Change(NamedTuple):
    """A change, ordered as the controller saw it; at one moment brokers come before partitions."""

    time_ms: int
    order: int
    entries: tuple[MetadataEntry, ...]


def metadata_entries(cluster: SimulatedCluster) -> Iterator[MetadataEntry]:
    """Yield every record of the metadata log behind its leader change."""
    start = cluster.settings.start_time_ms
    yield MetadataEntry(start, FEATURE_LEVEL, 0, {"name": "metadata.version", "feature_level": METADATA_VERSION_LEVEL})
    if cluster.settings.eligible_leader_replicas:
        feature = {"name": "eligible.leader.replicas.version", "feature_level": 1}
        yield MetadataEntry(start, FEATURE_LEVEL, 0, feature)
    for broker in cluster.brokers:
        yield from _registration(cluster, start, broker, turn=0)
    yield MetadataEntry(start, TOPIC, 0, {"name": cluster.topic, "topic_id": cluster.topic_id})
    configured = {
        "min.insync.replicas": str(cluster.settings.min_insync_replicas),
        "unclean.leader.election.enable": str(cluster.settings.unclean_leader_election).lower(),
    }
    for name, value in configured.items():
        resource = {"resource_type": _TOPIC_RESOURCE, "resource_name": cluster.topic, "name": name, "value": value}
        yield MetadataEntry(start, CONFIG, 0, resource)
    for partition, simulated in cluster.partitions.items():
        yield _created(cluster, partition, simulated.registrations[0][1], start)
    changes = [*_broker_changes(cluster), *_partition_changes(cluster)]
    for change in sorted(changes, key=lambda change: (change.time_ms, change.order)):
        yield from change.entries


def encode_metadata_log(cluster: SimulatedCluster) -> list[tuple[int, int, bytes]]:
    """Return the batches of the log as base offset, last offset and bytes: one batch per record, behind the leader change."""
    start = cluster.settings.start_time_ms
    voter = {"voter_id": CONTROLLER_ID}
    key, value = encode_control_record(
        ControlType.LEADER_CHANGE,
        {"version": 0, "leader_id": CONTROLLER_ID, "voters": [voter], "granting_voters": [voter]},
    )
    first = build_record_batch(0, [(start, key, value)], partition_leader_epoch=METADATA_EPOCH, attributes=CONTROL_BIT)
    batches = [(0, 0, encode_record_batch(first))]
    for offset, entry in enumerate(metadata_entries(cluster), start=1):
        data = encode_metadata_record(entry.table.api_key or 0, entry.version, entry.fields)
        batch = build_record_batch(offset, [(entry.time_ms, None, data)], partition_leader_epoch=METADATA_EPOCH)
        batches.append((offset, offset, encode_record_batch(batch)))
    return batches


def _registration(cluster: SimulatedCluster, time_ms: int, broker: int, *, turn: int) -> Iterator[MetadataEntry]:
    epoch = broker_epoch(broker, turn)
    host = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": 9092 + broker % 1000, "security_protocol": 0}
    levels = {"min_supported_version": 7, "max_supported_version": METADATA_VERSION_LEVEL}
    yield MetadataEntry(
        time_ms,
        REGISTER_BROKER,
        3,
        {
            "broker_id": broker,
            "is_migrating_zk_broker": False,
            "incarnation_id": stable_id(f"incarnation {broker} {turn}"),
            "broker_epoch": epoch,
            "end_points": [host],
            "features": [{"name": "metadata.version", **levels}],
            "rack": cluster.racks.get(broker),
            "fenced": True,
            "in_controlled_shutdown": False,
            "log_dirs": [cluster.directory_id(broker)],
        },
    )
    change = {"broker_id": broker, "broker_epoch": epoch, "fenced": _UNFENCED, "in_controlled_shutdown": 0}
    yield MetadataEntry(time_ms, BROKER_REGISTRATION_CHANGE, 1, {**change, "log_dirs": []})


def broker_epoch(broker: int, turn: int) -> int:
    """Return the epoch of a broker's registration, which rises with every restart and never exceeds the offset of its record (KIP-631)."""
    return turn + min(broker, 1)


def _created(
    cluster: SimulatedCluster, partition: TopicPartition, registration: PartitionRegistration, time_ms: int
) -> MetadataEntry:
    return MetadataEntry(
        time_ms,
        PARTITION,
        2,
        {
            "partition_id": partition.partition,
            "topic_id": cluster.topic_id,
            "replicas": list(registration.replicas),
            "isr": list(registration.isr),
            "removing_replicas": [],
            "adding_replicas": [],
            "leader": _leader(registration),
            "leader_recovery_state": RECOVERED,
            "leader_epoch": registration.leader_epoch,
            "partition_epoch": registration.partition_epoch,
            "directories": [cluster.directory_id(broker) for broker in registration.replicas],
            "eligible_leader_replicas": None,
            "last_known_elr": None,
        },
    )


def _broker_changes(cluster: SimulatedCluster) -> Iterator[_Change]:
    turns = dict.fromkeys(cluster.brokers, 0)
    for order, event in enumerate(cluster.broker_events):
        if event.kind == "start":
            turns[event.broker_id] += 1
            entries = tuple(_registration(cluster, event.time_ms, event.broker_id, turn=turns[event.broker_id]))
        else:
            fenced = {
                "broker_id": event.broker_id,
                "broker_epoch": broker_epoch(event.broker_id, turns[event.broker_id]),
                "fenced": _FENCED,
                "in_controlled_shutdown": int(event.kind == "stop"),
                "log_dirs": [],
            }
            entries = (MetadataEntry(event.time_ms, BROKER_REGISTRATION_CHANGE, 1, fenced),)
        yield _Change(event.time_ms, order, entries)


def _partition_changes(cluster: SimulatedCluster) -> Iterator[_Change]:
    order = len(cluster.broker_events)
    for partition, simulated in cluster.partitions.items():
        before = simulated.registrations[0][1]
        for time_ms, after in simulated.registrations[1:]:
            order += 1
            yield _Change(time_ms, order, (_changed(cluster, partition, time_ms, before, after),))
            before = after


def _changed(
    cluster: SimulatedCluster,
    partition: TopicPartition,
    time_ms: int,
    before: PartitionRegistration,
    after: PartitionRegistration,
) -> MetadataEntry:
    is_election = after.leader_epoch != before.leader_epoch
    recovery = NO_CHANGE
    if after.recovery_state != before.recovery_state:
        recovery = RECOVERING if after.recovery_state is RecoveryState.RECOVERING else RECOVERED
    eligible, last_known = after.eligible_leader_replicas, after.last_known_leader_replicas
    return MetadataEntry(
        time_ms,
        PARTITION_CHANGE,
        2,
        {
            "partition_id": partition.partition,
            "topic_id": cluster.topic_id,
            "isr": list(after.isr) if after.isr != before.isr else None,
            "leader": _leader(after) if is_election else LEADER_UNCHANGED,
            "replicas": None,
            "removing_replicas": None,
            "adding_replicas": None,
            "leader_recovery_state": recovery,
            "directories": None,
            "eligible_leader_replicas": list(eligible) if eligible != before.eligible_leader_replicas else None,
            "last_known_elr": list(last_known) if last_known != before.last_known_leader_replicas else None,
        },
    )


def _leader(registration: PartitionRegistration) -> int:
    return NO_LEADER if isinstance(registration.leader, Absent) else registration.leader
