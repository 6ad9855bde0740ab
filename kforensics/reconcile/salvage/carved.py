"""Chains of batches out of disk images, put together into logs; a name only where a given replica holds one of the batches.

A chain that shares a batch with one replica, and with no other partition, is of that partition. Chains that share a batch with each other are copies of one log.
A chain continues where another one begins at the next offset, in no lower leader epoch: by the producer whose sequence goes on, or, where no producer shows it, if
there is only one such pair within a day. That is likely, and no proof of a name.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kforensics.units import EpochEntry, TopicPartition

DAY_MS = 86_400_000


class ChainFacts(Protocol):
    """What is known of a chain of batches."""

    first_offset: int
    last_offset: int
    first_epoch: int
    last_epoch: int
    first_producer: tuple[int, int, int]
    last_producer: tuple[int, int, int]
    first_timestamp_ms: int
    last_timestamp_ms: int
    samples: list[int]
    epochs: list[EpochEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class CarvedLog:
    """Chains of one log."""

    chains: tuple[int, ...]
    """Their numbers, by offset."""
    partition: TopicPartition | None
    """Proven by a batch that a given replica of it holds, too."""
    likely: TopicPartition | None = None
    """The partition whose log it continues or precedes."""


def group_chains(chains: Sequence[ChainFacts], named: dict[int, set[TopicPartition]]) -> tuple[CarvedLog, ...]:
    """Put chains together into logs: named ones by partition, then others by offset.

    Args:
        named: for each chain the partitions of given replicas that hold one of its batches.
    """
    names = {at: next(iter(found)) for at, found in named.items() if len(found) == 1}
    groups = _Groups(len(chains))
    by_name: dict[TopicPartition, int] = {}
    for at, name in names.items():
        groups.join(at, by_name.setdefault(name, at))
    by_sample: dict[int, int] = {}
    for at, chain in enumerate(chains):
        for sample in chain.samples:
            other = by_sample.setdefault(sample, at)
            if (at in names) == (other in names):
                groups.join(at, other)
    likely: dict[int, TopicPartition] = {}
    for before, after in _joints(chains, groups):
        if before in names and after in names:
            continue
        if before in names or after in names:
            stranger, name = (after, names[before]) if before in names else (before, names[after])
            likely.setdefault(groups.of(stranger), name)
        else:
            groups.join(before, after)
    members: dict[int, list[int]] = defaultdict(list)
    for at in range(len(chains)):
        members[groups.of(at)].append(at)
    out = []
    for number, those in members.items():
        those.sort(key=lambda at: (chains[at].first_offset, chains[at].first_epoch, at))
        proven = next((names[at] for at in those if at in names), None)
        guess = next((likely[root] for root in (number, *those) if root in likely), None) if proven is None else None
        out.append(CarvedLog(chains=tuple(those), partition=proven, likely=guess))
    return tuple(
        sorted(out, key=lambda log: (log.partition is None, log.partition or TopicPartition("", 0), log.chains[0]))
    )


class _Groups:
    """Disjoint sets of chains."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def of(self, at: int) -> int:
        """Return the number of the set."""
        while self._parents[at] != at:
            self._parents[at] = self._parents[self._parents[at]]
            at = self._parents[at]
        return at

    def join(self, one: int, other: int) -> None:
        """Make two sets one."""
        first, second = sorted((self.of(one), self.of(other)))
        self._parents[second] = first


def _joints(chains: Sequence[ChainFacts], groups: _Groups) -> Iterable[tuple[int, int]]:
    """Pairs of chains of which the second continues where the first ends."""
    begins: dict[int, list[int]] = defaultdict(list)
    for at, chain in enumerate(chains):
        begins[chain.first_offset].append(at)
    pairs = [
        (before, after)
        for before, chain in enumerate(chains)
        for after in begins.get(chain.last_offset + 1, ())
        if chains[after].first_epoch >= chain.last_epoch
    ]
    proven = [pair for pair in pairs if _sequence_continues(chains[pair[0]], chains[pair[1]])]
    yield from proven
    taken_before = {groups.of(before) for before, _ in proven}
    taken_after = {groups.of(after) for _, after in proven}
    rest = [
        (before, after)
        for before, after in pairs
        if groups.of(before) not in taken_before
        and groups.of(after) not in taken_after
        and not _has_producer(chains[before])
        and not _has_producer(chains[after])
        and abs(chains[after].first_timestamp_ms - chains[before].last_timestamp_ms) <= DAY_MS
    ]
    ends: dict[int, set[int]] = defaultdict(set)
    starts: dict[int, set[int]] = defaultdict(set)
    for before, after in rest:
        ends[groups.of(before)].add(groups.of(after))
        starts[groups.of(after)].add(groups.of(before))
    lone = [
        (before, after)
        for before, after in rest
        if len(ends[groups.of(before)]) == 1 and len(starts[groups.of(after)]) == 1
    ]
    yield from lone


def _has_producer(chain: ChainFacts) -> bool:
    return chain.first_producer[0] >= 0


def _sequence_continues(before: ChainFacts, after: ChainFacts) -> bool:
    return before.last_producer[0] >= 0 and before.last_producer == after.first_producer
