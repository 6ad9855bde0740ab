"""A `.log` file: record batches and messages of any magic, one behind the other, walked in bounded windows.

The entry kind is decided by byte 16, which is the magic in every version. A walk yields the batches and the damage: behind a damaged place it
continues with the next sound batch. Kafka: FileRecords, FileLogInputStream, LogSegment.recover.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kforensics.damage import Damage, DamageKind, Gravity, Span
from kforensics.formats.columns.batch_checks import (
    PAYLOAD_LENGTH,
    ExactReads,
    WindowBatches,
    check_headers,
    open_wrappers,
)
from kforensics.formats.log.batch_table import BATCH_HEADER, CODEC_MASK, HEADER_UP_TO_MAGIC, BatchTable, empty_batches
from kforensics.formats.log.records import Record
from kforensics.formats.primitives.word_buffer import SegmentBytes, WordBuffer
from kforensics.formats.segment.damaged_places import DamagedPlaces
from kforensics.formats.segment.entries import Entries, claimed_length, header_entry, read_entries
from kforensics.formats.segment.order import LogOrder
from kforensics.formats.segment.resync import checksums_of, find_sound_batch

if TYPE_CHECKING:
    from kforensics.formats.columns.record_stream import RecordChunk


WINDOW_LENGTH = 6 << 20
"""The bytes of a file that are read at once: few enough to be in the processor's cache when they are looked at, many enough that the work per window is small."""

LARGEST_HELD = 96 << 20
"""The largest batch whose records are read; of a larger one only the checksum is computed, in pieces."""

EXACTLY_READ = 4 << 20
"""The bytes of records, beside the length of the file, that are searched one by one for the first malformed record."""

_OVERHANG = 64 << 10
"""The bytes that are read behind the end of a range for the batch that crosses it."""


class Level(StrEnum):
    """The depth of a walk."""

    HEADERS = "headers"
    CRC = "crc"
    RECORDS = "records"


class SegmentWindow(NamedTuple):
    """The content of a run of bytes of a segment, in file order."""

    span: Span
    """The bytes from the first batch or damage up to the next window."""
    batches: BatchTable
    """Every batch whose extent is known, also those that fail their checksum (`crc_valid` is false; at level headers it is not asked)."""
    damage: tuple[Damage, ...]
    record_count: int
    """The number of records in the batches that pass the checks of the level."""


def walk_segment(
    source: SegmentBytes, *, level: Level, start: int = 0, end: int | None = None, buffers: "Buffers | None" = None
) -> Iterator[SegmentWindow]:
    """Walk a segment and yield every batch and every damage that begins between `start` and `end`.

    The last window's span ends where the next batch begins, at or behind `end`: where a range of a file is walked on its own, that is the seam to check.

    Args:
        source: the segment; where it becomes shorter during the walk, the walk ends there without damage.
        buffers: to be used again where many segments or parts are walked; None to allocate new ones.
    """
    walk = _Walk(source, level, source.size if end is None else min(end, source.size), buffers)
    position = start
    while position < walk.limit:
        window = walk.next_window(position)
        yield window
        position = window.span.end


def find_batch_start(source: SegmentBytes, position: int) -> int | None:
    """Return the first position at or behind another where a sound batch begins, or None; a record may hold the bytes of one, so the seam wants checking.

    Args:
        position: where the search begins; nothing before it is known, so offsets are not judged.
    """
    found = find_sound_batch(source, position, source.size)
    return None if found is None else found.position


class Buffers(NamedTuple):
    """The memory of a walk, which the next one may use again."""

    window: WordBuffer
    payload: WordBuffer

    @classmethod
    def empty(cls) -> "Buffers":
        """Buffers that grow as they are used."""
        return cls(WordBuffer(0), WordBuffer(0))


