"""The tables of a finished audit, opened for reading: filters on their rows, and sums over their columns; the audits of a history, and those that are trimmed."""

import operator
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd
import pyarrow.parquet as pq

from kforensics.errors import (
    EvidenceError,
    EvidenceNotFound,
    EvidenceUnreadable,
    UsageError,
    did_you_mean,
    nearest_names,
)
from kforensics.findings.fleet_summary import TrimmedHistory
from kforensics.findings.model import Severity
from kforensics.fleet.lock import hold_lock
from kforensics.fleet.publishing import part_stem
from kforensics.fleet.schemas import AUDIT_TABLES, OF_VERDICTS
from kforensics.fleet.storage import Options, parse_location
from kforensics.fleet.tables import AUDIT_MANIFEST, WORK, Tables
from kforensics.units import Depth

AUDIT_SCHEMA = "kforensics/fleet-tables/2"
"""The version of tables and manifest."""

PREVIOUS = "previous"
"""The name of the audit before another one in a history."""

AUDITS = "_audits"
"""The folder of a history with a manifest for each audit."""

TRIMMED = f"{AUDITS}/.trimmed.json"
"""The manifest that names the audits of a history which are trimmed, until nothing is left of them."""

_READERS = 16
"""Small files that are read at the same time: most of the time is spent waiting for storage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The partitions, nodes and findings that a report is about; empty means all."""

    topics: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    nodes: frozenset[int] = frozenset()
    clusters: frozenset[str] = frozenset()
    """By id; an empty one stands for what is of no known cluster."""
    verdicts: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    least_severity: Severity = Severity.NOTE

    def of_partitions(self) -> Any:
        """Return the condition on the table of partitions."""
        return all_of(self.of_subject(), is_in("verdict", self.verdicts))

    def of_subject(self) -> Any:
        """Return the condition on any table with columns for cluster and partition."""
        return all_of(self.of_clusters(), is_in("topic", self.topics), is_in("partition", self.partitions))

    def of_clusters(self) -> Any:
        """Return the condition on any table."""
        named = is_in("cluster_id", self.clusters - {""})
        if "" not in self.clusters:
            return named
        unknown = pd.field("cluster_id").is_null()
        return unknown if named is None else named | unknown

    def of_findings(self) -> Any:
        """Return the condition on the table of findings."""
        return all_of(
            self.of_subject(),
            is_in("node_id", self.nodes),
            is_in("code", self.codes),
            pd.field("severity_rank") >= self.least_severity.rank,
        )


def is_in(column: str, values: Iterable[Any]) -> Any:
    """Return the condition that a column has one of the values; none, which filters nothing, where there are none."""
    wanted = sorted(values)
    return pd.field(column).isin(wanted) if wanted else None


def one_of(column: str, values: Iterable[Any], kind: pa.DataType) -> Any:
    """Return the condition that a column has one of the values; false where there are none."""
    return pd.field(column).isin(pa.array(sorted(values), kind))


def all_of(*conditions: Any) -> Any:
    """Return the conjunction of the conditions that are given."""
    given = [one for one in conditions if one is not None]
    return reduce(operator.and_, given) if given else None


