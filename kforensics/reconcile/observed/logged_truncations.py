"""Truncations that log lines report: from which offset, to which, and by which rule; those without effect are kept and flagged.

A line names only its target. Other lines of the same node show the log end offset before: exactly by a follower's first line in an epoch, by a
fetch reset and by the load of the log; at least by any earlier one, since a log only grows between them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Citation
from kforensics.formats.log_lines.event import EMPTIED_SEGMENT, LogEvent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.logged_events import LoggedEvent, is_of_other_directory, lines_of_nodes, of_kinds
from kforensics.units import METADATA_TOPIC, TopicPartition

METADATA_PARTITION = TopicPartition(METADATA_TOPIC, 0)

SAME_TRUNCATION_MS = 5_000
"""The lines of one truncation are written within this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTruncation:
    """A truncation that a log line reports."""

    broker_id: int | Absent
    topic_partition: TopicPartition
    time_ms: int | Absent
    from_offset: int | Absent
    """The log end offset before the truncation; a lower bound if `is_exact` is false."""
    is_exact: bool
    to_offset: int
    rule: str
    """`epoch`, `high-watermark`, `leader-end`, `leader-start`, `leader-offset`, `recovery`, `snapshot` or `unknown`."""
    leader: int | Absent
    leader_epoch: int | Absent
    """The leader epoch in which the node truncated its log."""
    high_watermark: int | Absent
    started_with: CheckpointValue | Absent = Absent.UNKNOWN
    """The high watermark with which the replica took up its last role before."""
    is_full: bool
    """Whether the whole log was discarded and starts again at `to_offset`."""
    says_no_effect: bool = False
    """Whether the line itself says that nothing was removed."""
    is_inside: bool = False
    """Start-up recovery stopped inside of the log and dropped whole segments behind: its end was not what was wrong."""
    empties_segment: bool = False
    """Start-up recovery gave up a whole segment, sound batches included, which began at `to_offset`."""
    citations: tuple[Citation, ...]

    @property
    def has_effect(self) -> bool | Absent:
        """Return whether records were removed; unknown if no line shows the log end offset before."""
        if self.is_full:
            return True
        if isinstance(self.from_offset, int) and self.from_offset > self.to_offset:
            return True
        # A target beyond the last known end, and no word of it: the log had grown since.
        is_at_end = self.is_exact and self.from_offset == self.to_offset
        return False if is_at_end or self.says_no_effect else Absent.UNKNOWN

    @property
    def is_recovery_of_unknown_end(self) -> bool:
        """Whether start-up recovery found corruption, and no line shows how far the log had reached."""
        return self.rule == "recovery" and isinstance(self.has_effect, Absent)


@dataclass(slots=True)
class _LogState:
    """The state of one replica by the lines so far."""

    end: int | Absent = Absent.UNKNOWN
    is_exact: bool = False
    end_line: LoggedEvent | None = None
    """The line that shows it."""
    leader: int | Absent = Absent.UNKNOWN
    leader_epoch: int | Absent = Absent.UNKNOWN
    high_watermark: CheckpointValue | Absent = Absent.UNKNOWN
    """The high watermark with which it took up its role, while nothing has been truncated since."""
    decision: LoggedEvent | None = None
    damaged: LoggedEvent | None = None
    """What says that recovery found a batch whose content does not fit its checksum: it cuts the log there."""

    def know_end(self, item: LoggedEvent, end: int | Absent, *, is_exact: bool) -> None:
        if isinstance(end, int):
            self.end, self.is_exact, self.end_line = end, is_exact, item

    def take_role(self, item: LoggedEvent) -> None:
        value = item.event.number("high_watermark")
        self.high_watermark = (
            value if isinstance(value, Absent) else CheckpointValue(value=value, citation=item.citation)
        )


