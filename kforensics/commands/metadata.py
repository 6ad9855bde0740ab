"""The history of partitions, topics and brokers: every metadata log among the inputs read and compared, the newest one shown."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from kforensics.ask.model import Ask
from kforensics.case.model import Case
from kforensics.case.wanted import not_there
from kforensics.commands.graver import no_calmer_than_metadata
from kforensics.commands.result import Conclusion, Result
from kforensics.damage import Absent, Damage
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, Inputs, find_inputs, why_not_checked
from kforensics.evidence.event_kinds import EventKind
from kforensics.evidence.metadata.compare import LogComparison, compare_metadata_logs, refuse_two_clusters
from kforensics.evidence.metadata.events import EventSelection, MetadataEvent, change_events
from kforensics.evidence.metadata.files import is_metadata_directory
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.log import read_metadata_logs
from kforensics.evidence.metadata.set_back import QuorumSetBack, absent_controllers, quorum_set_back
from kforensics.evidence.metadata.state import MetadataState
from kforensics.evidence.model import Problem
from kforensics.evidence.replica.unaccounted import lost_metadata
from kforensics.findings.rules.quorum import metadata_answer
from kforensics.source.walk import Obstacle, join
from kforensics.words import joined_names, utc_words

FIRST_TIME_MS = 10**11
"""A smaller number is an offset of the metadata log, not a time: it would be of 1973."""


def _has(asked: Ask, at_offset: int | None, event: MetadataEvent) -> bool:
    if at_offset is not None and event.when.offset > at_offset:
        return False
    if (asked.since_ms is not None and event.when.timestamp_ms < asked.since_ms) or (
        asked.until_ms is not None and event.when.timestamp_ms >= asked.until_ms
    ):
        return False
    if asked.topics:
        return event.topic in asked.topics and (
            not asked.partitions or isinstance(event.partition, Absent) or event.partition in asked.partitions
        )
    return asked.broker is None or asked.broker in _brokers_of(event)


def _brokers_of(event: MetadataEvent) -> set[int]:
    """Return the brokers that an event concerns: leaders, replicas that join or leave, and the broker that it is about."""
    detail = event.detail
    names = ("leader", "previous_leader")
    found = {one for name in names if isinstance(one := detail.get(name), int)}
    found |= {one for name in ("added", "removed") for one in detail.get(name, ())}
    if event.kind is not EventKind.CONTROLLER_CHANGE and isinstance(event.broker_id, int):
        found.add(event.broker_id)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataView:
    """The newest metadata log, how the others compare with it, and what was asked of it."""

    request: Ask
    comparison: LogComparison
    events: EventSelection
    """The events: what changed, in order."""
    at_offset: int | None = None
    """The last metadata offset that counts, where one was asked for, or a time."""
    state: MetadataState
    """The state at the offset that was asked for, else at the end."""
    quorum: QuorumSetBack | None = None
    """What a start of the controllers that are here forgets."""


def run(request: Ask) -> Result[MetadataView]:
    """Read and compare the metadata logs below the paths.

    Raises:
        EvidenceError: a path can't be used, or no metadata log is below them.
        UsageError: the log does not know what was asked for.
    """
    inputs = find_inputs(
        request.paths,
        why_not=why_not_checked,
        keep_going=request.keep_going,
        one_cluster=True,
        cluster=request.cluster,
    )
    histories = read_metadata_logs(inputs)
    refuse_two_clusters(histories, inputs)
    comparison = compare_metadata_logs(histories)
    if comparison is None:
        emptied = [
            str(one.root / join(log_dir, entry.name))
            for one in inputs.found
            for log_dir in one.log_dir_paths
            for entry in one.listings.of(log_dir).entries
            if entry.is_directory and is_metadata_directory(entry.name)
        ]
        if emptied:
            raise EvidenceError(
                emptied[0],
                "no segment and no snapshot of the KRaft metadata log is in its directory",
                ("the copy left them out", "the log was taken away: `kforensics ls` says what shows that"),
            )
        raise EvidenceError(
            str(request.paths[0]) if len(request.paths) == 1 else "the inputs",
            "no KRaft metadata log is here",
            ("a cluster that keeps its metadata in ZooKeeper has none", "the log is in another log directory"),
        )
    newest = comparison.newest
    at_offset = _offset_asked_for(request, newest)
    _check_question(request, newest)
    problems = (*inputs.problems, *_unlisted(inputs), *(problem for one in histories for problem in _problems(one)))
    epochs = [log_dir.broker_epoch for one in inputs.found for log_dir in one.log_dirs]
    events = change_events(
        newest,
        topics=request.topics,
        partitions=request.partitions,
        up_to=at_offset,
        since_ms=request.since_ms,
        until_ms=request.until_ms,
        wants=partial(_has, request, at_offset),
    )
    quorum = quorum_set_back(histories, inputs)
    return Result(
        command="metadata",
        inputs=inputs.described,
        body=MetadataView(
            request=request,
            comparison=comparison,
            events=events,
            state=newest.at(at_offset) if at_offset is not None else newest.latest(),
            at_offset=at_offset,
            quorum=quorum,
        ),
        concluded=no_calmer_than_metadata(
            Conclusion(
                answer=metadata_answer(
                    comparison,
                    problems,
                    lost_end=lost_metadata(newest.end_offset, epochs),
                    quorum=quorum,
                    absent=absent_controllers(histories, inputs),
                ),
                problems=problems,
            ),
            Case(ask=request, inputs=inputs),
            of_quorum=False,
        ),
    )


def _check_question(question: Ask, history: MetadataHistory) -> None:
    for topic in sorted(question.topics):
        if not history.topics_named(topic):
            raise not_there(f"the metadata log knows no topic {topic}", topic, history.topic_ids)
    for number in sorted(question.partitions):
        if not any(history.partition_states(topic, number) for topic in question.topics):
            ids = {one.topic_id for topic in question.topics for one in history.topics_named(topic)}
            known = {str(each) for topic_id, each in history.partitions if topic_id in ids}
            words = f"topic {joined_names(question.topics, 'or')} has no partition {number}"
            raise not_there(words, str(number), known)
    if not question.topics and question.broker is not None and question.broker not in history.brokers:
        words = f"the metadata log knows no broker {question.broker}"
        raise not_there(words, str(question.broker), map(str, history.brokers))


def _offset_asked_for(question: Ask, history: MetadataHistory) -> int | None:
    """Return the offset up to which the log counts, none for all of it.

    Raises:
        UsageError: it is above the end of the log, or the time is before all that the log dates.
    """
    at = question.at_ms
    if at is None or 0 <= at < history.end_offset:
        return at
    if 0 <= at < FIRST_TIME_MS:
        raise UsageError(f"the metadata log ends at offset {history.end_offset - 1}, before {at}")
    offset = history.offset_at(at)
    if offset is None:
        raise UsageError(f"the metadata log dates nothing before {utc_words(at)} (--at)")
    return offset


def _unlisted(inputs: Inputs) -> Iterator[Problem]:
    """Yield the places that could not be looked at and where a metadata log may be."""
    for number, found in enumerate(inputs.found):
        for met in found.walk(within=is_metadata_directory):
            if isinstance(met, Obstacle) and (
                met in found.obstacles
                or met.path in (*found.log_dir_paths, WHOLE_INPUT)
                or any(is_metadata_directory(part) for part in PurePosixPath(met.path).parts)
            ):
                yield Problem(input=number, path=met.path, message=met.message)


def _problems(history: MetadataHistory) -> Iterator[Problem]:
    yield from history.problems
    yield from history.level_problems
    for path, damage in history.damage:
        if damage.hides_content:
            yield Problem(input=history.input, path=path, position=damage.span.position, message=_words(damage))


def _words(damage: Damage) -> str:
    return f"{damage.kind.value} at byte {damage.span.position}: expected {damage.expected}, found {damage.found}"
