"""Compare three replicas of 1 GB and time it beside what people do today; run as `python -m tests.benchmarks.diff DIRECTORY [--kafka-libs JARS]`.

Whole processes in one run, page cache warm, and the ratios: `kforensics diff --jobs 2`, `sha256sum` over the same files in two processes at once,
and with `--kafka-libs` (the jars of Kafka 4.1 and what they need) kafka-dump-log once over each file. `--partitions N` times N partitions of one
record on three brokers instead, with the peak memory.
"""

import argparse
import os
import resource
import struct
import subprocess
import sys
import time
from pathlib import Path

from kforensics.formats.checkpoint.leader_epoch import (
    LeaderEpochCheckpoint,
    LeaderEpochLine,
    encode_leader_epoch_checkpoint,
)
from kforensics.formats.checkpoint.offset import Checkpoint, CheckpointEntry, encode_checkpoint
from kforensics.formats.log.record_batch import build_record_batch, encode_record_batch

BROKERS = (1, 2, 3)
SEGMENT_LENGTH = 1_000_000_000
FIRST_TIMESTAMP_MS = 1_700_000_000_000
RECORDS = 40
VALUE_LENGTH = 394
RUNS = 3
_OFFSET = struct.Struct(">q")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kafka-libs", type=Path)
    parser.add_argument("--partitions", type=int)
    arguments = parser.parse_args()
    command = [str(Path(sys.executable).with_name("kforensics")), "diff", "--jobs", "2"]
    if arguments.partitions:
        root = arguments.directory / f"many-{arguments.partitions}"
        if not root.exists():
            generate_many(root, arguments.partitions)
        seconds, peak = timed([*command, str(root)])
        print(f"{arguments.partitions:,} partitions on 3 brokers: {seconds:.1f} s, peak {peak / 1e6:.0f} MB a process")
        return
    nodes = [arguments.directory / f"broker-{broker}" for broker in BROKERS]
    for broker, node in zip(BROKERS, nodes, strict=True):
        if not node.exists():
            generate_large(node, broker)
    files = [str(node / "orders-0" / f"{0:020}.log") for node in nodes]
    for file in files:
        subprocess.run(["cat", file], stdout=subprocess.DEVNULL, check=True)
    ours, peak = min(timed([*command, *map(str, nodes)]) for _ in range(RUNS))
    hashes = min(timed(["xargs", "-P2", "-n1", "sha256sum"], text="\n".join(files))[0] for _ in range(RUNS))
    print(f"kforensics diff         {ours:6.2f} s   peak {peak / 1e6:.0f} MB a process")
    print(f"sha256sum, two at once  {hashes:6.2f} s   {hashes / ours:.1f}x")
    if arguments.kafka_libs:
        dump = ["java", "-cp", f"{arguments.kafka_libs}/*", "kafka.tools.DumpLogSegments", "--files"]
        peer = sum(timed([*dump, file])[0] for file in files)
        print(f"kafka-dump-log, each    {peer:6.2f} s   {peer / ours:.1f}x")


def timed(command: list[str], text: str | None = None) -> tuple[float, int]:
    """Seconds of the whole process, and the largest peak memory of its processes in bytes."""
    begin = time.perf_counter()
    subprocess.run(command, input=text, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    seconds = time.perf_counter() - begin
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


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
