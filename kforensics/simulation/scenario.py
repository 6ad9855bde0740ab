"""A scenario: brokers, settings and a list of steps, and the application of a step to a simulated partition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kforensics.damage import Absent
from kforensics.protocol.outcome import ProtocolName
from kforensics.protocol.visibility import Acks
from kforensics.simulation.commit_truth import NumberedRecord, missing_from
from kforensics.simulation.partition import SimulatedPartition
from kforensics.simulation.rows import ImpossibleEventError, Row, Settings

MAX_CELLS = 1_000_000
"""Rows of a table times its brokers: some hundred megabytes of memory."""


class Action(StrEnum):
    """The action of a step."""

    PRODUCE = "produce"
    FETCH = "fetch"
    ALIGN = "align"
    CRASH = "crash"
    STOP = "stop"
    POWER_LOSS = "power-loss"
    START = "start"
    RESTART = "restart"
    ELECT = "elect"
    ADVANCE = "advance"
    CHECKPOINT = "checkpoint"
    FLUSH = "flush"
    SAY = "say"


class Election(StrEnum):
    """The election that a step requests."""

    CLEAN = "clean"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioStep:
    """One step; the action decides which of the fields are used."""

    action: Action
    line: int
    brokers: tuple[int, ...] = ()
    records: tuple[str, ...] | int = 1
    acks: Acks = Acks.ALL
    milliseconds: int = 0
    election: Election = Election.CLEAN
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A history that can be replayed under every protocol."""

    name: str
    title: str
    brokers: tuple[int, ...]
    steps: tuple[ScenarioStep, ...]
    settings: Settings = field(default_factory=Settings)
    source: str = "built-in"
    """The file, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a scenario."""

    lost_committed: tuple[NumberedRecord, ...]
    """The committed records that are not in the log of the last leader."""
    lost_acknowledged: tuple[NumberedRecord, ...]
    """The acknowledged records that are not in the log of the last leader."""
    diverged_at: int | Absent
    """The first offset at which two replicas hold different records."""
    logs: dict[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A scenario under one protocol."""

    scenario: Scenario
    protocol: ProtocolName
    rows: tuple[Row, ...]
    outcome: Outcome


class StepFailedError(ImpossibleEventError):
    """A step that can't happen, with its place in the scenario."""

    def __init__(self, scenario: Scenario, step: ScenarioStep, problem: str) -> None:
        super().__init__(f"{scenario.source}:{step.line}: {step.action} can't happen here: {problem}")


def replay(scenario: Scenario, protocol: ProtocolName) -> Replay:
    """Replay a scenario under one protocol.

    Args:
        scenario: with its brokers, settings and steps.

    Raises:
        StepFailedError: a step that can't happen, or too many rows.
    """
    return play(scenario, SimulatedPartition(scenario.brokers, protocol, scenario.settings))


def play(scenario: Scenario, partition: SimulatedPartition) -> Replay:
    """Replay a scenario on a partition, which keeps the state after the last step.

    Args:
        scenario: with its brokers, settings and steps.

    Raises:
        StepFailedError: a step that can't happen, or too many rows.
    """
    rows: list[Row] = []
    most_rows = MAX_CELLS // len(scenario.brokers)
    for step in scenario.steps:
        partition.now_ms += 1
        try:
            rows += apply(partition, step)
        except ImpossibleEventError as problem:
            raise StepFailedError(scenario, step, str(problem)) from problem
        if len(rows) > most_rows:
            too_many = f"the table would have more than {most_rows} rows for {len(scenario.brokers)} brokers"
            raise StepFailedError(scenario, step, too_many)
    return Replay(scenario=scenario, protocol=partition.protocol, rows=tuple(rows), outcome=outcome_of(partition))


def apply(partition: SimulatedPartition, step: ScenarioStep) -> list[Row]:
    """Apply one step to a partition, and return its rows.

    Raises:
        ImpossibleEventError: the step can't happen.
    """
    match step.action:
        case Action.PRODUCE:
            return partition.produce(step.records, step.acks)
        case Action.CRASH | Action.STOP | Action.POWER_LOSS:
            return partition.stop(step.brokers, kind=step.action.value)
        case Action.ELECT:
            unclean = True if step.election is Election.UNCLEAN else None
            return partition.elect(preferred=step.election is Election.PREFERRED, unclean=unclean)
        case Action.ADVANCE:
            return partition.advance(step.milliseconds)
        case Action.SAY:
            return partition.say(step.words)
    one = {
        Action.FETCH: partition.fetch,
        Action.ALIGN: partition.align,
        Action.START: partition.start,
        Action.RESTART: partition.restart,
        Action.CHECKPOINT: partition.checkpoint,
        Action.FLUSH: partition.flush,
    }[step.action]
    return [row for broker in step.brokers for row in one(broker)]


def outcome_of(partition: SimulatedPartition) -> Outcome:
    """Return the losses and differences against the leader, or against the longest log if there is no leader."""
    logs = {broker: replica.records for broker, replica in partition.replicas.items()}
    leader = partition.registration.leader
    final = max(logs.values(), key=len) if isinstance(leader, Absent) else logs[leader]
    return Outcome(
        lost_committed=tuple(missing_from(final, partition.truth.committed)),
        lost_acknowledged=tuple(missing_from(final, partition.truth.acknowledged)),
        diverged_at=first_divergence(list(logs.values())),
        logs={broker: tuple(records.values()) for broker, records in logs.items()},
    )


def first_divergence(logs: Sequence[Mapping[int, str]]) -> int | Absent:
    """Return the first offset at which two logs hold different records; absent where none do."""
    for offset in sorted({offset for log in logs for offset in log}):
        if len({log[offset] for log in logs if offset in log}) > 1:
            return offset
    return Absent.NOT_APPLICABLE
