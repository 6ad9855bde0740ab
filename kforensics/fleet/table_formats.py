"""The finished parts of a history, committed to the log of a table format, so that other engines see an audit's rows of a table all at once.

The parts themselves, and the manifests by which they are read here, are those of a plain history.
"""

from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kforensics.errors import MissingExtra
from kforensics.fleet.tables import Tables

if TYPE_CHECKING:
    from kforensics.fleet.delta_log import DeltaLog


class TableFormat(StrEnum):
    """How other engines find the rows of a history."""

    PARQUET = "parquet"
    """Files in folders, as Hive lays them out."""
    DELTA = "delta"
    """Delta Lake: the same files, and a log of them."""


_PACKAGES = {TableFormat.DELTA: "deltalake"}


def require_table_format(chosen: str) -> None:
    """Refuse, before the work, a format whose package is missing."""
    if (package := _PACKAGES.get(TableFormat(chosen))) is not None and find_spec(package) is None:
        raise MissingExtra(chosen, f"--table-format {chosen}")


def table_log(chosen: TableFormat, history: Tables) -> "DeltaLog | None":
    """Return the log of a history; None where files in folders are all."""
    if chosen is TableFormat.DELTA:
        from kforensics.fleet.delta_log import DeltaLog

        return DeltaLog(history)
    return None
