"""A partition directory in a capture, read in one go, and what the rules of loading ask of it: from rows of batches, what is kept of indexes, and bytes taken along.

One that is not as nearly all are, regular files of a log in use, is left to `collect`, which says the same of it file by file.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.errors import EvidenceError, FormatError, MissingBytes
from kforensics.evidence.captured.reading import (
    captured_batches,
    captured_controls,
    captured_segment,
    findings_in,
    readable_ranges,
)
from kforensics.evidence.discovery.partition_dirs import SHORT, PartitionPlace, parsed_once
from kforensics.evidence.model import Segment
from kforensics.evidence.replica.unaccounted import orphan_indexes
from kforensics.formats.checkpoint.lines import parse_leader_epoch_checkpoint
from kforensics.formats.checkpoint.properties import parse_partition_metadata
from kforensics.formats.index import OFFSET_ENTRY_LENGTH, TimeEnds
from kforensics.formats.log.batch_table import CODEC_MASK, CONTROL_BIT, BatchTable, empty_batches
from kforensics.formats.log.loader_values import (
    Batches,
    Content,
    LoadedBatch,
    Need,
    ReaderStep,
    TransactionEnd,
    bare_batch,
    headed_batch,
)
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.capture import CapturedSegment
from kforensics.source.capture_file import Capture, CapturedFolder
from kforensics.source.mapped import EvidenceFile, open_below
from kforensics.source.naming import FileKind, parse_file_name
from kforensics.source.store import store_of
from kforensics.units import EpochEntry

_ABORT, _COMMIT = 0, 1
_ENDS_OF_SCAN = frozenset({ReaderStep.ENDS, ReaderStep.THROWS, ReaderStep.INVALID})
MALFORMED = (AttributeError, LookupError, OverflowError, TypeError, ValueError)
"""What values throw that no capture has written."""

UNSOUND = ("base_offset", "last_offset", "position", "length", "crc", "attributes", "count")
"""What a capture keeps of the header of a batch whose checksum fails."""

_LARGEST_INT32 = 2**31 - 1


def captured_content(path: Path, need: Need) -> object | None:
    """Return the content of a captured file that a rule asks for; none where its bytes are here, to be read like those of any file.

    Raises:
        MissingBytes: neither the bytes are there, nor what could replace them.
    """
    capture, inner = store_of(path).capture, store_of(path).inner
    entry = None if capture is None else capture.entry(inner)
    if capture is None or entry is None:
        return None
    if need.content is Content.CHANGED:
        return entry.mtime_ns // 1_000_000
    if "problem" in entry.content:
        raise MissingBytes(str(path), capture.where(inner))
    if need.content is Content.OFFSET_INDEX and not entry.length:
        return ()
    try:
        if "segment" in entry.content:
            segment = CapturedSegment(capture, inner, entry)
            if any(one.position <= need.position and one.end == segment.size for one in readable_ranges(segment)):
                return None
            return batches_in(segment, need.position, checked=need.content is Content.CHECKED_BATCHES)
        kept = entry.content.get("index")
        if kept is None:
            return None
        if need.content is Content.LAST_TIMESTAMP:
            return int(kept["last_timestamp"])
        if need.content is Content.TIME_INDEX:
            if "first_timestamp" not in kept:
                raise MissingBytes(str(path), capture.where(inner))
            return TimeEnds(*(int(kept[one]) for one in TimeEnds._fields))
        return _KeptEntries(kept, entry.length // OFFSET_ENTRY_LENGTH, _first_carried(capture, inner))
    except MALFORMED as error:
        raise capture.refuse(f"what it says of {inner} is impossible: {error!r}") from error


class _KeptEntries:
    """An offset index that leads to batches: its last entry, and for all before it the first batch whose row was taken along."""

    def __init__(self, kept: Mapping[str, Any], length: int, first: tuple[int, int]) -> None:
        used, last = kept["entries"], tuple(kept["last"])
        numbers = (used, *last)
        if len(last) != 2 or not all(isinstance(one, int) and 0 <= one <= _LARGEST_INT32 for one in numbers):
            raise ValueError("an index with such entries")
        if used > length:
            raise ValueError("more entries than the index has room for")
        self._length, self._used = length, used
        self._last = cast("tuple[int, int]", last)
        self._before = first if first[0] <= last[0] and first[1] <= last[1] else (0, 0)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, at: int) -> tuple[int, int]:
        if at >= self._used:
            return 0, 0
        return self._last if at == self._used - 1 else self._before


def _first_carried(capture: Capture, inner: str) -> tuple[int, int]:
    """Return the relative offset and the position of the first batch of an index's segment whose row is there; zeros where none is."""
    stem = inner.removesuffix(".index")
    entry = capture.entry(f"{stem}.log")
    row = entry.content.get("segment") if entry is not None else None
    first = row.get("first") if isinstance(row, dict) else None
    if not first:
        return 0, 0
    relative, position = first["offset"] - int(stem.rpartition("/")[2]), first["position"]
    return (relative, position) if 0 <= relative <= _LARGEST_INT32 else (0, 0)


