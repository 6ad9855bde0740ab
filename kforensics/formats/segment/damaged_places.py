"""Damaged places of a segment: how far each reaches, and where the next sound batch begins.

The bytes may be hostile, and damaged places may be many: beyond a bound they are summed up, so that a walk stays linear in time and its result
small.
"""

from typing import NamedTuple

import numpy as np

from kforensics.damage import Absent, Damage, DamageKind, Span
from kforensics.errors import FormatError
from kforensics.formats.log.batch_table import CODEC_MASK, LOG_OVERHEAD, BatchTable, empty_batches
from kforensics.formats.primitives.word_buffer import SegmentBytes, first_nonzero, read_exactly
from kforensics.formats.segment.diagnosis import Header, Neighbours, batch_damage, is_likely, read_header, run_damage
from kforensics.formats.segment.entries import SMALLEST_LENGTH, Entries
from kforensics.formats.segment.resync import OFFSET_REACH, Expectation, SoundBatch, find_sound_batch
from kforensics.units import OffsetRange

MOST_PLACES = 1000
"""The most damaged places that are listed one by one; the others are summed up a MiB at a time."""

_STRIDE = 1 << 20

MOST_DOUBTS = 16
"""The number of times that a file is searched to its end again, without trust in the offsets before."""

_LARGEST_WRAPPER = 1_000_012
"""Bytes of a message at most, as brokers of magic 0 and 1 are set up (`message.max.bytes` and the 12 bytes before it)."""


class Resolution(NamedTuple):
    """The damage at a place, and the position where the walk continues."""

    table: BatchTable
    """Batches whose extent is known although their checksum fails."""
    damage: list[Damage]
    next_position: int


