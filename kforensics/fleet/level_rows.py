"""The columns of each level of the data source, and what was read as rows of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from kforensics.errors import UsageError
from kforensics.fleet.condition import Condition
from kforensics.fleet.schemas import REPLICAS, SEGMENTS, columns
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import CODEC_MASK, CODECS, CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable
from kforensics.formats.log.records import parse_headers, slice_nullable

_INTERNAL = frozenset({"source", "sequence", "absent", "scanned_ns", "checkpoint_lines", "content"})

_WHERE = ((pa.int32(), "node_id"), (pa.string(), "topic"), (pa.int32(), "partition"), (pa.string(), "path"))
_PRODUCER = ((pa.int64(), "producer_id"), (pa.int16(), "producer_epoch"))

BATCHES = pa.schema(
    columns(
        *_WHERE,
        (pa.int64(), "position"),
        (pa.int32(), "length"),
        (pa.int64(), "base_offset last_offset"),
        (pa.int32(), "record_count"),
        (pa.int8(), "magic"),
        (pa.int32(), "partition_leader_epoch"),
        (pa.int64(), "crc"),
        (pa.bool_(), "crc_valid"),
        (pa.string(), "compression"),
        (pa.bool_(), "is_transactional is_control"),
        (pa.int64(), "base_timestamp_ms max_timestamp_ms"),
        *_PRODUCER,
        (pa.int32(), "base_sequence"),
    )
)

RECORDS = pa.schema(
    columns(
        *_WHERE,
        (pa.int64(), "record_offset timestamp_ms"),
        (pa.int32(), "key_length value_length header_count"),
        (pa.int64(), "batch_position batch_base_offset"),
        (pa.int32(), "partition_leader_epoch"),
        (pa.int8(), "magic"),
        (pa.bool_(), "is_transactional is_control"),
        *_PRODUCER,
        (pa.int32(), "sequence"),
    )
)

_HEADER = pa.struct(columns((pa.binary(), "name value")))
PAYLOADS = pa.schema(columns((pa.binary(), "key value"), (pa.list_(_HEADER), "headers")))

PROBLEM = pa.field("problem", pa.string())
"""Why a file or a place in it could not be read; null in every row that was."""

LEVELS: dict[str, pa.Schema] = {
    "replicas": pa.schema([one for one in REPLICAS if one.name not in _INTERNAL]),
    "segments": pa.schema([one for one in SEGMENTS if one.name not in _INTERNAL]),
    "batches": BATCHES,
    "records": RECORDS,
}


def schema_of(options: Mapping[str, str]) -> pa.Schema:
    """Return all columns of the level that the options ask for."""
    level = options.get("level", "segments")
    if level not in LEVELS:
        raise UsageError(f"level {level!r}: expected one of {', '.join(LEVELS)}")
    schema = LEVELS[level]
    return pa.schema([*schema, *PAYLOADS]) if level == "records" and is_set(options, "payloads") else schema


def chosen_schema(options: Mapping[str, str]) -> pa.Schema:
    """Return the columns that the options ask for, and with `problems=rows` that of problems behind them."""
    schema = schema_of(options)
    names = [one.strip().lower() for one in options.get("columns", "").split(",") if one.strip()]
    unknown = sorted(set(names) - set(schema.names))
    if unknown:
        raise UsageError(f"columns {', '.join(unknown)}: expected some of {', '.join(schema.names)}")
    chosen = [schema.field(name) for name in dict.fromkeys(names)] if names else list(schema)
    return pa.schema([*chosen, PROBLEM] if has_problem_rows(options) else chosen)


def is_set(options: Mapping[str, str], name: str) -> bool:
    """Return whether an option that is off by default is `true`."""
    value = options.get(name, "false").lower()
    if value not in {"true", "false"}:
        raise UsageError(f"{name} {value!r}: expected true or false")
    return value == "true"


def has_problem_rows(options: Mapping[str, str]) -> bool:
    """Return whether what can't be read becomes a row, and not an error."""
    value = options.get("problems", "error").lower()
    if value not in {"error", "rows"}:
        raise UsageError(f"problems {value!r}: expected error or rows")
    return value == "rows"


