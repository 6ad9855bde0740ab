"""Write batches as segment files: log, offset index and time index, rolled and indexed as `LogSegment.append` does."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from kforensics.formats.index.offset import encode_index, offset_index
from kforensics.formats.index.producer_snapshot import encode_producers
from kforensics.formats.index.time import time_index
from kforensics.formats.log.message_set import Message, encode_message_set
from kforensics.formats.log.record_batch import build_record_batch, encode_record_batch
from kforensics.simulation.replica import SimulatedBatch

INDEX_INTERVAL_LENGTH = 4_096
PREALLOCATED_INDEX_LENGTH = 65_536
"""A small `log.index.size.max.bytes`, so that generated directories stay small where holes are not kept."""


@lru_cache(maxsize=65_536)
def encode_batch(batch: SimulatedBatch, magic: int) -> bytes:
    """Encode a batch; every replica that holds it has the same bytes.

    Args:
        batch: with its records and leader epoch.
        magic: of the messages or the batch.
    """
    pairs = [(f"key-{record}".encode(), f"value of {record}".encode()) for record in batch.records]
    if magic < 2:
        messages = [
            Message(batch.base_offset + index, magic, 0, batch.timestamp_ms, key, value)
            for index, (key, value) in enumerate(pairs)
        ]
        return encode_message_set(messages)
    records = [(batch.timestamp_ms, key, value) for key, value in pairs]
    return encode_record_batch(
        build_record_batch(batch.base_offset, records, partition_leader_epoch=batch.leader_epoch)
    )


@dataclass(slots=True)
class SegmentFiles:
    """One segment while it is built."""

    base_offset: int
    log: bytearray = field(default_factory=bytearray)
    offset_entries: list[tuple[int, int]] = field(default_factory=list)
    time_entries: list[tuple[int, int]] = field(default_factory=list)
    _since_entry: int = 0
    _max_timestamp_ms: int = -1
    _max_timestamp_offset: int = 0

    def __post_init__(self) -> None:
        self._max_timestamp_offset = self.base_offset

    def append(self, data: bytes, *, last_offset: int, timestamp_ms: int) -> None:
        """Append one batch, and an index entry if enough bytes have followed the last one."""
        if timestamp_ms > self._max_timestamp_ms:
            self._max_timestamp_ms, self._max_timestamp_offset = timestamp_ms, last_offset
        if self._since_entry > INDEX_INTERVAL_LENGTH:
            self.offset_entries.append((last_offset - self.base_offset, len(self.log)))
            self._add_time()
            self._since_entry = 0
        self.log += data
        self._since_entry += len(data)

    def write(self, folder: Path, *, is_closed: bool) -> None:
        """Write the three files; a closed segment's indexes are trimmed and its time index ends with its newest record.

        Args:
            is_closed: whether a later segment follows, or the broker stopped cleanly.
        """
        stem = f"{self.base_offset:020d}"
        if is_closed:
            self._add_time()
        folder.joinpath(f"{stem}.log").write_bytes(self.log)
        preallocated = 0 if is_closed else PREALLOCATED_INDEX_LENGTH
        index = offset_index(self.offset_entries, preallocated=preallocated)
        folder.joinpath(f"{stem}.index").write_bytes(encode_index(index))
        times = time_index(self.time_entries, preallocated=preallocated - preallocated % 12)
        folder.joinpath(f"{stem}.timeindex").write_bytes(encode_index(times))

    def _add_time(self) -> None:
        if not self.time_entries or self._max_timestamp_ms > self.time_entries[-1][0]:
            self.time_entries.append((max(self._max_timestamp_ms, 0), self._max_timestamp_offset - self.base_offset))


def write_segments(
    folder: Path, batches: Sequence[SimulatedBatch], *, magic: int, segment_length: int, is_closed: bool
) -> int:
    """Write a log into its directory and return the bytes of its segments; an empty log has one empty segment.

    Args:
        batches: in the order of their offsets.
        segment_length: the most bytes of a segment, which a single longer batch exceeds.
        is_closed: whether the broker stopped cleanly, so that the last segment is closed too.
    """
    segments = [SegmentFiles(0)]
    for batch in batches:
        data = encode_batch(batch, magic)
        if segments[-1].log and len(segments[-1].log) + len(data) > segment_length:
            segments.append(SegmentFiles(batch.base_offset))
        segments[-1].append(data, last_offset=batch.end_offset - 1, timestamp_ms=batch.timestamp_ms)
    for segment in segments:
        segment.write(folder, is_closed=is_closed or segment is not segments[-1])
        if segment.base_offset and magic >= 2:
            folder.joinpath(f"{segment.base_offset:020d}.snapshot").write_bytes(encode_producers(()))
    return sum(len(segment.log) for segment in segments)
