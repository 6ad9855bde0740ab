"""Records as lines of text: JSON objects, and the fields that kcat and the console producer split at a delimiter."""

import json
from binascii import b2a_base64
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from kforensics.commands.salvaging.folder import OutFolder, WrittenFile
from kforensics.commands.salvaging.outputs import FormName, Given, HoldsDelimiter
from kforensics.commands.salvaging.reading import CERTAINTIES
from kforensics.damage import Absent
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from kforensics.formats.log.records import parse_headers, slice_nullable
from kforensics.units import TopicPartition

Column = Any
"""The bytes of each record's cell: a list, or an array of Arrow's."""


class Cells(Protocol):
    """Makes the columns of some records, and lines of them."""

    def digits(self, values: NDArray[np.int64], codes: NDArray[np.int8], words: Sequence[bytes]) -> Column:
        """Return whole numbers, or the word of a code where it is 0 or more."""

    def words(self, codes: NDArray[np.int8], words: Sequence[bytes]) -> Column:
        """Return the word of each code."""

    def base64(self, view: memoryview, positions: NDArray[np.int64], lengths: NDArray[np.int64]) -> Column:
        """Return bytes of a buffer as base64, nothing where a length is below 0."""

    def texts(self, texts: list[bytes]) -> Column:
        """Return texts as a column."""

    def joined(self, constants: Sequence[bytes], columns: Sequence[Column]) -> "bytes | memoryview":
        """Return each record's cells behind each other in one buffer: a constant before each, and one more behind the last."""


class PlainCells(Cells):
    """Columns as lists, an object for each cell."""

    def digits(self, values: NDArray[np.int64], codes: NDArray[np.int8], words: Sequence[bytes]) -> list[bytes]:
        """Return whole numbers, or the word of a code where it is 0 or more."""
        if (codes < 0).all():
            return [b"%d" % value for value in values.tolist()]
        pairs = zip(values.tolist(), codes.tolist(), strict=True)
        return [b"%d" % value if code < 0 else words[code] for value, code in pairs]

    def words(self, codes: NDArray[np.int8], words: Sequence[bytes]) -> list[bytes]:
        """Return the word of each code."""
        return [words[code] for code in codes.tolist()]

    def base64(self, view: memoryview, positions: NDArray[np.int64], lengths: NDArray[np.int64]) -> list[bytes]:
        """Return bytes of a buffer as base64, nothing where a length is below 0."""
        places = zip(positions.tolist(), (positions + np.maximum(lengths, 0)).tolist(), strict=True)
        return [b2a_base64(view[start:end], newline=False) for start, end in places]

    def texts(self, texts: list[bytes]) -> list[bytes]:
        """Return these."""
        return texts

    def joined(self, constants: Sequence[bytes], columns: Sequence[list[bytes]]) -> bytes:
        """Return each record's cells behind each other in one buffer: a constant before each, and one behind the last."""
        count = len(columns[0])
        width = 2 * len(columns)
        # Between records the end of one and the beginning of the next are one piece.
        pieces = [constants[-1] + constants[0]] * (width * count + 1)
        for at, values in enumerate(columns):
            if at:
                pieces[2 * at :: width] = [constants[at]] * count
            pieces[2 * at + 1 :: width] = values
        pieces[0], pieces[-1] = constants[0], constants[-1]
        return b"".join(pieces)


_NULL = b"null"
_FLAGS = (b"false", b"true")
_TIME_TYPES = (b'"create"', b'"log-append"', _NULL)
_BASE64, _END_OF_BASE64 = (b'{"base64": "', _NULL), (b'"}', b"")
_QUOTED = tuple(f'"{name}"'.encode() for name in CERTAINTIES)
_WITHOUT_TIME = -1

_SHORT = 256
"""Bytes of names that are kept, since most records have the same ones; a name may be as long as a batch."""

_FEW_RECORDS = 1 << 14
"""Records for which loading pyarrow takes longer than writing them without it."""
_MOST_AT_ONCE = 256 << 20
_MOST_ADDRESSED = 1 << 31
"""Arrow's arrays of bytes hold less than this; of so many payloads, or of some in so large a buffer, they are not made."""


