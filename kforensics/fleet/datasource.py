"""`spark.read.format("kforensics")`: data directories as tables of replicas, segments, batches or records.

Options: `path` (a source as `fleet audit` takes it, or several separated by commas); `level` (`replicas`, `segments`, `batches` or `records`);
`where` (a condition in SQL that is applied where the files are read); `columns` (names separated by commas, nothing else is produced);
`trust_names` (`true` leaves out segments whose names say that they hold none of the wanted offsets); `trust_indexes` (`true` leaves out what is older
than the wanted times by time indexes that a clean stop or a recovery point vouches for); `problems` (`error`, or `rows`: what can't be
read is a row with its `problem`); `payloads` (`true` shows keys, values and headers of records, which are private).

Spark's own filters are not pushed down: Spark 4.1 to 4.3 keeps what the plan of one query pushed into a Python data source for every later use of the
same DataFrame (`PythonDataSourceV2.setReadInfo`), so that a count after a filter, or a join of two filters, misses rows. A `where` belongs to one DataFrame.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kforensics.ask.model import Ask
from kforensics.damage import Absent, Damage
from kforensics.errors import EvidenceError, EvidenceUnreadable, UsageError
from kforensics.evidence.content import find_range, time_entries
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.collect import CHANGED_MEANWHILE
from kforensics.fleet.condition import Fact, parse_condition
from kforensics.fleet.facts import unpacked
from kforensics.fleet.level_rows import Projection, chosen_schema, has_problem_rows, is_set, schema_of
from kforensics.fleet.pieces import scan_piece
from kforensics.fleet.plan import IS_DELETED_SEGMENT, IS_DIRECTORY, LogDirLister, LogDirTask, log_dir_tasks
from kforensics.fleet.rows import problem_of, replica_row
from kforensics.fleet.sources import find_sources, read_sources
from kforensics.formats.segment.walk import Level, iter_record_chunks, walk_segment
from kforensics.source.mapped import EvidenceFile, open_evidence

FORMAT = "kforensics"

PARTITION_LENGTH = 128 << 20
"""Bytes that one Spark partition reads, about."""

_NEWEST: Mapping[str, str] = {
    "segments": "max_timestamp_ms",
    "batches": "max_timestamp_ms",
    "records": "timestamp_ms",
}
"""The column of a level that a time index bounds. A batch's base timestamp is none: where a delete horizon is set, it is that (KIP-534)."""

_OPTIONS = frozenset({"path", "level", "where", "columns", "trust_names", "trust_indexes", "problems", "payloads"})


def register(session: Any) -> None:
    """Make the format `kforensics` known to a session."""
    session.dataSource.register(KforensicsDataSource)


