"""The truth about a written cluster: what each follower will truncate when it reaches the leader, and what is lost."""

import copy
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.simulation.cluster import SimulatedCluster
from kforensics.simulation.commit_truth import NumberedRecord, missing_from
from kforensics.simulation.partition import SimulatedPartition
from kforensics.units import EpochEntry, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaTruth:
    """One replica on disk, and its truncation."""

    broker_id: int
    is_running: bool
    log_end_offset: int
    high_watermark: int | Absent
    """The checkpointed high watermark."""
    epochs: tuple[EpochEntry, ...]
    truncate_to: int | Absent
    """Its log end offset after its next start and truncation against the leader, absent if nothing is truncated."""
    first_divergence: int | Absent
    """The first offset within both logs at which it and the leader hold different records, or only one holds a record."""
    common_end_offset: int
    """The end of the longest common prefix with the leader, by content alone."""
    committed_to_go: tuple[NumberedRecord, ...]
    """The committed records that the truncation removes from this replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTruncation:
    """A truncation before the directories were written; a follower can truncate more than once until it can fetch."""

    time_ms: int
    broker_id: int
    leader_epoch: int
    from_offset: int
    to_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTruth:
    """One partition."""

    topic: str
    partition: int
    leader: int | Absent
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[ReplicaTruth, ...]
    lost_committed: tuple[NumberedRecord, ...]
    """The committed records that the leader does not hold."""
    lost_acknowledged: tuple[NumberedRecord, ...]
    past_truncations: tuple[PastTruncation, ...]
    unclean_elections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTruth:
    """The truth about all partitions, written beside the directories as `truth.json`."""

    protocol: str
    cluster_id: str
    brokers: tuple[int, ...]
    partitions: tuple[PartitionTruth, ...]


def truth_of(cluster: SimulatedCluster) -> ClusterTruth:
    """Return the truth about a cluster at this moment; the cluster is unchanged."""
    return ClusterTruth(
        protocol=cluster.protocol.value,
        cluster_id=cluster.cluster_id,
        brokers=cluster.brokers,
        partitions=tuple(_partition_truth(partition, one) for partition, one in cluster.partitions.items()),
    )


def _partition_truth(partition: TopicPartition, simulated: SimulatedPartition) -> PartitionTruth:
    registration = simulated.registration
    leader = simulated.leader
    records = leader.records if leader else {}
    return PartitionTruth(
        topic=partition.topic,
        partition=partition.partition,
        leader=leader.broker_id if leader else Absent.NOT_APPLICABLE,
        leader_epoch=registration.leader_epoch,
        isr=registration.isr,
        replicas=tuple(_replica_truth(simulated, broker) for broker in simulated.brokers),
        lost_committed=tuple(missing_from(records, simulated.truth.committed)) if leader else (),
        lost_acknowledged=tuple(missing_from(records, simulated.truth.acknowledged)) if leader else (),
        past_truncations=tuple(
            PastTruncation(
                time_ms=alignment.time_ms,
                broker_id=alignment.follower,
                leader_epoch=alignment.leader_epoch,
                from_offset=step.log_end_offset,
                to_offset=step.truncate_to,
            )
            for alignment in simulated.truncations
            for step in alignment.outcome.steps
            if not isinstance(step.truncate_to, Absent)
        ),
        unclean_elections=sum(kind.value in {"unclean", "last-known-leader"} for _, kind, _ in simulated.elections),
    )


def _replica_truth(simulated: SimulatedPartition, broker: int) -> ReplicaTruth:
    replica = simulated.replicas[broker]
    before = replica.records
    leader = simulated.leader
    divergence: int | Absent = Absent.NOT_APPLICABLE
    truncation: int | Absent = Absent.NOT_APPLICABLE
    common = replica.file_end_offset
    if leader is not None and leader is not replica:
        aligned_end = _aligned(simulated, broker)
        truncation = aligned_end if aligned_end < replica.file_end_offset else Absent.NOT_APPLICABLE
        end = min(leader.file_end_offset, common)
        theirs = leader.records
        # A truncation inside a batch removes it whole, and the next fetch begins behind it: that leaves a hole.
        divergence = next((at for at in range(end) if before.get(at) != theirs.get(at)), Absent.NOT_APPLICABLE)
        common = end if isinstance(divergence, Absent) else divergence
    removed = (
        [] if isinstance(truncation, Absent) else [one for one in simulated.truth.committed if one.offset >= truncation]
    )
    return ReplicaTruth(
        broker_id=broker,
        is_running=replica.is_running,
        log_end_offset=replica.file_end_offset,
        high_watermark=replica.checkpointed_high_watermark,
        epochs=replica.epochs,
        truncate_to=truncation,
        first_divergence=divergence,
        common_end_offset=common,
        committed_to_go=tuple(one for one in removed if before.get(one.offset) == one.record),
    )


def _aligned(simulated: SimulatedPartition, broker: int) -> int:
    """Return the log end offset of a follower after its next start and its truncation against the leader."""
    later = copy.deepcopy(simulated)
    if later.replicas[broker].is_running:
        later.restart(broker)
    else:
        later.start(broker)
    later.align(broker)
    return later.replicas[broker].log_end_offset
