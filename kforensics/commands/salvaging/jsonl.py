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

_Column = tuple[bytes, Sequence[Any] | None]


class JsonRecords:
    """One file of lines a partition and label."""

    def __init__(self, folder: OutFolder, stem: str, partition: TopicPartition) -> None:
        self._file = folder.open(f"{stem}.jsonl")
        # Of a carved log it may not be known.
        topic, number = (
            (json.dumps(partition.topic), str(partition.partition))
            if partition.partition >= 0
            else (_UNKNOWN, _UNKNOWN)
        )
        self._head = f'{{"topic": {topic}, "partition": {number}, "offset": '.encode().replace(b"%", b"%%")

    def add(self, chunk: RecordChunk, given: Given) -> None:
        """Add records in order of offset."""
        rows = chunk.rows
        batches = chunk.batches
        magic = batches["magic"][rows]
        attributes = batches["attributes"][rows]
        modern = magic == 2
        columns: list[tuple[bytes, _Column]] = [
            (self._head, (b"%d", chunk.offset.tolist())),
            (b', "timestamp_ms": ', _times(chunk.timestamp_ms, magic)),
            (b', "timestamp_type": ', _time_types(attributes, magic)),
            (b', "key": ', _payloads(chunk.view, chunk.key_position, chunk.key_length)),
            (b', "value": ', _payloads(chunk.view, chunk.value_position, chunk.value_length)),
            (b', "headers": ', _headers(chunk)),
            (b', "leader_epoch": ', _numbers(batches["partition_leader_epoch"][rows])),
            (b', "producer_id": ', _numbers(np.where(modern, batches["producer_id"][rows], -1))),
            (b', "producer_epoch": ', _numbers(np.where(modern, batches["producer_epoch"][rows], -1))),
            (b', "sequence": ', _numbers(chunk.sequence)),
            (b', "transactional": ', _flags(modern & (attributes & TRANSACTIONAL_BIT > 0))),
            (b', "committed": ', _certainties(given)),
        ]
        if given.aborted.any():
            columns.append((b', "aborted": ', _flags(given.aborted)))
        source = f', "source": {{"input": {given.input}, "path": {json.dumps(given.path)}, "position": '
        columns.append((source.encode().replace(b"%", b"%%"), (b"%d", batches["position"][rows].tolist())))
        template = b"".join(name + form for name, (form, _) in columns) + b"}}\n"
        values = [column for _, (_, column) in columns if column is not None]
        self._file.write_lines([template % row for row in zip(*values, strict=True)])

    def finish(self) -> tuple[WrittenFile, ...]:
        """End the file."""
        return (self._file.finish(),)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()


def _numbers(values: np.ndarray) -> _Column:
    absent = values < 0
    if not absent.any():
        return _constant(values) or (b"%d", values.tolist())
    if absent.all():
        return NOT_APPLICABLE, None
    return b"%b", [NOT_APPLICABLE if value < 0 else b"%d" % value for value in values.tolist()]


def _constant(values: np.ndarray) -> _Column | None:
    return (b"%d" % int(values[0]), None) if (values == values[0]).all() else None


def _flags(values: np.ndarray) -> _Column:
    if values.all():
        return b"true", None
    if not values.any():
        return b"false", None
    return b"%b", [b"true" if value else b"false" for value in values.tolist()]


def _certainties(given: Given) -> _Column:
    codes = given.committed
    if (codes == codes[0]).all():
        return _QUOTED[int(codes[0])], None
    return b"%b", [_QUOTED[code] for code in codes.tolist()]


def _times(times: np.ndarray, magic: np.ndarray) -> _Column:
    absent = (times == _WITHOUT_TIME) | (magic == 0)
    if not absent.any():
        return b"%d", times.tolist()
    return b"%b", [
        NOT_APPLICABLE if kind == 0 else NOT_WRITTEN if time == _WITHOUT_TIME else b"%d" % time
        for time, kind in zip(times.tolist(), magic.tolist(), strict=True)
    ]


def _time_types(attributes: np.ndarray, magic: np.ndarray) -> _Column:
    is_append = attributes & TIMESTAMP_TYPE_BIT > 0
    if (magic == 0).any():
        tokens = zip(is_append.tolist(), magic.tolist(), strict=True)
        return b"%b", [NOT_APPLICABLE if kind == 0 else _time_type(append) for append, kind in tokens]
    if is_append.all() or not is_append.any():
        return _time_type(bool(is_append[0])), None
    return b"%b", [_time_type(append) for append in is_append.tolist()]


def _time_type(is_append: bool) -> bytes:
    return b'"log-append"' if is_append else b'"create"'


def _payloads(view: memoryview, positions: np.ndarray, lengths: np.ndarray) -> _Column:
    if (lengths < 0).all():
        return b"null", None
    ends = (positions + lengths).tolist()
    if (lengths < 0).any():
        bounds = zip(positions.tolist(), ends, lengths.tolist(), strict=True)
        return b"%b", [
            b"null" if length < 0 else b'{"base64": "%b"}' % b2a_base64(view[start:end], newline=False)
            for start, end, length in bounds
        ]
    places = zip(positions.tolist(), ends, strict=True)
    return b'{"base64": "%b"}', [b2a_base64(view[start:end], newline=False) for start, end in places]


def _headers(chunk: RecordChunk) -> _Column:
    if not chunk.header_count.any():
        return b"[]", None
    places = zip(chunk.header_position.tolist(), chunk.end.tolist(), chunk.header_count.tolist(), strict=True)
    return b"%b", [
        json.dumps(plain_headers(parse_headers(chunk.view, start, end, count))).encode() if count else b"[]"
        for start, end, count in places
    ]


def plain_headers(headers: Headers) -> list[list[Any]]:
    """Names as text where they are UTF-8, and values as base64 or null."""
    return [[_name(name), None if value is None else _base64(value)] for name, value in headers]


def _name(name: bytes) -> str | dict[str, str]:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return _base64(name)


def _base64(data: bytes) -> dict[str, str]:
    return {"base64": b2a_base64(data, newline=False).decode("ascii")}
