"""The answer of `predict`: whether each node starts, and what it loses by it."""

from collections.abc import Iterator

from kforensics.damage import Absent
from kforensics.findings.answers.model import Answer, State, worst_state
from kforensics.findings.answers.partition_state import ConcernKind
from kforensics.findings.answers.predict_cluster import PredictedCluster
from kforensics.findings.answers.predict_headline import predict_headline
from kforensics.findings.answers.predict_steps import after_starts, predict_steps
from kforensics.findings.answers.predict_unknowns import predict_unknowns
from kforensics.findings.answers.start_order import discarded_by_leaders
from kforensics.protocol.loading.starts import StartResult
from kforensics.reconcile.logs.predicted_load import DueSegments

_BY_COMPARISON = {
    State.AT_RISK: State.LOSES,
    State.UNCOMMITTED_ONLY: State.LOSES,
    State.MAYBE_AT_RISK: State.UNKNOWN,
    State.DIVERGED: State.UNKNOWN,
}
"""What a state of `diff` leaves of a start that would else be calm: its followers truncate, or may, or serve other content."""

_OF_ENDS = frozenset(
    {
        ConcernKind.GONE,
        ConcernKind.PROTOCOL,
        ConcernKind.TAIL,
        ConcernKind.LEADER,
        ConcernKind.OUTDATED,
        ConcernKind.LOGGED_END,
    }
)
"""What `diff` does not know of logs that are given; replicas that are not given are asked for in the answer."""


def predict_answer(found: PredictedCluster) -> Answer:
    """Return the answer over all starts.

    Args:
        found: the starts of all nodes, with what is known beside them.
    """
    outcome, compared = _outcome(found), _of_replicas(found)
    state = _state(found, outcome, compared)
    replicas = None if found.replicas is None or compared is None else found.replicas
    return Answer(
        state=state,
        headline=predict_headline(found, outcome, replicas),
        now=tuple(predict_steps(found, state, replicas)),
        tell=() if replicas is None else replicas.answer.tell,
        later=tuple(after_starts(found)),
        unknown=tuple(predict_unknowns(found)),
    )


def _outcome(found: PredictedCluster) -> State:
    """Return the state that the starts come to by themselves, whatever their order."""
    states = set(_states(found))
    if (
        found.versions
        or found.left_out
        or found.has_problems
        or found.allows_older
        or found.side_by_side
        or found.not_migrated
        or any(one.is_grave for one in found.missing_directories)
    ):
        states.add(State.UNKNOWN)
    state = worst_state("predict", states) or State.UNKNOWN
    if state is State.STARTS_UNCHANGED and (found.is_partial or found.unknown_strays or found.elsewhere):
        return State.UNKNOWN
    return state


def _states(found: PredictedCluster) -> Iterator[State]:
    for start in found.starts:
        if isinstance(start.result, Absent):
            yield State.UNKNOWN
        elif start.result is not StartResult.STARTS:
            yield State.WILL_NOT_START
    for log in found.logs:
        if not log.is_reached:
            continue
        due = log.due if isinstance(log.due, DueSegments) and log.due.is_setting_known else None
        if log.outcome == "unknown":
            yield State.UNKNOWN
        elif log.lost.records or (due is not None and (due.is_whole_log or due.misdated)) or found.is_unserved(log):
            yield State.LOSES
        else:
            yield State.STARTS_AND_REPAIRS if log.is_changed or due is not None else State.STARTS_UNCHANGED
    for one in found.metadata_logs:
        if one.unknown:
            yield State.UNKNOWN
        elif one.lost.records:
            yield State.LOSES if one.lost.only_here else State.STARTS_AND_REPAIRS
    if found.starts:
        yield State.STARTS_UNCHANGED


def _state(found: PredictedCluster, outcome: State, compared: State | None) -> State:
    """Return the state of the whole: with what followers discard, and unknown where more than the starts may be lost."""
    state = outcome
    if compared is not None:
        state = worst_state("predict", {state, compared}) or state
    if any(discarded_by_leaders(found.order)):
        state = worst_state("predict", {state, State.LOSES}) or state
    if state in {State.STARTS_UNCHANGED, State.STARTS_AND_REPAIRS} and _is_in_doubt(found):
        return State.UNKNOWN
    return state


def _of_replicas(found: PredictedCluster) -> State | None:
    if found.replicas is None:
        return None
    state = found.replicas.answer.state
    if state is State.UNKNOWN:
        return State.UNKNOWN if found.replicas.open_kinds & _OF_ENDS else None
    return _BY_COMPARISON.get(state)


def _is_in_doubt(found: PredictedCluster) -> bool:
    return bool(
        any(one.configured or one.blank for one in found.missing_directories)
        or found.ended_early
        or found.lost
        or any(one.lost_before for one in found.metadata_logs)
        or found.aged
        or found.misdated
        or found.brokers_without_logs
        or any(log.due is Absent.UNREADABLE for log in found.reached)
        or (found.order is not None and found.order.missing)
        or found.twice
        or found.leaving
        or found.without_segment
        or found.filled_strays
        or found.quorum
    )
