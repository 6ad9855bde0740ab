"""Records as lines of text: JSON objects, and the fields that kcat and the console producer split at a delimiter."""

import json
from contextlib import suppress

import numpy as np

from kforensics.commands.salvaging.folder import OutFolder, WrittenFile
from kforensics.commands.salvaging.outputs import FormName, Given, HoldsDelimiter
from kforensics.commands.salvaging.reading import CERTAINTIES
from kforensics.damage import Absent
from kforensics.evidence.record_lines import NULL, PlainCells, RecordLines
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from kforensics.formats.log.records import slice_nullable
from kforensics.units import TopicPartition

_FLAGS = (b"false", b"true")
_TIME_TYPES = (b'"create"', b'"log-append"', NULL)
_QUOTED = tuple(f'"{name}"'.encode() for name in CERTAINTIES)
_WITHOUT_TIME = -1

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
        self._cells = PlainCells()
        self._few = _FEW_RECORDS

    def add(self, chunk: RecordChunk, given: Given) -> None:
        """Add records in order of offset."""
        self.file.write(self.lines(chunk, given))

    def expect_many(self) -> None:
        """Load what writes many records faster."""
        self._few = 0
        if type(self._cells) is PlainCells:
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
        line = RecordLines(
            self._cells if payloads < _MOST_AT_ONCE and len(chunk.view) < _MOST_ADDRESSED else PlainCells()
        )
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


def _beside(reasons: dict[str, Absent]) -> bytes:
    return f', "absent": {json.dumps(reasons)}'.encode() if reasons else b""


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
