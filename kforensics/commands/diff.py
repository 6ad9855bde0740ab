"""The comparison of all partitions of the inputs, streamed: what is consistent leaves a line behind, not its batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kforensics.commands.cluster_evidence import gather_cluster_evidence
from kforensics.commands.processes import default_jobs, in_chunks, spread
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, Inputs
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, find_places
from kforensics.evidence.model import DIGEST_DTYPE, BatchReader, Input, Node, Problem, Replica, Segment
from kforensics.evidence.replica.batch_reader import FileBatchReader
from kforensics.evidence.replica.collect import changes_since, collect_replica, scan_place, segment_paths
from kforensics.findings.diff import identity_findings, missing_isr_findings, partition_findings
from kforensics.findings.model import Finding, Severity, by_gravity
from kforensics.formats.log.records import Record
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.replicas.partition import PartitionReport, Verdict, reconcile_partition
from kforensics.source.naming import FileKind
from kforensics.units import METADATA_TOPICS, TopicPartition

CHUNK_LENGTH = 64 << 20
CHUNK_PARTITIONS = 64
LARGE_PARTITION = 192 << 20
"""Bytes from which the segments of one partition are read by several processes."""
SMALL_WORK = 24 << 20
"""Bytes below which starting processes costs more than it saves."""

QUIET_VERDICTS = frozenset({Verdict.LEADER, Verdict.CONSISTENT, Verdict.BEHIND})

Progress = Callable[[int, int], None]
"""Called with the bytes read since the last call, and the findings so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions:
    """What is compared, and against what."""

    leader: int | None = None
    protocol: ProtocolName | None = None
    protocol_hints: Mapping[int, ProtocolName] = field(default_factory=dict)
    topics: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    rename_group: Callable[[str], str] = str
    """What consumer groups are called in the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    """One partition compared; `plain` is what the caller's `flatten` made of the report, `report` is kept where it needs attention."""

    partition: TopicPartition
    verdict: Verdict
    report: PartitionReport | None
    plain: bytes | None
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffResult:
    """All partitions compared."""

    inputs: tuple[Input, ...]
    partitions: tuple[PartitionResult, ...]
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]

    @property
    def reports(self) -> tuple[PartitionReport, ...]:
        """The reports that were kept, in order of partition."""
        return tuple(p.report for p in self.partitions if p.report is not None)


