"""The comparison of all partitions of the inputs, streamed: what is consistent leaves a line behind, not its batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics.commands.cluster_evidence import ClusterEvidence, Reading, gather_cluster_evidence
from kforensics.commands.filters import check_wanted
from kforensics.commands.processes import END_OF_LOG, default_jobs, in_chunks, spread
from kforensics.commands.result import Conclusion, Progress, Result, check_seal_of
from kforensics.commands.truncated_records import lacking_records, truncated_records
from kforensics.commands.without_batches import without_batches
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, Inputs, find_inputs, why_not_compared
from kforensics.evidence.discovery.partition_dirs import LostDirectory, PartitionPlace, Places, find_places
from kforensics.evidence.metadata.log import MetadataHistory, newest_log
from kforensics.evidence.model import BatchReader, Input, Node, Problem, Replica, Segment
from kforensics.evidence.replica.batch_reader import FileBatchReader
from kforensics.evidence.replica.collect import (
    CollectedReplica,
    changes_since,
    collect_replica,
    scan_place,
    segment_paths,
)
from kforensics.evidence.replica.read_ahead import ends_at_hand
from kforensics.findings.answers.diff import JudgedPartition, diff_answer, judged_partition
from kforensics.findings.answers.model import Answer, State
from kforensics.findings.diff import identity_findings, missing_isr_findings, partition_findings
from kforensics.findings.model import Finding, Severity, by_gravity
from kforensics.formats.log.records import Record
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.logs.divergence import EndsDoNotDecideError
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.replicas.directories import Given
from kforensics.reconcile.replicas.partition import (
    PartitionReport,
    Verdict,
    partition_without_replicas,
    reconcile_partition,
)
from kforensics.source.capture import CapturePath
from kforensics.source.naming import FileKind
from kforensics.units import METADATA_TOPICS, Depth, TopicPartition

if TYPE_CHECKING:
    from kforensics.commands.redaction.pseudonyms import Pseudonyms

CHUNK_LENGTH = 64 << 20
CHUNK_PARTITIONS = 64
LARGE_PARTITION = 192 << 20
"""Bytes from which the segments of one partition are read by several processes."""
SMALL_WORK = 24 << 20
"""Bytes below which starting processes costs more than it saves."""

QUIET_VERDICTS = frozenset({Verdict.LEADER, Verdict.CONSISTENT, Verdict.BEHIND})
QUIET_STATES = frozenset({State.UNKNOWN, State.BEHIND, State.SAME_ENDS, State.AGREE})
"""Of partitions that get no block on the screen where no replica has a verdict that needs one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions:
    """The options of a comparison: what is compared, and against what."""

    leader: int | None = None
    protocol: ProtocolName | None = None
    protocol_hints: Mapping[int, ProtocolName] = field(default_factory=dict)
    topics: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    possible_protocols: Mapping[int, Sequence[ProtocolName]] = field(default_factory=dict)
    """The protocols that the files of a broker's log directories leave possible, by broker."""
    replicas: tuple[int, ...] = ()
    """The brokers that every partition is assigned to, where no metadata says it."""
    given: Given = field(default_factory=dict)
    """Brokers whose log directories are among the inputs."""
    is_stopped: bool = False
    """No broker ran when its directories were copied."""
    rename_group: Callable[[str], str] = str
    """The function that gives the names of consumer groups in the result."""
    depth: Depth = Depth.CONTENT
    """How much of the logs is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    """One partition compared; `plain` is what the caller's `flatten` made of the report, `report` is kept where it needs attention."""

    partition: TopicPartition
    verdict: Verdict
    judged: JudgedPartition
    report: PartitionReport | None
    plain: bytes | None
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    length: int

    @property
    def state(self) -> State:
        """The state, by the words of the whole answer."""
        return self.judged.state


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


