"""What should be there and is not, or is there and is another's: missing segments, replicas of other topics, directories that were set aside."""

from dataclasses import replace

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Citation
from kforensics.evidence.replica.unaccounted import Sign, Unaccounted
from kforensics.findings.model import Finding, Weight
from kforensics.findings.rule import Rule, ToldApartBy
from kforensics.units import METADATA_TOPICS, OffsetRange, TopicPartition

SHOWN_BY = {
    Sign.INDEX: "an index is there, and its segment is not",
    Sign.CHECKPOINT: "the checkpoints refer to records, and no segment is there",
    Sign.HOLE: "the segment before them ends too early",
    Sign.ABOVE_END: "its checkpoints are above the log end",
    Sign.REGISTRATION: "the broker epoch in .kafka_cleanshutdown, the offset of its registration, is above the log end",
    Sign.NO_SEGMENT: "files are there that are written with its records, and no segment",
    Sign.EPOCHS: "its leader-epoch-checkpoint begins there, and its first segment behind them",
}

OF_METADATA = (
    "A part of this copy of the metadata log was removed, or the log was put back to an earlier state."
    " The node fetches what is missing from the leader of the quorum, as far as enough voters still hold it."
)
COMPARE_VOTERS = "Compare the metadata logs of all voters with `kforensics metadata` before a controller starts: voters that lack committed records can elect one that lacks them too."


MISSING_SEGMENT = Rule(
    "KF116",
    Weight.DAMAGE,
    title="a missing segment",
    meaning="Its index, a checkpoint or the segments around it show that it was there: a broker deletes them together, so it was removed, or the copy left it out. "
    "A start without it does not bring it back: the broker begins an empty log, or serves the log with a hole.",
    advice="Look for the file on the broker's disk, in lost+found, in other copies of the directory and on the other replicas before this broker starts.",
    told_apart_by=ToldApartBy.FILE,
)


def lost_directory_finding(partition: TopicPartition, named: CheckpointValue, broker_id: int | Absent) -> Finding:
    """Return the finding about a partition that a checkpoint of a log directory names, and of which its broker holds no directory."""
    return MISSING_SEGMENT.states(
        f"offsets up to {named.value - 1} of {partition} are unaccounted for: {named.citation.path} names it, and there is no directory of it",
        topic_partition=partition,
        broker_id=broker_id,
        citations=(named.citation,),
    )


def missing_finding(
    unaccounted: Unaccounted, partition: TopicPartition, directory: Citation, broker_id: int | Absent
) -> Finding:
    """Return the finding about offsets for which there is no segment.

    Args:
        unaccounted: the offsets, and the sign by which the segment is missed.
        directory: the partition directory; the finding cites the file in it that shows the gap, where there is one.
        broker_id: absent where the node is not known.
    """
    last = unaccounted.last
    path = unaccounted.path
    return MISSING_SEGMENT.states(
        f"{unaccounted.words} of {directory.path} {unaccounted.are} unaccounted for: {SHOWN_BY[unaccounted.sign]}",
        meaning=OF_METADATA if partition.topic in METADATA_TOPICS else "",
        advice=COMPARE_VOTERS if partition.topic in METADATA_TOPICS else "",
        topic_partition=partition,
        broker_id=broker_id,
        offsets=Absent.UNKNOWN if isinstance(last, Absent) else OffsetRange(unaccounted.first, last),
        citations=(replace(directory, path=path) if path else directory,),
    )


OTHER_TOPIC = Rule(
    "KF504",
    Weight.DECIDE,
    title="replicas under one name belong to different topics",
    meaning="The topic was deleted and created again under its name: these logs have nothing to do with each other.",
    advice="Do not compare or copy data between them; the id in the cluster metadata says which one is current.",
    references=("KIP-516",),
    told_apart_by=ToldApartBy.FILE,
)

STRAY = Rule(
    "KF505",
    Weight.NOTE,
    title="stray replica",
    meaning="The cluster no longer assigns this replica to the broker, which set it aside.",
    advice="Keep it until it is clear that no current replica lacks its records.",
    references=("KAFKA-15605",),
    told_apart_by=ToldApartBy.FILE,
)

VANISHING_DIRECTORY = Rule(
    "KF214",
    Weight.NOTE,
    title="a directory on its way to deletion",
    meaning="The broker renamed it when the topic was deleted or the replica moved away, and removes it a minute later.",
    advice="Copy it if its records may be needed.",
    told_apart_by=ToldApartBy.FILE,
)
