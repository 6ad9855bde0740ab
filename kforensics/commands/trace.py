"""One record's life: every copy of it on every disk and what became of it, or what was searched without finding it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.commands.cited import CitedFile, hashed_file
from kforensics.commands.cluster_evidence import ClusterEvidence, gather_cluster_evidence
from kforensics.commands.diff import Comparison, DiffOptions, compare_replicas, comparison_of, without_tables
from kforensics.commands.explain import ExplainOptions, explain_replicas, open_account, settled
from kforensics.commands.filters import check_wanted
from kforensics.commands.processes import default_jobs, spread
from kforensics.commands.result import Conclusion, Result
from kforensics.commands.snapshots import Evidence, gather_evidence
from kforensics.commands.tracing.account import TruncationAccount
from kforensics.commands.tracing.coverage import searched
from kforensics.commands.tracing.outline import outline_of, search_at
from kforensics.commands.tracing.records import Place, Reread, grouped, outcome_of, slices_of
from kforensics.commands.tracing.removal import removal_settings
from kforensics.commands.tracing.scan import (
    Hit,
    Markers,
    ScannedPartition,
    ScannedReplica,
    scan_partitions,
    scanned_replica,
)
from kforensics.damage import Absent
from kforensics.errors import MissingExtra, UsageError
from kforensics.evidence.content.search import RecordSearch
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.discovery.partition_dirs import Places, find_places
from kforensics.evidence.metadata.log import MetadataHistory, newest_log
from kforensics.evidence.model import Citation, Input, Problem, Replica
from kforensics.evidence.replica.collect import CollectedReplica
from kforensics.findings.answers.trace import TraceTally, erasure_answer, trace_answer
from kforensics.protocol.partitioner import Placement, place_key
from kforensics.reconcile.incident.model import PartitionIncident
from kforensics.reconcile.replicas.partition import PartitionReport
from kforensics.reconcile.trace.fate import FateJudge, LaterRecord
from kforensics.reconcile.trace.model import CopyKind, SearchedPartition, TracedRecord
from kforensics.source.foreign import ForeignPath
from kforensics.source.naming import FileSuffix, parse_file_name
from kforensics.units import TopicPartition

MOST_KEYS = 10_000
"""Keys of found records whose later records are looked for in compacted logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """The request to trace records; those that match everything that is given are found."""

    paths: tuple[Path, ...]
    """The inputs as they are now, with broker logs."""
    topic: str
    before: tuple[Path, ...] = ()
    """Earlier snapshots."""
    partitions: frozenset[int] = frozenset()
    key: bytes | None = None
    key_sha256: bytes | None = None
    offset: int | None = None
    header: tuple[bytes, bytes | None] | None = None
    """The name of a header, and its value unless any will do."""
    value: bytes | None = None
    """Bytes that the value holds somewhere."""
    value_regex: str | None = None
    """A pattern of RE2 that the value matches somewhere."""
    time_ms: tuple[int, int] | None = None
    """From the first on, and before the second."""
    erasure: bool = False
    """Answer whether any bytes of the key are left, and hash the files that were searched."""
    leader: int | None = None
    cluster: str | None = None
    keep_going: bool = False
    is_stopped: bool = False
    jobs: int | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """What is searched by."""
        given = {
            "key": self.key,
            "key-sha256": self.key_sha256,
            "offset": self.offset,
            "header": self.header,
            "value": self.value,
            "value-regex": self.value_regex,
            "time": self.time_ms,
        }
        return tuple(name for name, value in given.items() if value is not None)


