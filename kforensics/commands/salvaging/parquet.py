"""Records as Parquet, the same fields as in JSON lines in Arrow's types: `--form parquet`; and cells of lines by pyarrow, without an object for each."""

from binascii import b2a_base64
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kforensics.commands.salvaging.folder import Background, OutFile, OutFolder, WrittenFile
from kforensics.commands.salvaging.outputs import Given
from kforensics.commands.salvaging.reading import CERTAINTIES
from kforensics.evidence.record_lines import PlainCells
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from kforensics.formats.log.records import parse_headers
from kforensics.units import TopicPartition

ROW_GROUP_BYTES = 4 << 20
"""Bytes of keys and values in one row group: where a thread writes, two are held, one that is made and one that is written."""
ROW_GROUP_RECORDS = 1 << 17

LEVEL = -1
"""The level of zstd: bytes that do not compress take a third of the time of level 1, and others become some hundredths larger."""

_HEADER = pa.struct([pa.field("name", pa.binary(), nullable=False), pa.field("value", pa.binary())])
_WORDS = pa.dictionary(pa.int8(), pa.string())

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.dictionary(pa.int8(), pa.string())),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp_ms", pa.int64()),
        pa.field("timestamp_type", _WORDS),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(_HEADER), nullable=False),
        pa.field("leader_epoch", pa.int32()),
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int16()),
        pa.field("sequence", pa.int32()),
        pa.field("transactional", pa.bool_(), nullable=False),
        pa.field("aborted", pa.bool_(), nullable=False),
        pa.field("committed", _WORDS, nullable=False),
        pa.field("source_input", pa.int32(), nullable=False),
        pa.field("source_path", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("source_position", pa.int64(), nullable=False),
    ]
)


class _Sink:
    """The face of a file that Arrow writes to."""

    closed = False

    def __init__(self, file: OutFile) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        """Take a copy: Arrow uses its buffers again."""
        return self._file.write(bytes(data))

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        """Do nothing: what was written waits for its file."""

    def close(self) -> None:
        """Leave the end of the file to whoever opened it."""


class ParquetRecords:
    """One Parquet file of a partition and label.

    Args:
        beside: whether another thread compresses while this one decodes, which holds twice the memory.
    """

    def __init__(self, folder: OutFolder, stem: str, partition: TopicPartition, *, beside: bool = True) -> None:
        self._partition = partition
        self.file = folder.open(f"{stem}.parquet", beside=beside)
        self._writer = pq.ParquetWriter(
            pa.PythonFile(_Sink(self.file), mode="w"),
            SCHEMA,
            compression="zstd",
            compression_level=LEVEL,
            use_dictionary=["topic", "timestamp_type", "committed", "source_path"],
            write_statistics=["partition", "offset", "timestamp_ms"],
        )
        self._encoder = Background() if beside else None
        self._constants: dict[str, tuple[Any, Any]] = {}
        self._waiting: list[Any] = []
        self._bytes = self._records = 0

    def add(self, chunk: RecordChunk, given: Given) -> None:
        """Add records in order of offset."""
        rows, batches = chunk.rows, chunk.batches
        magic, attributes = batches["magic"][rows], batches["attributes"][rows]
        modern = magic == 2
        count = len(rows)
        is_known = self._partition.partition >= 0  # of a carved log it may not be known
        time_type = np.where(magic == 0, -1, (attributes & TIMESTAMP_TYPE_BIT > 0).astype(np.int8))
        arrays = [
            self._constant("topic", self._partition.topic if is_known else None, count),
            self._constant("partition", self._partition.partition if is_known else None, count),
            pa.array(chunk.offset),
            _nullable(chunk.timestamp_ms, (chunk.timestamp_ms == -1) | (magic == 0)),
            pa.DictionaryArray.from_arrays(
                _nullable(time_type.astype(np.int8), time_type < 0), ["create", "log-append"]
            ),
            _payloads(chunk.view, chunk.key_position, chunk.key_length),
            _payloads(chunk.view, chunk.value_position, chunk.value_length),
            _headers(chunk),
            _number(batches["partition_leader_epoch"][rows], np.int32),
            _number(np.where(modern, batches["producer_id"][rows], -1), np.int64),
            _number(np.where(modern, batches["producer_epoch"][rows], -1), np.int16),
            _number(chunk.sequence, np.int32),
            pa.array(modern & (attributes & TRANSACTIONAL_BIT > 0)),
            pa.array(given.aborted),
            pa.DictionaryArray.from_arrays(pa.array(given.committed), list(CERTAINTIES)),
            self._constant("source_input", given.input, count),
            self._constant("source_path", given.path.encode(errors="backslashreplace").decode(), count),
            pa.array(batches["position"][rows]),
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        self._waiting.append(batch)
        self._records += count
        self._bytes += batch.nbytes
        if self._bytes >= ROW_GROUP_BYTES or self._records >= ROW_GROUP_RECORDS:
            self._write()

    def _constant(self, column: str, value: Any, count: int) -> Any:
        """Return a column of one value, as a part of one that is made once."""
        known = self._constants.get(column)
        if known is None or known[0] != value or len(known[1]) < count:
            kind = SCHEMA.field(column).type
            if pa.types.is_dictionary(kind):
                codes = pa.array(np.zeros(count, kind.index_type.to_pandas_dtype()), mask=np.full(count, value is None))
                made = pa.DictionaryArray.from_arrays(codes, pa.array([value or ""], kind.value_type))
            else:
                made = pa.repeat(pa.scalar(value, kind), count)
            self._constants[column] = known = (value, made)
        return known[1][:count]

    def _write(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, schema=SCHEMA).unify_dictionaries()
            write = partial(self._writer.write_table, table, row_group_size=max(self._records, 1))
            if self._encoder is None:
                write()
            else:
                self._encoder.wait()
                self._encoder.do(write)  # Arrow compresses without the interpreter's lock
        self._waiting, self._bytes, self._records = [], 0, 0

    def finish(self) -> tuple[WrittenFile, ...]:
        """End the file."""
        self._write()
        if self._encoder is not None:
            self._encoder.wait()
        self._writer.close()
        return (self.file.finish(),)

    def close(self) -> None:
        """Give the file back."""
        self._waiting = []
        if self._encoder is not None:
            self._encoder.close()
        self.file.close()


def _nullable(values: np.ndarray, absent: np.ndarray) -> Any:
    return pa.array(values, mask=absent)


def _number(values: np.ndarray, kind: Any) -> Any:
    return pa.array(values.astype(kind), mask=values < 0)


def _payloads(view: memoryview, positions: np.ndarray, lengths: np.ndarray) -> Any:
    valid = lengths >= 0
    bitmap = None
    if not valid.all():
        bitmap = pa.py_buffer(np.packbits(np.repeat(valid, 2), bitorder="little").tobytes())
    return gather(view, positions, positions + np.maximum(lengths, 0), bitmap)


def _headers(chunk: RecordChunk) -> Any:
    if not chunk.header_count.any():
        offsets = pa.array(np.zeros(len(chunk.rows) + 1, np.int32))
        return pa.ListArray.from_arrays(offsets, pa.array([], _HEADER), type=pa.list_(_HEADER))
    places = zip(chunk.header_position.tolist(), chunk.end.tolist(), chunk.header_count.tolist(), strict=True)
    found = [
        [{"name": name, "value": value} for name, value in parse_headers(chunk.view, start, end, count)]
        for start, end, count in places
    ]
    return pa.array(cast("Any", found), type=pa.list_(_HEADER))


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


class ArrowCells(PlainCells):
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
            return self.texts(super().base64(view, positions, lengths))
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
