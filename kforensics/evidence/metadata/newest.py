"""The metadata log that is ahead of the others."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kforensics.evidence.metadata.history import MetadataHistory


def newest_log(histories: "Sequence[MetadataHistory]") -> "MetadataHistory | None":
    """Return the log that a new controller would have to hold: highest last epoch, then the longest; a voter's before a copy.

    Args:
        histories: the metadata logs of several nodes; without any there is none.
    """
    return max(histories, key=lambda one: (one.last_epoch, one.end_offset, one.is_of_voter), default=None)


def end_of_majority(newest: "MetadataHistory", histories: "Sequence[MetadataHistory]") -> float:
    """Return the exclusive offset up to which most voters may hold the metadata log: what is above is committed nowhere (KIP-595).

    Args:
        newest: the log that is ahead; it names the voters.
        histories: the logs of all nodes, of one moment; a voter that is not given may hold everything.
    """
    given = {one.node_id: one.end_offset for one in histories}
    ends = sorted((given.get(voter, math.inf) for voter in newest.current_voters), reverse=True)
    return ends[len(ends) // 2] if ends else math.inf
