"""Every copy of a partition read once: what comparisons need of it, the records that match, and the offsets that were read."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Damage
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.captured.reading import readable_ranges
from kforensics.evidence.checks.producers import ABORT, COMMIT, parse_marker
from kforensics.evidence.content import RecordSearch
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Problem, Replica, Segment
from kforensics.evidence.parallel import stream
from kforensics.evidence.replica.collect import CollectedReplica, collect_replica, scan_place, segment_paths
from kforensics.evidence.replica.ends import PartOfFile
from kforensics.evidence.replica.segments import scan_records
from kforensics.formats.columns.record_stream import RecordChunk, part_of, split_control
from kforensics.formats.log.batch_table import DELETE_HORIZON_BIT
from kforensics.formats.log.records import Record
from kforensics.formats.segment.walk import iter_record_chunks
from kforensics.reconcile.logs.loaded_log import LoadedLog, load_log
from kforensics.reconcile.trace.found_record import CopyFile
from kforensics.reconcile.trace.model import CopyKind
from kforensics.reconcile.trace.removal_time import NO_HORIZON
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import FileSuffix, parse_file_name
from kforensics.units import OffsetRange

LEFT_OVER = (FileSuffix.DELETED, FileSuffix.SWAP)
SMALL_WORK = 24 << 20
"""Bytes below which starting processes costs more than it saves."""

MOST_HELD = 50_000
"""Copies of matching records that are held at once; where more match, files are read again when they are wanted."""
MOST_BYTES_HELD = 32 << 20
"""Bytes of keys, values and headers of them."""

_KINDS = {"live": CopyKind.LIVE, "future": CopyKind.FUTURE, "stray": CopyKind.STRAY, "deleted": CopyKind.DELETED}


class Hit(NamedTuple):
    """One copy of a record that matches."""

    file: CopyFile
    record: Record
    delete_horizon_ms: int
    """Of its batch, -1 for none."""


@dataclass(slots=True, kw_only=True)
class Coverage:
    """The offsets of a log that were read, with the leader epoch of their batches."""

    runs: list[tuple[int, int, int]] = field(default_factory=list)
    """First and last offset, and leader epoch."""

    def add(self, offsets: NDArray[np.int64], epochs: NDArray[np.int64]) -> None:
        """Add offsets that were read."""
        if not len(offsets):
            return
        breaks = np.flatnonzero((np.diff(offsets) != 1) | (np.diff(epochs) != 0)) + 1
        for first, end in pairwise([0, *breaks.tolist(), len(offsets)]):
            self.add_run(int(offsets[first]), int(offsets[end - 1]), int(epochs[first]))

    def add_run(self, first: int, last: int, epoch: int) -> None:
        """Add a run behind those before, its last offset included."""
        if self.runs and self.runs[-1][2] == epoch and self.runs[-1][1] + 1 == first:
            self.runs[-1] = (self.runs[-1][0], last, epoch)
        else:
            self.runs.append((first, last, epoch))


class Markers:
    """The ends of the transactions of a log."""

    def __init__(self) -> None:
        self._ends: dict[int, list[tuple[int, bool]]] = {}

    def add(self, producer_id: int, offset: int, *, is_abort: bool) -> None:
        """Add one marker."""
        self._ends.setdefault(producer_id, []).append((offset, is_abort))

    def merge(self, other: "Markers") -> None:
        """Add those of another file of the log."""
        for producer_id, ends in other._ends.items():  # noqa: SLF001 - of its own kind
            self._ends[producer_id] = sorted((*self._ends.get(producer_id, ()), *ends))

    def after(self, producer_id: int, offset: int) -> tuple[int, bool] | None:
        """Return the first marker of a producer behind an offset: its own offset, and whether it aborts; None where there is none."""
        ends = self._ends.get(producer_id, [])
        at = bisect_right(ends, (offset, True))
        return ends[at] if at < len(ends) else None


@dataclass(slots=True, kw_only=True)
class SearchedFile:
    """What one segment file gave."""

    segment: Segment | None = None
    """None where it could not be read."""
    coverage: Coverage = field(default_factory=Coverage)
    markers: Markers = field(default_factory=Markers)
    bytes: int = 0
    records: int = 0
    found: int = 0
    """Records that match."""
    bytes_found: int = 0
    """Bytes of keys, values and headers of them."""
    hits: list[tuple[Record, int]] = field(default_factory=list)
    """The records that match, unless they are too many to be held, with the delete horizons of their batches."""
    is_whole: bool = True
    """Whether the file itself was read; of a captured one some bytes may have stayed on its broker."""
    problem: str = ""


@dataclass(slots=True, kw_only=True)
class ScannedReplica:
    """One directory, read."""

    place: PartitionPlace
    collected: CollectedReplica
    kind: CopyKind
    log: LoadedLog
    """The log that the start of its broker leaves."""
    coverage: Coverage = field(default_factory=Coverage)
    """Of its live segments."""
    left_over: Coverage = field(default_factory=Coverage)
    """Of segments that were renamed."""
    segments: int = 0
    bytes: int = 0
    records: int = 0
    markers: Markers = field(default_factory=Markers)
    not_captured: list[str] = field(default_factory=list)
    """Files of which a capture holds no records, or some only."""
    _files: dict[str, CopyFile] = field(default_factory=dict)

    @property
    def replica(self) -> Replica:
        """What was read of it."""
        return self.collected.replica

    def file(self, path: str) -> CopyFile:
        """Return one of its files, with the kind of copy that it makes."""
        if path not in self._files:
            self._files[path] = self._file(path)
        return self._files[path]

    def is_left_over(self, path: str) -> bool:
        """Whether a file was renamed, and the next start does not put it in place."""
        is_renamed = parse_file_name(path.rpartition("/")[2]).suffix is not FileSuffix.NONE
        return is_renamed and all(one.path != path for one in self.replica.segments)

    def _file(self, path: str) -> CopyFile:
        suffix = parse_file_name(path.rpartition("/")[2]).suffix
        is_renamed = self.is_left_over(path) and self.kind is not CopyKind.SNAPSHOT
        kind = CopyKind.DELETED if is_renamed else self.kind
        return CopyFile(replica=self.replica, path=path, suffix=suffix.value, kind=kind)

    def hits(self, path: str, records: Iterable[tuple[Record, int]]) -> list[Hit]:
        """Return records of one of its files, each given with the delete horizon of its batch in ms, -1 for none."""
        file = self.file(path)
        return [Hit(file, record, horizon) for record, horizon in records]

    def files(self) -> Iterator[Segment]:
        """Yield its segment files, those that no broker reads any more last."""
        yield from self.replica.segments
        yield from self.replica.deleted_segments


class ScannedPartition(NamedTuple):
    """The directories of a partition, and the copies that match."""

    replicas: list[ScannedReplica]
    found: int
    """Copies that match."""
    hits: list[Hit] | None
    """They, unless they are too many to be held."""


def scan_partitions(
    groups: Sequence[Sequence[PartitionPlace]],
    ranks: Mapping[int, int],
    search: RecordSearch,
    *,
    jobs: int,
    problems: list[Problem],
) -> Iterator[ScannedPartition]:
    """Read all copies of partitions, one partition after the other."""
    tasks = [(place, path) for group in groups for place in group for path in segment_paths(place, left_over=LEFT_OVER)]
    if sum(place.length for group in groups for place in group) < SMALL_WORK:
        jobs = 1
    room, room_bytes = MOST_HELD, MOST_BYTES_HELD
    searched = zip(tasks, stream(lambda task: _search_file(*task, search), tasks, jobs=jobs), strict=True)
    ahead = next(searched, None)
    for group in groups:
        replicas: list[ScannedReplica] = []
        hits: list[Hit] = []
        found = found_bytes = 0
        is_held = True
        for place in group:
            files: dict[str, SearchedFile] = {}
            while ahead is not None and ahead[0][0] is place:
                (_, path), file = ahead
                found += file.found
                found_bytes += file.bytes_found
                is_held &= file.found == len(file.hits) and found <= room and found_bytes <= room_bytes
                if not is_held:
                    file.hits.clear()
                files[path] = file
                ahead = next(searched, None)
            one = _scanned(place, files, ranks, problems)
            replicas.append(one)
            hits = (
                [*hits, *(hit for path, file in files.items() for hit in one.hits(path, file.hits))] if is_held else []
            )
        if is_held:
            room, room_bytes = room - found, room_bytes - found_bytes
        yield ScannedPartition(replicas, found, hits if is_held else None)


def _scanned(
    place: PartitionPlace, files: Mapping[str, SearchedFile], ranks: Mapping[int, int], problems: list[Problem]
) -> ScannedReplica:
    segments = {path: file.segment for path, file in files.items() if file.segment is not None}
    collected = collect_replica(place, left_over=LEFT_OVER, scanned=segments)
    problems += collected.problems
    replica = collected.replica
    kind = kind_of(replica, ranks)
    problems += [
        Problem(input=replica.input, path=path, message=file.problem) for path, file in files.items() if file.problem
    ]
    return scanned_replica(place, collected, kind, files)


def kind_of(replica: Replica, ranks: Mapping[int, int]) -> CopyKind:
    """Return what copies in a directory are."""
    return CopyKind.SNAPSHOT if replica.input in ranks else _KINDS[replica.state]


def scanned_replica(
    place: PartitionPlace, collected: CollectedReplica, kind: CopyKind, files: Mapping[str, SearchedFile]
) -> ScannedReplica:
    """Return one directory with what its files gave."""
    one = ScannedReplica(place=place, collected=collected, kind=kind, log=load_log(collected.replica))
    for path, file in files.items():
        coverage = one.left_over if one.is_left_over(path) else one.coverage
        for run in file.coverage.runs:
            coverage.add_run(*run)
        one.markers.merge(file.markers)
        one.segments += 1
        one.bytes += file.bytes
        one.records += file.records
        if not file.is_whole:
            one.not_captured.append(path)
    return one


class Taker:
    """Takes the records of one file in file order."""

    def __init__(self, search: RecordSearch, out: SearchedFile) -> None:
        self._search = search
        self._out = out

    def take(self, chunk: RecordChunk) -> None:
        """Take records in file order, control records among them, out of a chunk that is valid until this returns."""
        out = self._out
        out.coverage.add(chunk.offset, chunk.batches["partition_leader_epoch"][chunk.rows].astype(np.int64))
        for part, is_control in split_control(chunk):
            if is_control:
                _note_markers(part, out.markers)
                continue
            out.records += len(part.rows)
            rows = self._search.find(part)
            if not len(rows):
                continue
            out.found += len(rows)
            out.bytes_found += int((part.end[rows] - part.key_position[rows]).sum())
            if out.found > MOST_HELD or out.bytes_found > MOST_BYTES_HELD:
                out.hits.clear()
            else:
                out.hits.extend(records_with_horizons(part_of(part, rows)))


def records_with_horizons(chunk: RecordChunk) -> Iterator[tuple[Record, int]]:
    """Yield records, each with the delete horizon of its batch in milliseconds, -1 for none (KIP-534)."""
    batches = chunk.batches
    has_horizon = (batches["magic"] >= 2) & (batches["attributes"] & DELETE_HORIZON_BIT != 0)
    horizons = np.where(has_horizon, batches["base_timestamp"], NO_HORIZON)[chunk.rows]
    return zip(chunk.records(), horizons.tolist(), strict=True)


def _search_file(place: PartitionPlace, path: str, search: RecordSearch) -> SearchedFile:
    out = SearchedFile()
    taker = Taker(search, out)
    base_offset = parse_file_name(path.rpartition("/")[2]).base_offset
    assert isinstance(base_offset, int)
    root = place.state.root
    try:
        with open_evidence(root / path if path != "." else root) as file:
            if file.where:
                out.segment = scan_place(place, path)
                out.bytes = _take_captured(file, taker)
                out.is_whole = out.bytes >= file.size
                return out
            segment = scan_records(file, path=path, base_offset=base_offset, mtime_ns=file.mtime_ns, take=taker.take)
            out.segment = replace(segment, changed=file.changed())
            out.bytes = file.size
    except EvidenceError as error:
        out.problem = error.problem
    return out


def _take_captured(file: EvidenceFile, taker: Taker) -> int:
    held = 0
    for span in readable_ranges(file):
        held += span.length
        for chunk in iter_record_chunks(PartOfFile(file, span.end), start=span.position, end=span.end):
            if not isinstance(chunk, Damage):
                taker.take(chunk)
    return held


def _note_markers(part: RecordChunk, markers: Markers) -> None:
    for record in part.records():
        try:
            marker = parse_marker(record.key, record.value)
        except FormatError:
            continue
        if marker is not None and marker[0] in {ABORT, COMMIT}:
            markers.add(record.producer_id, record.offset, is_abort=marker[0] == ABORT)


def merged(runs: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Return ranges joined where they touch or overlap, in order."""
    out: list[OffsetRange] = []
    for one in sorted(runs):
        if out and one.first <= out[-1].last + 1:
            out[-1] = OffsetRange(out[-1].first, max(out[-1].last, one.last))
        else:
            out.append(one)
    return tuple(out)
