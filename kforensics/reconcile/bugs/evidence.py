"""The evidence in which known bugs are searched, and the value of a bug that fits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, Citation
from kforensics.protocol.epochs import EpochRules
from kforensics.protocol.known_bugs import KNOWN_BUGS, is_affected
from kforensics.protocol.outcome import ProtocolName
from kforensics.protocol.versions import KafkaVersion, epoch_rules_of, epoch_rules_of_protocol
from kforensics.reconcile.bugs.log_signs import Sign
from kforensics.reconcile.observed.facts import Leadership

if TYPE_CHECKING:
    from kforensics.reconcile.history.log_copies import LogCopy
    from kforensics.reconcile.history.losses import Loss
    from kforensics.reconcile.history.residual_divergence import Residual
    from kforensics.reconcile.history.truncations import ObservedTruncation
    from kforensics.reconcile.logs.loaded_log import LoadedLog
    from kforensics.reconcile.observed.logged_truncations import LoggedTruncation

BUGS = {bug.jira: bug for bug in KNOWN_BUGS}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerVersions:
    """The versions of Kafka that the brokers run."""

    by_broker: Mapping[int, KafkaVersion] = field(default_factory=dict)
    """The version that a broker's log files name last."""
    at_least: KafkaVersion | None = None
    """The lowest version that the cluster's metadata.version requires of every broker."""

    def epoch_rules(self, broker: int | Absent, protocol: ProtocolName) -> EpochRules:
        """Return the rules of the broker's leader epoch cache; of the last release of the protocol if its version is not known.

        Args:
            broker: its node id, absent where the log belongs to no known node.
            protocol: by which it truncates.
        """
        version = self.by_broker.get(broker) if isinstance(broker, int) else None
        return epoch_rules_of_protocol(protocol) if version is None else epoch_rules_of(version)

    def confidence(self, broker: int | Absent, jira: str) -> str | None:
        """Return `likely` if the broker's version is known and has the bug, `possible` if it may have it, else None.

        Args:
            broker: its node id, absent where the trace belongs to no known node.
            jira: a key of the known bugs, such as `KAFKA-10432`.
        """
        version = self.by_broker.get(broker) if isinstance(broker, int) else None
        if version is not None:
            return "likely" if is_affected(version, jira) else None
        if self.at_least is None or not any(fixed > self.at_least for _, fixed in BUGS[jira].affected):
            return None
        return "possible"


@dataclass(frozen=True, slots=True, kw_only=True)
class BugTrace:
    """A known bug that fits a trace of a replica."""

    jira: str
    broker_id: int | Absent
    confidence: str
    """`likely` or `possible`."""
    effect: str
    trace: str
    """The trace in words."""
    truncated_to: int | Absent = Absent.NOT_APPLICABLE
    """The target of the truncation that it explains, if it explains one."""
    citations: tuple[Citation, ...] = ()


class Seen(NamedTuple):
    """A trace before the version is checked."""

    jira: str
    broker_id: int | Absent
    trace: str
    citations: tuple[Citation, ...]
    is_conclusive: bool = True
    """Whether nothing else leaves this trace; otherwise the bug is only possible."""
    truncated_to: int | Absent = Absent.NOT_APPLICABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvidence:
    """The evidence of one partition."""

    versions: BrokerVersions
    copies: "Sequence[LogCopy]"
    leader: "LogCopy | None"
    leaderships: Sequence[Leadership]
    truncations: "Sequence[ObservedTruncation]"
    logged: "Sequence[LoggedTruncation]"
    residuals: "Sequence[Residual]"
    ordinary_truncations: frozenset[int]
    """The targets of truncations that an unclean election or a lost page cache explains."""
    agree_until: "Callable[[LoadedLog, LoadedLog], int]"
    reader: BatchReader
    losses: "Sequence[Loss]" = ()
    disagreeing: frozenset[tuple[int | Absent, int]] = frozenset()
    """The broker and target of truncations that contradict the rules."""
    stale_directories: Mapping[int, Citation] = field(default_factory=dict)
    """The directories in use that belong to another topic of the same name, by broker."""
    signs: Sequence[Sign] = ()
    """The signs in log lines about this partition and its brokers."""

    @property
    def replicas(self) -> "Iterator[LogCopy]":
        """The copies that are replicas now: no renamed directory, no earlier snapshot's remains."""
        return (one for one in self.copies if not one.is_remnant and one.view.replica.state == "live")


Rule = Callable[[TraceEvidence], Iterator[Seen]]

RULES: dict[Rule, frozenset[str]] = {}
"""Every rule that looks for traces of known bugs, with the names of the bugs that it can find."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule under the names of the bugs whose traces it looks for.

    Args:
        names: keys of `BUGS`: JIRA numbers, or a name of its own where a bug has none.

    Raises:
        KeyError: a name is not in `protocol.known_bugs`.
    """
    known = frozenset(BUGS[name].jira for name in names)

    def register(function: Rule) -> Rule:
        RULES[function] = known
        return function

    return register


def traced(seen: Seen, versions: BrokerVersions) -> BugTrace | None:
    """Return the bug that left the trace, or None if the broker's version does not have it.

    Args:
        seen: a trace; one that is not conclusive makes the bug `possible` at most.
        versions: those of the brokers, as far as they are known.
    """
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
