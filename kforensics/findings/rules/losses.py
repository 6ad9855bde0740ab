"""Findings about incidents: lost records, the truncations that discarded them, and consumer groups whose offsets refer to them."""

from collections.abc import Iterator, Sequence
from typing import Any

from kforensics.damage import Absent
from kforensics.evidence.event_kinds import EventKind
from kforensics.findings.answers.conclusion import owners_in_use
from kforensics.findings.answers.explain import incident_state
from kforensics.findings.answers.model import weighed
from kforensics.findings.model import Confidence, Finding, Weight, by_gravity
from kforensics.findings.rule import Rule, RulesOf
from kforensics.findings.rules.replicas import (
    DIFFERENT_CONTENT,
    EPOCH_LACKED,
    FALLING_OFFSETS,
    PAST_EVERY_END,
    lacked_epoch_finding,
)
from kforensics.findings.rules.sequences import OF_SEQUENCES, again_findings, sequence_findings
from kforensics.findings.rules.tiers import OF_TIERS, tier_findings
from kforensics.findings.rules.upkeep import CLEANING_UNFINISHED
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.losses import Loss
from kforensics.reconcile.incident.model import ExplainedTruncation, LeaderBasis, PartitionIncident
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.units import METADATA_TOPICS, OffsetRange
from kforensics.words import Count, form, joined_by_and

OF_INCIDENT: RulesOf[[PartitionIncident], Finding] = RulesOf()
OF_LOSS: RulesOf[[PartitionIncident], Finding] = RulesOf()
"""What weighs no more than the state of the partition allows."""

FOLLOWERS_STOP = (
    "It holds these offsets twice. A leader assigns offsets without a look back; a follower refuses a fetch whose offsets do not rise (OffsetsOutOfOrderException),"
    " so none gets past this place, and the leader stays alone in the ISR."
)

STAMPED_LONG_AGO = Rule(
    "KF127",
    Weight.DECIDE,
    title="records that retention deleted soon after they were written",
    meaning="Retention by time goes by the timestamps of records, not by when they were written. What a producer's clock or a mirror dates back goes with the next check, and no client is told. A copy of old files looks the same, and 1970 is what a time index of zeros says (KAFKA-10207).",
    advice="Take them from a copy, or produce them again with true timestamps, before anybody counts on them. message.timestamp.before.max.ms (since 3.6, before: message.timestamp.difference.max.ms) refuses such records; retention.ms=-1 keeps them.",
    references=("KIP-937",),
)

TOLD_BESIDE = (
    OF_SEQUENCES
    | OF_TIERS
    | {
        CLEANING_UNFINISHED.code,
        EPOCH_LACKED.code,
        FALLING_OFFSETS.code,
        STAMPED_LONG_AGO.code,
    }
)
"""Codes of what the logs show beside losses, which the screen says in full."""


def explain_findings(incidents: Sequence[PartitionIncident], timeline: Sequence[TimelineEntry]) -> tuple[Finding, ...]:
    """Return every finding about the incidents, the gravest first."""
    found = [*_harmless_elections(incidents, timeline), *long_ago_findings(timeline)]
    for incident in incidents:
        found += OF_INCIDENT.of(incident)
        if incident.partition.topic not in METADATA_TOPICS:
            found += weighed(OF_LOSS.of(incident), incident_state(incident))
    return by_gravity(tuple(found))


@OF_LOSS
def _residual_findings(incident: PartitionIncident) -> Iterator[Finding]:
    for one in incident.residuals:
        yield DIFFERENT_CONTENT.states(
            f"{incident.partition}: broker {one.broker_id} differs from {'the leader, ' if incident.is_leader_known else ''}broker {incident.leader},"
            f" from offset {one.offset} on, and no rule will repair it",
            topic_partition=incident.partition,
            broker_id=one.broker_id,
            citations=one.citations,
        )


@OF_LOSS
def _past_end_findings(incident: PartitionIncident) -> Iterator[Finding]:
    for one in incident.past_end:
        yield PAST_EVERY_END.states(
            weight=Weight.LOSS if one.is_sure else Weight.DECIDE,
            statement=f"{incident.partition}: {one.words}, but every log ends at or below {one.log_end}{' now' if one.is_earlier else ''}{'' if one.is_sure or one.is_earlier else ': copied while it ran, or after a power loss'}",
            topic_partition=incident.partition,
            broker_id=one.broker_id,
            offsets=OffsetRange(one.log_end, one.high_watermark - 1),
            citations=(one.citation,),
        )


