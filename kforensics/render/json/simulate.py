"""The results of `kforensics simulate` as plain values for JSON: the promise of `docs/json.md`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kforensics.commands.result import Result
from kforensics.commands.simulate import Replays
from kforensics.damage import Absent
from kforensics.render.json.document import document, fields_of
from kforensics.render.view import View
from kforensics.simulation.explore import Exploration, TraceStep
from kforensics.simulation.models import ModelReplica, ModelState
from kforensics.simulation.replica import Row
from kforensics.simulation.scenario import Replay, Scenario


def write_list(result: Result[Sequence[Scenario]], _view: View) -> Iterator[str]:
    """Return the built-in scenarios."""
    return document(result, "simulate", {"scenarios": [{"name": one.name, "title": one.title} for one in result.body]})


def write_replays(result: Result[Replays], _view: View) -> Iterator[str]:
    """Return a scenario under the one protocol that was asked for, or under each.

    Args:
        result: of `simulate replay`, with one replay or several of the same scenario.
    """
    bodies = [_replay_body(each) for each in result.body.replays]
    several = {"scenario": result.body.replays[0].scenario.name, "protocols": bodies}
    return document(result, "simulate", bodies[0] if result.body.is_one else several)


def write_exploration(result: Result[Exploration], _view: View) -> Iterator[str]:
    """Write what a search found."""
    return document(result, "simulate", _exploration_body(result.body))


def write_written(result: Result[Mapping[str, Any]], _view: View) -> Iterator[str]:
    """Write what was written.

    Args:
        result: of a `simulate` that writes data directories or a file; its body says which.
    """
    return document(result, "simulate", {"written": result.body})


def _replay_body(one: Replay) -> dict[str, Any]:
    """Return one scenario under one protocol."""
    return {
        "scenario": one.scenario.name,
        "protocol": one.protocol,
        "steps": [_step(row) for row in one.rows],
        "outcome": one.outcome,
    }


def _exploration_body(found: Exploration) -> dict[str, Any]:
    """Return what a search found."""
    violation: Any = found.violation
    if not isinstance(found.violation, Absent):
        violation = {
            "invariant": found.violation.invariant,
            "states": len(found.violation.trace),
            "trace": [_trace_step(step) for step in found.violation.trace],
        }
    return {
        **fields_of(found, "model", "size", "complete", "distinct_states", "depth"),
        "violation": violation,
    }


def _step(row: Row) -> dict[str, Any]:
    leader, follower = row.replica(row.leader), row.replica(row.follower)
    no_replica = Absent.NOT_APPLICABLE
    return {
        "event": row.event,
        "broker_id": row.broker_id,
        "leader_leo": leader.log_end_offset if leader else no_replica,
        "remote_leo": row.remote_log_end_offset,
        "leader_hw": leader.high_watermark if leader else no_replica,
        "follower_leo": follower.log_end_offset if follower else no_replica,
        "follower_hw": follower.high_watermark if follower else no_replica,
        **fields_of(row, "time_ms", "leader", "leader_epoch", "follower", "isr", "replicas"),
        "truncation": _truncation(row),
    }


def _truncation(row: Row) -> Any:
    if isinstance(row.truncation, Absent):
        return row.truncation
    outcome = row.truncation
    return {
        "offset": outcome.offset,
        "rule": outcome.rule,
        "steps": [{"sentence": step.sentence(), "truncate_to": step.truncate_to} for step in outcome.steps],
    }


def _trace_step(step: TraceStep) -> dict[str, Any]:
    return {"action": step.action, "state": _state(step.state)}


def _state(state: ModelState) -> dict[str, Any]:
    controller = state.controller
    return {
        "replicas": [_replica(replica) for replica in state.replicas],
        "controller": {
            "leader": _number(controller.leader),
            "leader_epoch": _number(controller.leader_epoch),
            "isr": controller.isr,
        },
        "requests": [
            {"leader": _number(request.leader), "leader_epoch": leader_epoch, "isr": request.isr}
            for leader_epoch, request in enumerate(controller.requests)
        ],
    }


def _replica(replica: ModelReplica) -> dict[str, Any]:
    return {
        "log": replica.log,
        "high_watermark": replica.high_watermark,
        "leader": _number(replica.leader),
        "leader_epoch": _number(replica.leader_epoch),
        "isr": replica.isr,
    }


def _number(value: int) -> int | Absent:
    return Absent.NOT_APPLICABLE if value < 0 else value