class _Walk:
    """A pass over a segment or a range of it."""

    def __init__(self, source: SegmentBytes, level: Level, limit: int, buffers: "Buffers | None") -> None:
        self.limit = limit
        self._source = source
        self._level = level
        self._order = LogOrder()
        self._places = DamagedPlaces(source)
        self._window, self._payload = buffers or Buffers.empty()
        self._exact = ExactReads(source.size + EXACTLY_READ)
        # A claimed length is read to be disproved; a hostile file must not make this work more than linear.
        self._large_allowance = 4 * source.size + LARGEST_HELD

    def next_window(self, start: int) -> SegmentWindow:
        self._load(start, WINDOW_LENGTH)
        found = _Findings()
        position = start
        while position < min(self.limit, self._loaded_end):
            entries = read_entries(
                self._window,
                position - start,
                self.limit - start,
                start,
                with_checksums=self._level is not Level.HEADERS,
            )
            stop = start + entries.end
            is_incomplete = stop < self.limit and not entries.is_full and self._is_incomplete(start, stop)
            if is_incomplete and stop == start:
                if self._hold_large_entry(start):
                    continue
                entries = self._large_entry(start)
                stop = start + entries.end
            kept = self._places.first_unresolved(entries.table, self._order.last_offset)
            self._accept(entries.part(0, kept), start, found)
            if kept == len(entries.table):
                position = stop
                if is_incomplete or stop >= min(self.limit, self._loaded_end):
                    break
                if entries.is_full:
                    continue
            else:
                position = int(entries.table["position"][kept])
                if is_incomplete and position > start:
                    break
            resolution = self._places.resolve(position, entries.part(kept, len(entries.table)), self._order.last_offset)
            found.tables.append(resolution.table)
            found.damage += resolution.damage
            position = resolution.next_position
        return found.window(Span(start, position - start))

    def chunks(self, table: BatchTable, file_position: int) -> "Iterator[RecordChunk | Damage]":
        """Yield the records of batches of the window that was read last."""
        from kforensics.formats.columns.record_stream import iter_chunks  # noqa: PLC0415 - records are decoded where they are asked for

        held = table[table["position"] + table["length"] <= self._loaded_end]
        yield from iter_chunks(self._batches(held, file_position))

    def _batches(self, table: BatchTable, file_position: int) -> WindowBatches:
        if (table["attributes"] & CODEC_MASK).any():
            # Most files are small: the buffer grows for larger ones.
            self._payload.ensure(min(PAYLOAD_LENGTH, 4 * self.limit))
        return WindowBatches(self._window, self._payload, table, file_position, self._exact)

    def _load(self, start: int, length: int) -> None:
        wanted = min(max(length, self._window.capacity), self.limit - start + _OVERHANG, self._source.size - start)
        self._window.load(
            self._source,
            start,
            max(wanted, min(length, self._source.size - start)) if length > WINDOW_LENGTH else wanted,
        )
        self._loaded_end = start + self._window.filled
        if self._window.filled < wanted:
            # The file has become shorter since it was opened: the missing bytes can't be judged.
            self.limit = min(self.limit, self._loaded_end)

    def _is_incomplete(self, start: int, stop: int) -> bool:
        """Return whether the entry at `stop` extends beyond the loaded bytes."""
        if self._loaded_end >= self._source.size:
            return False
        if self._loaded_end - stop < HEADER_UP_TO_MAGIC:
            return True
        claimed = claimed_length(self._window.view, stop - start)
        return claimed is not None and self._loaded_end < stop + claimed <= self._source.size

    def _hold_large_entry(self, start: int) -> bool:
        """Load an entry that is larger than a window, unless it is larger than may be held."""
        claimed = claimed_length(self._window.view, 0) or 0
        self._large_allowance -= claimed
        if claimed > LARGEST_HELD or self._large_allowance < 0:
            return False
        self._load(start, claimed + BATCH_HEADER.length)
        return self._window.filled >= claimed

    def _large_entry(self, start: int) -> Entries:
        """Return an entry that can't be held: its header, and its checksum in pieces."""
        table = header_entry(self._window, start)
        length = int(table["length"][0])
        computed: int | None = None
        if self._level is not Level.HEADERS:
            stored, computed = (
                checksums_of(self._source, start, length) if self._large_allowance >= 0 else (int(table["crc"][0]), 0)
            )
            table["crc_valid"] = computed == stored
        return Entries(table, None if computed is None else np.array([computed], dtype=np.uint32), length)

    def _accept(self, entries: Entries, start: int, found: "_Findings") -> None:
        """Take batches whose extents are sure, and look into them as deep as the level says."""
        if not len(entries.table):
            return
        batches = self._batches(entries.table, start)
        is_held = int(entries.table["length"][-1]) <= self._window.filled
        check_headers(batches)
        if is_held:
            open_wrappers(batches)
        in_order = batches.sound.copy()
        found.damage += self._places.isolated(entries, self._order.last_offset)
        if self._level is Level.RECORDS and is_held:
            from kforensics.formats.columns.record_stream import check_records  # noqa: PLC0415 - for records alone

            check_records(batches)
        elif self._level is Level.RECORDS and batches.sound[0]:
            length = int(entries.table["length"][0])
            found_length = f"{length} bytes, of which only the checksum was proven"
            expected = f"a batch of at most {LARGEST_HELD} bytes"
            batches.reject(0, DamageKind.TOO_LARGE, expected, found_length, Gravity.UNREAD)
        found.damage += batches.damage
        sound = entries.table[in_order]
        found.damage += self._order.check(sound)
        if len(sound):
            self._places.follows_wrapper = bool(sound["magic"][-1] < 2 and sound["attributes"][-1] & CODEC_MASK)
        found.tables.append(entries.table)
        found.record_count += int(entries.table["count"][batches.sound].sum())


