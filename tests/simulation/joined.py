"""One random history through everything: simulated, written as directories, read back, judged, and held against the truth."""

from pathlib import Path

from kforensics.damage import Absent
from kforensics.evidence.inputs import find_inputs
from kforensics.pipeline.diff import DiffOptions, compare
from kforensics.pipeline.explain import ExplainOptions, explain, gather_evidence
from kforensics.protocol.outcome import ProtocolName
from kforensics.reconcile.story import PartitionStory
from kforensics.simulation.broker_files import write_cluster
from kforensics.simulation.broker_logs import write_broker_logs
from kforensics.simulation.cluster import SimulatedCluster
from kforensics.simulation.random_history import MOST_STEPS, random_cluster
from kforensics.simulation.truth import PartitionTruth, truth_of

NOTHING = Absent.NOT_APPLICABLE


def diff_against_truth(cluster: SimulatedCluster, directory: Path) -> list[str]:
    """Every statement of `diff` that is not so, in words; empty where it is right."""
    write_cluster(cluster, directory, segment_length=700)
    truth = truth_of(cluster)
    is_kraft = cluster.protocol is ProtocolName.KIP_595
    options = DiffOptions(protocol=None if is_kraft else cluster.protocol)
    result = compare(find_inputs([directory]), options, jobs=1, keep_quiet=True)
    wrong = [f"problem: {problem.message}" for problem in result.problems]
    wrong += [f"{item.code}: {item.statement}" for item in result.findings if item.code.startswith(("KF1", "KF5"))]
    reports = {tuple(one.partition): one.report for one in result.partitions}
    for partition in truth.partitions:
        report = reports[partition.topic, partition.partition]
        assert report is not None
        assert report.leader is not None
        if isinstance(partition.leader, Absent) or report.leader.broker_id != partition.leader:
            if is_kraft and not isinstance(partition.leader, Absent):
                wrong.append(f"{report.partition}: leader {report.leader.broker_id}, in truth {partition.leader}")
            continue
        judged = {one.view.replica.broker_id: one for one in report.replicas}
        for replica in partition.replicas:
            one = judged[replica.broker_id]
            where = f"{report.partition} on {replica.broker_id}"
            cut = NOTHING if one.truncation is None else one.truncation.offset
            if cut != replica.truncate_to:
                wrong.append(f"{where}: cut {cut}, in truth {replica.truncate_to}")
            diverged = NOTHING if one.divergence is None else one.divergence.offset
            if diverged != replica.first_divergence:
                wrong.append(f"{where}: divergence {diverged}, in truth {replica.first_divergence}")
            if one.view.log_end_offset != replica.log_end_offset:
                wrong.append(f"{where}: log end {one.view.log_end_offset}, in truth {replica.log_end_offset}")
            committed = {offset for offset, _record in replica.committed_to_go}
            for run in one.truncation.runs if one.truncation else ():
                offsets = set(range(run.offsets.first, run.offsets.last + 1))
                if run.certainty == "certain" and not offsets <= committed:
                    wrong.append(f"{where}: {run.offsets} called certain: {run.reason}; in truth {sorted(committed)}")
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
    told = explain(gather_evidence([directory / "final"], [directory / "before"]), ExplainOptions(), jobs=1)
    wrong = [f"problem: {problem.message}" for problem in told.problems]
    stories = {tuple(story.partition): story for story in told.stories}
    for partition in truth_of(cluster).partitions:
        story = stories.get((partition.topic, partition.partition))
        cuts = {(one.broker_id, one.to_offset) for one in story.truncations if one.is_logged} if story else set()
        for past in partition.past_truncations:
            if (past.broker_id, past.to_offset) not in cuts:
                wrong.append(f"{partition.topic}-{partition.partition}: the cut {past} is not told")
        for one in story.truncations if story else ():
            known = {(past.broker_id, past.to_offset) for past in partition.past_truncations}
            if one.is_logged and (one.broker_id, one.to_offset) not in known:
                wrong.append(f"{story and story.partition}: a cut of {one.broker_id} to {one.to_offset} never was")
        held = {
            (offset, record)
            for replicas in before.values()
            for records in replicas.values()
            for offset, record in records.items()
        }
        wrong += _losses(partition, story, held)
    return wrong


def _losses(partition: PartitionTruth, story: PartitionStory | None, held: set[tuple[int, str]]) -> list[str]:
    wrong = []
    prefix = f"p{partition.partition}-"
    lost = {
        offset for offset, record in partition.lost_committed if (offset, record) in held and record.startswith(prefix)
    }
    told: dict[int, str] = {}
    for run in story.losses if story else ():
        for offset in range(run.offsets.first, run.offsets.last + 1):
            told[offset] = run.committed
    for offset in sorted(lost - told.keys()):
        wrong.append(f"{prefix}: offset {offset} was committed, is gone, and is not told of")
    ever_lost = {offset for offset, _record in partition.lost_committed}
    for offset, committed in told.items():
        if committed == "certain" and offset not in ever_lost:
            wrong.append(f"{prefix}: offset {offset} is called a certain loss, and is none")
        if committed == "no" and offset in lost:
            wrong.append(f"{prefix}: offset {offset} is called never committed, and was")
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
