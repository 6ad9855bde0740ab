"""`spark.read.format("kforensics")`: data directories as tables of replicas, segments, batches or records.

Options: `path` (a source as `fleet audit` takes it, or several separated by commas), `level` (`replicas`, `segments`,
`batches` or `records`), and `payloads` (`true` shows keys, values and headers of records, which are private). Filters on
topic, partition and offset choose the files that are read; Spark applies all filters again to the rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from kforensics.errors import EvidenceError, UsageError
from kforensics.fleet.places import find_sources
from kforensics.fleet.plan import IS_DIRECTORY, LogDirTask, list_rows, log_dir_tasks, place_of
from kforensics.fleet.scan import EarlierLooks, scan_piece
from kforensics.fleet.schemas import REPLICAS, SEGMENTS
from kforensics.fleet.sources import read_sources
from kforensics.formats.batch_table import CODEC_MASK, CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable
from kforensics.formats.records import Record
from kforensics.formats.segment import Level, iter_records, walk_segment
from kforensics.pipeline.diff import DiffOptions
from kforensics.source.mapped import open_evidence

FORMAT = "kforensics"

PARTITION_LENGTH = 128 << 20
"""Bytes that one Spark partition reads, about."""

RECORDS_A_BATCH = 4_096

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

_OFFSET_COLUMNS = frozenset({"offset", "base_offset", "last_offset", "first_offset", "batch_base_offset"})


def register(session: Any) -> None:
    """Make the format `kforensics` known to a session, of Spark Connect too, and let filters reach it."""
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    session.dataSource.register(KforensicsDataSource)


class KforensicsDataSource(DataSource):  # type: ignore[misc]
    """Data directories of Kafka brokers as a table."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of the level that is asked for."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(_schema_of(self.options))

    def reader(self, schema: StructType) -> "KforensicsReader":  # noqa: ARG002 - the level decides
        """A reader of the level that is asked for."""
        return KforensicsReader(dict(self.options))


def _schema_of(options: Mapping[str, str]) -> pa.Schema:
    level = options.get("level", "segments")
    if level not in LEVELS:
        raise UsageError(f"level {level!r}: expected one of {', '.join(LEVELS)}")
    schema = LEVELS[level]
    return pa.schema([*schema, *PAYLOADS]) if level == "records" and _shows_payloads(options) else schema


