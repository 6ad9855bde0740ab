"""The finished parts of a history, committed to the log of a table format, so that other engines see an audit's rows of a table all at once.

The parts themselves, and the manifests by which they are read here, are those of a plain history.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from importlib.util import find_spec
from typing import Any, Protocol

import pyarrow as pa

from kforensics.errors import MissingExtra
from kforensics.fleet.publishing import folder_values, is_part_of
from kforensics.fleet.schemas import AUDIT_TABLES
from kforensics.fleet.tables import Tables

PARTITIONED_BY = ("cluster_id", "audit_date")


class TableFormat(StrEnum):
    """How other engines find the rows of a history."""

    PARQUET = "parquet"
    """Files in folders, as Hive lays them out."""
    DELTA = "delta"
    """Delta Lake: the same files, and a log of them."""
    ICEBERG = "iceberg"
    """Iceberg: the same files, and the metadata of a table without a catalog."""


_PACKAGES = {TableFormat.DELTA: "deltalake", TableFormat.ICEBERG: "pyiceberg"}


class TableLog(Protocol):
    """The log of a table format."""

    def commit(self, table: str, parts: Mapping[str, int]) -> None:
        """Add the parts of an audit to a table.

        Args:
            table: a key of `AUDIT_TABLES`.
            parts: rows by the name of the part.
        """
        ...

    def forget(self, audit_id: str) -> None:
        """Take back what an audit that did not finish committed.

        Args:
            audit_id: of the audit.
        """
        ...


def require_table_format(chosen: str) -> None:
    """Refuse, before the work, a format whose package is missing.

    Args:
        chosen: as `--table-format` names it.

    Raises:
        MissingExtra: its package is not installed.
    """
    if (package := _PACKAGES.get(TableFormat(chosen))) is not None and find_spec(package) is None:
        raise MissingExtra(chosen, f"--table-format {chosen}")


def table_log(chosen: TableFormat, history: Tables) -> TableLog | None:
    """Return the log of a history; None where files in folders are all.

    Args:
        chosen: the format.
        history: its tables.
    """
    if chosen is TableFormat.ICEBERG:
        from kforensics.fleet.iceberg_log import IcebergLog

        return IcebergLog(history)
    return DeltaLog(history) if chosen is TableFormat.DELTA else None


class DeltaLog:
    """The transaction logs of Delta Lake, one in each table.

    Args:
        history: where the tables are.
    """

    def __init__(self, history: Tables) -> None:
        self._history = history

    def commit(self, table: str, parts: Mapping[str, int]) -> None:
        """Add the parts of an audit to a table, in one version of it.

        Args:
            table: a key of `AUDIT_TABLES`.
            parts: rows by the name of the part; without any nothing is committed.
        """
        from deltalake import DeltaTable
        from deltalake.schema import Schema
        from deltalake.transaction import create_table_with_add_actions

        if not parts:
            return
        actions = [self._action(table, part, rows) for part, rows in sorted(parts.items())]
        fields = [one for one in AUDIT_TABLES[table] if one.name not in PARTITIONED_BY]
        schema = Schema.from_arrow(pa.schema([*fields, ("cluster_id", pa.string()), ("audit_date", pa.date32())]))
        if self._is_there(table):
            DeltaTable(self._uri(table)).create_write_transaction(
                actions, mode="append", schema=schema, partition_by=list(PARTITIONED_BY)
            )
        else:
            create_table_with_add_actions(
                self._uri(table), schema, actions, mode="append", partition_by=list(PARTITIONED_BY)
            )

    def forget(self, audit_id: str) -> None:
        """Take back what an audit that did not finish committed; its files are still there.

        Args:
            audit_id: of the audit.
        """
        from deltalake import DeltaTable

        for table in AUDIT_TABLES:
            if not self._is_there(table):
                continue
            found = DeltaTable(self._uri(table))
            if any(is_part_of(uri, audit_id) for uri in found.file_uris()):
                quoted = audit_id.replace("'", "''")
                found.delete(f"audit_id = '{quoted}'")

    def _uri(self, table: str) -> str:
        return str(self._history.location / table)

    def _is_there(self, table: str) -> bool:
        return bool(self._history.names(f"{table}/_delta_log"))

    def _action(self, table: str, part: str, rows: int) -> Any:
        from deltalake.transaction import AddAction

        filesystem, path = self._history.place(table, f"{part}.parquet")
        info = filesystem.get_file_info(path)
        cluster, day = folder_values(part)
        return AddAction(
            path=f"{part}.parquet",
            size=int(info.size),
            partition_values={"cluster_id": cluster, "audit_date": day},
            modification_time=int(datetime.now(UTC).timestamp() * 1000),
            data_change=True,
            stats=json.dumps({"numRecords": rows}),
        )
