"""All partitions of the inputs compared: what is consistent leaves a line behind, not its batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeVar

from kforensics.ask.model import Ask
from kforensics.case.cluster import Cluster, cluster_of
from kforensics.case.comparison import (
    Flatten,
    PartitionResult,
    compare_all,
    comparison_of,
    known_partitions,
    missing_isr,
    nodes_in_parts,
    result_of,
    results_of,
    single_files,
    without_directories,
)
from kforensics.case.disks import misnamed_directories, refused_ids, stuck_and_doubled
from kforensics.case.model import Case, places_of
from kforensics.case.opening import of_one_moment
from kforensics.case.processes import Progress
from kforensics.case.wanted import check_wanted, is_wanted
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import Inputs, find_inputs, why_not_compared
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.metadata.state import newest_log
from kforensics.evidence.model import Input, Problem
from kforensics.findings.answers.diff import diff_answer
from kforensics.findings.answers.graver import with_disks
from kforensics.findings.answers.model import Answer, State, weighed
from kforensics.findings.concern import Concern, ConcernKind, JudgedPartition
from kforensics.findings.model import Finding, by_gravity
from kforensics.findings.rules.inputs import RefusedStart, identity_findings, with_refused_starts
from kforensics.findings.rules.replicas import partition_findings
from kforensics.formats.log.records import Record
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.replicas.report import PartitionReport, Verdict
from kforensics.units import METADATA_TOPICS, Depth, TopicPartition

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffResult:
    """The comparison of all partitions."""

    inputs: tuple[Input, ...]
    answer: Answer
    partitions: tuple[PartitionResult, ...]
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    depth: Depth = Depth.CONTENT
    dropped: Callable[[], Iterable[tuple[TopicPartition, str, Iterable[Record]]]] = tuple
    """Reads the records that the truncations would discard: the partition, whose replica, and the records."""
    not_captured: tuple[Problem, ...] = ()
    """The replicas of which there is only a capture, so that such records can't be read."""

    @property
    def reports(self) -> tuple[PartitionReport, ...]:
        """The reports that were kept, in order of partition."""
        return tuple(p.report for p in self.partitions if p.report is not None)


def case_of(ask: Ask, rename_group: Callable[[str], str] = str) -> Case:
    """Return the case of what is given as it is now, of one cluster and each node once, with consumer groups as they are called."""
    inputs = find_inputs(ask.paths, with_server_logs=True, why_not=why_not_compared, keep_going=ask.keep_going)
    return Case(ask=ask, inputs=of_one_moment(inputs, ask), rename_group=rename_group)


def compare(
    case: Case,
    *,
    flatten: Flatten | None = None,
    keep_quiet: bool = False,
    progress: Progress | None = None,
) -> DiffResult:
    """Compare every partition that a case is asked about."""
    inputs, options, places, gathered = case.inputs, case.ask, places_of(case), cluster_of(case)
    shared = comparison_of(case)._replace(flatten=flatten, keep_quiet=keep_quiet)
    groups = shared.groups
    newest = newest_log(gathered.histories)
    known = known_partitions(newest, places.lost, gathered.histories)
    if places.by_partition:
        holders = {place.state.broker_id for _, group in groups for place in group}
        check_wanted(options, chain(places.by_partition, known), leader=options.leader, known_brokers=holders)
    is_small = flatten is None and not keep_quiet
    results = with_shortened_logs(
        results_of(case, progress) if is_small else compare_all(shared, case.jobs, progress), groups
    )
    absent = {
        partition: topic_id
        for partition, topic_id in known.items()
        if partition not in places.by_partition and is_wanted(partition, options)
    }
    results += [
        result_of(shared, report, tuple(partition_findings(report)), (), 0)
        for report in without_directories(
            absent, shared.knowledge, is_stopped=options.is_stopped, has_metadata=newest is not None
        )
    ]
    results.sort(key=lambda one: one.partition)
    refused = _refused_starts(inputs, gathered, results)
    disks = (*stuck_and_doubled(case), *refused_ids(case), *misnamed_directories(case, _of_other_topics(results)))
    findings = by_gravity(
        (
            *disks,
            *identity_findings(inputs, nodes_in_parts(inputs)),
            *_missing_isr(inputs, groups, gathered.facts, {result.partition: result.state for result in results}),
            *with_refused_starts((item for result in results for item in result.findings), refused),
        )
    )
    met = (
        *places.problems,
        *single_files(inputs),
        *gathered.problems,
        *gathered.left_out,
        *(p for result in results for p in result.problems),
    )
    problems = tuple(dict.fromkeys(met))
    judged = [result.judged for result in results]
    return DiffResult(
        inputs=inputs.described,
        answer=with_disks(
            diff_answer(
                judged,
                paths=tuple(one.store.origin or one.described.path for one in inputs.found),
                findings=findings,
                problems=inputs.below_named(problems),
                refused=refused,
                quorum=gathered.quorum,
                not_given=absent if newest is not None and shared.knowledge.given else (),
            ),
            disks,
        ),
        partitions=tuple(results),
        findings=findings,
        problems=problems,
        depth=case.depth,
    )


