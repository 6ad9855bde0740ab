"""One random history through everything: simulated, written as directories, read back, judged, and held against the truth."""

from dataclasses import replace
from pathlib import Path

from kforensics.ask.model import Ask
from kforensics.case.opening import open_case
from kforensics.commands.comparing import compare
from kforensics.commands.explain import explain
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.findings.model import Finding
from kforensics.protocol.epochs import latest_epoch
from kforensics.protocol.truncation import ProtocolName
from kforensics.reconcile.incident.model import PartitionIncident
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.simulation.broker_files import write_broker_logs, write_cluster
from kforensics.simulation.cluster import MOST_STEPS, PartitionTruth, SimulatedCluster, random_cluster, truth_of
from kforensics.simulation.partition import SimulatedPartition
from kforensics.units import TopicPartition
from tests.builders.cases import case_of

NOTHING = Absent.NOT_APPLICABLE
EXACT = (ProtocolName.KIP_279, ProtocolName.KIP_595)
"""Where fencing makes the recomputed cut the end of the common prefix, always."""


def diff_against_truth(cluster: SimulatedCluster, directory: Path) -> list[str]:
    """Every statement of `diff` that is not so, in words; empty where it is right."""
    write_cluster(cluster, directory, segment_length=700)
    truth = truth_of(cluster)
    is_kraft = cluster.protocol is ProtocolName.KIP_595
    options = Ask(protocol=None if is_kraft else cluster.protocol)
    result = compare(case_of(find_inputs([directory]), options), keep_quiet=True)
    wrong = [f"problem: {problem.message}" for problem in result.problems]
    wrong += [
        f"{item.code}: {item.statement}"
        for item in result.findings
        if item.code.startswith(("KF1", "KF5")) and not _is_lost_log(item, cluster)
    ]
    reports = {tuple(one.partition): one.report for one in result.partitions}
    for partition in truth.partitions:
        report = reports[partition.topic, partition.partition]
        assert report is not None
        assert report.leader is not None
        if isinstance(partition.leader, Absent):
            continue
        if report.leader.broker_id != partition.leader:
            if is_kraft:
                wrong.append(f"{report.partition}: leader {report.leader.broker_id}, in truth {partition.leader}")
                continue
            # Nothing on these disks says who leads: that can only be told.
            told = replace(options, leader=partition.leader, partitions=frozenset({partition.partition}))
            (report,) = compare(case_of(find_inputs([directory]), told), keep_quiet=True).reports
        if _is_silent_leader(cluster.partitions[report.partition], partition.leader) and _truncations(report) != {
            one.broker_id: one.truncate_to for one in partition.replicas
        }:
            continue
        wrong += _replicas(report, partition, cluster)
    return wrong


def _is_lost_log(item: Finding, cluster: SimulatedCluster) -> bool:
    """Whether a finding names a log that a power loss left empty below its checkpoints, and in truth one did."""
    if item.code != "KF116" or not (isinstance(item.topic, str) and isinstance(item.partition, int)):
        return False
    assert isinstance(item.broker_id, int)
    return not cluster.partitions[TopicPartition(item.topic, item.partition)].replicas[item.broker_id].log


def _truncations(report: PartitionReport) -> dict[object, object]:
    return {
        one.view.replica.broker_id: NOTHING if one.truncation is None else one.truncation.offset
        for one in report.replicas
    }


def _is_silent_leader(simulated: SimulatedPartition, leader: int) -> bool:
    """Whether a leader older than 2.0.1 has written nothing in its term, so that it answers as if it had none (KAFKA-7415).

    No disk says so, and `diff` takes a leader as one that has: what real brokers of 1.1.1 did in `fast-failover-1.1`.
    """
    replica = simulated.replicas[leader]
    if replica.rules.enters_epoch_when_elected or not replica.keeps_epochs:
        return False
    return latest_epoch(replica.epochs) != simulated.registration.leader_epoch


