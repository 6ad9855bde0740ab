"""A finding: one statement that an operator should know, with the evidence that shows it."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.units import OffsetRange


class Severity(StrEnum):
    """The weight of a finding as it is printed."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def weight(self) -> "Weight":
        """What is printed so."""
        return _WEIGHTS[self]

    @property
    def rank(self) -> int:
        """Higher is graver."""
        return self.weight.value


class Weight(IntEnum):
    """The gravity of what is stated; from `DECIDE` up it makes the exit code 1."""

    CALM = 0
    """All is well, or as it should be; never a finding."""
    NOTE = 1
    """Normal after a crash, repaired by the broker, or worth knowing."""
    DECIDE = 2
    """Something will be discarded or needs a decision."""
    DAMAGE = 3
    """Data or state is wrong and stays wrong."""
    LOSS = 4
    """Committed records are lost or will be."""

    @property
    def severity(self) -> Severity:
        """How it is printed."""
        return _PRINTED[self]


_PRINTED = {
    Weight.NOTE: Severity.NOTE,
    Weight.DECIDE: Severity.WARNING,
    Weight.DAMAGE: Severity.ERROR,
    Weight.LOSS: Severity.CRITICAL,
}
_WEIGHTS = {severity: weight for weight, severity in _PRINTED.items()}


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
    """One statement about the evidence; the rule of its code is in `findings/rules/`."""

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

    @property
    def is_grave(self) -> bool:
        """Whether something has to be decided or done."""
        return self.severity.weight >= Weight.DECIDE


def by_gravity(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the gravest first; within a severity by subject, so that a report never depends on the order of reading."""
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
