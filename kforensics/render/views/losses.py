"""What was lost, on a page: by topic as bars, by cause as cards with the partitions below, and the worst partitions over time."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kforensics.commands.explanation import Explanation
from kforensics.findings.rules.causes import CAUSES, root_cause, root_cause_sentence
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.incident.model import LossEntry, PartitionIncident
from kforensics.render.blocks import Block, Cell, Column, Prose, Section, Table, Tone
from kforensics.render.frame import References
from kforensics.render.views.incident import over_time
from kforensics.units import METADATA_TOPICS, TopicPartition
from kforensics.words import Count, counted, form

MOST_SOURCES = 8
"""Citations of one cause."""
MOST_OVER_TIME = 12
"""Partitions that are drawn over time where they are not drawn otherwise."""

_GRADES = ("certain", "possible", "no")
_COUNTS = tuple(Column(title, is_number=True) for title in ("Committed", "Possibly committed", "Not committed"))


def by_topic(incidents: Sequence[PartitionIncident]) -> Iterator[Block]:
    """Yield the records of each topic that the leaders do not hold, those at risk counted alike, as bars of one scale."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for loss in _losses(incidents):
        counts[loss.topic_partition.topic][loss.was_committed] += loss.records
    rows = [(topic, of) for topic, of in counts.items() if of.total()]
    if not rows:
        return
    least = {one.partition.topic for one in incidents if one.counts_at_least}
    widest = max(of.total() for _, of in rows)
    yield Section(
        title="Losses by topic",
        anchor="by-topic",
        lead="Records that the leaders do not hold; a replica in use may still hold some of them, then they are at risk.",
    )
    yield Table(
        name="Losses by topic",
        columns=(Column("Topic"), *_COUNTS, Column("In proportion")),
        is_ledger=True,
        rows=[
            (
                Cell(text=topic, below="at least: more may be lost" if topic in least else ""),
                *(of[grade] for grade in _GRADES),
                Cell(shares=tuple((of[grade] / widest, grade) for grade in _GRADES if of[grade])),
            )
            for topic, of in sorted(rows, key=lambda row: [-row[1][grade] for grade in _GRADES])
        ],
    )


def by_cause(
    incidents: Sequence[PartitionIncident], references: References, anchors: Mapping[TopicPartition, str]
) -> Iterator[Block]:
    """Yield a card for each cause of losses, that of most records first: how it came to pass, and the partitions that it took records of.

    Args:
        anchors: the section of each partition, where there is one.
    """
    causes: dict[CauseName, list[LossEntry]] = defaultdict(list)
    for loss in _losses(incidents):
        causes[_cause_of(loss)].append(loss)
    if not causes:
        return
    yield Section(title="Causes", anchor="causes", lead="What took the records, as far as it is proven or likely.")
    for name, losses in sorted(causes.items(), key=lambda one: -sum(loss.records for loss in one[1])):
        title, of = CAUSES[name].name, {loss.topic_partition for loss in losses}
        some = [
            replace(one, losses=tuple(loss for loss in one.losses if _cause_of(loss) is name))
            for one in incidents
            if one.partition in of
        ]
        records = sum(loss.records for loss in losses)
        yield Section(
            title=f"{title[:1].upper()}{title[1:]}",
            aside=f"{Count(records, any(one.counts_at_least for one in some))} {form(records, 'record')}",
            level=3,
            anchor=f"cause-{name.value}",
        )
        cause = root_cause(some)
        if cause is not None:
            yield Prose(root_cause_sentence(cause), references=references.of(cause.citations, most=MOST_SOURCES))
        yield Table(
            name=f"Partitions: {title}",
            columns=(Column("Partition"), Column("Offsets"), *_COUNTS),
            is_ledger=True,
            rows=[_partition(one, anchors) for one in sorted(some, key=lambda one: one.partition)],
        )


def _cause_of(loss: LossEntry) -> CauseName:
    return CauseName.UNKNOWN if loss.confidence == "possible" else loss.cause


def _partition(incident: PartitionIncident, anchors: Mapping[TopicPartition, str]) -> tuple[Cell | str | int, ...]:
    losses = incident.losses
    first, last = min(loss.offsets.first for loss in losses), max(loss.offsets.last for loss in losses)
    counts = (sum(loss.records for loss in losses if loss.was_committed == grade) for grade in _GRADES)
    name = Cell(text=str(incident.partition), link=anchors.get(incident.partition, ""))
    return (name, f"{first}..{last}", *counts)


def _losses(incidents: Sequence[PartitionIncident]) -> list[LossEntry]:
    return [one for each in incidents if each.partition.topic not in METADATA_TOPICS for one in each.losses]


def worst_over_time(body: Explanation, references: References) -> Iterator[Block]:
    """Yield the lanes over time of the partitions that lost most, or of which logs were truncated."""
    eventful = [
        one for one in body.incidents if (one.losses or one.truncations) and one.partition.topic not in METADATA_TOPICS
    ]
    eventful.sort(key=lambda one: -sum(loss.records for loss in one.losses if loss.was_committed != "no"))
    drawn = [(one, [*over_time(one, body.timeline, references)]) for one in eventful[:MOST_OVER_TIME]]
    if any(lanes for _, lanes in drawn):
        yield Section(title="Partitions over time", anchor="over-time")
    for one, lanes in drawn:
        if lanes:
            yield Section(title=str(one.partition), level=3)
            yield from lanes
    if len(eventful) > len(drawn):
        more = counted(len(eventful) - len(drawn), "more partition")
        yield Prose(f"{more}: the page of `kforensics explain` draws each.", Tone.QUIET)
