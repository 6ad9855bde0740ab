"""Operations that were done on purpose: records deleted by request or by a changed setting, replicas moved, topics deleted and created again. None of it is a loss.

Log lines and the metadata log report it; where neither is given, the disks show it: a log start inside of a segment, a replica that is on other brokers than in a
snapshot before, a log that a broker with ZooKeeper put aside for its removal while another one of the name began.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.log_copies import LogOutline
from kforensics.reconcile.incident.model import PartitionIncident
from kforensics.reconcile.timeline.events import DELETE_REQUEST, WHOLE_TOPIC, TimelineEntry, set_to
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import id_list, utc_words

CREATION_MS = 1_000
"""Settings that a topic is created with are recorded within this time."""

AT_ONCE_MS = 600_000
"""Retention comes to what a changed setting lets it delete within this time: by default it looks every five minutes."""

LONGEST_NUMBER = 20

Looked = Mapping[int, frozenset[int]]
"""The brokers whose data directories of a moment are among the inputs, by rank of the moment."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that was done on purpose."""

    kind: str
    """`delete-records`, `reassignment`, `recreated-topic`, `deleted-topic` or `setting-changed`."""
    topic_partition: TopicPartition
    time_ms: int | Absent
    meaning: str
    citations: tuple[Citation, ...]


def operations(
    timeline: Sequence[TimelineEntry], incidents: Sequence[PartitionIncident] = (), *, looked: Looked | None = None
) -> tuple[Operation, ...]:
    """Return the operations that lines, records and disks show, each once; those without a time come last."""
    found: dict[tuple[str, TopicPartition, str], Operation] = {}
    for one in (*_changes(_without_stopovers(timeline)), *_recreated(timeline)):
        found.setdefault((one.kind, one.topic_partition, one.meaning), one)
    moved = {one.topic_partition for one in found.values() if one.kind == "reassignment"}
    recreated = {one.topic_partition.topic for one in found.values() if one.kind == "recreated-topic"}
    for one in _taken_by_settings(setting_changes(timeline), timeline, incidents):
        found[one.kind, one.topic_partition, one.meaning] = one
    for incident in incidents:
        topic = incident.partition.topic
        if topic in METADATA_TOPICS:
            continue
        for one in _deleted_records(incident):
            key = (one.kind, one.topic_partition, one.meaning)
            known = found.get(key)
            found[key] = (
                one
                if known is None
                else replace(known, citations=tuple(dict.fromkeys((*known.citations, *one.citations))))
            )
        if incident.partition not in moved and topic not in recreated:
            found.update({(one.kind, one.topic_partition, one.meaning): one for one in _moved(incident, looked or {})})
        if incident.deleted_topics and not incident.is_deleted and topic not in recreated:
            recreated.add(topic)
            places = tuple(Citation(input=each.input, path=each.path) for each in incident.deleted_topics)
            name, words = TopicPartition(topic, WHOLE_TOPIC), _recreated_sentence(topic)
            one = Operation("recreated-topic", name, Absent.UNKNOWN, words, places)
            found[one.kind, one.topic_partition, one.meaning] = one
        if incident.is_deleted and (incident.logs or incident.deleted_topics) and topic not in recreated:
            one = _deleted_topic(incident, timeline)
            found[one.kind, one.topic_partition, one.meaning] = one
    return tuple(found.values())


def _changes(timeline: Iterable[TimelineEntry]) -> Iterator[Operation]:
    for entry in timeline:
        partition, detail = entry.topic_partition, entry.detail
        if isinstance(partition, Absent):
            continue
        if entry.kind == "log-start-moved" and detail.get("reason") == DELETE_REQUEST:
            meaning = _deletion(partition, detail.get("log_start_offset"))
            yield Operation("delete-records", partition, entry.time_ms, meaning, entry.citations)
        # No tool leaves a partition without replicas.
        elif entry.kind == "reassignment" and detail.get("replicas") != ():
            meaning = _move(partition, detail.get("replicas_before"), detail.get("replicas"))
            yield Operation("reassignment", partition, entry.time_ms, meaning, entry.citations)


def _without_stopovers(timeline: Iterable[TimelineEntry]) -> list[TimelineEntry]:
    """Return moves without their intermediate state of old and new replicas together: one entry from the first to the last."""
    kept: list[TimelineEntry] = []
    last: dict[TopicPartition, int] = {}
    for entry in timeline:
        partition = entry.topic_partition
        if entry.kind != "reassignment" or isinstance(partition, Absent):
            kept.append(entry)
            continue
        at = last.get(partition)
        if at is not None and _continues(kept[at], entry):
            before = kept[at]
            detail = {**before.detail, "replicas": entry.detail.get("replicas", Absent.UNKNOWN)}
            kept[at] = replace(before, detail=detail, citations=(*before.citations, *entry.citations))
            continue
        last[partition] = len(kept)
        kept.append(entry)
    return kept


