"""Known bugs of Kafka by the traces that they leave in files and truncations."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable
from kforensics.protocol.epochs import epoch_at
from kforensics.protocol.known_bugs import RECOVERY_IO_ERROR
from kforensics.protocol.versions import PROTOCOL_RULES
from kforensics.reconcile.bugs.evidence import RULES, BugTrace, Sign, SignKind, TraceEvidence, rule, traced
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.losses import Loss
from kforensics.reconcile.history.residuals import Residual
from kforensics.reconcile.history.truncations import ObservedTruncation
from kforensics.reconcile.observed.facts import BrokerVersions, Leadership
from kforensics.reconcile.observed.logged_truncations import LoggedTruncation
from kforensics.reconcile.replicas.leader import newest_magic
from kforensics.units import METADATA_TOPICS

EPOCH_FILE = "leader-epoch-checkpoint"


@rule("KAFKA-10432", "KAFKA-16541", "KAFKA-9892", "KAFKA-3968", "KAFKA-9491", "KAFKA-5634", "KAFKA-3330")
def of_files(evidence: TraceEvidence) -> Iterator[BugTrace]:
    """Yield checkpoints and producer snapshots that contradict the log."""
    for copy in evidence.replicas:
        yield from _in_files_of(copy, evidence)


def _in_files_of(copy: LogCopy, evidence: TraceEvidence) -> Iterator[BugTrace]:
    view, replica = copy.view, copy.view.replica
    broker, end = replica.broker_id, view.log_end_offset
    claimed, recorded = replica.checkpoint_epochs, replica.high_watermark
    first = view.batch_epochs[0] if view.batch_epochs else None
    entries = () if isinstance(claimed, Absent) else claimed
    # When the log start offset rises, the epochs are removed at once and the segments later.
    risen = max((other.view.log_start_offset for other in evidence.copies), default=0)
    if (
        entries
        and first is not None
        and first.leader_epoch == 0 < entries[0].leader_epoch
        and entries[0].start_offset > risen
    ):
        trace = f"broker {broker}'s {EPOCH_FILE} lacks epoch 0, which its batches carry"
        yield BugTrace("KAFKA-10432", broker, trace, (replica.cite(EPOCH_FILE),))
    is_empty = not isinstance(claimed, Absent) and not entries and first is not None
    if is_empty or any(path.endswith(EPOCH_FILE) for path in replica.damage):
        trace = f"broker {broker}'s {EPOCH_FILE} is empty or unreadable"
        yield BugTrace("KAFKA-16541", broker, trace, (replica.cite(EPOCH_FILE),))
    damaged_snapshots = sorted(path for path in replica.damage if path.endswith(".snapshot"))
    if damaged_snapshots:
        trace = f"a producer snapshot of broker {broker} is damaged"
        yield BugTrace("KAFKA-9892", broker, trace, (Citation(input=replica.input, path=damaged_snapshots[0]),))
    point = replica.recovery_point
    if not isinstance(point, Absent) and point.value > end:
        trace = f"broker {broker}'s recovery point {point.value} lies past its log end {end}"
        yield BugTrace("KAFKA-3968", broker, trace, (point.citation,), is_conclusive=False)
    if not isinstance(recorded, Absent) and recorded.value < view.log_start_offset:
        trace = f"broker {broker}'s high watermark {recorded.value} lies below its log start {view.log_start_offset}"
        for jira in ("KAFKA-9491", "KAFKA-5634"):
            yield BugTrace(jira, broker, trace, (recorded.citation,), is_conclusive=False)
    cleaned = replica.cleaner_point
    if not isinstance(cleaned, Absent) and cleaned.value > end:
        trace = f"broker {broker}'s cleaner checkpoint {cleaned.value} lies past its log end {end}"
        yield BugTrace("KAFKA-3330", broker, trace, (cleaned.citation,))


@rule("KAFKA-10706")
def of_stuck_replicas(evidence: TraceEvidence) -> Iterator[BugTrace]:
    """Yield an epoch that begins at the log end of a replica that is behind the others (KAFKA-10706)."""
    newest = evidence.leaderships[-1] if evidence.leaderships else None
    for copy in evidence.copies:
        claimed = copy.view.replica.checkpoint_epochs
        if copy is evidence.leader or not copy.is_in_use or isinstance(claimed, Absent) or not claimed:
            continue
        is_out = newest is not None and isinstance(newest.isr, frozenset) and copy.broker_id not in newest.isr
        if evidence.leader is None or evidence.leader.view.log_end_offset <= copy.view.log_end_offset:
            continue
        if is_out and claimed[-1].start_offset == copy.view.log_end_offset and len(claimed) > 1:
            trace = f"the last leader epoch of broker {copy.broker_id} begins at its log end, and it is not in sync"
            yield BugTrace(
                "KAFKA-10706", copy.broker_id, trace, (copy.view.replica.cite(EPOCH_FILE),), is_conclusive=False
            )


@rule("KAFKA-7601")
def of_formats(evidence: TraceEvidence) -> Iterator[BugTrace]:
    """Yield leader epochs of a log whose newest batches are of an old message format (KAFKA-7601)."""
    for copy in evidence.replicas:
        yield from _epochs_of_old_format(copy)


def _epochs_of_old_format(copy: LogCopy) -> Iterator[BugTrace]:
    view, replica = copy.view, copy.view.replica
    claimed, newest = replica.checkpoint_epochs, newest_magic(view)
    if newest is None or newest >= 2 or isinstance(claimed, Absent) or not claimed:
        return
    if any(2 in segment.magics for segment in view.segments):
        trace = f"broker {replica.broker_id}'s {EPOCH_FILE} names epochs, and its newest batches are of message format {newest}"
        yield BugTrace("KAFKA-7601", replica.broker_id, trace, (replica.cite(EPOCH_FILE),))


@rule("KAFKA-14055")
def of_lost_markers(evidence: TraceEvidence) -> Iterator[BugTrace]:
    """Yield transactional records below the cleaner's checkpoint with no end of their transaction behind them (KAFKA-14055).

    Cleaners stop at the first open transaction, so each that they have passed had an end. A truncation may have removed it too, but that lowers the checkpoint: then the trace
    shows less.
    """
    for copy in evidence.replicas:
        yield from _lost_marker(evidence, copy)


def _lost_marker(evidence: TraceEvidence, copy: LogCopy) -> Iterator[BugTrace]:
    view, replica = copy.view, copy.view.replica
    cleaned = replica.cleaner_point
    if replica.unread_below > view.log_start_offset:
        return  # markers can be in what was not read
    if isinstance(cleaned, Absent) or not view.log_start_offset < cleaned.value <= view.log_end_offset:
        return
    rows = evidence.reader.batches(replica, view.log_start_offset, view.log_end_offset - 1)
    rows = rows[(rows["magic"] == 2) & ((rows["attributes"] & TRANSACTIONAL_BIT) != 0)]
    is_marker = (rows["attributes"] & CONTROL_BIT) != 0
    data, markers = rows[~is_marker & (rows["count"] > 0) & (rows["last_offset"] < cleaned.value)], rows[is_marker]
    ends = _last_offsets(markers, "base_offset")
    for producer, last in _last_offsets(data, "last_offset").items():
        if ends.get(producer, -1) <= last:
            trace = f"offset {last} of broker {replica.broker_id} belongs to a transaction of producer {producer} that was cleaned, and has no end"
            yield BugTrace(
                "KAFKA-14055",
                replica.broker_id,
                trace,
                (cleaned.citation,),
                is_conclusive=not evidence.truncations and not evidence.losses,
            )
            return


def _last_offsets(rows: BatchTable, name: str) -> dict[int, int]:
    """Return the largest offset of each producer in a column, in the order of the producer ids."""
    order = np.lexsort((rows[name], rows["producer_id"]))
    # Of equal keys the last one stays, which is the largest.
    return dict(zip(rows["producer_id"][order].tolist(), rows[name][order].tolist(), strict=True))


@rule("KAFKA-14616")
def of_stale_directories(evidence: TraceEvidence) -> Iterator[BugTrace]:
    """Yield a directory of an earlier topic in use by a broker whose log directory had failed (KAFKA-14616)."""
    for sign in evidence.signs:
        if sign.kind is not SignKind.DIRECTORY_FAILED or not isinstance(sign.broker_id, int):
            continue
        directory = evidence.stale_directories.get(sign.broker_id)
        if directory is not None:
            trace = f"broker {sign.broker_id} serves a directory of an earlier topic of the name, and a log directory of it had failed"
            yield BugTrace("KAFKA-14616", sign.broker_id, trace, (directory, *sign.citations), is_conclusive=False)


@rule("KAFKA-1211", "KAFKA-6361", "KAFKA-6857", "KAFKA-7164")
def of_residuals(evidence: TraceEvidence) -> Iterator[BugTrace]:
    """Yield replicas that stay different, by the protocol that leaves the difference (KAFKA-1211, KAFKA-6361, KAFKA-6857, KAFKA-7164)."""
    for one in evidence.residuals:
        where = (
            f"broker {one.broker_id} differs from the leader from offset {one.offset} on and does not truncate there"
        )
        jira = PROTOCOL_RULES[one.protocol].leaves_divergence
        if jira == "KAFKA-6361" and one.old_format:
            jira = "KAFKA-6857"
        if _is_within_one_leader(one, evidence):
            jira, where = "KAFKA-7164", f"{where}; one broker was leader in all the epochs between"
        if jira is not None:
            is_conclusive = jira != "KAFKA-1211"  # a lost disk cache leaves the same
            yield BugTrace(jira, one.broker_id, where, one.citations, is_conclusive=is_conclusive)


def _is_within_one_leader(one: Residual, evidence: TraceEvidence) -> bool:
    """Return whether the records of follower and leader are of different epochs of one leader, without another leader between."""
    copy = next((c for c in evidence.copies if c.broker_id == one.broker_id and c.is_in_use), None)
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
def of_truncations(evidence: TraceEvidence) -> Iterator[BugTrace]:
    """Yield truncations below or to a high watermark, to 0, of a whole log, and by epoch on an old message format."""
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
) -> BugTrace:
    return BugTrace(
        jira,
        truncation.broker_id,
        trace,
        truncation.citations,
        is_conclusive=is_conclusive,
        truncated_to=truncation.to_offset,
    )


@rule(RECOVERY_IO_ERROR)
def of_emptied_segments(evidence: TraceEvidence) -> Iterator[BugTrace]:
    """Yield segments that recovery emptied, as it does after an I/O error since 4.0, and also for batches out of order; conclusive where an earlier snapshot shows one sound."""
    for line in evidence.logged:
        if not line.empties_segment or line.has_effect is False:
            continue
        before = next(
            (c.before for c in evidence.truncations if c.broker_id == line.broker_id and c.to_offset == line.to_offset),
            None,
        )
        was_sound = before is not None and _is_sound_from(before, line.to_offset)
        shown = "; an earlier snapshot shows it sound" if was_sound else ""
        yield BugTrace(
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
    """Return whether the line reports a truncation below the replica's own high watermark."""
    return isinstance(line.high_watermark, int) and line.to_offset < line.high_watermark


