"""Decodes messages by their tables: each (table, version) becomes, once, a chain of bound readers over `bytes`.

A reader takes `(data, position)` and gives `(value, next position)`. Runs of fixed-width fields are read by one
`struct.Struct`. Every length and count
is checked against the bytes that are left before it is used.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from struct import Struct as Layout
from typing import Any

from kforensics.damage import Span
from kforensics.errors import FormatError, UnexpectedEnd
from kforensics.formats.messages.schema import (
    UNKNOWN_TAGGED_FIELDS,
    Array,
    Decoded,
    Field,
    FieldType,
    Message,
    Scalar,
    Struct,
    Undecoded,
    not_known,
    zero,
)
from kforensics.formats.primitives.numbers import uuid_bytes, uuid_text

Reader = Callable[[bytes, int], tuple[Any, int]]

FIXED_FORMATS = {
    Scalar.BOOL: "?",
    Scalar.INT8: "b",
    Scalar.INT16: "h",
    Scalar.UINT16: "H",
    Scalar.INT32: "i",
    Scalar.INT64: "q",
    Scalar.FLOAT64: "d",
}
UUID_LENGTH = 16

_INT16 = Layout(">h")
_INT32 = Layout(">i")
_UVARINT_MAX_LENGTH = 5
_SMALL_ARRAYS = 32


def decode_message(table: Message, version: int, data: bytes, position: int = 0) -> Decoded | Undecoded:
    """Decode the message at `position`; it is `Undecoded` with the reason if it does not fit the schema, and no error is raised."""
    reader = message_reader(table, version)
    if reader is None:
        return not_known("version", version, table.versions[-1], table.name, version, table.api_key)
    try:
        fields, end = reader(data, position)
    except (struct.error, IndexError):
        return Undecoded(f"{len(data)} bytes end inside a field", table.name, version, table.api_key)
    except FormatError as damage:
        return Undecoded(str(damage), table.name, version, table.api_key)
    return Decoded(table.name, version, fields, table.api_key, len(data) - end)


@cache
def message_reader(table: Message, version: int) -> Reader | None:
    """Return the compiled reader of a version, or None if the schema does not have this version."""
    if version not in table.versions:
        return None
    return _struct_reader(table.fields, version, flexible=version in table.flexible)


def read_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """Read an unsigned LEB128 number of at most 32 bits and return it with the position behind it.

    Raises:
        IndexError: the data ends within the number.
        FormatError: the number is longer than 5 bytes.
    """
    byte = data[position]
    if byte < 0x80:
        return byte, position + 1
    value = byte & 0x7F
    for shift in range(1, _UVARINT_MAX_LENGTH):
        byte = data[position + shift]
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, position + shift + 1
    raise FormatError(
        Span(position, _UVARINT_MAX_LENGTH), expected="an unsigned varint of 5 bytes", found="a longer one"
    )


def _text(raw: bytes) -> str | bytes:
    # A string that is no UTF-8 is evidence: it is kept as bytes, not repaired.
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _claim(data: bytes, position: int, length: int) -> None:
    if length < 0 or length > len(data) - position:
        left = max(len(data) - position, 0)
        raise UnexpectedEnd(Span(position, left), expected=f"{length} bytes", found=f"{left} bytes left")


def _reader(kind: FieldType, version: int, *, flexible: bool, nullable: bool = False, tagged: bool = False) -> Reader:
    if isinstance(kind, Array):
        return _array_reader(kind, version, flexible=flexible)
    if isinstance(kind, Struct):
        inner = _struct_reader(kind.fields, version, flexible=flexible)
        return _nullable_struct_reader(inner, tagged=tagged) if nullable else inner
    if kind is Scalar.UUID:
        return _read_uuid
    if kind is Scalar.STRING:
        return _read_compact_string if flexible else _read_string
    if kind is Scalar.BYTES:
        return _read_compact_bytes if flexible else _read_bytes
    return _fixed_reader(FIXED_FORMATS[kind])


def _fixed_reader(code: str) -> Reader:
    layout = Layout(">" + code)
    unpack, length = layout.unpack_from, layout.size

    def read(data: bytes, position: int) -> tuple[Any, int]:
        return unpack(data, position)[0], position + length

    return read


def _read_uuid(data: bytes, position: int) -> tuple[str, int]:
    end = position + UUID_LENGTH
    if end > len(data):
        _claim(data, position, UUID_LENGTH)
    return uuid_text(data[position:end]), end


def _read_compact_string(data: bytes, position: int) -> tuple[str | bytes | None, int]:
    length = data[position]
    if length < 0x80:
        position += 1
    else:
        length, position = read_uvarint(data, position)
    if length == 0:
        return None, position
    end = position + length - 1
    if end > len(data):
        _claim(data, position, length - 1)
    return _text(data[position:end]), end


def _read_compact_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_uvarint(data, position)
    if length == 0:
        return None, position
    _claim(data, position, length - 1)
    end = position + length - 1
    return data[position:end], end


def _read_string(data: bytes, position: int) -> tuple[str | bytes | None, int]:
    length = _INT16.unpack_from(data, position)[0]
    position += 2
    if length == -1:
        return None, position
    _claim(data, position, length)
    return _text(data[position : position + length]), position + length


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length = _INT32.unpack_from(data, position)[0]
    position += 4
    if length == -1:
        return None, position
    _claim(data, position, length)
    return data[position : position + length], position + length


def _read_count(data: bytes, position: int) -> tuple[int, int]:
    return _INT32.unpack_from(data, position)[0], position + 4


def _read_compact_count(data: bytes, position: int) -> tuple[int, int]:
    count = data[position]
    if count < 0x80:
        return count - 1, position + 1
    count, position = read_uvarint(data, position)
    return count - 1, position


def _array_reader(kind: Array, version: int, *, flexible: bool) -> Reader:
    read_count = _read_compact_count if flexible else _read_count
    if isinstance(kind.element, Scalar) and kind.element in FIXED_FORMATS:
        return _fixed_array_reader(FIXED_FORMATS[kind.element], read_count)
    read_element = _reader(kind.element, version, flexible=flexible)

    def read(data: bytes, position: int) -> tuple[tuple[Any, ...] | None, int]:
        count, position = read_count(data, position)
        if count == -1:
            return None, position
        # Every element takes at least one byte.
        _claim(data, position, count)
        elements = []
        for _ in range(count):
            element, position = read_element(data, position)
            elements.append(element)
        return tuple(elements), position

    return read


def _fixed_array_reader(code: str, read_count: Reader) -> Reader:
    width = Layout(">" + code).size
    small = tuple(Layout(f">{count}{code}").unpack_from for count in range(_SMALL_ARRAYS))

    def read(data: bytes, position: int) -> tuple[tuple[Any, ...] | None, int]:
        count, position = read_count(data, position)
        if 0 <= count < _SMALL_ARRAYS:
            return small[count](data, position), position + count * width
        if count == -1:
            return None, position
        _claim(data, position, count * width)
        return Layout(f">{count}{code}").unpack_from(data, position), position + count * width

    return read


def _nullable_struct_reader(inner: Reader, *, tagged: bool) -> Reader:
    def read(data: bytes, position: int) -> tuple[dict[str, Any] | None, int]:
        presence = data[position]
        if presence >= 0x80 or (tagged and presence == 0):
            return None, position + 1
        return inner(data, position + 1)

    return read


def _run_reader(fields: list[Field]) -> tuple[tuple[str, ...], Callable[[bytes, int], tuple[Any, ...]], int]:
    layout = Layout(">" + "".join(FIXED_FORMATS[field.type] for field in fields if isinstance(field.type, Scalar)))
    return tuple(field.name for field in fields), layout.unpack_from, layout.size


def _struct_reader(fields: tuple[Field, ...], version: int, *, flexible: bool) -> Reader:
    present = [field for field in fields if version in field.versions]
    plain = [field for field in present if field.tag is None]
    template = {field.name: field.default for field in present}
    steps: list[tuple[str | None, Any, Any, int]] = []
    run: list[Field] = []

    def close_run() -> None:
        if len(run) == 1:
            steps.append((run[0].name, _reader(run[0].type, version, flexible=flexible), None, 0))
        elif run:
            names, unpack, length = _run_reader(run)
            steps.append((None, names, unpack, length))
        run.clear()

    for field in plain:
        if isinstance(field.type, Scalar) and field.type in FIXED_FORMATS:
            run.append(field)
            continue
        close_run()
        steps.append((field.name, _reader(field.type, version, flexible=flexible, nullable=field.nullable), None, 0))
    close_run()
    bound = tuple(steps)
    read_tagged = _tagged_fields_reader([field for field in present if field.tag is not None], version)

    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        values = template.copy()
        for name, reader, unpack, length in bound:
            if name is None:
                values.update(zip(reader, unpack(data, position), strict=True))
                position += length
            else:
                values[name], position = reader(data, position)
        if flexible:
            # One zero byte, no tagged fields, is by far the commonest end of a struct.
            position = read_tagged(data, position, values) if data[position] else position + 1
        return values, position

    return read


def _tagged_fields_reader(fields: list[Field], version: int) -> Callable[[bytes, int, dict[str, Any]], int]:
    known = {
        field.tag: (field.name, _reader(field.type, version, flexible=True, nullable=field.nullable, tagged=True))
        for field in fields
    }

    def read(data: bytes, position: int, values: dict[str, Any]) -> int:
        count, position = read_uvarint(data, position)
        unknown: list[dict[str, Any]] = []
        for _ in range(count):
            tag, length = data[position], data[position + 1]
            if tag < 0x80 and length < 0x80:
                position += 2
            else:
                tag, position = read_uvarint(data, position)
                length, position = read_uvarint(data, position)
            end = position + length
            if end > len(data):
                _claim(data, position, length)
            if tag in known:
                name, reader = known[tag]
                values[name], stopped = reader(data, position)
                if stopped != end:
                    found = f"{stopped - position} bytes used"
                    raise FormatError(
                        Span(position, length), expected=f"tagged field {name} in {length} bytes", found=found
                    )
            else:
                unknown.append({"tag": tag, "data": data[position:end]})
            position = end
        if unknown:
            values[UNKNOWN_TAGGED_FIELDS] = tuple(unknown)
        return position

    return read


# Encode messages by the schemas that decode them; a decoded message is encoded to the same bytes.


_NO_VALUE = object()


def encode_message(table: Message, version: int, fields: Mapping[str, Any]) -> bytes:
    """Encode one message.

    Raises:
        ValueError: the message does not have this version.
    """
    if version not in table.versions:
        raise ValueError(f"{table.name} has no version {version}")
    out = bytearray()
    _write_struct(out, table.fields, version, fields, flexible=version in table.flexible)
    return bytes(out)


def write_uvarint(out: bytearray, value: int) -> None:
    """Append an unsigned LEB128 number."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_struct(
    out: bytearray, fields: tuple[Field, ...], version: int, values: Mapping[str, Any], *, flexible: bool
) -> None:
    tagged: list[tuple[int, bytes]] = []
    for field in fields:
        if version not in field.versions:
            continue
        value = values.get(field.name, _NO_VALUE)
        if value is _NO_VALUE:
            value = zero(field.type) if field.default is None and not field.nullable else field.default
        if field.tag is None:
            _write(out, field.type, version, value, flexible=flexible, nullable=field.nullable)
        elif value != field.default:
            payload = bytearray()
            _write(payload, field.type, version, value, flexible=True, nullable=field.nullable, tagged=True)
            tagged.append((field.tag, bytes(payload)))
    if flexible:
        tagged.extend((unknown["tag"], unknown["data"]) for unknown in values.get(UNKNOWN_TAGGED_FIELDS, ()))
        write_uvarint(out, len(tagged))
        for tag, data in sorted(tagged):
            write_uvarint(out, tag)
            write_uvarint(out, len(data))
            out += data


