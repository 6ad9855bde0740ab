"""Evidence taken away from simulated histories: what `explain` then says is held against what the simulator knows."""

import copy
import os
import random
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kforensics.ask.model import Ask
from kforensics.case.opening import open_case
from kforensics.commands.explain import explain
from kforensics.commands.explanation import Explanation
from kforensics.findings.answers.model import State
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.history.causes import CauseName
from kforensics.reconcile.history.losses import Loss
from kforensics.reconcile.incident.model import PartitionIncident
from kforensics.simulation.broker_files import write_broker_logs, write_cluster
from kforensics.simulation.cluster import SimulatedCluster, random_cluster
from kforensics.simulation.partition import SimulatedPartition
from kforensics.simulation.replica import SimulatedReplica
from kforensics.units import TopicPartition

Record = tuple[int, str]
CALM = frozenset({State.NOTHING_LOST, State.UNCOMMITTED_LOST})
"""States that say that nothing that was committed is lost."""
ALARM = frozenset({State.LOST, State.MAYBE_LOST})
COPIED_S = 1_800_000_000
COPIES = 0.06
"""How likely the directories are copied after a step."""


@dataclass(slots=True)
class History:
    """A cluster at the end of its history, with copies of its directories from before."""

    cluster: SimulatedCluster
    snapshots: list[Path] = field(default_factory=list)
    epochs: dict[tuple[TopicPartition, Record], int] = field(default_factory=dict)
    """The leader epoch in which each record was written."""
    appended_ms: dict[tuple[str, str], int] = field(default_factory=dict)
    """When each log was last appended to, by broker and partition: a file keeps that time where a power loss takes the records."""

    def note(self, cluster: SimulatedCluster) -> None:
        """Note in which leader epochs the records were written that any log holds now."""
        for partition, simulated in cluster.partitions.items():
            for broker, replica in simulated.replicas.items():
                place = (str(broker), str(partition))
                newest = max((one.timestamp_ms for one in replica.log[-1:]), default=cluster.settings.start_time_ms)
                self.appended_ms[place] = max(newest, self.appended_ms.get(place, newest))
                for batch in replica.log[-6:]:
                    for offset, record in enumerate(batch.records, batch.base_offset):
                        self.epochs[partition, (offset, record)] = batch.leader_epoch


def write_history(seed: int, protocol: ProtocolName, directory: Path) -> History:
    """Write the directories of a random history at its end, with log files, and at a few moments before.

    Args:
        seed: of the history, and of the moments.
        protocol: of its brokers.
        directory: to write to.
    """
    dice = random.Random(f"copies {seed}")
    history = History(cluster=None)  # type: ignore[arg-type]
    with_times = dice.random() < 0.5

    disks = _Disks(random.Random(f"disks {seed}"), is_used=seed % 3 == 0)

    def after_step(cluster: SimulatedCluster) -> None:
        history.note(cluster)
        disks.restore_some(cluster)
        if dice.random() < COPIES and len(history.snapshots) < 3:
            path = directory / f"before-{len(history.snapshots)}"
            write_cluster(cluster, path, segment_length=700)
            _set_times(path, cluster, history, with_times=with_times)
            history.snapshots.append(path)

    history.cluster = random_cluster(seed, protocol=protocol, after_step=after_step)
    if dice.random() < 0.5:
        _return(history.cluster)
    history.note(history.cluster)
    write_cluster(history.cluster, directory / "now", segment_length=700)
    _set_times(directory / "now", history.cluster, history, with_times=with_times)
    write_broker_logs(history.cluster, directory)
    return history


class _Disks:
    """Copies of brokers' disks, which are put back now and then while the broker is down."""

    def __init__(self, dice: random.Random, *, is_used: bool) -> None:
        self.dice = dice
        self.is_used = is_used
        self.saved: dict[int, dict[TopicPartition, SimulatedReplica]] = {}

    def restore_some(self, cluster: SimulatedCluster) -> None:
        """Save a disk, or put back one that was saved."""
        if not self.is_used:
            return
        broker = self.dice.choice(cluster.brokers)
        if broker in self.saved and not cluster.is_running(broker) and self.dice.random() < 0.3:
            for partition, replica in self.saved.pop(broker).items():
                replica.is_running = False
                cluster.partitions[partition].replicas[broker] = replica
        elif self.dice.random() < 0.1:
            self.saved[broker] = {
                partition: copy.deepcopy(one.replicas[broker])
                for partition, one in cluster.partitions.items()
                if broker in one.replicas
            }


