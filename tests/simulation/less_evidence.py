"""Evidence taken away from simulated clusters: what `diff` then says is held against what the simulator knows."""

import random
import shutil
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from kforensics.ask.model import Ask
from kforensics.commands.comparing import DiffResult, compare
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.findings.answers.model import State
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.replicas.report import PartitionReport, WhatIf
from kforensics.simulation.broker_files import write_cluster
from kforensics.simulation.cluster import PartitionTruth, SimulatedCluster, truth_of
from kforensics.simulation.partition import SimulatedPartition
from kforensics.units import TopicPartition
from tests.builders.cases import case_of

Records = set[tuple[int, str]]
NO_LOSS = frozenset({State.AGREE, State.SAME_ENDS, State.BEHIND, State.UNCOMMITTED_ONLY})
"""States that say that the next start discards nothing committed."""
NO_LONE_HOLDER = frozenset({State.AGREE, State.SAME_ENDS, State.BEHIND})
"""States that say that no replica alone holds what was committed."""


def diff_with_less(cluster: SimulatedCluster, directory: Path, seed: int, *, protocol_is_told: bool) -> list[str]:
    """Write the cluster, take some brokers and perhaps the controllers away, and list every statement that is false or too calm.

    Args:
        cluster: as its history left it.
        directory: to write to.
        seed: what is taken away.
        protocol_is_told: `--protocol` is given where the disks do not tell it.
    """
    write_cluster(cluster, directory, segment_length=700)
    choice = random.Random(seed)
    nodes = sorted(path for path in directory.iterdir() if path.is_dir())
    kept = [node for node in nodes if choice.random() < 0.7] or nodes[:1]
    for node in set(nodes) - set(kept):
        shutil.rmtree(node)
    is_kraft = cluster.protocol is ProtocolName.KIP_595
    told = cluster.protocol if protocol_is_told and not is_kraft else None
    assignments = {tuple(sorted(one.brokers)) for one in cluster.partitions.values()}
    stated = assignments.pop() if len(assignments) == 1 and choice.random() < 0.7 else ()
    options = Ask(protocol=told, replicas=stated, is_stopped=choice.random() < 0.3 and not cluster_runs(cluster))
    harmed = _harm(choice, kept) if choice.random() < 0.4 else None
    result = compare(case_of(find_inputs(kept), options), keep_quiet=True)
    here = {found.described.broker_id for found in find_inputs(kept).found}
    given = {broker for broker in cluster.brokers if broker in here}
    return list(_wrong(cluster, result, given, harmed))


def _harm(choice: random.Random, nodes: Sequence[Path]) -> TopicPartition | None:
    """Take the log of one partition away from one node, in a way that the files that are left show."""
    named = [
        (directory, name)
        for node in nodes
        for checkpoint in sorted(node.rglob("replication-offset-checkpoint"))
        for name, offset in _lines(checkpoint)
        if offset > 0 and (directory := checkpoint.parent / name).is_dir() and len(_lines(checkpoint)) > 1
    ]
    if not named:
        return None
    directory, name = choice.choice(named)
    match choice.choice(["directory", "logs", "content"]):
        case "directory":
            shutil.rmtree(directory)
        case "logs":
            for log in directory.glob("*.log"):
                log.unlink()
        case "content":
            for log in directory.glob("*.log"):
                log.write_bytes(b"")
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def _lines(checkpoint: Path) -> list[tuple[str, int]]:
    """The directories that a checkpoint names, with their offsets."""
    fields = [line.split() for line in checkpoint.read_text().splitlines()[2:]]
    return [(f"{topic}-{partition}", int(offset)) for topic, partition, offset in fields]


def cluster_runs(cluster: SimulatedCluster) -> bool:
    """Whether any broker of a cluster runs."""
    return any(cluster.is_running(broker) for broker in cluster.brokers)


def _wrong(
    cluster: SimulatedCluster, result: DiffResult, given: set[int], harmed: TopicPartition | None
) -> Iterable[str]:
    truth = {(one.topic, one.partition): one for one in truth_of(cluster).partitions}
    worst = [one.state for one in result.partitions]
    if result.answer.state is State.AGREE and set(worst) != {State.AGREE}:
        yield f"the whole agrees, its partitions are {worst}"
    for one in result.partitions:
        known = truth.get((one.partition.topic, one.partition.partition))
        if known is None or one.report is None:
            continue
        simulated = cluster.partitions[one.partition]
        yield from _in_line(one.report)
        if one.partition == harmed:
            # What the simulator knows of this log is not on its disk any more.
            if one.state in NO_LONE_HOLDER:
                yield f"{one.partition}: {one.state}, and a log of it was taken away"
            continue
        for words in _false_calm(one.state, known, simulated, given):
            yield f"{one.partition}: {one.state}: {words}"
        if one.state is State.AT_RISK:
            yield from _false_alarm(one.report, simulated)
        yield from _what_if(one.report, simulated)


def _committed(simulated: SimulatedPartition) -> Records:
    truth = simulated.truth
    return {(one.offset, one.record) for one in (*truth.committed, *truth.acknowledged)}


def _held(simulated: SimulatedPartition, broker: int) -> Records:
    return set(simulated.replicas[broker].records.items())


