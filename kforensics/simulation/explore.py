"""Search every interleaving of a small configuration breadth-first for the shortest history that breaks an invariant.

A state is one integer: the numbers of its parts (each replica, the controller) side by side. A part gets its number when it is first met. A step
depends on one part or on a few, so it is computed once for each combination of parts and kept as a difference to add to the integer; expanding a
state is then a handful of look-ups.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.protocol.election import follower_high_watermark
from kforensics.simulation.models import (
    MODELS,
    NO_LEADER,
    ModelController,
    ModelRecord,
    ModelReplica,
    ModelSize,
    ModelState,
    ReplicationModel,
    Request,
    Side,
    agrees_below_high_watermark,
    presumes,
)


class Move(NamedTuple):
    """A possible step and its result; a part that is `None` is unchanged."""

    action: str
    replica: ModelReplica | None = None
    controller: ModelController | None = None


def controller_moves(controller: ModelController, size: ModelSize) -> Iterator[Move]:
    """Yield the decisions of the controller: remove a replica from the ISR, or elect a member of it."""
    if len(controller.requests) > size.max_epoch:
        return
    leader, isr = controller.leader, controller.isr
    for replica in range(size.replicas):
        if leader == replica:
            rest = isr if isr == {replica} else isr - {replica}
            yield Move(f"controller: leader {replica} is offline", controller=_send(controller, NO_LEADER, rest))
        elif replica in isr:
            shrunk = _send(controller, leader, isr - {replica})
            yield Move(f"controller: replica {replica} leaves the ISR", controller=shrunk)
    for replica in sorted(isr):
        if replica != leader:
            yield Move(f"controller: elects replica {replica}", controller=_send(controller, replica, isr))


def own_moves(side: Side, controller: ModelController, size: ModelSize) -> Iterator[Move]:
    """Yield the actions of one replica: become leader, write."""
    index, replica = side
    for leader_epoch, request in enumerate(controller.requests):
        if request.leader == index and leader_epoch > replica.leader_epoch:
            leading = replica._replace(leader_epoch=leader_epoch, leader=index, isr=request.isr)
            yield Move(f"replica {index} becomes leader in epoch {leader_epoch}", leading)
    if presumes(side) and controller.next_record < size.max_records and replica.log_end_offset < size.max_log:
        record = ModelRecord(controller.next_record, replica.leader_epoch)
        yield Move(
            f"leader {index} writes record {record.record_id}",
            replica._replace(log=(*replica.log, record)),
            controller._replace(next_record=record.record_id + 1),
        )


def follower_moves(
    model: ReplicationModel, leader: Side, follower: Side, controller: ModelController
) -> Iterator[Move]:
    """Yield the actions of a follower with a leader: fetch, follow a request, truncate late; each changes the follower's state."""
    own, other = follower.replica, leader.replica
    end = own.log_end_offset
    if end < other.log_end_offset and model.may_fetch(leader, follower):
        # The models know no empty answer: a fetch that brings no record does not happen, nor moves the high watermark.
        log = (*own.log, other.log[end])
        copied = own._replace(log=log, high_watermark=follower_high_watermark(len(log), other.high_watermark))
        yield Move(f"replica {follower.broker} fetches from {leader.broker}", copied)
    for leader_epoch, request in enumerate(controller.requests):
        takes = request.leader == leader.broker and leader_epoch > own.leader_epoch
        if takes and model.may_follow(leader, leader_epoch):
            following = model.following(own, other, request, leader_epoch)
            if following is not None:
                truncation = own.log_end_offset - following.log_end_offset
                words = f"replica {follower.broker} follows {leader.broker} in epoch {leader_epoch}"
                yield Move(f"{words} and truncates to {following.log_end_offset}" if truncation else words, following)
    late = model.truncate_late(leader, follower)
    if late is not None:
        yield Move(f"replica {follower.broker} finds that it differs and truncates to {late.log_end_offset}", late)


def isr_moves(model: ReplicationModel, leader: Side, follower: Side, controller: ModelController) -> Iterator[Move]:
    """Yield the changes of a follower's membership in the ISR; only the true leader makes them, and each changes its state."""
    index, replica = leader
    is_true = controller.leader == index and presumes(leader) and replica.leader_epoch == controller.leader_epoch
    if not is_true:
        return
    if follower.broker in replica.isr:
        if model.may_leave_isr(leader, follower):
            isr = replica.isr - {follower.broker}
            words = f"leader {index} takes {follower.broker} out of the ISR"
            yield Move(words, replica._replace(isr=isr), controller._replace(isr=isr))
    elif model.may_join_isr(leader, follower):
        isr = replica.isr | {follower.broker}
        words = f"leader {index} takes {follower.broker} into the ISR"
        yield Move(words, replica._replace(isr=isr), controller._replace(isr=isr))


