"""The losses of a partition: those that copies of its logs show and those that lines alone report, with what may only look like one."""

from collections.abc import Sequence
from dataclasses import replace

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Lineage
from kforensics.reconcile.history.causes import CauseEvidence, CauseName
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.losses import Loss, LostBatch, find_losses, is_in_use, lost_batches
from kforensics.reconcile.incident.ledger import ledger_entry, logged_loss_entries
from kforensics.reconcile.incident.logs_over_time import LogsOverTime
from kforensics.reconcile.incident.model import Candidate, ExplainedTruncation, LossEntry
from kforensics.reconcile.logs.loaded_log import load_log
from kforensics.reconcile.replicas.leader import choose_leader


def batches_lost(known: LogsOverTime) -> tuple[LostBatch, ...]:
    """Return the batches that some copy holds and the leader's log does not; of a segment of it that may have been left out of the copy nothing is known."""
    apart = known.abandoned() if known.leader is None else known.unrequested
    lost = lost_batches(_nothing(apart), apart, known.agreement, known.reader) if apart else ()
    if known.leader is None:
        return lost
    others = [copy for copy in known.copies if copy is not known.leader]
    shown = lost_batches(known.leader, others, known.agreement, known.reader)
    return (*(batch for batch in shown if not known.leader.view.is_left_out(batch.base_offset)), *lost)


def losses_shown(known: LogsOverTime, lost: Sequence[LostBatch]) -> tuple[Loss, ...]:
    """Return the losses that these batches are.

    Args:
        lost: batches that the leader's log does not hold.
    """
    if known.judge is None:
        return ()
    if known.leader is None:
        abandoned = known.abandoned()
        found = find_losses(_nothing(abandoned), lost, known.judge, known.reader) if lost else ()
        return tuple(_as_question(loss, _ABANDONED) for loss in found)
    found = find_losses(known.leader, lost, known.judge, known.reader, deleted_below=known.deleted.below)
    return tuple(_of_another_log(known, loss) if _is_of_another_log(known, loss) else loss for loss in found)


def _is_of_another_log(known: LogsOverTime, loss: Loss) -> bool:
    return all(copy in known.unrequested for copy in loss.held_by)


def _of_another_log(known: LogsOverTime, loss: Loss) -> Loss:
    """Return the loss of records whose log the one of now shares nothing with: what proves a commit, or that there was none, speaks of the log of now."""
    its = loss.held_by[0].view.replica.topic_id
    now = known.leader.view.replica.topic_id if known.leader is not None else Absent.UNKNOWN
    if isinstance(its, Absent) or isinstance(now, Absent) or its == now:
        reason = (
            "nothing of their log is in that of now: the disks were emptied, or the topic was deleted and created again;"
            " no topic id, record or line tells which"
        )
        # A broker serves what lies in its directory now, whatever it was before.
        return replace(_as_question(loss, reason), in_use=loss.in_use)
    reason = f"they are of topic id {its}, and the partition is of {now} now: no record or line says that their topic was deleted"
    return _as_question(loss, reason)


_ABANDONED = (
    "they are in directories that are set aside, of a topic that the newest metadata does not name, and no record says"
    " that it was deleted"
)


def _nothing(copies: Sequence[LogCopy]) -> LogCopy:
    """Return a log that holds none of what some logs do, whose place it takes in the comparison with them."""
    start = min(copy.view.log_start_offset for copy in copies)
    replica = replace(
        copies[0].view.replica, segments=(), lineage=Lineage(start, start), checkpoint_epochs=Absent.UNKNOWN
    )
    return LogCopy(view=load_log(replica), rank=copies[0].rank, is_final=True)


def _as_question(loss: Loss, reason: str) -> Loss:
    return replace(
        loss,
        committed="possible",
        was_committed="possible",
        in_use=(),
        reason=reason,
        citations=tuple(copy.view.replica.cite() for copy in loss.held_by),
    )


def _without_election(loss: LossEntry) -> LossEntry:
    """Return the loss without a cause that is an election or truncation: those on record are of the log of now."""
    if loss.cause is CauseName.DISK_REPLACED:
        return loss
    return replace(loss, cause=CauseName.UNKNOWN, confidence="possible")


