"""Which partition holds a group, a transactional id or a key, and when a transaction is late.

Coordinators hash names as `Utils.abs(name.hashCode())`. For keys Java's `DefaultPartitioner` and its successor take murmur2
(`org.apache.kafka.common.utils.Utils.murmur2`, `toPositive`), librdkafka's `consistent_random` takes CRC-32
(`rd_kafka_msg_partitioner_consistent_random`), both modulo the number of partitions. A producer may name another partition or have a partitioner of its own, so
neither proves where a key is not.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from kforensics.protocol.versions import KafkaVersion
from kforensics.units import OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC

LATE_BUFFER_MS = 5 * 60 * 1000
"""How long after its timeout a transaction may still be ended by its coordinator before it counts as late (KIP-664, `LATE_TRANSACTION_BUFFER_MS`)."""

TRANSACTION_VERSION_2 = 2
"""The client transaction version in which every transaction has an epoch of its own and the marker carries the next one (KIP-890, 4.0)."""

CREATED_WITH: Mapping[str, Mapping[str, str]] = {
    OFFSETS_TOPIC: {"cleanup.policy": "compact"},
    TRANSACTIONS_TOPIC: {"cleanup.policy": "compact"},
    SHARE_TOPIC: {"cleanup.policy": "delete", "retention.ms": "-1"},
}
"""What brokers create the topics of coordinators with; it counts where the settings of topics are not known.

Source: `GroupCoordinatorService.groupMetadataTopicConfigs`, `TransactionStateManager.transactionTopicConfigs`,
`ShareCoordinatorService.shareGroupStateTopicConfigs` of Kafka 4.1.0.
"""


def loads_without_end(version: KafkaVersion) -> bool:
    """Return whether a coordinator of a version never ends loading a partition whose first segment of several holds no record (KAFKA-9065)."""
    return version < (2, 2, 3) or (2, 3) <= version < (2, 3, 2)


_HASH_MASK = 0xFFFFFFFF
_SIGN_BIT = 1 << 31


class TransactionStatus(IntEnum):
    """The states of a transactional id in `__transaction_state` (`TransactionState`)."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided and the markers are still to be written."""
        return self in {
            TransactionStatus.PREPARE_COMMIT,
            TransactionStatus.PREPARE_ABORT,
            TransactionStatus.PREPARE_EPOCH_FENCE,
        }

    @property
    def is_complete(self) -> bool:
        """Whether every marker has been written and acknowledged."""
        return self in {TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT}

    @property
    def commits(self) -> bool:
        """Whether the transaction was decided to be committed, so that an abort would hide acknowledged records."""
        return self in {TransactionStatus.PREPARE_COMMIT, TransactionStatus.COMPLETE_COMMIT}


def created_policy(topic: str) -> str:
    """Return the `cleanup.policy` that a topic has where none was set."""
    return CREATED_WITH.get(topic, {}).get("cleanup.policy", "delete")


def coordinator_partition(name: str | bytes, partitions: int) -> int:
    """Return the partition of `__consumer_offsets` or `__transaction_state` that holds a group or a transactional id."""
    return coordinator_hash(name) % partitions


def coordinator_hash(name: str | bytes) -> int:
    """Return the number whose remainder names the partition of a group or a transactional id.

    `Utils.abs(name.hashCode())`, with Java's hash of the UTF-16 code units. A name that is no UTF-8 is hashed as Kafka
    decodes it, with U+FFFD for what can't be.
    """
    text = name.decode(errors="replace") if isinstance(name, bytes) else name
    units = text.encode("utf-16-be", errors="surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _HASH_MASK
    if value == _SIGN_BIT:
        return 0  # Utils.abs of the smallest int is 0
    return value if value < _SIGN_BIT else (1 << 32) - value


def is_late(*, started_ms: int, timeout_ms: int, now_ms: int) -> bool:
    """Whether a transaction is open longer than its coordinator lets it be."""
    return now_ms > started_ms + timeout_ms + LATE_BUFFER_MS


def remote_log_partition(topic_id: bytes, partition: int, partitions: int) -> int:
    """Return the partition of `__remote_log_metadata` that holds the copies of a partition (`RemoteLogMetadataTopicPartitioner`).

    Args:
        topic_id: its 16 bytes.
        partitions: how many there are of `__remote_log_metadata`.
    """
    value = 1  # Objects.hash of the lower half, the upper half and the partition
    for half in (int.from_bytes(topic_id[8:]), int.from_bytes(topic_id[:8])):
        value = 31 * value + ((half ^ half >> 32) & _HASH_MASK)
    value = (31 * value + partition) & _HASH_MASK
    return (murmur2(value.to_bytes(4)) & 0x7FFFFFFF) % partitions


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
    """Return the 32-bit hash of the Java client of a serialized key, unsigned (`Utils.murmur2`); a producer hashes no null keys."""
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
    """Return the partitions that default partitioners choose."""
    return Placement(
        partitions=partitions,
        is_recorded=is_recorded,
        murmur2=(murmur2(key) & 0x7FFFFFFF) % partitions,
        crc32=zlib.crc32(key) % partitions,
    )
