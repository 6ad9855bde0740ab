"""The content that the evidence of a scan carries beyond digests, so that an audit can read it as it reads the files.

A row a batch; digests of records where batches alone decide nothing, as in compacted logs and old formats; and the offsets
that consumer groups committed. No key, value or header leaves the broker. Each partition directory has a part of its own.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pd
import pyarrow.parquet as pq

from kforensics.errors import EvidenceError
from kforensics.evidence.captured.columns import Row, known
from kforensics.evidence.captured.taking import control_types, digest_record
from kforensics.evidence.group_commits import commits_in_file, highest_commits
from kforensics.evidence.model import Problem
from kforensics.fleet.plan import IS_DIRECTORY, IS_SEGMENT, LogDirTask, place_of
from kforensics.fleet.report_rows import problem_row
from kforensics.fleet.schemas import CARRIED_BATCHES, CARRIED_COMMITS, CARRIED_RECORDS
from kforensics.fleet.tables import Tables
from kforensics.formats.log.batch_table import BatchTable
from kforensics.formats.log.records import Record
from kforensics.formats.primitives.word_buffer import SegmentBytes
from kforensics.formats.segment.walk import iter_records
from kforensics.protocol.coordinators import created_policy
from kforensics.source.mapped import open_evidence
from kforensics.units import OFFSETS_TOPIC

CONTENT_TABLES = ("batches", "records", "commits")

ROW_GROUP = 1 << 16
_COPIED = tuple(
    name for name in CARRIED_BATCHES.names if name not in {"path", "control", "crc"}
)  # columns that are in the batch table by the same name

Listed = Mapping[str, Any]
"""A row of the listing of a log directory."""


def content_part(source: str, directory: str) -> str:
    """Return the part that holds the content of a partition directory.

    Args:
        directory: its path, relative to the input.
    """
    return f"{source}-{hashlib.sha256(directory.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"


class ContentKeeper:
    """Writes the content of one log directory while it is scanned; what was not read again is taken from the earlier parts."""

    def __init__(self, tables: Tables, task: LogDirTask) -> None:
        self._tables = tables
        self._task = task
        self._before = {name: frozenset(tables.parts(name)) for name in CONTENT_TABLES}
        self._reused: frozenset[str] = frozenset()
        self._renewed: frozenset[str] = frozenset()
        self._open: ExitStack = ExitStack()
        self._batches: _Sink | None = None
        self.parts: set[str] = set()
        """The parts that this scan wrote or left as they were."""

    def expect(self, rows: Sequence[Listed], reused: frozenset[str]) -> None:
        """Expect the next run of whole partition directories.

        Args:
            reused: paths of files that are not read again; the content of a directory with others is written again.
        """
        self._reused = reused
        fresh = {row["directory"] for row in rows if row["kind"] == IS_SEGMENT and row["path"] not in reused}
        directories = {row["path"] for row in rows if row["kind"] == IS_DIRECTORY}
        self._renewed = frozenset(
            one for one in directories if one in fresh or self._part(one) not in self._before["batches"]
        )

    def directory(self, row: Listed) -> None:
        """Begin a partition directory, whose segments follow."""
        self._close()
        self.parts.add(self._part(row["path"]))
        if row["path"] in self._renewed:
            self._batches = self._sink("batches", row["path"], CARRIED_BATCHES, self._open)

    def taken_over(self, row: Listed) -> None:
        """Copy the content of a segment that is as it was."""
        if self._batches is not None and row["kind"] == IS_SEGMENT:
            self._batches.add(self._earlier("batches", row))

    def segment(self, row: Listed, source: SegmentBytes) -> Callable[[BatchTable], None] | None:
        """Return the function that receives a segment's batches as they are read, None where they are not kept.

        Args:
            source: the segment, from which control records are read.
        """
        sink = self._batches
        if sink is None or row["kind"] != IS_SEGMENT:
            return None
        return lambda batches: sink.add(_batch_table(batches[batches["crc_valid"]], row["path"], source))

    def finish(self, rows: Sequence[Listed], scanned: Sequence[Row], replicas: Sequence[Row]) -> Iterator[Row]:
        """Write what needs the whole of a directory; gives what could not be read.

        Args:
            scanned: the segments in it, read or taken over.
            replicas: its partition directories, which learn what is carried of them.
        """
        self._close()
        by_directory: dict[str, list[Listed]] = {}
        for row in rows:
            if row["kind"] == IS_SEGMENT:
                by_directory.setdefault(row["directory"], []).append(row)
        read: dict[str, list[Row]] = {}
        for row in scanned:
            read.setdefault(row["directory"], []).append(row)
        listed = {row["path"]: row for row in rows if row["kind"] == IS_DIRECTORY}
        for replica in replicas:
            directory = listed[replica["path"]]
            own = by_directory.get(replica["path"], [])
            is_by_record = _is_by_record(directory, read.get(replica["path"], []))
            replica["content"] = "records" if is_by_record else "batches"
            if is_by_record:
                yield from self._write(directory, own, "records", CARRIED_RECORDS, self._records)
            if directory["topic"] == OFFSETS_TOPIC:
                yield from self._write(directory, own, "commits", CARRIED_COMMITS, self._commits)

    def remove_others(self) -> None:
        """Remove the content of directories that no longer exist."""
        for name in CONTENT_TABLES:
            for part in self._tables.parts(name):
                if part.startswith(f"{self._task.source}-") and part not in self.parts:
                    self._tables.remove(name, part)

    def _part(self, directory: str) -> str:
        return content_part(self._task.source, directory)

    def _close(self) -> None:
        if self._batches is not None:
            self._batches.flush()
        self._batches = None
        self._open.close()

    def _sink(self, table: str, directory: str, schema: pa.Schema, stack: ExitStack) -> "_Sink":
        return _Sink(stack.enter_context(self._tables.writing(table, self._part(directory), schema)), schema)

    def _earlier(self, table: str, row: Listed) -> pa.Table:
        return self._tables.read_part(table, self._part(row["directory"]), filters=pd.field("path") == row["path"])

    def _write(
        self,
        directory: Listed,
        segments: Sequence[Listed],
        table: str,
        schema: pa.Schema,
        read: Callable[[Listed, Listed], Iterator[pa.Table]],
    ) -> Iterator[Row]:
        has_earlier = self._part(directory["path"]) in self._before[table]
        if has_earlier and directory["path"] not in self._renewed:
            return
        with ExitStack() as stack:
            sink = self._sink(table, directory["path"], schema, stack)
            for row in segments:
                if has_earlier and row["path"] in self._reused:
                    sink.add(self._earlier(table, row))
                    continue
                try:
                    for content in read(directory, row):
                        sink.add(content)
                except EvidenceError as error:
                    yield problem_row(Problem(input=self._task.input, path=row["path"], message=error.problem))
            sink.flush()

    def _records(self, _directory: Listed, row: Listed) -> Iterator[pa.Table]:
        with open_evidence(self._task.found.root / row["path"]) as file:
            rows: list[Row] = []
            for record in iter_records(file):
                if isinstance(record, Record):
                    rows.append(_record_row(record, row["path"]))
                if len(rows) >= ROW_GROUP:
                    yield pa.Table.from_pylist(rows, schema=CARRIED_RECORDS)
                    rows = []
            yield pa.Table.from_pylist(rows, schema=CARRIED_RECORDS)

    def _commits(self, directory: Listed, row: Listed) -> Iterator[pa.Table]:
        found = highest_commits(commits_in_file(place_of(self._task, directory), row["path"]))
        rows = [
            {
                "path": row["path"],
                "topic": one.partition.topic,
                "partition": one.partition.partition,
                "group_id": one.group,
                "group": one.group,
                "committed_offset": one.offset,
                "leader_epoch": known(one.leader_epoch),
                "time_ms": one.time_ms,
                "position": getattr(one.citation.span, "position", 0),
            }
            for one in found
        ]
        yield pa.Table.from_pylist(rows, schema=CARRIED_COMMITS)


class _Sink:
    """Rows that gather until they are worth a row group."""

    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema) -> None:
        self._writer = writer
        self._schema = schema
        self._waiting: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        self._waiting.append(rows.cast(self._schema))
        if sum(map(len, self._waiting)) >= ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        rows = pa.concat_tables(self._waiting) if self._waiting else self._schema.empty_table()
        if len(rows):
            self._writer.write_table(rows, row_group_size=ROW_GROUP)
        self._waiting = []


def _is_by_record(directory: Mapping[str, Any], segments: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether records must be compared because batches do not decide: after compaction, or a conversion between old formats."""
    if directory["cleaner_point"] is not None or created_policy(directory["topic"]) == "compact":
        return True
    return any(row["is_thinned"] or min(row["magics"] or [2]) < 2 for row in segments)


def _batch_table(batches: BatchTable, path: str, source: SegmentBytes) -> pa.Table:
    columns: dict[str, Any] = {name: np.ascontiguousarray(batches[name]) for name in _COPIED}
    columns["crc"] = batches["crc"].astype(np.int64)
    columns["path"] = pa.repeat(pa.scalar(path), len(batches))
    columns["control"] = pa.array(control_types(batches, source), pa.int16())
    return pa.table([pa.array(columns[one.name], type=one.type) for one in CARRIED_BATCHES], schema=CARRIED_BATCHES)


def _record_row(record: Record, path: str) -> Row:
    digested = digest_record(record)
    return {
        "path": path,
        "record_offset": record.offset,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key_digest": digested.key,
        "value_digest": None if record.is_control else digested.value,
        "headers_digest": digested.headers[0][0] if digested.headers and not record.is_control else None,
        "batch_position": record.batch_position,
        "batch_base_offset": record.batch_base_offset,
        "producer_id": record.producer_id,
        "magic": record.magic,
        "is_transactional": record.is_transactional,
        "is_control": record.is_control,
    }
