"""Logs of `__consumer_offsets` and of transactional producers, made record by record."""

from pathlib import Path

from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, find_places
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.messages.control import ControlType, encode_control_record
from kforensics.formats.messages.coordinators import GROUP_TABLES, TXN_TABLES
from tests.builders.messages import encode_coordinator_record

TRANSACTIONAL, CONTROL = 0x10, 0x20
NOW = 1_795_000_000_000


def commit(group, topic, partition, offset, *, version=3, time_ms=NOW, record_type=1, metadata="", leader_epoch=-1):
    """Key and value of an offset commit; with an offset of None its tombstone."""
    key = {"group": group, "topic": topic, "partition": partition}
    if offset is None:
        return encode_coordinator_record(GROUP_TABLES, record_type, key)
    value = {
        "offset": offset,
        "metadata": metadata,
        "commit_timestamp": time_ms,
        "expire_timestamp": -1,
        "leader_epoch": leader_epoch,
        "topic_id": "AAAAAAAAAAAAAAAAAAAAAA",
    }
    return encode_coordinator_record(GROUP_TABLES, record_type, key, version, value)


def group_metadata(group, members, *, version=3, generation=1, time_ms=NOW):
    """Key and value of a classic group with so many members; with None its tombstone."""
    if members is None:
        return encode_coordinator_record(GROUP_TABLES, 2, {"group": group})
    value = {
        "protocol_type": "consumer",
        "generation": generation,
        "protocol": "range",
        "leader": "m-0",
        "current_state_timestamp": time_ms,
        "members": [
            {
                "member_id": f"m-{at}",
                "group_instance_id": None,
                "client_id": "c",
                "client_host": "/h",
                "rebalance_timeout": 1,
                "session_timeout": 1,
                "subscription": b"",
                "assignment": b"",
            }
            for at in range(members)
        ],
    }
    return encode_coordinator_record(GROUP_TABLES, 2, {"group": group}, version, value)


def batch(offset, records, *, producer=-1, producer_epoch=0, transactional=False, epoch=0, time_ms=NOW):
    """The bytes of a batch."""
    return encode_record_batch(
        build_record_batch(
            offset,
            [(time_ms, key, value) for key, value in records],
            partition_leader_epoch=epoch,
            attributes=TRANSACTIONAL if transactional else 0,
            producer_id=producer,
            producer_epoch=producer_epoch if producer >= 0 else -1,
            base_sequence=0 if producer >= 0 else -1,
        )
    )


def transaction_state(name, status, *, producer=7, producer_epoch=0, partitions=(), started_ms=NOW, updated_ms=NOW):
    """Key and value of a state of a transactional id."""
    value = {
        "producer_id": producer,
        "producer_epoch": producer_epoch,
        "transaction_timeout_ms": 60_000,
        "transaction_status": status,
        "transaction_partitions": [{"topic": topic, "partition_ids": list(ids)} for topic, ids in partitions],
        "transaction_last_update_timestamp_ms": updated_ms,
        "transaction_start_timestamp_ms": started_ms,
    }
    return encode_coordinator_record(TXN_TABLES, 0, {"transactional_id": name}, 0, value)


def marker(offset, producer, *, commits, producer_epoch=0, epoch=0, coordinator_epoch=0, time_ms=NOW):
    """The bytes of an end marker."""
    kind = ControlType.COMMIT if commits else ControlType.ABORT
    record = encode_control_record(kind, {"version": 0, "coordinator_epoch": coordinator_epoch})
    return encode_record_batch(
        build_record_batch(
            offset,
            [(time_ms, *record)],
            partition_leader_epoch=epoch,
            attributes=TRANSACTIONAL | CONTROL,
            producer_id=producer,
            producer_epoch=producer_epoch,
        )
    )


def write_log(folder: Path, name: str, *segments: tuple[int, bytes]) -> PartitionPlace:
    """A partition directory with these segments, by base offset."""
    directory = folder / name
    directory.mkdir(parents=True, exist_ok=True)
    for base, content in segments:
        (directory / f"{base:020d}.log").write_bytes(content)
    (places,) = find_places(find_inputs([directory])).by_partition.values()
    return places[0]
