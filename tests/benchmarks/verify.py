"""Time `kforensics verify` beside kafka-dump-log on the same files; run as `python -m tests.benchmarks.verify DIRECTORY [--kafka-libs JARS] [NAME …]`.

Whole processes in one run, page cache warm, default jobs. Segments are those of segments.py, made where they are missing. `--level crc` stands beside
a plain dump of the log, `--level records` beside one with `--deep-iteration`. Without the jars of Kafka 4.1 only ours are timed.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.measure import dump_log, kforensics, line, load, measured, warm
from tests.benchmarks.segments import segment_path


class Case(NamedTuple):
    """A segment, a level, and the least ratio that is asked for."""

    name: str
    level: str
    floor: float


CASES = (
    Case("batches-16k", "crc", 3),
    Case("batches-16k", "records", 8),
    Case("one-record", "crc", 4),
    Case("one-record", "records", 4),
    Case("huge-batches", "records", 1.5),
    Case("zstd", "records", 4),
    Case("lz4", "records", 4),
    Case("snappy", "records", 4),
    Case("gzip", "records", 3),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*", help="segments to read; all without any")
    parser.add_argument("--kafka-libs", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_intermixed_args()
    print(load())
    print(line("--help", measured(kforensics("--help"), runs=arguments.runs), None), flush=True)
    for case in CASES:
        if arguments.names and case.name not in arguments.names:
            continue
        path = segment_path(arguments.directory, case.name)
        if not path.exists():
            generator = [sys.executable, str(Path(__file__).with_name("segments.py")), str(arguments.directory)]
            subprocess.run([*generator, "--generate", case.name], check=True)
        warm(path)
        ours = measured(kforensics("verify", "--level", case.level, str(path)), runs=arguments.runs)
        peer = None
        if arguments.kafka_libs:
            options = ["--deep-iteration"] if case.level == "records" else []
            peer = measured(dump_log(arguments.kafka_libs, path, *options), runs=arguments.runs)
        print(line(f"{case.name} {case.level}", ours, peer, case.floor), flush=True)


if __name__ == "__main__":
    main()
