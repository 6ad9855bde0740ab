"""The words of the field as types: what a number counts is part of its type."""

from typing import NamedTuple, NewType

BrokerId = NewType("BrokerId", int)
"""A node id, as in `meta.properties` (`broker.id` or `node.id`)."""

Offset = NewType("Offset", int)
"""A record's number in its partition; an *end* offset is the one that comes next."""

LeaderEpoch = NewType("LeaderEpoch", int)
"""The number of a leader's term in one partition."""

Position = NewType("Position", int)
"""A byte's place in a file."""


class TopicPartition(NamedTuple):
    """The logical partition that replicas are replicas of."""

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
        """Offsets in the run, which is no promise of as many records."""
        return self.last - self.first + 1


class EpochEntry(NamedTuple):
    """A leader's term: its epoch and the offset where it began (KIP-101)."""

    leader_epoch: int
    start_offset: int


METADATA_TOPICS = frozenset({"__cluster_metadata", "@metadata"})
"""The topic of the KRaft log: the second name only in 2.8."""
