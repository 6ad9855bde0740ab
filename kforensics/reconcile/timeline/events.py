"""The timeline: log lines, recorded changes of the cluster, leaderships and truncations of all nodes in one list, each entry with its citations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from kforensics.damage import Absent
from kforensics.evidence.event_kinds import LOGGED_EVENTS, EventKind
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.state import TOPIC_RESOURCE, BrokerState, ConfigChange, When
from kforensics.evidence.model import Citation
from kforensics.formats.log_lines.event import FieldValue
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.clocks import Anchor
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.logged_events import LoggedEvent, of_kinds
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation
from kforensics.units import TopicPartition

DetailValue = FieldValue | Absent
Detail = Mapping[str, DetailValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One entry of the timeline."""

    kind: EventKind
    time_ms: int | Absent
    """The time in UTC, as far as the clocks of the logs can be aligned."""
    broker_id: int | Absent = Absent.NOT_APPLICABLE
    topic_partition: TopicPartition | Absent = Absent.NOT_APPLICABLE
    leader_epoch: int | Absent = Absent.NOT_APPLICABLE
    detail: Detail = field(default_factory=dict)
    citations: tuple[Citation, ...] = ()
    is_quiet: bool = False
    """Whether the entry has no consequence, such as a truncation without effect or a rebuilt index; shown only on request."""


DELETE_REQUEST = "client delete records request"
"""The reason that brokers since 2.6 log if a client deleted records."""
_SUBJECT_KINDS = frozenset({Kind.BROKER_REGISTERED, Kind.BROKER_FENCED, Kind.BROKER_UNFENCED})


def build_timeline(
    events: Sequence[LoggedEvent],
    truncations: Sequence[LoggedTruncation],
    leaderships: Mapping[TopicPartition, Sequence[Leadership]],
    *,
    more: Iterable[TimelineEntry] = (),
) -> tuple[TimelineEntry, ...]:
    """Return all entries by time, truncations with and without effect; those without a time come last."""
    entries = [
        *(entry for item in of_kinds(events, LOGGED_EVENTS) if (entry := _of_event(item)) is not None),
        *(truncation_entry(truncation) for truncation in truncations),
        *(entry for partition, states in leaderships.items() for entry in leadership_entries(partition, states)),
        *more,
    ]
    entries.sort(key=_order)
    return tuple(_without_doubles(entries))


def _order(entry: TimelineEntry) -> tuple[bool, int, str, str, int]:
    time = entry.time_ms if isinstance(entry.time_ms, int) else 0
    partition = "" if isinstance(entry.topic_partition, Absent) else str(entry.topic_partition)
    broker = entry.broker_id if isinstance(entry.broker_id, int) else -1
    return (not isinstance(entry.time_ms, int), time, partition, entry.kind, broker)


def _of_event(item: LoggedEvent) -> TimelineEntry | None:
    event = item.event
    report = LOGGED_EVENTS.get(event.kind)
    if report is None or event.kind is Kind.RETENTION:
        return None
    detail: dict[str, DetailValue] = {name: event.fields[name] for name in report.fields if name in event.fields}
    if event.repeats:
        detail["repeats"] = event.repeats
    subject = event.number("broker") if event.kind in _SUBJECT_KINDS else item.node_id
    return TimelineEntry(
        kind=report.event,
        time_ms=item.time_ms,
        broker_id=subject,
        topic_partition=Absent.NOT_APPLICABLE if isinstance(event.topic_partition, Absent) else event.topic_partition,
        leader_epoch=event.number("leader_epoch") if "leader_epoch" in report.fields else Absent.NOT_APPLICABLE,
        detail=detail,
        citations=(item.citation,),
        is_quiet=report.is_quiet and event.fields.get("reason") != DELETE_REQUEST,
    )


def truncation_entry(truncation: LoggedTruncation) -> TimelineEntry:
    """Return a truncation as an entry, quiet unless a line shows that it had an effect, or that the log was corrupt."""
    return TimelineEntry(
        kind=EventKind.TRUNCATION,
        time_ms=truncation.time_ms,
        broker_id=truncation.broker_id,
        topic_partition=truncation.topic_partition,
        leader_epoch=truncation.leader_epoch,
        detail={
            "from_offset": truncation.from_offset,
            "to_offset": truncation.to_offset,
            "rule": truncation.rule,
            "leader": truncation.leader,
            "effect": truncation.has_effect,
        },
        citations=truncation.citations,
        is_quiet=truncation.has_effect is not True and not truncation.is_recovery_of_unknown_end,
    )


