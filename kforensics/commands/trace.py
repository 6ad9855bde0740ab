"""One record's life: every copy of it on every disk and what became of it, or what was searched without finding it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from kforensics.ask.model import Ask
from kforensics.case.cluster import cluster_of
from kforensics.case.comparison import compare_replicas
from kforensics.case.model import places_of
from kforensics.case.opening import open_case
from kforensics.case.processes import spread
from kforensics.case.wanted import check_wanted
from kforensics.commands.cited import CitedFile, hashed_file
from kforensics.commands.graver import no_calmer_than_order
from kforensics.commands.result import Conclusion, Result
from kforensics.commands.tracing.coverage import searched
from kforensics.commands.tracing.scan import Hit, ScannedReplica, SearchedFile, Taker, scanned_replica
from kforensics.commands.tracing.topic_evidence import TopicEvidence, TracedPartition, current_id, grouped, is_of
from kforensics.damage import Absent, Damage
from kforensics.errors import EvidenceError, FormatError, MissingExtra, UsageError
from kforensics.evidence.content import INDEX_LIMIT, RecordSearch, find_range
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.state import newest_log
from kforensics.evidence.model import NO_DIGESTS, CheckpointValue, Input, Problem, Replica, Segment
from kforensics.evidence.replica.collect import CollectedReplica, collect_directory, segment_paths, stitch_replica
from kforensics.findings.answers.trace import TraceTally, erasure_answer, trace_answer
from kforensics.findings.rules.quorum import with_quorum
from kforensics.formats.index import parse_time_index
from kforensics.formats.segment.walk import Level, iter_record_chunks, walk_segment
from kforensics.protocol.coordinators import Placement, place_key
from kforensics.reconcile.trace.found_record import may_be_displaced
from kforensics.reconcile.trace.model import CopyKind, SearchedPartition, TracedRecord
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import parse_file_name
from kforensics.units import TopicPartition


class TracedRecords:
    """The records that were found, by partition and offset; where they are many they are read again each time they are asked for.

    Args:
        parts: gives those of each partition.
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
class TraceReport:
    """The records that were found, and what was searched."""

    by: tuple[str, ...]
    topic: str
    records: TracedRecords
    partitions: tuple[SearchedPartition, ...]
    placement: Placement | None
    """Where default partitioners put the key, if it is known."""
    erasure: tuple[CitedFile, ...] | None = None
    """The files that were searched, where `--erasure` asks for a report that proves it."""


def run(request: Ask) -> Result[TraceReport]:
    """Trace records.

    Raises:
        EvidenceError: a path can't be used.
        UsageError: nothing or something impossible is searched for, or the topic is not among the inputs.
    """
    topic = request.topic
    assert topic is not None
    search = _search(request)
    case = open_case(request, again="trace")
    inputs, jobs = case.inputs, case.jobs
    for one in inputs.found:
        if not one.store.is_here:
            raise UsageError(f"{one.described.path} is not on this machine: trace reads files and captures")
    places, gathered = places_of(case), cluster_of(case)
    recorded = _recorded_partitions(gathered.histories, topic)
    held = {tp for tp in places.by_partition if tp.topic == topic}
    named = held | {TopicPartition(topic, number) for number in recorded}
    check_wanted(
        request,
        {*places.by_partition, *named},
        leader=request.leader,
        known_brokers={place.state.broker_id for tp in held for place in places.by_partition[tp]},
    )
    numbers = sorted(request.partitions or {tp.partition for tp in named})
    partitions = [TopicPartition(topic, number) for number in numbers]
    problems = [*places.problems, *gathered.problems]
    shared = TopicEvidence(case, search, problems)
    found = found_by_offset(shared, partitions)
    if found is None:
        # What a look at one offset does without takes half of the time in which it starts.
        from kforensics.commands.tracing.partition_search import PartitionSearch  # noqa: PLC0415

        found = PartitionSearch(shared).partitions(partitions)
    placement = None
    key = _key(request)
    if key is not None:
        count = len(recorded) or max((tp.partition for tp in held), default=0) + 1
        placement = place_key(key, count, is_recorded=bool(recorded))
    records = _counted([one.records for one in found])
    problems = list(dict.fromkeys(problems))
    is_whole_topic = bool(recorded) or bool(request.partitions)
    looked = tuple(one.looked for one in found)
    erasure: tuple[CitedFile, ...] | None = None
    if request.erasure:
        files = sorted(file for one in found for file in one.files)
        hashed = spread(lambda shared, file: hashed_file(shared[file[0]], *file), inputs.found, files, jobs=jobs)
        erasure = tuple(one for one in hashed if one is not None)
        damaged = [_named(inputs.described, *file) for one in found for file in one.damaged]
        answer = erasure_answer(
            records.tally,
            looked,
            damaged=damaged,
            files=len(erasure),
            problems=problems,
            is_whole_topic=is_whole_topic,
        )
    else:
        answer = trace_answer(
            records.tally,
            looked,
            ask=request,
            inputs=inputs.described,
            problems=problems,
            is_whole_topic=is_whole_topic,
        )
        quorum = gathered.quorum
        if quorum is not None and (quorum.is_stuck or (quorum.forgotten and quorum.forgotten.is_of(topic))):
            answer = with_quorum(answer, quorum)
        answer = no_calmer_than_order(answer, case)
    report = TraceReport(
        by=_by(request),
        topic=topic,
        records=records,
        partitions=looked,
        placement=placement,
        erasure=erasure,
    )
    return Result(
        command="trace" if erasure is None else "trace --erasure",
        shape="trace",
        inputs=inputs.described,
        body=report,
        concluded=Conclusion(
            answer=answer, findings=records.tally.findings(placement), problems=(*problems, *gathered.left_out)
        ),
    )


