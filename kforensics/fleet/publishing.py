"""What the stages of an audit wrote -> the tables of the finished audit: few large parts, their rows counted, with columns for audit and cluster."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kforensics.errors import EvidenceUnreadable
from kforensics.fleet.schemas import AUDIT_TABLES
from kforensics.fleet.tables import Tables

PART_BYTES = 128 << 20
ROWS_A_GROUP = 1 << 16
"""Rows that are written, and found by their statistics, at once."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]|^[._]")

NO_CLUSTER = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder whose value is null, as Hive, Spark and pyarrow have it."""

NO_PART = "*"
"""Stands for no cluster, in the place of the one that gets an empty part."""

Counts = dict[str, dict[str, int]]
"""The rows of each part, by table."""

ClusterOf = Callable[[pa.Table], pa.Array]
"""Gives the cluster of each row of a part of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditStamp:
    """The values that distinguish the rows of an audit from those of others."""

    audit_id: str
    audited_ns: int
    depth: str = ""
    chains: Mapping[str | None, str] = field(default_factory=dict)
    """By cluster, the first of the audits that have rows of this one; this one itself where it has all."""

    @property
    def date(self) -> str:
        """The day of the audit, in UTC."""
        return datetime.fromtimestamp(self.audited_ns // 1_000_000_000, UTC).date().isoformat()

    def on(self, rows: pa.Table, clusters: pa.Array, schema: pa.Schema) -> pa.Table:
        """Return the rows with the columns of a finished audit."""
        count = rows.num_rows
        own = {
            "audit_id": pa.repeat(pa.scalar(self.audit_id), count),
            "audited_at": pa.repeat(pa.scalar(self.audited_ns // 1_000, pa.timestamp("us", tz="UTC")), count),
            "cluster_id": pc.cast(clusters, pa.string()),
        }
        if "chain" in schema.names:
            own["depth"] = pa.repeat(pa.scalar(self.depth), count)
            chains = [self.chains.get(one, self.audit_id) for one in clusters.to_pylist()]
            own["chain"] = pa.array(chains, pa.string())
        columns = [own[one.name] if one.name in own else pc.cast(rows[one.name], one.type) for one in schema]
        return pa.table(columns, schema=schema)


def part_stem(audit_id: str) -> str:
    """Return the name of an audit in names of files: of characters that no storage and no engine writes in another way.

    Args:
        audit_id: any text; one with other characters also gets a digest, so that two never get the same name.
    """
    plain = _UNSAFE.sub("_", audit_id)
    if plain == audit_id:
        return plain
    return f"{plain.lstrip('._-') or 'audit'}-{hashlib.sha256(audit_id.encode()).hexdigest()[:8]}"


def is_part_of(name: str, audit_id: str) -> bool:
    """Return whether a file of a history is a part of an audit, by its name."""
    return re.fullmatch(rf"{re.escape(part_stem(audit_id))}-\d{{5,}}\.parquet", name.rpartition("/")[2]) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The names of the parts: flat for one audit, in folders of cluster and day for a history."""

    stamp: AuditStamp
    is_history: bool = False

    def folder(self, cluster: str | None) -> str:
        """Return the folder of a cluster's rows, with a slash at its end; empty where there are no folders."""
        if not self.is_history:
            return ""
        named = NO_CLUSTER if cluster is None else quote(cluster, safe="")
        return f"cluster_id={named}/audit_date={self.stamp.date}/"

    def part(self, cluster: str | None, number: int) -> str:
        """Return the name of a part, with its folder."""
        stem = part_stem(self.stamp.audit_id) if self.is_history else "part"
        return f"{self.folder(cluster)}{stem}-{number:05d}"

    def schema(self, table: str) -> pa.Schema:
        """Return the columns in the files: not those that the folders are named by."""
        schema = AUDIT_TABLES[table]
        if not self.is_history:
            return schema
        return pa.schema([one for one in schema if one.name != "cluster_id"])


@dataclass(slots=True)
class _Part:
    """The part that is being written for one folder, and the rows that wait for it."""

    number: int = 0
    rows: int = 0
    waiting: list[pa.Table] = field(default_factory=list)
    waiting_rows: int = 0
    writer: pq.ParquetWriter | None = None
    stream: Any = None
    closing: ExitStack = field(default_factory=ExitStack)


class Publisher:
    """Writes the parts of finished tables.

    Args:
        target: where to.
    """

    def __init__(self, target: Tables, layout: Layout) -> None:
        self._target = target
        self._layout = layout

    def publish(
        self, table: str, chunks: Iterable[tuple[pa.Table, pa.Array]], *, empty_for: str | None
    ) -> dict[str, int]:
        """Write one table.

        Args:
            empty_for: the cluster whose folder gets an empty part where there are no rows: a table without any part is none for most readers;
                `NO_PART` where it has parts of earlier audits.
        """
        counts: dict[str, int] = {}
        parts: dict[str | None, _Part] = {}
        self._target.create([table])
        with ExitStack() as aborting:
            # An error reaches every stream that is open, so that none of them leaves a part.
            aborting.push(lambda *error: any(part.closing.__exit__(*error) for part in parts.values()))
            for rows, clusters in chunks:
                for cluster, own in self._by_folder(table, rows, clusters):
                    part = parts.setdefault(cluster, _Part())
                    part.waiting.append(own)
                    part.waiting_rows += own.num_rows
                    if part.waiting_rows >= ROWS_A_GROUP:
                        self._write(table, cluster, part)
                        if part.stream.tell() >= PART_BYTES:
                            self._close(cluster, part, counts)
            if not parts and empty_for != NO_PART:
                nothing = self._layout.schema(table).empty_table()
                parts[empty_for if self._layout.is_history else None] = _Part(waiting=[nothing])
            for cluster, part in parts.items():
                if part.waiting:
                    self._write(table, cluster, part)
                self._close(cluster, part, counts)
        return counts

    def _by_folder(self, table: str, rows: pa.Table, clusters: pa.Array) -> Iterator[tuple[str | None, pa.Table]]:
        stamped = self._layout.stamp.on(rows, clusters, AUDIT_TABLES[table])
        if not self._layout.is_history:
            if rows.num_rows:
                yield None, stamped
            return
        for cluster in pc.unique(stamped["cluster_id"]).to_pylist():
            column = stamped["cluster_id"]
            own = pc.is_null(column) if cluster is None else pc.fill_null(pc.equal(column, cluster), fill_value=False)
            yield cluster, stamped.filter(own).drop_columns(["cluster_id"])

    def _write(self, table: str, cluster: str | None, part: _Part) -> None:
        if part.writer is None:
            name = f"{self._layout.part(cluster, part.number)}.parquet"
            self._target.create([f"{table}/{self._layout.folder(cluster)}"])
            part.stream = part.closing.enter_context(self._target.stream(table, name))
            schema = self._layout.schema(table)
            part.writer = part.closing.enter_context(
                pq.ParquetWriter(part.stream, schema, compression="zstd", write_statistics=True)
            )
        rows = pa.concat_tables(part.waiting)
        part.writer.write_table(rows, row_group_size=ROWS_A_GROUP)
        part.rows += rows.num_rows
        part.waiting, part.waiting_rows = [], 0

    def _close(self, cluster: str | None, part: _Part, counts: dict[str, int]) -> None:
        if part.writer is None:
            return
        part.closing.close()
        counts[self._layout.part(cluster, part.number)] = part.rows
        part.writer, part.stream, part.rows = None, None, 0
        part.number += 1


def working_chunks(work: Tables, table: str, run: int, cluster_of: ClusterOf) -> Iterator[tuple[pa.Table, pa.Array]]:
    """Yield the parts that one attempt wrote of a table, one after the other; those of earlier attempts are left out."""
    for part in work.parts(table):
        if "run-" in part and f"run-{run:04d}-" not in part:
            continue
        rows = work.read_part(table, part)
        yield rows, cluster_of(rows)


def total_rows(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the number of rows of each table."""
    return {table: sum(parts.values()) for table, parts in counts.items()}


def check_rows(location: str, expected: Mapping[str, int], written: Mapping[str, int]) -> None:
    """Compare the rows that the stages reported with those that were found and published."""
    for table, count in expected.items():
        if written.get(table, 0) != count:
            causes = ("another program removes files there", "storage that does not show what was written before")
            raise EvidenceUnreadable(
                location,
                f"the table {table} has {written.get(table, 0):,} rows where the stages of the audit wrote {count:,}: the audit is not complete; "
                "the same command continues it",
                causes,
            )