def _shows_payloads(options: Mapping[str, str]) -> bool:
    return options.get("payloads", "false").lower() == "true"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What filters leave to be read; an empty set stands for everything."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first_offset: int | None = None
    last_offset: int | None = None

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether a partition directory may have what is wanted."""
        if self.topics is not None and row["topic"] not in self.topics:
            return False
        return self.partitions is None or row["partition"] in self.partitions


@dataclass
class _Piece(InputPartition):  # type: ignore[misc]
    task: LogDirTask
    rows: list[Mapping[str, Any]] = field(default_factory=list)

    def __init__(self, task: LogDirTask, rows: list[Mapping[str, Any]]) -> None:
        super().__init__(None)
        self.task = task
        self.rows = rows


class KforensicsReader(DataSourceReader):  # type: ignore[misc]
    """Lists the files on the driver and reads them on the workers."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)
        self._level = options.get("level", "segments")
        self._wanted = Wanted()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Keep what narrows the choice of files; Spark applies every filter again."""
        for one in filters:
            self._wanted = _narrowed(self._wanted, one)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        """Runs of files of near-equal bytes."""
        paths = [one.strip() for one in self._options.get("path", "").split(",") if one.strip()]
        if not paths:
            raise UsageError('format "kforensics" needs a path: .load("/var/lib/kafka/data")')
        found = find_sources(read_sources(paths))
        pieces: list[InputPartition] = []
        for task in log_dir_tasks(found.inputs):
            if task.evidence is not None:
                raise UsageError(f"{task.evidence}: evidence of a scan is Parquet already: spark.read.parquet(…)")
            rows = [row for row in list_rows(task, DiffOptions()) if self._wanted.holds(row)]
            pieces += self._divided(task, self._within_offsets(rows))
        return pieces or [_Piece(None, [])]  # type: ignore[arg-type] # Spark wants one at least

    def _within_offsets(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The files that can hold the wanted offsets, by the offsets in their names."""
        if self._level == "replicas":
            return [row for row in rows if row["kind"] == IS_DIRECTORY]
        files = [row for row in rows if row["kind"] != IS_DIRECTORY]
        first, last = self._wanted.first_offset, self._wanted.last_offset
        out = []
        for place, row in enumerate(files):
            following = files[place + 1] if place + 1 < len(files) else None
            ends = (
                following["base_offset"]
                if following is not None
                and following["directory"] == row["directory"]
                and following["kind"] == row["kind"]
                and following["base_offset"] > row["base_offset"]
                else None
            )
            if last is not None and row["base_offset"] > last:
                continue
            if first is not None and ends is not None and ends <= first:
                continue
            out.append(row)
        return out

    @staticmethod
    def _divided(task: LogDirTask, rows: Sequence[Mapping[str, Any]]) -> Iterator[_Piece]:
        current: list[Mapping[str, Any]] = []
        length = 0
        for row in rows:
            current.append(row)
            length += row["length"] + (1 << 16)
            if length >= PARTITION_LENGTH:
                yield _Piece(task, current)
                current, length = [], 0
        if current:
            yield _Piece(task, current)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one run of files."""
        assert isinstance(partition, _Piece)
        if not partition.rows:
            return
        schema = _schema_of(self._options)
        if self._level in {"replicas", "segments"}:
            yield from self._summaries(partition, schema)
            return
        for row in partition.rows:
            yield from self._contents(partition.task, row, schema)

    def _summaries(self, piece: _Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        read = scan_piece(piece.task, piece.rows, place_of=place_of, earlier=EarlierLooks([]))
        rows = read.replicas if self._level == "replicas" else read.segments
        chosen = [{name: row[name] for name in schema.names} for row in rows]
        yield from pa.Table.from_pylist(chosen, schema=schema).to_batches()

    def _contents(self, task: LogDirTask, row: Mapping[str, Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        node = task.found.described.broker_id
        where = {
            "node_id": node if isinstance(node, int) else None,
            "topic": row["topic"],
            "partition": row["partition"],
            "path": row["path"],
        }
        try:
            with open_evidence(task.found.root / row["path"]) as file:
                if self._level == "batches":
                    for window in walk_segment(file, level=Level.CRC):
                        if len(window.batches):
                            yield _batch_rows(window.batches, where)
                    return
                yield from self._records(iter_records(file), where, schema)
        except EvidenceError:
            # Gone since it was listed: what could not be read is for an audit to name.
            return

    def _records(self, records: Iterable[Any], where: Mapping[str, Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        payloads = _shows_payloads(self._options)
        first, last = self._wanted.first_offset, self._wanted.last_offset
        rows: list[dict[str, Any]] = []
        for record in records:
            if not isinstance(record, Record) or (first is not None and record.offset < first):
                continue
            if last is not None and record.offset > last:
                if record.batch_base_offset > last:
                    break
                continue
            rows.append(_record_row(record, where, payloads=payloads))
            if len(rows) == RECORDS_A_BATCH:
                yield pa.RecordBatch.from_pylist(rows, schema=schema)
                rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _narrowed(wanted: Wanted, condition: Filter) -> Wanted:
    column: tuple[str, ...] = getattr(condition, "attribute", ())
    name = ".".join(column)
    value = getattr(condition, "value", None)
    if name in {"topic", "partition"} and isinstance(condition, EqualTo | In):
        values = frozenset(condition.value if isinstance(condition, In) else [value])
        if name == "topic":
            return replace(wanted, topics=values if wanted.topics is None else wanted.topics & values)
        return replace(wanted, partitions=values if wanted.partitions is None else wanted.partitions & values)
    if name not in _OFFSET_COLUMNS or not isinstance(value, int):
        return wanted
    # A batch's base and last offset lie on both sides of the records asked for: only bounds that hold for the whole file count.
    if isinstance(condition, EqualTo | GreaterThan | GreaterThanOrEqual) and name != "base_offset":
        wanted = replace(wanted, first_offset=max(value, wanted.first_offset or value))
    if isinstance(condition, EqualTo | LessThan | LessThanOrEqual) and name != "last_offset":
        wanted = replace(wanted, last_offset=min(value, value if wanted.last_offset is None else wanted.last_offset))
    return wanted


def _batch_rows(batches: BatchTable, where: Mapping[str, Any]) -> pa.RecordBatch:
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
    """Kafka's -1, which stands for none, as null."""
    return pa.array(np.ascontiguousarray(values), mask=np.asarray(values < 0))


def _record_row(record: Record, where: Mapping[str, Any], *, payloads: bool) -> dict[str, Any]:
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