class TracedRecords:
    """The records that were found, by partition and offset; where they are many they are read again each time they are asked for.

    Args:
        parts: gives those of each partition.
        tally: what was counted of them.
    """

    def __init__(self, parts: Sequence[Callable[[], Iterable[TracedRecord]]], tally: TraceTally) -> None:
        self._parts = parts
        self.tally = tally

    def __iter__(self) -> Iterator[TracedRecord]:
        for part in self._parts:
            yield from part()

    def __len__(self) -> int:
        return self.tally.records


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What proves an erasure report."""

    files: tuple[CitedFile, ...]
    """The files that were searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReport:
    """The records that were found, and what was searched."""

    by: tuple[str, ...]
    topic: str
    records: TracedRecords
    partitions: tuple[SearchedPartition, ...]
    placement: Placement | None
    """Where default partitioners put the key, if it is known."""
    erasure: Erasure | None = None
    """Where `--erasure` asks for it."""


def run(request: TraceRequest) -> Result[TraceReport]:
    """Trace records.

    Args:
        request: inputs and what is searched for.

    Returns:
        The records with their copies and fates, and what was searched.

    Raises:
        EvidenceError: a path can't be used.
        UsageError: nothing or something impossible is searched for, or the topic is not among the inputs.
    """
    search = _search(request)
    jobs = request.jobs or default_jobs()
    evidence = gather_evidence(request.paths, request.before, keep_going=request.keep_going, cluster=request.cluster)
    for one in evidence.inputs.found:
        if isinstance(one.root, ForeignPath) and not hasattr(one.root, "place"):
            raise UsageError(f"{one.described.path} is not on this machine: trace reads files and captures")
    places = find_places(evidence.inputs)
    gathered = gather_cluster_evidence(evidence.for_facts(), places, jobs=jobs, earlier=evidence.ranks.keys())
    recorded = _recorded_partitions(gathered.histories, request.topic)
    held = {tp for tp in places.by_partition if tp.topic == request.topic}
    check_wanted(
        topics={request.topic},
        known_topics={tp.topic for tp in places.by_partition} | ({request.topic} if recorded else set()),
        partitions=request.partitions,
        known_partitions={tp.partition for tp in held} | recorded,
        leader=request.leader,
        known_brokers={
            place.state.broker_id
            for tp in held
            for place in places.by_partition[tp]
            if isinstance(place.state.broker_id, int)
        },
    )
    numbers = sorted(request.partitions or {tp.partition for tp in held} | recorded)
    partitions = [TopicPartition(request.topic, number) for number in numbers]
    problems = [*places.problems, *gathered.problems]
    inquiry = _Inquiry(request, search, evidence, places, gathered, jobs, problems)
    found = inquiry.partitions(partitions)
    placement = None
    if request.key is not None:
        count = len(recorded) or max((tp.partition for tp in held), default=0) + 1
        placement = place_key(request.key, count, is_recorded=bool(recorded))
    records = _counted([one.records for one in found])
    problems = list(dict.fromkeys(problems))
    is_whole_topic = bool(recorded) or bool(request.partitions)
    looked = tuple(one.looked for one in found)
    erasure: Erasure | None = None
    if request.erasure:
        erasure = Erasure(files=_hashed(evidence.inputs.found, [file for one in found for file in one.files], jobs))
        damaged = [_named(evidence.inputs.described, *file) for one in found for file in one.damaged]
        answer = erasure_answer(
            records.tally,
            looked,
            damaged=damaged,
            files=len(erasure.files),
            problems=problems,
            is_whole_topic=is_whole_topic,
        )
    else:
        answer = trace_answer(
            records.tally, looked, offset=request.offset, problems=problems, is_whole_topic=is_whole_topic
        )
    report = TraceReport(
        by=request.by,
        topic=request.topic,
        records=records,
        partitions=looked,
        placement=placement,
        erasure=erasure,
    )
    return Result(
        command="trace" if erasure is None else "trace --erasure",
        shape="trace",
        inputs=evidence.inputs.described,
        body=report,
        concluded=Conclusion(answer=answer, findings=records.tally.findings(placement), problems=tuple(problems)),
    )


