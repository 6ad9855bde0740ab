"""The codes of all findings: stable, never reused.

KF1xx files and formats, KF2xx replicas and truncation, KF3xx incidents and losses, KF4xx fleet and
placement, KF5xx identity and inventory.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingKind:
    """What a code stands for, and what is said where a finding has no more precise words."""

    title: str
    meaning: str
    advice: str
    references: tuple[str, ...] = ()


CATALOGUE: dict[str, FindingKind] = {
    "KF501": FindingKind(
        title="log directories of one node disagree about who they are",
        meaning="A broker refuses to start with log directories of different clusters or node ids.",
        advice="Find out which directory was moved or restored here before anything is started on it.",
        references=("KIP-631", "KIP-858"),
    ),
    "KF502": FindingKind(
        title="one partition stands in two log directories of a node",
        meaning="A broker refuses to start when two of its log directories hold one partition, but for a move.",
        advice="Compare both directories; keep copies of both before one is taken away.",
        references=("KIP-113",),
    ),
    "KF503": FindingKind(
        title="a directory that is neither a partition nor anything else a broker writes",
        meaning="A broker aborts at start on a directory whose name is not of the form topic-partition.",
        advice="Move it out of the log directory of the broker, not of the evidence.",
    ),
    "KF504": FindingKind(
        title="replicas under one name belong to different topics",
        meaning="The topic was deleted and created again under its name: these logs are strangers to each other.",
        advice="Do not compare or copy data between them; the id in the cluster metadata says which one is current.",
        references=("KIP-516",),
    ),
    "KF505": FindingKind(
        title="stray replica",
        meaning="The cluster no longer assigns this replica to the broker, which set it aside.",
        advice="Keep it until it is clear that no current replica lacks its records.",
        references=("KAFKA-15605",),
    ),
    "KF506": FindingKind(
        title="a name that a broker does not write",
        meaning="The file is listed and was not read as Kafka data.",
        advice="Check where it comes from; brokers ignore most such files.",
    ),
}
