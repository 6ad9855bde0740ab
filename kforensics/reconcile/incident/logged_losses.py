"""What log lines alone say was lost, and what clients had deleted before it could be."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue
from kforensics.formats.log_lines.event import LogEventKind
from kforensics.protocol.epochs import epoch_at
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import PROTOCOL_RULES
from kforensics.reconcile.committed.judge import Certainty, CommitJudge
from kforensics.reconcile.committed.proofs import Bound
from kforensics.reconcile.history.causes import Cause, CauseName
from kforensics.reconcile.history.losses import Loss, LostBatch
from kforensics.reconcile.history.truncations import ObservedTruncation
from kforensics.reconcile.logs.divergence import split_at
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.logged_events import LoggedEvent, of_kinds
from kforensics.reconcile.timeline.events import DELETE_REQUEST
from kforensics.units import EpochEntry, OffsetRange, TopicPartition


class DeletionRequest(NamedTuple):
    """A leader moved its log start because a client asked for it."""

    broker_id: int
    log_start_offset: int
    time_ms: int


def deletion_requests(events: Iterable[LoggedEvent]) -> dict[TopicPartition, tuple[DeletionRequest, ...]]:
    """Return the requests to delete records that the lines of leaders report (2.8 and later name the reason), by partition."""
    found: dict[TopicPartition, list[DeletionRequest]] = defaultdict(list)
    for item in of_kinds(events, (LogEventKind.LOG_START_MOVED,)):
        event, offset = item.event, item.event.number("log_start_offset")
        if event.fields.get("reason") != DELETE_REQUEST:
            continue
        if not isinstance(event.topic_partition, TopicPartition) or not isinstance(offset, int):
            continue
        if isinstance(item.node_id, int) and isinstance(item.time_ms, int):
            found[event.topic_partition].append(DeletionRequest(item.node_id, offset, item.time_ms))
    return {partition: tuple(requests) for partition, requests in found.items()}


class DeletedRecords:
    """The records of one partition that were deleted on request."""

    def __init__(
        self,
        requests: Sequence[DeletionRequest],
        leaderships: Sequence[Leadership],
        truncations: Sequence[ObservedTruncation],
    ) -> None:
        """Join the requests with the leader epoch in which each was served."""
        self._truncations = truncations
        self._served = [
            (request, led[-1])
            for request in requests
            if (
                led := [
                    one.leader_epoch
                    for one in leaderships
                    if one.leader == request.broker_id
                    and isinstance(one.time_ms, int)
                    and one.time_ms <= request.time_ms
                ]
            )
        ]

    def below(self, batch: LostBatch) -> int:
        """Return the offset below which the records of a batch were deleted, 0 where nothing shows that they were.

        They were in the leader's log when it served the request: a copy of that log holds them, in its leader epoch then or an earlier one, and it had not truncated them yet.
        """
        holders = {holder.broker_id for holder in batch.holders}
        return max(
            (
                request.log_start_offset
                for request, epoch in self._served
                if request.broker_id in holders
                and batch.epoch <= epoch
                and not any(
                    one.broker_id == request.broker_id
                    and one.to_offset <= batch.last_offset
                    and not _is_later(one, request)
                    for one in self._truncations
                )
            ),
            default=0,
        )

    def truncated(self) -> list[OffsetRange]:
        """Return the deleted offsets that the broker which served the request truncated afterwards, by its first truncation over them."""
        found = []
        for request, _ in self._served:
            own = [one for one in self._truncations if one.broker_id == request.broker_id]
            over = [one for one in own if one.to_offset < request.log_start_offset <= one.from_offset]
            if over and all(_is_later(one, request) for one in over):
                found.append(OffsetRange(over[0].to_offset, request.log_start_offset - 1))
        return found


def _is_later(truncation: ObservedTruncation, request: DeletionRequest) -> bool:
    return isinstance(truncation.time_ms, int) and truncation.time_ms > request.time_ms


_BY_EPOCH = frozenset({"epoch", "leader-offset"})
"""The names in log lines of the rule of a truncation that compared leader epochs."""
_UNNAMED, _BY_RECOVERY = "unknown", "recovery"


def find_logged_losses(
    partition: TopicPartition,
    truncations: Sequence[tuple[ObservedTruncation, Cause, ProtocolName]],
    *,
    shown: Iterable[OffsetRange],
    leader_end: int,
    leaderships: Sequence[Leadership],
    needed_in_sync: int | Absent,
    leader_start: int = 0,
    leader_epochs: Sequence[EpochEntry] = (),
    judge: CommitJudge | None = None,
    whole: Bound | None = None,
    is_cleaned: bool = False,
    may_be_of_earlier: Callable[[ObservedTruncation], bool] = lambda _truncation: False,
) -> tuple[Loss, ...]:
    """Find what logged truncations discarded and no copy shows, by offset.

    Args:
        whole: the account of leadership, where it proves that each leader held all that was committed.
        is_cleaned: a cleaner works on the partition: offsets need not have held records any more when they were truncated.
        may_be_of_earlier: whether the log that was truncated may be that of an earlier topic of the name: then nothing of it is proven.
    """
    taken = list(shown)
    out: list[Loss] = []
    # What one of them proves, others that took the same offsets may leave open.
    for truncation, cause, protocol in sorted(truncations, key=lambda one: isinstance(one[0].high_watermark, Absent)):
        if not truncation.is_logged or truncation.is_full or cause.name is CauseName.RECREATED_TOPIC:
            continue
        by_epoch = is_by_epoch(truncation, protocol)
        is_own = truncation.rule == _BY_RECOVERY and {one.leader for one in leaderships} == {truncation.broker_id}
        # What the only leader that there was cuts off its own log, no other one's log has.
        first = max(truncation.to_offset, leader_start if by_epoch or is_own else leader_end)
        if truncation.before is not None:
            first = max(first, truncation.before.view.log_end_offset)
        if first >= truncation.from_offset:
            continue
        for remaining in OffsetRange(first, truncation.from_offset - 1).without(taken):
            proven = truncation.high_watermark
            below = 0 if isinstance(proven, Absent) else proven.value
            older = leader_end if is_own else _older_until(truncation, leaderships, leader_epochs)
            runs = [remaining]
            for end in (leader_end, below, older):
                runs = [*split_at(runs, end)]
            out.extend(
                _run(
                    partition,
                    truncation,
                    cause,
                    offsets,
                    leader_end,
                    older,
                    leaderships,
                    needed_in_sync,
                    ("possible", _unless_earlier(truncation))
                    if may_be_of_earlier(truncation)
                    else _committed(truncation, offsets, leader_end, leader_epochs, proven, is_cleaned=is_cleaned)
                    or _never(truncation, offsets, leaderships, leader_epochs, judge, by_epoch=by_epoch)
                    or (("no", whole) if whole is not None and by_epoch else None),
                )
                for offsets in runs
            )
            taken.append(remaining)
    return tuple(sorted(out, key=lambda run: run.offsets))


def _unless_earlier(truncation: ObservedTruncation) -> Bound:
    reason = "no line shows that this log was begun since the topic was created: it may be that of an earlier topic of the name"
    return Bound(truncation.to_offset, reason, ())


def _run(
    partition: TopicPartition,
    truncation: ObservedTruncation,
    cause: Cause,
    offsets: OffsetRange,
    leader_end: int,
    older: int,
    leaderships: Sequence[Leadership],
    needed_in_sync: int | Absent,
    proof: tuple[Certainty, Bound] | None,
) -> Loss:
    term = _own_term(truncation, leaderships)
    missing = "no copy of what was truncated is among the inputs"
    committed: Certainty = "possible"
    reason, citations = missing, truncation.citations
    if proof is not None:
        committed, bound = proof
        reason, citations = bound.reason, (*citations, *bound.citations)
    if committed == "possible" and term is not None and term.isr == frozenset({term.leader}) and needed_in_sync == 1:
        reason = f"the ISR was [{term.leader}] alone in leader epoch {term.leader_epoch}; {missing}"
        citations = (*citations, term.citation)
    may_be_in_leader = committed == "possible" and offsets.last < min(older, leader_end)
    if may_be_in_leader:
        since = "since" if truncation.rule == _BY_RECOVERY else "of an earlier epoch"
        reason += f"; the leader's log has records there {since}, which may be the same ones, sent again"
    return Loss(
        topic_partition=partition,
        offsets=offsets,
        records=offsets.count,
        markers=0,
        # Of an offset that holds another record now, a committed offset or an acknowledgement may speak of either.
        committed="possible" if committed == "certain" and offsets.last < leader_end else committed,
        was_committed=committed,
        is_replaced=offsets.last < leader_end,
        leader_epoch=Absent.UNKNOWN if term is None else term.leader_epoch,
        reason=reason,
        cause=cause.name,
        confidence=cause.confidence,
        held_by=(),
        citations=citations,
        is_only_logged=committed == "possible",
        may_be_in_leader=may_be_in_leader,
    )


def _older_until(
    truncation: ObservedTruncation, leaderships: Sequence[Leadership], leader_epochs: Sequence[EpochEntry]
) -> int:
    """Return the offset below which the leader's log has only records of epochs before the last one in which the truncated replica led; 0 where that is not known.

    A leader that was away can append what waited in its socket in its old epoch, after another had written the same.
    """
    term = _own_term(truncation, leaderships)
    if term is None or not leader_epochs:
        return 0
    return min((one.start_offset for one in leader_epochs if one.leader_epoch >= term.leader_epoch), default=0)


def _committed(
    truncation: ObservedTruncation,
    offsets: OffsetRange,
    leader_end: int,
    leader_epochs: Sequence[EpochEntry],
    high_watermark: CheckpointValue | Absent,
    *,
    is_cleaned: bool,
) -> tuple[Certainty, Bound] | None:
    """Return the proof that every record of the run was committed, and is not in the final leader's log.

    The replica held them below its high watermark when it took up its role, and what the leader holds at these offsets was written in that role's epoch or later.
    """
    if isinstance(high_watermark, Absent) or offsets.last >= high_watermark.value:
        return None
    if offsets.first < leader_end:
        now = epoch_at(tuple(leader_epochs), offsets.first)
        if isinstance(now, Absent) or isinstance(truncation.leader_epoch, Absent) or now < truncation.leader_epoch:
            return None
    reason = (
        f"below high watermark {high_watermark.value}, with which the replica had taken up its role before it truncated"
    )
    if is_cleaned:
        reason += "; compaction may have removed some of these records before"
    return "possible" if is_cleaned else "certain", Bound(high_watermark.value, reason, (high_watermark.citation,))


def _never(
    truncation: ObservedTruncation,
    offsets: OffsetRange,
    leaderships: Sequence[Leadership],
    leader_epochs: Sequence[EpochEntry],
    judge: CommitJudge | None,
    *,
    by_epoch: bool,
) -> tuple[Certainty, Bound] | None:
    if judge is None:
        return None
    bound = uncommitted_from(truncation, leaderships, leader_epochs, judge, by_epoch=by_epoch)
    return ("no", bound) if bound is not None and bound.offset <= offsets.first else None


def is_by_epoch(truncation: ObservedTruncation, protocol: ProtocolName) -> bool:
    """Whether a line reports a truncation that compared leader epochs; one that only copies show is none."""
    by_name = truncation.rule in _BY_EPOCH or (truncation.rule == _UNNAMED and PROTOCOL_RULES[protocol].keeps_epochs)
    return truncation.is_logged and by_name


def uncommitted_from(
    truncation: ObservedTruncation,
    leaderships: Sequence[Leadership],
    leader_epochs: Sequence[EpochEntry],
    judge: CommitJudge,
    *,
    by_epoch: bool,
) -> Bound | None:
    """Return from where on no record that a line says was truncated had been committed, though no input shows the records.

    They followed those that stayed, and are no younger than what the replica held when it began to follow: these two leader epochs bound theirs.

    Args:
        by_epoch: it compared leader epochs, so that a follower truncated what it held before it followed this leader.
    """
    last = _last_written(truncation, leaderships, by_epoch=by_epoch)
    if last is None:
        return None
    last_epoch, until = last
    if truncation.to_offset:
        kept = epoch_at(tuple(leader_epochs), truncation.to_offset - 1)
    else:
        # Nothing stayed, so they may be as old as the partition.
        kept = leaderships[0].leader_epoch if leaderships else Absent.UNKNOWN
    if isinstance(kept, Absent) or kept > last_epoch:
        return None
    return judge.never_after(
        kept,
        last_epoch,
        truncation.broker_id,
        until=until,
        by_ms=unrecorded_time(truncation, leaderships),
    )


def unrecorded_time(truncation: ObservedTruncation, leaderships: Sequence[Leadership]) -> int | Absent:
    """Return the UTC time of a truncation's line, in ms, where the leader epoch that it followed is not on record; of one that only copies show there is none."""
    followed = truncation.leader_epoch
    is_on_record = isinstance(followed, int) and bool(leaderships) and followed <= leaderships[-1].leader_epoch
    return Absent.NOT_APPLICABLE if is_on_record or not truncation.is_logged else truncation.time_ms


