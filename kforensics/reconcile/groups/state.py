"""The state of groups and of share groups, as their records come to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.coordinators.group_log import GroupChange, Name, Place
from kforensics.evidence.coordinators.transaction_log import UNCHANGED, Delivery, ShareChange, SharePartition
from kforensics.units import OffsetRange

CLASSIC, CONSUMER, SHARE, STREAMS = 2, 3, 11, 17
_MEMBERS = {5: CONSUMER, 10: SHARE, 19: STREAMS}
_ASSIGNMENTS = {6: CONSUMER, 12: SHARE, 20: STREAMS}
_CURRENT = {8: CONSUMER, 14: SHARE, 22: STREAMS}
_OF_GROUP = frozenset({CONSUMER, SHARE, STREAMS})
_TOPOLOGY = 23
_KINDS = {**_MEMBERS, **_ASSIGNMENTS, **_CURRENT, _TOPOLOGY: STREAMS}
_JOINING = -1, -1
"""Epoch and state of a member that has no assignment yet."""


class GroupType(StrEnum):
    """The protocol of a group."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


_STABLE_MEMBER = {GroupType.CONSUMER: 0, GroupType.STREAMS: 1}
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
    """Epoch and state of the current assignment of each member, by member id."""
    assignment_epoch: int = -1
    topology_epoch: int = -1
    """Of the topology that members of a streams group brought; with it tasks are assigned once its topics are there."""
    validated_epoch: int = -1
    """The topology epoch for which they were."""
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
        if self.type is GroupType.STREAMS and (self.topology_epoch < 0 or self.topology_epoch != self.validated_epoch):
            return "NotReady"
        if self.generation > self.assignment_epoch:
            return "Assigning"
        stable = self.assignment_epoch, _STABLE_MEMBER[self.type]
        steady = all(member == stable for member in self.members.values())
        return "Stable" if steady else "Reconciling"

    def copied(self) -> "GroupState":
        """Return a copy that changes by itself."""
        return replace(self, members=dict(self.members))


def changed(known: GroupState | None, change: GroupChange) -> GroupState | None:
    """Return the group after a record about it, of which none may have been known; none where the record removes it. The one before may be changed in place."""
    record_type = change.record_type
    if record_type == CLASSIC:
        return None if change.value is None else _classic(known, change.value, change.at.time_ms)
    kind = record_type if record_type in _OF_GROUP else _KINDS.get(record_type)
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
        if record_type == STREAMS:
            group.validated_epoch = _number(change.value, "validated_topology_epoch")
    elif record_type == _TOPOLOGY:
        group.topology_epoch = -1 if change.value is None else _number(change.value, "epoch")
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
            group.members.setdefault(change.member, _JOINING)
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


DELIVERY_STATES = {0: "available", 1: "acquired", 2: "acknowledged", 3: "archiving", 4: "archived"}

_DONE = frozenset(state for state, name in DELIVERY_STATES.items() if name not in {"available", "acquired"})

MOST_WAITING = 256
"""Deliveries that wait until they are combined with as many as are known."""


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

    @property
    def reached(self) -> int:
        """The first offset that it is not done with: its leader moves the start offset there later."""
        at = self.start_offset
        for one in self.deliveries:
            if one.first_offset > at or one.state not in _DONE:
                break
            at = max(at, one.last_offset + 1)
        return at

    def went_back(self, before: "ShareState") -> int | None:
        """Return how far the group was by a state before, where it reads again what it was done with then; none where it does not."""
        if self.reached < before.reached:
            return before.reached
        done = [one.last_offset + 1 for one in before.deliveries if one.state in _DONE]
        return max(done) if done and self.state_epoch > before.state_epoch and max(done) > self.reached else None

    def done(self, offsets: OffsetRange) -> int:
        """Return how many of some offsets the group is done with: acknowledged ones, and those that it gave up."""
        return sum(
            min(one.last_offset, offsets.last) - max(one.first_offset, offsets.first) + 1
            for one in self.deliveries
            if one.state in _DONE and offsets.meets(OffsetRange(one.first_offset, one.last_offset))
        )


@dataclass(slots=True)
class _Playing:
    """A share partition while its records are played: deliveries are combined once they are many, not record by record."""

    state: ShareState
    since: list[Delivery]
    """Deliveries behind those of the state."""

    def skips_to(self, start_offset: int) -> bool:
        """Whether a start offset lies behind some that are not done with: what is acknowledged is written before the start moves past it."""
        if start_offset <= self.state.reached:
            return False
        self.combine()
        between = start_offset - self.state.reached
        return between > 0 and self.state.done(OffsetRange(self.state.reached, start_offset - 1)) < between

    def combine(self) -> None:
        one = self.state
        self.state = one._replace(deliveries=combined(one.deliveries, self.since, one.start_offset))
        self.since = []