def _hashed(found: Sequence[FoundInput], files: Sequence[Place], jobs: int) -> tuple[CitedFile, ...]:
    hashed = spread(lambda shared, file: hashed_file(shared[file[0]], *file), found, sorted(files), jobs=jobs)
    return tuple(one for one in hashed if one is not None)


def _named(inputs: Sequence[Input], number: int, path: str) -> str:
    return Problem(input=number, path=path, message="").place(inputs)


def _counted(parts: Sequence[Callable[[], Iterable[TracedRecord]]]) -> TracedRecords:
    """Return the records, counted while they are judged; those of partitions whose copies are held are kept."""
    tally = TraceTally()
    for part in parts:
        for one in part():
            tally.add(one)
    return TracedRecords(parts, tally)


def _search(request: TraceRequest) -> RecordSearch:
    if not request.by:
        raise UsageError(
            "what to trace is needed: --key, --key-base64, --key-sha256, --offset, --header, --value or --time"
        )
    if request.erasure and set(request.by) not in ({"key"}, {"key-sha256"}):
        raise UsageError("--erasure reports on all records of a key: give --key, --key-base64 or --key-sha256 alone")
    if request.key is not None and request.key_sha256 is not None:
        raise UsageError("--key and --key-sha256 name the same thing: give one of them")
    return RecordSearch(
        keys=None if request.key is None else frozenset({request.key}),
        key_sha256=request.key_sha256,
        offset=request.offset,
        header=request.header,
        value=request.value,
        value_pattern=None if request.value_regex is None else _compiled(request.value_regex),
        time_ms=request.time_ms,
    )


def _compiled(pattern: str) -> Any:
    """Return a pattern that is matched in time linear in the value, whatever the pattern is: by RE2, which does not go back.

    Raises:
        MissingExtra: google-re2 is not installed.
        UsageError: it is no pattern of RE2.
    """
    try:
        re2 = import_module("re2")
    except ImportError:
        raise MissingExtra("regex", "--value-regex") from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.encode("utf-8", "surrogateescape"), options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise UsageError(f"--value-regex {pattern}: {words}") from error


def _recorded_partitions(histories: Sequence[MetadataHistory], topic: str) -> set[int]:
    """Return the partitions of the topic as it is now, by the newest metadata log; none where it is not recorded."""
    newest = newest_log(histories)
    named = newest.topics_named(topic) if newest is not None else ()
    if newest is None or not named:
        return set()
    return {number for topic_id, number in newest.partitions if topic_id == named[-1].topic_id}


class _TracedPartition(NamedTuple):
    looked: SearchedPartition
    records: Callable[[], Iterable[TracedRecord]]
    files: Sequence[Place]
    """The segment files that were searched."""
    damaged: Sequence[Place]
    """Those of them that can't be read at some place."""


