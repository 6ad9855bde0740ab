"""What one segment comes to in a capture: its summary, and where it can matter a row a batch and digests of its records."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.captured.columns import BatchPacker, Columns, RecordPacker, digest_lists, narrow, segment_row
from kforensics.evidence.captured.reading import OFFSET_INDEX, IndexWatch, controls, digest_record
from kforensics.evidence.discovery.partition_dirs import LogDirState, PartitionPlace
from kforensics.evidence.model import Segment
from kforensics.evidence.replica.captured_loading import UNSOUND
from kforensics.evidence.replica.collect import read_ends
from kforensics.evidence.replica.ends import indexed_start
from kforensics.evidence.replica.loader_scan import reader_at
from kforensics.evidence.replica.segments import scan_segment
from kforensics.formats.log.batch_table import BatchTable
from kforensics.formats.log.records import Record
from kforensics.formats.primitives.word_buffer import SegmentBytes
from kforensics.formats.segment.walk import Level, iter_records, walk_segment
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.walk import FoundFile, Listings
from kforensics.units import OFFSETS_TOPIC, TopicPartition

MOST_RUNS = 65_536
"""Leader epochs, digests or damaged places of one segment that a capture describes; sound segments have some hundred."""

NEAR_BYTES = 64 << 10
"""Bytes of a segment within which depth tails takes along all rows from the beginning of the last leader epoch but one."""

NEAR_BYTES_OF_OTHERS = 4 << 20
"""Likewise of directories that no broker serves, of which there are few: stray ones, and those of a replica that moves."""

MOST_STOPS = 64
"""Damaged places of a segment at which it is looked how a broker's reader goes on; it stops at the first where it checks the batches."""

_WORTH_NARROWING = 64
"""Rows; fewer are made narrow together with those of other segments."""

