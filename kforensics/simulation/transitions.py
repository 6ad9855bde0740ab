"""The transitions of a model: the states as integers, and the differences to their successors.

A state is one integer: the numbers of its parts (each replica, the controller) side by side. A part gets its number
when it is first met. A step depends on one part or on a few, so it is computed once for each combination of parts
and kept as a difference to add to the integer; expanding a state is then a handful of look-ups.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kforensics.errors import UsageError
from kforensics.simulation.model_moves import (
    Move,
    controller_moves,
    follower_moves,
    isr_moves,
    own_moves,
    raised_high_watermark,
)
from kforensics.simulation.model_values import (
    ModelController,
    ModelReplica,
    ModelSize,
    ModelState,
    agrees_below_high_watermark,
)
from kforensics.simulation.models import ReplicationModel, Side, presumes

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
        """Return the state behind an integer.

        Args:
            code: as `encode` gave it, or a successor.
        """
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
