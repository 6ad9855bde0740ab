"""The tables of a finished audit as DataFrames of Spark, on whatever storage they are, and written by Spark's own writers into the tables of a catalog.

The parts are read by the workers as this package reads them everywhere: a cluster needs no Hadoop libraries and no credentials for their storage beside those that are given here.
"""

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from kforensics.errors import EvidenceUnreadable, UsageError, did_you_mean, nearest_names
from kforensics.fleet.audit_tables import AuditTables
from kforensics.fleet.file_systems import redacted
from kforensics.fleet.schemas import AUDIT_TABLES
from kforensics.fleet.stages import errors_of_tasks, naming_task


class _Part(InputPartition):  # type: ignore[misc]
    """One part of a table, read by a task of its own."""


class _Reader(DataSourceReader):  # type: ignore[misc]
    """Reads the parts of a table of an audit."""

    def __init__(self, audit: AuditTables, table: str) -> None:
        self._audit = audit
        self._table = table
        self._parts = audit.parts(table)

    def partitions(self) -> Sequence[InputPartition]:
        return [*map(_Part, range(len(self._parts)))] or [_Part(-1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        number = partition.value
        if number >= 0:
            with naming_task(number):
                yield from self._audit.dataset(self._table, [self._parts[number]]).to_batches()


def frame_of(session: Any, audit: AuditTables, table: str) -> Any:
    """Return all rows of a table of an audit as a DataFrame."""
    if table not in AUDIT_TABLES:
        raise UsageError(f"an audit has no table {table}; there are {', '.join(AUDIT_TABLES)}")
    named = f"kforensics_{table}_{zlib.crc32(f'{audit} {audit.audit_id}'.encode()):08x}"

    class Source(DataSource):  # type: ignore[misc]
        """The table, under a name that no other one of the session has."""

        @classmethod
        def name(cls) -> str:
            return named

        def schema(self) -> Any:
            return from_arrow_schema(AUDIT_TABLES[table])

        def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002 - all columns are there
            return _Reader(audit, table)

    session.dataSource.register(Source)
    return session.read.format(named).load()


_NAME = re.compile(r"(`[^`]+`|\w+)(\.(`[^`]+`|\w+))*")
_OWN_CATALOG = "spark_catalog"


def check_schema_name(schema: str, settings: Mapping[str, str] | None) -> None:
    """Refuse a schema that can't be one, before a session is started.

    Args:
        settings: those of the session that will be; none where another program makes it.

    Raises:
        UsageError: it is no name, or of a catalog that is not configured.
    """
    if _NAME.fullmatch(schema) is None:
        raise UsageError(f"--save-to {schema} is no name of a schema; expected one such as lake.kafka")
    catalog, dot, _ = schema.partition(".")
    prefix = "spark.sql.catalog."
    if settings is None or not dot or catalog == _OWN_CATALOG or f"{prefix}{catalog}" in settings:
        return
    named = {one.removeprefix(prefix).partition(".")[0] for one in settings if one.startswith(prefix)}
    hint = did_you_mean(nearest_names(catalog, named)) or f"give --spark-conf {prefix}{catalog}=…"
    raise UsageError(f"--save-to {schema}: Spark has no catalog {catalog}; {hint}")


def check_schema(session: Any, schema: str) -> None:
    """Refuse a schema that the catalog does not have, before anything is read.

    Raises:
        UsageError: it is not there, or can't be asked for.
    """
    from pyspark.errors import PySparkException

    try:
        is_there = session.catalog.databaseExists(schema)
    except PySparkException as error:
        raise UsageError(f"--save-to {schema}: the catalog does not say what it has: {_first_line(error)}") from error
    if not is_there:
        raise UsageError(f"--save-to {schema}: there is no such schema; make it first: create schema {schema}")


def save_tables(session: Any, audit: AuditTables, schema: str) -> None:
    """Write the tables of an audit into the tables of a catalog, which are made where they are not there; what they have of this audit is replaced.

    Rows that earlier audits wrote are written where the catalog has not all of these audits: then this one is there as a whole, under its own name.

    Args:
        schema: of the catalog, such as `lake.kafka`; the catalog and its format are those of Spark's configuration.

    Raises:
        UsageError: the catalog has no such schema, or its tables can't replace a part of their rows.
        EvidenceUnreadable: storage or Spark failed.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import col

    name = f"{schema}.nodes"
    try:
        with errors_of_tasks(audit):
            is_whole = not _has_chain(session, audit, name)
        # What tells whether an audit is there is written last.
        for table in sorted(AUDIT_TABLES, key=lambda one: one == "nodes"):
            name = f"{schema}.{table}"
            with errors_of_tasks(audit):
                writer = _saved(frame_of(session, audit, table), audit, table, is_whole=is_whole).writeTo(name)
                if session.catalog.tableExists(name):
                    writer.overwrite(col("audit_id") == audit.audit_id)
                else:
                    writer.create()
    except EvidenceUnreadable as error:
        cause = error.__cause__
        if not isinstance(cause, AnalysisException):
            raise
        raise UsageError(f"--save-to {schema}: {name} can't be written: {_first_line(cause)}") from error


def _first_line(error: Exception) -> str:
    """Return what an error of Spark says first, without credentials."""
    return redacted(str(error).strip().partition("\n")[0])


def _has_chain(session: Any, audit: AuditTables, nodes: str) -> bool:
    """Return whether a table of nodes has all audits that wrote rows of this one, in its chain."""
    if not audit.kept_from or not session.catalog.tableExists(nodes):
        return not audit.kept_from
    return set(audit.kept_from) <= _audits_of(session, nodes, sorted(set(audit.manifest["chains"].values())))


def _audits_of(session: Any, nodes: str, chains: Sequence[str]) -> set[str]:
    from pyspark.sql.functions import col

    found = session.table(nodes).where(col("chain").isin(list(chains))).select("audit_id").distinct().collect()
    return {row.audit_id for row in found}


def _saved(frame: Any, audit: AuditTables, table: str, *, is_whole: bool) -> Any:
    """Return the rows of a table that are written: its own ones, or all under its name."""
    from pyspark.sql.functions import col, lit

    if not audit.kept_from:
        return frame
    if not is_whole:
        return frame.where(col("audit_id") == audit.audit_id)
    if table == "replaced":
        return frame.limit(0)
    own = {"audit_id": lit(audit.audit_id), "audited_at": lit(audit.moment)}
    return frame.withColumns({**own, "chain": own["audit_id"]} if table == "nodes" else own)
