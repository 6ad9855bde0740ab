"""Reading one piece of a plan: each segment to its summary, each partition directory to its row, unless an earlier look still holds; and packing them for those who judge."""

import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pyarrow as pa

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.captured.columns import Row, digest_lists, segment_row
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.collect import CHANGED_MEANWHILE, collect_directory
from kforensics.evidence.replica.segments import read_segment
from kforensics.fleet.audit_tables import AuditTables, one_of
from kforensics.fleet.facts import NOTHING, packed
from kforensics.fleet.plan import IS_DELETED_SEGMENT, IS_DIRECTORY, LogDirTask, place_of
from kforensics.fleet.rows import problem_row
from kforensics.fleet.schemas import DIGESTS, LINEAGE, OF_SEGMENTS, PLAN, SEGMENTS
from kforensics.fleet.tables import Tables
from kforensics.source.mapped import open_evidence
from kforensics.source.walk import SETTLED_NS

PartitionKey = tuple[str, str, int]
"""Cluster, topic, partition."""


@dataclass(slots=True)
class Scanned:
    """Rows of what was read; those of segments with their `digests` and `epochs`."""

    directories: list[Row] = field(default_factory=list)
    """Rows of the plan, each with its `task`: directories whose logs are read where they are judged."""
    replicas: list[Row] = field(default_factory=list)
    """Directories with what their small files say, as JSON."""
    segments: list[Row] = field(default_factory=list)
    facts: dict[PartitionKey, str] = field(default_factory=dict)
    """What is known of partitions beside their replicas."""
    problems: list[Row] = field(default_factory=list)
    read_bytes: int = 0
    reused: int = 0

    def add(self, other: "Scanned") -> None:
        """Add all of another look."""
        for one in ("directories", "replicas", "segments", "problems", "read_bytes", "reused"):
            setattr(self, one, getattr(self, one) + getattr(other, one))

    def tables(self, verdict_id: Callable[[Row], int]) -> dict[str, pa.Table]:
        """Return the segments with digests and lineage, as tables, each with the verdict on its partition."""
        segments = [{**row, "verdict_id": verdict_id(row)} for row in self.segments]

        def table(schema: pa.Schema, column: str, names: Sequence[str]) -> pa.Table:
            rows = [
                {**{one: row[one] for one in _OF_SEGMENT}, **dict(zip(names, values, strict=True))}
                for row in segments
                for values in row[column]
            ]
            return pa.Table.from_pylist(rows, schema=schema)

        return {
            "segments": pa.Table.from_pylist(segments, schema=SEGMENTS),
            "digests": table(DIGESTS, "digests", _DIGEST),
            "lineage": table(LINEAGE, "epochs", _EPOCH),
        }


_OF_SEGMENT = ("source", "path", "verdict_id")
_DIGEST = ("bucket", "low", "high", "batches", "position")
_EPOCH = ("leader_epoch", "start_offset")


_FEW = 5_000
"""Paths that rows are chosen by; of more, all rows of their log directories are taken."""


def earlier_looks(
    places: Sequence[Tables], listed: Mapping[str, Sequence[str]]
) -> tuple[Mapping[str, Mapping[str, Sequence[Row]]], ...]:
    """Return the rows of segments that were read before, in an earlier audit or in this one before it was interrupted, by log directory and table.

    Args:
        places: tables to look into, the newest first.
        listed: the paths of all files that will be asked for, by log directory.
    """
    return tuple(_rows_of(one, listed) for one in places if listed)


def _rows_of(tables: Tables, listed: Mapping[str, Sequence[str]]) -> dict[str, dict[str, list[Row]]]:
    paths = {path for own in listed.values() for path in own}
    where = one_of("source", listed, pa.string())
    if len(paths) <= _FEW:
        where &= one_of("path", paths, pa.string())
    out: dict[str, dict[str, list[Row]]] = {}
    for name in OF_SEGMENTS:
        parts = tables.parts(name)
        if not isinstance(tables, AuditTables):  # those of an attempt are of one log directory each
            parts = [one for one in parts if one.partition("-")[0] in listed]
        for row in chain.from_iterable(one.to_pylist() for one in tables.dataset(name, parts).to_batches(filter=where)):
            out.setdefault(row["source"], {}).setdefault(name, []).append(row)
    return out


def _taken_up(rows: Mapping[str, Sequence[Row]], wanted: dict[str, tuple[int, int]]) -> Iterator[Row]:
    """Yield the rows of the segments that are wanted and have not changed, which are wanted no more then."""
    parts: dict[str, dict[str, list[list[int]]]] = {"digests": {}, "lineage": {}}
    for table, names in (("digests", _DIGEST), ("lineage", _EPOCH)):
        for row in rows.get(table, ()):
            parts[table].setdefault(row["path"], []).append([row[name] for name in names])
    for row in rows.get("segments", ()):
        path = row["path"]
        # 0 where the storage knows no time of change.
        is_settled = 0 < row["mtime_ns"] < row["scanned_ns"] - SETTLED_NS
        if is_settled and not row["changed"] and wanted.get(path) == (row["length"], row["mtime_ns"]):
            del wanted[path]
            own = {"digests": parts["digests"].get(path, []), "epochs": parts["lineage"].get(path, [])}
            yield {**row, **own}


