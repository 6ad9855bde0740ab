"""The batch table: a numpy structured array with one row per batch of any magic.

A "batch" is a magic 2 record batch or a top-level message of magic 0 and 1 (wrapper or not). Kafka's sentinels are kept in the columns, since a
column has one type: -1 means "none" in `partition_leader_epoch`, `producer_id`, `producer_epoch`, `base_sequence` and the timestamps.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.primitives.numbers import INT8, INT16, INT32, INT64, UINT32, FixedLayout

BATCH_DTYPE = np.dtype(
    [
        ("base_offset", "<i8"),  # magic 0 and 1: the offset of the first inner message
        ("last_offset", "<i8"),
        ("position", "<i8"),
        ("length", "<i4"),  # the whole batch, its 12 bytes of offset and length included
        ("partition_leader_epoch", "<i4"),  # -1 for magic 0 and 1
        ("crc", "<u4"),  # as stored
        ("crc_valid", "?"),
        ("magic", "i1"),
        ("attributes", "<i2"),
        ("count", "<i4"),  # as stored; magic 0 and 1: the number of inner messages
        ("base_timestamp", "<i8"),  # the delete horizon where attribute bit 6 is set
        ("max_timestamp", "<i8"),
        ("producer_id", "<i8"),
        ("producer_epoch", "<i2"),
        ("base_sequence", "<i4"),
        ("segment", "<i4"),  # index into the replica's segments; 0 where a single file is read
    ]
)

BatchTable = NDArray[Any]
"""A structured array of `BATCH_DTYPE`."""

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""The names of compression codecs by their number under `CODEC_MASK`; the numbers above mean none."""

NO_TIMESTAMP = -1
"""The timestamp of a batch or a record that has none (`RecordBatch.NO_TIMESTAMP`)."""
NO_EPOCH = -1
"""The leader epoch of a batch that has none (`RecordBatch.NO_PARTITION_LEADER_EPOCH`)."""
NO_PRODUCER = -1
"""The producer id of a batch that has none (`RecordBatch.NO_PRODUCER_ID`)."""


def empty_batches(count: int = 0) -> BatchTable:
    """Return a batch table of zeroed rows."""
    return np.zeros(count, dtype=BATCH_DTYPE)


class BatchesByOffset:
    """Batches in the order of their base offsets, to be looked up by offset.

    Args:
        rows: a batch table in any order.
    """

    def __init__(self, rows: BatchTable) -> None:
        self.rows: BatchTable = rows[np.argsort(rows["base_offset"], kind="stable")]
        # Old logs may hold offsets twice, so that the last offsets need not rise with the first ones.
        self._reached = np.maximum.accumulate(self.rows["last_offset"])

    def over(self, first: int, last: int) -> BatchTable:
        """Return the batches that have any of the offsets."""
        begin = int(np.searchsorted(self._reached, first, side="left"))
        end = int(np.searchsorted(self.rows["base_offset"], last, side="right"))
        near = self.rows[begin:end]
        return near[near["last_offset"] >= first]


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
