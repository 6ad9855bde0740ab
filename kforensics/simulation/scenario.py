"""A scenario: brokers, settings and a list of steps, how it is read from a file, and the application of a step to a simulated partition.

Scenario files are YAML with a fixed schema; an error names the line and what was expected. Aliases are refused (they can make cycles and blow up), and so
is a file, a nesting or a count beyond its bound.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from typing import Any

import yaml

from kforensics.damage import Absent
from kforensics.errors import UsageError
from kforensics.protocol.election import Acks
from kforensics.protocol.truncation import ProtocolName
from kforensics.simulation.partition import SimulatedPartition
from kforensics.simulation.replica import ImpossibleEventError, NumberedRecord, Row, Settings, missing_from

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
    """Replay a scenario under one protocol."""
    return play(scenario, SimulatedPartition(scenario.brokers, protocol, scenario.settings))


def play(scenario: Scenario, partition: SimulatedPartition) -> Replay:
    """Replay a scenario on a partition, which keeps the state after the last step."""
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
    """Apply one step to a partition, and return its rows."""
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


MAX_FILE_LENGTH = 1_048_576
MAX_STEPS = 10_000
MAX_RECORDS = 100_000
"""The most records of one step; all steps together may have a million."""
MAX_ALL_RECORDS = 1_000_000
MAX_BROKERS = 64
MAX_BROKER_ID = 2**31 - 1
MAX_TIME_MS = 253_370_764_800_000
"""The year 9999, the last that a log line can have."""
_MAX_DEPTH = 8
_MAX_MILLISECONDS = 10 * 365 * 86_400_000
_DURATION = re.compile(r"(\d{1,15}) ?(ms|s|min|h)?")
_UNIT_MS = {None: 1, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000}


class ScenarioFileError(UsageError):
    """An invalid scenario: file, line, what was expected and what was found."""

    def __init__(self, source: str, line: int, *, expected: str, found: str) -> None:
        super().__init__(f"{source}:{line}: expected {expected}, found {found}")
        self.line = line


def parse_scenario(text: str, source: str) -> Scenario:
    """Parse a scenario from YAML."""
    if len(text) > MAX_FILE_LENGTH:
        raise ScenarioFileError(source, 1, expected=f"at most {MAX_FILE_LENGTH} characters", found=str(len(text)))
    return _Reader(source).scenario(_compose(text, source))


def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in scenarios."""
    files = resources.files("kforensics.simulation").joinpath("scenarios").iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


def builtin_scenario(name: str) -> Scenario:
    """Return a built-in scenario."""
    if name not in builtin_names():
        raise UsageError(f"no scenario {name!r}: {', '.join(builtin_names())}, or a file")
    file = resources.files("kforensics.simulation").joinpath("scenarios", f"{name}.yaml")
    return parse_scenario(file.read_text(encoding="utf-8"), f"{name}.yaml")


def _compose(text: str, source: str) -> yaml.Node:
    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise ScenarioFileError(source, _line(event.start_mark), expected="no alias", found=f"*{event.anchor}")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _MAX_DEPTH:
                    expected = f"at most {_MAX_DEPTH} levels"
                    raise ScenarioFileError(source, _line(event.start_mark), expected=expected, found="more")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = _line(error.problem_mark or error.context_mark)
        found = (error.problem or "something else").removeprefix("but ").removeprefix("found ")
        raise ScenarioFileError(source, line, expected="YAML", found=found) from error
    except yaml.YAMLError as error:
        first_line = str(error).splitlines()[0]
        raise ScenarioFileError(source, 1, expected="YAML", found=first_line) from error
    if node is None:
        raise ScenarioFileError(source, 1, expected="a scenario", found="nothing")
    return node


def _line(mark: Any) -> int:
    return mark.line + 1 if mark else 1


