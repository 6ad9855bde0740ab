"""Read small ranges of many files, one request at a time and 64 at once; run as `python -m tests.benchmarks.ranges DIRECTORY [--files N]`.

Of each file of 256 KB its first 4 KB, 4 KB in its middle and its last 4 KB are read: with nothing of the files in memory, with all of it, and where each request that is not
answered from memory takes 10 ms more, as on a volume behind a network. Bytes and requests are counted by the reader; the pages of the files that are in memory afterwards, by
a second pass that does not wait for the disk.
"""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from kforensics.source.mapped import open_evidence, read_counts
from kforensics.source.ranges import MOST_REQUESTS, Range, read_ranges
from tests.benchmarks.measure import cold, load, warm

LENGTH, READ = 256 << 10, 4 << 10
DELAY = 0.01
A_FOLDER = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--files", type=int, default=2_000)
    arguments = parser.parse_args()
    print(load())
    paths = [
        arguments.directory / "ranges" / str(number // A_FOLDER) / f"{number:06}" for number in range(arguments.files)
    ]
    for path in paths:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(LENGTH))
    wanted = [Range(path, at, READ) for path in paths for at in (0, LENGTH // 2, LENGTH - READ)]
    for requests in (1, MOST_REQUESTS):
        for cache in ("cold", "warm", "cold, 10 ms a request"):
            # Ten milliseconds for each of a file's ranges in turn take minutes: a tenth of the files shows the same.
            asked = wanted[: len(wanted) // 10] if "ms" in cache and requests == 1 else wanted
            for path in paths:
                warm(path) if cache == "warm" else cold(path)
            with slow_disk() if "ms" in cache else mock.MagicMock():
                seconds, processor = timed(asked, requests)
            row = f"{requests:3} at once, {cache:22} {len(asked):7,} ranges {seconds:7.2f} s, processor {processor:5.2f} s"
            read = f"{read_counts.bytes / 1e6:6.1f} MB in {read_counts.requests:,} requests"
            print(f"{row}   {read}, {in_memory(asked):.0%} in memory afterwards", flush=True)


def timed(wanted: list[Range], requests: int) -> tuple[float, float]:
    """Seconds and processor seconds of one pass."""
    read_counts.reset()
    began, used = time.perf_counter(), time.process_time()
    for one in read_ranges(wanted, requests=requests):
        assert len(one.data) == READ
    return time.perf_counter() - began, time.process_time() - used


@contextmanager
def slow_disk() -> Iterator[None]:
    """Delay each request that may wait for the disk."""
    read = os.preadv

    def delayed(descriptor: int, buffers: list[memoryview], position: int, flags: int = 0) -> int:
        if not flags:
            time.sleep(DELAY)
        return read(descriptor, buffers, position, flags)

    with mock.patch("os.preadv", delayed):
        yield


def in_memory(wanted: list[Range]) -> float:
    """The part of the ranges that the page cache holds."""
    buffer = memoryview(bytearray(READ))
    held = 0
    for one in wanted:
        with open_evidence(one.path) as file:
            held += file.read_from_memory(one.position, buffer) == one.length
    return held / len(wanted)


if __name__ == "__main__":
    main()