def _named(inputs: Sequence[Input], number: int, path: str) -> str:
    return Problem(input=number, path=path, message="").place(inputs)


def _counted(parts: Sequence[Callable[[], Iterable[TracedRecord]]]) -> TracedRecords:
    """Return the records, counted while they are judged; those of partitions whose copies are held are kept."""
    tally = TraceTally()
    for part in parts:
        for one in part():
            tally.add(one)
    return TracedRecords(parts, tally)


def _by(request: Ask) -> tuple[str, ...]:
    given = {
        "key": _key(request),
        "key-sha256": request.key_sha256,
        "offset": request.offset,
        "header": request.header,
        "value": request.value,
        "value-regex": request.value_regex,
        "time": request.time_ms,
    }
    return tuple(name for name, value in given.items() if value is not None)


def _key(request: Ask) -> bytes | None:
    return request.key if request.key_base64 is None else request.key_base64


def _search(request: Ask) -> RecordSearch:
    if not _by(request):
        raise UsageError(
            "what to trace is needed: --key, --key-base64, --key-sha256, --offset, --header, --value or --time"
        )
    if request.erasure and set(_by(request)) not in ({"key"}, {"key-sha256"}):
        raise UsageError("--erasure reports on all records of a key: give --key, --key-base64 or --key-sha256 alone")
    key = _key(request)
    if key is not None and request.key_sha256 is not None:
        raise UsageError("--key and --key-sha256 name the same thing: give one of them")
    return RecordSearch(
        keys=None if key is None else frozenset({key}),
        key_sha256=request.key_sha256,
        offset=request.offset,
        header=request.header,
        value=request.value,
        value_pattern=None if request.value_regex is None else _compiled(request.value_regex),
        time_ms=request.time_ms,
    )


def _compiled(pattern: str) -> Any:
    """Return a pattern that is matched in time linear in the value, whatever the pattern is: by RE2, which does not go back."""
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


_MAGIC_AT = 16


def outline_of(place: PartitionPlace) -> Replica | None:
    """Return the replica with its segments in outline; None where more has to be read to know what its broker loads.

    That is so where the broker did not stop cleanly, a cleaner works on the log, there are no leader epochs or files are left over, of a capture, and where the end of
    the log is damaged.
    """
    paths = segment_paths(place)
    if not place.state.store.holds_bytes or not place.is_live or not place.state.clean_shutdown:
        return None
    collected = collect_directory(place)
    replica = collected.replica
    bases = [_base_of(path) for path in paths]
    is_plain = bases == sorted(set(bases)) and len(paths) == len(segment_paths(place, left_over=()))
    if not paths or not is_plain or collected.problems or replica.damage or replica.orphan_indexes:
        return None
    if isinstance(replica.checkpoint_epochs, Absent) or isinstance(replica.cleaner_point, CheckpointValue):
        return None
    segments = []
    try:
        for path, base, behind in zip(paths, bases, [*bases[1:], None], strict=True):
            with open_evidence(place.state.root / path) as file:
                segment = (
                    _closed(file, path, base, behind, place) if behind is not None else _last(file, path, base, place)
                )
            if segment is None:
                return None
            segments.append(segment)
    except EvidenceError:
        return None
    return stitch_replica(replica, segments, ())


def search_at(place: PartitionPlace, replica: Replica, search: RecordSearch, offset: int) -> SearchedFile | None:
    """Return what the batches that may hold an offset give, of which the indexes say where they are; None where they are damaged, or no segment holds it."""
    for segment in replica.segments:
        last = segment.last_offset
        if isinstance(last, Absent) or not segment.base_offset <= offset <= last:
            continue
        out = SearchedFile(segment=segment)
        taker = Taker(search, out)
        path = place.state.root / segment.path
        try:
            with open_evidence(path) as file:
                start, end = find_range(
                    file, path, segment.base_offset, from_offset=offset, to_offset=offset, from_time_ms=None
                )
                for chunk in iter_record_chunks(file, start=start, end=end):
                    if isinstance(chunk, Damage):
                        return None
                    taker.take(chunk)
                out.bytes = (file.size if end is None else end) - start
        except EvidenceError:
            return None
        return out
    return None