def _return(cluster: SimulatedCluster) -> None:
    """Start all brokers and let all followers catch up."""
    for broker in cluster.brokers:
        if not cluster.is_running(broker):
            cluster.start(broker)
    for partition, simulated in cluster.partitions.items():
        for broker in (*simulated.brokers, *simulated.brokers):
            cluster.fetch(partition, broker)


def _set_times(directory: Path, cluster: SimulatedCluster, history: History, *, with_times: bool) -> None:
    """Give every file the time at which it was last written, as a copy that keeps times has it; else that of copying, an hour after the other."""
    if not with_times:
        turn = len(history.snapshots)
        for path in directory.rglob("*"):
            os.utime(path, (COPIED_S + 3_600 * turn, COPIED_S + 3_600 * turn))
        return
    for path in directory.rglob("*"):
        if path.is_file():
            broker = path.relative_to(directory).parts[0].removeprefix("broker-")
            appended_ms = history.appended_ms.get((broker, path.parent.name), cluster.now_ms)
            time_ms = appended_ms if path.suffix == ".log" else cluster.now_ms
            os.utime(path, (time_ms / 1000, time_ms / 1000))


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of one explanation."""

    now: tuple[Path, ...]
    before: tuple[Path, ...] = ()
    is_stopped: bool = False

    def explained(self) -> Explanation:
        """The explanation of these inputs."""
        return explain(open_case(Ask(paths=self.now, before=self.before, is_stopped=self.is_stopped, jobs=1)))


def every_input(history: History, directory: Path) -> Inputs:
    """Everything that was written."""
    logs = sorted((directory / "logs").iterdir())
    return Inputs((*sorted((directory / "now").iterdir()), *logs), tuple(history.snapshots))


def with_less(history: History, directory: Path, seed: int) -> Inputs:
    """Some of what was written, at least one node's directories."""
    choice = random.Random(f"less {seed}")
    whole = every_input(history, directory)
    nodes = [one for one in whole.now if one.parent.name == "now"]
    logs = [one for one in whole.now if one.parent.name == "logs"]
    kept = [node for node in nodes if choice.random() < 0.75] or nodes[:1]
    lines = [] if choice.random() < 0.4 else [one for one in logs if choice.random() < 0.7]
    before = tuple(_some_nodes(one, choice) for one in whole.before if choice.random() < 0.6)
    is_quiet = not any(history.cluster.is_running(broker) for broker in history.cluster.brokers)
    return Inputs((*kept, *lines), before, is_stopped=is_quiet and choice.random() < 0.5)


def _some_nodes(snapshot: Path, choice: random.Random) -> Path:
    """A snapshot, or a copy of it with fewer nodes."""
    if choice.random() < 0.6:
        return snapshot
    some = snapshot.with_name(f"{snapshot.name}-some")
    nodes = sorted(snapshot.iterdir())
    kept = [node for node in nodes if choice.random() < 0.6] or nodes[:1]
    some.mkdir()
    for node in kept:
        shutil.copytree(node, some / node.name)
    return some


def growing(history: History, directory: Path, seed: int) -> Iterator[Inputs]:
    """Chains of inputs, each with one more than the one before."""
    choice = random.Random(f"chain {seed}")
    whole = every_input(history, directory)
    rest = [(True, one) for one in whole.now] + [(False, one) for one in whole.before]
    choice.shuffle(rest)
    first = next(at for at, (is_now, path) in enumerate(rest) if is_now and path.parent.name == "now")
    rest.insert(0, rest.pop(first))
    now: list[Path] = []
    before: list[Path] = []
    for is_now, path in rest:
        (now if is_now else before).append(path)
        yield Inputs(tuple(now), tuple(before))


def wrong_statements(history: History, result: Explanation) -> list[str]:
    """Every statement of an explanation that is false, or calmer than it may be."""
    wrong = []
    states = {}
    for incident in result.incidents:
        if incident.partition in history.cluster.partitions:
            simulated = history.cluster.partitions[incident.partition]
            states[incident.partition] = incident.state
            wrong += [f"{incident.partition}: {words}" for words in _of_partition(history, incident, simulated)]
    # Partitions without any event are not listed; they have the state of the whole at best.
    for partition, simulated in history.cluster.partitions.items():
        state = states.get(partition, result.answer.state if result.answer.state in CALM else None)
        gone = _gone(simulated)
        if state in CALM and gone:
            wrong.append(f"{partition}: {state} though {sorted(gone)[:3]} is lost ({result.answer.headline})")
    if result.answer.state in CALM and set(states.values()) - {one.value for one in CALM}:
        wrong.append(f"the whole is {result.answer.state}, its partitions are {states}")
    return wrong