class _Findings:
    """The content of a window while it is read."""

    def __init__(self) -> None:
        self.tables: list[BatchTable] = []
        self.damage: list[Damage] = []
        self.record_count = 0

    def window(self, span: Span) -> SegmentWindow:
        match self.tables:  # joining costs more than a small segment
            case []:
                table = empty_batches()
            case [only]:
                table = only
            case _:
                table = np.concatenate(self.tables)
        damage = tuple(sorted(self.damage, key=lambda damage: damage.span.position))
        return SegmentWindow(span=span, batches=table, damage=damage, record_count=self.record_count)


def iter_records(source: SegmentBytes, *, start: int = 0, end: int | None = None) -> Iterator[Record | Damage]:
    """Yield every record, and every damage in its place; of a batch that breaks off, the records before the break."""
    for part in iter_record_chunks(source, start=start, end=end):
        if isinstance(part, Damage):
            yield part
        else:
            yield from part.records()


def iter_record_chunks(
    source: SegmentBytes, *, start: int = 0, end: int | None = None, buffers: Buffers | None = None
) -> "Iterator[RecordChunk | Damage]":
    """Yield the same as `iter_records`, as columns over the bytes of many records at a time, each valid until the next one is asked for."""
    for _, found in iter_windows_with_records(source, start=start, end=end, buffers=buffers):
        yield from found


def iter_windows_with_records(
    source: SegmentBytes, *, start: int = 0, end: int | None = None, buffers: Buffers | None = None
) -> "Iterator[tuple[SegmentWindow, Iterator[RecordChunk | Damage]]]":
    """Yield each window of `walk_segment` at level crc, with its records and damage in their places, which hold until the next window is asked for."""
    walk = _Walk(source, Level.CRC, source.size if end is None else min(end, source.size), buffers)
    position = start
    while position < walk.limit:
        window = walk.next_window(position)
        position = window.span.end
        yield window, _in_place(walk, window)


def _in_place(walk: _Walk, window: SegmentWindow) -> "Iterator[RecordChunk | Damage]":
    """Yield the records of a window with its damage between them, each behind the batches that begin before it."""
    table = window.batches
    first = 0
    for damage in window.damage:
        end = int(np.searchsorted(table["position"], damage.span.position))
        yield from walk.chunks(table[first:end], window.span.position)
        yield damage
        first = end
    yield from walk.chunks(table[first:], window.span.position)
