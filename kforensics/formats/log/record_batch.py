"""The record batch, magic 2 (0.11 and later, KIP-98).

    base offset int64 | length int32 (bytes behind it) | partition leader epoch int32 | magic int8 | crc uint32 | attributes int16 |
    last offset delta int32 | base timestamp int64 | max timestamp int64 | producer id int64 | producer epoch int16 | base sequence int32 |
    record count int32 | records, compressed as one blob where the attributes name a codec

The CRC-32C covers the attributes and all behind them. It does not cover base offset, length, leader epoch and magic: the broker writes these when it
appends. Kafka: DefaultRecordBatch.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kforensics.formats.log.batch_table import CODEC_MASK, CONTROL_BIT, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from kforensics.formats.log.headers import (
    BATCH_HEADER,
    CRC_COVERED_POSITION,
    CRC_POSITION,
    SMALLEST_BATCH_LENGTH,
)
from kforensics.formats.log.records import BodyRecord, Buffer, Record, encode_body_records, parse_body_records
from kforensics.formats.primitives.checksum import crc32c
from kforensics.formats.primitives.codec import Codec
from kforensics.formats.primitives.compression import OUTPUT_LIMIT, compress, decompress

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
    """Read one whole batch of magic 2 (`DefaultRecordBatch`); the caller checks the CRC.

    Args:
        data: exactly the bytes of the batch.
        output_limit: the most bytes that the records may decompress to.

    Raises:
        FormatError: the header or a record is malformed.
    """
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
    """Encode a batch of magic 2 with its length and checksum (`DefaultRecordBatch`).

    Args:
        batch: its records are compressed where its attributes name a codec; its numbers are not checked against each other.
    """
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
    """Return the batch with its checksum recomputed from its content.

    Args:
        batch: exactly the bytes of a batch of magic 2.
    """
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
        partition_leader_epoch: what a leader writes when it appends.
        producer_id: -1 for a producer that is not idempotent.
        producer_epoch: -1 likewise.
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
    """Return the records of a whole batch as bytes, decompressed.

    Args:
        data: exactly the bytes of the batch.
        attributes: the attributes in the batch header, whose bits 0 to 2 name the codec.
        output_limit: the most bytes that the records may decompress to.

    Raises:
        FormatError: the compressed bytes are malformed or exceed the limit.
    """
    body = memoryview(data)[BATCH_HEADER.length :]
    codec = attributes & CODEC_MASK
    return decompress(codec, body, output_limit) if codec else body


def iter_batch_records(data: Buffer, batch_position: int, output_limit: int = OUTPUT_LIMIT) -> Iterator[Record]:
    """Yield the records of one whole batch of magic 2.

    Args:
        data: exactly the bytes of the batch.
        batch_position: the position of the batch in its file, which every record carries.
        output_limit: the most bytes that the records may decompress to.

    Raises:
        FormatError: the body is not as the header says.
    """
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
    """Return a record's sequence number: 0 follows 2^31-1, and -1 means none (`DefaultRecordBatch.incrementSequence`).

    Args:
        base_sequence: of the batch, negative for a producer that is not idempotent.
    """
    if base_sequence < 0:
        return -1
    sequence = base_sequence + delta
    return sequence if sequence <= _LARGEST_SEQUENCE else sequence - _LARGEST_SEQUENCE - 1
