"""Mutations of recordings that a seed decides alone: the kinds of damage that disks, crashes and attackers make."""

from collections.abc import Callable, Iterator, Sequence
from random import Random

INTERESTING = (
    0,
    1,
    -1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    1 << 62,
    (1 << 64) - 1,
)
TOKENS = (
    b"\x00" * 61,
    b"\xff" * 10,
    b"\x80" * 10 + b"\x01",
    b"\x1b[2J",
    b"\xe2\x80\xae",
    b"\n",
    b"\r\n",
    b"=",
    b"{",
    b"[" * 40,
    b"9" * 5000,
)
LONGEST = 1 << 16


def mutate(random: Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds with one to eight changes."""
    data = bytearray(random.choice(seeds))
    for _ in range(1 + int(random.expovariate(0.8)) % 8):
        random.choice(_MUTATIONS)(random, data, seeds)
    return bytes(data[:LONGEST])


def mutations(seed: int, seeds: Sequence[bytes]) -> Iterator[bytes]:
    """An endless run of mutated inputs, the same for the same seed."""
    random = Random(seed)
    while True:
        yield mutate(random, seeds)


def _bit(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _byte(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] = random.randrange(256)


def _number(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    width = random.choice((1, 2, 4, 8))
    if len(data) >= width:
        place = random.randrange(len(data) - width + 1)
        value = random.choice(INTERESTING) & ((1 << 8 * width) - 1)
        data[place : place + width] = value.to_bytes(width, random.choice(("big", "little")))


def _zeros(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        place = random.randrange(len(data))
        length = min(random.choice((4, 61, 512, 4096)), len(data) - place)
        data[place : place + length] = bytes(length)


def _cut(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        del data[random.randrange(len(data)) :]


def _remove(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        place = random.randrange(len(data))
        del data[place : place + random.choice((1, 2, 4, 8, 64))]


def _insert(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    place = random.randrange(len(data) + 1)
    data[place:place] = (
        random.choice(TOKENS) if random.random() < 0.5 else random.randbytes(random.choice((1, 2, 4, 8)))
    )


def _copy(random: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = random.choice(seeds)
    if other:
        place = random.randrange(len(other))
        piece = other[place : place + random.choice((4, 16, 61, 200))]
        at = random.randrange(len(data) + 1)
        data[at : at + random.choice((0, len(piece)))] = piece


def _double(random: Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data and len(data) < LONGEST // 2:
        place = random.randrange(len(data))
        data[place:place] = data[place : place + random.choice((8, 61, 1000))]


_MUTATIONS: tuple[Callable[[Random, bytearray, Sequence[bytes]], None], ...] = (
    _bit, _bit, _byte, _number, _number, _zeros, _cut, _remove, _insert, _copy, _double,
)  # fmt: skip
