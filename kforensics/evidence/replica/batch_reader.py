"""Batches and records of collected replicas, read where they were not kept."""

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Span
from kforensics.errors import EvidenceError
from kforensics.evidence.model import BUCKET_OFFSETS, Problem, Replica, Segment
from kforensics.evidence.replica.ends import AROUND_PARTING, PartOfFile, end_of_offsets, indexed_start
from kforensics.evidence.replica.segments import KEPT_BATCHES
from kforensics.formats.log.batch_table import BatchTable, empty_batches
from kforensics.formats.log.records import Record
from kforensics.formats.segment.walk import Level, SegmentWindow, iter_records, walk_segment
from kforensics.source.capture import CapturedSegment
from kforensics.source.mapped import EvidenceFile, open_below
from kforensics.source.store import store_of

_KEPT_TABLES = 8
"""Segments of which tables are kept for the next question."""

_KEPT_RUNS = 8
"""Runs of offsets of one segment of which rows are kept."""


class _Run(NamedTuple):
    """All batches of a segment that touch a run of offsets."""

    first: int
    last: int
    rows: BatchTable

    def followed_by(self, other: "_Run") -> "_Run":
        """Join this run and one that begins in it or right behind it."""
        is_new = ~np.isin(other.rows["position"], self.rows["position"])
        return _Run(self.first, max(self.last, other.last), np.concatenate([self.rows, other.rows[is_new]]))


