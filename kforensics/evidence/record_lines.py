"""Records as lines of JSON, made from columns: the same text as of each record by itself, without an object for each."""

import json
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.records import parse_headers

Column = Any
"""The bytes of each record's cell: a list, or an array of Arrow's."""


class PlainCells:
    """Makes the columns of some records as lists, an object for each cell, and lines of them."""

    def digits(self, values: NDArray[np.int64], codes: NDArray[np.int8], words: Sequence[bytes]) -> Column:
        """Return whole numbers, or the word of a code where it is 0 or more."""
        if (codes < 0).all():
            return [b"%d" % value for value in values.tolist()]
        pairs = zip(values.tolist(), codes.tolist(), strict=True)
        return [b"%d" % value if code < 0 else words[code] for value, code in pairs]

    def words(self, codes: NDArray[np.int8], words: Sequence[bytes]) -> Column:
        """Return the word of each code."""
        return [words[code] for code in codes.tolist()]

    def base64(self, view: memoryview, positions: NDArray[np.int64], lengths: NDArray[np.int64]) -> Column:
        """Return bytes of a buffer as base64, nothing where a length is below 0."""
        places = zip(positions.tolist(), (positions + np.maximum(lengths, 0)).tolist(), strict=True)
        return [b2a_base64(view[start:end], newline=False) for start, end in places]

    def texts(self, texts: list[bytes]) -> Column:
        """Return these."""
        return texts

    def joined(self, constants: Sequence[bytes], columns: Sequence[Column]) -> "bytes | memoryview":
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


NULL = b"null"
_BASE64, _END_OF_BASE64 = (b'{"base64": "', NULL), (b'"}', b"")

_SHORT = 256
"""Bytes of names that are kept, since most records have the same ones; a name may be as long as a batch."""


class RecordLines:
    """Lines of records from left to right: what is the same in all of them is one text."""

    def __init__(self, cells: PlainCells) -> None:
        self._cells = cells
        self._texts = [b""]
        self._columns: list[Column] = []

    def text(self, text: bytes) -> Self:
        """Add what is the same in all lines."""
        self._texts[-1] += text
        return self

    def _column(self, column: Column) -> None:
        self._columns.append(column)
        self._texts.append(b"")

    def words(self, codes: np.ndarray, words: Sequence[bytes]) -> None:
        """Add the word of each code."""
        first = int(codes[0])
        if (codes == first).all():
            self.text(words[first])
        else:
            self._column(self._cells.words(codes.astype(np.int8), words))

    def digits(self, values: np.ndarray, absent: np.ndarray | None = None) -> None:
        """Add whole numbers, null where there are none."""
        codes = np.full(len(values), -1) if absent is None else np.where(absent, 0, -1)
        self._column(self._cells.digits(values.astype(np.int64), codes.astype(np.int8), (NULL,)))

    def number(self, values: np.ndarray) -> None:
        """Add numbers that many records have in common, null below 0."""
        first = int(values[0])
        if (values == first).all():
            self.text(NULL if first < 0 else b"%d" % first)
        else:
            self.digits(values, values < 0)

    def payload(self, view: memoryview, positions: np.ndarray, lengths: np.ndarray, *, as_text: bool = False) -> None:
        """Add bytes as base64, or as a string where that is asked for and they are UTF-8; null where a length is below 0."""
        is_null = lengths < 0
        if as_text and not is_null.all():
            places = zip(positions.tolist(), lengths.tolist(), strict=True)
            texts = [NULL if length < 0 else _quoted(bytes(view[at : at + length])) for at, length in places]
            self._column(self._cells.texts(texts))
            return
        self.words(is_null, _BASE64)
        if not is_null.all():
            self._column(self._cells.base64(view, positions, lengths))
            self.words(is_null, _END_OF_BASE64)

    def headers(self, chunk: RecordChunk, *, as_text: bool = False) -> None:
        """Add the headers of each record: names as text where they are UTF-8, and values as payloads."""
        if not chunk.header_count.any():
            self.text(b"[]")
            return
        places = zip(chunk.header_position.tolist(), chunk.end.tolist(), chunk.header_count.tolist(), strict=True)
        plain = _quoted if as_text else _base64
        texts = [_headers(parse_headers(chunk.view, *place), plain) if place[2] else b"[]" for place in places]
        self._column(self._cells.texts(texts))

    def joined(self) -> bytes | memoryview:
        """Return the lines, one behind the other in one buffer."""
        return self._cells.joined(self._texts, self._columns)


def _headers(headers: Iterable[tuple[bytes, bytes | None]], plain: Callable[[bytes], bytes]) -> bytes:
    texts = [b"[%b, %b]" % (_name(name), NULL if value is None else plain(value)) for name, value in headers]
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
