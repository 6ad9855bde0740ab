"""One record's life: every copy of it on every disk and what became of it, or what was searched without finding it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from kforensics.ask.model import Ask
from kforensics.case.cluster import cluster_of
from kforensics.case.model import places_of
from kforensics.case.opening import open_case
from kforensics.case.processes import spread
from kforensics.case.wanted import check_wanted
from kforensics.commands.cited import CitedFile, hashed_file
from kforensics.commands.result import Conclusion, Result
from kforensics.commands.tracing.by_offset import found_by_offset
from kforensics.commands.tracing.records import Place
from kforensics.commands.tracing.topic_evidence import TopicEvidence
from kforensics.errors import MissingExtra, UsageError
from kforensics.evidence.content.search import RecordSearch
from kforensics.evidence.discovery.inputs import FoundInput
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.state import newest_log
from kforensics.evidence.model import Input, Problem
from kforensics.findings.answers.trace import TraceTally, erasure_answer, trace_answer
from kforensics.findings.rules.quorum import with_quorum
from kforensics.protocol.coordinators import Placement, place_key
from kforensics.reconcile.trace.model import SearchedPartition, TracedRecord
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
        erasure = _hashed(inputs.found, [file for one in found for file in one.files], jobs)
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
        if quorum is not None and quorum.forgotten is not None and topic in quorum.forgotten.topics:
            answer = with_quorum(answer, quorum)
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


def _by(request: Ask) -> tuple[str, ...]:
    """Return what is searched by."""
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