class AuditTables(Tables):
    """The tables of a finished audit: the parts that its manifest names, in a directory of their own or in a history."""

    def __init__(self, location: Path, manifest: Mapping[str, Any]) -> None:
        super().__init__(location)
        self.manifest = dict(manifest)

    @property
    def audit_id(self) -> str:
        """The name of the audit."""
        return str(self.manifest["audit_id"])

    @property
    def audited_ns(self) -> int:
        """When it began, in nanoseconds since 1970."""
        return int(self.manifest["audited_ns"])

    @property
    def moment(self) -> datetime:
        """When it began, to the microsecond."""
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=self.audited_ns // 1_000)

    @property
    def age(self) -> tuple[int, str]:
        """What orders the audits of a history."""
        return self.audited_ns, self.audit_id

    @property
    def depth(self) -> Depth:
        """How much of the logs it read."""
        return Depth(self.manifest.get("depth", Depth.CONTENT))

    def schema(self, table: str) -> pa.Schema:
        """Return the columns of a table of a finished audit."""
        return AUDIT_TABLES[table]

    def parts(self, table: str) -> list[str]:
        """Return the names of the parts that the manifest lists, sorted."""
        return sorted(self.rows_of_parts(table))

    def rows_of_parts(self, table: str) -> Mapping[str, int]:
        """Return the number of rows of each part that the manifest lists, whether they are of this audit or not."""
        counts: Mapping[str, int] = self.manifest["tables"].get(table, {}).get("parts", {})
        return counts

    def row_count(self, table: str) -> int:
        """Return the number of rows of a table, by the manifest."""
        return int(self.manifest["tables"].get(table, {}).get("rows", 0))

    @property
    def kept_from(self) -> tuple[str, ...]:
        """The earlier audits whose parts hold rows of this one, the oldest first."""
        return tuple(self.manifest.get("kept_from", ()))

    @cached_property
    def nodes(self) -> Sequence[Mapping[str, Any]]:
        """The inputs, as far as the life of findings needs them."""
        names = ["audit_id", "input", "cluster_id", "node_id", "path", "kind", "log_dirs"]
        rows: list[Mapping[str, Any]] = self.column_table("nodes", names).to_pylist()
        return rows

    @cached_property
    def _replaced(self) -> pa.Array:
        return super().dataset("replaced").to_table(columns=["verdict_id"])["verdict_id"].combine_chunks()

    def dataset(self, table: str, parts: Iterable[str] | None = None) -> pd.Dataset:
        """Return the rows of a table: those that this audit wrote, and of earlier ones those whose verdicts it keeps."""
        found = super().dataset(table, parts)
        if not self.kept_from or table not in OF_VERDICTS:
            return found
        number = pd.field("verdict_id")
        is_kept = number.is_valid() & ~number.isin(self._replaced)
        return found.filter((pd.field("audit_id") == self.audit_id) | is_kept)

    def distinct(self, table: str, column: str, where: Any = None) -> set[Any]:
        """Return the values of a column, null left out."""
        return set(pc.unique(self.column_table(table, [column], where)[column]).to_pylist()) - {None}

    def check_parts(self) -> None:
        """Compare the rows of every part with what the manifest says of it.

        Raises:
            EvidenceUnreadable: a part is missing, can't be read, or has another number of rows.
        """
        named = [(table, part, count) for table in AUDIT_TABLES for part, count in self.rows_of_parts(table).items()]
        with ThreadPoolExecutor(_READERS) as pool:
            for (table, part, count), found in zip(named, pool.map(self._rows_of, named), strict=True):
                if found != count:
                    problem = f"has {found:,} rows" if isinstance(found, int) else found
                    raise EvidenceUnreadable(
                        str(self.location / table / f"{part}.parquet"),
                        f"the audit wrote {count:,} rows here, and the part {problem}: the tables are not those that were written",
                        ("another program changed or removed it", "it was copied only in part"),
                    )

    def _rows_of(self, named: tuple[str, str, int]) -> int | str:
        filesystem, path = self.place(named[0], f"{named[1]}.parquet")
        try:
            return int(pq.read_metadata(path, filesystem=filesystem).num_rows)
        except FileNotFoundError:
            return "is not there"
        except (OSError, pa.ArrowInvalid) as error:
            return f"can't be read ({str(error).partition(chr(10))[0]})"


def manifest_name(audit_id: str) -> str:
    """Return the manifest of an audit in a history, as a path from the history."""
    return f"{AUDITS}/{part_stem(audit_id)}.json"


def history_of(tables: Tables) -> list[AuditTables]:
    """Return the finished audits of a history, the oldest first, without those that are trimmed; none where it is no history."""
    trimmed = frozenset((tables.read_manifest(TRIMMED) or {}).get("audits", ()))
    return [one for one in every_audit(tables) if one.audit_id not in trimmed]


def every_audit(tables: Tables) -> list[AuditTables]:
    """Return the finished audits of a history, the oldest first, with those of which a trim has not removed all."""
    names = [f"{AUDITS}/{name}" for name in tables.names(AUDITS) if name.endswith(".json")]
    with ThreadPoolExecutor(_READERS) as pool:
        found = [one for one in pool.map(tables.read_manifest, names) if one is not None]
    audits = [AuditTables(tables.location, _checked(tables.location, one)) for one in found]
    return sorted(audits, key=lambda one: one.age)


