"""Records that a log line says were cut and that no copy among the inputs shows: their offsets are known, they themselves are not.

Only cuts by leader epoch count whole: what they took was not in the new leader's lineage. What a cut to the high watermark took may have come back with the
next fetch, so of such a cut only what lies past the final leader's log counts. Nothing here is called certain: a line names offsets, not records.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.committed.judge import Certainty
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.truncations import Cut
from kforensics.reconcile.observed.facts import Leadership
from kforensics.units import OffsetRange

_BY_EPOCH = frozenset({"epoch", "leader-offset"})
"""What log lines name as the rule of a cut that compared leader epochs."""
_UNNAMED = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenRun:
    """A run of offsets that a line says were cut."""

    offsets: OffsetRange
    committed: Certainty
    is_replaced: bool
    leader_epoch: int | Absent
    reason: str
    cause: CauseName
    citations: tuple[Citation, ...]


def unseen_runs(
    cuts: Sequence[tuple[Cut, CauseName, ProtocolName]],
    *,
    shown: Iterable[OffsetRange],
    leader_end: int,
    leaderships: Sequence[Leadership],
    needed_in_sync: int | Absent,
) -> tuple[UnseenRun, ...]:
    """What logged cuts took and no copy shows, by offset.

    Args:
        cuts: the truncations of the partition with their causes and protocols.
        shown: offsets of losses that some copy still shows.
        leader_end: the log end offset of the final leader.
        leaderships: who led, and who was in sync.
        needed_in_sync: how many replicas must be in sync before anything is committed.
    """
    taken = list(shown)
    out: list[UnseenRun] = []
    for cut, cause, protocol in cuts:
        if not cut.is_logged or cut.is_full or cause is CauseName.RECREATED_TOPIC:
            continue
        by_epoch = cut.rule in _BY_EPOCH or (cut.rule == _UNNAMED and protocol is not ProtocolName.HW)
        first = cut.to_offset if by_epoch else max(cut.to_offset, leader_end)
        if cut.before is not None:
            first = max(first, cut.before.view.log_end_offset)
        for untold in _without(OffsetRange(first, cut.from_offset - 1), taken):
            runs = _split_at(untold, leader_end)
            out.extend(_run(cut, cause, offsets, leader_end, leaderships, needed_in_sync) for offsets in runs)
            taken.append(untold)
    return tuple(sorted(out, key=lambda run: run.offsets))


def _without(offsets: OffsetRange, taken: Sequence[OffsetRange]) -> Iterator[OffsetRange]:
    """The runs of `offsets` that none of the others covers."""
    begin = offsets.first
    for other in sorted(taken):
        if other.last < begin or other.first > offsets.last:
            continue
        if other.first > begin:
            yield OffsetRange(begin, other.first - 1)
        begin = other.last + 1
    if begin <= offsets.last:
        yield OffsetRange(begin, offsets.last)


def _split_at(offsets: OffsetRange, end: int) -> Iterator[OffsetRange]:
    """Below and from `end` on, as far as there is anything."""
    if offsets.first < end <= offsets.last:
        yield OffsetRange(offsets.first, end - 1)
        yield OffsetRange(end, offsets.last)
    else:
        yield offsets


def _run(
    cut: Cut,
    cause: CauseName,
    offsets: OffsetRange,
    leader_end: int,
    leaderships: Sequence[Leadership],
    needed_in_sync: int | Absent,
) -> UnseenRun:
    term = _own_term(cut, leaderships)
    missing = "no copy of what was cut is among the inputs"
    committed: Certainty = "no" if cause is CauseName.UNCOMMITTED_TAIL else "possible"
    reason = "it was the tail of a leader that had not been replicated" if committed == "no" else missing
    citations = cut.citations
    if committed == "possible" and term is not None and term.isr == frozenset({term.leader}) and needed_in_sync == 1:
        reason = f"the ISR was [{term.leader}] alone in leader epoch {term.leader_epoch}; {missing}"
        citations = (*citations, term.citation)
    return UnseenRun(
        offsets=offsets,
        committed=committed,
        is_replaced=offsets.last < leader_end,
        leader_epoch=Absent.UNKNOWN if term is None else term.leader_epoch,
        reason=reason,
        cause=cause,
        citations=citations,
    )


def _own_term(cut: Cut, leaderships: Sequence[Leadership]) -> Leadership | None:
    """The last state in which the replica that was cut led, before the leader it was cut against."""
    before = [
        state
        for state in leaderships
        if state.leader == cut.broker_id
        and (isinstance(cut.leader_epoch, Absent) or state.leader_epoch < cut.leader_epoch)
    ]
    return before[-1] if before else None
