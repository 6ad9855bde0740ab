"""Replication simulated: scenarios replayed, models explored, histories written as data directories."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kforensics.ask.simulate import SimulateAsk
from kforensics.commands.result import Conclusion, Result
from kforensics.errors import UsageError
from kforensics.findings.answers.simulate import exploration_answer, list_answer, replay_answer, written_answer
from kforensics.protocol.truncation import ProtocolName
from kforensics.simulation.explore import Exploration, Explorer, Invariant
from kforensics.simulation.models import ModelSize
from kforensics.simulation.scenario import (
    MAX_FILE_LENGTH,
    Replay,
    Scenario,
    builtin_names,
    builtin_scenario,
    parse_scenario,
    play,
    replay,
)

if TYPE_CHECKING:
    from kforensics.simulation.cluster import SimulatedCluster

MOST_RANDOM_PARTITIONS = 1_000
MOST_RANDOM_BROKERS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    """One scenario under one or more protocols."""

    replays: tuple[Replay, ...]
    is_one: bool
    """Whether one protocol was asked for."""


def run(request: SimulateAsk, to_json: Callable[[object], str] = str) -> Result[Any]:
    """Do one of the things that `simulate` does.

    Returns:
        Scenarios, `Replays`, an `Exploration`, or what was written: a mapping of `directory`, `bytes` and `truth`.
    """
    if request.write is not None:
        written = _write(request, request.write, to_json)
        answer = written_answer(str(written["directory"]), int(written["bytes"]))
        return _result("write", written, Conclusion(answer=answer))
    if request.model is not None:
        found = _explore(request, request.model)
        return _result("explore", found, Conclusion(answer=exploration_answer(found)))
    if request.scenario is not None:
        scenario = _read_scenario(request.scenario)
        played = tuple(replay(scenario, one) for one in _protocols(request.protocol))
        body = Replays(replays=played, is_one=request.protocol is not None)
        return _result("replay", body, Conclusion(answer=replay_answer(played)))
    scenarios = tuple(builtin_scenario(name) for name in builtin_names())
    return _result("list", scenarios, Conclusion(answer=list_answer(len(scenarios))))


def _result(shape: str, body: Any, concluded: Conclusion) -> Result[Any]:
    return Result(command="simulate", shape=f"simulate {shape}", body=body, concluded=concluded)


def _read_scenario(name: str) -> Scenario:
    """Return a built-in scenario by its name, else the file of that name."""
    if name in builtin_names():
        return builtin_scenario(name)
    path = Path(name)
    if not path.is_file():
        return builtin_scenario(name)
    try:
        with path.open("rb") as file:
            text = file.read(4 * MAX_FILE_LENGTH + 1).decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UsageError(f"{name}:{line}: expected UTF-8, found byte {error.object[error.start]:#04x}") from error
    except OSError as error:
        raise UsageError(f"{name} can't be read: {error.strerror}") from error
    return parse_scenario(text, name)


def _protocols(name: str | None) -> list[ProtocolName]:
    if name is None:
        return list(ProtocolName)
    try:
        return [ProtocolName(name)]
    except ValueError:
        raise UsageError(f"no protocol {name!r}: {', '.join(ProtocolName)}") from None


def _explore(request: SimulateAsk, model: str) -> Exploration:
    wanted = None
    if request.invariant is not None:
        try:
            wanted = Invariant(request.invariant)
        except ValueError:
            raise UsageError(f"no invariant {request.invariant!r}: {', '.join(Invariant)}") from None
    size = ModelSize(
        replicas=request.replicas,
        max_log=request.max_log,
        max_records=request.max_records,
        max_epoch=request.max_epoch,
    )
    return Explorer(model, size).explore(wanted, max_states=request.max_states)


def _write(request: SimulateAsk, directory: Path, to_json: Callable[[object], str]) -> Mapping[str, Any]:
    """Write the directories and what is true of them, and say what was written."""
    from kforensics.simulation.broker_files import (  # noqa: PLC0415 - writers that few runs need
        write_broker_logs,
        write_cluster,
    )
    from kforensics.simulation.cluster import truth_of  # noqa: PLC0415
    from kforensics.simulation.fleet_files import write_fleet  # noqa: PLC0415

    truth: object
    if request.length is not None:
        there = next(folder for folder in (directory, *directory.absolute().parents) if folder.is_dir())
        free = shutil.disk_usage(there).free
        if request.length > free:
            raise UsageError(f"{directory} has room for {free} bytes, --bytes asks for {request.length}")
        fleet = write_fleet(
            directory, brokers=request.brokers, partitions=request.partitions, total_length=request.length
        )
        truth, written = fleet, fleet.bytes
    else:
        cluster = _cluster(request, _protocols(request.protocol or ProtocolName.KIP_595.value)[0])
        if request.stop:
            cluster.stop_all()
        written = write_cluster(cluster, directory)
        write_broker_logs(cluster, directory)
        truth = truth_of(cluster)
    directory.joinpath("truth.json").write_text(to_json(truth), encoding="utf-8")
    return {"directory": directory, "bytes": written, "truth": "truth.json"}


def _cluster(request: SimulateAsk, protocol: ProtocolName) -> "SimulatedCluster":
    from kforensics.simulation.cluster import SimulatedCluster, random_cluster  # noqa: PLC0415 - a fleet needs none
    from kforensics.simulation.partition import SimulatedPartition  # noqa: PLC0415

    if request.scenario is None:
        if request.partitions > MOST_RANDOM_PARTITIONS:
            raise UsageError(f"a random history has at most {MOST_RANDOM_PARTITIONS} partitions; --bytes makes a fleet")
        if request.brokers > MOST_RANDOM_BROKERS:
            raise UsageError(f"a random history has at most {MOST_RANDOM_BROKERS} brokers; --bytes makes a fleet")
        return random_cluster(
            request.seed,
            protocol=protocol,
            brokers=request.brokers,
            partitions=request.partitions,
            racks=request.racks,
        )
    scenario = _read_scenario(request.scenario)
    if request.steps is not None:
        scenario = replace(scenario, steps=scenario.steps[: request.steps])
    partition = SimulatedPartition(scenario.brokers, protocol, scenario.settings)
    play(scenario, partition)
    return SimulatedCluster.of_partition(partition)
