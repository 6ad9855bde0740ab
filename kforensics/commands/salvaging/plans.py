"""What is to be saved of each partition: the losses that `explain` finds, the truncations that `diff` expects, or everything."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kforensics.ask.model import Ask, What
from kforensics.case.cluster import cluster_of
from kforensics.case.model import Case, now_of, places_of
from kforensics.case.processes import spread
from kforensics.case.tiers import remote_copies_of
from kforensics.case.wanted import check_wanted, is_wanted
from kforensics.commands.salvaging.model import PartitionPlan
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import WHOLE_INPUT
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import BatchReader, CheckpointValue, Problem, Replica, Segment
from kforensics.evidence.replica.batch_reader import RowSpool, SpooledTable
from kforensics.evidence.replica.collect import collect_replica, segment_paths
from kforensics.evidence.replica.segments import ScannedPart, joined, parts_of, scan_part
from kforensics.evidence.segment_parts import Part
from kforensics.findings.answers.model import Answer, State
from kforensics.formats.log.batch_table import NO_EPOCH
from kforensics.formats.primitives.numbers import distinct
from kforensics.reconcile.committed.judge import CommittedRun
from kforensics.reconcile.history.log_copies import LogCopies, LogCopy, copies_of
from kforensics.reconcile.logs.loaded_log import LoadedLog, load_log
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.replicas.leader import choose_leader
from kforensics.reconcile.salvage import Gap, GapReason, Wanted, identities
from kforensics.source.naming import FileSuffix
from kforensics.units import METADATA_TOPICS, OffsetRange, TopicPartition

if TYPE_CHECKING:
    from kforensics.reconcile.history.losses import Loss
    from kforensics.reconcile.incident.model import PartitionIncident
    from kforensics.reconcile.replicas.report import PartitionReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One partition to save; its copies are collected when its turn comes."""

    partition: TopicPartition
    places: tuple[PartitionPlace, ...]
    leader: tuple[int, str] | None
    """Input and path of the leader's directory."""
    leader_source: str
    wanted: tuple[Wanted, ...] | None
    unheld: tuple[Wanted, ...] = ()
    """Of which no input holds a copy, unless an image does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Everything that is to be saved."""

    tasks: tuple[Task, ...]
    problems: tuple[Problem, ...]
    answer: Answer
    """Of the command that says what is lost or at risk; of all records, that they are all."""
    partitions: int = 0
    """Partitions that were looked at."""
    facts: ClusterFacts | None = None
    unsettled: tuple[TopicPartition, ...] = ()
    """Partitions of which it is not known whether anything is lost or at risk."""
    not_all_given: tuple[TopicPartition, ...] = ()
    """Partitions with records to save and a replica whose directory is not among the inputs."""
    counts_at_least: bool = False
    """More may be lost than is known: logs were truncated, and no input holds what was there."""
    is_uncommitted: bool = False
    """None of the records that are lost was committed, whatever is unknown beside them."""


def lost_tasks(case: Case) -> Tasks:
    """Return the tasks for all that `explain` reports as lost, whatever its certainty."""
    from kforensics.commands.explain import explain  # noqa: PLC0415 - much to load, and not for everything

    found = explain(case)
    places = places_of(case).by_partition
    tasks = []
    for incident in found.incidents:
        # Nobody puts records of metadata back: its log goes back as a whole, as is said of the quorum.
        if incident.partition.topic in METADATA_TOPICS and incident.partition.topic not in case.ask.topics:
            continue
        leader = _leader_of(incident)
        wanted = tuple(_wanted_of(entry) for entry in incident.losses if entry.held_by)
        # One of both is lost, whoever is trusted.
        wanted += tuple(
            Wanted(
                offsets=entry.offsets,
                leader_epoch=None,
                holders=frozenset({leader}),
                committed="possible",
                is_of_leader=True,
            )
            for entry in incident.losses
            if leader and entry.is_replaced and entry.in_use
        )
        unheld = tuple(_wanted_of(entry) for entry in incident.losses if not entry.held_by)
        if wanted or unheld:
            tasks.append(
                Task(
                    partition=incident.partition,
                    places=places.get(incident.partition, ()),
                    leader=leader,
                    leader_source="option"
                    if case.ask.leader is not None and case.ask.leader == incident.leader
                    else "recorded"
                    if incident.is_leader_known
                    else "guessed",
                    wanted=wanted,
                    unheld=unheld,
                )
            )
    return Tasks(
        tasks=tuple(tasks),
        problems=found.problems,
        answer=found.answer,
        partitions=found.partitions,
        unsettled=tuple(one.partition for one in found.incidents if _is_open(one)),
        not_all_given=tuple(one.partition for one in found.incidents if one.losses and one.missing_replicas),
        counts_at_least=any(one.losses and one.counts_at_least for one in found.incidents),
        is_uncommitted=all(entry.was_committed == "no" for one in found.incidents for entry in one.losses),
    )


