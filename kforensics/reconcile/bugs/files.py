"""Find traces of known bugs in the files of a replica."""

from collections.abc import Iterator

import numpy as np

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable
from kforensics.reconcile.bugs.evidence import Seen, TraceEvidence, rule
from kforensics.reconcile.bugs.log_signs import SignKind
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.losses import is_in_use
from kforensics.reconcile.replicas.leader import newest_magic

EPOCH_FILE = "leader-epoch-checkpoint"


@rule("KAFKA-10432", "KAFKA-16541", "KAFKA-9892", "KAFKA-3968", "KAFKA-9491", "KAFKA-5634", "KAFKA-3330")
def of_files(evidence: TraceEvidence) -> Iterator[Seen]:
    """Yield checkpoints and producer snapshots that contradict the log.

    Args:
        evidence: what is known of one partition.
    """
    for copy in evidence.replicas:
        yield from _in_files_of(copy, evidence)


def _in_files_of(copy: LogCopy, evidence: TraceEvidence) -> Iterator[Seen]:
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
        yield Seen("KAFKA-10432", broker, trace, (replica.cite(EPOCH_FILE),))
    is_empty = not isinstance(claimed, Absent) and not entries and first is not None
    if is_empty or any(path.endswith(EPOCH_FILE) for path in replica.damage):
        trace = f"broker {broker}'s {EPOCH_FILE} is empty or unreadable"
        yield Seen("KAFKA-16541", broker, trace, (replica.cite(EPOCH_FILE),))
    damaged_snapshots = sorted(path for path in replica.damage if path.endswith(".snapshot"))
    if damaged_snapshots:
        trace = f"a producer snapshot of broker {broker} is damaged"
        yield Seen("KAFKA-9892", broker, trace, (Citation(input=replica.input, path=damaged_snapshots[0]),))
    point = replica.recovery_point
    if not isinstance(point, Absent) and point.value > end:
        trace = f"broker {broker}'s recovery point {point.value} lies past its log end {end}"
        yield Seen("KAFKA-3968", broker, trace, (point.citation,), is_conclusive=False)
    if not isinstance(recorded, Absent) and recorded.value < view.log_start_offset:
        trace = f"broker {broker}'s high watermark {recorded.value} lies below its log start {view.log_start_offset}"
        for jira in ("KAFKA-9491", "KAFKA-5634"):
            yield Seen(jira, broker, trace, (recorded.citation,), is_conclusive=False)
    cleaned = replica.cleaner_point
    if not isinstance(cleaned, Absent) and cleaned.value > end:
        trace = f"broker {broker}'s cleaner checkpoint {cleaned.value} lies past its log end {end}"
        yield Seen("KAFKA-3330", broker, trace, (cleaned.citation,))


@rule("KAFKA-10706")
def of_stuck_replicas(evidence: TraceEvidence) -> Iterator[Seen]:
    """Yield an epoch that begins at the log end of a replica that is behind the others (KAFKA-10706).

    Args:
        evidence: what is known of one partition.
    """
    newest = evidence.leaderships[-1] if evidence.leaderships else None
    for copy in evidence.copies:
        claimed = copy.view.replica.checkpoint_epochs
        if copy is evidence.leader or not is_in_use(copy) or isinstance(claimed, Absent) or not claimed:
            continue
        is_out = newest is not None and isinstance(newest.isr, frozenset) and copy.broker_id not in newest.isr
        if evidence.leader is None or evidence.leader.view.log_end_offset <= copy.view.log_end_offset:
            continue
        if is_out and claimed[-1].start_offset == copy.view.log_end_offset and len(claimed) > 1:
            trace = f"the last leader epoch of broker {copy.broker_id} begins at its log end, and it is not in sync"
            yield Seen("KAFKA-10706", copy.broker_id, trace, (copy.view.replica.cite(EPOCH_FILE),), is_conclusive=False)


@rule("KAFKA-7601")
def of_formats(evidence: TraceEvidence) -> Iterator[Seen]:
    """Yield leader epochs of a log whose newest batches are of an old message format (KAFKA-7601).

    Args:
        evidence: what is known of one partition.
    """
    for copy in evidence.replicas:
        yield from _epochs_of_old_format(copy)


def _epochs_of_old_format(copy: LogCopy) -> Iterator[Seen]:
    view, replica = copy.view, copy.view.replica
    claimed, newest = replica.checkpoint_epochs, newest_magic(view)
    if newest is None or newest >= 2 or isinstance(claimed, Absent) or not claimed:
        return
    if any(2 in segment.magics for segment in view.segments):
        trace = f"broker {replica.broker_id}'s {EPOCH_FILE} names epochs, and its newest batches are of message format {newest}"
        yield Seen("KAFKA-7601", replica.broker_id, trace, (replica.cite(EPOCH_FILE),))


@rule("KAFKA-14055")
def of_lost_markers(evidence: TraceEvidence) -> Iterator[Seen]:
    """Yield transactional records below the cleaner's checkpoint with no end of their transaction behind them (KAFKA-14055).

    Cleaners stop at the first open transaction, so each that they have passed had an end. A truncation may have removed it too, but that lowers the checkpoint: then the trace
    shows less.

    Args:
        evidence: what is known of one partition.
    """
    for copy in evidence.replicas:
        yield from _lost_marker(evidence, copy)


def _lost_marker(evidence: TraceEvidence, copy: LogCopy) -> Iterator[Seen]:
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
            yield Seen(
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
def of_stale_directories(evidence: TraceEvidence) -> Iterator[Seen]:
    """Yield a directory of an earlier topic in use by a broker whose log directory had failed (KAFKA-14616).

    Args:
        evidence: what is known of one partition.
    """
    for sign in evidence.signs:
        if sign.kind is not SignKind.DIRECTORY_FAILED or not isinstance(sign.broker_id, int):
            continue
        directory = evidence.stale_directories.get(sign.broker_id)
        if directory is not None:
            trace = f"broker {sign.broker_id} serves a directory of an earlier topic of the name, and a log directory of it had failed"
            yield Seen("KAFKA-14616", sign.broker_id, trace, (directory, *sign.citations), is_conclusive=False)
