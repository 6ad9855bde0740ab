"""Cells of lines without an object for each, by pyarrow; base64 of all payloads of a chunk at once, by pybase64 where it is installed."""

from binascii import b2a_base64
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kforensics.commands.salvaging.jsonl import Cells, PlainCells

try:
    from pybase64 import b64encode
except ImportError:

    def b64encode(s: Any) -> bytes:
        """Return base64 as the standard library makes it."""
        return b2a_base64(s, newline=False)


_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_EQUALS = ord("=")
_ENCODED_AT_ONCE = 3 << 16


def _without_bits(count: int) -> NDArray[np.uint8]:
    """For each character the one with that many of its lowest bits 0."""
    out = np.arange(256, dtype=np.uint8)
    out[_ALPHABET] = _ALPHABET[np.arange(64) >> count << count]
    return out


_BEFORE_ONE, _BEFORE_TWO = _without_bits(2), _without_bits(4)


class ArrowCells(Cells):
    """Columns as Arrow's arrays of bytes."""

    def digits(self, values: NDArray[np.int64], codes: NDArray[np.int8], words: Sequence[bytes]) -> Any:
        """Return whole numbers, or the word of a code where it is 0 or more."""
        numbers = pa.array(values).cast(pa.string()).cast(pa.binary())
        if (codes < 0).all():
            return numbers
        return pc.if_else(pa.array(codes < 0), numbers, self.words(np.maximum(codes, 0), words))

    def words(self, codes: NDArray[np.int8], words: Sequence[bytes]) -> Any:
        """Return the word of each code."""
        return _words(tuple(words)).take(pa.array(codes))

    def base64(self, view: memoryview, positions: NDArray[np.int64], lengths: NDArray[np.int64]) -> Any:
        """Return bytes of a buffer as base64, nothing where a length is below 0."""
        kept = np.maximum(lengths, 0)
        # Groups of three are gathered, the last one with whatever follows in the buffer: its bits are cleared in the text.
        ends = positions + (kept + 2) // 3 * 3
        if ends[-1] > len(view) or (positions[1:] < ends[:-1]).any():
            return self.texts(PlainCells().base64(view, positions, lengths))
        gathered = gather(view, positions, ends)
        count = len(kept)
        bounds = np.frombuffer(gathered.buffers()[1], np.int32)[: count + 1] // 3 * 4
        text = _encoded(gathered.buffers()[2], int(bounds[-1]) // 4 * 3)
        del gathered  # it holds as many bytes as the text
        characters = np.frombuffer(text, np.uint8)
        left = kept % 3
        ones, twos = bounds[1:][left == 2], bounds[1:][left == 1]
        characters[ones - 2] = _BEFORE_ONE[characters[ones - 2]]
        characters[twos - 3] = _BEFORE_TWO[characters[twos - 3]]
        for equals in (ones - 1, twos - 1, twos - 2):
            characters[equals] = _EQUALS
        return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(text)])

    def texts(self, texts: list[bytes]) -> Any:
        """Return these."""
        return pa.array(texts, pa.binary())

    def joined(self, constants: Sequence[bytes], columns: Sequence[Any]) -> memoryview:
        """Return each record's cells behind each other in one buffer: a constant before each, and one behind the last."""
        cells = [_constant(constants[0])]
        for column, constant in zip(columns, constants[1:], strict=True):
            cells += [column, _constant(constant)]
        lines = pc.binary_join_element_wise(*cells, _constant(b""))
        bounds = np.frombuffer(lines.buffers()[1], np.int32)
        return memoryview(lines.buffers()[2])[: int(bounds[len(lines)])]


def _encoded(data: Any, length: int) -> bytearray:
    """Return base64 of the first bytes of a buffer, a multiple of 3, made in pieces so that it is held once."""
    text = bytearray(length // 3 * 4)
    view = memoryview(data)[:length] if length else memoryview(b"")
    for start in range(0, length, _ENCODED_AT_ONCE):
        piece = b64encode(view[start : start + _ENCODED_AT_ONCE])
        at = start // 3 * 4
        text[at : at + len(piece)] = piece
    return text


def gather(view: memoryview, starts: NDArray[np.int64], ends: NDArray[np.int64], bitmap: Any = None) -> Any:
    """Return parts of a buffer as an array of Arrow's over one buffer of its own: of an array of the parts and what lies between them, every second one.

    Args:
        ends: the position behind each part, not above the next start.
    """
    count = len(starts)
    bounds = np.empty(2 * count + 1, dtype=np.int32)
    bounds[0:-1:2] = starts
    bounds[1::2] = ends
    bounds[-1] = bounds[-2]
    whole = pa.Array.from_buffers(pa.binary(), 2 * count, [bitmap, pa.py_buffer(bounds), pa.py_buffer(view)])
    return whole.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))


@lru_cache(maxsize=256)
def _constant(text: bytes) -> Any:
    return pa.scalar(text, pa.binary())


@lru_cache(maxsize=256)
def _words(words: tuple[bytes, ...]) -> Any:
    return pa.array(words, pa.binary())
