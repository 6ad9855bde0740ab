"""The frames around messages stored as records.

    KRaft metadata and remote log metadata, value only:   uvarint frame_version (2.8: 0, since 3.0: 1), uvarint
    api_key, uvarint version, message
    coordinator topics, key:                              int16 record type, message of version 0
    coordinator topics, value:                            int16 version, message; a null value is a tombstone

(Kafka: AbstractApiMessageSerde, MetadataRecordSerde, CoordinatorRecordSerde, 2.8 to 4.4)
"""

from collections.abc import Mapping
from struct import Struct as Layout
from typing import Any, NamedTuple

from kforensics.errors import FormatError
from kforensics.formats.messages.reader import decode_message, encode_message, read_uvarint, write_uvarint
from kforensics.formats.messages.schema import Decoded, Message, Undecoded, not_known

PREVIEW_FRAME_VERSION = 0
"""The frame of the 2.8 preview of KRaft, whose messages differ from those of the same version in 3.0 and above."""
FRAME_VERSION = 1

_FRAME_NUMBERS = 3
"""Frame version, api key and version."""
_INT16 = Layout(">h")


class CoordinatorTables(NamedTuple):
    """The messages of one coordinator topic by record type."""

    keys: Mapping[int, Message]
    values: Mapping[int, Message]


class CoordinatorRecord(NamedTuple):
    """A record of a coordinator topic: the version of its key is the record type, a value of None is a tombstone."""

    key: Decoded | Undecoded
    value: Decoded | Undecoded | None

    @property
    def why_not_understood(self) -> str:
        """The reason why key or value could not be decoded, in words; empty where both are."""
        return next((one.reason for one in (self.key, self.value) if isinstance(one, Undecoded)), "")


def parse_framed(
    data: bytes, tables: Mapping[int, Message], preview_tables: Mapping[int, Message]
) -> Decoded | Undecoded:
    """Decode a message in its frame (`AbstractApiMessageSerde`).

    Args:
        data: the value of the record: frame version, api key, version and message.
        preview_tables: those of frame version 0, by api key; they also decode messages of 3.0 to 3.2 that fit only them.

    Returns:
        The message, or `Undecoded` with the reason; bytes behind a message that fits no table whole are counted as trailing.
    """
    try:
        frame_version, api_key, version, position = data[0], data[1], data[2], 3
        if (frame_version | api_key | version) >= 0x80:
            frame_version, position = read_uvarint(data, 0)
            api_key, position = read_uvarint(data, position)
            version, position = read_uvarint(data, position)
    except (IndexError, FormatError):
        return Undecoded(f"{len(data)} bytes are too few for a frame")
    if frame_version not in (PREVIEW_FRAME_VERSION, FRAME_VERSION):
        return not_known("frame version", frame_version, FRAME_VERSION, None, version, api_key)
    first, second = (tables, preview_tables) if frame_version else (preview_tables, tables)
    table = first.get(api_key) or second.get(api_key)
    if table is None:
        return not_known("record type", api_key, max(first.keys() | second.keys()), None, version, api_key)
    decoded = decode_message(table, version, data, position)
    if isinstance(decoded, Decoded) and not decoded.trailing:
        return decoded
    other = second.get(api_key)
    if other is not None and other is not table:
        again = decode_message(other, version, data, position)
        if isinstance(again, Decoded) and not again.trailing:
            return again
    return decoded


def bare_frame(data: bytes) -> bytes:
    """Return the frame of a message without the message, which can't be decoded; empty where there is none."""
    position = 0
    try:
        for _ in range(_FRAME_NUMBERS):
            _, position = read_uvarint(data, position)
    except (IndexError, FormatError):
        return b""
    return data[:position]


def encode_framed(
    table: Message, version: int, fields: Mapping[str, Any], *, frame_version: int = FRAME_VERSION
) -> bytes:
    """Encode a message in its frame (`AbstractApiMessageSerde`).

    Args:
        fields: the values; one that is not given gets its default.
        frame_version: 0 for the 2.8 preview, 1 since 3.0.

    Raises:
        ValueError: the message has no api key, or not this version.
    """
    if table.api_key is None:
        raise ValueError(table.name)
    out = bytearray()
    for number in (frame_version, table.api_key, version):
        write_uvarint(out, number)
    return bytes(out) + encode_message(table, version, fields)


def parse_coordinator_record(key: bytes | None, value: bytes | None, tables: CoordinatorTables) -> CoordinatorRecord:
    """Decode the key, whose version is the record type, and the value of a record of a coordinator topic, each as far as possible (`CoordinatorRecordSerde`)."""
    parsed_key = _parse_coordinator_key(key, tables)
    if value is None:
        return CoordinatorRecord(parsed_key, None)
    if len(value) < _INT16.size:
        return CoordinatorRecord(parsed_key, Undecoded(f"{len(value)} bytes are too few for a version"))
    version = _INT16.unpack_from(value)[0]
    table = tables.values.get(parsed_key.version) if parsed_key.version is not None else None
    if table is None:
        is_newer = isinstance(parsed_key, Undecoded) and parsed_key.is_newer
        return CoordinatorRecord(
            parsed_key, Undecoded("the record type is not known", None, version, is_newer=is_newer)
        )
    return CoordinatorRecord(parsed_key, decode_message(table, version, value, _INT16.size))


def _parse_coordinator_key(key: bytes | None, tables: CoordinatorTables) -> Decoded | Undecoded:
    if key is None:
        return Undecoded("there is no key")
    if len(key) < _INT16.size:
        return Undecoded(f"{len(key)} bytes are too few for a record type")
    record_type = _INT16.unpack_from(key)[0]
    table = tables.keys.get(record_type)
    if table is None:
        return not_known("record type", record_type, max(tables.keys), None, record_type)
    return decode_message(table, 0, key, _INT16.size)._replace(version=record_type, api_key=None)