def _is_open(incident: "PartitionIncident") -> bool:
    """Whether more of a partition may be lost than its losses say."""
    is_doubted = bool(incident.doubts) and incident.partition.topic not in METADATA_TOPICS
    return is_doubted or bool(incident.past_end) or incident.state == State.UNKNOWN


def _wanted_of(entry: "Loss") -> Wanted:
    return Wanted(
        offsets=entry.offsets,
        leader_epoch=entry.leader_epoch if isinstance(entry.leader_epoch, int) else NO_EPOCH,
        holders=frozenset((one.input, one.path) for one in entry.held_by),
        committed=entry.was_committed,
    )


def _leader_of(incident: "PartitionIncident") -> tuple[int, str] | None:
    end = (incident.leader, incident.log_end_offset)
    logs = (one for one in incident.logs if one.is_final and not one.is_remnant)
    return next(((one.input, one.path) for one in logs if (one.broker_id, one.log_end_offset) == end), None)


def at_risk_tasks(case: Case) -> Tasks:
    """Return the tasks for all that `diff` expects a start, a truncation or an election to discard, or that one replica alone holds, or others than the leader for good."""
    from kforensics.commands.comparing import compare  # noqa: PLC0415 - for what is at risk alone

    compared = compare(now_of(case), keep_quiet=True)
    parted = frozenset(
        one.partition
        for one in compared.partitions
        if any(each.state is State.DIVERGED for each in one.judged.concerns)
    )
    apart = _apart(case, parted) if parted else {}
    places = places_of(case).by_partition
    tasks = []
    for report in compared.reports:
        wanted = tuple(dict.fromkeys((*_at_risk(report), *apart.get(report.partition, ()))))
        if wanted:
            choice = report.leader
            tasks.append(
                Task(
                    partition=report.partition,
                    places=places.get(report.partition, ()),
                    leader=(choice.view.replica.input, choice.view.replica.path) if choice is not None else None,
                    leader_source="unknown" if choice is None else choice.source,
                    wanted=wanted,
                )
            )
    return Tasks(
        tasks=tuple(tasks),
        problems=compared.problems,
        answer=compared.answer,
        partitions=len(compared.partitions),
        unsettled=tuple(one.partition for one in compared.partitions if one.state is State.UNKNOWN),
    )


def _apart(case: Case, parted: frozenset[TopicPartition]) -> dict[TopicPartition, tuple[Wanted, ...]]:
    """Return what only others than the leader hold of partitions whose replicas stay different."""
    from kforensics.commands.explain import explain  # noqa: PLC0415 - much to load, and for few

    found = explain(replace(now_of(case), is_weighed=True, only=parted))
    return {
        one.partition: tuple(_wanted_of(entry) for entry in one.losses if entry.in_use and entry.was_committed != "no")
        for one in found.incidents
    }


def _at_risk(report: "PartitionReport") -> Iterator[Wanted]:
    for one in report.replicas:
        if one.truncation is not None:
            yield from _runs(one.view.replica, one.truncation.runs)
    # Nobody puts records of metadata back.
    recovered = () if report.is_quorum else report.recovered
    for holder in (*report.sole_holders, *report.unassigned_holders, *recovered):
        yield from _runs(holder.view.replica, holder.runs)
    for choice in (*report.costly_elections, *report.empty_elections):
        for view, truncation in choice.truncations:
            own = _own_from(report, view)
            for part in _runs(view.replica, truncation.runs):
                if part.offsets.last >= own:
                    yield replace(part, offsets=OffsetRange(max(part.offsets.first, own), part.offsets.last))


