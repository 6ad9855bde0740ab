"""The state of a share partition: where it starts, and what became of the deliveries behind that (KIP-932).

Kafka: ShareCoordinatorShard.handleShareUpdate, ShareGroupOffset, PersisterStateBatchCombiner (4.0, 4.1).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from kforensics.evidence.coordinators.group_log import Place
from kforensics.evidence.coordinators.share_log import UNCHANGED, Delivery, ShareChange, SharePartition

DELIVERY_STATES = {0: "available", 1: "acquired", 2: "acknowledged", 3: "archiving", 4: "archived"}

MOST_WAITING = 256
"""Deliveries that wait until they are combined with as many as are known."""


class ShareState(NamedTuple):
    """The state of a share partition."""

    start_offset: int
    """The first offset that is not done with, `UNCHANGED` where no leader has begun yet."""
    state_epoch: int
    """Rises with each reset by an administrator."""
    leader_epoch: int
    deliveries: tuple[Delivery, ...]
    at: Place
    """Of the newest record."""


@dataclass(slots=True)
class _Playing:
    """A share partition while its records are played: deliveries are combined once they are many, not record by record."""

    state: ShareState
    since: list[Delivery]
    """Deliveries behind those of the state."""

    def combine(self) -> None:
        one = self.state
        self.state = one._replace(deliveries=combined(one.deliveries, self.since, one.start_offset))
        self.since = []


class SetBack(NamedTuple):
    """A start offset that went back."""

    key: SharePartition
    previous: int
    offset: int
    at: Place
    is_reset: bool
    """The state epoch rose, which a group coordinator raises where an administrator alters the offsets of an empty group (`AlterShareGroupOffsets`)."""


class Played(NamedTuple):
    """What the records of a log come to."""

    states: dict[SharePartition, ShareState]
    setbacks: list[SetBack]


def played(changes: Iterable[ShareChange]) -> Played:
    """Return the newest state of each share partition, and where its start offset went back.

    Args:
        changes: the records of its log, in order.
    """
    found: dict[SharePartition, _Playing] = {}
    setbacks: list[SetBack] = []
    for one in changes:
        if one.is_removed:
            found.pop(one.key, None)
            continue
        known = found.get(one.key)
        if known is not None and UNCHANGED < one.start_offset < known.state.start_offset:
            is_reset = not one.is_update and one.state_epoch > known.state.state_epoch
            setbacks.append(SetBack(one.key, known.state.start_offset, one.start_offset, one.at, is_reset))
        playing = known if one.is_update else None
        if playing is None:
            state = ShareState(one.start_offset, one.state_epoch, one.leader_epoch, (), one.at)
            playing = found[one.key] = _Playing(state, [])
        else:
            before = playing.state.start_offset
            start = before if one.start_offset == UNCHANGED else one.start_offset
            if start < before:
                playing.combine()  # what is done with does not come back
            playing.state = playing.state._replace(start_offset=start, leader_epoch=one.leader_epoch, at=one.at)
        playing.since += one.deliveries
        if len(playing.since) > len(playing.state.deliveries) + MOST_WAITING:
            playing.combine()
    for playing in found.values():
        playing.combine()
    return Played({key: playing.state for key, playing in found.items()}, setbacks)


def combined(before: Iterable[Delivery], update: Iterable[Delivery], start_offset: int) -> tuple[Delivery, ...]:
    """Return deliveries with an update of some of them: at each offset the one of the higher count counts, of equal counts that of the higher state.

    Args:
        start_offset: what is below it is done with.
    """
    known = sorted(
        one._replace(first_offset=max(one.first_offset, start_offset))
        for one in (*before, *update)
        if one.last_offset >= max(one.first_offset, start_offset)
    )
    edges = sorted({edge for one in known for edge in (one.first_offset, one.last_offset + 1)})
    out: list[Delivery] = []
    here: list[tuple[int, int, int]] = []
    """Those that began at or before the edge, the one that counts first: its count and state, negated, and its last offset."""
    begun = 0
    for first, behind in pairwise(edges):
        while begun < len(known) and known[begun].first_offset <= first:
            heappush(here, (-known[begun].delivered, -known[begun].state, known[begun].last_offset))
            begun += 1
        while here and here[0][2] < first:
            heappop(here)
        if not here:
            continue
        count, state = -here[0][0], -here[0][1]
        last = out[-1] if out else None
        if last is not None and (last.last_offset + 1, last.state, last.delivered) == (first, state, count):
            out[-1] = last._replace(last_offset=behind - 1)
        else:
            out.append(Delivery(first, behind - 1, state, count))
    return tuple(out)