Flatten = Callable[[PartitionReport, State], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest:
    """The request to compare replicas."""

    paths: tuple[Path, ...]
    leader: int | None = None
    """Taken as the leader of every partition it holds."""
    protocol: str | None = None
    """`hw`, `kip-101`, `kip-279` or `kip-595`; from the evidence where not given."""
    replicas: tuple[int, ...] = ()
    """The brokers that every partition is assigned to, where no metadata says it."""
    is_stopped: bool = False
    """No broker ran when its directories were copied."""
    topics: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    pseudonyms: "Pseudonyms | None" = None
    """The pseudonyms of payloads and groups; None where they are shown as they are."""
    seal: Path | None = None
    """A manifest to check the inputs against first."""
    jobs: int | None = None
    """Processes; one for each core where not given."""
    flatten: Flatten | None = None
    """Makes of each report what is written out, where it was computed; keeps memory small."""
    keep_quiet: bool = True
    """Keep the reports of consistent partitions too."""
    cluster: str | None = None
    """The id of the cluster that is wanted, where the inputs are of several."""
    keep_going: bool = False
    """A path that can't be used is a problem in the report, and the others are read."""
    depth: Depth = Depth.CONTENT
    """How much of the logs is read."""
    read: Reading[Inputs] | None = None
    """What an earlier look at the same inputs has read."""


def run(request: DiffRequest, progress: Progress | None = None) -> Result[DiffResult]:
    """Compare the replicas of every partition below the paths.

    Args:
        request: paths, filters and seal.
        progress: called with bytes read and findings so far.

    Returns:
        A result for each partition.

    Raises:
        EvidenceError: a path can't be used.
        UsageError: the seal is of other paths.
        ValueError: no such protocol.
    """
    options = DiffOptions(
        leader=request.leader,
        protocol=ProtocolName(request.protocol) if request.protocol else None,
        topics=request.topics,
        partitions=request.partitions,
        replicas=request.replicas,
        is_stopped=request.is_stopped,
        rename_group=request.pseudonyms.group if request.pseudonyms else str,
        depth=request.depth,
    )
    read = request.read or _read(request, options)
    inputs = read.found
    compared = compare(
        inputs,
        options,
        read=read,
        jobs=request.jobs,
        flatten=request.flatten,
        keep_quiet=request.keep_quiet,
        progress=progress,
    )
    compared = replace(
        compared,
        dropped=partial(_dropped, compared, inputs, request.pseudonyms),
        not_captured=tuple(lacking_records(compared.reports, inputs)),
    )
    return Result(
        command="diff",
        inputs=compared.inputs,
        body=compared,
        concluded=Conclusion(
            answer=compared.answer,
            findings=compared.findings,
            problems=compared.problems,
        ),
        seal=read.seal,
        reading=read,
    )


def _read(request: DiffRequest, options: DiffOptions) -> Reading[Inputs]:
    inputs = find_inputs(
        request.paths,
        with_server_logs=True,
        why_not=why_not_compared,
        keep_going=request.keep_going,
        one_cluster=True,
        cluster=request.cluster,
    )
    seal = check_seal_of(request.seal, request.paths, inputs.described, request.jobs)
    places = find_places(inputs)
    gathered = gather_cluster_evidence(inputs, places, rename_group=options.rename_group)
    return Reading(found=inputs, seal=seal, places=places, gathered=gathered)


def _dropped(
    compared: DiffResult, inputs: Inputs, pseudonyms: "Pseudonyms | None"
) -> Iterator[tuple[TopicPartition, str, Iterator[Record]]]:
    for partition, owner, records in truncated_records(compared.reports, inputs):
        hidden = records
        if pseudonyms:
            from kforensics.commands.redaction.records import redact_record  # noqa: PLC0415 - 10 ms, seldom asked for

            hidden = map(partial(redact_record, pseudonyms=pseudonyms), records)
        yield partition, owner, hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What every comparison of the replicas of a partition needs."""

    groups: Sequence[tuple[TopicPartition, tuple[PartitionPlace, ...]]]
    reader: FileBatchReader
    facts: ClusterFacts
    options: DiffOptions
    flatten: Flatten | None = None
    keep_quiet: bool = True


def comparison_of(inputs: Inputs, places: Places, gathered: ClusterEvidence, options: DiffOptions) -> Comparison:
    """Return what is needed to compare the partitions that the options ask for; no log is read.

    Args:
        inputs: as they are now.
        places: their partition directories.
        gathered: their evidence beyond the replicas.
        options: leader, protocol, which partitions.
    """
    options = replace(
        options,
        protocol_hints={**gathered.protocol_hints, **options.protocol_hints},
        possible_protocols=gathered.possible_protocols,
        given=gathered.given,
    )
    return Comparison(
        groups=[(tp, group) for tp, group in places.by_partition.items() if is_wanted(tp, options)],
        reader=FileBatchReader([one.root for one in inputs.found]),
        facts=gathered.facts,
        options=options,
    )


def compare(
    inputs: Inputs,
    options: DiffOptions,
    *,
    jobs: int | None = None,
    flatten: Flatten | None = None,
    keep_quiet: bool = False,
    progress: Progress | None = None,
    read: Reading[Inputs] | None = None,
) -> DiffResult:
    """Compare every partition of the inputs that the options ask for.

    Args:
        inputs: what was named.
        options: leader, protocol, which partitions.
        jobs: processes; one for each core where not given.
        flatten: makes of each report what is written out, where it was computed; keeps memory small.
        keep_quiet: keep the reports of consistent partitions too.
        progress: called with bytes and findings as they come.
        read: what was read of them already.
    """
    places = find_places(inputs) if read is None else read.places
    gathered = (
        gather_cluster_evidence(inputs, places, rename_group=options.rename_group) if read is None else read.gathered
    )
    shared = replace(comparison_of(inputs, places, gathered, options), flatten=flatten, keep_quiet=keep_quiet)
    groups = shared.groups
    if places.by_partition:
        check_wanted(
            topics=options.topics,
            known_topics={tp.topic for tp in places.by_partition},
            partitions=options.partitions,
            known_partitions={
                tp.partition for tp in places.by_partition if not options.topics or tp.topic in options.topics
            },
            leader=options.leader,
            known_brokers={
                place.state.broker_id
                for _, group in groups
                for place in group
                if not isinstance(place.state.broker_id, Absent)
            },
        )
    results = _run(shared, jobs or default_jobs(), progress)
    newest = newest_log(gathered.histories)
    absent = {
        partition: topic_id
        for partition, topic_id in known_partitions(newest, places.lost).items()
        if partition not in places.by_partition and is_wanted(partition, options)
    }
    results += [
        _result(shared, report, tuple(partition_findings(report)), (), 0)
        for report in without_directories(absent, shared.facts, shared.options, has_metadata=newest is not None)
    ]
    results.sort(key=lambda one: one.partition)
    findings = by_gravity(
        (
            *identity_findings(inputs.described, nodes_of(inputs)),
            *_missing_isr(inputs, groups, gathered.facts),
            *(item for result in results for item in result.findings),
        )
    )
    problems = (
        *places.problems,
        *single_files(inputs),
        *gathered.problems,
        *(p for result in results for p in result.problems),
    )
    judged = [result.judged for result in results]
    # A named path that can't be used is in the headline by its name.
    below = [one for one in problems if inputs.found[one.input].shape is not Absent.UNREADABLE]
    return DiffResult(
        inputs=inputs.described,
        answer=diff_answer(
            judged,
            paths=_paths_on_brokers(inputs),
            findings=findings,
            problems=below,
            not_given=absent if newest is not None and shared.options.given else (),
        ),
        partitions=tuple(results),
        findings=findings,
        problems=problems,
        depth=options.depth,
    )


def known_partitions(
    history: MetadataHistory | None, lost: Iterable[LostDirectory]
) -> dict[TopicPartition, str | Absent]:
    """Return the partitions of topics that are there by the metadata log, or where none is given by the checkpoints, each with its topic id.

    Args:
        history: the newest metadata log, None where there is none.
        lost: partitions that checkpoints name and that have no directory.
    """
    if history is None:
        # A topic that a metadata log does not know was deleted.
        return {one.topic_partition: Absent.UNKNOWN for one in lost}
    names = {topic_id: state.name for topic_id, state in history.topics.items() if isinstance(state.removed, Absent)}
    return {
        TopicPartition(names[topic_id], number): topic_id
        for topic_id, number in history.partitions
        if topic_id in names
    }


def without_directories(
    known: Mapping[TopicPartition, str | Absent], facts: ClusterFacts, options: DiffOptions, *, has_metadata: bool
) -> Iterator[PartitionReport]:
    """Yield partitions that a broker that is given should hold and of which no directory is anywhere among the inputs.

    Args:
        known: partitions without a directory, with their topic ids.
        facts: what the metadata says.
        options: of the comparison.
        has_metadata: whether a metadata log is among the inputs.
    """
    for partition, topic_id in known.items() if options.given else ():
        states = facts.leaderships(partition, topic_id)
        state = states[-1] if states and isinstance(states[-1].replicas, tuple) else None
        if has_metadata and state is None:
            continue
        report = partition_without_replicas(
            partition, state, facts=facts, given=options.given, is_stopped=options.is_stopped
        )
        if report.emptied:
            yield report


def nodes_of(inputs: Inputs) -> tuple[Node, ...]:
    """Return the nodes among the inputs: each that has log directories.

    Args:
        inputs: all that were given.
    """
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
    given = frozenset(node.node_id for node in nodes_of(inputs) if isinstance(node.node_id, int))
    for partition, places in groups:
        held_by = frozenset(
            place.state.broker_id
            for place in places
            if place.directory_state == "live" and isinstance(place.state.broker_id, int)
        )
        yield from missing_isr(partition, held_by, given, facts)


def missing_isr(
    partition: TopicPartition, held_by: frozenset[int], given: frozenset[int], facts: ClusterFacts
) -> Iterator[Finding]:
    """Yield a partition whose whole ISR has lost it, by the disks of just those brokers.

    Args:
        partition: which.
        held_by: brokers with a live directory of it.
        given: brokers whose log directories are among the inputs.
        facts: what the metadata says.
    """
    topic_id = facts.topic_id(partition.topic)
    if partition.topic in METADATA_TOPICS or facts.is_deleted(partition.topic, topic_id):
        return
    states = facts.leaderships(partition, topic_id)
    if states and held_by:  # of a deleted topic no live directory is left
        yield from missing_isr_findings(partition, states[-1], held_by, given)


def is_wanted(partition: TopicPartition, options: DiffOptions) -> bool:
    """Whether the options ask for the partition.

    Args:
        partition: the topic and number.
        options: without topics all are asked for, without numbers all of these topics.
    """
    if options.topics and partition.topic not in options.topics:
        return False
    return not options.partitions or partition.partition in options.partitions


def single_files(inputs: Inputs) -> Iterator[Problem]:
    """Yield a problem for each segment without a partition directory: nothing says what it is a replica of.

    Args:
        inputs: all that were given.
    """
    for index, found in enumerate(inputs.found):
        if found.described.kind == FileKind.SEGMENT.value:
            words = "a segment file by itself does not say which partition it is of: name its partition directory"
            yield Problem(input=index, path=WHOLE_INPUT, message=words)


def _run(shared: Comparison, jobs: int, progress: Progress | None) -> list[PartitionResult]:
    is_by_ends = shared.options.depth is Depth.TAILS
    weights = [
        len(group) * END_OF_LOG if is_by_ends else sum(place.length for place in group) for _, group in shared.groups
    ]
    if sum(weights) < SMALL_WORK and len(weights) < 4 * CHUNK_PARTITIONS:
        jobs = 1
    if progress:
        progress.expect(sum(weights))
    large = [at for at, weight in enumerate(weights) if weight >= LARGE_PARTITION and jobs > 1]
    scans = _scan_large(shared, large, jobs, progress)
    small = [at for at in range(len(weights)) if at not in set(large)]
    chunks = [
        tuple(small[first:end])
        for first, end in in_chunks((weights[at] for at in small), weight=CHUNK_LENGTH, most=CHUNK_PARTITIONS)
    ]
    results: dict[int, PartitionResult] = {}
    sizes = [sum(weights[at] for at in chunk) for chunk in chunks]
    done = spread(_compare_chunk, shared, chunks, jobs=jobs, sizes=sizes, progress=progress)
    for chunk, members in zip(chunks, done, strict=True):
        results.update(zip(chunk, members, strict=True))
    if progress:
        progress(0, sum(len(one.findings) for one in results.values()))
    for at in large:
        results[at] = _compare_one(shared, at, scans.get(at, {}))
    return [results[at] for at in range(len(weights))]


def _scan_large(
    shared: Comparison, large: Sequence[int], jobs: int, progress: Progress | None
) -> dict[int, dict[tuple[int, str], Segment]]:
    tasks: list[tuple[int, int, str]] = []
    sizes: list[int] = []
    for at in large:
        for number, place in enumerate(shared.groups[at][1]):
            paths = segment_paths(place)
            tasks += [(at, number, path) for path in paths]
            sizes += [place.length // len(paths) for _ in paths]
    scans: dict[int, dict[tuple[int, str], Segment]] = {}
    done = spread(_scan_one, shared, tasks, jobs=jobs, sizes=sizes, progress=progress)
    for (at, number, path), segment in zip(tasks, done, strict=True):
        if segment is not None:
            scans.setdefault(at, {})[number, path] = segment
    return scans


def _scan_one(shared: Comparison, task: tuple[int, int, str]) -> Segment | None:
    at, number, path = task
    return scan_place(shared.groups[at][1][number], path)


def _compare_chunk(shared: Comparison, chunk: Sequence[int]) -> list[PartitionResult]:
    if shared.options.depth is Depth.CONTENT:
        return [_compare_one(shared, at, {}) for at in chunk]
    with ends_at_hand(shared.groups[at][1] for at in chunk):
        return [_compare_one(shared, at, {}) for at in chunk]


def _compare_one(shared: Comparison, at: int, scans: Mapping[tuple[int, str], Segment]) -> PartitionResult:
    _, places = shared.groups[at]

    def collect(depth: Depth) -> list[CollectedReplica]:
        return [
            collect_replica(
                place, scanned={path: segment for (n, path), segment in scans.items() if n == number}, depth=depth
            )
            for number, place in enumerate(places)
        ]

    try:
        return compare_replicas(shared, places, collect(shared.options.depth))
    except (EndsDoNotDecideError, EvidenceError):
        return compare_replicas(shared, places, collect(Depth.CONTENT))


def compare_replicas(
    shared: Comparison, places: Sequence[PartitionPlace], collected: Sequence[CollectedReplica]
) -> PartitionResult:
    """Compare the replicas of one partition that have been read.

    Args:
        shared: what every comparison needs.
        places: the directories of the partition.
        collected: what was read of each of them.

    Raises:
        EndsDoNotDecideError: the ends of the logs were read alone, and do not decide.
        EvidenceError: they were, and what is needed below can't be read.
    """
    replicas = [one.replica for one in collected]
    report, findings = judge_partition(replicas, reader=shared.reader, facts=shared.facts, options=shared.options)
    problems = (
        *(problem for one in collected for problem in one.problems),
        *(
            problem
            for place, one in zip(places, collected, strict=True)
            for problem in changes_since(place, one.replica, replicas)
        ),
        *shared.reader.take_lacks(),
    )
    return _result(shared, report, findings, problems, sum(place.length for place in places))


def _result(
    shared: Comparison,
    report: PartitionReport,
    findings: tuple[Finding, ...],
    problems: tuple[Problem, ...],
    length: int,
) -> PartitionResult:
    judged = judged_partition(report, problems)
    grave = any(item.severity.rank >= Severity.WARNING.rank for item in findings)
    keep = shared.keep_quiet or grave or judged.state not in QUIET_STATES or report.verdict not in QUIET_VERDICTS
    return PartitionResult(
        partition=report.partition,
        verdict=report.verdict,
        judged=judged,
        report=without_batches(report) if keep else None,
        plain=shared.flatten(report, judged.state) if shared.flatten else None,
        findings=findings,
        problems=problems,
        length=length,
    )


def judge_partition(
    replicas: Sequence[Replica], *, reader: BatchReader, facts: ClusterFacts, options: DiffOptions
) -> tuple[PartitionReport, tuple[Finding, ...]]:
    """Return the verdict on one partition and its findings, wherever its replicas were read.

    Args:
        replicas: every directory of the partition among the inputs.
        reader: reads their batches.
        facts: what metadata and broker logs say.
        options: what the caller asks for and states.
    """
    report = reconcile_partition(
        replicas,
        reader=reader,
        facts=facts,
        wanted_leader=options.leader,
        wanted_protocol=options.protocol,
        protocol_hints=options.protocol_hints,
        possible_protocols=options.possible_protocols,
        stated_replicas=options.replicas,
        given=options.given,
        is_stopped=options.is_stopped,
        depth=options.depth,
    )
    return report, tuple(partition_findings(report))


def _paths_on_brokers(inputs: Inputs) -> tuple[str, ...]:
    """Return the path of each input; of what was captured, that on its broker, where it can be copied."""
    places = (one.root.place() if isinstance(one.root, CapturePath) else None for one in inputs.found)
    return tuple(
        one.described.path if place is None else place[0].origin(place[1])
        for one, place in zip(inputs.found, places, strict=True)
    )
