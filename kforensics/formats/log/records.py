"""Records as every reader of a log gets them, whatever the magic, and the body of a magic 2 batch.

    record := length varint, attributes int8 (0), timestampDelta varlong, offsetDelta varint, keyLength varint (-1 null) key, valueLength varint (-1
              null) value, headerCount varint, header*
    header := keyLength varint (not null) key, valueLength varint (-1 null) value

The length counts the bytes behind itself. Deltas are to the base offset and the base timestamp of the batch. Kafka: DefaultRecord, 0.11 and later.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kforensics.damage import Span
from kforensics.errors import FormatError, LimitReached
from kforensics.formats.primitives.numbers import encode_varint, encode_varlong, read_varint, read_varlong

Buffer = bytes | bytearray | memoryview

SMALLEST_RECORD = 7
"""Bytes of a record without key, value and headers."""

MOST_HEADERS = 1 << 19
"""The most headers of one record that are read, as many as fit into the default `message.max.bytes`: an attacker can send millions more, compressed."""

Headers = tuple[tuple[bytes, bytes | None], ...]


class CountMismatch(FormatError):  # noqa: N818  # named like its siblings in errors.py
    """The body holds fewer or more records than its batch says."""


class TooManyHeaders(LimitReached):  # likewise
    """A record has more than `MOST_HEADERS` headers."""


class Record(NamedTuple):
    """One record with everything that its batch says about it; -1 means none, as on disk."""

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


class RecordLayout(NamedTuple):
    """The places of the parts of one record in the buffer; lengths are -1 for null."""

    position: int
    timestamp_delta: int
    offset_delta: int
    key_position: int
    key_length: int
    value_position: int
    value_length: int
    header_position: int
    header_count: int
    end: int


def parse_body_records(body: Buffer, count: int) -> Iterator[BodyRecord]:
    """Read the records of an uncompressed body (`DefaultRecord.readFrom`).

    Raises:
        FormatError: a record is malformed, or the body does not hold exactly `count` records; the span is relative to the body.
    """
    for layout in iter_record_layouts(body, 0, len(body), count):
        yield BodyRecord(
            layout.timestamp_delta,
            layout.offset_delta,
            slice_nullable(body, layout.key_position, layout.key_length),
            slice_nullable(body, layout.value_position, layout.value_length),
            parse_headers(body, layout.header_position, layout.end, layout.header_count),
        )


def iter_record_layouts(
    body: Buffer, start: int, end: int, count: int, last_offset_delta: int | None = None
) -> Iterator[RecordLayout]:
    """Yield the layout of each record of an uncompressed body, read one after the other (`DefaultRecord.readFrom`).

    Args:
        last_offset_delta: where given, offset deltas that do not rise or that are above it are an error too, once all records are read.

    Raises:
        TooManyHeaders: a record has more than `MOST_HEADERS` headers.
        FormatError: a record is malformed; the records before it were yielded. Spans are positions in the buffer.
    """
    position = start
    previous_delta = -1
    misplaced: FormatError | None = None
    for index in range(count):
        if position == end:
            raise CountMismatch(Span(start, end - start), expected=f"{count} records", found=str(index))
        layout = _parse_layout(body, position, end)
        yield layout
        if (
            last_offset_delta is not None
            and misplaced is None
            and not previous_delta < layout.offset_delta <= last_offset_delta
        ):
            expected = f"an offset delta of {previous_delta + 1} to {last_offset_delta}"
            misplaced = FormatError(
                Span(position, layout.end - position), expected=expected, found=str(layout.offset_delta)
            )
        previous_delta = layout.offset_delta
        position = layout.end
    if position != end:
        raise CountMismatch(
            Span(position, end - position),
            expected=f"the end of the body after {count} records",
            found=f"{end - position} bytes more",
        )
    if misplaced is not None:
        raise misplaced


def _parse_layout(body: Buffer, start: int, body_end: int) -> RecordLayout:
    length, position = read_varint(body, start, body_end)
    if not SMALLEST_RECORD - 1 <= length <= body_end - position:
        raise FormatError(
            Span(start, position - start),
            expected=f"a record of {SMALLEST_RECORD - 1} to {body_end - position} bytes",
            found=str(length),
        )
    end = position + length
    timestamp_delta, position = read_varlong(body, position + 1, end)
    offset_delta, position = read_varint(body, position, end)
    key_length, key_position = _read_nullable(body, position, end)
    value_length, value_position = _read_nullable(body, key_position + max(key_length, 0), end)
    header_count, header_position = read_varint(body, value_position + max(value_length, 0), end)
    if not 0 <= header_count <= (end - header_position) // 2:
        raise FormatError(
            Span(start, end - start), expected=f"0 to {(end - header_position) // 2} headers", found=str(header_count)
        )
    if header_count > MOST_HEADERS:
        raise TooManyHeaders(
            Span(start, end - start), expected=f"at most {MOST_HEADERS} headers", found=str(header_count)
        )
    behind = skip_headers(body, header_position, end, header_count)
    if behind != end:
        raise FormatError(
            Span(start, end - start), expected=f"{length} bytes of record", found=f"{length - (end - behind)}"
        )
    return RecordLayout(
        start,
        timestamp_delta,
        offset_delta,
        key_position,
        key_length,
        value_position,
        value_length,
        header_position,
        header_count,
        end,
    )


def skip_headers(body: Buffer, position: int, end: int, count: int) -> int:
    """Return the position behind a record's headers.

    Raises:
        FormatError: a length leads behind `end`, or a header has no name.
    """
    while count:
        position, count = _skip_short_headers(body, position, end, count)
        if count:
            length, behind = _read_nullable(body, position, end)
            if length < 0:
                raise FormatError(Span(position, 1), expected="a header name", found="null")
            length, position = _read_nullable(body, behind + length, end)
            position += max(length, 0)
            count -= 1
    return position


def _skip_short_headers(body: Buffer, position: int, end: int, count: int) -> tuple[int, int]:
    """Behind the headers whose lengths take one byte each and hold, and how many are left: a loop that does as little as it can."""
    while count:
        name = position
        if name >= end or body[name] & _LONG_OR_NEGATIVE:
            break
        value = name + 1 + (body[name] >> 1)
        if value >= end:
            break
        length = body[value]
        if length & _LONG_OR_NEGATIVE and length != _NULL:
            break
        behind = value + 1 + (length >> 1)
        if behind > end:
            break
        position = behind
        count -= 1
    return position, count


_LONG_OR_NEGATIVE = 0x81
_NULL = 1


def parse_headers(body: Buffer, position: int, end: int, count: int) -> Headers:
    """Return names and values of a record's headers.

    Raises:
        FormatError: a length leads behind `end`; none of a layout that the exact reader gave.
    """
    headers = []
    for _ in range(count):
        length, behind = _read_nullable(body, position, end)
        name = bytes(body[behind : behind + length])
        length, value_position = _read_nullable(body, behind + len(name), end)
        headers.append((name, slice_nullable(body, value_position, length)))
        position = value_position + max(length, 0)
    return tuple(headers)


def slice_nullable(body: Buffer, position: int, length: int) -> bytes | None:
    """Return a copy of the bytes at a place that was checked, since a slice that crosses the end is shortened in silence, or None for a length of -1."""
    return None if length < 0 else bytes(body[position : position + length])


def _read_nullable(body: Buffer, start: int, end: int) -> tuple[int, int]:
    """Return a varint length of -1 (null) up to what is left, and the position behind it."""
    length, position = read_varint(body, start, end)
    if not -1 <= length <= end - position:
        raise FormatError(Span(start, position - start), expected=f"-1 to {end - position} bytes", found=str(length))
    return length, position


def encode_body_records(records: Iterable[BodyRecord]) -> bytes:
    """Return the uncompressed body of a magic 2 batch, of records with deltas to its base offset and timestamp (`DefaultRecord.writeTo`)."""
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
