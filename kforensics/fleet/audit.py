"""The audit of a fleet in stages on Spark: plan, scan, reconcile with its drill-down, write.

Nothing proportional to batches is shuffled or collected: tasks send summaries of segments and digests of 65,536 offsets,
and only buckets whose digests differ are read again, by the workers, from the bytes themselves.
"""

import functools
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd

from kforensics import __version__
from kforensics.damage import Absent
from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.evidence.inputs import Inputs
from kforensics.evidence.model import Problem
from kforensics.findings.diff import identity_findings
from kforensics.findings.fleet import inventory_findings, spread_findings
from kforensics.findings.model import Finding
from kforensics.fleet.arrow import apply_in_arrow, map_in_arrow
from kforensics.fleet.incremental import fingerprint_of, is_unchanged, take_over
from kforensics.fleet.judge import STATE, JudgeContext, judge_group, save_knowledge
from kforensics.fleet.knowledge import cluster_of_inputs, gather_knowledge
from kforensics.fleet.parcel import pack
from kforensics.fleet.places import FoundSources, find_sources
from kforensics.fleet.plan import (
    LogDirTask,
    LogDirTotals,
    Piece,
    divide,
    list_log_dir,
    log_dir_tasks,
    part_name,
    place_of,
)
from kforensics.fleet.rows import finding_row, input_row, problem_row
from kforensics.fleet.scan import EarlierLooks, Scanned, scan_piece, take_evidence
from kforensics.fleet.schemas import PLAN, TABLES
from kforensics.fleet.sources import Source, check_output
from kforensics.fleet.tables import AUDIT_MANIFEST, Tables
from kforensics.fleet.watch import Progress, watch_tasks
from kforensics.pipeline.diff import DiffOptions, nodes_of
from kforensics.reconcile.placement import leader_spread

AUDIT_SCHEMA = "kforensics/fleet-audit/1"

LISTED_HERE = 6_000
"""Partition directories that a local audit lists by itself."""

GROUP_PARTITIONS = 64
MOST_GROUPS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOutcome:
    """How an audit went; what it found stands in the tables."""

    tables: Tables
    seconds: Mapping[str, float]
    """Of each stage, by the clock on the wall."""
    read_bytes: int
    reused_segments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _ScanContext:
    tables: Tables
    since: Tables | None
    run: int
    tasks: tuple[LogDirTask, ...]
    pieces: tuple[tuple[Piece, ...], ...]
    """Of each task, none where it is left out."""
    clusters: tuple[str, ...]
    groups: int


