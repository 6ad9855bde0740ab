"""Time `kforensics trace` over three replicas of 1 GB beside kafka-dump-log; run as `python -m tests.benchmarks.trace DIRECTORY [--kafka-libs JARS] [--runs N]`.

Whole processes, page cache warm, default jobs: a key, one offset, a second of time, and with `--hits N` so many records of one replica in each form, which takes minutes. The replicas are hard links to the segment of segments.py with 16 KB batches, with the indexes that `salvage --form segments`
writes. The peer is `kafka-dump-log --print-data-log`, one file after the other, without the `grep -c` behind it.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.measure import Measured, benchmark_options, dump_log, kforensics, line, load, measured, warm
from tests.benchmarks.segments import Shape, encoded_batch, generate, segment_path

NAME = "batches-16k"
KEY_FLOOR, OFFSET_SECONDS = 8.0, 0.3
HIT = Shape(0, 100, 60)
"""Records of 77 bytes: their count is what matters."""
MOST_MEMORY_MB = 150
BROKERS = (1, 2, 3)


def made(directory: Path) -> list[Path]:
    """Three stopped brokers with a replica each."""
    path = segment_path(directory, NAME)
    if not path.exists():
        generator = [sys.executable, str(Path(__file__).with_name("segments.py")), str(directory)]
        subprocess.run([*generator, "--generate", NAME], check=True)
    folders = [directory / "traced" / f"broker-{broker}" for broker in BROKERS]
    for broker, folder in zip(BROKERS, folders, strict=True):
        log = folder / "orders-0"
        if folder.exists():
            continue
        log.mkdir(parents=True)
        (log / path.name).hardlink_to(path)
        (log / "leader-epoch-checkpoint").write_text("0\n1\n3 0\n")
        (folder / "meta.properties").write_text(f"version=0\nbroker.id={broker}\n")
        (folder / "replication-offset-checkpoint").write_text("0\n1\norders 0 2000000\n")
        (folder / ".kafka_cleanshutdown").touch()
        out = directory / "indexed"
        shutil.rmtree(out, ignore_errors=True)
        subprocess.run(
            kforensics("salvage", str(log), "--what", "all", "--form", "segments", "-o", str(out), "-q"), check=False
        )
        for index in (*out.rglob("*.index"), *out.rglob("*.timeindex")):
            shutil.copy(index, log)
        shutil.rmtree(out)
    warm(path)
    return folders


def made_hits(directory: Path, records: int) -> Path:
    """A stopped broker with one replica of so many records."""
    folder = directory / f"hits-{records}" / "broker-1"
    if folder.exists():
        return folder
    log = folder / "orders-0"
    log.mkdir(parents=True)
    shape = Shape(records // HIT.records * len(encoded_batch(HIT)), HIT.records, HIT.value_length)
    generate(log / f"{0:020}.log", shape)
    (log / "leader-epoch-checkpoint").write_text("0\n1\n3 0\n")
    (folder / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (folder / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {records}\n")
    (folder / ".kafka_cleanshutdown").touch()
    return folder


def time_hits(folder: Path, records: int) -> None:
    for form in ("text", "jsonl", "json"):
        words = ("trace", str(folder), "-t", "orders", "--time", "2000-01-01..2100-01-01", "--format", form)
        found = line(f"{records:,} hits, {form}", measured(kforensics(*words), runs=1), None)
        print(f"{found}   (at most {MOST_MEMORY_MB} MB)", flush=True)


def main() -> None:
    parser = benchmark_options(__doc__)
    parser.add_argument("--hits", type=int, metavar="N", help="Only write N records in each form.")
    arguments = parser.parse_args()
    if arguments.hits:
        print(load())
        time_hits(made_hits(arguments.directory, arguments.hits), arguments.hits)
        return
    folders = made(arguments.directory)
    given = ("trace", *map(str, folders), "-t", "orders")
    peer: Measured | None = None
    if arguments.kafka_libs:
        one = measured(
            dump_log(arguments.kafka_libs, segment_path(arguments.directory, NAME), "--print-data-log"),
            runs=arguments.runs,
        )
        peer = one._replace(seconds=len(BROKERS) * one.seconds, processor_seconds=len(BROKERS) * one.processor_seconds)
    print(load())
    found = measured(kforensics(*given, "--key", "00000000", "-q"), runs=arguments.runs, expect=(0, 3))
    print(line("key, 3 x 1 GB", found, peer, KEY_FLOOR), flush=True)
    found = measured(kforensics(*given, "--offset", "1000000", "-q"), runs=arguments.runs)
    print(f"{line('offset, 3 x 1 GB', found, None)}   (at most {OFFSET_SECONDS} s)", flush=True)
    second = "2023-11-14T22:13:20Z..2023-11-14T22:13:21Z"
    found = measured(kforensics(*given, "--time", second, "-q"), runs=arguments.runs)
    print(line("a second of time, 3 x 1 GB", found, None), flush=True)


if __name__ == "__main__":
    main()
