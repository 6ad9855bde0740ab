"""A reused run of bytes that numpy can read at any place, a byte or eight bytes at a time."""

from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

PADDING = 64
"""Bytes behind the content, so that a header or a word read at its last byte stays inside."""

HEADER_LENGTH = 61


class SegmentBytes(Protocol):
    """What a walk needs of a file."""

    @property
    def size(self) -> int:
        """Bytes of the file when it was opened."""
        ...

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer from a position; short at the end of the file."""
        ...


class WordBuffer:
    """Bytes with four views of them; `filled` of them are content, the rest is stale and only ever read to be thrown away."""

    __slots__ = ("capacity", "content", "filled", "headers", "octets", "view", "words")

    def __init__(self, capacity: int) -> None:
        self.filled = 0
        self._allocate(capacity)

    def _allocate(self, capacity: int) -> None:
        self.capacity = capacity
        self.content = bytearray(capacity + PADDING)
        self.view = memoryview(self.content)
        self.octets: NDArray[np.uint8] = np.frombuffer(self.view, np.uint8)
        self.words: NDArray[np.uint64] = np.ndarray((capacity + PADDING - 8,), "<u8", buffer=self.view, strides=(1,))
        self.headers: NDArray[Any] = np.ndarray((capacity,), f"V{HEADER_LENGTH}", buffer=self.view, strides=(1,))

    def ensure(self, capacity: int) -> None:
        """Hold at least `capacity` bytes; what was in it is gone if it has to grow."""
        if capacity > self.capacity:
            self._replace(capacity)

    def shrink(self, capacity: int) -> None:
        """Hold `capacity` bytes again once it has grown; what was in it is gone."""
        self._replace(capacity)

    def _replace(self, capacity: int) -> None:
        self.filled = 0
        # The old buffer goes first: both at once would double the peak. Who still holds a view of it may no longer look through it.
        view = self.view
        del self.content, self.view, self.octets, self.words, self.headers
        with suppress(BufferError):
            view.release()
        del view
        self._allocate(capacity)

    def load(self, source: SegmentBytes, position: int, length: int) -> int:
        """Read a run of a file, as much of it as is there."""
        self.ensure(length)
        self.filled = source.read_into(position, self.view[:length])
        return self.filled


def read_exactly(source: SegmentBytes, position: int, length: int) -> bytes:
    """A short run of a file, shorter at its end; for places that are looked at once."""
    buffer = memoryview(bytearray(max(0, min(length, source.size - position))))
    return bytes(buffer[: source.read_into(position, buffer)])


class MemoryBytes:
    """A segment in memory."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._view = memoryview(data)
        self.size = len(data)

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer from a position; short at the end of the data."""
        part = self._view[position : position + len(buffer)]
        buffer[: len(part)] = part
        return len(part)
