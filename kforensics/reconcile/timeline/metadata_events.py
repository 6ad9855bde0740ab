"""Events of the metadata log other than elections: created and deleted topics, fenced and unfenced brokers, settings of retention."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.state import TOPIC_RESOURCE, BrokerState, ConfigChange, When
from kforensics.reconcile.observed.clocks import Anchor
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.units import TopicPartition

TELLING_SETTINGS = frozenset(
    {"unclean.leader.election.enable", "min.insync.replicas", "retention.ms", "cleanup.policy"}
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
