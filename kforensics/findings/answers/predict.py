"""The answer of `predict`: whether each node starts, and what it loses by it."""

from collections.abc import Iterator

from kforensics.damage import Absent
from kforensics.findings.answers.model import Answer, State, worst_state
from kforensics.findings.answers.predict_cluster import PredictedCluster
from kforensics.findings.answers.predict_headline import predict_headline
from kforensics.findings.answers.predict_steps import after_starts, predict_steps
from kforensics.findings.answers.predict_unknowns import predict_unknowns
from kforensics.findings.answers.start_order import discarded_by_leaders
from kforensics.protocol.loading.starts import StartResult
from kforensics.reconcile.logs.predicted_load import DueSegments


def predict_answer(found: PredictedCluster) -> Answer:
    """Return the answer over all starts.

    Args:
        found: the starts of all nodes, with what is known beside them.
    """
    outcome = _outcome(found)
    state = _state(found, outcome)
    return Answer(
        state=state,
        headline=predict_headline(found, outcome),
        now=tuple(predict_steps(found, state)),
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


def _state(found: PredictedCluster, outcome: State) -> State:
    """Return the state of the whole: with what followers discard, and unknown where more than the starts may be lost."""
    state = outcome
    if any(discarded_by_leaders(found.order)):
        state = worst_state("predict", {state, State.LOSES}) or state
    if state in {State.STARTS_UNCHANGED, State.STARTS_AND_REPAIRS} and _is_in_doubt(found):
        return State.UNKNOWN
    return state


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
