"""A `.log` file: record batches and messages of any magic, one behind the other, walked in bounded windows.

The entry kind is decided by byte 16, which is the magic in every version. A walk yields what it understood and what it did not: behind a damaged batch it
goes on with the next sound one. Kafka: FileRecords, FileLogInputStream, LogSegment.recover.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.errors import FormatError
from kforensics.formats.batch_table import CODEC_MASK, BatchTable, empty_batches
from kforensics.formats.checksum import crc32c
from kforensics.formats.message_set import SMALLEST_MESSAGE_LENGTH, computed_crc, iter_message_records, parse_message, parse_message_set
from kforensics.formats.record_batch import BATCH_HEADER, CRC_COVERED_POSITION, LOG_OVERHEAD, SMALLEST_BATCH_LENGTH, iter_batch_records
from kforensics.formats.records import Record
from kforensics.units import OffsetRange

WINDOW_LENGTH = 16 << 20
"""Bytes of a file that are looked at in one go."""

SHORTEST_ENTRY = 17
"""Bytes that Kafka needs to see an entry at all: offset, length and magic."""


class SegmentBytes(Protocol):
    """What a walk needs of a file."""

    @property
    def size(self) -> int:
        """Bytes of the file when it was opened."""
        ...

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer from a position; short at the end of the file."""
        ...


class Level(StrEnum):
    """How deep a walk looks."""

    HEADERS = "headers"
    CRC = "crc"
    RECORDS = "records"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentWindow:
    """What a run of bytes of a segment holds, in file order."""

    span: Span
    batches: BatchTable
    """Every batch whose extent is known, also those that fail their checksum (`crc_valid` is false)."""
    damage: tuple[Damage, ...]
    record_count: int
    """Records of the batches that pass the checks of the level."""


class MemoryBytes:
    """A segment in memory."""

    def __init__(self, data: bytes) -> None:
        self._view = memoryview(data)
        self.size = len(data)

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer from a position; short at the end of the data."""
        part = self._view[position : position + len(buffer)]
        buffer[: len(part)] = part
        return len(part)


def walk_segment(source: SegmentBytes, *, level: Level, start: int = 0, end: int | None = None) -> Iterator[SegmentWindow]:
    """Every batch and every damage from `start`, which must be a batch's position, up to the batches that begin before `end`."""
    limit = source.size if end is None else min(end, source.size)
    position = start
    previous_last = -1
    highest_epoch = -1
    while position < limit:
        rows: list[tuple[object, ...]] = []
        damage: list[Damage] = []
        window_start = position
        records = 0
        while position < limit and position - window_start < WINDOW_LENGTH:
            entry = _read_entry(source, position)
            if entry is None:
                found, position = _classify_gap(source, position, previous_last)
                damage.append(found)
                continue
            row, problem, count = _check_entry(entry, position, level)
            if problem is not None:
                damage.append(problem)
            elif row["base_offset"] <= previous_last:
                damage.append(_order_damage(row, previous_last))
            if row["crc_valid"] and row["magic"] == 2 and row["partition_leader_epoch"] < highest_epoch:
                damage.append(
                    Damage(
                        span=Span(position, len(entry)),
                        kind=DamageKind.EPOCH,
                        expected=f"a leader epoch of at least {highest_epoch}",
                        found=str(row["partition_leader_epoch"]),
                    )
                )
            if row["crc_valid"]:
                highest_epoch = max(highest_epoch, int(row["partition_leader_epoch"]))
                previous_last = int(row["last_offset"])
            rows.append(tuple(row.tolist()))
            records += count
            position += len(entry)
        table = np.array(rows, dtype=empty_batches().dtype)
        yield SegmentWindow(span=Span(window_start, position - window_start), batches=table, damage=tuple(damage), record_count=records)


def _order_damage(row: np.void, previous_last: int) -> Damage:
    return Damage(
        span=Span(int(row["position"]), int(row["length"])),
        kind=DamageKind.ORDER,
        expected=f"a base offset above {previous_last}",
        found=str(row["base_offset"]),
    )


def _read(source: SegmentBytes, position: int, length: int) -> bytes:
    buffer = bytearray(length)
    return bytes(buffer[: source.read_into(position, memoryview(buffer))])


def _read_entry(source: SegmentBytes, position: int) -> bytes | None:
    """The whole entry at a position, or nothing where no whole entry begins."""
    head = _read(source, position, SHORTEST_ENTRY)
    if len(head) < SHORTEST_ENTRY:
        return None
    magic = head[16]
    length = int.from_bytes(head[8:12], signed=True)
    smallest = SMALLEST_BATCH_LENGTH if magic == 2 else SMALLEST_MESSAGE_LENGTH.get(magic)
    if smallest is None or not smallest <= length <= source.size - position - LOG_OVERHEAD:
        return None
    entry = _read(source, position, LOG_OVERHEAD + length)
    return entry if len(entry) == LOG_OVERHEAD + length else None


