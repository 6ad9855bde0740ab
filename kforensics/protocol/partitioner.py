"""The partition that default partitioners choose for a key.

Java's `DefaultPartitioner` and its successor take murmur2 of the key (`org.apache.kafka.common.utils.Utils.murmur2`, `toPositive`), librdkafka's
`consistent_random` takes CRC-32 (`rd_kafka_msg_partitioner_consistent_random`), both modulo the number of partitions. A producer may name another partition or have
a partitioner of its own, so neither proves where a key is not.
"""

import zlib
from dataclasses import dataclass

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_WORD = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where default partitioners put a key."""

    partitions: int
    """The number of partitions of the topic that this is for."""
    is_recorded: bool
    """The metadata records the number; else it is one more than the highest partition among the inputs, and there may be more."""
    murmur2: int
    """By the Java client."""
    crc32: int
    """By librdkafka."""


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash of the Java client, unsigned (`Utils.murmur2`).

    Args:
        data: the serialized key; a producer hashes no null keys.
    """
    value = _SEED ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _FACTOR & _WORD
        word = (word ^ word >> 24) * _FACTOR & _WORD
        value = value * _FACTOR & _WORD ^ word
    if len(data) > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _WORD
    value = (value ^ value >> 13) * _FACTOR & _WORD
    return value ^ value >> 15


def place_key(key: bytes, partitions: int, *, is_recorded: bool) -> Placement:
    """Return the partitions that default partitioners choose.

    Args:
        partitions: how many the topic has, at least one.
    """
    return Placement(
        partitions=partitions,
        is_recorded=is_recorded,
        murmur2=(murmur2(key) & 0x7FFFFFFF) % partitions,
        crc32=zlib.crc32(key) % partitions,
    )
