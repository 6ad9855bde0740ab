"""The tables of a finished audit, opened for reading: filters on their rows, and sums over their columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd

from kforensics.errors import EvidenceUnreadable
from kforensics.findings.model import Severity
from kforensics.fleet.tables import AUDIT_MANIFEST, Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The partitions, nodes and findings that a report is about; empty means all."""

    topics: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    nodes: frozenset[int] = frozenset()
    verdicts: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    least_severity: Severity = Severity.NOTE

    def of_partitions(self) -> Any:
        """Return the condition on the table of partitions."""
        return all_of(is_in("topic", self.topics), is_in("partition", self.partitions), is_in("verdict", self.verdicts))

    def of_findings(self) -> Any:
        """Return the condition on the table of findings."""
        return all_of(
            is_in("topic", self.topics),
            is_in("partition", self.partitions),
            is_in("node_id", self.nodes),
            is_in("code", self.codes),
            pd.field("severity_rank") >= self.least_severity.rank,
        )


def is_in(column: str, values: Iterable[Any]) -> Any:
    """A column has one of the values, as a condition; none where there are none."""
    wanted = sorted(values)
    return pd.field(column).isin(wanted) if wanted else None


def all_of(*conditions: Any) -> Any:
    """The conjunction of the conditions that are given."""
    found = None
    for one in conditions:
        if one is not None:
            found = one if found is None else found & one
    return found


def open_audit(location: Path) -> tuple[Tables, Mapping[str, Any]]:
    """The tables of a finished audit and its manifest.

    Raises:
        EvidenceUnreadable: there are none, or the audit did not finish.
    """
    tables = Tables(location)
    manifest = tables.read_manifest(AUDIT_MANIFEST)
    if manifest is None:
        raise EvidenceUnreadable(str(location), "no tables of an audit")
    if not manifest.get("is_complete"):
        causes = ("it was interrupted: the same `fleet audit` with the same --out continues where it stopped",)
        raise EvidenceUnreadable(str(location), "the audit did not finish", causes)
    return tables, manifest


def sum_of(table: pa.Table, column: str) -> int:
    """The sum of a column of numbers or truths."""
    return int(pc.sum(pc.cast(table[column], pa.int64())).as_py() or 0)


def list_length(table: pa.Table, column: str) -> int:
    """The members of all lists in a column."""
    return int(pc.sum(pc.list_value_length(table[column])).as_py() or 0)


def counts_of(table: pa.Table, column: str) -> dict[str, int]:
    """Count each value of a column."""
    return dict(sorted((one["values"], one["counts"]) for one in pc.value_counts(table[column]).to_pylist()))


def grouped(table: pa.Table, keys: Sequence[str], sums: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a table counted by some columns, with the sums of others."""
    rows: list[dict[str, Any]] = (
        table.group_by(list(keys)).aggregate([*((one, "sum") for one in sums), ([], "count_all")]).to_pylist()
    )
    return rows
