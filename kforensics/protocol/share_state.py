"""The state of a share partition: where it starts, and what became of the deliveries behind that (KIP-932).

Kafka: ShareCoordinatorShard.handleShareUpdate, ShareGroupOffset, PersisterStateBatchCombiner (4.0, 4.1).
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

DELIVERY_STATES = {0: "available", 1: "acquired", 2: "acknowledged", 3: "archiving", 4: "archived"}

UNCHANGED = -1
"""A start offset that is not written; of a snapshot, that no leader has begun yet."""


class Delivery(NamedTuple):
    """A run of offsets that were delivered alike."""

    first_offset: int
    last_offset: int
    state: int
    """A key of `DELIVERY_STATES`, or one that is newer."""
    delivered: int
    """How often they were delivered."""


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
