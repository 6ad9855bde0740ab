"""Findings about idempotent producers whose sequences do not follow each other in a log: records that are missing, or there twice."""

from collections.abc import Iterator, Sequence

from kforensics.damage import Absent
from kforensics.evidence.checks.context import Remembered
from kforensics.evidence.model import Citation
from kforensics.findings.model import Confidence, Finding, Weight
from kforensics.findings.rule import Rule
from kforensics.formats.log.sequences import SequenceBreak, WrittenAgain
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import counted, form

MISSING_SEQUENCES = Rule(
    "KF118",
    Weight.DECIDE,
    title="sequences of an idempotent producer that are missing",
    meaning="A producer numbers its records in a partition without a gap, and a leader that knows the producer refuses one (OutOfOrderSequenceException). The records of these sequences were lost, or are in another log; the leader that appended the next batch did not know of them.",
    advice="Look for these records on the other replicas, in earlier copies and in the application: no broker reports or repairs the gap.",
    references=("KIP-98", "KIP-360"),
)

REPEATED_SEQUENCES = Rule(
    "KF119",
    Weight.NOTE,
    title="sequences of an idempotent producer that are in a log twice",
    meaning="A leader that knows a producer does not append a batch again that it holds already: this one had lost what it knew of the producer, so consumers read these records twice.",
    advice="Consumers that can't take a record twice have to leave out the second one.",
    references=("KIP-98", "KIP-360"),
)

WRITTEN_AGAIN = Rule(
    "KF124",
    Weight.NOTE,
    title="records that an idempotent producer wrote again as it began its sequences anew",
    meaning="After an error a producer raises its epoch (before 2.5 it may keep it), begins its sequences anew, and sends again what it got no answer for. The first batch had been written, and no leader can tell that the second is the same: consumers read these records twice.",
    advice="Consumers that can't take a record twice have to leave out the second one. Transactions keep both from being read.",
    references=("KIP-360",),
)

OF_SEQUENCES = frozenset({MISSING_SEQUENCES.code, REPEATED_SEQUENCES.code, WRITTEN_AGAIN.code})


def sequence_findings(
    breaks: Sequence[SequenceBreak],
    *,
    where: str,
    topic_partition: TopicPartition | Absent,
    broker_id: int | Absent,
    citations: tuple[Citation, ...],
    whereabouts: Sequence[str] = (),
) -> Iterator[Finding]:
    """Yield one finding a kind about the places of one log."""
    for rule in (MISSING_SEQUENCES, REPEATED_SEQUENCES):
        places = [one for one in breaks if one.is_repeat == (rule is REPEATED_SEQUENCES)]
        if not places:
            continue
        more = f", and {counted(len(places) - 1, 'more such place')}" if len(places) > 1 else ""
        yield rule.states(
            f"{where}: {_words(places[0])}{more}",
            meaning="" if rule is REPEATED_SEQUENCES else " ".join((*whereabouts, rule.meaning)),
            confidence=Confidence.PROVEN,
            topic_partition=topic_partition,
            broker_id=broker_id,
            offsets=OffsetRange(places[0].after_offset, places[-1].offset),
            citations=citations,
        )


def remembered_words(remembered: Sequence[Remembered]) -> tuple[str, ...]:
    """Return in a sentence that the broker had missing sequences, by its own producer snapshot."""
    if not remembered:
        return ()
    one = max(remembered, key=lambda each: each.sequence)
    name = one.path.rpartition("/")[2]
    return (
        f"{name} names sequence {one.sequence} at offset {one.offset}: the broker had appended it, and truncated it since.",
    )


def again_findings(
    again: Sequence[WrittenAgain],
    *,
    where: str,
    topic_partition: TopicPartition | Absent,
    broker_id: int | Absent,
    citations: tuple[Citation, ...],
    confidence: Confidence,
) -> Iterator[Finding]:
    """Yield one finding about the batches of one log that were written again."""
    if again:
        one = again[0]
        more = f", and {counted(len(again) - 1, 'more such batch', 'more such batches')}" if len(again) > 1 else ""
        yield WRITTEN_AGAIN.states(
            f"{where}: {counted(one.records, 'record')} of producer {one.producer_id} from offset {one.first_offset} on"
            f" {form(one.records, 'is', 'are')} there again from offset {one.offset} on, in its epoch {one.producer_epoch}{more}",
            confidence=confidence,
            topic_partition=topic_partition,
            broker_id=broker_id,
            offsets=OffsetRange(one.first_offset, again[-1].offset + again[-1].records - 1),
            citations=citations,
        )


def _words(one: SequenceBreak) -> str:
    if one.length == 1:
        which = f"sequence {one.first}"
    else:
        which = f"sequences {one.first} {'and' if one.length == 2 else 'to'} {one.last}"
    which += f" of producer {one.producer_id} (epoch {one.producer_epoch})"
    is_or_are = "is" if one.length == 1 else "are"
    if one.is_repeat:
        return f"{which} {is_or_are} there up to offset {one.after_offset} and again from offset {one.offset} on"
    return f"{which} {is_or_are} missing between offsets {one.after_offset} and {one.offset}"
