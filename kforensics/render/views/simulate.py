"""What `simulate` shows: the scenarios, the steps of one under each protocol, or the shortest way that breaks a model."""

from collections.abc import Iterator, Sequence
from typing import Any

from kforensics.commands.result import Result
from kforensics.commands.simulate import Replays
from kforensics.damage import Absent
from kforensics.render.blocks import (
    GAP,
    Block,
    Column,
    Fact,
    Lane,
    Lanes,
    Prose,
    Section,
    Table,
    Tone,
    Value,
)
from kforensics.render.view import View
from kforensics.simulation.explore import Exploration
from kforensics.simulation.models import ModelState
from kforensics.simulation.replica import NumberedRecord, ReplicaRow, Row
from kforensics.simulation.scenario import Replay, Scenario
from kforensics.words import counted, listed

_NUMBERS = ("L LEO", "remote", "L HW", "F LEO", "F HW")
_MOST_RECORDS = 6
_OUTCOMES = [Column(title) for title in ("protocol", "lost committed", "lost acknowledged", "diverged at", "logs")]
_REPLICA = [Column(title) for title in ("Replica", "Log", "HW", "Believes")]

_PICTURES = (
    "Each frame is one step; scroll sideways to see them all. A bar is a log, record by record where it is short; its colours "
    "change with the leader epoch, and the arrow is at the high watermark. A bold green name is in the ISR; a pale lane is a broker that is down."
)


def scenarios(result: Result[Sequence[Scenario]], _view: View) -> Iterator[Block]:
    """Yield the built-in scenarios with their titles."""
    longest = max(len(scenario.name) for scenario in result.body)
    for scenario in result.body:
        yield Fact(scenario.name, scenario.title, width=longest + 2)


def replays(result: Result[Replays], view: View) -> Iterator[Block]:
    """Yield what came of a scenario under each protocol, then the steps of each different course."""
    found = result.body.replays
    yield Prose(found[0].scenario.title)
    yield GAP
    yield Table(name="What came of it", columns=_OUTCOMES, rows=[_outcome(one) for one in found])
    if view.page:
        yield Prose(_PICTURES)
    courses: dict[tuple[object, ...], tuple[list[str], Replay]] = {}
    for one in found:
        courses.setdefault(tuple(map(tuple, _steps(one))), ([], one))[0].append(one.protocol.value)
    for protocols, one in courses.values():
        yield GAP
        name = listed(protocols)
        yield Section(title=name, level=3)
        if view.page:
            moments = [(row.event, [_lane(row, replica) for replica in row.replicas]) for row in one.rows]
            yield Lanes(name=name, moments=moments, in_frames=True)
        yield Table(name=f"Steps under {name}", columns=_step_columns(one), rows=_steps(one))


def exploration(result: Result[Exploration], _view: View) -> Iterator[Block]:
    """Yield what a search found: the shortest way to the broken invariant, and how many states it visited."""
    found = result.body
    size = found.size
    if not isinstance(found.violation, Absent):
        for number, step in enumerate(found.violation.trace):
            yield GAP
            yield Fact(f"{number:>4}", step.action, width=6, depth=0)
            yield from _state(step.state)
        yield GAP
    yield Prose(
        f"{counted(found.distinct_states, 'state')} visited, {counted(found.depth, 'level')} deep; "
        f"{counted(size.replicas, 'replica')}, logs of at most {size.max_log}, "
        f"{counted(size.max_records, 'record')}, epochs 0 to {size.max_epoch}"
    )


def written(_result: Result[Any], _view: View) -> Iterator[Block]:
    """Yield nothing: the answer says what was written where."""
    return iter(())


def _outcome(one: Replay) -> tuple[Value, ...]:
    outcome = one.outcome
    diverged = "-" if isinstance(outcome.diverged_at, Absent) else str(outcome.diverged_at)
    logs = "  ".join(f"{broker}: {_log(records)}" for broker, records in sorted(outcome.logs.items()))
    return (one.protocol.value, _named(outcome.lost_committed), _named(outcome.lost_acknowledged), diverged, logs)


