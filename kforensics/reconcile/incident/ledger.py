"""The entries of the ledger: each loss with its cause and the replicas that still hold it, and what only log lines say was truncated."""

from collections.abc import Sequence

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.protocol.outcome import ProtocolName
from kforensics.reconcile.committed.judge import CommitJudge
from kforensics.reconcile.committed.proofs import Bound
from kforensics.reconcile.history.causes import Cause, CauseEvidence, CauseName
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.logged_losses import find_logged_losses
from kforensics.reconcile.history.losses import Loss
from kforensics.reconcile.history.truncations import ObservedTruncation
from kforensics.reconcile.incident.model import ExplainedTruncation, Holder, LossEntry
from kforensics.reconcile.observed.leadership import Risk
from kforensics.units import METADATA_TOPICS, OffsetRange, TopicPartition


def ledger_entry(
    partition: TopicPartition,
    loss: Loss,
    truncations: Sequence[ExplainedTruncation],
    causes: CauseEvidence,
    leader: LogCopy,
) -> LossEntry:
    """Return a loss with its cause.

    Args:
        loss: what copies show and the final leader does not hold.
    """
    cause, confidence, citations = _cause_of(loss, truncations, causes, leader)
    return LossEntry(
        topic_partition=partition,
        offsets=loss.offsets,
        records=loss.records,
        markers=loss.markers,
        committed=loss.committed,
        was_committed=loss.was_committed,
        is_replaced=loss.is_replaced,
        leader_epoch=loss.leader_epoch,
        reason=loss.reason,
        cause=cause,
        held_by=tuple(_holder(copy, loss) for copy in loss.held_by),
        citations=tuple(dict.fromkeys((*loss.citations, *citations))),
        confidence=confidence,
        aborted=loss.aborted,
    )


def logged_loss_entries(
    partition: TopicPartition,
    truncations: Sequence[tuple[ObservedTruncation, Cause, ProtocolName]],
    losses: Sequence[LossEntry],
    causes: CauseEvidence,
    leader: LogCopy,
    *,
    needed_in_sync: int | Absent,
    judge: CommitJudge | None = None,
    whole: Bound | None = None,
    deleted: Sequence[OffsetRange] = (),
    is_cleaned: bool = False,
) -> list[LossEntry]:
    """Return what log lines say was truncated and no copy shows; the metadata quorum truncates only what it has not committed.

    Args:
        truncations: those of the log lines, each with its cause and the protocol in force.
        losses: what copies show; offsets that they cover are left out.
        leader: the log that decides what is lost.
        needed_in_sync: how many replicas had to be in sync for a commit.
        judge: knows which elections prove that records were not committed.
        whole: the account of leadership, where it proves that each leader held all that was committed.
        deleted: offsets whose records a client had deleted before they were truncated.
        is_cleaned: a cleaner works on the partition: offsets need not have held records any more when they were truncated.
    """
    if partition.topic in METADATA_TOPICS:
        return []
    found = find_logged_losses(
        truncations,
        shown=[*(loss.offsets for loss in losses), *deleted],
        leader_start=_deleted_below(leader),
        leader_end=leader.view.log_end_offset,
        leaderships=causes.leaderships,
        needed_in_sync=needed_in_sync,
        leader_epochs=leader.view.epochs or leader.view.batch_epochs,
        judge=judge,
        whole=whole,
        is_cleaned=is_cleaned,
        may_be_of_earlier=lambda one: causes.incarnation.may_be_of_earlier(one.broker_id, one.time_ms),
    )
    return [
        LossEntry(
            topic_partition=partition,
            offsets=run.offsets,
            records=run.offsets.count,
            markers=0,
            committed=run.committed,
            was_committed=run.was_committed,
            is_replaced=run.is_replaced,
            leader_epoch=run.leader_epoch,
            reason=run.reason,
            cause=run.cause.name,
            held_by=(),
            citations=run.citations,
            confidence=run.cause.confidence,
        )
        for run in found
    ]


def _deleted_below(leader: LogCopy) -> int:
    """Return the log start that a client asked for: retention moves it from segment to segment, and says nothing of what was lost before."""
    replica = leader.view.replica
    start = replica.log_start
    if isinstance(start, Absent) or start.value in {segment.base_offset for segment in replica.segments}:
        return 0
    return start.value


def _cause_of(
    loss: Loss, truncations: Sequence[ExplainedTruncation], causes: CauseEvidence, leader: LogCopy
) -> tuple[CauseName, str, tuple[Citation, ...]]:
    """Return the cause of the first truncation that discarded the run; where nothing was truncated, damage in the leader's log, or the election that left the run behind."""
    brokers = {copy.broker_id for copy in loss.held_by}
    over = [
        truncation
        for truncation in truncations
        if truncation.to_offset <= loss.offsets.first < truncation.from_offset and truncation.broker_id in brokers
    ]
    if over:
        known = [truncation for truncation in over if truncation.cause.name is not CauseName.UNKNOWN]
        chosen = (known or over)[0]
        return chosen.cause.name, chosen.cause.confidence, chosen.citations
    damaged = [
        one
        for one in leader.view.damaged
        if one.offsets.first <= loss.offsets.first and loss.offsets.last <= one.offsets.last
    ]
    if damaged:
        return CauseName.DAMAGE, "likely", (damaged[0].citation,)
    if isinstance(loss.leader_epoch, int):
        after = [state for state in causes.leaderships if state.leader_epoch > loss.leader_epoch]
        if after and causes.risk_of(after[0]) is Risk.OLDER_DISK:
            return CauseName.DISK_RESTORED, "likely", (after[0].citation,)
        if after and causes.risk_of(after[0]) is Risk.OTHER_DISK:
            return CauseName.DISK_REPLACED, "likely", (after[0].citation,)
        if after and after[0].unclean:
            return CauseName.UNCLEAN_ELECTION, "likely", (after[0].citation,)
        if after and loss.was_committed == "no":
            return CauseName.UNCOMMITTED_TAIL, "likely", (after[0].citation,)
    return CauseName.UNKNOWN, "possible", ()


def _holder(copy: LogCopy, loss: Loss) -> Holder:
    replica = copy.view.replica
    return Holder(
        input=replica.input,
        path=replica.path,
        broker_id=replica.broker_id,
        is_final=copy.is_final,
        in_use=copy in loss.in_use,
        is_vanishing=copy.is_final and (copy.is_remnant or replica.state == "deleted"),
        is_stray=copy.is_final and replica.state == "stray",
    )
