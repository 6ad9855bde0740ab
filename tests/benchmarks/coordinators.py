"""Time groups and transactions: `python -m tests.benchmarks.coordinators DIRECTORY [--commits 10000000] [--producers 1000000]`; the data is made where it is missing.

With `--kafka-libs JARS [--bytes 1000000000]` instead, beside `kafka-dump-log` and `verify --level crc`, in turn:

- `groups` over so many bytes of `__consumer_offsets`, beside `kafka-dump-log --offsets-decoder`;
- `transactions` over so many bytes of a log of transactions, beside `verify --level crc` of the same, beside `kafka-dump-log` alone, and beside
  `kafka-dump-log --deep-iteration`, which alone shows what a marker says, with the awk behind it that shows which transactions are open.

Without it:

- `groups` over a partition of `__consumer_offsets` with so many commits of 1,000 positions: memory is to grow with the positions, not with the commits;
- `transactions` over a log in which so many producers each wrote one transaction: memory is to grow with those that are open, here one in 10,000.
"""

import argparse
import random
import shlex
import sys
from pathlib import Path

from tests.benchmarks.measure import dump_log, kforensics, line, load, measured, warm
from tests.builders.coordinators import NOW, batch, commit, marker

POSITIONS = 1_000
OPEN_OF = 10_000
PRODUCERS = 32
OPEN_BY_AWK = (
    "/isTransactional: true isControl: false/ {if (!($12 in first)) first[$12] = $2} "
    "/isControl: true/ {producer = $12} /endTxnMarker/ {delete first[producer]} "
    "END {for (one in first) print one, first[one]}"
)
IN_TRANSACTION = [(b"key-%04d" % at, random.Random(at).randbytes(394)) for at in range(40)]


def make_commits(folder: Path, commits: int) -> None:
    """A partition of `__consumer_offsets` of batches with a commit of each position, and a log that the positions are in."""
    data = batch(0, _commits())
    with _segment(folder / "__consumer_offsets-0").open("wb") as file:
        for at in range(commits // POSITIONS):
            # The base offset is in front of what the checksum covers.
            file.write((at * POSITIONS).to_bytes(8, "big") + data[8:])


def make_producers(folder: Path, producers: int) -> None:
    """A log in which each producer wrote a batch and, but for one in 10,000, the coordinator a marker."""
    offset = 0
    with _segment(folder / "orders-0").open("wb") as file:
        for producer in range(producers):
            file.write(batch(offset, [(b"k", b"v")], producer=producer, transactional=True))
            offset += 1
            if producer % OPEN_OF:
                file.write(marker(offset, producer, commits=True, time_ms=NOW))
                offset += 1


def make_transactions(folder: Path, length: int) -> None:
    """A log of transactions of eight batches of 16 KB and a marker each, by 32 producers in turn."""
    made = [
        (batch(0, IN_TRANSACTION, producer=producer, transactional=True), marker(0, producer, commits=True))
        for producer in range(PRODUCERS)
    ]
    written = offset = 0
    with _segment(folder / "orders-0").open("wb") as file:
        while written < length:
            data, end = made[offset // (8 * len(IN_TRANSACTION) + 1) % PRODUCERS]
            for part, count in (*((data, len(IN_TRANSACTION)) for _ in range(8)), (end, 1)):
                file.write(offset.to_bytes(8, "big") + part[8:])
                offset, written = offset + count, written + len(part)


def beside_kafka(directory: Path, libraries: Path, length: int, runs: int) -> None:
    """Print a row for each command, with what it is held against."""
    commits = length // len(batch(0, _commits())) * POSITIONS
    made = (
        (directory / f"offsets-{length}", make_commits, commits),
        (directory / f"transactional-{length}", make_transactions, length),
    )
    for folder, make, size in made:
        if not folder.exists():
            make(folder, size)
        warm(next(folder.rglob("*.log")))
    offsets, transactional = (folder for folder, _, _ in made)
    found = measured(kforensics("groups", str(offsets), "-q"), runs=runs, expect=(0, 1, 3))
    peer = measured(dump_log(libraries, next(offsets.rglob("*.log")), "--offsets-decoder"), runs=runs)
    print(line(f"groups, {length:,} bytes", found, peer, 6.0), flush=True)
    found = measured(kforensics("transactions", str(transactional), "-q"), runs=runs, expect=(0, 1, 3))
    crc = measured(kforensics("verify", str(transactional), "--level", "crc", "-q"), runs=runs, expect=(0, 1, 3))
    ratio = found.processor_seconds / crc.processor_seconds
    print(
        f"transactions beside verify --level crc: {found.processor_seconds:.2f} / {crc.processor_seconds:.2f} s, {ratio:.2f}x   (at most 1.3)",
        flush=True,
    )
    peer = measured(dump_log(libraries, next(transactional.rglob("*.log"))), runs=runs)
    print(line(f"transactions, {length:,} bytes", found, peer), flush=True)
    told = shlex.join(dump_log(libraries, next(transactional.rglob("*.log")), "--deep-iteration"))
    peer = measured(["sh", "-c", f"{told} | awk {shlex.quote(OPEN_BY_AWK)}"], runs=runs)
    print(line("the same with markers and awk", found, peer, 10.0), flush=True)


def _commits() -> list[tuple[bytes, bytes | None]]:
    return [commit(f"group-{at // 10}", "orders", at % 10, at) for at in range(POSITIONS)]


def _segment(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder / f"{0:020}.log"


def main() -> int:
    """Make what is missing, and print a row a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--commits", type=int, default=10_000_000)
    parser.add_argument("--producers", type=int, default=1_000_000)
    parser.add_argument("--kafka-libs", type=Path)
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    print(load())
    if given.kafka_libs:
        beside_kafka(given.directory, given.kafka_libs, given.bytes, given.runs)
        return 0
    for command, make, count in (
        ("groups", make_commits, given.commits),
        ("transactions", make_producers, given.producers),
    ):
        for size in (count // 10, count):
            folder = given.directory / f"{command}-{size}"
            if not folder.exists():
                make(folder, size)
            words = [sys.executable, "-m", "kforensics", command, str(folder), "--jobs", "1", "--quiet"]
            print(line(f"{command}, {size:,}", measured(words, runs=1, expect=(0, 1, 3)), None), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