class FileBatchReader:
    """Batches and records of collected replicas, from what was kept of them, from their files, or from captures.

    Where any input is a capture, digests replace the content of records, of those in files too, so that the two can be compared.

    Args:
        roots: where each input really is, by its index.
        with_content: whether records are wanted with their content: of captures then only those are read whose bytes they hold.
        spool: rows of segments that wait in a file.
    """

    def __init__(self, roots: Sequence[Path], *, with_content: bool = False, spool: "RowSpool | None" = None) -> None:
        self._roots = roots
        self._with_content = with_content
        self._spool = spool
        self._has_captures = not with_content and not all(store_of(root).holds_bytes for root in roots)
        self._lacks: dict[tuple[int, str], str] = {}
        self._captured: OrderedDict[tuple[int, str], BatchTable] = OrderedDict()
        self._runs: OrderedDict[tuple[int, str], list[_Run]] = OrderedDict()
        """What was read last of segments that were not read whole."""

    def take_lacks(self) -> tuple[Problem, ...]:
        """Return the content that was asked for since the last call and is not in the captures, with the file on the broker that has it."""
        lacks = tuple(Problem(input=at, path=path, message=words) for (at, path), words in self._lacks.items())
        self._lacks.clear()
        return lacks

    def batches(self, replica: Replica, first_offset: int, last_offset: int) -> BatchTable:
        """Return every sound batch that touches the offsets, in file order; a file that was read before and vanished since gives none.

        Raises:
            EvidenceError: a segment that was not read whole can't be read: what it lacks then is no lack of the log.
        """
        parts = []
        for at, segment in enumerate(replica.segments):
            if not _touches(segment, first_offset, last_offset):
                continue
            if segment.unread_below and not self._is_captured(replica):
                rows = self._rows_by_index(replica, segment, first_offset, last_offset)
            elif isinstance(segment.batches, Absent) or first_offset < segment.unread_below:
                spooled = (
                    None
                    if self._spool is None
                    else self._spool.rows(replica.input, segment.path, first_offset, last_offset)
                )
                rows = self._read_rows(replica, segment, first_offset, last_offset) if spooled is None else spooled
            else:
                rows = segment.batches
            rows = rows[
                (rows["last_offset"] >= first_offset) & (rows["base_offset"] <= last_offset) & rows["crc_valid"]
            ]
            if len(rows):
                rows["segment"] = at
                parts.append(rows)
        return _joined(parts)

    def records(self, replica: Replica, first_offset: int, last_offset: int) -> Iterator[Record]:
        """Yield every record at the offsets, in file order; damaged places, and segments that can't be read, give none."""
        for segment in replica.segments:
            if not _touches(segment, first_offset, last_offset):
                continue
            try:
                with self._open(replica, segment) as file:
                    if isinstance(file, CapturedSegment) and not self._with_content:
                        yield from self._captured_records(file, replica, segment, first_offset, last_offset)
                        continue
                    start, end = self._place_of(replica, segment, file, first_offset, last_offset)
                    for record in iter_records(PartOfFile(file, end), start=start):
                        if not isinstance(record, Record):
                            continue
                        if first_offset <= record.offset <= last_offset:
                            yield _digested(record) if self._has_captures else record
                        elif record.batch_base_offset > last_offset:
                            break
            except EvidenceError as error:
                self._note_error(replica, segment, error)

    def lack_of_content(self, replica: Replica, first_offset: int, last_offset: int) -> str | None:
        """Return why the content of the records at the offsets can't be read from a capture; none where it can be, and of files."""
        if not self._is_captured(replica):
            return None
        for segment in replica.segments:
            if _touches(segment, first_offset, last_offset):
                try:
                    with self._open(replica, segment) as file:
                        # Of the metadata log a capture holds the files themselves.
                        if not isinstance(file, CapturedSegment):
                            continue
                        if _held_span(file, segment, first_offset, last_offset) is None:
                            capture, inner = file.capture, file.inner.rpartition("/")[0]
                            return f"the capture does not hold their content: read {capture.where(inner)}"
                except EvidenceError as error:
                    return error.problem
        return None

    def _captured_records(
        self, file: CapturedSegment, replica: Replica, segment: Segment, first_offset: int, last_offset: int
    ) -> Iterator[Record]:
        from kforensics.evidence.captured.reading import captured_records, has_records  # noqa: PLC0415 - of captures alone

        found = False
        for record in captured_records(file):
            if first_offset <= record.offset <= last_offset:
                found = True
                yield record
        if not found and not has_records(file):
            self._note(file, replica, segment, "records")

    def _open(self, replica: Replica, segment: Segment) -> EvidenceFile:
        return open_below(self._roots[replica.input], segment.path)

    def _is_captured(self, replica: Replica) -> bool:
        return not store_of(self._roots[replica.input]).holds_bytes

    def _rows_by_index(self, replica: Replica, segment: Segment, first_offset: int, last_offset: int) -> BatchTable:
        """Rows of a segment that was not read whole: those that were kept, and those below, which are asked for again and again."""
        if isinstance(segment.batches, Absent):
            kept, below = empty_batches(), last_offset
        else:
            kept, below = segment.batches, min(last_offset, segment.unread_below - 1)
        if first_offset > below:
            return kept
        rows = self._run(replica, segment, first_offset, below)
        if last_offset < segment.unread_below or not len(kept):
            return rows
        below_kept = rows[rows["position"] < kept["position"][0]]
        return _joined([below_kept, kept] if len(below_kept) else [kept])

    def _run(self, replica: Replica, segment: Segment, first_offset: int, last_offset: int) -> BatchTable:
        """Rows that touch the offsets, with others around them; what was read before is not read again."""
        runs = self._runs.setdefault((replica.input, segment.path), [])
        self._runs.move_to_end((replica.input, segment.path))
        while len(self._runs) > _KEPT_TABLES:
            self._runs.popitem(last=False)
        near = next((run for run in runs if run.first <= last_offset + 1 and first_offset <= run.last + 1), None)
        if near is None:
            near = self._read_run(replica, segment, first_offset, last_offset)
        else:
            runs.remove(near)
            if first_offset < near.first:
                near = self._read_run(replica, segment, first_offset, near.first - 1).followed_by(near)
            if near.last < last_offset:
                near = near.followed_by(self._read_run(replica, segment, near.last + 1, last_offset))
        runs.insert(0, near)
        del runs[_KEPT_RUNS:]
        return near.rows

    def _read_run(self, replica: Replica, segment: Segment, first_offset: int, last_offset: int) -> _Run:
        rows = self._read_rows(replica, segment, first_offset, last_offset)
        if len(rows):
            # An index leads to a batch before the offset, and the last batch reaches behind it.
            first_offset = min(first_offset, int(rows["base_offset"][0]))
            last_offset = max(last_offset, int(rows["last_offset"][-1]))
        return _Run(first_offset, last_offset, rows)

    def _read_rows(self, replica: Replica, segment: Segment, first_offset: int, last_offset: int) -> BatchTable:
        parts = []
        try:
            with self._open(replica, segment) as file:
                if isinstance(file, CapturedSegment):
                    if first_offset < segment.batches_from and not isinstance(segment.first_offset, Absent):
                        self._note(file, replica, segment, f"batches below offset {segment.batches_from}")
                    return self._captured_rows(file, replica, segment)
                start, end = self._place_of(replica, segment, file, first_offset, last_offset)
                for window in _walk(file, start, end):
                    parts.append(window.batches)
                    if len(window.batches) and int(window.batches["base_offset"][-1]) > last_offset:
                        break
        except EvidenceError as error:
            if segment.unread_below and not self._is_captured(replica):
                raise
            self._note_error(replica, segment, error)
        return _joined(parts)

    def _place_of(
        self, replica: Replica, segment: Segment, file: EvidenceFile, first_offset: int, last_offset: int
    ) -> tuple[int, int]:
        """Return the positions between which every batch that touches the offsets is read."""
        if isinstance(file, CapturedSegment):
            held = _held_span(file, segment, first_offset, last_offset)
            if held is None:
                raise file.missing()
            return held.position, held.end
        if not segment.unread_below:
            return start_position(segment, first_offset), file.size
        index = self._roots[replica.input] / (segment.path.removesuffix(".log") + ".index")
        start = indexed_start(index, file, segment.base_offset, first_offset)
        kept = segment.batches
        if last_offset < segment.unread_below and not isinstance(kept, Absent) and len(kept):
            end = int(kept["position"][0])
            if 0 <= end - start <= AROUND_PARTING:  # what lies between is asked for next
                return start, end
        near = indexed_start(index, file, segment.base_offset, last_offset)
        return start, end_of_offsets(file, max(start, near), last_offset)

    def _captured_rows(self, file: CapturedSegment, replica: Replica, segment: Segment) -> BatchTable:
        key = (replica.input, segment.path)
        if key not in self._captured:
            from kforensics.evidence.captured.reading import captured_batches  # noqa: PLC0415 - of captures alone

            self._captured[key] = captured_batches(file)
            while len(self._captured) > _KEPT_TABLES:
                self._captured.popitem(last=False)
        return self._captured[key]

    def _note_error(self, replica: Replica, segment: Segment, error: EvidenceError) -> None:
        """Note an error of a capture; a file that vanished since its scan is reported as a change elsewhere."""
        if self._is_captured(replica):
            self._lacks[replica.input, segment.path] = error.problem

    def _note(self, file: CapturedSegment, replica: Replica, segment: Segment, what: str) -> None:
        self._lacks[replica.input, segment.path] = f"the capture does not hold its {what}: read {file.missing().where}"


