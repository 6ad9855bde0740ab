"""`spark.read.format("kforensics")`: data directories as tables of replicas, segments, batches or records.

Options: `path` (a source as `fleet audit` takes it, or several separated by commas), `level` (`replicas`, `segments`,
`batches` or `records`), and `payloads` (`true` shows keys, values and headers of records, which are private). Filters on
topic, partition and offset choose the files that are read; Spark applies all filters again to the rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from kforensics.commands.diff import DiffOptions
from kforensics.errors import EvidenceError, UsageError
from kforensics.fleet.level_rows import batch_rows, record_row, schema_of, shows_payloads
from kforensics.fleet.places import find_sources
from kforensics.fleet.plan import IS_DIRECTORY, LogDirTask, list_rows, log_dir_tasks, place_of
from kforensics.fleet.pushdown import Wanted, narrowed
from kforensics.fleet.scan import EarlierLooks, scan_piece
from kforensics.fleet.sources import read_sources
from kforensics.formats.log.records import Record
from kforensics.formats.segment.walk import Level, iter_records, walk_segment
from kforensics.source.mapped import open_evidence

FORMAT = "kforensics"

PARTITION_LENGTH = 128 << 20
"""Bytes that one Spark partition reads, about."""

RECORDS_A_BATCH = 4_096


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

        return from_arrow_schema(schema_of(self.options))

    def reader(self, schema: StructType) -> "KforensicsReader":  # noqa: ARG002 - the level decides
        """A reader of the level that is asked for."""
        return KforensicsReader(dict(self.options))


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
            self._wanted = narrowed(self._wanted, one)
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
        schema = schema_of(self._options)
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
                            yield batch_rows(window.batches, where)
                    return
                yield from self._records(iter_records(file), where, schema)
        except EvidenceError:
            # Removed since it was listed: what could not be read is for an audit to name.
            return

    def _records(self, records: Iterable[Any], where: Mapping[str, Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        payloads = shows_payloads(self._options)
        first, last = self._wanted.first_offset, self._wanted.last_offset
        rows: list[dict[str, Any]] = []
        for record in records:
            if not isinstance(record, Record) or (first is not None and record.offset < first):
                continue
            if last is not None and record.offset > last:
                if record.batch_base_offset > last:
                    break
                continue
            rows.append(record_row(record, where, payloads=payloads))
            if len(rows) == RECORDS_A_BATCH:
                yield pa.RecordBatch.from_pylist(rows, schema=schema)
                rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=schema)
