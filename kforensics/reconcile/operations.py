"""What operators did on purpose: records deleted by request, replicas moved, topics deleted and made anew. None of it is a loss."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.reconcile.timeline import DELETE_REQUEST, TimelineEntry
from kforensics.units import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that was done on purpose."""

    kind: str
    """`delete-records`, `reassignment` or `recreated-topic`."""
    topic_partition: TopicPartition
    time_ms: int | Absent
    meaning: str
    citations: tuple[Citation, ...]


def operations(timeline: Sequence[TimelineEntry]) -> tuple[Operation, ...]:
    """The operations that a timeline shows, each once, in its order."""
    found: dict[tuple[str, TopicPartition, str], Operation] = {}
    for one in (*_changes(timeline), *_recreated(timeline)):
        found.setdefault((one.kind, one.topic_partition, one.meaning), one)
    return tuple(found.values())


def _changes(timeline: Iterable[TimelineEntry]) -> Iterator[Operation]:
    for entry in timeline:
        partition, detail = entry.topic_partition, entry.detail
        if isinstance(partition, Absent):
            continue
        if entry.kind == "log-start-moved" and detail.get("reason") == DELETE_REQUEST:
            meaning = f"a client asked to delete the records of {partition} below {detail.get('log_start_offset')}"
            yield _operation("delete-records", partition, entry, meaning)
        elif entry.kind == "reassignment":
            before, after = _ids(detail.get("replicas_before")), _ids(detail.get("replicas"))
            meaning = f"{partition} was reassigned from brokers {before} to {after}"
            yield _operation("reassignment", partition, entry, meaning)


def _recreated(timeline: Iterable[TimelineEntry]) -> Iterator[Operation]:
    deleted: dict[TopicPartition, TimelineEntry] = {}
    for entry in timeline:
        if isinstance(entry.topic_partition, Absent):
            continue
        if entry.kind == "topic-deleted":
            deleted[entry.topic_partition] = entry
        elif entry.kind == "topic-created" and entry.topic_partition in deleted:
            before = deleted.pop(entry.topic_partition)
            topic = entry.topic_partition.topic
            meaning = f"topic {topic} was deleted and created anew under the same name"
            operation = _operation("recreated-topic", entry.topic_partition, entry, meaning)
            yield Operation(
                kind=operation.kind,
                topic_partition=operation.topic_partition,
                time_ms=operation.time_ms,
                meaning=operation.meaning,
                citations=(*before.citations, *operation.citations),
            )


def _operation(kind: str, partition: TopicPartition, entry: TimelineEntry, meaning: str) -> Operation:
    return Operation(
        kind=kind, topic_partition=partition, time_ms=entry.time_ms, meaning=meaning, citations=entry.citations
    )


def _ids(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else "unknown"
