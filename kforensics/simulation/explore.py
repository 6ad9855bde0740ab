"""Search every interleaving of a small configuration breadth-first for the shortest history that breaks an invariant."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.simulation.model_values import NO_LEADER, ModelSize, ModelState
from kforensics.simulation.models import MODELS
from kforensics.simulation.transitions import Transitions


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
    """A search through the states of one model at one size.

    Raises:
        UsageError: there is no such model.
    """

    def __init__(self, model: str, size: ModelSize) -> None:
        if model not in MODELS:
            raise UsageError(f"no model {model!r}: {', '.join(MODELS)}")
        self.model = MODELS[model]
        self.size = size
        self._transitions = Transitions(self.model, size)

    def explore(self, invariant: Invariant | None = None, *, max_states: int | None = None) -> Exploration:
        """Visit every reachable state, level by level, until the invariant breaks.

        Args:
            invariant: None to count states only.
            max_states: where to stop; None for all.

        Returns:
            How many states were met, whether these are all, and the shortest history that breaks the invariant, where one does.
        """
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
