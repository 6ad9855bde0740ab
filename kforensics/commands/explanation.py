"""What `explain` gives: what happened to the partitions of a cluster, as far as the evidence shows it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Input, Problem
from kforensics.findings.answers.explain import returned_words
from kforensics.findings.answers.model import Answer
from kforensics.findings.model import Finding
from kforensics.reconcile.bugs.evidence import BugTrace
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.incident.doubts import DoubtKind
from kforensics.reconcile.incident.model import PartitionIncident
from kforensics.reconcile.incident.operations import Operation
from kforensics.reconcile.observed.clocks import Clock
from kforensics.reconcile.timeline.events import TimelineEntry
from kforensics.units import Depth

if TYPE_CHECKING:
    from kforensics.commands.cited import CitedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The explanation of what happened, as far as the evidence shows it."""

    inputs: tuple[Input, ...]
    timeline: tuple[TimelineEntry, ...]
    incidents: tuple[PartitionIncident, ...]
    """The incidents of every partition that something happened to, or that was asked for."""
    partitions: int
    clocks: tuple[tuple[str, Clock], ...]
    """The clocks, by path of the log file."""
    answer: Answer
    """The conclusion, one sentence an item."""
    conclusion: tuple[str, ...]
    advice: tuple[str, ...]
    missing: tuple[str, ...]
    """Inputs that would show more."""
    notes: tuple[str, ...]
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    operations: tuple[Operation, ...] = ()
    """The operations that were done on purpose."""
    broker_bugs: tuple[BugTrace, ...] = ()
    """Known bugs whose traces are in starts and stops of brokers, not in one partition."""
    versions: tuple[tuple[int, str], ...] = ()
    """The version of Kafka by node, where its log files name one."""
    least_version: str | Absent = Absent.UNKNOWN
    """The release that no broker is older than, by the metadata.version in force."""
    hosts: tuple[str, ...] = ()
    """The hosts where the brokers and controllers listen, as they registered: for whoever has to leave such names out."""
    topics: tuple[str, ...] = ()
    """Names of all topics that were met."""
    files: "tuple[CitedFile, ...]" = ()
    """The files that citations name, with their hashes, where they were asked for."""
    is_redacted: bool = False
    """Whether names are pseudonyms."""
    depth: Depth = Depth.CONTENT
    """How much of the logs was read."""
    controllers: tuple[int, ...] = ()
    """Nodes that are controllers and no brokers, as their own lines say."""

    @property
    def nodes(self) -> tuple[Input, ...]:
        """The inputs, and one for each controller that only its log shows: by them nodes are named."""
        return (*self.inputs, *(Input(path="", kind="controller", broker_id=one) for one in self.controllers))

    @property
    def returned(self) -> tuple[str, ...]:
        """What has to be true for a loss where brokers led again that had gone down, and what settles it, in sentences."""
        return tuple(returned_words(self.incidents))

    @property
    def leaves_open(self) -> bool:
        """Whether an election on record may have lost records, or retention took some before their time."""
        return any(
            any(doubt.kind is DoubtKind.ELECTION for doubt in incident.doubts)
            or any(loss.cause is CauseName.RETENTION for loss in incident.losses)
            for incident in self.incidents
        )

    def citations(self) -> Iterator[Citation]:
        """Yield every citation, in no order, some more than once."""
        yield from chain(
            (citation for entry in self.timeline for citation in entry.citations),
            (
                citation
                for incident in self.incidents
                for truncation in incident.truncations
                for citation in truncation.citations
            ),
            (citation for incident in self.incidents for loss in incident.losses for citation in loss.citations),
            (group.citation for incident in self.incidents for group in incident.groups),
            (citation for finding in self.findings for citation in finding.citations),
        )
