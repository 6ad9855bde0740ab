"""The ledger of a partition: its truncations, explained, and each loss with its cause and the replicas that still hold it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Citation, Lineage
from kforensics.formats.log.batch_table import CONTROL_BIT, NEWEST_MAGIC
from kforensics.protocol.retention import in_milliseconds, retention_rules
from kforensics.protocol.truncation import ProtocolName, TruncationRule
from kforensics.reconcile.committed.judge import CommitJudge, CommittedCounts, CommittedRun, count_runs
from kforensics.reconcile.committed.proofs import Bound
from kforensics.reconcile.history.causes import Cause, CauseEvidence, CauseName, cause_of, election_behind
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.log_starts import LogStart, LogStartMove, early_words
from kforensics.reconcile.history.losses import Loss, LostBatch, find_losses, holder_of, lost_batches
from kforensics.reconcile.history.truncations import ObservedTruncation, Recomputation, recompute, replacement_of
from kforensics.reconcile.incident.logged_losses import find_logged_losses
from kforensics.reconcile.incident.logs_over_time import LogsOverTime
from kforensics.reconcile.incident.model import Candidate, ExplainedTruncation
from kforensics.reconcile.logs.loaded_log import load_log
from kforensics.reconcile.observed.leadership import Risk
from kforensics.reconcile.replicas.leader import choose_leader
from kforensics.units import METADATA_TOPICS, OffsetRange, TopicPartition
from kforensics.words import utc_words


def explained_truncation(
    known: LogsOverTime, observed: ObservedTruncation, causes: CauseEvidence
) -> ExplainedTruncation:
    """Return a truncation with its cause, what the protocol would have truncated, and whether what it took was committed."""
    truncation = _with_leader(observed, causes, known.copies)
    protocol = known.protocol_behind(truncation)
    runs = _runs_of(known, truncation)
    counts = CommittedCounts.of(runs)
    versions = known.evidence.versions
    again = recompute(
        truncation,
        known.copies,
        protocol,
        rules=versions.epoch_rules(truncation.broker_id, protocol),
        leader_rules=versions.epoch_rules(truncation.leader, protocol),
    )
    none_committed = all(run.certainty == "no" for run in runs) if runs else known.is_uncommitted(truncation)
    cause = cause_of(
        truncation,
        causes,
        protocol=protocol,
        none_committed=none_committed,
        some_committed=counts.certain > 0,
        is_by_protocol=again is not None and again.agrees(truncation),
        is_out_of_range=_is_out_of_range(truncation, again),
    )
    is_by_recovery = truncation.is_inside or (
        cause.name in {CauseName.POWER_LOSS, CauseName.RECOVERY} and truncation.rule != "epoch"
    )
    if cause.name in {CauseName.POWER_LOSS, CauseName.RECREATED_TOPIC} or truncation.is_inside:
        again = None  # no protocol took these records
    return ExplainedTruncation(
        broker_id=truncation.broker_id,
        topic_partition=known.partition,
        time_ms=truncation.time_ms,
        from_offset=truncation.from_offset,
        to_offset=truncation.to_offset,
        protocol="recovery" if is_by_recovery else protocol.value,
        decided_by=truncation.rule,
        leader=truncation.leader,
        leader_epoch=truncation.leader_epoch,
        expected_offset=again.expected_offset if again is not None else Absent.UNKNOWN,
        agrees=again.agrees(truncation) if again is not None else Absent.UNKNOWN,
        steps=tuple(step.sentence() for step in again.outcome.steps) if again is not None else (),
        is_logged=truncation.is_logged,
        cause=cause,
        committed=counts if known.is_leader_known and not known.evidence.is_order_in_doubt else counts.on_a_guess,
        citations=tuple(dict.fromkeys((*truncation.citations, *cause.citations))),
    )


def _is_out_of_range(truncation: ObservedTruncation, again: Recomputation | None) -> bool:
    """Whether a follower truncated to its leader's end: by its line, by the rules, or since it went below the high watermark with which it took up its role."""
    if truncation.rule != "unknown":
        return truncation.rule == "leader-end"
    started_with = truncation.high_watermark
    if isinstance(started_with, CheckpointValue):
        return truncation.to_offset < started_with.value
    return (
        again is not None
        and again.outcome.rule is TruncationRule.OUT_OF_RANGE_ABOVE
        and again.expected_offset == truncation.to_offset
    )


