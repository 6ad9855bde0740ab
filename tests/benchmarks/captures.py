"""Time captures: `python -m tests.benchmarks.captures DIRECTORY [--partitions 10000] [--megabytes 3000]`; the data is made where it is missing.

Whole processes in one run, page cache warm, processor time beside wall time, since only that can be compared on a machine with other work:

- `capture` of one broker of many partitions, per directory, with its peak memory;
- `capture` of one large segment beside `verify --level crc` of it, and of three with two processes beside `sha256sum` of the same;
- `diff` over three captures beside `diff` over the three directories.
"""

import argparse
from pathlib import Path

from kforensics.formats.log.record_batch import build_record_batch, encode_record_batch
from tests.benchmarks.measure import Measured, kforensics, line, load, measured
from tests.benchmarks.segments import made_segment

NODES = (1, 2, 3)
TIME = 1_790_000_000_000
RECORDS = 40
CHECKPOINTS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")


def make_broker(folder: Path, node: int, partitions: int, bytes_in_all: int) -> None:
    """A log directory of partitions with one segment each, of batches of some 16 KB; the same for every node."""
    folder.mkdir(parents=True)
    each = max(bytes_in_all // partitions, 1)
    value = bytes(range(256)) * 2
    batches: list[bytes] = []
    length = 0
    while length < each:
        records = [(TIME + len(batches), None, value)] * (RECORDS if each > 16_384 else 1)
        base = len(batches) * len(records)
        batches.append(encode_record_batch(build_record_batch(base, records, partition_leader_epoch=0)))
        length += len(batches[-1])
    data, end = b"".join(batches), len(batches) * (RECORDS if each > 16_384 else 1)
    names = [(f"topic-{number // 10}", number % 10) for number in range(partitions)]
    for topic, number in names:
        partition = folder / f"{topic}-{number}"
        partition.mkdir()
        (partition / f"{0:020}.log").write_bytes(data)
        (partition / f"{0:020}.index").write_bytes(b"")
        (partition / f"{0:020}.timeindex").write_bytes(b"")
        (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (folder / "meta.properties").write_text(f"version=1\nnode.id={node}\ncluster.id=6It1kTHbTjKY3LNflMZizQ\n")
    lines = "".join(f"{topic} {number} {end}\n" for topic, number in names)
    for name in CHECKPOINTS:
        (folder / name).write_text(f"0\n{len(names)}\n{lines}")


def command(*arguments: str) -> list[str]:
    """The command without its progress."""
    return kforensics(*arguments, "--quiet")


def capture(paths: list[Path], out: Path, *options: str) -> Measured:
    """One capture; the file is left for what comes next."""
    out.unlink(missing_ok=True)
    paths_given = list(map(str, paths))
    return measured(command("capture", *paths_given, "-o", str(out), "--normal-priority", *options), runs=1)


def compare(name: str, one: Measured, other: Measured) -> None:
    """Print what two commands need, and the ratio."""
    print(
        f"{name}: {one.seconds:.2f} : {other.seconds:.2f} s, processor {one.processor_seconds:.2f} : {other.processor_seconds:.2f} s, "
        f"ratio {one.processor_seconds / max(other.processor_seconds, 0.01):.2f}",
        flush=True,
    )


def main() -> None:
    """Make what is missing, and print a line for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=3_000, help="of the three brokers together")
    arguments = parser.parse_args()
    root: Path = arguments.directory
    print(load())
    brokers = [root / f"captured-{arguments.partitions}-{arguments.megabytes}" / f"broker-{node}" for node in NODES]
    for node, broker in zip(NODES, brokers, strict=True):
        if not broker.exists():
            make_broker(broker, node, arguments.partitions, arguments.megabytes * 1_000_000 // len(NODES))
    captures = []
    for broker in brokers:
        captures.append(broker.with_suffix(".kfc"))
        taken = capture([broker], captures[-1])
        each = taken.processor_seconds / arguments.partitions * 1e3
        size = captures[-1].stat().st_size / arguments.partitions
        print(line(f"capture {broker.name}", taken, None), f"{each:.2f} ms and {size:.0f} bytes a directory")
    of_files = measured(command("diff", *map(str, captures)), runs=1, expect=(0, 3))
    of_directories = measured(command("diff", *map(str, brokers)), runs=1, expect=(0, 3))
    compare("diff over captures : over directories", of_files, of_directories)
    segment = made_segment(root, "batches-16k")
    taken = capture([segment.parent], root / "segment.kfc", "--all-batches", "--jobs", "1")
    print(
        line("capture : verify --level crc", taken, measured(command("verify", "--level", "crc", str(segment)), runs=1))
    )
    summed = measured(["sha256sum", str(segment)], runs=1)
    print(line("capture : sha256sum", taken, summed))


if __name__ == "__main__":
    main()
