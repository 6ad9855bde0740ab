"""Batches as Kafka's loader finds them: it follows their lengths alone, and ends at a length that leads to no batch.

They are read one by one, or where a load scans much the sound ones as columns, and by several processes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import accumulate, repeat, takewhile
from pathlib import Path
from struct import Struct
from typing import NamedTuple

import numpy as np

from kforensics.damage import Absent
from kforensics.errors import EvidenceError, EvidenceUnreadable, FormatError
from kforensics.evidence.parallel import WORTH_A_PROCESS, Progress, spread
from kforensics.evidence.segment_parts import Part, split_segment
from kforensics.formats.log.batch_table import (
    BATCH_HEADER,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_COVERED_POSITION,
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    NEWEST_MAGIC,
    SMALLEST_BATCH_LENGTH,
    SMALLEST_MESSAGE_LENGTH,
    TRANSACTIONAL_BIT,
    BatchTable,
    empty_batches,
)
from kforensics.formats.log.batches import iter_batch_records, iter_message_records
from kforensics.formats.log.loader_values import (
    SHORT_MARKER,
    Batches,
    LoadedBatch,
    LoadFailure,
    ReaderStep,
    TransactionEnd,
    bare_batch,
    headed_batch,
)
from kforensics.formats.primitives.checksum import crc32, crc32c
from kforensics.formats.primitives.word_buffer import WordBuffer
from kforensics.formats.segment.entries import read_entries
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import parse_file_name

SHORTEST_RECORD = SMALLEST_MESSAGE_LENGTH[0]
"""`LegacyRecord.RECORD_OVERHEAD_V0`: a length below it is corrupt."""
HEADER_WINDOW = 1 << 20

_OFFSET_LENGTH_MAGIC = Struct(">qi4xb").unpack_from
_OFFSET_LENGTH = Struct(">qi").unpack_from
_MARKER_KEY, _MARKER_VALUE = Struct(">hh"), Struct(">hi")
"""Version and type; version and coordinator epoch."""
_ABORT, _COMMIT = 0, 1
_OVERFLOW = 1 << 63
_LEGACY = Struct(">Ibbq").unpack_from
"""CRC, magic, attributes and timestamp of a message of magic 1, which follow its length."""


class _Window:
    """Bytes of a file around a position that moves forward."""

    def __init__(self, file: EvidenceFile) -> None:
        self._file, self._start, self._data = file, 0, b""

    def at(self, position: int, length: int) -> memoryview:
        """Return bytes from a position on, fewer at the end of the file."""
        if position < self._start or position + length > self._start + len(self._data):
            self._start, self._data = position, self._file.read(position, max(length, HEADER_WINDOW))
            if len(self._data) < min(length, self._file.size - position):
                raise EvidenceUnreadable(str(self._file.path), "it became shorter while it was read")
        return memoryview(self._data)[position - self._start : position - self._start + length]


def read_batches(file: EvidenceFile, start: int, *, checked: bool, end: int | None = None) -> Batches:
    """Return the batches from a position on, as `FileLogInputStream.nextBatch` finds them; checked, up to the first whose checksum fails (`ensureValid`)."""
    window, position, size = _Window(file), start, file.size
    last = size - HEADER_UP_TO_MAGIC if end is None else min(end, size - HEADER_UP_TO_MAGIC)
    found: list[LoadedBatch] = []
    corrupt = False
    while position < last:
        header = window.at(position, BATCH_HEADER.length)
        offset, length, magic = _OFFSET_LENGTH_MAGIC(header)
        if length < SHORTEST_RECORD:
            corrupt = True
            break
        if position > size - LOG_OVERHEAD - length:
            break
        batch = _batch(window, header, position, offset, length, magic, checked=checked)
        found.append(batch)
        if checked and not batch.is_valid:
            break
        position += length + LOG_OVERHEAD
    at_end = _OFFSET_LENGTH(window.at(position, LOG_OVERHEAD)) if position < size - LOG_OVERHEAD else None
    return Batches(batches=tuple(found), end=position, end_is_corrupt=corrupt, header_at_end=at_end)


def reader_at(file: EvidenceFile, position: int) -> ReaderStep:
    """Return how `FileLogInputStream.nextBatch` continues at a position where a batch should begin."""
    window, size = _Window(file), file.size
    if position >= size - HEADER_UP_TO_MAGIC:
        return ReaderStep.ENDS
    header = window.at(position, BATCH_HEADER.length)
    offset, length, magic = _OFFSET_LENGTH_MAGIC(header)
    if length < SHORTEST_RECORD:
        return ReaderStep.THROWS
    if position > size - LOG_OVERHEAD - length:
        return ReaderStep.ENDS
    batch = _batch(window, header, position, offset, length, magic, checked=True)
    return ReaderStep.SOUND if batch.is_valid else ReaderStep.INVALID


def _batch(
    window: _Window, header: memoryview, position: int, offset: int, length: int, magic: int, *, checked: bool
) -> LoadedBatch:
    whole = length + LOG_OVERHEAD
    if magic < 2:
        return _legacy_batch(window, position, offset, whole, magic, checked=checked)
    if len(header) < BATCH_HEADER.length:
        short = LoadFailure("KafkaException", f"Failed to load record batch at position {position}")
        return bare_batch(
            position=position, length=whole, offset=offset, magic=magic, is_valid=False, header_failure=short
        )
    _, _, epoch, _, crc, attributes, delta, _, latest, producer_id, producer_epoch, sequence, count = (
        BATCH_HEADER.struct.unpack_from(header)
    )
    is_valid = True
    if checked:
        data = window.at(position, whole)
        is_valid = length >= SMALLEST_BATCH_LENGTH and crc32c(data[CRC_COVERED_POSITION:]) == crc
    end: TransactionEnd | LoadFailure | Absent = Absent.NOT_APPLICABLE
    if attributes & CONTROL_BIT and is_valid and producer_id >= 0:
        end = transaction_end(window.at(position, whole), count)
    return headed_batch(
        position=position,
        length=whole,
        base_offset=offset,
        last_offset=_java_sum(offset, delta),
        magic=magic,
        leader_epoch=epoch,
        attributes=attributes,
        max_timestamp=latest,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        record_count=count,
        is_valid=is_valid,
        end=end,
    )


def _java_sum(offset: int, delta: int) -> int:
    """Return the sum of a damaged base offset and a delta as Kafka computes it: no checksum covers the offset, and 64 bits overflow."""
    end = offset + delta
    return end if -_OVERFLOW <= end < _OVERFLOW else (end + _OVERFLOW) % (2 * _OVERFLOW) - _OVERFLOW


def _legacy_batch(window: _Window, position: int, offset: int, whole: int, magic: int, *, checked: bool) -> LoadedBatch:
    """Return a message of magic 0 or 1, or bytes whose magic says so."""
    data = window.at(position, whole)
    crc, _, attributes, timestamp = _LEGACY(bytes(data[LOG_OVERHEAD : LOG_OVERHEAD + 14]).ljust(14, b"\0"))
    is_valid = not checked or crc32(data[LOG_OVERHEAD + 4 :]) == crc
    latest = -1 if magic == 0 else timestamp
    batch = bare_batch(
        position=position, length=whole, offset=offset, magic=magic, max_timestamp=latest, is_valid=is_valid
    )
    if not attributes & CODEC_MASK:
        return batch
    try:
        first = None if checked else next(iter_message_records(bytes(data), position), None)
    except FormatError:
        first = None
    return batch._replace(is_compressed_message=True) if first is None else batch._replace(base_offset=first.offset)


def transaction_end(data: memoryview, count: int) -> TransactionEnd | LoadFailure | Absent:
    """Return what the marker of a control batch says (`ControlRecordType.parse`, `EndTransactionMarker.deserialize`): later versions are read as the known one."""
    if count == 0:
        return Absent.NOT_APPLICABLE
    if len(data) < BATCH_HEADER.length:
        return LoadFailure("InvalidRecordException", "the batch ends within its header")
    try:
        record = next(iter(iter_batch_records(data, 0)))
    except (FormatError, StopIteration) as error:
        return LoadFailure("InvalidRecordException", str(error))
    key, value = record.key, record.value
    if key is None:
        return LoadFailure("NullPointerException", "the marker has no key")
    if len(key) < _MARKER_KEY.size or _MARKER_KEY.unpack_from(key)[0] < 0:
        return LoadFailure("InvalidRecordException", "Invalid key of a control record")
    type_id = _MARKER_KEY.unpack_from(key)[1]
    if type_id not in {_ABORT, _COMMIT}:
        return LoadFailure("IllegalArgumentException", "Invalid control record type for end transaction marker")
    if value is None:
        return LoadFailure("NullPointerException", "the marker has no value")
    if len(value) < _MARKER_VALUE.size:
        return LoadFailure(SHORT_MARKER, "the value of the marker is too short")
    version, epoch = _MARKER_VALUE.unpack_from(value)
    if version < 0:
        return LoadFailure("InvalidRecordException", "Invalid version found for end transaction marker")
    return TransactionEnd(type_id == _ABORT, epoch, record.timestamp_ms)


WINDOW_LENGTH = 6 << 20
"""Bytes that are read at once; a longer batch, and those behind it, are read one by one."""
WORTH_COLUMNS = 64 << 10
"""Bytes for which columns pay; the batches of a smaller segment are read one by one."""
GROUP_LENGTH = 1 << 30
"""Bytes of segments that are scanned ahead for each process: a segment is rarely longer."""


class _Scanned(NamedTuple):
    """What a scan found in a part of a segment."""

    sound: BatchTable
    """The batches of magic 2 with the right checksum that follow each other from its start on."""
    ends: dict[int, TransactionEnd | LoadFailure | Absent]
    """What the markers in them say, by row."""
    rest: Batches
    """What is behind them, up to the end of the part or to where the reader ends."""
    version: tuple[int, ...]
    """The version of the file that was read."""


ScannedParts = Mapping[int, tuple[Part, _Scanned | None]]
"""Parts of a segment by the positions at which they begin; None for one that could not be read."""


class ScansAhead:
    """Segments that loads are expected to scan: when one of them is asked for, several processes scan it and those that come next."""

    def __init__(self, *, jobs: int) -> None:
        self.jobs = jobs
        self._planned: Sequence[tuple[str, int]] = ()
        self._places: dict[str, int] = {}
        self._found: dict[str, ScannedParts] = {}

    def plan(self, planned: Sequence[tuple[str, int]]) -> None:
        """Expect segments to be asked for."""
        self._planned = planned
        self._places = {path: at for at, (path, _) in enumerate(planned)}

    @contextmanager
    def left_to_each(self) -> Iterator[None]:
        """Start no processes meanwhile: whoever asks for a segment scans it."""
        jobs, self.jobs = self.jobs, 1
        try:
            yield
        finally:
            self.jobs = jobs

    def take(self, path: str, length: int) -> ScannedParts:
        """Return the parts of a segment once; none where whoever asks is to scan it."""
        if self.jobs > 1 and path not in self._found:
            self._found = self._scan(self._group(path, length))
        return self._found.pop(path, {})

    def _group(self, path: str, length: int) -> list[tuple[str, int]]:
        """Return a segment with those that come next, as many as are worth their memory."""
        if path not in self._places:
            return [(path, length)]
        first = self._places[path]
        lengths = accumulate(length for _, length in self._planned[first:])
        count = sum(1 for _ in takewhile(lambda total: total <= self.jobs * GROUP_LENGTH, lengths))
        return list(self._planned[first : first + max(count, 1)])

    def _scan(self, group: list[tuple[str, int]]) -> dict[str, ScannedParts]:
        if sum(length for _, length in group) < 2 * WORTH_A_PROCESS:
            return {path: {} for path, _ in group}
        tasks = [(path, part) for path, length in group for part in self._split(path, length)]
        lengths = dict(group)
        weights = [part.length(lengths[path]) for path, part in tasks]
        found: dict[str, dict[int, tuple[Part, _Scanned | None]]] = {path: {} for path, _ in group}
        scan = partial(_scan_part, WordBuffer(0))
        for (path, part), one in zip(tasks, spread(scan, tasks, weights=weights, jobs=self.jobs), strict=True):
            found[path][part.start] = part, one
        return dict(found)

    def _split(self, path: str, length: int) -> list[Part]:
        base_offset = parse_file_name(path.rpartition("/")[2]).base_offset
        known = base_offset if isinstance(base_offset, int) else None
        return split_segment(Path(path), length=length, base_offset=known, jobs=self.jobs)


def _scan_part(window: WordBuffer, task: tuple[str, Part], _: Progress) -> _Scanned | None:
    path, part = task
    try:
        with open_evidence(path) as file:
            return _scan(file, part, window)
    except EvidenceError:
        return None  # it is met again, and named, where the segment is asked for


def scan_batches(file: EvidenceFile, start: int, parts: ScannedParts) -> Batches:
    """Return the batches from a position on with their checksums compared, as `read_batches` does."""
    if not file.is_of_the_system or file.size - start < WORTH_COLUMNS:
        return read_batches(file, start, checked=True)
    batches: list[LoadedBatch] = []
    position, window = start, WordBuffer(0)
    while True:
        part, one = parts.get(position, (Part(position, None), None))
        if one is None or one.version != file.version:
            # No part begins here, as where a batch of the part before ends elsewhere, or the file has changed.
            part = Part(position, None)
            one = _scan(file, part, window)
        batches += _loaded(one)
        batches += one.rest.batches
        position = one.rest.end
        if part.end is None or position < part.end:
            return replace(one.rest, batches=tuple(batches))


def _scan(file: EvidenceFile, part: Part, window: WordBuffer) -> _Scanned:
    position, stop = part.start, file.size if part.end is None else part.end
    tables: list[BatchTable] = []
    ends: dict[int, TransactionEnd | LoadFailure | Absent] = {}
    count = 0
    while position < stop:
        window.load(file, position, min(WINDOW_LENGTH, file.size - position))
        table = read_entries(window, 0, stop - position, position, with_checksums=True).table
        is_sound = table["crc_valid"] & (table["magic"] == NEWEST_MAGIC)
        rows = table if is_sound.all() else table[: int(np.argmin(is_sound))]
        if not len(rows):
            break
        is_marker = (rows["attributes"] & CONTROL_BIT != 0) & (rows["producer_id"] >= 0)
        for at in np.flatnonzero(is_marker).tolist():
            begin = int(rows["position"][at]) - position
            data = window.view[begin : begin + int(rows["length"][at])]
            ends[count + at] = transaction_end(data, int(rows["count"][at]))
        tables.append(rows)
        count += len(rows)
        position = int(rows["position"][-1]) + int(rows["length"][-1])
        if len(rows) < len(table):
            break
    sound = np.concatenate(tables) if tables else empty_batches()
    return _Scanned(sound, ends, read_batches(file, position, checked=True, end=part.end), file.version)


def _loaded(one: _Scanned) -> Iterable[LoadedBatch]:
    """Return sound rows as the reader gives them: a value for each field of `LoadedBatch`, in their order."""
    rows, count = one.sound, len(one.sound)
    ends: list[TransactionEnd | LoadFailure | Absent] = [Absent.NOT_APPLICABLE] * count
    for at, end in one.ends.items():
        ends[at] = end
    numbers = (
        rows["position"],
        rows["length"],
        rows["base_offset"],
        rows["last_offset"],
        rows["magic"],
        rows["partition_leader_epoch"],
        rows["max_timestamp"],
        rows["producer_id"],
        rows["producer_epoch"],
        rows["count"],
        rows["attributes"] & TRANSACTIONAL_BIT != 0,
        rows["attributes"] & CONTROL_BIT != 0,
        rows["crc_valid"],
    )
    no_failure = repeat(Absent.NOT_APPLICABLE, count)
    columns = (
        *(one.tolist() for one in numbers),
        ends,
        rows["base_sequence"].tolist(),
        repeat(False, count),
        no_failure,
    )
    return map(LoadedBatch._make, zip(*columns, strict=True))
