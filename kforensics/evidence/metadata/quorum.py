"""The quorum of the metadata log: the log that is ahead of the others, and what more than half of the voters hold (KIP-595)."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kforensics.words import Prohibition, form, listed

if TYPE_CHECKING:
    from kforensics.evidence.discovery.inputs import Inputs
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


class QuorumSetBack(NamedTuple):
    """Voters whose logs lack metadata that was committed, and that are enough to elect one of them."""

    voters: tuple[int, ...]
    voter_count: int
    end: int
    """The end of the longest log with which one of them can win."""
    shown_by: str
    """What shows what was committed, as a part of a sentence."""
    holders: tuple[int, ...]
    """Nodes whose logs hold all of it."""

    @property
    def words(self) -> str:
        """The sentence that says it."""
        names = listed([str(one) for one in self.voters])
        many = len(self.voters) > 1
        who = f"Controllers {names}, a majority of the {self.voter_count} voters," if many else f"Controller {names}"
        who = f"{who}, the only voter," if self.voter_count == 1 else who
        return (
            f"{who} {form(len(self.voters), 'lacks', 'lack')} metadata that was committed: {'their logs end' if many else 'its log ends'} at or below offset"
            f" {self.end}, and {self.shown_by}."
        )

    @property
    def step(self) -> Prohibition:
        """What not to do before it is mended."""
        names = listed([str(one) for one in self.voters])
        from_whom = f" of node {self.holders[0]}" if self.holders else ""
        return Prohibition(
            f"Start no node of this cluster as it is: the quorum can go on from offset {self.end}; nodes with more then truncate their metadata, and brokers set aside as strays, or delete,"
            f" the partitions that it does not name. Give {form(len(self.voters), 'controller', 'controllers')} {names} the metadata log{from_whom} first."
        )


def quorum_set_back(
    histories: "Sequence[MetadataHistory]", inputs: "Inputs", earlier: Collection[int] = ()
) -> QuorumSetBack | None:
    """Return the voters that can go on without metadata that was committed; none where the inputs do not show it.

    A voter votes for any log that is no shorter than its own (KIP-595), so an empty one for an empty one. Voters that are not given, or whose logs can't be read whole,
    are taken to hold everything.
    """
    now = [one for one in histories if one.input not in earlier]
    newest = newest_log(now)
    if newest is None or not newest.current_voters:
        return None
    ends: dict[int, tuple[int, int]] = {}
    for one in now:
        if isinstance(one.node_id, int) and not one.problems and not one.damage and not one.gaps:
            # A log that ends below a snapshot beside it begins anew there when it is loaded.
            own = (
                (one.last_epoch, one.end_offset),
                *((s.raft_epoch, s.end_offset) for s in one.snapshots if s.is_complete),
            )
            ends[one.node_id] = max(*own, ends.get(one.node_id, (-1, 0)))
    ends |= {node: (-1, 0) for node in _formatted(inputs, earlier) if node not in ends}
    voters = newest.current_voters
    known = sorted(ends[voter] for voter in voters if voter in ends)
    if len(known) < majority(len(voters)):
        return None
    winner = known[majority(len(voters)) - 1]
    marks = sorted(mark for mark in _committed(now, inputs, earlier) if mark[0] > 0)
    # A controller that was copied before the others, while it ran, lacks what came last; one that lacks all of it was emptied.
    if not marks or winner[1] >= marks[0][0]:
        return None
    committed, shown_by = marks[-1]
    return QuorumSetBack(
        voters=tuple(sorted(one for one in voters if ends.get(one, (math.inf, 0)) <= winner)),
        voter_count=len(voters),
        end=winner[1],
        shown_by=shown_by,
        holders=tuple(
            sorted(node for node, end in ends.items() if end[1] >= committed and end[0] == newest.last_epoch)
        ),
    )


def _formatted(inputs: "Inputs", earlier: Collection[int]) -> Iterator[int]:
    """Yield the nodes whose log directories hold nothing beside what formatting them writes."""
    for at, one in enumerate(inputs.found):
        node = one.described.broker_id
        if at in earlier or not isinstance(node, int) or not one.log_dirs:
            continue
        if all(not d.partitions and not d.has_broker_files and not d.is_metadata_dir for d in one.log_dirs):
            yield node


def _committed(
    histories: "Sequence[MetadataHistory]", inputs: "Inputs", earlier: Collection[int]
) -> Iterator[tuple[int, str]]:
    """Yield offsets below which all was committed, with what shows it: nodes take snapshots, answer brokers and are stopped on what is committed alone."""
    for one in histories:
        for snapshot in one.snapshots:
            yield snapshot.end_offset, f"node {one.node_id} has a snapshot of all below {snapshot.end_offset}"
        for node, states in one.brokers.items():
            for before, after in pairwise(states):
                # It sends heartbeats with the epoch that the answer to its registration named.
                if before.broker_epoch == after.broker_epoch and before.is_fenced and not after.is_fenced:
                    yield before.when.offset + 1, f"broker {node} registered at offset {before.when.offset}"
    for at, found in enumerate(inputs.found):
        for log_dir in found.log_dirs:
            if at not in earlier and isinstance(epoch := log_dir.broker_epoch, int) and epoch >= 0:
                yield epoch + 1, f"broker {found.described.broker_id} registered at offset {epoch}"
