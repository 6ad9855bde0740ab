"""One offset by the indexes: where all replicas hold the same record there, no more than the batches that the indexes name is read."""

from collections.abc import Sequence
from dataclasses import replace

from kforensics.case.cluster import cluster_of
from kforensics.case.comparison import compare_replicas
from kforensics.case.model import places_of
from kforensics.commands.tracing.coverage import searched
from kforensics.commands.tracing.outline import outline_of, search_at
from kforensics.commands.tracing.records import grouped
from kforensics.commands.tracing.scan import Hit, ScannedReplica, scanned_replica
from kforensics.commands.tracing.topic_evidence import TopicEvidence, TracedPartition, current_id, is_of
from kforensics.damage import Absent
from kforensics.evidence.replica.collect import CollectedReplica
from kforensics.reconcile.trace.displaced import may_be_displaced
from kforensics.reconcile.trace.model import CopyKind
from kforensics.units import TopicPartition


def found_by_offset(shared: TopicEvidence, wanted: Sequence[TopicPartition]) -> list[TracedPartition] | None:
    """Return what a look at one offset shows where all replicas hold the same record, without reading the logs whole; None where it does not show all that can be said.

    Args:
        shared: the inputs, and what is searched for.
    """
    if not shared.search.is_by_offset or shared.case.ranks or cluster_of(shared.case).log_files:
        return None
    out = []
    for partition in wanted:
        found = _found_by_offset(shared, partition)
        if found is None:
            return None
        out.append(found)
    return out


def _found_by_offset(shared: TopicEvidence, partition: TopicPartition) -> TracedPartition | None:
    offset = shared.search.offset
    places = places_of(shared.case).by_partition.get(partition, ())
    replicas: list[ScannedReplica] = []
    hits: list[Hit] = []
    for place in places:
        outline = outline_of(place)
        file = search_at(place, outline, shared.search, offset) if outline is not None and offset is not None else None
        if outline is None or file is None or file.segment is None or shared.settings(outline.broker_id).is_compacted:
            return None
        collected = CollectedReplica(replica=outline, problems=())
        replicas.append(scanned_replica(place, collected, CopyKind.LIVE, {file.segment.path: file}))
        hits += replicas[-1].hits(file.segment.path, file.hits)
    found = list(grouped(hits, {(one.replica.input, one.replica.path): one.markers for one in replicas}))
    if len(found) != 1 or len(found[0].copies) != len(places) or found[0].record.is_transactional:
        return None
    compared = compare_replicas(shared.comparison, places, [one.collected for one in replicas])
    report = compared.report
    if report is None or compared.findings or compared.problems or report.is_deleted or report.leader is None:
        return None
    account, offset_now = report.account, found[0].record.offset
    if account is not None and may_be_displaced(offset_now, account, report.leader.view.epochs):
        return None
    current = current_id(replicas, report)
    if not all(is_of(one.replica, current) for one in replicas):
        return None
    record = shared.judge(partition, replicas, report).judge(found[0])
    if record.state != "present" or record.fate:
        return None
    looked = searched(partition, replicas, report=report, incident=None, current=current, account=shared.truncations)
    # Every replica holds it: other offsets, and who leads, make no difference to it.
    gaps = tuple(gap for gap in looked.gaps if isinstance(gap.offsets, Absent) and gap.reason != "unknown-leader")
    return TracedPartition(replace(looked, gaps=gaps), lambda: [record], (), ())