class _Missing:
    """A batch of which nothing is known but where it begins: a rule that looks at it can't go on."""

    def __init__(self, position: int, error: MissingBytes) -> None:
        self.position = position
        self._error = error

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._error


def batches_in(segment: CapturedSegment, start: int, *, checked: bool) -> Batches:
    """Return the batches from a position on, as Kafka's reader finds them, from the rows that were taken along.

    Args:
        checked: whether checksums are compared: the reader ends at the first that fails.

    Returns:
        The batches up to where the rows end; whoever looks at the next one gets a `MissingBytes`.
    """
    rows, (types, epochs) = captured_batches(segment), captured_controls(segment)
    behind = rows["position"] >= start
    rows, types, epochs = rows[behind], types[behind], epochs[behind]
    ends = rows["position"] + rows["length"]
    is_next = rows["position"] == np.concatenate((np.array([start], dtype=np.int64), ends[:-1]))[: len(rows)]
    count = len(rows) if is_next.all() else int(np.argmin(is_next))
    found = _loaded(rows[:count], types, epochs, checked=checked)
    end = start if not found else found[-1].position + found[-1].length
    step = _steps(segment.row).get(end) if len(found) == count else None
    is_over = end >= segment.size or step is ReaderStep.ENDS or step is ReaderStep.THROWS
    if not is_over and not (checked and step in _ENDS_OF_SCAN):
        found.append(cast("LoadedBatch", _Missing(end, segment.missing())))
    return Batches(batches=tuple(found), end=end, end_is_corrupt=step is ReaderStep.THROWS)


def _steps(row: Mapping[str, Any]) -> dict[int, ReaderStep]:
    """Return what the reader does at each place at which no sound batch begins."""
    return {position: ReaderStep(step) for position, step in row.get("stops") or ()}


def _loaded(
    rows: BatchTable, types: NDArray[np.int64], epochs: NDArray[np.int64], *, checked: bool
) -> list[LoadedBatch]:
    """Return the batches of rows, up to a control batch of which more would have to be known."""
    found: list[LoadedBatch] = []
    names = (
        "position",
        "length",
        "base_offset",
        "last_offset",
        "magic",
        "partition_leader_epoch",
        "base_timestamp",
        "max_timestamp",
        "producer_id",
        "producer_epoch",
        "count",
        "attributes",
        "base_sequence",
    )
    columns = [rows[name].tolist() for name in names]
    for values in zip(*columns, types.tolist(), epochs.tolist(), strict=False):
        position, length, base, last, magic, epoch, first_time, last_time, producer, its_epoch, count = values[:11]
        attributes, sequence, kind, coordinator_epoch = values[11:]
        if magic < 2:
            is_wrapper = bool(attributes & CODEC_MASK)
            latest = -1 if magic == 0 else last_time
            batch = bare_batch(position=position, length=length, offset=last, magic=magic, max_timestamp=latest)
            if is_wrapper:
                batch = batch._replace(is_compressed_message=True) if checked else batch._replace(base_offset=base)
            found.append(batch)
            continue
        end: TransactionEnd | Absent = Absent.NOT_APPLICABLE
        if attributes & CONTROL_BIT and producer >= 0 and count:
            if kind not in {_ABORT, _COMMIT} or coordinator_epoch < 0 or first_time != last_time or count != 1:
                break
            end = TransactionEnd(kind == _ABORT, coordinator_epoch, last_time)
        found.append(
            headed_batch(
                position=position,
                length=length,
                base_offset=base,
                last_offset=last,
                magic=magic,
                leader_epoch=epoch,
                attributes=attributes,
                max_timestamp=last_time,
                producer_id=producer,
                producer_epoch=its_epoch,
                base_sequence=sequence,
                record_count=count,
                end=end,
            )
        )
    return found


