"""Time `kforensics dump` of records with payload beside kafka-dump-log; run as `python -m tests.benchmarks.dump DIRECTORY [--kafka-libs JARS]`.

Whole processes in one run, page cache warm, default jobs, output thrown away. The segment is that of segments.py with 16 KB batches, 1 GB.
"""

from tests.benchmarks.measure import benchmark_options, dump_log, kforensics, line, load, measured, measured_in_turn
from tests.benchmarks.segments import made_segment

NAME = "batches-16k"
FLOOR = 2


def main() -> None:
    arguments = benchmark_options(__doc__).parse_args()
    path = made_segment(arguments.directory, NAME)
    command = kforensics("dump", "--records", "--format", "jsonl", "--show-payload", str(path))
    peer = None
    if arguments.kafka_libs:
        other = dump_log(arguments.kafka_libs, path, "--print-data-log")
        ours, peer = measured_in_turn(command, other, runs=arguments.runs)
    else:
        ours = measured(command, runs=arguments.runs)
    print(load())
    print(line(f"{NAME} jsonl", ours, peer, FLOOR))


if __name__ == "__main__":
    main()
