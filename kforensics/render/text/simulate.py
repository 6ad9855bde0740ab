"""Screens of `kforensics simulate`: the step tables, or the shortest way that breaks a model."""

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from kforensics.commands.result import Result
from kforensics.commands.simulate import Replays
from kforensics.damage import Absent
from kforensics.render.escape import escape_text
from kforensics.render.text.screen import Line, Style, Words, columns
from kforensics.render.text.whole import whole_screen
from kforensics.render.view import View
from kforensics.simulation.explore import Exploration, Violation
from kforensics.simulation.models import ModelState
from kforensics.simulation.replica import NumberedRecord, Row
from kforensics.simulation.scenario import Replay, Scenario
from kforensics.words import counted, listed

_NUMBERS = ("L LEO", "remote", "L HW", "F LEO", "F HW")
_MOST_RECORDS = 6


@whole_screen
def write_list(result: Result[Sequence[Scenario]], _view: View) -> Sequence[Line]:
    """Return the built-in scenarios with their titles."""
    scenarios = result.body
    longest = max(len(scenario.name) for scenario in scenarios)
    lines: list[Line] = []
    for scenario in scenarios:
        indent = " " * (longest + 4)
        lead = f"  {scenario.name:<{longest}}  "
        lines.append(Words(escape_text(scenario.title), indent=indent, first=lead))
    return lines


@whole_screen
def write_replays(result: Result[Replays], _view: View) -> Sequence[Line]:
    """Return what came of a scenario under each protocol, then the steps of each different course."""
    found = result.body.replays
    lines: list[Line] = [Words(escape_text(found[0].scenario.title))]
    lines.append(Text(""))
    heading = ("protocol", "lost committed", "lost acknowledged", "diverged at", "logs")
    rows = [heading]
    for one in found:
        outcome = one.outcome
        diverged = "-" if isinstance(outcome.diverged_at, Absent) else str(outcome.diverged_at)
        logs = "  ".join(f"{broker}: {_log(records)}" for broker, records in sorted(outcome.logs.items()))
        rows.append(
            (one.protocol.value, _named(outcome.lost_committed), _named(outcome.lost_acknowledged), diverged, logs)
        )
    lines += _table(rows)
    courses: dict[tuple[str, ...], tuple[list[str], list[Line]]] = {}
    for one in found:
        table = _step_table(one)
        courses.setdefault(tuple(map(str, table)), ([], table))[0].append(one.protocol.value)
    for protocols, table in courses.values():
        lines += [Text(""), Text(listed(protocols), style=Style.HEADING), *table]
    return lines


@whole_screen
def write_exploration(result: Result[Exploration], _view: View) -> Sequence[Line]:
    """Return what a search found: the shortest way to the broken invariant, and how many states it visited."""
    found = result.body
    size = found.size
    configuration = (
        f"{counted(size.replicas, 'replica')}, logs of at most {size.max_log}, "
        f"{counted(size.max_records, 'record')}, epochs 0 to {size.max_epoch}"
    )
    visited = (
        f"{counted(found.distinct_states, 'state')} visited, {counted(found.depth, 'level')} deep; {configuration}"
    )
    lines = [] if isinstance(found.violation, Absent) else [*_way(found.violation), Text("")]
    return [*lines, Words(visited)]


@whole_screen
def write_written(_result: Result[Any], _view: View) -> Sequence[Line]:
    """Return nothing: the answer says what was written where."""
    return ()


def _step_table(one: Replay) -> list[Line]:
    """Show one row per step: with two brokers the log end and HW of leader and follower, with more those of each broker."""
    two = len(one.scenario.brokers) <= 2
    brokers = sorted(one.scenario.brokers)
    heading = ["step", "leader", *(_NUMBERS if two else [f"b{broker} LEO/HW" for broker in brokers]), "ISR"]
    rows = [tuple(heading)]
    steps = [row for row in one.rows if not row.is_scenario]
    for row in steps:
        leader = "-" if isinstance(row.leader, Absent) else f"{row.leader} e{row.leader_epoch}"
        numbers = _five_numbers(row) if two else [_standing(row, broker) for broker in brokers]
        event = row.event if two else row.event.replace("follower", f"broker {row.broker_id}", 1)
        rows.append((escape_text(event), leader, *numbers, ",".join(map(str, row.isr))))
    drawn = iter(_table(rows))
    lines: list[Line] = [next(drawn)]
    for row in one.rows:
        if row.is_scenario:
            lines.append(Words(escape_text(row.event), indent="    ", first="  ~ ", style=Style.QUIET))
        else:
            lines.append(next(drawn))
    return lines


def _way(violation: Violation) -> list[Line]:
    lines: list[Line] = []
    for number, step in enumerate(violation.trace):
        lines += ["", Words(step.action, indent=" " * 6, first=f"{number:>4}  "), *_state_lines(step.state)]
    return lines


def _state_lines(state: ModelState) -> list[Line]:
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
    controller = state.controller
    leader = "none" if controller.leader < 0 else str(controller.leader)
    epoch = "no epoch yet" if controller.leader_epoch < 0 else f"epoch {controller.leader_epoch}"
    isr = ",".join(map(str, sorted(controller.isr))) or "empty"
    beside = Text(f"      controller  leader {leader}, {epoch}, ISR {isr}", style=Style.QUIET)
    return [*columns(rows, indent=" " * 6), beside]


def _table(rows: Sequence[Sequence[str]]) -> list[Text]:
    heading, *lines = columns(rows)
    return [Text(heading, style=Style.QUIET), *map(Text, lines)]


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
    shown = [f"{escape_text(record)} at {offset}" for offset, record in records[:2]]
    return ", ".join(shown) + (f" and {len(records) - 2} more" if len(records) > 2 else "")


def _log(records: Sequence[str]) -> str:
    if len(records) > _MOST_RECORDS:
        return counted(len(records), "record")
    return "[" + " ".join(escape_text(record) for record in records) + "]"