class SetBack(NamedTuple):
    """A start offset that went back."""

    key: SharePartition
    previous: int
    offset: int
    at: Place
    is_reset: bool
    """The state epoch rose, which a group coordinator raises where an administrator alters the offsets of an empty group (`AlterShareGroupOffsets`)."""
    removed: Place | None = None
    """The record that removed the share partition in between, as the deletion of its group does."""


class Skip(NamedTuple):
    """A start offset that went past offsets that its group was not done with."""

    key: SharePartition
    previous: int
    offset: int
    at: Place
    is_reset: bool
    """As of a set-back."""


class Played(NamedTuple):
    """What the records of a log come to."""

    states: dict[SharePartition, ShareState]
    setbacks: list[SetBack]
    removals: Sequence[tuple[SharePartition, int, Place]] = ()
    """The share partitions that a record removed, with the start offset that they had, in the order of the log."""
    skips: Sequence[Skip] = ()


def played(changes: Iterable[ShareChange]) -> Played:
    """Return the newest state of each share partition, and where its start offset went back."""
    found: dict[SharePartition, _Playing] = {}
    setbacks: list[SetBack] = []
    removed: dict[SharePartition, tuple[int, Place]] = {}
    gone: list[tuple[SharePartition, int, Place]] = []
    skips: list[Skip] = []
    for one in changes:
        if one.is_removed:
            last = found.pop(one.key, None)
            if last is not None:
                last.combine()
                removed[one.key] = last.state.reached, one.at
            gone.append((one.key, UNCHANGED if last is None else last.state.reached, one.at))
            continue
        known = found.get(one.key)
        is_begun = known is not None and known.state.start_offset > UNCHANGED
        if known is not None and is_begun and known.skips_to(one.start_offset):
            is_reset = not one.is_update and one.state_epoch > known.state.state_epoch
            skips.append(Skip(one.key, known.state.reached, one.start_offset, one.at, is_reset))
        if not is_begun and one.start_offset > UNCHANGED and one.key in removed:
            before, at = removed.pop(one.key)
            if one.start_offset < before:
                setbacks.append(SetBack(one.key, before, one.start_offset, one.at, is_reset=False, removed=at))
        if known is None or not one.is_update:
            deliveries = combined((), one.deliveries, one.start_offset)
            state = ShareState(one.start_offset, one.state_epoch, one.leader_epoch, deliveries, one.at)
            if known is not None and is_begun and one.start_offset > UNCHANGED:
                known.combine()
                if (was_at := state.went_back(known.state)) is not None:
                    is_reset = one.state_epoch > known.state.state_epoch
                    setbacks.append(SetBack(one.key, was_at, one.start_offset, one.at, is_reset))
            found[one.key] = _Playing(state, [])
            continue
        playing, before = known, known.state.start_offset
        start = before if one.start_offset == UNCHANGED else one.start_offset
        if start < before:
            setbacks.append(SetBack(one.key, before, start, one.at, is_reset=False))
            playing.combine()  # what is done with does not come back
        playing.state = playing.state._replace(start_offset=start, leader_epoch=one.leader_epoch, at=one.at)
        playing.since += one.deliveries
        if len(playing.since) > len(playing.state.deliveries) + MOST_WAITING:
            playing.combine()
    for playing in found.values():
        playing.combine()
    return Played({key: playing.state for key, playing in found.items()}, setbacks, gone, skips)


def combined(before: Iterable[Delivery], update: Iterable[Delivery], start_offset: int) -> tuple[Delivery, ...]:
    """Return deliveries with an update of some of them: at each offset the one of the higher count counts, of equal counts that of the higher state."""
    known = sorted(
        one._replace(first_offset=max(one.first_offset, start_offset))
        for one in (*before, *update)
        if one.last_offset >= max(one.first_offset, start_offset)
    )
    edges = sorted({edge for one in known for edge in (one.first_offset, one.last_offset + 1)})
    out: list[Delivery] = []
    here: list[tuple[int, int, int]] = []
    """Those that began at or before the edge, the one that counts first: its count and state, negated, and its last offset."""
    begun = 0
    for first, behind in pairwise(edges):
        while begun < len(known) and known[begun].first_offset <= first:
            heappush(here, (-known[begun].delivered, -known[begun].state, known[begun].last_offset))
            begun += 1
        while here and here[0][2] < first:
            heappop(here)
        if not here:
            continue
        count, state = -here[0][0], -here[0][1]
        last = out[-1] if out else None
        if last is not None and (last.last_offset + 1, last.state, last.delivered) == (first, state, count):
            out[-1] = last._replace(last_offset=behind - 1)
        else:
            out.append(Delivery(first, behind - 1, state, count))
    return tuple(out)