class Projection:
    """The columns that are wanted of the rows that pass.

    Args:
        whole: all columns of the level, of which the condition may ask others.
        condition: what the rows pass, none where all do.
    """

    def __init__(self, schema: pa.Schema, whole: pa.Schema, condition: Condition | None) -> None:
        self._schema = schema
        self._whole = whole
        self._condition = condition
        self._asked = pa.schema([one for one in whole if condition is not None and one.name in condition.columns])

    def of_batches(self, batches: BatchTable, where: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a batch table that pass the condition."""
        return self._passing(lambda schema: _batch_rows(batches, where, schema))

    def of_records(self, chunk: RecordChunk, where: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of records that pass the condition; keys and values are copied of those alone."""
        if self._condition is not None:
            mask = self._condition.mask(_record_rows(chunk, where, self._asked)).fill_null(fill_value=False)
            passing = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
            columns = [one.name for one in fields(chunk) if one.name not in {"view", "batches"}]
            chunk = replace(chunk, **{name: getattr(chunk, name)[passing] for name in columns})
        if len(chunk.rows):
            yield _record_rows(chunk, where, self._schema)

    def of_rows(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that pass the condition."""
        return self._passing(lambda schema: pa.RecordBatch.from_pylist([*rows], schema=schema))

    def of_problem(self, where: Mapping[str, Any], words: str) -> pa.RecordBatch:
        """Return the row of something that can't be read; what it holds is not known, so the condition is not asked."""
        row = {name: where.get(name) for name in self._schema.names}
        return pa.RecordBatch.from_pylist([{**row, PROBLEM.name: words}], schema=self._schema)

    def _passing(self, rows_of: Callable[[pa.Schema], pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = rows_of(self._schema)
        if self._condition is not None:
            rows = rows.filter(self._condition.mask(rows_of(self._asked)).combine_chunks())
        if rows.num_rows:
            yield rows


def _batch_rows(batches: BatchTable, where: Mapping[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    attributes = batches["attributes"]

    def column(one: pa.Field) -> Any:
        match one.name:
            case "record_count":
                return batches["count"]
            case "base_timestamp_ms" | "max_timestamp_ms":
                return _known(batches[one.name.removesuffix("_ms")], one.type)
            case "partition_leader_epoch" | "producer_id" | "producer_epoch" | "base_sequence":
                return _known(batches[one.name], one.type)
            case "compression":
                codecs = np.array([*CODECS, *["unknown"] * (CODEC_MASK + 1 - len(CODECS))])
                return codecs[attributes & CODEC_MASK]
            case "is_transactional":
                return (attributes & TRANSACTIONAL_BIT) != 0
            case "is_control":
                return (attributes & CONTROL_BIT) != 0
        return batches[one.name]

    return _assembled(len(batches), where, schema, column)


def _record_rows(chunk: RecordChunk, where: Mapping[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    batches = chunk.batches

    def column(one: pa.Field) -> Any:
        match one.name:
            case "record_offset" | "header_count":
                return getattr(chunk, one.name.removeprefix("record_"))
            case "timestamp_ms" | "key_length" | "value_length" | "sequence":
                return _known(getattr(chunk, one.name), one.type)
            case "partition_leader_epoch" | "producer_id" | "producer_epoch":
                return _known(batches[one.name][chunk.rows], one.type)
            case "batch_position" | "batch_base_offset" | "magic":
                return batches[one.name.removeprefix("batch_")][chunk.rows]
            case "is_transactional":
                return (batches["attributes"][chunk.rows] & TRANSACTIONAL_BIT) != 0
            case "is_control":
                return (batches["attributes"][chunk.rows] & CONTROL_BIT) != 0
            case "headers":
                found = zip(chunk.header_position, chunk.end, chunk.header_count, strict=True)
                return pa.array([_headers(chunk.view, *place) for place in found], type=one.type)
        positions, lengths = getattr(chunk, f"{one.name}_position"), getattr(chunk, f"{one.name}_length")
        places = zip(positions.tolist(), lengths.tolist(), strict=True)
        return pa.array([slice_nullable(chunk.view, *place) for place in places], type=one.type)

    return _assembled(len(chunk.rows), where, schema, column)


def _headers(view: memoryview, start: int, end: int, count: int) -> list[dict[str, bytes | None]]:
    return [{"name": name, "value": value} for name, value in (parse_headers(view, start, end, count) if count else ())]


def _assembled(
    count: int, where: Mapping[str, Any], schema: pa.Schema, column: Callable[[pa.Field], Any]
) -> pa.RecordBatch:
    arrays = []
    for one in schema:
        if one.name in where or one.name == PROBLEM.name:
            arrays.append(pa.repeat(pa.scalar(where.get(one.name), one.type), count))
            continue
        values = column(one)
        arrays.append(values if isinstance(values, pa.Array) else pa.array(np.ascontiguousarray(values)).cast(one.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _known(values: Any, kind: pa.DataType) -> pa.Array:
    """Return Kafka's -1, which means none, as null."""
    return pa.array(np.ascontiguousarray(values), mask=np.asarray(values < 0)).cast(kind)
