"""A cluster of simulated brokers with the partitions of one topic, what is true of it at its end, and random histories of it."""

import copy
import hashlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kforensics.damage import Absent
from kforensics.formats.primitives.numbers import uuid_text
from kforensics.protocol.election import Acks, assign_in_turn, assign_replicas
from kforensics.protocol.truncation import ProtocolName
from kforensics.protocol.versions import PROTOCOL_RULES
from kforensics.simulation.partition import SimulatedPartition
from kforensics.simulation.replica import (
    BrokerEvent,
    ImpossibleEventError,
    NumberedRecord,
    Settings,
    missing_from,
)
from kforensics.units import EpochEntry, TopicPartition


@dataclass(slots=True)
class SimulatedCluster:
    """Brokers, the partitions of a topic, and the events of the brokers."""

    brokers: tuple[int, ...]
    protocol: ProtocolName
    settings: Settings
    topic: str = "orders"
    partitions: dict[TopicPartition, SimulatedPartition] = field(default_factory=dict)
    broker_events: list[BrokerEvent] = field(default_factory=list)
    racks: Mapping[int, str] = field(default_factory=dict)
    """The rack of every broker, or None."""
    _running: dict[int, bool] = field(default_factory=dict)

    @classmethod
    def of_topic(
        cls,
        brokers: Sequence[int],
        *,
        partitions: int,
        replication_factor: int,
        protocol: ProtocolName,
        settings: Settings,
        racks: Mapping[int, str] | None = None,
    ) -> "SimulatedCluster":
        """Make a cluster with a new topic; its replicas are assigned in turn, or with racks as a controller assigns them."""
        cluster = cls(tuple(brokers), protocol, settings, racks=racks or {})
        if racks:
            assignment = assign_replicas(brokers, partitions, replication_factor, racks=racks)
        else:
            assignment = assign_in_turn(brokers, partitions, replication_factor)
        for number, replicas in enumerate(assignment):
            cluster.partitions[TopicPartition(cluster.topic, number)] = SimulatedPartition(replicas, protocol, settings)
        cluster._begin()
        return cluster

    @classmethod
    def of_partition(cls, partition: SimulatedPartition) -> "SimulatedCluster":
        """Make a cluster of one partition, which is not copied, with its history."""
        cluster = cls(tuple(sorted(partition.brokers)), partition.protocol, partition.settings)
        cluster.partitions[TopicPartition(cluster.topic, 0)] = partition
        cluster.broker_events = list(partition.broker_events)
        cluster._begin()
        return cluster

    @property
    def now_ms(self) -> int:
        """Return the time in milliseconds, the same on all brokers."""
        return next(iter(self.partitions.values())).now_ms

    @property
    def cluster_id(self) -> str:
        """Return an id derived from the brokers and settings."""
        return stable_id(f"cluster {self.topic} {self.brokers} {self.settings.start_time_ms}")

    @property
    def topic_id(self) -> str:
        """Return the topic id, derived likewise."""
        return stable_id(f"topic {self.topic} {self.cluster_id}")

    def directory_id(self, node_id: int) -> str:
        """Return the id of a node's log directory, derived from the node and the cluster."""
        return stable_id(f"directory {node_id} {self.cluster_id}")

    def is_running(self, broker: int) -> bool:
        """Return whether a broker is running."""
        return self._running[broker]

    def produce(self, partition: TopicPartition, records: Sequence[str], acks: Acks) -> None:
        """Write one batch, or nothing without a leader."""
        self._tick()
        if self.partitions[partition].leader is not None:
            self.partitions[partition].produce(records, acks)

    def fetch(self, partition: TopicPartition, broker: int) -> None:
        """Fetch once as a follower, if it and a leader are running; nothing happens where it leads or has no replica."""
        self._tick()
        simulated = self.partitions[partition]
        leader = simulated.leader
        if broker in simulated.replicas and simulated.replicas[broker].is_running:
            if leader is None or leader.broker_id == broker:
                return
            simulated.fetch(broker)

    def stop(self, brokers: Iterable[int], kind: str) -> None:
        """Stop brokers at the same moment."""
        self._tick()
        stopping = tuple(brokers)
        for broker in stopping:
            if not self._running[broker]:
                raise ImpossibleEventError(f"broker {broker} is not running")
            self._running[broker] = False
            self.broker_events.append(BrokerEvent(self.now_ms, broker, kind))
        for simulated in self.partitions.values():
            here = [broker for broker in stopping if broker in simulated.replicas]
            if here:
                simulated.stop(here, kind=kind)

    def start(self, broker: int) -> None:
        """Start a broker."""
        self._tick()
        if self._running[broker]:
            raise ImpossibleEventError(f"broker {broker} is already running")
        self._running[broker] = True
        self.broker_events.append(BrokerEvent(self.now_ms, broker, "start"))
        self.each(broker, lambda simulated: simulated.start(broker))

    def stop_all(self) -> None:
        """Start the brokers that are down, and then stop all brokers cleanly."""
        for broker in self.brokers:
            if not self.is_running(broker):
                self.start(broker)
        self.stop(self.brokers, "stop")

    def advance(self, milliseconds: int) -> None:
        """Advance the time by some milliseconds; checkpoints that become due are written."""
        for simulated in self.partitions.values():
            simulated.advance(milliseconds)

    def flush(self, broker: int) -> None:
        """Flush the logs of a running broker."""
        self.each(broker, lambda simulated: simulated.flush(broker))

    def checkpoint(self, broker: int) -> None:
        """Checkpoint the high watermarks of a running broker."""
        self.each(broker, lambda simulated: simulated.checkpoint(broker))

    def each(self, broker: int, act: Callable[[SimulatedPartition], object]) -> None:
        """Call a function for every partition of which a broker has a replica."""
        for simulated in self.partitions.values():
            if broker in simulated.replicas:
                act(simulated)

    def _tick(self) -> None:
        # No two events have the same millisecond, so that the times order the metadata log.
        for simulated in self.partitions.values():
            simulated.now_ms += 1

    def _begin(self) -> None:
        self._running = {
            broker: all(p.replicas[broker].is_running for p in self.partitions.values() if broker in p.replicas)
            for broker in self.brokers
        }