class _Inquiry:
    """The search of the partitions of a topic, whose files are read once for what `diff` and `explain` say of them and for their records."""

    def __init__(
        self,
        request: TraceRequest,
        search: RecordSearch,
        evidence: Evidence,
        places: Places,
        gathered: ClusterEvidence,
        jobs: int,
        problems: list[Problem],
    ) -> None:
        self._search = search
        self._ranks = evidence.ranks
        self._places = places.by_partition
        self._jobs = jobs
        self._problems = problems
        topics = frozenset({request.topic})
        self._comparison = _comparison(request, evidence, places, gathered, problems)
        self._account = open_account(
            evidence,
            places,
            gathered,
            ExplainOptions(
                topics=topics,
                partitions=request.partitions,
                is_stopped=request.is_stopped,
                leader=request.leader,
            ),
        )
        self._explained = {tp for tp, _ in self._account.groups}
        self._has_logs = bool(gathered.log_files)
        self._truncations = TruncationAccount(gathered)
        self._settings = removal_settings(request.topic, evidence, gathered.histories, problems)

    def partitions(self, wanted: Sequence[TopicPartition]) -> list[_TracedPartition]:
        """Return what was searched of each partition, and the records that match."""
        glanced = self._glances(wanted)
        if glanced is not None:
            return glanced
        groups = [self._places.get(partition, ()) for partition in wanted]
        scanned: list[ScannedPartition] = []
        reports: list[PartitionReport | None] = []
        incidents: list[PartitionIncident] = []
        scans = scan_partitions(groups, self._ranks, self._search, jobs=self._jobs, problems=self._problems)
        for partition, one in zip(wanted, scans, strict=True):
            reports.append(self._report(one))
            incidents += self._incident(partition, one)
            scanned.append(one if one.hits is None else _without_batches(one))
        settled_of = {one.partition: one for one in settled(incidents)}
        return [
            self._traced(partition, one, report, settled_of.get(partition))
            for partition, one, report in zip(wanted, scanned, reports, strict=True)
        ]

    def _glances(self, wanted: Sequence[TopicPartition]) -> list[_TracedPartition] | None:
        """Return what a look at one offset shows where all replicas hold the same record, without reading the logs whole; None where it does not show all that can be said."""
        if not self._search.is_by_offset or self._ranks or self._has_logs:
            return None
        out = []
        for partition in wanted:
            found = self._glance(partition)
            if found is None:
                return None
            out.append(found)
        return out

    def _glance(self, partition: TopicPartition) -> _TracedPartition | None:
        offset = self._search.offset
        places = self._places.get(partition, ())
        replicas: list[ScannedReplica] = []
        hits: list[Hit] = []
        for place in places:
            outline = outline_of(place)
            file = (
                search_at(place, outline, self._search, offset) if outline is not None and offset is not None else None
            )
            if (
                outline is None
                or file is None
                or file.segment is None
                or self._settings(outline.broker_id).is_compacted
            ):
                return None
            collected = CollectedReplica(replica=outline, problems=())
            replicas.append(scanned_replica(place, collected, CopyKind.LIVE, {file.segment.path: file}))
            hits += replicas[-1].hits(file.segment.path, file.hits)
        found = list(grouped(hits, {(one.replica.input, one.replica.path): one.markers for one in replicas}))
        if len(found) != 1 or len(found[0].copies) != len(places) or found[0].record.is_transactional:
            return None
        compared = compare_replicas(self._comparison, places, [one.collected for one in replicas])
        report = compared.report
        if report is None or compared.findings or compared.problems or report.is_deleted or report.leader is None:
            return None
        current = _current_id(replicas, report)
        if not all(_is_of(one.replica, current) for one in replicas):
            return None
        record = self._judge(partition, replicas, report, None, {}, is_compacted=False).judge(found[0])
        if record.state != "present" or record.fate:
            return None
        looked = searched(partition, replicas, report=report, incident=None, current=current, account=self._truncations)
        # Every replica holds it: other offsets, and who leads, make no difference to it.
        gaps = tuple(gap for gap in looked.gaps if isinstance(gap.offsets, Absent) and gap.reason != "unknown-leader")
        return _TracedPartition(replace(looked, gaps=gaps), lambda: [record], (), ())

    def _report(self, scanned: ScannedPartition) -> PartitionReport | None:
        now = [one for one in scanned.replicas if one.replica.input not in self._ranks]
        if not now:
            return None
        compared = compare_replicas(
            self._comparison, [one.place for one in now], [_without_swap(one.collected) for one in now]
        )
        self._problems += compared.problems
        return compared.report

    def _incident(self, partition: TopicPartition, scanned: ScannedPartition) -> Iterator[PartitionIncident]:
        if partition in self._explained:
            incident, met = explain_replicas(
                self._account, partition, [_without_swap(one.collected) for one in scanned.replicas]
            )
            self._problems += met
            yield incident

    def _traced(
        self,
        partition: TopicPartition,
        scanned: ScannedPartition,
        report: PartitionReport | None,
        incident: PartitionIncident | None,
    ) -> _TracedPartition:
        replicas = scanned.replicas
        current = _current_id(replicas, report)
        is_compacted = any(
            not isinstance(one.replica.cleaner_point, Absent) or one.log.cleaned_below > 0 for one in replicas
        ) or any(self._settings(one.replica.broker_id).is_surely_compacted for one in replicas)
        reread = Reread(replicas=tuple(replicas), search=self._search, slices=slices_of(replicas))
        markers = {(one.replica.input, one.replica.path): one.markers for one in replicas}
        successors = self._successors(scanned, reread, markers) if is_compacted else {}
        judge = self._judge(partition, replicas, report, incident, successors, is_compacted=is_compacted)
        looked = searched(
            partition, replicas, report=report, incident=incident, current=current, account=self._truncations
        )
        segments = [(one.replica.input, segment) for one in replicas for segment in one.files()]
        files = [(number, segment.path) for number, segment in segments]
        damaged = [(number, segment.path) for number, segment in segments if segment.damage]
        if scanned.hits is None:
            return _TracedPartition(looked, partial(_read_again, judge, reread, markers), files, damaged)
        records = [judge.judge(one) for one in grouped(scanned.hits, markers)]
        if self._search.is_by_offset and self._search.offset is not None:
            is_lost = any(one.state == "lost" for one in records)
            look = judge.replaced if records else judge.unseen
            other = None if is_lost else look(self._search.offset)
            records += [other] if other is not None else []
        return _TracedPartition(looked, lambda: records, files, damaged)

    def _judge(
        self,
        partition: TopicPartition,
        replicas: Sequence[ScannedReplica],
        report: PartitionReport | None,
        incident: PartitionIncident | None,
        successors: Mapping[bytes, Sequence[LaterRecord]],
        *,
        is_compacted: bool,
    ) -> FateJudge:
        current = _current_id(replicas, report)
        return FateJudge(
            partition,
            report=report,
            incident=incident,
            views=[one.log for one in replicas if one.kind is CopyKind.LIVE and _is_of(one.replica, current)],
            is_compacted=is_compacted,
            successors=successors,
            topic_ids=frozenset(
                str(one.replica.topic_id)
                for one in replicas
                if one.kind is CopyKind.LIVE and not isinstance(one.replica.topic_id, Absent)
            ),
            settings=self._settings,
        )

    def _successors(
        self, scanned: ScannedPartition, reread: Reread, markers: Mapping[Place, Markers]
    ) -> dict[bytes, list[LaterRecord]]:
        """Return the newest records of the found keys, those of aborted and open transactions apart: a cleaner removes nothing for them."""
        found: Iterable[Hit] = ()
        if self._search.is_by_key:
            found = _newest_hits(reread, markers, 1) if scanned.hits is None else scanned.hits
        else:
            keys = _keys(scanned, reread)
            live = [one.place for one in scanned.replicas if one.kind is CopyKind.LIVE]
            if keys is None:
                words = f"more than {MOST_KEYS:,} keys match: whether later records supersede theirs was not looked for"
                place = (live or [one.place for one in scanned.replicas])[0]
                self._problems.append(Problem(input=place.state.input, path=place.path, message=words))
            elif keys:
                search = RecordSearch(keys=keys)
                later = next(scan_partitions([live], {}, search, jobs=self._jobs, problems=[]))
                again = Reread(replicas=tuple(later.replicas), search=search, slices=slices_of(later.replicas))
                found = _newest_hits(again, markers, len(keys)) if later.hits is None else later.hits
        newest: dict[tuple[bytes, bool], LaterRecord] = {}
        for hit in found:
            record, file, is_live = hit.record, hit.file, hit.file.kind is CopyKind.LIVE
            if record.key is None or not _supersedes(hit, markers):
                continue
            known = newest.get((record.key, is_live))
            if known is None or known.record.offset < record.offset:
                citation = Citation(input=file.replica.input, path=file.path)
                newest[record.key, is_live] = LaterRecord(record, citation, is_live=is_live)
        out: dict[bytes, list[LaterRecord]] = defaultdict(list)
        for (key, _), one in newest.items():
            out[key].append(one)
        return out


