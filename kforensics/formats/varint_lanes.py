"""Varints of many places at once: one gather of eight bytes a place, then arithmetic on whole columns.

A varint that does not end within eight bytes is told apart and left to the exact reader: only a varlong of 2^55 and more is that long.
"""

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]
Values = NDArray[np.int64]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

_ONE = np.uint64(1)
_STOP_BITS = np.uint64(0x8080808080808080)
_STOP_BITS_32 = np.uint64(0x0000008080808080)
_PAYLOAD_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_TWO, _FOUR = np.uint64(2), np.uint64(4)
_HIGH_7, _LOW_7 = np.uint64(0x7F007F007F007F00), np.uint64(0x007F007F007F007F)
_HIGH_14, _LOW_14 = np.uint64(0x3FFF00003FFF0000), np.uint64(0x00003FFF00003FFF)
_HIGH_28, _LOW_28 = np.uint64(0x0FFFFFFF00000000), np.uint64(0x000000000FFFFFFF)


def read_varints(words: Words, positions: Positions) -> tuple[Values, Positions, Flags]:
    """Zig-zag int32 values, the positions behind them, and which of them end within the five bytes that are allowed."""
    word = words[positions]
    below_stop, lengths, stop = _stop(word)
    return _zigzag(word & below_stop), positions + lengths, (stop & _STOP_BITS_32) != 0


def read_varlongs(words: Words, positions: Positions) -> tuple[Values, Positions, Flags]:
    """Zig-zag values, the positions behind them, and which of them end within eight bytes."""
    word = words[positions]
    below_stop, lengths, stop = _stop(word)
    return _zigzag(word & below_stop), positions + lengths, stop != 0


def skip_varlongs(words: Words, positions: Positions) -> tuple[Positions, Flags]:
    """The positions behind varlongs, and which of them end within eight bytes."""
    _, lengths, stop = _stop(words[positions])
    return positions + lengths, stop != 0


def _stop(word: Words) -> tuple[Words, NDArray[np.uint8], Words]:
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
