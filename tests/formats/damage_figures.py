"""The damage matrix with figures: `python -m tests.formats.damage_figures [SEGMENTS]` damages clean segments in every way and counts what is told.

Columns, in percent: *found* – anything was reported; *located* – a reported run of bytes meets the damage; *minimal* – nothing outside of the
touched batches was reported; *read on* – every untouched batch was read as sound; *invented* – batches called sound that were never written.
"""

import random
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from tests.formats.segments import batches_of, walked

FORMATS = [(2, codec) for codec in range(5)] + [(magic, codec) for magic in (0, 1) for codec in range(4)]
SEED = 20_261_121


class Damaged(NamedTuple):
    """A damaged copy, the run of bytes that is not as it was, and the batches that are."""

    data: bytes
    begin: int
    end: int
    untouched: list[bytes]


Batches = list[bytes]
Damager = Callable[[random.Random, Batches], Damaged]


def patch(batches: Batches, index: int, offset: int, new: bytes) -> Damaged:
    """Bytes of one batch replaced."""
    start = sum(map(len, batches[:index])) + offset
    whole = b"".join(batches)
    data = whole[:start] + new + whole[start + len(new) :]
    return Damaged(data, start, start + len(new), intact(batches, data))


def intact(batches: Batches, data: bytes) -> list[bytes]:
    """Batches that stand at their old place as they were; for damage that moves nothing."""
    kept, position = [], 0
    for batch in batches:
        if data[position : position + len(batch)] == batch:
            kept.append(batch)
        position += len(batch)
    return kept


def flipped(batches: Batches, index: int, place: int, bit: int) -> Damaged:
    return patch(batches, index, place, bytes([batches[index][place] ^ 1 << bit]))


def field(position: int, width: int, make: Callable[[random.Random, int], int]) -> Damager:
    """A number in the header of a batch that is not the last replaced by another."""

    def run(rng: random.Random, batches: Batches) -> Damaged:
        index = rng.randrange(1, len(batches) - 2)
        old = int.from_bytes(batches[index][position : position + width], "big")
        new = make(rng, old) & ((1 << 8 * width) - 1)
        return patch(batches, index, position, (new if new != old else old ^ 1).to_bytes(width, "big"))

    return run


def bit_in_body(rng: random.Random, batches: Batches) -> Damaged:
    index = rng.randrange(len(batches) - 1)
    return flipped(batches, index, rng.randrange(17, len(batches[index])), rng.randrange(8))


def byte_in_body(rng: random.Random, batches: Batches) -> Damaged:
    index = rng.randrange(len(batches) - 1)
    place = rng.randrange(17, len(batches[index]))
    return patch(batches, index, place, bytes([(batches[index][place] + rng.randrange(1, 256)) % 256]))


def page(content: Callable[[random.Random], bytes]) -> Damager:
    def run(rng: random.Random, batches: Batches) -> Damaged:
        whole = b"".join(batches)
        start = rng.randrange(0, max(len(whole) - 4096, 1))
        new = content(rng)[: len(whole) - start]
        data = whole[:start] + new + whole[start + len(new) :]
        return Damaged(data, start, start + len(new), intact(batches, data))

    return run


def shifted(rng: random.Random, batches: Batches) -> Damaged:
    index = rng.randrange(1, len(batches) - 2)
    place = rng.randrange(20, len(batches[index]))
    start = sum(map(len, batches[:index])) + place
    whole = b"".join(batches)
    return Damaged(
        whole[:start] + rng.randbytes(512) + whole[start:], start, start + 512, batches[:index] + batches[index + 1 :]
    )


def truncated(rng: random.Random, batches: Batches) -> Damaged:
    whole = b"".join(batches)
    cut = len(whole) - rng.randrange(1, len(batches[-1]))
    return Damaged(whole[:cut], cut - 1, cut, batches[:-1])


def swapped(rng: random.Random, batches: Batches) -> Damaged:
    index = rng.randrange(1, len(batches) - 2)
    order = [*batches[:index], batches[index + 1], batches[index], *batches[index + 2 :]]
    start = sum(map(len, batches[:index]))
    return Damaged(
        b"".join(order),
        start,
        start + len(batches[index]) + len(batches[index + 1]),
        [*batches[:index], *batches[index + 2 :]],
    )


def doubled(rng: random.Random, batches: Batches) -> Damaged:
    index = rng.randrange(1, len(batches) - 2)
    start = sum(map(len, batches[: index + 1]))
    order = [*batches[: index + 1], batches[index], *batches[index + 1 :]]
    return Damaged(b"".join(order), start, start + len(batches[index]), batches)