def open_audits(location: Path) -> list[AuditTables]:
    """Return the finished audits of a directory: its only one, or those of a history, the oldest first."""
    tables = Tables(location)
    manifest = tables.read_manifest(AUDIT_MANIFEST)
    if manifest is not None:
        return [AuditTables(location, _checked(location, manifest))]
    found = history_of(tables)
    if found:
        return found
    if tables.names(WORK):
        causes = (
            "it was interrupted: the same `fleet audit` with the same --history begins again, and reads only what it had not read",
        )
        raise EvidenceUnreadable(str(location), "its only audit did not finish", causes)
    if tables.is_empty():
        raise EvidenceNotFound(str(location), "there is nothing here", ("a mistyped path", "the volume is not mounted"))
    raise EvidenceUnreadable(str(location), "no tables of an audit")


def open_audit(location: Path, audit_id: str | None = None) -> AuditTables:
    """Return the tables of a finished audit, whose parts are all there.

    Raises:
        EvidenceUnreadable: there are none, the audit did not finish, or parts of it are missing.
        UsageError: the history has no such audit.
    """
    audits = open_audits(location)
    if audit_id is None:
        chosen = audits[-1]
    else:
        named = {one.audit_id: one for one in audits}
        if audit_id not in named:
            hint = did_you_mean(nearest_names(audit_id, named))
            raise UsageError(f"{location} has no audit {audit_id}" + (f": {hint}" if hint else ""))
        chosen = named[audit_id]
    return _whole(chosen)


def earlier_audit(later: AuditTables, named: str, storage: Options = MappingProxyType({})) -> AuditTables:
    """Return the audit that another one is compared with.

    Args:
        named: the tables of an audit; or where the other is of a history, the name of an audit there, or `previous`: the
            last one before it that has a cluster in common with it.
    """
    known = history_of(later)
    if named == PREVIOUS:
        before = previous_audit(later)
        if before is None:
            why = "its history has none before it of the same cluster" if known else "its tables are in no history"
            raise UsageError(f"there is no previous audit to compare {later.audit_id} with: {why}")
        return before
    of_history = next((one for one in known if one.audit_id == named), None)
    if of_history is not None:
        return _whole(of_history)
    try:
        return open_audit(parse_location(named, storage))
    except EvidenceNotFound as error:
        if not known:
            raise
        words = f"there is nothing here, and {later.location} has no audit of this name"
        raise EvidenceNotFound(
            error.path, words, nearest=nearest_names(named, (one.audit_id for one in known))
        ) from None


def previous_audit(later: AuditTables) -> AuditTables | None:
    """Return the audit of `previous_in_history`, whose parts are all there."""
    found = previous_in_history(later)
    return None if found is None else _whole(found)


def previous_in_history(later: AuditTables) -> AuditTables | None:
    """Return the last audit of a history before another one that has a cluster in common with it, of the same depth if there is one; None where there is none."""
    return last_alike(later, [one for one in history_of(later) if one.age < later.age])


def last_alike(later: AuditTables, audits: Sequence[AuditTables]) -> AuditTables | None:
    """Return the last of some audits, in order, that another one can be compared with: it has a cluster in common with it, and the same depth if there is one."""
    clusters = set(later.manifest.get("clusters", ()))
    alike = [one for one in audits if clusters & set(one.manifest.get("clusters", ()))]
    return max(alike, key=lambda one: (one.depth is later.depth, one.age), default=None)


def _whole(audit: AuditTables) -> AuditTables:
    audit.check_parts()
    return audit


