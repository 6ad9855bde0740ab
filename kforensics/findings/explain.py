"""Findings about incidents: committed records that are gone, cuts that took them, groups that stand on nothing."""

from collections.abc import Iterator, Sequence

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.findings.model import Confidence, Finding, Severity, by_gravity, finding
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.incident.model import LossEntry, PartitionStory, Truncation
from kforensics.reconcile.observed.logged_truncations import METADATA_TOPICS
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.units import OffsetRange


def explain_findings(stories: Sequence[PartitionStory], timeline: Sequence[TimelineEntry]) -> tuple[Finding, ...]:
    """Every finding of the stories, the gravest first."""
    found = [item for story in stories for item in _story_findings(story)]
    found += _harmless_elections(stories, timeline)
    return by_gravity(tuple(found))


def _story_findings(story: PartitionStory) -> Iterator[Finding]:
    if story.partition.topic not in METADATA_TOPICS:
        yield from _loss_findings(story)
        yield from _residual_findings(story)
        yield from _past_end_findings(story)
    for cut in story.truncations:
        yield from _cut_findings(story, cut)
    for torn in story.tears.transactions:
        yield finding(
            "KF308",
            severity=Severity.ERROR,
            statement=(
                f"{story.partition}: a transaction of producer {torn.producer_id} is torn ({torn.kind}),"
                f" offsets {torn.lost.first} to {torn.lost.last} of it are gone"
            ),
            topic_partition=story.partition,
            offsets=torn.lost,
        )
    for back in story.tears.producers:
        yield finding(
            "KF309",
            severity=Severity.NOTE,
            statement=(
                f"{story.partition}: producer {back.producer_id} had reached sequence {back.lost_sequence},"
                f" the leader knows it up to {back.kept_sequence}"
            ),
            topic_partition=story.partition,
        )
    for group in story.groups:
        words = (
            f"offset {group.offset} lies past the log end {story.log_end_offset}"
            if group.kind == "ahead"
            else f"offset {group.offset} was committed against records that others have replaced"
        )
        yield finding(
            "KF305",
            severity=Severity.WARNING,
            statement=f"{story.partition}: consumer group {group.group}: {words}",
            topic_partition=story.partition,
            citations=(group.citation,),
        )


def _residual_findings(story: PartitionStory) -> Iterator[Finding]:
    for one in story.residuals:
        yield finding(
            "KF204",
            severity=Severity.CRITICAL,
            statement=(
                f"{story.partition}: broker {one.broker_id} differs from the leader, broker {story.leader},"
                f" from offset {one.offset} on, and no rule will repair it"
            ),
            topic_partition=story.partition,
            broker_id=one.broker_id,
            citations=one.citations,
        )


def _past_end_findings(story: PartitionStory) -> Iterator[Finding]:
    for one in story.past_end:
        yield finding(
            "KF207",
            severity=Severity.CRITICAL,
            statement=f"{story.partition}: {one.owner} recorded high watermark {one.high_watermark}, but every log ends at or below {one.log_end}",
            topic_partition=story.partition,
            broker_id=one.broker_id,
            offsets=OffsetRange(one.log_end, one.high_watermark - 1),
            citations=(one.citation,),
        )


def _loss_findings(story: PartitionStory) -> Iterator[Finding]:
    for certainty, code, severity, words in (
        ("certain", "KF301", Severity.CRITICAL, "that were committed are gone"),
        ("possible", "KF302", Severity.ERROR, "that may have been committed are gone"),
        ("no", "KF303", Severity.NOTE, "that were never committed are gone"),
    ):
        losses = [loss for loss in story.losses if loss.was_committed == certainty]
        if not losses or not sum(loss.records for loss in losses):
            continue
        records = sum(loss.records for loss in losses)
        in_use = sorted({str(holder.broker_id) for loss in losses for holder in loss.in_use})
        tail = f"; broker {', '.join(in_use)} still holds some of them" if in_use else ""
        yield finding(
            code,
            severity=severity,
            confidence=Confidence.PROVEN if certainty != "possible" else Confidence.POSSIBLE,
            statement=f"{story.partition}: {records} record{'s' if records != 1 else ''} {words} ({_ranges(losses)}): {_causes(losses)}{tail}",
            topic_partition=story.partition,
            offsets=OffsetRange(losses[0].offsets.first, max(loss.offsets.last for loss in losses)),
            citations=_citations(losses),
        )


def _ranges(losses: Sequence[LossEntry]) -> str:
    texts = list(dict.fromkeys(f"{loss.offsets.first}..{loss.offsets.last}" for loss in losses))
    return ", ".join(texts[:4]) + (f" and {len(texts) - 4} more runs" if len(texts) > 4 else "")


def _causes(losses: Sequence[LossEntry]) -> str:
    return ", ".join(dict.fromkeys(loss.cause.value for loss in losses))


def _citations(losses: Sequence[LossEntry]) -> tuple[Citation, ...]:
    return tuple(dict.fromkeys(citation for loss in losses for citation in loss.citations))[:20]


def _cut_findings(story: PartitionStory, cut: Truncation) -> Iterator[Finding]:
    if cut.agrees is False:
        yield finding(
            "KF304",
            severity=Severity.WARNING,
            confidence=Confidence.LIKELY,
            statement=(
                f"{story.partition}: broker {cut.broker_id} cut its log to {cut.to_offset},"
                f" the protocol {cut.protocol} would have cut to {cut.expected_offset}"
            ),
            topic_partition=story.partition,
            broker_id=cut.broker_id,
            citations=cut.citations,
        )
    if cut.cause.name in {CauseName.UNCOMMITTED_TAIL, CauseName.RECREATED_TOPIC}:
        yield finding(
            "KF306",
            severity=Severity.NOTE,
            confidence=Confidence(cut.cause.confidence),
            statement=f"{story.partition}: broker {cut.broker_id} cut its log from {cut.from_offset} to {cut.to_offset}: {cut.cause.reason}",
            topic_partition=story.partition,
            broker_id=cut.broker_id,
            citations=cut.citations,
        )


def _harmless_elections(stories: Sequence[PartitionStory], timeline: Sequence[TimelineEntry]) -> list[Finding]:
    harmed = {story.partition for story in stories if any(loss.was_committed != "no" for loss in story.losses)}
    elections = [
        entry
        for entry in timeline
        if entry.kind == "unclean-election"
        and entry.topic_partition not in harmed
        and not isinstance(entry.topic_partition, Absent)
    ]
    if not elections:
        return []
    partitions = sorted({str(entry.topic_partition) for entry in elections})
    return [
        finding(
            "KF307",
            severity=Severity.NOTE,
            statement=f"{len(elections)} unclean elections lost nothing that any input shows: {', '.join(partitions[:4])}"
            + (f" and {len(partitions) - 4} more partitions" if len(partitions) > 4 else ""),
            citations=tuple(citation for entry in elections[:20] for citation in entry.citations[:1]),
        )
    ]