def _base_of(path: str) -> int:
    base = parse_file_name(path.rpartition("/")[2]).base_offset
    assert isinstance(base, int)
    return base


def _closed(
    file: EvidenceFile, path: str, base_offset: int, next_offset: int, place: PartitionPlace, newest_ms: int = -1
) -> Segment | None:
    """Return a segment that ends where the next begins; its newest timestamp is the last of its time index, to which a broker adds it when it closes the segment."""
    head = file.read(0, _MAGIC_AT + 1)
    index = (place.state.root / path).with_suffix(".timeindex")
    if len(head) <= _MAGIC_AT or not index.exists():
        return None
    with open_evidence(index) as times:
        try:
            entries = parse_time_index(times.read_all(INDEX_LIMIT)).entries
        except FormatError:
            return None
    newest_ms = max(newest_ms, int(entries["timestamp"][-1]) if len(entries) else -1)
    if newest_ms < 0:
        return None
    return Segment(
        path=path,
        base_offset=base_offset,
        length=file.size,
        valid_length=file.size,
        recovered_end_offset=next_offset,
        first_offset=base_offset,
        last_offset=next_offset - 1,
        batch_count=1,
        record_count=0,
        epochs=(),
        magics=frozenset({head[_MAGIC_AT]}),
        max_timestamp_ms=newest_ms,
        digests=NO_DIGESTS,
        batches=Absent.NOT_WRITTEN,
        mtime_ns=file.mtime_ns,
    )


def _last(file: EvidenceFile, path: str, base_offset: int, place: PartitionPlace) -> Segment | None:
    """Return the last segment, whose end is read from the last batch that its index names."""
    start = find_range(
        file, place.state.root / path, base_offset, from_offset=(1 << 63) - 1, to_offset=None, from_time_ms=None
    ).start
    end, newest_ms = base_offset, -1
    for window in walk_segment(file, level=Level.CRC, start=start):
        if window.damage or not window.batches["crc_valid"].all():
            return None
        if len(window.batches):
            end = int(window.batches["last_offset"][-1]) + 1
            newest_ms = max(newest_ms, int(window.batches["max_timestamp"].max()))
    return _closed(file, path, base_offset, end, place, newest_ms)


def found_by_offset(shared: TopicEvidence, wanted: Sequence[TopicPartition]) -> list[TracedPartition] | None:
    """Return what a look at one offset shows where all replicas hold the same record, without reading the logs whole; None where it does not show all that can be said."""
    if not shared.search.is_by_offset or shared.case.ranks or cluster_of(shared.case).log_files:
        return None
    out = []
    for partition in wanted:
        found = _found_by_offset(shared, partition)
        if found is None:
            return None
        out.append(found)
    return out


def _found_by_offset(shared: TopicEvidence, partition: TopicPartition) -> TracedPartition | None:
    offset = shared.search.offset
    places = places_of(shared.case).by_partition.get(partition, ())
    replicas: list[ScannedReplica] = []
    hits: list[Hit] = []
    for place in places:
        outline = outline_of(place)
        file = search_at(place, outline, shared.search, offset) if outline is not None and offset is not None else None
        if outline is None or file is None or file.segment is None or shared.settings(outline.broker_id).is_compacted:
            return None
        collected = CollectedReplica(replica=outline, problems=())
        replicas.append(scanned_replica(place, collected, CopyKind.LIVE, {file.segment.path: file}))
        hits += replicas[-1].hits(file.segment.path, file.hits)
    found = list(grouped(hits, {(one.replica.input, one.replica.path): one.markers for one in replicas}))
    if len(found) != 1 or len(found[0].copies) != len(places) or found[0].record.is_transactional:
        return None
    compared = compare_replicas(shared.comparison, places, [one.collected for one in replicas])
    report = compared.report
    if report is None or compared.findings or compared.problems or report.is_deleted or report.leader is None:
        return None
    account, offset_now = report.account, found[0].record.offset
    if account is not None and may_be_displaced(offset_now, account, report.leader.view.epochs):
        return None
    current = current_id(replicas, report)
    if not all(is_of(one.replica, current) for one in replicas):
        return None
    record = shared.judge(partition, replicas, report).judge(found[0])
    if record.state != "present" or record.fate:
        return None
    looked = searched(
        partition,
        replicas,
        report=report,
        incident=None,
        current=current,
        account=shared.truncations,
        remote=shared.remote,
    )
    # Every replica holds it: other offsets, and who leads, make no difference to it.
    gaps = tuple(gap for gap in looked.gaps if isinstance(gap.offsets, Absent) and gap.reason != "unknown-leader")
    return TracedPartition(replace(looked, gaps=gaps), lambda: [record], (), ())
