"""The content of one file as a sequence of values, damage in its place, in bounded memory; and a search for records, by the indexes where these can be trusted."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Damage, Gravity
from kforensics.errors import EvidenceError, FormatError
from kforensics.evidence.file_kinds import FileEntry, file_entries
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.index import SparseIndex, parse_offset_index, parse_time_index
from kforensics.formats.log.batch_table import BATCH_DTYPE, HEADER_UP_TO_MAGIC
from kforensics.formats.log.records import Record, parse_headers
from kforensics.formats.messages.control import ControlType, parse_control_record
from kforensics.formats.messages.coordinators import (
    CONSUMER_PROTOCOL_TYPE,
    parse_assignment,
    parse_group_record,
    parse_share_record,
    parse_subscription,
    parse_txn_record,
)
from kforensics.formats.messages.frame import CoordinatorRecord
from kforensics.formats.messages.metadata import parse_metadata_record
from kforensics.formats.messages.remote_log import parse_remote_log_record
from kforensics.formats.messages.schema import Decoded, Undecoded, not_understood
from kforensics.formats.primitives.word_buffer import without_zero_tail
from kforensics.formats.segment.walk import Level, iter_records, walk_segment
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import FileKind, FileName, parse_partition_directory
from kforensics.units import METADATA_TOPICS, OFFSETS_TOPIC, REMOTE_LOG_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC

FEW = 32
"""Candidates that are compared one by one."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSearch:
    """What a record must be to be found: all that is given."""

    keys: frozenset[bytes] | None = None
    """One of these keys."""
    key_sha256: bytes | None = None
    """The SHA-256 of the key."""
    offset: int | None = None
    header: tuple[bytes, bytes | None] | None = None
    """The name of a header, and its value unless any will do."""
    value: bytes | None = None
    """Bytes that the value holds somewhere."""
    value_pattern: Any = None
    """A compiled pattern of RE2 that the value matches somewhere."""
    time_ms: tuple[int, int] | None = None
    """From the first on, and before the second."""

    @property
    def is_by_key(self) -> bool:
        """Whether all records of a key are found, or none of them."""
        others = (self.offset, self.header, self.value, self.value_pattern, self.time_ms)
        return all(one is None for one in others)

    @property
    def is_by_offset(self) -> bool:
        """Whether any record at an offset is found."""
        others = (self.keys, self.key_sha256, self.header, self.value, self.value_pattern, self.time_ms)
        return self.offset is not None and all(one is None for one in others)

    def find(self, chunk: RecordChunk) -> Rows:
        """Return the records of a chunk that match, by their index in it; the cheapest conditions are asked first."""
        rows = self._by_columns(chunk)
        if self.keys is not None and len(rows):
            rows = _with_keys(chunk, rows, self.keys)
        if self.value is not None and len(rows):
            rows = _with_literal(chunk, rows, self.value)
        tests = [
            (self.key_sha256, self._has_hash),
            (self.value_pattern, self._has_pattern),
            (self.header, self._has_header),
        ]
        for wanted, test in tests:
            if wanted is not None and len(rows):
                rows = np.array([at for at in rows.tolist() if test(chunk, at)], dtype=np.int64)
        return rows

    def _by_columns(self, chunk: RecordChunk) -> Rows:
        kept = np.ones(len(chunk.rows), dtype=np.bool_)
        if self.offset is not None:
            kept &= chunk.offset == self.offset
        if self.time_ms is not None:
            kept &= (chunk.timestamp_ms >= self.time_ms[0]) & (chunk.timestamp_ms < self.time_ms[1])
        if self.keys is not None:
            kept &= np.logical_or.reduce([chunk.key_length == length for length in {len(key) for key in self.keys}])
        if self.key_sha256 is not None:
            kept &= chunk.key_length >= 0
        if self.header is not None:
            kept &= chunk.header_count > 0
        if self.value is not None:
            kept &= chunk.value_length >= len(self.value)
        if self.value_pattern is not None:
            kept &= chunk.value_length >= 0
        return np.flatnonzero(kept)

    def _has_hash(self, chunk: RecordChunk, at: int) -> bool:
        key = _part(chunk, chunk.key_position, chunk.key_length, at)
        return hashlib.sha256(key).digest() == self.key_sha256

    def _has_pattern(self, chunk: RecordChunk, at: int) -> bool:
        value = bytes(_part(chunk, chunk.value_position, chunk.value_length, at))
        return self.value_pattern.search(value) is not None

    def _has_header(self, chunk: RecordChunk, at: int) -> bool:
        assert self.header is not None
        name, wanted = self.header
        headers = parse_headers(
            chunk.view, int(chunk.header_position[at]), int(chunk.end[at]), int(chunk.header_count[at])
        )
        return any(one == name and (wanted is None or value == wanted) for one, value in headers)