class DamagedPlaces:
    """Judges the damaged places of one walk over a segment."""

    def __init__(self, source: SegmentBytes) -> None:
        self._source = source
        self._listed = 0
        self._doubts = 0
        self.follows_wrapper = False
        """The sound batch before is a wrapper message."""

    def first_unresolved(self, table: BatchTable, last_offset: int) -> int:
        """Return the first bad row that the chain of lengths does not lead out of: behind it no row is good, or a sound batch begins within it.

        Args:
            table: batches that follow each other by their lengths, which are claims where a checksum fails.
            last_offset: the last offset of the sound batches before them, -1 for none.

        Returns:
            The number of the row; that behind the last where every bad run is followed by a good batch.
        """
        bad = ~table["crc_valid"]
        if not bad.any():
            return len(table)
        good_rows = np.flatnonzero(~bad)
        unresolved = int(good_rows[-1]) + 1 if len(good_rows) else 0
        for first, end in _runs(bad[:unresolved]):
            if end - first == 1:
                continue
            begin, behind = int(table["position"][first]), int(table["position"][end])
            hidden = find_sound_batch(self._source, begin + 1, behind, self._expectation(begin, last_offset))
            if hidden is not None and hidden.position not in table["position"][first:end]:
                return first
        return unresolved

    def isolated(self, entries: Entries, last_offset: int) -> list[Damage]:
        """Return the damage of those bad rows of a chain that a good row follows.

        Args:
            entries: the accepted part of a chain with its computed checksums; without checksums no row is bad.
            last_offset: the last offset of the sound batches before them, -1 for none.
        """
        table, computed = entries.table, entries.computed
        bad = ~table["crc_valid"]
        if computed is None or not bad.any():
            return []
        good_rows = np.flatnonzero(~bad)
        bad_rows = np.flatnonzero(bad)
        behind = np.searchsorted(good_rows, bad_rows)
        most = max(MOST_PLACES - self._listed, 0)
        damage: list[Damage] = []
        for row, place in zip(bad_rows[:most].tolist(), behind[:most].tolist(), strict=True):
            before = int(table["last_offset"][good_rows[place - 1]]) if place else last_offset
            behind_it = table[good_rows[place]]
            base_offset = int(behind_it["base_offset"])
            sound = SoundBatch(int(behind_it["position"]), int(behind_it["length"]), base_offset)
            around = Neighbours(before, sound, base_offset)
            batch = table[row]
            damage.append(
                batch_damage(
                    self._source, int(batch["position"]), _header(batch), int(batch["crc"]), int(computed[row]), around
                )
            )
        self._listed += len(damage)
        if len(bad_rows) > most:
            damage.append(_summed_up(table[bad_rows[most:]]))
        return damage

    def resolve(self, position: int, entries: Entries, last_offset: int) -> Resolution:
        """Return the damage of a place where the chain of lengths breaks, and where the walk continues; the last offset of sound batches before it is -1 for none."""
        self._listed += 1
        search_from = position + (1 if self._listed < MOST_PLACES else _STRIDE)
        expected = self._expectation(position, last_offset)
        sound = find_sound_batch(self._source, search_from, self._source.size, expected)
        if (
            sound is None
            and last_offset >= 0
            and self._doubts < MOST_DOUBTS
            and first_nonzero(self._source, position, self._source.size) < self._source.size
        ):
            # The last offset itself may be wrong: no checksum of a message covers it, and the content of an incomplete wrapper can look like a message.
            self._doubts += 1
            certain = Expectation(plain_from=self._source.size)
            sound = find_sound_batch(self._source, search_from, self._source.size, certain)
        chain_end = int(entries.table["position"][-1] + entries.table["length"][-1]) if len(entries.table) else position
        if sound is None:
            return self._resolve_tail(position, entries, last_offset)
        around = Neighbours(last_offset, sound, first_offset(self._source, sound))
        bounds = [*entries.table["position"].tolist(), chain_end]
        if sound.position in bounds[1:]:
            kept = bounds.index(sound.position)
            return Resolution(entries.table[:kept], self._listed_one_by_one(entries, kept, around), sound.position)
        return Resolution(empty_batches(), [run_damage(self._source, position, sound.position, around)], sound.position)

    def _expectation(self, position: int, last_offset: int) -> Expectation:
        """Return what the sound batches before a damaged place, or else its own header where it makes sense, say of what may follow."""
        header = read_header(self._source, position)
        is_wrapper, length = self.follows_wrapper, None
        if header is not None and header.is_message:
            is_wrapper = header.is_wrapper
            if header.length >= SMALLEST_LENGTH[header.magic] + LOG_OVERHEAD:
                length = header.length
            if last_offset < 0 and header.base_offset < OFFSET_REACH:
                # A wrapper's offset is that of its last message: inner ones, relative or not, are not above it.
                last_offset = header.base_offset
        plain_from = position + (length or _LARGEST_WRAPPER) if is_wrapper else 0
        return Expectation(last_offset if last_offset >= 0 else None, plain_from)

    def _resolve_tail(self, position: int, entries: Entries, last_offset: int) -> Resolution:
        """No sound batch follows: batches that are likely by their offsets, then the rest up to the end."""
        around = Neighbours(last_offset, None, None)
        size = self._source.size
        whole_tail = run_damage(self._source, position, size, around)
        if whole_tail.kind is DamageKind.LENGTH:
            return Resolution(empty_batches(), [whole_tail], size)
        kept = 0
        for row in entries.table[:MOST_PLACES]:
            header = _header(row)
            if not is_likely(header, last_offset) or header.base_offset <= last_offset:
                break
            kept += 1
        if not kept:
            return Resolution(empty_batches(), [whole_tail], size)
        damage = self._listed_one_by_one(entries, kept, around)
        end = int(entries.table["position"][kept - 1] + entries.table["length"][kept - 1])
        if end < size:
            damage.append(run_damage(self._source, end, size, around))
        return Resolution(entries.table[:kept], damage, size)

    def _listed_one_by_one(self, entries: Entries, kept: int, around: Neighbours) -> list[Damage]:
        assert entries.computed is not None  # without checksums no row is bad
        if kept > MOST_PLACES:
            return [_summed_up(entries.table[:kept])]
        self._listed += kept - 1
        return [
            batch_damage(self._source, int(row["position"]), _header(row), int(row["crc"]), int(crc), around)
            for row, crc in zip(entries.table[:kept], entries.computed[:kept], strict=True)
        ]


def first_offset(source: SegmentBytes, batch: SoundBatch) -> int:
    """Return the first offset of a sound batch, which a wrapper holds inside; the base offset where the wrapper can't be opened."""
    header = read_header(source, batch.position)
    if header is None or header.magic == 2:
        return batch.base_offset
    from kforensics.formats.log.batches import summarize_wrapper  # noqa: PLC0415 - what decompresses, for messages before 0.11

    data = read_exactly(source, batch.position, batch.length)
    try:
        return summarize_wrapper(data)[0] if data[17] & CODEC_MASK else batch.base_offset
    except FormatError:
        return batch.base_offset


def _runs(flags: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _header(row: np.void) -> Header:
    return Header(
        int(row["base_offset"]), int(row["length"]), int(row["magic"]), int(row["last_offset"]), int(row["attributes"])
    )


def _summed_up(table: BatchTable) -> Damage:
    begin = int(table["position"][0])
    end = int(table["position"][-1] + table["length"][-1])
    first, last = int(table["base_offset"][0]), int(table["last_offset"][-1])
    return Damage(
        span=Span(begin, end - begin),
        kind=DamageKind.CRC,
        expected=f"checksums that hold, in {len(table)} batches between these",
        found=f"none that does, after {MOST_PLACES} damaged places listed one by one",
        offsets_lost=OffsetRange(first, last) if 0 <= first <= last else Absent.UNKNOWN,
    )
