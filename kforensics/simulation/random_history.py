"""Random histories with faults: the same seed gives the same cluster, whatever the machine."""

import random
from collections.abc import Callable

from kforensics.protocol.outcome import ProtocolName
from kforensics.protocol.visibility import Acks
from kforensics.simulation.cluster import SimulatedCluster
from kforensics.simulation.rows import Settings
from kforensics.units import TopicPartition

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
        most_steps: at most.
        after_step: sees the cluster after each step, for instance to copy its directories; None for no such function.
    """
    dice = random.Random(seed)  # noqa: S311  # a seed must give the same history, nothing here is secret
    replication_factor = min(brokers, dice.choice((2, 3)))
    settings = Settings(
        min_insync_replicas=dice.randint(1, replication_factor),
        unclean_leader_election=dice.random() < 0.5,
        eligible_leader_replicas=protocol is ProtocolName.KIP_595 and dice.random() < 0.4,
        strict_min_isr=protocol is ProtocolName.KIP_595,
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
        """Take one random step, if it is possible."""
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
        """Fetch once as one follower."""
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
        """Start a broker."""
        down = [broker for broker in self.cluster.brokers if not self.cluster.is_running(broker)]
        if down:
            self.cluster.start(self.dice.choice(down))

    def wait(self) -> None:
        """Advance the time, sometimes enough for a follower to leave the ISR."""
        self.cluster.advance(self.dice.choice((100, 1_000, 6_000, 31_000)))

    def flush(self) -> None:
        """Flush the logs of a broker."""
        broker = self.broker()
        if self.cluster.is_running(broker):
            self.cluster.flush(broker)

    def checkpoint(self) -> None:
        """Checkpoint the high watermarks of a broker."""
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
        """Choose a partition."""
        return self.dice.choice(list(self.cluster.partitions))

    def broker(self) -> int:
        """Choose a broker."""
        return self.dice.choice(self.cluster.brokers)