def scan_piece(
    task: LogDirTask,
    rows: Sequence[Mapping[str, Any]],
    *,
    earlier: Sequence[Mapping[str, Mapping[str, Sequence[Row]]]] = (),
) -> Scanned:
    """Read what a run of a log directory's listing names; what can't be read becomes a problem."""
    wanted = {row["path"]: (row["length"], row["mtime_ns"]) for row in rows if row["kind"] != IS_DIRECTORY}
    known = [row for one in earlier for row in _taken_up(one.get(task.source, {}), wanted)]
    node_id = task.found.described.broker_id if task.found.log_dirs else Absent.UNKNOWN
    place = {
        "input": task.input,
        "node_id": None if isinstance(node_id, Absent) else node_id,
        "source": task.source,
    }
    problems: list[Problem] = []
    out = Scanned(segments=[{**row, **place} for row in known], reused=len(known))
    for row in rows:
        if row["kind"] == IS_DIRECTORY:
            collected = collect_directory(place_of(task, row))
            problems.extend(collected.problems)
            files = None if collected.problems else row["segment_files"]
            own = {one: row[one] for one in ("sequence", "topic", "partition", "path", "fingerprint")}
            own |= {"input": task.input, "source": task.source, "segment_files": files}
            out.replicas.append({**own, "replica": packed(collected.replica)})
        elif row["path"] in wanted:
            _read_segment(task, row, place, out, problems)
    out.problems.extend(problem_row(one) for one in problems)
    return out


def bring_facts(tables: Tables, part: str) -> Scanned:
    """Return what is known of partitions beside their replicas by one part of the table `facts`."""
    rows = tables.read_part("facts", part, columns=["cluster_id", "topic", "partition", "facts"]).to_pylist()
    found = {(row["cluster_id"], row["topic"], row["partition"]): row["facts"] for row in rows}
    return Scanned(facts={key: facts for key, facts in found.items() if facts != NOTHING})


def _read_segment(
    task: LogDirTask,
    row: Mapping[str, Any],
    place: Mapping[str, Any],
    out: Scanned,
    problems: list[Problem],
) -> None:
    started = time.time_ns()
    try:
        with open_evidence(task.found.root / row["path"]) as file:
            segment = read_segment(file, path=row["path"], base_offset=row["base_offset"])
    except EvidenceError as error:
        problems.append(Problem(input=task.input, path=row["path"], message=error.problem))
        return
    is_deleted = row["kind"] == IS_DELETED_SEGMENT
    if segment.changed and not is_deleted:
        problems.append(Problem(input=task.input, path=row["path"], message=CHANGED_MEANWHILE))
    where = {**place, "topic": row["topic"], "partition": row["partition"], "directory": row["directory"]}
    out.read_bytes += segment.length
    read = segment_row(segment, where, is_deleted=is_deleted, scanned_ns=started)
    epochs = [list(entry) for entry in segment.epochs]
    out.segments.append({**read, "digests": digest_lists(segment.digests), "epochs": epochs})


# ---------------------------------------------------------------- the parcels that travel to the judges

_DIRECTORY_COLUMNS = ("input", "task", *PLAN.names)
_REPLICA_COLUMNS = (
    "input",
    "source",
    "sequence",
    "topic",
    "partition",
    "path",
    "segment_files",
    "fingerprint",
    "replica",
)
_SEGMENT_COLUMNS = (
    *(one for one in SEGMENTS.names if one not in {"node_id", "topic", "partition", "scanned_ns", "verdict_id"}),
    "digests",
    "epochs",
)


def group_of(key: PartitionKey, groups: int) -> int:
    """Return the group that judges a partition, the same on every machine."""
    cluster, topic, partition = key
    return zlib.crc32(f"{cluster}\0{topic}\0{partition}".encode()) % groups


def pack(scanned: Scanned, clusters: Sequence[str], groups: int) -> dict[int, bytes]:
    """Return the parcels of a task, by the group that they go to."""
    contents: dict[int, tuple[list[Any], ...]] = {}

    def content_of(key: PartitionKey) -> tuple[list[Any], ...]:
        return contents.setdefault(group_of(key, groups), ([], [], [], []))

    kinds = (
        (scanned.replicas, _REPLICA_COLUMNS),
        (scanned.segments, _SEGMENT_COLUMNS),
        (scanned.directories, _DIRECTORY_COLUMNS),
    )
    for kind, (rows, columns) in enumerate(kinds):
        for row in rows:
            key = (clusters[row["input"]], row["topic"], row["partition"])
            content_of(key)[kind].append([row[name] for name in columns])
    for of_facts, facts in scanned.facts.items():
        content_of(of_facts)[3].append([*of_facts, facts])
    return {
        group: zlib.compress(json.dumps(items, separators=(",", ":")).encode(), 6)
        for group, items in sorted(contents.items())
    }


def unpack(parcels: Iterable[bytes]) -> Scanned:
    """Return the rows that several tasks sent to one group."""
    out = Scanned()
    for parcel in parcels:
        replicas, segments, directories, facts = json.loads(zlib.decompress(parcel))
        for own, columns, given in (
            (out.replicas, _REPLICA_COLUMNS, replicas),
            (out.segments, _SEGMENT_COLUMNS, segments),
            (out.directories, _DIRECTORY_COLUMNS, directories),
        ):
            own.extend(dict(zip(columns, values, strict=True)) for values in given)
        out.facts |= {(cluster, topic, partition): own for cluster, topic, partition, own in facts}
    return out
