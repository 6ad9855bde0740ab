"""Verdicts of an earlier audit that are kept: of partitions whose directories are as they were, and of which nothing else is known than was known then."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd

from kforensics import __version__
from kforensics.ask.model import Ask
from kforensics.fleet.audit_tables import AuditTables, all_of
from kforensics.fleet.facts import NOTHING, Gathered
from kforensics.fleet.knowledge import FACTS_TABLE, Fleet, unread_offsets
from kforensics.fleet.pieces import PartitionKey
from kforensics.fleet.plan import DIRECTORY_WEIGHT, FILE_WEIGHT, IS_DIRECTORY, LogDirTotals, options_words, part_name
from kforensics.fleet.schemas import FACTS, PLAN
from kforensics.fleet.tables import Tables
from kforensics.source.walk import SETTLED_NS
from kforensics.units import OFFSETS_TOPIC, Depth

READING = "reading"
"""The table of the stages that lists what is read, where not all that is listed is."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The verdicts that are kept."""

    verdicts: Mapping[AuditTables, pa.Array] = field(default_factory=dict)
    """The numbers of those of each earlier audit."""
    keys: frozenset[PartitionKey] = frozenset()
    replaced: Mapping[AuditTables, pa.Table] = field(default_factory=dict)
    """Of the earlier audits whose parts go on to hold the kept rows, the verdicts that are not kept, each with its cluster."""

    @cached_property
    def _names(self) -> Mapping[str, pa.Array]:
        names: dict[str, list[str]] = {}
        for cluster, topic, partition in self.keys:
            names.setdefault(cluster, []).append(f"{partition}-{topic}")
        return {cluster: pa.array(own, pa.string()) for cluster, own in names.items()}

    def others(self, rows: pa.Table, cluster: str) -> pa.Table:
        """Return the rows of the partitions of a cluster whose verdicts are not kept."""
        names = self._names.get(cluster)
        if names is None:
            return rows
        own = pc.binary_join_element_wise(pc.cast(rows["partition"], pa.string()), rows["topic"], "-")
        return rows.filter(pc.invert(pc.is_in(own, value_set=names)))

    def copied(self, table: str, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows of a table that are kept and must be written again."""
        return self.chunks(table, columns, of=self.verdicts.keys() - self.replaced.keys())

    @property
    def kept_from(self) -> list[str]:
        """The audits whose parts hold rows that are kept, the oldest first."""
        return [
            name for one in sorted(self.replaced, key=lambda base: base.age) for name in (*one.kept_from, one.audit_id)
        ]

    @property
    def chains(self) -> dict[str, str]:
        """By cluster, the first audit of those whose parts hold its rows."""
        return {
            cluster: str(one.manifest.get("chains", {}).get(cluster, one.audit_id))
            for one in self.replaced
            for cluster in one.manifest["clusters"]
        }

    def parts(self, table: str) -> dict[str, int]:
        """Return the parts of a table that hold rows which are kept, each with all of its rows."""
        return {part: rows for one in self.replaced for part, rows in one.rows_of_parts(table).items()}

    def row_count(self, table: str) -> int:
        """Return the number of rows of a table that are kept where they are."""
        count = 0
        for base, replaced in self.replaced.items():
            number = pd.field("verdict_id")
            is_left = ~number.is_valid() | number.isin(replaced["verdict_id"].combine_chunks())
            count += base.row_count(table) - base.dataset(table).count_rows(filter=is_left)
        return count

    def chunks(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        where: Any = None,
        of: Collection[AuditTables] | None = None,
    ) -> Iterator[pa.Table]:
        """Yield the rows of a table that are kept, of all earlier audits or of some."""
        for base, numbers in self.verdicts.items():
            if of is not None and base not in of:
                continue
            is_kept = pd.field("verdict_id").isin(numbers)
            named = None if columns is None else list(columns)
            for batch in base.dataset(table).to_batches(columns=named, filter=all_of(is_kept, where)):
                yield pa.Table.from_batches([batch])

    def and_new(
        self, tables: Tables, table: str, columns: Sequence[str], where: Any = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield some columns of the rows of this audit, and of those that are kept."""
        for one in (tables, self):
            yield from one.rows(table, columns=columns, where=where)

    def rows(self, table: str, *, columns: Sequence[str], where: Any = None) -> Iterator[Mapping[str, Any]]:
        """Yield some columns of the rows that are kept."""
        for chunk in self.chunks(table, columns, where):
            yield from chunk.to_pylist()


def where_they_are(kept: Kept, may_be: Collection[AuditTables]) -> Kept:
    """Return the verdicts with those of the audits whose parts go on to hold them: where most are replaced, what is left is written again."""
    found = {}
    for base, numbers in kept.verdicts.items():
        if base in may_be:
            known = base.column_table("partitions", ["verdict_id", "cluster_id"])
            others = known.filter(pc.invert(pc.is_in(known["verdict_id"], value_set=numbers)))
            if others.num_rows <= len(numbers):
                found[base] = others
    return replace(kept, replaced=found)


def shared_digests(
    gathered: Mapping[str, Gathered], audited: Mapping[str, frozenset[int]], options: Ask
) -> dict[str, str]:
    """Return by cluster a digest of what the verdicts on all of its partitions depend on: what is known of it, the options, and this program."""
    return {
        cluster: _digest(
            (
                __version__,
                options_words(options),
                cluster,
                sorted(audited.get(cluster, ())),
                one.has_metadata,
                one.shared,
            )
        )
        for cluster, one in gathered.items()
    }


def fingerprint_of_partition(
    shared: str, key: PartitionKey, facts: str, directories: Iterable[str | None]
) -> str | None:
    """Return a digest of all that a verdict depends on; none where that of a directory is not known."""
    found = list(directories)
    if not found or None in found:
        return None
    return _digest((shared, *key, facts, sorted(str(one) for one in found)))


def _digest(values: Any) -> str:
    return hashlib.blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()


def kept_verdicts(
    fleet: Fleet, gathered: Mapping[str, Gathered], digests: Mapping[str, str], bases: Mapping[str, AuditTables]
) -> Kept:
    """Return the verdicts of the latest audits that hold still; none of a partition of which something could not be read."""
    if not bases:
        return Kept()
    directories, newest = _directories(fleet, bases)
    facts = {
        (row["cluster_id"], row["topic"], row["partition"]): row["facts"]
        for cluster in bases
        for part in gathered[cluster].parts
        for row in fleet.tables.read_part(FACTS_TABLE, part).to_pylist()
    }
    now: dict[AuditTables, dict[str, PartitionKey]] = {}
    for key, own in directories.items():
        fingerprint = fingerprint_of_partition(digests[key[0]], key, facts.get(key, NOTHING), own)
        if fingerprint is not None:
            now.setdefault(bases[key[0]], {})[fingerprint] = key
    troubled_now = _troubled(fleet.tables)
    verdicts: dict[AuditTables, pa.Array] = {}
    keys: set[PartitionKey] = set()
    for base, known in now.items():
        troubled = _troubled(base) | troubled_now | {(OFFSETS_TOPIC, one) for one in unread_offsets(base)}
        if None in troubled:
            continue  # what could not be read may have been of any partition
        columns = base.column_table(
            "partitions", ["fingerprint", "verdict_id", "audited_at"], pd.field("fingerprint").is_valid()
        )
        times = pc.cast(columns["audited_at"], pa.int64()).to_pylist()
        numbers = []
        for fingerprint, number, time in zip(
            columns["fingerprint"].to_pylist(), columns["verdict_id"].to_pylist(), times, strict=True
        ):
            found = known.get(fingerprint)
            if found is not None and found[1:] not in troubled and newest[found] + SETTLED_NS < time * 1_000:
                numbers.append(number)
                keys.add(found)
        if numbers:
            verdicts[base] = pa.array(numbers, pa.int64())
    return Kept(verdicts=verdicts, keys=frozenset(keys))


def _directories(
    fleet: Fleet, bases: Mapping[str, AuditTables]
) -> tuple[dict[PartitionKey, list[str | None]], dict[PartitionKey, int]]:
    """Return the digests of the directories of each partition of clusters with an earlier audit, and the newest time of a change in them."""
    found: dict[PartitionKey, list[str | None]] = {}
    newest: dict[PartitionKey, int] = {}
    for one in fleet.totals:
        cluster = fleet.clusters[fleet.tasks[one.number].input]
        if cluster not in bases:
            continue
        is_bare = fleet.tasks[one.number].input in fleet.bare
        columns = ["topic", "partition", "fingerprint", "mtime_ns"]
        rows = fleet.listing(one.number)
        rows = rows.filter(pc.equal(rows["kind"], IS_DIRECTORY)).select(columns)
        for topic, partition, fingerprint, time in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            key = (cluster, topic, partition)
            # What a copy left out was not compared.
            found.setdefault(key, []).append(None if is_bare else fingerprint)
            newest[key] = max(time, newest.get(key, 0))
    return found, newest


def _troubled(tables: Tables) -> set[tuple[str, int] | None]:
    """Return the partitions that problems name; none for a problem that names no partition."""
    rows = tables.column_table("problems", ["topic", "partition"])
    pairs = zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True)
    return {None if topic is None else (topic, partition) for topic, partition in pairs}


