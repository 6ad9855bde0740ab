"""Time the replay of 1,000,000 metadata records beside kafka-dump-log; run as `python -m tests.benchmarks.metadata DIRECTORY [--kafka-libs JARS]`.

Whole processes in one run, page cache warm. The log is that of a cluster with 1,000 topics of 20 partitions on six brokers, where leaders and in-sync
replicas change over and over, as in rolling restarts; the peer decodes the same records with `--cluster-metadata-decoder`.
"""

import argparse
import random
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kforensics.formats.metadata_record import METADATA_TABLES, encode_metadata_record
from kforensics.formats.record_batch import build_record_batch, encode_record_batch
from tests.benchmarks.measure import dump_log, kforensics, line, load, measured, warm

RECORDS = 1_000_000
TOPICS = 1_000
PARTITIONS = 20
BROKERS = 6
BATCH = 200
SEED = 20_240_229
FIRST_TIMESTAMP_MS = 1_700_000_000_000
NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"
KEYS = {table.name: key for key, table in METADATA_TABLES.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kafka-libs", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    node = arguments.directory / "metadata"
    path = node / "__cluster_metadata-0" / f"{0:020}.log"
    if not path.exists():
        generate(node, path)
    warm(path)
    ours = measured(kforensics("metadata", "--at", str(RECORDS - 1), str(node)), runs=arguments.runs)
    peer = None
    if arguments.kafka_libs:
        peer = measured(dump_log(arguments.kafka_libs, path, "--cluster-metadata-decoder"), runs=arguments.runs)
    print(load())
    print(line("metadata", ours, peer))
    print(
        f"{RECORDS / ours.seconds:,.0f} records a second"
        + (f", the peer {RECORDS / peer.seconds:,.0f}" if peer else "")
    )


def generate(node: Path, path: Path) -> None:
    path.parent.mkdir(parents=True)
    (node / "meta.properties").write_text(f"version=1\nnode.id=100\ncluster.id={NO_DIRECTORY}\n")
    random.seed(SEED)
    batch: list[tuple[int, None, bytes]] = []
    with path.open("wb") as log:
        for offset, (name, fields) in enumerate(records()):
            key = KEYS[name]
            value = encode_metadata_record(key, max(METADATA_TABLES[key].versions), fields)
            batch.append((FIRST_TIMESTAMP_MS + offset, None, value))
            if len(batch) == BATCH:
                log.write(encode_record_batch(build_record_batch(offset + 1 - BATCH, batch, partition_leader_epoch=1)))
                batch.clear()


def records() -> Iterator[tuple[str, dict[str, Any]]]:
    """Topics with their partitions, then changes of partitions up to the number of records."""
    topic_ids = [
        urlsafe_b64encode(uuid.UUID(int=random.getrandbits(128), version=4).bytes).decode().rstrip("=")
        for _ in range(TOPICS)
    ]
    for topic, topic_id in enumerate(topic_ids):
        yield "TopicRecord", {"name": f"topic-{topic}", "topic_id": topic_id}
        for partition in range(PARTITIONS):
            replicas = tuple((partition + step) % BROKERS + 1 for step in range(3))
            yield (
                "PartitionRecord",
                {
                    "partition_id": partition,
                    "topic_id": topic_id,
                    "replicas": replicas,
                    "isr": replicas,
                    "removing_replicas": (),
                    "adding_replicas": (),
                    "leader": replicas[0],
                    "leader_epoch": 0,
                    "partition_epoch": 0,
                    "leader_recovery_state": 0,
                    "directories": (NO_DIRECTORY,) * 3,
                    "eligible_leader_replicas": None,
                    "last_known_elr": None,
                },
            )
    for _ in range(RECORDS - TOPICS * (PARTITIONS + 1)):
        partition = random.randrange(PARTITIONS)
        isr = tuple((partition + step) % BROKERS + 1 for step in range(3) if step == 0 or random.random() < 0.7)
        yield (
            "PartitionChangeRecord",
            {
                "partition_id": partition,
                "topic_id": random.choice(topic_ids),
                "isr": isr,
                "leader": random.choice(isr),
            },
        )


if __name__ == "__main__":
    main()
