"""Batches as brokers write them: record batches (magic 2), and message sets (magic 0 and 1), each with its encoder."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kforensics.damage import Span
from kforensics.errors import BadChecksum, FormatError, UnexpectedEnd
from kforensics.formats.log.batch_table import (
    BATCH_HEADER,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_COVERED_POSITION,
    CRC_POSITION,
    LOG_OVERHEAD,
    MESSAGE_CRC_COVERED,
    MESSAGE_HEADER_0,
    MESSAGE_HEADER_1,
    SMALLEST_BATCH_LENGTH,
    SMALLEST_MESSAGE_LENGTH,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
)
from kforensics.formats.log.records import BodyRecord, Buffer, Record, encode_body_records, parse_body_records
from kforensics.formats.primitives.checksum import crc32, crc32c
from kforensics.formats.primitives.compression import OUTPUT_LIMIT, WRAPPED_LIMIT, compress, decompress
from kforensics.formats.primitives.numbers import Codec

# The record batch, magic 2 (0.11 and later, KIP-98).
#
#     base offset int64 | length int32 (bytes behind it) | partition leader epoch int32 | magic int8 | crc uint32 | attributes int16 |
#     last offset delta int32 | base timestamp int64 | max timestamp int64 | producer id int64 | producer epoch int16 | base sequence int32 |
#     record count int32 | records, compressed as one blob where the attributes name a codec
#
# The CRC-32C covers the attributes and all behind them. It does not cover base offset, length, leader epoch and magic: the broker writes these when it
# appends. Kafka: DefaultRecordBatch.


_LARGEST_SEQUENCE = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBatch:
    """A magic 2 batch as values; `records` are relative to the base offset and base timestamp, and the CRC is computed on encoding."""

    base_offset: int
    partition_leader_epoch: int = 0
    attributes: int = 0
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    records: tuple[BodyRecord, ...]


def parse_record_batch(data: Buffer, output_limit: int = OUTPUT_LIMIT) -> RecordBatch:
    """Read exactly the bytes of one batch of magic 2 (`DefaultRecordBatch`); the caller checks the CRC."""
    header = BATCH_HEADER.struct.unpack_from(data)
    records = tuple(parse_body_records(batch_body(data, header[5], output_limit), header[12]))
    return RecordBatch(
        base_offset=header[0],
        partition_leader_epoch=header[2],
        attributes=header[5],
        last_offset_delta=header[6],
        base_timestamp=header[7],
        max_timestamp=header[8],
        producer_id=header[9],
        producer_epoch=header[10],
        base_sequence=header[11],
        records=records,
    )


def encode_record_batch(batch: RecordBatch) -> bytes:
    """Encode a batch of magic 2 with its length and checksum, compressed where its attributes name a codec (`DefaultRecordBatch`)."""
    body = encode_body_records(batch.records)
    codec = batch.attributes & CODEC_MASK
    if codec:
        body = compress(codec, body)
    header = BATCH_HEADER.struct.pack(
        batch.base_offset,
        SMALLEST_BATCH_LENGTH + len(body),
        batch.partition_leader_epoch,
        2,
        0,
        batch.attributes,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        len(batch.records),
    )
    return with_right_crc(header + body)


def with_right_crc(batch: bytes) -> bytes:
    """Return the batch with its checksum recomputed from its content."""
    crc = crc32c(memoryview(batch)[CRC_COVERED_POSITION:])
    return batch[:CRC_POSITION] + crc.to_bytes(4) + batch[CRC_COVERED_POSITION:]


def build_record_batch(
    base_offset: int,
    records: Iterable[tuple[int, bytes | None, bytes | None]],
    *,
    partition_leader_epoch: int = 0,
    codec: Codec = Codec.NONE,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> RecordBatch:
    """Build a batch of consecutive records as a producer sends them.

    Args:
        base_offset: the offset of the first record; the others follow without gaps.
        records: timestamp in ms, key and value of each; the first timestamp is the base timestamp.
        producer_id: -1 for a producer that is not idempotent.
        base_sequence: the sequence of the first record, -1 likewise.
    """
    given = list(records)
    base_timestamp = given[0][0] if given else -1
    return RecordBatch(
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        attributes=attributes | codec,
        last_offset_delta=max(len(given) - 1, 0),
        base_timestamp=base_timestamp,
        max_timestamp=max((timestamp for timestamp, _, _ in given), default=-1),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records=tuple(
            BodyRecord(timestamp - base_timestamp, delta, key, value)
            for delta, (timestamp, key, value) in enumerate(given)
        ),
    )


def batch_body(data: Buffer, attributes: int, output_limit: int = OUTPUT_LIMIT) -> Buffer:
    """Return the records of a whole batch as bytes, decompressed."""
    body = memoryview(data)[BATCH_HEADER.length :]
    codec = attributes & CODEC_MASK
    return decompress(codec, body, output_limit) if codec else body


def iter_batch_records(data: Buffer, batch_position: int, output_limit: int = OUTPUT_LIMIT) -> Iterator[Record]:
    """Yield the records of one whole batch of magic 2."""
    header = BATCH_HEADER.struct.unpack_from(data)
    (
        base_offset,
        _,
        leader_epoch,
        magic,
        _,
        attributes,
        _,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = header
    is_log_append = bool(attributes & TIMESTAMP_TYPE_BIT)
    is_transactional = bool(attributes & TRANSACTIONAL_BIT)
    is_control = bool(attributes & CONTROL_BIT)
    for record in parse_body_records(batch_body(data, attributes, output_limit), count):
        yield Record(
            base_offset + record.offset_delta,
            max_timestamp if is_log_append else base_timestamp + record.timestamp_delta,
            record.key,
            record.value,
            record.headers,
            sequence_of(base_sequence, record.offset_delta),
            batch_position,
            base_offset,
            leader_epoch,
            producer_id,
            producer_epoch,
            magic,
            is_transactional,
            is_control,
        )


def sequence_of(base_sequence: int, delta: int) -> int:
    """Return a record's sequence number: 0 follows 2^31-1, and -1 means none, as of a producer that is not idempotent (`DefaultRecordBatch.incrementSequence`)."""
    if base_sequence < 0:
        return -1
    sequence = base_sequence + delta
    return sequence if sequence <= _LARGEST_SEQUENCE else sequence - _LARGEST_SEQUENCE - 1


