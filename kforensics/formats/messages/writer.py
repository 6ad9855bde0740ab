"""Encode messages by the schemas that decode them; a decoded message is encoded to the same bytes."""

import struct
from collections.abc import Mapping
from typing import Any

from kforensics.formats.messages.reader import FIXED_FORMATS
from kforensics.formats.messages.schema import (
    UNKNOWN_TAGGED_FIELDS,
    Array,
    Field,
    FieldType,
    Message,
    Scalar,
    Struct,
    zero,
)
from kforensics.formats.primitives.numbers import uuid_bytes

_NO_VALUE = object()


def encode_message(table: Message, version: int, fields: Mapping[str, Any]) -> bytes:
    """Encode one message.

    Args:
        fields: the values; one that is not given gets its default, or the zero of its type.

    Raises:
        ValueError: the message does not have this version.
    """
    if version not in table.versions:
        raise ValueError(f"{table.name} has no version {version}")
    out = bytearray()
    _write_struct(out, table.fields, version, fields, flexible=version in table.flexible)
    return bytes(out)


def write_uvarint(out: bytearray, value: int) -> None:
    """Append an unsigned LEB128 number.

    Args:
        out: where the bytes are appended.
        value: a number of 0 or more.
    """
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
