"""Find where each record of many batches starts; only the record before it shows this.

The chain is followed in all batches of a group at the same time, one lane a batch, so that the interpreter runs once per record index; where few lanes
are left it follows them one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from kforensics.errors import FormatError
from kforensics.formats.log.records import SMALLEST_RECORD
from kforensics.formats.primitives.numbers import read_varint
from kforensics.formats.primitives.word_buffer import WordBuffer

# Decode the varints at many positions at once by arithmetic on whole columns.
#
# Nearly all varints of a log have one byte or two. Where all of a column do, their bytes are gathered; else eight bytes a place. A varint that does not
# end within eight bytes is flagged and left to the exact reader: only a varlong of 2^55 and more is that long.


Positions = NDArray[np.int64]
Values = NDArray[np.int64]
Words = NDArray[np.uint64]
Octets = NDArray[np.uint8]
Flags = NDArray[np.bool_]
AllOrFlags = np.bool_ | Flags
"""One flag for all values, or one flag per value."""

_MORE = 0x80
"""The bit of a byte that is set if another byte follows."""

_ONE = np.uint64(1)
_STOP_BITS = np.uint64(0x8080808080808080)
_STOP_BITS_32 = np.uint64(0x0000008080808080)
_PAYLOAD_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_TWO, _FOUR = np.uint64(2), np.uint64(4)
_HIGH_7, _LOW_7 = np.uint64(0x7F007F007F007F00), np.uint64(0x007F007F007F007F)
_HIGH_14, _LOW_14 = np.uint64(0x3FFF00003FFF0000), np.uint64(0x00003FFF00003FFF)
_HIGH_28, _LOW_28 = np.uint64(0x0FFFFFFF00000000), np.uint64(0x000000000FFFFFFF)


def read_varints(buffer: WordBuffer, positions: Positions) -> tuple[Values, Positions, AllOrFlags]:
    """Return zig-zag int32 values, the positions behind them, and which of them end within the five bytes that are allowed.

    Args:
        buffer: the bytes; eight bytes behind the last position must be readable, as its padding provides.

    Returns:
        Values and positions, which mean nothing where the flag is false.
    """
    short = _read_short(buffer, positions)
    if short is not None:
        return *short, np.True_
    word = buffer.words[positions]
    below_stop, lengths, stop = _stop(word)
    return _zigzag(word & below_stop), positions + lengths, (stop & _STOP_BITS_32) != 0


def read_varlongs(buffer: WordBuffer, positions: Positions) -> tuple[Values, Positions, AllOrFlags]:
    """Return zig-zag int64 values, the positions behind them, and which of them end within eight bytes.

    Args:
        buffer: the bytes; eight bytes behind the last position must be readable, as its padding provides.

    Returns:
        Values and positions; a false flag leaves a valid varlong of nine or ten bytes to the exact reader.
    """
    short = _read_short(buffer, positions)
    if short is not None:
        return *short, np.True_
    word = buffer.words[positions]
    below_stop, lengths, stop = _stop(word)
    return _zigzag(word & below_stop), positions + lengths, stop != 0


def skip_varlongs(buffer: WordBuffer, positions: Positions) -> tuple[Positions, AllOrFlags]:
    """Return the positions behind varlongs, and which of them end within eight bytes, which must be readable behind the last position."""
    first = buffer.octets[positions]
    behind = positions + 1
    if not _continues(first):
        return behind, np.True_
    if not _continues(first & buffer.octets[behind]):
        return behind + (first >> 7), np.True_
    _, lengths, stop = _stop(buffer.words[positions])
    return positions + lengths, stop != 0


def _read_short(buffer: WordBuffer, positions: Positions) -> tuple[Values, Positions] | None:
    """Values and the positions behind them where none has more than two bytes."""
    first = buffer.octets[positions]
    behind = positions + 1
    highest = first.max(initial=0)
    if not highest:  # as of records without headers
        return np.zeros(len(first), dtype=np.int64), behind
    if highest < _MORE:
        return ((first >> 1) ^ -(first & 1)).view(np.int8).astype(np.int64), behind
    if first.min() >= _MORE:  # as of the lengths of most values
        second, behind_all = buffer.octets[behind], positions + 2
    else:
        is_long = first >> 7
        second, behind_all = buffer.octets[behind] * is_long, behind + is_long
    if _continues(second):
        return None
    bits = second.astype(np.uint16) << 7
    bits |= first & 0x7F
    return ((bits >> 1) ^ -(bits & 1)).view(np.int16).astype(np.int64), behind_all


def _continues(octets: Octets) -> bool:
    return bool(len(octets)) and bool(octets.max() >= _MORE)


def _stop(word: Words) -> tuple[Words, Octets, Words]:
    """All bits below the one that ends the varint, its length in bytes, and the ends of groups, none where it is longer than the word."""
    stop = ~word & _STOP_BITS
    below_stop = (stop & -stop) - _ONE
    lengths = (np.bitwise_count(below_stop) + np.uint8(1)) >> np.uint8(3)
    return below_stop, lengths, stop


def _zigzag(bits: Words) -> Values:
    bits = bits & _PAYLOAD_BITS
    bits = ((bits & _HIGH_7) >> _ONE) | (bits & _LOW_7)
    bits = ((bits & _HIGH_14) >> _TWO) | (bits & _LOW_14)
    bits = ((bits & _HIGH_28) >> _FOUR) | (bits & _LOW_28)
    return ((bits >> _ONE) ^ -(bits & _ONE)).view(np.int64)


GROUP_RECORDS = 1 << 18
"""The most records that one pass over lanes finds: the more lanes it follows, the less each step of a lane takes."""

PIECE_RECORDS = 1 << 16
"""The most records of a piece."""

PIECE_LENGTH = 3 << 20
"""Bytes of bodies in a piece: what its columns are read from again and again stays in the processor's own cache."""

