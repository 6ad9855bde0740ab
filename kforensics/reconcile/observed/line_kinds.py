"""The lines of broker logs by their kind: how many, of which nodes and partitions, and what to do about them."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.model import Citation
from kforensics.formats.log_lines.event import Section, Weight
from kforensics.reconcile.observed.logged_events import LoggedEvent
from kforensics.units import TopicPartition

_WORST_FIRST = (Weight.CAUSE, Weight.SYMPTOM, Weight.HARMLESS)


@dataclass(slots=True, kw_only=True)
class LineKind:
    """The lines of one kind."""

    section: Section
    lines: int = 0
    first_ms: int | Absent = Absent.UNKNOWN
    last_ms: int | Absent = Absent.UNKNOWN
    nodes: set[int] = field(default_factory=set)
    partitions: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    """What exceptions below the lines say."""
    advice: tuple[str, ...] = ()
    """What to do about it, each once."""
    example: Citation | None = None
    is_over: bool = False
    """Whether later lines show of each that it went on."""

    @property
    def weight(self) -> Weight:
        """Return what they are worth: a cause that is over is a symptom."""
        is_less = self.is_over and self.section.weight is Weight.CAUSE
        return Weight.SYMPTOM if is_less else self.section.weight

    @property
    def meaning(self) -> str:
        """Return what such a line means, and whether it is over."""
        return f"{self.section.meaning} It was over before the logs end." if self.is_over else self.section.meaning


def last_ms_of(item: LoggedEvent) -> int:
    """Return the time of the last line that an event, which has a time, stands for."""
    event = item.event
    is_known = isinstance(event.last_time_ms, int) and isinstance(event.time_ms, int)
    return int(item.time_ms) + (int(event.last_time_ms) - int(event.time_ms) if is_known else 0)


def line_kinds(events: Sequence[LoggedEvent]) -> tuple[LineKind, ...]:
    """Return the kinds of the lines of events, causes first; of each weight those first that conclusions rest on, and the most frequent."""
    from kforensics.formats.log_lines.table import rows  # noqa: PLC0415 - 55 ms, where no log is given

    found: dict[Section, list[LoggedEvent]] = {}
    # A section is found once for each of its rows, since long logs have a million of events.
    by_row = {
        number: found.setdefault(rows()[number].section, [])
        for number in dict.fromkeys(item.event.row for item in events)
    }
    for item in events:
        by_row[item.event.row].append(item)
    over = _over(events)
    kinds = [_line_kind(section, items, is_over=section in over) for section, items in found.items()]
    return tuple(sorted(kinds, key=_rank))


def _over(events: Iterable[LoggedEvent]) -> dict[Section, int]:
    """Return the sections of whose lines each is over, with their number: a later line of the node, and of the partition, shows it."""
    from kforensics.formats.log_lines.table import rows, sections  # noqa: PLC0415 - as above

    standing = {one: dict[tuple[int | str, TopicPartition | Absent], float]() for one in sections() if one.ended_by}
    by_row = [
        (standing.get(row.section), [left for one, left in standing.items() if row.section.kind in one.ended_by])
        for row in rows()
    ]
    lines: Counter[Section] = Counter()
    for item in events:
        begun, ended = by_row[item.event.row]
        if begun is None and not ended:
            continue
        event, time_ms, path = item.event, item.time_ms, item.file.path
        partition, is_timed = event.topic_partition, isinstance(time_ms, int)
        # Lines without a time have an order in their own file alone.
        owner = item.node_id if is_timed and isinstance(item.node_id, int) else path
        for left in ended:
            keys = [(owner, partition), (path, partition)]
            if isinstance(partition, Absent):
                keys = [key for key in left if key[0] in {owner, path}]
            for key in keys:
                if left.get(key, math.inf) <= (time_ms if isinstance(time_ms, int) else 0):
                    del left[key]
        if begun is not None:
            # One event stands for lines on both sides of others.
            begun[owner, partition] = 0 if not event.repeats else last_ms_of(item) if is_timed else math.inf
            lines[rows()[event.row].section] += 1 + event.repeats
    return {one: count for one, count in lines.items() if not standing[one]}


def told_causes(files: Iterable[LogFile], events: Iterable[LoggedEvent]) -> tuple[LineKind, ...]:
    """Return the causes in lines on which no conclusion rests, of which the counts alone are kept; without what stands below other lines, and what is over."""
    from kforensics.formats.log_lines.table import rows  # noqa: PLC0415 - as above

    found: dict[Section, LineKind] = {}
    for number, lines in sorted(sum((Counter(file.counts) for file in files), Counter[int]()).items()):
        section, advice = rows()[number].section, rows()[number].advice
        if section.weight is Weight.CAUSE and "told" in section.flags and "exception" not in section.flags:
            kind = found.setdefault(section, LineKind(section=section))
            kind.lines += lines
            kind.advice = tuple(dict.fromkeys((*kind.advice, *filter(None, [advice]))))
    # Of a line that was counted and not kept as an event, nothing shows that it is over.
    over = _over(events) if any(one.ended_by for one in found) else {}
    return tuple(sorted((one for one in found.values() if one.lines > over.get(one.section, 0)), key=_rank))


def _line_kind(section: Section, items: Sequence[LoggedEvent], *, is_over: bool) -> LineKind:
    from kforensics.formats.log_lines.table import advice_of  # noqa: PLC0415 - as above

    repeated = [item for item in items if item.event.repeats]
    times = [item.time_ms for item in items if isinstance(item.time_ms, int)]
    lasts = [last_ms_of(item) for item in repeated if isinstance(item.time_ms, int)]
    advised = {(item.event.row, item.event.fields.get("advice")): item.event for item in items}
    partitions = Counter([item.event.topic_partition for item in items])
    causes = Counter([str(cause) for item in items if (cause := item.event.fields.get("cause"))])
    for item in repeated:
        partitions[item.event.topic_partition] += item.event.repeats
        if cause := item.event.fields.get("cause"):
            causes[str(cause)] += item.event.repeats
    return LineKind(
        section=section,
        lines=len(items) + sum(item.event.repeats for item in repeated),
        first_ms=min(times, default=Absent.UNKNOWN),
        last_ms=max([*times, *lasts], default=Absent.UNKNOWN),
        nodes={node for node in {item.node_id for item in items} if isinstance(node, int)},
        partitions=Counter({str(one): count for one, count in partitions.items() if not isinstance(one, Absent)}),
        causes=causes,
        advice=()
        if is_over
        else tuple(filter(None, dict.fromkeys(advice_of(one.fields, one.row) for one in advised.values()))),
        example=items[0].citation,
        is_over=is_over,
    )


def _rank(kind: LineKind) -> tuple[int, bool, int]:
    """Rank what conclusions rest on before what only accompanies it: connections fail whenever a broker stops."""
    return _WORST_FIRST.index(kind.weight), "told" in kind.section.flags, -kind.lines
