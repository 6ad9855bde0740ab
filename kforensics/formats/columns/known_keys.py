"""Number the keys of records: the same bytes get the same number, many records at once.

A key is looked up by a hash of its words of eight bytes and then compared word for word. What is not found so, because it is new, long, or has a hash that another
key took first, is looked up in a dictionary.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.columns.varint_lanes import Positions, Values, Words

MOST_WORDS = 16
"""Words of the longest key that is compared as words."""

MOST_COMPARED = 1 << 15
"""Keys that are compared as words: the first ones."""

_SLOT_BITS = 18
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SPREAD, _SHIFT = np.uint64(29), np.uint64(64 - _SLOT_BITS)
_MASKS = np.array([(1 << 8 * length) - 1 for length in range(9)], dtype=np.uint64)
_NONE = -1


class KnownKeys:
    """Keys with their numbers.

    Args:
        number: gives the number of a key that is met for the first time; several keys may have one number.
    """

    def __init__(self, number: Callable[[bytes], int]) -> None:
        self._number = number
        self._known: dict[bytes, int] = {}
        self._numbers = np.zeros(0, dtype=np.int64)
        self._lengths = np.zeros(0, dtype=np.int64)
        self._words = np.zeros((MOST_WORDS, 0), dtype=np.uint64)
        self._count = 0
        self._slots = np.full(1 << _SLOT_BITS, _NONE, dtype=np.int32)

    def numbers(self, data: bytearray, starts: Positions, lengths: Values) -> Values:
        """Return the number of each key.

        Args:
            data: the bytes that hold the keys, and eight more.
            starts: where each key begins.
            lengths: of each key in bytes; one of a length below 0 counts as empty.
        """
        words = np.ndarray((len(data) - 8,), "<u8", buffer=data, strides=(1,))
        lengths = np.maximum(lengths, 0)
        slots, columns = _hashed(words, starts, lengths)
        found = self._slots[slots]
        is_same = found != _NONE
        if self._count:
            is_same &= self._lengths[found] == lengths
            for column, known in zip(columns, self._words, strict=False):
                is_same &= known[found] == column
            numbers = self._numbers[found]
        else:
            numbers = np.zeros(len(starts), dtype=np.int64)
        for at in np.flatnonzero(~is_same).tolist():
            start = int(starts[at])
            key = bytes(data[start : start + int(lengths[at])])
            number = self._known.get(key)
            if number is None:
                number = self._known[key] = self._number(key)
                if len(key) <= 8 * MOST_WORDS and self._count < MOST_COMPARED and self._slots[slots[at]] == _NONE:
                    self._add(int(slots[at]), number, len(key), [column[at] for column in columns])
            numbers[at] = number
        return numbers

    def _add(self, slot: int, number: int, length: int, words: list[np.uint64]) -> None:
        if self._count == len(self._numbers):
            more = max(self._count, 64)
            self._numbers = np.concatenate((self._numbers, np.zeros(more, dtype=np.int64)))
            self._lengths = np.concatenate((self._lengths, np.zeros(more, dtype=np.int64)))
            self._words = np.concatenate((self._words, np.zeros((MOST_WORDS, more), dtype=np.uint64)), axis=1)
        self._slots[slot] = self._count
        self._numbers[self._count], self._lengths[self._count] = number, length
        self._words[: len(words), self._count] = words
        self._count += 1


def _hashed(words: Words, starts: Positions, lengths: Values) -> tuple[NDArray[np.int64], list[Words]]:
    """Return the slot of each key, and its words: one column for each eight bytes, zero behind its end."""
    hashes = lengths.astype(np.uint64)
    columns: list[Words] = []
    for number in range(min(-(-int(lengths.max(initial=0)) // 8), MOST_WORDS)):
        left = np.clip(lengths - 8 * number, 0, 8)
        # Behind the end of a key nothing is kept of what is read.
        column = words[np.minimum(starts + 8 * number, len(words) - 1)] & _MASKS[left]
        hashes = (hashes ^ column) * _FACTOR
        hashes ^= hashes >> _SPREAD
        columns.append(column)
    return ((hashes * _FACTOR) >> _SHIFT).astype(np.int64), columns
