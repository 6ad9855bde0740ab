"""A finding: one statement that an operator should know, with the evidence that shows it."""

from dataclasses import dataclass
from enum import StrEnum

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.units import OffsetRange, TopicPartition


class Severity(StrEnum):
    """The gravity of a finding; from `WARNING` up it makes the exit code 1."""

    CRITICAL = "critical"
    """Committed records are lost or will be."""
    ERROR = "error"
    """Data or state is wrong and stays wrong."""
    WARNING = "warning"
    """Something will be discarded or needs a decision."""
    NOTE = "note"
    """Normal after a crash, repaired by the broker, or worth knowing."""

    @property
    def rank(self) -> int:
        """Higher is graver."""
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(reversed(Severity))}


class Confidence(StrEnum):
    """The degree to which the evidence supports the statement."""

    PROVEN = "proven"
    LIKELY = "likely"
    POSSIBLE = "possible"

    @property
    def rank(self) -> int:
        """Higher is more certain."""
        return _CERTAINTY[self]


_CERTAINTY = {confidence: rank for rank, confidence in enumerate(reversed(Confidence))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One statement about the evidence; `code` is in the catalogue and never changes its meaning."""

    code: str
    severity: Severity
    confidence: Confidence
    statement: str
    """One line: what is the case, with its numbers."""
    meaning: str
    """What follows from it."""
    advice: str
    """What to do and what not to do."""
    topic: str | Absent = Absent.NOT_APPLICABLE
    partition: int | Absent = Absent.NOT_APPLICABLE
    broker_id: int | Absent = Absent.NOT_APPLICABLE
    offsets: OffsetRange | Absent = Absent.NOT_APPLICABLE
    citations: tuple[Citation, ...] = ()
    references: tuple[str, ...] = ()
    """KIPs and JIRA numbers."""


def finding(
    code: str,
    *,
    severity: Severity,
    statement: str,
    confidence: Confidence = Confidence.PROVEN,
    meaning: str = "",
    advice: str = "",
    topic_partition: TopicPartition | Absent = Absent.NOT_APPLICABLE,
    broker_id: int | Absent = Absent.NOT_APPLICABLE,
    offsets: OffsetRange | Absent = Absent.NOT_APPLICABLE,
    citations: tuple[Citation, ...] = (),
) -> Finding:
    """Return a finding of a catalogued code.

    Args:
        code: a key of `CATALOGUE`.
        statement: one sentence that the evidence shows.
        meaning: what follows from it; empty for the words of the catalogue.
        advice: what to do; empty for the words of the catalogue.
        topic_partition: the partition that it is about; `NOT_APPLICABLE` for none.
        broker_id: the node that it is about, likewise.
        offsets: the records that it is about, likewise.
        citations: where the statement can be checked.

    Raises:
        KeyError: the catalogue has no such code.
    """
    from kforensics.findings.catalogue import CATALOGUE  # noqa: PLC0415 - where there is a finding

    kind = CATALOGUE[code]
    return Finding(
        code=code,
        severity=severity,
        confidence=confidence,
        statement=statement,
        meaning=meaning or kind.meaning,
        advice=advice or kind.advice,
        topic=topic_partition if isinstance(topic_partition, Absent) else topic_partition.topic,
        partition=topic_partition if isinstance(topic_partition, Absent) else topic_partition.partition,
        broker_id=broker_id,
        offsets=offsets,
        citations=citations,
        references=kind.references,
    )


def by_gravity(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the gravest first; within a severity by subject, so that a report never depends on the order of reading.

    Args:
        findings: in any order.
    """
    return tuple(sorted(findings, key=_order))


def _order(item: Finding) -> tuple[int, str, int, int, str, str]:
    return (
        -item.severity.rank,
        "" if isinstance(item.topic, Absent) else item.topic,
        -1 if isinstance(item.partition, Absent) else item.partition,
        -1 if isinstance(item.broker_id, Absent) else item.broker_id,
        item.code,
        item.statement,
    )
