"""The change of a partition that a KRaft controller logs: `isr: [1] -> [2], leader: 1 -> 2, leaderEpoch: 4 -> 5, …`.

`PartitionRegistration.diff` (3.0 and later) names only what changed; a value of -1 for the leader means that there is none.
"""

import re
from typing import NamedTuple

from kforensics.damage import Absent

_LISTS = re.compile(r"(?P<name>isr|elr|replicas): \[(?P<before>[0-9, ]*)\] -> \[(?P<after>[0-9, ]*)\]")
_NUMBERS = re.compile(
    r"(?<![A-Za-z])(?P<name>leader|leaderEpoch|partitionEpoch): (?P<before>-?\d{1,10}) -> (?P<after>-?\d{1,10})"
)
_NUMBER = re.compile(r"\d{1,10}")


class PartitionChange(NamedTuple):
    """The fields that a controller changed; an unchanged field is absent."""

    leader: int | Absent
    """The new leader, -1 if the partition lost its leader."""
    leader_epoch: int | Absent
    isr_before: tuple[int, ...] | Absent
    isr: tuple[int, ...] | Absent
    is_recovering: bool
    """Whether the new leader was elected in an unclean election and has to recover."""
    partition_epoch: int | Absent


def parse_partition_change(diff: str) -> PartitionChange:
    """Return the fields in the text of a partition change, those left out that are not understood (`PartitionRegistration.diff`, 3.0 and later)."""
    numbers = {found["name"]: int(found["after"]) for found in _NUMBERS.finditer(diff)}
    lists = {found["name"]: (_ids(found["before"]), _ids(found["after"])) for found in _LISTS.finditer(diff)}
    before, after = lists.get("isr", (Absent.NOT_WRITTEN, Absent.NOT_WRITTEN))
    return PartitionChange(
        leader=numbers.get("leader", Absent.NOT_WRITTEN),
        leader_epoch=numbers.get("leaderEpoch", Absent.NOT_WRITTEN),
        isr_before=before,
        isr=after,
        is_recovering="leaderRecoveryState: RECOVERED -> RECOVERING" in diff,
        partition_epoch=numbers.get("partitionEpoch", Absent.NOT_WRITTEN),
    )


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(text))
