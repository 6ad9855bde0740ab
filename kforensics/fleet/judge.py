"""Judging one group of partitions where their evidence meets: the same reconciler as everywhere, its answers as rows."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.ask.model import Ask
from kforensics.case.comparison import CHUNK_PARTITIONS, QUIET_STATES, judge_partition, missing_isr
from kforensics.damage import Absent, Gravity
from kforensics.errors import EvidenceError
from kforensics.evidence.captured.columns import Row, known, segment_of
from kforensics.evidence.discovery.partition_dirs import LogDirState, PartitionPlace
from kforensics.evidence.model import Problem, Replica
from kforensics.evidence.plain import to_plain
from kforensics.evidence.replica.batch_reader import FileBatchReader
from kforensics.evidence.replica.collect import (
    as_captured,
    changes_since,
    collect_replica,
    left_out,
    stitch_replica,
    with_remote_start,
)
from kforensics.evidence.replica.ends import ends_at_hand
from kforensics.findings.answers.diff import judged_partition
from kforensics.findings.answers.model import weighed
from kforensics.findings.concern import JudgedPartition
from kforensics.findings.model import Finding
from kforensics.findings.rules.fleet import placement_findings, undecided_findings
from kforensics.findings.rules.replicas import partition_findings
from kforensics.fleet.audit_tables import AuditTables
from kforensics.fleet.facts import NOTHING, ClusterKnowledge, JoinedKnowledge, unpacked
from kforensics.fleet.keeping import fingerprint_of_partition
from kforensics.fleet.pieces import PartitionKey, Scanned, unpack
from kforensics.fleet.plan import LogDirTask, Piece, place_of, verdict_id
from kforensics.fleet.rows import finding_rows, problem_row, replica_row
from kforensics.fleet.schemas import JUDGED
from kforensics.fleet.tables import Tables
from kforensics.reconcile.logs.divergence import EndsDoNotDecideError
from kforensics.reconcile.replicas.placement import Placement, place_partition
from kforensics.reconcile.replicas.report import WORST, PartitionReport, ReplicaReport, Verdict
from kforensics.render.json.replicas import plain_report
from kforensics.source.mapped import read_counts
from kforensics.source.walk import Listings
from kforensics.units import Depth, TopicPartition

READ_BYTES = "read_bytes"
"""The bytes that the judge read of the ends of logs, beside the number of rows that it wrote to each table."""

STATE = "state"
"""The folder of what workers need beyond the rows, and of the files that record failed attempts."""

_WITH_REPORT = frozenset(Verdict) - {Verdict.LEADER, Verdict.CONSISTENT}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkContext:
    """The values that every task reads and every group is judged with; sent to the workers."""

    tables: Tables
    run: int
    audit: str
    """The name of the audit."""
    digests: Mapping[str, str]
    """By cluster, the digest of what the verdicts on all of its partitions depend on."""
    shared: Mapping[str, str]
    """By cluster, what all of its partitions share of what is known beside the replicas."""
    roots: tuple[Path, ...]
    """The real path of each input."""
    clusters: tuple[str, ...]
    """The cluster that each input is judged with; empty for one of its own."""
    booked: tuple[str | None, ...]
    """The cluster of each input, where its files or the inventory name it."""
    tasks: tuple[LogDirTask, ...]
    """The log directories, in order."""
    audited: Mapping[str, frozenset[int]]
    """Brokers whose disks were looked at, by cluster."""
    bare: frozenset[int]
    """Inputs whose copies left out the logs."""
    options: Ask
    since: Mapping[str, AuditTables]
    """By cluster, the earlier audit whose segments need not be read again."""
    pieces: tuple[tuple[Piece, ...], ...] = ()
    """The pieces of each task; none where the task is left out."""
    facts: tuple[str, ...] = ()
    """The parts of what is known of partitions, each of which is brought by a task of its own."""
    groups: int = 1
    listing: str = "plan"
    """The table of what is read: all that is listed, or of it what no earlier verdict is kept of."""
    is_here: bool = False
    """The driver does it all."""

    def verdict_id(self, key: PartitionKey) -> int:
        """Return the number of the verdict that this audit gives on a partition."""
        return verdict_id(self.audit, key)

    def verdict_of(self, row: Row) -> int:
        """Return that on the partition of a row of an input."""
        return self.verdict_id((self.clusters[row["input"]], row["topic"], row["partition"]))

    @property
    def count(self) -> int:
        """The number of tasks."""
        return len(self.pieces) + len(self.facts)


def judge_group(group: int, parcels: Iterable[bytes], context: WorkContext) -> Mapping[str, int]:
    """Judge the partitions of one group, write their rows, and return how many, by table, with the bytes that were read."""
    scanned = unpack(parcels)
    by_partition = _stitch(scanned, context)
    known = _Known(scanned, context)
    reader = FileBatchReader(context.roots)
    out = JudgedRows(context)
    places = _places(scanned, context)
    begun = read_counts.bytes
    keys = sorted(places)
    for at in range(0, len(keys), CHUNK_PARTITIONS):
        chunk = keys[at : at + CHUNK_PARTITIONS]
        with ends_at_hand([one.place for one in places[key]] for key in chunk if key not in by_partition):
            for key in chunk:
                beside = by_partition.pop(key, [])
                _judge_by_ends(key, places[key], beside, known, reader, out)
    read_bytes = read_counts.bytes - begun
    for key in sorted(by_partition):
        replicas = by_partition[key]
        try:
            out.judge(key, replicas, known.of(key), reader, fingerprint=known.fingerprint(key, replicas))
        except Exception as error:  # noqa: BLE001 - one partition must not take the others of the fleet with it
            replica = replicas[0][1]
            out.failed(key, replica.input, replica.path, error)
    return {**out.write(f"group-{group:05d}"), READ_BYTES: read_bytes}


class _Known:
    """What is known of the partitions of a group, as it came with their evidence."""

    def __init__(self, scanned: Scanned, context: WorkContext) -> None:
        self._context = context
        self._facts = scanned.facts
        self._joined: dict[str, JoinedKnowledge] = {}

    def of(self, key: PartitionKey) -> ClusterKnowledge:
        cluster = key[0]
        if cluster not in self._joined:
            self._joined[cluster] = JoinedKnowledge(self._context.shared[cluster])
        return self._joined[cluster].of(TopicPartition(*key[1:]), self._facts.get(key, NOTHING))

    def fingerprint(self, key: PartitionKey, replicas: Sequence[tuple[Row, Replica]]) -> str | None:
        directories = (row.get("fingerprint") for row, _ in replicas)
        return fingerprint_of_partition(self._context.digests[key[0]], key, self._facts.get(key, NOTHING), directories)


class _Listed(NamedTuple):
    """A partition directory that no task has read yet."""

    row: Row
    place: PartitionPlace


def _places(scanned: Scanned, context: WorkContext) -> dict[PartitionKey, list[_Listed]]:
    out: dict[PartitionKey, list[_Listed]] = {}
    for row in sorted(scanned.directories, key=lambda row: (row["input"], row["task"], row["sequence"])):
        task = context.tasks[row["task"]]
        names = ("sequence", "segment_files", "fingerprint")
        known = {"source": task.source, "content": "files", **{name: row[name] for name in names}}
        key = (context.clusters[row["input"]], row["topic"], row["partition"])
        out.setdefault(key, []).append(
            _Listed(known, place_of(task, row)._replace(is_left_out=row["input"] in context.bare))
        )
    return out


def _judge_by_ends(
    key: PartitionKey,
    listed: Sequence[_Listed],
    scanned: Sequence[tuple[Row, Replica]],
    known: _Known,
    reader: FileBatchReader,
    out: "JudgedRows",
) -> None:
    """Judge a partition by the ends of its logs; by all of them where a scan's evidence is beside them, which says of whole logs what was read."""

    def judge(depth: Depth) -> None:
        collected = [collect_replica(one.place, depth=depth) for one in listed]
        read = [(one.row, each.replica) for one, each in zip(listed, collected, strict=True)]
        problems = [problem for one in collected for problem in one.problems]
        whole = sorted([*read, *scanned], key=lambda one: one[1].input)
        fingerprint = known.fingerprint(key, whole)
        judged_at = Depth.CONTENT if scanned else Depth.TAILS
        out.judge(key, whole, known.of(key), reader, problems, depth=judged_at, fingerprint=fingerprint)

    try:
        try:
            judge(Depth.CONTENT if scanned else Depth.TAILS)
        except (EndsDoNotDecideError, EvidenceError):
            judge(Depth.CONTENT)
    except Exception as error:  # noqa: BLE001 - as above
        place = listed[0].place
        out.failed(key, place.state.input, place.path, error)


