"""Recorded segments against kafka-python, which shares no code with Kafka or with us: every batch header, every record.

Both read the same bytes, so an agreement is a second opinion on the format and not on what the broker meant.
"""

from itertools import zip_longest
from pathlib import Path

import pytest

from kforensics.damage import Damage
from kforensics.formats.primitives.word_buffer import MemoryBytes
from kforensics.formats.segment.walk import Level, iter_records, walk_segment
from kforensics.source.naming import FileKind, parse_file_name

memory_records = pytest.importorskip("kafka.record.memory_records")

RECORDINGS = {  # records to compare at least
    "hw-loss-0.10": 100,
    "kip101-saves-0.11": 300,
    "mixed-magic-1.1": 500,
    "fast-failover-2.x": 200,
    "all-codecs-4.x": 2_000,
    "unclean-election-4.x": 500,
}
LARGEST = 4 << 20


def segments(root: Path) -> list[Path]:
    """The segments of a recording that are small enough for a decoder in plain Python."""
    return sorted(
        path
        for path in root.rglob("*.log")
        if parse_file_name(path.name).kind is FileKind.SEGMENT and path.stat().st_size <= LARGEST
    )


def theirs(data: bytes):
    """Batches and records by kafka-python, in our words."""
    batches, records = [], []
    source = memory_records.MemoryRecords(data)
    while source.has_next():
        batch = source.next_batch()
        assert batch.validate_crc()
        if batch.magic == 2:
            batches.append(
                (
                    batch.base_offset,
                    batch.last_offset,
                    batch.leader_epoch,
                    batch.attributes,
                    batch.producer_id,
                    batch.producer_epoch,
                    batch.base_sequence,
                    batch.max_timestamp,
                    batch.records_count,
                )
            )
        for one in batch:
            headers = [(name.encode(), value) for name, value in one.headers]
            time = -1 if one.timestamp is None else one.timestamp
            records.append((one.offset, time, one.key, one.value, headers))
    return batches, records


FIELDS = (
    "base_offset",
    "last_offset",
    "partition_leader_epoch",
    "attributes",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "max_timestamp",
    "count",
)


def ours(data: bytes):
    """The same by kforensics; nothing where a damaged place is met, which the other decoder does not read past."""
    source = MemoryBytes(data)
    windows = list(walk_segment(source, level=Level.RECORDS))
    if any(window.damage for window in windows):
        return None
    found = [one for one in iter_records(source) if not isinstance(one, Damage)]
    batches = [
        tuple(int(row[name]) for name in FIELDS) for window in windows for row in window.batches if row["magic"] == 2
    ]
    return batches, [(one.offset, one.timestamp_ms, one.key, one.value, list(one.headers)) for one in found]


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.some("all-codecs-4.x", "kip101-saves-0.11", "hw-loss-0.10")
def test_batches_and_records_are_what_kafka_python_reads(name, incident):
    compared = 0
    for path in segments(incident(name)):
        data = path.read_bytes()
        expected = ours(data)
        if expected is None:
            continue
        batches, records = theirs(data)

        assert batches == expected[0], path
        for other, own in zip_longest(records, expected[1]):
            assert other == own, path
        compared += len(records)
    assert compared >= RECORDINGS[name]
