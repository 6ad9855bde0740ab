"""Damage that a segment alone can't show, in recorded partition directories: `python -m tests.evidence.directory_damage RECORDINGS [TRIALS]`.

Each trial copies a recorded partition with its log directory's checkpoints, damages it in one way and asks `verify`. *Told* – `verify` says something that it did not say before, be it a note;
*found* – a file is damaged; *located* – the damage is reported in the file that was touched, and in the touched bytes where only some were.
"""

import random
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kforensics.damage import Gravity
from kforensics.evidence.checks.consistency import verify_inputs
from kforensics.evidence.discovery.inputs import find_inputs
from kforensics.formats.log.batch_table import BatchTable
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.naming import FileKind, parse_file_name

SEED = 20_261_121
EPOCH_POSITION = 12
PAGE = 4096
LARGEST = 1 << 20
LOG_DIR_FILES = ("meta.properties", ".kafka_cleanshutdown")


class Touched(NamedTuple):
    """A file that is not as it was, and which bytes of it."""

    path: Path
    begin: int
    end: int


Damager = Callable[[random.Random, Path, Path], list[Touched] | None]
"""Damages a copied partition; the second path is another partition of the recording. Nothing where it has no place for such damage."""


def segments(partition: Path) -> list[Path]:
    """Those in use and those that are to be deleted."""
    return sorted(path for path in partition.iterdir() if parse_file_name(path.name).kind is FileKind.SEGMENT)


def batches(path: Path) -> BatchTable | None:
    """The batches of a segment of magic 2 that has several."""
    tables = [window.batches for window in walk_segment(MemoryBytes(path.read_bytes()), level=Level.CRC)]
    if len(tables) != 1 or len(tables[0]) < 4 or not (tables[0]["magic"] == 2).all():
        return None
    return tables[0]


def write(path: Path, position: int, new: bytes) -> Touched:
    data = path.read_bytes()
    path.write_bytes(data[:position] + new + data[position + len(new) :])
    return Touched(path, position, position + len(new))


def epoch_one_off(rng: random.Random, partition: Path, _: Path) -> list[Touched] | None:
    path = rng.choice(segments(partition))
    table = batches(path)
    if table is None:
        return None
    row = table[rng.randrange(len(table))]
    new = (int(row["partition_leader_epoch"]) + rng.choice((-1, 1))).to_bytes(4, "big", signed=True)
    return [write(path, int(row["position"]) + EPOCH_POSITION, new)]


def raised_last_offset(rng: random.Random, partition: Path, _: Path) -> list[Touched] | None:
    path = segments(partition)[-1]
    table = batches(path)
    if table is None:
        return None
    row = table[-1]
    base = int(row["base_offset"])
    bit = rng.choice([bit for bit in range(62) if not base >> bit & 1])
    return [write(path, int(row["position"]), (base | 1 << bit).to_bytes(8))]


def hole(rng: random.Random, partition: Path, _: Path) -> list[Touched] | None:
    """A page that was never written, as a file system leaves it in a sparse file."""
    path = rng.choice(segments(partition))
    pages = path.stat().st_size // PAGE
    if pages < 2:
        return None
    place = rng.randrange(pages) * PAGE
    before = path.read_bytes()
    with path.open("wb") as file:
        file.write(before[:place])
        file.seek(place + PAGE)
        file.write(before[place + PAGE :])
    return [Touched(path, place, place + PAGE)]


def exchanged(kind: FileKind) -> Damager:
    """A file exchanged with that of another partition."""

    def run(rng: random.Random, partition: Path, other: Path) -> list[Touched] | None:
        mine, theirs = (
            sorted(path for path in folder.iterdir() if parse_file_name(path.name).kind is kind)
            for folder in (partition, other)
        )
        if not mine or not theirs:
            return None
        path, source = rng.choice(mine), rng.choice(theirs)
        if path.read_bytes() == source.read_bytes() or not path.stat().st_size or not source.stat().st_size:
            return None
        shutil.copyfile(source, path)
        return [Touched(path, 0, path.stat().st_size)]

    return run


def segments_exchanged(rng: random.Random, partition: Path, _: Path) -> list[Touched] | None:
    """Two segments of one log under each other's names."""
    paths = [path for path in segments(partition) if path.suffix == ".log" and path.stat().st_size]
    if len(paths) < 2:
        return None
    one, two = rng.sample(paths, 2)
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    return [Touched(one, 0, len(second)), Touched(two, 0, len(first))]