def leadership_entries(partition: TopicPartition, states: Sequence[Leadership]) -> Iterator[TimelineEntry]:
    """Yield the changes from each recorded state of a partition, the oldest first, to the next: of the leader or the ISR; the first is one from nothing."""
    for before, state in zip((None, *states), states, strict=False):
        yield from election_entries(partition, before, state)


def election_entries(
    partition: TopicPartition, before: Leadership | None, state: Leadership
) -> Iterator[TimelineEntry]:
    """Yield the entries of one change from a recorded state to the next."""
    detail: dict[str, DetailValue] = {"leader": state.leader, "isr": _ids(state.isr)}
    if before is not None:
        detail["isr_before"] = _ids(before.isr)
    if before is None or (before.leader, before.leader_epoch) != (state.leader, state.leader_epoch):
        detail["leader_before"] = before.leader if before is not None else Absent.NOT_APPLICABLE
        kind = EventKind.LEADER_LOST if isinstance(state.leader, Absent) else EventKind.LEADER_CHANGE
        if state.unclean and not isinstance(state.leader, Absent):
            kind = EventKind.UNCLEAN_ELECTION
        yield _state_entry(kind, partition, state, detail)
    elif isinstance(before.isr, frozenset) and isinstance(state.isr, frozenset) and before.isr != state.isr:
        kind = EventKind.ISR_EXPAND if before.isr < state.isr else EventKind.ISR_SHRINK
        yield _state_entry(kind, partition, state, detail)
    replicas = state.replicas
    if before is None or isinstance(before.replicas, Absent) or isinstance(replicas, Absent):
        return
    if frozenset(before.replicas) != frozenset(replicas):
        moved = {"replicas_before": before.replicas, "replicas": replicas}
        yield _state_entry(EventKind.REASSIGNMENT, partition, state, moved)


def _state_entry(kind: EventKind, partition: TopicPartition, state: Leadership, detail: Detail) -> TimelineEntry:
    if isinstance(state.recorded_at, int):
        detail = {**detail, "metadata_offset": state.recorded_at}
    return TimelineEntry(
        kind=kind,
        time_ms=state.time_ms,
        broker_id=state.leader if isinstance(state.leader, int) else Absent.NOT_APPLICABLE,
        topic_partition=partition,
        leader_epoch=state.leader_epoch,
        detail=detail,
        citations=(state.citation,),
    )


def _ids(isr: frozenset[int] | Absent) -> tuple[int, ...] | Absent:
    return isr if isinstance(isr, Absent) else tuple(sorted(isr))


_SAME_LINE_MS = 2_000
_SPOKEN_BY_ALL = frozenset(
    {EventKind.BROKER_REGISTERED, EventKind.BROKER_FENCED, EventKind.BROKER_UNFENCED, EventKind.START_FAILED}
)


def _without_doubles(entries: Iterable[TimelineEntry]) -> Iterator[TimelineEntry]:
    """Merge the entries for one event, which every controller logs and the metadata log records, with all their details and citations."""
    kept: list[TimelineEntry] = []
    latest: dict[tuple[str, int | Absent], int] = {}
    for entry in entries:
        if entry.kind not in _SPOKEN_BY_ALL:
            kept.append(entry)
            continue
        key = (entry.kind, entry.broker_id)
        at = latest.get(key)
        if at is not None and _is_same(kept[at], entry):
            kept[at] = replace(
                kept[at],
                detail={**entry.detail, **kept[at].detail},
                citations=(*kept[at].citations, *entry.citations),
            )
            continue
        latest[key] = len(kept)
        kept.append(entry)
    return iter(kept)


def _is_same(one: TimelineEntry, other: TimelineEntry) -> bool:
    epochs = {epoch for entry in (one, other) if isinstance(epoch := entry.detail.get("broker_epoch"), int)}
    return len(epochs) < 2 and _is_close(one.time_ms, other.time_ms)


def _is_close(one: int | Absent, other: int | Absent) -> bool:
    return isinstance(one, int) and isinstance(other, int) and abs(one - other) <= _SAME_LINE_MS