def _read_again(judge: FateJudge, reread: Reread, markers: Mapping[Place, Markers]) -> Iterator[TracedRecord]:
    for offsets in reread.slices:
        for one in grouped(reread.hits(offsets), markers):
            yield judge.judge(one)


def _keys(scanned: ScannedPartition, reread: Reread) -> frozenset[bytes] | None:
    """Return the keys of the records that match; none where they are too many."""
    found = scanned.hits
    keys: set[bytes] = set()
    for hit in found if found is not None else (hit for offsets in reread.slices for hit in reread.hits(offsets)):
        if hit.record.key is not None:
            keys.add(hit.record.key)
        if len(keys) > MOST_KEYS:
            return None
    return frozenset(keys)


def _supersedes(hit: Hit, markers: Mapping[Place, Markers]) -> bool:
    """Whether a cleaner removes earlier records of its key for it: its transaction was committed, or it is of none."""
    outcome = outcome_of(hit.record, [markers[hit.file.replica.input, hit.file.replica.path]])
    return outcome is False or outcome is Absent.NOT_APPLICABLE


def _newest_hits(reread: Reread, markers: Mapping[Place, Markers], keys: int) -> Iterator[Hit]:
    """Yield copies from the end of the log back, until a live replica holds one of each key that supersedes others."""
    live: set[bytes | None] = set()
    for offsets in reversed(reread.slices):
        for hit in reread.hits(offsets):
            if hit.file.kind is CopyKind.LIVE and _supersedes(hit, markers):
                live.add(hit.record.key)
            yield hit
        if len(live) >= keys:
            return