DAMAGE: dict[str, Damager] = {
    "leader epoch one off": epoch_one_off,
    "base offset of the last batch raised by a bit": raised_last_offset,
    "a hole of 4 KiB": hole,
    "two segments exchanged": segments_exchanged,
    "a segment of another partition": exchanged(FileKind.SEGMENT),
    "an offset index of another partition": exchanged(FileKind.OFFSET_INDEX),
    "a time index of another partition": exchanged(FileKind.TIME_INDEX),
    "an epoch checkpoint of another partition": exchanged(FileKind.LEADER_EPOCH_CHECKPOINT),
}


def partitions(recordings: Path) -> Iterator[Path]:
    """Recorded partitions that stand in a log directory and are small."""
    for checkpoint in sorted(recordings.rglob("replication-offset-checkpoint")):
        for folder in sorted(path for path in checkpoint.parent.iterdir() if path.is_dir()):
            found = segments(folder) if "-" in folder.name else []
            if sum(path.stat().st_size for path in found) > 0 and all(path.stat().st_size <= LARGEST for path in found):
                yield folder


def copied(partition: Path, target: Path) -> Path:
    """The partition in a log directory of its own; what indexes have preallocated is left out."""
    log_dir = target / "broker"
    copy = log_dir / partition.name
    copy.mkdir(parents=True)
    for path in sorted(partition.iterdir()):
        data = path.read_bytes()
        is_index = parse_file_name(path.name).kind in {FileKind.OFFSET_INDEX, FileKind.TIME_INDEX}
        (copy / path.name).write_bytes(data.rstrip(b"\0") + bytes(8) if is_index and len(data) > LARGEST else data)
    for path in partition.parent.iterdir():
        if path.name in LOG_DIR_FILES or path.name.endswith("-offset-checkpoint"):
            shutil.copyfile(path, log_dir / path.name)
    return copy


GRAVE = frozenset({Gravity.DAMAGE, Gravity.TORN_TAIL, Gravity.REBUILDABLE})


def told_places(log_dir: Path) -> set[tuple[str, int, int, str, bool]]:
    """What `verify` says: the file, the bytes, the words, and whether it is damage."""
    verification = verify_inputs(find_inputs([log_dir]), level=Level.RECORDS, jobs=1)
    return {
        (str(log_dir / report.path), place.span.position, place.span.end, place.found, place.gravity in GRAVE)
        for report in verification.files
        for place in report.damage
    }


def measure(recordings: Path, trials: int) -> dict[str, list[int]]:
    """By kind of damage: how often it was tried, told, found and located."""
    every = list(partitions(recordings))
    rng = random.Random(SEED)
    tally: dict[str, list[int]] = defaultdict(lambda: [0] * 4)
    for name, damage in DAMAGE.items():
        attempts = 0
        while tally[name][0] < trials and attempts < trials * 20:
            attempts += 1
            partition, other = rng.choice(every), rng.choice(every)
            if partition.name == other.name:
                continue  # replicas of one partition hold the same
            with TemporaryDirectory() as folder:
                copy = copied(partition, Path(folder))
                before = told_places(copy.parent)
                touched = damage(rng, copy, other)
                if touched is None or any(place[-1] for place in before):
                    continue
                told = told_places(copy.parent) - before
                found = [place for place in told if place[-1]]
                row = tally[name]
                row[0] += 1
                row[1] += bool(told)
                row[2] += bool(found)
                row[3] += any(
                    path == str(one.path) and begin < max(one.end, 1) and end > one.begin
                    for path, begin, end, *_ in found
                    for one in touched
                )
    return tally


def main() -> None:
    """Print the table as it stands in docs/validation.md."""
    recordings, trials = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    sys.stdout.write("| damage | tried | noticed | found | located |\n|---|---|---|---|---|\n")
    for name, (tried, *counts) in measure(recordings, trials).items():
        shares = " | ".join(f"{100 * one / max(tried, 1):.1f}" for one in counts)
        sys.stdout.write(f"| {name} | {tried} | {shares} |\n")


if __name__ == "__main__":
    main()