def _false_calm(state: State, truth: PartitionTruth, simulated: SimulatedPartition, given: set[int]) -> Iterable[str]:
    committed: Records = {(one.offset, one.record) for one in simulated.truth.committed}
    brokers = [broker for broker in simulated.brokers if broker in given]
    if state is State.AGREE and set(simulated.brokers) - given:
        yield f"replicas {set(simulated.brokers) - given} are not given"
    if state in NO_LONE_HOLDER and len(simulated.brokers) > 1:
        for broker in brokers:
            others = [other for other in simulated.brokers if other != broker]
            alone = (_held(simulated, broker) & committed).difference(*(_held(simulated, other) for other in others))
            if alone:
                yield f"broker {broker} alone holds {sorted(alone)[:3]}"
    if state is State.AGREE:
        everywhere = [_held(simulated, broker) & committed for broker in brokers]
        if any(one != everywhere[0] for one in everywhere):
            yield "committed records are not on all replicas"
    if state in NO_LOSS and isinstance(truth.leader, int):
        kept = _held(simulated, truth.leader)
        for replica in truth.replicas:
            gone = {(one.offset, one.record) for one in replica.committed_to_go} - kept
            if replica.broker_id in given and gone:
                yield f"broker {replica.broker_id} will discard {sorted(gone)[:3]}"


def _false_alarm(report: PartitionReport, simulated: SimulatedPartition) -> Iterable[str]:
    """Something certainly committed is at risk only where a replica that is given lacks it."""
    proven = _committed(simulated) | {(one.offset, one.record) for one in simulated.truth.on_whole_isr}
    brokers = [one.view.replica.broker_id for one in report.replicas if isinstance(one.view.replica.broker_id, int)]
    held = [_held(simulated, broker) & proven for broker in brokers]
    if not report.emptied and all(one == held[0] for one in held):
        yield f"{report.partition}: at risk, but every replica holds all that was committed"


def _in_line(report: PartitionReport) -> Iterable[str]:
    """The ranking of possible leaders, what each would lose and the blocks of single replicas tell the same."""
    ranked = sorted(report.what_if, key=lambda choice: choice.rank)
    for better, worse in pairwise(ranked):
        if (better.lost_certain, better.lost_possible) > (worse.lost_certain, worse.lost_possible):
            yield f"{report.partition}: the ranking is not by what is lost"
    for holder in report.sole_holders:
        for choice in report.what_if:
            if choice.leader is not holder.view and choice.lost_certain < holder.counts.certain:
                yield f"{report.partition}: {holder.counts.certain} are on one replica alone, another leader loses {choice.lost_certain}"
    for choice in report.what_if:
        single = [truncation.lost.certain for _, truncation in choice.truncations]
        if not max(single, default=0) <= choice.discarded.certain <= sum(single):
            yield f"{report.partition}: {choice.discarded.certain} are discarded in all, {single} by single replicas"
    led = next((c for c in report.what_if if report.leader is not None and c.leader is report.leader.view), None)
    if led is not None:
        blocks = {
            one.view.replica.path: one.truncation.offset
            for one in report.replicas
            if one.truncation is not None and one.view.replica.state == "live"
        }
        said = {view.replica.path: truncation.offset for view, truncation in led.truncations}
        if blocks != said:
            yield f"{report.partition}: blocks truncate to {blocks}, the choice of that leader to {said}"
    for one in report.set_aside:
        if any(choice.leader.replica.path == one.path for choice in report.what_if):
            yield f"{report.partition}: a directory that was put aside is a candidate"


def _what_if(report: PartitionReport, simulated: SimulatedPartition) -> Iterable[str]:
    """The numbers, the truncations and the ranking of possible leaders tell the same."""
    if any(not isinstance(choice.leader.replica.broker_id, int) for choice in report.what_if):
        return
    candidates = {choice.leader.replica.broker_id for choice in report.what_if}
    for choice in report.what_if:
        leader = choice.leader.replica.broker_id
        assert isinstance(leader, int)
        kept = _held(simulated, leader)
        gone: Records = set()
        for view, truncation in choice.truncations:
            assert isinstance(view.replica.broker_id, int)
            gone |= {
                (offset, record)
                for offset, record in _held(simulated, view.replica.broker_id) - kept
                if truncation.offset <= offset < view.log_end_offset
            }
        if choice.discarded.records != len(gone):
            yield f"{report.partition}: led by {leader}, {choice.discarded.records} are discarded, in truth {len(gone)}"
        lost = set().union(*(_held(simulated, other) for other in candidates if isinstance(other, int))) - kept
        if choice.lost_certain + choice.lost_possible > len(lost):
            yield f"{report.partition}: led by {leader}, more are lost than the others hold: {len(lost)}"
        if choice.discarded.certain > choice.lost_certain:
            yield f"{report.partition}: led by {leader}, more is discarded than lost"
        yield from _certain_losses(choice, lost, simulated, report)


def _certain_losses(
    choice: WhatIf, lost: Records, simulated: SimulatedPartition, report: PartitionReport
) -> Iterable[str]:
    proven = _committed(simulated) | {(one.offset, one.record) for one in simulated.truth.on_whole_isr}
    if choice.lost_certain > len(lost & proven):
        yield f"{report.partition}: led by {choice.leader.replica.broker_id}, {choice.lost_certain} are certainly lost, in truth {len(lost & proven)}"
