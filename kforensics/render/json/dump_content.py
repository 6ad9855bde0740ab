"""The content of files as a document and as lines; lines of records are made from columns, the same bytes as `plain_record` gives, without an object for each record."""

import json
from binascii import b2a_base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kforensics.commands.dump import DumpContent
from kforensics.commands.result import Result
from kforensics.damage import Damage
from kforensics.evidence.content.items import RecordItem
from kforensics.evidence.plain import to_plain
from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import NO_TIMESTAMP
from kforensics.formats.log.records import parse_headers
from kforensics.render.json.document import document
from kforensics.render.json.dump import dump_line, plain_header, plain_item
from kforensics.render.view import View


@dataclass(frozen=True, slots=True)
class _Lines:
    """Makes the lines of the records of one file."""

    view: View
    label: str

    def records(self, chunk: RecordChunk) -> list[bytes]:
        return record_lines(chunk, show_payload=self.view.show_payload, as_text=self.view.as_text, label=self.label)

    def item(self, item: RecordItem | Damage) -> bytes:
        plain = plain_item(item, show_payload=self.view.show_payload, as_text=self.view.as_text)
        return dump_line(plain, self.label).encode()


def write(result: Result[DumpContent], view: View) -> Iterator[str]:
    """Yield one document, written as the content is read."""
    entries = (line.rstrip("\n") for line in _lines(result.body, view, None))
    return document(result, "dump", streams={"entries": entries})


def write_lines(result: Result[DumpContent], view: View) -> Iterator[str]:
    """Return an entry a line.

    Args:
        result: of `dump`; its files are read while the lines are written.
    """
    return _lines(result.body, view, view)


def _lines(content: DumpContent, view: View, direct: View | None) -> Iterator[str]:
    several = len(content) > 1
    for file in content.files():
        label = f', "file": {json.dumps(to_plain(file.shown))}' if several else ""
        if not file.is_plain:
            for item in file.items():
                plain = plain_item(item, show_payload=view.show_payload, as_text=view.as_text)
                yield dump_line(plain, label)
        elif direct is not None and direct.descriptor is not None:
            file.write_lines(_Lines(view, label), direct.descriptor())
        else:
            for some in file.lines(_Lines(view, label)):
                yield from (line.decode("ascii") for line in some)


_NULL = b"null"
_WITHOUT_TIME = b', "absent": {"timestamp_ms": "not-written"}'
_quote = json.encoder.encode_basestring_ascii

Column = tuple[bytes, Sequence[Any] | None]
"""A format for `bytes %` and the values that go into it; None where it is the same for every record."""


def record_lines(chunk: RecordChunk, *, show_payload: bool, as_text: bool, label: str = "") -> list[bytes]:
    """Return one line a record, with line breaks.

    Args:
        chunk: valid until this returns; control records are not for this writer.
        label: JSON that follows the last field; empty for none.
    """
    batches = chunk.batches
    times = chunk.timestamp_ms
    is_old = batches["magic"][chunk.rows] == 0  # wrappers never mix magics, but neighbours do
    is_unwritten = (times == NO_TIMESTAMP) & ~is_old
    fields: list[tuple[str, Column]] = [
        ("offset", (b"%d", chunk.offset.tolist())),
        ("batch_position", (b"%d", batches["position"][chunk.rows].tolist())),
        ("timestamp_ms", _numbers(times, is_old | is_unwritten)),
    ]
    if show_payload:
        token = _text_token if as_text else _base64_token
        fields += [
            ("key", _payloads(chunk.view, chunk.key_position, chunk.key_length, token)),
            ("value", _payloads(chunk.view, chunk.value_position, chunk.value_length, token)),
            ("headers", _headers(chunk, as_text=as_text)),
        ]
    fields += [
        ("key_length", _numbers(chunk.key_length, chunk.key_length < 0)),
        ("value_length", _numbers(chunk.value_length, chunk.value_length < 0)),
        ("sequence", _numbers(chunk.sequence, chunk.sequence < 0)),
    ]
    template = b'{"type": "record", ' + b", ".join(b'"%b": %b' % (name.encode(), form) for name, (form, _) in fields)
    values = [column for _, (_, column) in fields if column is not None]
    if is_unwritten.any():
        template += b"%b"
        values.append([_WITHOUT_TIME if one else b"" for one in is_unwritten.tolist()])
    template += label.replace("%", "%%").encode() + b"}\n"
    return [template % row for row in zip(*values, strict=True)]


def _numbers(values: np.ndarray, absent: np.ndarray) -> Column:
    if not absent.any():
        return b"%d", values.tolist()
    if absent.all():
        return _NULL, None
    return b"%b", [
        _NULL if is_absent else b"%d" % value for value, is_absent in zip(values.tolist(), absent.tolist(), strict=True)
    ]


def _payloads(
    view: memoryview, positions: np.ndarray, lengths: np.ndarray, token: Callable[[memoryview], bytes]
) -> Column:
    if (lengths < 0).all():
        return _NULL, None
    ends = (positions + lengths).tolist()
    if (lengths < 0).any():
        bounds = zip(positions.tolist(), ends, lengths.tolist(), strict=True)
        return b"%b", [_NULL if length < 0 else token(view[start:end]) for start, end, length in bounds]
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


def _headers(chunk: RecordChunk, *, as_text: bool) -> Column:
    if not chunk.header_count.any():
        return b"[]", None
    places = zip(chunk.header_position.tolist(), chunk.end.tolist(), chunk.header_count.tolist(), strict=True)
    return b"%b", [
        json.dumps(
            [plain_header(name, value, as_text=as_text) for name, value in parse_headers(chunk.view, start, end, count)]
        ).encode()
        if count
        else b"[]"
        for start, end, count in places
    ]