def _own_from(report: "PartitionReport", view: LoadedLog) -> int:
    """Return the offset from which on a replica holds what the leader does not: what both hold is taken from the leader."""
    leader = report.leader_log
    if leader is None or view is leader:
        return 0
    found = next((one.divergence for one in report.replicas if one.view is view), None)
    return leader.log_end_offset if found is None else found.offset


def _runs(replica: Replica, runs: Iterable[CommittedRun]) -> Iterator[Wanted]:
    place = frozenset({(replica.input, replica.path)})
    for run in runs:
        yield Wanted(offsets=run.offsets, leader_epoch=None, holders=place, committed=run.certainty)


def all_tasks(case: Case) -> Tasks:
    """Return the tasks for every partition of the inputs that is asked for."""
    request, places = case.ask, places_of(case)
    holders = {place.state.broker_id for group in places.by_partition.values() for place in group}
    check_wanted(request, places.by_partition, leader=request.leader, known_brokers=holders)
    gathered = cluster_of(case)
    tasks = tuple(
        Task(partition=partition, places=group, leader=None, leader_source="", wanted=None)
        for partition, group in places.by_partition.items()
        if is_wanted(partition, request)
    )
    return Tasks(
        tasks=tasks,
        answer=Answer(state=State.COMPLETE, headline=""),
        problems=(*places.problems, *gathered.problems, *gathered.left_out),
        partitions=len(tasks),
        facts=gathered.facts,
        not_all_given=tuple(one.partition for one in tasks if _lacks_a_replica(one, gathered.facts)),
    )


def _lacks_a_replica(task: Task, facts: ClusterFacts) -> bool:
    """Whether the newest assignment of a partition names a broker of which no live directory of it is given."""
    states = facts.leaderships(task.partition, facts.topic_id(task.partition.topic))
    assigned = states[-1].replicas if states else Absent.UNKNOWN
    held_by = {place.state.broker_id for place in task.places if place.is_live}
    return not isinstance(assigned, Absent) and not set(assigned) <= held_by


def plans_of(
    task: Task,
    case: Case,
    facts: ClusterFacts | None,
    problems: list[Problem],
    *,
    carved: Sequence[LogCopy],
    reader: BatchReader,
    jobs: int = 1,
    spool: RowSpool | None = None,
) -> Iterator[PartitionPlan]:
    """Yield the partition, and other topics that had its name.

    Args:
        carved: copies of the partition out of images, which fill what no other copy has; none is taken where two topics of the name are among the inputs.
        spool: where the rows of their batches wait; none of a partition whose rows are few.
    """
    # What was truncated before is not at risk any more: it is lost, or was never committed.
    left_over = () if case.ask.what is What.AT_RISK else _LEFT_OVER
    scans = _scans(task.places, jobs, spool, left_over) if jobs > 1 or spool is not None else {}
    collected = [
        collect_replica(
            place,
            left_over=left_over,
            scanned={path: segment for (number, path), segment in scans.items() if number == at},
        )
        for at, place in enumerate(task.places)
    ]
    problems += [problem for one in collected for problem in one.problems]
    replicas = [one.replica for one in collected]
    topic_id = facts.topic_id(task.partition.topic) if facts is not None else Absent.UNKNOWN
    found = _copies(replicas, case, topic_id)
    leader, source = _chosen(task, found, case.ask, facts)
    if task.wanted is not None:
        # What explain calls lost may be of an earlier topic of the name.
        found = replace(found, copies=(*found.copies, *found.others), others=())
    beside = () if found.other_topics else tuple(carved)
    if carved and not beside:
        words = f"its batches of {task.partition} are left out: two topics had that name"
        problems += [Problem(input=one.view.replica.input, path=WHOLE_INPUT, message=words) for one in carved]
    plan = _plan(task, (*found.copies, *beside), leader, source, found.topic_id)
    plan = replace(plan, remote=remote_copies_of(now_of(case)))
    yield replace(plan, **_filled(task, leader, beside, reader)) if task.unheld else plan
    if task.wanted is not None:
        return
    ids = sorted({str(one.topic_id) for one in found.other_topics})
    for other in ids:
        those = _copies([one for one in found.other_topics if one.topic_id == other], case, other)
        choice = choose_leader(_views(those.copies), wanted=None, leaderships=())
        leader = next((copy for copy in those.copies if choice is not None and copy.view is choice.view), None)
        plan = _plan(task, those.copies, leader, "guessed", other)
        yield replace(plan, is_other_topic=True)