def _name(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return repr(node.value)[:60]
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


class _Reader:
    """A converter from YAML nodes to values; every error has its line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.records = 0
        self.time_ms = 0

    def refuse(self, node: yaml.Node, expected: str, found: str | None = None) -> ScenarioFileError:
        if found is None:
            found = _name(node)
        return ScenarioFileError(self.source, _line(node.start_mark), expected=expected, found=found)

    def scenario(self, node: yaml.Node) -> Scenario:
        fields = dict(self.mapping(node, "a scenario", ("name", "title", "brokers", "settings", "steps")))
        for needed in ("name", "brokers", "steps"):
            if needed not in fields:
                raise self.refuse(node, f"the key '{needed}'", "none")
        brokers = self.brokers(fields["brokers"])
        settings = self.settings(fields["settings"]) if "settings" in fields else Settings()
        self.time_ms = settings.start_time_ms
        name = self.text(fields["name"])
        steps = self.sequence(fields["steps"], "a list of steps")
        if len(steps) > MAX_STEPS:
            raise self.refuse(fields["steps"], f"at most {MAX_STEPS} steps", str(len(steps)))
        return Scenario(
            name=name,
            title=self.text(fields["title"]) if "title" in fields else name,
            brokers=brokers,
            steps=tuple(self.step(step, brokers) for step in steps),
            settings=settings,
            source=self.source,
        )

    def settings(self, node: yaml.Node) -> Settings:
        readers: dict[str, Callable[[yaml.Node], Any]] = {
            "min_insync_replicas": self.count,
            "unclean_leader_election": self.truth,
            "eligible_leader_replicas": self.truth,
            "strict_min_isr": self.truth,
            "lag_time_max": self.duration,
            "lag_max_messages": self.count,
            "checkpoint_interval": self.duration,
            "recovery_point_interval": self.duration,
            "start_time": self.moment,
        }
        in_milliseconds = {"lag_time_max", "checkpoint_interval", "recovery_point_interval", "start_time"}
        values = {
            f"{name}_ms" if name in in_milliseconds else name: readers[name](value)
            for name, value in self.mapping(node, "settings", tuple(readers))
        }
        return Settings(**values)

    def step(self, node: yaml.Node, brokers: tuple[int, ...]) -> ScenarioStep:
        known = tuple(action.value for action in Action)
        pairs = list(self.mapping(node, "a step", known))
        if len(pairs) != 1:
            raise self.refuse(node, "one action a step", str(len(pairs)))
        name, value = pairs[0]
        action, line = Action(name), _line(node.start_mark)
        match action:
            case Action.PRODUCE:
                return self.produce(value, line)
            case Action.ADVANCE:
                milliseconds = self.duration(value)
                self.time_ms += milliseconds
                if self.time_ms > MAX_TIME_MS:
                    raise self.refuse(value, "a time before the year 9999")
                return ScenarioStep(action=action, line=line, milliseconds=milliseconds)
            case Action.ELECT:
                kind = self.one_of(value, tuple(election.value for election in Election))
                return ScenarioStep(action=action, line=line, election=Election(kind))
            case Action.SAY:
                return ScenarioStep(action=action, line=line, words=self.text(value))
        named = self.brokers(value)
        for broker in named:
            if broker not in brokers:
                raise self.refuse(value, f"a broker out of {list(brokers)}", str(broker))
        return ScenarioStep(action=action, line=line, brokers=named)

    def produce(self, node: yaml.Node, line: int) -> ScenarioStep:
        fields = dict(self.mapping(node, "what to produce", ("records", "count", "acks")))
        acks = Acks.ALL
        if "acks" in fields:
            words = {"0": Acks.NONE, "1": Acks.LEADER, "all": Acks.ALL, "-1": Acks.ALL}
            acks = words[self.one_of(fields["acks"], tuple(words))]
        records: tuple[str, ...] | int = 1
        if "count" in fields and "records" in fields:
            raise self.refuse(node, "either 'records' or 'count'", "both")
        if "count" in fields:
            records = self.count(fields["count"])
        elif "records" in fields:
            records = tuple(self.text(item) for item in self.sequence(fields["records"], "a list of records"))
        number = records if isinstance(records, int) else len(records)
        self.records += number
        if not 0 < number <= MAX_RECORDS or self.records > MAX_ALL_RECORDS:
            raise self.refuse(node, f"1 to {MAX_RECORDS} records, {MAX_ALL_RECORDS} in all", str(number))
        return ScenarioStep(action=Action.PRODUCE, line=line, records=records, acks=acks)

    def mapping(self, node: yaml.Node, what: str, known: tuple[str, ...]) -> Iterator[tuple[str, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            raise self.refuse(node, what)
        seen = set()
        for key_node, value in node.value:
            key = self.text(key_node)
            if key not in known:
                raise self.refuse(key_node, f"one of {', '.join(known)}")
            if key in seen:
                raise self.refuse(key_node, f"'{key}' once", "it again")
            seen.add(key)
            yield key, value

    def sequence(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            raise self.refuse(node, what)
        return list(node.value)

    def brokers(self, node: yaml.Node) -> tuple[int, ...]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        numbers = tuple(self.count(item) for item in nodes)
        if max(numbers, default=0) > MAX_BROKER_ID:
            raise self.refuse(node, f"broker ids up to {MAX_BROKER_ID}", str(max(numbers)))
        if not 0 < len(numbers) <= MAX_BROKERS:
            raise self.refuse(node, f"1 to {MAX_BROKERS} brokers", str(len(numbers)))
        if len(set(numbers)) != len(numbers):
            raise self.refuse(node, "each broker once", str(list(numbers)))
        return numbers

    def text(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.refuse(node, "a word")
        text = str(node.value)
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise self.refuse(node, "Unicode", "half of a surrogate pair")
        return text

    def one_of(self, node: yaml.Node, words: tuple[str, ...]) -> str:
        word = self.text(node)
        if word not in words:
            raise self.refuse(node, f"one of {', '.join(words)}")
        return word

    def count(self, node: yaml.Node) -> int:
        word = self.text(node)
        if not re.fullmatch(r"[0-9]{1,15}", word):
            raise self.refuse(node, "a number")
        return int(word)

    def moment(self, node: yaml.Node) -> int:
        milliseconds = self.count(node)
        if milliseconds > MAX_TIME_MS:
            raise self.refuse(node, "a time before the year 9999")
        return milliseconds

    def truth(self, node: yaml.Node) -> bool:
        return self.one_of(node, ("true", "false")) == "true"

    def duration(self, node: yaml.Node) -> int:
        match = _DURATION.fullmatch(self.text(node))
        if match is None:
            raise self.refuse(node, "a time as 500ms, 10s, 5min or 1h")
        milliseconds = int(match[1]) * _UNIT_MS[match[2]]
        if milliseconds > _MAX_MILLISECONDS:
            raise self.refuse(node, "at most ten years")
        return milliseconds
