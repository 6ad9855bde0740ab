"""The audit of a fleet in stages on Spark: plan, scan, reconcile with its drill-down, write.

Nothing proportional to batches is shuffled or collected: tasks send summaries of segments and digests of 65,536 offsets,
and only buckets whose digests differ are read again, by the workers, from the bytes themselves.
"""

import functools
import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pd

from kforensics import __version__
from kforensics.ask.model import Ask
from kforensics.case.wanted import check_wanted
from kforensics.evidence.captured.columns import known
from kforensics.evidence.discovery.inputs import WHOLE_INPUT
from kforensics.evidence.discovery.partition_dirs import LOGS_LEFT_OUT
from kforensics.evidence.model import Problem
from kforensics.findings.rules.inputs import with_refused_starts
from kforensics.fleet.audit_tables import AuditTables, history_of, open_audit
from kforensics.fleet.closing import (
    audited_brokers,
    brokers_in_doubt,
    fold_problems,
    judge_beside_shortened_logs,
    tell_refused_starts,
    unanswered,
    vanished,
    write_absent,
    write_rest,
)
from kforensics.fleet.facts import Gathered, packed
from kforensics.fleet.judge import READ_BYTES, STATE, WorkContext
from kforensics.fleet.keeping import (
    READING,
    Kept,
    facts_without_kept,
    kept_verdicts,
    shared_digests,
    where_they_are,
    without_kept,
)
from kforensics.fleet.knowledge import COMMITS_TABLE, FACTS_TABLE, Fleet, cluster_of_inputs, stated_by_cluster
from kforensics.fleet.lock import Lock, hold_lock
from kforensics.fleet.output import Output, open_output
from kforensics.fleet.plan import (
    TAKEN_OVER,
    LogDirTask,
    LogDirTotals,
    divide,
    fingerprint_of,
    inputs_without_logs,
    is_unchanged,
    log_dir_tasks,
    verdict_id,
)
from kforensics.fleet.publishing import NO_PART, AuditStamp, ClusterOf, Counts, publish, working_chunks
from kforensics.fleet.schemas import OF_VERDICTS, REPLACED, TABLES
from kforensics.fleet.sources import FoundSources, Source, check_output, find_sources
from kforensics.fleet.stages import (
    SCANNED_HERE,
    cores_of,
    gather_fleet,
    groups_of,
    list_fleet,
    outline_fleet,
    refused_by_cluster,
    scan_and_judge,
)
from kforensics.fleet.tables import Tables
from kforensics.fleet.watch import Progress, Stage
from kforensics.units import OFFSETS_TOPIC, Depth, TopicPartition

MOST_CHAINED = 30
"""Audits whose parts hold rows of one more; then all are written again, so that no audit is spread over ever more files."""


def audit(
    session: Callable[[], Any],
    sources: Sequence[Source],
    out: Path,
    *,
    options: Ask,
    since: Path | None = None,
    keep_going: bool = False,
    progress: Progress | None = None,
    is_history: bool = False,
    audit_id: str | None = None,
    take_over: bool = False,
) -> AuditTables:
    """Audit the inputs of the sources and write the tables.

    Args:
        session: gives that of Spark, which is asked for when it is first needed: what is refused, is refused before.
        out: the directory of the tables: new, or of an audit that was interrupted; or a history.
        since: the tables of an earlier audit, whose closed segments need not be read again where they did not change; the
            latest of the history where none is named.
        audit_id: a name for the audit; where the history has an audit of this name nothing is read and nothing is written.

    Raises:
        UsageError: the output can't be used, or another audit writes to it.
        EvidenceError: a source can't be used, or with `keep_going` none can; rows were lost on the way.
    """
    check_output(out, sources)
    open_output(
        out, is_history=is_history, audit_id=audit_id
    )  # what is refused, is refused before a lock is written there
    with hold_lock(Tables(out), take_over=take_over) as lock:
        output = open_output(out, is_history=is_history, audit_id=audit_id)
        if output.finished is not None:
            return output.finished
        named = None if since is None else open_audit(since)
        found = find_sources(sources, keep_going=keep_going)
        return _Audit(functools.cache(session), output, lock, found, options, named, progress).run(sources)