def _stitch(scanned: Scanned, context: WorkContext) -> dict[PartitionKey, list[tuple[Row, Replica]]]:
    segments: dict[tuple[str, str], tuple[list[Any], list[Any]]] = {}
    for row in scanned.segments:
        live, deleted = segments.setdefault((row["source"], row["directory"]), ([], []))
        (deleted if row["is_deleted"] else live).append(segment_of(row, row["digests"], row["epochs"]))
    by_partition: dict[PartitionKey, list[tuple[Row, Replica]]] = {}
    order = {one.source: one.number for one in context.tasks}
    ordered = sorted(scanned.replicas, key=lambda row: (row["input"], order.get(row["source"], 0), row["sequence"]))
    for row in ordered:
        live, deleted = segments.get((row["source"], row["path"]), ([], []))
        is_whole = row["segment_files"] == len(live) + len(deleted)
        replica = stitch_replica(unpacked(row["replica"]), live, deleted, is_read_whole=is_whole)
        replica = replica if is_whole else replace(replica, unread_files=(row["path"],))
        replica = as_captured(replica, context.roots[row["input"]])
        if row["input"] in context.bare:
            replica = left_out(replica)
        key = (context.clusters[row["input"]], row["topic"], row["partition"])
        by_partition.setdefault(key, []).append((row, replica))
    return by_partition