LOST_COMMITTED = Rule(
    "KF301",
    Weight.LOSS,
    title="committed records are lost",
    meaning="Producers with acks=all got acknowledgements for these records; the final leader does not hold them.",
    advice="Keep every snapshot and every stopped replica that still holds them; inform the producers which offsets were lost.",
)

LOST_MAYBE_COMMITTED = Rule(
    "KF302",
    Weight.DAMAGE,
    title="records that were possibly committed are lost or truncated",
    meaning="Nothing proves that they were below the high watermark, and nothing that they were not."
    " Of offsets that only lines show as truncated, no input shows what was there, nor whether the leader's log holds the same.",
    advice="Logs of the clients, the metadata log or another snapshot can settle it.",
)

LOST_UNCOMMITTED = Rule(
    "KF303",
    Weight.NOTE,
    title="records that were never committed are lost",
    meaning="They had not reached every in-sync replica, so no producer with acks=all got an acknowledgement for them.",
    advice="Producers with acks=1 or 0 may want to send them again.",
)


@OF_LOSS
def _loss_findings(incident: PartitionIncident) -> Iterator[Finding]:
    for certainty, rule, (one, many) in (
        ("certain", LOST_COMMITTED, ("was committed", "were committed")),
        ("possible", LOST_MAYBE_COMMITTED, ("was possibly committed", "were possibly committed")),
        ("no", LOST_UNCOMMITTED, ("was never committed", "were never committed")),
    ):
        losses = [loss for loss in incident.losses if loss.was_committed == certainty]
        if not losses or not sum(loss.records for loss in losses):
            continue
        records = sum(loss.records for loss in losses)
        in_use = owners_in_use(losses)
        held = sum(loss.records for loss in losses if loss.in_use)
        is_one = records == 1
        # What a replica in use holds is not lost yet.
        lost = "not in the leader's log" if held else "lost"
        if any(loss.is_only_logged for loss in losses):
            lost = "truncated" if all(loss.is_only_logged for loss in losses) else f"{lost} or truncated"
        count = Count(records, is_at_least=certainty != "no" and incident.counts_at_least)
        what = f"{count} {form(records, 'record')} that {form(records, one, many)} {form(records, 'is', 'are')} {lost}"
        holders = f"{joined_by_and(in_use)} still {form(len(in_use), 'holds', 'hold')}"
        tail = f"; {holders} {'it' if is_one else 'them' if held == records else f'{held} of them'}" if held else ""
        yield rule.states(
            confidence=Confidence.PROVEN if certainty != "possible" else Confidence.POSSIBLE,
            statement=f"{incident.partition}: {_if_led(incident)}{what} ({_ranges(losses)}): {_causes(losses)}{tail}",
            topic_partition=incident.partition,
            offsets=OffsetRange(losses[0].offsets.first, max(loss.offsets.last for loss in losses)),
            citations=tuple(dict.fromkeys(citation for loss in losses for citation in loss.citations))[:20],
        )


_BASES = {
    LeaderBasis.LOG: "guessed",
    LeaderBasis.RECORD: "the last leader on record",
    LeaderBasis.OLDER_LOG: "the last leader on record, by a log from before it led",
    LeaderBasis.OPTION: "as given",
}


def basis_words(incident: PartitionIncident) -> str:
    """Return what a leader that is not known is taken for the leader by."""
    return _BASES[incident.leader_basis]


def _if_led(incident: PartitionIncident) -> str:
    return "" if incident.is_leader_known else f"if broker {incident.leader} leads ({basis_words(incident)}), "


def _ranges(losses: Sequence[Loss]) -> str:
    texts = list(dict.fromkeys(f"{loss.offsets.first}..{loss.offsets.last}" for loss in losses))
    return ", ".join(texts[:4]) + (f" and {len(texts) - 4} more runs" if len(texts) > 4 else "")


def _causes(losses: Sequence[Loss]) -> str:
    hedged = {loss.cause for loss in losses if loss.cause is not CauseName.UNKNOWN and loss.confidence == "possible"}
    return ", ".join(
        f"{cause.value}{' (possible)' if cause in hedged else ''}"
        for cause in dict.fromkeys(loss.cause for loss in losses)
    )


