"""Every copy of a partition read through: the records that match, and the offsets that were read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kforensics.commands.snapshots import Evidence
from kforensics.damage import Damage
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.captured.tail import readable_ranges
from kforensics.evidence.checks.producer_events import ABORT, COMMIT, parse_marker
from kforensics.evidence.content.search import RecordSearch
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Problem, Replica, Segment
from kforensics.evidence.replica.collect import collect_replica
from kforensics.formats.columns.record_runs import part_of, split_control
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.records import Record
from kforensics.formats.primitives.word_buffer import SegmentBytes
from kforensics.formats.segment.walk import iter_record_chunks
from kforensics.reconcile.trace.model import CopyKind
from kforensics.source.capture import CapturedSegment
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import FileSuffix
from kforensics.units import OffsetRange

LEFT_OVER = (FileSuffix.DELETED, FileSuffix.SWAP)

_KINDS = {"live": CopyKind.LIVE, "future": CopyKind.FUTURE, "stray": CopyKind.STRAY, "deleted": CopyKind.DELETED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One copy of a record that matches."""

    replica: Replica
    path: str
    kind: CopyKind
    record: Record


@dataclass(slots=True, kw_only=True)
class Coverage:
    """The offsets of a log that were read, with the leader epoch of their batches."""

    runs: list[tuple[int, int, int]] = field(default_factory=list)
    """First and last offset, and leader epoch."""

    def add(self, offsets: NDArray[np.int64], epochs: NDArray[np.int64]) -> None:
        """Offsets that were read, in file order."""
        if not len(offsets):
            return
        breaks = np.flatnonzero((np.diff(offsets) != 1) | (np.diff(epochs) != 0)) + 1
        for first, end in pairwise([0, *breaks.tolist(), len(offsets)]):
            low, high, epoch = int(offsets[first]), int(offsets[end - 1]), int(epochs[first])
            if self.runs and self.runs[-1][2] == epoch and self.runs[-1][1] + 1 == low:
                self.runs[-1] = (self.runs[-1][0], high, epoch)
            else:
                self.runs.append((low, high, epoch))


@dataclass(slots=True, kw_only=True)
class ScannedReplica:
    """One directory, read."""

    replica: Replica
    kind: CopyKind
    coverage: Coverage = field(default_factory=Coverage)
    """Of its live segments."""
    left_over: Coverage = field(default_factory=Coverage)
    """Of segments that were renamed."""
    segments: int = 0
    bytes: int = 0
    records: int = 0
    markers: dict[int, list[tuple[int, bool]]] = field(default_factory=dict)
    """Ends of transactions by producer id: the offset, and whether it is an abort."""
    not_captured: list[str] = field(default_factory=list)
    """Files of which a capture holds no records, or some only."""


def scan_places(
    places: Sequence[PartitionPlace], evidence: Evidence, search: RecordSearch, problems: list[Problem]
) -> tuple[list[ScannedReplica], list[Hit]]:
    """Read all copies of one partition.

    Args:
        places: its directories.
        evidence: gives the rank of each input.
        search: which records are wanted.
        problems: what can't be read is added.
    """
    scanned: list[ScannedReplica] = []
    hits: list[Hit] = []
    for place in places:
        collected = collect_replica(place, left_over=LEFT_OVER)
        problems += collected.problems
        replica = collected.replica
        kind = CopyKind.SNAPSHOT if replica.input in evidence.ranks else _KINDS[replica.state]
        one = ScannedReplica(replica=replica, kind=kind)
        scanned.append(one)
        for segment in replica.segments:
            hits += _scan(one, segment, kind, one.coverage, evidence, search, problems)
        renamed = kind if kind is CopyKind.SNAPSHOT else CopyKind.DELETED
        for segment in replica.deleted_segments:
            hits += _scan(one, segment, renamed, one.left_over, evidence, search, problems)
    return scanned, hits


def _scan(
    one: ScannedReplica,
    segment: Segment,
    kind: CopyKind,
    coverage: Coverage,
    evidence: Evidence,
    search: RecordSearch,
    problems: list[Problem],
) -> Iterator[Hit]:
    one.segments += 1
    root = evidence.inputs.found[one.replica.input].root
    try:
        with open_evidence(root / segment.path if segment.path != "." else root) as file:
            for chunk in _chunks(file, one, segment):
                coverage.add(chunk.offset, chunk.batches["partition_leader_epoch"][chunk.rows].astype(np.int64))
                for part, is_control in split_control(chunk):
                    if is_control:
                        _note_markers(part, one)
                        continue
                    one.records += len(part.rows)
                    found = search.find(part)
                    if len(found):
                        for record in part_of(part, found).records():
                            yield Hit(replica=one.replica, path=segment.path, kind=kind, record=record)
    except EvidenceError as error:
        problems.append(Problem(input=one.replica.input, path=segment.path, message=error.problem))


def _note_markers(part: RecordChunk, one: ScannedReplica) -> None:
    for record in part.records():
        try:
            marker = parse_marker(record.key, record.value)
        except FormatError:
            continue
        if marker is not None and marker[0] in {ABORT, COMMIT}:
            one.markers.setdefault(record.producer_id, []).append((record.offset, marker[0] == ABORT))


class _Ending:
    """A file that ends earlier."""

    def __init__(self, file: SegmentBytes, end: int) -> None:
        self._file = file
        self.size = min(end, file.size)

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer from a position, up to the end."""
        return self._file.read_into(position, buffer[: max(self.size - position, 0)])


def _chunks(file: EvidenceFile, one: ScannedReplica, segment: Segment) -> Iterator[RecordChunk]:
    parts: list[tuple[SegmentBytes, int, int]]
    if isinstance(file, CapturedSegment):
        spans = readable_ranges(file)
        held = sum(span.length for span in spans)
        if held < segment.length:
            one.not_captured.append(segment.path)
        parts = [(_Ending(file, span.end), span.position, span.end) for span in spans]
    else:
        held = file.size
        parts = [(file, 0, file.size)]
    one.bytes += held
    for source, start, end in parts:
        for found in iter_record_chunks(source, start=start, end=end):
            if not isinstance(found, Damage):
                yield found


def merged(runs: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Ranges joined where they touch or overlap."""
    out: list[OffsetRange] = []
    for one in sorted(runs):
        if out and one.first <= out[-1].last + 1:
            out[-1] = OffsetRange(out[-1].first, max(out[-1].last, one.last))
        else:
            out.append(one)
    return tuple(out)


def holes(covered: Sequence[OffsetRange], end: int, *, start: int = 0) -> Iterator[OffsetRange]:
    """What merged ranges leave open from a start up to an end, the end excluded."""
    at = start
    for one in covered:
        if one.first > at and at < end:
            yield OffsetRange(at, min(one.first, end) - 1)
        at = max(at, one.last + 1)
    if at < end:
        yield OffsetRange(at, end - 1)
