"""Records: what every reader of a log gets, whatever the magic, and the body of a magic 2 batch.

    record := length varint, attributes int8 (0), timestampDelta varlong, offsetDelta varint, keyLength varint (-1 null) key, valueLength varint (-1
              null) value, headerCount varint, header*
    header := keyLength varint (not null) key, valueLength varint (-1 null) value

The length counts the bytes behind itself. Deltas are to the base offset and the base timestamp of the batch. Kafka: DefaultRecord, 0.11 and later.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kforensics.damage import Span
from kforensics.errors import FormatError
from kforensics.formats.varint import encode_varint, encode_varlong, read_varint, read_varlong

Buffer = bytes | bytearray | memoryview

SMALLEST_RECORD = 7
"""Bytes of a record without key, value and headers."""

Headers = tuple[tuple[bytes, bytes | None], ...]


class Record(NamedTuple):
    """One record with all that its batch says about it; -1 stands for none, as on disk."""

    offset: int
    timestamp_ms: int
    """The effective time: the batch's under log-append time."""
    key: bytes | None
    value: bytes | None
    headers: Headers
    sequence: int
    batch_position: int
    batch_base_offset: int
    partition_leader_epoch: int
    producer_id: int
    producer_epoch: int
    magic: int
    is_transactional: bool
    is_control: bool


class BodyRecord(NamedTuple):
    """One record as it lies in the body of a magic 2 batch."""

    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def parse_body_records(body: Buffer, count: int) -> Iterator[BodyRecord]:
    """The records of an uncompressed body; `FormatError` (spans relative to the body) where a record or the end is not as `count` says."""
    position = 0
    end = len(body)
    for _ in range(count):
        record, position = _parse_record(body, position, end)
        yield record
    if position != end:
        raise FormatError(Span(position, end - position), expected=f"the end of the body after {count} records", found=f"{end - position} bytes")


def _parse_record(body: Buffer, start: int, body_end: int) -> tuple[BodyRecord, int]:
    length, position = read_varint(body, start, body_end)
    if not SMALLEST_RECORD - 1 <= length <= body_end - position:
        raise FormatError(Span(start, position - start), expected=f"a record of {SMALLEST_RECORD - 1} to {body_end - position} bytes", found=str(length))
    end = position + length
    timestamp_delta, position = read_varlong(body, position + 1, end)
    offset_delta, position = read_varint(body, position, end)
    key, position = _parse_nullable(body, position, end)
    value, position = _parse_nullable(body, position, end)
    header_count, position = read_varint(body, position, end)
    if not 0 <= header_count <= (end - position) // 2:
        raise FormatError(Span(start, end - start), expected=f"0 to {(end - position) // 2} headers", found=str(header_count))
    headers = []
    for _ in range(header_count):
        place = position
        name, position = _parse_nullable(body, position, end)
        if name is None:
            raise FormatError(Span(place, 1), expected="a header name", found="null")
        content, position = _parse_nullable(body, position, end)
        headers.append((name, content))
    if position != end:
        raise FormatError(Span(start, end - start), expected=f"{length} bytes of record", found=f"{length - (end - position)}")
    return BodyRecord(timestamp_delta, offset_delta, key, value, tuple(headers)), end


def _parse_nullable(body: Buffer, start: int, end: int) -> tuple[bytes | None, int]:
    """Bytes behind a varint length, -1 for null."""
    length, position = read_varint(body, start, end)
    if length == -1:
        return None, position
    if not 0 <= length <= end - position:
        raise FormatError(Span(start, position - start), expected=f"-1 to {end - position} bytes", found=str(length))
    return bytes(body[position : position + length]), position + length


def encode_body_records(records: Iterable[BodyRecord]) -> bytes:
    """The uncompressed body of a magic 2 batch."""
    body = bytearray()
    for record in records:
        inner = b"".join(
            (
                b"\x00",
                encode_varlong(record.timestamp_delta),
                encode_varint(record.offset_delta),
                _encode_nullable(record.key),
                _encode_nullable(record.value),
                encode_varint(len(record.headers)),
                *(_encode_nullable(part) for header in record.headers for part in header),
            ),
        )
        body += encode_varint(len(inner))
        body += inner
    return bytes(body)


def _encode_nullable(value: bytes | None) -> bytes:
    return b"\x01" if value is None else encode_varint(len(value)) + value
