"""Generate large segments with the encoders and time their reading; run as `python -m tests.benchmarks.segments DIRECTORY [NAME …]`.

Each measurement is a process of its own, so that interpreter start and peak memory (`ru_maxrss`) count. Files are kept in the directory and reused.
"""

import argparse
import random
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from kforensics.formats.log.batches import build_record_batch, encode_record_batch
from kforensics.formats.primitives.numbers import Codec
from tests.benchmarks.measure import warm

SEED = 20_240_229
FIRST_TIMESTAMP_MS = 1_700_000_000_000
DISTINCT_BATCHES = 32


@dataclass(frozen=True)
class Shape:
    """One kind of segment: how large, how many records a batch, how large a value, which codec."""

    length: int
    records: int
    value_length: int
    codec: Codec = Codec.NONE


_THIS = (sys.executable, "-m", "tests.benchmarks.segments")

MB = 1_000_000
SHAPES = {
    "batches-16k": Shape(1000 * MB, 40, 394),
    "one-record": Shape(300 * MB, 1, 110),
    "huge-batches": Shape(400 * MB, 20_000, 394),
    "tiny-batches": Shape(100 * MB, 1, 1),
    "tiny-batches-1g": Shape(1000 * MB, 1, 1),
    "zstd": Shape(200 * MB, 40, 394, Codec.ZSTD),
    "lz4": Shape(200 * MB, 40, 394, Codec.LZ4),
    "snappy": Shape(200 * MB, 40, 394, Codec.SNAPPY),
    "gzip": Shape(200 * MB, 40, 394, Codec.GZIP),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*", default=list(SHAPES))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--generate", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--walk", nargs=2, metavar=("FILE", "LEVEL"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.walk:
        walk(Path(arguments.walk[0]), arguments.walk[1])
        return
    if arguments.generate:
        generate(arguments.directory, SHAPES[arguments.generate], arguments.count)
        return
    for name in arguments.names or SHAPES:
        path = made_segment(arguments.directory, name)
        for level in ("headers", "crc", "records"):
            command = [*_THIS, str(arguments.directory), "--walk", str(path), level]
            times, output = zip(*(timed(command) for _ in range(arguments.repeat)), strict=True)
            print(f"{name:14} {level:8} {min(times):6.2f} s whole process; {output[0]}", flush=True)


def segment_path(directory: Path, name: str) -> Path:
    return directory / name / f"{0:020}.log"


def made_segment(directory: Path, name: str) -> Path:
    """A segment of that shape, made where it is missing, by a process of its own: a child's peak memory starts with that of its parent."""
    path = segment_path(directory, name)
    if not path.exists():
        _generate(path.parent, name, 1)
    warm(path)
    return path


def made_partition(directory: Path, name: str, count: int) -> list[Path]:
    """So many segments of that shape one behind the other in a directory, made where they are missing."""
    paths = sorted(directory.glob("*.log"))
    if len(paths) != count:
        _generate(directory, name, count)
        paths = sorted(directory.glob("*.log"))
    for path in paths:
        warm(path)
    return paths


def _generate(directory: Path, name: str, count: int) -> None:
    subprocess.run([*_THIS, str(directory), "--generate", name, "--count", str(count)], check=True)


def timed(command: list[str]) -> tuple[float, str]:
    started = time.perf_counter()
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - started, output.strip()


def walk(path: Path, level: str) -> None:
    from kforensics.formats.segment.walk import Level, walk_segment
    from kforensics.source.mapped import open_evidence

    started = time.perf_counter()
    batches = records = damage = 0
    with open_evidence(path) as source:
        for window in walk_segment(source, level=Level(level)):
            batches += len(window.batches)
            records += window.record_count
            damage += len(window.damage)
        size = source.size
    seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        f"in process {seconds:5.2f} s, {size / MB / seconds:6.0f} MB/s; processor {used.ru_utime + used.ru_stime:5.2f} s; "
        f"{used.ru_maxrss // 1024} MiB peak; {batches} batches, {records} records, {damage} damage"
    )


def generate(directory: Path, shape: Shape, count: int = 1) -> None:
    """Repeat a few distinct batches under rising base offsets, which no checksum covers."""
    directory.mkdir(parents=True, exist_ok=True)
    random.seed(SEED)
    made = [encoded_batch(shape) for _ in range(DISTINCT_BATCHES if shape.records < 1000 else 4)]
    offset = 0
    for _ in range(count):
        written = index = 0
        with (directory / f"{offset:020}.log").open("wb") as file:
            while written < shape.length:
                batch = made[index % len(made)]
                file.write(offset.to_bytes(8) + batch[8:])
                written += len(batch)
                offset += shape.records
                index += 1


def encoded_batch(shape: Shape) -> bytes:
    make = compressible_value if shape.codec else random.randbytes
    records = [
        (FIRST_TIMESTAMP_MS + index // 3, random.randbytes(8).hex()[:8].encode(), make(shape.value_length))
        for index in range(shape.records)
    ]
    return encode_record_batch(build_record_batch(0, records, partition_leader_epoch=3, codec=shape.codec))


WORDS = [
    "orders",
    "payment",
    "customer",
    "4711",
    "shipped",
    "pending",
    "amount",
    "currency",
    "EUR",
    "total",
    "street",
    "city",
    "0049",
    "item",
]


def compressible_value(length: int) -> bytes:
    """Text that compresses about as well as JSON does."""
    words: list[str] = []
    while sum(map(len, words)) + len(words) < length:
        words.append(random.choice(WORDS) if random.random() < 0.7 else str(random.randrange(10**6)))
    return " ".join(words).encode()[:length]


if __name__ == "__main__":
    main()
