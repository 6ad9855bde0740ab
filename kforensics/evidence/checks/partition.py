"""One partition directory against itself: every file against its format, and each against its neighbours."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import time_ns
from typing import Any

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.errors import EvidenceError, FormatError, MissingBytes
from kforensics.evidence.checks.context import (
    CheckedPartition,
    FileReport,
    FileState,
    PartitionContext,
    Remark,
    Remembered,
    StampedAhead,
    base_offset_of,
    mismatch,
    state_of,
)
from kforensics.evidence.checks.producers import ProducerHistory, check_snapshot, check_txn_index, replay
from kforensics.evidence.checks.segment_scan import ScanTask, SegmentScan, StampedBatch, scan_segment_file
from kforensics.evidence.checks.segments import (
    EpochsFile,
    ScannedSegment,
    check_missing,
    check_segments,
    doubt_of_holes,
    doubt_of_start,
    grade_tail,
    settle_raised_offset,
    sound_range,
)
from kforensics.evidence.checks.small_files import (
    check_checkpoints,
    check_epochs,
    check_offset_index,
    check_time_index,
    padding_damage,
    scan_metadata_snapshot,
    settle_fallen_epochs,
)
from kforensics.evidence.discovery.partition_dirs import CleanerLag, cleaner_lag
from kforensics.evidence.file_kinds import FILE_KINDS, lock_damage, read_and_understand
from kforensics.evidence.model import CheckpointValue
from kforensics.formats.checkpoint.json_files import QuorumState
from kforensics.formats.checkpoint.lines import LeaderEpochCheckpoint
from kforensics.formats.checkpoint.properties import PartitionMetadata
from kforensics.formats.index import ProducerEntry, ProducerSnapshot
from kforensics.formats.log.batch_table import BATCH_HEADER
from kforensics.formats.log.batches import iter_batch_records
from kforensics.formats.log.sequences import SequenceBreak, WrittenAgain, joined_scans, told_breaks
from kforensics.formats.segment.walk import Buffers, Level
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import DirectoryState, FileKind, FileSuffix
from kforensics.source.walk import FoundFile

Progress = Callable[[int], None]

Scans = Mapping[str, SegmentScan]
"""Segments that were walked already, by path."""


def scan_tasks(context: PartitionContext, level: Level) -> list[tuple[FoundFile, ScanTask]]:
    """Return the files of a partition that have to be walked: its segments, with the indexes beside them."""
    by_name = _live_by_name(context)
    splits = tuple(sorted({base_offset_of(file) for file in context.of_kind(FileKind.PRODUCER_SNAPSHOT)}))
    live = context.of_kind(FileKind.SEGMENT)
    tasks = []
    for at, file in enumerate(live):
        base = base_offset_of(file)
        after = base_offset_of(live[at + 1]) if at + 1 < len(live) else None
        tasks.append(
            (
                file,
                ScanTask(
                    path=context.root / file.path,
                    base_offset=base,
                    level=level,
                    index_path=_path(context, by_name.get((FileKind.OFFSET_INDEX, base))),
                    time_index_path=_path(context, by_name.get((FileKind.TIME_INDEX, base))),
                    splits=tuple(split for split in splits if split >= base and (after is None or split <= after)),
                ),
            )
        )
    tasks += [
        (file, ScanTask(path=context.root / file.path, base_offset=base_offset_of(file), level=level))
        for file in context.files
        if file.name.kind is FileKind.SEGMENT and file.name.suffix is not FileSuffix.NONE and not file.name.is_leftover
    ]
    return tasks


def _live_by_name(context: PartitionContext) -> dict[tuple[FileKind, int], FoundFile]:
    return {
        (file.name.kind, base_offset_of(file)): file for file in context.files if file.name.suffix is FileSuffix.NONE
    }


def _path(context: PartitionContext, file: FoundFile | None) -> Path | None:
    return None if file is None else context.root / file.path


def check_partition(
    context: PartitionContext,
    *,
    level: Level,
    scans: Scans | None = None,
    progress: Progress = lambda _: None,
    buffers: Buffers | None = None,
) -> CheckedPartition:
    """Check every file of a partition directory; whatever can't be read becomes a problem, never an exception."""
    return _PartitionCheck(context, level, scans or {}, progress, buffers or Buffers.empty()).run()


