"""The leader epoch that replaced truncated records: it, and not the next epoch after theirs, shows which election the truncation follows.

A replica that comes back after several elections truncates once for all of them. Its tail may have been left behind by a clean election, and what was before the tail
by an unclean one after that; the log continues at the target in the epoch of the latter.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.protocol.epochs import epoch_at
from kforensics.reconcile.history.log_copies import LogCopy


class Replacement(NamedTuple):
    """The leader epochs on both sides of a target, in a log after the truncation."""

    kept: int
    """The leader epoch of the last record that stayed; -1 where none did."""
    epoch: int
    """The leader epoch in which the log continues."""


def replacement_at(
    offset: int,
    copies: Sequence[LogCopy],
    *,
    brokers: Sequence[int | Absent],
    before: LogCopy | None,
    no_later: int | Absent,
) -> Replacement | None:
    """Return the epochs around a truncation's target, none where no log after the truncation continues there.

    Args:
        copies: logs of the partition, of any time.
        brokers: the one that truncated, and its leader where known: only their logs count.
        no_later: the leader epoch in which the replica truncated; what a later one wrote came after another truncation.
    """
    for copy in sorted(copies, key=lambda one: one.rank):
        if copy.is_remnant or copy.broker_id not in brokers or copy.view.replica.state != "live":
            continue
        if copy.rank <= before.rank if before is not None else not copy.is_final:
            continue
        found = _around(offset, copy)
        if found is None or (isinstance(no_later, int) and found.epoch > no_later):
            continue
        discarded = epoch_at(before.view.batch_epochs, offset) if before is not None else found.kept
        if isinstance(discarded, int) and found.epoch > discarded:
            return found
    return None


def _around(offset: int, copy: LogCopy) -> Replacement | None:
    view = copy.view
    lineage = view.epochs or view.batch_epochs
    continues = view.log_end_offset > offset or any(entry.start_offset == offset for entry in lineage)
    epoch = epoch_at(lineage, offset)
    if not continues or isinstance(epoch, Absent):
        return None
    kept = epoch_at(lineage, offset - 1)
    return Replacement(kept if isinstance(kept, int) else -1, epoch)
