"""The content of one file as a sequence of values, damage in its place; segments stream in bounded memory."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.damage import Absent, Damage
from kforensics.evidence.content.search import ByteRange, find_range
from kforensics.evidence.file_kinds import FileEntry, file_entries
from kforensics.formats.log.batch_table import BATCH_DTYPE, HEADER_UP_TO_MAGIC
from kforensics.formats.log.records import Record
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
from kforensics.formats.segment.walk import Level, iter_records, walk_segment
from kforensics.source.mapped import EvidenceFile
from kforensics.source.naming import FileKind, FileName, parse_partition_directory
from kforensics.units import METADATA_TOPICS, OFFSETS_TOPIC, REMOTE_LOG_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC

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
