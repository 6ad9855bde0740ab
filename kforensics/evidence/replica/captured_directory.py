"""A captured partition directory read in one go, where it is as nearly all are: regular files of a log in use, none of them odd.

What is said of a directory is what `collect` says of it file by file; whatever is not ordinary is left to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, TypeVar

from kforensics.damage import Absent
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.captured.reading import captured_segment, findings_in
from kforensics.evidence.discovery.partition_dirs import SHORT, PartitionPlace, parsed_once
from kforensics.evidence.model import Segment
from kforensics.evidence.replica.unaccounted import orphan_indexes
from kforensics.formats.checkpoint.lines import parse_leader_epoch_checkpoint
from kforensics.formats.checkpoint.properties import parse_partition_metadata
from kforensics.source.capture import CapturedSegment
from kforensics.source.capture_file import Capture, CapturedFolder
from kforensics.source.mapped import open_below
from kforensics.source.naming import FileKind, parse_file_name
from kforensics.units import EpochEntry

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
