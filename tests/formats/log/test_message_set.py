import contextlib
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.errors import BadChecksum, FormatError
from kforensics.formats.log.batch_table import TIMESTAMP_TYPE_BIT
from kforensics.formats.log.batches import (
    Message,
    encode_message,
    encode_message_set,
    iter_message_records,
    parse_message,
    summarize_wrapper,
)
from kforensics.formats.log.records import Record
from kforensics.formats.primitives.compression import compress
from kforensics.formats.primitives.numbers import Codec
from tests.formats.segments import walked

nullable = st.none() | st.binary(max_size=60)


@st.composite
def messages(draw: st.DrawFn) -> tuple[Message, ...]:
    magic = draw(st.sampled_from([0, 1]))
    offset = draw(st.integers(0, 1 << 50))
    gaps = draw(st.lists(st.integers(1, 9), min_size=1, max_size=12))
    found = []
    for gap in gaps:
        time = draw(st.integers(-1, 1 << 45)) if magic else -1
        found.append(Message(offset, magic, 0, time, draw(nullable), draw(nullable)))
        offset += gap
    return tuple(found)


def values(found: Iterable[Message | Record]) -> list[tuple[object, ...]]:
    return [(one.offset, one.magic, one.timestamp_ms, one.key, one.value) for one in found]


def read(data: bytes) -> list[Record]:
    return list(iter_message_records(data, 0))


@given(messages(), st.sampled_from([Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]))
def test_round_trip(given_messages, codec):
    data = encode_message_set(given_messages, codec=codec)
    if codec:
        assert values(given_messages) == values(read(data))
        assert given_messages[-1].offset == parse_message(data)[0].offset
        assert (given_messages[0].offset, len(given_messages)) == summarize_wrapper(data)

    found = walked(data)

    assert [] == found.damage
    assert len(given_messages) == found.record_count == sum(row["count"] for row in found.batches)
    assert given_messages[0].offset == found.batches[0]["base_offset"]
    assert given_messages[-1].offset == found.batches[-1]["last_offset"]


@given(messages())
def test_a_message_is_itself(given_messages):
    data = encode_message(given_messages[0])
    message, end = parse_message(data)

    assert (given_messages[0], len(data)) == (message._replace(crc=0), end)
    assert [given_messages[0].offset] == [record.offset for record in read(data)]


def test_inner_offsets_of_magic_1_are_relative_to_the_last():
    inner = b"".join(encode_message(Message(offset, 1, 0, 5, b"k", b"v")) for offset in (3, 4, 9))
    data = encode_message(Message(1009, 1, Codec.GZIP, 5, None, compress(Codec.GZIP, inner)))

    assert [1003, 1004, 1009] == [message.offset for message in read(data)]


def test_log_append_time_of_the_wrapper_is_that_of_its_messages():
    given_messages = [Message(offset, 1, 0, 5, None, b"v") for offset in range(3)]
    data = encode_message_set(given_messages, codec=Codec.SNAPPY, log_append_ms=777)

    assert parse_message(data)[0].attributes & TIMESTAMP_TYPE_BIT
    assert [777] * 3 == [record.timestamp_ms for record in read(data)]


def wrapper_of(inner: bytes, magic: int = 1, offset: int = 5) -> bytes:
    return encode_message(Message(offset, magic, Codec.GZIP, 1, None, compress(Codec.GZIP, inner)))


def test_wrappers_in_wrappers_are_refused_at_the_first_level():
    data = encode_message(Message(5, 1, 0, 1, None, b"v"))
    for _ in range(100):
        data = wrapper_of(data)

    with pytest.raises(FormatError, match="plain message"):
        read(data)
    assert ["record"] == [damage.kind for damage in walked(data).damage]


def test_damage_in_a_wrapper_is_reported():
    sound = encode_message(Message(0, 1, 0, 1, b"key", b"value"))
    with pytest.raises(BadChecksum):
        read(wrapper_of(sound[:-1] + b"!"))
    with pytest.raises(FormatError, match="magic 1"):
        read(wrapper_of(encode_message(Message(0, 0, 0, -1, b"key", b"value"))))
    with pytest.raises(FormatError, match="above 0"):
        read(wrapper_of(sound + sound))
    with pytest.raises(FormatError, match="at least one"):
        read(wrapper_of(b""))
    with pytest.raises(FormatError, match="wrapper's offset 7"):
        read(wrapper_of(encode_message(Message(5, 0, 0, -1, None, None)), magic=0, offset=7))
    with pytest.raises(FormatError, match="null"):
        read(encode_message(Message(0, 1, Codec.GZIP, 1, None, None)))


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        (26, 1000, "a length of"),
        (26, -2, "a length of"),
        (34, 99, "a length of"),
        (34, 2, "the end of the message"),
        (8, 21, "a length of"),
    ],
)
def test_lengths_are_claims(place, value, expected):
    data = bytearray(encode_message(Message(0, 1, 0, 1, b"keys", b"value")))
    data[place : place + 4] = value.to_bytes(4, signed=True)

    with pytest.raises(FormatError, match=expected):
        parse_message(data)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_message_or_an_error(data):
    with contextlib.suppress(FormatError):
        read(data)
