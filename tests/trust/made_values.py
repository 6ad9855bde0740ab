"""Small clusters whose logs are made of batches at the edges of what their fields hold, with a checksum that holds."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from kforensics.formats.log.batches import RecordBatch, build_record_batch, encode_record_batch
from kforensics.formats.log.records import BodyRecord
from tests.builders.directories import log_dir

TIME_MS = 1_700_000_000_000
END = 2**63


def _batch(base: int, *, count: int = 3, **fields: Any) -> RecordBatch:
    made = build_record_batch(base, [(TIME_MS + at, b"k1", b"v%d" % at) for at in range(count)])
    return replace(made, **fields)


_ODD_RECORDS = (
    BodyRecord(2**62, 2**31 - 1, b"k1", b"v"),
    BodyRecord(-(2**63), -(2**31), b"k1", b"v"),
    BodyRecord(2**63 - 1, 0, None, None),
)

LOGS: Sequence[Sequence[RecordBatch]] = (
    (_batch(0), _batch(3), _batch(6, partition_leader_epoch=1)),
    (_batch(0), _batch(END - 3)),
    (_batch(END - 3),),
    (_batch(END - 1, count=1, last_offset_delta=2**31 - 1),),
    (_batch(END - 5, count=1, last_offset_delta=2**31 - 1), _batch(END - 3, count=1)),
    (_batch(END - 3, partition_leader_epoch=5), _batch(-5, partition_leader_epoch=6)),
    (_batch(0), _batch(3, last_offset_delta=-5), _batch(6)),
    (_batch(0), _batch(3, last_offset_delta=-(2**31)), _batch(6)),
    (_batch(0), _batch(3, last_offset_delta=2**31 - 1), _batch(6)),
    (_batch(0, max_timestamp=END - 1, base_timestamp=-END), _batch(3, base_timestamp=END - 1, max_timestamp=-END)),
    (_batch(0, base_timestamp=TIME_MS * 1000, max_timestamp=TIME_MS * 1000), _batch(3)),
    (_batch(0, partition_leader_epoch=2**31 - 1), _batch(3, partition_leader_epoch=-(2**31)), _batch(6)),
    (_batch(0, partition_leader_epoch=-(2**31)), _batch(3, partition_leader_epoch=-5)),
    (
        _batch(0, producer_id=END - 1, producer_epoch=2**15 - 1, base_sequence=2**31 - 1),
        _batch(3, producer_id=-END, producer_epoch=-(2**15), base_sequence=-(2**31)),
        _batch(6, producer_id=-2, producer_epoch=0, base_sequence=0, attributes=16),
        _batch(9, producer_id=-2, producer_epoch=0, attributes=48),
    ),
    (_batch(0, records=_ODD_RECORDS),),
    (_batch(0, count=0, last_offset_delta=5), _batch(6)),
    (_batch(0, attributes=64, base_timestamp=END - 1), _batch(3, attributes=64, base_timestamp=-1)),
)

CHECKPOINTS = (
    (),
    (END - 1, 0, END - 1),
    (-1, END - 1, -5),
    (-END, -5, 0),
    (3, 2, 3),
    (5, END - 2, 1),
)
"""High watermark, log start and recovery point, or none."""

_NAMES = ("replication-offset-checkpoint", "log-start-offset-checkpoint", "recovery-point-offset-checkpoint")


def made_tree(random: Random, target: Path) -> list[str]:
    """Make two brokers of now and one of before, each with a log of its own; return which."""
    chosen = []
    for place, node in (("now", 1), ("now", 2), ("before", 1)):
        number = random.randrange(len(LOGS))
        folder = log_dir(target / place / f"broker-{node}", node)
        log = LOGS[number]
        path = folder / "orders-0" / f"{max(log[0].base_offset, 0):020d}.log"
        path.write_bytes(b"".join(map(encode_record_batch, log)))
        values = random.choice(CHECKPOINTS)
        for name, value in zip(_NAMES, values, strict=False):
            (folder / name).write_text(f"0\n1\norders 0 {value}\n")
        chosen.append(f"{place}/broker-{node}: log {number}, checkpoints {values}")
    return chosen
