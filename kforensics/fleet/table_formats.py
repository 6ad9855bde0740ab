"""The finished parts of a history, committed to the log of a table format, so that other engines see an audit's rows of a table all at once.

The parts themselves, and the manifests by which they are read here, are those of a plain history.
"""

from collections.abc import Mapping
from enum import StrEnum
from importlib.util import find_spec
from typing import Protocol

from kforensics.errors import MissingExtra
from kforensics.fleet.tables import Tables


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

    def check(self) -> None:
        """Refuse logs that can't be read.

        Raises:
            EvidenceUnreadable: one is damaged.
        """
        ...

    def is_there(self, table: str) -> bool:
        """Return whether a table has a log.

        Args:
            table: a key of `AUDIT_TABLES`.
        """
        ...

    def commit(self, table: str, parts: Mapping[str, int]) -> None:
        """Add the parts of an audit to a table.

        Args:
            table: a key of `AUDIT_TABLES`.
            parts: rows by the name of the part.
        """
        ...

    def forget(self, audit_id: str) -> None:
        """Take back what an audit that did not finish committed."""
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
    """Return the log of a history; None where files in folders are all."""
    if chosen is TableFormat.ICEBERG:
        from kforensics.fleet.iceberg_log import IcebergLog

        return IcebergLog(history)
    if chosen is TableFormat.DELTA:
        from kforensics.fleet.delta_log import DeltaLog

        return DeltaLog(history)
    return None
