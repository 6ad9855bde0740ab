"""The documents of `simulate`: scenarios, their replays, searches, and what was written."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kforensics.commands.result import Result
from kforensics.commands.simulate import Replays
from kforensics.render.json.document import document
from kforensics.render.json.shape import Document, Each, Field, Shape, own, shape
from kforensics.render.view import View
from kforensics.simulation.explore import Exploration, Violation
from kforensics.simulation.models import ModelController, ModelReplica, ModelState, Request
from kforensics.simulation.replica import ReplicaRow, Row
from kforensics.simulation.scenario import Replay, Scenario


def write_list(result: Result[Sequence[Scenario]], _view: View) -> Iterator[str]:
    """Return the built-in scenarios."""
    return document(result, "simulate", {"scenarios": map(_SCENARIO.plain, result.body)})


def write_replays(result: Result[Replays], _view: View) -> Iterator[str]:
    """Return a scenario under the one protocol that was asked for, or under each."""
    first, *_ = bodies = [_REPLAY.plain(each) for each in result.body.replays]
    several = {"scenario": first["scenario"], "protocols": bodies}
    return document(result, "simulate", first if result.body.is_one else several)


def write_exploration(result: Result[Exploration], _view: View) -> Iterator[str]:
    """Write what a search found."""
    return document(result, "simulate", dict(_EXPLORATION.pairs(result.body)))


def write_written(result: Result[Mapping[str, Any]], _view: View) -> Iterator[str]:
    """Write what was written."""
    return document(result, "simulate", {"written": result.body})


def _requests(state: ModelState) -> Iterator[tuple[int, Request]]:
    return enumerate(state.controller.requests)


def _leader(row: Row) -> ReplicaRow | None:
    return row.replica(row.leader)


def _follower(row: Row) -> ReplicaRow | None:
    return row.replica(row.follower)


def _of(replica: Any, name: str) -> Field:
    return Field(lambda row: getattr(replica(row), name, None), "", int | None)


def _number(name: str, at: int | None = None) -> Field:
    """Return a field that is null below 0."""

    def get(value: Any) -> int | None:
        number: int = getattr(value if at is None else value[at], name)
        return None if number < 0 else number

    return Field(get, "", int | None)


_SCENARIO = Shape(Scenario, "", own("name title"))
shape(
    Row,
    "A row of the table: an event, and the numbers after it.",
    {
        "event": ("", "In words."),
        "broker_id": ("", "Whom it is about."),
        "leader_leo": _of(_leader, "log_end_offset"),
        "remote_leo": "remote_log_end_offset",
        "leader_hw": _of(_leader, "high_watermark"),
        "follower_leo": _of(_follower, "log_end_offset"),
        "follower_hw": _of(_follower, "high_watermark"),
        **own("time_ms leader leader_epoch"),
        "follower": ("", "Whom the columns are about."),
        "isr": "",
        "replicas": ("", "Every broker; of one that is down the high watermark as checkpointed."),
        "truncation": Field(
            "truncation",
            "Where the step is one.",
            {
                **own("offset rule"),
                "steps": Field("steps", "", Each({"sentence": "sentence()", "truncate_to": ""})),
            },
        ),
    },
)
shape(
    ModelReplica,
    "A replica in a state of the model.",
    {**own("log high_watermark"), "leader": _number("leader"), "leader_epoch": _number("leader_epoch"), "isr": ""},
)
shape(
    ModelController,
    "The controller in a state of the model.",
    {"leader": _number("leader"), "leader_epoch": _number("leader_epoch"), "isr": ""},
)
shape(
    ModelState,
    "A state of the model.",
    {
        **own("replicas controller"),
        "requests": Field(_requests, "", Each({"leader": _number("leader", 1), "leader_epoch": "0", "isr": "1.isr"})),
    },
)
shape(
    Violation,
    "A broken invariant.",
    {
        "invariant": "",
        "states": Field(lambda one: len(one.trace), "Of the shortest trace, including the initial one.", int),
        "trace": "",
    },
)
_EXPLORATION = Shape(
    Exploration,
    "With `--explore`.",
    {
        "model": "",
        "size": "",
        "complete": ("", "Whether every reachable state was visited; false with a violation, and at `--max-states`."),
        "distinct_states": "",
        "depth": "",
        "violation": "",
    },
)
_REPLAY = Shape(
    Replay,
    "A scenario under one protocol.",
    {"scenario": "scenario.name", "protocol": "", "steps": ("rows", "One for each row of the table."), "outcome": ""},
)


def _none(_body: Any) -> None:
    return None


SIMULATE = Document(
    "simulate",
    object,
    {
        "scenarios": Field(_none, "With `--list`.", Each(_SCENARIO), is_optional=True),
        "protocols": Field(_none, "Without `--protocol`: the scenario under each.", Each(_REPLAY), is_optional=True),
        "written": Field(_none, "With `--write`.", Mapping[str, Any], is_optional=True),
    },
    others=(_REPLAY, _EXPLORATION),
)
