"""The columns of each level of the data source, and batches and records as rows of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kforensics.errors import UsageError
from kforensics.fleet.schemas import REPLICAS, SEGMENTS
from kforensics.formats.log.batch_table import CODEC_MASK, CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable
from kforensics.formats.log.records import Record

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_INTERNAL = frozenset({"source", "sequence", "absent", "scanned_ns", "checkpoint_lines", "content"})

_WHERE = [("node_id", pa.int32()), ("topic", pa.string()), ("partition", pa.int32()), ("path", pa.string())]

BATCHES = pa.schema(
    [
        *_WHERE,
        ("position", pa.int64()),
        ("length", pa.int32()),
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("record_count", pa.int32()),
        ("magic", pa.int8()),
        ("partition_leader_epoch", pa.int32()),
        ("crc", pa.int64()),
        ("crc_valid", pa.bool_()),
        ("compression", pa.string()),
        ("is_transactional", pa.bool_()),
        ("is_control", pa.bool_()),
        ("base_timestamp_ms", pa.int64()),
        ("max_timestamp_ms", pa.int64()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("base_sequence", pa.int32()),
    ]
)

RECORDS = pa.schema(
    [
        *_WHERE,
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key_length", pa.int32()),
        ("value_length", pa.int32()),
        ("header_count", pa.int32()),
        ("batch_position", pa.int64()),
        ("batch_base_offset", pa.int64()),
        ("partition_leader_epoch", pa.int32()),
        ("magic", pa.int8()),
        ("is_transactional", pa.bool_()),
        ("is_control", pa.bool_()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("sequence", pa.int32()),
    ]
)

PAYLOADS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("name", pa.binary()), ("value", pa.binary())]))),
    ]
)

LEVELS: dict[str, pa.Schema] = {
    "replicas": pa.schema([one for one in REPLICAS if one.name not in _INTERNAL]),
    "segments": pa.schema([one for one in SEGMENTS if one.name not in _INTERNAL]),
    "batches": BATCHES,
    "records": RECORDS,
}


def schema_of(options: Mapping[str, str]) -> pa.Schema:
    """The columns of the level that the options ask for."""
    level = options.get("level", "segments")
    if level not in LEVELS:
        raise UsageError(f"level {level!r}: expected one of {', '.join(LEVELS)}")
    schema = LEVELS[level]
    return pa.schema([*schema, *PAYLOADS]) if level == "records" and shows_payloads(options) else schema


def shows_payloads(options: Mapping[str, str]) -> bool:
    """Return whether the options ask for keys, values and headers."""
    return options.get("payloads", "false").lower() == "true"


def batch_rows(batches: BatchTable, where: Mapping[str, Any]) -> pa.RecordBatch:
    """A batch table as rows of the level `batches`."""
    attributes = batches["attributes"]
    codecs = np.array([*_CODECS, *["unknown"] * (CODEC_MASK + 1 - len(_CODECS))])
    columns: dict[str, Any] = {name: [value] * len(batches) for name, value in where.items()}
    columns |= {
        "position": batches["position"],
        "length": batches["length"],
        "base_offset": batches["base_offset"],
        "last_offset": batches["last_offset"],
        "record_count": batches["count"],
        "magic": batches["magic"],
        "partition_leader_epoch": _known(batches["partition_leader_epoch"]),
        "crc": batches["crc"].astype(np.int64),
        "crc_valid": batches["crc_valid"],
        "compression": codecs[attributes & CODEC_MASK],
        "is_transactional": (attributes & TRANSACTIONAL_BIT) != 0,
        "is_control": (attributes & CONTROL_BIT) != 0,
        "base_timestamp_ms": _known(batches["base_timestamp"]),
        "max_timestamp_ms": _known(batches["max_timestamp"]),
        "producer_id": _known(batches["producer_id"]),
        "producer_epoch": _known(batches["producer_epoch"]),
        "base_sequence": _known(batches["base_sequence"]),
    }
    return pa.RecordBatch.from_arrays([_column(columns[one.name], one.type) for one in BATCHES], schema=BATCHES)


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return pa.array(np.ascontiguousarray(values) if isinstance(values, np.ndarray) else values, type=kind)


def _known(values: Any) -> pa.Array:
    """Return Kafka's -1, which means none, as null."""
    return pa.array(np.ascontiguousarray(values), mask=np.asarray(values < 0))


def record_row(record: Record, where: Mapping[str, Any], *, payloads: bool) -> dict[str, Any]:
    """A record as a row of the level `records`."""
    row = {
        **where,
        "offset": record.offset,
        "timestamp_ms": _or_none(record.timestamp_ms),
        "key_length": None if record.key is None else len(record.key),
        "value_length": None if record.value is None else len(record.value),
        "header_count": len(record.headers),
        "batch_position": record.batch_position,
        "batch_base_offset": record.batch_base_offset,
        "partition_leader_epoch": _or_none(record.partition_leader_epoch),
        "magic": record.magic,
        "is_transactional": record.is_transactional,
        "is_control": record.is_control,
        "producer_id": _or_none(record.producer_id),
        "producer_epoch": _or_none(record.producer_epoch),
        "sequence": _or_none(record.sequence),
    }
    if payloads:
        row |= {
            "key": record.key,
            "value": record.value,
            "headers": [{"name": name, "value": value} for name, value in record.headers],
        }
    return row


def _or_none(value: int) -> int | None:
    return None if value < 0 else value