@rule("KAFKA-7415")
def of_unwritten_epochs(evidence: TraceEvidence) -> Iterator[BugTrace]:
    """Yield leaders whose checkpoint lacks one of their epochs, if a follower then truncated against the rules (KAFKA-7415)."""
    newest = max((state.leader_epoch for state in evidence.leaderships), default=-1)
    for broker, target in sorted(evidence.disagreeing, key=str):
        for state in evidence.leaderships:
            copy = next((c for c in evidence.copies if c.broker_id == state.leader and not c.is_remnant), None)
            claimed = copy.view.replica.checkpoint_epochs if copy is not None else Absent.UNKNOWN
            if copy is None or isinstance(claimed, Absent) or state.leader_epoch >= newest:
                continue
            if state.leader_epoch in {entry.leader_epoch for entry in claimed}:
                continue
            trace = f"broker {state.leader} was leader in epoch {state.leader_epoch} and its {EPOCH_FILE} does not name it; broker {broker} truncated to {target}"
            citations = (state.citation, copy.view.replica.cite(EPOCH_FILE))
            yield BugTrace("KAFKA-7415", broker, trace, citations, truncated_to=target)
            break


@rule("KAFKA-7128")
def of_early_joins(evidence: TraceEvidence) -> Iterator[BugTrace]:
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
        yield BugTrace("KAFKA-7128", before.leader, trace, (state.citation, *loss.citations), is_conclusive=has_joined)
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
def of_metadata_truncations(evidence: TraceEvidence) -> Iterator[BugTrace]:
    """Yield truncations of the metadata log that removed records which the final leader still holds (KAFKA-12460)."""
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
def of_fetchers(evidence: TraceEvidence) -> Iterator[BugTrace]:
    """Yield traces of fetcher threads: a truncation by a stale fetcher, and a failed fetch below the leader's log start offset."""
    start = evidence.leader.view.log_start_offset if evidence.leader is not None else None
    for sign in evidence.signs:
        copy = next((c for c in evidence.copies if c.broker_id == sign.broker_id and c.is_in_use), None)
        if sign.kind is SignKind.STALE_FETCHER:
            trace = f"a fetcher of broker {sign.broker_id} that another leader had replaced truncated the log to {sign.offset}"
            truncated_to = sign.offset if isinstance(sign.offset, int) else Absent.NOT_APPLICABLE
            yield BugTrace("KAFKA-13207", sign.broker_id, trace, sign.citations, truncated_to=truncated_to)
        if sign.kind is SignKind.FETCH_FAILED and copy is not None and start is not None:
            end = copy.view.log_end_offset
            if end < start:
                trace = (
                    f"broker {sign.broker_id} gave up fetching; its log ends at {end}, the leader's begins at {start}"
                )
                yield BugTrace("KAFKA-12996", sign.broker_id, trace, sign.citations)
        if sign.kind is SignKind.ENTERS_EPOCH and copy is not None:
            yield from _early_batches(evidence, sign, copy)