def missing(rng: random.Random, batches: Batches) -> Damaged:
    index = rng.randrange(1, len(batches) - 2)
    hole = bytes(len(batches[index]))
    return patch(batches, index, 0, hole)


DAMAGE: dict[str, Damager] = {
    "one bit under the checksum": bit_in_body,
    "one byte under the checksum": byte_in_body,
    "4 KiB of zeros": page(lambda _: bytes(4096)),
    "4 KiB of foreign bytes": page(lambda rng: rng.randbytes(4096)),
    "512 bytes inserted": shifted,
    "torn tail": truncated,
    "a batch of zeros": missing,
    "length 0": field(8, 4, lambda *_: 0),
    "length -1": field(8, 4, lambda *_: -1),
    "length 2^31-1": field(8, 4, lambda *_: 2**31 - 1),
    "length a little wrong": field(8, 4, lambda rng, old: old + rng.choice((-3, -1, 1, 7))),
    "magic of another kind": field(
        16, 1, lambda rng, old: rng.choice([one for one in (0, 1, 2, 3, 255) if one != old])
    ),
    "stored checksum": field(17, 4, lambda rng, _: rng.getrandbits(32)),
    "base offset too low": field(0, 8, lambda rng, old: old - rng.randrange(20, 1 << 40)),
    "base offset too high": field(0, 8, lambda rng, old: old + rng.randrange(1 << 10, 1 << 40)),
    "leader epoch far off": field(12, 4, lambda rng, old: old + rng.choice((-1, 1)) * rng.randrange(100, 1 << 30)),
    "leader epoch one off": field(12, 4, lambda rng, old: old + rng.choice((-1, 1))),
    "two batches exchanged": swapped,
    "a batch twice": doubled,
}
ONLY_OF_MAGIC_2 = frozenset({"leader epoch far off", "leader epoch one off", "stored checksum"})


def measure(segments: int) -> dict[str, list[int]]:
    """By kind of damage: how often it was tried, found, located, minimal, read on behind it, and batches that were invented."""
    tally: dict[str, list[int]] = defaultdict(lambda: [0] * 6)
    for number in range(segments):
        magic, codec = FORMATS[number % len(FORMATS)]
        rng = random.Random(SEED + number)
        batches = batches_of(rng, magic, codec)
        written = set(batches)
        clean = walked(b"".join(batches))
        tally["none (clean segments)"][0] += 1
        tally["none (clean segments)"][1] += bool(clean.damage)
        for name, damage in DAMAGE.items():
            if magic < 2 and name in ONLY_OF_MAGIC_2:
                continue
            for _ in range(5):
                made = damage(rng, batches)
                found = walked(made.data)
                sound = [
                    made.data[int(row["position"]) : int(row["position"] + row["length"])]
                    for row in found.batches
                    if row["crc_valid"]
                ]
                touched = touched_run(batches, made)
                row = tally[name]
                row[0] += 1
                row[1] += bool(found.damage)
                row[2] += any(one.span.position < made.end and one.span.end > made.begin for one in found.damage)
                row[3] += all(one.span.position >= touched[0] and one.span.end <= touched[1] for one in found.damage)
                row[4] += set(made.untouched) <= set(sound)
                row[5] += sum(one not in written and not stands_in(one, made) for one in sound)
    return tally


def touched_run(batches: Batches, made: Damaged) -> tuple[int, int]:
    """The bytes of the damaged copy from the first to the last batch that the damage meets."""
    starts, position = [], 0
    for batch in batches:
        starts.append(position)
        position += len(batch)
    grown = len(made.data) - position
    first = max((start for start in starts if start <= made.begin), default=0)
    last = min((start for start in [*starts, position] if start >= made.end - max(grown, 0)), default=position)
    return first, min(last + max(grown, 0), len(made.data))


def stands_in(batch: bytes, made: Damaged) -> bool:
    """A batch that only differs where no checksum reaches: that it was written is true, what is wrong with it is reported."""
    return made.data.find(batch, max(made.begin - len(batch), 0), made.end + len(batch)) >= 0


def main() -> None:
    """Print the table as it stands in docs/validation.md."""
    segments = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    sys.stdout.write(
        "| damage | tried | found | located | minimal | read on | invented |\n|---|---|---|---|---|---|---|\n"
    )
    for name, (tried, found, located, minimal, read_on, invented) in measure(segments).items():
        if name.startswith("none"):
            sys.stdout.write(f"| {name} | {tried} | {found} false | | | | |\n")
            continue
        shares = " | ".join(f"{100 * one / tried:.1f}" for one in (found, located, minimal, read_on))
        sys.stdout.write(f"| {name} | {tried} | {shares} | {invented} |\n")


if __name__ == "__main__":
    main()