class KforensicsDataSource(DataSource):  # type: ignore[misc]
    """Data directories of Kafka brokers as a table."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of the level that is asked for."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(chosen_schema(self.options))

    def reader(self, schema: StructType) -> "KforensicsReader":
        """Return a reader of the columns of a schema."""
        from pyspark.sql.pandas.types import from_arrow_schema

        options = {name.lower(): value for name, value in self.options.items()}
        known = {one.name: one.dataType for one in from_arrow_schema(chosen_schema(options)).fields}
        for one in schema.fields:
            if one.name not in known or known[one.name].simpleString() != one.dataType.simpleString():
                expected = known[one.name].simpleString() if one.name in known else f"one of {', '.join(known)}"
                raise UsageError(f"column {one.name} {one.dataType.simpleString()}: expected {expected}")
        return KforensicsReader(options, tuple(one.name for one in schema.fields))


@dataclass
class _Piece(InputPartition):  # type: ignore[misc]
    task: LogDirTask | None
    rows: list[Mapping[str, Any]]
    problems: Sequence[Problem] = ()


class KforensicsReader(DataSourceReader):  # type: ignore[misc]
    """Lists the files where the query is planned, and reads them on the workers.

    Args:
        names: the columns to produce; all that the options ask for where none are given.
    """

    def __init__(self, options: Mapping[str, str], names: Sequence[str] | None = None) -> None:
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise UsageError(f"option {', '.join(unknown)}: expected some of {', '.join(sorted(_OPTIONS))}")
        self._paths = [one.strip() for one in options.get("path", "").split(",") if one.strip()]
        self._level = options.get("level", "segments")
        self._trusts_names = is_set(options, "trust_names")
        self._trusts_indexes = is_set(options, "trust_indexes")
        self._has_problem_rows = has_problem_rows(options)
        whole, chosen = schema_of(options), chosen_schema(options)
        text = options.get("where")
        self._condition = None if text is None else parse_condition(text, whole)
        wanted = chosen if names is None else pa.schema([chosen.field(name) for name in names])
        self._projection = Projection(wanted, whole, self._condition)

    def partitions(self) -> Sequence[InputPartition]:
        """Return runs of files of near-equal bytes.

        Raises:
            UsageError: there is no path, or one of evidence that needs no reading.
            EvidenceError: a source, or without problem rows a directory, can't be read.
        """
        if not self._paths:
            raise UsageError('format "kforensics" needs a path: .load("/var/lib/kafka/data")')
        pieces: list[InputPartition] = []
        for task in log_dir_tasks(find_sources(read_sources(self._paths)).inputs):
            if not self._may_hold({"node_id": _exactly(_node_of(task))}):
                continue
            lister = LogDirLister(task, Ask())
            if lister.problems:
                self._refuse(task, lister.problems[0])
                pieces.append(_Piece(task, [], lister.problems))
            pieces += _divided(task, self._wanted(task, lister.rows()))
        return pieces or [_Piece(None, [])]  # Spark wants one at least

    def _wanted(self, task: LogDirTask, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the rows of a listing that can hold what passes the condition."""
        if self._level == "replicas":
            return [
                row
                for row in rows
                if row["kind"] == IS_DIRECTORY
                and self._may_hold({**_facts(task, row), "state": _exactly(row["state"])})
            ]
        files = [row for row in rows if row["kind"] != IS_DIRECTORY]
        following = [*files[1:], None] if files else []
        wanted = [
            (row, after)
            for row, after in zip(files, following, strict=True)
            if self._may_hold(self._known(task, row, after))
        ]
        if not self._trusts_indexes or self._condition is None or _NEWEST[self._level] not in self._condition.columns:
            return [row for row, _ in wanted]
        flushed = {row["path"]: row["recovery_point"] for row in rows if row["kind"] == IS_DIRECTORY}
        is_clean = bool(task.found.log_dirs) and task.found.log_dirs[0].clean_shutdown
        out: list[Mapping[str, Any]] = []
        for row, after in wanted:
            behind = _next_base(row, after)
            point = flushed.get(row["directory"])
            is_flushed = behind is not None and point is not None and behind <= point
            out.append({**row, "is_closed": behind is not None, "has_sound_index": is_clean or is_flushed})
        return out

    def _known(self, task: LogDirTask, row: Mapping[str, Any], after: Mapping[str, Any] | None) -> dict[str, Fact]:
        facts = _facts(task, row)
        base = row["base_offset"]
        if self._level == "segments":
            is_deleted = row["kind"] == IS_DELETED_SEGMENT
            return {
                **facts,
                "base_offset": _exactly(base),
                "is_deleted": _exactly(is_deleted),
                "directory": _exactly(row["directory"]),
            }
        if not self._trusts_names:
            return facts
        behind = _next_base(row, after)
        last = None if behind is None else behind - 1
        of_records = ("record_offset", "batch_base_offset")
        columns = ("base_offset", "last_offset") if self._level == "batches" else of_records
        return {**facts, **dict.fromkeys(columns, (base, last))}

    def _first_wanted(self, task: LogDirTask, row: Mapping[str, Any]) -> int | None:
        """Return the offset from which on a segment can hold what passes the condition, by its time index; None where it holds none.

        An entry bounds what is before it; the last one of a closed segment bounds all (`LogSegment.onBecomeInactiveSegment`).
        """
        if not row.get("has_sound_index"):
            return 0
        where = _facts(task, row)
        column = _NEWEST[self._level]
        if self._may_hold({**where, column: None}):  # records without a timestamp are older than any, and null
            return 0
        entries = time_entries(task.found.root / row["path"], row["base_offset"])
        if entries is None:
            return 0
        times, offsets = entries

        def is_wanted(newest_ms: Any) -> bool:
            return self._may_hold({**where, column: (None, int(newest_ms))})

        # What no older record passes may still pass newer ones, and not the reverse.
        count = bisect_left(times, x=True, key=is_wanted)
        if not count:
            return 0
        return None if count == len(times) and row["is_closed"] else int(offsets[count - 1]) + 1

    def _may_hold(self, facts: Mapping[str, Fact]) -> bool:
        return self._condition is None or self._condition.may_hold(facts)

    def _refuse(self, task: LogDirTask, problem: Problem) -> None:
        if not self._has_problem_rows:
            words = f"{problem.message}; with the option problems=rows this is a row, and the others are read"
            raise EvidenceUnreadable(str(task.found.root / problem.path), words)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one run of files.

        Raises:
            EvidenceUnreadable: a file can't be read, and there are no problem rows.
        """
        assert isinstance(partition, _Piece)
        task = partition.task
        if task is None:
            return
        for problem in partition.problems:
            yield self._projection.of_problem({"node_id": _node_of(task), "path": problem.path}, problem.message)
        if not partition.rows:
            return
        if self._level in {"replicas", "segments"}:
            rows = [row for row in partition.rows if self._first_wanted(task, row) is not None]
            yield from self._summaries(task, rows)
            return
        for row in partition.rows:
            where = _where(task, row)
            first = self._first_wanted(task, row)
            if first is None:
                continue
            try:
                with open_evidence(task.found.root / row["path"]) as file:
                    start = _start_of(file, row, first)
                    for part in self._contents(file, where, start):
                        if isinstance(part, pa.RecordBatch):
                            yield part
                        elif self._has_problem_rows:
                            yield self._projection.of_problem(where, _words(part))
            except EvidenceError as error:
                problem = Problem(input=task.input, path=row["path"], message=error.problem)
                self._refuse(task, problem)
                yield self._projection.of_problem(where, problem.message)

    def _summaries(self, task: LogDirTask, rows: Sequence[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
        read = scan_piece(task, rows)
        listed = {row["path"]: row for row in rows}
        for problem in map(problem_of, read.problems):
            # A log that grew meanwhile was read; its row says that it changed.
            if problem.message != CHANGED_MEANWHILE:
                self._refuse(task, problem)
                where = _where(task, listed[problem.path]) if problem.path in listed else {"path": problem.path}
                if self._has_problem_rows:
                    yield self._projection.of_problem(where, problem.message)
        replicas = (replica_row(unpacked(row["replica"]), row) for row in read.replicas)
        yield from self._projection.of_rows(list(replicas) if self._level == "replicas" else read.segments)

    def _contents(self, file: Any, where: Mapping[str, Any], start: int) -> Iterator[pa.RecordBatch | Damage]:
        if self._level == "records":
            for chunk in iter_record_chunks(file, start=start):
                if isinstance(chunk, Damage):
                    yield chunk
                else:
                    yield from self._projection.of_records(chunk, where)
            return
        for window in walk_segment(file, level=Level.CRC, start=start):
            yield from window.damage
            yield from self._projection.of_batches(window.batches, where)


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


def _next_base(row: Mapping[str, Any], after: Mapping[str, Any] | None) -> int | None:
    """Return the base offset of the segment behind one, none where it is the last of its directory."""
    is_next = after is not None and (after["directory"], after["kind"]) == (row["directory"], row["kind"])
    return after["base_offset"] if after is not None and is_next and after["base_offset"] > row["base_offset"] else None


def _start_of(file: EvidenceFile, row: Mapping[str, Any], first: int) -> int:
    """Return the position from which on a segment holds an offset and all behind it."""
    if not first:
        return 0
    found = find_range(file, file.path, row["base_offset"], from_offset=first, to_offset=None, from_time_ms=None)
    return found.start


def _node_of(task: LogDirTask) -> int | None:
    node = task.found.described.broker_id
    return None if isinstance(node, Absent) or not task.found.log_dirs else node


def _where(task: LogDirTask, row: Mapping[str, Any]) -> dict[str, Any]:
    return {"node_id": _node_of(task), **{name: row[name] for name in ("topic", "partition", "path")}}


def _facts(task: LogDirTask, row: Mapping[str, Any]) -> dict[str, Fact]:
    return {name: _exactly(value) for name, value in _where(task, row).items()}


def _exactly(value: Any) -> Fact:
    return None if value is None else (value, value)


def _words(damage: Damage) -> str:
    return f"at byte {damage.span.position}: expected {damage.expected}, found {damage.found}"