Flatten = Callable[[PartitionReport], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    groups: Sequence[tuple[TopicPartition, tuple[PartitionPlace, ...]]]
    reader: FileBatchReader
    facts: ClusterFacts
    options: DiffOptions
    flatten: Flatten | None
    keep_quiet: bool


def compare(
    inputs: Inputs,
    options: DiffOptions,
    *,
    jobs: int | None = None,
    flatten: Flatten | None = None,
    keep_quiet: bool = False,
    progress: Progress | None = None,
) -> DiffResult:
    """Compare every partition of the inputs that the options ask for.

    Args:
        inputs: what was named.
        options: leader, protocol, which partitions.
        jobs: processes; one for each core where not given.
        flatten: makes of each report what is written out, where it was computed; keeps memory small.
        keep_quiet: keep the reports of consistent partitions too.
        progress: told of bytes and findings as they come.
    """
    places = find_places(inputs)
    gathered = gather_cluster_evidence(inputs, places, rename_group=options.rename_group)
    options = replace(options, protocol_hints={**gathered.protocol_hints, **options.protocol_hints})
    groups = [(tp, group) for tp, group in places.by_partition.items() if is_wanted(tp, options)]
    shared = _Shared(
        groups=groups,
        reader=FileBatchReader([one.root for one in inputs.found]),
        facts=gathered.facts,
        options=options,
        flatten=flatten,
        keep_quiet=keep_quiet,
    )
    results = _run(shared, jobs or default_jobs(), progress)
    findings = by_gravity(
        (
            *identity_findings(inputs.described, nodes_of(inputs)),
            *_missing_isr(inputs, groups, gathered.facts),
            *(item for result in results for item in result.findings),
        )
    )
    return DiffResult(
        inputs=inputs.described,
        partitions=tuple(results),
        findings=findings,
        problems=(
            *places.problems,
            *single_files(inputs),
            *_not_found(places.by_partition, groups, options),
            *gathered.problems,
            *(p for result in results for p in result.problems),
        ),
    )


def nodes_of(inputs: Inputs) -> tuple[Node, ...]:
    """The nodes among the inputs."""
    return tuple(
        Node(
            input=index,
            node_id=found.described.broker_id,
            kind=found.described.kind,
            cluster_id=found.described.cluster_id,
            version_hint=found.described.kafka_version_hint,
        )
        for index, found in enumerate(inputs.found)
        if found.log_dirs
    )


def _missing_isr(
    inputs: Inputs, groups: Sequence[tuple[TopicPartition, tuple[PartitionPlace, ...]]], facts: ClusterFacts
) -> Iterator[Finding]:
    """Partitions whose whole ISR has lost them, by the disks of just those brokers."""
    given = frozenset(node.node_id for node in nodes_of(inputs) if isinstance(node.node_id, int))
    for partition, places in groups:
        if partition.topic in METADATA_TOPICS:
            continue
        states = facts.leaderships(partition, facts.topic_id(partition.topic))
        held_by = frozenset(
            place.state.broker_id
            for place in places
            if place.directory_state == "live" and isinstance(place.state.broker_id, int)
        )
        if states and held_by:  # of a deleted topic no live directory is left
            yield from missing_isr_findings(partition, states[-1], held_by, given)


def is_wanted(partition: TopicPartition, options: DiffOptions) -> bool:
    """Whether the options ask for the partition."""
    if options.topics and partition.topic not in options.topics:
        return False
    return not options.partitions or partition.partition in options.partitions


def _not_found(
    all_places: Mapping[TopicPartition, tuple[PartitionPlace, ...]],
    wanted: Sequence[tuple[TopicPartition, tuple[PartitionPlace, ...]]],
    options: DiffOptions,
) -> Iterator[Problem]:
    return not_found(
        options,
        topics={partition.topic for partition in all_places},
        partitions={partition.partition for partition, _ in wanted},
        brokers={place.state.broker_id for _, group in wanted for place in group},
    )


def not_found(
    options: DiffOptions, *, topics: set[str], partitions: set[int], brokers: set[int | Absent]
) -> Iterator[Problem]:
    """What was asked for by name and is nowhere in the inputs: an answer about the rest is no answer about it.

    Args:
        options: what was asked for.
        topics: all that are there.
        partitions: the numbers of those that were wanted and found.
        brokers: that hold one of these.
    """

    def problem(words: str) -> Problem:
        return Problem(input=0, path=WHOLE_INPUT, message=words)

    for topic in sorted(options.topics - topics):
        yield problem(f"no partition of topic {topic} is among the inputs (--topic)")
    for number in sorted(options.partitions - partitions):
        yield problem(f"no partition {number} of the wanted topics is among the inputs (--partition)")
    if options.leader is not None and options.leader not in brokers:
        yield problem(
            f"broker {options.leader} holds no wanted partition among the inputs (--leader): leaders were chosen without it"
        )


def single_files(inputs: Inputs) -> Iterator[Problem]:
    """Segments that stand alone: nothing says what they are replicas of."""
    for index, found in enumerate(inputs.found):
        if found.described.kind == FileKind.SEGMENT.value:
            words = "a segment file by itself does not say which partition it is of: name its partition directory"
            yield Problem(input=index, path=WHOLE_INPUT, message=words)


def _run(shared: _Shared, jobs: int, progress: Progress | None) -> list[PartitionResult]:
    weights = [sum(place.length for place in group) for _, group in shared.groups]
    if sum(weights) < SMALL_WORK and len(weights) < 4 * CHUNK_PARTITIONS:
        jobs = 1
    large = [at for at, weight in enumerate(weights) if weight >= LARGE_PARTITION and jobs > 1]
    scans = _scan_large(shared, large, jobs, progress)
    small = [at for at in range(len(weights)) if at not in set(large)]
    chunks = [
        tuple(small[first:end])
        for first, end in in_chunks((weights[at] for at in small), weight=CHUNK_LENGTH, most=CHUNK_PARTITIONS)
    ]
    results: dict[int, PartitionResult] = {}
    found = 0
    for chunk, members in zip(chunks, spread(_compare_chunk, shared, chunks, jobs=jobs), strict=True):
        results.update(zip(chunk, members, strict=True))
        found += sum(len(member.findings) for member in members)
        if progress:
            progress(sum(member.length for member in members), found)
    for at in large:
        results[at] = _compare_one(shared, at, scans.get(at, {}))
    return [results[at] for at in range(len(weights))]


def _scan_large(
    shared: _Shared, large: Sequence[int], jobs: int, progress: Progress | None
) -> dict[int, dict[tuple[int, str], Segment]]:
    tasks = [
        (at, number, path)
        for at in large
        for number, place in enumerate(shared.groups[at][1])
        for path in segment_paths(place)
    ]
    scans: dict[int, dict[tuple[int, str], Segment]] = {}
    for (at, number, path), segment in zip(tasks, spread(_scan_one, shared, tasks, jobs=jobs), strict=True):
        if segment is not None:
            scans.setdefault(at, {})[number, path] = segment
            if progress:
                progress(segment.length, 0)
    return scans


def _scan_one(shared: _Shared, task: tuple[int, int, str]) -> Segment | None:
    at, number, path = task
    return scan_place(shared.groups[at][1][number], path)


def _compare_chunk(shared: _Shared, chunk: Iterable[int]) -> list[PartitionResult]:
    return [_compare_one(shared, at, {}) for at in chunk]


def _compare_one(shared: _Shared, at: int, scans: Mapping[tuple[int, str], Segment]) -> PartitionResult:
    partition, places = shared.groups[at]
    collected = [
        collect_replica(place, scanned={path: segment for (n, path), segment in scans.items() if n == number})
        for number, place in enumerate(places)
    ]
    report, findings = judge_partition(
        [one.replica for one in collected], reader=shared.reader, facts=shared.facts, options=shared.options
    )
    grave = any(item.severity.rank >= Severity.WARNING.rank for item in findings)
    keep = shared.keep_quiet or grave or report.verdict not in QUIET_VERDICTS
    return PartitionResult(
        partition=partition,
        verdict=report.verdict,
        report=without_batches(report) if keep else None,
        plain=shared.flatten(report) if shared.flatten else None,
        findings=findings,
        problems=(
            *(problem for one in collected for problem in one.problems),
            *(
                problem
                for place, one in zip(places, collected, strict=True)
                for problem in changes_since(place, one.replica)
            ),
        ),
        length=sum(place.length for place in places),
    )


def judge_partition(
    replicas: Sequence[Replica], *, reader: BatchReader, facts: ClusterFacts, options: DiffOptions
) -> tuple[PartitionReport, tuple[Finding, ...]]:
    """The verdict on one partition and its findings, wherever its replicas were read."""
    report = reconcile_partition(
        replicas,
        reader=reader,
        facts=facts,
        wanted_leader=options.leader,
        wanted_protocol=options.protocol,
        protocol_hints=options.protocol_hints,
    )
    return report, tuple(partition_findings(report))


def records_to_go(result: DiffResult, inputs: Inputs) -> Iterator[tuple[TopicPartition, str, Iterator[Record]]]:
    """For each expected truncation: the partition, whose replica, and the records it would cut."""
    reader = FileBatchReader([one.root for one in inputs.found])
    for report in result.reports:
        for replica in report.replicas:
            if replica.truncation is not None:
                first, last = replica.truncation.dropped
                directory = replica.view.replica
                yield report.partition, directory.owner, reader.records(directory, first, last)


def without_batches(report: PartitionReport) -> PartitionReport:
    """The report without batch tables and digests, which only the comparison needs."""
    # A view stays one object wherever the report names it: readers compare by identity.
    slim: dict[int, LoadedLog] = {}

    def view(one: LoadedLog) -> LoadedLog:
        if id(one) not in slim:
            segments = tuple(map(_slim_segment, one.segments))
            slim[id(one)] = replace(one, replica=_slim_replica(one.replica), segments=segments)
        return slim[id(one)]

    replicas = tuple(
        replace(r, view=view(r.view), compared_with=view(r.compared_with) if r.compared_with else None)
        for r in report.replicas
    )
    what_if = tuple(
        replace(w, leader=view(w.leader), truncations=tuple((view(v), truncation) for v, truncation in w.truncations))
        for w in report.what_if
    )
    leader = replace(report.leader, view=view(report.leader.view)) if report.leader else None
    return replace(
        report, replicas=replicas, what_if=what_if, leader=leader, set_aside=tuple(map(_slim_replica, report.set_aside))
    )


def _slim_replica(replica: Replica) -> Replica:
    return replace(
        replica,
        segments=tuple(map(_slim_segment, replica.segments)),
        deleted_segments=tuple(map(_slim_segment, replica.deleted_segments)),
    )


def _slim_segment(segment: Segment) -> Segment:
    return replace(segment, batches=Absent.NOT_WRITTEN, digests=np.zeros(0, dtype=DIGEST_DTYPE))
