"""Time `kforensics salvage` in each form beside kafka-dump-log, `cp` and `sha256sum`; run as `python -m tests.benchmarks.salvage DIRECTORY [--kafka-libs JARS]`.

Whole processes, page cache warm, default jobs. The partition is one segment as in segments.py with 16 KB batches, 1 GB, or as many as `--gigabytes` says, over which the start of
the interpreter is spread. `--together` adds what all processes of each command hold at one time, limit 200 MB. A command and the one that it is compared with run in turn, and the fastest of each counts. Written files are removed after each run.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.measure import (
    Measured,
    benchmark_options,
    dump_log,
    held_together,
    kforensics,
    line,
    load,
    measured,
)
from tests.benchmarks.segments import made_partition

NAME = "batches-16k"
FLOORS = {"jsonl": 5.0, "parquet": 8.0}
SEGMENTS_FLOOR, CARVE_FLOOR = 0.5, 0.8
MEMORY = 200_000_000
FORMS = ("jsonl", "parquet", "segments", "carve")


def fastest(commands: Sequence[list[str]], out: Path, runs: int) -> list[Measured]:
    """The fastest of some runs of each command, in turn, each into a new directory."""
    found: list[list[Measured]] = [[] for _ in commands]
    for _ in range(runs):
        for command, times in zip(commands, found, strict=True):
            shutil.rmtree(out, ignore_errors=True)
            times.append(measured(command, runs=1, expect=(0, 1)))
    shutil.rmtree(out, ignore_errors=True)
    return [min(times) for times in found]


def main() -> None:
    parser = benchmark_options(__doc__)
    parser.add_argument("--gigabytes", type=int, default=1, help="segments of 1 GB")
    parser.add_argument(
        "--together", action="store_true", help="what all processes hold at one time, in a run of its own"
    )
    parser.add_argument("--form", choices=FORMS, action="append", help="only this one")
    arguments = parser.parse_args()
    chosen = arguments.form or FORMS
    partition = arguments.directory / f"salvaged-{arguments.gigabytes}" / "orders-0"
    paths = made_partition(partition, NAME, arguments.gigabytes)
    out = arguments.directory / "out"
    print(load())

    def show_together(command: list[str]) -> None:
        if not arguments.together:
            return
        shutil.rmtree(out, ignore_errors=True)
        held = held_together(command, expect=(0, 1))
        shutil.rmtree(out, ignore_errors=True)
        verdict = "met" if held.proportional <= MEMORY else "MISSED"
        print(
            f"    all processes together {held.proportional / 1e6:.0f} MB, {held.anonymous / 1e6:.0f} of them no pages of files;"
            f" limit {MEMORY / 1e6:.0f}, {verdict}",
            flush=True,
        )

    dumped = None
    if arguments.kafka_libs and any(form in FLOORS for form in chosen):
        command = dump_log(arguments.kafka_libs, ",".join(map(str, paths)), "--print-data-log")
        dumped = measured(command, runs=arguments.runs)
    for form, floor in FLOORS.items():
        if form in chosen:
            command = kforensics("salvage", str(partition), "--what", "all", "--form", form, "-o", str(out), "-q")
            (ours,) = fastest([command], out, arguments.runs)
            print(line(f"{NAME} {form}", ours, dumped, floor), flush=True)
            show_together(command)
    if "segments" in chosen:
        command = kforensics("salvage", str(partition), "--what", "all", "--form", "segments", "-o", str(out), "-q")
        copy = ["cp", "-r", "--reflink=never", str(partition), str(out)]
        ours, theirs = fastest([command, copy], out, arguments.runs)
        print(line(f"{NAME} segments, cp", ours, theirs, SEGMENTS_FLOOR), flush=True)
        show_together(command)
    if "carve" in chosen:
        command = kforensics("salvage", "--carve", str(paths[0]), str(partition), "-o", str(out), "-q")
        ours, theirs = fastest([command, ["sha256sum", str(paths[0])]], out, arguments.runs)
        print(line(f"{NAME} carve, sha256sum", ours, theirs, CARVE_FLOOR), flush=True)
        show_together(command)


if __name__ == "__main__":
    main()