def _step_columns(one: Replay) -> list[Column]:
    brokers = sorted(one.scenario.brokers)
    numbers = _NUMBERS if len(brokers) <= 2 else [f"b{broker} LEO/HW" for broker in brokers]
    return [Column(title) for title in ("step", "leader", *numbers, "ISR")]


def _steps(one: Replay) -> list[tuple[Value, ...] | str]:
    """Return a row per step: with two brokers the log end and HW of leader and follower, with more those of each broker."""
    brokers = sorted(one.scenario.brokers)
    two = len(brokers) <= 2
    rows: list[tuple[Value, ...] | str] = []
    for row in one.rows:
        if row.is_scenario:
            rows.append(row.event)
            continue
        leader = "-" if isinstance(row.leader, Absent) else f"{row.leader} e{row.leader_epoch}"
        numbers = _five_numbers(row) if two else [_standing(row, broker) for broker in brokers]
        event = row.event if two else row.event.replace("follower", f"broker {row.broker_id}", 1)
        rows.append((event, leader, *numbers, ",".join(map(str, row.isr))))
    return rows


def _lane(row: Row, replica: ReplicaRow) -> Lane:
    in_sync = Tone.GOOD if replica.broker_id in row.isr else Tone.PLAIN
    return Lane(
        name=f"broker {replica.broker_id}" + (" (leader)" if row.leader == replica.broker_id else ""),
        end=replica.log_end_offset,
        epochs=replica.epochs,
        note=f"end {replica.log_end_offset}, HW {replica.high_watermark}{'' if replica.is_running else ', down'}",
        tone=in_sync if replica.is_running else Tone.QUIET,
        watermark=replica.high_watermark,
        records=() if isinstance(replica.records, Absent) else tuple(replica.records),
    )


def _state(state: ModelState) -> Iterator[Block]:
    rows = []
    for index, replica in enumerate(state.replicas):
        log = " ".join(f"{record.record_id}@e{record.leader_epoch}" for record in replica.log)
        believes = "follows no leader yet"
        if replica.leader == index:
            isr = ",".join(map(str, sorted(replica.isr)))
            believes = f"leads in epoch {replica.leader_epoch}, ISR {isr}"
        elif replica.leader >= 0:
            believes = f"follows {replica.leader} in epoch {replica.leader_epoch}"
        rows.append((f"replica {index}", f"[{log}]", f"HW {replica.high_watermark}", believes))
    yield Table(name="Replicas", columns=_REPLICA, rows=rows, has_heading=False, depth=3)
    controller = state.controller
    leader = "none" if controller.leader < 0 else str(controller.leader)
    epoch = "no epoch yet" if controller.leader_epoch < 0 else f"epoch {controller.leader_epoch}"
    isr = ",".join(map(str, sorted(controller.isr))) or "empty"
    yield Fact("controller", f"leader {leader}, {epoch}, ISR {isr}", depth=3)


def _five_numbers(row: Row) -> list[str]:
    leader, follower = row.replica(row.leader), row.replica(row.follower)
    remote = "-" if isinstance(row.remote_log_end_offset, Absent) else str(row.remote_log_end_offset)
    return [
        str(leader.log_end_offset) if leader else "-",
        remote,
        str(leader.high_watermark) if leader else "-",
        str(follower.log_end_offset) if follower else "-",
        str(follower.high_watermark) if follower else "-",
    ]


def _standing(row: Row, broker: int) -> str:
    replica = row.replica(broker)
    if replica is None:
        return "-"
    return f"{replica.log_end_offset}/{replica.high_watermark}{'' if replica.is_running else ' down'}"


def _named(records: Sequence[NumberedRecord]) -> str:
    if not records:
        return "-"
    shown = [f"{record} at {offset}" for offset, record in records[:2]]
    return ", ".join(shown) + (f" and {len(records) - 2} more" if len(records) > 2 else "")


def _log(records: Sequence[str]) -> str:
    if len(records) > _MOST_RECORDS:
        return counted(len(records), "record")
    return "[" + " ".join(records) + "]"