def _part(chunk: RecordChunk, positions: Rows, lengths: Rows, at: int) -> memoryview:
    start = int(positions[at])
    return chunk.view[start : start + max(int(lengths[at]), 0)]


def _with_keys(chunk: RecordChunk, rows: Rows, keys: frozenset[bytes]) -> Rows:
    """Rows whose key is one of some; byte by byte of all rows at once where it is one key, its end first, in which keys differ most."""
    if len(keys) == 1:
        [key] = keys
        octets = np.frombuffer(chunk.view, np.uint8)
        for at in reversed(range(len(key))):
            if len(rows) < FEW:
                break
            rows = rows[octets[chunk.key_position[rows] + at] == key[at]]
    found = [at for at in rows.tolist() if bytes(_part(chunk, chunk.key_position, chunk.key_length, at)) in keys]
    return np.array(found, dtype=np.int64)


def _with_literal(chunk: RecordChunk, rows: Rows, literal: bytes) -> Rows:
    """Rows whose value holds some bytes, which are searched for in all values at once."""
    if not literal:
        return rows
    starts = chunk.value_position[rows]
    ends = starts + chunk.value_length[rows]
    found = list(
        _holding(bytes(chunk.view[int(starts[0]) : int(ends[-1])]), starts - starts[0], ends - starts[0], literal)
    )
    return rows[found]


def _holding(data: bytes, starts: Rows, ends: Rows, literal: bytes) -> Iterator[int]:
    """Which runs of bytes, one behind the other, hold some bytes."""
    at = data.find(literal)
    while at >= 0:
        row = int(np.searchsorted(starts, at, side="right")) - 1
        is_inside = row >= 0 and at + len(literal) <= ends[row]
        if is_inside:
            yield row
        # A place that crosses the end of a value may overlap one inside the next.
        at = data.find(literal, max(int(ends[row]), at + 1) if is_inside else at + 1)


INDEX_LIMIT = 1 << 26
"""Bytes that an index may have to be looked at; brokers preallocate 10 MiB."""


class ByteRange(NamedTuple):
    """The position where to start, and the position behind the last batch of the range; None means the end of the file."""

    start: int
    end: int | None


def find_range(
    segment: EvidenceFile,
    path: Path,
    base_offset: int,
    *,
    from_offset: int | None,
    to_offset: int | None,
    from_time_ms: int | None,
) -> ByteRange:
    """Return the part of the segment that can hold the offsets and times asked for; all of it where its indexes can't be trusted."""
    if from_time_ms is not None:
        behind = _offset_before(path, base_offset, from_time_ms)
        if behind is not None:
            from_offset = max(behind, from_offset if from_offset is not None else behind)
    if from_offset is None and to_offset is None:
        return ByteRange(0, None)
    entries = _offset_entries(path.with_suffix(".index"), base_offset)
    if entries is None:
        return ByteRange(0, None)
    offsets, positions = entries
    start = 0
    if from_offset is not None:
        place = int(np.searchsorted(offsets, from_offset, side="right")) - 1
        if place >= 0 and _begins_batch(segment, int(positions[place]), from_offset):
            start = int(positions[place])
    end = None
    if to_offset is not None:
        place = int(np.searchsorted(offsets, to_offset, side="right")) + 1
        if place < len(positions) and _begins_batch(segment, int(positions[place]), None):
            end = int(positions[place])
    return ByteRange(start, end)


def _offset_entries(path: Path, base_offset: int) -> tuple[np.ndarray, np.ndarray] | None:
    index = _sound(path, parse_offset_index)
    if index is None or not len(index.entries):
        return None
    offsets = index.entries["relative_offset"].astype(np.int64) + base_offset
    positions = index.entries["position"].astype(np.int64)
    if (np.diff(offsets) <= 0).any() or (np.diff(positions) <= 0).any():
        return None
    return offsets, positions