def _continues(one: TimelineEntry, other: TimelineEntry) -> bool:
    first, middle, end = one.detail.get("replicas_before"), one.detail.get("replicas"), other.detail.get("replicas")
    if not isinstance(first, tuple) or not isinstance(middle, tuple) or not isinstance(end, tuple):
        return False
    return frozenset(middle) == frozenset(first) | frozenset(end) and middle == other.detail.get("replicas_before")


def _deletion(partition: TopicPartition, offset: object) -> str:
    return f"a client asked to delete the records of {partition} below {offset}"


def _move(partition: TopicPartition, before: object, after: object) -> str:
    origin = f" from brokers {id_list(before)}" if isinstance(before, tuple) else ""
    return f"{partition} was reassigned{origin} to {id_list(after)}"


def setting_changes(timeline: Sequence[TimelineEntry]) -> Iterator[TimelineEntry]:
    """Yield the changes by which records of a topic may go that stayed before; what a topic is created with is no change."""
    created: dict[str, list[int]] = defaultdict(list)
    for entry in timeline:
        if entry.kind == "topic-created" and not isinstance(entry.topic_partition, Absent):
            created[entry.topic_partition.topic] += [entry.time_ms] if isinstance(entry.time_ms, int) else []
    last: dict[tuple[str, str], object] = {}
    for entry in timeline:
        partition, name, value = entry.topic_partition, str(entry.detail.get("name")), entry.detail.get("value")
        # Of topics that have none of their own, those of brokers or of the whole cluster.
        topic, of_topic = ("", name.removeprefix("log.")) if isinstance(partition, Absent) else (partition.topic, name)
        is_policy = of_topic == "cleanup.policy"
        is_telling = entry.kind == "config-change" and (is_policy or of_topic.startswith("retention."))
        if not is_telling or not isinstance(entry.time_ms, int):
            continue
        before = last.get((topic, name))
        last[topic, name] = value
        is_new = any(0 <= entry.time_ms - since <= CREATION_MS for since in created[topic])
        # A removed one falls back to that of the brokers, which may be shorter than any.
        is_known = not is_policy and isinstance(before, str) and not isinstance(value, Absent)
        is_longer = is_known and _limit(str(before)) <= _limit(str(value))
        if isinstance(value, str) and not is_new and not is_longer:
            yield entry


def _limit(value: str) -> float:
    """Return a limit of retention; -1 is none."""
    number = int(value) if value.lstrip("-").isdecimal() and len(value) < LONGEST_NUMBER else -1
    return math.inf if number < 0 else number


def _taken_by_settings(
    changes: Iterable[TimelineEntry], timeline: Sequence[TimelineEntry], incidents: Sequence[PartitionIncident]
) -> Iterator[Operation]:
    """Yield the changes of settings after which the cleaner took records of a partition, or retention did so at once."""
    by_topic: dict[str, list[TimelineEntry]] = defaultdict(list)
    for entry in changes:
        by_topic["" if isinstance(entry.topic_partition, Absent) else entry.topic_partition.topic].append(entry)
    deleted = [one for one in timeline if one.kind == "retention" and isinstance(one.time_ms, int)] if by_topic else []
    for incident in incidents:
        partition, start = incident.partition, incident.log_start_offset
        for change in (*by_topic.get(partition.topic, ()), *by_topic.get("", ())):
            name, value = change.detail.get("name"), str(change.detail.get("value"))
            if "compact" in value and incident.cleaned is not None and not isinstance(change.topic_partition, Absent):
                taken, below = incident.cleaned
                what = f"{taken:,} of the offsets of {partition} below {below:,} hold no record any more: its cleaner keeps the newest one of each key, and none without a key"
                yield _by_setting(partition, change, what)
                break
            is_at_once = any(
                one.topic_partition == partition and 0 <= one.time_ms - change.time_ms <= AT_ONCE_MS
                for one in deleted
                if isinstance(one.time_ms, int) and isinstance(change.time_ms, int)
            )
            deletes = not str(name).endswith("cleanup.policy") or "delete" in value
            # What retention took for older than it was is told as lost, whatever was set.
            is_early = any(loss.cause is CauseName.RETENTION for loss in incident.losses)
            is_own = isinstance(change.topic_partition, Absent) and _has_its_own(partition, change, timeline)
            if is_at_once and deletes and isinstance(start, int) and not is_early and not is_own:
                yield _by_setting(partition, change, f"retention has deleted what {partition} held below {start:,}")
                break


