"""The answers of `simulate`: what a scenario ended in, and whether a model keeps its invariants."""

from collections.abc import Sequence

from kforensics.damage import Absent
from kforensics.findings.answers.model import Answer, State
from kforensics.simulation.explore import Exploration
from kforensics.simulation.scenario import Replay
from kforensics.words import byte_count, counted, listed


def list_answer(count: int) -> Answer:
    """Return the answer to which scenarios there are."""
    return Answer(state=State.COMPLETE, headline=f"{counted(count, 'scenario')} built in.")


def replay_answer(found: Sequence[Replay]) -> Answer:
    """Return the answer to what a scenario ends in under each protocol."""
    losing = [one.protocol.value for one in found if one.outcome.lost_committed]
    diverging = [one.protocol.value for one in found if not isinstance(one.outcome.diverged_at, Absent)]
    parts = []
    if losing:
        parts.append(f"committed records are lost under {listed(losing)}")
    if diverging:
        parts.append(f"replicas stay different under {listed(diverging)}")
    if not parts:
        acknowledged = any(one.outcome.lost_acknowledged for one in found)
        parts.append(
            "nothing committed is lost, but records that a producer got an acknowledgement for are"
            if acknowledged
            else "nothing is lost"
        )
    state = State.LOST if losing else State.DIVERGED if diverging else State.COMPLETE
    return Answer(state=state, headline=f"{found[0].scenario.name}: {'; '.join(parts)}.")


def exploration_answer(found: Exploration) -> Answer:
    """Return the answer to whether an invariant of a model breaks."""
    if not isinstance(found.violation, Absent):
        states = counted(len(found.violation.trace), "state")
        return Answer(
            state=State.VIOLATED,
            headline=f"{found.model} breaks {found.violation.invariant}: the shortest way has {states}.",
        )
    if found.complete:
        return Answer(state=State.COMPLETE, headline=f"{found.model}: nothing breaks in any reachable state.")
    return Answer(state=State.UNKNOWN, headline=f"{found.model}: nothing found, but the search stopped at its limit.")


def written_answer(directory: str, count: int) -> Answer:
    """Return the answer to what was written."""
    return Answer(
        state=State.COMPLETE,
        headline=f"{byte_count(count)} of segments written to {directory}; what is true of them is in truth.json",
    )
