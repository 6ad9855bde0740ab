"""Who deleted the beginning of a log: retention or a request, by lines of brokers, else by what the disk and the settings leave possible."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.formats.log_lines.stamps import WIDEST_ZONE_MS
from kforensics.protocol.retention import PossibleRule, RetentionRule, RetentionTimes, is_aged
from kforensics.reconcile.observed.logged_events import LoggedEvent, of_kinds
from kforensics.reconcile.timeline.events import DELETE_REQUEST
from kforensics.reconcile.timeline.logged_operations import is_soon, rule_of
from kforensics.units import TopicPartition
from kforensics.words import duration, utc_words


class Remover(StrEnum):
    """What moved a log start."""

    TIME = "retention-time"
    SIZE = "retention-size"
    RETENTION = "retention"
    """By a rule that no line names."""
    EARLY = "retention-early"
    """By time, though no record was old enough."""
    REQUEST = "delete-records"
    NONE = "no-broker"
    """No rule of a broker can have: files were removed by hand or left out, or the settings were others."""
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
    largest_ms: int | Absent = Absent.UNKNOWN
    """The largest timestamp of the last segment as its broker took it, where its line says it."""
    slack_ms: int = 0
    """How much earlier it may have been: no input shows the zone of the line."""
    first_offset: int | Absent = Absent.UNKNOWN
    """The base offset of the first segment that went, where a line says it."""

    def is_early(self, newest_ms: int) -> bool:
        """Whether it deleted a segment by time before its newest record, by the largest timestamp that a copy shows, was old enough."""
        if self.remover is not Remover.TIME or not isinstance(self.time_ms, int) or not isinstance(self.limit, int):
            return False
        return newest_ms >= 0 and not is_aged(newest_ms, self.time_ms + self.slack_ms, self.limit)

    @property
    def words(self) -> str:
        """What moved it, with the setting."""
        limit = self.limit
        match self.remover:
            case Remover.TIME:
                return "retention by time" + (f" (retention.ms {duration(limit)})" if isinstance(limit, int) else "")
            case Remover.SIZE:
                return "retention by size" + (f" (retention.bytes {limit:,})" if isinstance(limit, int) else "")
            case Remover.RETENTION:
                several = len(self.citations) > 1
                return "retention, by time and by size" if several else "retention, by a rule that no line names"
            case Remover.REQUEST:
                return "a client's request (DeleteRecords)"
            case _:
                return "retention or DeleteRecords"


_OF_DELETIONS = (LogEventKind.RETENTION, LogEventKind.REMOTE_DELETED, LogEventKind.LOG_START_MOVED)


def log_start_moves(
    events: Iterable[LoggedEvent], *, is_zone_shown: Callable[[LoggedEvent], bool] = lambda _item: True
) -> dict[TopicPartition, list[LogStartMove]]:
    """Return every move of a log start that lines report, by partition, in order of time; not those of a tier's local log, whose records are kept elsewhere.

    Args:
        events: of all nodes, in the order of time.
        is_zone_shown: whether an input shows in which zone the times of a line are.
    """
    found: dict[TopicPartition, list[LogStartMove]] = defaultdict(list)
    rules: dict[tuple[object, TopicPartition], list[LoggedEvent]] = {}
    last: dict[tuple[object, TopicPartition], LoggedEvent] = {}
    for item in of_kinds(events, _OF_DELETIONS):
        event, partition = item.event, item.event.topic_partition
        if isinstance(partition, Absent):
            continue
        place = (item.node_id, partition)
        if rule_of(event) in {"time", "size"}:
            # Since 3.0 the log start moves before the lines about the segments, up to then after them.
            if place in last and _is_of(item, last[place]):
                at = next(
                    at
                    for at in reversed(range(len(found[partition])))
                    if found[partition][at].broker_id == item.node_id
                )
                found[partition][at] = _by_rule(found[partition][at], item)
            else:
                rules.setdefault(place, []).append(item)
        elif event.kind is LogEventKind.LOG_START_MOVED and isinstance(event.number("log_start_offset"), int):
            move, before = _move(item), [one for one in rules.pop(place, ()) if _is_of(one, item)]
            if len({rule_of(one.event) for one in before}) > 1:  # remote storage is gone through once, by all rules
                move = move._replace(remover=Remover.RETENTION, citations=(before[-1].citation, *move.citations))
            elif before:
                move = _by_rule(move, before[-1])
            last[place] = item
            found[partition].append(move._replace(slack_ms=0 if is_zone_shown(item) else WIDEST_ZONE_MS))
    return found


_REASONS = {DELETE_REQUEST: Remover.REQUEST, "segment deletion": Remover.RETENTION}
"""Of the line that a log start was moved; that a follower moves with its leader says nothing of what moved that."""


def _move(item: LoggedEvent) -> LogStartMove:
    offset = item.event.number("log_start_offset")
    assert isinstance(offset, int)
    remover = _REASONS.get(str(item.event.fields.get("reason")), Remover.UNKNOWN)
    return LogStartMove(offset, remover, Absent.NOT_APPLICABLE, item.time_ms, item.node_id, (item.citation,))


def _by_rule(move: LogStartMove, rule: LoggedEvent) -> LogStartMove:
    """Return a move with the rule by which its first segment was deleted."""
    if move.remover in {Remover.TIME, Remover.SIZE}:
        return move
    return move._replace(
        remover=Remover.TIME if rule_of(rule.event) == "time" else Remover.SIZE,
        limit=rule.event.number("limit"),
        citations=(rule.citation, *move.citations),
        largest_ms=rule.event.number("largest_timestamp_ms"),
        first_offset=_first_offset(rule),
    )


def _first_offset(rule: LoggedEvent) -> int | Absent:
    bases = rule.event.brokers("base_offsets")
    return min(bases) if isinstance(bases, tuple) and bases else rule.event.number("base_offset")


def _is_of(rule: LoggedEvent, move: LoggedEvent) -> bool:
    """Whether a line about segments is of the deletion that moved a log start; a follower that moves with its leader deletes by its own rules, too."""
    first = _first_offset(rule)
    start, reason = move.event.number("log_start_offset"), move.event.fields.get("reason")
    is_below = not isinstance(first, int) or (isinstance(start, int) and first < start)
    return is_below and reason in {None, "segment deletion"} and is_soon(rule, move)


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
        since = f"at {utc_words(self.since_ms)} " if isinstance(self.since_ms, int) else ""
        return f"{since}by {self.words}"


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
    times: RetentionTimes = field(default_factory=RetentionTimes)
    """The retention of the topic, where it is known, and the time that its records are of."""
    epochs_from: int | Absent = Absent.UNKNOWN
    """Where its leader epochs begin: a broker that moves the log start takes those below along."""

    def by(self, time_ms: int, offset: int) -> int | Absent:
        """Return where the log began at a time, by lines; the offset itself where they show that it began at or below it, unknown where none says when it passed that."""
        passed = [move for move in self.moves if offset < move.offset <= self.offset]
        times = [(move.offset, move.time_ms, move.slack_ms) for move in passed if isinstance(move.time_ms, int)]
        before = [at for at, when, slack in times if when + slack <= time_ms]
        if before:
            return max(before)
        # Lines of moves before the first one may be gone: only what it deleted, or one to below the offset, shows that none passed that.
        first = passed[0].first_offset if passed else Absent.UNKNOWN
        is_first = (isinstance(first, int) and first <= offset) or any(move.offset <= offset for move in self.moves)
        is_after = is_first and times and all(when - slack > time_ms for _, when, slack in times)
        is_later = offset >= self.offset or is_after
        return offset if is_later else Absent.UNKNOWN

    @property
    def marks(self) -> list[int]:
        """Where it is known to have begun, in rising order."""
        return sorted({self.offset, *(move.offset for move in self.moves if move.offset < self.offset)})

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
                also = ", and later ones in another way" if others or passed[-1].offset < self.offset else ""
                citations = tuple(dict.fromkeys((*known.citations, *passed[-1].citations)))
                return Removal(known.remover, "proven", first.time_ms, known.words + also, citations)
            return self._guess(offset, first.time_ms, first.citations)
        return self._guess(offset, Absent.UNKNOWN, ())

    def _guess(self, offset: int, since_ms: int | Absent, citations: tuple[Citation, ...]) -> Removal:
        """Say what is left possible where no line names it."""
        cited = (*citations, *([] if self.citation is None else [self.citation]))
        if self.is_inside:
            words = (
                "a client's request (DeleteRecords): the log starts inside of a segment, where retention never puts it"
            )
            return Removal(Remover.REQUEST, "likely", since_ms, words, cited)
        if isinstance(self.epochs_from, int) and self.epochs_from < self.offset:
            words = f"no broker, as far as its files show: the leader epochs still begin at {self.epochs_from:,}. Segments were removed by hand or left out of the copy, or the broker was killed as it deleted them"
            return Removal(Remover.NONE, "possible", since_ms, words, cited)
        times = self.times
        if not times.periods:
            words = "retention or DeleteRecords: no line and no setting among the inputs says which"
            return Removal(Remover.UNKNOWN, "possible", since_ms, words, cited)
        early = times.early_from(offset, self.offset)
        if early is not None and early[0] > offset:
            words = (
                f"retention or DeleteRecords; from offset {early[0]:,} on {early_words(times, early)}, or DeleteRecords"
            )
            return Removal(Remover.UNKNOWN, "possible", since_ms, words, cited)
        if early is not None:
            return Removal(Remover.EARLY, "possible", since_ms, f"{early_words(times, early)}, or DeleteRecords", cited)
        rules = times.rules(times.bound_ms)
        if rules:
            limits = " or ".join(map(_rule_words, rules))
            removers = {Remover.TIME if one.rule is RetentionRule.TIME else Remover.SIZE for one in rules}
            remover = Remover.UNKNOWN if len(removers) > 1 else next(iter(removers))
            words = f"retention {limits}, or DeleteRecords: no line says which"
            if Remover.TIME in removers and isinstance(older_ms := times.older_ms, int):
                words += f". Retention by time goes by timestamps, and the oldest here is {utc_words(older_ms)}, before the topic was created"
            return Removal(remover, "possible", since_ms, words, cited)
        if not any(one.policy.deletes for one in times.every):
            words = "neither retention nor DeleteRecords, which take nothing from a topic whose cleanup.policy is compact alone: the policy was another one, or files were removed by hand"
            return Removal(Remover.NONE, "possible", since_ms, words, cited)
        words = "a client's request (DeleteRecords), unless settings were changed since: by those of now retention deletes nothing"
        return Removal(Remover.REQUEST, "possible", since_ms, words, cited)


def _rule_words(one: PossibleRule) -> str:
    until = f", as it was until {utc_words(one.until_ms)}" if isinstance(one.until_ms, int) else ""
    if one.rule is RetentionRule.TIME:
        default = "" if one.is_known else ", Kafka's default, unless a file of the broker says otherwise"
        return f"by time (retention.ms {duration(one.limit)}{until}{default})"
    return f"by size (retention.bytes {one.limit:,}{until})"


def early_words(times: RetentionTimes, early: tuple[int, int] | None = None) -> str:
    """Return what deleted records that no rule of their topic can have deleted by their age or by size.

    Args:
        early: the first of them, and a time before which it was not stamped, where that alone shows it.
    """
    limit = duration(min(one.policy.retention_ms for one in times.every if one.policy.by_time))
    if early is None or early[1] != times.created_ms:
        named = "" if early is None else f"; a producer snapshot has offset {early[0]:,} of {utc_words(early[1])}"
        return f"retention by time that took them for older than they were (retention.ms {limit}{named})"
    since = f"though their topic is there since {utc_words(early[1])} only"
    return f"retention by time (retention.ms {limit}), {since}: by a wrong time index, or stamped earlier, as mirrored records are"