def _early_batches(evidence: TraceEvidence, sign: Sign, copy: LogCopy) -> Iterator[BugTrace]:
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
        yield BugTrace("KAFKA-18723", sign.broker_id, trace, sign.citations)


_WORDS_OF_BROKERS = {
    SignKind.RECOVERY_AFTER_STOP: ("KAFKA-13315", "broker {} stopped in order, and its next start recovered its logs"),
    SignKind.CLEAN_START_TWICE: (
        "KAFKA-10471",
        "broker {} started twice without recovery and did not stop in order between",
    ),
}


def bug_traces(evidence: TraceEvidence) -> tuple[BugTrace, ...]:
    """Return every known bug whose trace is found, each once per broker and truncation."""
    return _once(_all_seen(evidence), evidence.versions)


def broker_bugs(signs: Iterable[Sign], versions: BrokerVersions) -> tuple[BugTrace, ...]:
    """Return known bugs whose traces are in the brokers' log lines about their starts and stops."""
    seen = []
    for sign in signs:
        if sign.kind in _WORDS_OF_BROKERS:
            jira, words = _WORDS_OF_BROKERS[sign.kind]
            seen.append(
                BugTrace(
                    jira,
                    sign.broker_id,
                    words.format(sign.broker_id),
                    sign.citations,
                    is_conclusive=sign.kind is SignKind.RECOVERY_AFTER_STOP,
                )
            )
    return _once(seen, versions)


