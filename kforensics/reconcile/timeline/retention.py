"""Deletions by retention: one entry for all that a broker deleted of a partition by one rule."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.formats.log_lines.event import LogEvent
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.reconcile.timeline.events import Detail, DetailValue, TimelineEntry
from kforensics.units import TopicPartition
from kforensics.words import counted, utc_words

_FAR_MS = 30 * 86_400_000
"""A largest timestamp further than that from the last write of its segment is of a clock that was wrong, or of old records written anew."""
_SAME_DELETION_MS = 60_000


@dataclass(slots=True)
class _Deletion:
    """What was deleted so far."""

    first: LoggedEvent
    last: LoggedEvent
    segments: int = 0
    log_start_offset: int | Absent = Absent.UNKNOWN


def retention_entries(events: Iterable[LoggedEvent]) -> Iterator[TimelineEntry]:
    """Yield an entry for each partition, broker and rule, with the offset at which the log begins since."""
    found: dict[tuple[object, TopicPartition, str], _Deletion] = {}
    latest: dict[tuple[object, TopicPartition], _Deletion] = {}
    for item in events:
        partition = item.event.topic_partition
        if isinstance(partition, Absent):
            continue
        place = (item.node_id, partition)
        if item.event.kind is Kind.RETENTION:
            one = found.setdefault((*place, str(item.event.fields.get("rule"))), _Deletion(item, item))
            one.last = item
            bases = item.event.brokers("base_offsets")
            one.segments += len(bases) if isinstance(bases, tuple) else 1
            latest[place] = one
        elif item.event.kind is Kind.LOG_START_MOVED and place in latest and _is_soon(latest[place].last, item):
            latest[place].log_start_offset = item.event.number("log_start_offset")
    for (_, partition, rule), one in found.items():
        yield TimelineEntry(
            kind=EventKind.RETENTION,
            time_ms=one.first.time_ms,
            broker_id=one.first.node_id,
            topic_partition=partition,
            detail=_detail(one, rule),
            citations=tuple(dict.fromkeys((one.first.citation, one.last.citation))),
            is_quiet=rule == "log-start",
        )


def _is_soon(before: LoggedEvent, item: LoggedEvent) -> bool:
    if not isinstance(before.time_ms, int) or not isinstance(item.time_ms, int):
        return True
    return item.time_ms - before.time_ms <= _SAME_DELETION_MS


def _detail(one: _Deletion, rule: str) -> Detail:
    limit = one.last.event.number("limit")
    detail: dict[str, DetailValue] = {"segments": counted(one.segments, "segment"), "rule": _rule(rule, limit)}
    if isinstance(one.log_start_offset, int):
        detail["log_start_offset"] = one.log_start_offset
    if isinstance(one.last.time_ms, int) and one.last.time_ms != one.first.time_ms:
        detail["until_ms"] = one.last.time_ms
    if remark := _remark(one.last.event):
        detail["remark"] = remark
    return detail


def _rule(rule: str, limit: int | Absent) -> str:
    match rule:
        case "time":
            return "retention by time" + (f" ({limit:,} ms)" if isinstance(limit, int) else "")
        case "size":
            return "retention by size" + (f" ({limit:,} bytes)" if isinstance(limit, int) else "")
        case _:
            return "its log start offset"


def _remark(event: LogEvent) -> str:
    largest, modified = event.number("largest_timestamp_ms"), event.number("last_modified_ms")
    if event.fields.get("basis") == "last modified time":
        return "no timestamp of the records was usable: the time of the file decided"
    if not isinstance(largest, int) or not isinstance(modified, int) or abs(largest - modified) < _FAR_MS:
        return ""
    return f"its largest timestamp is {utc_words(largest)}, though it was last written {utc_words(modified)}"
