"""What `kforensics simulate --write` does: data directories of a scenario, of a random history, or of a fleet."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kforensics.errors import UsageError

if TYPE_CHECKING:
    from kforensics.protocol.outcome import ProtocolName
    from kforensics.simulation.cluster import SimulatedCluster
    from kforensics.simulation.scenario import Scenario

MOST_RANDOM_PARTITIONS = 1_000
MOST_RANDOM_BROKERS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What is written where."""

    directory: Path
    seed: int | None
    brokers: int
    partitions: int
    racks: int
    """Of a random history; 0 for none."""
    length: int | None
    """Bytes of a fleet's segments."""
    steps: int | None
    """Only so many steps of a scenario."""
    stops: bool = False
    """In the end all brokers run, and then stop cleanly."""


def write_directories(
    options: WriteOptions, protocol: "ProtocolName", scenario: "Scenario | None"
) -> dict[str, object]:
    """Write the directories and what is true of them, and say what was written."""
    from kforensics.render.json.document import json_line
    from kforensics.simulation.broker_files import write_cluster
    from kforensics.simulation.broker_logs import write_broker_logs
    from kforensics.simulation.fleet_files import write_fleet
    from kforensics.simulation.truth import truth_of

    truth: object
    if options.length is not None:
        _require_room(options.directory, options.length)
        fleet = write_fleet(
            options.directory, brokers=options.brokers, partitions=options.partitions, total_length=options.length
        )
        truth, written = fleet, fleet.bytes
    else:
        cluster = _cluster(options, protocol, scenario)
        if options.stops:
            cluster.stop_all()
        written = write_cluster(cluster, options.directory)
        write_broker_logs(cluster, options.directory)
        truth = truth_of(cluster)
    options.directory.joinpath("truth.json").write_text(json_line(truth), encoding="utf-8")
    return {"directory": options.directory, "bytes": written, "truth": "truth.json"}


def _require_room(directory: Path, length: int) -> None:
    """Refuse a fleet that the disk can't hold; nothing is written then."""
    there = next(folder for folder in (directory, *directory.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(there).free
    if length > free:
        raise UsageError(f"{directory} has room for {free} bytes, --bytes asks for {length}")


def _cluster(options: WriteOptions, protocol: "ProtocolName", scenario: "Scenario | None") -> "SimulatedCluster":
    from kforensics.simulation.cluster import SimulatedCluster
    from kforensics.simulation.partition import SimulatedPartition
    from kforensics.simulation.random_history import random_cluster
    from kforensics.simulation.scenario import play

    if scenario is None:
        assert options.seed is not None
        if options.partitions > MOST_RANDOM_PARTITIONS:
            raise UsageError(f"a random history has at most {MOST_RANDOM_PARTITIONS} partitions; --bytes makes a fleet")
        if options.brokers > MOST_RANDOM_BROKERS:
            raise UsageError(f"a random history has at most {MOST_RANDOM_BROKERS} brokers; --bytes makes a fleet")
        return random_cluster(
            options.seed,
            protocol=protocol,
            brokers=options.brokers,
            partitions=options.partitions,
            racks=options.racks,
        )
    if options.steps is not None:
        scenario = replace(scenario, steps=scenario.steps[: options.steps])
    partition = SimulatedPartition(scenario.brokers, protocol, scenario.settings)
    play(scenario, partition)
    return SimulatedCluster.of_partition(partition)
