"""The evidence in which known bugs are searched, and the value of a bug that fits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import BatchReader, Citation
from kforensics.protocol.known_bugs import BUGS
from kforensics.reconcile.bugs.log_signs import Sign
from kforensics.reconcile.observed.broker_versions import BrokerVersions
from kforensics.reconcile.observed.facts import Leadership

if TYPE_CHECKING:
    from kforensics.reconcile.history.log_copies import LogCopy
    from kforensics.reconcile.history.losses import Loss
    from kforensics.reconcile.history.residual_divergence import Residual
    from kforensics.reconcile.history.truncations import ObservedTruncation
    from kforensics.reconcile.logs.loaded_log import LoadedLog
    from kforensics.reconcile.observed.logged_truncations import LoggedTruncation


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
