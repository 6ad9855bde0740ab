"""The comparison of the replicas of one partition, and of many partitions in several processes, those of which directories are missing too: what `diff`, an audit and `trace` share."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from kforensics.ask.model import Ask
from kforensics.case.cluster import cluster_of
from kforensics.case.model import Case, fact, places_of
from kforensics.case.processes import END_OF_LOG, Progress, in_chunks, spread
from kforensics.case.wanted import is_wanted
from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs, are_disks_of_one, named_log_dirs
from kforensics.evidence.discovery.log_dirs import are_of_one_node
from kforensics.evidence.discovery.partition_dirs import LostDirectory, PartitionPlace
from kforensics.evidence.metadata.state import end_of_majority
from kforensics.evidence.model import NO_DIGESTS, BatchReader, Problem, Replica, Segment
from kforensics.evidence.replica.batch_reader import FileBatchReader
from kforensics.evidence.replica.collect import (
    CollectedReplica,
    changes_since,
    collect_replica,
    copy_of,
    scan_place,
    segment_paths,
)
from kforensics.evidence.replica.ends import ends_at_hand
from kforensics.findings.answers.diff import judged_partition
from kforensics.findings.answers.model import State, weighed
from kforensics.findings.concern import JudgedPartition
from kforensics.findings.model import Finding
from kforensics.findings.rules.replicas import missing_isr_findings, partition_findings
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.logs.divergence import EndsDoNotDecideError
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.facts import ClusterFacts, Given
from kforensics.reconcile.replicas.likeness import Likeness, likeness_of, not_compared_below
from kforensics.reconcile.replicas.partition import PartitionJudge
from kforensics.reconcile.replicas.placement import partition_without_replicas
from kforensics.reconcile.replicas.report import PartitionReport, SoleHolder, Verdict
from kforensics.source.naming import FileKind
from kforensics.units import METADATA_TOPICS, Depth, TopicPartition

if TYPE_CHECKING:
    from kforensics.evidence.metadata.history import MetadataHistory


def without_batches(report: PartitionReport) -> PartitionReport:
    """Return the report without batch tables and digests, which only the comparison needs."""
    # A view stays one object wherever the report names it: readers compare by identity. So does a segment, which a log shares with its replica.
    views: dict[int, LoadedLog] = {}
    segments: dict[int, Segment] = {}

    def slim(one: Segment) -> Segment:
        if id(one) not in segments:
            segments[id(one)] = _slim_segment(one)
        return segments[id(one)]

    def view(one: LoadedLog) -> LoadedLog:
        if id(one) not in views:
            replica = without_tables(one.replica, slim)
            views[id(one)] = replace(one, replica=replica, segments=tuple(map(slim, one.segments)))
        return views[id(one)]

    def holders(those: tuple[SoleHolder, ...]) -> tuple[SoleHolder, ...]:
        return tuple(one._replace(view=view(one.view)) for one in those)

    replicas = tuple(
        replace(r, view=view(r.view), compared_with=view(r.compared_with) if r.compared_with else None)
        for r in report.replicas
    )
    what_if = tuple(
        w._replace(leader=view(w.leader), truncations=tuple((view(v), truncation) for v, truncation in w.truncations))
        for w in report.what_if
    )
    leader = report.leader._replace(view=view(report.leader.view)) if report.leader else None
    return replace(
        report,
        replicas=replicas,
        what_if=what_if,
        leader=leader,
        set_aside=tuple(map(without_tables, report.set_aside)),
        odd_ones=tuple(one._replace(view=view(one.view)) for one in report.odd_ones),
        sole_holders=holders(report.sole_holders),
        unassigned_holders=holders(report.unassigned_holders),
        recovered=holders(report.recovered),
    )


def _slim_segment(segment: Segment) -> Segment:
    return replace(segment, batches=Absent.NOT_WRITTEN, digests=NO_DIGESTS)


def without_tables(replica: Replica, slim: Callable[[Segment], Segment] = _slim_segment) -> Replica:
    """Return the replica without the batch tables and digests of its segments."""
    return replace(
        replica,
        segments=tuple(map(slim, replica.segments)),
        deleted_segments=tuple(map(slim, replica.deleted_segments)),
    )


CHUNK_LENGTH = 64 << 20
CHUNK_PARTITIONS = 32
CHUNK_OF_CAPTURES = 1024
"""Partitions that a process takes at once where all of their replicas are captured: neighbours are in one block of a capture, which is read once then."""
CAPTURED_WEIGHT = 8 << 10
"""Bytes that take as long to read as what a capture holds of a replica."""
LARGE_PARTITION = 192 << 20
"""Bytes from which the segments of one partition are read by several processes."""
SMALL_WORK = 24 << 20
"""Bytes below which starting processes costs more than it saves."""
QUIET_VERDICTS = frozenset({Verdict.LEADER, Verdict.CONSISTENT, Verdict.BEHIND})
QUIET_STATES = frozenset({State.UNKNOWN, State.BEHIND, State.SAME_ENDS, State.AGREE})
"""Of partitions that get no block on the screen where no replica has a verdict that needs one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What partitions are judged by beyond their own directories: small, made once, and handed to processes and workers with them."""

    facts: ClusterFacts
    protocol_hints: Mapping[int, ProtocolName] = field(default_factory=dict)
    """The protocol by the versions in a broker's log files, by broker."""
    possible_protocols: Mapping[int, Sequence[ProtocolName]] = field(default_factory=dict)
    """The protocols that the files of a broker's log directories leave possible, by broker."""
    given: Given = field(default_factory=dict)
    """Brokers whose log directories are among the inputs."""