def _gone(simulated: SimulatedPartition) -> set[Record]:
    """Committed records that the last leader does not hold."""
    leader = last_leader(simulated)
    records = simulated.replicas[leader].records
    return {(one.offset, one.record) for one in simulated.truth.committed if records.get(one.offset) != one.record}


def last_leader(simulated: SimulatedPartition) -> int:
    """The newest leader on record, whether or not it runs."""
    return next(one.leader for _, one in reversed(simulated.registrations) if isinstance(one.leader, int))


def _of_partition(history: History, incident: PartitionIncident, simulated: SimulatedPartition) -> Iterator[str]:
    truth = simulated.truth
    committed = {(one.offset, one.record) for one in truth.committed}
    proven = committed | {(one.offset, one.record) for one in (*truth.acknowledged, *truth.on_whole_isr)}
    gone = _gone(simulated)
    final = simulated.replicas[last_leader(simulated)].records
    here = TopicPartition(*incident.partition)
    for loss in incident.losses:
        meant = set(_meant(history, here, loss))
        if loss.was_committed == "no" and meant & gone:
            yield f"{loss.offsets} called not committed, {sorted(meant & gone)[:3]} was: {loss.reason}"
        if loss.was_committed == "certain" and not _all_offsets(loss, meant & proven):
            yield f"{loss.offsets} called certainly committed, in truth {sorted(meant & proven)}: {loss.reason}"
        missing = {one for one in meant & proven if final.get(one[0]) != one[1]}
        if loss.committed == "certain" and not _all_offsets(loss, missing):
            yield f"{loss.offsets} called certainly lost, in truth {sorted(missing)}: {loss.reason}"
    if incident.state == State.LOST and not any(final.get(offset) != record for offset, record in proven):
        yield "called lost, and nothing is"
    yield from _causes(incident, simulated)


def _meant(history: History, partition: TopicPartition, loss: Loss) -> Iterable[Record]:
    """The records of these offsets and of that leader epoch, as far as one is named."""
    for (where, record), epoch in history.epochs.items():
        is_inside = where == partition and loss.offsets.first <= record[0] <= loss.offsets.last
        if is_inside and (not isinstance(loss.leader_epoch, int) or loss.leader_epoch == epoch or not loss.held_by):
            yield record


def _all_offsets(loss: Loss, records: Iterable[Record]) -> bool:
    return set(range(loss.offsets.first, loss.offsets.last + 1)) <= {offset for offset, _ in records}


def _causes(incident: PartitionIncident, simulated: SimulatedPartition) -> Iterator[str]:
    unclean = any(kind.value in {"unclean", "last-known-leader"} for _, kind, _ in simulated.elections)
    for truncation in incident.truncations:
        cause = truncation.cause
        if cause.name is CauseName.UNCLEAN_ELECTION and cause.confidence == "proven" and not unclean:
            yield f"an unclean election is called proven: {cause.reason}"
        if cause.name is CauseName.DISK_REPLACED and cause.confidence in {"proven", "likely"}:
            yield f"a replaced disk is called {cause.confidence}: {cause.reason}"


def contradictions(chain: Iterable[Explanation]) -> list[str]:
    """What more evidence turned into its contrary."""
    wrong = []
    calm: dict[TopicPartition, str] = {}
    whole_calm = ""
    denied: set[tuple[TopicPartition, int, object]] = set()
    for at, result in enumerate(chain):
        for incident in result.incidents:
            if incident.partition in calm and incident.state in ALARM:
                wrong.append(f"step {at}: {incident.partition} was {calm[incident.partition]}, is {incident.state}")
            if incident.state == State.NOTHING_LOST:
                calm[incident.partition] = incident.state
            for loss in incident.losses:
                offsets = {
                    (incident.partition, offset, loss.leader_epoch)
                    for offset in range(loss.offsets.first, loss.offsets.last + 1)
                }
                if loss.was_committed == "no":
                    denied |= offsets
                elif loss.was_committed == "certain" and offsets & denied:
                    wrong.append(f"step {at}: {incident.partition} {loss.offsets} was not committed, and is")
        if whole_calm and result.answer.state in ALARM:
            wrong.append(f"step {at}: the whole was calm ({whole_calm}), is {result.answer.state}")
        if result.answer.state is State.NOTHING_LOST:
            whole_calm = result.answer.headline
    return wrong