def _has_its_own(partition: TopicPartition, change: TimelineEntry, timeline: Sequence[TimelineEntry]) -> bool:
    """Return whether a topic had a value of its own when the setting of brokers that it has in place of was changed."""
    topic, name = TopicPartition(partition.topic, WHOLE_TOPIC), str(change.detail.get("name")).removeprefix("log.")
    own = [
        one.detail.get("value")
        for one in timeline[: timeline.index(change)]
        if one.kind == "config-change" and one.topic_partition == topic and one.detail.get("name") == name
    ]
    return bool(own) and not isinstance(own[-1], Absent)


def _by_setting(partition: TopicPartition, change: TimelineEntry, what: str) -> Operation:
    when = f" at {utc_words(change.time_ms)}" if isinstance(change.time_ms, int) else ""
    meaning = f"since {change.detail.get('name')} was {set_to(change.detail.get('value'))}{when}, {what}"
    return Operation("setting-changed", partition, change.time_ms, meaning, change.citations)


def _recreated(timeline: Iterable[TimelineEntry]) -> Iterator[Operation]:
    deleted: dict[TopicPartition, TimelineEntry] = {}
    for entry in timeline:
        if isinstance(entry.topic_partition, Absent):
            continue
        if entry.kind == "topic-deleted":
            deleted[entry.topic_partition] = entry
        elif entry.kind == "topic-created" and entry.topic_partition in deleted:
            citations = (*deleted.pop(entry.topic_partition).citations, *entry.citations)
            meaning = _recreated_sentence(entry.topic_partition.topic)
            yield Operation("recreated-topic", entry.topic_partition, entry.time_ms, meaning, citations)


def _recreated_sentence(topic: str) -> str:
    return f"topic {topic} was deleted and created again under the same name"


def _deleted_records(incident: PartitionIncident) -> Iterator[Operation]:
    """Yield a log start inside of a segment: retention moves it from segment to segment, only DeleteRecords puts it anywhere."""
    now = [log for log in incident.logs if log.is_final and log.is_live]
    bases = {log.first_base_offset for log in now}
    starts = [log for log in now if _is_inside(log)]
    for log in starts:
        if isinstance(log.log_start, Absent) or log.log_start.value in bases:
            # Segments of another replica end there: a follower takes over the start that retention gave its leader.
            continue
        yield Operation(
            "delete-records",
            incident.partition,
            Absent.UNKNOWN,
            _deletion(incident.partition, log.log_start.value),
            (log.log_start.citation,),
        )


def _is_inside(log: LogOutline) -> bool:
    if isinstance(log.log_start, Absent) or isinstance(log.first_base_offset, Absent):
        return False
    return log.first_base_offset < log.log_start.value < log.log_end_offset


def _moved(incident: PartitionIncident, looked: Looked) -> Iterator[Operation]:
    """Yield the newest snapshot that shows other brokers with a replica than there are now, as far as both times were looked at."""
    ranks = sorted({log.rank for log in incident.logs})
    final = [log for log in incident.logs if log.is_final]
    if len(ranks) < 2 or not final:
        return
    last = final[0].rank
    now = _holders(incident.logs, last)
    for rank in reversed([rank for rank in ranks if rank != last]):
        before = _holders(incident.logs, rank)
        both = looked.get(rank, frozenset()) & looked.get(last, frozenset())
        if not before <= both or not now <= both or before == now or not before or not now:
            continue
        if not before - now or not now - before:
            # One directory more or less may be a replica that was lost or not yet made.
            continue
        yield Operation(
            "reassignment",
            incident.partition,
            Absent.UNKNOWN,
            _move(incident.partition, tuple(sorted(before)), tuple(sorted(now))),
            tuple(Citation(input=log.input, path=log.path) for log in incident.logs if log.rank in {rank, last}),
        )
        return


def _holders(logs: Iterable[LogOutline], rank: int) -> frozenset[int]:
    return frozenset(
        log.broker_id for log in logs if log.rank == rank and log.is_live and isinstance(log.broker_id, int)
    )


def _deleted_topic(incident: PartitionIncident, timeline: Sequence[TimelineEntry]) -> Operation:
    name = TopicPartition(incident.partition.topic, WHOLE_TOPIC)
    told = [one for one in timeline if one.kind == "topic-deleted" and one.topic_partition == name]
    held = [
        *((log.input, log.path) for log in incident.logs),
        *((one.input, one.path) for one in incident.deleted_topics),
    ]
    places = tuple(Citation(input=place, path=path) for place, path in held)
    time_ms = told[0].time_ms if told else Absent.UNKNOWN
    at = f" at {utc_words(time_ms)}" if isinstance(time_ms, int) else ""
    return Operation(
        "deleted-topic", name, time_ms, f"topic {name.topic} was deleted{at}", told[0].citations if told else places
    )
