"""One record's life: every copy of it on every disk and what became of it, or what was searched without finding it."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from kforensics.commands.cluster_evidence import gather_cluster_evidence
from kforensics.commands.diff import DiffOptions, compare
from kforensics.commands.explain import ExplainOptions, explain
from kforensics.commands.filters import check_wanted
from kforensics.commands.result import Conclusion, Result
from kforensics.commands.snapshots import Evidence, gather_evidence
from kforensics.commands.tracing.coverage import searched
from kforensics.commands.tracing.scan import Hit, ScannedReplica, scan_places
from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.evidence.content.search import RecordSearch
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, find_places
from kforensics.evidence.metadata.log import MetadataHistory, newest_log
from kforensics.evidence.model import Citation, Problem, Replica
from kforensics.findings.answers.trace import trace_answer, trace_findings
from kforensics.formats.log.records import Record
from kforensics.protocol.partitioner import Placement, place_key
from kforensics.reconcile.incident.model import PartitionIncident
from kforensics.reconcile.logs.loaded_log import load_log
from kforensics.reconcile.replicas.partition import PartitionReport
from kforensics.reconcile.trace.fate import FateJudge, FoundRecord
from kforensics.reconcile.trace.model import CopyKind, SearchedPartition, TracedCopy, TracedRecord
from kforensics.source.foreign import ForeignPath
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReport:
    """The records that were found, and what was searched."""

    by: tuple[str, ...]
    topic: str
    records: tuple[TracedRecord, ...]
    partitions: tuple[SearchedPartition, ...]
    placement: Placement | None
    """Where default partitioners put the key, if it is known."""


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
    evidence = gather_evidence(request.paths, request.before, keep_going=request.keep_going, cluster=request.cluster)
    for one in evidence.inputs.found:
        if isinstance(one.root, ForeignPath) and not hasattr(one.root, "place"):
            raise UsageError(f"{one.described.path} is not on this machine: trace reads files and captures")
    places = find_places(evidence.inputs)
    gathered = gather_cluster_evidence(evidence.for_facts(), places, earlier=evidence.ranks.keys())
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
    problems = [*places.problems, *gathered.problems]
    reports = _reports(evidence, request, held, places.by_partition, problems)
    incidents = _incidents(evidence, request, held, problems)
    placement = None
    if request.key is not None:
        count = len(recorded) or max((tp.partition for tp in held), default=0) + 1
        placement = place_key(request.key, count, is_recorded=bool(recorded))
    traced: list[TracedRecord] = []
    looked: list[SearchedPartition] = []
    for number in numbers:
        partition = TopicPartition(request.topic, number)
        records, what = _trace(
            partition,
            places.by_partition.get(partition, ()),
            evidence,
            search,
            reports.get(partition),
            incidents.get(partition),
            problems,
        )
        traced += records
        looked.append(what)
    problems = list(dict.fromkeys(problems))
    findings = trace_findings(traced, placement)
    is_whole_topic = bool(recorded) or bool(request.partitions)
    answer = trace_answer(traced, looked, offset=request.offset, problems=problems, is_whole_topic=is_whole_topic)
    report = TraceReport(
        by=request.by, topic=request.topic, records=tuple(traced), partitions=tuple(looked), placement=placement
    )
    return Result(
        command="trace",
        inputs=evidence.inputs.described,
        body=report,
        concluded=Conclusion(answer=answer, findings=findings, problems=tuple(problems)),
    )


def _search(request: TraceRequest) -> RecordSearch:
    if not request.by:
        raise UsageError(
            "what to trace is needed: --key, --key-base64, --key-sha256, --offset, --header, --value or --time"
        )
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
    """A pattern that is matched in linear time.

    Raises:
        UsageError: google-re2 is not installed, or the pattern is none.
    """
    try:
        re2 = import_module("re2")
    except ImportError:
        raise UsageError(
            "--value-regex needs the package google-re2, which matches in linear time; --value takes a literal without it"
        ) from None
    try:
        return re2.compile(pattern.encode())
    except re2.error as error:
        raise UsageError(f"--value-regex: {error}") from error


def _recorded_partitions(histories: Sequence[MetadataHistory], topic: str) -> set[int]:
    """The partitions of the topic as it is now, by the newest metadata log; none where it is not recorded."""
    newest = newest_log(histories)
    named = newest.topics_named(topic) if newest is not None else ()
    if newest is None or not named:
        return set()
    return {number for topic_id, number in newest.partitions if topic_id == named[-1].topic_id}


def _reports(
    evidence: Evidence,
    request: TraceRequest,
    held: Iterable[TopicPartition],
    places: Any,
    problems: list[Problem],
) -> dict[TopicPartition, PartitionReport]:
    now = {tp.partition for tp in held if any(place.state.input not in evidence.ranks for place in places[tp])}
    wanted = frozenset(now & request.partitions if request.partitions else now)
    if not wanted:
        return {}
    inputs = replace(
        evidence.inputs, found=tuple(one for at, one in enumerate(evidence.inputs.found) if at not in evidence.ranks)
    )
    options = DiffOptions(
        leader=request.leader, topics=frozenset({request.topic}), partitions=wanted, is_stopped=request.is_stopped
    )
    compared = compare(inputs, options, jobs=request.jobs, keep_quiet=True)
    problems += compared.problems
    return {one.partition: one for one in compared.reports}


def _incidents(
    evidence: Evidence, request: TraceRequest, held: Iterable[TopicPartition], problems: list[Problem]
) -> dict[TopicPartition, PartitionIncident]:
    wanted = frozenset({tp.partition for tp in held} & request.partitions)
    if not list(held) or (request.partitions and not wanted):
        return {}
    options = ExplainOptions(
        topics=frozenset({request.topic}), partitions=wanted, is_stopped=request.is_stopped, leader=request.leader
    )
    found = explain(evidence, options, jobs=request.jobs)
    problems += found.problems
    return {one.partition: one for one in found.incidents}


def _trace(
    partition: TopicPartition,
    places: Sequence[PartitionPlace],
    evidence: Evidence,
    search: RecordSearch,
    report: PartitionReport | None,
    incident: PartitionIncident | None,
    problems: list[Problem],
) -> tuple[list[TracedRecord], SearchedPartition]:
    scanned, hits = scan_places(places, evidence, search, problems)
    current = _current_id(scanned, report)
    views = [load_log(one.replica) for one in scanned if one.kind is CopyKind.LIVE and _is_of(one.replica, current)]
    is_compacted = any(
        not isinstance(one.replica.cleaner_point, Absent) or load_log(one.replica).cleaned_below > 0 for one in scanned
    )
    looked = searched(partition, scanned, report=report, incident=incident, current=current)
    judge = FateJudge(
        partition,
        report=report,
        incident=incident,
        views=views,
        is_compacted=is_compacted,
        successors=_successors(hits, scanned, places, evidence, search) if is_compacted else {},
        topic_ids=frozenset(
            str(one.replica.topic_id)
            for one in scanned
            if one.kind is CopyKind.LIVE and not isinstance(one.replica.topic_id, Absent)
        ),
    )
    records = [judge.judge(one) for one in _grouped(hits, scanned)]
    if search.offset is not None and not records and _is_only_offset(search):
        unseen = judge.unseen(search.offset)
        records += [unseen] if unseen is not None else []
    return records, looked


def _is_only_offset(search: RecordSearch) -> bool:
    others = (search.keys, search.key_sha256, search.header, search.value, search.value_pattern, search.time_ms)
    return all(one is None for one in others)


def _current_id(scanned: Sequence[ScannedReplica], report: PartitionReport | None) -> str | Absent:
    if report is not None and not isinstance(report.topic_id, Absent):
        return report.topic_id
    ids = [one.replica.topic_id for one in scanned if one.kind is CopyKind.LIVE]
    return next((one for one in ids if not isinstance(one, Absent)), Absent.UNKNOWN)


def _is_of(replica: Replica, current: str | Absent) -> bool:
    return isinstance(current, Absent) or isinstance(replica.topic_id, Absent) or replica.topic_id == current


def _successors(
    hits: Sequence[Hit],
    scanned: Sequence[ScannedReplica],
    places: Sequence[PartitionPlace],
    evidence: Evidence,
    search: RecordSearch,
) -> dict[bytes, list[tuple[Record, Citation]]]:
    """Records of the found keys that live replicas hold, those of aborted and open transactions apart: a cleaner removes nothing for them."""
    keys = frozenset(hit.record.key for hit in hits if hit.record.key is not None)
    if not keys or len(keys) > MOST_KEYS:
        return {}
    is_by_key = replace(search, keys=None, key_sha256=None) == RecordSearch()
    found: Iterable[Hit] = hits
    if not is_by_key:
        now = [place for place in places if place.state.input not in evidence.ranks]
        _, found = scan_places(now, evidence, RecordSearch(keys=keys), [])
    markers = {(one.replica.input, one.replica.path): one.markers for one in scanned}
    out: dict[bytes, list[tuple[Record, Citation]]] = defaultdict(list)
    for hit in found:
        if hit.kind is not CopyKind.LIVE or hit.record.key is None:
            continue
        outcome = _outcome(hit.record, [markers[hit.replica.input, hit.replica.path]])
        if outcome is False or outcome is Absent.NOT_APPLICABLE:
            out[hit.record.key].append((hit.record, Citation(input=hit.replica.input, path=hit.path)))
    return out


def _grouped(hits: Sequence[Hit], scanned: Sequence[ScannedReplica]) -> Iterator[FoundRecord]:
    """The distinct records among the hits, by topic id, offset, leader epoch and content."""
    markers = {(one.replica.input, one.replica.path): one.markers for one in scanned}
    groups: dict[tuple[Any, ...], list[Hit]] = defaultdict(list)
    for hit in hits:
        record = hit.record
        topic_id = "" if isinstance(hit.replica.topic_id, Absent) else hit.replica.topic_id
        groups[record.offset, record.partition_leader_epoch, topic_id, _digest(record)].append(hit)
    _join_nameless(groups)
    for key in sorted(groups):
        those = groups[key]
        record = those[0].record
        yield FoundRecord(
            record=record,
            topic_id=key[2] or Absent.UNKNOWN,
            copies=tuple(
                TracedCopy(
                    broker_id=hit.replica.broker_id,
                    input=hit.replica.input,
                    path=hit.path,
                    position=hit.record.batch_position,
                    kind=hit.kind,
                )
                for hit in those
            ),
            holders=tuple((hit.replica, hit.kind) for hit in those),
            outcome=_outcome(record, [markers[hit.replica.input, hit.replica.path] for hit in those]),
        )


def _join_nameless(groups: dict[tuple[Any, ...], list[Hit]]) -> None:
    """Copies in directories that have no topic id are of the record that one with an id holds, where there is one such alone."""
    named: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for key in groups:
        if key[2]:
            named[key[0], key[1], key[3]].append(key)
    for key in [key for key in groups if not key[2]]:
        twins = named.get((key[0], key[1], key[3]), ())
        if len(twins) == 1:
            groups[twins[0]] += groups.pop(key)


def _outcome(record: Record, markers: Sequence[dict[int, list[tuple[int, bool]]]]) -> bool | Absent | None:
    if not record.is_transactional:
        return Absent.NOT_APPLICABLE
    ends = [
        min(later)
        for one in markers
        if (later := [end for end in one.get(record.producer_id, ()) if end[0] > record.offset])
    ]
    return min(ends)[1] if ends else None


def _digest(record: Record) -> bytes:
    return hashlib.sha256(
        repr((record.timestamp_ms, record.key, record.value, record.headers)).encode("utf-8", "surrogateescape")
    ).digest()
