"""A replica as its broker will have it once the log is loaded: offsets, leader epochs and high watermark that the protocol then acts on."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.evidence.model import Citation, Replica, Segment
from kforensics.evidence.replica.segments import NO_END_OF_RECOVERY, add_digests, digest_batches
from kforensics.protocol import epochs as epoch_rules
from kforensics.protocol.truncation import LogState
from kforensics.units import EpochEntry, OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedRange:
    """Offsets that a replica can't give any more, and the bytes that held them."""

    offsets: OffsetRange
    citation: Citation


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """One replica after its broker's start: what recovery leaves, and what the leader epoch cache will hold."""

    replica: Replica
    log_start_offset: int
    content_start_offset: int
    """First offset on local disk; above `log_start_offset` where older segments are in remote storage."""
    log_end_offset: int
    cut_by_recovery: Citation | None
    """Where recovery stops, when it cuts the log at start."""
    segments: tuple[Segment, ...]
    """Those that recovery keeps."""
    epochs: tuple[EpochEntry, ...]
    """The leader epoch cache that the broker will act on."""
    batch_epochs: tuple[EpochEntry, ...]
    """What the batches say."""
    epochs_from: str
    """`checkpoint`, or `batches` where no usable checkpoint file is there."""
    high_watermark: int
    """The checkpointed value clamped into the log, as brokers do at load; the log start where none is recorded."""
    cleaned_below: int
    damaged: tuple[DamagedRange, ...]
    oldest_magic: int | Absent

    def state(self) -> LogState:
        """The numbers that the truncation rules work on."""
        return LogState(
            epochs=self.epochs,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            high_watermark=self.high_watermark,
        )

    def digests(self) -> NDArray[np.void]:
        """One digest a bucket over all segments that are kept."""
        return add_digests([segment.digests for segment in self.segments])


def view_replica(replica: Replica) -> LogView:
    """The replica as its broker will have it after loading (LogLoader, UnifiedLog, LeaderEpochFileCache; 4.3.1)."""
    segments, cut = _recovered(replica)
    log_end = _end_of(segments, replica)
    first_base = segments[0].base_offset if segments else replica.lineage.log_start_offset
    log_start = replica.log_start.value if not isinstance(replica.log_start, Absent) else first_base
    if log_end < log_start:
        # The broker deletes all segments and starts an empty one at the log start.
        log_end, segments = log_start, ()
    batch_epochs = epochs_of(segments)
    epochs, origin = _epoch_cache(replica, batch_epochs, log_start, log_end)
    recorded = replica.high_watermark.value if not isinstance(replica.high_watermark, Absent) else 0
    return LogView(
        replica=replica,
        log_start_offset=log_start,
        content_start_offset=max(log_start, first_base),
        log_end_offset=log_end,
        cut_by_recovery=cut,
        segments=segments,
        epochs=epochs,
        batch_epochs=batch_epochs,
        epochs_from=origin,
        high_watermark=min(max(recorded, log_start), log_end),
        cleaned_below=_cleaned_below(replica, segments),
        damaged=_damaged_ranges(replica, segments),
        oldest_magic=min((m for s in segments for m in s.magics), default=Absent.NOT_APPLICABLE),
    )


def epochs_of(segments: tuple[Segment, ...]) -> tuple[EpochEntry, ...]:
    """Where each leader epoch begins, from the batches: one entry each time the epoch changes along the log."""
    out: list[EpochEntry] = []
    for segment in segments:
        for entry in segment.epochs:
            if not out or out[-1].leader_epoch != entry.leader_epoch:
                out.append(entry)
    return tuple(out)


def _recovered(replica: Replica) -> tuple[tuple[Segment, ...], Citation | None]:
    """Segments that start-up recovery keeps, the one it cuts shortened, and where it cuts.

    Without a clean-shutdown marker the broker scans the segment that holds the recovery point and all above it; at the first batch that fails
    it cuts the segment and deletes those behind.
    """
    if replica.clean_shutdown:
        return replica.segments, None
    recovery_point = replica.recovery_point.value if not isinstance(replica.recovery_point, Absent) else 0
    floor = max((s.base_offset for s in replica.segments if s.base_offset <= recovery_point), default=0)
    for at, segment in enumerate(replica.segments):
        if segment.base_offset < floor:
            continue
        fatal = [d for d in segment.damage if d.kind not in NO_END_OF_RECOVERY]
        if fatal:
            first = min(fatal, key=lambda d: d.span.position)
            kept = (*replica.segments[:at], cut_segment(segment, first.span.position))
            return kept, Citation(input=replica.input, path=segment.path, span=first.span)
    return replica.segments, None