def raised_high_watermark(leader: Side) -> Move:
    """Return the move that raises the leader's high watermark by one; every member of its ISR must allow it."""
    raised = leader.replica.high_watermark + 1
    return Move(
        f"leader {leader.broker} raises its high watermark to {raised}", leader.replica._replace(high_watermark=raised)
    )


def _send(controller: ModelController, leader: int, isr: frozenset[int]) -> ModelController:
    return controller._replace(isr=isr, requests=(*controller.requests, Request(leader, isr)))


_PART_BITS = 24
_PART_MASK = (1 << _PART_BITS) - 1


class _Pair(NamedTuple):
    """The steps of a leader and a follower, valid as long as both and the controller are unchanged."""

    deltas: tuple[int, ...]
    weak_holds: bool
    strong_holds: bool
    raises: bool
    """Whether the follower lets the leader's high watermark rise: it is outside the ISR, or has caught up far enough."""


class Transitions:
    """The states of one model at one size, and the steps between them."""

    def __init__(self, model: ReplicationModel, size: ModelSize) -> None:
        self.model = model
        self.size = size
        self._numbers: dict[ModelReplica | ModelController, int] = {}
        self._parts: list[ModelReplica | ModelController] = []
        self._shifts = [_PART_BITS * (index + 1) for index in range(size.replicas)]
        self._controller_deltas: dict[int, tuple[int, ...]] = {}
        self._own_deltas: list[dict[int, tuple[int, ...]]] = [{} for _ in range(size.replicas)]
        self._raise_deltas: list[dict[int, int]] = [{} for _ in range(size.replicas)]
        self._pairs = [
            (leader, follower, {})
            for leader in range(size.replicas)
            for follower in range(size.replicas)
            if leader != follower
        ]  # type: list[tuple[int, int, dict[int, _Pair]]]

    def encode(self, state: ModelState) -> int:
        """Return the state as one integer, which only these transitions can read."""
        code = self._number(state.controller)
        for shift, replica in zip(self._shifts, state.replicas, strict=True):
            code |= self._number(replica) << shift
        return code

    def decode(self, code: int) -> ModelState:
        """Return the state behind an integer."""
        return ModelState(
            replicas=tuple(self._replica(code >> shift & _PART_MASK) for shift in self._shifts),
            controller=self._controller(code & _PART_MASK),
        )

    def expand(self, code: int) -> tuple[bool, bool, list[int]]:
        """Return whether all agree below the high watermark, by the leader's own ISR and by the controller's; and each successor's difference."""
        controller = code & _PART_MASK
        deltas = list(self._controller_deltas.get(controller) or self._find_controller_deltas(controller))
        raises = []
        for index, shift in enumerate(self._shifts):
            number = code >> shift & _PART_MASK
            key = number << _PART_BITS | controller
            own = self._own_deltas[index].get(key)
            deltas += self._find_own_deltas(index, key) if own is None else own
            delta = self._raise_deltas[index].get(number)
            raises.append(self._find_raise_delta(index, number) if delta is None else delta)
        weak = strong = True
        for leader, follower, known in self._pairs:
            leader_number = code >> self._shifts[leader] & _PART_MASK
            follower_number = code >> self._shifts[follower] & _PART_MASK
            key = (leader_number << _PART_BITS | follower_number) << _PART_BITS | controller
            pair = known.get(key) or self._find_pair(leader, follower, known, key)
            deltas += pair.deltas
            weak &= pair.weak_holds
            strong &= pair.strong_holds
            if not pair.raises:
                raises[leader] = 0
        deltas += [delta for delta in raises if delta]
        return weak, strong, deltas

    def moves(self, state: ModelState) -> Iterator[tuple[str, ModelState]]:
        """Yield every possible step of a state in words, with the next state."""
        controller, size = state.controller, self.size
        sides = [Side(index, replica) for index, replica in enumerate(state.replicas)]
        for move in controller_moves(controller, size):
            yield move.action, _after(state, 0, move)
        for side in sides:
            for move in own_moves(side, controller, size):
                yield move.action, _after(state, side.broker, move)
            if self._may_raise(sides, side):
                yield raised_high_watermark(side).action, _after(state, side.broker, raised_high_watermark(side))
        for leader in sides:
            for follower in sides:
                if leader.broker != follower.broker:
                    for move in follower_moves(self.model, leader, follower, controller):
                        yield move.action, _after(state, follower.broker, move)
                    for move in isr_moves(self.model, leader, follower, controller):
                        yield move.action, _after(state, leader.broker, move)

    def _may_raise(self, sides: list[Side], leader: Side) -> bool:
        if not presumes(leader) or leader.replica.high_watermark >= self.size.max_log:
            return False
        return all(self.model.counts_for_high_watermark(leader, sides[member]) for member in leader.replica.isr)

    def _find_controller_deltas(self, number: int) -> tuple[int, ...]:
        moves = controller_moves(self._controller(number), self.size)
        deltas = tuple(self._delta(move, 0, 0, number) for move in moves)
        self._controller_deltas[number] = deltas
        return deltas

    def _find_own_deltas(self, index: int, key: int) -> tuple[int, ...]:
        number, controller = key >> _PART_BITS, key & _PART_MASK
        side = Side(index, self._replica(number))
        moves = own_moves(side, self._controller(controller), self.size)
        deltas = tuple(self._delta(move, index, number, controller) for move in moves)
        self._own_deltas[index][key] = deltas
        return deltas

    def _find_raise_delta(self, index: int, number: int) -> int:
        """Return the difference if no other replica keeps this one from raising its high watermark; 0 if it can't raise it."""
        side = Side(index, self._replica(number))
        may = presumes(side) and side.replica.high_watermark < self.size.max_log
        if may and index in side.replica.isr:
            may = self.model.counts_for_high_watermark(side, side)
        delta = self._delta(raised_high_watermark(side), index, number, 0) if may else 0
        self._raise_deltas[index][number] = delta
        return delta

    def _find_pair(self, leader_index: int, follower_index: int, known: dict[int, _Pair], key: int) -> _Pair:
        leader_number = key >> 2 * _PART_BITS
        follower_number, controller_number = key >> _PART_BITS & _PART_MASK, key & _PART_MASK
        leader = Side(leader_index, self._replica(leader_number))
        follower = Side(follower_index, self._replica(follower_number))
        controller = self._controller(controller_number)
        deltas = [
            self._delta(move, follower_index, follower_number, controller_number)
            for move in follower_moves(self.model, leader, follower, controller)
        ]
        deltas += [
            self._delta(move, leader_index, leader_number, controller_number)
            for move in isr_moves(self.model, leader, follower, controller)
        ]
        breaks = presumes(leader) and not agrees_below_high_watermark(leader.replica, follower.replica)
        is_member = follower_index in leader.replica.isr
        pair = _Pair(
            deltas=tuple(deltas),
            weak_holds=not (breaks and is_member),
            strong_holds=not (breaks and follower_index in controller.isr),
            raises=not is_member or self.model.counts_for_high_watermark(leader, follower),
        )
        known[key] = pair
        return pair

    def _delta(self, move: Move, index: int, number: int, controller_number: int) -> int:
        delta = 0
        if move.replica is not None:
            delta += (self._number(move.replica) - number) << self._shifts[index]
        if move.controller is not None:
            delta += self._number(move.controller) - controller_number
        return delta

    def _number(self, part: ModelReplica | ModelController) -> int:
        number = self._numbers.get(part)
        if number is None:
            number = len(self._parts)
            if number > _PART_MASK:
                raise UsageError("the configuration has too many different replicas to be explored")
            self._numbers[part] = number
            self._parts.append(part)
        return number

    def _replica(self, number: int) -> ModelReplica:
        part = self._parts[number]
        assert isinstance(part, ModelReplica)
        return part

    def _controller(self, number: int) -> ModelController:
        part = self._parts[number]
        assert isinstance(part, ModelController)
        return part