def _joined(parts: Sequence[BatchTable]) -> BatchTable:
    match parts:  # joining costs more than most questions
        case []:
            return empty_batches()
        case [only]:
            return only
        case _:
            return np.concatenate(parts)


def _walk(file: EvidenceFile, start: int, end: int) -> Iterator[SegmentWindow]:
    """Yield the windows between two positions; of the whole file where no sound batch is at the first, as an index may lead anywhere."""
    for window in walk_segment(PartOfFile(file, end), level=Level.CRC, start=start):
        if start and any(one.span.position == start for one in window.damage):
            yield from walk_segment(file, level=Level.CRC)
            return
        yield window


def _touches(segment: Segment, first_offset: int, last_offset: int) -> bool:
    if isinstance(segment.first_offset, Absent) or isinstance(segment.last_offset, Absent):
        return False
    return segment.first_offset <= last_offset and segment.last_offset >= first_offset


def _digested(record: Record) -> Record:
    from kforensics.evidence.captured.reading import digest_record  # noqa: PLC0415 - of captures alone

    return digest_record(record)


def _held_span(file: CapturedSegment, segment: Segment, first_offset: int, last_offset: int) -> Span | None:
    """Return where the batches that touch the offsets lie, none where the capture lacks bytes of theirs or may lack their rows."""
    if isinstance(segment.first_offset, Absent) or max(first_offset, segment.first_offset) < segment.batches_from:
        return None
    from kforensics.evidence.captured.reading import captured_batches, readable_ranges  # noqa: PLC0415 - of captures alone

    rows = captured_batches(file)
    rows = rows[(rows["last_offset"] >= first_offset) & (rows["base_offset"] <= last_offset)]
    if not len(rows):
        return Span(0, 0)
    start, end = int(rows["position"].min()), int((rows["position"] + rows["length"]).max())
    is_held = any(one.position <= start <= end <= one.end for one in readable_ranges(file))
    return Span(start, end - start) if is_held else None


