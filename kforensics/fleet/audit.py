"""The audit of a fleet in stages on Spark: plan, scan, reconcile with its drill-down, write.

Nothing proportional to batches is shuffled or collected: tasks send summaries of segments and digests of 65,536 offsets,
and only buckets whose digests differ are read again, by the workers, from the bytes themselves.
"""

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kforensics import __version__
from kforensics.commands.diff import DiffOptions
from kforensics.commands.filters import check_wanted
from kforensics.errors import EvidenceUnreadable, UsageError
from kforensics.fleet.closing import audited_brokers, unanswered, write_absent, write_rest
from kforensics.fleet.incremental import fingerprint_of, is_unchanged, take_over
from kforensics.fleet.judge import STATE, JudgeContext, save_knowledge
from kforensics.fleet.knowledge import cluster_of_inputs, gather_knowledge
from kforensics.fleet.places import find_sources
from kforensics.fleet.plan import divide, log_dir_tasks
from kforensics.fleet.schemas import TABLES
from kforensics.fleet.sources import Source, check_output
from kforensics.fleet.stages import ScanContext, cores_of, groups_of, list_fleet, scan_and_judge
from kforensics.fleet.tables import AUDIT_MANIFEST, Tables
from kforensics.fleet.watch import Progress

AUDIT_SCHEMA = "kforensics/fleet-audit/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOutcome:
    """The outcome of an audit; its results are in the tables."""

    tables: Tables
    seconds: Mapping[str, float]
    """The time that each stage took, by the wall clock."""
    read_bytes: int
    reused_segments: int


def audit(
    session: Any,
    sources: Sequence[Source],
    out: Path,
    *,
    options: DiffOptions,
    since: Path | None = None,
    keep_going: bool = False,
    progress: Progress | None = None,
) -> AuditOutcome:
    """Audit the inputs of the sources and write the tables.

    Args:
        session: a Spark session.
        sources: where to look.
        out: the directory of the tables: new, or of an audit that was interrupted.
        options: as for a comparison: leader, protocol, topics.
        since: the tables of an earlier audit, whose closed segments need not be read again where they did not change.
        keep_going: a source that can't be used is a problem beside the others.
        progress: called with the progress of each stage.

    Raises:
        UsageError: the output can't be used.
        EvidenceError: a source can't be used, or with `keep_going` none can.
    """
    clock = _Clock()
    check_output(out, sources)
    tables, run = _open_output(out)
    earlier = _earlier(since)
    found = find_sources(sources, keep_going=keep_going)
    tables.create([*TABLES, STATE])
    started = _manifest(sources, run, since)
    tables.write_manifest(AUDIT_MANIFEST, started)
    clusters = cluster_of_inputs(found.inputs)
    tasks = log_dir_tasks(found.inputs)
    totals = list_fleet(session, found, tasks, tables, options, progress)
    if totals:
        check_wanted(topics=options.topics, known_topics={topic for one in totals for topic in one.topics})
    started["fingerprint"] = fingerprint_of(found, tasks, totals, options)
    clock.stage("plan")
    if earlier is not None and not found.problems and is_unchanged(started["fingerprint"], totals, earlier):
        reused = take_over(earlier, tables)
        tables.write_manifest(
            AUDIT_MANIFEST, {**started, "is_complete": True, "read_bytes": 0, "reused_segments": reused}
        )
        clock.stage("write")
        return AuditOutcome(tables=tables, seconds=clock.seconds, read_bytes=0, reused_segments=reused)
    gathered = gather_knowledge(found.inputs, clusters, tasks, totals, tables)
    name = uuid.uuid4().hex[:12]
    save_knowledge(tables, gathered.clusters, name)
    clock.stage("facts")
    cores = cores_of(session)
    pieces = divide(totals, evidence=frozenset(one.number for one in tasks if one.evidence), cores=cores)
    groups = groups_of(sum(one.replicas for one in totals), cores)
    scan = ScanContext(
        tables=tables,
        since=earlier,
        run=run,
        tasks=tasks,
        pieces=pieces,
        clusters=clusters,
        groups=groups,
        options=options,
    )
    judge = JudgeContext(
        tables=tables,
        run=run,
        audit=name,
        roots=tuple(one.found.root for one in found.inputs),
        evidence=tuple(None if one.evidence is None else Tables(one.evidence) for one in found.inputs),
        clusters=clusters,
        order={one.source: one.number for one in tasks},
        audited=audited_brokers(found, clusters),
        options=replace(options, topics=frozenset(), partitions=frozenset()),
    )
    lost = scan_and_judge(session, scan, judge, totals, progress)
    clock.stage("scan and reconcile")
    write_absent(judge, gathered, options)
    problems = (*found.problems, *gathered.problems, *lost, *unanswered(tables, found, totals, options))
    write_rest(tables, run, found, clusters, tasks, totals, problems, gathered.clusters)
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
