"""Time `kforensics dump` of records with payload beside kafka-dump-log; run as `python -m tests.benchmarks.dump DIRECTORY [--kafka-libs JARS]`.

Whole processes in one run, page cache warm, default jobs, output thrown away. The segment is that of segments.py with 16 KB batches, 1 GB.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.measure import dump_log, kforensics, line, load, measured, warm
from tests.benchmarks.segments import segment_path

NAME = "batches-16k"
FLOOR = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kafka-libs", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    path = segment_path(arguments.directory, NAME)
    if not path.exists():
        generator = [sys.executable, str(Path(__file__).with_name("segments.py")), str(arguments.directory)]
        subprocess.run([*generator, "--generate", NAME], check=True)
    warm(path)
    options = ("--records", "--format", "jsonl", "--show-payload")
    ours = measured(kforensics("dump", *options, str(path)), runs=arguments.runs)
    peer = None
    if arguments.kafka_libs:
        peer = measured(dump_log(arguments.kafka_libs, path, "--print-data-log"), runs=arguments.runs)
    print(load())
    print(line(f"{NAME} jsonl", ours, peer, FLOOR))


if __name__ == "__main__":
    main()
