"""Brokers that do not start as they are, of those that a comparison says something of: by the rules of `predict`, from their small files."""

from collections.abc import Iterable, Iterator, Mapping

from kforensics.case.cluster import Cluster
from kforensics.case.settings import Surroundings, server_properties
from kforensics.commands.predicting.log_starts import Conditions
from kforensics.commands.predicting.node_starts import NodeStarter, NodeStarts
from kforensics.commands.predicting.nodes import configured_nodes, nodes_of, version_of_node
from kforensics.damage import Absent
from kforensics.errors import EvidenceError, UsageError
from kforensics.evidence.discovery.inputs import Inputs
from kforensics.evidence.metadata.set_back import log_to_go_by
from kforensics.evidence.model import Problem
from kforensics.findings.rules.inputs import RefusedStart
from kforensics.protocol.loading.starts import StartResult
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.source.mapped import directories_held
from kforensics.units import TopicPartition

_NO_TOPIC = frozenset({""})


def logs_in_doubt(reports: Iterable[PartitionReport]) -> dict[int, set[TopicPartition]]:
    """Return the brokers that truncate, or have a log with a damaged small file, each with these logs."""
    doubted: dict[int, set[TopicPartition]] = {}
    for report in reports:
        for one in report.replicas:
            replica = one.view.replica
            if isinstance(replica.broker_id, Absent) or not replica.is_live:
                continue
            if one.truncation is not None:
                doubted.setdefault(replica.broker_id, set())
            if replica.damage and not report.is_quorum:
                doubted.setdefault(replica.broker_id, set()).add(report.partition)
    return doubted


def refused_starts(
    inputs: Inputs, gathered: Cluster, doubted: Mapping[int, set[TopicPartition]]
) -> tuple[RefusedStart, ...]:
    """Return the brokers that do not start, or not with all their log directories, whatever their other logs hold."""
    problems: list[Problem] = []
    try:
        inputs, nodes = nodes_of(inputs, configured_nodes(inputs))
    except (EvidenceError, UsageError):
        return ()
    history = log_to_go_by(gathered.histories, inputs, gathered.quorum)
    around = Surroundings(history, gathered.log_files, server_properties(inputs, problems))
    found: list[RefusedStart] = []
    for node in nodes:
        if node.node_id not in doubted or sum(one.node_id == node.node_id for one in nodes) > 1:
            continue
        logs = doubted[node.node_id] if isinstance(node.node_id, int) else set()
        try:
            version = version_of_node(node, around, is_alone=len(nodes) == 1)
        except UsageError:
            continue
        conditions = Conditions(
            version=version.version,
            now_ms=0,
            topics=frozenset(one.topic for one in logs) or _NO_TOPIC,
            partitions=frozenset(one.partition for one in logs),
        )
        with directories_held():
            starter = NodeStarter(node, conditions, around, {}, len(nodes), keeps_reads=False)
            found += _refused(starter.start())
    return tuple(found)


def _refused(started: NodeStarts) -> Iterator[RefusedStart]:
    last = started.starts[-1]
    if isinstance(last.result, Absent) or last.result is StartResult.STARTS or isinstance(last.exception, Absent):
        return
    failed = [one for one in started.logs if one.start == last.number and one.outcome == "fails"]
    broker = started.node.node_id
    if isinstance(broker, Absent):
        return
    yield RefusedStart(
        broker_id=broker,
        input=failed[0].input if failed else last.input,
        path=failed[0].path if failed else "",
        exception=last.exception,
        reason=failed[0].message if failed else last.reason,
        is_whole=last.result is StartResult.EXITS,
        kafka=last.kafka,
    )