def _last_written(
    truncation: ObservedTruncation, leaderships: Sequence[Leadership], *, by_epoch: bool
) -> tuple[int, int | None] | None:
    """Return the leader epoch of the last record that was truncated; and that of the leader that it truncated to, where it may have copied records of leaders in between too."""
    followed, broker = truncation.leader_epoch, truncation.broker_id
    own = _own_term(truncation, leaderships)
    if own is None:
        is_known = (
            isinstance(followed, int)
            and by_epoch
            and not any(
                (state.leader == broker and state.leader_epoch == followed)
                or (state.leader_epoch > followed and _is_earlier(state, truncation))
                for state in leaderships
            )
        )
        return (followed - 1, None) if isinstance(followed, int) and is_known else None
    later = [
        state
        for state in leaderships
        if state.leader_epoch > own.leader_epoch
        and isinstance(state.leader, int)
        and (isinstance(followed, Absent) or state.leader_epoch < followed)
    ]
    was_away = all(isinstance(state.isr, frozenset) and broker not in state.isr for state in later)
    if was_away:
        return own.leader_epoch, None
    return own.leader_epoch, followed if isinstance(followed, int) else later[-1].leader_epoch


def _is_earlier(state: Leadership, truncation: ObservedTruncation) -> bool:
    time_ms = truncation.time_ms
    if not isinstance(state.time_ms, int) or not isinstance(time_ms, int):
        return False
    # A layout without milliseconds writes a line of any moment of a second with its beginning.
    return state.time_ms < (time_ms if time_ms % 1000 else time_ms + 1000)


def _own_term(truncation: ObservedTruncation, leaderships: Sequence[Leadership]) -> Leadership | None:
    """Return the last state in which the truncated replica led, before the leader that it truncated to."""
    before = [
        state
        for state in leaderships
        if state.leader == truncation.broker_id
        and (isinstance(truncation.leader_epoch, Absent) or state.leader_epoch < truncation.leader_epoch)
    ]
    return before[-1] if before else None
