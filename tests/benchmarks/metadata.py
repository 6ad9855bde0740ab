"""Time questions to a metadata log of 1,000,000 records beside kafka-dump-log; run as `python -m tests.benchmarks.metadata DIRECTORY [--kafka-libs JARS]`.

Whole processes in one run, page cache warm. The log is that of a cluster with 1,000 topics of 20 partitions on twelve
brokers that are restarted one after the other, over and over: replicas leave and join, leaders move and come back,
brokers register, topics come and go, settings change, and a NoOpRecord is written each half second. The peer decodes
the same records with `--cluster-metadata-decoder`.
"""

import random
import shutil
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.messages.control import ControlType, encode_control_record
from kforensics.formats.messages.metadata import METADATA_TABLES, encode_metadata_record
from tests.benchmarks.measure import Measured, benchmark_options, dump_log, kforensics, line, load, measured, warm

RECORDS = 1_000_000
TOPICS = 1_000
PARTITIONS = 20
BROKERS = 12
REPLICAS = 3
BATCH = 200
QUIET_NO_OPS = 2_500
"""Written between two restarts, in about twenty minutes."""
TOPIC_EVERY = 5
"""Restarts from one deleted and one new topic to the next."""
SEED = 20_240_229
FIRST_TIMESTAMP_MS = 1_700_000_000_000
NO_OP_EVERY_MS = 500
KEYS = {table.name: key for key, table in METADATA_TABLES.items()}

Written = tuple[str, dict[str, Any]]


def main() -> None:
    arguments = benchmark_options(__doc__).parse_args()
    node = arguments.directory / "metadata-restarts"
    path = node / "__cluster_metadata-0" / f"{0:020}.log"
    if not path.exists():
        generate(node, path)
    warm(path)
    questions = {
        "metadata --at": ("--at", str(RECORDS - 1)),
        "metadata": (),
        "metadata of a partition": ("--topic", "topic-7", "--partition", "3"),
        "metadata of a broker": ("--broker", "5"),
    }
    peer = None
    if arguments.kafka_libs:
        peer = measured(dump_log(arguments.kafka_libs, path, "--cluster-metadata-decoder"), runs=arguments.runs)
    for name, question in questions.items():
        command = kforensics("metadata", *question, str(node))
        tell(name, measured(command, runs=arguments.runs), peer)
        if shutil.which("taskset"):
            tell(f"{name}, one core", measured(["taskset", "-c", "0", *command], runs=arguments.runs), peer)
    # Without any log of a partition what was lost is unknown, so it ends with 3.
    tell("explain", measured(kforensics("explain", str(node)), runs=arguments.runs, expect=(3,)), peer)


def tell(name: str, ours: Measured, peer: Measured | None) -> None:
    """One row, and records a second on both sides."""
    theirs = f", the peer {RECORDS / peer.seconds:,.0f}" if peer else ""
    print(line(name, ours, peer), f"  {RECORDS / ours.seconds:,.0f} records/s{theirs}", flush=True)
    print(" " * 28, load())


class Batch(NamedTuple):
    """Records appended at one time."""

    time_ms: int
    records: list[Written]


def generate(node: Path, path: Path) -> None:
    path.parent.mkdir(parents=True)
    (node / "meta.properties").write_text(f"version=1\nnode.id=100\ncluster.id={new_id(random.Random(0))}\n")
    named = ({"voter_id": 100},)
    key, value = encode_control_record(
        ControlType.LEADER_CHANGE, {"leader_id": 100, "voters": named, "granting_voters": named}
    )
    first = build_record_batch(0, [(FIRST_TIMESTAMP_MS, key, value)], partition_leader_epoch=1, attributes=0x20)
    offset = 1
    with path.open("wb") as log:
        log.write(encode_record_batch(first))
        for time_ms, records in Cluster().batches():
            taken = [(time_ms, None, encoded(*record)) for record in islice(records, RECORDS - offset)]
            log.write(encode_record_batch(build_record_batch(offset, taken, partition_leader_epoch=1)))
            offset += len(taken)
            if offset == RECORDS:
                return


def encoded(name: str, fields: dict[str, Any]) -> bytes:
    """A record in its newest version."""
    return encode_metadata_record(KEYS[name], max(METADATA_TABLES[KEYS[name]].versions), fields)


def new_id(dice: random.Random) -> str:
    """A uuid as Kafka writes it."""
    return urlsafe_b64encode(uuid.UUID(int=dice.getrandbits(128), version=4).bytes).decode().rstrip("=")


@dataclass
class Partition:
    """As far as a controller thinks of it."""

    topic_id: str
    number: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int


