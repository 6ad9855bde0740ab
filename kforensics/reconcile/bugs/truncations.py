"""Find traces of known bugs in truncations, losses and replicas that stay different."""

from collections.abc import Iterator

from kforensics.damage import Absent
from kforensics.protocol.epochs import epoch_at
from kforensics.protocol.known_bugs import RECOVERY_IO_ERROR
from kforensics.protocol.outcome import ProtocolName
from kforensics.reconcile.bugs.evidence import Seen, TraceEvidence, rule
from kforensics.reconcile.bugs.log_signs import Sign, SignKind
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.losses import Loss, is_in_use
from kforensics.reconcile.history.residual_divergence import Residual
from kforensics.reconcile.history.truncations import ObservedTruncation
from kforensics.reconcile.observed.facts import Leadership
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation
from kforensics.units import METADATA_TOPICS

_EPOCH_FILE = "leader-epoch-checkpoint"


@rule("KAFKA-1211", "KAFKA-6361", "KAFKA-6857", "KAFKA-7164")
def of_residuals(evidence: TraceEvidence) -> Iterator[Seen]:
    """Yield replicas that stay different, by the protocol that leaves the difference (KAFKA-1211, KAFKA-6361, KAFKA-6857, KAFKA-7164).

    Args:
        evidence: what is known of one partition.
    """
    for one in evidence.residuals:
        where = (
            f"broker {one.broker_id} differs from the leader from offset {one.offset} on and does not truncate there"
        )
        jira = {ProtocolName.HW: "KAFKA-1211", ProtocolName.KIP_101: "KAFKA-6361"}.get(one.protocol)
        if one.protocol is ProtocolName.KIP_101 and one.old_format:
            jira = "KAFKA-6857"
        if _is_within_one_leader(one, evidence):
            jira, where = "KAFKA-7164", f"{where}; one broker was leader in all the epochs between"
        if jira is not None:
            is_conclusive = jira != "KAFKA-1211"  # a lost disk cache leaves the same
            yield Seen(jira, one.broker_id, where, one.citations, is_conclusive=is_conclusive)


def _is_within_one_leader(one: Residual, evidence: TraceEvidence) -> bool:
    """Return whether the records of follower and leader are of different epochs of one leader, without another leader between."""
    copy = next((c for c in evidence.copies if c.broker_id == one.broker_id and is_in_use(c)), None)
    if copy is None or evidence.leader is None:
        return False
    mine, its = (epoch_at(c.view.batch_epochs, one.offset) for c in (copy, evidence.leader))
    if isinstance(mine, Absent) or isinstance(its, Absent) or mine == its:
        return False
    leaders = {state.leader_epoch: state.leader for state in evidence.leaderships if isinstance(state.leader, int)}
    between = range(min(mine, its), max(mine, its) + 1)
    # An epoch on disk is a claim, and no checksum covers it: there may be far more of them than recorded leaderships.
    if len(between) > len(leaders):
        return False
    leaders_between = {leaders.get(epoch) for epoch in between}
    return None not in leaders_between and len(leaders_between) == 1


@rule("KAFKA-14704", "KAFKA-13141", "KAFKA-1211", "KAFKA-1647", "KAFKA-2143", "KAFKA-7897")
def of_truncations(evidence: TraceEvidence) -> Iterator[Seen]:
    """Yield truncations below or to a high watermark, to 0, of a whole log, and by epoch on an old message format.

    Args:
        evidence: what is known of one partition.
    """
    for line in evidence.logged:
        if not is_below_high_watermark(line) or line.to_offset in evidence.ordinary_truncations:
            continue
        trace = f"broker {line.broker_id} truncated to {line.to_offset}, below its high watermark {line.high_watermark}"
        for jira, is_conclusive in (("KAFKA-14704", True), ("KAFKA-13141", False)):
            yield _seen_in(line, jira, trace, is_conclusive=is_conclusive)
    for truncation in evidence.truncations:
        before = truncation.before.view.replica if truncation.before is not None else None
        if truncation.rule == "high-watermark" or (
            truncation.is_logged and before and _is_at_high_watermark(truncation)
        ):
            trace = f"broker {truncation.broker_id} truncated to its high watermark {truncation.to_offset}"
            yield _seen_in(truncation, "KAFKA-1211", trace)
        if truncation.to_offset == 0 and before is not None and isinstance(before.high_watermark, Absent):
            trace = f"broker {truncation.broker_id} truncated to 0, and no high watermark of it was recorded"
            yield _seen_in(truncation, "KAFKA-1647", trace)
        if truncation.is_full:
            trace = f"broker {truncation.broker_id} discarded its whole log and started again at {truncation.to_offset}"
            yield _seen_in(truncation, "KAFKA-2143", trace, is_conclusive=False)
        magic = truncation.before.view.oldest_magic if truncation.before is not None else Absent.UNKNOWN
        if truncation.rule == "epoch" and isinstance(magic, int) and magic < 2 and before and before.checkpoint_epochs:
            trace = f"broker {truncation.broker_id} truncated a log of the old message format to {truncation.to_offset} by leader epoch"
            yield _seen_in(truncation, "KAFKA-7897", trace)


