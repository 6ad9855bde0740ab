"""The history of a cluster's metadata as plain JSON values."""

from collections.abc import Iterable, Iterator
from typing import Any

from kforensics.ask.model import Ask
from kforensics.commands.metadata import MetadataView
from kforensics.commands.result import Result
from kforensics.damage import Absent
from kforensics.evidence.metadata.compare import LogComparison
from kforensics.evidence.metadata.events import MetadataEvent
from kforensics.evidence.metadata.state import BrokerState, MetadataState, PartitionState, TopicState, When
from kforensics.render.json.document import document, json_line, to_plain
from kforensics.render.view import View
from kforensics.words import utc_text


def write(result: Result[MetadataView], _view: View) -> Iterator[str]:
    """Return the document, piece by piece."""
    body = result.body
    fields = {**_plain_comparison(body.comparison), "state": _selected(_plain_state(body.state), body.request)}
    return document(result, "metadata", fields, streams={"events": map(_plain_event, body.events)})


def write_lines(result: Result[MetadataView], _view: View) -> Iterator[str]:
    """Return an event a line."""
    return (json_line(_plain_event(event)) for event in result.body.events)


def _selected(plain: dict[str, Any], asked: Ask) -> dict[str, Any]:
    """Return the state, down to the topic and partition that were asked for."""
    if asked.topic is None:
        return plain
    topics = [topic for topic in plain["topics"] if topic["name"] == asked.topic]
    if asked.partition is not None:
        for topic in topics:
            topic["partitions"] = [one for one in topic["partitions"] if one["partition"] == asked.partition]
    return {**plain, "topics": topics}


def _plain_when(when: When) -> dict[str, Any]:
    """Return the place of a change."""
    known = when.timestamp_ms >= 0
    return {
        "offset": when.offset,
        "raft_epoch": when.raft_epoch,
        "time_ms": when.timestamp_ms if known else to_plain(Absent.UNKNOWN),
        "time_utc": utc_text(when.timestamp_ms) if known else to_plain(Absent.UNKNOWN),
        "from_snapshot": when.from_snapshot,
        "citations": [to_plain(when.citation)],
    }


def _plain_event(event: MetadataEvent) -> dict[str, Any]:
    """Return one change of the metadata."""
    return {
        "type": "event",
        "kind": event.kind.value,
        "event": event.kind.value,
        **_plain_when(event.when),
        "topic": to_plain(event.topic),
        "topic_id": to_plain(event.topic_id),
        "partition": to_plain(event.partition),
        "leader_epoch": to_plain(event.leader_epoch),
        "broker_id": to_plain(event.broker_id),
        "detail": to_plain(event.detail),
    }


def _plain_partition(state: PartitionState) -> dict[str, Any]:
    """Return a partition's state."""
    plain: dict[str, Any] = to_plain(state._replace(when=None))  # type: ignore[arg-type]
    plain["leader_recovery_state"] = "recovering" if plain.pop("is_recovering") else "recovered"
    return {**plain, "when": _plain_when(state.when)}


def _plain_broker(state: BrokerState) -> dict[str, Any]:
    """Return a broker's registration."""
    return {**to_plain(state._replace(when=None)), "when": _plain_when(state.when)}  # type: ignore[arg-type]


def _plain_topic(topic: TopicState, partitions: Iterable[PartitionState]) -> dict[str, Any]:
    """Return a topic with its partitions."""
    return {
        "name": to_plain(topic.name),
        "topic_id": topic.topic_id,
        "created": _plain_when(topic.created),
        "removed": to_plain(topic.removed) if isinstance(topic.removed, Absent) else _plain_when(topic.removed),
        "partitions": [_plain_partition(state) for state in partitions],
    }


def _plain_state(state: MetadataState) -> dict[str, Any]:
    """Return the metadata at one offset."""
    by_topic: dict[str, list[PartitionState]] = {topic_id: [] for topic_id in state.topics}
    for (topic_id, _), partition in sorted(state.partitions.items()):
        by_topic[topic_id].append(partition)
    topics = sorted(state.topics.values(), key=lambda topic: topic.name)
    return {
        "offset": state.offset,
        "metadata_version": to_plain(state.metadata_version),
        "features": dict(state.features),
        "topics": [_plain_topic(topic, by_topic[topic.topic_id]) for topic in topics],
        "brokers": [_plain_broker(broker) for _, broker in sorted(state.brokers.items())],
        "configs": [
            {
                "resource_type": config.resource_type,
                "resource_name": to_plain(config.resource_name),
                "name": to_plain(config.name),
                "value": to_plain(config.value),
                "when": _plain_when(config.when),
            }
            for _, config in sorted(state.configs.items())
        ],
    }


def _plain_comparison(comparison: LogComparison) -> dict[str, Any]:
    """Return the logs side by side."""
    return {
        "logs": [
            {
                "input": log.history.input,
                "path": log.history.directory or ".",
                "node_id": to_plain(log.history.node_id),
                "is_newest": log.history is comparison.newest,
                "start_offset": log.history.start_offset,
                "end_offset": log.history.end_offset,
                "epochs": to_plain(log.history.epochs),
                "common_end_offset": log.common_end_offset,
                "behind": log.behind,
                "tail": to_plain(log.tail),
            }
            for log in comparison.logs
        ],
        "voters": list(comparison.voters),
        "majority_end_offset": to_plain(comparison.majority_end_offset),
    }