def _bases(
    output: Output, named: AuditTables | None, clusters: Collection[str], depth: Depth
) -> dict[str, AuditTables]:
    """Return by cluster the audit whose segments need not be read again: the one that is named, or the latest of the history that has the cluster and is of the depth."""
    if named is not None:
        return dict.fromkeys(clusters, named)
    known = [one for one in history_of(output.tables) if one.depth is depth] if output.is_history else []
    return {cluster: one for one in known for cluster in clusters if cluster in one.manifest["clusters"]}


class _Audit:
    """One attempt, from the listing to the manifest."""

    def __init__(
        self,
        session: Callable[[], Any],
        output: Output,
        lock: Lock,
        found: FoundSources,
        options: Ask,
        named: AuditTables | None,
        progress: Progress | None,
    ) -> None:
        self._session = session
        self._output = output
        self._lock = lock
        self._found = found
        self._options = options
        self._named = named
        self._progress = progress
        self._clock = _Clock(progress)
        self._clusters = cluster_of_inputs(found.inputs)
        self._booked = tuple(known(one.found.described.cluster_id) for one in found.inputs)
        self._tasks = log_dir_tasks(found.inputs)
        self._bases = _bases(output, named, set(self._clusters), options.depth or Depth.CONTENT)
        self._first_cluster = min(filter(None, self._booked), default=None)

    def run(self, sources: Sequence[Source]) -> AuditTables:
        """Run all stages, or none after the listing where nothing has changed."""
        output, found, tasks, options = self._output, self._found, self._tasks, self._options
        work = output.work
        begun = output.begin(
            {**_manifest(sources, self._bases, options, self._booked), "retired": [list(one) for one in found.retired]},
            [*TABLES, FACTS_TABLE, READING, STATE],
        )
        listers = outline_fleet(found, tasks, options)
        earlier = self._same(begun, [one.outline for one in listers]) if listers else None
        if earlier is not None:
            return self._take_over(begun, earlier)
        totals = list_fleet(self._session, listers, tasks, work, options, self._progress)
        if totals:
            wanted = replace(options, partitions=frozenset())  # their numbers are known once the replicas are read
            check_wanted(wanted, {TopicPartition(topic, 0) for one in totals for topic in one.topics})
        earlier = None if listers else self._same(begun, totals)
        if earlier is not None:
            return self._take_over(begun, earlier)
        self._clock.stage("plan")
        expected = Counter(problems=sum(one.problems for one in totals))
        bare = inputs_without_logs(tasks, totals)
        left_out = [Problem(input=number, path=WHOLE_INPUT, message=LOGS_LEFT_OUT) for number in sorted(bare)]
        fleet = Fleet(
            inputs=found.inputs,
            clusters=self._clusters,
            tasks=tuple(tasks),
            totals=tuple(totals),
            bare=bare,
            assignments=stated_by_cluster(found.assignments, set(self._clusters)),
            tables=work,
            bases=self._bases,
            audit=output.stamp.audit_id,
            options=options,
        )
        gathered = gather_fleet(self._session, fleet)
        audited = audited_brokers(found, self._clusters)
        digests = shared_digests(gathered, audited, options)
        kept = where_they_are(kept_verdicts(fleet, gathered, digests, self._bases), self._referable())
        self._clock.stage("facts")
        context = WorkContext(
            tables=work,
            run=output.run,
            audit=output.stamp.audit_id,
            digests=digests,
            shared={cluster: one.shared for cluster, one in gathered.items()},
            roots=tuple(one.found.root for one in found.inputs),
            clusters=self._clusters,
            booked=self._booked,
            tasks=tuple(tasks),
            audited=audited,
            bare=bare,
            since=self._bases,
            options=replace(options, topics=frozenset(), partitions=frozenset()),
        )
        while True:
            context = self._with_pieces(context, fleet, gathered, kept)
            lost, judged = scan_and_judge(self._session, context, totals, self._progress)
            doubted = brokers_in_doubt(work, kept, self._clusters)
            refused = refused_by_cluster(self._session, fleet, doubted)
            judged_with = dict(zip(self._booked, self._clusters, strict=True))
            if judge_beside_shortened_logs(work, kept) and tell_refused_starts(work, kept, refused, judged_with):
                break
            # What no directory of a partition shows, and no line about it, may make any kept verdict or finding another one.
            self._output, kept = self._output.again(begun), Kept()
            context = replace(context, run=self._output.run)
        for cluster, own in refused.items():
            findings = (*gathered[cluster].findings, *with_refused_starts((), own))
            gathered[cluster] = replace(gathered[cluster], findings=findings)
        output = self._output
        self._clock.stage("scan and reconcile")
        read_by_judge = judged.pop(READ_BYTES, 0)
        absent = write_absent(context, gathered, options, kept)
        gone = vanished(found)
        judged["problems"] -= fold_problems(work, output.run, {one.input for one in gone})
        problems = (
            *found.problems,
            *left_out,
            *(problem for one in gathered.values() for problem in one.problems),
            *lost,
            *gone,
            *unanswered(work, found, totals, options, kept),
        )
        written = write_rest(work, output.run, found, self._clusters, tasks, totals, problems, gathered, kept)
        done = [
            json.loads(work.read_bytes(f"{STATE}/{name}"))
            for name in work.names(STATE)
            if name.startswith(f"task-{output.run:04d}-")
        ]
        for counts in (judged, absent, written, *(one["rows"] for one in done)):
            expected.update(counts)
        counts = self._publish([name for name in TABLES if name != "plan"], kept)
        expected[COMMITS_TABLE] = sum(counts[COMMITS_TABLE].values())
        copied = {table: sum(chunk.num_rows for chunk in kept.copied(table, ["verdict_id"])) for table in OF_VERDICTS}
        expected.update({table: count for table, count in copied.items() if table != COMMITS_TABLE})
        return self._close(
            {
                **begun,
                "read_bytes": sum(one["read_bytes"] for one in done) + read_by_judge,
                "kept_verdicts": len(kept.keys),
                "quorums": {cluster: packed(one.quorum) for cluster, one in gathered.items() if one.quorum},
                "refused": {cluster: packed(own) for cluster, own in refused.items()},
            },
            expected,
            counts,
            kept,
            reused=sum(one["reused"] for one in done) + copied["segments"],
            tasks=len(context.pieces),
        )

    def _same(self, begun: dict[str, Any], totals: Sequence[LogDirTotals]) -> AuditTables | None:
        """Return the earlier audit that saw all as it is now."""
        begun["fingerprint"] = fingerprint_of(self._found, self._tasks, totals, self._options)
        for earlier in dict.fromkeys(self._bases.values()) if not self._found.problems else ():
            if is_unchanged(begun["fingerprint"], totals, earlier):
                return earlier
        return None

    def _referable(self) -> set[AuditTables]:
        """Return the earlier audits whose parts can go on to hold rows: the last ones of this history, of the same clusters, and of not too long a chain."""
        if not self._output.is_history or self._named is not None:
            return set()
        now = (self._output.stamp.audited_ns, self._output.stamp.audit_id)
        booked: dict[AuditTables, set[str]] = {}
        for cluster, own in zip(self._clusters, self._booked, strict=True):
            if cluster in self._bases:
                booked.setdefault(self._bases[cluster], set()).add(own or "")
        return {
            one
            for one, clusters in booked.items()
            if clusters == set(one.manifest["clusters"]) and one.age < now and len(one.kept_from) < MOST_CHAINED
        }

    def _with_pieces(
        self, context: WorkContext, fleet: Fleet, gathered: Mapping[str, Gathered], kept: Kept
    ) -> WorkContext:
        totals: Sequence[LogDirTotals] = fleet.totals
        facts: Sequence[str] = [part for one in gathered.values() for part in one.parts]
        if kept.keys:
            totals = without_kept(fleet, kept, self._options)
            facts = list(facts_without_kept(fleet, kept, gathered.values())) if totals else []
        # What needs no task needs no session; what once ended an attempt may have ended its process.
        is_small = sum(one.weight for one in totals) <= SCANNED_HERE
        is_here = not totals or (bool(kept.keys) and is_small and self._output.run == 1)
        cores = 1 if is_here else cores_of(self._session())
        return replace(
            context,
            pieces=divide(totals, cores=cores),
            facts=tuple(facts),
            groups=groups_of(sum(one.replicas for one in totals), cores),
            listing=READING if kept.keys else "plan",
            is_here=is_here,
        )

    def _take_over(self, begun: dict[str, Any], earlier: AuditTables) -> AuditTables:
        """Write what the earlier audit found, without problems, as the result of this one."""
        self._clock.stage("plan")
        numbers = earlier.column_table("partitions", ["verdict_id"])["verdict_id"].combine_chunks()
        kept = where_they_are(Kept(verdicts={earlier: numbers}), self._referable())
        write = functools.partial(publish, self._output.tables, self._stamp(kept))
        counts: Counts = {}
        rows: dict[str, int] = {}
        for table in TAKEN_OVER:
            where = ~pd.field("verdict_id").is_valid() if kept.replaced and table in OF_VERDICTS else None
            chunks = [pa.Table.from_batches([one]) for one in earlier.dataset(table).to_batches(filter=where)]
            rows_of = ((one, one["cluster_id"]) for one in chunks)
            counts[table] = write(table, rows_of, empty_for=self._empty_for(table, kept))
            rows[table] = sum(one.num_rows for one in chunks)
        counts["replaced"] = write("replaced", (), empty_for=self._empty_for("replaced", kept))
        reused = 0 if kept.replaced else rows["segments"]
        of_earlier = {"read_bytes": 0, **{one: earlier.manifest.get(one, {}) for one in ("quorums", "refused")}}
        return self._close({**begun, **of_earlier}, rows, counts, kept, reused=reused)

    def _stamp(self, kept: Kept) -> AuditStamp:
        chains = {cluster or None: first for cluster, first in kept.chains.items()}
        depth = (self._options.depth or Depth.CONTENT).value
        return replace(self._output.stamp, depth=depth, chains=chains)

    def _empty_for(self, table: str, kept: Kept) -> str | None:
        return NO_PART if kept.replaced and (table in OF_VERDICTS or table == "replaced") else self._first_cluster

    def _publish(self, tables: Iterable[str], kept: Kept) -> Counts:
        write = functools.partial(publish, self._output.tables, self._stamp(kept))
        cluster_of = _cluster_of(self._booked, self._tasks)
        work, run = self._output.work, self._output.run
        counts: Counts = {}
        # What was read of a partition that could not be judged then has a number, too, and the next audit has no row for it.
        written: dict[str, dict[int, str | None]] = {table: {} for table in OF_VERDICTS}
        audit_id = self._output.stamp.audit_id
        of_offsets = pa.array([verdict_id(audit_id, key) for key in kept.keys if key[1] == OFFSETS_TOPIC], pa.int64())
        for table in tables:

            def numbered(table: str = table) -> Iterator[tuple[pa.Table, pa.Array]]:
                for rows, clusters in working_chunks(work, table, run, cluster_of):
                    if table in written:
                        own = pa.table({"number": rows["verdict_id"], "cluster": clusters}).group_by(
                            ["number", "cluster"]
                        )
                        written[table] |= {one["number"]: one["cluster"] for one in own.aggregate([]).to_pylist()}
                    if table == COMMITS_TABLE:
                        # Those of earlier audits were brought here for what is known, and are kept where they are.
                        is_other = pc.invert(pc.is_in(rows["verdict_id"], value_set=of_offsets))
                        rows, clusters = rows.filter(is_other), clusters.filter(is_other)  # noqa: PLW2901
                    yield rows, clusters

            kept_chunks = kept.copied(table) if table in OF_VERDICTS else ()
            whole = chain(numbered(), ((one, one["cluster_id"]) for one in kept_chunks))
            counts[table] = write(table, whole, empty_for=self._empty_for(table, kept))
        judged = {None, *written["partitions"], *of_offsets.to_pylist()}
        lost = {number: cluster for own in written.values() for number, cluster in own.items() if number not in judged}
        replaced = [
            pa.table(
                {
                    "verdict_id": pa.array(list(lost), pa.int64()),
                    "cluster_id": pa.array(list(lost.values()), pa.string()),
                }
            ),
            *kept.replaced.values(),
        ]
        chunks = ((one.select(REPLACED.names), one["cluster_id"]) for one in replaced if one.num_rows)
        counts["replaced"] = write("replaced", chunks, empty_for=self._empty_for("replaced", kept))
        return counts

    def _close(
        self,
        manifest: dict[str, Any],
        expected: Mapping[str, int],
        counts: Counts,
        kept: Kept,
        *,
        reused: int,
        tasks: int = 0,
    ) -> AuditTables:
        self._lock.check()
        self._clock.stage("write")
        kept_rows = {table: kept.row_count(table) for table in OF_VERDICTS}
        manifest = {
            **manifest,
            "reused_segments": reused + kept_rows["segments"],
            "kept_from": kept.kept_from,
            "chains": kept.chains,
            "seconds": self._clock.seconds,
            "tasks": tasks,
        }
        return self._output.finish(manifest, expected, counts, kept, kept_rows, earlier=self._named)


