"""Compare the ends of large logs, and count what is read of them; run as `python -m tests.benchmarks.tails DIRECTORY [--partitions N] [--once] [--large] [--triage]`.

Three brokers hold N partitions each, 10,000 where nothing else is said, with three older segments of 35 MB a partition that are hard links to one file, 1 TB on each broker: nothing below the
ends is read. Every tenth partition has a truncation. Beside them half as many partitions, and these once more with older segments of ten times the length, and with ten times as many of them;
`--once` leaves these out. Time and peak are those of
whole processes of `kforensics diff --depth tails --jobs 2`, bytes what all of them asked the system to read, of pipes between them too; of the ranges that go, and in requests, they are counted in one process
over a fiftieth of the partitions. What is made takes 0.1 MB a replica on disk and is removed afterwards. `--large` takes one partition of three replicas of 1 GB instead, and with `--kafka-libs` times
kafka-dump-log beside it, a run for each replica. `--triage` times `kforensics triage` of the N partitions beside that `diff`, and says how many times its processor time and its peak it takes.
"""

import argparse
import contextlib
import io
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

from kforensics.cli.app import run
from kforensics.formats.checkpoint.lines import (
    Checkpoint,
    CheckpointEntry,
    LeaderEpochCheckpoint,
    LeaderEpochLine,
    encode_checkpoint,
    encode_leader_epoch_checkpoint,
)
from kforensics.formats.index import encode_index, encode_producers, offset_index, time_index
from kforensics.formats.log.batch_table import BATCH_HEADER
from kforensics.source.mapped import read_counts
from tests.benchmarks.diff import BROKERS, FIRST_TIMESTAMP_MS, RECORDS, VALUE_LENGTH, generate_large, template
from tests.benchmarks.measure import dump_log, kforensics, load, measured, warm

