"""Which leader epoch took the place of records that were cut: that, and not the next epoch after theirs, tells which election the cut follows.

A replica that comes back after several elections cuts once for all of them. Its tail may have been left behind by a clean election, and what stood before the tail
by an unclean one after that; the log goes on at the target in the epoch of the latter.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.protocol.epochs import epoch_at
from kforensics.reconcile.history.log_copies import Copy


class Replacement(NamedTuple):
    """The leader epochs on both sides of a target, in a log after the cut."""

    kept: int
    """Of the last record that stayed; -1 where none did."""
    epoch: int
    """In which the log goes on."""


def replacement_at(
    offset: int, copies: Sequence[Copy], *, brokers: Sequence[int | Absent], before: Copy | None, no_later: int | Absent
) -> Replacement | None:
    """The epochs around a cut's target, none where no log after the cut goes on there.

    Args:
        offset: the target.
        copies: logs of the partition, of any time.
        brokers: who cut, and its leader where known: only their logs count.
        before: the log before the cut.
        no_later: the leader epoch in which the replica cut; what a later one wrote came after another cut.
    """
    for copy in sorted(copies, key=lambda one: one.rank):
        if copy.is_remnant or copy.broker_id not in brokers or copy.view.replica.state != "live":
            continue
        if copy.rank <= before.rank if before is not None else not copy.is_final:
            continue
        found = _around(offset, copy)
        if found is None or (isinstance(no_later, int) and found.epoch > no_later):
            continue
        went = epoch_at(before.view.batch_epochs, offset) if before is not None else found.kept
        if isinstance(went, int) and found.epoch > went:
            return found
    return None


def _around(offset: int, copy: Copy) -> Replacement | None:
    view = copy.view
    lineage = view.epochs or view.batch_epochs
    goes_on = view.log_end_offset > offset or any(entry.start_offset == offset for entry in lineage)
    epoch = epoch_at(lineage, offset)
    if not goes_on or isinstance(epoch, Absent):
        return None
    kept = epoch_at(lineage, offset - 1)
    return Replacement(kept if isinstance(kept, int) else -1, epoch)
