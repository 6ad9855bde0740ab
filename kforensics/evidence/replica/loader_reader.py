"""The files of a partition directory as Kafka's loader reads them: batches by their lengths alone, text files line by line.

The readers of `formats` are made for evidence: they go on behind damage and say what it is. These stop where Kafka stops, and say what Kafka throws.
"""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from struct import Struct

import numpy as np

from kforensics.damage import Absent
from kforensics.errors import EvidenceUnreadable, FormatError
from kforensics.evidence.replica.captured_loading import captured_content
from kforensics.evidence.replica.loader_text import read_epoch_file, read_topic_id
from kforensics.evidence.replica.loader_values import (
    SHORT_MARKER,
    AbortedEntry,
    Batches,
    Content,
    LoadedBatch,
    LoadFailure,
    Need,
    ProducerState,
    ReaderStep,
    TransactionEnd,
    bare_batch,
    headed_batch,
)
from kforensics.formats.index.offset import OFFSET_INDEX_LAYOUT
from kforensics.formats.index.producer_snapshot import parse_producer_snapshot
from kforensics.formats.index.time import read_last_time_entry, read_time_ends
from kforensics.formats.index.txn import TXN_ENTRY_LENGTH, parse_txn_index
from kforensics.formats.log.batch_table import CODEC_MASK, CONTROL_BIT
from kforensics.formats.log.message_set import iter_message_records
from kforensics.formats.log.record_batch import (
    BATCH_HEADER,
    CRC_COVERED_POSITION,
    LOG_OVERHEAD,
    SMALLEST_BATCH_LENGTH,
    iter_batch_records,
)
from kforensics.formats.primitives.checksum import crc32, crc32c
from kforensics.source.capture import CapturePath
from kforensics.source.foreign import ForeignPath
from kforensics.source.mapped import EvidenceFile, open_evidence, read_evidence

HEADER_UP_TO_MAGIC = 17
SHORTEST_RECORD = 14
"""`LegacyRecord.RECORD_OVERHEAD_V0`: a length below it is corrupt."""
WINDOW_LENGTH = 1 << 20
SMALL_FILE_LIMIT = 64 << 20
REMEMBERED_FILES, REMEMBERED_LENGTH = 1_024, 256
"""Small files of each kind that are decoded once, and the most bytes of one of them."""

_OFFSET_LENGTH_MAGIC = Struct(">qi4xb").unpack_from
_OFFSET_LENGTH = Struct(">qi").unpack_from
_MARKER_KEY, _MARKER_VALUE = Struct(">hh"), Struct(">hi")
"""Version and type; version and coordinator epoch."""
_ABORT, _COMMIT = 0, 1
_LEGACY = Struct(">Ibbq").unpack_from
"""CRC, magic, attributes and timestamp of a message of magic 1, which follow its length."""


def read_needed(folder: Path, need: Need) -> object:
    """Return the content that a rule asks for.

    Args:
        folder: the partition directory.
        need: the file and what of it.

    Returns:
        A value of the type that `Content` names.

    Raises:
        EvidenceError: the file can't be read.
        MissingBytes: it is in a capture, which does not hold what is asked for.
    """
    path: Path | str = f"{folder}/{need.file}"
    if isinstance(folder, ForeignPath):
        path = folder / need.file
        if isinstance(path, CapturePath) and (kept := captured_content(path, need)) is not None:
            return kept
    if (decode := _SMALL.get(need.content)) is not None:
        return decode(read_evidence(path, SMALL_FILE_LIMIT))
    with open_evidence(path) as file:
        match need.content:
            case Content.BATCHES | Content.CHECKED_BATCHES:
                return read_batches(file, need.position, checked=need.content is Content.CHECKED_BATCHES)
            case Content.OFFSET_INDEX:
                data = file.read(0, file.size - file.size % OFFSET_INDEX_LAYOUT.length)
                return _OffsetEntries(data)
            case Content.TIME_INDEX:
                if (ends := read_time_ends(file.read, file.size)) is None:
                    raise EvidenceUnreadable(str(path), "it became shorter while it was read")
                return ends
            case Content.LAST_TIMESTAMP:
                last = read_last_time_entry(file.read, file.size)
                return -1 if last is None else last.timestamp
            case _:
                assert need.content is Content.CHANGED
                return file.mtime_ns // 1_000_000


