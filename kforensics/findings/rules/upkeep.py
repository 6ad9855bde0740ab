"""Findings about the upkeep of logs: a cleaner that stands still, and a timestamp that keeps retention from deleting."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.findings.model import Confidence, Finding, Weight
from kforensics.findings.rule import Rule, ToldApartBy
from kforensics.units import OffsetRange, TopicPartition
from kforensics.words import byte_count, counted, listed, utc_words

if TYPE_CHECKING:
    from kforensics.evidence.checks.context import StampedAhead
    from kforensics.evidence.discovery.partition_dirs import CleanerLag

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
    meaning="Retention by time goes by the largest timestamp of each segment, from the oldest segment on, and stops at the first that is not due. Where cleanup.policy has delete, this segment and those behind it stay until retention.ms after that timestamp.",
    advice="Move the log start behind this segment with kafka-delete-records.sh once its records may go; retention.bytes deletes whatever the timestamps say. message.timestamp.after.max.ms (since 3.6, before: message.timestamp.difference.max.ms) refuses such records.",
    references=("KIP-937",),
    told_apart_by=ToldApartBy.FILE,
)

STAMPED_IN_SECONDS = Rule(
    "KF129",
    Weight.NOTE,
    title="timestamps in seconds, which retention takes for records of 1970",
    meaning="Kafka's timestamps are milliseconds. Where cleanup.policy has delete and retention.ms is not -1, a segment whose largest timestamp is of 1970 is deleted with the next check, the active one as well.",
    advice="Let the producer give milliseconds, or none at all. Set retention.ms to -1 until these records were read, or message.timestamp.type to LogAppendTime for later ones.",
    references=("KIP-32",),
    told_apart_by=ToldApartBy.FILE,
)

CLEANING_UNFINISHED = Rule(
    "KF125",
    Weight.NOTE,
    title="a cleaning that was not finished",
    meaning="A cleaner writes a compacted segment as .cleaned, renames it to .swap, and then puts it in the place of the segments that it was made of. A start ends what was under way; no record is lost by it that the cleaner would have kept.",
    advice="Nothing has to be done; rename or delete none of these files by hand. `kforensics predict -v` shows what a start makes of them.",
    references=("KAFKA-6264",),
)

EMPTY_COORDINATOR = Rule(
    "KF126",
    Weight.NOTE,
    title="a coordinator's partition of several segments without a record",
    meaning="A coordinator before 2.2.3, 2.3.2 and 2.4.0 loads such a partition without an end: no group or transaction behind it in the queue is loaded, and no position expires. Later ones load it.",
    advice="Run a version that has the fix on the brokers that lead this partition.",
    references=("KAFKA-9065",),
)

TWICE_BELOW_CLEANER = Rule(
    "KF128",
    Weight.NOTE,
    title="a key that is twice where a cleaner has been",
    meaning="A cleaner leaves one record of each key below its checkpoint. These came there otherwise: a replica was moved between log directories, files or a checkpoint were put back from a copy, or the checkpoint was edited. Consumers from the beginning read the older record first; it goes when its key is written again.",
    advice="Ask whether this directory, or its cleaner-offset-checkpoint, was copied or edited by hand. Nothing has to be done for consumers that take the last record of a key.",
    references=("KIP-113",),
    told_apart_by=ToldApartBy.FILE,
)

OF_UPKEEP = frozenset(
    {
        CLEANER_STANDS.code,
        STAMPED_AHEAD.code,
        STAMPED_IN_SECONDS.code,
        CLEANING_UNFINISHED.code,
        EMPTY_COORDINATOR.code,
        TWICE_BELOW_CLEANER.code,
    }
)


def empty_coordinator_finding(
    where: str, bases: Sequence[int], *, about: Mapping[str, Any], starting: str = ""
) -> Finding:
    """Return the finding about a coordinator's partition of several segments without a record.

    Args:
        starting: the version that is to load it and never ends doing so; empty where none is known to.
    """
    words = f"{where} has {counted(len(bases), 'segment')} without a record, from offset {bases[0]} to {bases[-1]}"
    if starting:
        words += f": the coordinator of Kafka {starting} loads it without an end, and what it is to load after it never"
    return EMPTY_COORDINATOR.states(words, weight=Weight.DECIDE if starting else None, **about)


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
        f" offsets {lag.first_offset} to {lag.end_offset - 1}, the oldest complete since {utc_words(lag.since_ms)}"
        f"{', by times that producers gave: those of the files do not show it' if lag.is_claimed else ''}",
        confidence=Confidence.POSSIBLE if lag.is_claimed else Confidence.LIKELY,
        weight=Weight.NOTE if lag.is_claimed else None,
        topic_partition=partition,
        broker_id=broker_id,
        offsets=OffsetRange(lag.first_offset, lag.end_offset - 1),
        citations=(citation,),
    )


def unfinished_findings(left: Sequence[tuple[str, bool]], *, where: str, about: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the finding about what a cleaning left in one directory, with what a start makes of it since 2.0.

    Args:
        left: the path of each segment that it was to put in place, or was writing, and whether the next start puts it in place.
        where: the log in words, which begin the statement.
        about: what else the finding says of itself.
    """
    taken, dropped = (
        [path.rpartition("/")[2] for path, is_taken in left if is_taken is wanted] for wanted in (True, False)
    )
    parts = [(taken, "takes {} for its segment"), (dropped, "deletes {}")]
    said = " and ".join(words.format(listed(names, most=3)) for names, words in parts if names)
    if said:
        yield CLEANING_UNFINISHED.states(f"{where}: a cleaning was not finished; the next start {said}", **about)


def stamped_finding(
    stamp: "StampedAhead", *, input_number: int, partition: TopicPartition | Absent, broker_id: int | Absent
) -> Finding:
    """Return the finding about the largest timestamp of one segment."""
    is_one = stamp.first_offset == stamp.last_offset
    which = f"the record at offset {stamp.first_offset}"
    if not is_one:
        which = f"a record of offsets {stamp.first_offset} to {stamp.last_offset}"
    by = f" by producer {stamp.producer_id}" if stamp.producer_id >= 0 else ""
    directory, _, name = stamp.path.rpartition("/")
    rule, how = STAMPED_AHEAD, f"ahead of the time {stamp.against}, {utc_words(stamp.known_ms)}"
    if stamp.timestamp_ms < stamp.known_ms:
        rule, how = (
            STAMPED_IN_SECONDS,
            f"the latest there: taken for seconds it is {utc_words(stamp.timestamp_ms * 1000)}",
        )
    return rule.states(
        f"{directory}: {which} in segment {name} is stamped{by} {utc_words(stamp.timestamp_ms)}, {how}",
        confidence=Confidence.PROVEN,
        topic_partition=partition,
        broker_id=broker_id,
        offsets=OffsetRange(stamp.first_offset, stamp.last_offset),
        citations=(Citation(input=input_number, path=stamp.path),),
    )
