"""Records as JSON lines, made from columns: the same bytes as `plain_record` gives, without an object for each record."""

import json
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kforensics.evidence.record_runs import ColumnRun
from kforensics.formats.batch_table import TIMESTAMP_TYPE_BIT
from kforensics.formats.record_batch import sequence_of
from kforensics.formats.records import parse_headers
from kforensics.render.dump import NO_TIME, NOT_APPLICABLE, NOT_WRITTEN, plain_header

_ABSENT_SEQUENCE = json.dumps(NOT_APPLICABLE).encode()
_ABSENT_TIME = json.dumps(NOT_WRITTEN).encode()
_quote = json.encoder.encode_basestring_ascii

Column = tuple[bytes, Sequence[Any] | None]
"""A format for `bytes %` and the values that go into it; None where it is the same for every record."""


def record_lines(run: ColumnRun, *, show_payload: bool, as_text: bool, label: str = "") -> list[bytes]:
    """One line a record, with line breaks; `label` is what follows the last field."""
    columns, batches = run.columns, run.batches
    rows = columns.rows
    picked = batches[rows]
    offsets = picked["base_offset"] + columns.offset_delta
    appended = picked["attributes"] & TIMESTAMP_TYPE_BIT != 0
    times = np.where(appended, picked["max_timestamp"], picked["base_timestamp"] + columns.timestamp_delta)
    fields: list[tuple[str, Column]] = [
        ("offset", (b"%d", offsets.tolist())),
        ("batch_position", (b"%d", picked["position"].tolist())),
        ("timestamp_ms", _numbers(times, times == NO_TIME, _ABSENT_TIME)),
    ]
    if show_payload:
        token = _text_token if as_text else _base64_token
        fields += [
            ("key", _payloads(run.view, columns.key_position, columns.key_length, token)),
            ("value", _payloads(run.view, columns.value_position, columns.value_length, token)),
            ("headers", _headers(run, as_text=as_text)),
        ]
    fields += [
        ("key_length", _numbers(columns.key_length, columns.key_length < 0, b"null")),
        ("value_length", _numbers(columns.value_length, columns.value_length < 0, b"null")),
        ("sequence", _sequences(picked["base_sequence"], columns.offset_delta)),
    ]
    template = b'{"type": "record", ' + b", ".join(b'"%b": %b' % (name.encode(), form) for name, (form, _) in fields)
    template += label.replace("%", "%%").encode() + b"}\n"
    values = [column for _, (_, column) in fields if column is not None]
    return [template % row for row in zip(*values, strict=True)]


def _numbers(values: np.ndarray, absent: np.ndarray, token: bytes) -> Column:
    if not absent.any():
        return b"%d", values.tolist()
    if absent.all():
        return token, None
    return b"%b", [
        token if gone else b"%d" % value for value, gone in zip(values.tolist(), absent.tolist(), strict=True)
    ]


def _sequences(base: np.ndarray, delta: np.ndarray) -> Column:
    absent = base < 0
    if absent.all():
        return _ABSENT_SEQUENCE, None
    plain = base + delta.astype(np.int64)
    if int(plain.max()) < 1 << 31:
        return _numbers(plain, absent, _ABSENT_SEQUENCE)
    numbers = [sequence_of(one, by) for one, by in zip(base.tolist(), delta.tolist(), strict=True)]
    return _numbers(np.array(numbers), absent, _ABSENT_SEQUENCE)


def _payloads(
    view: memoryview, positions: np.ndarray, lengths: np.ndarray, token: Callable[[memoryview], bytes]
) -> Column:
    if (lengths < 0).all():
        return b"null", None
    ends = (positions + lengths).tolist()
    if (lengths < 0).any():
        bounds = zip(positions.tolist(), ends, lengths.tolist(), strict=True)
        return b"%b", [b"null" if length < 0 else token(view[start:end]) for start, end, length in bounds]
    places = zip(positions.tolist(), ends, strict=True)
    if token is _base64_token:
        # The commonest case, without a call and a copy for each payload.
        return b'{"base64": "%b"}', [b2a_base64(view[start:end], newline=False) for start, end in places]
    return b"%b", [token(view[start:end]) for start, end in places]


def _base64_token(payload: memoryview) -> bytes:
    return b'{"base64": "%b"}' % b2a_base64(payload, newline=False)


def _text_token(payload: memoryview) -> bytes:
    try:
        return _quote(str(payload, "utf-8")).encode()
    except UnicodeDecodeError:
        return _base64_token(payload)


def _headers(run: ColumnRun, *, as_text: bool) -> Column:
    columns = run.columns
    if not columns.header_count.any():
        return b"[]", None
    places = zip(columns.header_position.tolist(), columns.end.tolist(), columns.header_count.tolist(), strict=True)
    return b"%b", [
        json.dumps(
            [plain_header(name, value, as_text=as_text) for name, value in parse_headers(run.view, start, end, count)]
        ).encode()
        if count
        else b"[]"
        for start, end, count in places
    ]
