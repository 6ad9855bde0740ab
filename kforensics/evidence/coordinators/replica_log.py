"""One replica of a coordinator's topic: its segments, its batches, and where two of them part."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kforensics.damage import Damage, Gravity
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.captured.columns import NO_CONTROL
from kforensics.evidence.captured.reading import captured_batches, captured_controls, captured_segment, is_whole
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, problem_of
from kforensics.evidence.model import Problem
from kforensics.evidence.segment_parts import Keep, walk_sound_batches
from kforensics.formats.index import ProducerEntry, parse_producer_snapshot
from kforensics.formats.log.batch_table import BATCH_HEADER, BatchTable
from kforensics.formats.log.records import Record, parse_body_records
from kforensics.formats.messages.control import ControlRecord, ControlType, parse_control_record
from kforensics.formats.messages.schema import Undecoded
from kforensics.formats.segment.walk import iter_records
from kforensics.source.capture import CapturedSegment
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import FileKind, FileName, FileSuffix
from kforensics.source.walk import FoundDirectory, FoundFile, Obstacle, walk_partition

_SNAPSHOT_LIMIT = 256 << 20
"""Bytes of a producer snapshot that are read: 5 million producers."""


class SegmentBatches(NamedTuple):
    """Sound batches of one segment, in file order."""

    path: str
    rows: BatchTable
    control: Callable[[np.void], ControlRecord]
    """Decodes the control record of one of the batches."""


@dataclass(slots=True)
class ReplicaLog:
    """The files of a partition directory, and what could not be read of them."""

    place: PartitionPlace
    problems: list[Problem] = field(default_factory=list)
    segments: list[tuple[int, str]] = field(default_factory=list)
    """Base offset and path, in the order of the log."""
    deleted: list[tuple[int, str]] = field(default_factory=list)
    """Segments renamed `.deleted`."""
    snapshots: list[tuple[int, str]] = field(default_factory=list)
    """Offset and path of the producer snapshots."""
    indexes: list[tuple[int, str]] = field(default_factory=list)
    """Base offset and path of the offset indexes."""
    read_from: int = 0
    """The offset from which `batches` gives all batches of the log: a capture leaves those far below the end on its broker."""

    def files(self, segments: list[tuple[int, str]]) -> Iterator[tuple[str, EvidenceFile]]:
        """Yield the segments, given by base offset and path, opened one after the other; one that can't be opened, or whose bytes are not here, is a problem."""
        for _, path in segments:
            try:
                with open_evidence(self.place.state.root / path) as file:
                    if isinstance(file, CapturedSegment) and not is_whole(file):
                        raise file.missing()
                    yield path, file
            except EvidenceError as error:
                self.problems.append(problem_of(self.place.state.input, path, error))

    def records(self, segments: list[tuple[int, str]]) -> Iterator[tuple[str, Record]]:
        """Yield the records of segments, given by base offset and path, with the path of theirs, in the order of the log; damage is a problem."""
        for path, file in self.files(segments):
            for record in iter_records(file):
                if isinstance(record, Damage):
                    self.note_damage(path, record)
                else:
                    yield path, record

    def batches(
        self, segments: list[tuple[int, str]], *, keep: Keep = lambda rows: rows, jobs: int = 1
    ) -> Iterator[SegmentBatches]:
        """Yield the sound batches of segments, one after the other; damage, and a segment that can't be read, are problems.

        Args:
            segments: base offset and path of each, in the order of the log.
            keep: picks those that another process sends of any run of batches; what is not needed may be given all the same.
        """
        for base, path in segments:
            try:
                with open_evidence(self.place.state.root / path) as file:
                    if isinstance(file, CapturedSegment) and not is_whole(file):
                        yield self._captured(file, path, base)
                        continue
                    for rows, found in walk_sound_batches(file, base_offset=base, keep=keep, jobs=jobs):
                        for damage in found:
                            self.note_damage(path, damage)
                        yield SegmentBatches(path, rows, partial(_control_record, file))
            except EvidenceError as error:
                self.problems.append(problem_of(self.place.state.input, path, error))

    def _captured(self, file: CapturedSegment, path: str, base_offset: int) -> SegmentBatches:
        """Return the batches of which a capture has rows, without their bytes."""
        segment = captured_segment(file, path=path, base_offset=base_offset)
        for damage in segment.damage:
            self.note_damage(path, damage)
        self.read_from = max(self.read_from, segment.batches_from)
        rows, (controls, epochs) = captured_batches(file), captured_controls(file)
        if not len(rows) == len(controls) == len(epochs):
            raise file.capture.refuse(f"its rows of {file.inner} are not of one length")
        of_control = np.flatnonzero(controls != NO_CONTROL)
        pairs = zip(controls[of_control].tolist(), epochs[of_control].tolist(), strict=True)
        types = dict(zip(rows["base_offset"][of_control].tolist(), pairs, strict=True))
        return SegmentBatches(path, rows, partial(_captured_control, types))

    def note_damage(self, path: str, damage: Damage) -> None:
        """Note what a broker would not repair by itself: records may be missing there. One that was stopped cleanly looks at no end of a log."""
        if damage.hides_content or (damage.gravity is Gravity.TORN_TAIL and self.place.state.clean_shutdown):
            words = (
                f"{damage.kind.value} at byte {damage.span.position}: expected {damage.expected}, found {damage.found}"
            )
            problem = Problem(input=self.place.state.input, path=path, position=damage.span.position, message=words)
            self.problems.append(problem)

    @property
    def first_base(self) -> int:
        """The base offset of the first segment, 0 where there is none."""
        return self.segments[0][0] if self.segments else 0

    @property
    def last_base(self) -> int:
        """The base offset of the last segment, 0 where there is none."""
        return self.segments[-1][0] if self.segments else 0