def _replicas(report: PartitionReport, truth: PartitionTruth, cluster: SimulatedCluster) -> list[str]:
    wrong = []
    judged = {one.view.replica.broker_id: one for one in report.replicas}
    simulated = cluster.partitions[report.partition]
    for replica in truth.replicas:
        one = judged[replica.broker_id]
        where = f"{report.partition} on {replica.broker_id}"
        truncation = NOTHING if one.truncation is None else one.truncation.offset
        if truncation != replica.truncate_to:
            wrong.append(f"{where}: cut {truncation}, in truth {replica.truncate_to}")
        prefix = replica.common_end_offset if replica.common_end_offset < replica.log_end_offset else NOTHING
        if cluster.protocol in EXACT and truncation != prefix:
            wrong.append(f"{where}: cut {truncation}, the common prefix ends at {prefix}")
        diverged = NOTHING if one.divergence is None else one.divergence.offset
        if diverged != replica.first_divergence:
            wrong.append(f"{where}: divergence {diverged}, in truth {replica.first_divergence}")
        if one.view.log_end_offset != replica.log_end_offset:
            wrong.append(f"{where}: log end {one.view.log_end_offset}, in truth {replica.log_end_offset}")
        records = simulated.replicas[replica.broker_id].records
        committed = {offset for offset, _record in replica.committed_to_go}
        proven = committed | {
            offset for offset, record in simulated.truth.on_whole_isr if records.get(offset) == record
        }
        for run in one.truncation.runs if one.truncation else ():
            offsets = set(range(run.offsets.first, run.offsets.last + 1))
            if run.certainty == "certain" and not offsets <= proven:
                wrong.append(f"{where}: {run.offsets} called certain: {run.reason}; in truth {sorted(proven)}")
            if run.certainty == "no" and offsets & committed:
                wrong.append(f"{where}: {run.offsets} called never committed: {run.reason}; in truth it was")
    return wrong


def explain_against_truth(cluster: SimulatedCluster, directory: Path) -> list[str]:
    """Every statement of `explain` about the same cluster, once its brokers returned, that is not so."""
    directory.mkdir()
    write_cluster(cluster, directory / "before")
    before = {tp: {b: r.records for b, r in one.replicas.items()} for tp, one in cluster.partitions.items()}
    for broker in cluster.brokers:
        if not cluster.is_running(broker):
            cluster.start(broker)
    for partition, simulated in cluster.partitions.items():
        for broker in (*simulated.brokers, *simulated.brokers):
            cluster.fetch(partition, broker)
    write_cluster(cluster, directory / "final")
    write_broker_logs(cluster, directory / "final")
    told = explain(open_case(Ask(paths=(directory / "final",), before=(directory / "before",), jobs=1)))
    wrong = [f"problem: {problem.message}" for problem in told.problems]
    incidents = {tuple(incident.partition): incident for incident in told.incidents}
    for truth in truth_of(cluster).partitions:
        name = f"{truth.topic}-{truth.partition}"
        incident = incidents.get((truth.topic, truth.partition))
        truncations = (
            {(one.broker_id, one.to_offset) for one in incident.truncations if one.is_logged} if incident else set()
        )
        known = {(past.broker_id, past.to_offset) for past in truth.past_truncations}
        wrong += [f"{name}: the cut of {broker} to {to} is not told" for broker, to in known - truncations]
        wrong += [f"{name}: a cut of {broker} to {to} is told that never was" for broker, to in truncations - known]
        held = {
            (offset, record)
            for partition, replicas in before.items()
            if partition.partition == truth.partition
            for records in replicas.values()
            for offset, record in records.items()
        }
        simulated = cluster.partitions[TopicPartition(truth.topic, truth.partition)]
        wrong += _losses(truth, incident, held, simulated)
    return wrong


def _losses(
    truth: PartitionTruth, incident: PartitionIncident | None, held: set[tuple[int, str]], simulated: SimulatedPartition
) -> list[str]:
    name = f"{truth.topic}-{truth.partition}"
    lost = {one.offset for one in truth.lost_committed if tuple(one) in held}
    told: dict[int, str] = {}
    for run in incident.losses if incident else ():
        told |= dict.fromkeys(range(run.offsets.first, run.offsets.last + 1), run.committed)
    wrong = [f"{name}: offset {offset} was committed, is gone, and is not told of" for offset in lost - told.keys()]
    final = simulated.replicas[truth.leader].records if isinstance(truth.leader, int) else {}
    ever_lost = {
        one.offset
        for one in (*truth.lost_committed, *simulated.truth.on_whole_isr)
        if final.get(one.offset) != one.record
    }
    for offset, committed in told.items():
        if committed == "certain" and offset not in ever_lost:
            wrong.append(f"{name}: offset {offset} is called a certain loss, and is none")
        if committed == "no" and offset in lost:
            wrong.append(f"{name}: offset {offset} is called never committed, and was")
    return wrong


def shortest_failure(seed: int, protocol: ProtocolName, directory: Path) -> tuple[int, list[str]]:
    """The fewest steps of a failing seed with which it still fails, and what is wrong then."""
    for steps in range(1, MOST_STEPS + 1):
        cluster = random_cluster(seed, protocol=protocol, most_steps=steps)
        wrong = diff_against_truth(cluster, directory / f"diff-{steps}")
        wrong += explain_against_truth(cluster, directory / f"explain-{steps}")
        if wrong:
            return steps, wrong
    return MOST_STEPS, []