def rows_between(file: EvidenceFile, start: int, end: int) -> Iterator[BatchTable]:
    """Yield the batches of a segment that begin between two positions, those too whose checksum fails.

    Raises:
        MissingBytes: some of them were not taken along.
        EvidenceError: the file can't be read, or what the capture says of them is impossible.
    """
    if isinstance(file, CapturedSegment):
        yield _captured_between(file, start, end)
        return
    for window in walk_segment(file, level=Level.CRC, start=start):
        yield window.batches[window.batches["position"] < end]


def rows_at_hand(file: EvidenceFile) -> BatchTable:
    """Return the sound batches of a captured segment that were taken along; of a file none."""
    return captured_batches(file) if isinstance(file, CapturedSegment) else empty_batches()


def _captured_between(segment: CapturedSegment, start: int, end: int) -> BatchTable:
    try:
        row, sound = segment.row, captured_batches(segment)
        is_whole = _has_all(segment, sound) or bool(len(sound) and sound["position"][0] <= start)
        claimed = row.get("unsound") if row["damage"] else []
        if not is_whole or claimed is None:
            raise segment.missing()
        rows = np.concatenate((sound, _unsound(claimed)))
    except MALFORMED as error:
        raise segment.capture.refuse(f"what it says of batches of {segment.inner} is impossible: {error}") from error
    return rows[(rows["position"] >= start) & (rows["position"] < end)]


def _has_all(segment: CapturedSegment, rows: BatchTable) -> bool:
    """Whether there is a row of every sound batch of the segment."""
    return len(rows) == segment.row.get("batch_count") and not segment.row.get("unread_below")


def _unsound(claimed: Sequence[Sequence[int]]) -> BatchTable:
    rows = empty_batches(len(claimed))
    for name, values in zip(UNSOUND, zip(*claimed, strict=True), strict=False):
        rows[name] = values
    return rows


def lacks_rows(segment: EvidenceFile, lowest: int) -> bool:
    """Return whether batches of a captured segment with offsets at or above one may have no row."""
    if not isinstance(segment, CapturedSegment):
        return False
    row, rows = segment.row, captured_batches(segment)
    last = row.get("last_offset")
    is_above = not isinstance(last, int) or last >= lowest
    return bool(is_above and not _has_all(segment, rows) and (not len(rows) or int(rows["base_offset"][0]) > lowest))


Value = TypeVar("Value")


class SegmentSaid(NamedTuple):
    """A segment, and what its capture says of it."""

    segment: Segment
    findings: bytes | None
    """All that decides its summary, to be compared with others; none where that is not enough to call another segment the same."""
    has_records: bool


class CapturedDirectory(NamedTuple):
    """What a capture says of an ordinary partition directory."""

    names: tuple[str, ...]
    """Of its entries, in order."""
    topic_id: str | Absent
    epochs: tuple[EpochEntry, ...] | Absent
    segments: tuple[SegmentSaid, ...]
    """By base offset."""
    producer_snapshots: tuple[int, ...]
    has_records: bool


def read_captured_directory(place: PartitionPlace, beside: CapturedDirectory | None = None) -> CapturedDirectory | None:
    """Read a captured partition directory; none where anything in it is damaged or out of the ordinary."""
    try:
        found = _folder_of(place)
        if found is None:
            return None
        capture, folder = found
        names = tuple([entry.name for entry in folder.entries])
        outline = _outline(names)
        small = None if outline is None else _small_files(capture, folder, outline)
        if outline is None or small is None:
            return None
        segments = _segments(place, folder, outline, beside.segments if beside else ())
    except (EvidenceError, FormatError):
        return None
    epochs = small[1]
    if segments is None or (not isinstance(epochs, Absent) and _begins_behind(epochs, outline)):
        return None
    has_records = all(one.has_records or not one.segment.batch_count for one in segments)
    return CapturedDirectory(names, *small, segments, outline.producer_snapshots, has_records)


def _begins_behind(epochs: Sequence[EpochEntry], outline: "_Outline") -> bool:
    """Whether the log begins behind its first leader epoch, so that segments may be missing."""
    return bool(epochs and outline.segments) and epochs[0].start_offset < outline.segments[0][0]


def _folder_of(place: PartitionPlace) -> tuple[Capture, CapturedFolder] | None:
    """Return a directory with what its capture says of the files in it; none where it is in no capture, or holds more than files."""
    store = place.state.store
    inner = store.below(place.path)
    if store.capture is None or not store.capture.has_folder(inner):
        return None
    folder = store.capture.folder(inner)
    return (store.capture, folder) if folder.holds_files_alone else None