class JsonRecords:
    """One file of lines a partition and label."""

    def __init__(self, folder: OutFolder, stem: str, partition: TopicPartition) -> None:
        self.file = folder.open(f"{stem}.jsonl")
        # Of a carved log it may not be known.
        is_named = partition.partition >= 0
        topic, number = (json.dumps(partition.topic), str(partition.partition)) if is_named else ("null", "null")
        self._head = f'{{"topic": {topic}, "partition": {number}, "offset": '.encode()
        reasons = {} if is_named else {"topic": Absent.UNKNOWN, "partition": Absent.UNKNOWN}
        self._ends = tuple(map(_beside, (reasons, {**reasons, "timestamp_ms": Absent.NOT_WRITTEN})))
        self._cells: Cells = PlainCells()
        self._few = _FEW_RECORDS

    def add(self, chunk: RecordChunk, given: Given) -> None:
        """Add records in order of offset."""
        self.file.write(self.lines(chunk, given))

    def expect_many(self) -> None:
        """Load what writes many records faster."""
        self._few = 0
        if isinstance(self._cells, PlainCells):
            with suppress(ImportError):
                from kforensics.commands.salvaging.parquet import ArrowCells  # noqa: PLC0415 - loads pyarrow

                self._cells = ArrowCells()

    def lines(self, chunk: RecordChunk, given: Given) -> bytes | memoryview:
        """Return the lines of records, one behind the other in one buffer."""
        if self._few > 0:
            self._few -= len(chunk.rows)
            if self._few <= 0:
                self.expect_many()
        payloads = int(np.maximum(chunk.key_length, 0).sum() + np.maximum(chunk.value_length, 0).sum())
        line = _Line(self._cells if payloads < _MOST_AT_ONCE and len(chunk.view) < _MOST_ADDRESSED else PlainCells())
        rows = chunk.rows
        batches = chunk.batches
        magic = batches["magic"][rows]
        attributes = batches["attributes"][rows]
        modern = magic == 2
        is_append = attributes & TIMESTAMP_TYPE_BIT > 0
        is_unwritten = (magic > 0) & (chunk.timestamp_ms == _WITHOUT_TIME)
        line.text(self._head).digits(chunk.offset)
        line.text(b', "timestamp_ms": ').digits(chunk.timestamp_ms, (magic == 0) | is_unwritten)
        line.text(b', "timestamp_type": ').words(np.where(magic == 0, 2, is_append), _TIME_TYPES)
        line.text(b', "key": ').payload(chunk.view, chunk.key_position, chunk.key_length)
        line.text(b', "value": ').payload(chunk.view, chunk.value_position, chunk.value_length)
        line.text(b', "headers": ').headers(chunk)
        line.text(b', "leader_epoch": ').number(batches["partition_leader_epoch"][rows])
        line.text(b', "producer_id": ').number(np.where(modern, batches["producer_id"][rows], -1))
        line.text(b', "producer_epoch": ').number(np.where(modern, batches["producer_epoch"][rows], -1))
        line.text(b', "sequence": ').number(chunk.sequence)
        line.text(b', "transactional": ').words(modern & (attributes & TRANSACTIONAL_BIT > 0), _FLAGS)
        line.text(b', "committed": ').words(given.committed, _QUOTED)
        if given.aborted.any():
            line.text(b', "aborted": ').words(given.aborted, _FLAGS)
        source = f', "source": {{"input": {given.input}, "path": {json.dumps(given.path)}, "position": '
        line.text(source.encode()).digits(batches["position"][rows])
        line.text(b"}").words(is_unwritten, self._ends)
        return line.text(b"}\n").joined()

    def finish(self) -> tuple[WrittenFile, ...]:
        """End the file."""
        return (self.file.finish(),)

    def close(self) -> None:
        """Give the file back."""
        self.file.close()


