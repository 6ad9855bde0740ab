"""What known bugs are looked for in, and what is said of one that fits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, Citation
from kforensics.protocol.epochs import EpochRules
from kforensics.protocol.known_bugs import KNOWN_BUGS, is_affected
from kforensics.protocol.outcome import ProtocolName
from kforensics.protocol.versions import KafkaVersion, epoch_rules_of, epoch_rules_of_protocol
from kforensics.reconcile.bugs.log_signs import Sign
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.losses import Loss
from kforensics.reconcile.history.residual_divergence import Residual
from kforensics.reconcile.history.truncations import ObservedTruncation
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation

BUGS = {bug.jira: bug for bug in KNOWN_BUGS}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerVersions:
    """Which Kafka each broker runs."""

    by_broker: Mapping[int, KafkaVersion] = field(default_factory=dict)
    """As its log files name it last."""
    at_least: KafkaVersion | None = None
    """What the cluster's metadata.version demands of every broker."""

    def epoch_rules(self, broker: int | Absent, protocol: ProtocolName) -> EpochRules:
        """How the broker's leader epoch cache behaves; where its version is not known, as in the last release of the protocol."""
        version = self.by_broker.get(broker) if isinstance(broker, int) else None
        return epoch_rules_of_protocol(protocol) if version is None else epoch_rules_of(version)

    def confidence(self, broker: int | Absent, jira: str) -> str | None:
        """`likely` where the broker's version is known and has the bug, `possible` where it may have it, else none."""
        version = self.by_broker.get(broker) if isinstance(broker, int) else None
        if version is not None:
            return "likely" if is_affected(version, jira) else None
        if self.at_least is None or not any(fixed > self.at_least for _, fixed in BUGS[jira].affected):
            return None
        return "possible"


@dataclass(frozen=True, slots=True, kw_only=True)
class BugTrace:
    """One known bug that fits what is seen of a replica."""

    jira: str
    broker_id: int | Absent
    confidence: str
    """`likely` or `possible`."""
    effect: str
    trace: str
    """What was seen."""
    truncated_to: int | Absent = Absent.NOT_APPLICABLE
    """The target of the truncation that it explains, if it is one."""
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A trace before the version is asked for."""

    jira: str
    broker_id: int | Absent
    trace: str
    is_conclusive: bool = True
    """Nothing else leaves it; else the bug is no more than possible."""
    truncated_to: int | Absent = Absent.NOT_APPLICABLE
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvidence:
    """What is looked through."""

    versions: BrokerVersions
    copies: Sequence[LogCopy]
    leader: LogCopy | None
    leaderships: Sequence[Leadership]
    truncations: Sequence[ObservedTruncation]
    logged: Sequence[LoggedTruncation]
    residuals: Sequence[Residual]
    ordinary_truncations: frozenset[int]
    """Targets of cuts that an unclean election or a lost disk cache explains."""
    agree_until: Callable[[LoadedLog, LoadedLog], int]
    reader: BatchReader
    losses: Sequence[Loss] = ()
    disagreeing: frozenset[tuple[int | Absent, int]] = frozenset()
    """Broker and target of cuts that the rules would have made elsewhere."""
    stale_directories: Mapping[int, Citation] = field(default_factory=dict)
    """By broker, a directory in use that is of another topic of the name."""
    signs: Sequence[Sign] = ()
    """In log lines, of this partition and of its brokers."""


def traced(seen: Seen, versions: BrokerVersions) -> BugTrace | None:
    """The bug that left the trace, none where the broker's version does not have it."""
    confidence = versions.confidence(seen.broker_id, seen.jira)
    if confidence is None:
        return None
    return BugTrace(
        jira=seen.jira,
        broker_id=seen.broker_id,
        confidence=confidence if seen.is_conclusive else "possible",
        effect=BUGS[seen.jira].effect,
        trace=seen.trace,
        truncated_to=seen.truncated_to,
        citations=seen.citations,
    )
