"""A cluster of simulated brokers with the partitions of one topic; a broker stops and starts with all of its replicas."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kforensics.formats.primitives.uuid import uuid_text
from kforensics.protocol.assignment import assign_in_turn, assign_replicas
from kforensics.protocol.outcome import ProtocolName
from kforensics.protocol.visibility import Acks
from kforensics.simulation.partition import SimulatedPartition
from kforensics.simulation.rows import BrokerEvent, ImpossibleEventError, Settings
from kforensics.units import TopicPartition


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
        """Make a cluster with a new topic; its replicas are assigned in turn, or with racks as a controller assigns them.

        Args:
            replication_factor: how many replicas each partition gets.
            racks: the rack of every broker; None where racks do not count.

        Raises:
            UsageError: more replicas than brokers.
        """
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
        """Make a cluster of one partition with its history.

        Args:
            partition: is taken into the cluster, not copied.
        """
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
        """Return the id of a node's log directory, derived from the node and the cluster.

        Args:
            node_id: of a broker or the controller.
        """
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
        """Fetch once as a follower, if it and a leader are running.

        Args:
            broker: the follower; nothing happens where it leads or has no replica.
        """
        self._tick()
        simulated = self.partitions[partition]
        leader = simulated.leader
        if broker in simulated.replicas and simulated.replicas[broker].is_running:
            if leader is None or leader.broker_id == broker:
                return
            simulated.fetch(broker)

    def stop(self, brokers: Iterable[int], kind: str) -> None:
        """Stop brokers at the same moment.

        Args:
            kind: as in `SimulatedPartition.stop`.

        Raises:
            ImpossibleEventError: one of them is not running.
        """
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
        """Start a broker.

        Raises:
            ImpossibleEventError: it is running.
        """
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
        """Advance the time.

        Args:
            milliseconds: by how much; checkpoints that become due are written.
        """
        for simulated in self.partitions.values():
            simulated.advance(milliseconds)

    def flush(self, broker: int) -> None:
        """Flush the logs of a running broker.

        Raises:
            ImpossibleEventError: it is not running.
        """
        self.each(broker, lambda simulated: simulated.flush(broker))

    def checkpoint(self, broker: int) -> None:
        """Checkpoint the high watermarks of a running broker.

        Raises:
            ImpossibleEventError: it is not running.
        """
        self.each(broker, lambda simulated: simulated.checkpoint(broker))

    def each(self, broker: int, act: Callable[[SimulatedPartition], object]) -> None:
        """Call a function for every partition of which a broker has a replica.

        Args:
            act: is called with the partition.
        """
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