class _Line:
    """Lines of records from left to right: what is the same in all of them is one text."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._texts = [b""]
        self._columns: list[Column] = []

    def text(self, text: bytes) -> Self:
        self._texts[-1] += text
        return self

    def _column(self, column: Column) -> None:
        self._columns.append(column)
        self._texts.append(b"")

    def words(self, codes: np.ndarray, words: Sequence[bytes]) -> None:
        first = int(codes[0])
        if (codes == first).all():
            self.text(words[first])
        else:
            self._column(self._cells.words(codes.astype(np.int8), words))

    def digits(self, values: np.ndarray, absent: np.ndarray | None = None) -> None:
        """Whole numbers, null where there are none."""
        codes = np.full(len(values), -1) if absent is None else np.where(absent, 0, -1)
        self._column(self._cells.digits(values.astype(np.int64), codes.astype(np.int8), (_NULL,)))

    def number(self, values: np.ndarray) -> None:
        """Numbers that many records have in common, null below 0."""
        first = int(values[0])
        if (values == first).all():
            self.text(_NULL if first < 0 else b"%d" % first)
        else:
            self.digits(values, values < 0)

    def payload(self, view: memoryview, positions: np.ndarray, lengths: np.ndarray) -> None:
        """Bytes as base64, or null."""
        is_null = lengths < 0
        self.words(is_null, _BASE64)
        if not is_null.all():
            self._column(self._cells.base64(view, positions, lengths))
            self.words(is_null, _END_OF_BASE64)

    def headers(self, chunk: RecordChunk) -> None:
        if not chunk.header_count.any():
            self.text(b"[]")
            return
        places = zip(chunk.header_position.tolist(), chunk.end.tolist(), chunk.header_count.tolist(), strict=True)
        self._column(self._cells.texts([_headers(chunk.view, *place) if place[2] else b"[]" for place in places]))

    def joined(self) -> bytes | memoryview:
        return self._cells.joined(self._texts, self._columns)


def _beside(reasons: dict[str, Absent]) -> bytes:
    return f', "absent": {json.dumps(reasons)}'.encode() if reasons else b""


def _headers(view: memoryview, start: int, end: int, count: int) -> bytes:
    """Names as text where they are UTF-8, and values as base64 or null."""
    texts = [
        b"[%b, %b]" % (_name(name), _NULL if value is None else _base64(value))
        for name, value in parse_headers(view, start, end, count)
    ]
    return b"[%b]" % b", ".join(texts)


def _name(name: bytes) -> bytes:
    return _short_name(name) if len(name) <= _SHORT else _quoted(name)


@lru_cache(maxsize=1024)
def _short_name(name: bytes) -> bytes:
    return _quoted(name)


def _quoted(name: bytes) -> bytes:
    try:
        return json.dumps(name.decode()).encode()
    except UnicodeDecodeError:
        return _base64(name)


def _base64(data: bytes) -> bytes:
    return b'{"base64": "%b"}' % b2a_base64(data, newline=False)


MOST_NAMED = 20
"""Offsets that are named where a form can't hold a partition."""

SEPARATOR = b"\t"
END = b"\n"
NULL_MARKER = b"NULL"


class DelimitedRecords:
    """One text file a partition and label."""

    def __init__(self, folder: OutFolder, stem: str, partition: TopicPartition, form: FormName) -> None:
        self._partition = partition
        self._form = form
        self._refused: list[int] = []
        self.file = folder.open(f"{stem}.{form.value}.txt")

    def add(self, chunk: RecordChunk, given: Given) -> None:  # noqa: ARG002 - as every form
        """Add records in order of offset; those that the form can't hold are remembered."""
        null = b"" if self._form is FormName.KCAT else NULL_MARKER
        lines = []
        columns = (chunk.offset, chunk.key_position, chunk.key_length, chunk.value_position, chunk.value_length)
        counts = chunk.header_count.tolist()
        for (offset, key_at, key_length, value_at, value_length), headers in zip(
            zip(*(np.asarray(column).tolist() for column in columns), strict=True), counts, strict=True
        ):
            key = slice_nullable(chunk.view, key_at, key_length)
            value = slice_nullable(chunk.view, value_at, value_length)
            if headers or not self._fits(key, is_key=True) or not self._fits(value, is_key=False):
                self._refused.append(offset)
                if len(self._refused) >= MOST_NAMED:
                    self._refuse()
                continue
            lines.append((null if key is None else key) + SEPARATOR + (null if value is None else value) + END)
        if not self._refused:
            self.file.write_lines(lines)

    def _fits(self, payload: bytes | None, *, is_key: bool) -> bool:
        if payload is None:
            return True
        if END in payload or (is_key and SEPARATOR in payload):
            return False
        if self._form is FormName.KCAT:
            return bool(payload)  # an empty one would be read as null
        return payload != NULL_MARKER and b"\r" not in payload and _is_text(payload)

    def _refuse(self) -> None:
        what = "headers, or a delimiter, a null marker or an empty value inside a key or value"
        raise HoldsDelimiter(self._partition, tuple(self._refused), self._form.value, what)

    def finish(self) -> tuple[WrittenFile, ...]:
        """End the file."""
        if self._refused:
            self._refuse()
        return (self.file.finish(),)

    def close(self) -> None:
        """Give the file back."""
        self.file.close()


def _is_text(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True