# Messages of magic 0 (0.8 to 0.9) and magic 1 (0.10, KIP-32), plain and as wrappers of compressed message sets.
#
#     offset int64 | length int32 (bytes behind it, at least 14 and 22) | crc uint32 | magic int8 | attributes int8 | timestamp int64 (magic 1 only) |
#     key length int32 (-1 null) key | value length int32 (-1 null) value
#
# The CRC-32 covers magic to the end; it does not cover offset and length. Attributes: bits 0 to 2 the codec, bit 3 (magic 1) log-append time.
#
# A wrapper's value is a compressed sequence of messages of the same magic, never wrappers again; its offset is that of its last message. Inner offsets
# are absolute in magic 0; in magic 1 they are relative, and the last one has the wrapper's offset. Under log-append time the wrapper's timestamp
# is that of all its messages. Kafka: AbstractLegacyRecordBatch, LegacyRecord.


class Message(NamedTuple):
    """One message as it lies on disk; `timestamp_ms` is -1 in magic 0."""

    offset: int
    magic: int
    attributes: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    crc: int = 0


def parse_message(data: Buffer, start: int = 0) -> tuple[Message, int]:
    """Read the message at `start` and return it with the position behind it; the CRC is not checked."""
    end = len(data)
    if end - start < MESSAGE_HEADER_0.length:
        raise UnexpectedEnd(
            Span(start, end - start),
            expected=f"a message header of {MESSAGE_HEADER_0.length} bytes",
            found=f"{end - start} bytes",
        )
    offset, length, crc, magic, attributes = MESSAGE_HEADER_0.struct.unpack_from(data, start)
    if magic not in SMALLEST_MESSAGE_LENGTH:
        raise FormatError(Span(start + MESSAGE_CRC_COVERED, 1), expected="magic 0 or 1", found=str(magic))
    room = end - start - LOG_OVERHEAD
    if not SMALLEST_MESSAGE_LENGTH[magic] <= length <= room:
        raise FormatError(
            Span(start + 8, 4), expected=f"a length of {SMALLEST_MESSAGE_LENGTH[magic]} to {room}", found=str(length)
        )
    message_end = start + LOG_OVERHEAD + length
    timestamp = -1
    position = start + MESSAGE_HEADER_0.length
    if magic == 1:
        timestamp = MESSAGE_HEADER_1.struct.unpack_from(data, start)[5]
        position = start + MESSAGE_HEADER_1.length
    key, position = _parse_nullable(data, position, message_end)
    value, position = _parse_nullable(data, position, message_end)
    if position != message_end:
        raise FormatError(
            Span(position, message_end - position),
            expected="the end of the message",
            found=f"{message_end - position} bytes more",
        )
    return Message(offset, magic, attributes, timestamp, key, value, crc), message_end


def _parse_nullable(data: Buffer, start: int, end: int) -> tuple[bytes | None, int]:
    position = start + 4
    if position > end:
        raise UnexpectedEnd(Span(start, end - start), expected="a length of 4 bytes", found=f"{end - start} bytes")
    length = int.from_bytes(data[start:position], signed=True)
    if length == -1:
        return None, position
    if not 0 <= length <= end - position:
        raise FormatError(Span(start, 4), expected=f"a length of -1 to {end - position}", found=str(length))
    return bytes(data[position : position + length]), position + length


def computed_crc(data: Buffer, start: int, end: int) -> int:
    """Return the CRC-32 of a message as it should be."""
    return crc32(memoryview(data)[start + MESSAGE_CRC_COVERED : end])


def summarize_wrapper(data: Buffer, output_limit: int = WRAPPED_LIMIT) -> tuple[int, int]:
    """Return the first offset of a wrapper and the number of its messages, which are checked, and not kept."""
    wrapper, _ = parse_message(data)
    inner = _inner_bytes(wrapper, output_limit)
    first = count = 0
    for message in _iter_messages(wrapper, inner):
        if not count:
            first = message.offset
        count += 1
    return first, count