_RECORDS_AT_A_TIME = 1 << 16
_LEFT_OUT = frozenset({"path", "length", "base_offset", "mtime_ns", "scanned_ns", "is_deleted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentTask:
    """One segment to read; small enough to be sent to another process."""

    path: Path
    base_offset: int
    length: int
    topic_partition: TopicPartition
    carried_from: int
    """Rows are taken along of batches that end at this offset or above."""
    bytes_from: int = 0
    """Likewise of their bytes, where bytes are asked for."""
    digest_key: bytes = b""
    """The key of digests of records; empty where they have none."""
    by_record: bool
    """Batches alone may decide nothing: digests of the records are taken along."""
    indexes: tuple[str, ...] = ()
    """Endings of the indexes that it has, but of empty ones."""


@dataclass(slots=True, kw_only=True)
class CapturedScan:
    """The result of a scan: the content of the segment's entry, and its rows."""

    content: dict[str, Any]
    length: int
    mtime_ns: int
    batches: list[Columns] = field(default_factory=list)
    records: list[Columns] = field(default_factory=list)
    problem: str | None = None
    changed: bool = False
    bytes_from: int = 0
    """The position behind the last batch whose bytes are not asked for."""
    indexes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What the capture says of its indexes, by their endings."""

    @property
    def differs_by_batch(self) -> bool:
        """Whether its batches may differ from those of another replica while the records do not: a cleaner took records out, or it has conversions of old formats."""
        row = self.content.get("segment") or {}
        return bool(row.get("is_thinned")) or any(magic < 2 for magic in row.get("magics", ()))


def capture_segment(task: SegmentTask) -> CapturedScan:
    """Read one segment once, its records a second time where they are asked for; what can't be read becomes a problem."""
    try:
        with open_evidence(task.path) as file:
            watch = _Watch(file, task)
            segment = scan_segment(file, path="", base_offset=task.base_offset, mtime_ns=file.mtime_ns, watch=watch.see)
            return _described(task, file, segment, watch)
    except EvidenceError as error:
        return CapturedScan(content={"problem": error.problem}, length=task.length, mtime_ns=0, problem=error.problem)


def capture_ends(place: PartitionPlace, tasks: Mapping[str, SegmentTask]) -> dict[str, CapturedScan] | None:
    """Read of a partition directory what depth tails reads; none where the ends of the log decide too little, so that all of it has to be read."""
    scans: dict[str, CapturedScan] = {}

    def scan(found: FoundFile) -> Segment:
        task = replace(tasks[_name(found.path)], carried_from=0)
        with open_evidence(task.path) as file:
            watch = _Watch(file, task)
            segment = scan_segment(
                file, path=found.path, base_offset=task.base_offset, mtime_ns=file.mtime_ns, watch=watch.see
            )
            scans[_name(found.path)] = _described(task, file, segment, watch)
            return segment

    segments = read_ends(place, scan)
    if segments is None:
        return None
    for segment in segments:
        if segment.unread_below or _name(segment.path) not in scans:
            is_live = place.is_live
            near = NEAR_BYTES if is_live else NEAR_BYTES_OF_OTHERS
            scans[_name(segment.path)] = _end(tasks[_name(segment.path)], segment, near)
    return scans


def _end(task: SegmentTask, segment: Segment, near: int) -> CapturedScan:
    """Return a segment of which the end or nothing was read, with the rows that are asked for."""
    task = replace(task, carried_from=min(task.carried_from, segment.unread_below), indexes=())
    index = task.path.with_suffix(OFFSET_INDEX)
    try:
        with open_evidence(task.path) as file:
            start = indexed_start(index, file, task.base_offset, task.bytes_from)
            if task.bytes_from < task.carried_from and file.size - start <= near:
                task = replace(task, carried_from=task.bytes_from)
            watch = _Watch(file, task)
            if isinstance(segment.last_offset, int) and segment.last_offset >= task.carried_from:
                start = indexed_start(index, file, task.base_offset, task.carried_from)
                for window in walk_segment(file, level=Level.CRC, start=start):
                    watch.see(window.batches)
            return _described(task, file, segment, watch)
    except EvidenceError as error:
        return CapturedScan(content={"problem": error.problem}, length=task.length, mtime_ns=0, problem=error.problem)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _described(task: SegmentTask, file: EvidenceFile, segment: Segment, watch: "_Watch") -> CapturedScan:
    too_many = max(len(segment.epochs), len(segment.digests), len(segment.damage)) > MOST_RUNS
    if too_many:
        words = "it has more leader epochs, runs of offsets or damaged places than a capture describes"
        return CapturedScan(content={"problem": words}, length=file.size, mtime_ns=file.mtime_ns, problem=words)
    records = _records(file, task.digest_key) if task.by_record else []
    commits = _commits(task) if task.topic_partition.topic == OFFSETS_TOPIC else None
    segment = replace(segment, changed=file.changed())
    row = {
        name: value
        for name, value in segment_row(segment, {}, is_deleted=False, scanned_ns=0).items()
        if name not in _LEFT_OUT
    }
    row["digests"] = digest_lists(segment.digests)
    row["epochs"] = [list(entry) for entry in segment.epochs]
    row["damage"] = [{name: value for name, value in one.items() if name != "path"} for one in row["damage"]]
    row["tail"], row["extent"] = watch.tail, watch.extent
    row["carried_from"] = task.carried_from if watch.pieces else None
    row["first"] = watch.packer.first
    if segment.damage and not segment.unread_below:
        row["stops"] = [[position, reader_at(file, position)] for position in watch.gaps(file.size)]
        row["unsound"] = watch.unsound
    row["identity"] = list(file.identity)
    row["records"] = [] if task.by_record else None
    if segment.unread_below:
        row["unread_below"] = segment.unread_below
    if commits is not None:
        row["commits"] = commits
    return CapturedScan(
        content={"segment": row},
        length=file.size,
        mtime_ns=file.mtime_ns,
        batches=watch.pieces,
        records=records,
        changed=segment.changed,
        bytes_from=watch.bytes_from,
        indexes=watch.indexes.contents(is_damaged=bool(segment.damage)),
    )


class _Watch:
    """Sees the batches of each window, and keeps those that are taken along."""

    def __init__(self, source: SegmentBytes, task: SegmentTask) -> None:
        self._source = source
        self._bytes_from_offset = task.bytes_from
        self._is_below = True
        self.bytes_from = 0
        self._carried_from = task.carried_from
        self.packer = BatchPacker()
        self.indexes = IndexWatch(task.path, task.base_offset, task.indexes)
        self._end = 0
        self._gaps: list[int] = []
        self.unsound: list[list[int]] | None = []
        """Of batches whose checksum fails, what their headers say; none where they are too many."""
        self.pieces: list[Columns] = []
        self.tail: list[int] | None = None
        self.extent: list[int] | None = None
        """Position and length of the first sound batch, and the position behind the last."""

    def see(self, batches: BatchTable) -> None:
        is_sound = batches["crc_valid"]
        sound = batches if is_sound.all() else batches[is_sound]  # a window is copied only where it has to be
        if len(sound) < len(batches) and self.unsound is not None:
            rows = batches[~batches["crc_valid"]]
            self.unsound += [list(one) for one in zip(*(rows[name].tolist() for name in UNSOUND), strict=True)]
            if len(self.unsound) > MOST_STOPS:
                self.unsound = None
        if not len(sound):
            return
        first, last = sound[0], sound[-1]
        if self.extent is None:
            self.extent = [int(first["position"]), int(first["length"]), 0]
        self.extent[2] = int(last["position"]) + int(last["length"])
        self.tail = [
            int(sound["last_offset"].max()) + 1,
            int(last["partition_leader_epoch"]),
            int(last["max_timestamp"]),
        ]
        self._see_bytes(sound)
        self.indexes.see(sound)
        ends = sound["position"] + sound["length"]
        before = np.concatenate((np.array([self._end], dtype=np.int64), ends[:-1]))
        if len(self._gaps) < MOST_STOPS:
            self._gaps += before[sound["position"] != before].tolist()
        self._end = int(ends[-1])
        is_wanted = sound["last_offset"] >= self._carried_from
        wanted = sound if is_wanted.all() else sound[is_wanted]
        if len(wanted):
            columns = self.packer.pack(wanted, *controls(wanted, self._source))
            is_small = len(wanted) < _WORTH_NARROWING
            self.pieces.append(columns if is_small else {name: narrow(values) for name, values in columns.items()})

    def gaps(self, size: int) -> list[int]:
        """Return the positions at which bytes begin that are no sound batch, those behind the last one among them, at most `MOST_STOPS`."""
        return [*self._gaps, *([self._end] if self._end < size else [])][:MOST_STOPS]

    def _see_bytes(self, sound: BatchTable) -> None:
        """Find where the bytes begin: behind the last batch before the first that is asked for, so that damage between them is among the bytes."""
        if not self._is_below:
            return
        at = int(np.argmax(sound["last_offset"] >= self._bytes_from_offset))
        self._is_below = bool(sound["last_offset"][at] < self._bytes_from_offset)
        below = sound if self._is_below else sound[:at]
        if len(below):
            self.bytes_from = int(below["position"][-1]) + int(below["length"][-1])


def _records(file: EvidenceFile, key: bytes) -> list[Columns]:
    packer, pieces, waiting = RecordPacker(), [], []
    for record in iter_records(file):
        if isinstance(record, Record):
            waiting.append(digest_record(record, key))
        if len(waiting) >= _RECORDS_AT_A_TIME:
            pieces.append(packer.pack(waiting))
            waiting = []
    if waiting:
        pieces.append(packer.pack(waiting))
    return [{name: narrow(values) for name, values in columns.items()} for columns in pieces]


def _commits(task: SegmentTask) -> list[list[Any]]:
    root = task.path.parent
    state = LogDirState(listings=Listings(root), input=0, log_dir="", broker_id=Absent.UNKNOWN, clean_shutdown=False)
    place = PartitionPlace(state=state, path="", topic_partition=task.topic_partition, directory_state="live")
    from kforensics.evidence.group_commits import commits_in_file, highest_commits  # noqa: PLC0415 - only logs of offsets need it

    return [
        [
            one.partition.topic,
            one.partition.partition,
            one.group,
            one.offset,
            None if isinstance(one.leader_epoch, Absent) else one.leader_epoch,
            one.time_ms,
            getattr(one.citation.span, "position", 0),
        ]
        for one in highest_commits(commits_in_file(place, task.path.name))
    ]