_TOLD = (
    Kind.SEGMENTS_DELETED,
    Kind.LOG_LOADED,
    Kind.LOG_CREATED,
    Kind.LOG_DISCARDED,
    Kind.STRAY_LOG,
    Kind.PRODUCER_SNAPSHOT,
    Kind.SEGMENT_ROLLED,
    Kind.LOG_START_MOVED,
    Kind.FOLLOWER_START,
    Kind.LEADER_START,
    Kind.LEADER_AND_ISR,
    Kind.TRUNCATION_DECISION,
    Kind.TRUNCATION_BELOW_HIGH_WATERMARK,
    Kind.FETCH_OFFSET_RESET,
    Kind.TRUNCATION_WITHOUT_EFFECT,
    Kind.TRUNCATION,
    Kind.FULL_TRUNCATION,
    Kind.METADATA_TRUNCATION,
    Kind.INVALID_RECORDS,
    Kind.RECOVERY_TRUNCATION,
)


def logged_truncations(events: Sequence[LoggedEvent]) -> tuple[LoggedTruncation, ...]:
    """Return every truncation that lines of any node report, in the order of the events; several lines about one truncation count once."""
    states: dict[tuple[int | Absent, TopicPartition], _LogState] = {}
    found: list[LoggedTruncation] = []
    begins = file_begins(events)
    for item in of_kinds(events, _TOLD):
        partition = _partition(item.event)
        if partition is None or is_of_other_directory(item.event):
            continue
        if item.event.kind is Kind.SEGMENTS_DELETED and item.event.fields.get("reason") == "recovery":
            _flag_inside(found, item, partition)
            continue
        state = states.setdefault((item.node_id, partition), _LogState())
        for truncation in _advance(state, item, partition, begins):
            if not _merge(found, truncation):
                found.append(truncation)
    return tuple(found)


def subject_of(truncations: Iterable[LoggedTruncation]) -> set[TopicPartition]:
    """Return the partitions of which records were removed, or may have been by start-up recovery."""
    return {
        truncation.topic_partition
        for truncation in truncations
        if truncation.has_effect is True or truncation.is_recovery_of_unknown_end
    }


def _flag_inside(found: list[LoggedTruncation], item: LoggedEvent, partition: TopicPartition) -> None:
    """Flag the recovery whose line precedes the line about the segments that it deleted."""
    for at in range(len(found) - 1, -1, -1):
        if (found[at].broker_id, found[at].topic_partition) == (item.node_id, partition):
            if found[at].rule == "recovery":
                found[at] = replace(found[at], is_inside=True, citations=(*found[at].citations, item.citation))
            return


def _partition(event: LogEvent) -> TopicPartition | None:
    if event.kind is Kind.METADATA_TRUNCATION:
        return METADATA_PARTITION if isinstance(event.topic_partition, Absent) else event.topic_partition
    return None if isinstance(event.topic_partition, Absent) else event.topic_partition