OLDER_LENGTH = 35 << 20
OLDER_SEGMENTS = 3
SMALL_RECORDS, SMALL_VALUE = 8, 380
ACTIVE_BATCHES, TRUNCATED_BATCHES = 30, 4
TRUNCATED_EVERY = 10
MOST_LINKS = 50_000
_OFFSET = struct.Struct(">q")
_EPOCH = struct.Struct(">i")
_EPOCH_POSITION = BATCH_HEADER.position_of("partition_leader_epoch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--triage", action="store_true")
    parser.add_argument("--kafka-libs", type=Path)
    arguments = parser.parse_args()
    if arguments.large:
        _large(arguments.directory, arguments.kafka_libs)
        return
    print(load())
    whole = arguments.partitions
    if arguments.triage:
        _beside_triage(arguments.directory, whole)
        return
    with made(arguments.directory, max(whole // 50, TRUNCATED_EVERY)) as root:
        each = len(list(root.glob("broker-1/orders-*")))
        bytes_read, requests, to_go = count(root)
        print(
            f"one process, {each:,} partitions: {bytes_read / each / 1024:.1f} KB and {requests / each:.1f} requests a partition,"
        )
        print(f"{to_go / each / 1024:.1f} KB of it ranges that go")
        start = measured(kforensics(*_arguments(root), "--jobs", "1"), runs=1, expect=(0, 1, 3)).read_bytes - bytes_read
    seconds = []
    half = whole // 2
    cases = [(half, 1, 1), (whole, 1, 1), (half, 10, 1), (half, 1, 10)]
    for partitions, longer, more in [(whole, 1, 1)] if arguments.once else cases:
        with made(arguments.directory, partitions, longer, more) as root:
            used = measured(kforensics(*_arguments(root), "--jobs", "2"), runs=1, expect=(0, 1, 3))
            seconds.append(used.processor_seconds)
            segments = OLDER_SEGMENTS * more
            apparent = partitions * segments * OLDER_LENGTH * longer / 1e12
            print(
                f"{partitions:,} partitions of {segments} older segments, {apparent:.2f} TB on each of 3 brokers: "
                f"{used.seconds:.1f} s, processor {used.processor_seconds:.1f} s,"
            )
            print(
                f"peak {used.peak / 1e6:.0f} MB a process, {(used.read_bytes - start) / partitions / 1024:.1f} KB read a partition",
                flush=True,
            )
    if not arguments.once:
        twice, ten_times, ten_times_as_many = (one / seconds[0] for one in seconds[1:])
        print(f"twice the partitions {twice:.2f} times the processor time, ten times the bytes {ten_times:.2f},")
        print(f"ten times the bytes in ten times as many segments {ten_times_as_many:.2f}")


@contextlib.contextmanager
def made(directory: Path, partitions: int, longer: int = 1, more: int = 1) -> Iterator[Path]:
    """A made cluster, as long as the block runs, with older segments that are so many times as long, and so many times as many."""
    root = directory / f"ends-{partitions}-{longer}-{more}"
    shutil.rmtree(root, ignore_errors=True)
    try:
        generate(root, partitions, OLDER_SEGMENTS * more, OLDER_LENGTH * longer)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _beside_triage(directory: Path, partitions: int) -> None:
    with made(directory, partitions) as root:
        compared = measured(kforensics(*_arguments(root), "--jobs", "2"), runs=1, expect=(0, 1, 3))
        asked = measured(kforensics("triage", str(root), "--format", "json", "--jobs", "2"), runs=1, expect=(0, 1, 3))
    for name, used in (("diff --depth tails", compared), ("triage", asked)):
        print(
            f"{partitions:,} partitions on each of 3 brokers, {name}: {used.seconds:.1f} s, processor {used.processor_seconds:.1f} s, peak {used.peak / 1e6:.0f} MB a process"
        )
    ratios = asked.processor_seconds / compared.processor_seconds, asked.peak / compared.peak
    print(f"triage takes {ratios[0]:.1f} times the processor time of diff, and {ratios[1]:.2f} times its peak")


def _large(directory: Path, libraries: Path | None) -> None:
    nodes = [directory / f"broker-{broker}" for broker in BROKERS]
    for broker, node in zip(BROKERS, nodes, strict=True):
        if not node.exists():
            generate_large(node, broker)
            index_large(node / "orders-0")
    bytes_read, requests, _ = count(*nodes)
    used = measured(kforensics(*_arguments(*nodes)), expect=(0, 1, 3))
    print(load())
    print(f"3 x 1 GB in one partition: {used.seconds:.2f} s, processor {used.processor_seconds:.2f} s")
    print(f"read: {bytes_read / 1024:.0f} KB in {requests} requests")
    if libraries is not None:
        seconds = processor = 0.0
        for node in nodes:
            file = node / "orders-0" / f"{0:020}.log"
            warm(file)
            peer = measured(dump_log(libraries, file), runs=1)
            seconds, processor = seconds + peer.seconds, processor + peer.processor_seconds
        print(f"kafka-dump-log of the three: {seconds:.1f} s, processor {processor:.1f} s,")
        print(f"{seconds / used.seconds:.0f}x in seconds, {processor / used.processor_seconds:.0f}x in processor time")


def _arguments(*paths: Path) -> list[str]:
    return ["diff", "--depth", "tails", "--replicas", "1,2,3", "--format", "json", *map(str, paths)]


def count(*paths: Path) -> tuple[int, int, int]:
    """Bytes and requests that one process reads, and the bytes that truncations take."""
    read_counts.reset()
    with contextlib.redirect_stdout(io.StringIO()):
        run([*_arguments(*paths), "--jobs", "1"])
    goes = len(list(paths[0].glob("broker-1/orders-*"))) // TRUNCATED_EVERY if len(paths) == 1 else 0
    return read_counts.bytes, read_counts.requests, goes * TRUNCATED_BATCHES * len(template(SMALL_RECORDS, SMALL_VALUE))


def generate(root: Path, partitions: int, segments: int, older_length: int = OLDER_LENGTH) -> None:
    """Write the cluster: replicas on all brokers, of which the third has batches of another epoch in every tenth partition."""
    batch = template(SMALL_RECORDS, SMALL_VALUE)
    root.mkdir(parents=True)
    for broker in BROKERS:
        node = root / f"broker-{broker}"
        node.mkdir()
        (node / "meta.properties").write_text(f"version=0\nbroker.id={broker}\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
        (node / ".kafka_cleanshutdown").touch()
        entries = []
        for number in range(partitions):
            is_other = broker == BROKERS[-1] and number % TRUNCATED_EVERY == TRUNCATED_EVERY - 1
            # A file system allows some 65,000 links to one file.
            older = root / f"older-{broker}-{number * segments // MOST_LINKS}"
            if not older.exists():
                older.write_bytes(batch)
                os.truncate(older, older_length)
            end = _write_partition(
                node / f"orders-{number}", batch, older, segments, number * SMALL_RECORDS, is_other=is_other
            )
            entries.append(CheckpointEntry("orders", number, end))
        checkpoint = encode_checkpoint(Checkpoint(entries=tuple(entries)))
        for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
            (node / name).write_bytes(checkpoint)
    for older in root.glob("older*"):
        older.unlink()


def _write_partition(
    folder: Path, batch: bytes, older: Path, segments: int, first_behind: int, *, is_other: bool
) -> int:
    """Write a partition and return the end of its log; no other one has the same offsets behind its first segment."""
    folder.mkdir()
    each = OLDER_LENGTH // len(batch) * SMALL_RECORDS
    bases = [number * each + (first_behind if number else 0) for number in range(segments + 1)]
    small = [(at * SMALL_RECORDS, at * len(batch)) for at in range(2, OLDER_LENGTH // len(batch), 2)]
    for base in bases[:-1]:
        stem = f"{base:020}"
        os.link(older, folder / f"{stem}.log")
        source = older.with_name(f"{older.name}.index")
        if not source.exists():
            source.write_bytes(encode_index(offset_index(small)))
        os.link(source, folder / f"{stem}.index")
        times = older.with_name(f"{older.name}.timeindex")
        if not times.exists():
            times.write_bytes(encode_index(time_index([(FIRST_TIMESTAMP_MS, SMALL_RECORDS - 1)])))
        os.link(times, folder / f"{stem}.timeindex")
    base = bases[-1]
    own_epoch = ACTIVE_BATCHES - TRUNCATED_BATCHES
    data, entries = bytearray(), []
    for at in range(ACTIVE_BATCHES):
        epoch = 0 if at < own_epoch else (1 if is_other else 2)
        if at and at % 2 == 0:
            entries.append((at * SMALL_RECORDS + SMALL_RECORDS - 1, len(data)))
        one = bytearray(batch)
        one[:8] = _OFFSET.pack(base + at * SMALL_RECORDS)
        one[_EPOCH_POSITION : _EPOCH_POSITION + 4] = _EPOCH.pack(epoch)
        data += one
    stem = f"{base:020}"
    (folder / f"{stem}.log").write_bytes(data)
    (folder / f"{stem}.index").write_bytes(encode_index(offset_index(entries)))
    (folder / f"{stem}.timeindex").write_bytes(encode_index(time_index([(FIRST_TIMESTAMP_MS, SMALL_RECORDS - 1)])))
    lines = (LeaderEpochLine(0, 0), LeaderEpochLine(1 if is_other else 2, base + own_epoch * SMALL_RECORDS))
    (folder / "leader-epoch-checkpoint").write_bytes(encode_leader_epoch_checkpoint(LeaderEpochCheckpoint(lines=lines)))
    end = base + ACTIVE_BATCHES * SMALL_RECORDS
    (folder / f"{end:020}.snapshot").write_bytes(encode_producers(()))
    return end


def index_large(folder: Path) -> None:
    """Write the indexes of a segment of equal batches."""
    stem = f"{0:020}"
    length = len(template(RECORDS, VALUE_LENGTH))
    batches = (folder / f"{stem}.log").stat().st_size // length
    entries = [(at * RECORDS + RECORDS - 1, at * length) for at in range(1, batches)]
    (folder / f"{stem}.index").write_bytes(encode_index(offset_index(entries)))
    (folder / f"{stem}.timeindex").write_bytes(encode_index(time_index([(FIRST_TIMESTAMP_MS, RECORDS - 1)])))


if __name__ == "__main__":
    main()
