"""Rows of a timeline: what happened in words, with everything that happened alike at one moment in one row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.reconcile.metadata_events import WHOLE_TOPIC
from kforensics.reconcile.story import Truncation
from kforensics.reconcile.timeline import TimelineEntry
from kforensics.units import TopicPartition

_STRONG = frozenset({"unclean-election", "truncation", "log-dir-failed", "broker-halted", "truncation-refused"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One row; `time_ms` in UTC."""

    time_ms: int | Absent
    node: str
    words: str
    is_strong: bool
    """Worth a second look."""
    partitions: tuple[str, ...]
    citations: tuple[Citation, ...]


def happenings(
    entries: Iterable[TimelineEntry], cuts: Iterable[Truncation] = (), *, controllers: frozenset[int] = frozenset()
) -> list[Happening]:
    """Entries and cuts by time, those without a time last; alike ones of one moment and node become one row.

    Args:
        entries: of the timeline.
        cuts: in place of the entries for them, since they know where the log ended before.
        controllers: ids of nodes that are no brokers.
    """
    rows = [*(_of_entry(entry, controllers) for entry in entries), *(_of_cut(cut) for cut in cuts)]
    rows.sort(key=lambda row: (not isinstance(row.time_ms, int), row.time_ms if isinstance(row.time_ms, int) else 0))
    merged: dict[tuple[int | Absent, str, str], Happening] = {}
    for row in rows:
        key = (row.time_ms, row.node, row.words)
        known = merged.get(key)
        merged[key] = row if known is None else _both(known, row)
    return list(merged.values())


def _both(first: Happening, second: Happening) -> Happening:
    return Happening(
        time_ms=first.time_ms,
        node=first.node,
        words=first.words,
        is_strong=first.is_strong,
        partitions=tuple(dict.fromkeys((*first.partitions, *second.partitions))),
        citations=tuple(dict.fromkeys((*first.citations, *second.citations))),
    )


def _of_entry(entry: TimelineEntry, controllers: frozenset[int]) -> Happening:
    kind = "controller" if entry.broker_id in controllers else "broker"
    is_of_node = isinstance(entry.broker_id, int) and entry.kind != "leader-lost"
    return Happening(
        time_ms=entry.time_ms,
        node=f"{kind} {entry.broker_id}" if is_of_node else "",
        words=_words(entry),
        is_strong=entry.kind in _STRONG and not entry.is_quiet,
        partitions=() if isinstance(entry.topic_partition, Absent) else (partition_name(entry.topic_partition),),
        citations=entry.citations,
    )


def _of_cut(cut: Truncation) -> Happening:
    return Happening(
        time_ms=cut.time_ms,
        node=f"broker {cut.broker_id}" if isinstance(cut.broker_id, int) else "",
        words=f"truncates its log from {cut.from_offset} to {cut.to_offset}",
        is_strong=True,
        partitions=(partition_name(cut.topic_partition),),
        citations=cut.citations,
    )


def partition_name(partition: TopicPartition) -> str:
    """The partition, or the topic where all of it is meant."""
    return partition.topic if partition.partition == WHOLE_TOPIC else str(partition)


def _words(entry: TimelineEntry) -> str:
    detail = entry.detail
    match entry.kind:
        case "unclean-election":
            return (
                f"is elected uncleanly, leader epoch {entry.leader_epoch}: the ISR was {_ids(detail.get('isr_before'))}"
            )
        case "leader-change":
            return f"leads in epoch {entry.leader_epoch}"
        case "leader-lost":
            return "no leader"
        case "isr-shrink" | "isr-expand":
            verb = "shrinks" if entry.kind == "isr-shrink" else "grows"
            return f"the ISR {verb} from {_ids(detail.get('isr_before'))} to {_ids(detail.get('isr'))}"
        case "broker-start":
            return "started"
        case "broker-stop":
            return "stopped cleanly"
        case "recovery":
            return f"recovers {detail.get('directory', '')}: no clean shutdown before"
        case "topic-created" | "topic-deleted":
            return entry.kind.replace("-", " ")
        case "truncation":
            effect = ", without effect" if detail.get("effect") is False else ""
            return f"truncates to {detail.get('to_offset')}{effect}"
        case "setting-changed":
            return f"{detail.get('name')} is set to {detail.get('value')}"
    told = "; ".join(
        f"{name.replace('_', ' ')} {_value(value)}"
        for name, value in detail.items()
        if not isinstance(value, Absent) and (name, value) != ("broker", entry.broker_id)
    )
    return entry.kind.replace("-", " ") + (f" ({told})" if told else "")


def _value(value: object) -> str:
    return _ids(value) if isinstance(value, tuple) else str(value)


def _ids(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else "unknown"


def rows_within(rows: Sequence[Happening], most: int) -> tuple[list[Happening], int]:
    """The first rows, and how many are left."""
    return list(rows[:most]), max(0, len(rows) - most)
