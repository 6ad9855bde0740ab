"""Read many small ranges of many files: in the order of their places, with many requests under way at once.

A disk behind a network answers one request in milliseconds and sixty-four in the same milliseconds. What is in memory already is read by the caller's own thread, and so is what
a local disk answers at once, since threads would cost more than it does; only where each answer is waited for, requests wait in threads. Pages that were not in memory
before are given back, so that a broker keeps its own.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from kforensics.errors import EvidenceError
from kforensics.source.mapped import PAGE, EvidenceFile, held_ranges, open_evidence, read_rate_is_limited

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

MOST_REQUESTS = 64
"""The requests that are under way at once."""

PROBES = 8
"""The first requests that the disk must be asked for are sent one after the other: threads are begun where even the quickest answer took a `LONG_WAIT`."""
LONG_WAIT = 0.0003
"""Seconds: a local disk without moving parts is quicker, what is behind a network is not."""

LARGEST_REQUEST = 1 << 20
"""Ranges of one file that are less than a page apart are read by one request, unless it would be longer than this."""


class Range(NamedTuple):
    """Bytes that are wanted: `length` of them from `position` on."""

    path: Path | str
    position: int
    length: int


class RangeRead(NamedTuple):
    """What became of a range: its bytes, fewer than were wanted where the file ends before; or the error, and no bytes."""

    wanted: Range
    data: bytes
    error: EvidenceError | None = None
    version: tuple[int, ...] | None = None
    """That of the file which gave the bytes; none where they are not of the operating system."""


def read_ranges(wanted: Iterable[Range], *, requests: int = MOST_REQUESTS) -> Generator[RangeRead, None, None]:
    """Read ranges of files.

    Args:
        wanted: the ranges, in any order; they may overlap, and be of files that are not there. All are held, the bytes of a few hundred at a time.
        requests: the most reads that wait for a disk at once; one where a rate was set with `limit_read_rate`.

    Returns:
        Each range once, by path and position. Files that are missing, end early or can't be read are results, never exceptions.
    """
    pending: deque[_Request] = deque()
    threads: ThreadPoolExecutor | None = None
    waits: list[float] = []
    most = 1 if read_rate_is_limited() else requests
    try:
        for request in _requests(sorted(wanted, key=lambda one: (str(one.path), one.position, one.length))):
            if request.needs_disk() and most > 1:
                if len(waits) < PROBES:
                    begun = perf_counter()
                    request.read()
                    waits.append(perf_counter() - begun)
                elif min(waits, default=LONG_WAIT) >= LONG_WAIT:
                    # No thread is left behind where a process is forked later.
                    threads = threads or _threads(most)
                    request.under_way = threads.submit(request.read)
            pending.append(request)
            if len(pending) >= 2 * most:
                yield from pending.popleft().results()
        while pending:
            yield from pending.popleft().results()
    finally:
        if threads is not None:
            threads.shutdown(cancel_futures=True)
        for request in pending:
            request.close(early=True)


def _threads(most: int) -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - 10 ms, which a local disk does not need

    return ThreadPoolExecutor(most, thread_name_prefix="ranges")


@contextmanager
def at_hand(wanted: Iterable[Range]) -> Iterator[None]:
    """Hold ranges of files in memory for as long as the block runs: a read that lies within one of them does not wait for a disk.

    Blocks may be nested; all that is held is let go with the outer one. What could not be read is not held, so that whoever reads it meets the error.
    """
    is_outer = not held_ranges
    try:
        # Of most files nothing has to be waited for, and no order of requests to be found.
        for one in read_ranges([one for one in wanted if not _is_held_from_memory(one)]):
            if one.data and one.version is not None:
                held_ranges.add(str(one.wanted.path), one.version, one.wanted.position, one.data)
        yield
    finally:
        if is_outer:
            held_ranges.clear()


def _is_held_from_memory(wanted: Range) -> bool:
    """Hold a range that the system has in memory; return whether it has all of it."""
    path, position, length = wanted
    try:
        with open_evidence(path) as file:
            length = min(length, file.size - position)
            if position < 0 or length <= 0:
                return False
            file.expect_random_reads()
            buffer = bytearray(length)
            if file.read_from_memory(position, memoryview(buffer)) != length:
                return False
            held_ranges.add(str(path), file.version, position, bytes(buffer))
    except EvidenceError:
        return False  # which is met again
    return True


class _Request:
    """One read: the ranges that it answers, in order, all of one file."""

    def __init__(self, ranges: list[Range], file: EvidenceFile | EvidenceError, *, last: bool) -> None:
        self.under_way: Future[None] | None = None
        self._ranges = ranges
        self._file = file
        self._last = last
        self._position = ranges[0].position
        end = max(one.position + one.length for one in ranges)
        there = 0 if isinstance(file, EvidenceError) or self._position < 0 else min(end, file.size)
        self._buffer = bytearray(max(there - max(self._position, 0), 0))
        self._filled = 0
        self._is_cache_shown = self._is_read = False
        self._version = file.version if isinstance(file, EvidenceFile) and file.is_of_the_system else None
        self._error: EvidenceError | None = file if isinstance(file, EvidenceError) else None

    def needs_disk(self) -> bool:
        """Read what is in memory; return whether bytes are missing that a thread can wait for."""
        if isinstance(self._file, EvidenceError) or not self._buffer:
            return False
        count = self._file.read_from_memory(self._position, memoryview(self._buffer))
        self._is_cache_shown = count is not None
        self._filled = count or 0
        return self._file.is_of_the_system and self._filled < len(self._buffer)

    def read(self) -> None:
        if isinstance(self._file, EvidenceError) or self._is_read or self._filled == len(self._buffer):
            return
        self._is_read = True
        start = self._position + self._filled
        try:
            self._filled += self._file.read_into(start, memoryview(self._buffer)[self._filled :])
        except EvidenceError as error:
            self._error = error
        if self._is_cache_shown:
            self._file.leave_memory(start, self._position + len(self._buffer))

    def results(self) -> Iterator[RangeRead]:
        try:
            if self.under_way is None:
                self.read()
            else:
                self.under_way.result()
            for one in self._ranges:
                yield self._result(one)
        finally:
            self.close()

    def _result(self, one: Range) -> RangeRead:
        if self._error is None:
            start = one.position - self._position
            end = min(start + max(one.length, 0), self._filled)
            return RangeRead(one, bytes(memoryview(self._buffer)[start:end]), version=self._version)
        if len(self._ranges) == 1 or isinstance(self._file, EvidenceError):
            return RangeRead(one, b"", self._error)
        try:  # what is wrong with a range is nothing against its neighbours
            return RangeRead(one, self._file.read(one.position, one.length), version=self._version)
        except EvidenceError as error:
            return RangeRead(one, b"", error)

    def close(self, *, early: bool = False) -> None:
        if (self._last or early) and isinstance(self._file, EvidenceFile):
            self._file.close()


def _requests(ranges: list[Range]) -> Iterator[_Request]:
    """Yield the requests for sorted ranges; requests of one file share its descriptor, which the last of them closes."""
    at = 0
    while at < len(ranges):
        path = ranges[at].path
        file: EvidenceFile | EvidenceError
        try:
            file = open_evidence(path)
            file.expect_random_reads()
        except EvidenceError as error:
            file = error
        of_file = at
        while of_file < len(ranges) and ranges[of_file].path == path:
            of_file += 1
        while at < of_file:
            first = at
            end = ranges[at].position + ranges[at].length
            at += 1
            while at < of_file and _joins(ranges[first].position, end, ranges[at]):
                end = max(end, ranges[at].position + ranges[at].length)
                at += 1
            yield _Request(ranges[first:at], file, last=at == of_file)


def _joins(start: int, end: int, next_one: Range) -> bool:
    return (
        start >= 0 and next_one.position - end < PAGE and next_one.position + next_one.length - start <= LARGEST_REQUEST
    )
