"""ISR changes that leaders asked for and did not get: a line "Shrinking ISR" is written before ZooKeeper or the controller answers.

A leader that has been replaced asks with an old version of the partition's state, and is refused (`Partition.updateIsr`, 0.8 to 2.3; `maybeUpdateIsrAndVersion`,
2.4 to 2.6; `handleAlterIsrError`, 2.7 and later). Its ISR, and what it commits, stay as they were.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.protocol.versions import KafkaVersion, parse_version
from kforensics.reconcile.observed.logged_events import LoggedEvent, lines_of_nodes, of_kinds, places_of_kinds
from kforensics.units import TopicPartition

_ASKED = frozenset({Kind.ISR_SHRINK, Kind.ISR_EXPAND})
_ELECTED = frozenset({Kind.PARTITION_ONLINE, Kind.LEADER_SELECTED})
_OF_REQUESTS = _ASKED | _ELECTED | {Kind.ISR_REFUSED, Kind.ISR_UPDATED, Kind.LEADER_START, Kind.FOLLOWER_START}
"""Lines of a ZooKeeper controller about an election, with the ISR of that moment."""
_ANSWERS_LOGGED = KafkaVersion(2, 4)
"""The first version that logs each ISR that it was given; those before do so at level TRACE."""
_AGAIN_MS = 60_000
"""A leader asks again within this time: every half of `replica.lag.time.max.ms`, 10 or 30 s."""


@dataclass(slots=True)
class _Request:
    """The newest ISR change that a leader asked for, until a line answers it."""

    at: int
    time_ms: int | Absent
    asked: frozenset[int]
    before: frozenset[int]
    is_same_term: bool = True
    """No line has named another leader or epoch since."""


def refused_isr_changes(events: Sequence[LoggedEvent]) -> frozenset[int]:
    """Return which lines ask for an ISR that the leader did not get, by their place among the events.

    A refusal follows, or the leader asks again from the same ISR, or no answer follows though its version logs them, or the controller's next election names two or
    more in sync of which one was to leave: a ZooKeeper controller only takes brokers out, and after an unclean election the new leader is alone.
    """
    refused: set[int] = set()
    answering = _logging_answers(events)
    open_requests: defaultdict[TopicPartition, dict[int, _Request]] = defaultdict(dict)
    by_partition: dict[TopicPartition, list[_Request]] = {}
    for at in places_of_kinds(events, _OF_REQUESTS):
        item = events[at]
        event, node, partition = item.event, item.node_id, item.event.topic_partition
        if isinstance(partition, Absent) or not isinstance(node, int):
            continue
        requests = open_requests[partition]
        if event.kind in _ASKED:
            asked, before = event.brokers("to_isr"), event.brokers("from_isr")
            if isinstance(asked, Absent) or isinstance(before, Absent):
                continue
            known = requests.get(node)
            request = _Request(at, item.time_ms, frozenset(asked), frozenset(before))
            if known and (node in answering or _is_repeated(known, request)):
                refused.add(known.at)
            requests[node] = request
            by_partition.setdefault(partition, []).append(request)
        elif event.kind is Kind.ISR_REFUSED and node in requests:
            refused.add(requests.pop(node).at)
        elif event.kind is Kind.ISR_UPDATED:
            requests.pop(node, None)
            by_partition.pop(partition, None)
        elif event.kind in _ELECTED:
            refused.update(_by_election(event.brokers("isr"), by_partition.pop(partition, [])))
        if event.kind in _ELECTED or event.kind in {Kind.LEADER_START, Kind.FOLLOWER_START}:
            for known in requests.values():
                known.is_same_term = False
    refused |= {
        known.at for requests in open_requests.values() for node, known in requests.items() if node in answering
    }
    return frozenset(refused)


def _is_repeated(known: _Request, request: _Request) -> bool:
    if not known.is_same_term or known.before != request.before:
        return False
    times = known.time_ms, request.time_ms
    return isinstance(times[0], int) and isinstance(times[1], int) and times[1] - times[0] <= _AGAIN_MS


def _by_election(isr: tuple[int, ...] | Absent, requests: Sequence[_Request]) -> set[int]:
    """Return the requests of the term before that an election by the controller shows to have been without effect."""
    if isinstance(isr, Absent) or len(isr) < 2:
        return set()
    found: set[int] = set()
    for request in reversed(requests):
        if frozenset(isr) <= request.asked:
            break
        if request.asked < request.before:
            found.add(request.at)
    return found


def _logging_answers(events: Sequence[LoggedEvent]) -> frozenset[int]:
    """Return the brokers of whose lines all were kept and that log each ISR that they are given."""
    versions: dict[int, set[KafkaVersion | None]] = {}
    lacking = {one.node_id for one in lines_of_nodes(events) if one.file.events_dropped}
    for item in of_kinds(events, (Kind.VERSION,)):
        if isinstance(item.node_id, int):
            versions.setdefault(item.node_id, set()).add(_version(str(item.event.fields.get("version"))))
    return frozenset(
        node
        for node, named in versions.items()
        if node not in lacking and all(version is not None and version >= _ANSWERS_LOGGED for version in named)
    )


def _version(text: str) -> KafkaVersion | None:
    try:
        return parse_version(text)
    except ValueError:
        return None
