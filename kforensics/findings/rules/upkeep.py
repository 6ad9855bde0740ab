"""Findings about the upkeep of logs: a cleaner that stands still, and a timestamp that keeps retention from deleting."""

from typing import TYPE_CHECKING

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.findings.model import Confidence, Finding, Weight
from kforensics.findings.rule import Rule, ToldApartBy
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import byte_count, counted, utc_words

if TYPE_CHECKING:
    from kforensics.evidence.checks.context import StampedAhead
    from kforensics.evidence.discovery.cleaning import CleanerLag

CLEANER_STANDS = Rule(
    "KF121",
    Weight.DECIDE,
    title="a compacted log that no cleaner has come to for long",
    meaning="A broker's cleaner sets a partition aside whose cleaning failed (uncleanable) and goes on with the others, or its thread is dead, or log.cleaner.enable is false: the log grows without an error, and whoever loads it reads all of it.",
    advice="Look for 'uncleanable' and 'Error due to' in log-cleaner.log, and check the segment at the cleaner's offset with `kforensics verify`. A restart of the broker tries again; delete no segment by hand.",
    references=("KIP-346",),
    told_apart_by=ToldApartBy.FILE,
)

STAMPED_AHEAD = Rule(
    "KF120",
    Weight.NOTE,
    title="a timestamp of the future that keeps retention from deleting",
    meaning="Retention by time goes by the largest timestamp of each segment, from the oldest segment on, and stops at the first that is not due: where cleanup.policy has delete, this segment and those behind it stay until retention.ms after that timestamp.",
    advice="Move the log start behind this segment with kafka-delete-records.sh once its records may go; retention.bytes deletes whatever the timestamps say. message.timestamp.after.max.ms (since 3.6, before: message.timestamp.difference.max.ms) refuses such records.",
    references=("KIP-937",),
    told_apart_by=ToldApartBy.FILE,
)

OF_UPKEEP = frozenset({CLEANER_STANDS.code, STAMPED_AHEAD.code})


def cleaner_finding(
    lag: "CleanerLag", *, where: str, partition: TopicPartition, broker_id: int | Absent, citation: Citation
) -> Finding:
    """Return the finding about one log."""
    stands = (
        f"the cleaner stands at offset {lag.cleaner_point}"
        if isinstance(lag.cleaner_point, int)
        else "no cleaner has been over it by its checkpoint"
    )
    return CLEANER_STANDS.states(
        f"{where}: {stands}; {counted(lag.segments, 'closed segment')} above it ({byte_count(lag.bytes)}, {lag.percent} %) are not compacted,"
        f" offsets {lag.first_offset} to {lag.end_offset - 1}, the oldest complete since {utc_words(lag.since_ms)}",
        confidence=Confidence.LIKELY,
        topic_partition=partition,
        broker_id=broker_id,
        offsets=OffsetRange(lag.first_offset, lag.end_offset - 1),
        citations=(citation,),
    )


def stamped_finding(
    stamp: "StampedAhead", *, input_number: int, partition: TopicPartition | Absent, broker_id: int | Absent
) -> Finding:
    """Return the finding about the largest timestamp of one segment."""
    is_one = stamp.first_offset == stamp.last_offset
    which = f"the record at offset {stamp.first_offset}"
    if not is_one:
        which = f"a record of offsets {stamp.first_offset} to {stamp.last_offset}"
    directory, _, name = stamp.path.rpartition("/")
    return STAMPED_AHEAD.states(
        f"{directory}: {which} in segment {name} is stamped {utc_words(stamp.timestamp_ms)}, ahead of the time {stamp.against}, {utc_words(stamp.known_ms)}",
        confidence=Confidence.PROVEN,
        topic_partition=partition,
        broker_id=broker_id,
        offsets=OffsetRange(stamp.first_offset, stamp.last_offset),
        citations=(Citation(input=input_number, path=stamp.path),),
    )