def stable_id(name: str) -> str:
    """Return a Kafka id of 22 characters derived from a name; like Kafka's own ids it does not begin with a dash."""
    turn = 0
    while True:
        text = uuid_text(hashlib.sha256(f"{name} {turn}".encode()).digest()[:16])
        if not text.startswith("-"):
            return text
        turn += 1


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


MOST_STEPS = 70


def random_cluster(
    seed: int,
    *,
    protocol: ProtocolName = ProtocolName.KIP_595,
    brokers: int = 3,
    partitions: int = 2,
    racks: int = 0,
    most_steps: int = MOST_STEPS,
    after_step: Callable[[SimulatedCluster], None] | None = None,
) -> SimulatedCluster:
    """Make a cluster with a history of writes, fetches, faults and elections.

    With fewer steps the history is the beginning of the longer one, so that a failing seed can be shortened.

    Args:
        seed: the same one gives the same history on any machine.
        racks: how many, which have the brokers in turn; 0 for none.
    """
    dice = random.Random(seed)  # noqa: S311  # a seed must give the same history, nothing here is secret
    replication_factor = min(brokers, dice.choice((2, 3)))
    settings = Settings(
        min_insync_replicas=dice.randint(1, replication_factor),
        unclean_leader_election=dice.random() < 0.5,
        eligible_leader_replicas=PROTOCOL_RULES[protocol].is_kraft and dice.random() < 0.4,
        strict_min_isr=PROTOCOL_RULES[protocol].is_kraft,
    )
    cluster = SimulatedCluster.of_topic(
        range(1, brokers + 1),
        partitions=partitions,
        replication_factor=replication_factor,
        protocol=protocol,
        settings=settings,
        racks={broker: f"rack-{(broker - 1) % racks + 1}" for broker in range(1, brokers + 1)} if racks else None,
    )
    history = _History(cluster, dice)
    for _ in range(min(dice.randint(10, MOST_STEPS), most_steps)):
        history.step()
        if after_step is not None:
            after_step(cluster)
    history.end()
    return cluster


class _History:
    def __init__(self, cluster: SimulatedCluster, dice: random.Random) -> None:
        self.cluster = cluster
        self.dice = dice
        self.written = dict.fromkeys(cluster.partitions, 0)

    def step(self) -> None:
        act = self.dice.choices(
            (self.produce, self.fetch, self.copy, self.stop, self.start, self.wait, self.flush, self.checkpoint),
            weights=(26, 22, 14, 9, 12, 8, 5, 4),
        )[0]
        act()

    def produce(self) -> None:
        """Write a batch of a few records; their names are unique within a partition."""
        partition = self.partition()
        first = self.written[partition]
        count = self.dice.randint(1, 4)
        self.written[partition] += count
        records = [f"p{partition.partition}-{first + index}" for index in range(count)]
        self.cluster.produce(partition, records, self.dice.choice((Acks.ALL, Acks.ALL, Acks.LEADER, Acks.NONE)))

    def fetch(self) -> None:
        self.cluster.fetch(self.partition(), self.broker())

    def copy(self) -> None:
        """Let every follower catch up and learn the high watermark."""
        for partition, simulated in self.cluster.partitions.items():
            for broker in (*simulated.brokers, *simulated.brokers):
                self.cluster.fetch(partition, broker)

    def stop(self) -> None:
        """Stop one broker, sometimes two."""
        running = [broker for broker in self.cluster.brokers if self.cluster.is_running(broker)]
        if running:
            going = self.dice.sample(running, min(len(running), self.dice.choice((1, 1, 1, 2))))
            self.cluster.stop(going, self.dice.choice(("stop", "crash", "crash", "power-loss")))

    def start(self) -> None:
        down = [broker for broker in self.cluster.brokers if not self.cluster.is_running(broker)]
        if down:
            self.cluster.start(self.dice.choice(down))

    def wait(self) -> None:
        """Advance the time, sometimes enough for a follower to leave the ISR."""
        self.cluster.advance(self.dice.choice((100, 1_000, 6_000, 31_000)))

    def flush(self) -> None:
        broker = self.broker()
        if self.cluster.is_running(broker):
            self.cluster.flush(broker)

    def checkpoint(self) -> None:
        broker = self.broker()
        if self.cluster.is_running(broker):
            self.cluster.checkpoint(broker)

    def end(self) -> None:
        """Start brokers until every partition that can has a leader, so that there is something to compare."""
        for broker in self.cluster.brokers:
            leaderless = any(simulated.leader is None for simulated in self.cluster.partitions.values())
            if leaderless and not self.cluster.is_running(broker):
                self.cluster.start(broker)

    def partition(self) -> TopicPartition:
        return self.dice.choice(list(self.cluster.partitions))

    def broker(self) -> int:
        return self.dice.choice(self.cluster.brokers)