def says_the_same(place: PartitionPlace, known: CapturedDirectory) -> bool:
    """Whether a capture says of a partition directory all that another capture says of a replica of the partition, sound segments alone."""
    try:
        found = _folder_of(place)
        if found is None:
            return False
        capture, folder = found
        outline = _outline(known.names)
        if outline is None or tuple([entry.name for entry in folder.entries]) != known.names:
            return False
        if _small_files(capture, folder, outline) != (known.topic_id, known.epochs):
            return False
    except (EvidenceError, FormatError):
        return False
    for (_, at), one in zip(outline.segments, known.segments, strict=True):
        row = folder.contents[at].get("segment")
        if one.findings is None or not isinstance(row, dict) or findings_in(row) != one.findings:
            return False
        if one.has_records != (row.get("records") is not None):
            return False
    return True


def _small_files(
    capture: Capture, folder: CapturedFolder, outline: "_Outline"
) -> tuple[str | Absent, tuple[EpochEntry, ...] | Absent] | None:
    """Return the topic id and the leader epochs; none where one of the files is damaged."""
    topic_id: str | Absent = Absent.NOT_WRITTEN
    epochs: tuple[EpochEntry, ...] | Absent = Absent.NOT_WRITTEN
    if outline.metadata is not None:
        metadata = _small_file(capture, folder, outline.metadata, parse_partition_metadata)
        if metadata is None or metadata.damage:
            return None
        topic_id = metadata.topic_id
    if outline.epochs is not None:
        checkpoint = _small_file(capture, folder, outline.epochs, parse_leader_epoch_checkpoint)
        if checkpoint is None or checkpoint.damage:
            return None
        epochs = checkpoint.entries
    return topic_id, epochs


class _Outline(NamedTuple):
    """The files of a directory, by their place among its entries."""

    segments: tuple[tuple[int, int], ...]
    """Base offset and place, by base offset."""
    epochs: int | None
    metadata: int | None
    producer_snapshots: tuple[int, ...]


@lru_cache(maxsize=1 << 10)
def _outline(names: tuple[str, ...]) -> _Outline | None:
    """Return the files of a directory by their names; none where some are about to be removed, or an index has no segment."""
    parsed = [parse_file_name(name) for name in names]
    if any(one.is_transient for one in parsed) or orphan_indexes(list(zip(parsed, names, strict=True))):
        return None

    def of(kind: FileKind) -> list[int]:
        return [at for at, one in enumerate(parsed) if one.kind is kind]

    def with_offsets(kind: FileKind) -> list[tuple[int, int]]:
        return sorted((base, at) for at in of(kind) if isinstance(base := parsed[at].base_offset, int))

    return _Outline(
        segments=tuple(with_offsets(FileKind.SEGMENT)),
        epochs=next(iter(of(FileKind.LEADER_EPOCH_CHECKPOINT)), None),
        metadata=next(iter(of(FileKind.PARTITION_METADATA)), None),
        producer_snapshots=tuple(base for base, _ in with_offsets(FileKind.PRODUCER_SNAPSHOT)),
    )


def _small_file(capture: Capture, folder: CapturedFolder, at: int, parse: Callable[[bytes], Value]) -> Value | None:
    """Return a small file, understood; none where the capture does not hold it in one piece."""
    position, length = folder.contents[at].get("tar"), folder.entries[at].length
    if type(position) is not int or position < 0 or length > SHORT:
        return None
    value: Value = parsed_once(parse, capture.small_file(folder.block, position, length))
    return value


def _segments(
    place: PartitionPlace, folder: CapturedFolder, outline: _Outline, beside: Sequence[SegmentSaid]
) -> tuple[SegmentSaid, ...] | None:
    out: list[SegmentSaid] = []
    is_beside = len(beside) == len(outline.segments)
    for number, (base, at) in enumerate(outline.segments):
        name, _, length, mtime_ns = folder.entries[at]
        row = folder.contents[at].get("segment")
        if not isinstance(row, dict):
            return None
        path = f"{place.path}/{name}"
        findings = findings_in(row)
        if (
            is_beside
            and findings is not None
            and findings == (known := beside[number]).findings
            and known.segment.base_offset == base
        ):
            segment = replace(known.segment, path=path, length=length, mtime_ns=mtime_ns)
        else:
            with open_below(place.state.root, path) as file:
                assert isinstance(file, CapturedSegment)
                segment = captured_segment(file, path=path, base_offset=base, with_batches=False)
            if segment.changed or segment.unread_below:
                return None
            if segment.damage or not isinstance(segment.batches, Absent):
                findings = None
        out.append(SegmentSaid(segment, findings, row.get("records") is not None))
    return tuple(out)