def _refused_starts(inputs: Inputs, gathered: Cluster, results: Sequence[PartitionResult]) -> tuple[RefusedStart, ...]:
    """Return the brokers that do not start as they are, of those of which a truncation is foretold or a small file is damaged."""
    reports = [one.report for one in results if one.report is not None]
    if not any(one.truncation is not None or one.view.replica.damage for each in reports for one in each.replicas):
        return ()
    from kforensics.commands.predicting.refusals import logs_in_doubt, refused_starts  # noqa: PLC0415 - 20 ms, for these alone

    return refused_starts(inputs, gathered, logs_in_doubt(reports))


def _of_other_topics(results: Sequence[PartitionResult]) -> set[TopicPartition]:
    """Return the partitions of which a directory has another topic id, or its broker none."""
    return {
        one.partition
        for one in results
        if one.report is not None
        and (one.report.without_disk or any(each.verdict is Verdict.DIFFERENT_TOPIC for each in one.report.replicas))
    }


def _missing_isr(
    inputs: Inputs,
    groups: Sequence[tuple[TopicPartition, tuple[PartitionPlace, ...]]],
    facts: ClusterFacts,
    states: Mapping[TopicPartition, State],
) -> Iterator[Finding]:
    given = inputs.brokers
    for partition, places in groups:
        held_by = frozenset(
            place.state.broker_id for place in places if place.is_live and isinstance(place.state.broker_id, int)
        )
        yield from weighed(missing_isr(partition, held_by, given, facts), states[partition])


_SAME = frozenset({State.AGREE, State.SAME_ENDS})
"""States that say that every replica ends where the log does."""


def with_shortened_logs(
    results: Sequence[PartitionResult], groups: Sequence[tuple[TopicPartition, tuple[PartitionPlace, ...]]]
) -> list[PartitionResult]:
    """Return the results, in which no partition agrees of which a replica is in a log directory where another log ends before a logged offset."""
    if not any(one.kind is ConcernKind.LOGGED_END for result in results for one in result.judged.concerns):
        return list(results)
    live = {
        partition: [OnDisk(one.state.input, one.state.log_dir, one.state.broker_id) for one in group if one.is_live]
        for partition, group in groups
    }
    judged = beside_shortened_logs({one.partition: one.judged for one in results}, live)
    return [one._replace(judged=judged[one.partition]) for one in results]


class OnDisk(NamedTuple):
    """Where a live replica is."""

    input: int
    log_dir: str
    broker_id: int | Absent


def beside_shortened_logs(
    judged: Mapping[Key, JudgedPartition], live: Mapping[Key, Sequence[OnDisk]]
) -> dict[Key, JudgedPartition]:
    """Return partitions with what is open of those that are calm and have a replica in a log directory where another log ends before a logged offset."""
    disks = {
        (place.input, place.log_dir)
        for key, one in judged.items()
        for concern in one.concerns
        if concern.kind is ConcernKind.LOGGED_END
        for place in live.get(key, ())
        if place.input in concern.inputs
    }
    return {key: _beside(disks, one, live.get(key, ())) for key, one in judged.items()}


def _beside(disks: set[tuple[int, str]], judged: JudgedPartition, live: Sequence[OnDisk]) -> JudgedPartition:
    on = [one for one in live if (one.input, one.log_dir) in disks]
    # One that is behind on another disk says nothing of those that it follows.
    is_calm = judged.state in _SAME or (judged.state is State.BEHIND and len(on) == len(live))
    if not on or not is_calm or judged.is_deleted or judged.partition.topic in METADATA_TOPICS:
        return judged
    concern = Concern(
        state=State.UNKNOWN,
        kind=ConcernKind.SAME_DISK,
        owners=tuple(dict.fromkeys(f"broker {one.broker_id}" for one in on)),
        inputs=tuple(dict.fromkeys(one.input for one in on)),
    )
    return judged._replace(concerns=(*judged.concerns, concern))
