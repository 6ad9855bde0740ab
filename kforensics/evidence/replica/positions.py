"""Where in a segment the batches of some offsets are, by its offset index, as far as the index leads to batches."""

from bisect import bisect_right
from pathlib import Path

from kforensics.errors import EvidenceError
from kforensics.formats.index.sparse import OFFSET_ENTRY_LENGTH
from kforensics.formats.log.batch_table import HEADER_UP_TO_MAGIC, LOG_OVERHEAD, NEWEST_MAGIC
from kforensics.formats.primitives.word_buffer import SegmentBytes
from kforensics.source.mapped import EvidenceFile, open_evidence

PAGE = 4096
"""The bytes of an index that are read at once."""

HEADERS = 256
"""The bytes of a segment that are read at once where its headers alone are of use: those of a few small batches."""


class PartOfFile:
    """A segment up to a position: a walk of it reads nothing behind."""

    def __init__(self, file: SegmentBytes, end: int) -> None:
        self._file = file
        self.size = min(end, file.size)

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill the buffer up to the end of the part, and return the number of bytes read.

        Args:
            position: in bytes from the start of the file.
            buffer: where the bytes are written.

        Raises:
            EvidenceUnreadable: the operating system refuses.
        """
        return self._file.read_into(position, buffer[: max(self.size - position, 0)])


class IndexEntries:
    """The entries of an offset index that are in use, read by pages; preallocated zeros behind them are found by halving."""

    def __init__(self, index: EvidenceFile) -> None:
        self._index = index
        self._pages: dict[int, bytes] = {}
        self.count = self._used()

    def _used(self) -> int:
        # Positions rise to the last entry and are zero in the preallocated rest.
        whole = self._index.size // OFFSET_ENTRY_LENGTH
        if whole and self.position(whole - 1) > 0:
            return whole
        return bisect_right(range(whole), 0, key=lambda at: int(self.position(at) <= 0))

    def position(self, at: int) -> int:
        """Return the position in the segment that an entry names, as it is on disk.

        Args:
            at: the number of the entry, from 0.
        """
        return int.from_bytes(self._entry(at)[4:], signed=True)

    def offset(self, at: int) -> int:
        """Return the offset that an entry names, relative to the base offset of the segment, as it is on disk.

        Args:
            at: the number of the entry, from 0.
        """
        return int.from_bytes(self._entry(at)[:4], signed=True)

    def at_or_below(self, offset: int) -> int | None:
        """Return the number of the last entry whose relative offset is not above another one, none where all are.

        Args:
            offset: relative to the base offset of the segment; in an index that does not rise the result means nothing.
        """
        at = bisect_right(range(self.count), offset, key=self.offset)
        return at - 1 if at else None

    def _entry(self, at: int) -> bytes:
        page, within = divmod(at * OFFSET_ENTRY_LENGTH, PAGE)
        if page not in self._pages:
            self._pages[page] = self._index.read(page * PAGE, PAGE)
        return self._pages[page][within : within + OFFSET_ENTRY_LENGTH]


def indexed_position(index: Path, relative_offset: int | None = None) -> int:
    """Return the position that an index names for an offset; 0 where it names none, or can't be read.

    Args:
        index: the path of the offset index; what it says is not proven here.
        relative_offset: to the base offset of the segment; None for the position of its last entry.
    """
    try:
        with open_evidence(index) as file:
            entries = IndexEntries(file)
            at = entries.count - 1 if relative_offset is None else entries.at_or_below(relative_offset)
            return 0 if at is None or at < 0 else entries.position(at)
    except EvidenceError:
        return 0


def indexed_start(index: Path, segment: EvidenceFile, base_offset: int, offset: int | None = None) -> int:
    """Return the position of a batch at or before an offset, by an index.

    Args:
        index: where the index is.
        offset: which; the last one that the index has an entry for where it is not given.

    Returns:
        The position, 0 where the index leads to none.
    """
    position = indexed_position(index, None if offset is None else offset - base_offset)
    found = batch_at(segment, position)
    highest = found is not None and base_offset <= found[0] and (offset is None or found[0] <= offset)
    return position if position and highest else 0


def batch_at(segment: EvidenceFile, position: int) -> tuple[int, int] | None:
    """Return the offset in the header of what may be a batch or a message, and its length in bytes; none where nothing seems to be there.

    Args:
        position: a claim, as of an index; one outside of the file is allowed.
    """
    if not 0 <= position < segment.size:
        return None
    return _header(segment.read(position, HEADER_UP_TO_MAGIC), segment.size - position)


def _header(head: bytes, left: int) -> tuple[int, int] | None:
    if len(head) < HEADER_UP_TO_MAGIC:
        return None
    offset, length, magic = int.from_bytes(head[:8], signed=True), int.from_bytes(head[8:12], signed=True), head[16]
    fits = 0 < length <= left - LOG_OVERHEAD
    return (offset, length + LOG_OVERHEAD) if fits and magic <= NEWEST_MAGIC else None


def end_of_offsets(segment: EvidenceFile, start: int, last_offset: int) -> int:
    """Return the position behind the first batch that lies above an offset, going from header to header; the end of the file where a header can't be one.

    A message of magic 0 and 1 names the last offset that it wraps, so that the first one above the offset may hold it.

    Args:
        start: a position where a batch begins.
    """
    position, page, page_at = start, b"", start
    while position < segment.size:
        if not page_at <= position <= page_at + len(page) - HEADER_UP_TO_MAGIC:
            page_at, page = position, segment.read(position, HEADERS)
        found = _header(page[position - page_at : position - page_at + HEADER_UP_TO_MAGIC], segment.size - position)
        if found is None:
            return segment.size
        position += found[1]
        if found[0] > last_offset:
            return position
    return segment.size