def _seen_in(
    truncation: ObservedTruncation | LoggedTruncation, jira: str, trace: str, *, is_conclusive: bool = True
) -> Seen:
    return Seen(
        jira,
        truncation.broker_id,
        trace,
        truncation.citations,
        is_conclusive=is_conclusive,
        truncated_to=truncation.to_offset,
    )


@rule(RECOVERY_IO_ERROR)
def of_emptied_segments(evidence: TraceEvidence) -> Iterator[Seen]:
    """Yield segments that recovery emptied, as it does after an I/O error since 4.0, and also for batches out of order.

    Args:
        evidence: what is known of one partition; conclusive is one that an earlier snapshot shows to have been sound.
    """
    for line in evidence.logged:
        if not line.empties_segment or line.has_effect is False:
            continue
        before = next(
            (c.before for c in evidence.truncations if c.broker_id == line.broker_id and c.to_offset == line.to_offset),
            None,
        )
        was_sound = before is not None and _is_sound_from(before, line.to_offset)
        shown = "; an earlier snapshot shows it sound" if was_sound else ""
        yield Seen(
            RECOVERY_IO_ERROR,
            line.broker_id,
            f"start-up recovery of broker {line.broker_id} emptied the segment that begins at offset {line.to_offset}{shown}",
            line.citations,
            is_conclusive=was_sound,
            truncated_to=line.to_offset,
        )


def _is_sound_from(copy: LogCopy, offset: int) -> bool:
    """Return whether there are segments from an offset on, and none of them is damaged."""
    segments = [one for one in copy.view.replica.segments if one.base_offset >= offset]
    return bool(segments) and not any(one.damage for one in segments)


def _is_at_high_watermark(truncation: ObservedTruncation) -> bool:
    recorded = truncation.before.view.replica.high_watermark if truncation.before is not None else Absent.UNKNOWN
    return not isinstance(recorded, Absent) and recorded.value == truncation.to_offset


def is_below_high_watermark(line: LoggedTruncation) -> bool:
    """Return whether the line reports a truncation below the replica's own high watermark.

    Args:
        line: one without a high watermark does not.
    """
    return isinstance(line.high_watermark, int) and line.to_offset < line.high_watermark


@rule("KAFKA-7415")
def of_unwritten_epochs(evidence: TraceEvidence) -> Iterator[Seen]:
    """Yield leaders whose checkpoint lacks one of their epochs, if a follower then truncated against the rules (KAFKA-7415).

    Args:
        evidence: what is known of one partition.
    """
    newest = max((state.leader_epoch for state in evidence.leaderships), default=-1)
    for broker, target in sorted(evidence.disagreeing, key=str):
        for state in evidence.leaderships:
            copy = next((c for c in evidence.copies if c.broker_id == state.leader and not c.is_remnant), None)
            claimed = copy.view.replica.checkpoint_epochs if copy is not None else Absent.UNKNOWN
            if copy is None or isinstance(claimed, Absent) or state.leader_epoch >= newest:
                continue
            if state.leader_epoch in {entry.leader_epoch for entry in claimed}:
                continue
            trace = f"broker {state.leader} was leader in epoch {state.leader_epoch} and its {_EPOCH_FILE} does not name it; broker {broker} truncated to {target}"
            citations = (state.citation, copy.view.replica.cite(_EPOCH_FILE))
            yield Seen("KAFKA-7415", broker, trace, citations, truncated_to=target)
            break


@rule("KAFKA-7128")
def of_early_joins(evidence: TraceEvidence) -> Iterator[Seen]:
    """Yield the first loss of committed records by a clean election without a lost page cache: the new leader joined the ISR too early (KAFKA-7128).

    Args:
        evidence: what is known of one partition; any truncation that shows another reason, or that no line reports, leaves no trace of it.
    """
    if any(
        truncation.rule in {"recovery", "high-watermark"} or not truncation.is_logged
        for truncation in evidence.truncations
    ):
        return
    for loss in evidence.losses:
        election = _election_after(loss, evidence)
        if loss.was_committed != "certain" or election is None:
            continue
        before, state, has_joined = election
        trace = (
            f"broker {state.leader} took over cleanly in leader epoch {state.leader_epoch} without offset {loss.offsets.first},"
            f" which broker {before.leader} had committed in epoch {before.leader_epoch}"
        )
        yield Seen("KAFKA-7128", before.leader, trace, (state.citation, *loss.citations), is_conclusive=has_joined)
        return