UNEXPECTED_TRUNCATION = Rule(
    "KF304",
    Weight.DECIDE,
    title="a truncation that the protocol would not have made",
    meaning="Recomputed from the logs as they were, the truncation should have ended at another offset.",
    advice="Compare the broker's version with the known truncation bugs, and the replicas with diff.",
    references=("KIP-101", "KIP-279"),
)

HARMLESS_TRUNCATION = Rule(
    "KF306",
    Weight.NOTE,
    title="a truncation without loss of committed records",
    meaning="Followers truncate what their new leader never had; this is how replicas become equal again.",
    advice="Nothing to do.",
    references=("KIP-101",),
)


@OF_INCIDENT
def _truncations(incident: PartitionIncident) -> Iterator[Finding]:
    for truncation in incident.truncations:
        yield from _of_truncation(incident, truncation)


def _of_truncation(incident: PartitionIncident, truncation: ExplainedTruncation) -> Iterator[Finding]:
    if truncation.agrees is False:
        yield UNEXPECTED_TRUNCATION.states(
            confidence=Confidence.LIKELY,
            statement=f"{incident.partition}: broker {truncation.broker_id} truncated its log to {truncation.to_offset},"
            f" the protocol {truncation.protocol} would have truncated to {truncation.expected_offset}",
            topic_partition=incident.partition,
            broker_id=truncation.broker_id,
            citations=truncation.citations,
        )
    if truncation.cause.name in {CauseName.UNCOMMITTED_TAIL, CauseName.RECREATED_TOPIC}:
        yield HARMLESS_TRUNCATION.states(
            confidence=Confidence(truncation.cause.confidence),
            statement=f"{incident.partition}: broker {truncation.broker_id} truncated its log from {truncation.from_offset} to {truncation.to_offset}: {truncation.cause.reason}",
            topic_partition=incident.partition,
            broker_id=truncation.broker_id,
            citations=truncation.citations,
        )


TORN_TRANSACTION = Rule(
    "KF308",
    Weight.DAMAGE,
    title="a torn or hanging transaction",
    meaning="A loss separated the data of a transaction from its end marker, or no coordinator will write that marker: read_committed consumers wait, or see less than was committed.",
    advice="Look at the producer's application: what it committed in one transaction may not be complete. kafka-transactions can abort what hangs; `kforensics transactions` prints the command.",
    references=("KIP-98", "KIP-664"),
)


@OF_INCIDENT
def _torn_transactions(incident: PartitionIncident) -> Iterator[Finding]:
    for torn in incident.torn_transactions.transactions:
        yield TORN_TRANSACTION.states(
            f"{incident.partition}: a transaction of producer {torn.producer_id} is torn ({torn.kind}),"
            f" offsets {torn.lost.first} to {torn.lost.last} of it are lost{_stuck(incident)}",
            topic_partition=incident.partition,
            offsets=torn.lost,
        )
    for one in incident.hanging:
        yield TORN_TRANSACTION.states(
            confidence=Confidence(one.confidence),
            statement=f"{incident.partition}: {_if_led(incident)}a transaction of producer {one.producer_id} is open from offset {one.first_offset} on, and no coordinator"
            f" ends it; the last stable offset is stuck at {one.last_stable_offset}: {one.reason}",
            topic_partition=incident.partition,
            citations=one.citations,
        )


PRODUCER_AHEAD = Rule(
    "KF309",
    Weight.NOTE,
    title="an idempotent producer that is ahead of the sequence the leader knows",
    meaning="Its next batch will be refused as out of order, unless the producer restarts.",
    advice="Restart the producer where it reports OutOfOrderSequenceException.",
    references=("KIP-98",),
)


@OF_INCIDENT
def _producers_ahead(incident: PartitionIncident) -> Iterator[Finding]:
    for back in incident.torn_transactions.producers:
        yield PRODUCER_AHEAD.states(
            f"{incident.partition}: producer {back.producer_id} had reached sequence {back.lost_sequence},"
            f" the leader knows it up to {back.kept_sequence}",
            topic_partition=incident.partition,
        )