def start_position(segment: Segment, first_offset: int) -> int:
    """Return a batch position from which every batch that touches the offset is read."""
    if not isinstance(segment.batches, Absent):
        before = segment.batches[segment.batches["last_offset"] < first_offset]
        reached = segment.batches[segment.batches["last_offset"] >= first_offset]
        return int(reached["position"][0]) if len(reached) else (int(before["position"][-1]) if len(before) else 0)
    # A batch belongs to the bucket of its base offset and may reach into the next one.
    earlier = segment.digests[segment.digests["bucket"] < first_offset // BUCKET_OFFSETS]
    return int(earlier["position"][-1]) if len(earlier) else 0


# Rows of batches that wait in a file without a name until they are asked for: of a large partition they take more memory than all else.


_ROW_LENGTH = empty_batches().dtype.itemsize
_BLOCK_ROWS = 512
"""Rows that are read together."""


@dataclass(frozen=True, slots=True)
class SpooledTable:
    """Where the rows of a part of a segment are, and which offsets each block of them touches."""

    position: int
    count: int
    lowest: NDArray[np.int64]
    """The lowest base offset of each block."""
    highest: NDArray[np.int64]
    """The highest last offset of each block."""


class RowSpool:
    """Rows of segments by input and path; forked processes write theirs to places of their own.

    Args:
        folder: on whose file system the file is made.
    """

    def __init__(self, folder: Path) -> None:
        import tempfile  # noqa: PLC0415 - of large partitions alone

        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - `close` closes it
        self._tables: dict[tuple[int, str], Sequence[SpooledTable]] = {}

    def write(self, number: int, rows: BatchTable) -> SpooledTable:
        """Write rows."""
        position = number * KEPT_BATCHES * _ROW_LENGTH
        left, at = _octets(np.ascontiguousarray(rows)), position
        while left:
            count = os.pwrite(self._file.fileno(), left, at)
            left, at = left[count:], at + count
        edges = np.arange(0, len(rows), _BLOCK_ROWS)
        lowest = np.minimum.reduceat(rows["base_offset"], edges) if len(rows) else np.empty(0, np.int64)
        highest = np.maximum.reduceat(rows["last_offset"], edges) if len(rows) else np.empty(0, np.int64)
        return SpooledTable(position, len(rows), lowest, highest)

    def add(self, input_index: int, path: str, tables: Sequence[SpooledTable]) -> None:
        """Take note of all rows of a segment."""
        self._tables[input_index, path] = tables

    def read(self, tables: Sequence[SpooledTable]) -> BatchTable:
        """Return all rows."""
        return np.concatenate([empty_batches(), *(self._rows(one, 0, one.count) for one in tables)])

    def rows(self, input_index: int, path: str, first_offset: int, last_offset: int) -> BatchTable | None:
        """Return the rows that touch the offsets, with others around them, in file order; none of a segment whose rows are not here, or can't be read any more."""
        tables = self._tables.get((input_index, path))
        if tables is None:
            return None
        found = [empty_batches()]
        try:
            for one in tables:
                touched = np.flatnonzero((one.lowest <= last_offset) & (one.highest >= first_offset))
                for run in np.split(touched, np.flatnonzero(np.diff(touched) > 1) + 1) if len(touched) else ():
                    first, end = int(run[0]) * _BLOCK_ROWS, min((int(run[-1]) + 1) * _BLOCK_ROWS, one.count)
                    found.append(self._rows(one, first, end))
        except OSError:
            return None  # the segment says the same
        return np.concatenate(found)

    def _rows(self, table: SpooledTable, first: int, end: int) -> BatchTable:
        rows = empty_batches(end - first)
        left, at = _octets(rows), table.position + first * _ROW_LENGTH
        while left:
            count = os.preadv(self._file.fileno(), [left], at)
            if not count:
                raise OSError("rows of batches that were put aside are not there any more")
            left, at = left[count:], at + count
        return rows

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


def _octets(rows: BatchTable) -> memoryview:
    octets: Any = rows.view(np.uint8)
    return memoryview(octets)