def iter_message_records(data: Buffer, batch_position: int, output_limit: int = WRAPPED_LIMIT) -> Iterator[Record]:
    """Yield the records of one whole top-level message."""
    wrapper, _ = parse_message(data)
    base_offset: int | None = None
    for message in _iter_messages(wrapper, _inner_bytes(wrapper, output_limit)):
        if base_offset is None:
            base_offset = message.offset
        yield Record(
            message.offset,
            message.timestamp_ms,
            message.key,
            message.value,
            (),
            -1,
            batch_position,
            base_offset,
            -1,
            -1,
            -1,
            message.magic,
            False,
            False,
        )


def _inner_bytes(wrapper: Message, output_limit: int) -> bytes | memoryview | None:
    """Return the message set in a wrapper, or None if the message is a plain one."""
    codec = wrapper.attributes & CODEC_MASK
    if not codec:
        return None
    if wrapper.value is None:
        raise FormatError(Span(0, 0), expected="a compressed message set", found="null")
    inner = decompress(codec, wrapper.value, output_limit)
    if not inner:
        raise FormatError(Span(0, 0), expected="at least one message in the wrapper", found="none")
    return inner


def _iter_messages(wrapper: Message, inner: bytes | memoryview | None) -> Iterator[Message]:
    """Yield the message itself, or the messages that it wraps with absolute offsets and effective timestamps."""
    if inner is None:
        yield wrapper
        return
    shift = wrapper.offset - _last_inner_offset(inner) if wrapper.magic == 1 else 0
    is_log_append = wrapper.magic == 1 and bool(wrapper.attributes & TIMESTAMP_TYPE_BIT)
    previous_offset = -1
    position = 0
    while position < len(inner):
        start = position
        message, position = parse_message(inner, start)
        _check_inner(wrapper, inner, message, Span(start, position - start), previous_offset)
        previous_offset = message.offset
        yield message._replace(
            offset=message.offset + shift, timestamp_ms=wrapper.timestamp_ms if is_log_append else message.timestamp_ms
        )
    if wrapper.magic == 0 and previous_offset != wrapper.offset:
        raise FormatError(
            Span(0, len(inner)),
            expected=f"the wrapper's offset {wrapper.offset} on its last message",
            found=str(previous_offset),
        )


def _last_inner_offset(inner: bytes | memoryview) -> int:
    """Return the offset of the last whole message; only the lengths are followed."""
    position = offset = 0
    while position + MESSAGE_HEADER_0.length <= len(inner):
        offset, length = MESSAGE_HEADER_0.struct.unpack_from(inner, position)[:2]
        position += LOG_OVERHEAD + max(length, SMALLEST_MESSAGE_LENGTH[0])
    return offset


def _check_inner(
    wrapper: Message, inner: bytes | memoryview, message: Message, span: Span, previous_offset: int
) -> None:
    if message.magic != wrapper.magic or message.attributes & CODEC_MASK:
        found = f"magic {message.magic}, attributes {message.attributes:#04x}"
        raise FormatError(span, expected=f"a plain message of magic {wrapper.magic} in the wrapper", found=found)
    crc = computed_crc(inner, span.position, span.end)
    if crc != message.crc:
        raise BadChecksum(
            span, expected=f"crc {message.crc:#010x} of an inner message, as stored", found=f"{crc:#010x}"
        )
    if message.offset <= previous_offset:
        raise FormatError(span, expected=f"an inner offset above {previous_offset}", found=str(message.offset))


def encode_message(message: Message) -> bytes:
    """Encode one message of magic 0 or 1, its offset as it is, with its checksum computed."""
    body = bytearray((message.magic, message.attributes))
    if message.magic == 1:
        body += message.timestamp_ms.to_bytes(8, signed=True)
    for part in (message.key, message.value):
        body += (-1 if part is None else len(part)).to_bytes(4, signed=True)
        body += part or b""
    return message.offset.to_bytes(8, signed=True) + (len(body) + 4).to_bytes(4) + crc32(body).to_bytes(4) + body


def encode_message_set(messages: Iterable[Message], *, codec: int = 0, log_append_ms: int | None = None) -> bytes:
    """Encode messages one behind the other, or in one wrapper as the brokers of magic 0 and 1 stored it.

    Args:
        codec: the codec of the wrapper; 0 for no wrapper.
        log_append_ms: the time of the append if the topic has `message.timestamp.type=LogAppendTime`.
    """
    given = tuple(messages)
    if not codec:
        return b"".join(encode_message(message) for message in given)
    first, last = given[0], given[-1]
    shift = first.offset if first.magic == 1 else 0
    inner = b"".join(encode_message(message._replace(offset=message.offset - shift)) for message in given)
    wrapper = Message(
        offset=last.offset,
        magic=first.magic,
        attributes=codec | (0 if log_append_ms is None else TIMESTAMP_TYPE_BIT),
        timestamp_ms=max(message.timestamp_ms for message in given) if log_append_ms is None else log_append_ms,
        key=None,
        value=compress(codec, inner, wrong_lz4_header=first.magic == 0),
    )
    return encode_message(wrapper)