def _after(state: ModelState, index: int, move: Move) -> ModelState:
    replicas = state.replicas
    if move.replica is not None:
        replicas = (*replicas[:index], move.replica, *replicas[index + 1 :])
    return ModelState(replicas=replicas, controller=move.controller or state.controller)


class Invariant(StrEnum):
    """An invariant that a model promises for every state."""

    WEAK_ISR = "WeakIsr"
    """Each replica that presumes to be leader, and its own ISR, hold everything below its high watermark."""
    STRONG_ISR = "StrongIsr"
    """The controller's ISR holds it too: no clean election loses a committed record."""
    LEADER_IN_ISR = "LeaderInIsr"
    """The controller's leader is in its ISR; the initial state, which has no leader, breaks this."""
    LEADER_IN_ISR_OR_NONE = "LeaderInIsrOrNone"
    """If the controller has a leader, it is in its ISR."""
    TYPE_OK = "TypeOk"
    """Every number is within its bounds."""


class TraceStep(NamedTuple):
    """A state of a trace, and the action that led to it."""

    action: str
    state: ModelState


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A broken invariant with a shortest trace, the initial state included."""

    invariant: Invariant
    trace: tuple[TraceStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """The result of a search."""

    model: str
    size: ModelSize
    complete: bool
    """Whether every reachable state was visited."""
    stopped_at_limit: bool
    distinct_states: int
    depth: int
    """The number of levels of the search, with that of the initial state."""
    violation: Violation | Absent


class Explorer:
    """A search through the states of one model at one size."""

    def __init__(self, model: str, size: ModelSize) -> None:
        if model not in MODELS:
            raise UsageError(f"no model {model!r}: {', '.join(MODELS)}")
        self.model = MODELS[model]
        self.size = size
        self._transitions = Transitions(self.model, size)

    def explore(self, invariant: Invariant | None = None, *, max_states: int | None = None) -> Exploration:
        """Visit every reachable state, level by level, until the invariant breaks, and return how many there were and the shortest history that breaks it."""
        start = self._transitions.encode(self.size.initial_state())
        expand = self._transitions.expand
        came_from = {start: start}
        level, depth = [start], 0
        complete, stopped = True, False
        violating: int | None = None
        while level and violating is None and not stopped:
            depth += 1
            following: list[int] = []
            for code in level:
                weak, strong, deltas = expand(code)
                if not self._holds(invariant, code, weak=weak, strong=strong):
                    violating, complete = code, False
                    break
                for delta in deltas:
                    successor = code + delta
                    if successor not in came_from:
                        came_from[successor] = code
                        following.append(successor)
                if max_states is not None and len(came_from) > max_states:
                    complete, stopped = False, True
                    break
            level = following
        violation: Violation | Absent = Absent.NOT_APPLICABLE
        if violating is not None and invariant is not None:
            violation = Violation(invariant=invariant, trace=self._trace(came_from, violating))
        return Exploration(
            model=self.model.name,
            size=self.size,
            complete=complete,
            stopped_at_limit=stopped,
            distinct_states=len(came_from),
            depth=depth,
            violation=violation,
        )

    def _holds(self, invariant: Invariant | None, code: int, *, weak: bool, strong: bool) -> bool:
        match invariant:
            case None:
                return True
            case Invariant.WEAK_ISR:
                return weak
            case Invariant.STRONG_ISR:
                return strong
            case Invariant.LEADER_IN_ISR | Invariant.LEADER_IN_ISR_OR_NONE:
                controller = self._transitions.decode(code).controller
                no_leader_is_fine = invariant is Invariant.LEADER_IN_ISR_OR_NONE
                return controller.leader in controller.isr or (no_leader_is_fine and controller.leader == NO_LEADER)
            case Invariant.TYPE_OK:
                return _is_within_bounds(self._transitions.decode(code), self.size)

    def _trace(self, came_from: dict[int, int], last: int) -> tuple[TraceStep, ...]:
        codes = [last]
        while came_from[codes[-1]] != codes[-1]:
            codes.append(came_from[codes[-1]])
        states = [self._transitions.decode(code) for code in reversed(codes)]
        steps = [TraceStep("at the start", states[0])]
        for before, after in pairwise(states):
            action = next(action for action, successor in self._transitions.moves(before) if successor == after)
            steps.append(TraceStep(action, after))
        return tuple(steps)


def _is_within_bounds(state: ModelState, size: ModelSize) -> bool:
    replicas_fit = all(
        0 <= replica.high_watermark <= size.max_log
        and replica.log_end_offset <= size.max_log
        and -1 <= replica.leader_epoch <= size.max_epoch
        and all(
            0 <= record.record_id < size.max_records and 0 <= record.leader_epoch <= size.max_epoch
            for record in replica.log
        )
        for replica in state.replicas
    )
    return replicas_fit and state.controller.next_record <= size.max_records
