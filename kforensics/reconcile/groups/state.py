"""What the coordinator of a group knows at one moment: its members, and whether it is empty (`ClassicGroup`, `ConsumerGroup`, KIP-848)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from kforensics.damage import Absent
from kforensics.evidence.coordinators.group_log import GroupChange, Name

CLASSIC, CONSUMER, SHARE, STREAMS = 2, 3, 11, 17
_MEMBERS = {5: CONSUMER, 10: SHARE, 19: STREAMS}
_ASSIGNMENTS = {6: CONSUMER, 12: SHARE, 20: STREAMS}
_CURRENT = {8: CONSUMER, 14: SHARE, 22: STREAMS}
_OF_GROUP = frozenset({CONSUMER, SHARE, STREAMS})
_STABLE_MEMBER = 0


class GroupType(StrEnum):
    """The protocol of a group."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


_TYPES = {CLASSIC: GroupType.CLASSIC, CONSUMER: GroupType.CONSUMER, SHARE: GroupType.SHARE, STREAMS: GroupType.STREAMS}


@dataclass(slots=True)
class GroupState:
    """A group by the records about it, from the oldest on."""

    type: GroupType
    generation: int = -1
    """The generation of a classic group, the group epoch of the others."""
    protocol_type: str = ""
    classic_members: int = 0
    members: dict[Name, tuple[int, int]] = field(default_factory=dict)
    """Epoch and state of the current assignment of each member, by member id; (-1, 0) before it has one."""
    assignment_epoch: int = -1
    emptied_ms: int = -1
    """Since when it is empty, -1 while it has members or where no record says it."""
    had_members: bool = False

    @property
    def member_count(self) -> int:
        """The members by the newest records."""
        return self.classic_members if self.type is GroupType.CLASSIC else len(self.members)

    @property
    def name(self) -> str:
        """The state in the words of Kafka's tools; rebalances of classic groups are in no record."""
        if not self.member_count:
            return "Empty"
        if self.type is GroupType.CLASSIC or self.type is GroupType.SHARE:
            return "Stable"
        if self.generation > self.assignment_epoch:
            return "Assigning"
        steady = all(member == (self.assignment_epoch, _STABLE_MEMBER) for member in self.members.values())
        return "Stable" if steady else "Reconciling"

    def copied(self) -> "GroupState":
        """Return a copy that changes by itself."""
        return replace(self, members=dict(self.members))


def changed(known: GroupState | None, change: GroupChange) -> GroupState | None:
    """Return the group after a record about it; none where the record removes it.

    Args:
        known: the group before; None where no record was about it yet. It may be changed in place.
        change: the record, decoded; a value of None is a tombstone.
    """
    record_type = change.record_type
    if record_type == CLASSIC:
        return None if change.value is None else _classic(known, change.value, change.at.time_ms)
    kind = record_type if record_type in _OF_GROUP else {**_MEMBERS, **_ASSIGNMENTS, **_CURRENT}.get(record_type)
    if kind is None:
        return known
    if record_type in _OF_GROUP and change.value is None:
        return None if known is None or known.type is _TYPES[record_type] else known
    if known is None and change.value is None:
        return None
    # A group that changes its protocol is written again in the other one.
    group = known if known is not None and known.type is _TYPES[kind] else GroupState(type=_TYPES[kind])
    if record_type in _OF_GROUP:
        group.generation = _number(change.value, "epoch")
    elif record_type in _ASSIGNMENTS:
        group.assignment_epoch = _number(change.value, "assignment_epoch")
    else:
        _change_member(group, change)
    return group


def _classic(known: GroupState | None, value: Mapping[str, Any], time_ms: int) -> GroupState:
    members = len(value["members"] or ())
    stated = value.get("current_state_timestamp", -1)
    return GroupState(
        type=GroupType.CLASSIC,
        generation=value["generation"],
        protocol_type=str(value["protocol_type"]),
        classic_members=members,
        emptied_ms=-1 if members else (stated if stated >= 0 else time_ms),
        had_members=bool(members) or (known is not None and known.had_members),
    )


def _change_member(group: GroupState, change: GroupChange) -> None:
    if change.record_type in _MEMBERS:
        if change.value is None:
            group.members.pop(change.member, None)
        else:
            group.members.setdefault(change.member, (-1, _STABLE_MEMBER))
    elif change.value is not None:
        current = (_number(change.value, "member_epoch"), _number(change.value, "state"))
        group.members[change.member] = current
    if group.members:
        group.emptied_ms, group.had_members = -1, True
    elif group.emptied_ms < 0:
        group.emptied_ms = change.at.time_ms


def _number(value: Mapping[str, Any] | None, name: str) -> int:
    found = 0 if value is None else value.get(name, 0)
    return 0 if isinstance(found, Absent) else int(found)