class PartitionResult(NamedTuple):
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


Flatten = Callable[[PartitionReport, State], bytes]


class Comparison(NamedTuple):
    """The partitions that are compared, and what their comparisons share."""

    ask: Ask
    knowledge: Knowledge
    groups: Sequence[tuple[TopicPartition, tuple[PartitionPlace, ...]]]
    reader: FileBatchReader
    quiet: dict[Likeness, PartitionResult]
    """Results without a report or a finding, by what decides them: each holds for all partitions that are alike."""
    flatten: Flatten | None = None
    keep_quiet: bool = True

    @property
    def depth(self) -> Depth:
        """How much of the logs is read."""
        return self.ask.depth or Depth.CONTENT


def comparison_of(case: Case) -> Comparison:
    """Return what is needed to compare the partitions that a case is asked about; no log is read."""
    cluster = cluster_of(case)
    return Comparison(
        ask=case.ask,
        knowledge=Knowledge(
            facts=cluster.facts,
            protocol_hints=cluster.protocol_hints,
            possible_protocols=cluster.possible_protocols,
            given=cluster.given,
        ),
        groups=[(tp, group) for tp, group in places_of(case).by_partition.items() if is_wanted(tp, case.ask)],
        reader=FileBatchReader([one.root for one in case.inputs.found]),
        quiet={},
    )


def results_of(case: Case, progress: Progress | None = None) -> list[PartitionResult]:
    """Return the results of all partitions that a case is asked about, compared once; reports are kept of those that need attention."""
    known, question = _known_results(case), _question(case.ask)
    if question not in known:
        known[question] = compare_all(comparison_of(case)._replace(keep_quiet=False), case.jobs, progress)
    return known[question]


def tell_results(case: Case, results: list[PartitionResult]) -> None:
    """Let a case remember what its replicas come to, as who read them for another question has compared them."""
    _known_results(case)[_question(case.ask)] = results


@fact
def _known_results(_: Case) -> dict[tuple[object, ...], list[PartitionResult]]:
    return {}


def _question(ask: Ask) -> tuple[object, ...]:
    """Return all of a question that the comparison depends on."""
    depth = ask.depth or Depth.CONTENT
    return ask.topics, ask.partitions, depth, ask.leader, ask.protocol, ask.replicas, ask.is_stopped


def compare_all(shared: Comparison, jobs: int, progress: Progress | None) -> list[PartitionResult]:
    """Compare the replicas of every partition, in several processes where there is enough to read."""
    end = END_OF_LOG if shared.depth is Depth.TAILS else None
    weights = [sum(_weight(place, end) for place in group) for _, group in shared.groups]
    if sum(weights) < SMALL_WORK and len(weights) < 4 * CHUNK_PARTITIONS:
        jobs = 1
    if progress:
        progress.expect(sum(weights))
    large = [at for at, weight in enumerate(weights) if weight >= LARGE_PARTITION and jobs > 1]
    scans = _scan_large(shared, large, jobs, progress)
    small = [at for at in range(len(weights)) if at not in set(large)]
    runs = in_chunks((weights[at] for at in small), weight=CHUNK_LENGTH, most=_chunk_of(shared, len(small), jobs))
    chunks = [tuple(small[first:behind]) for first, behind in _at_blocks(shared, small, list(runs))]
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


def _weight(place: PartitionPlace, end_of_log: int | None) -> int:
    if not place.state.store.holds_bytes:
        return CAPTURED_WEIGHT
    return place.length if end_of_log is None else end_of_log


