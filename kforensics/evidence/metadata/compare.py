"""Compare several nodes' copies of the metadata log: which is behind, and which holds records that the others do not.

A controller appends before a majority has the record: a tail that one node alone holds was not committed, or can't be
shown to be. The next leader of the
quorum has it truncated (KIP-595), on brokers that fetched it too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kforensics.damage import Absent
from kforensics.evidence.metadata.history import MetadataHistory
from kforensics.evidence.metadata.quorum import newest_log, reached_by_majority
from kforensics.formats.log.batch_table import BatchTable

_COMPARED = ("base_offset", "last_offset", "partition_leader_epoch", "crc")


class MetadataTail(NamedTuple):
    """Records that a node holds and the newest log does not hold, or holds otherwise."""

    first_offset: int
    last_offset: int
    raft_epoch: int
    """The leader epoch of the first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLog:
    """One node's metadata log against the newest one."""

    history: MetadataHistory
    common_end_offset: int
    """The offset up to which both hold the same."""
    behind: int
    """Offsets of the newest log that this one lacks."""
    tail: MetadataTail | Absent


@dataclass(frozen=True, slots=True, kw_only=True)
class LogComparison:
    """The comparison of all metadata logs of one cluster."""

    newest: MetadataHistory
    logs: tuple[ComparedLog, ...]
    voters: tuple[int, ...]
    """The voters by the newest record that names them; empty where none does."""
    majority_end_offset: int | Absent
    """A majority of the voters holds everything below it; unknown where too few voters' logs are here."""


def compare_metadata_logs(histories: Sequence[MetadataHistory]) -> LogComparison | None:
    """Return each log against the newest; none where there are no logs. One that could not be read is compared only where none could."""
    histories = [one for one in histories if one.is_log_known] or histories
    newest = newest_log(histories)
    if newest is None:
        return None
    logs = tuple(_compare(history, newest) for history in histories)
    voters = newest.current_voters
    return LogComparison(newest=newest, logs=logs, voters=voters, majority_end_offset=_majority_end(logs, voters))


def _compare(history: MetadataHistory, newest: MetadataHistory) -> ComparedLog:
    start = max(history.start_offset, newest.start_offset)
    mine, other = _from(history.batches, start), _from(newest.batches, start)
    count = min(len(mine), len(other))
    same = np.ones(count, dtype=bool)
    for name in _COMPARED:
        same &= mine[name][:count] == other[name][:count]
    equal = count if same.all() else int(np.argmin(same))
    common_end = int(mine["last_offset"][equal - 1]) + 1 if equal else min(start, history.end_offset)
    tail: MetadataTail | Absent = Absent.NOT_APPLICABLE
    if equal < len(mine):
        rest = mine[equal:]
        tail = MetadataTail(
            int(rest["base_offset"][0]), int(rest["last_offset"][-1]), int(rest["partition_leader_epoch"][0])
        )
    return ComparedLog(
        history=history, common_end_offset=common_end, behind=max(newest.end_offset - common_end, 0), tail=tail
    )


def _from(batches: BatchTable, offset: int) -> BatchTable:
    return batches[batches["base_offset"] >= offset]


def _majority_end(logs: Sequence[ComparedLog], voters: tuple[int, ...]) -> int | Absent:
    ends: dict[int, int] = {}
    for log in logs:
        node = log.history.node_id
        if not isinstance(node, Absent) and node in voters:
            ends[node] = max(ends.get(node, 0), log.common_end_offset)
    end = reached_by_majority(ends.values(), len(voters))
    return Absent.UNKNOWN if end is None else end