def cut_segment(segment: Segment, position: int) -> Segment:
    """The segment as it is when its file ends at `position`, a batch boundary."""
    if isinstance(segment.batches, Absent):
        return _cut_summary(segment, position)
    rows = segment.batches[segment.batches["position"] < position]
    end = int(rows["last_offset"][-1]) + 1 if len(rows) else segment.base_offset
    return replace(
        segment,
        length=position,
        valid_length=position,
        first_offset=int(rows["base_offset"][0]) if len(rows) else Absent.NOT_APPLICABLE,
        last_offset=end - 1 if len(rows) else Absent.NOT_APPLICABLE,
        batch_count=len(rows),
        record_count=int(rows["count"].sum()),
        epochs=tuple(e for e in segment.epochs if e.start_offset < end),
        digests=digest_batches(rows),
        batches=rows,
        damage=(),
    )


def _cut_summary(segment: Segment, position: int) -> Segment:
    """The same for a segment whose table was not kept, from what was counted up to its first batch that fails."""
    end = segment.recovered_end_offset
    is_empty = isinstance(end, Absent)
    last = segment.base_offset if isinstance(end, Absent) else end
    # The digest of the bucket that the cut goes through can't be taken apart: leave it to be read.
    kept = segment.digests[segment.digests["position"] < position][:-1]
    return replace(
        segment,
        length=position,
        valid_length=position,
        first_offset=Absent.NOT_APPLICABLE if is_empty else segment.first_offset,
        last_offset=Absent.NOT_APPLICABLE if is_empty else last - 1,
        batch_count=segment.recovered_batch_count,
        record_count=segment.recovered_record_count,
        epochs=tuple(e for e in segment.epochs if e.start_offset < last),
        digests=kept,
        damage=(),
    )


def _end_of(segments: tuple[Segment, ...], replica: Replica) -> int:
    if not segments:
        return replica.lineage.log_start_offset
    last = segments[-1]
    # The last batch in file order decides, as it does for the broker, also where offsets went backwards.
    return last.base_offset if isinstance(last.last_offset, Absent) else max(last.last_offset + 1, last.base_offset)


def _epoch_cache(
    replica: Replica, batch_epochs: tuple[EpochEntry, ...], log_start: int, log_end: int
) -> tuple[tuple[EpochEntry, ...], str]:
    """The cache after load: the file's lines trimmed to the log, and the epochs that recovery assigns from batches."""
    if isinstance(replica.checkpoint_epochs, Absent):
        return batch_epochs, "batches"
    entries = epoch_rules.truncate_from_end(replica.checkpoint_epochs, log_end)
    if not isinstance(replica.log_start, Absent):
        entries = epoch_rules.truncate_from_start(entries, log_start)
    if not replica.clean_shutdown:
        for entry in batch_epochs:
            if not entries or entry.leader_epoch > entries[-1].leader_epoch:
                entries = (*entries, entry)
    return entries, "checkpoint"


def _cleaned_below(replica: Replica, segments: tuple[Segment, ...]) -> int:
    """Offsets below this may have been compacted: the cleaner's checkpoint, or the last trace that a cleaner leaves in a closed segment."""
    point = replica.cleaner_point.value if not isinstance(replica.cleaner_point, Absent) else 0
    for segment in segments[:-1]:
        if is_cleaned(segment):
            point = max(
                point, segment.base_offset if isinstance(segment.last_offset, Absent) else segment.last_offset + 1
            )
    return point


def is_cleaned(segment: Segment) -> bool:
    """Whether batches of the segment lack records that they were written with (magic 2: count below the last offset delta + 1)."""
    return segment.is_thinned


def _damaged_ranges(replica: Replica, segments: tuple[Segment, ...]) -> tuple[DamagedRange, ...]:
    return tuple(
        DamagedRange(
            offsets=damage.offsets_lost, citation=Citation(input=replica.input, path=segment.path, span=damage.span)
        )
        for segment in segments
        for damage in segment.damage
        if isinstance(damage.offsets_lost, OffsetRange)
    )
