"""The table language in which Kafka's message schemas are declared here: fields by version, tagged, nullable, nested.

    message     := field* tagged_fields?                       tagged fields only where the version is flexible
    tagged      := uvarint count, (uvarint tag, uvarint length, payload)*
    string      := int16 length, UTF-8                         flexible: uvarint length + 1; 0 is null
    bytes       := int32 length, bytes                         flexible: uvarint length + 1; 0 is null
    array       := int32 count, element*                       flexible: uvarint count + 1; 0 is null
    nullable struct := int8 (-1 null, 1 present), struct   tagged: uvarint (0 null, 1 present), struct

Names are Kafka's in snake_case. Values are as on disk, Kafka's sentinels included: a uuid is its 22-character text
form, an array a tuple, a nested
struct a dict, a string that is no UTF-8 stays bytes. A tagged field that was not written holds its default. Tagged
fields that a table does not know
are kept under `unknown_tagged_fields`, in the struct that held them. (Kafka: org.apache.kafka.common.protocol.types,
0.8 to 4.x; KIP-482)
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from kforensics.errors import newer_than_known
from kforensics.words import counted, form, listed

UNKNOWN_TAGGED_FIELDS = "unknown_tagged_fields"
"""The name under which a struct carries tagged fields that its table does not know."""

NEVER = range(0)
"""The empty range of versions, as in `flexible=NEVER`."""

_LAST_VERSION = 32_767


class Scalar(StrEnum):
    """The type of a field that is neither an array nor a struct."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT64 = "float64"
    UUID = "uuid"
    STRING = "string"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Array:
    """A sequence of one type."""

    element: "FieldType"


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields in their order on disk."""

    fields: "tuple[Field, ...]"


FieldType = Scalar | Array | Struct


@dataclass(frozen=True, slots=True)
class Field:
    """One field: the versions that hold it, its tag where it has one, and the value it has where it is not written."""

    name: str
    type: FieldType
    versions: range
    tag: int | None
    nullable: bool
    default: Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Message:
    """One message of Kafka's: its name, its versions, which of them are flexible, and its fields; equal only to itself."""

    name: str
    versions: range
    flexible: range
    fields: tuple[Field, ...]
    api_key: int | None = None


class Decoded(NamedTuple):
    """A decoded message; `trailing` counts the bytes behind it that belong to no field."""

    name: str
    version: int
    fields: dict[str, Any]
    api_key: int | None = None
    trailing: int = 0


class Undecoded(NamedTuple):
    """A message that could not be decoded, and the reason; name, version and key as far as they are known."""

    reason: str
    name: str | None = None
    version: int | None = None
    api_key: int | None = None
    is_newer: bool = False
    """Its type or version is above the newest that is known: the bytes may be sound."""


def not_known(
    what: str, found: int, newest: int, name: str | None = None, version: int | None = None, api_key: int | None = None
) -> Undecoded:
    """Return what can't be decoded because its type or version is not known: newer than those that are, or none of them."""
    is_newer = found > newest
    reason = newer_than_known(what, found, newest) if is_newer else f"{what} {found} is not known"
    return Undecoded(reason, name, version, api_key, is_newer)


def not_understood(message: Decoded) -> str:
    """Return what of a decoded message no table knows, in words; empty where all of it is understood."""
    tags = sorted(_unknown_tags(message.fields))
    if tags:
        return f"{message.name} has tagged {form(len(tags), 'field', 'fields')} {listed(tags)}, newer than kforensics knows"
    return f"{counted(message.trailing, 'byte')} behind {message.name} belong to no field" if message.trailing else ""


def _unknown_tags(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (str(one["tag"]) for one in value.get(UNKNOWN_TAGGED_FIELDS, ()))
        for part in value.values():
            yield from _unknown_tags(part)
    elif isinstance(value, tuple):
        for part in value:
            yield from _unknown_tags(part)


def versions(text: str) -> range:
    """Parse a range of versions as Kafka's schemas write it: `0`, `0-3` or `2+`.

    Raises:
        ValueError: the text is none of these.
    """
    first, dash, last = text.partition("-")
    if text.endswith("+"):
        return range(int(text[:-1]), _LAST_VERSION)
    return range(int(first), int(last if dash else first) + 1)


def field(
    name: str,
    kind: FieldType,
    since: str = "0+",
    *,
    tag: int | None = None,
    nullable: bool = False,
    default: Any = None,
) -> Field:
    """Declare a field of a message or struct.

    Args:
        since: the versions that hold the field, as Kafka's schemas write them.
        tag: the number of a tagged field; None for one in the order of the fields.
        default: the value where the field is not written; a tagged field without one has the zero of its type, or null.
    """
    if tag is not None and default is None and not nullable:
        default = zero(kind)
    return Field(name, kind, versions(since), tag, nullable, default)


def struct(*fields: Field) -> Struct:
    """Declare a nested struct."""
    return Struct(fields)


def message(
    name: str, *fields: Field, valid: str = "0", flexible: str | None = None, api_key: int | None = None
) -> Message:
    """Declare a message of Kafka's, the versions of it that use the flexible encoding (KIP-482), and the api key of a framed record."""
    return Message(
        name=name,
        versions=versions(valid),
        flexible=versions(flexible) if flexible else NEVER,
        fields=fields,
        api_key=api_key,
    )


def zero(kind: FieldType) -> Any:
    """Return the value that a type has if the schema names no default."""
    if isinstance(kind, Array):
        return ()
    if isinstance(kind, Struct):
        return {member.name: zero(member.type) if member.default is None else member.default for member in kind.fields}
    return _ZEROS[kind]


def by_api_key(tables: Iterable[Message]) -> Mapping[int, Message]:
    """Return the messages by their api key.

    Raises:
        ValueError: a message has no api key, or two have the same.
    """
    keyed: dict[int, Message] = {}
    for table in tables:
        if table.api_key is None or table.api_key in keyed:
            raise ValueError(table.name)
        keyed[table.api_key] = table
    return keyed


_ZEROS: Mapping[Scalar, Any] = {
    Scalar.BOOL: False,
    Scalar.INT8: 0,
    Scalar.INT16: 0,
    Scalar.UINT16: 0,
    Scalar.INT32: 0,
    Scalar.INT64: 0,
    Scalar.FLOAT64: 0.0,
    Scalar.UUID: "AAAAAAAAAAAAAAAAAAAAAA",
    Scalar.STRING: "",
    Scalar.BYTES: b"",
}
