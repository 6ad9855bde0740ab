"""What took a broker down that did not stop in order: its process alone, whose writes stay in the page cache, or its machine, which takes with it what was not yet on disk.

The lines of the start after it show it, and those of the machine: its boots, the records that recovery finds damaged or never written, and how much of the metadata log, which a
broker does not flush, was there again.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.model import Citation
from kforensics.formats.log_lines.event import LogEventKind as Kind
from kforensics.reconcile.observed.broker_lives import LINES_OF_A_START_MS
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import counted, form, listed

_KEPT_UP_MS = 2_000
"""Of the metadata log: what was appended up to this time before a broker's last heartbeat, it had fetched."""
_LOST_MS = 10_000
_ALIVE_MS = 5_000
"""A broker that wrote lines so long after its last heartbeat was cut off from the controller, and went down later."""
_STEADY_MS = 3_000
"""A controller appends to the metadata log at least as often, from 3.3 on."""
_NAMED = 2
_BEGINNINGS = frozenset({Kind.CONFIGURATION, Kind.LOGS_LOADING})
"""What a start writes before it recovers logs."""


class Took(StrEnum):
    """What went down with a broker."""

    PROCESS = "process"
    MACHINE = "machine"


class Sign(NamedTuple):
    """One thing that shows what took a broker down."""

    took: Took | None
    """None where both leave it."""
    words: str
    """As a clause."""
    is_proof: bool = False
    is_boot: bool = False
    """A boot of the machine: what was killed before it was shut down in order lost nothing."""


class Outage(NamedTuple):
    """The end of a broker that was not in order, before one of its starts."""

    broker_id: int
    start_ms: int | Absent = Absent.UNKNOWN
    """The time of the start after it."""
    signs: tuple[Sign, ...] = ()

    @property
    def proven(self) -> Took | None:
        """What the signs prove; None where they prove nothing, or contradict each other."""
        return next((one.took for one in self.signs if one.is_proof), None) if self.likely else None

    @property
    def was_booted(self) -> bool:
        """Whether the machine was booted before the start, be it after a power failure or in order."""
        return any(one.is_boot for one in self.signs)

    @property
    def likely(self) -> Took | None:
        """What the signs speak for; None where there is none, or they contradict each other: a boot speaks for nothing by itself, and against a process that went down alone."""
        decisive = [one for one in self.signs if one.is_proof] or [one for one in self.signs if not one.is_boot]
        took = {one.took for one in decisive}
        found = took.pop() if len(took) == 1 else None
        return None if found is Took.PROCESS and self.was_booted else found


def outages_of(
    events: Sequence[LoggedEvent],
    history: MetadataHistory | None = None,
    last_heartbeats: Mapping[int, Sequence[tuple[int, int]]] = {},
) -> dict[int, tuple[Outage, ...]]:
    """Return the ends of each broker that were not in order, by the lines of the starts after them.

    Args:
        events: of all nodes, in the order of time.
        last_heartbeats: the times, by broker, at which the controller fenced it, each with the latest one at which it can have sent a heartbeat before.
    """
    own: dict[int, list[LoggedEvent]] = defaultdict(list)
    for item in events:
        if isinstance(item.node_id, int) and isinstance(item.time_ms, int):
            own[item.node_id].append(item)
    found: dict[int, tuple[Outage, ...]] = {}
    for broker, lines in own.items():
        starts = list(_unclean_starts(lines))
        alive = list(accumulate((int(one.time_ms) for one in lines), max)) if starts else []
        found[broker] = tuple(
            Outage(
                broker,
                lines[start[0]].time_ms,
                (
                    *_boots(lines, start),
                    *_unwritten(lines[slice(*start)]),
                    *_torn_lines(lines, start),
                    *_metadata_kept(
                        lines[slice(*start)],
                        alive[start[0] - 1] if start[0] else None,
                        history,
                        last_heartbeats.get(broker, ()),
                    ),
                ),
            )
            for start in starts
        )
    return found


def outage_between(
    since_ms: int | Absent, until_ms: int | Absent, broker: int, outages: Mapping[int, Sequence[Outage]]
) -> Outage:
    """Return the end of a broker between two times, of several the first that its machine may have had a part in; without signs where no line tells of it."""
    if not isinstance(since_ms, int) or not isinstance(until_ms, int):
        return Outage(broker)
    known = [
        one
        for one in outages.get(broker, ())
        if isinstance(one.start_ms, int) and since_ms <= one.start_ms <= until_ms + LINES_OF_A_START_MS
    ]
    return next((one for one in known if one.proven is not Took.PROCESS), known[-1] if known else Outage(broker))


def _unclean_starts(lines: Sequence[LoggedEvent]) -> Iterator[tuple[int, int]]:
    """Yield the places of the first line and behind the last line of each start after an unclean end."""
    first: int | None = None
    is_open = True
    for at, item in enumerate(lines):
        kind = item.event.kind
        if kind in {Kind.BROKER_STARTED, Kind.BROKER_STOPPED}:
            first, is_open = None, True
        elif kind in _BEGINNINGS or (kind is Kind.SEGMENT_RECOVERY and _is_of_metadata(item)):
            first = at if first is None else first
        elif is_open and _is_recovery(item):
            end = next(
                (one for one in range(at, len(lines)) if lines[one].event.kind is Kind.BROKER_STARTED), len(lines)
            )
            yield at if first is None else first, end
            is_open = False


def _is_recovery(item: LoggedEvent) -> bool:
    return item.event.kind is Kind.RECOVERY_START and not _is_of_metadata(item)


