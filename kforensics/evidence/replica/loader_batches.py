"""Batches as Kafka's loader finds them, one by one: it follows their lengths alone, and ends at a length that leads to no batch."""

from struct import Struct

from kforensics.damage import Absent
from kforensics.errors import EvidenceUnreadable, FormatError
from kforensics.evidence.replica.loader_values import (
    SHORT_MARKER,
    Batches,
    LoadedBatch,
    LoadFailure,
    ReaderStep,
    TransactionEnd,
    bare_batch,
    headed_batch,
)
from kforensics.formats.log.batch_table import CODEC_MASK, CONTROL_BIT
from kforensics.formats.log.headers import (
    BATCH_HEADER,
    CRC_COVERED_POSITION,
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    SMALLEST_BATCH_LENGTH,
    SMALLEST_MESSAGE_LENGTH,
)
from kforensics.formats.log.message_set import iter_message_records
from kforensics.formats.log.record_batch import iter_batch_records
from kforensics.formats.primitives.checksum import crc32, crc32c
from kforensics.source.mapped import EvidenceFile

SHORTEST_RECORD = SMALLEST_MESSAGE_LENGTH[0]
"""`LegacyRecord.RECORD_OVERHEAD_V0`: a length below it is corrupt."""
WINDOW_LENGTH = 1 << 20

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
            self._start, self._data = position, self._file.read(position, max(length, WINDOW_LENGTH))
            if len(self._data) < min(length, self._file.size - position):
                raise EvidenceUnreadable(str(self._file.path), "it became shorter while it was read")
        return memoryview(self._data)[position - self._start : position - self._start + length]


def read_batches(file: EvidenceFile, start: int, *, checked: bool, end: int | None = None) -> Batches:
    """Return the batches from a position on, as `FileLogInputStream.nextBatch` finds them.

    Args:
        start: where the first one begins.
        checked: compare checksums (`ensureValid`), and end with the first batch that fails.
        end: a position at or behind which no more batch is read; None for the end of the file.

    Raises:
        EvidenceUnreadable: the file can't be read, or became shorter.
    """
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
    """Return how `FileLogInputStream.nextBatch` continues at a position where a batch should begin.

    Args:
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
    """Return what the marker of a control batch says (`ControlRecordType.parse`, `EndTransactionMarker.deserialize`): later versions are read as the known one.

    Args:
        count: of its records, as its header says.
    """
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
