"""Records as JSON lines with everything that a producer gave and a log added: `--form jsonl`."""

import json
from binascii import b2a_base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from kforensics.commands.salvaging.folder import OutFolder, WrittenFile
from kforensics.commands.salvaging.forms import Given
from kforensics.commands.salvaging.reading import CERTAINTIES
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from kforensics.formats.log.records import Headers, parse_headers
from kforensics.units import TopicPartition

NOT_APPLICABLE = b'{"absent": "not-applicable"}'
NOT_WRITTEN = b'{"absent": "not-written"}'
_QUOTED = [f'"{name}"'.encode() for name in CERTAINTIES]
_WITHOUT_TIME = -1
_UNKNOWN = '{"absent": "unknown"}'

_Column = bytes | list[bytes]
"""What is the same for every record, or the bytes of each."""


class JsonRecords:
    """One file of lines a partition and label."""

    def __init__(self, folder: OutFolder, stem: str, partition: TopicPartition) -> None:
        self.file = folder.open(f"{stem}.jsonl")
        # Of a carved log it may not be known.
        topic, number = (
            (json.dumps(partition.topic), str(partition.partition))
            if partition.partition >= 0
            else (_UNKNOWN, _UNKNOWN)
        )
        self._head = f'{{"topic": {topic}, "partition": {number}, "offset": '.encode()

    def add(self, chunk: RecordChunk, given: Given) -> None:
        """Add records in order of offset.

        Args:
            chunk: whose bytes hold until this returns.
            given: what is known of these records beside their bytes.
        """
        self.file.write_lines(self.pieces(chunk, given))

    def pieces(self, chunk: RecordChunk, given: Given) -> list[bytes]:
        """Return the lines of records, in pieces that have only to be joined.

        Args:
            chunk: whose bytes hold until this returns.
            given: what is known of these records beside their bytes.
        """
        rows = chunk.rows
        batches = chunk.batches
        magic = batches["magic"][rows]
        attributes = batches["attributes"][rows]
        modern = magic == 2
        return _interleaved(
            [
                *(self._head, _digits(chunk.offset)),
                *(b', "timestamp_ms": ', _times(chunk.timestamp_ms, magic)),
                *(b', "timestamp_type": ', _time_types(attributes, magic)),
                *(b', "key": ', *_payloads(chunk.view, chunk.key_position, chunk.key_length)),
                *(b', "value": ', *_payloads(chunk.view, chunk.value_position, chunk.value_length)),
                *(b', "headers": ', _headers(chunk)),
                *(b', "leader_epoch": ', _numbers(batches["partition_leader_epoch"][rows])),
                *(b', "producer_id": ', _numbers(np.where(modern, batches["producer_id"][rows], -1))),
                *(b', "producer_epoch": ', _numbers(np.where(modern, batches["producer_epoch"][rows], -1))),
                *(b', "sequence": ', _numbers(chunk.sequence)),
                *(b', "transactional": ', _flags(modern & (attributes & TRANSACTIONAL_BIT > 0))),
                *(b', "committed": ', _certainties(given)),
                *((b', "aborted": ', _flags(given.aborted)) if given.aborted.any() else ()),
                f', "source": {{"input": {given.input}, "path": {json.dumps(given.path)}, "position": '.encode(),
                *(_digits(batches["position"][rows]), b"}}\n"),
            ],
            len(rows),
        )

    def finish(self) -> tuple[WrittenFile, ...]:
        """End the file."""
        return (self.file.finish(),)

    def close(self) -> None:
        """Give the file back."""
        self.file.close()


def _interleaved(columns: Sequence[_Column], count: int) -> list[bytes]:
    """Return the columns of some records one record behind the other; the last column ends with the line break, and no two lists touch."""
    texts = [b""]
    lists = []
    for column in columns:
        if isinstance(column, bytes):
            texts[-1] += column
        else:
            lists.append(column)
            texts.append(b"")
    width = 2 * len(lists)
    pieces = [texts[-1] + texts[0]] * (
        width * count + 1
    )  # between records: the end of one and the beginning of the next
    for at, values in enumerate(lists):
        if at:
            pieces[2 * at :: width] = [texts[at]] * count
        pieces[2 * at + 1 :: width] = values
    pieces[0], pieces[-1] = texts[0], texts[-1]
    return pieces


def _digits(values: np.ndarray) -> list[bytes]:
    return [b"%d" % value for value in values.tolist()]


def _numbers(values: np.ndarray) -> _Column:
    absent = values < 0
    if absent.all():
        return NOT_APPLICABLE
    if (values == values[0]).all():
        return b"%d" % int(values[0])
    return [NOT_APPLICABLE if value < 0 else b"%d" % value for value in values.tolist()]


def _flags(values: np.ndarray) -> _Column:
    if values.all():
        return b"true"
    if not values.any():
        return b"false"
    return [b"true" if value else b"false" for value in values.tolist()]


def _certainties(given: Given) -> _Column:
    codes = given.committed
    if (codes == codes[0]).all():
        return _QUOTED[int(codes[0])]
    return [_QUOTED[code] for code in codes.tolist()]


def _times(times: np.ndarray, magic: np.ndarray) -> _Column:
    absent = (times == _WITHOUT_TIME) | (magic == 0)
    if not absent.any():
        return _digits(times)
    return [
        NOT_APPLICABLE if kind == 0 else NOT_WRITTEN if time == _WITHOUT_TIME else b"%d" % time
        for time, kind in zip(times.tolist(), magic.tolist(), strict=True)
    ]


def _time_types(attributes: np.ndarray, magic: np.ndarray) -> _Column:
    is_append = attributes & TIMESTAMP_TYPE_BIT > 0
    if (magic == 0).any():
        tokens = zip(is_append.tolist(), magic.tolist(), strict=True)
        return [NOT_APPLICABLE if kind == 0 else _time_type(append) for append, kind in tokens]
    if is_append.all() or not is_append.any():
        return _time_type(bool(is_append[0]))
    return [_time_type(append) for append in is_append.tolist()]


def _time_type(is_append: bool) -> bytes:
    return b'"log-append"' if is_append else b'"create"'


def _payloads(view: memoryview, positions: np.ndarray, lengths: np.ndarray) -> tuple[_Column, ...]:
    if (lengths < 0).all():
        return (b"null",)
    ends = (positions + lengths).tolist()
    if (lengths < 0).any():
        bounds = zip(positions.tolist(), ends, lengths.tolist(), strict=True)
        return (
            [
                b"null" if length < 0 else b'{"base64": "%b"}' % b2a_base64(view[start:end], newline=False)
                for start, end, length in bounds
            ],
        )
    places = zip(positions.tolist(), ends, strict=True)
    return b'{"base64": "', [b2a_base64(view[start:end], newline=False) for start, end in places], b'"}'


def _headers(chunk: RecordChunk) -> _Column:
    if not chunk.header_count.any():
        return b"[]"
    places = zip(chunk.header_position.tolist(), chunk.end.tolist(), chunk.header_count.tolist(), strict=True)
    return [
        json.dumps(plain_headers(parse_headers(chunk.view, start, end, count))).encode() if count else b"[]"
        for start, end, count in places
    ]


def plain_headers(headers: Headers) -> list[list[Any]]:
    """Return names as text where they are UTF-8, and values as base64 or null.

    Args:
        headers: of one record, in their order.
    """
    return [[_name(name), None if value is None else _base64(value)] for name, value in headers]


def _name(name: bytes) -> str | dict[str, str]:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return _base64(name)


def _base64(data: bytes) -> dict[str, str]:
    return {"base64": b2a_base64(data, newline=False).decode("ascii")}
