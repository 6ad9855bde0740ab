"""The state of a share partition: where it starts, and what became of the deliveries behind that (KIP-932).

Kafka: ShareCoordinatorShard.handleShareUpdate, ShareGroupOffset, PersisterStateBatchCombiner (4.0, 4.1).
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from kforensics.evidence.coordinators.group_log import Place
from kforensics.evidence.coordinators.share_log import UNCHANGED, Delivery, ShareChange, SharePartition

DELIVERY_STATES = {0: "available", 1: "acquired", 2: "acknowledged", 3: "archiving", 4: "archived"}


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


def played(changes: Iterable[ShareChange]) -> dict[SharePartition, ShareState]:
    """Return the newest state of each share partition.

    Args:
        changes: the records of its log, in order.
    """
    found: dict[SharePartition, ShareState] = {}
    for one in changes:
        if one.is_removed:
            found.pop(one.key, None)
            continue
        before = found.get(one.key) if one.is_update else None
        start, known = one.start_offset, () if before is None else before.deliveries
        if before is not None and start == UNCHANGED:
            start = before.start_offset
        found[one.key] = ShareState(
            start_offset=start,
            state_epoch=one.state_epoch if before is None else before.state_epoch,
            leader_epoch=one.leader_epoch,
            deliveries=combined(known, one.deliveries, start),
            at=one.at,
        )
    return found


def combined(before: Iterable[Delivery], update: Iterable[Delivery], start_offset: int) -> tuple[Delivery, ...]:
    """Return deliveries with an update of some of them: at each offset the one of the higher count counts, of equal counts that of the higher state.

    Args:
        before: known so far.
        update: written since.
        start_offset: what is below it is done with.
    """
    known = [one for one in (*before, *update) if one.last_offset >= start_offset]
    edges = sorted({edge for one in known for edge in (max(one.first_offset, start_offset), one.last_offset + 1)})
    out: list[Delivery] = []
    for first, behind in pairwise(edges):
        here = [one for one in known if one.first_offset <= first <= one.last_offset]
        if not here:
            continue
        count, state = max((one.delivered, one.state) for one in here)
        last = out[-1] if out else None
        if last is not None and (last.last_offset + 1, last.state, last.delivered) == (first, state, count):
            out[-1] = last._replace(last_offset=behind - 1)
        else:
            out.append(Delivery(first, behind - 1, state, count))
    return tuple(out)
