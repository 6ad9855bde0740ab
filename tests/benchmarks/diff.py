"""Compare three replicas of 1 GB and time it beside what people do today; run as `python -m tests.benchmarks.diff DIRECTORY [--kafka-libs JARS]`.

Whole processes in one run, page cache warm, and the ratios: `kforensics diff --jobs 2`, `sha256sum` over the same files in two processes at once,
and with `--kafka-libs` (the jars of Kafka 4.1 and what they need) kafka-dump-log once over each file. `--partitions N` times N partitions of one
record on three brokers instead, with the peak memory.
"""

import os
import struct
from pathlib import Path

from kforensics.formats.checkpoint.lines import (
    Checkpoint,
    CheckpointEntry,
    LeaderEpochCheckpoint,
    LeaderEpochLine,
    encode_checkpoint,
    encode_leader_epoch_checkpoint,
)
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from tests.benchmarks.measure import benchmark_options, dump_log, kforensics, line, load, measured, warm

BROKERS = (1, 2, 3)
SEGMENT_LENGTH = 1_000_000_000
FIRST_TIMESTAMP_MS = 1_700_000_000_000
RECORDS = 40
VALUE_LENGTH = 394
_OFFSET = struct.Struct(">q")


def main() -> None:
    parser = benchmark_options(__doc__)
    parser.add_argument("--partitions", type=int)
    arguments = parser.parse_args()
    print(load())
    if arguments.partitions:
        root = arguments.directory / f"many-{arguments.partitions}"
        if not root.exists():
            generate_many(root, arguments.partitions)
        ours = measured(kforensics("diff", "--jobs", "2", str(root)), runs=1, expect=(0, 3))
        print(line(f"{arguments.partitions:,} partitions x 3", ours, None))
        return
    nodes = [arguments.directory / f"broker-{broker}" for broker in BROKERS]
    for broker, node in zip(BROKERS, nodes, strict=True):
        if not node.exists():
            generate_large(node, broker)
    files = [node / "orders-0" / f"{0:020}.log" for node in nodes]
    for file in files:
        warm(file)
    ours = measured(kforensics("diff", "--jobs", "2", *map(str, nodes)), runs=arguments.runs, expect=(0, 3))
    hash_all = ["sh", "-c", 'printf "%s\\0" "$@" | xargs -0 -P2 -n1 sha256sum', "sh", *map(str, files)]
    print(line("diff, sha256sum two at once", ours, measured(hash_all, runs=arguments.runs)))
    if arguments.kafka_libs:
        # One after the other: what they need adds up.
        each = [measured(dump_log(arguments.kafka_libs, file), runs=1) for file in files]
        total = max(each)._replace(
            seconds=sum(one.seconds for one in each), processor_seconds=sum(one.processor_seconds for one in each)
        )
        print(line("diff, kafka-dump-log of each", ours, total))


def write_node(node: Path, broker: int) -> None:
    node.mkdir(parents=True)
    (node / "meta.properties").write_text(f"version=0\nbroker.id={broker}\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
    (node / ".kafka_cleanshutdown").touch()


def template(records: int, value_length: int) -> bytes:
    given = [(FIRST_TIMESTAMP_MS + n, f"key-{n:04}".encode(), os.urandom(value_length)) for n in range(records)]
    return encode_record_batch(build_record_batch(0, given))


def generate_large(node: Path, broker: int) -> None:
    # The base offset lies outside of the checksum: one batch serves for all, as on every replica.
    first = BROKERS[0]
    write_node(node, broker)
    partition = node / "orders-0"
    partition.mkdir()
    source = node.parent / f"broker-{first}" / "orders-0" / f"{0:020}.log"
    target = partition / f"{0:020}.log"
    if broker != first:
        with source.open("rb") as content, target.open("wb") as copy:
            while chunk := content.read(1 << 24):
                copy.write(chunk)
    else:
        batch = template(RECORDS, VALUE_LENGTH)
        with target.open("wb") as log:
            for number in range(SEGMENT_LENGTH // len(batch)):
                log.write(_OFFSET.pack(number * RECORDS) + batch[_OFFSET.size :])
    epochs = LeaderEpochCheckpoint(lines=(LeaderEpochLine(0, 0),))
    (partition / "leader-epoch-checkpoint").write_bytes(encode_leader_epoch_checkpoint(epochs))


def generate_many(root: Path, partitions: int) -> None:
    batch = template(1, 8)
    epochs = encode_leader_epoch_checkpoint(LeaderEpochCheckpoint(lines=(LeaderEpochLine(0, 0),)))
    marks = Checkpoint(entries=tuple(CheckpointEntry("orders", number, 1) for number in range(partitions)))
    for broker in BROKERS:
        node = root / f"broker-{broker}"
        write_node(node, broker)
        (node / "replication-offset-checkpoint").write_bytes(encode_checkpoint(marks))
        for number in range(partitions):
            partition = node / f"orders-{number}"
            partition.mkdir()
            (partition / f"{0:020}.log").write_bytes(batch)
            (partition / "leader-epoch-checkpoint").write_bytes(epochs)


if __name__ == "__main__":
    main()
