"""Types for Kafka's numbers: the type says what a number counts."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetRange(NamedTuple):
    """A run of offsets, both ends included."""

    first: int
    last: int

    @property
    def count(self) -> int:  # type: ignore[override] # the word of the field wins over the one of tuples
        """Return the number of offsets in the run; a compacted log may hold fewer records."""
        return self.last - self.first + 1

    def meets(self, other: "OffsetRange") -> bool:
        """Whether any offset is in both."""
        return self.first <= other.last and other.first <= self.last

    def without(self, taken: "Iterable[OffsetRange]") -> "Iterator[OffsetRange]":
        """Yield the runs of these offsets that none of the others covers, in order; these may overlap, be in any order and reach beyond."""
        begin = self.first
        for other in sorted(taken):
            if other.last < begin or other.first > self.last:
                continue
            if other.first > begin:
                yield OffsetRange(begin, other.first - 1)
            begin = other.last + 1
        if begin <= self.last:
            yield OffsetRange(begin, self.last)


class EpochEntry(NamedTuple):
    """A leader epoch and its start offset (KIP-101)."""

    leader_epoch: int
    start_offset: int


class Depth(StrEnum):
    """How much of the logs is read."""

    TAILS = "tails"
    """The ends of logs, and what decides where replicas part: the cost grows with the partitions, not with their bytes."""
    CONTENT = "content"
    """Every batch."""


OFFSETS_TOPIC = "__consumer_offsets"
"""The topic of the group coordinators."""

TRANSACTIONS_TOPIC = "__transaction_state"
"""The topic of the transaction coordinators (KIP-98)."""

SHARE_TOPIC = "__share_group_state"
"""The topic of the share coordinators (KIP-932)."""

REMOTE_LOG_TOPIC = "__remote_log_metadata"
"""The topic in which tiered storage says which segments it has copied (KIP-405)."""

METADATA_TOPIC = "__cluster_metadata"

METADATA_TOPICS = frozenset({METADATA_TOPIC, "@metadata"})
"""The topic of the KRaft log: the second name only in 2.8."""

PACKED_ENDING = r"(?:\.(?:gz|bz2|xz|zst|lz4|zip))"
"""The ending of the name of a log that is compressed, as a regular expression."""
