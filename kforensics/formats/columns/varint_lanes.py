"""Decode the varints at many positions at once by arithmetic on whole columns.

Nearly all varints of a log have one byte or two. Where all of a column do, their bytes are gathered; else eight bytes a place. A varint that does not
end within eight bytes is flagged and left to the exact reader: only a varlong of 2^55 and more is that long.
"""

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.primitives.word_buffer import WordBuffer

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
        positions: where the varints begin in the buffer.

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
        positions: where the varlongs begin in the buffer.

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
    """Return the positions behind varlongs, and which of them end within eight bytes.

    Args:
        buffer: the bytes; eight bytes behind the last position must be readable, as its padding provides.
        positions: where the varlongs begin in the buffer.
    """
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
