"""What the stages of an audit wrote -> the tables of the finished audit: few large parts, their rows counted, with columns for audit and cluster."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd
from pyarrow.fs import LocalFileSystem

from kforensics.errors import EvidenceUnreadable
from kforensics.fleet.schemas import AUDIT_TABLES
from kforensics.fleet.tables import HISTORY_PARTITIONING, WORK, Tables

ROWS_A_PART, ROWS_A_GROUP = 1 << 20, 1 << 16
"""Rows of a file, and of those that are found by their statistics at once."""
MOST_CLUSTERS = 1 << 20

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

    is_history: bool = False
    """Parts are in folders of cluster and day."""

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

    @property
    def stem(self) -> str:
        """The name of every part, up to its number."""
        return part_stem(self.audit_id) if self.is_history else "part"

    def folder(self, cluster: str | None) -> str:
        """Return the folder of a cluster's rows, with a slash at its end; empty where there are no folders."""
        if not self.is_history:
            return ""
        named = NO_CLUSTER if cluster is None else quote(cluster, safe="")
        return f"cluster_id={named}/audit_date={self.date}/"

    def with_folders(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the values that their folders are named by."""
        day = pa.repeat(pa.scalar(self.date), rows.num_rows)
        return rows.append_column("audit_date", day) if self.is_history else rows

    def schema(self, table: str) -> pa.Schema:
        """Return the columns in the files: not those that the folders are named by."""
        schema = AUDIT_TABLES[table]
        if not self.is_history:
            return schema
        return pa.schema([one for one in schema if one.name != "cluster_id"])


def part_stem(audit_id: str) -> str:
    """Return the name of an audit in names of files: of characters that no storage and no engine writes in another way, with a digest where it had others."""
    plain = _UNSAFE.sub("_", audit_id)
    if plain == audit_id:
        return plain
    return f"{plain.lstrip('._-') or 'audit'}-{hashlib.sha256(audit_id.encode()).hexdigest()[:8]}"


def is_part_of(name: str, audit_id: str) -> bool:
    """Return whether a file of a history is a part of an audit, by its name."""
    return re.fullmatch(rf"{re.escape(part_stem(audit_id))}-\d{{5,}}\.parquet", name.rpartition("/")[2]) is not None


def publish(
    target: Tables, stamp: AuditStamp, table: str, chunks: Iterable[tuple[pa.Table, pa.Array]], *, empty_for: str | None
) -> dict[str, int]:
    """Write the parts of one finished table, and return the rows of each.

    Args:
        empty_for: the cluster whose folder gets an empty part where there are no rows: a table without any part is none for most readers;
            `NO_PART` where it has parts of earlier audits.
    """
    stamped = (stamp.on(rows, clusters, AUDIT_TABLES[table]) for rows, clusters in chunks if rows.num_rows)
    first = next(stamped, None)
    target.create([table])
    if first is None:
        if empty_for == NO_PART:
            return {}
        part = f"{stamp.folder(empty_for)}{stamp.stem}-00000"
        target.create([f"{table}/{stamp.folder(empty_for)}"])
        schema = stamp.schema(table)
        target.write(table, part, schema.empty_table(), schema)
        return {part: 0}
    filesystem, place = target.place(table)
    is_here = isinstance(filesystem, LocalFileSystem)
    # Readers see no file of which a part is not written yet; storage shows none.
    begun = target.place(WORK, "published", table)[1] if is_here else place
    counts: dict[str, int] = {}

    def visit(written: Any) -> None:
        counts[written.path.removeprefix(f"{begun}/").removesuffix(".parquet")] = written.metadata.num_rows

    form = pd.ParquetFileFormat()
    schema = stamp.with_folders(first).schema
    pd.write_dataset(
        (batch for rows in chain([first], stamped) for batch in stamp.with_folders(rows).to_batches()),
        begun,
        schema=schema,
        filesystem=filesystem,
        format=form,
        file_options=form.make_write_options(compression="zstd", write_statistics=True),
        basename_template=f"{stamp.stem}-0000{{i}}.parquet",
        partitioning=HISTORY_PARTITIONING if stamp.is_history else None,
        use_threads=False,
        max_partitions=MOST_CLUSTERS,
        min_rows_per_group=ROWS_A_GROUP,
        max_rows_per_group=ROWS_A_GROUP,
        max_rows_per_file=ROWS_A_PART,
        file_visitor=visit,
        existing_data_behavior="overwrite_or_ignore",
    )
    for part in counts if is_here else ():
        target.create([f"{table}/{part.rpartition('/')[0]}"])
        filesystem.move(f"{begun}/{part}.parquet", f"{place}/{part}.parquet")
    return counts


def working_chunks(work: Tables, table: str, run: int, cluster_of: ClusterOf) -> Iterator[tuple[pa.Table, pa.Array]]:
    """Yield the parts that one attempt wrote of a table, one after the other; those of earlier attempts are left out."""
    for part in work.parts(table):
        if "run-" in part and f"run-{run:04d}-" not in part:
            continue
        rows = work.read_part(table, part)
        yield rows, cluster_of(rows)


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
