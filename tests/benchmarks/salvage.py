"""Time `kforensics salvage` in each form beside kafka-dump-log, `cp` and `sha256sum`; run as `python -m tests.benchmarks.salvage DIRECTORY [--kafka-libs JARS]`.

Whole processes, page cache warm, default jobs. The partition is the segment of segments.py with 16 KB batches, 1 GB. Written files are removed after each run.
"""

import shutil
from pathlib import Path

from tests.benchmarks.measure import Measured, benchmark_options, dump_log, kforensics, line, load, measured
from tests.benchmarks.segments import made_segment

NAME = "batches-16k"
FLOORS = {"jsonl": 5.0, "parquet": 8.0}
SEGMENTS_FLOOR, CARVE_FLOOR = 0.5, 0.8


def timed(command: list[str], out: Path, runs: int) -> Measured:
    """The fastest of some runs, each into a new directory."""
    found = []
    for _ in range(runs):
        shutil.rmtree(out, ignore_errors=True)
        found.append(measured(command, runs=1, expect=(0, 1)))
    shutil.rmtree(out, ignore_errors=True)
    return min(found)


def main() -> None:
    arguments = benchmark_options(__doc__).parse_args()
    path = made_segment(arguments.directory, NAME)
    partition = arguments.directory / "salvaged" / "orders-0"
    partition.mkdir(parents=True, exist_ok=True)
    segment = partition / f"{0:020d}.log"
    if not segment.exists():
        segment.hardlink_to(path)
    out = arguments.directory / "out"
    peers: dict[str, Measured | None] = dict.fromkeys(FLOORS)
    if arguments.kafka_libs:
        dumped = measured(dump_log(arguments.kafka_libs, path, "--print-data-log"), runs=arguments.runs)
        peers = dict.fromkeys(FLOORS, dumped)
    copied = timed(["cp", "--reflink=never", str(path), str(out)], out, 1)
    out.unlink(missing_ok=True)
    hashed = measured(["sha256sum", str(path)], runs=arguments.runs)
    print(load())
    for form, floor in FLOORS.items():
        command = kforensics("salvage", str(partition), "--what", "all", "--form", form, "-o", str(out), "-q")
        print(line(f"{NAME} {form}", timed(command, out, arguments.runs), peers[form], floor), flush=True)
    command = kforensics("salvage", str(partition), "--what", "all", "--form", "segments", "-o", str(out), "-q")
    print(line(f"{NAME} segments, cp", timed(command, out, arguments.runs), copied, SEGMENTS_FLOOR), flush=True)
    command = kforensics("salvage", "--carve", str(path), str(partition), "-o", str(out), "-q")
    print(line(f"{NAME} carve, sha256sum", timed(command, out, arguments.runs), hashed, CARVE_FLOOR), flush=True)


if __name__ == "__main__":
    main()
