"""The table language: every table and version round-trips, and no bytes make a reader raise."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kforensics.formats.messages import control as control_record
from kforensics.formats.messages import coordinators
from kforensics.formats.messages import metadata as metadata_record
from kforensics.formats.messages import remote_log as remote_log_record
from kforensics.formats.messages.coordinators import ASSIGNMENT, SUBSCRIPTION
from kforensics.formats.messages.frame import encode_framed
from kforensics.formats.messages.reader import (
    decode_message,
    encode_message,
    message_reader,
    read_uvarint,
    write_uvarint,
)
from kforensics.formats.messages.schema import (
    UNKNOWN_TAGGED_FIELDS,
    Array,
    Decoded,
    FieldType,
    Message,
    Scalar,
    Struct,
    Undecoded,
    by_api_key,
    field,
    message,
    struct,
)
from kforensics.formats.primitives.numbers import uuid_bytes, uuid_text

TABLES: list[Message] = [
    *(table for _, table in control_record.CONTROL_TABLES.values()),
    *metadata_record.METADATA_TABLES.values(),
    *metadata_record.PREVIEW_TABLES.values(),
    *remote_log_record.REMOTE_LOG_TABLES.values(),
    *(
        table
        for tables in (coordinators.GROUP_TABLES, coordinators.TXN_TABLES, coordinators.SHARE_TABLES)
        for side in (tables.keys, tables.values)
        for table in side.values()
    ),
    SUBSCRIPTION,
    ASSIGNMENT,
]
VERSIONS = [
    pytest.param(table, version, id=f"{number}-{table.name}-{version}")
    for number, table in enumerate(TABLES)
    for version in table.versions
]

INTEGERS = {Scalar.INT8: 8, Scalar.INT16: 16, Scalar.INT32: 32, Scalar.INT64: 64}


def values_of(kind: FieldType, version: int, *, flexible: bool) -> st.SearchStrategy[Any]:
    if isinstance(kind, Array):
        return st.lists(values_of(kind.element, version, flexible=flexible), max_size=3).map(tuple)
    if isinstance(kind, Struct):
        return fields_of(kind.fields, version, flexible=flexible)
    if kind in INTEGERS:
        bits = INTEGERS[kind] - 1
        return st.integers(-(2**bits), 2**bits - 1)
    return {
        Scalar.UINT16: st.integers(0, 65_535),
        Scalar.BOOL: st.booleans(),
        Scalar.FLOAT64: st.floats(allow_nan=False),
        Scalar.UUID: st.binary(min_size=16, max_size=16).map(uuid_text),
        Scalar.STRING: st.text(max_size=200) | st.just(b"\xff\xfe"),
        Scalar.BYTES: st.binary(max_size=200),
    }[kind]


def fields_of(fields: tuple[Any, ...], version: int, *, flexible: bool) -> st.SearchStrategy[dict[str, Any]]:
    present = {
        one.name: values_of(one.type, version, flexible=flexible) | (st.none() if one.nullable else st.nothing())
        for one in fields
        if version in one.versions
    }
    known = {one.tag for one in fields if one.tag is not None}
    unknown = st.dictionaries(st.integers(20, 300), st.binary(max_size=3), max_size=2).map(
        lambda tags: tuple({"tag": tag, "data": data} for tag, data in sorted(tags.items()) if tag not in known)
    )
    base = st.fixed_dictionaries(present)
    if not flexible:
        return base
    return st.tuples(base, unknown).map(lambda both: both[0] | ({UNKNOWN_TAGGED_FIELDS: both[1]} if both[1] else {}))


@pytest.mark.parametrize(("table", "version"), VERSIONS)
def test_every_table_and_version_round_trips(table: Message, version: int) -> None:
    @settings(max_examples=10)
    @given(fields_of(table.fields, version, flexible=version in table.flexible))
    def round_trip(fields: dict[str, Any]) -> None:
        data = encode_message(table, version, fields)

        decoded = decode_message(table, version, data)

        assert decoded == Decoded(table.name, version, fields, table.api_key, 0)
        assert isinstance(decoded, Decoded)
        assert data == encode_message(table, version, decoded.fields)

    round_trip()


@pytest.mark.parametrize(("table", "version"), VERSIONS)
@pytest.mark.some(40)
def test_no_bytes_make_a_reader_raise(table: Message, version: int) -> None:
    whole = encode_message(table, version, {})

    for end in range(len(whole)):
        assert isinstance(decode_message(table, version, whole[:end]), Undecoded)

    @settings(max_examples=10)
    @given(st.binary(max_size=80))
    def any_bytes(data: bytes) -> None:
        assert isinstance(decode_message(table, version, data), Decoded | Undecoded)

    any_bytes()


def test_unknown_version_is_named() -> None:
    assert decode_message(metadata_record.TOPIC, 7, b"") == Undecoded(
        "version 7 is newer than 0, which kforensics knows", "TopicRecord", 7, 2, is_newer=True
    )
    assert message_reader(metadata_record.TOPIC, -1) is None
    with pytest.raises(ValueError, match="no version 7"):
        encode_message(metadata_record.TOPIC, 7, {})


def test_tagged_field_that_was_not_written_has_its_default() -> None:
    decoded = decode_message(metadata_record.PARTITION_CHANGE, 2, bytes(20) + b"\x00")

    assert isinstance(decoded, Decoded)
    assert decoded.fields["leader"] == -2
    assert decoded.fields["isr"] is None
    assert decoded.fields["leader_recovery_state"] == -1


@pytest.mark.parametrize("count", [0x7FFF_FFFF, 0xFFFF_FFFE, 1_000_000])
def test_a_count_is_a_claim(count: int) -> None:
    for element in (Scalar.INT32, Scalar.STRING, struct(field("a", Scalar.INT8))):
        table = message("Liar", field("many", Array(element)), flexible="0+")
        data = bytearray()
        write_uvarint(data, count)

        decoded = decode_message(table, 0, bytes(data) + bytes(40))

        assert isinstance(decoded, Undecoded)


def test_a_negative_length_is_damage() -> None:
    for kind in (Scalar.STRING, Scalar.BYTES, Array(Scalar.INT32), Array(Scalar.STRING)):
        table = message("Negative", field("one", kind))

        assert isinstance(decode_message(table, 0, b"\xff\xfe\xff\xfe" + bytes(9)), Undecoded)


def test_tagged_field_of_a_wrong_length_is_damage() -> None:
    table = message("Tagged", field("one", Scalar.INT32, tag=0), flexible="0+")

    assert Decoded("Tagged", 0, {"one": 5}) == decode_message(table, 0, b"\x01\x00\x04\x00\x00\x00\x05")
    assert isinstance(decode_message(table, 0, b"\x01\x00\x05\x00\x00\x00\x05\x00"), Undecoded)


def test_string_that_is_no_utf8_stays_bytes() -> None:
    table = message("Name", field("name", Scalar.STRING))

    assert Decoded("Name", 0, {"name": b"\xc3\x28"}) == decode_message(table, 0, b"\x00\x02\xc3\x28")


def test_trailing_bytes_are_counted() -> None:
    decoded = decode_message(metadata_record.NO_OP, 0, b"\x00\x01\x02")

    assert isinstance(decoded, Decoded)
    assert decoded.trailing == 2


def test_uvarint_is_bounded() -> None:
    assert read_uvarint(b"\xff\xff\xff\xff\x0f", 0) == (0xFFFF_FFFF, 5)
    table = message("Endless", field("many", Array(Scalar.INT8)), flexible="0+")
    assert isinstance(decode_message(table, 0, b"\xff" * 10), Undecoded)


def test_large_arrays_of_numbers() -> None:
    table = message("Many", field("many", Array(Scalar.INT32)), flexible="0+")
    fields = {"many": tuple(range(500))}

    assert Decoded("Many", 0, fields) == decode_message(table, 0, encode_message(table, 0, fields))


def test_uuid_text_is_kafkas() -> None:
    assert uuid_text(bytes(15) + b"\x01") == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert bytes(range(240, 256)) == uuid_bytes(uuid_text(bytes(range(240, 256))))


def test_a_record_type_is_declared_once() -> None:
    with pytest.raises(ValueError, match="TopicRecord"):
        by_api_key((metadata_record.TOPIC, metadata_record.TOPIC))
    with pytest.raises(ValueError, match="Keyless"):
        by_api_key((message("Keyless"),))


def test_a_message_without_a_record_type_has_no_frame() -> None:
    with pytest.raises(ValueError, match="Keyless"):
        encode_framed(message("Keyless"), 0, {})
