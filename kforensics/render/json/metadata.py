"""The document of `metadata`: the logs side by side, the state that they add up to, and the events."""

from collections.abc import Iterator
from typing import Any

from kforensics.commands.metadata import MetadataView
from kforensics.damage import Absent
from kforensics.evidence.metadata.compare import ComparedLog
from kforensics.evidence.metadata.events import MetadataEvent
from kforensics.evidence.metadata.set_back import QuorumSetBack
from kforensics.evidence.metadata.state import BrokerState, ConfigChange, PartitionState, TopicState, When
from kforensics.evidence.model import Citation
from kforensics.render.json.shape import Document, Each, Field, own, shape
from kforensics.words import utc_text


def _logs(body: MetadataView) -> Iterator[tuple[ComparedLog, bool]]:
    newest = body.comparison.newest
    return ((one, one.history is newest) for one in body.comparison.logs)


def _topics(body: MetadataView) -> Iterator[tuple[TopicState, list[PartitionState]]]:
    state, asked = body.state, body.request
    by_topic: dict[str, list[PartitionState]] = {topic_id: [] for topic_id in state.topics}
    for (topic_id, number), partition in sorted(state.partitions.items()):
        if not asked.partitions or number in asked.partitions:
            by_topic[topic_id].append(partition)
    for topic in sorted(state.topics.values(), key=lambda topic: topic.name):
        if not asked.topics or topic.name in asked.topics:
            yield topic, by_topic[topic.topic_id]


def _time(when: When) -> int | Absent:
    return when.timestamp_ms if when.timestamp_ms >= 0 else Absent.UNKNOWN


def _time_utc(when: When) -> str | Absent:
    return utc_text(when.timestamp_ms) if when.timestamp_ms >= 0 else Absent.UNKNOWN


def _when(of: str = "") -> dict[str, Any]:
    """Return the fields that name a record, those of a value or of what a path leads to."""

    def at(value: Any) -> When:
        found: When = getattr(value, of) if of else value
        return found

    below = f"{of}." if of else ""
    return {
        **own("offset raft_epoch", below),
        "time_ms": Field(lambda value: _time(at(value)), "", int | Absent),
        "time_utc": Field(lambda value: _time_utc(at(value)), "", str | Absent),
        "from_snapshot": (f"{below}from_snapshot", "Only the result is known: it happened at this offset or before."),
        "citations": Field(lambda value: [at(value).citation], "", tuple[Citation, ...]),
    }


shape(When, "The record that says so.", _when())
shape(
    MetadataEvent,
    "What changed.",
    {
        "type": Field(lambda _: "event", "", str),
        "kind": ("", "The same word as `event`."),
        "event": "kind",
        **_when("when"),
        **own("topic topic_id partition leader_epoch broker_id"),
        "detail": ("", "What the record says beside, by kind."),
    },
)
shape(
    PartitionState,
    "A partition of a topic.",
    {
        **own("topic topic_id partition leader leader_epoch partition_epoch isr replicas adding_replicas"),
        **own("removing_replicas eligible_leader_replicas last_known_elr directories when"),
        "leader_recovery_state": Field(
            lambda one: "recovering" if one.is_recovering else "recovered", "`recovered` or `recovering`.", str
        ),
    },
)

shape(
    QuorumSetBack,
    "What a start of the controllers that are here forgets.",
    own(
        "voters voter_count end standings holders is_certain is_shown is_open is_stuck by_settings mixed forgotten brokers"
    ),
)

METADATA = Document(
    "metadata",
    MetadataView,
    {
        "logs": Field(
            _logs,
            "The metadata log of each node.",
            Each(
                {
                    **own("input", "0.history."),
                    "path": Field(lambda log: log[0].history.directory or ".", "", str),
                    "node_id": "0.history.node_id",
                    "is_newest": ("1", "The one that the rest is read from."),
                    **own("start_offset end_offset epochs", "0.history."),
                    **own("common_end_offset behind tail", "0."),
                }
            ),
        ),
        **own("voters majority_end_offset", "comparison."),
        "quorum": Field(
            "quorum",
            "Voters that can go on without metadata that was committed, or that can elect nobody.",
            is_optional=True,
        ),
        "state": Field(
            ".",
            "The metadata at the end, or at `--at`.",
            {
                **own("offset metadata_version features", "state."),
                "topics": Field(
                    _topics,
                    "",
                    Each({**own("name topic_id created removed", "0."), "partitions": "1"}),
                ),
                "brokers": Field(
                    lambda body: [one for _, one in sorted(body.state.brokers.items())], "", tuple[BrokerState, ...]
                ),
                "configs": Field(
                    lambda body: [one for _, one in sorted(body.state.configs.items())], "", tuple[ConfigChange, ...]
                ),
            },
        ),
        "events": Field("events", "What changed, in the order of the log.", tuple[MetadataEvent, ...]),
    },
    streamed=("events",),
    lines={"event": "events"},
)