def _advance(
    state: _LogState, item: LoggedEvent, partition: TopicPartition, begins: Mapping[int, int]
) -> Iterator[LoggedTruncation]:
    event = item.event
    match event.kind:
        case Kind.LOG_CREATED | Kind.LOG_DISCARDED | Kind.STRAY_LOG:
            state.end = Absent.UNKNOWN  # behind it the directory holds another log
        case Kind.PRODUCER_SNAPSHOT | Kind.SEGMENT_ROLLED | Kind.LOG_START_MOVED:
            reached = _first_known(event.number("offset"), event.number("log_start_offset"))
            if isinstance(reached, int) and (isinstance(state.end, Absent) or reached > state.end):
                state.know_end(item, reached, is_exact=False)
        case Kind.LOG_LOADED:
            line = state.end_line
            loaded = None if line is None else loaded_short(item, state.end, line.time_ms, begins)
            if loaded is not None:
                yield from _truncation(state, item, partition, "recovery", target=loaded)
            # The broker has started: whom it followed before says nothing of whom it follows now.
            state.leader = state.leader_epoch = state.high_watermark = Absent.UNKNOWN
            state.decision = None
            state.know_end(item, event.number("log_end_offset"), is_exact=True)
        case Kind.FOLLOWER_START:
            state.know_end(item, event.number("offset"), is_exact=True)
            state.take_role(item)
            state.leader, state.leader_epoch = event.number("leader"), event.number("leader_epoch")
        case Kind.LEADER_START:
            # A leader appends from now on.
            state.know_end(item, event.number("offset"), is_exact=False)
            state.take_role(item)
            state.leader, state.leader_epoch = item.node_id, event.number("leader_epoch")
        case Kind.LEADER_AND_ISR:
            epoch = event.number("leader_epoch")
            if isinstance(epoch, int) and (isinstance(state.leader_epoch, Absent) or epoch >= state.leader_epoch):
                state.leader, state.leader_epoch = event.number("leader"), epoch
        case Kind.TRUNCATION_DECISION | Kind.TRUNCATION_BELOW_HIGH_WATERMARK:
            state.know_end(item, event.number("log_end_offset"), is_exact=True)
            if event.fields.get("needed", True):
                state.decision = item
        case Kind.FETCH_OFFSET_RESET:
            yield from _reset(state, item, partition)
        case Kind.TRUNCATION_WITHOUT_EFFECT:
            last = event.number("last_offset")
            state.know_end(item, last + 1 if isinstance(last, int) else last, is_exact=True)
            yield from _truncation(state, item, partition, "unknown", says_no_effect=True)
        case Kind.TRUNCATION:
            yield from _truncation(state, item, partition, "unknown")
        case Kind.FULL_TRUNCATION:
            state.know_end(item, event.number("log_end_offset"), is_exact=True)
            yield from _truncation(state, item, partition, "leader-start", is_full=True)
        case Kind.METADATA_TRUNCATION:
            rule = str(event.fields["rule"])
            yield from _truncation(state, item, partition, rule, is_full=rule == "snapshot")
        case Kind.INVALID_RECORDS:
            state.damaged = item if _is_of_a_batch(event) else None
        case Kind.RECOVERY_TRUNCATION:
            state.is_exact = False
            yield from _truncation(state, item, partition, "recovery")
            state.damaged = None
        case _:
            pass


def _is_of_a_batch(event: LogEvent) -> bool:
    """Whether a line says that bytes which no checksum fits are those of a batch, and not zeros or what is no batch."""
    said = _CHECKSUMS.search(f"{event.fields.get('reason')} {event.fields.get('cause')}")
    return said is not None and int(said[1]) != 0


_CHECKSUMS = re.compile(r"Record is corrupt \(stored crc = (\d{1,10}), computed crc = \d{1,10}\)", re.ASCII)


def file_begins(events: Iterable[LoggedEvent]) -> dict[int, int]:
    """Return when the lines of each file begin, in UTC ms, by the file's identity; files of which not all lines were kept are left out."""
    return {
        id(one.file): one.begin_ms
        for one in lines_of_nodes(events)
        if isinstance(one.begin_ms, int) and not one.file.events_dropped
    }


def loaded_short(
    item: LoggedEvent, reached: int | Absent, since_ms: int | Absent, begins: Mapping[int, int]
) -> int | None:
    """Return where a log ended that was loaded shorter than it had been: its end was not on disk, or the disk was put back; None where that is not so.

    Args:
        since_ms: when it had reached that. The file of the line has all lines since then: others may say what it truncated.
        begins: as `file_begins` gives it.
    """
    event, loaded = item.event, item.event.number("log_end_offset")
    if event.kind is not Kind.LOG_LOADED or _partition(event) == METADATA_PARTITION:
        return None
    begin_ms = begins.get(id(item.file))
    if begin_ms is None or not isinstance(since_ms, int) or begin_ms > since_ms:
        return None
    # An empty log may be another one, or follow a deletion of records.
    is_empty = loaded == event.number("log_start_offset") or not loaded
    return (
        loaded if isinstance(loaded, int) and isinstance(reached, int) and loaded < reached and not is_empty else None
    )


def _reset(state: _LogState, item: LoggedEvent, partition: TopicPartition) -> Iterator[LoggedTruncation]:
    """Yield the truncation of a fetch reset, which truncates only if the leader ends below the log or starts above it; brokers log the others too."""
    own, target = item.event.number("log_end_offset"), item.event.number("offset")
    state.know_end(item, own, is_exact=True)
    if not isinstance(own, int) or not isinstance(target, int):
        return
    rule = str(item.event.fields["rule"])
    if (rule == "leader-end" and target < own) or (rule == "leader-start" and target > own):
        yield from _truncation(state, item, partition, rule, is_full=rule == "leader-start")


