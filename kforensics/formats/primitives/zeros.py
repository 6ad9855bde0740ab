"""Runs of zeros, which brokers leave behind what they have written to a preallocated file; holes of a sparse file are not read."""

from collections.abc import Callable, Iterator

from kforensics.formats.primitives.word_buffer import SegmentBytes

_WINDOW_LENGTH = 256 << 10
_ZEROS = memoryview(bytes(_WINDOW_LENGTH))


def nonzero_windows(source: SegmentBytes, start: int, end: int) -> Iterator[tuple[int, memoryview]]:
    """Yield position and bytes of each window between two positions that is not all zeros; the bytes are valid until the next one.

    Every byte is looked at, but for those that the file system names as a hole. A file that has become shorter ends there.

    Args:
        end: the position behind the last one.
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
    """Return the position of the first byte between two positions that is not zero, `end` where there is none.

    Args:
        source: the file, of which holes are not read where it names them.
        start: the first position that is searched.
        end: the position behind the last one.
    """
    for position, view in nonzero_windows(source, start, end):
        return position + len(view) - len(bytes(view).lstrip(b"\0"))
    return end


def without_zero_tail(source: SegmentBytes) -> bytes:
    """Return a file up to its last byte that is not zero.

    Args:
        source: a file whose content may be held in memory; its holes are not read where it names them.
    """
    out = bytearray()
    for position, view in nonzero_windows(source, 0, source.size):
        out += bytes(position - len(out))
        out += view
    return bytes(out.rstrip(b"\0"))