def loss_entries(
    known: LogsOverTime, found: Sequence[Loss], truncations: Sequence[ExplainedTruncation], causes: CauseEvidence
) -> tuple[LossEntry, ...]:
    """Return the losses with their causes, those that lines alone report among them; nothing is certain where who leads, or the order of the snapshots, is not.

    Args:
        found: the losses that copies of its logs show.
        causes: what may have caused them.
    """
    if known.leader is None:
        entries = (ledger_entry(known.partition, loss, truncations, causes, loss.held_by[0]) for loss in found)
        return tuple(map(_without_election, entries))
    shown = [(loss, ledger_entry(known.partition, loss, truncations, causes, known.leader)) for loss in found]
    losses = [
        _without_election(one) if _is_of_another_log(known, loss) else _by_whole_account(known, one)
        for loss, one in shown
    ]
    causes_found = [
        (truncation, one.cause, known.protocol_behind(truncation))
        for truncation, one in zip(known.observed, truncations, strict=True)
    ]
    needed = known.evidence.facts.needed_in_sync(known.partition.topic)
    logged = logged_loss_entries(
        known.partition,
        causes_found,
        losses,
        causes,
        known.leader,
        needed_in_sync=needed,
        judge=known.judge,
        whole=known.whole_account,
        deleted=known.deleted.truncated(),
        is_cleaned=any(
            copy.view.cleaned_below > 0 or isinstance(copy.view.replica.cleaner_point, CheckpointValue)
            for copy in known.copies
        ),
    )
    sure = {one.cause.name: one.cause.confidence for one in truncations if one.cause.confidence == "likely"}
    sure |= {one.cause.name: one.cause.confidence for one in truncations if one.cause.confidence == "proven"}
    every = (*losses, *(replace(one, confidence=sure.get(one.cause, one.confidence)) for one in logged))
    if not known.is_leader_known:
        return tuple(_uncertain(one, "no input shows who leads") for one in every)
    if known.evidence.is_order_in_doubt:
        return tuple(_uncertain(one, "the times of files contradict the order of the snapshots") for one in every)
    if not known.missing_replicas and not any(copy.is_outdated for copy in known.copies):
        return every
    # Nothing is certainly lost while a replica that may hold it is not among the inputs, or while the logs as they are now, which may have been given other
    # records since, are not.
    return tuple(replace(one, committed="possible") if one.committed == "certain" else one for one in every)


def tails_of_copies(known: LogsOverTime, losses: Sequence[LossEntry]) -> tuple[LossEntry, ...]:
    """Return losses that copying at different moments explains: a replica in use continues where the leader's log ends, in the same leader epoch."""
    if known.leader is None or known.evidence.moments.is_stopped or not known.is_leader_known:
        return ()
    view = known.leader.view
    newest = view.batch_epochs[-1].leader_epoch if view.batch_epochs else Absent.UNKNOWN
    if view.replica.clean_shutdown or not isinstance(newest, int):
        return ()
    return tuple(
        loss
        for loss in losses
        if loss.in_use and loss.offsets.first >= view.log_end_offset and loss.leader_epoch == newest
    )


def candidates(known: LogsOverTime) -> tuple[Candidate, ...]:
    """Return the replicas that the guess does not decide between, and what each of them lacks."""
    leader, judge = known.leader, known.judge
    if leader is None or judge is None or known.is_leader_known or known.evidence.wanted_leader is not None:
        return ()
    now = [copy for copy in known.copies if is_in_use(copy)]
    guess = choose_leader([copy.view for copy in now], wanted=None, leaderships=())
    if guess is None or guess.view is not leader.view or not guess.tied_with:
        return ()
    found = []
    for candidate in (leader, *(copy for copy in now if copy.broker_id in guess.tied_with)):
        others = [copy for copy in known.copies if copy is not candidate]
        lost = lost_batches(candidate, others, known.agreement, known.reader)
        losses = find_losses(candidate, lost, judge, known.reader, deleted_below=known.deleted.below)
        records = sum(loss.records for loss in losses if loss.was_committed != "no")
        found.append(Candidate(broker_id=candidate.broker_id, records=records))
    return tuple(found)


def _by_whole_account(known: LogsOverTime, loss: LossEntry) -> LossEntry:
    """Return a loss that only copies of followers' logs show, proven uncommitted where the account of leadership proves it."""
    whole = known.whole_account
    if loss.was_committed != "possible" or whole is None:
        return loss
    led = known.account.last_leader
    is_of_leader = any(holder.broker_id in {led, Absent.UNKNOWN} for holder in loss.held_by)
    epoch, states = loss.leader_epoch, known.account.states
    last_led = max((state.leader_epoch for state in states if isinstance(state.leader, int)), default=-1)
    # What the last leader wrote itself, no election took from it.
    if is_of_leader or not isinstance(epoch, int) or epoch >= last_led:
        return loss
    # A log that was shortened proves nothing of what was committed before, if its broker led since; else it took nothing with it.
    if known.weakened & {state.leader for state in states if state.leader_epoch > epoch}:
        return loss
    return replace(
        loss,
        committed="no",
        was_committed="no",
        reason=whole.reason,
        citations=tuple(dict.fromkeys((*loss.citations, *whole.citations))),
    )


def _uncertain(loss: LossEntry, why: str) -> LossEntry:
    """Return the loss where nothing about it is certain: by a leader that no input shows, or in an order of snapshots that is in doubt."""
    if loss.was_committed != "certain":
        return loss
    return replace(loss, committed="possible", was_committed="possible", reason=f"{loss.reason}; {why}")
