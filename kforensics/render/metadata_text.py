"""The history of a cluster's metadata for people: the answer first, then what happened, offset by offset."""

from collections.abc import Iterator, Sequence
from typing import Any

from kforensics.damage import Absent
from kforensics.evidence.metadata_compare import ComparedLog, LogComparison
from kforensics.evidence.metadata_events import EventKind, MetadataEvent
from kforensics.evidence.metadata_state import BrokerState, MetadataState, PartitionState, When
from kforensics.render.escape import escape_text
from kforensics.render.text import columns, counted, listed
from kforensics.render.times import utc_text

_RESOURCES = {2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}


def comparison_lines(comparison: LogComparison) -> Iterator[str]:
    """Which log is the newest, and how the others stand to it."""
    newest = comparison.newest
    version = newest.metadata_version
    feature = "" if isinstance(version, Absent) else f", metadata.version {version}"
    logs = "" if len(comparison.logs) == 1 else f" (the newest of {len(comparison.logs)} logs)"
    yield (
        f"Metadata log of {_node(newest.node_id)}{logs}: offsets {newest.start_offset}..{newest.end_offset - 1}, "
        f"leader epoch {newest.last_epoch}{feature}."
    )
    tails = [log for log in comparison.logs if not isinstance(log.tail, Absent)]
    if tails:
        yield (
            f"{counted(len(tails), 'node')} of {len(comparison.logs)} {'holds' if len(tails) == 1 else 'hold'} "
            "records that the newest log does not hold: never committed, cut when the node follows the leader."
        )
    if len(comparison.voters) > 1:
        yield _majority_line(comparison)
    if len(comparison.logs) > 1:
        yield ""
        yield from _log_rows(comparison)


def _majority_line(comparison: LogComparison) -> str:
    voters = listed([str(voter) for voter in comparison.voters], most=9)
    end = comparison.majority_end_offset
    if isinstance(end, Absent):
        return f"Voters are {voters}; too few of their logs are here to say what a majority holds."
    rest = comparison.newest.end_offset - end
    if rest > 0:
        return (
            f"A majority of the voters {voters} holds everything below {end}; the last {counted(rest, 'record')} of the "
            "newest log can't be shown to be committed."
        )
    return f"A majority of the voters {voters} holds everything below {end}."


def _log_rows(comparison: LogComparison) -> Iterator[str]:
    rows = []
    for log in comparison.logs:
        history = log.history
        rows.append(
            (
                _node(history.node_id),
                f"{history.start_offset}..{history.end_offset - 1}",
                f"leader epoch {history.last_epoch}",
                _standing(log, comparison),
            )
        )
    for line in columns(rows):
        yield line.plain


def _standing(log: ComparedLog, comparison: LogComparison) -> str:
    if log.history is comparison.newest:
        return "newest"
    behind = f"behind by {counted(log.behind, 'record')}" if log.behind else "the same"
    if isinstance(log.tail, Absent):
        return behind
    return f"{log.tail.first_offset}..{log.tail.last_offset} differ (leader epoch {log.tail.raft_epoch})"


def _node(node_id: int | Absent) -> str:
    return "a node" if isinstance(node_id, Absent) else f"node {node_id}"


def state_lines(state: MetadataState, *, topic: str | None = None, partition: int | None = None) -> Iterator[str]:
    """The partitions and brokers at one offset."""
    partitions = [
        one
        for one in sorted(state.partitions.values(), key=lambda one: (one.topic, one.partition))
        if (topic is None or one.topic == topic) and (partition is None or one.partition == partition)
    ]
    yield f"At metadata offset {state.offset}"
    if partitions:
        for line in columns([partition_row(one) for one in partitions]):
            yield line.plain
    else:
        yield "  no such partition" if topic is not None else "  no partitions"
    if topic is None:
        yield ""
        for line in columns([_broker_row(one) for _, one in sorted(state.brokers.items())]):
            yield line.plain


def partition_row(state: PartitionState) -> tuple[str, ...]:
    """One partition in a table."""
    leader = "no leader" if isinstance(state.leader, Absent) else f"leader {state.leader}"
    marks = []
    if state.is_recovering:
        marks.append("elected uncleanly, recovering")
    if state.eligible_leader_replicas:
        marks.append(f"ELR {_ids(state.eligible_leader_replicas)}")
    if state.last_known_elr:
        marks.append(f"last known {_ids(state.last_known_elr)}")
    if state.adding_replicas or state.removing_replicas:
        marks.append(f"adding {_ids(state.adding_replicas)} removing {_ids(state.removing_replicas)}")
    return (
        f"{escape_text(state.topic)}-{state.partition}",
        leader,
        f"epoch {state.leader_epoch}",
        f"ISR {_ids(state.isr)}",
        f"of {_ids(state.replicas)}",
        f"since {state.when.offset}",
        ", ".join(marks),
    )


