"""The headers of record batches and of messages: their layouts, and what their checksums cover. The grammars are in `record_batch` and `message_set`."""

from kforensics.formats.primitives.layout import INT8, INT16, INT32, INT64, UINT32, FixedLayout

LOG_OVERHEAD = 12
"""The length of the offset and length fields, in bytes; the length field does not count them."""

BATCH_HEADER = FixedLayout(
    base_offset=INT64,
    batch_length=INT32,
    partition_leader_epoch=INT32,
    magic=INT8,
    crc=UINT32,
    attributes=INT16,
    last_offset_delta=INT32,
    base_timestamp=INT64,
    max_timestamp=INT64,
    producer_id=INT64,
    producer_epoch=INT16,
    base_sequence=INT32,
    record_count=INT32,
)

HEADER_UP_TO_MAGIC = BATCH_HEADER.position_of("magic") + 1
"""The bytes of an entry that Kafka reads before all others: offset, length and magic (`Records.HEADER_SIZE_UP_TO_MAGIC`)."""
CRC_POSITION = BATCH_HEADER.position_of("crc")
CRC_COVERED_POSITION = BATCH_HEADER.position_of("attributes")
SMALLEST_BATCH_LENGTH = BATCH_HEADER.length - LOG_OVERHEAD

NEWEST_MAGIC = 2
"""The magic of record batches (0.11 and later, KIP-98); that of messages is 0 or 1."""

_COMMON = {"offset": INT64, "length": INT32, "crc": UINT32, "magic": INT8, "attributes": INT8}
MESSAGE_HEADER_0 = FixedLayout(**_COMMON)
MESSAGE_HEADER_1 = FixedLayout(**_COMMON, timestamp=INT64)

MESSAGE_CRC_COVERED = MESSAGE_HEADER_0.position_of("magic")
SMALLEST_MESSAGE_LENGTH = {0: MESSAGE_HEADER_0.length + 8 - LOG_OVERHEAD, 1: MESSAGE_HEADER_1.length + 8 - LOG_OVERHEAD}
