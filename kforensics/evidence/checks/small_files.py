"""The small files of a log directory and of a partition directory, checked against the log: checkpoints, leader epochs, metadata snapshots, indexes.

An index is held against its segment by what every version's entries have in common. An entry's offset is the first of an append up to 1.1, the last of the
whole append from 2.0 and the last of its batch from 4.1: it need not be an offset of the log. Its position is a batch's start, that batch begins at or below
the offset, and the next entry's batch begins above it. A time entry's offset lies in a batch whose largest timestamp is the entry's, and no batch before it
has a larger one.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.errors import FormatError
from kforensics.evidence.checks.context import PartitionContext, base_offset_of, mismatch
from kforensics.evidence.checks.segment_scan import NO_BATCH, UNREADABLE, EpochRun, SegmentScan
from kforensics.evidence.checks.segments import ScannedSegment, longest_batch
from kforensics.evidence.model import CheckpointValue
from kforensics.formats.checkpoint.lines import LeaderEpochCheckpoint, LeaderEpochLine
from kforensics.formats.index import OFFSET_ENTRY_LENGTH, TIME_ENTRY_LENGTH, SparseIndex, entry_span
from kforensics.formats.log.batch_table import CONTROL_BIT
from kforensics.formats.log.batches import iter_batch_records
from kforensics.formats.primitives.text_lines import DamageList
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import EvidenceFile
from kforensics.source.naming import FileKind
from kforensics.units import OffsetRange


def check_checkpoints(context: PartitionContext, segments: Sequence[ScannedSegment]) -> tuple[tuple[str, Damage], ...]:
    """Return path and damage of each checkpoint line that the log contradicts."""
    if not segments:
        return ()
    end = max(segment.claimed_end_offset for segment in segments)
    # A directory that is moved, stray or deleted shares its name in the checkpoints with the live one.
    if not context.is_live:
        return ()
    explained = {base_offset_of(file) for file in context.of_kind(FileKind.PRODUCER_SNAPSHOT)}
    longest = longest_batch(segments)
    found = []
    named = (("recovery point", context.recovery_point), ("high watermark", context.high_watermark))
    highest = max((value.value for _, value in named if isinstance(value, CheckpointValue)), default=0)
    for words, value in named:
        if isinstance(value, CheckpointValue) and value.value > end:
            if value.value in explained and (longest is None or value.value - end <= longest):
                continue
            is_missing = context.clean_shutdown is True and value.value == highest
            found.append(_missing(words, value, end) if is_missing else _above_end(words, value, end, context))
            highest = -1 if is_missing else highest
    cleaned, start = context.cleaner_point, context.log_start
    if isinstance(cleaned, CheckpointValue) and cleaned.value > end:
        # A cleaner passes committed records alone, and a truncation takes its line along: it begins anew at the log start.
        found.append(_above_end("cleaner's point", cleaned, end, context))
    if isinstance(start, CheckpointValue) and start.value > end:
        # A broker that loads such a log deletes every segment and begins an empty one at the log start.
        found.append(_line(start, f"a log start of at most {end}, the log end", "log start", Gravity.DAMAGE))
    return tuple(found)


def _above_end(words: str, value: CheckpointValue, end: int, context: PartitionContext) -> tuple[str, Damage]:
    gravity = Gravity.STALE if context.clean_shutdown is not True else Gravity.DAMAGE
    return _line(value, f"a {words} of at most {end}, the log end", words, gravity)


def _missing(words: str, value: CheckpointValue, end: int) -> tuple[str, Damage]:
    return value.citation.path, Damage(
        span=value.citation.span if isinstance(value.citation.span, Span) else Span(0, 0),
        kind=DamageKind.MISSING,
        expected=f"a log that reaches to its {words}",
        found=f"line {value.citation.line}: {words} {value.value}, and a log that ends at {end}",
        gravity=Gravity.DAMAGE,
        offsets_lost=OffsetRange(end, value.value - 1),
    )


def _line(value: CheckpointValue, expected: str, words: str, gravity: Gravity) -> tuple[str, Damage]:
    span = value.citation.span if isinstance(value.citation.span, Span) else Span(0, 0)
    damage = mismatch(
        span, expected=expected, found=f"line {value.citation.line}: {words} {value.value}", gravity=gravity
    )
    return value.citation.path, damage


def check_epochs(
    context: PartitionContext,
    checkpoint: LeaderEpochCheckpoint,
    segments: Sequence[ScannedSegment],
    damaged: AbstractSet[tuple[str, int]] = frozenset(),
) -> tuple[Damage, ...]:
    """Return damage of lines that contradict the batches, and of batches whose epoch the file does not know."""
    runs = [
        run
        for segment in segments
        for run in segment.scan.epoch_runs
        if (segment.file.path, run.position) not in damaged
    ]
    end = max((segment.end_offset for segment in segments), default=0)
    gravity = Gravity.STALE if context.may_recover(end) else Gravity.DAMAGE
    lenient = context.clean_shutdown is not True or is_raised(context, checkpoint)
    lines = checkpoint.lines[1:] if lenient else checkpoint.lines
    found = [_line_damage(line, runs, end) for line in lines]
    damage = [place for place in found if place is not None]
    if checkpoint.lines and not checkpoint.damage:
        damage += _unknown_epochs(checkpoint, runs, gravity)
    return tuple(damage)


def is_raised(context: PartitionContext, checkpoint: LeaderEpochCheckpoint) -> bool:
    """Return whether the first line is at or below the log start offset, to which retention or DeleteRecords moved it: batches below it no longer belong to the log."""
    start = context.log_start
    return (
        bool(checkpoint.lines)
        and isinstance(start, CheckpointValue)
        and checkpoint.lines[0].start_offset <= start.value
    )


def settle_fallen_epochs(
    checkpoint: LeaderEpochCheckpoint, runs: Sequence[EpochRun], damage: Iterable[Damage]
) -> tuple[Damage, ...]:
    """Return the damage with batches of a leader epoch below the one before made stale where the checkpoint knows the epoch from the very same offset.

    One log then holds two histories, as the truncation of 0.11 to 1.1 could leave it (KIP-279); a flipped bit
    leaves no such line.
    """
    known = {(line.leader_epoch, line.start_offset) for line in checkpoint.lines}
    recorded = {run.position for run in runs if (run.leader_epoch, run.first_offset) in known}
    return tuple(
        replace(place, gravity=Gravity.STALE, cause=Absent.UNKNOWN)
        if place.kind is DamageKind.EPOCH and place.span.position in recorded
        else place
        for place in damage
    )


def _line_damage(line: LeaderEpochLine, runs: Sequence[EpochRun], log_end: int) -> Damage | None:
    if line.start_offset >= log_end:
        return None  # a term without records, or stale and dropped at load: both normal
    for run in runs:
        if run.leader_epoch == line.leader_epoch and run.first_offset < line.start_offset:
            expected = f"a start at or below offset {run.first_offset}, where a batch of leader epoch {run.leader_epoch} begins"
            return _contradiction(line, expected, Gravity.DAMAGE)
        if 0 <= run.leader_epoch < line.leader_epoch and run.last_offset >= line.start_offset:
            is_in_log = any(
                one.leader_epoch == line.leader_epoch and one.first_offset == line.start_offset for one in runs
            )
            gravity = Gravity.STALE if is_in_log else Gravity.DAMAGE
            expected = f"a start above offset {run.last_offset}, where a batch of leader epoch {run.leader_epoch} ends"
            return _contradiction(line, expected, gravity)
    return None


def _contradiction(line: LeaderEpochLine, expected: str, gravity: Gravity) -> Damage:
    return mismatch(
        line.span,
        expected=expected,
        found=f"line {line.line}: leader epoch {line.leader_epoch} from offset {line.start_offset}",
        gravity=gravity,
    )


def _unknown_epochs(checkpoint: LeaderEpochCheckpoint, runs: Sequence[EpochRun], gravity: Gravity) -> list[Damage]:
    known = {line.leader_epoch for line in checkpoint.lines}
    first_start = checkpoint.lines[0].start_offset
    missing = sorted(
        {run.leader_epoch for run in runs if run.leader_epoch not in known and run.last_offset >= first_start}
    )
    # Until 2.6.0 recovery left leader epoch 0 out (KAFKA-10432).
    missing = [epoch for epoch in missing if epoch > 0]
    if not missing:
        return []
    last = checkpoint.lines[-1]
    words = ", ".join(map(str, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    return [
        mismatch(
            Span(0, last.span.end),
            kind=DamageKind.EPOCH,
            expected=f"a line for each leader epoch of the batches, {words} among them",
            found=f"{len(checkpoint.lines)} lines without",
            gravity=gravity,
        )
    ]


_LARGEST_CONTROL_BATCH = 1 << 20


def scan_metadata_snapshot(file: EvidenceFile, *, level: Level) -> tuple[tuple[int, int], list[Damage]]:
    """Walk a snapshot of the metadata log once, and return how many batches and records it has, and what is damaged."""
    first: Any = None
    last: Any = None
    batches = records = 0
    damage: list[Damage] = []
    for window in walk_segment(file, level=level):
        # A node renames a snapshot to its name once it is whole: an unfinished end is no matter of course here.
        damage.extend(replace(place, gravity=Gravity.DAMAGE) for place in window.damage)
        batches += len(window.batches)
        records += window.record_count
        if len(window.batches):
            first = window.batches[0].copy() if first is None else first
            last = window.batches[-1].copy()
    if not damage:
        damage += _end_damage(file, first, "snapshot-header", "first")
        damage += _end_damage(file, last, "snapshot-footer", "last")
    return (batches, records), damage


def _end_damage(file: EvidenceFile, row: Any, wanted: str, place: str) -> list[Damage]:
    span = Span(0, file.size) if row is None else Span(int(row["position"]), int(row["length"]))
    found = "no batch" if row is None else _type_of(file, row, span)
    if found == wanted:
        return []
    return [Damage(span=span, kind=DamageKind.TORN, expected=f"a {wanted} record as the {place} batch", found=found)]


def _type_of(file: EvidenceFile, row: Any, span: Span) -> str:
    if not int(row["attributes"]) & CONTROL_BIT:
        return "a batch of metadata records"
    from kforensics.formats.messages.control import parse_control_record  # noqa: PLC0415 - its message tables take a while to load

    try:
        for record in iter_batch_records(
            file.read(span.position, min(span.length, _LARGEST_CONTROL_BATCH)), span.position
        ):
            return parse_control_record(record.key, record.value).type
    except FormatError:
        pass
    return "a control batch that does not decode"


def check_offset_index(
    index: SparseIndex, scan: SegmentScan, base_offset: int, *, is_recovered: bool
) -> tuple[Damage, ...]:
    """Return the damage of an offset index, read alone and against its segment."""
    offsets = index.entries["relative_offset"].astype(np.int64) + base_offset
    positions = index.entries["position"].astype(np.int64)
    found = scan.index_base_offsets
    if len(found) != len(offsets):  # the index changed between two reads of a live directory
        return _graded(index.damage, is_recovered=is_recovered)
    last = base_offset - 1 if scan.claimed_last_offset is None else scan.claimed_last_offset
    is_beyond = (positions >= scan.claimed_end) | (offsets > last)
    known = found > UNREADABLE
    is_wrong = (found == NO_BATCH) & ~is_beyond
    is_wrong |= known & (found > offsets)
    is_wrong[:-1] |= known[1:] & (found[1:] <= offsets[:-1]) & ~is_beyond[:-1]
    is_wrong &= ~_is_damaged(positions, scan)
    inside = DamageList()
    for at in np.flatnonzero(is_wrong & ~is_beyond).tolist():
        if found[at] == NO_BATCH:
            expected = "the position of a batch"
        elif found[at] > offsets[at]:
            expected = f"an offset of {found[at]} or above, where the batch begins"
        else:
            expected = f"an offset below {found[at + 1]}, the batch of the next entry"
        where = f"entry {at}: offset {offsets[at]} at position {positions[at]}"
        inside.add(entry_span(at, OFFSET_ENTRY_LENGTH), DamageKind.INDEX, expected=expected, found=where)
    return (
        *_graded((*index.damage, *inside.as_tuple()), is_recovered=is_recovered),
        *_beyond(
            is_beyond,
            OFFSET_ENTRY_LENGTH,
            f"entries up to offset {last} and position {scan.claimed_end}",
            is_recovered=is_recovered,
        ),
    )


def check_time_index(
    index: SparseIndex, scan: SegmentScan, base_offset: int, *, is_recovered: bool
) -> tuple[Damage, ...]:
    """Return the damage of a time index, read alone and, where its segment was scanned with its entries looked up, against that."""
    offsets = index.entries["relative_offset"].astype(np.int64) + base_offset
    times = index.entries["timestamp"].astype(np.int64)
    found, highest = scan.time_found, scan.time_highest
    if len(found) != len(offsets):
        return _graded(index.damage, is_recovered=is_recovered)
    last = base_offset - 1 if scan.claimed_last_offset is None else scan.claimed_last_offset
    is_beyond = offsets > last
    is_wrong = (found != times) & (found != UNREADABLE)
    is_wrong |= (highest > times) & (found > UNREADABLE)
    if scan.damage:
        is_wrong &= found != NO_BATCH  # its batch may be one of the damaged ones
    inside = DamageList()
    for at in np.flatnonzero(is_wrong & ~is_beyond).tolist():
        if found[at] == NO_BATCH:
            expected = "the offset of a batch"
        elif found[at] != times[at]:
            expected = f"timestamp {found[at]}, the largest of the batch there"
        else:
            expected = f"timestamp {highest[at]}, the largest up to there"
        where = f"entry {at}: timestamp {times[at]} at offset {offsets[at]}"
        inside.add(entry_span(at, TIME_ENTRY_LENGTH), DamageKind.INDEX, expected=expected, found=where)
    return (
        *_graded((*index.damage, *inside.as_tuple()), is_recovered=is_recovered),
        *_beyond(is_beyond, TIME_ENTRY_LENGTH, f"entries up to offset {last}", is_recovered=is_recovered),
    )


def padding_damage(tail: Span, *, is_closed: bool, is_recovered: bool) -> tuple[Damage, ...]:
    """Return the damage of preallocated zeros behind the entries: lookups in a closed segment fall into them (KAFKA-10207).

    They are normal on the last segment and, after a crash, on those that recovery resets. A time index that ends in them
    makes its segment one of 1970, which retention deletes.
    """
    if not tail.length or not is_closed or is_recovered:
        return ()
    return (
        mismatch(
            tail,
            kind=DamageKind.ZEROS,
            expected="an index trimmed to its entries, as a segment's is when it is closed",
            found=f"{tail.length} zero bytes",
            gravity=Gravity.DAMAGE,  # no start rebuilds them: retention reads the time 0, and lookups end in them
        ),
    )


def _is_damaged(positions: NDArray[np.int64], scan: SegmentScan) -> NDArray[np.bool_]:
    """Positions in damaged places of the segment, about which an index can't be wrong."""
    inside = np.zeros(len(positions), dtype=bool)
    for place in scan.damage:
        inside |= (positions >= place.span.position) & (positions < place.span.end)
    return inside


def _graded(damage: Iterable[Damage], *, is_recovered: bool) -> tuple[Damage, ...]:
    gravity = Gravity.REBUILDABLE if is_recovered else Gravity.DAMAGE
    return tuple(replace(place, gravity=gravity) for place in damage)


def _beyond(
    is_beyond: NDArray[np.bool_], entry_length: int, expected: str, *, is_recovered: bool
) -> tuple[Damage, ...]:
    places = np.flatnonzero(is_beyond)
    if not len(places):
        return ()
    first, last = int(places[0]), int(places[-1])
    span = Span(first * entry_length, (last - first + 1) * entry_length)
    gravity = Gravity.REBUILDABLE if is_recovered else Gravity.DAMAGE
    return (
        mismatch(
            span,
            kind=DamageKind.INDEX,
            expected=expected,
            found=f"{len(places)} entries behind the log's end",
            gravity=gravity,
        ),
    )