def audit(
    session: Any,
    sources: Sequence[Source],
    out: Path,
    *,
    options: DiffOptions,
    since: Path | None = None,
    progress: Progress | None = None,
) -> AuditOutcome:
    """Audit what the sources stand for and write the tables.

    Args:
        session: a Spark session.
        sources: where to look.
        out: the directory of the tables: new, or of an audit that was interrupted.
        options: as for a comparison: leader, protocol, topics.
        since: the tables of an earlier audit, whose closed segments need not be read again where they did not change.
        progress: told how far each stage is.

    Raises:
        UsageError: the output can't be used.
        EvidenceError: none of the sources can be.
    """
    clock = _Clock()
    check_output(out, sources)
    tables, run = _open_output(out)
    earlier = _earlier(since)
    found = find_sources(sources)
    tables.create([*TABLES, STATE])
    started = _manifest(sources, run, since)
    tables.write_manifest(AUDIT_MANIFEST, started)
    clusters = cluster_of_inputs(found.inputs)
    tasks = log_dir_tasks(found.inputs)
    totals = _plan(session, found, tasks, tables, options, progress)
    started["fingerprint"] = fingerprint_of(found, tasks, totals, options)
    clock.stage("plan")
    if earlier is not None and not found.problems and is_unchanged(started["fingerprint"], totals, earlier):
        reused = take_over(earlier, tables)
        tables.write_manifest(
            AUDIT_MANIFEST, {**started, "is_complete": True, "read_bytes": 0, "reused_segments": reused}
        )
        clock.stage("write")
        return AuditOutcome(tables=tables, seconds=clock.seconds, read_bytes=0, reused_segments=reused)
    knowledge, problems = gather_knowledge(found.inputs, clusters, tasks, totals)
    name = uuid.uuid4().hex[:12]
    save_knowledge(tables, knowledge, name)
    clock.stage("facts")
    cores = cores_of(session)
    pieces = divide(totals, evidence=frozenset(one.number for one in tasks if one.evidence), cores=cores)
    replicas = sum(one.replicas for one in totals)
    groups = max(1, min(MOST_GROUPS, max(replicas // (3 * GROUP_PARTITIONS), min(cores * 2, replicas // 8))))
    scan = _ScanContext(
        tables=tables, since=earlier, run=run, tasks=tasks, pieces=pieces, clusters=clusters, groups=groups
    )
    judge = JudgeContext(
        tables=tables,
        run=run,
        audit=name,
        roots=tuple(one.found.root for one in found.inputs),
        evidence=tuple(None if one.evidence is None else Tables(one.evidence) for one in found.inputs),
        clusters=clusters,
        order={one.source: one.number for one in tasks},
        audited=_audited(found, clusters),
        options=replace(options, topics=frozenset(), partitions=frozenset()),
    )
    lost = _judge_all(session, scan, judge, sum(one.bytes for one in totals), progress)
    clock.stage("scan and reconcile")
    _write_rest(tables, run, found, clusters, tasks, totals, (*found.problems, *problems, *lost), knowledge)
    read_bytes, reused = _close(tables, run)
    tables.write_manifest(
        AUDIT_MANIFEST,
        {**started, "is_complete": True, "run": run, "read_bytes": read_bytes, "reused_segments": reused},
    )
    clock.stage("write")
    return AuditOutcome(tables=tables, seconds=clock.seconds, read_bytes=read_bytes, reused_segments=reused)


class _Clock:
    def __init__(self) -> None:
        self._last = time.monotonic()
        self.seconds: dict[str, float] = {}

    def stage(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name] = now - self._last
        self._last = now


# ---------------------------------------------------------------- output


def _open_output(out: Path) -> tuple[Tables, int]:
    tables = Tables(out)
    manifest = tables.read_manifest(AUDIT_MANIFEST)
    if manifest is None:
        if not tables.is_empty():
            raise UsageError(f"{out} is not empty and holds no audit; kforensics overwrites nothing")
        return tables, 1
    if manifest.get("schema") != AUDIT_SCHEMA:
        raise EvidenceUnreadable(str(out), "its tables are of another version of kforensics")
    if manifest.get("is_complete"):
        raise UsageError(f"{out} holds a finished audit: give another --out, and --since {out} to build on it")
    return tables, int(manifest.get("run", 0)) + 1


def _earlier(since: Path | None) -> Tables | None:
    if since is None:
        return None
    tables = Tables(since)
    manifest = tables.read_manifest(AUDIT_MANIFEST)
    if manifest is None or manifest.get("schema") != AUDIT_SCHEMA:
        raise EvidenceUnreadable(str(since), "no tables of an audit")
    return tables


def _manifest(sources: Sequence[Source], run: int, since: Path | None) -> dict[str, Any]:
    return {
        "schema": AUDIT_SCHEMA,
        "tool_version": __version__,
        "is_complete": False,
        "run": run,
        "started_ns": time.time_ns(),
        "sources": [str(one.location) for one in sources],
        "since": None if since is None else str(since),
    }


def _close(tables: Tables, run: int) -> tuple[int, int]:
    """Take away what an interrupted attempt left behind; the bytes that this one read and the segments it did not."""
    for table in TABLES:
        for part in tables.parts(table):
            if "run-" in part and f"run-{run:04d}-" not in part:
                tables.remove(table, part)
    read = reused = 0
    for name in tables.names(STATE):
        if name.startswith(f"task-{run:04d}-"):
            numbers = json.loads(tables.read_bytes(STATE, name))
            read, reused = read + numbers["read_bytes"], reused + numbers["reused"]
    return read, reused


def _write_rest(
    tables: Tables,
    run: int,
    found: FoundSources,
    clusters: Sequence[str],
    tasks: Sequence[LogDirTask],
    totals: Sequence[LogDirTotals],
    problems: Sequence[Problem],
    knowledge: Mapping[str, Any],
) -> None:
    by_input: dict[int, list[LogDirTotals]] = {}
    for task, total in zip(tasks, totals, strict=True):
        by_input.setdefault(task.input, []).append(total)
    part = f"run-{run:04d}-driver"
    rows = []
    for number, one in enumerate(found.inputs):
        own = by_input.get(number, [])
        described = one.found.described
        racks = knowledge[clusters[number]].racks
        rows.append(
            {
                **input_row(number, described),
                "rack": one.rack or racks.get(described.broker_id),
                "is_evidence": one.evidence is not None,
                "log_dirs": list(one.found.log_dir_paths),
                "replicas": sum(total.replicas for total in own),
                "segments": sum(total.segments for total in own),
                "bytes": sum(total.bytes for total in own),
                "problems": sum(problem.input == number for problem in problems),
            }
        )
    tables.write("nodes", part, rows)
    findings = [
        finding_row(item, cluster or None)
        for cluster in sorted(set(clusters))
        for item in _cluster_findings(tables, cluster, found, clusters)
    ]
    disagreements = {
        found.inputs[number].found.described.path: (listed, int(found.inputs[number].found.described.broker_id))
        for number, listed in found.disagreements
    }
    findings += [finding_row(item, None) for item in inventory_findings(disagreements)]
    tables.write("findings", part, findings)
    tables.write("problems", part, [problem_row(one) for one in problems])


def _cluster_findings(tables: Tables, cluster: str, found: FoundSources, clusters: Sequence[str]) -> Iterator[Finding]:
    members = [one.found for one, own in zip(found.inputs, clusters, strict=True) if own == cluster]
    # Clusters are judged one by one: a fleet may well have several.
    yield from identity_findings([one.described for one in members], nodes_of(Inputs(found=tuple(members))))
    column = tables.column_table("partitions", ["cluster_id", "leader", "leader_source"])
    is_own = pc.equal(pc.fill_null(column["cluster_id"], ""), cluster)
    recorded = column.filter(
        pc.and_(is_own, pc.fill_null(pc.equal(column["leader_source"], "metadata"), fill_value=False))
    )
    leaders = [one for one in recorded["leader"].to_pylist() if one is not None]
    brokers = _audited(found, clusters).get(cluster, frozenset())
    if leaders:
        yield from spread_findings(leader_spread(leaders, brokers), cluster)


def _audited(found: FoundSources, clusters: Sequence[str]) -> dict[str, frozenset[int]]:
    """Brokers whose disks were looked at: controllers hold no partitions, and a disk that can't be read proves nothing."""
    out: dict[str, set[int]] = {}
    for one, cluster in zip(found.inputs, clusters, strict=True):
        described = one.found.described
        if one.found.log_dirs and described.kind != "controller" and not isinstance(described.broker_id, Absent):
            out.setdefault(cluster, set()).add(described.broker_id)
    return {cluster: frozenset(brokers) for cluster, brokers in out.items()}


# ---------------------------------------------------------------- Spark


def cores_of(session: Any) -> int:
    """Tasks that run at the same time, as far as the session tells."""
    context = _context(session)
    return int(context.defaultParallelism) if context is not None else 16


def _context(session: Any) -> Any:
    try:
        return session.sparkContext
    except Exception:  # noqa: BLE001 - Spark Connect has none and says so in its own way
        return None


def _plan(
    session: Any,
    found: FoundSources,
    tasks: Sequence[LogDirTask],
    tables: Tables,
    options: DiffOptions,
    progress: Progress | None,
) -> tuple[LogDirTotals, ...]:
    context = _context(session)
    is_local = context is not None and str(context.master).startswith("local")
    if is_local and sum(one.partition_count for one in found.inputs) <= LISTED_HERE:
        # Quicker than to have a job started for it.
        return tuple(list_log_dir(task, tables, options) for task in tasks)
    if not tasks:
        return ()
    slices = min(len(tasks), 1_000)
    work = functools.partial(_list_slice, tuple(tasks), slices, tables, options)
    frame = map_in_arrow(session.range(0, slices, 1, slices), work, "totals string")
    with watch_tasks(context, "plan", slices, 0, progress):
        rows = frame.collect()
    totals = [LogDirTotals(**json.loads(row.totals)) for row in rows]
    return tuple(sorted(totals, key=lambda one: one.number))


def _list_slice(
    tasks: tuple[LogDirTask, ...], slices: int, tables: Tables, options: DiffOptions, batches: Iterator[Any]
) -> Iterator[Any]:
    from kforensics.render.jsonout import to_plain

    for batch in batches:
        for number in batch.column(0).to_pylist():
            for task in tasks[number::slices]:
                totals = list_log_dir(task, tables, options)
                yield pa.RecordBatch.from_pydict({"totals": [json.dumps(to_plain(totals))]})


def _judge_all(
    session: Any, scan: _ScanContext, judge: JudgeContext, length: int, progress: Progress | None
) -> list[Problem]:
    """Scan and judge; where tasks kill their workers again and again, without them. What was left out is a problem."""
    lost: list[Problem] = []
    while scan.pieces:
        try:
            _run(session, scan, judge, length, progress)
        except Exception as error:
            blamed = _blamed(scan)
            if not blamed:
                raise
            words = f"not read: the workers that tried were lost ({type(error).__name__})"
            for number in blamed:
                for piece in scan.pieces[number]:
                    task = scan.tasks[piece.number]
                    path = task.found.log_dir_paths[0] if task.found.log_dir_paths else ""
                    lost.append(Problem(input=task.input, path=path or ".", message=words))
            pieces = tuple(() if number in blamed else one for number, one in enumerate(scan.pieces))
            scan = replace(scan, pieces=pieces)
            continue
        break
    return lost


def _blamed(scan: _ScanContext) -> frozenset[int]:
    """Tasks that were tried more than once and never finished."""
    names = scan.tables.names(STATE)
    retried = {int(one.rpartition("-")[2]) for one in names if one.startswith(f"retry-{scan.run:04d}-")}
    finished = {int(one.rpartition("-")[2]) for one in names if one.startswith(f"task-{scan.run:04d}-")}
    return frozenset(number for number in retried - finished if scan.pieces[number])


def _run(session: Any, scan: _ScanContext, judge: JudgeContext, length: int, progress: Progress | None) -> None:
    count = len(scan.pieces)
    numbers = session.range(0, count, 1, count)
    parcels = map_in_arrow(numbers, functools.partial(_scan_tasks, scan), "group int, parcel binary")
    grouped = parcels.repartition(min(scan.groups, 2_000), "group").groupBy("group")

    context = _context(session)
    found = context.accumulator(0) if context is not None else None

    # Spark tells by the types of the signature what to hand in.
    def judge_rows(table: pa.Table) -> pa.Table:
        group = table.column("group")[0].as_py()
        counts = judge_group(group, table.column("parcel").to_pylist(), judge)
        if found is not None:
            found.add(counts["findings"])
        return pa.table({"group": pa.array([group], pa.int32()), "counts": [json.dumps(counts)]})

    judged = apply_in_arrow(grouped, judge_rows, "group int, counts string")
    with watch_tasks(context, "scan", count, length, progress, lambda: found.value if found is not None else 0):
        judged.collect()


def _scan_tasks(scan: _ScanContext, batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            _note_attempt(scan, number)
            parcels = pack(scan_task(scan, number), scan.clusters, scan.groups)
            if parcels:
                yield pa.RecordBatch.from_pydict(
                    {"group": pa.array(parcels, pa.int32()), "parcel": pa.array(parcels.values(), pa.binary())}
                )


def _note_attempt(scan: _ScanContext, number: int) -> None:
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is not None and context.attemptNumber() > 0:
        scan.tables.write_bytes(STATE, f"retry-{scan.run:04d}-{number:06d}", b"")


def scan_task(scan: _ScanContext, number: int) -> Scanned:
    """Read one task's pieces and write their part of the evidence tables."""
    whole = Scanned()
    for piece in scan.pieces[number]:
        task = scan.tasks[piece.number]
        if task.evidence is not None:
            read = take_evidence(task, Tables(task.evidence))
        else:
            listing = scan.tables.read_part(
                "plan",
                part_name(piece.number),
                schema=PLAN,
                filters=(pd.field("at") >= piece.start) & (pd.field("at") < piece.end),
            ).to_pylist()
            places = [scan.tables, *([scan.since] if scan.since else [])]
            earlier = EarlierLooks(places if scan.run > 1 else places[1:])
            read = scan_piece(task, listing, place_of=place_of, earlier=earlier)
        part = f"{task.source}-run-{scan.run:04d}-{number:06d}"
        for table, content in read.tables().items():
            assert isinstance(content, pa.Table)
            scan.tables.write(table, part, content)
        whole.add(read)
    if whole.problems:
        scan.tables.write("problems", f"run-{scan.run:04d}-task-{number:06d}", whole.problems)
    done = json.dumps({"read_bytes": whole.read_bytes, "reused": whole.reused}).encode()
    scan.tables.write_bytes(STATE, f"task-{scan.run:04d}-{number:06d}", done)
    return whole