_LEFT_OVER = (FileSuffix.DELETED, FileSuffix.SWAP)


class _Scanned(NamedTuple):
    part: ScannedPart
    rows: SpooledTable | None
    """None where the part has them itself, or they are too many to be kept."""


def _scans(
    places: Sequence[PartitionPlace], jobs: int, spool: RowSpool | None, left_over: Sequence[FileSuffix]
) -> dict[tuple[int, str], Segment]:
    """Return segments as several processes read them, by the number of the place and the path; what is missing is read when it is collected."""
    files = [(at, path) for at, place in enumerate(places) for path in segment_paths(place, left_over=left_over)]
    most = -(-2 * jobs // max(len(files), 1))  # a few large files are read in parts, each by another process
    each = ((at, path, part) for at, path in files for part in parts_of(places[at], path, most))
    parts = list(enumerate(each))
    found: dict[tuple[int, str], list[_Scanned | None]] = {}
    results = spread(_scan_part, (places, spool), parts, jobs=jobs)
    for (_, (at, path, _)), scanned in zip(parts, results, strict=True):
        found.setdefault((at, path), []).append(scanned)
    segments: dict[tuple[int, str], Segment] = {}
    for (at, path), scans in found.items():
        segment = _joined(places[at], path, scans, spool)
        if segment is not None:
            segments[at, path] = segment
    return segments


def _scan_part(
    given: tuple[Sequence[PartitionPlace], RowSpool | None], task: tuple[int, tuple[int, str, Part]]
) -> _Scanned | None:
    (places, spool), (number, (at, path, part)) = given, task
    scanned = scan_part(places[at], path, part)
    if scanned is None:
        return None
    summary = scanned.summary
    if spool is None or summary.damage or not summary.tables:
        return _Scanned(scanned, None)
    try:
        rows = spool.write(number, np.concatenate(summary.tables))
    except OSError:
        return _Scanned(scanned, None)
    summary.tables = []
    return _Scanned(scanned, rows)


def _joined(
    place: PartitionPlace, path: str, scans: Sequence[_Scanned | None], spool: RowSpool | None
) -> Segment | None:
    """Return a segment whose rows wait in the file, or have come back from there because its damage is judged by them; none where it has to be read again."""
    found = [one for one in scans if one is not None]
    tables = [one.rows for one in found if one.rows is not None]
    if len(found) < len(scans):
        return None
    if not tables or spool is None:
        return joined(path, [one.part for one in found])
    if any(one.part.summary.damage or (one.rows is None and one.part.summary.kept) for one in found):
        try:
            for one in found:
                if one.rows is not None:
                    one.part.summary.tables = [spool.read([one.rows])]
        except OSError:
            return None
        return joined(path, [one.part for one in found])
    segment = joined(path, [one.part for one in found])
    if segment is None:
        return None
    spool.add(place.state.input, path, tables)
    return replace(segment, batches=Absent.NOT_WRITTEN)


def _filled(task: Task, leader: LogCopy | None, carved: Sequence[LogCopy], reader: BatchReader) -> dict[str, Any]:
    """Return what is wanted with what images hold of it, and the gaps that are left."""
    wanted, gaps = list(task.wanted or ()), []
    for one in task.unheld:
        left = [one.offsets]
        for copy in carved:
            rows = reader.batches(copy.view.replica, one.offsets.first, one.offsets.last)
            if one.leader_epoch != NO_EPOCH:
                rows = rows[rows["partition_leader_epoch"] == one.leader_epoch]
            if leader is not None:
                its = reader.batches(leader.view.replica, one.offsets.first, one.offsets.last)
                rows = rows[~np.isin(identities(rows), identities(its))]
            holders = frozenset({(copy.view.replica.input, copy.view.replica.path)})
            epochs = distinct(rows["partition_leader_epoch"]).tolist()
            wanted += [replace(one, leader_epoch=epoch, holders=holders) for epoch in epochs]
            for row in rows:
                held = OffsetRange(int(row["base_offset"]), int(row["last_offset"]))
                left = [part for before in left for part in before.without([held])]
        gaps += [Gap(offsets=part, count=part.count, reason=GapReason.NEVER_SEEN, detail=_UNHELD) for part in left]
    return {"wanted": tuple(wanted), "gaps": tuple(gaps)}


_UNHELD = "log lines say that it was truncated, and no input holds a copy"


def _copies(replicas: Iterable[Replica], case: Case, topic_id: str | Absent) -> LogCopies:
    ranks = case.ranks
    held = list(replicas)
    found = copies_of(
        [one for one in held if one.input not in ranks],
        [(ranks[one.input], one) for one in held if one.input in ranks],
        topic_id=topic_id,
        final_rank=case.final_rank,
    )
    # Before 2.8 nothing shows which topic of the name a deleted directory is of: its records are saved all the same.
    nameless = tuple(
        LogCopy(view=load_log(one), rank=ranks.get(one.input, case.final_rank), is_final=one.input not in ranks)
        for one in held
        if one.state == "deleted" and isinstance(one.topic_id, Absent) and one.segments
    )
    # What could be read of a log is saved, whatever else it holds, and what its start would discard.
    served = (copy for copy in found.copies if not copy.is_unstarted)
    return replace(found, copies=(*served, *found.unread, *nameless))


def _views(copies: Sequence[LogCopy]) -> list[LoadedLog]:
    final = [copy for copy in copies if copy.is_final and not copy.is_remnant]
    return [copy.view for copy in final or copies if copy.view.replica.segments]


def _chosen(task: Task, found: LogCopies, request: Ask, facts: ClusterFacts | None) -> tuple[LogCopy | None, str]:
    if task.wanted is not None:
        for copy in found.copies:
            place = (copy.view.replica.input, copy.view.replica.path)
            if copy.is_final and not copy.is_remnant and place == task.leader:
                return copy, task.leader_source
        return None, "unknown"
    live = [copy.view for copy in found.live] or _views(found.copies)
    leaderships = facts.leaderships(task.partition, found.topic_id) if facts is not None else ()
    choice = choose_leader(live, wanted=request.leader, leaderships=leaderships)
    if choice is not None and (not choice.view.replica.is_log_known or (found.unread and not choice.is_known)):
        return None, "unknown"
    leader = next((copy for copy in found.copies if choice is not None and copy.view is choice.view), None)
    source = "unknown" if choice is None else "guessed" if choice.source == "inferred" else choice.source
    return leader, source


def _plan(
    task: Task, copies: Sequence[LogCopy], leader: LogCopy | None, source: str, topic_id: str | Absent
) -> PartitionPlan:
    ordered = sorted(copies, key=lambda copy: _preference(copy, leader))
    if task.wanted is not None:
        # Bytes that a capture has not are taken from elsewhere, if anything else holds them.
        ordered.sort(key=lambda copy: not copy.view.replica.has_records)
    high_watermark = leader.view.replica.high_watermark if leader is not None else Absent.UNKNOWN
    return PartitionPlan(
        partition=task.partition,
        topic_id=topic_id,
        copies=tuple(ordered),
        leader=leader,
        leader_source=source,
        wanted=task.wanted,
        certain_below=high_watermark.value
        if isinstance(high_watermark, CheckpointValue) and source != "guessed"
        else 0,
    )


_STATES = {"live": 0, "future": 1, "stray": 2, "deleted": 3}


def _preference(copy: LogCopy, leader: LogCopy | None) -> tuple[bool, bool, int, bool, int, int, str]:
    replica = copy.view.replica
    return (
        copy is not leader,
        not copy.is_final,
        -copy.rank,
        copy.is_remnant,
        _STATES.get(replica.state, 4),
        replica.input,
        replica.path,
    )