class _OffsetEntries:
    """The entries of an offset index, as they lie in the file: an active one has more than a million."""

    def __init__(self, data: bytes) -> None:
        self._words = np.frombuffer(data, dtype=">i4")

    def __len__(self) -> int:
        return len(self._words) // 2

    def __getitem__(self, at: int) -> tuple[int, int]:
        return int(self._words[2 * at]), int(self._words[2 * at + 1])


class _Window:
    """Bytes of a file around a position that moves forward."""

    def __init__(self, file: EvidenceFile) -> None:
        self._file, self._start, self._data = file, 0, b""

    def at(self, position: int, length: int) -> memoryview:
        """Return bytes from a position on, fewer at the end of the file."""
        if position < self._start or position + length > self._start + len(self._data):
            self._start, self._data = position, self._file.read(position, max(length, WINDOW_LENGTH))
        return memoryview(self._data)[position - self._start : position - self._start + length]


def read_batches(file: EvidenceFile, start: int, *, checked: bool) -> Batches:
    """Return the batches from a position on, as `FileLogInputStream.nextBatch` finds them.

    Args:
        file: a segment's log.
        start: where the first one begins.
        checked: compare checksums (`ensureValid`); the reader continues behind one that fails, as Kafka's does.
    """
    window, position, size = _Window(file), start, file.size
    found: list[LoadedBatch] = []
    corrupt = False
    while position < size - HEADER_UP_TO_MAGIC:
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
    left = _OFFSET_LENGTH(window.at(position, LOG_OVERHEAD)) if position < size - LOG_OVERHEAD else None
    return Batches(batches=tuple(found), end=position, end_is_corrupt=corrupt, header_at_end=left)


def reader_at(file: EvidenceFile, position: int) -> ReaderStep:
    """Return how `FileLogInputStream.nextBatch` continues at a position where a batch should begin.

    Args:
        file: the segment.
        position: where the batch before ended.
    """
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
        end = _transaction_end(window.at(position, whole), count)
    return headed_batch(
        position=position,
        length=whole,
        base_offset=offset,
        last_offset=offset + delta,
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


def _transaction_end(data: memoryview, count: int) -> TransactionEnd | LoadFailure | Absent:
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


def _snapshot(data: bytes) -> tuple[ProducerState, ...] | LoadFailure:
    try:
        parsed = parse_producer_snapshot(data)
    except FormatError as error:
        return LoadFailure("CorruptSnapshotException", str(error))
    if parsed.damage:
        return LoadFailure("CorruptSnapshotException", parsed.damage[0].expected)
    return tuple(
        ProducerState(
            one.producer_id,
            one.producer_epoch,
            one.coordinator_epoch,
            one.timestamp,
            max(one.current_transaction_first_offset, -1),
            one.last_offset,
        )
        for one in parsed.entries
    )


def _aborted(data: bytes) -> tuple[AbortedEntry, ...]:
    """Version and last offset of each whole entry; Kafka reads one byte of the version (`AbortedTxn`)."""
    first_bytes = data[::TXN_ENTRY_LENGTH]
    entries = parse_txn_index(data).entries
    return tuple(AbortedEntry(_signed(first_bytes[at]), one.last_offset) for at, one in enumerate(entries))


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _remembered(decode: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """Return a decoder that decodes equal bytes of a small file once: many directories have the same ones."""
    known = lru_cache(REMEMBERED_FILES)(decode)
    return lambda data: known(data) if len(data) <= REMEMBERED_LENGTH else decode(data)


_SMALL: dict[Content, Callable[[bytes], object]] = {
    Content.SNAPSHOT: _remembered(_snapshot),
    Content.TXN_INDEX: _aborted,
    Content.EPOCHS: _remembered(read_epoch_file),
    Content.PARTITION_METADATA: _remembered(read_topic_id),
}
