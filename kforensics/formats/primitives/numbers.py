"""Numbers as brokers write them: fixed layouts, varints, ids, the codecs by number; and the distinct values of a column."""

from base64 import urlsafe_b64decode
from binascii import b2a_base64
from enum import IntEnum
from functools import cached_property, lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Span
from kforensics.errors import FormatError, LimitReached, UnexpectedEnd

if TYPE_CHECKING:
    import construct


# One declaration of a fixed layout with three readers: construct's own, and a `struct.Struct` and a numpy dtype for what is read often.
#
# construct is the reference: it costs 17 µs a header, and 12 ms when it is loaded, so everything but a comparison with it uses the other readers. Tests
# hold them against each other on every recording.


INT8, INT16, INT32, UINT32, INT64 = "b", "h", "l", "L", "q"
"""Integers of fixed length, by their codes in `struct`."""


class FixedLayout:
    """A layout of fixed length: big-endian integers in order, without gaps."""

    def __init__(self, **fields: str) -> None:
        self._fields = fields
        self.names = tuple(fields)
        self.struct = Struct(">" + "".join(fields.values()))
        self.dtype: np.dtype[Any] = np.dtype([(name, _NUMPY_CODES[code]) for name, code in fields.items()])
        self.length: int = self.struct.size

    @cached_property
    def declaration(self) -> "construct.Struct":
        """The layout as construct declares it."""
        import construct  # noqa: PLC0415 - it loads a debugger and OpenSSL

        return construct.Struct(*(name / construct.FormatField(">", code) for name, code in self._fields.items()))

    def position_of(self, name: str) -> int:
        """Return the position of a field from the start of the layout, in bytes."""
        field = self.dtype.fields[name] if self.dtype.fields is not None else None
        assert field is not None
        return int(field[1])


_NUMPY_CODES = {INT8: "i1", INT16: ">i2", INT32: ">i4", UINT32: ">u4", INT64: ">i8"}


# The codecs of record batches by number, and what can be wrong with compressed bytes.


class Codec(IntEnum):
    """The codec in bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BadCompression(FormatError):  # noqa: N818  # named like its siblings in errors.py
    """The codec cannot read the bytes."""


class OutputLimitReached(LimitReached):  # likewise
    """The output is larger than allowed: the bytes are a decompression bomb, or the caller's buffer is small."""


class WindowTooLarge(FormatError):  # noqa: N818  # likewise
    """A zstd frame declares a window that no reader of Kafka accepts."""


# Kafka's `Uuid`: 16 bytes, written as 22 characters of URL-safe base64 without padding.


_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of a uuid."""
    return urlsafe_b64decode(text + "==")


@lru_cache(maxsize=65_536)
def uuid_text(raw: bytes) -> str:
    """Return the 22 characters of a uuid."""
    return b2a_base64(raw, newline=False)[:22].translate(_TO_URL_SAFE).decode("ascii")


# Variable-length integers: zig-zag varint and varlong of records, plain unsigned varint of flexible messages.
#
# Little-endian groups of seven bits, the high bit says that more follow: at most 5 bytes for 32 bits, 10 for 64. What the last group holds above the
# type's width is dropped, as Kafka's ByteUtils does.


VARINT_LENGTH = 5
VARLONG_LENGTH = 10

Buffer = bytes | bytearray | memoryview


def read_uvarint(data: Buffer, position: int, end: int, limit: int = VARINT_LENGTH) -> tuple[int, int]:
    """Read an unsigned varint and return it with the position behind it (`ByteUtils.readUnsignedVarint`).

    Raises:
        FormatError: the varint crosses `end` or is longer than `limit` bytes.
    """
    value = shift = 0
    last = position + limit
    for place in range(position, min(last, end)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (0xFFFFFFFF if limit == VARINT_LENGTH else 0xFFFFFFFFFFFFFFFF), place + 1
        shift += 7
    if end < last:
        raise UnexpectedEnd(Span(position, end - position), expected="a varint", found="the end of the bytes")
    raise FormatError(Span(position, limit), expected=f"a varint of at most {limit} bytes", found="a longer one")


def read_varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Read a zig-zag varint (int32) and return it with the position behind it (`ByteUtils.readVarint`).

    Raises:
        FormatError: the varint crosses `end` or is longer than 5 bytes.
    """
    raw, position = read_uvarint(data, position, end)
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Read a zig-zag varlong (int64) and return it with the position behind it (`ByteUtils.readVarlong`).

    Raises:
        FormatError: the varlong crosses `end` or is longer than 10 bytes.
    """
    raw, position = read_uvarint(data, position, end, VARLONG_LENGTH)
    return (raw >> 1) ^ -(raw & 1), position


def encode_uvarint(value: int) -> bytes:
    """Encode a value of 0 or more as an unsigned varint."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def encode_varint(value: int) -> bytes:
    """Encode an int32 as a zig-zag varint; its varlong has the same bytes."""
    return encode_uvarint((value << 1) ^ (value >> 31))


def encode_varlong(value: int) -> bytes:
    """Encode an int64 as a zig-zag varlong."""
    return encode_uvarint((value << 1) ^ (value >> 63))


# The distinct values of a column; `np.unique` loads `numpy.ma` first, a fifth of the start-up of a command.


Kind = TypeVar("Kind", bound=np.generic)


def distinct(values: NDArray[Kind]) -> NDArray[Kind]:
    """Return each value once, in ascending order."""
    ordered = np.sort(values)
    return ordered[_begins(ordered)]


def first_of_each(values: NDArray[Kind]) -> tuple[NDArray[Kind], NDArray[np.int64]]:
    """Return each value once, in ascending order, and the index at which it occurs first."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    begins = _begins(ordered)
    return ordered[begins], order[begins]


def _begins(ordered: NDArray[Kind]) -> NDArray[np.bool_]:
    begins = np.ones(len(ordered), dtype=np.bool_)
    begins[1:] = ordered[1:] != ordered[:-1]
    return begins
