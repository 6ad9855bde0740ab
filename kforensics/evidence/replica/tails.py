"""The segments of a partition directory without most of their content: the end of the log, and the leader epochs of what was not read.

A broker that starts after a clean stop reads no more. After another stop it reads the segments from the recovery point on, and so does this. The epochs
of what is not read are those of `leader-epoch-checkpoint` where they agree with the first batch of the log and with the batches at its end; else
the batches decide, which are found by halving, for epochs rise along a log.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import NO_DIGESTS, CheckpointValue, Replica, Segment
from kforensics.evidence.replica.ends import LARGEST_END, IndexEntries, PartOfFile
from kforensics.evidence.replica.segments import scan_segment
from kforensics.formats.index import read_last_time_entry
from kforensics.formats.log.batch_table import BATCH_HEADER, LOG_OVERHEAD, NO_EPOCH, empty_batches
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import EvidenceFile, open_below
from kforensics.source.naming import FileSuffix
from kforensics.source.walk import FoundFile
from kforensics.units import METADATA_TOPICS, EpochEntry

Scan = Callable[[FoundFile], Segment]


class _NotDecidedError(Exception):
    """The ends of the log do not decide what its epochs are: all of it has to be read."""


class _Point(NamedTuple):
    """A batch of which the header was read."""

    segment: int
    """Its number among the files."""
    position: int
    offset: int
    epoch: int
    magic: int


class _Read(NamedTuple):
    """What was read: whole segments by their number, and perhaps the end of the one before them."""

    segments: dict[int, Segment]
    first: int
    """The number of the first segment of which anything was read."""
    start: int
    """The position in it from which on it was read."""


def read_tails(
    place: PartitionPlace, files: Sequence[FoundFile], directory: Replica, scan: Scan
) -> list[Segment] | None:
    """Return the segments in use of a partition directory, read from where its broker reads them when it loads the log; none where all has to be read."""
    if not files or place.topic_partition.topic in METADATA_TOPICS:
        return None  # the metadata log is opened as after a crash with a recovery point of 0 (`KafkaRaftLog.createLog`)
    if any(found.name.suffix is FileSuffix.SWAP for found in files):
        return None  # what it replaces, its last offset tells alone
    if any(_base(files[0]) < base < _base(files[-1]) for base, _ in directory.orphan_indexes):
        return None  # whether the segment before it holds its offsets, that segment tells alone
    try:
        with ExitStack() as stack:
            return _Tails(place, files, directory, scan, stack).segments()
    except (EvidenceError, _NotDecidedError):
        return None


class _Tails:
    def __init__(
        self, place: PartitionPlace, files: Sequence[FoundFile], directory: Replica, scan: Scan, stack: ExitStack
    ) -> None:
        self._root = place.state.root
        self._files = files
        self._bases = [_base(found) for found in files]
        self._directory = directory
        self._scan = scan
        self._stack = stack
        self._opened: dict[str, EvidenceFile] = {}
        self._entries: dict[int, IndexEntries | None] = {}

    def segments(self) -> list[Segment]:
        read = self._read()
        rest = [at for at in range(read.first) if self._files[at].length]
        if not rest and not read.start:
            return [read.segments.get(at) or self._unread(at, (), frozenset()) for at in range(len(self._files))]
        low = self._point(rest[0] if rest else read.first, 0)
        high = self._first_read(read)
        lineage = self._lineage(low, high)
        out = []
        for at in range(len(self._files)):
            magics = frozenset({low.magic}) if at == low.segment else frozenset[int]()
            if at < read.first:
                out.append(self._unread(at, _epochs_within(lineage, self._bases[at], self._bases[at + 1]), magics))
            elif at == read.first and read.start:
                out.append(self._completed(at, read.segments[at], lineage, low))
            else:
                out.append(read.segments[at])
        return out

    def _read(self) -> _Read:
        """Read what a start reads, and the last batches of the log where these are below."""
        first = len(self._files)
        if not self._directory.clean_shutdown:
            point = self._directory.recovery_point
            # Recovery scans from the segment that holds the recovery point (`LogSegments.values`).
            first = max(bisect_right(self._bases, 0 if isinstance(point, Absent) else point.value) - 1, 0)
        segments = {at: self._scan(self._files[at]) for at in range(first, len(self._files))}
        start = 0
        while first and not any(one.batch_count for one in segments.values()):
            first -= 1
            segments[first], start = self._end_of(first)
        return _Read(segments=segments, first=first, start=start)

    def _end_of(self, at: int) -> tuple[Segment, int]:
        """Return a segment from the last entry of its index on; all of it where no sound batch is there."""
        found = self._files[at]
        file = self._open(found.path)
        entries = self._index(at) if file.size else None
        start = entries.position(entries.count - 1) if entries is not None and entries.count else 0
        if 0 < start < file.size:
            segment = _scan_end(file, found.path, self._bases[at], start)
            is_found = segment.batch_count and not any(one.span.position == start for one in segment.damage)
            if is_found:
                return segment, start
        return self._scan(found), 0

    def _completed(self, at: int, segment: Segment, lineage: Sequence[EpochEntry], low: _Point) -> Segment:
        """Return a segment of which the end was read with what is known of the rest of it."""
        assert isinstance(segment.first_offset, int)
        file = self._open(self._files[at].path)
        before = _epochs_within(lineage, self._bases[at], segment.first_offset)
        read = (
            segment.epochs[1:]
            if before and segment.epochs[:1] and before[-1].leader_epoch == segment.epochs[0].leader_epoch
            else segment.epochs
        )
        newest = [one for one in (segment.max_timestamp_ms, self._newest_indexed(at)) if isinstance(one, int)]
        return replace(
            segment,
            path=self._files[at].path,
            mtime_ns=file.mtime_ns,
            changed=file.changed(),
            unread_below=segment.first_offset,
            first_offset=low.offset if low.segment == at else segment.base_offset,
            epochs=(*before, *read),
            magics=segment.magics | ({low.magic} if low.segment == at else frozenset[int]()),
            max_timestamp_ms=max(newest, default=Absent.NOT_APPLICABLE),
        )

    def _newest_indexed(self, at: int) -> int | Absent:
        """Return the time of the last entry of the time index, which is the newest up to there."""
        try:
            file = self._open(_beside(self._files[at].path, ".timeindex"))
            last = read_last_time_entry(file.read, file.size)
        except EvidenceError:
            return Absent.UNREADABLE
        return last.timestamp if last is not None and last.timestamp else Absent.NOT_WRITTEN

    def _unread(self, at: int, epochs: tuple[EpochEntry, ...], magics: frozenset[int]) -> Segment:
        """Return a segment of which nothing was read: it holds what its name, its size and that of the next one say."""
        found, base, end = self._files[at], self._bases[at], self._bases[at + 1]
        is_empty = not found.length or end <= base
        return Segment(
            path=found.path,
            base_offset=base,
            length=found.length,
            valid_length=found.length,
            recovered_end_offset=Absent.NOT_APPLICABLE if is_empty else end,
            first_offset=Absent.NOT_APPLICABLE if is_empty else base,
            last_offset=Absent.NOT_APPLICABLE if is_empty else end - 1,
            batch_count=0,
            record_count=0,
            epochs=() if is_empty else epochs,
            magics=magics,
            max_timestamp_ms=Absent.NOT_APPLICABLE if is_empty else Absent.UNKNOWN,
            digests=NO_DIGESTS,
            batches=empty_batches() if is_empty else Absent.NOT_WRITTEN,
            mtime_ns=found.mtime_ns,
            unread_below=0 if is_empty else end,
        )

    # Leader epochs of what was not read.

    def _lineage(self, low: _Point, high: _Point) -> list[EpochEntry]:
        """Return the start of each epoch from one point up to the other."""
        first = [EpochEntry(low.epoch, low.offset)] if low.epoch != NO_EPOCH else []
        if low.epoch == high.epoch:
            return first
        claimed = self._directory.checkpoint_epochs
        # A cleaner leaves epochs of the checkpoint without a batch.
        is_cleaned = isinstance(self._directory.cleaner_point, CheckpointValue)
        if not isinstance(claimed, Absent) and not is_cleaned and _agrees(claimed, low, high):
            inside = [
                one for one in claimed if low.offset < one.start_offset <= high.offset and one.leader_epoch > low.epoch
            ]
            return first + [
                one
                for at, one in enumerate(inside)
                if at + 1 == len(inside) or inside[at + 1].start_offset > one.start_offset
            ]
        return first + self._changes(low, high)

    def _changes(self, low: _Point, high: _Point) -> list[EpochEntry]:
        """Return the start of each epoch behind one point, up to the other."""
        if low.epoch == high.epoch:
            return []
        middle = self._between(low, high)
        if middle is None:
            return self._walked(low, high)
        if not low.epoch <= middle.epoch <= high.epoch:
            raise _NotDecidedError
        return [*self._changes(low, middle), *self._changes(middle, high)]

    def _between(self, low: _Point, high: _Point) -> _Point | None:
        last = high.segment + 1 if high.position else high.segment
        inner = [at for at in range(low.segment + 1, last) if self._files[at].length]
        if inner:
            return self._point(inner[len(inner) // 2], 0)
        entries = self._index(low.segment)
        if entries is None:
            return None
        end = high.position if high.segment == low.segment else self._files[low.segment].length
        first = bisect_right(range(entries.count), low.position, key=entries.position)
        behind = bisect_right(range(entries.count), end - 1, key=entries.position)
        middle = entries.position((first + behind) // 2) if first < behind else low.position
        # Positions that do not rise, as in a damaged index, lead out of what is halved.
        return self._point(low.segment, middle) if low.position < middle < end else None

    def _walked(self, low: _Point, high: _Point) -> list[EpochEntry]:
        file = self._open(self._files[low.segment].path)
        part = PartOfFile(file, high.position if high.segment == low.segment else file.size)
        out: list[EpochEntry] = []
        epoch = low.epoch
        for window in walk_segment(part, level=Level.CRC, start=low.position):
            if window.damage:
                raise _NotDecidedError
            for row in window.batches:
                if row["partition_leader_epoch"] != epoch:
                    epoch = int(row["partition_leader_epoch"])
                    out.append(EpochEntry(epoch, int(row["base_offset"])))
        if epoch != high.epoch:
            out.append(EpochEntry(high.epoch, high.offset))
        return out

    def _point(self, at: int, position: int) -> _Point:
        head = self._open(self._files[at].path).read(position, BATCH_HEADER.length)
        offset, length, magic = _number(head[:8]), _number(head[8:12]), head[16] if len(head) > 16 else NO_EPOCH
        is_batch = (
            magic in {0, 1, 2}
            and self._bases[at] <= offset
            and 0 < length <= self._files[at].length - position - LOG_OVERHEAD
        )
        if not is_batch:
            raise _NotDecidedError
        return _Point(at, position, offset, _number(head[12:16]) if magic == 2 else NO_EPOCH, magic)

    def _first_read(self, read: _Read) -> _Point:
        at = next((at for at in sorted(read.segments) if read.segments[at].batch_count), None)
        if at is None:
            raise _NotDecidedError
        rows = read.segments[at].batches
        if isinstance(rows, Absent) or not rows["crc_valid"][0]:
            return self._point(at, read.start if at == read.first else 0)
        first = rows[0]
        epoch = int(first["partition_leader_epoch"])
        return _Point(at, int(first["position"]), int(first["base_offset"]), epoch, int(first["magic"]))

    def _index(self, at: int) -> IndexEntries | None:
        if at not in self._entries:
            try:
                self._entries[at] = IndexEntries(self._open(_beside(self._files[at].path, ".index")))
            except EvidenceError:
                self._entries[at] = None
        return self._entries[at]

    def _open(self, path: str) -> EvidenceFile:
        if path not in self._opened:
            self._opened[path] = self._stack.enter_context(open_below(self._root, path))
        return self._opened[path]


class _ScannedEnd(NamedTuple):
    """The end of a segment that was scanned last, and its bytes."""

    base_offset: int
    start: int
    size: int
    data: bytes
    segment: Segment


_scanned_last: _ScannedEnd | None = None


def _scan_end(file: EvidenceFile, path: str, base_offset: int, start: int) -> Segment:
    """Scan a segment from a position on, once for replicas that end in the same bytes: path and time may be those of another one."""
    global _scanned_last  # noqa: PLW0603 - the replicas of a partition are read one behind the other
    if file.size - start > LARGEST_END:
        return scan_segment(file, path=path, base_offset=base_offset, start=start, mtime_ns=file.mtime_ns)
    data, last = file.read(start, file.size - start), _scanned_last
    if last is not None and last[:4] == (base_offset, start, file.size, data):
        return last.segment
    segment = scan_segment(file, path=path, base_offset=base_offset, start=start, mtime_ns=file.mtime_ns)
    _scanned_last = _ScannedEnd(base_offset, start, file.size, data, segment)
    return segment


def _agrees(claimed: Sequence[EpochEntry], *points: _Point) -> bool:
    """Whether a checkpoint says of batches what their headers say; it says nothing of what is below its first entry, which rises with the log start."""
    for point in points:
        at = bisect_right(claimed, point.offset, key=lambda one: one.start_offset)
        if (claimed[at - 1].leader_epoch if at else NO_EPOCH) != point.epoch:
            return False
    return True


def _epochs_within(lineage: Sequence[EpochEntry], first: int, end: int) -> tuple[EpochEntry, ...]:
    """Return the epochs of a run of offsets, each with where it begins in it."""
    at = bisect_right(lineage, first, key=lambda one: one.start_offset)
    held = [EpochEntry(lineage[at - 1].leader_epoch, first)] if at else []
    return (*held, *(one for one in lineage[at:] if one.start_offset < end))


def _beside(path: str, suffix: str) -> str:
    return path.removesuffix(".log") + suffix


def _base(found: FoundFile) -> int:
    assert isinstance(found.name.base_offset, int)
    return found.name.base_offset


def _number(data: bytes) -> int:
    return int.from_bytes(data, signed=True)
