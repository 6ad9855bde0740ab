"""What the traces of known bugs are looked for in: the logs, their truncations, and signs in log lines."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, Citation
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.protocol.known_bugs import BUGS
from kforensics.reconcile.observed.facts import BrokerVersions, Leadership
from kforensics.reconcile.observed.logged_events import LoggedEvent, of_kinds
from kforensics.units import TopicPartition

if TYPE_CHECKING:
    from kforensics.reconcile.history.log_copies import LogCopy
    from kforensics.reconcile.history.losses import Loss
    from kforensics.reconcile.history.residuals import Residual
    from kforensics.reconcile.history.truncations import ObservedTruncation
    from kforensics.reconcile.logs.loaded_log import LoadedLog
    from kforensics.reconcile.observed.logged_truncations import LoggedTruncation


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


_OF_PARTITIONS = (Kind.FOLLOWER_START, Kind.LEADER_AND_ISR, Kind.TRUNCATION_DECISION, Kind.PARTITION_FAILED)
_OF_BROKERS = (
    Kind.LOG_DIR_FAILED,
    Kind.BROKER_STOPPED,
    Kind.RECOVERY_START,
    Kind.CLEAN_START,
    Kind.BROKER_STARTED,
)


def partition_signs(events: Sequence[LoggedEvent]) -> dict[TopicPartition, tuple[Sign, ...]]:
    """Return the signs in lines about partitions, by partition; one without a sign is missing."""
    found: dict[TopicPartition, list[Sign]] = {}
    leaders: dict[tuple[int | Absent, TopicPartition], int] = {}
    for item in of_kinds(events, _OF_PARTITIONS):
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
    """Return the signs in lines about brokers and their log directories."""
    found: list[Sign] = []
    stopped: dict[int | Absent, LoggedEvent] = {}
    failed: set[int | Absent] = set()
    clean: dict[int | Absent, dict[str, LoggedEvent]] = {}
    for item in of_kinds(events, _OF_BROKERS):
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


class BugTrace(NamedTuple):
    """A known bug that fits a trace of a replica."""

    jira: str
    broker_id: int | Absent
    trace: str
    """The trace in words."""
    citations: tuple[Citation, ...] = ()
    is_conclusive: bool = True
    """Whether nothing else leaves this trace; otherwise the bug is only possible."""
    truncated_to: int | Absent = Absent.NOT_APPLICABLE
    """The target of the truncation that it explains, if it explains one."""
    confidence: str = "possible"
    """`likely` or `possible`, once the version of the broker is looked at."""

    @property
    def effect(self) -> str:
        """What the bug does."""
        return BUGS[self.jira].effect


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvidence:
    """The evidence of one partition."""

    versions: BrokerVersions
    copies: "Sequence[LogCopy]"
    leader: "LogCopy | None"
    leaderships: Sequence[Leadership]
    truncations: "Sequence[ObservedTruncation]"
    logged: "Sequence[LoggedTruncation]"
    residuals: "Sequence[Residual]"
    ordinary_truncations: frozenset[int]
    """The targets of truncations that an unclean election or a lost page cache explains."""
    agree_until: "Callable[[LoadedLog, LoadedLog], int]"
    reader: BatchReader
    losses: "Sequence[Loss]" = ()
    disagreeing: frozenset[tuple[int | Absent, int]] = frozenset()
    """The broker and target of truncations that contradict the rules."""
    stale_directories: Mapping[int, Citation] = field(default_factory=dict)
    """The directories in use that belong to another topic of the same name, by broker."""
    signs: Sequence[Sign] = ()
    """The signs in log lines about this partition and its brokers."""

    @property
    def replicas(self) -> "Iterator[LogCopy]":
        """The copies that are replicas now: no renamed directory, no earlier snapshot's remains."""
        return (one for one in self.copies if one.is_live)


Rule = Callable[[TraceEvidence], Iterator[BugTrace]]

RULES: dict[Rule, frozenset[str]] = {}
"""Every rule that looks for traces of known bugs, with the names of the bugs that it can find."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule under the names of the bugs whose traces it looks for: JIRA numbers, or keys of `BUGS` of its own."""
    known = frozenset(BUGS[name].jira for name in names)

    def register(function: Rule) -> Rule:
        RULES[function] = known
        return function

    return register


def traced(seen: BugTrace, versions: BrokerVersions) -> BugTrace | None:
    """Return the bug that left the trace, as far as the broker's version has it; None where it does not."""
    confidence = versions.confidence(seen.broker_id, seen.jira)
    if confidence is None:
        return None
    return seen._replace(confidence=confidence if seen.is_conclusive else "possible")