@OF_INCIDENT
def _broken_sequences(incident: PartitionIncident) -> Iterator[Finding]:
    for broken in incident.sequence_breaks:
        about: dict[str, Any] = {
            "where": f"{incident.partition} on {joined_by_and(broken.owners)}",
            "topic_partition": incident.partition,
            "broker_id": Absent.NOT_APPLICABLE,
            "citations": broken.citations,
        }
        yield from sequence_findings(broken.breaks, **about, whereabouts=broken.whereabouts)
        yield from again_findings(broken.again, **about, confidence=Confidence.LIKELY)


@OF_INCIDENT
def _lacked_epoch(incident: PartitionIncident) -> Iterator[Finding]:
    if incident.lacked_epoch is not None:
        yield lacked_epoch_finding(incident.lacked_epoch, incident.partition)


@OF_INCIDENT
def _of_tiers(incident: PartitionIncident) -> Iterator[Finding]:
    if incident.tiers is not None:
        yield from tier_findings(incident.tiers)


@OF_INCIDENT
def _doubled_offsets(incident: PartitionIncident) -> Iterator[Finding]:
    for one in incident.doubled:
        yield FALLING_OFFSETS.states(
            f"{incident.partition}: the log of {one.owner}{', the leader,' if one.is_leader else ''} holds batches out of order: expected {one.place.expected},"
            f" found {one.place.found}",
            meaning=f"{FOLLOWERS_STOP if one.is_leader else FALLING_OFFSETS.meaning} {one.others}".rstrip(),
            topic_partition=incident.partition,
            broker_id=one.broker_id,
            citations=(one.citation,),
        )


GROUP_AT_LOST_RECORDS = Rule(
    "KF305",
    Weight.DECIDE,
    title="a consumer group whose committed offset refers to lost records",
    meaning="It will be reset by auto.offset.reset, or go on behind records that it has never read.",
    advice="Set the group's offset by hand once the partition is settled.",
)


@OF_INCIDENT
def _groups_at_lost_records(incident: PartitionIncident) -> Iterator[Finding]:
    for group in incident.groups:
        words = {
            "ahead": f"offset {group.offset} is past the log end {incident.log_end_offset}",
            "replaced": f"offset {group.offset} was committed against records that others have replaced",
            "set-back": f"offset {group.offset} is its newest commit, and it had committed {group.was_at} later: that commit is lost",
        }[group.kind]
        yield GROUP_AT_LOST_RECORDS.states(
            f"{incident.partition}: {'share' if group.is_share else 'consumer'} group {group.group}: {words}",
            topic_partition=incident.partition,
            citations=(group.citation,),
        )


def _stuck(incident: PartitionIncident) -> str:
    at = incident.torn_transactions.stuck_at
    return f"; the last stable offset is stuck at {at}" if isinstance(at, int) else ""


HARMLESS_ELECTIONS = Rule(
    "KF307",
    Weight.NOTE,
    title="unclean elections without loss",
    meaning="The leader was not in the recorded ISR but held everything that any input shows.",
    advice="Nothing to do; the setting that allowed it may lose records next time.",
    references=("KIP-966",),
)


def _harmless_elections(incidents: Sequence[PartitionIncident], timeline: Sequence[TimelineEntry]) -> list[Finding]:
    harmed = {
        incident.partition for incident in incidents if any(loss.was_committed != "no" for loss in incident.losses)
    }
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
        HARMLESS_ELECTIONS.states(
            f"{len(elections)} unclean elections lost nothing that any input shows: {', '.join(partitions[:4])}"
            + (f" and {len(partitions) - 4} more partitions" if len(partitions) > 4 else ""),
            citations=tuple(citation for entry in elections[:20] for citation in entry.citations[:1]),
        )
    ]


def long_ago_findings(timeline: Sequence[TimelineEntry]) -> Iterator[Finding]:
    """Yield the deletions by time of segments whose newest timestamp is far from when they were written."""
    for entry in timeline:
        if (
            entry.kind == EventKind.RETENTION
            and "last_modified_ms" in entry.detail
            and not isinstance(entry.topic_partition, Absent)
        ):
            since = entry.detail.get("log_start_offset")
            begins = f": its log begins at {since} from then on" if isinstance(since, int) else ""
            yield STAMPED_LONG_AGO.states(
                f"retention by time deleted {entry.detail['segments']} of {entry.topic_partition}{begins}. {entry.detail['remark']}",
                confidence=Confidence.PROVEN,
                topic_partition=entry.topic_partition,
                broker_id=entry.broker_id,
                citations=entry.citations,
            )
