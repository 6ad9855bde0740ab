"""The quorum of the metadata log: the log that is ahead of the others, and what more than half of the voters hold (KIP-595)."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from kforensics.evidence.metadata.history import MetadataHistory


_End = TypeVar("_End", int, float)


def newest_log(histories: "Sequence[MetadataHistory]") -> "MetadataHistory | None":
    """Return the log that a new controller would have to hold: highest last epoch, then the longest; a voter's before a copy."""
    return max(histories, key=lambda one: (one.last_epoch, one.end_offset, one.is_of_voter), default=None)


def majority(voters: int) -> int:
    """Return how many voters elect a controller and commit a record: more than half."""
    return voters // 2 + 1


def reached_by_majority(ends: Iterable[_End], voters: int) -> _End | None:
    """Return the highest end that more than half of the voters reach; none where too few ends are given."""
    highest = sorted(ends, reverse=True)
    return highest[majority(voters) - 1] if len(highest) >= majority(voters) else None


def end_of_majority(newest: "MetadataHistory", histories: "Sequence[MetadataHistory]") -> float:
    """Return the exclusive offset up to which most voters may hold the metadata log: what is above is committed nowhere (KIP-595).

    Args:
        histories: the logs of all nodes, of one moment; a voter that is not given may hold everything.
    """
    given = {one.node_id: one.end_offset for one in histories}
    voters = newest.current_voters
    end = reached_by_majority((given.get(voter, math.inf) for voter in voters), len(voters))
    return math.inf if end is None else end