def _place_of_replica(replica: Replica, root: Path) -> PartitionPlace:
    """Return the place of a replica, without the facts that its log directory has about it."""
    state = LogDirState(
        listings=Listings(root),
        input=replica.input,
        log_dir=replica.log_dir,
        broker_id=replica.broker_id,
        clean_shutdown=replica.clean_shutdown,
    )
    return PartitionPlace(
        state=state, path=replica.path, topic_partition=replica.topic_partition, directory_state=replica.state
    )


class JudgedRows:
    """Rows of partitions that are judged, until they are written."""

    def __init__(self, context: WorkContext) -> None:
        self._context = context
        self.partitions: list[Row] = []
        self.replicas: list[Row] = []
        self.findings: list[Row] = []
        self.problems: list[Row] = []

    def judge(
        self,
        key: PartitionKey,
        replicas: Sequence[tuple[Row, Replica]],
        knowledge: ClusterKnowledge,
        reader: FileBatchReader,
        problems: Sequence[Problem] = (),
        *,
        depth: Depth = Depth.CONTENT,
        fingerprint: str | None = None,
    ) -> None:
        """Judge a partition by its replicas."""
        cluster = key[0]
        asked = self._context.options
        partition = TopicPartition(*key[1:])
        ask = replace(asked, depth=depth, replicas=knowledge.assignments.get(partition, asked.replicas))
        if starts := knowledge.remote_starts.get(partition):
            replicas = [(row, with_remote_start(replica, starts)) for row, replica in replicas]
        report, findings = judge_partition(
            [replica for _, replica in replicas], reader=reader, knowledge=knowledge, ask=ask
        )
        self.problems += [problem_row(one) for one in problems]
        unread = list(problems) or [
            Problem(input=replica.input, path=replica.path, message="not all of its segments could be read")
            for row, replica in replicas
            if row.get("segment_files") is not None and not (replica.is_read_whole or replica.is_left_out)
        ]
        for _, replica in replicas:
            place = _place_of_replica(replica, self._context.roots[replica.input])
            others = [other for _, other in replicas]
            self.problems += [problem_row(one) for one in changes_since(place, replica, others)]
        self.problems += [problem_row(one) for one in reader.take_lacks()]
        placement = self._placement(cluster, report, knowledge)
        held_by = frozenset(
            one.broker_id for _, one in replicas if one.state == "live" and isinstance(one.broker_id, int)
        )
        more = (
            *missing_isr(report.partition, held_by, self._context.audited.get(cluster, frozenset()), knowledge.facts),
            *undecided_findings(report, reader),
        )
        self._add(
            cluster, report, judged_partition(report, unread), placement, (*findings, *more), replicas, fingerprint
        )
        judged = {(one.view.replica.input, one.view.replica.path): one for one in report.replicas}
        self.replicas += [
            {
                **_judged_row(row, replica, judged.get((replica.input, replica.path))),
                "verdict_id": self._context.verdict_id(key),
            }
            for row, replica in replicas
        ]

    def without_directories(self, cluster: str, report: PartitionReport, knowledge: ClusterKnowledge) -> None:
        """Add a partition of which no input holds a directory."""
        placement = self._placement(cluster, report, knowledge)
        self._add(cluster, report, judged_partition(report, ()), placement, tuple(partition_findings(report)), ())

    def _placement(self, cluster: str, report: PartitionReport, knowledge: ClusterKnowledge) -> Placement:
        audited = self._context.audited.get(cluster, frozenset())
        return place_partition(
            report,
            facts=knowledge.facts,
            audited=audited,
            racks=knowledge.racks,
            stated=knowledge.assignments.get(report.partition, ()),
        )

    def _add(
        self,
        cluster: str,
        report: PartitionReport,
        judged: JudgedPartition,
        placement: Placement,
        findings: Sequence[Finding],
        replicas: Sequence[tuple[Row, Replica]],
        fingerprint: str | None = None,
    ) -> None:
        found = (*weighed(findings, judged.state), *placement_findings(report, placement))
        # That its replicas were judged with those of a cluster makes them none of it.
        is_of_cluster = not replicas or any(self._context.booked[one.input] for _, one in replicas)
        booked = cluster if cluster and is_of_cluster else None
        number = {"verdict_id": self._context.verdict_id((cluster, *report.partition))}
        self.findings += [{**row, **number} for row in finding_rows(found, booked, self._context.roots)]
        row = _partition_row(booked, report, judged, placement, replicas, found)
        self.partitions.append({**row, **number, "fingerprint": fingerprint})

    def failed(self, key: PartitionKey, number: int, path: str, error: Exception) -> None:
        """Add the problem of a partition that could not be judged, at one of its directories."""
        words = f"{TopicPartition(*key[1:])} could not be judged: {type(error).__name__}: {error}"
        self.problems.append(problem_row(Problem(input=number, path=path, message=words)))

    def write(self, name: str) -> Mapping[str, int]:
        """Write all rows as a part of each table, and return how many each got."""
        part = f"run-{self._context.run:04d}-{name}"
        for table in ("partitions", "replicas", "findings"):
            self._context.tables.write(table, part, getattr(self, table))
        self._context.tables.write_if_any("problems", part, self.problems)
        return {name: len(getattr(self, name)) for name in JUDGED}


