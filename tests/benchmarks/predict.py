"""Compare `predict` with `ls`, `verify --level crc` and Kafka's own loader; run as `python -m tests.benchmarks.predict DIRECTORY --jars FOLDER`.

`--partitions N` makes a log directory of so many small clean logs, for `predict`, `predict --ways-out` and `ls`; `--megabytes N` makes three logs of that size in
one without a clean-shutdown marker, for `predict` and `verify`. With `--jars` (those of Kafka 3.9.1) Kafka's loader loads a copy of the same logs in one JVM, whose
start is counted and the copying not. What is printed are processor seconds of whole processes and those of the clock, of pairs that run in turn but for the loader, the peak of `predict`, and what it keeps.
"""

import argparse
import gc
import os
import shutil
import tracemalloc
from pathlib import Path
from random import Random

from kforensics.ask.model import Ask
from kforensics.commands.predict import run
from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from tests.benchmarks.measure import Measured, kforensics, measured, measured_in_turn, median_of
from tests.oracle.loading.judge import HERE, OPEN_MODULES
from tests.oracle.loading.made import NOW_MS, Case, files_of, write_files

KAFKA = "3.9.1"
BATCH_VALUE = 1 << 20


def main() -> None:
    """Make what is not there, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jars", type=Path, default=None)
    given = parser.parse_args()
    clean, unclean = (given.directory / name for name in (f"clean-{given.partitions}", f"unclean-{given.megabytes}"))
    if not clean.exists():
        make_clean(clean, given.partitions)
    if not unclean.exists():
        make_unclean(unclean, given.megabytes)
    ours, listed = measured_in_turn(predict(clean), kforensics("ls", str(clean)), runs=given.runs)
    _print("clean, predict", ours, "ls", listed)
    for name, folder, partitions in (
        ("clean", clean, 0),
        ("killed, of any version", given.directory / "killed", 2_000),
    ):
        if not folder.exists():
            make_killed(folder, partitions)
        ours, named = measured_in_turn(predict(folder, kafka=None), predict(folder), runs=given.runs)
        _print(f"{name}, predict without a version", ours, "with one", named)
    one = given.directory / "clean-1"
    if not one.exists():
        make_clean(one, 1)
    few = measured(predict(one), runs=given.runs)
    more = given.partitions - 1
    print(f"peak for one partition more: {(ours.peak - few.peak) / more / 1024:.2f} KB")
    print(f"kept for one partition more: {(kept(clean) - kept(one)) / more / 1024:.2f} KB", flush=True)
    ours, ways = measured_in_turn(predict(unclean), predict(unclean, "--ways-out"), runs=given.runs)
    _print("unclean, predict --ways-out", ways, "predict", ours)
    ours, checked = measured_in_turn(
        predict(unclean), kforensics("verify", str(unclean), "--level", "crc"), runs=given.runs
    )
    _print("unclean, predict", ours, "verify --level crc", checked)
    if given.jars is not None:
        for name, folder, is_clean in (("clean", clean, True), ("unclean", unclean, False)):
            # All of ours come first: to copy and to remove the logs of the loader keeps the file system busy afterwards.
            mine = measured(predict(folder), runs=given.runs)
            loader = median_of([_loaded(given.jars, folder, clean=is_clean) for _ in range(given.runs)])
            _print(f"{name}, Kafka's loader", loader, "predict", mine)


def predict(folder: Path, *options: str, kafka: str | None = KAFKA) -> list[str]:
    """The command over one log directory."""
    version = () if kafka is None else ("--kafka", kafka)
    return kforensics("predict", str(folder), *version, "--now", str(NOW_MS), "--set", "log.retention.ms=-1", *options)


def kept(folder: Path) -> int:
    """Return the bytes that Python holds once a start is predicted, before anything is printed."""
    gc.collect()
    tracemalloc.start()
    try:
        result = run(Ask(paths=(folder,), kafka=KAFKA, now_ms=NOW_MS, settings={"log.retention.ms": "-1"}))
        gc.collect()
        assert result.body.logs
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def make_clean(folder: Path, partitions: int) -> None:
    """Make a log directory of small logs that was closed cleanly."""
    batches: list[list[object]] = [[2, 100, 0, -1, "plain", 1000] for _ in range(6)]
    files = files_of(Case(batches=batches, rolls=[3], recovery_point=12))
    for at in range(partitions):
        write_files(files, folder / f"orders-{at}")
    (folder / ".kafka_cleanshutdown").touch()
    _finish(folder, [f"orders {at} 12" for at in range(partitions)])


def make_killed(folder: Path, partitions: int) -> None:
    """Make a log directory of small logs with preallocated indexes, which any version from 0.11 to 3.9 may have written."""
    make_clean(folder, partitions)
    (folder / ".kafka_cleanshutdown").unlink()
    for directory in folder.glob("orders-*"):
        (directory / "partition.metadata").unlink()
        os.truncate(directory / f"{6:020d}.index", 10 << 20)
        os.truncate(directory / f"{6:020d}.timeindex", (10 << 20) - 4)


def make_unclean(folder: Path, megabytes: int) -> None:
    """Make a log directory of three large logs that was not closed."""
    value = Random(1).randbytes(BATCH_VALUE)
    for at in range(3):
        directory = folder / f"large-{at}"
        directory.mkdir(parents=True)
        with (directory / f"{0:020d}.log").open("wb") as log:
            for offset in range(megabytes):
                batch = build_record_batch(offset, [(NOW_MS, b"key", value)], partition_leader_epoch=0)
                log.write(encode_record_batch(batch))
        for ending in (".index", ".timeindex"):
            (directory / f"{0:020d}{ending}").touch()
        (directory / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n")
    _finish(folder, [])


def _finish(folder: Path, points: list[str]) -> None:
    (folder / "recovery-point-offset-checkpoint").write_text("\n".join(["0", str(len(points)), *points]) + "\n")
    (folder / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAw\n")


def _loaded(jars: Path, folder: Path, *, clean: bool) -> Measured:
    """What Kafka's loader takes for all logs of a copy."""
    copy = folder.with_name(f"{folder.name}.copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    point = "12" if clean else "0"
    requests = copy / "requests"
    lines = ["\t".join((str(path), "0", point, str(clean).lower())) for path in copy.iterdir() if path.is_dir()]
    requests.write_text("\n".join(lines) + "\n")
    java = ["java", "-XX:+UseSerialGC", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", *OPEN_MODULES]
    command = [*java, "-cp", f"{jars}/*", str(HERE / "Loader39.java"), f"now={NOW_MS}"]
    quoted = " ".join(f"'{word}'" for word in command)
    try:
        return measured(["sh", "-c", f"{quoted} < '{requests}'"], runs=1)
    finally:
        shutil.rmtree(copy)


def _print(name: str, one: Measured, other_name: str, other: Measured) -> None:
    by_processor, by_clock = one.processor_seconds / other.processor_seconds, one.seconds / other.seconds
    print(
        f"{name} {one.processor_seconds:.2f} s ({one.seconds:.2f} by the clock), {other_name} {other.processor_seconds:.2f} s ({other.seconds:.2f}), "
        f"ratio {by_processor:.2f} ({by_clock:.2f})",
        flush=True,
    )


if __name__ == "__main__":
    main()