def _chunk_of(shared: Comparison, count: int, jobs: int) -> int:
    if any(place.state.store.holds_bytes for _, group in shared.groups for place in group):
        return CHUNK_PARTITIONS
    return max(CHUNK_PARTITIONS, min(CHUNK_OF_CAPTURES, count // (4 * jobs)))


def _at_blocks(
    shared: Comparison, members: Sequence[int], runs: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield runs whose ends are moved up to where another block of a capture begins, so that no two processes read one."""
    blocks = [_block_of(shared.groups[at][1][0]) for at in members]
    first = 0
    for _, behind in runs:
        end = max(first, behind)
        while 0 < end < len(blocks) and blocks[end] is not None and blocks[end] == blocks[end - 1]:
            end += 1
        if end > first:
            yield first, end
        first = end


def _block_of(place: PartitionPlace) -> int | None:
    return place.state.store.block(place.path)


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
    if shared.depth is Depth.CONTENT:
        return [_compare_one(shared, at, {}) for at in chunk]
    with ends_at_hand(shared.groups[at][1] for at in chunk):
        return [_compare_one(shared, at, {}) for at in chunk]


def _compare_one(shared: Comparison, at: int, scans: Mapping[tuple[int, str], Segment]) -> PartitionResult:
    _, places = shared.groups[at]

    first = collect_replica(places[0], depth=shared.depth) if _may_be_like(shared, places, scans) else None
    if first is not None and (known := _known_of_copies(shared, places, first)) is not None:
        return known

    def collect(depth: Depth) -> list[CollectedReplica]:
        found = [first] if first is not None and depth is shared.depth else []
        for number, place in list(enumerate(places))[len(found) :]:
            scanned = {path: segment for (n, path), segment in scans.items() if n == number} if scans else None
            beside = found[0] if found else None
            found.append(collect_replica(place, scanned=scanned, depth=depth, beside=beside))
        return found

    try:
        return compare_replicas(shared, places, collect(shared.depth))
    except (EndsDoNotDecideError, EvidenceError):
        return compare_replicas(shared, places, collect(Depth.CONTENT))


def _may_be_like(
    shared: Comparison, places: Sequence[PartitionPlace], scans: Mapping[tuple[int, str], Segment]
) -> bool:
    """Whether captures may show that a partition is like one that was compared, and no report of its own is asked for."""
    is_asked_for = shared.keep_quiet or shared.flatten is not None
    return not is_asked_for and not scans and not any(place.state.store.holds_bytes for place in places)


def _known_of_copies(
    shared: Comparison, places: Sequence[PartitionPlace], first: CollectedReplica
) -> PartitionResult | None:
    """Return what was found for a partition like this one, where captures say that all of its replicas are the same, high watermarks aside; none where any differs."""
    copies = [copy_of(first, place) for place in places[1:]]
    alike = [one for one in copies if one is not None]
    if len(alike) < len(copies) or first.problems:
        return None
    judge = _judge_of([first.replica], reader=shared.reader, knowledge=shared.knowledge, ask=shared.ask)
    like = likeness_of(judge, alike)
    known = None if like is None else shared.quiet.get(like)
    return None if known is None else _result_of_like(known, judge, places)


def _result_of_like(known: PartitionResult, judge: PartitionJudge, places: Sequence[PartitionPlace]) -> PartitionResult:
    judged = known.judged.led_by(judge.account, not_compared_below(judge))
    return known._replace(partition=judge.partition, judged=judged, length=sum([place.length for place in places]))


def compare_replicas(
    shared: Comparison, places: Sequence[PartitionPlace], collected: Sequence[CollectedReplica]
) -> PartitionResult:
    """Compare the replicas of one partition that have been read.

    Raises:
        EndsDoNotDecideError: the ends of the logs were read alone, and do not decide.
        EvidenceError: they were, and what is needed below can't be read.
    """
    replicas = [one.replica for one in collected]
    judge = _judge_of(replicas, reader=shared.reader, knowledge=shared.knowledge, ask=shared.ask)
    like = None if shared.keep_quiet or shared.flatten else likeness_of(judge)
    known = None if like is None else shared.quiet.get(like)
    report, findings = (None, ()) if known is not None else _judged(judge)
    problems = (
        *(problem for one in collected for problem in one.problems),
        *(
            problem
            for place, one in zip(places, collected, strict=True)
            for problem in changes_since(place, one.replica, replicas)
        ),
        *shared.reader.take_lacks(),
    )
    if known is not None and not problems:
        return _result_of_like(known, judge, places)
    if report is None:
        report, findings = _judged(judge)
    result = result_of(shared, report, findings, problems, sum(place.length for place in places))
    if like is not None and result.report is None and not (findings or problems):
        shared.quiet[like] = result
    return result


def result_of(
    shared: Comparison,
    report: PartitionReport,
    findings: tuple[Finding, ...],
    problems: tuple[Problem, ...],
    length: int,
) -> PartitionResult:
    """Return the result of one partition: its state, and its report where it needs attention."""
    judged = judged_partition(report, problems)
    findings = weighed(findings, judged.state)
    grave = any(item.is_grave for item in findings)
    # Where a copy left out every log there is nothing to show of a partition.
    is_bare = bool(report.replicas) and all(one.view.replica.is_left_out for one in report.replicas)
    keep = grave or judged.state not in QUIET_STATES or (report.verdict not in QUIET_VERDICTS and not is_bare)
    keep = keep or shared.keep_quiet
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
    replicas: Sequence[Replica], *, reader: BatchReader, knowledge: Knowledge, ask: Ask
) -> tuple[PartitionReport, tuple[Finding, ...]]:
    """Return the verdict on one partition and its findings, wherever its replicas were read."""
    return _judged(_judge_of(replicas, reader=reader, knowledge=knowledge, ask=ask))


def _judge_of(replicas: Sequence[Replica], *, reader: BatchReader, knowledge: Knowledge, ask: Ask) -> PartitionJudge:
    return PartitionJudge(
        replicas,
        reader,
        knowledge.facts,
        ask=ask,
        protocol_hints=knowledge.protocol_hints,
        possible_protocols=knowledge.possible_protocols,
        given=knowledge.given,
    )


def _judged(judge: PartitionJudge) -> tuple[PartitionReport, tuple[Finding, ...]]:
    report = judge.report()
    return report, tuple(partition_findings(report))


def known_partitions(
    history: "MetadataHistory | None", lost: Iterable[LostDirectory], histories: "Sequence[MetadataHistory]" = ()
) -> dict[TopicPartition, str | Absent]:
    """Return the partitions of topics that are there by the metadata log, or where none is given by the checkpoints, each with its topic id.

    A topic whose record most voters lack is none yet, and no broker has made a directory of it, unless a checkpoint names it: their copies may be older.
    """
    if history is None:
        # A topic that a metadata log does not know was deleted.
        return {one.topic_partition: Absent.UNKNOWN for one in lost}
    end, made = end_of_majority(history, histories), {one.topic_partition.topic for one in lost}
    names = {
        topic_id: state.name
        for topic_id, state in history.topics.items()
        if isinstance(state.removed, Absent) and (state.created.offset < end or state.name in made)
    }
    return {
        TopicPartition(names[topic_id], number): topic_id
        for topic_id, number in history.partitions
        if topic_id in names
    }


def without_directories(
    known: Mapping[TopicPartition, str | Absent], knowledge: Knowledge, *, is_stopped: bool, has_metadata: bool
) -> Iterator[PartitionReport]:
    """Yield partitions that a broker that is given should hold and of which no directory is anywhere among the inputs."""
    facts = knowledge.facts
    for partition, topic_id in known.items() if knowledge.given else ():
        states = facts.leaderships(partition, topic_id)
        state = states[-1] if states and isinstance(states[-1].replicas, tuple) else None
        if has_metadata and state is None:
            continue
        report = partition_without_replicas(partition, state, facts=facts, given=knowledge.given, is_stopped=is_stopped)
        if report.emptied or report.without_disk:
            yield report


def nodes_in_parts(inputs: Inputs) -> frozenset[int]:
    """Return the nodes of which several inputs are given that are log directories of one moment, as disks are that are named one by one."""
    found: dict[int, list[FoundInput]] = {}
    for one in inputs.found:
        if isinstance(one.described.broker_id, int) and one.log_dirs:
            found.setdefault(one.described.broker_id, []).append(one)
    return frozenset(
        node
        for node, group in found.items()
        if are_of_one_node([log_dir for one in group for log_dir in one.log_dirs])
        or all(are_disks_of_one(one, other, named_log_dirs(inputs)) for one, other in combinations(group, 2))
    )


def missing_isr(
    partition: TopicPartition, held_by: frozenset[int], given: frozenset[int], facts: ClusterFacts
) -> Iterator[Finding]:
    """Yield a partition whose whole ISR has lost it, by the disks of just those brokers."""
    topic_id = facts.topic_id(partition.topic)
    if partition.topic in METADATA_TOPICS or facts.is_deleted(partition.topic, topic_id):
        return
    states = facts.leaderships(partition, topic_id)
    if states and held_by:  # of a deleted topic no live directory is left
        yield from missing_isr_findings(partition, states[-1], held_by, given)


def single_files(inputs: Inputs) -> Iterator[Problem]:
    """Yield a problem for each segment without a partition directory: nothing says what it is a replica of."""
    for index, found in enumerate(inputs.found):
        if found.described.kind == FileKind.SEGMENT.value:
            words = "a segment file by itself does not say which partition it is of: name its partition directory"
            yield Problem(input=index, path=WHOLE_INPUT, message=words)