def time_entries(path: Path, base_offset: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return what the time index beside a segment says: rising timestamps, and for each the offset up to which no record is newer.

    Source: `TimeIndex.maybeAppend`.

    Returns:
        Timestamps in milliseconds and offsets, none where the index can't be read, is damaged, or does not rise.
    """
    index = _sound(path.with_suffix(".timeindex"), parse_time_index)
    if index is None:
        return None
    times = index.entries["timestamp"].astype(np.int64)
    offsets = index.entries["relative_offset"].astype(np.int64) + base_offset
    if (np.diff(times) <= 0).any() or (np.diff(offsets) < 0).any():
        return None
    return times, offsets


def _offset_before(path: Path, base_offset: int, time_ms: int) -> int | None:
    """Return the first offset that can hold a record of the time or a later one."""
    entries = time_entries(path, base_offset)
    if entries is None:
        return None
    times, offsets = entries
    place = int(np.searchsorted(times, time_ms, side="left")) - 1
    return int(offsets[place]) + 1 if place >= 0 else None


def _sound(path: Path, parse: Callable[[bytes], SparseIndex]) -> SparseIndex | None:
    """Return an index, none where it can't be read or is damaged."""
    try:
        with open_evidence(path) as file:
            file.require_at_most(INDEX_LIMIT)
            index = parse(without_zero_tail(file))
    except (EvidenceError, FormatError):
        return None
    return None if any(damage.gravity is Gravity.DAMAGE for damage in index.damage) else index


def _begins_batch(segment: EvidenceFile, position: int, not_above: int | None) -> bool:
    """Return whether a sound batch begins at the position, as an index claims; and not above an offset."""
    if not 0 <= position < segment.size:
        return False
    window = next(walk_segment(segment, level=Level.CRC, start=position, end=position + 1), None)
    if window is None or not len(window.batches):
        return False
    first = window.batches[0]
    sound = bool(first["crc_valid"]) and int(first["position"]) == position
    return sound and (not_above is None or int(first["base_offset"]) <= not_above)


Message = Decoded | Undecoded

_MEMBER_BLOBS = {"subscription": parse_subscription, "assignment": parse_assignment}


class RecordMeaning(NamedTuple):
    """Key and value of a record, understood; None for what is null or, in the metadata log, for the key."""

    key: Message | None
    value: Message | None

    @property
    def newer(self) -> str:
        """What of it is newer than known, in words; empty where nothing is."""
        for one in (self.key, self.value):
            if isinstance(one, Undecoded) and one.is_newer:
                return one.reason
            if isinstance(one, Decoded) and (words := not_understood(one)):
                return words
        return ""


@dataclass(frozen=True, slots=True)
class MemberBlob:
    """The value that a classic member sent in its own protocol: the bytes, and what they mean."""

    raw: bytes
    message: Message


Decoder = Callable[[bytes | None, bytes | None], RecordMeaning]


def decoder_of_topic(topic: str) -> Decoder | None:
    """Return the decoder of a topic of Kafka's own, or None for any other topic."""
    return _DECODERS.get(topic)


def control_meaning(record: Record) -> tuple[ControlType, RecordMeaning]:
    """Return the type of a control record and the meaning of its value."""
    control = parse_control_record(record.key, record.value)
    return control.type, RecordMeaning(None, control.value)


def decode_metadata(_key: bytes | None, value: bytes | None) -> RecordMeaning:
    """Return a record of the KRaft metadata log or of a snapshot of it."""
    return RecordMeaning(None, None if value is None else parse_metadata_record(value))


def _decode_remote_log(_key: bytes | None, value: bytes | None) -> RecordMeaning:
    return RecordMeaning(None, None if value is None else parse_remote_log_record(value))


def _decode_group(key: bytes | None, value: bytes | None) -> RecordMeaning:
    record = parse_group_record(key, value)
    message = record.value
    if isinstance(message, Decoded) and message.fields.get("protocol_type") == CONSUMER_PROTOCOL_TYPE:
        members = tuple(_with_blobs(member) for member in message.fields["members"] or ())
        message = message._replace(fields=message.fields | {"members": members})
    return RecordMeaning(record.key, message)


def _with_blobs(member: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: MemberBlob(value, _MEMBER_BLOBS[name](value)) if name in _MEMBER_BLOBS and value else value
        for name, value in member.items()
    }


def _decode_coordinator(parse: Callable[[bytes | None, bytes | None], CoordinatorRecord]) -> Decoder:
    def decode(key: bytes | None, value: bytes | None) -> RecordMeaning:
        record = parse(key, value)
        return RecordMeaning(record.key, record.value)

    return decode


_DECODERS: Mapping[str, Decoder] = {
    **dict.fromkeys(METADATA_TOPICS, decode_metadata),
    OFFSETS_TOPIC: _decode_group,
    TRANSACTIONS_TOPIC: _decode_coordinator(parse_txn_record),
    SHARE_TOPIC: _decode_coordinator(parse_share_record),
    REMOTE_LOG_TOPIC: _decode_remote_log,
}


class BatchItem(NamedTuple):
    """One batch: the row of the batch table as plain numbers."""

    base_offset: int
    last_offset: int
    position: int
    length: int
    partition_leader_epoch: int
    crc: int
    crc_valid: bool
    magic: int
    attributes: int
    record_count: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    segment: int


class RecordItem(NamedTuple):
    """One record, with what it says where it is a control record or belongs to a topic of Kafka's own."""

    record: Record
    control: ControlType | None
    meaning: RecordMeaning | None


DumpItem = BatchItem | RecordItem | FileEntry | Damage


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The requested part of a segment; None means no limit. Both ends of offsets and times are included."""

    from_offset: int | None = None
    to_offset: int | None = None
    leader_epoch: int | None = None
    producer_id: int | None = None
    from_time_ms: int | None = None
    to_time_ms: int | None = None

    def has_batch(self, batch: BatchItem) -> bool:
        """Return whether a batch can hold a record that is asked for."""
        return (
            (self.from_offset is None or batch.last_offset >= self.from_offset)
            and (self.to_offset is None or batch.base_offset <= self.to_offset)
            and (self.leader_epoch is None or batch.partition_leader_epoch == self.leader_epoch)
            and (self.producer_id is None or batch.producer_id == self.producer_id)
            and (self.from_time_ms is None or batch.max_timestamp >= self.from_time_ms)
            # Times run backwards within a log: the batch's first time does not bound those of its records.
            and (self.to_time_ms is None or batch.record_count != 1 or batch.base_timestamp <= self.to_time_ms)
        )

    def has_record(self, record: Record) -> bool:
        """Return whether a record is asked for."""
        return (
            (self.from_offset is None or record.offset >= self.from_offset)
            and (self.to_offset is None or record.offset <= self.to_offset)
            and (self.leader_epoch is None or record.partition_leader_epoch == self.leader_epoch)
            and (self.producer_id is None or record.producer_id == self.producer_id)
            and (self.from_time_ms is None or record.timestamp_ms >= self.from_time_ms)
            and (self.to_time_ms is None or record.timestamp_ms <= self.to_time_ms)
        )

    @property
    def is_everything(self) -> bool:
        """Return whether nothing is left out."""
        return self == Selection()


def walk_items(
    file: EvidenceFile, path: Path, name: FileName, *, records: bool, selection: Selection
) -> Iterator[DumpItem]:
    """Yield everything in a file that is asked for, in the order of the file."""
    if name.kind is FileKind.SEGMENT or name.kind is FileKind.METADATA_SNAPSHOT:
        span = selected_range(file, path, name, selection)
        if records:
            yield from _records(file, decoder_of_file(path, name), selection, span)
        else:
            yield from _batches(file, selection, span)
        return
    yield from file_entries(file, path, name)


def recognised_name(file: EvidenceFile, name: FileName) -> FileName:
    """Return the name, or that of a segment where an unknown name hides one: copies often carry names of their own."""
    if name.kind not in {FileKind.UNKNOWN, FileKind.LOG_FILE}:
        return name
    head = file.read(0, HEADER_UP_TO_MAGIC)
    if len(head) < HEADER_UP_TO_MAGIC or head[16] > 2:
        return name
    window = next(walk_segment(file, level=Level.CRC, end=1), None)
    if window is None or not len(window.batches) or not window.batches[0]["crc_valid"]:
        return name
    return FileName(kind=FileKind.SEGMENT)


def decoder_of_file(path: Path, name: FileName) -> Decoder | None:
    """Return the decoder for the records of a file, by its own name or that of its partition directory."""
    if name.kind is FileKind.METADATA_SNAPSHOT:
        return decode_metadata
    directory = parse_partition_directory(path.parent.name)
    return decoder_of_topic(directory.topic) if directory is not None else None


def selected_range(file: EvidenceFile, path: Path, name: FileName, selection: Selection) -> ByteRange:
    """Return the part of a segment that can hold what is asked for; all of a file whose name has no offset."""
    if name.kind is not FileKind.SEGMENT or isinstance(name.base_offset, Absent):
        return ByteRange(0, None)
    return find_range(
        file,
        path,
        name.base_offset,
        from_offset=selection.from_offset,
        to_offset=selection.to_offset,
        from_time_ms=selection.from_time_ms,
    )


def _batches(file: EvidenceFile, selection: Selection, span: ByteRange) -> Iterator[BatchItem | Damage]:
    for window in walk_segment(file, level=Level.CRC, start=span.start, end=span.end):
        damage = sorted(window.damage, key=lambda one: one.span.position)
        for row in window.batches[list(BATCH_DTYPE.names or ())].tolist():
            batch = BatchItem._make(row)
            while damage and damage[0].span.position < batch.position:
                yield damage.pop(0)
            if selection.has_batch(batch):
                yield batch
        yield from damage


def _records(
    file: EvidenceFile, decode: Decoder | None, selection: Selection, span: ByteRange
) -> Iterator[RecordItem | Damage]:
    everything = selection.is_everything
    for record in iter_records(file, start=span.start, end=span.end):
        if isinstance(record, Damage):
            yield record
        elif everything or selection.has_record(record):
            if record.is_control:
                yield RecordItem(record, *control_meaning(record))
            elif decode is not None:
                yield RecordItem(record, None, decode(record.key, record.value))
            else:
                yield RecordItem(record, None, None)