FEW_LANES = 128
"""With fewer lanes than this, following them one after the other is faster."""

_SMALLEST_LENGTH = SMALLEST_RECORD - 1

_NO_STEP = 1 << 40
"""A step that leads out of every lane."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """Bodies of batches in one buffer, in file order; `rows` holds the row of each batch in the caller's table."""

    rows: NDArray[np.int64]
    starts: Positions
    ends: Positions
    counts: Values
    last_offset_deltas: Values

    def part(self, first: int, end: int) -> "Lanes":
        """Return the lanes from `first` up to `end`, without `end`."""
        chosen = slice(first, end)
        return Lanes(
            self.rows[chosen],
            self.starts[chosen],
            self.ends[chosen],
            self.counts[chosen],
            self.last_offset_deltas[chosen],
        )


@dataclass(frozen=True, slots=True)
class Piece:
    """Lanes, or a stretch of one long lane, with the places of their records."""

    first_lane: int
    lanes: Lanes
    skipped: int
    """The number of records of a long lane that earlier pieces held."""
    is_rest: bool
    """Whether the lanes end with this piece."""
    counts: Values
    """The number of records of each lane in this piece."""
    positions: Positions
    """The position behind the length of each record."""
    limits: Positions
    """The position behind each record."""
    sound: Flags
    """Whether all records of each lane in this piece were found; the positions of the other lanes must not be used."""


def chain_pieces(buffer: WordBuffer, lanes: Lanes) -> Iterator[Piece]:
    """Yield the records of all lanes, in pieces of at most `PIECE_RECORDS` that have about `PIECE_LENGTH`.

    Args:
        lanes: the bodies; their counts must have been limited to what the bodies' lengths can hold.

    Yields:
        Whole lanes, or a stretch of one long lane, which ends at its first record that does not fit.
    """
    totals = np.cumsum(lanes.counts)
    first = 0
    for long in [*np.flatnonzero(lanes.counts > PIECE_RECORDS).tolist(), len(totals)]:
        while first < long:
            before = int(totals[first] - lanes.counts[first])
            end = min(int(np.searchsorted(totals, before + GROUP_RECORDS, side="right")), long)
            yield from _group_pieces(buffer, lanes, first, end)
            first = end
        if long < len(totals):
            yield from _long_lane_pieces(buffer, lanes, long)
        first = long + 1


def _long_lane_pieces(buffer: WordBuffer, lanes: Lanes, lane: int) -> Iterator[Piece]:
    position, end, count = int(lanes.starts[lane]), int(lanes.ends[lane]), int(lanes.counts[lane])
    for skipped in range(0, count, PIECE_RECORDS):
        wanted = min(PIECE_RECORDS, count - skipped)
        positions = np.zeros(wanted, dtype=np.int64)
        limits = np.zeros(wanted, dtype=np.int64)
        sound = _follow_lane(buffer, position, end, positions, limits)
        yield Piece(
            first_lane=lane,
            lanes=lanes.part(lane, lane + 1),
            skipped=skipped,
            is_rest=skipped + wanted == count,
            counts=np.array([wanted]),
            positions=positions,
            limits=limits,
            sound=np.array([sound]),
        )
        if not sound:
            return
        position = int(limits[-1])


def _group_pieces(buffer: WordBuffer, lanes: Lanes, first: int, end: int) -> Iterator[Piece]:
    group = lanes.part(first, end)
    positions, limits, sound = _follow_lanes(buffer, group)
    lengths, records = np.cumsum(group.ends - group.starts), np.cumsum(group.counts)
    lane = record = 0
    while lane < len(lengths):
        before = int(lengths[lane - 1]) if lane else 0
        most = int(np.searchsorted(records, record + PIECE_RECORDS, side="right"))
        behind = max(min(int(np.searchsorted(lengths, before + PIECE_LENGTH, side="right")), most), lane + 1)
        last_record = int(records[behind - 1])
        yield Piece(
            first_lane=first + lane,
            lanes=group.part(lane, behind),
            skipped=0,
            is_rest=True,
            counts=group.counts[lane:behind],
            positions=positions[record:last_record],
            limits=limits[record:last_record],
            sound=sound[lane:behind],
        )
        lane, record = behind, last_record


