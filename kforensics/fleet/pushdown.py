"""Filters that Spark pushes down, as what they leave to be read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

_OFFSET_COLUMNS = frozenset({"offset", "base_offset", "last_offset", "first_offset", "batch_base_offset"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """The rows that filters leave to be read; an empty set means everything."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first_offset: int | None = None
    last_offset: int | None = None

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Return whether a partition directory may have what is wanted."""
        if self.topics is not None and row["topic"] not in self.topics:
            return False
        return self.partitions is None or row["partition"] in self.partitions


def narrowed(wanted: Wanted, condition: Filter) -> Wanted:
    """Return the part of `wanted` that a further condition leaves."""
    column: tuple[str, ...] = getattr(condition, "attribute", ())
    name = ".".join(column)
    value = getattr(condition, "value", None)
    if name in {"topic", "partition"} and isinstance(condition, EqualTo | In):
        values = frozenset(condition.value if isinstance(condition, In) else [value])
        if name == "topic":
            return replace(wanted, topics=values if wanted.topics is None else wanted.topics & values)
        return replace(wanted, partitions=values if wanted.partitions is None else wanted.partitions & values)
    if name not in _OFFSET_COLUMNS or not isinstance(value, int):
        return wanted
    # A batch's base and last offset lie on both sides of the records asked for: only bounds that hold for the whole file count.
    if isinstance(condition, EqualTo | GreaterThan | GreaterThanOrEqual) and name != "base_offset":
        wanted = replace(wanted, first_offset=max(value, wanted.first_offset or value))
    if isinstance(condition, EqualTo | LessThan | LessThanOrEqual) and name != "last_offset":
        wanted = replace(wanted, last_offset=min(value, value if wanted.last_offset is None else wanted.last_offset))
    return wanted
