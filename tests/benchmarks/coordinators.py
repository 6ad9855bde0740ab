"""Time groups and transactions: `python -m tests.benchmarks.coordinators DIRECTORY [--commits 10000000] [--producers 1000000]`; the data is made where it is missing.

- `groups` over a partition of `__consumer_offsets` with so many commits of 1,000 positions: memory is to grow with the positions, not with the commits;
- `transactions` over a log in which so many producers each wrote one transaction: memory is to grow with those that are open, here one in 10,000.
"""

import argparse
import sys
from pathlib import Path

from tests.benchmarks.measure import line, load, measured
from tests.builders.coordinators import NOW, batch, commit, marker

POSITIONS = 1_000
OPEN_OF = 10_000


def make_commits(folder: Path, commits: int) -> None:
    """A partition of `__consumer_offsets` of batches with a commit of each position, and a log that the positions are in."""
    data = batch(0, [commit(f"group-{at // 10}", "orders", at % 10, at) for at in range(POSITIONS)])
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


def _segment(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder / f"{0:020}.log"


def main() -> int:
    """Make what is missing, and print a row a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--commits", type=int, default=10_000_000)
    parser.add_argument("--producers", type=int, default=1_000_000)
    given = parser.parse_args()
    print(load())
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
