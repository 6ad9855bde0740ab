"""Time `kforensics verify` beside kafka-dump-log on the same files; run as `python -m tests.benchmarks.verify DIRECTORY [--kafka-libs JARS] [NAME …]`.

Whole processes in turn, page cache warm, default jobs, medians. Segments are those of segments.py, made where they are missing. `--level crc` stands beside
a plain dump of the log, `--level records` beside one with `--deep-iteration`. Without the jars of Kafka 4.1 only ours are timed.

`zeros` are 50 partitions with 1 GB of zeros: of preallocated indexes as brokers make them (holes), of such indexes once they were copied (zeros on disk), and behind the
only batch of a preallocated segment; beside them the same partitions without any. There `verify` and `diff` are timed, and what they ask the system to read is counted.
"""

import os
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.diff import template, write_node
from tests.benchmarks.measure import (
    benchmark_options,
    dump_log,
    kforensics,
    line,
    load,
    measured,
    measured_in_turn,
    warm,
)
from tests.benchmarks.segments import made_segment

ZEROS = 1 << 30
PARTITIONS = 50


class Case(NamedTuple):
    """A segment, a level, and the least ratio that is asked for."""

    name: str
    level: str
    floor: float


CASES = (
    Case("batches-16k", "crc", 4.5),
    Case("batches-16k", "records", 12),
    Case("one-record", "crc", 4),
    Case("one-record", "records", 4),
    Case("huge-batches", "records", 1.5),
    Case("zstd", "records", 4),
    Case("lz4", "records", 4),
    Case("snappy", "records", 4),
    Case("gzip", "records", 3),
)


def main() -> None:
    parser = benchmark_options(__doc__)
    parser.add_argument("names", nargs="*", help="segments to read, and zeros; all without any")
    arguments = parser.parse_intermixed_args()
    print(load())
    for option in ("--version", "--help"):
        print(line(option, measured(kforensics(option), runs=arguments.runs), None), flush=True)
    for case in CASES:
        if arguments.names and case.name not in arguments.names:
            continue
        path = made_segment(arguments.directory, case.name)
        command, peer = kforensics("verify", "--level", case.level, str(path)), None
        if arguments.kafka_libs:
            options = ["--deep-iteration"] if case.level == "records" else []
            other = dump_log(arguments.kafka_libs, path, *options)
            ours, peer = measured_in_turn(command, other, runs=arguments.runs)
        else:
            ours = measured(command, runs=arguments.runs)
        print(line(f"{case.name} {case.level}", ours, peer, case.floor), flush=True)
    if not arguments.names or "zeros" in arguments.names:
        zeros(arguments.directory, arguments.runs)


def zeros(directory: Path, runs: int) -> None:
    """Print what zeros cost."""
    for what in ("none", "holes", "written", "segment"):
        node = directory / "zeros" / what
        if not node.exists():
            generate_zeros(node, what)
        for path in sorted(node.rglob("0*")) if what == "written" else ():
            warm(path)
        for command in ("verify", "diff"):
            ours = measured(kforensics(command, "--jobs", "1", str(node)), runs=runs, expect=(0, 1, 3))
            reads = f"{ours.read_bytes / 1e6:,.1f} MB read in {ours.read_requests:,} requests"
            print(line(f"{command}, zeros: {what}", ours, None), "", reads, flush=True)


def generate_zeros(node: Path, what: str) -> None:
    """A broker with preallocated files."""
    write_node(node, 1)
    batch = template(1, 8)
    length = ZEROS // PARTITIONS // 2
    for number in range(PARTITIONS):
        partition = node / f"orders-{number}"
        partition.mkdir()
        segment = partition / f"{0:020}.log"
        segment.write_bytes(batch)
        if what == "segment" and not number:
            os.truncate(segment, ZEROS)
        for suffix, entry in ((".index", 8), (".timeindex", 12)) if what in {"holes", "written"} else ():
            index = segment.with_suffix(suffix)
            index.write_bytes(bytes(length // entry * entry) if what == "written" else b"")
            os.truncate(index, length // entry * entry)


if __name__ == "__main__":
    main()