_NO_CONTROL = ControlRecord(ControlType.UNKNOWN, Undecoded("the control record can't be decoded"))


def list_log(place: PartitionPlace) -> ReplicaLog:
    """List the files of a partition directory that describe its records and producers."""
    log = ReplicaLog(place)
    name = Path(place.path).name
    for found in walk_partition(place.state.listings, place.path, name=name):
        match found:
            case Obstacle():
                log.problems.append(Problem(input=place.state.input, path=found.path, message=found.message))
            case FoundFile(partition=FoundDirectory()):
                _add(log, found.name, found.path)
    for one in (log.segments, log.deleted, log.snapshots):
        one.sort()
    return log


def first_producers(log: ReplicaLog, offset: int) -> Iterator[tuple[int, str, Sequence[ProducerEntry]]]:
    """Yield the first producer snapshot at or behind an offset that can be read, with its offset and path; nothing where there is none."""
    yield from islice(read_producers(log.place.state.root, (one for one in log.snapshots if one[0] >= offset)), 1)


def read_producers(
    root: Path, snapshots: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, str, Sequence[ProducerEntry]]]:
    """Yield what producer snapshots name, with their offsets and paths; of one that can't be read verify says what is wrong."""
    for at, path in snapshots:
        try:
            with open_evidence(root / path) as file:
                snapshot = parse_producer_snapshot(file.read_all(_SNAPSHOT_LIMIT))
        except (EvidenceError, FormatError):
            continue
        if snapshot.crc_valid:
            yield at, path, snapshot.entries


def holds_records(place: PartitionPlace) -> bool:
    """Whether the bytes of all segments of a partition directory can be read: a capture may have left them on its broker."""
    if place.state.store.holds_bytes:
        return True
    try:
        for _, path in list_log(place).segments:
            with open_evidence(place.state.root / path) as file:
                if not is_whole(file):
                    return False
    except EvidenceError:
        return False
    return True


def _control_record(file: EvidenceFile, row: np.void) -> ControlRecord:
    body = file.read(int(row["position"]) + BATCH_HEADER.length, int(row["length"]) - BATCH_HEADER.length)
    try:
        for record in parse_body_records(body, int(row["count"])):
            return parse_control_record(record.key, record.value)
    except FormatError:
        pass
    return _NO_CONTROL


def _captured_control(types: Mapping[int, tuple[int, int]], row: np.void) -> ControlRecord:
    """Of a control record a capture has the type and the coordinator's epoch."""
    found = types.get(int(row["base_offset"]))
    if found is None:
        return _NO_CONTROL
    key = b"\0\0" + found[0].to_bytes(2, "big", signed=True)
    return parse_control_record(key, None if found[1] < 0 else b"\0\0" + found[1].to_bytes(4, "big"))


def _add(log: ReplicaLog, name: FileName, path: str) -> None:
    if not isinstance(name.base_offset, int):
        return
    targets: dict[tuple[FileKind, FileSuffix], list[tuple[int, str]]] = {
        (FileKind.SEGMENT, FileSuffix.NONE): log.segments,
        (FileKind.SEGMENT, FileSuffix.DELETED): log.deleted,
        (FileKind.PRODUCER_SNAPSHOT, FileSuffix.NONE): log.snapshots,
        (FileKind.OFFSET_INDEX, FileSuffix.NONE): log.indexes,
    }
    target = targets.get((name.kind, name.suffix))
    if target is not None:
        target.append((name.base_offset, path))


_COLUMNS = ["base_offset", "last_offset", "partition_leader_epoch", "crc", "max_timestamp"]


def batch_outline(log: ReplicaLog, *, deleted: bool = False, from_offset: int = 0) -> BatchTable:
    """Return offset, leader epoch, checksum and time of every sound batch of a log."""
    parts = [
        rows[rows["last_offset"] >= from_offset][_COLUMNS].copy()
        for _, rows, _ in log.batches(log.deleted if deleted else log.segments)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=[(name, "<i8") for name in _COLUMNS])


def first_difference(log: BatchTable, copy: BatchTable, *, from_offset: int) -> int | None:
    """Return the first offset of a copy, above what a cleaner passed over in one of them, whose batch is not in the log; none where the log holds all of it."""
    theirs = copy[copy["base_offset"] >= from_offset]
    if not len(theirs):
        return None
    if not len(log):
        return int(theirs["base_offset"][0])
    own = log[np.argsort(log["base_offset"], kind="stable")]
    at = np.minimum(np.searchsorted(own["base_offset"], theirs["base_offset"]), len(own) - 1)
    is_held = (own["base_offset"][at] == theirs["base_offset"]) & (own["crc"][at] == theirs["crc"])
    missing = np.flatnonzero(~is_held)
    return int(theirs["base_offset"][missing[0]]) if len(missing) else None