@dataclass(slots=True)
class _Findings:
    damage: dict[str, list[Damage]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    """Files whose bytes a capture does not hold."""
    problems: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

    def add(self, path: str, damage: Iterable[Damage]) -> None:
        places = self.damage.setdefault(path, [])
        for place in damage:
            if place.kind is not DamageKind.UNSUPPORTED:
                places.append(place)
                continue
            # The checksum holds: what is not known is not damaged.
            self.unreadable.add(path)
            self.problems.append((path, f"at byte {place.span.position}: {place.found}"))

    def fail(self, path: str, error: EvidenceError) -> None:
        self.unreadable.add(path)
        self.problems.append((path, error.problem))


class _PartitionCheck:
    def __init__(
        self, context: PartitionContext, level: Level, scans: Scans, progress: Progress, buffers: Buffers
    ) -> None:
        self._context = context
        self._level = level
        self._scans = scans
        self._progress = progress
        self._buffers = buffers
        self._found = _Findings()
        self._by_name = _live_by_name(context)

    def run(self) -> CheckedPartition:
        segments = self._scan_segments()
        for file in self._context.files:
            self._read_alone(file)
        if any(segment.scan.is_captured for segment in segments):
            self._check_segments(segments)
        else:
            segments = self._settle_raised_offsets(segments)
            self._check_segments(segments)
            self._check_indexes(segments)
            self._check_producers(segments)
            self._check_epochs(segments)
        epochs = self._epochs()
        missing = () if self._found.problems else check_missing(self._context, segments, epochs)
        if not self._found.problems:
            doubt = doubt_of_start(self._context, segments, epochs)
            self._found.remarks += [*doubt_of_holes(self._context, segments), *([] if doubt is None else [doubt])]
        own = {file.path for file in self._context.files}
        for path, damage in missing:
            if path in own:
                self._found.add(path, (damage,))
        elsewhere = (
            *(check_checkpoints(self._context, segments) if segments and not self._found.problems else ()),
            *((path, damage) for path, damage in missing if path not in own),
        )
        for path, places in self._found.damage.items():
            limited = [place for place in places if place.gravity is Gravity.UNREAD]
            more = f" (and {len(limited) - 1} more places)" if len(limited) > 1 else ""
            self._found.problems += [(path, place.limit_words + more) for place in limited[:1]]
        ranges = [found for segment in segments if (found := sound_range(segment)) is not None]
        breaks = self._sequence_breaks(segments)
        return CheckedPartition(
            context=self._context,
            reports=tuple(self._report(file) for file in self._context.files),
            remarks=tuple(self._found.remarks),
            elsewhere=elsewhere,
            problems=tuple(self._found.problems),
            coverage=tuple(ranges),
            topic_id=self._topic_id(),
            cleaner_lag=self._cleaner_lag(),
            stamped_ahead=tuple(self._stamped_ahead(segments)),
            leader_epochs=tuple(epochs[1].entries) if epochs is not None else (),
            sequence_breaks=breaks,
            remembered=tuple(self._remembered(breaks)),
            written_again=tuple(self._written_again(segments)),
        )

    def _scan_segments(self) -> list[ScannedSegment]:
        live = []
        for file, task in scan_tasks(self._context, self._level):
            scan = self._scans.get(file.path)
            if scan is None:
                try:
                    scan = scan_segment_file(task, self._progress, self._buffers)
                except EvidenceError as error:
                    self._found.fail(file.path, error)
                    continue
            segment = ScannedSegment(file=file, scan=scan)
            self._found.counts[file.path] = (scan.batch_count, scan.record_count)
            if scan.changed and not file.name.is_transient:
                self._found.problems.append(
                    (file.path, "it changed while it was read: what is said of it may not hold")
                )
            if file.name.suffix is FileSuffix.NONE:
                live.append(segment)
            else:
                self._found.add(
                    file.path, (grade_tail(self._context, segment, place, is_last=True) for place in scan.damage)
                )
        return live

    def _read_alone(self, file: FoundFile) -> None:
        kind = file.name.kind
        if file.name.is_leftover:
            return
        try:
            if FILE_KINDS[kind].parse is not None:
                with open_evidence(self._context.root / file.path) as evidence:
                    value, damage = read_and_understand(kind, evidence)
                self._found.values[file.path] = value
                self._found.add(file.path, damage)
            elif kind is FileKind.METADATA_SNAPSHOT:
                with open_evidence(self._context.root / file.path) as evidence:
                    self._found.counts[file.path], places = scan_metadata_snapshot(evidence, level=self._level)
                self._found.add(file.path, places)
            elif kind is FileKind.LOCK:
                self._found.add(file.path, lock_damage(file.length))
        except MissingBytes:
            self._found.missing.add(file.path)  # named once for all files of a capture
        except EvidenceError as error:
            if not file.name.is_transient:
                self._found.fail(file.path, error)

    def _settle_raised_offsets(self, segments: list[ScannedSegment]) -> list[ScannedSegment]:
        return [
            settle_raised_offset(
                self._context,
                segment,
                segments[at + 1] if at + 1 < len(segments) else None,
                (self._value_beside(segment, FileKind.OFFSET_INDEX), self._value_beside(segment, FileKind.TIME_INDEX)),
            )
            for at, segment in enumerate(segments)
        ]

    def _value_beside(self, segment: ScannedSegment, kind: FileKind) -> Any | None:
        file = self._neighbour(segment, kind)
        return None if file is None else self._found.values.get(file.path)

    def _check_segments(self, segments: list[ScannedSegment]) -> None:
        for segment, damage in zip(segments, check_segments(self._context, segments), strict=True):
            self._found.add(segment.file.path, damage)

    def _check_indexes(self, segments: list[ScannedSegment]) -> None:
        for at, segment in enumerate(segments):
            is_recovered = self._context.may_recover(segment.end_offset)
            is_closed = at < len(segments) - 1
            for kind, check in ((FileKind.OFFSET_INDEX, check_offset_index), (FileKind.TIME_INDEX, check_time_index)):
                file = self._neighbour(segment, kind)
                if file is None:
                    self._note_missing(segment, kind)
                    continue
                value = self._found.values.get(file.path)
                if value is None:
                    continue
                damage = check(value, segment.scan, segment.base_offset, is_recovered=is_recovered)
                self._found.damage[file.path] = [
                    *damage,
                    *padding_damage(value.zero_tail, is_closed=is_closed, is_recovered=is_recovered),
                ]

    def _note_missing(self, segment: ScannedSegment, kind: FileKind) -> None:
        if (
            isinstance(self._context.directory, Absent)
            or not segment.scan.size
            or (kind is FileKind.TIME_INDEX and segment.scan.magics <= {0, 1})
        ):
            return  # a segment named by itself; one without records; brokers up to 0.10.0 have no time index
        name = segment.file.path.rpartition("/")[2]
        what = (
            "the broker scans the segment at its next start and rebuilds it"
            if kind is FileKind.OFFSET_INDEX
            else "it stays empty until the segment is recovered"
        )
        self._found.remarks.append(
            Remark(path=segment.file.path, statement=f"{name} has no {kind}: {what}", file_kind=kind)
        )

    def _neighbour(self, segment: ScannedSegment, kind: FileKind) -> FoundFile | None:
        return self._by_name.get((kind, segment.base_offset))

    def _check_producers(self, segments: list[ScannedSegment]) -> None:
        if not segments:
            return
        snapshots = {
            base_offset_of(file): file
            for file in self._context.of_kind(FileKind.PRODUCER_SNAPSHOT)
            if isinstance(self._found.values.get(file.path), ProducerSnapshot)
        }
        start = segments[0].base_offset
        end = max(segment.end_offset for segment in segments)
        # The offsets between the last batch and a snapshot above it were truncated with a batch: the state there is that of the end.
        splits = sorted(offset for offset in snapshots if start < offset <= end)
        history = replay(
            (event for segment in segments for event in segment.scan.producer_events),
            start=self._state_at(snapshots.get(start)),
            splits=splits,
        )
        log_start = (
            max(start, self._context.log_start.value) if isinstance(self._context.log_start, CheckpointValue) else start
        )
        if any(place.span.position < segment.scan.valid_end for segment in segments for place in segment.scan.damage):
            return  # what damaged batches did can't be recomputed
        is_compacted = self._is_compacted(segments)
        for offset in splits:
            file = snapshots[offset]
            value = self._found.values[file.path]
            if value.crc_valid:
                gravity = Gravity.REBUILDABLE if self._context.may_recover(offset) else Gravity.DAMAGE
                damage = check_snapshot(
                    value, history.states[offset], log_start=log_start, is_compacted=is_compacted, gravity=gravity
                )
                self._found.add(file.path, damage)
        self._check_txn_indexes(segments, history, log_start, is_compacted=is_compacted)

    def _cleaner_lag(self) -> CleanerLag | None:
        directory, point = self._context.directory, self._context.cleaner_point
        if isinstance(directory, Absent) or directory.state is not DirectoryState.LIVE or self._context.path == "":
            return None
        value = point.value if isinstance(point, CheckpointValue) else point
        return cleaner_lag(directory.topic, self._context.files, value, root=self._context.root)

    def _stamped_ahead(self, segments: list[ScannedSegment]) -> Iterator[StampedAhead]:
        """Yield the largest timestamp of each segment that was written before, that is ahead of the present, or that is one of seconds."""
        now_ms = time_ns() // 1_000_000
        # A copy has any times of files: where all are before the oldest record, none is of writing.
        has_time = any(
            one.scan.oldest_ms <= one.file.mtime_ns // 1_000_000 for one in segments if one.scan.oldest_ms is not None
        )
        for segment in segments:
            scan, written_ms = segment.scan, segment.file.mtime_ns // 1_000_000
            if scan.newest is None:
                continue
            known_ms, against = (written_ms, "at which the segment was written last") if has_time else (now_ms, "now")
            if scan.newest.timestamp_ms > known_ms + _AHEAD_MS or scan.newest.timestamp_ms in _SECONDS:
                path = segment.file.path
                first, last = self._offsets_of(path, scan.newest)
                yield StampedAhead(
                    path, first, last, scan.newest.timestamp_ms, known_ms, against, scan.newest.producer_id
                )

    def _offsets_of(self, path: str, batch: StampedBatch) -> tuple[int, int]:
        """Return the offset of the record with the largest timestamp of a batch twice; where that can't be read, the offsets of the batch."""
        try:
            with open_evidence(self._context.root / path) as file:
                for record in iter_batch_records(file.read(batch.position, batch.length), batch.position):
                    if record.timestamp_ms == batch.timestamp_ms:
                        return record.offset, record.offset
        except (EvidenceError, FormatError):
            pass  # named where the segment is checked
        return batch.first_offset, batch.last_offset

    def _sequence_breaks(self, segments: list[ScannedSegment]) -> tuple[SequenceBreak, ...]:
        """Return the breaks that neither damage nor a cleaner explains, nor a snapshot in between, by which the broker had forgotten the producer."""
        if not segments:
            return ()
        first = segments[0].base_offset
        begins = (value.entries for file, value in self._snapshots() if base_offset_of(file) == first)
        joined = joined_scans((segment.scan.sequences for segment in segments), next(begins, ()))
        if joined.is_thinned or self._is_compacted(segments) or any(segment.scan.damage for segment in segments):
            return ()
        snapshots = {
            base_offset_of(file): {entry.producer_id for entry in value.entries} for file, value in self._snapshots()
        }
        return told_breaks(joined.breaks, snapshots)

    def _snapshots(self) -> Iterator[tuple[FoundFile, ProducerSnapshot]]:
        for file in self._context.of_kind(FileKind.PRODUCER_SNAPSHOT):
            value = self._found.values.get(file.path)
            if isinstance(value, ProducerSnapshot) and value.crc_valid:
                yield file, value

    def _remembered(self, breaks: Iterable[SequenceBreak]) -> Iterator[Remembered]:
        """Yield missing sequences that a producer snapshot names."""
        wanted: dict[tuple[int, int], list[SequenceBreak]] = {}
        for one in breaks:
            if not one.is_repeat:
                wanted.setdefault((one.producer_id, one.producer_epoch), []).append(one)
        for file, value in self._snapshots() if wanted else ():
            for entry in value.entries:
                for one in wanted.get((entry.producer_id, entry.producer_epoch), ()):
                    if one.first <= entry.last_sequence <= one.last:
                        yield Remembered(entry.last_sequence, entry.last_offset, file.path)

    def _written_again(self, segments: list[ScannedSegment]) -> Iterator[WrittenAgain]:
        """Yield batches of a raised epoch whose records are byte for byte those of one before."""
        for segment in segments:
            for one in segment.scan.sequences.again:
                try:
                    with open_evidence(self._context.root / segment.file.path) as file:
                        head = BATCH_HEADER.length
                        first, second = (file.read(at + head, one.length - head) for at in one.positions)
                except EvidenceError:
                    continue  # named where the segment is checked
                if bytes(first) == bytes(second):
                    yield one

    def _state_at(self, file: FoundFile | None) -> Mapping[int, ProducerEntry]:
        if file is None:
            return {}
        return {entry.producer_id: entry for entry in self._found.values[file.path].entries}

    def _is_compacted(self, segments: list[ScannedSegment]) -> bool:
        cleaned = isinstance(self._context.cleaner_point, CheckpointValue) and self._context.cleaner_point.value > 0
        return cleaned or any(segment.scan.has_empty_batch for segment in segments)

    def _check_txn_indexes(
        self, segments: list[ScannedSegment], history: ProducerHistory, log_start: int, *, is_compacted: bool
    ) -> None:
        for segment in segments:
            file = self._neighbour(segment, FileKind.TXN_INDEX)
            if file is None or self._found.values.get(file.path) is None:
                continue
            gravity = Gravity.REBUILDABLE if self._context.may_recover(segment.end_offset) else Gravity.DAMAGE
            damage = check_txn_index(
                self._found.values[file.path],
                history,
                base_offset=segment.base_offset,
                end_offset=segment.end_offset,
                log_start=log_start,
                is_compacted=is_compacted,
                gravity=gravity,
            )
            self._found.add(file.path, damage)

    def _check_epochs(self, segments: list[ScannedSegment]) -> None:
        for file in self._context.of_kind(FileKind.LEADER_EPOCH_CHECKPOINT):
            value = self._found.values.get(file.path)
            if value is None or not segments:
                continue
            damaged = set()
            for segment in segments:
                path = segment.file.path
                settled = settle_fallen_epochs(value, segment.scan.epoch_runs, self._found.damage[path])
                self._found.damage[path] = list(settled)
                damaged |= {(path, place.span.position) for place in settled if place.gravity is Gravity.DAMAGE}
            self._found.add(file.path, check_epochs(self._context, value, segments, damaged))
        for file in self._context.of_kind(FileKind.QUORUM_STATE):
            state = self._found.values.get(file.path)
            highest = max((run.leader_epoch for segment in segments for run in segment.scan.epoch_runs), default=-1)
            if isinstance(state, QuorumState) and isinstance(state.leader_epoch, int) and state.leader_epoch < highest:
                expected = f"a leader epoch of {highest} or above, as the metadata log has it"
                self._found.add(
                    file.path,
                    (
                        mismatch(
                            Span(0, file.length),
                            expected=expected,
                            found=f"leader epoch {state.leader_epoch}",
                            gravity=Gravity.DAMAGE,
                        ),
                    ),
                )

    def _epochs(self) -> EpochsFile | None:
        """Return path and content of `leader-epoch-checkpoint`, where it can be read."""
        for file in self._context.of_kind(FileKind.LEADER_EPOCH_CHECKPOINT):
            value = self._found.values.get(file.path)
            return (file.path, value) if isinstance(value, LeaderEpochCheckpoint) else None
        return None

    def _topic_id(self) -> str | Absent:
        for file in self._context.of_kind(FileKind.PARTITION_METADATA):
            value = self._found.values.get(file.path)
            return value.topic_id if isinstance(value, PartitionMetadata) else Absent.UNREADABLE
        return Absent.NOT_WRITTEN

    def _report(self, file: FoundFile) -> FileReport:
        path, kind = file.path, file.name.kind
        damage = tuple(sorted(self._found.damage.get(path, ()), key=lambda place: place.span))
        if path in self._found.unreadable and state_of(damage) is not FileState.DAMAGED:
            state = FileState.UNREADABLE
        elif damage or self._is_checked(file):
            state = state_of(damage)
        else:
            state = FileState.UNCHECKED
        batches, records = self._found.counts.get(path, (None, None))
        return FileReport(
            input=self._context.input,
            path=path,
            kind=kind,
            length=file.length,
            state=state,
            batches=Absent.NOT_APPLICABLE if batches is None else batches,
            records=Absent.NOT_APPLICABLE if records is None else records,
            damage=damage,
            is_leftover=file.name.is_leftover,
        )

    def _is_checked(self, file: FoundFile) -> bool:
        path, kind = file.path, file.name.kind
        if path in self._found.missing or file.name.is_leftover:
            return False
        return FILE_KINDS[kind].parse is not None or kind in _CHECKED or path in self._found.counts


_SECONDS = range(500_000_000, 5_000_000_000)
"""Of 1985 to 2128 as numbers of seconds; as milliseconds they are days of the first two months of 1970."""
_AHEAD_MS = 86_400_000
"""Timestamps this far ahead are no matter of clocks or time zones."""


_CHECKED = frozenset({FileKind.LOCK})
