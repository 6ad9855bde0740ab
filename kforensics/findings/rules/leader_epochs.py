"""The finding about a leader that does not know the epoch in which it leads."""

from kforensics.findings.model import Confidence, Finding, Weight
from kforensics.findings.rule import Rule
from kforensics.reconcile.observed.own_evidence import LackedEpoch
from kforensics.units import TopicPartition

EPOCH_LACKED = Rule(
    "KF220",
    Weight.DECIDE,
    title="a leader whose leader-epoch-checkpoint lacks its own epoch",
    meaning="It answers followers that fetch in this epoch with OFFSET_OUT_OF_RANGE: they start over again and again, none joins the ISR, and the leader stays alone in it. A move between its log directories without a write in between leaves it so.",
    advice="Write a record to the partition, or have a leader elected anew (kafka-leader-election.sh): either enters an epoch in the file. Do not edit the file, and do not elect uncleanly.",
    references=("KAFKA-15608",),
)


def lacked_epoch_finding(lacked: LackedEpoch, partition: TopicPartition) -> Finding:
    """Return the finding."""
    alone = ", and is alone in the ISR" if lacked.is_alone else ""
    return EPOCH_LACKED.states(
        f"{partition}: broker {lacked.leader} leads in leader epoch {lacked.leader_epoch}{alone}, but its leader-epoch-checkpoint ends with epoch {lacked.written}:"
        f" followers that fetch in epoch {lacked.leader_epoch} get OFFSET_OUT_OF_RANGE until a record is written in it",
        confidence=Confidence.LIKELY,
        topic_partition=partition,
        broker_id=lacked.leader,
        citations=lacked.citations,
    )
