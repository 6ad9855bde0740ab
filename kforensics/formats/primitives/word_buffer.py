"""A reused buffer that numpy can read at any position: one, two or eight bytes at a time, or a header."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

PADDING = 64
"""The number of spare bytes behind the content, so that a header or a word read at its last byte stays inside the buffer."""

HEADER_LENGTH = 61


class SegmentBytes(Protocol):
    """The interface of a file that a walk reads."""

    @property
    def size(self) -> int:
        """Return the size of the file when it was opened, in bytes."""
        ...

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer from a position and return the number of bytes read, fewer at the end of the file; what lies behind them keeps its content."""
        ...


class WordBuffer:
    """A buffer with five views; the first `filled` bytes are content, the rest is stale and what is read of it is ignored."""

    __slots__ = ("capacity", "content", "filled", "headers", "octets", "pairs", "view", "words")

    def __init__(self, capacity: int) -> None:
        self.filled = 0
        self._allocate(capacity)

    def _allocate(self, capacity: int) -> None:
        self.capacity = capacity
        self.content = bytearray(capacity + PADDING)
        self.view = memoryview(self.content)
        self.octets: NDArray[np.uint8] = np.frombuffer(self.view, np.uint8)
        self.pairs: NDArray[np.uint16] = np.ndarray((capacity + PADDING - 2,), "<u2", buffer=self.view, strides=(1,))
        self.words: NDArray[np.uint64] = np.ndarray((capacity + PADDING - 8,), "<u8", buffer=self.view, strides=(1,))
        self.headers: NDArray[Any] = np.ndarray((capacity,), f"V{HEADER_LENGTH}", buffer=self.view, strides=(1,))

    def ensure(self, capacity: int) -> None:
        """Make the buffer hold at least `capacity` bytes; it loses its content if it has to grow."""
        if capacity > self.capacity:
            self._replace(capacity)

    def shrink(self, capacity: int) -> None:
        """Make the buffer hold `capacity` bytes again; it loses its content."""
        self._replace(capacity)

    def _replace(self, capacity: int) -> None:
        self.filled = 0
        # The old buffer is released first: both at once would double the peak. Earlier views of it are invalid from here on.
        view = self.view
        del self.content, self.view, self.octets, self.pairs, self.words, self.headers
        with suppress(BufferError):
            view.release()
        del view
        self._allocate(capacity)

    def load(self, source: SegmentBytes, position: int, length: int) -> int:
        """Read a run of a file into the buffer and return the number of bytes read, which `filled` says too: fewer where the file ends before."""
        self.ensure(length)
        self.filled = source.read_into(position, self.view[:length])
        return self.filled


def read_exactly(source: SegmentBytes, position: int, length: int) -> bytes:
    """Read a short run of a file, shorter at the end of the file, for places that are read once.

    Args:
        length: of the run in bytes; it is allocated at once, but never more than the file has.
    """
    buffer = memoryview(bytearray(max(0, min(length, source.size - position))))
    return bytes(buffer[: source.read_into(position, buffer)])


class MemoryBytes:
    """A segment in memory."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._view = memoryview(data)
        self.size = len(data)

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer from a position and return the number of bytes read, fewer at the end of the data; what lies behind them keeps its content."""
        part = self._view[position : position + len(buffer)]
        buffer[: len(part)] = part
        return len(part)


# Runs of zeros, which brokers leave behind what they have written to a preallocated file; holes of a sparse file are not read.


_WINDOW_LENGTH = 256 << 10
_ZEROS = memoryview(bytes(_WINDOW_LENGTH))


def nonzero_windows(source: SegmentBytes, start: int, end: int) -> Iterator[tuple[int, memoryview]]:
    """Yield position and bytes of each window between two positions that is not all zeros; the bytes are valid until the next one.

    Every byte is looked at, but for those that the file system names as a hole. A file that has become shorter ends there.
    """
    next_data: Callable[[int], tuple[int, int] | None] | None = getattr(source, "next_data", None)
    buffer = bytearray(min(_WINDOW_LENGTH, max(end - start, 0)))
    view = memoryview(buffer)
    position, data_end = start, start if next_data else end
    while position < end:
        if position >= data_end and next_data:
            run = next_data(position)
            if run is None:
                return
            position, data_end = run[0], max(run[1], run[0] + 1)
        filled = source.read_into(position, view[: max(min(end, data_end) - position, 0)])
        if not filled:
            return
        if not buffer.startswith(_ZEROS[:filled]):
            yield position, view[:filled]
        position += filled


def first_nonzero(source: SegmentBytes, start: int, end: int) -> int:
    """Return the position of the first byte between two positions that is not zero, `end` where there is none."""
    for position, view in nonzero_windows(source, start, end):
        return position + len(view) - len(bytes(view).lstrip(b"\0"))
    return end


def without_zero_tail(source: SegmentBytes) -> bytes:
    """Return a file up to its last byte that is not zero."""
    out = bytearray()
    for position, view in nonzero_windows(source, 0, source.size):
        out += bytes(position - len(out))
        out += view
    return bytes(out.rstrip(b"\0"))
