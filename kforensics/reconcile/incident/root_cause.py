"""The root cause of what was lost: the one cause behind most of it, the broker that it happened on, and when.

Only causes that are proven or likely count: what is merely possible is no cause.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.incident.model import ExplainedTruncation, LossEntry, PartitionIncident
from kforensics.reconcile.observed.leadership import Election
from kforensics.units import METADATA_TOPICS, TopicPartition

_BY_ELECTION = frozenset(
    {CauseName.UNCLEAN_ELECTION, CauseName.DISK_REPLACED, CauseName.DISK_RESTORED, CauseName.UNCOMMITTED_TAIL}
)
_RULES = {
    CauseName.POWER_LOSS: "recovery",
    CauseName.LAST_REPLICA_STANDING: "recovery",
    CauseName.DAMAGE: "recovery",
    CauseName.RECOVERY: "recovery",
    CauseName.HIGH_WATERMARK: "high-watermark",
    CauseName.DISK_RESTORED: "unlogged",
}
"""The rule by which the truncation was decided that is the cause; of a restored disk no line reports one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootCause:
    """The cause behind most of the lost records, as far as it is proven or likely."""

    cause: CauseName
    confidence: str
    """The weakest of the losses that it sums up: `proven` or `likely`."""
    brokers: tuple[int, ...] | Absent
    """The brokers that were elected, or whose logs were truncated; absent where no input names them for every partition."""
    first_ms: int | Absent
    """When it happened, UTC: to the first of the partitions, where there are several; absent where a time is missing."""
    last_ms: int | Absent
    isr: tuple[int, ...] | Absent
    """The replicas in sync before the election, where they were the same for every partition."""
    partitions: tuple[TopicPartition, ...]
    other_causes: tuple[CauseName, ...]
    """Further causes of losses as grave, proven or likely."""
    unexplained: int
    """Records as gravely lost whose cause is not known, or only possible."""
    citations: tuple[Citation, ...]


class _Origin(NamedTuple):
    broker_id: int | Absent
    time_ms: int | Absent
    isr: frozenset[int] | Absent
    citations: tuple[Citation, ...]


_NOWHERE = _Origin(Absent.UNKNOWN, Absent.UNKNOWN, Absent.UNKNOWN, ())


def root_cause(incidents: Iterable[PartitionIncident]) -> RootCause | None:
    """Return the cause behind most of the records that are lost.

    Returns:
        The cause of the gravest losses: of committed records that no replica in use holds, else of those that may have been committed, else of the others. None
        where nothing is lost, or nothing that is proven or likely explains it.
    """
    found = _gravest(
        [(one, loss) for one in incidents if one.partition.topic not in METADATA_TOPICS for loss in one.losses]
    )
    groups: dict[CauseName, list[tuple[LossEntry, _Origin]]] = defaultdict(list)
    unexplained = 0
    for incident, loss in found:
        if loss.cause is CauseName.UNKNOWN or loss.confidence == "possible":
            unexplained += loss.records
        else:
            groups[loss.cause].append((loss, _origin(incident, loss)))
    if not groups:
        return None
    chosen = max(groups, key=lambda cause: sum(loss.records for loss, _ in groups[cause]))
    return _summed_up(chosen, groups[chosen], tuple(cause for cause in groups if cause is not chosen), unexplained)


def _gravest(
    every: Sequence[tuple[PartitionIncident, LossEntry]],
) -> Sequence[tuple[PartitionIncident, LossEntry]]:
    certain = [pair for pair in every if pair[1].was_committed == "certain" and not pair[1].in_use]
    maybe = [pair for pair in every if pair[1].was_committed != "no"]
    return certain or maybe or every


def _summed_up(
    cause: CauseName, found: Sequence[tuple[LossEntry, _Origin]], others: tuple[CauseName, ...], unexplained: int
) -> RootCause:
    times = [origin.time_ms for _, origin in found if isinstance(origin.time_ms, int)]
    brokers = {origin.broker_id for _, origin in found if isinstance(origin.broker_id, int)}
    are_all_named = all(isinstance(origin.broker_id, int) for _, origin in found)
    are_all_timed = len(times) == len(found)
    before = {origin.isr for _, origin in found}
    isr = before.pop() if len(before) == 1 else Absent.UNKNOWN
    return RootCause(
        cause=cause,
        confidence="proven" if all(loss.confidence == "proven" for loss, _ in found) else "likely",
        brokers=tuple(sorted(brokers)) if are_all_named else Absent.UNKNOWN,
        first_ms=min(times) if are_all_timed else Absent.UNKNOWN,
        last_ms=max(times) if are_all_timed else Absent.UNKNOWN,
        isr=tuple(sorted(isr)) if isinstance(isr, frozenset) else Absent.UNKNOWN,
        partitions=tuple(sorted({loss.topic_partition for loss, _ in found})),
        other_causes=others,
        unexplained=unexplained,
        citations=tuple(dict.fromkeys(citation for _, origin in found for citation in origin.citations)),
    )


def _origin(incident: PartitionIncident, loss: LossEntry) -> _Origin:
    """Return the election or the truncation that the loss cites and that its cause speaks of."""
    election = _election(incident, loss) if loss.cause in _BY_ELECTION else None
    if election is not None:
        state, before = election.state, election.before
        isr = before.isr if before is not None else Absent.UNKNOWN
        return _Origin(state.leader, state.time_ms, isr, (state.citation,))
    truncation = _truncation(incident.truncations, loss) if loss.cause in _RULES else None
    if truncation is None:
        return _NOWHERE
    return _Origin(truncation.broker_id, truncation.time_ms, Absent.NOT_APPLICABLE, truncation.citations)


def _election(incident: PartitionIncident, loss: LossEntry) -> Election | None:
    elections = () if incident.account is None else incident.account.elections
    written_in = loss.leader_epoch if isinstance(loss.leader_epoch, int) else -1
    return next(
        (one for one in elections if one.state.citation in loss.citations and one.state.leader_epoch > written_in),
        None,
    )


def _truncation(truncations: Sequence[ExplainedTruncation], loss: LossEntry) -> ExplainedTruncation | None:
    cited = [
        one
        for one in truncations
        if one.citations and one.citations[0] in loss.citations and one.to_offset <= loss.offsets.first
    ]
    by_rule = [one for one in cited if one.decided_by == _RULES[loss.cause]]
    same_cause = [one for one in cited if one.cause.name is loss.cause]
    return next(iter((*by_rule, *same_cause)), None)