def _boots(lines: Sequence[LoggedEvent], start: tuple[int, int]) -> Iterator[Sign]:
    """Yield what the lines of the machine say: a boot before the start, or the same boot before and after."""
    begin, end = start
    while begin and lines[begin - 1].event.kind is Kind.MACHINE_STARTED:
        begin -= 1
    # A start that was cut short is followed by others, and a boot behind the last one comes before none.
    last = max(at for at in range(start[0], end) if _is_recovery(lines[at]))
    boot = next((one for one in lines[begin:last] if one.event.kind is Kind.MACHINE_STARTED), None)
    first, before = lines[start[0]], lines[begin - 1] if begin else None
    if before is None:
        return
    if boot is not None:
        yield Sign(Took.MACHINE, f"the machine was booted before its start [{_place(boot)}]", is_boot=True)
    elif before.file is first.file is lines[last].file and first.file.boots:
        marks = [line for line, _ in first.file.boots]
        ran, runs = (bisect_right(marks, one.event.line) for one in (before, lines[last]))
        if ran == runs:
            yield Sign(Took.PROCESS, f"no boot of its machine stands before its start [{_place(first)}]", is_proof=True)
        else:
            place = f"{first.file.path}:{marks[runs - 1]}"
            yield Sign(Took.MACHINE, f"the machine was booted before its start [{place}]", is_boot=True)


def _unwritten(lines: Sequence[LoggedEvent]) -> Iterator[Sign]:
    """Yield what recovery found that no killed process leaves, which writes from the front on: damaged records, zeros, and torn ends of many logs."""
    found = [one for one in lines if one.event.kind is Kind.INVALID_RECORDS and _is_unwritten(one)]
    if found:
        names = listed(list(dict.fromkeys(map(_log_of, found))), most=_NAMED)
        yield Sign(
            Took.MACHINE,
            f"its recovery found damaged records or zeros in {names} [{_place(found[0])}], which writes that a kill cuts short do not leave",
        )
    torn = [one for one in lines if one.event.kind is Kind.RECOVERY_TRUNCATION]
    if torn and not found:
        # A kill can cut short the one write that each thread was in.
        yield Sign(None, f"its recovery cut the ends of {counted(len(torn), 'log')} [{_place(torn[0])}]")


def _is_unwritten(item: LoggedEvent) -> bool:
    said = f"{item.event.fields.get('reason')} {item.event.fields.get('cause')}"
    return "Record is corrupt" in said or "size 0 " in said


def _log_of(item: LoggedEvent) -> str:
    partition = item.event.topic_partition
    return str(partition) if isinstance(partition, TopicPartition) else str(item.event.fields.get("path", "a log"))


def _torn_lines(lines: Sequence[LoggedEvent], start: tuple[int, int]) -> Iterator[Sign]:
    """Yield the lines before a start that never got to the disk. NUL bytes elsewhere are of a log that was cut while its broker wrote on, as copytruncate of logrotate does."""
    first, before = lines[start[0]], lines[start[0] - 1] if start[0] else None
    above = before.event.line if before is not None and before.file is first.file else 0
    torn = [line for line in first.file.nul_lines if max(above, 2) <= line <= first.event.line]
    if torn:
        yield Sign(
            Took.MACHINE,
            f"{counted(len(torn), 'line')} before its start {form(len(torn), 'has', 'have')} NUL bytes [{first.file.path}:{torn[0]}], as a power failure leaves them",
        )


def _metadata_kept(
    start: Sequence[LoggedEvent],
    alive: int | None,
    history: MetadataHistory | None,
    last_heartbeats: Iterable[tuple[int, int]],
) -> Iterator[Sign]:
    """Yield how much of its metadata log was there again, which a broker does not flush and to which its controller appends all the time.

    Args:
        alive: the time of the last line before the start.
    """
    if history is None or alive is None:
        return
    begun = int(start[0].time_ms)
    heartbeat = max((last for fenced, last in last_heartbeats if fenced <= begun + LINES_OF_A_START_MS), default=None)
    end = next(
        (one for one in reversed(start) if one.event.kind is Kind.PRODUCER_SNAPSHOT and _is_of_metadata(one)), None
    )
    if heartbeat is None or end is None or alive > heartbeat + _ALIVE_MS:
        return
    if end.node_id in history.current_voters:
        return  # a voter flushes what it acknowledges
    offset, rows = end.event.number("offset"), history.batches
    if not isinstance(offset, int) or not (rows["last_offset"] == offset - 1).any():
        return
    stamps = rows["max_timestamp"]
    steady = stamps[(rows["last_offset"] >= offset) & (stamps <= heartbeat + _STEADY_MS)].tolist()
    had = int(stamps[rows["last_offset"] == offset - 1][0])
    if any(later - earlier > _STEADY_MS for earlier, later in zip((had, *steady), steady, strict=False)):
        return  # no controller appended meanwhile
    lacked = [one for one in steady if one <= heartbeat - _KEPT_UP_MS]
    if not lacked and steady:
        yield Sign(
            Took.PROCESS,
            f"its metadata log, which it does not flush, was there again up to its last heartbeats [{_place(end)}]",
        )
    elif lacked and heartbeat - lacked[0] > _LOST_MS:
        yield Sign(
            Took.MACHINE,
            f"of its metadata log, which it does not flush, the last {(heartbeat - lacked[0]) // 1000} s before its last heartbeat were gone [{_place(end)}]",
        )


def _is_of_metadata(item: LoggedEvent) -> bool:
    partition = item.event.topic_partition
    return isinstance(partition, TopicPartition) and partition.topic in METADATA_TOPICS


def _place(item: LoggedEvent) -> str:
    cited: Citation = item.citation
    return f"{cited.path}:{cited.line}"