def was_truncated(one: ExplainedTruncation) -> bool:
    """Return whether a broker truncated its log: not where it lost the log with its disk, or an end of it, and led on with what was left."""
    is_of_disk = one.cause.name in {CauseName.DISK_REPLACED, CauseName.DISK_RESTORED}
    return one.is_logged or not is_of_disk or one.leader != one.broker_id


def _runs_of(known: LogsOverTime, truncation: ObservedTruncation) -> tuple[CommittedRun, ...]:
    if truncation.before is None or known.judge is None or truncation.before not in known.copies:
        return ()
    view = truncation.before.view
    last = min(truncation.from_offset, view.log_end_offset) - 1
    if last < truncation.to_offset:
        return ()
    return count_runs(known.judge.runs(view, OffsetRange(truncation.to_offset, last)), view, known.reader)


def _with_leader(
    truncation: ObservedTruncation, causes: CauseEvidence, copies: Sequence[LogCopy]
) -> ObservedTruncation:
    """Return the truncation with its leader, where no log line names one: who led in the epoch that a line names, else the one of the election behind it."""
    if isinstance(truncation.leader, int):
        return truncation
    named = truncation.leader_epoch
    led = {
        state.leader for state in causes.leaderships if state.leader_epoch == named and isinstance(state.leader, int)
    }
    if isinstance(named, int) and len(led) == 1:
        truncation = replace(truncation, leader=led.pop())
        return replace(truncation, replacement=truncation.replacement or replacement_of(truncation, copies))
    election = election_behind(truncation, causes.leaderships)
    if election is None or (isinstance(named, int) and election.leader_epoch != named):
        return truncation
    return replace(truncation, leader=election.leader, leader_epoch=election.leader_epoch)