def _check_entry(entry: bytes, position: int, level: Level) -> tuple[np.void, Damage | None, int]:
    """The row of a whole entry, what is wrong with it, and its records."""
    row = empty_batches(1)[0]
    row["position"] = position
    row["length"] = len(entry)
    row["segment"] = 0
    magic = entry[16]
    damage = None
    if magic == 2:
        names = BATCH_HEADER.names
        header = dict(zip(names, BATCH_HEADER.struct.unpack_from(entry), strict=True))
        for name in ("base_offset", "partition_leader_epoch", "crc", "attributes", "base_timestamp", "max_timestamp", "producer_id", "producer_epoch"):
            row[name] = header[name]
        row["base_sequence"] = header["base_sequence"]
        row["last_offset"] = header["base_offset"] + header["last_offset_delta"]
        row["count"] = header["record_count"]
        computed = crc32c(memoryview(entry)[CRC_COVERED_POSITION:])
    else:
        message, _ = parse_message(entry) if level is Level.HEADERS else _message_or_header(entry)
        row["base_offset"] = row["last_offset"] = message.offset
        row["crc"] = message.crc
        row["attributes"] = message.attributes
        row["partition_leader_epoch"] = row["producer_id"] = row["producer_epoch"] = row["base_sequence"] = -1
        row["base_timestamp"] = row["max_timestamp"] = message.timestamp_ms
        row["count"] = 1
        computed = computed_crc(entry, 0, len(entry))
    row["magic"] = magic
    row["crc_valid"] = level is Level.HEADERS or computed == row["crc"]
    span = Span(position, len(entry))
    if not row["crc_valid"]:
        lost = OffsetRange(int(row["base_offset"]), int(row["last_offset"]))
        checksums = (int(row["crc"]), computed)
        damage = Damage(
            span=span,
            kind=DamageKind.CRC,
            expected=f"crc {checksums[0]:#010x}, as stored",
            found=f"{computed:#010x}",
            offsets_lost=lost,
            checksums=checksums,
        )
        return row, damage, 0
    try:
        if magic != 2 and message.attributes & CODEC_MASK:
            inner = parse_message_set(entry).messages
            row["base_offset"] = inner[0].offset
            row["count"] = len(inner)
        count = int(row["count"])
        if level is Level.RECORDS:
            records = iter_batch_records(entry, position) if magic == 2 else iter_message_records(entry, position)
            count = sum(1 for _ in records)
    except FormatError as error:
        lost = OffsetRange(int(row["base_offset"]), int(row["last_offset"]))
        return row, Damage(span=span, kind=DamageKind.RECORD, expected=error.expected, found=error.found, offsets_lost=lost), 0
    return row, None, count


def _message_or_header(entry: bytes):  # noqa: ANN202
    try:
        return parse_message(entry)
    except FormatError:
        raise


def _classify_gap(source: SegmentBytes, position: int, previous_last: int) -> tuple[Damage, int]:
    """What stands where no whole entry begins, and where the next sound one does."""
    rest = source.size - position
    next_position = _next_sound(source, position + 1, previous_last)
    if next_position is None:
        data = _read(source, position, min(rest, WINDOW_LENGTH))
        if not any(data):
            kind, found = DamageKind.ZEROS, f"{rest} zero bytes to the end"
        else:
            kind, found = DamageKind.TORN, f"{rest} bytes to the end"
        return Damage(
            span=Span(position, rest), kind=kind, expected="a batch or the end of the file", found=found, gravity=Gravity.TORN_TAIL, next_good=Absent.NOT_APPLICABLE
        ), source.size
    entry = _read_entry(source, next_position)
    assert entry is not None
    next_offset = int.from_bytes(entry[:8], signed=True)
    return Damage(
        span=Span(position, next_position - position),
        kind=DamageKind.LENGTH,
        expected="a batch",
        found="bytes that are none",
        offsets_lost=OffsetRange(previous_last + 1, next_offset - 1) if next_offset > previous_last + 1 else Absent.NOT_APPLICABLE,
        next_good=(next_offset, next_position),
    ), next_position


def _next_sound(source: SegmentBytes, start: int, previous_last: int) -> int | None:
    for position in range(start, source.size - SHORTEST_ENTRY + 1):
        entry = _read_entry(source, position)
        if entry is not None and int.from_bytes(entry[:8], signed=True) > previous_last and _check_entry(entry, position, Level.CRC)[0]["crc_valid"]:
            return position
    return None


def iter_records(source: SegmentBytes, *, start: int = 0, end: int | None = None) -> Iterator[Record | Damage]:
    """Every record, and every damage in its place."""
    for window in walk_segment(source, level=Level.CRC, start=start, end=end):
        pending = sorted(window.damage, key=lambda damage: damage.span.position)
        for row in window.batches:
            position = int(row["position"])
            while pending and pending[0].span.position <= position:
                yield pending.pop(0)
            if row["crc_valid"]:
                entry = _read(source, position, int(row["length"]))
                try:
                    yield from iter_batch_records(entry, position) if row["magic"] == 2 else iter_message_records(entry, position)
                except FormatError as error:
                    yield Damage(span=Span(position, len(entry)), kind=DamageKind.RECORD, expected=error.expected, found=error.found)
        yield from pending
