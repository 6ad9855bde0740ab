"""Offset and line of each partition that a checkpoint names, packed: a broker may have a million partitions."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kforensics.units import TopicPartition

_LINE_BITS = 32


class CheckpointLine(NamedTuple):
    """An offset, and the line that states it."""

    offset: int
    line: int


def packed_line(offset: int, line: int) -> int:
    """Return offset and line of a checkpoint in one number.

    Args:
        offset: of 0 or more.
        line: from 1; lines that are read are few enough for its bits.
    """
    return offset << _LINE_BITS | line


def unpacked_line(packed: int) -> CheckpointLine:
    """Return offset and line of a checkpoint that `packed_line` put into one number."""
    return CheckpointLine(packed >> _LINE_BITS, packed & ((1 << _LINE_BITS) - 1))


class CheckpointLines(Mapping[TopicPartition, int]):
    """Offset and line of each partition in one number, by topic and then by partition; of two lines of a partition the last counts.

    Args:
        entries: topic, partition, offset and line, in the order of the file.
    """

    __slots__ = ("_count", "_topics")

    def __init__(self, entries: Iterable[tuple[str, int, int, int]]) -> None:
        rows: dict[str, array[int]] = {}
        for topic, partition, offset, line in entries:
            row = rows.get(topic)
            if row is None:
                rows[topic] = array("q", (partition, offset, line))
            else:
                row.extend((partition, offset, line))
        for topic, row in rows.items():
            rows[topic] = _by_partition(row)
        self._topics = rows
        """Of each topic, all partitions in order, then their offsets, then their lines."""
        self._count = sum(map(len, rows.values())) // 3

    def __getitem__(self, key: TopicPartition) -> int:
        row = self._topics[key[0]]
        count = len(row) // 3
        at = bisect_left(row, key[1], 0, count)
        if at == count or row[at] != key[1]:
            raise KeyError(key)
        return packed_line(row[count + at], row[2 * count + at])

    def __iter__(self) -> Iterator[TopicPartition]:
        for topic, row in self._topics.items():
            for partition in row[: len(row) // 3]:
                yield TopicPartition(topic, partition)

    def __len__(self) -> int:
        return self._count


def _by_partition(row: "array[int]") -> "array[int]":
    if len(row) == 3:
        return row
    last = {partition: at for at, partition in enumerate(row[::3])}
    order = sorted(last)
    places = [3 * last[partition] for partition in order]
    # From a list: an array that grew has room to spare.
    return array("q", [*order, *(row[at + 1] for at in places), *(row[at + 2] for at in places)])
