"""Segments made for tests, and the recorded ones."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kforensics.damage import Damage
from kforensics.formats.log.batch_table import BatchTable
from kforensics.formats.log.batches import Message, build_record_batch, encode_message_set, encode_record_batch
from kforensics.formats.primitives.numbers import Codec
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import Level, walk_segment

FIRST_TIMESTAMP_MS = 1_700_000_000_000


class Walked(NamedTuple):
    """All that a walk found."""

    batches: list[BatchTable]
    damage: list[Damage]
    record_count: int


def walked(data: bytes | bytearray, level: Level = Level.RECORDS, start: int = 0, end: int | None = None) -> Walked:
    windows = list(walk_segment(MemoryBytes(data), level=level, start=start, end=end))
    batches = [row for window in windows for row in window.batches]
    return Walked(
        batches,
        [damage for window in windows for damage in window.damage],
        sum(window.record_count for window in windows),
    )


def recorded_logs(incident: Callable[[str], Path], *names: str) -> Iterator[Path]:
    for name in names:
        found = sorted((incident(name) / "snapshots").rglob("*.log"))
        assert found
        yield from found


def sound_batch(base_offset: int, count: int = 3, value: bytes = b"value", **more: Any) -> bytes:
    """A batch of magic 2 with nothing wrong."""
    records = [(FIRST_TIMESTAMP_MS + place, b"key", value) for place in range(count)]
    return encode_record_batch(build_record_batch(base_offset, records, **more))


def batches_of(rng: random.Random, magic: int, codec: int, count: int = 30) -> list[bytes]:
    """Encoded batches with rising offsets and epochs, plain messages one by one."""
    offset, leader_epoch = rng.randrange(1000), rng.randrange(5)
    batches = []
    for index in range(count):
        records = [
            (
                FIRST_TIMESTAMP_MS + index * 10 + place,
                rng.choice([None, rng.randbytes(5)]),
                rng.randbytes(rng.randrange(300)),
            )
            for place in range(rng.randrange(1, 8))
        ]
        leader_epoch += rng.random() < 0.1
        if magic == 2:
            batch = build_record_batch(offset, records, codec=Codec(codec), partition_leader_epoch=leader_epoch)
            batches.append(encode_record_batch(batch))
        else:
            messages = [
                Message(offset + place, magic, 0, time if magic else -1, key, value)
                for place, (time, key, value) in enumerate(records)
            ]
            sets = [messages] if codec else [[message] for message in messages]
            batches += [encode_message_set(one, codec=codec) for one in sets]
        offset += len(records)
    return batches