def _comparison(
    request: TraceRequest,
    evidence: Evidence,
    places: Places,
    gathered: ClusterEvidence,
    problems: list[Problem],
) -> Comparison:
    options = DiffOptions(
        leader=request.leader,
        topics=frozenset({request.topic}),
        partitions=request.partitions,
        is_stopped=request.is_stopped,
    )
    if not evidence.ranks:
        return comparison_of(evidence.inputs, places, gathered, options)
    inputs = replace(
        evidence.inputs, found=tuple(one for at, one in enumerate(evidence.inputs.found) if at not in evidence.ranks)
    )
    now = find_places(inputs)
    problems += now.problems
    return comparison_of(inputs, now, gather_cluster_evidence(inputs, now, read=gathered), options)


def _without_swap(collected: CollectedReplica) -> CollectedReplica:
    """Return the replica as commands collect it that do not look into what a cleaner left."""
    deleted = collected.replica.deleted_segments
    kept = tuple(one for one in deleted if parse_file_name(one.path.rpartition("/")[2]).suffix is FileSuffix.DELETED)
    return (
        collected
        if len(kept) == len(deleted)
        else replace(collected, replica=replace(collected.replica, deleted_segments=kept))
    )


def _without_batches(scanned: ScannedPartition) -> ScannedPartition:
    """Return the partition without the batch tables of its segments, of which there may be thousands."""
    for one in scanned.replicas:
        one.collected = replace(one.collected, replica=without_tables(one.replica))
    return scanned


def _current_id(scanned: Sequence[ScannedReplica], report: PartitionReport | None) -> str | Absent:
    if report is not None and not isinstance(report.topic_id, Absent):
        return report.topic_id
    ids = [one.replica.topic_id for one in scanned if one.kind is CopyKind.LIVE]
    return next((one for one in ids if not isinstance(one, Absent)), Absent.UNKNOWN)


def _is_of(replica: Replica, current: str | Absent) -> bool:
    return isinstance(current, Absent) or isinstance(replica.topic_id, Absent) or replica.topic_id == current