def _write(
    out: bytearray,
    kind: FieldType,
    version: int,
    value: Any,
    *,
    flexible: bool,
    nullable: bool = False,
    tagged: bool = False,
) -> None:
    if isinstance(kind, Struct):
        if nullable:
            null = b"\x00" if tagged else b"\xff"
            out += null if value is None else b"\x01"
        if value is not None:
            _write_struct(out, kind.fields, version, value, flexible=flexible)
    elif isinstance(kind, Array):
        _write_length(out, None if value is None else len(value), 4, flexible=flexible)
        for element in value or ():
            _write(out, kind.element, version, element, flexible=flexible)
    elif kind is Scalar.UUID:
        out += uuid_bytes(value)
    elif kind in (Scalar.STRING, Scalar.BYTES):
        raw = value.encode() if isinstance(value, str) else value
        _write_length(out, None if raw is None else len(raw), 2 if kind is Scalar.STRING else 4, flexible=flexible)
        out += raw or b""
    else:
        out += struct.pack(">" + FIXED_FORMATS[kind], value)


def _write_length(out: bytearray, length: int | None, width: int, *, flexible: bool) -> None:
    if flexible:
        write_uvarint(out, 0 if length is None else length + 1)
    else:
        out += (-1 if length is None else length).to_bytes(width, "big", signed=True)