class _Clock:
    """Measures the stages, and reports the end of each."""

    def __init__(self, progress: Progress | None) -> None:
        self._last = time.monotonic()
        self._progress = progress
        self.seconds: dict[str, float] = {}

    def stage(self, name: str) -> None:
        now = time.monotonic()
        self.seconds[name] = round(now - self._last, 3)
        self._last = now
        if self._progress is not None:
            self._progress(Stage(name=name, tasks=0, seconds=self.seconds[name]))


# ---------------------------------------------------------------- output


def _manifest(
    sources: Sequence[Source], bases: Mapping[str, AuditTables], options: Ask, clusters: Sequence[str | None]
) -> dict[str, Any]:
    return {
        "tool_version": __version__,
        "started_ns": time.time_ns(),
        "sources": [str(one.location) for one in sources],
        "since": max(((one.age, one.audit_id) for one in bases.values()), default=(None, None))[1],
        "clusters": sorted({one or "" for one in clusters}),
        "depth": (options.depth or Depth.CONTENT).value,
        "scope": {"topics": sorted(options.topics), "partitions": sorted(options.partitions)},
    }


def _cluster_of(clusters: Sequence[str | None], tasks: Sequence[LogDirTask]) -> ClusterOf:
    """Return the function that finds the cluster of each row: in the row itself, or by its input, its log directory, or the listing that it is of."""
    by_source = {one.source: clusters[one.input] for one in tasks}
    by_input = dict(enumerate(clusters))

    def cluster_of(rows: pa.Table) -> pa.Array:
        if "cluster_id" in rows.column_names:
            return rows["cluster_id"].combine_chunks()
        column, known = (rows["input"], by_input) if "input" in rows.column_names else (rows["source"], by_source)
        keys = pa.array(list(known), column.type)
        places = pc.index_in(column, value_set=keys)
        return pc.take(pa.array(list(known.values()), pa.string()), places)

    return cluster_of
