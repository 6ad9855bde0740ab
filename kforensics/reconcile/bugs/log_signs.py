"""Find signs of known bugs in log lines that a healthy broker does not write."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.units import TopicPartition


class SignKind(StrEnum):
    """The kind of a sign."""

    ENTERS_EPOCH = "enters-epoch"
    """A follower moves from a known epoch to a newer one; `offset` is its log end offset then."""
    FETCH_FAILED = "fetch-failed"
    STALE_FETCHER = "stale-fetcher"
    """A fetcher of one leader truncates the log while another replica is leader; `offset` is the target."""
    DIRECTORY_FAILED = "directory-failed"
    RECOVERY_AFTER_STOP = "recovery-after-stop"
    CLEAN_START_TWICE = "clean-start-twice"
    """Two starts without recovery, and no clean shutdown between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One sign in a log line."""

    kind: SignKind
    broker_id: int | Absent
    time_ms: int | Absent
    citations: tuple[Citation, ...]
    leader_epoch: int | Absent = Absent.NOT_APPLICABLE
    offset: int | Absent = Absent.NOT_APPLICABLE


def partition_signs(events: Sequence[LoggedEvent]) -> dict[TopicPartition, tuple[Sign, ...]]:
    """Return the signs in lines about partitions, by partition; one without a sign is missing.

    Args:
        events: of all nodes, in the order of time.
    """
    found: dict[TopicPartition, list[Sign]] = {}
    leaders: dict[tuple[int | Absent, TopicPartition], int] = {}
    for item in events:
        partition = item.event.topic_partition
        if isinstance(partition, TopicPartition):
            found.setdefault(partition, []).extend(_of_line(item, partition, leaders))
    return {partition: tuple(signs) for partition, signs in found.items() if signs}


def _of_line(
    item: LoggedEvent, partition: TopicPartition, leaders: dict[tuple[int | Absent, TopicPartition], int]
) -> Iterator[Sign]:
    event, place = item.event, (item.node_id, partition)
    match event.kind:
        case Kind.FOLLOWER_START:
            epoch, before = event.number("leader_epoch"), event.number("previous_leader_epoch")
            leader = event.number("leader")
            if isinstance(leader, int):
                leaders[place] = leader
            # A broker that has just started knows no epoch of before.
            if isinstance(epoch, int) and isinstance(before, int) and 0 <= before < epoch:
                yield _sign(SignKind.ENTERS_EPOCH, item, leader_epoch=epoch, offset=event.number("offset"))
        case Kind.LEADER_AND_ISR:
            leader = event.number("leader")
            if isinstance(leader, int):
                leaders[place] = leader
        case Kind.TRUNCATION_DECISION:
            leader, known = event.number("leader"), leaders.get(place)
            if isinstance(leader, int) and known is not None and known >= 0 and leader != known:
                yield _sign(SignKind.STALE_FETCHER, item, offset=event.number("offset"))
        case Kind.PARTITION_FAILED:
            yield _sign(SignKind.FETCH_FAILED, item)
        case _:
            pass


def broker_signs(events: Iterable[LoggedEvent]) -> tuple[Sign, ...]:
    """Return the signs in lines about brokers and their log directories.

    Args:
        events: of all nodes, in the order of time.
    """
    found: list[Sign] = []
    stopped: dict[int | Absent, LoggedEvent] = {}
    failed: set[int | Absent] = set()
    clean: dict[int | Absent, dict[str, LoggedEvent]] = {}
    for item in events:
        node, kind = item.node_id, item.event.kind
        if kind is Kind.LOG_DIR_FAILED:
            failed.add(node)
            found.append(_sign(SignKind.DIRECTORY_FAILED, item))
        elif kind is Kind.BROKER_STOPPED:
            stopped[node] = item
            clean.pop(node, None)
        elif kind is Kind.RECOVERY_START and node in stopped:
            stop = stopped.pop(node)
            if node not in failed:
                found.append(_sign(SignKind.RECOVERY_AFTER_STOP, item, stop.citation))
        elif kind is Kind.CLEAN_START:
            directory = str(item.event.fields.get("directory", ""))
            before = clean.setdefault(node, {}).get(directory)
            if before is not None:
                found.append(_sign(SignKind.CLEAN_START_TWICE, item, before.citation))
            clean[node][directory] = item
        elif kind is Kind.BROKER_STARTED:
            stopped.pop(node, None)
    return tuple(found)


def _sign(
    kind: SignKind,
    item: LoggedEvent,
    *more: Citation,
    leader_epoch: int | Absent = Absent.NOT_APPLICABLE,
    offset: int | Absent = Absent.NOT_APPLICABLE,
) -> Sign:
    return Sign(
        kind=kind,
        broker_id=item.node_id,
        time_ms=item.time_ms,
        citations=(*more, item.citation),
        leader_epoch=leader_epoch,
        offset=offset,
    )