def _partition_row(
    cluster: str | None,
    report: PartitionReport,
    judged: JudgedPartition,
    placement: Placement,
    replicas: Sequence[tuple[Row, Replica]],
    findings: Sequence[Finding],
) -> Row:
    leader = None if report.is_deleted else report.leader
    chosen = next((one for one in report.what_if if leader is not None and one.leader is leader.view), None)
    grave = any(one.is_grave for one in findings)
    shown = report.verdict in _WITH_REPORT or grave or judged.state not in QUIET_STATES
    return {
        "cluster_id": cluster,
        "topic": report.partition.topic,
        "partition": report.partition.partition,
        "topic_id": known(report.topic_id),
        "state": judged.state.value,
        "verdict": report.verdict.value,
        "verdict_rank": WORST[report.verdict],
        "leader": None if leader is None else known(leader.broker_id),
        "leader_epoch": None if leader is None else known(leader.leader_epoch),
        "leader_source": None if leader is None else leader.source,
        "holders": list(placement.holders),
        "assigned": None if isinstance(placement.assigned, Absent) else list(placement.assigned),
        "isr": None if isinstance(placement.isr, Absent) else list(placement.isr),
        "missing": list(placement.missing),
        "excess": list(placement.excess),
        "is_offline": placement.is_offline,
        "is_under_replicated": placement.is_under_replicated,
        "shares_rack": placement.shares_rack,
        "unclean_elections": placement.unclean_elections,
        "replicas": len(replicas),
        "bytes": sum(segment.length for _, one in replicas for segment in one.segments),
        "lost_certain": chosen.lost_certain if chosen else 0,
        "lost_possible": chosen.lost_possible if chosen else 0,
        "concerns": json.dumps(to_plain(judged.concerns)) if judged.concerns else None,
        "report": json.dumps(plain_report(report, judged.state)) if shown else None,
    }


def damaged_places(replica: Replica) -> int:
    """Return how many places are damaged; the unfinished end of a log that the next start recovers is none."""
    unfinished = 0
    if replica.segments and not replica.clean_shutdown:
        unfinished = sum(place.gravity is Gravity.TORN_TAIL for place in replica.segments[-1].damage)
    every = (*replica.segments, *replica.deleted_segments)
    return (
        sum(place.gravity is not Gravity.UNREAD for one in every for place in one.damage)
        + sum(map(len, replica.damage.values()))
        - unfinished
    )


def _judged_row(row: Row, replica: Replica, report: ReplicaReport | None) -> Row:
    expected = report.truncation if report else None
    divergence = report.divergence if report else None
    protocol = report.protocol if report else Absent.NOT_APPLICABLE
    every = (*replica.segments, *replica.deleted_segments)
    log = report.view if report else replica.lineage
    return {
        **replica_row(replica, row),
        "segments": len(every),
        "bytes": sum(one.length for one in every),
        "damaged_places": damaged_places(replica),
        "verdict": report.verdict.value if report else None,
        "log_start_offset": known(log.log_start_offset),
        "log_end_offset": known(log.log_end_offset) if replica.is_log_known else None,
        "protocol": None if isinstance(protocol, Absent) else protocol.name.value,
        "truncate_to": expected.offset if expected else None,
        "records_cut": expected.counts.records if expected else None,
        "lost_certain": expected.lost.certain if expected else None,
        "lost_possible": expected.lost.possible if expected else None,
        "first_divergence": divergence.offset if divergence else None,
        "divergence_kind": divergence.kind if divergence else None,
    }
