"""Time captures: `python -m tests.benchmarks.captures DIRECTORY [--partitions 10000] [--megabytes 3000] [--directories 100000]`; the data is made where it is missing.

Every row has its limit, and whether it is met.

Whole processes in one run, page cache warm, processor time beside wall time, since only that can be compared on a machine with other work:

- `capture` of one broker of many partitions, and `diff` over three captures beside `diff` over the three directories;
- `capture` of one large segment beside `verify --level crc` of it, and of three with two processes beside `sha256sum` of the same by two;
- `capture` of very many partition directories.
"""

import argparse
import json
import zipfile
from pathlib import Path

from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from tests.benchmarks.measure import RUNS, Measured, kforensics, load, measured
from tests.benchmarks.segments import made_segment

NODES = (1, 2, 3)
TIME = 1_790_000_000_000
RECORDS = 40
DIRECTORIES = 100_000
SECONDS = 60
"""For so many directories on two cores."""

MEMORY = 150_000_000
SEGMENT_BYTES, BATCH_BYTES = 600, 14
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


def row(what: str, one: Measured, other: Measured | None, ratio: tuple[float, float] | None, note: str = "") -> None:
    """Print what a command took, and what it is held against.

    Args:
        what: is measured.
        one: the command.
        other: what it is compared with.
        ratio: of processor time, and its limit.
        note: more to say.
    """
    against = "" if other is None else f" : {other.seconds:.1f} s"
    against_processor = "" if other is None else f" : {other.processor_seconds:.1f} s"
    words = "" if ratio is None else f"; {ratio[0]:.2f}, limit {ratio[1]:.2f}, {verdict(ratio[0], ratio[1])}"
    print(
        f"{what}: {one.seconds:.1f}{against}, processor {one.processor_seconds:.1f}{against_processor}{words}"
        f"; memory {one.peak / 1e6:.0f} MB, limit {MEMORY / 1e6:.0f}, {verdict(one.peak, MEMORY)}{note}",
        flush=True,
    )


def verdict(value: float, limit: float) -> str:
    """Whether a limit is met."""
    return "met" if value <= limit else "MISSED"


def size_of(path: Path) -> str:
    """The length of a capture beside its limit, by its counts of segments and batches."""
    with zipfile.ZipFile(path) as archive:
        counts = json.loads(archive.read("manifest.json"))["counts"]
    limit = SEGMENT_BYTES * counts["segments"] + BATCH_BYTES * counts["batches"]
    length = path.stat().st_size
    return f"; {length:,} bytes of {counts['segments']:,} segments and {counts['batches']:,} batches, limit {limit:,}, {verdict(length, limit)}"


def ratio_of(one: Measured, other: Measured, limit: float) -> tuple[float, float]:
    """How much processor time one takes of what the other takes, and the limit."""
    return one.processor_seconds / max(other.processor_seconds, 0.01), limit


def of_partitions(root: Path, partitions: int, megabytes: int) -> None:
    """Captures of three brokers of many partitions, and `diff` over them and over the directories."""
    brokers = [root / f"captured-{partitions}-{megabytes}" / f"broker-{node}" for node in NODES]
    for node, broker in zip(NODES, brokers, strict=True):
        if not broker.exists():
            make_broker(broker, node, partitions, megabytes * 1_000_000 // len(NODES))
    captures = []
    for broker in brokers:
        captures.append(broker.with_suffix(".kfc"))
        taken = capture([broker], captures[-1])
        each = taken.processor_seconds / partitions * 1e3
        row(f"capture of {partitions:,} partitions", taken, None, None, f"; {each:.2f} ms each{size_of(captures[-1])}")
    of_files = measured(command("diff", *map(str, captures)), runs=1, expect=(0, 3))
    of_directories = measured(command("diff", *map(str, brokers)), runs=1, expect=(0, 3))
    note = f"; by the clock {of_files.seconds / max(of_directories.seconds, 0.01):.2f}"
    row(
        "diff over captures : over directories", of_files, of_directories, ratio_of(of_files, of_directories, 0.2), note
    )


def of_segments(root: Path) -> None:
    """Captures of one large segment and of three, beside `verify` and `sha256sum` of the same bytes."""
    segment = made_segment(root, "batches-16k")
    out = root / "segment.kfc"
    verify = command("verify", "--level", "crc", "--jobs", "1", str(segment))
    pairs = [
        (capture([segment.parent], out, "--all-batches", "--jobs", "1"), measured(verify, runs=1)) for _ in range(RUNS)
    ]
    taken, verified = sorted(pairs, key=lambda pair: ratio_of(pair[0], pair[1], 1.3))[RUNS // 2]
    row("capture of 1 GB : verify --level crc", taken, verified, ratio_of(taken, verified, 1.3), size_of(out))
    broker = root / "three-segments"
    names = [broker / f"orders-{number}" / segment.name for number in NODES]
    for one in names:
        one.parent.mkdir(parents=True, exist_ok=True)
        if not one.exists():
            one.hardlink_to(segment)
    (broker / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=6It1kTHbTjKY3LNflMZizQ\n")
    taken = capture([broker], root / "three.kfc", "--jobs", "2")
    files = "\\0".join(map(str, names))
    summed = measured(["sh", "-c", f"printf '{files}' | xargs -0 -n 1 -P 2 sha256sum"], runs=1)
    has_instructions = " sha_ni " in f" {Path('/proc/cpuinfo').read_text()} "
    words = "with" if has_instructions else "without"
    note = f"; by the clock {taken.seconds / max(summed.seconds, 0.01):.2f}, limit 0.50; the processor is {words} SHA instructions"
    row("capture of 3 x 1 GB by two processes : sha256sum by two", taken, summed, ratio_of(taken, summed, 0.5), note)


def of_directories(root: Path, count: int) -> None:
    """One capture of very many partition directories."""
    broker = root / f"directories-{count}"
    if not broker.exists():
        make_broker(broker, 1, count, 0)
    taken = capture([broker], broker.with_suffix(".kfc"))
    limit = SECONDS * count / DIRECTORIES
    note = f"; by the clock {taken.seconds:.1f} s, limit {limit:.1f}, {verdict(taken.seconds, limit)}{size_of(broker.with_suffix('.kfc'))}"
    row(f"capture of {count:,} directories", taken, None, None, note)


def main() -> None:
    """Make what is missing, and print a row for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=3_000, help="of the three brokers together")
    parser.add_argument("--directories", type=int, default=DIRECTORIES, help="of the capture of very many; 0 for none")
    parser.add_argument("--no-segments", action="store_true", help="without the rows of large segments")
    arguments = parser.parse_args()
    print(load())
    of_partitions(arguments.directory, arguments.partitions, arguments.megabytes)
    if not arguments.no_segments:
        of_segments(arguments.directory)
    if arguments.directories:
        of_directories(arguments.directory, arguments.directories)


if __name__ == "__main__":
    main()