def _election_after(loss: Loss, evidence: TraceEvidence) -> tuple[Leadership, Leadership, bool] | None:
    """Return the clean election that ended the epoch of the loss: the last state of the epoch, the first of the new leader, and whether that leader joined the ISR in the epoch."""
    if not isinstance(loss.leader_epoch, int) or any(
        truncation.rule == "unknown" for truncation in evidence.truncations if truncation.is_full
    ):
        return None
    term = [state for state in evidence.leaderships if state.leader_epoch == loss.leader_epoch]
    after = next(
        (s for s in evidence.leaderships if s.leader_epoch > loss.leader_epoch and isinstance(s.leader, int)), None
    )
    if not term or after is None or after.unclean or isinstance(term[-1].leader, Absent):
        return None
    members = [state.isr for state in term if isinstance(state.isr, frozenset)]
    if not members or after.leader == term[-1].leader or after.leader not in members[-1]:
        return None
    return term[-1], after, any(after.leader not in isr for isr in members)


@rule("KAFKA-12460")
def of_metadata_truncations(evidence: TraceEvidence) -> Iterator[Seen]:
    """Yield truncations of the metadata log that removed records which the final leader still holds (KAFKA-12460).

    Args:
        evidence: what is known of the metadata log.
    """
    if evidence.leader is None or evidence.leader.view.replica.topic_partition.topic not in METADATA_TOPICS:
        return
    for truncation in evidence.truncations:
        if truncation.before is None or truncation.before not in evidence.copies or truncation.is_full:
            continue
        held = min(evidence.agree_until(truncation.before.view, evidence.leader.view), truncation.from_offset)
        if held > truncation.to_offset:
            trace = f"node {truncation.broker_id} truncated its metadata log to {truncation.to_offset}; the leader holds the same records up to {held}"
            yield _seen_in(truncation, "KAFKA-12460", trace)


@rule("KAFKA-13207", "KAFKA-12996", "KAFKA-18723")
def of_fetchers(evidence: TraceEvidence) -> Iterator[Seen]:
    """Yield traces of fetcher threads: a truncation by a stale fetcher, and a failed fetch below the leader's log start offset.

    Args:
        evidence: what is known of one partition.
    """
    start = evidence.leader.view.log_start_offset if evidence.leader is not None else None
    for sign in evidence.signs:
        copy = next((c for c in evidence.copies if c.broker_id == sign.broker_id and is_in_use(c)), None)
        if sign.kind is SignKind.STALE_FETCHER:
            trace = f"a fetcher of broker {sign.broker_id} that another leader had replaced truncated the log to {sign.offset}"
            truncated_to = sign.offset if isinstance(sign.offset, int) else Absent.NOT_APPLICABLE
            yield Seen("KAFKA-13207", sign.broker_id, trace, sign.citations, truncated_to=truncated_to)
        if sign.kind is SignKind.FETCH_FAILED and copy is not None and start is not None:
            end = copy.view.log_end_offset
            if end < start:
                trace = (
                    f"broker {sign.broker_id} gave up fetching; its log ends at {end}, the leader's begins at {start}"
                )
                yield Seen("KAFKA-12996", sign.broker_id, trace, sign.citations)
        if sign.kind is SignKind.ENTERS_EPOCH and copy is not None:
            yield from _early_batches(evidence, sign, copy)


def _early_batches(evidence: TraceEvidence, sign: Sign, copy: LogCopy) -> Iterator[Seen]:
    """Yield batches of an epoch below the offset at which the follower entered it, without a truncation since (KAFKA-18723)."""
    began = next(
        (e.start_offset for e in copy.view.batch_epochs if e.leader_epoch == sign.leader_epoch), Absent.UNKNOWN
    )
    if not isinstance(began, int) or not isinstance(sign.offset, int) or began >= sign.offset:
        return
    truncated_since = any(
        line.broker_id == sign.broker_id
        and line.has_effect is not False
        and line.to_offset <= sign.offset
        and not (isinstance(line.time_ms, int) and isinstance(sign.time_ms, int) and line.time_ms < sign.time_ms)
        for line in evidence.logged
    )
    if not truncated_since:
        trace = (
            f"broker {sign.broker_id} held batches of leader epoch {sign.leader_epoch} from {began} on"
            f" when it entered that epoch at {sign.offset}"
        )
        yield Seen("KAFKA-18723", sign.broker_id, trace, sign.citations)
