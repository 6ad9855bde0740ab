"""One `.log` file -> `Segment`: offsets, epochs, damage, and digests that stay small however many batches there are."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Damage, DamageKind
from kforensics.errors import EvidenceError
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import BUCKET_OFFSETS, DIGEST_DTYPE, NO_DIGESTS, Segment
from kforensics.evidence.segment_parts import SMALLEST_PART, Extent, Part, empty_extent, extended, parts_of_file
from kforensics.formats.log.batch_table import BATCH_HEADER, BatchTable, empty_batches
from kforensics.formats.primitives.numbers import distinct
from kforensics.formats.primitives.word_buffer import SegmentBytes
from kforensics.formats.segment.walk import Level, iter_windows_with_records, walk_segment
from kforensics.source.capture import CapturedSegment
from kforensics.source.mapped import EvidenceFile, open_below
from kforensics.source.naming import parse_file_name
from kforensics.units import EpochEntry

if TYPE_CHECKING:
    from kforensics.formats.columns.record_stream import RecordChunk


KEPT_BATCHES = 65_536
"""A segment with more batches than this keeps digests only: its table is read again where it is needed."""

_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SEEDS = np.array([[0x243F6A8885A308D3], [0x13198A2E03707344]], dtype=np.uint64)


def read_segment(
    file: EvidenceFile,
    *,
    path: str,
    base_offset: int,
    with_batches: bool = True,
) -> Segment:
    """Return a segment: what is in its file, or what a capture holds of it."""
    if isinstance(file, CapturedSegment):
        from kforensics.evidence.captured.reading import captured_segment  # noqa: PLC0415 - of captures alone

        return captured_segment(file, path=path, base_offset=base_offset, with_batches=with_batches)
    segment = scan_segment(file, path=path, base_offset=base_offset, mtime_ns=file.mtime_ns)
    return replace(segment, changed=file.changed())


def scan_segment(
    source: SegmentBytes,
    *,
    path: str,
    base_offset: int,
    mtime_ns: int = 0,
    watch: Callable[[BatchTable], None] | None = None,
    start: int = 0,
) -> Segment:
    """Read one segment file in bounded memory and keep what comparisons need."""
    summary = SegmentSummary(base_offset)
    length = source.size
    for window in walk_segment(source, level=Level.CRC, start=start):
        if watch is not None:
            watch(window.batches)
        summary.add(window.batches, window.damage, window.record_count)
    return summary.segment(path=path, length=length, mtime_ns=mtime_ns)


def scan_records(
    source: SegmentBytes, *, path: str, base_offset: int, mtime_ns: int, take: "Callable[[RecordChunk], None]"
) -> Segment:
    """Read one segment file once, for what `scan_segment` keeps of it and for the records of sound batches in file order, whose bytes hold until `take` returns."""
    summary = SegmentSummary(base_offset)
    length = source.size
    for window, found in iter_windows_with_records(source):
        summary.add(window.batches, window.damage, window.record_count)
        for chunk in found:
            if not isinstance(chunk, Damage):
                take(chunk)
    return summary.segment(path=path, length=length, mtime_ns=mtime_ns)


class SegmentSummary:
    """What is kept of a segment while it is read."""

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.tables: list[BatchTable] = []
        self.kept = 0
        self.batch_count = 0
        self.record_count = 0
        self.first_offset: int | Absent = Absent.NOT_APPLICABLE
        self.last_offset: int | Absent = Absent.NOT_APPLICABLE
        self.recovered_end: int | Absent = Absent.NOT_APPLICABLE
        self.valid_length = 0
        self.recovered_batches = 0
        self.recovered_records = 0
        self.is_thinned = False
        self.thinned_below = 0
        """The offset behind the last batch that lacks records."""
        self.gap_below = 0
        """The offset behind the last offsets that no batch has, where no damage explains it."""
        self.longest_batch = 0
        self.first_bad: int | None = None
        self.epochs: list[EpochEntry] = []
        self.magics: set[int] = set()
        self.max_timestamp = -1
        self.digests: list[NDArray[np.void]] = []
        self.damage: list[Damage] = []

    def add(self, batches: BatchTable, damage: Iterable[Damage], record_count: int) -> None:
        """Add what was read next."""
        for one in damage:
            self.damage.append(one)
            if one.kind not in NO_END_OF_RECOVERY and (self.first_bad is None or one.span.position < self.first_bad):
                self.first_bad = one.span.position
        self.record_count += record_count
        sound = batches[batches["crc_valid"]]
        if not len(sound):
            return
        self.batch_count += len(sound)
        if isinstance(self.first_offset, Absent):
            self.first_offset = int(sound["base_offset"][0])
        last = int(sound["last_offset"].max())
        spans = sound["last_offset"] - sound["base_offset"] + 1
        self._add_traces_of_cleaning(sound, spans, last)
        self.last_offset = last if isinstance(self.last_offset, Absent) else max(self.last_offset, last)
        before = sound if self.first_bad is None else sound[sound["position"] < self.first_bad]
        self.recovered_batches += len(before)
        self.recovered_records += int(before["count"].sum())
        self.longest_batch = max(self.longest_batch, int(spans.max()))
        if len(before):
            self.recovered_end = int(before["last_offset"][-1]) + 1
            self.valid_length = int(before["position"][-1] + before["length"][-1])
        self.magics.update(distinct(sound["magic"]).tolist())
        self.max_timestamp = max(self.max_timestamp, int(sound["max_timestamp"].max()))
        self._add_epochs(sound)
        self.digests.append(digest_batches(sound))
        if self.kept + len(sound) <= KEPT_BATCHES:
            self.tables.append(sound.copy())
        else:
            self.tables.clear()
        self.kept += len(sound)

    def _add_traces_of_cleaning(self, sound: BatchTable, spans: NDArray[np.int64], last: int) -> None:
        """Note which of the batches that come next lack records, and which offsets are missing between batches."""
        is_thinned = (sound["magic"] == 2) & (sound["count"] < spans)
        if is_thinned.any():
            self.is_thinned = True
            self.thinned_below = max(self.thinned_below, int(sound["last_offset"][is_thinned].max()) + 1)
        first = int(sound["base_offset"][0])
        if self.damage:
            return
        if not isinstance(self.last_offset, Absent) and first > self.last_offset + 1:
            self.gap_below = max(self.gap_below, first)
        # The sum tells of most segments that nothing is missing, without a look at each batch.
        if int(spans.sum()) != last + 1 - first:
            at = np.flatnonzero(sound["base_offset"][1:] > sound["last_offset"][:-1] + 1)
            if len(at):
                self.gap_below = max(self.gap_below, int(sound["base_offset"][at[-1] + 1]))

    def _add_epochs(self, sound: BatchTable) -> None:
        with_epoch = sound[sound["partition_leader_epoch"] >= 0]
        if not len(with_epoch):
            return
        epochs = with_epoch["partition_leader_epoch"]
        changes = np.flatnonzero(np.diff(epochs)) + 1
        for at in (0, *changes.tolist()):
            epoch = int(epochs[at])
            if not self.epochs or self.epochs[-1].leader_epoch != epoch:
                self.epochs.append(EpochEntry(epoch, int(with_epoch["base_offset"][at])))

    def extend(self, other: "SegmentSummary") -> None:
        """Add what was read behind these batches."""
        if not isinstance(self.last_offset, Absent) and not isinstance(other.first_offset, Absent):
            is_gap = other.first_offset > self.last_offset + 1
            self.gap_below = max(self.gap_below, other.gap_below, other.first_offset if is_gap else 0)
        self.damage += other.damage
        self.record_count += other.record_count
        self.batch_count += other.batch_count
        self.last_offset, self.recovered_end = other.last_offset, other.recovered_end
        self.valid_length = other.valid_length
        self.recovered_batches += other.recovered_batches
        self.recovered_records += other.recovered_records
        self.longest_batch = max(self.longest_batch, other.longest_batch)
        self.is_thinned |= other.is_thinned
        self.thinned_below = max(self.thinned_below, other.thinned_below)
        self.magics |= other.magics
        self.max_timestamp = max(self.max_timestamp, other.max_timestamp)
        is_same = bool(self.epochs and other.epochs) and self.epochs[-1].leader_epoch == other.epochs[0].leader_epoch
        self.epochs += other.epochs[1:] if is_same else other.epochs
        self.digests += other.digests
        self.kept += other.kept
        self.tables = [*self.tables, *other.tables] if self.kept <= KEPT_BATCHES else []

    def segment(self, *, path: str, length: int, mtime_ns: int, changed: bool = False) -> Segment:
        """Return the segment."""
        kept = self.kept <= KEPT_BATCHES
        return Segment(
            path=path,
            base_offset=self.base_offset,
            length=length,
            valid_length=self.valid_length,
            recovered_end_offset=self.recovered_end,
            first_offset=self.first_offset,
            last_offset=self.last_offset,
            batch_count=self.batch_count,
            record_count=self.record_count,
            epochs=tuple(self.epochs),
            magics=frozenset(self.magics),
            max_timestamp_ms=self.max_timestamp if self.max_timestamp >= 0 else Absent.NOT_APPLICABLE,
            digests=add_digests(self.digests),
            batches=(np.concatenate(self.tables) if self.tables else empty_batches()) if kept else Absent.NOT_WRITTEN,
            damage=tuple(self.damage),
            mtime_ns=mtime_ns,
            recovered_batch_count=self.recovered_batches,
            recovered_record_count=self.recovered_records,
            is_thinned=self.is_thinned,
            thinned_below=max(self.thinned_below, self.gap_below) if self.is_thinned else 0,
            longest_batch=self.longest_batch,
            changed=changed,
        )


NO_END_OF_RECOVERY = frozenset({DamageKind.ORDER, DamageKind.EPOCH, DamageKind.TOO_LARGE})
"""Damage that recovery does not see: each batch is sound, and only their sequence is not, or what only a reader of the records meets."""


def digest_batches(batches: BatchTable) -> NDArray[np.void]:
    """Return 128 bits for each bucket of offsets, over (base offset, leader epoch, length, crc) of its batches.

    The sum of two digests is the digest of both sets of batches, so segment rolls do not matter.
    """
    if not len(batches):
        return NO_DIGESTS
    rows = np.zeros(len(batches), dtype=DIGEST_DTYPE)
    rows["bucket"] = batches["base_offset"] // BUCKET_OFFSETS
    rows["low"], rows["high"] = _mixed(batches)
    rows["batches"] = 1
    rows["position"] = batches["position"]
    return add_digests([rows])


def add_digests(parts: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    """Return one digest a bucket out of several; the sums wrap at 64 bits."""
    parts = [part for part in parts if len(part)]
    if len(parts) == 1 and len(parts[0]) == 1:
        return parts[0]
    # To concatenate them, numpy would compare their fields, which takes 30 µs for each part.
    rows = np.frombuffer(b"".join([part.tobytes() for part in parts]), dtype=DIGEST_DTYPE)
    if not len(rows):
        return rows
    order = np.argsort(rows["bucket"], kind="stable")
    rows = rows[order]
    starts = np.flatnonzero(np.concatenate(([True], np.diff(rows["bucket"]) != 0)))
    out = np.zeros(len(starts), dtype=DIGEST_DTYPE)
    out["bucket"] = rows["bucket"][starts]
    for name in ("low", "high", "batches"):
        out[name] = np.add.reduceat(rows[name], starts)
    out["position"] = np.minimum.reduceat(rows["position"], starts)
    return out


def _mixed(batches: BatchTable) -> NDArray[np.uint64]:
    """Return two numbers of 64 bits for each batch."""
    # The finaliser of splitmix64, after each word: equal sums of different batches are then a matter of 2**-128.
    state = batches["base_offset"].astype(np.uint64) * _MIX[0] + _SEEDS
    for name in ("partition_leader_epoch", "length", "crc"):
        state ^= batches[name].astype(np.int64).astype(np.uint64) * _MIX[0]
        state = (state ^ (state >> np.uint64(30))) * _MIX[1]
        state = (state ^ (state >> np.uint64(27))) * _MIX[2]
        state ^= state >> np.uint64(31)
    return state


# A large segment scanned by several processes: each scans a part that begins at a batch, and the parts make one scan where nothing is wrong in or between them.


_MAGIC = BATCH_HEADER.position_of("magic")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedPart:
    """What a scan of a part found."""

    summary: SegmentSummary
    extent: Extent
    size: int
    mtime_ns: int
    changed: bool

    @property
    def is_plain(self) -> bool:
        """Whether it holds batches of magic 2 and no damage, which parts before and behind it would explain."""
        return self.summary.magics == {2} and not self.summary.damage


def parts_of(place: PartitionPlace, path: str, count: int) -> list[Part]:
    """Return a segment in parts of about the same length; in one where it can't be read, is short, or is of an older format than batches of magic 2."""
    try:
        with open_below(place.state.root, path) as file:
            count = min(count, file.size // SMALLEST_PART)
            if count > 1 and file.is_of_the_system and file.read(0, BATCH_HEADER.length)[_MAGIC] == 2:
                return parts_of_file(file, length=file.size, base_offset=_base_of(path), count=count)
    except EvidenceError:
        pass  # it is met again, and named, where the segment is scanned
    return [Part(0, None)]


def _base_of(path: str) -> int:
    base_offset = parse_file_name(path.rpartition("/")[2]).base_offset
    assert isinstance(base_offset, int)
    return base_offset


def scan_part(place: PartitionPlace, path: str, part: Part) -> ScannedPart | None:
    """Return what a part of a segment holds, none where it can't be read."""
    summary, extent = SegmentSummary(_base_of(path)), empty_extent(part.start)
    try:
        with open_below(place.state.root, path) as file:
            if not file.is_of_the_system:
                return None
            for window in walk_segment(file, level=Level.CRC, start=part.start, end=part.end):
                summary.add(window.batches, window.damage, window.record_count)
                extent = extended(extent, window.batches, window.span.end)
            return ScannedPart(
                summary=summary, extent=extent, size=file.size, mtime_ns=file.mtime_ns, changed=file.changed()
            )
    except EvidenceError:
        return None


def joined(path: str, parts: Sequence[ScannedPart]) -> Segment | None:
    """Return the parts of a segment in their order as one scan of it; none where only a scan of the whole says what is wrong with it."""
    first, *others = parts
    is_one_file = all((one.size, one.mtime_ns) == (first.size, first.mtime_ns) for one in others)
    follows = all(one.extent.is_followed_by(other.extent) for one, other in pairwise(parts))
    if not is_one_file or not follows or (others and not all(one.is_plain for one in parts)):
        return None
    for one in others:
        first.summary.extend(one.summary)
    changed = any(one.changed for one in parts)
    return first.summary.segment(path=path, length=first.size, mtime_ns=first.mtime_ns, changed=changed)