TELLING_SETTINGS = frozenset(
    {
        *("unclean.leader.election.enable", "min.insync.replicas"),
        *(f"{of}{name}" for of in ("", "log.") for name in ("retention.ms", "retention.bytes", "cleanup.policy")),
    }
)


def set_to(value: object) -> str:
    """Return in words what a setting was set to; a removed one has the value of the next level, which no record names."""
    return (
        "removed" if value is Absent.NOT_APPLICABLE else f"set to {'unknown' if isinstance(value, Absent) else value}"
    )


WHOLE_TOPIC = -1
"""The partition number of an entry that concerns all partitions of a topic."""


def epoch_times(history: MetadataHistory) -> dict[Anchor, int]:
    """Return when each leader epoch began, in UTC ms by the controller's clock."""
    times: dict[Anchor, int] = {}
    for (topic_id, partition), leader_epoch, time_ms in history.partitions.epoch_starts():
        topic = history.topics.get(topic_id)
        if topic is not None:
            times.setdefault((TopicPartition(topic.name, partition), leader_epoch), time_ms)
    return times


def cluster_entries(history: MetadataHistory) -> Iterator[TimelineEntry]:
    """Yield entries for topics, brokers and settings; elections and ISR changes have entries by partition."""
    for topic in history.topics.values():
        yield _topic_entry(EventKind.TOPIC_CREATED, topic.name, topic.topic_id, topic.created)
        if not isinstance(topic.removed, Absent):
            yield _topic_entry(EventKind.TOPIC_DELETED, topic.name, topic.topic_id, topic.removed)
    for states in history.brokers.values():
        yield from _broker_entries(states)
    ended = {(one.name, one.removed.offset) for one in history.topics.values() if not isinstance(one.removed, Absent)}
    for change in history.configs:
        # The settings of a deleted topic go with it.
        is_with_topic = change.value is None and (change.resource_name, change.when.offset) in ended
        if change.name in TELLING_SETTINGS and not change.when.from_snapshot and not is_with_topic:
            yield _setting_entry(change)


def _topic_entry(kind: EventKind, name: str, topic_id: str, when: When) -> TimelineEntry:
    return TimelineEntry(
        kind=kind,
        time_ms=_time(when),
        topic_partition=TopicPartition(name, WHOLE_TOPIC),
        detail={"topic_id": topic_id, "metadata_offset": when.offset},
        citations=(when.citation,),
        is_quiet=kind == EventKind.TOPIC_CREATED,
    )


def _broker_entries(states: Sequence[BrokerState]) -> Iterator[TimelineEntry]:
    first: tuple[BrokerState | None, ...] = (None,)
    for before, state in pairwise((*first, *states)):
        assert state is not None
        kind = _broker_change(before, state)
        if kind is not None and not state.when.from_snapshot:
            yield TimelineEntry(
                kind=kind,
                time_ms=_time(state.when),
                broker_id=state.broker_id,
                detail={"broker_epoch": state.broker_epoch, "metadata_offset": state.when.offset},
                citations=(state.when.citation,),
                is_quiet=kind == EventKind.BROKER_UNFENCED,
            )


def _broker_change(before: BrokerState | None, state: BrokerState) -> EventKind | None:
    if before is None or (state.is_registered and state.incarnation_id != before.incarnation_id):
        return EventKind.BROKER_REGISTERED
    if before.is_registered and not state.is_registered:
        return EventKind.BROKER_UNREGISTERED
    if state.is_fenced and not before.is_fenced:
        return EventKind.BROKER_FENCED
    if before.is_fenced and not state.is_fenced:
        return EventKind.BROKER_UNFENCED
    return None


def _setting_entry(change: ConfigChange) -> TimelineEntry:
    is_topic = change.resource_type == TOPIC_RESOURCE
    return TimelineEntry(
        kind=EventKind.CONFIG_CHANGE,
        time_ms=_time(change.when),
        topic_partition=TopicPartition(change.resource_name, WHOLE_TOPIC) if is_topic else Absent.NOT_APPLICABLE,
        detail={
            "name": change.name,
            "value": Absent.NOT_APPLICABLE if change.value is None else change.value,
            "metadata_offset": change.when.offset,
        },
        citations=(change.when.citation,),
        is_quiet=change.name not in {"unclean.leader.election.enable", "min.insync.replicas"},
    )


def _time(when: When) -> int | Absent:
    return when.timestamp_ms if when.timestamp_ms > 0 else Absent.NOT_WRITTEN