@dataclass
class Cluster:
    """Brokers and partitions, and the records that their controller writes."""

    dice: random.Random = field(default_factory=lambda: random.Random(SEED))
    partitions: dict[str, list[Partition]] = field(default_factory=dict)
    time_ms: int = FIRST_TIMESTAMP_MS
    next_no_op_ms: int = FIRST_TIMESTAMP_MS
    broker_epoch: int = 0
    created: int = 0

    def __post_init__(self) -> None:
        self.directories = {broker: new_id(self.dice) for broker in range(1, BROKERS + 1)}

    def batches(self) -> Iterator[Batch]:
        """Without end."""
        yield self.batch([("FeatureLevelRecord", {"name": "metadata.version", "feature_level": 27})])
        for broker in self.directories:
            yield from self.start(broker)
        for _ in range(TOPICS):
            yield from self.create_topic()
        restart = 0
        while True:
            yield from self.restart(restart % BROKERS + 1)
            if restart % TOPIC_EVERY == 0:
                yield from self.create_topic()
                yield self.delete_topic()
            for _ in range(QUIET_NO_OPS):
                self.time_ms = self.next_no_op_ms
                yield from self.no_ops()
            restart += 1

    def batch(self, records: list[Written]) -> Batch:
        self.time_ms += self.dice.randrange(40)
        return Batch(self.time_ms, records)

    def no_ops(self) -> Iterator[Batch]:
        while self.next_no_op_ms <= self.time_ms:
            yield Batch(self.next_no_op_ms, [("NoOpRecord", {})])
            self.next_no_op_ms += NO_OP_EVERY_MS

    def start(self, broker: int) -> Iterator[Batch]:
        self.broker_epoch += 1_000
        end_points = ({"name": "PLAINTEXT", "host": f"kafka-{broker}", "port": 9092, "security_protocol": 0},)
        registration = {
            "broker_id": broker,
            "incarnation_id": new_id(self.dice),
            "broker_epoch": self.broker_epoch,
            "end_points": end_points,
            "features": (),
            "rack": f"rack-{broker % 3}",
            "log_dirs": (self.directories[broker],),
        }
        yield self.batch([("RegisterBrokerRecord", registration)])
        change = {"broker_id": broker, "broker_epoch": self.broker_epoch, "fenced": -1}
        yield self.batch([("BrokerRegistrationChangeRecord", change)])

    def create_topic(self) -> Iterator[Batch]:
        topic_id, name = new_id(self.dice), f"topic-{self.created}"
        self.created += 1
        first, shift = self.dice.randrange(BROKERS), self.dice.randrange(BROKERS - 1)
        config = {"resource_type": 2, "resource_name": name, "name": "min.insync.replicas", "value": "2"}
        records: list[Written] = [("TopicRecord", {"name": name, "topic_id": topic_id}), ("ConfigRecord", config)]
        members = self.partitions[topic_id] = []
        for number in range(PARTITIONS):
            leader = (first + number) % BROKERS
            steps = (1 + (shift + number // BROKERS + other) % (BROKERS - 1) for other in range(REPLICAS - 1))
            replicas = tuple(place + 1 for place in (leader, *((leader + step) % BROKERS for step in steps)))
            members.append(Partition(topic_id, number, replicas, replicas, replicas[0]))
            records.append(("PartitionRecord", self.partition_fields(members[-1])))
        yield self.batch(records)

    def partition_fields(self, partition: Partition) -> dict[str, Any]:
        return {
            "partition_id": partition.number,
            "topic_id": partition.topic_id,
            "replicas": partition.replicas,
            "isr": partition.isr,
            "removing_replicas": (),
            "adding_replicas": (),
            "leader": partition.leader,
            "leader_epoch": 0,
            "partition_epoch": 0,
            "directories": tuple(self.directories[broker] for broker in partition.replicas),
        }

    def delete_topic(self) -> Batch:
        topic_id = self.dice.choice(list(self.partitions))
        del self.partitions[topic_id]
        return self.batch([("RemoveTopicRecord", {"topic_id": topic_id})])

    def restart(self, broker: int) -> Iterator[Batch]:
        change = {"broker_id": broker, "broker_epoch": self.broker_epoch, "in_controlled_shutdown": 1}
        yield self.batch([("BrokerRegistrationChangeRecord", change)])
        held = [one for members in self.partitions.values() for one in members if broker in one.replicas]
        yield from self.changes(self.leave(one, broker) for one in held)
        change = {"broker_id": broker, "broker_epoch": self.broker_epoch, "fenced": 1}
        yield self.batch([("BrokerRegistrationChangeRecord", change)])
        self.time_ms += 20_000
        yield from self.start(broker)
        self.dice.shuffle(held)
        yield from self.changes(self.join(one, broker) for one in held)
        yield from self.changes(self.lead(one) for one in held if one.leader != one.replicas[0])

    def changes(self, changes: Iterator[Written]) -> Iterator[Batch]:
        while some := list(islice(changes, self.dice.randrange(1, BATCH))):
            yield self.batch(some)
            yield from self.no_ops()

    @staticmethod
    def leave(partition: Partition, broker: int) -> Written:
        partition.isr = tuple(one for one in partition.isr if one != broker)
        told: dict[str, Any] = {"isr": partition.isr}
        if partition.leader == broker:
            partition.leader = partition.isr[0]
            told["leader"] = partition.leader
        return "PartitionChangeRecord", change_of(partition, told)

    @staticmethod
    def join(partition: Partition, broker: int) -> Written:
        partition.isr = (*partition.isr, broker)
        return "PartitionChangeRecord", change_of(partition, {"isr": partition.isr})

    @staticmethod
    def lead(partition: Partition) -> Written:
        partition.leader = partition.replicas[0]
        return "PartitionChangeRecord", change_of(partition, {"leader": partition.leader})


def change_of(partition: Partition, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a PartitionChangeRecord."""
    return {"partition_id": partition.number, "topic_id": partition.topic_id, **fields}


if __name__ == "__main__":
    main()