def without_kept(fleet: Fleet, kept: Kept, options: Ask) -> tuple[LogDirTotals, ...]:
    """Write the listing of what is to be read into the table `reading`, and return its totals."""
    out = []
    for one in fleet.totals:
        task = fleet.tasks[one.number]
        rows = fleet.listing(one.number)
        wanted = kept.others(rows, fleet.clusters[task.input])
        if wanted.num_rows:
            is_directory = pc.equal(wanted["kind"], IS_DIRECTORY)
            whole = pc.add(wanted["length"], FILE_WEIGHT if options.depth is not Depth.TAILS else 0)
            of_files = pc.multiply(whole, int(options.depth is not Depth.TAILS))
            weights = pc.if_else(is_directory, DIRECTORY_WEIGHT, of_files)
            ends = pc.cumulative_sum(weights)
            at = PLAN.get_field_index("at")
            wanted = wanted.set_column(at, PLAN.field("at"), pc.cast(pc.subtract(ends, weights), pa.int64()))
            fleet.tables.write(READING, part_name(one.number), wanted, PLAN)
            replicas = pc.sum(is_directory).as_py()
            out.append(
                replace(
                    one,
                    weight=ends[-1].as_py(),
                    bytes=pc.sum(wanted["length"]).as_py(),
                    replicas=replicas,
                    segments=wanted.num_rows - replicas,
                )
            )
    return tuple(out)


def facts_without_kept(fleet: Fleet, kept: Kept, gathered: Iterable[Gathered]) -> Iterator[str]:
    """Write what is known of partitions whose verdicts are not kept, and yield the parts of the table `facts` that have it."""
    for one in gathered:
        for part in one.parts:
            rows = kept.others(fleet.tables.read_part(FACTS_TABLE, part), one.cluster)
            if rows.num_rows:
                fleet.tables.write(FACTS_TABLE, f"{READING}-{part}", rows, FACTS)
                yield f"{READING}-{part}"