def _checked(location: Path, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    if manifest.get("schema") != AUDIT_SCHEMA:
        raise EvidenceUnreadable(
            str(location), "its tables are of another version of kforensics, or no tables of an audit"
        )
    if not manifest.get("is_complete"):
        causes = ("it was interrupted: the same `fleet audit` with the same --out continues where it stopped",)
        raise EvidenceUnreadable(str(location), "the audit did not finish", causes)
    if not isinstance(manifest.get("tables"), dict) or not {"audit_id", "audited_ns"} <= manifest.keys():
        raise EvidenceUnreadable(str(location), "the manifest of the audit is damaged")
    return manifest


def sum_of(table: pa.Table, column: str) -> int:
    """Return the sum of a column of numbers or truths, nulls left out."""
    return int(pc.sum(pc.cast(table[column], pa.int64())).as_py() or 0)


def list_length(table: pa.Table, column: str) -> int:
    """Return the number of members of all lists in a column."""
    return int(pc.sum(pc.list_value_length(table[column])).as_py() or 0)


def counts_of(table: pa.Table, column: str) -> dict[str, int]:
    """Return how often each value of a column occurs, whose values are of one type and never null."""
    return dict(sorted((one["values"], one["counts"]) for one in pc.value_counts(table[column]).to_pylist()))


def grouped(table: pa.Table, keys: Sequence[str], sums: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of a table counted by some columns as `count_all`, and others summed as `<column>_sum`."""
    rows: list[dict[str, Any]] = (
        table.group_by(list(keys)).aggregate([*((one, "sum") for one in sums), ([], "count_all")]).to_pylist()
    )
    return rows


# ---------------------------------------------------------------- audits that are older than some days go, and what later ones hold of them stays

# One file says which audits are trimmed, so that a reader sees all of them or none, whenever it looks and wherever the work ends. Files go after that, and the manifests last.

DAY_NS = 86_400 * 1_000_000_000
MOST_LOOKS = 3
"""Times that a reader looks at a history which is trimmed while it reads."""

Looked = TypeVar("Looked")


def trim_history(tables: Tables, days: int, *, take_over: bool = False) -> TrimmedHistory:
    """Remove the audits of a history that are older than some days, but for the latest of each cluster and depth, and all that only they hold."""
    if tables.read_manifest(AUDIT_MANIFEST) is not None or not history_of(tables):
        raise UsageError(f"{tables} is no history of finished audits")
    with hold_lock(tables, take_over=take_over):
        begun = every_audit(tables)
        finish_trim(tables)
        audits = history_of(tables)
        kept = {one.audit_id for one in audits if one.audited_ns >= time.time_ns() - days * DAY_NS} | _latest(audits)
        trimmed = [one.audit_id for one in audits if one.audit_id not in kept]
        if trimmed:
            tables.write_manifest(TRIMMED, {"audits": trimmed})
            finish_trim(tables)
    left = history_of(tables)
    gone = [one for one in begun if one.audit_id not in {each.audit_id for each in left}]
    paths = [
        one
        for table in {name for audit in gone for name in audit.manifest["tables"]}
        for one in _only(table, gone, left)
    ]
    return TrimmedHistory(
        tables=str(tables),
        days=days,
        audits=tuple(one.audit_id for one in left),
        trimmed_audits=tuple(one.audit_id for one in gone),
        removed_files=len(paths),
        oldest_ms=left[0].audited_ns // 1_000_000,
    )


def _latest(audits: Sequence[AuditTables]) -> set[str]:
    """Return the audits that the next ones build on: the latest of each cluster, and of each cluster and depth."""
    found: dict[object, str] = {}
    for one in audits:
        for cluster in one.manifest["clusters"]:
            found[cluster] = found[cluster, one.depth] = one.audit_id
    return set(found.values())


def finish_trim(tables: Tables) -> None:
    """Remove what the audits that are trimmed alone hold; whoever calls it holds the lock."""
    if tables.read_manifest(TRIMMED) is None:
        return
    left = history_of(tables)
    kept = {one.audit_id for one in left}
    gone = [one for one in every_audit(tables) if one.audit_id not in kept]
    for table in sorted({name for one in gone for name in one.manifest["tables"]}):
        for part in _only(table, gone, left):
            tables.remove(table, part)
    for one in gone:
        tables.remove_file(manifest_name(one.audit_id))
    tables.remove_file(TRIMMED)


def _only(table: str, gone: Iterable[AuditTables], left: Iterable[AuditTables]) -> Iterator[str]:
    """Yield the parts of a table that no audit which is left has rows in."""
    held = {part for one in left for part in one.rows_of_parts(table)}
    yield from sorted({part for one in gone for part in one.rows_of_parts(table)} - held)


def looked_again(tables: Tables, look: Callable[[], Looked]) -> Looked:
    """Return what a reader finds, who looks again where the history was trimmed meanwhile."""
    for _ in range(MOST_LOOKS - 1):
        before = _state(tables)
        try:
            return look()
        except (EvidenceError, OSError):
            if _state(tables) == before:
                raise
    return look()


def _state(tables: Tables) -> tuple[Mapping[str, object] | None, tuple[str, ...]]:
    return tables.read_manifest(TRIMMED), tuple(tables.names(AUDITS))
