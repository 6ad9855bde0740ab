"""Partitions that the brokers of the inputs should hold, and of which directories are missing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kforensics.case.comparison import Knowledge
from kforensics.damage import Absent
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, Inputs
from kforensics.evidence.discovery.log_dirs import FoundLogDir, are_of_one_node
from kforensics.evidence.discovery.partition_dirs import LostDirectory
from kforensics.evidence.metadata.quorum import end_of_majority
from kforensics.evidence.model import Problem
from kforensics.findings.model import Finding
from kforensics.findings.rules.replicas import missing_isr_findings
from kforensics.reconcile.observed.facts import ClusterFacts
from kforensics.reconcile.replicas.placement import partition_without_replicas
from kforensics.reconcile.replicas.report import PartitionReport
from kforensics.source.naming import FileKind
from kforensics.units import METADATA_TOPICS, TopicPartition

if TYPE_CHECKING:
    from kforensics.evidence.metadata.history import MetadataHistory


def known_partitions(
    history: "MetadataHistory | None", lost: Iterable[LostDirectory], histories: "Sequence[MetadataHistory]" = ()
) -> dict[TopicPartition, str | Absent]:
    """Return the partitions of topics that are there by the metadata log, or where none is given by the checkpoints, each with its topic id.

    A topic whose record most voters lack is none yet, and no broker has made a directory of it, unless a checkpoint names it: their copies may be older.
    """
    if history is None:
        # A topic that a metadata log does not know was deleted.
        return {one.topic_partition: Absent.UNKNOWN for one in lost}
    end, made = end_of_majority(history, histories), {one.topic_partition.topic for one in lost}
    names = {
        topic_id: state.name
        for topic_id, state in history.topics.items()
        if isinstance(state.removed, Absent) and (state.created.offset < end or state.name in made)
    }
    return {
        TopicPartition(names[topic_id], number): topic_id
        for topic_id, number in history.partitions
        if topic_id in names
    }


def without_directories(
    known: Mapping[TopicPartition, str | Absent], knowledge: Knowledge, *, is_stopped: bool, has_metadata: bool
) -> Iterator[PartitionReport]:
    """Yield partitions that a broker that is given should hold and of which no directory is anywhere among the inputs."""
    facts = knowledge.facts
    for partition, topic_id in known.items() if knowledge.given else ():
        states = facts.leaderships(partition, topic_id)
        state = states[-1] if states and isinstance(states[-1].replicas, tuple) else None
        if has_metadata and state is None:
            continue
        report = partition_without_replicas(partition, state, facts=facts, given=knowledge.given, is_stopped=is_stopped)
        if report.emptied:
            yield report


def nodes_in_parts(inputs: Inputs) -> frozenset[int]:
    """Return the nodes of which several inputs are given that are log directories of one moment, as disks are that are named one by one."""
    found: dict[int, list[FoundLogDir]] = {}
    for one in inputs.found:
        if isinstance(one.described.broker_id, int):
            found.setdefault(one.described.broker_id, []).extend(one.log_dirs)
    return frozenset(node for node, log_dirs in found.items() if log_dirs and are_of_one_node(log_dirs))


def missing_isr(
    partition: TopicPartition, held_by: frozenset[int], given: frozenset[int], facts: ClusterFacts
) -> Iterator[Finding]:
    """Yield a partition whose whole ISR has lost it, by the disks of just those brokers."""
    topic_id = facts.topic_id(partition.topic)
    if partition.topic in METADATA_TOPICS or facts.is_deleted(partition.topic, topic_id):
        return
    states = facts.leaderships(partition, topic_id)
    if states and held_by:  # of a deleted topic no live directory is left
        yield from missing_isr_findings(partition, states[-1], held_by, given)


def single_files(inputs: Inputs) -> Iterator[Problem]:
    """Yield a problem for each segment without a partition directory: nothing says what it is a replica of."""
    for index, found in enumerate(inputs.found):
        if found.described.kind == FileKind.SEGMENT.value:
            words = "a segment file by itself does not say which partition it is of: name its partition directory"
            yield Problem(input=index, path=WHOLE_INPUT, message=words)