def _once(seen: Iterable[BugTrace], versions: BrokerVersions) -> tuple[BugTrace, ...]:
    found: dict[tuple[str, int | Absent, int | Absent], BugTrace] = {}
    for one in seen:
        trace = traced(one, versions)
        if trace is not None:
            found.setdefault((one.jira, one.broker_id, one.truncated_to), trace)
    return tuple(found.values())


def doubted_high_watermarks(
    logged: Sequence[LoggedTruncation], versions: BrokerVersions, ordinary_truncations: frozenset[int]
) -> dict[int, int]:
    """Return by broker the offset from which its recorded high watermark proves nothing (KAFKA-14704, KAFKA-13141).

    A follower of an affected version raised its high watermark over records that it then truncated; truncations with another explanation do not count.
    """
    doubted: dict[int, int] = {}
    for line in logged:
        broker = line.broker_id
        if not isinstance(broker, int) or not is_below_high_watermark(line) or line.to_offset in ordinary_truncations:
            continue
        if any(versions.confidence(broker, jira) for jira in ("KAFKA-14704", "KAFKA-13141")):
            doubted[broker] = min(line.to_offset, doubted.get(broker, line.to_offset))
    return doubted


def _all_seen(evidence: TraceEvidence) -> Iterator[BugTrace]:
    for each, names in RULES.items():
        for seen in each(evidence):
            assert seen.jira in names, f"{each.__name__} is not registered for {seen.jira}"
            yield seen