def _truncation(
    state: _LogState,
    item: LoggedEvent,
    partition: TopicPartition,
    rule: str,
    *,
    target: int | Absent | None = None,
    is_full: bool = False,
    says_no_effect: bool = False,
) -> Iterator[LoggedTruncation]:
    event = item.event
    target = event.number("offset") if target is None else target
    if not isinstance(target, int) or target < 0:
        return
    decision = state.decision.event if state.decision is not None else None
    leader = _first_known(
        event.number("leader"), decision.number("leader") if decision else Absent.UNKNOWN, state.leader
    )
    if decision is not None and rule == "unknown":
        rule = str(decision.fields.get("rule", rule))
    is_known = isinstance(state.end, int) and (state.end > target or says_no_effect)
    shortens = item if event.fields.get("shortens") is True else state.damaged
    if shortens is not None and not is_known:
        # It had grown since the last line that shows its end; by how much, none says.
        state.know_end(shortens, target + 1, is_exact=False)
    citations = [item.citation]
    if state.decision is not None:
        citations.append(state.decision.citation)
    if state.end_line is not None and state.end_line.citation not in citations:
        citations.append(state.end_line.citation)
    yield LoggedTruncation(
        broker_id=item.node_id,
        topic_partition=partition,
        time_ms=item.time_ms,
        # An end from before the log grew on says nothing of what was truncated above it.
        from_offset=state.end
        if state.is_exact or (isinstance(state.end, int) and state.end > target)
        else Absent.UNKNOWN,
        is_exact=state.is_exact,
        to_offset=target,
        rule=rule,
        leader=leader,
        leader_epoch=state.leader_epoch,
        high_watermark=decision.number("high_watermark") if decision else Absent.UNKNOWN,
        started_with=state.high_watermark,
        is_full=is_full,
        says_no_effect=says_no_effect,
        empties_segment=event.kind is Kind.RECOVERY_TRUNCATION and event.fields.get("reason") == EMPTIED_SEGMENT,
        citations=tuple(citations),
    )
    if not says_no_effect and (isinstance(state.end, Absent) or state.end > target or is_full):
        # It fetches from here on, so this is a lower bound.
        state.know_end(item, target, is_exact=False)
        if not isinstance(state.high_watermark, Absent) and state.high_watermark.value > target:
            # `Log.truncateTo` lowers it with the log.
            state.high_watermark = state.high_watermark._replace(value=target)
    state.decision = None


def _first_known(*values: int | Absent) -> int | Absent:
    return next((value for value in values if isinstance(value, int)), Absent.UNKNOWN)


def _merge(found: list[LoggedTruncation], truncation: LoggedTruncation) -> bool:
    """Merge a line into the truncation that it repeats: the same replica and target within a moment."""
    for at in range(len(found) - 1, max(-1, len(found) - 50), -1):
        other = found[at]
        if (other.broker_id, other.topic_partition, other.to_offset) != (
            truncation.broker_id,
            truncation.topic_partition,
            truncation.to_offset,
        ):
            continue
        if not isinstance(other.time_ms, int) or not isinstance(truncation.time_ms, int):
            return False
        if abs(truncation.time_ms - other.time_ms) > SAME_TRUNCATION_MS or (
            other.has_effect,
            truncation.has_effect,
        ) == (
            False,
            True,
        ):
            return False
        found[at] = replace(
            other,
            from_offset=_first_known(other.from_offset, truncation.from_offset),
            rule=truncation.rule if other.rule == "unknown" else other.rule,
            leader=_first_known(truncation.leader, other.leader),
            started_with=truncation.started_with if isinstance(other.started_with, Absent) else other.started_with,
            is_full=other.is_full or truncation.is_full,
            citations=tuple(dict.fromkeys((*other.citations, *truncation.citations))),
        )
        return True
    return False