def _broker_row(state: BrokerState) -> tuple[str, ...]:
    return (
        f"broker {state.broker_id}",
        f"broker epoch {state.broker_epoch}",
        "fenced" if state.is_fenced else "unfenced",
        escape_text(listed(state.end_points)),
        f"since {state.when.offset}",
    )


def event_lines(events: Sequence[MetadataEvent]) -> Iterator[str]:
    """The history, one line a change."""
    rows = [
        (str(event.when.offset), _time(event.when), event.kind.value, subject(event), event_words(event))
        for event in events
    ]
    for line in columns(rows, right=frozenset({0})):
        yield line.plain


def _time(when: When) -> str:
    time = utc_text(when.timestamp_ms) if when.timestamp_ms >= 0 else "time unknown"
    return f"{time} or before" if when.from_snapshot else time


def subject(event: MetadataEvent) -> str:
    """What an event is about."""
    if not isinstance(event.partition, Absent):
        return f"{escape_text(str(event.topic))}-{event.partition}"
    if not isinstance(event.topic, Absent):
        return escape_text(event.topic)
    if isinstance(event.broker_id, Absent):
        return ""
    is_controller = event.kind in {EventKind.CONTROLLER_CHANGE, EventKind.CONTROLLER_REGISTERED}
    return f"{'controller' if is_controller else 'broker'} {event.broker_id}"


def event_words(event: MetadataEvent) -> str:
    """What changed, in words."""
    detail = event.detail
    match event.kind:
        case EventKind.PARTITION_CREATED:
            return f"leader {_leader(detail['leader'])}, ISR {_ids(detail['isr'])} of {_ids(detail['replicas'])}"
        case EventKind.LEADER_CHANGE:
            was = _leader(detail["previous_leader"])
            return f"leader {was} -> {_leader(detail['leader'])}, epoch {event.leader_epoch}"
        case EventKind.UNCLEAN_ELECTION:
            eligible = f", ELR {_ids(detail['previous_elr'])}" if detail["previous_elr"] else ""
            return (
                f"leader {_leader(detail['previous_leader'])} -> {_leader(detail['leader'])}, "
                f"epoch {event.leader_epoch}; the ISR was {_ids(detail['previous_isr'])}{eligible}"
            )
        case EventKind.LEADER_EPOCH_BUMP:
            return f"epoch {event.leader_epoch}, leader still {_leader(detail['leader'])}"
        case EventKind.LEADER_RECOVERED:
            return f"leader {_leader(detail['leader'])} recovered from an unclean election"
        case EventKind.ISR_SHRINK:
            return f"ISR {_ids(detail['isr'])} without {_ids(detail['removed'])}"
        case EventKind.ISR_EXPAND:
            return f"ISR {_ids(detail['isr'])} with {_ids(detail['added'])}"
        case EventKind.ELR_CHANGE:
            return f"ELR {_ids(detail['eligible_leader_replicas'])}, last known {_ids(detail['last_known_elr'])}"
        case EventKind.REASSIGNMENT:
            return (
                f"replicas {_ids(detail['previous_replicas'])} -> {_ids(detail['replicas'])}, "
                f"adding {_ids(detail['adding_replicas'])}, removing {_ids(detail['removing_replicas'])}"
            )
        case EventKind.CONFIG_CHANGE:
            return _config_words(detail)
        case EventKind.SNAPSHOT:
            complete = "" if detail["is_complete"] else ", incomplete: not used"
            return f"covers every record below {detail['end_offset']}{complete}"
    return ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in detail.items())


def _config_words(detail: Any) -> str:
    kind = _RESOURCES.get(detail["resource_type"], f"resource type {detail['resource_type']}")
    name = escape_text(detail["resource_name"]) or "default"
    value = "removed" if detail["value"] is None else f"= {escape_text(detail['value'])}"
    return f"{kind} {name}: {escape_text(detail['name'])} {value}"


def _plain(value: Any) -> str:
    if isinstance(value, Absent):
        return value.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "[" + ", ".join(escape_text(str(one)) for one in value) + "]"
    return escape_text(str(value))


def _leader(leader: int | Absent) -> str:
    return "none" if isinstance(leader, Absent) else str(leader)


def _ids(ids: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, ids)) + "]"
