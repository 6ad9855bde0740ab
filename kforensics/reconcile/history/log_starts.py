"""Who deleted the beginning of a log: retention or a request, by lines of brokers, else by what the disk and the settings leave possible."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.protocol.retention import RetentionPolicy
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.timeline.events import DELETE_REQUEST
from kforensics.units import TopicPartition
from kforensics.words import duration, utc_words

SAME_DELETION_MS = 60_000
"""A broker moves the log start so long after the lines about the segments at most."""


class Remover(StrEnum):
    """What moved a log start."""

    TIME = "retention-time"
    SIZE = "retention-size"
    REQUEST = "delete-records"
    UNKNOWN = "unknown"


class LogStartMove(NamedTuple):
    """A log start that a broker moved, by its lines."""

    offset: int
    remover: Remover
    limit: int | Absent
    """Of the rule: milliseconds or bytes."""
    time_ms: int | Absent
    broker_id: int | Absent
    citations: tuple[Citation, ...]

    @property
    def words(self) -> str:
        """What moved it, with the setting."""
        limit = self.limit
        match self.remover:
            case Remover.TIME:
                return "retention by time" + (f" (retention.ms {duration(limit)})" if isinstance(limit, int) else "")
            case Remover.SIZE:
                return "retention by size" + (f" (retention.bytes {limit:,})" if isinstance(limit, int) else "")
            case Remover.REQUEST:
                return "a client's request (DeleteRecords)"
            case _:
                return "retention or DeleteRecords"


def log_start_moves(events: Iterable[LoggedEvent]) -> dict[TopicPartition, list[LogStartMove]]:
    """Return every move of a log start that lines report, by partition, in order of time; not those of a tier's local log, whose records are kept elsewhere.

    Args:
        events: of all nodes, in the order of time.
    """
    found: dict[TopicPartition, list[LogStartMove]] = defaultdict(list)
    rules: dict[tuple[object, TopicPartition], LoggedEvent] = {}
    for item in events:
        event, partition = item.event, item.event.topic_partition
        if isinstance(partition, Absent):
            continue
        if event.kind is LogEventKind.RETENTION and event.fields.get("rule") in {"time", "size"}:
            rules[item.node_id, partition] = item
        elif event.kind is LogEventKind.LOG_START_MOVED:
            offset, rule = event.number("log_start_offset"), rules.pop((item.node_id, partition), None)
            if isinstance(offset, int):
                found[partition].append(_move(offset, item, rule))
    return found


def _move(offset: int, item: LoggedEvent, rule: LoggedEvent | None) -> LogStartMove:
    reason = item.event.fields.get("reason")
    if reason == DELETE_REQUEST:
        return LogStartMove(
            offset, Remover.REQUEST, Absent.NOT_APPLICABLE, item.time_ms, item.node_id, (item.citation,)
        )
    # A follower that moves with its leader deletes segments by its own rules, too.
    if rule is None or reason == "leader offset increment" or not _is_soon(rule, item):
        return LogStartMove(
            offset, Remover.UNKNOWN, Absent.NOT_APPLICABLE, item.time_ms, item.node_id, (item.citation,)
        )
    remover = Remover.TIME if rule.event.fields.get("rule") == "time" else Remover.SIZE
    limit = rule.event.number("limit")
    return LogStartMove(offset, remover, limit, item.time_ms, item.node_id, (rule.citation, item.citation))


def _is_soon(before: LoggedEvent, item: LoggedEvent) -> bool:
    if not isinstance(before.time_ms, int) or not isinstance(item.time_ms, int):
        return True
    return item.time_ms - before.time_ms <= SAME_DELETION_MS


class Removal(NamedTuple):
    """What deleted the records between an offset and a log start."""

    by: Remover
    confidence: str
    """`proven` by a line, `likely` by the disk or settings, `possible` where it is one of several."""
    since_ms: int | Absent
    """When the log start passed the offset."""
    words: str
    """What deleted them, and where no line says it, why it is taken for that."""
    citations: tuple[Citation, ...] = ()

    @property
    def sentence(self) -> str:
        """Say what deleted them and since when."""
        since = f" at {utc_words(self.since_ms)}" if isinstance(self.since_ms, int) else ""
        return f"by {self.words}{since}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStart:
    """Where a log starts, and what is known of how it came to start there."""

    offset: int
    moves: Sequence[LogStartMove] = ()
    """By lines, in order of time."""
    is_inside: bool = False
    """It lies inside of a segment of every replica that is here."""
    citation: Citation | None = None
    """Of the checkpoint that has it."""
    policy: RetentionPolicy | None = None
    """The retention of the topic, where it is known."""

    def removal(self, offset: int) -> Removal | None:
        """Return what deleted the records from an offset up to the log start; none where it starts at or below that.

        Args:
            offset: of which lines and settings say what passed it; the first that did counts.
        """
        if offset >= self.offset:
            return None
        passed = [move for move in self.moves if offset < move.offset <= self.offset]
        if passed:
            first = passed[0]
            same = (move for move in passed if move.offset == first.offset and move.remover is not Remover.UNKNOWN)
            known = next(same, first)
            if known.remover is not Remover.UNKNOWN:
                others = {move.remover for move in passed} - {known.remover, Remover.UNKNOWN}
                also = " and later by others" if others else ""
                citations = tuple(dict.fromkeys((*known.citations, *passed[-1].citations)))
                return Removal(known.remover, "proven", first.time_ms, known.words + also, citations)
            return self._guess(first.time_ms, first.citations)
        return self._guess(Absent.UNKNOWN, ())

    def _guess(self, since_ms: int | Absent, citations: tuple[Citation, ...]) -> Removal:
        """Say what is left possible where no line names it."""
        cited = (*citations, *([] if self.citation is None else [self.citation]))
        policy = self.policy
        if self.is_inside:
            words = (
                "a client's request (DeleteRecords): the log starts inside of a segment, where retention never puts it"
            )
            return Removal(Remover.REQUEST, "likely", since_ms, words, cited)
        if policy is not None:
            by_time, by_size = policy.by_time, policy.by_size
            if not by_time and not by_size:
                words = "a client's request (DeleteRecords): by its settings retention deletes nothing of the topic"
                return Removal(Remover.REQUEST, "likely", since_ms, words, cited)
            limits = [f"by time (retention.ms {duration(policy.retention_ms)})"] if by_time else []
            limits += [f"by size (retention.bytes {policy.retention_bytes:,})"] if by_size else []
            words = f"retention {' or '.join(limits)}, or DeleteRecords: no line says which"
            remover = Remover.UNKNOWN if by_time and by_size else Remover.TIME if by_time else Remover.SIZE
            return Removal(remover, "possible", since_ms, words, cited)
        words = "retention or DeleteRecords: no line and no setting among the inputs says which"
        return Removal(Remover.UNKNOWN, "possible", since_ms, words, cited)