def logged_loss_entries(
    partition: TopicPartition,
    truncations: Sequence[tuple[ObservedTruncation, Cause, ProtocolName]],
    losses: Sequence[Loss],
    causes: CauseEvidence,
    leader: LogCopy,
    *,
    needed_in_sync: int | Absent,
    judge: CommitJudge | None = None,
    whole: Bound | None = None,
    deleted: Sequence[OffsetRange] = (),
    is_cleaned: bool = False,
) -> tuple[Loss, ...]:
    """Return what log lines say was truncated and no copy shows; the metadata quorum truncates only what it has not committed.

    Args:
        losses: what copies show; offsets that they cover are left out.
        deleted: offsets whose records a client had deleted before they were truncated.
    """
    if partition.topic in METADATA_TOPICS:
        return ()
    return find_logged_losses(
        partition,
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


def _deleted_below(leader: LogCopy) -> int:
    """Return the log start that a client asked for: retention moves it from segment to segment, and says nothing of what was lost before."""
    replica = leader.view.replica
    start = replica.log_start
    if isinstance(start, Absent) or start.value in {segment.base_offset for segment in replica.segments}:
        return 0
    return start.value


def _with_cause(loss: Loss, truncations: Sequence[ExplainedTruncation], causes: CauseEvidence, leader: LogCopy) -> Loss:
    cause, confidence, citations = _cause_of(loss, truncations, causes, leader)
    every = tuple(dict.fromkeys((*loss.citations, *citations)))
    return replace(loss, cause=cause, confidence=confidence, citations=every)


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
        # A leader that came back in its own epoch was not elected after it.
        own_epoch = [state for state in causes.leaderships if state.leader_epoch == loss.leader_epoch]
        for state in (*own_epoch, *after[:1]):
            risk = causes.risk_of(state)
            if risk is not None and risk in _OF_DISKS:
                return _OF_DISKS[risk], "likely", (state.citation,)
        # The leader of now goes on from the end of a log in this leader epoch: one elected before need not have lacked the run.
        own = next((one.leader_epoch for one in leader.view.epochs if one.leader_epoch > loss.leader_epoch), -1)
        unclean = [state for state in after if state.unclean and (state is after[0] or state.leader_epoch <= own)]
        if unclean:
            return CauseName.UNCLEAN_ELECTION, "likely", (unclean[0].citation,)
        if after and loss.was_committed == "no":
            return CauseName.UNCOMMITTED_TAIL, "likely", (after[0].citation,)
    return CauseName.UNKNOWN, "possible", ()


_OF_DISKS = {Risk.OLDER_DISK: CauseName.DISK_RESTORED, Risk.OTHER_DISK: CauseName.DISK_REPLACED}


def batches_lost(known: LogsOverTime) -> tuple[LostBatch, ...]:
    """Return the batches that some copy holds and the leader's log does not; of a segment of it that may have been left out of the copy nothing is known."""
    apart = known.abandoned() if known.leader is None else known.unrequested
    lost = lost_batches(_nothing(apart), apart, known.agreement, known.reader) if apart else ()
    if known.leader is None:
        return lost
    others = [copy for copy in known.copies if copy is not known.leader]
    shown = lost_batches(known.leader, others, known.agreement, known.reader)
    return (*(batch for batch in shown if not known.leader.view.is_left_out(batch.base_offset)), *lost)


def losses_shown(known: LogsOverTime, lost: Sequence[LostBatch]) -> list[tuple[Loss, tuple[LogCopy, ...]]]:
    """Return the losses that these batches are, each with the copies that hold it."""
    if known.judge is None:
        return []
    if known.leader is None:
        found = find_losses(_nothing(known.abandoned()), lost, known.judge, known.reader) if lost else []
        return [(_as_question(loss, _ABANDONED, is_served=False), copies) for loss, copies in found]
    found = find_losses(known.leader, lost, known.judge, known.reader, deleted_below=known.deleted.below)
    return [
        (_of_another_log(known, loss, copies) if _are_of_another_log(known, copies) else loss, copies)
        for loss, copies in found
    ]


def _are_of_another_log(known: LogsOverTime, copies: Sequence[LogCopy]) -> bool:
    return all(copy in known.unrequested for copy in copies)


def _of_another_log(known: LogsOverTime, loss: Loss, copies: Sequence[LogCopy]) -> Loss:
    """Return the loss of records whose log the one of now shares nothing with: what proves a commit, or that there was none, speaks of the log of now."""
    its = copies[0].view.replica.topic_id
    now = known.leader.view.replica.topic_id if known.leader is not None else Absent.UNKNOWN
    if isinstance(its, Absent) or isinstance(now, Absent) or its == now:
        reason = (
            "nothing of their log is in that of now: the disks were emptied, or the topic was deleted and created again;"
            " no topic id, record or line tells which"
        )
        # A broker serves what lies in its directory now, whatever it was before.
        return _as_question(loss, reason, is_served=True)
    reason = f"they are of topic id {its}, and the partition is of {now} now: no record or line says that their topic was deleted"
    return _as_question(loss, reason, is_served=False)


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


def _as_question(loss: Loss, reason: str, *, is_served: bool) -> Loss:
    """Return a loss of which nothing proves that it was committed; `is_served` where its holders may yet lead."""
    return replace(
        loss,
        committed="possible",
        was_committed="possible",
        held_by=loss.held_by if is_served else tuple(replace(one, in_use=False) for one in loss.held_by),
        reason=reason,
        citations=tuple(Citation(input=one.input, path=one.path) for one in loss.held_by),
    )


def _without_election(loss: Loss) -> Loss:
    """Return the loss without a cause that is an election or truncation: those on record are of the log of now."""
    if loss.cause is CauseName.DISK_REPLACED:
        return loss
    return replace(loss, cause=CauseName.UNKNOWN, confidence="possible")


def loss_entries(
    known: LogsOverTime,
    found: Sequence[tuple[Loss, tuple[LogCopy, ...]]],
    truncations: Sequence[ExplainedTruncation],
    causes: CauseEvidence,
) -> tuple[Loss, ...]:
    """Return the losses with their causes, those that lines alone report among them; nothing is certain where who leads, or the order of the snapshots, is not."""
    if known.leader is None:
        entries = (_with_cause(loss, truncations, causes, copies[0]) for loss, copies in found)
        # A log that begins at 0 would have the record that created the topic.
        never_named = known.evidence.facts.has_metadata_log() and known.evidence.facts.knows_every_deletion()
        cause = CauseName.METADATA_SET_BACK if never_named else CauseName.UNKNOWN
        return tuple(
            replace(_without_election(one), cause=cause, confidence="likely" if never_named else "possible")
            for one in entries
        )
    shown = [(_with_cause(loss, truncations, causes, known.leader), copies) for loss, copies in found]
    losses = [
        _without_election(loss) if _are_of_another_log(known, copies) else _by_whole_account(known, loss)
        for loss, copies in shown
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
    logged = tuple(replace(one, confidence=sure.get(one.cause, one.confidence)) for one in logged)
    every = (*losses, *logged, *early_losses(known))
    if not known.is_leader_known:
        return tuple(_uncertain(one, "no input shows who leads") for one in every)
    if known.evidence.is_order_in_doubt:
        return tuple(_uncertain(one, "the times of files contradict the order of the snapshots") for one in every)
    if not known.missing_replicas and not any(copy.is_outdated for copy in known.copies):
        return every
    # Nothing is certainly lost while a replica that may hold it is not among the inputs, or while the logs as they are now, which may have been given other
    # records since, are not.
    return tuple(replace(one, committed="possible") if one.committed == "certain" else one for one in every)


def early_losses(known: LogsOverTime) -> Iterator[Loss]:
    """Yield the segments that retention by time deleted, by its lines, while a copy shows that their newest record was too young: it went by a wrong time index, or by the time of the file."""
    leader = known.leader
    if leader is None or known.partition.topic in METADATA_TOPICS:
        return
    start = leader.view.log_start_offset
    told: set[int] = set()
    passed: dict[int | Absent, int] = {}
    for move in known.evidence.log_starts:
        before, passed[move.broker_id] = passed.get(move.broker_id, 0), move.offset
        for copy in known.copies:
            run: list[tuple[OffsetRange, int]] = []
            segments = copy.view.segments
            ends = [*(one.base_offset for one in segments), copy.view.log_end_offset][1:]
            for segment, end in zip(segments, ends, strict=True):
                stamp = segment.max_timestamp_ms
                newest = in_milliseconds(stamp, move.time_ms) if isinstance(stamp, int) else stamp
                first = max(segment.base_offset, copy.view.log_start_offset, before)
                is_gone = first < end <= min(move.offset, start) and move.broker_id in {copy.broker_id, Absent.UNKNOWN}
                if is_gone and first not in told and isinstance(newest, int) and move.is_early(newest):
                    told.add(first)
                    run.append((OffsetRange(first, end - 1), newest))
                elif run:
                    yield _early_loss(known, move, copy, run)
                    run = []
            if run:
                yield _early_loss(known, move, copy, run)
        largest, begin, end = move.largest_ms, move.first_offset, min(move.offset, start)
        if not isinstance(largest, int) or not isinstance(begin, int) or any(begin <= one < end for one in told):
            continue
        meant = in_milliseconds(largest, move.time_ms)
        if meant != largest and begin < end and move.is_early(meant):
            told.add(begin)
            reason = f"{_took(move)}: in seconds, it is {utc_words(meant)}"
            lost = _loss_without_copy(known, OffsetRange(begin, end - 1), reason, move.citations)
            yield replace(_of_move(known, move, lost), confidence="likely")
    yield from _unlogged_losses(known, told)


_ZEROS_MS = 86_400_000
"""What a time index of zeros gives for the largest timestamp is before this."""


def _unlogged_losses(known: LogsOverTime, told: set[int]) -> Iterator[Loss]:
    """Yield what is gone below the log start though no retention that its topic had can have come to it, and no line says what deleted it.

    Args:
        told: first offsets of segments of which lines say it; those that are told here are added.
    """
    leader, start = known.leader, known.log_start
    if leader is None or start is None or not start.offset or start.is_inside or known.evidence.deletions:
        return
    copies = known.evidence.moments.remote_copies.of(known.partition, leader.view.replica.topic_id)
    if copies or leader.view.content_start_offset > start.offset:
        return  # what is in remote storage counts for its retention, too
    if leader.view.replica.begins_behind_its_epochs:
        return  # retention takes the leader epochs of what it deletes along
    held = False
    for copy in known.copies:
        segments = copy.view.segments
        ends = [*(one.base_offset for one in segments), copy.view.log_end_offset][1:]
        spare = sum(one.length for one in (*segments, *leader.view.segments))
        run: list[tuple[OffsetRange, int]] = []
        zeros = seconds = False
        for segment, end in zip(segments, ends, strict=True):
            spare -= segment.length
            first, stamp = max(segment.base_offset, copy.view.log_start_offset), segment.max_timestamp_ms
            newest = in_milliseconds(stamp, start.times.until_ms) if isinstance(stamp, int) else stamp
            removal = start.removal(first) if first < end <= start.offset else None
            held |= removal is not None
            if removal is None or removal.confidence == "proven" or first in told or not isinstance(newest, int):
                continue
            taken_ms = Absent.UNKNOWN if copy.is_final else copy.taken_ms
            since_ms = max(newest, taken_ms) if isinstance(taken_ms, int) else newest
            indexed_ms = known.evidence.indexed_ms(copy.view.replica, segment)
            is_zeros = isinstance(indexed_ms, int) and indexed_ms < _ZEROS_MS <= newest
            is_due = isinstance(start.times.until_ms, int) and bool(
                start.times.rules(newest, since_ms=since_ms, spare=spare)
            )
            if start.times.is_early(newest, since_ms=since_ms, spare=spare) or (is_zeros and not is_due):
                told.add(first)
                zeros |= is_zeros
                seconds |= newest != stamp
                run.append((OffsetRange(first, end - 1), newest))
        if run:
            yield _unlogged_loss(known, start, copy, run, zeros=zeros, seconds=seconds)
    removal = start.removal(0)
    early = (
        None if held or removal is None or removal.confidence == "proven" else start.times.early_from(0, start.offset)
    )
    if early is not None:
        reason = f"{early_words(start.times, early)}, or a client's request (DeleteRecords), deleted them; no line says which"
        cited = () if start.citation is None else (start.citation,)
        yield _loss_without_copy(known, OffsetRange(early[0], start.offset - 1), reason, cited)


def _unlogged_loss(
    known: LogsOverTime,
    start: LogStart,
    copy: LogCopy,
    run: Sequence[tuple[OffsetRange, int]],
    *,
    zeros: bool,
    seconds: bool,
) -> Loss:
    offsets, newest_ms = OffsetRange(run[0][0].first, run[-1][0].last), max(newest for _, newest in run)
    by = (
        f"retention by time deleted them: {'a time index' if len(run) == 1 else 'time indexes'} of zeros beside them in that copy"
        f" {'makes' if len(run) == 1 else 'make'} records of 1970 of them (KAFKA-10207)"
        if zeros
        else f"{early_words(start.times)}, or a client's request (DeleteRecords), deleted them"
    )
    if seconds:
        by += ": their timestamps are in seconds in place of milliseconds, so that retention takes them for records of 1970"
    return replace(
        _loss_of_copy(known, copy, offsets),
        reason=f"{by}; no line says it, and their newest record is of {utc_words(newest_ms)}",
        citations=() if start.citation is None else (start.citation,),
        confidence="likely" if zeros or seconds else "possible",
    )


def _loss_without_copy(known: LogsOverTime, offsets: OffsetRange, reason: str, citations: tuple[Citation, ...]) -> Loss:
    """Return the loss of what is gone below the log start, of which no input holds a copy."""
    return Loss(
        topic_partition=known.partition,
        offsets=offsets,
        records=offsets.last - offsets.first + 1,
        markers=0,
        committed="possible",
        was_committed="possible",
        is_replaced=False,
        leader_epoch=Absent.UNKNOWN,
        reason=reason,
        cause=CauseName.RETENTION,
        held_by=(),
        citations=citations,
    )


def _early_loss(known: LogsOverTime, move: LogStartMove, copy: LogCopy, run: Sequence[tuple[OffsetRange, int]]) -> Loss:
    """Return the loss of segments that follow each other, each with its newest timestamp."""
    offsets, newest_ms = OffsetRange(run[0][0].first, run[-1][0].last), max(newest for _, newest in run)
    return replace(
        _of_move(known, move, _loss_of_copy(known, copy, offsets)),
        reason=f"{_took(move)}, and their newest record is of {utc_words(newest_ms)}",
        citations=move.citations,
        confidence="proven",
    )


def _took(move: LogStartMove) -> str:
    largest = move.largest_ms
    took = f", which took its largest timestamp for {utc_words(largest)}" if isinstance(largest, int) else ""
    return f"{move.words} deleted them{took}"


def _of_move(known: LogsOverTime, move: LogStartMove, loss: Loss) -> Loss:
    """Return what a broker deleted, which was committed since 1.0: no segment above the high watermark is deleted."""
    version = known.evidence.versions.by_broker.get(move.broker_id) if isinstance(move.broker_id, int) else None
    is_bound = version is not None and retention_rules(version).is_bound_by_high_watermark
    return replace(loss, committed="certain", was_committed="certain") if is_bound else loss


def _loss_of_copy(known: LogsOverTime, copy: LogCopy, offsets: OffsetRange) -> Loss:
    holders = [
        one
        for one in known.copies
        if one.view.log_start_offset <= offsets.first and offsets.last < one.view.log_end_offset
    ]
    rows = known.reader.batches(copy.view.replica, offsets.first, offsets.last)
    is_marker = (rows["magic"] == NEWEST_MAGIC) & ((rows["attributes"] & CONTROL_BIT) != 0)
    return Loss(
        topic_partition=known.partition,
        offsets=offsets,
        records=int(rows["count"][~is_marker].sum()),
        markers=int(is_marker.sum()),
        committed="possible",
        was_committed="possible",
        is_replaced=False,
        leader_epoch=int(rows["partition_leader_epoch"][-1]) if len(rows) else Absent.UNKNOWN,
        reason="",
        cause=CauseName.RETENTION,
        held_by=tuple(holder_of(one) for one in reversed(holders)),
        citations=(),
    )


def tails_of_copies(known: LogsOverTime, losses: Sequence[Loss]) -> tuple[Loss, ...]:
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
    now = [copy for copy in known.copies if copy.is_in_use]
    guess = choose_leader([copy.view for copy in now], wanted=None, leaderships=())
    if guess is None or guess.view is not leader.view or not guess.tied_with:
        return ()
    found = []
    tied = sorted((copy for copy in now if copy.broker_id in guess.tied_with), key=lambda one: str(one.broker_id))
    for candidate in (leader, *tied):
        others = [copy for copy in known.copies if copy is not candidate]
        lost = lost_batches(candidate, others, known.agreement, known.reader)
        losses = find_losses(candidate, lost, judge, known.reader, deleted_below=known.deleted.below)
        records = sum(loss.records for loss, _ in losses if loss.was_committed != "no")
        found.append(Candidate(broker_id=candidate.broker_id, records=records))
    return tuple(found)


def _by_whole_account(known: LogsOverTime, loss: Loss) -> Loss:
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


def _uncertain(loss: Loss, why: str) -> Loss:
    """Return the loss where nothing about it is certain: by a leader that no input shows, or in an order of snapshots that is in doubt."""
    if loss.was_committed != "certain":
        return loss
    return replace(loss, committed="possible", was_committed="possible", reason=f"{loss.reason}; {why}")