def _follow_lanes(buffer: WordBuffer, group: Lanes) -> tuple[Positions, Positions, Flags]:
    """Positions and limits of all records of some lanes, and which lanes are sound."""
    slots = np.cumsum(group.counts) - group.counts
    limits = np.zeros(int(group.counts.sum()), dtype=np.int64)
    sound = np.ones(len(slots), dtype=np.bool_)
    # Longest lanes first: the lanes that reach a record index are then always the first ones.
    order = np.argsort(-group.counts, kind="stable")
    cursors, ends, places = group.starts[order], group.ends[order], slots[order]
    falling_counts = -group.counts[order]
    good = np.ones(len(order), dtype=np.bool_)
    steps = _steps()
    index = 0
    for active in _lanes_by_index(falling_counts):
        if active < len(cursors):
            cursors, ends, places = cursors[:active], ends[:active], places[:active]
        next_cursors = cursors + steps.take(buffer.pairs[cursors])
        if np.count_nonzero(next_cursors > ends):
            lengths, behind, complete = read_varints(buffer, cursors)
            next_cursors = behind + lengths
            fits = complete & (lengths >= _SMALLEST_LENGTH) & (next_cursors <= ends)
            good[:active] &= fits
            # A lane that ended keeps its position: it is in bounds and is not called sound again.
            next_cursors = np.where(fits, next_cursors, cursors)
        limits[places] = next_cursors
        cursors = next_cursors
        places += 1
        index += 1
    positions = _behind_lengths(buffer, group, slots, limits) if index else np.zeros_like(limits)
    for lane in range(int(falling_counts.searchsorted(-index))):
        if good[lane]:
            part = slice(int(places[lane]), int(places[lane]) - int(falling_counts[lane]) - index)
            good[lane] = _follow_lane(buffer, int(cursors[lane]), int(ends[lane]), positions[part], limits[part])
    sound[order] = good
    return positions, limits, sound


def _lanes_by_index(falling_counts: Values) -> list[int]:
    """How many lanes reach each record index, as long as they are not few."""
    longest = -int(falling_counts[FEW_LANES - 1]) if len(falling_counts) >= FEW_LANES else 0
    reached: list[int] = falling_counts.searchsorted(-np.arange(longest)).tolist()
    return reached


@cache
def _steps() -> Values:
    """Return the bytes from one record to the next by the two bytes at its start; `_NO_STEP` where they are not the whole of a possible length."""
    pairs = np.arange(1 << 16)
    first, second = pairs & 0xFF, pairs >> 8
    is_long = first >> 7
    bits = first & 0x7F | second * is_long << 7
    is_whole = (is_long == 0) | (second < 0x80)
    return np.where(is_whole & (bits & 1 == 0) & (bits >> 1 >= _SMALLEST_LENGTH), (bits >> 1) + 1 + is_long, _NO_STEP)


def _behind_lengths(buffer: WordBuffer, group: Lanes, slots: Positions, limits: Positions) -> Positions:
    """Return the position behind the length of each record, which begins where the one before it in its lane ends."""
    starts = np.zeros_like(limits)
    starts[1:] = limits[:-1]
    filled = group.counts > 0
    starts[slots[filled]] = group.starts[filled]
    return skip_varlongs(buffer, starts)[0]


def _follow_lane(buffer: WordBuffer, start: int, end: int, positions: Positions, limits: Positions) -> bool:
    """Fill in the places of as many records as there are slots; false where one of them does not fit."""
    content = buffer.content
    behind: list[int] = []
    append = behind.append
    position = start
    try:
        # The loop does as little as possible per record: it reads the length, in one or two bytes up to 8 KiB. All records are checked at once later.
        for _ in range(len(positions)):
            byte = content[position]
            if byte < 0x80:
                position += 1 + (byte >> 1)
            else:
                second = content[position + 1]
                if second < 0x80:
                    position += 2 + ((second << 7 | byte & 0x7F) >> 1)
                else:
                    length, position = read_varint(content, position, end)
                    position += length
            append(position)
    except (IndexError, FormatError):
        return False
    found = np.array(behind, dtype=np.int64)
    starts = np.concatenate(([start], found[:-1]))
    if position > end or (starts < start).any() or (starts > end).any():
        return False
    lengths, behind_lengths, complete = read_varints(buffer, starts)
    if not (complete & (lengths >= _SMALLEST_LENGTH)).all():
        return False
    # Positions are stored only after the check: nothing may read from wrong ones.
    positions[:], limits[:] = behind_lengths, found
    return True
