import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.errors import FormatError, UnexpectedEnd
from kforensics.formats.columns.record_chain import read_varints, read_varlongs, skip_varlongs
from kforensics.formats.primitives.numbers import (
    encode_uvarint,
    encode_varint,
    encode_varlong,
    read_uvarint,
    read_varint,
    read_varlong,
)
from kforensics.formats.primitives.word_buffer import MemoryBytes, WordBuffer

int32s = st.integers(-(1 << 31), (1 << 31) - 1)
int64s = st.integers(-(1 << 63), (1 << 63) - 1)


@given(int32s)
def test_varint_round_trip(value):
    data = encode_varint(value)

    assert (value, len(data)) == read_varint(data, 0, len(data))
    assert len(data) <= 5


@given(int64s)
def test_varlong_round_trip(value):
    data = encode_varlong(value)

    assert (value, len(data)) == read_varlong(data, 0, len(data))
    assert len(data) <= 10


@given(st.integers(0, (1 << 32) - 1))
def test_uvarint_round_trip(value):
    data = encode_uvarint(value)

    assert (value, len(data)) == read_uvarint(data, 0, len(data))


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (-65, "8101"), (2**31 - 1, "feffffff0f")],
)
def test_varints_as_kafka_writes_them(value, data):
    assert bytes.fromhex(data) == encode_varint(value)


@pytest.mark.parametrize("length", range(5))
def test_an_incomplete_varint_is_an_error(length):
    with pytest.raises(UnexpectedEnd):
        read_varint(b"\xff" * 10, 0, length)


def test_a_varint_that_does_not_end_is_an_error():
    with pytest.raises(FormatError, match="at most 5 bytes"):
        read_varint(b"\xff" * 20, 0, 20)
    with pytest.raises(FormatError, match="at most 10 bytes"):
        read_varlong(b"\xff" * 20, 0, 20)


@given(st.lists(int64s, min_size=1, max_size=30))
def test_many_varlongs_at_once(values):
    data, places = joined([encode_varlong(value) for value in values])

    found, behind, ends = read_varlongs(data, places)
    skipped, skipped_ends = skip_varlongs(data, places)
    ends = np.broadcast_to(ends, len(places))

    for value, place, one, position, end in zip(
        values, places.tolist(), found.tolist(), behind.tolist(), ends.tolist(), strict=True
    ):
        assert end == (len(encode_varlong(value)) <= 8)
        if end:
            assert (value, place + len(encode_varlong(value))) == (one, position)
    assert ends.tolist() == np.broadcast_to(skipped_ends, len(places)).tolist()
    assert behind[ends].tolist() == skipped[ends].tolist()


@given(st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=30))
def test_many_varints_at_once_agree_with_the_exact_reader(parts):
    data, places = joined(parts)

    found, behind, ends = read_varints(data, places)
    ends = np.broadcast_to(ends, len(places))

    for place, value, position, end in zip(
        places.tolist(), found.tolist(), behind.tolist(), ends.tolist(), strict=True
    ):
        if end and -(1 << 31) <= value < 1 << 31:
            assert (value, position) == read_varint(data.content, place, len(data.content))
        elif not end:
            with pytest.raises(FormatError):
                read_varint(data.content, place, len(data.content))


short = st.integers(-(1 << 13), (1 << 13) - 1)


@pytest.mark.parametrize("values", [st.integers(-64, 63), short, short | int32s])
def test_columns_of_any_width_agree_with_the_exact_reader(values):
    @given(st.lists(values, min_size=1, max_size=30))
    def check(numbers):
        data, places = joined([encode_varint(number) for number in numbers])

        found, behind, ends = read_varints(data, places)
        as_longs, behind_longs, _ = read_varlongs(data, places)
        skipped, _ = skip_varlongs(data, places)

        assert found.tolist() == as_longs.tolist() == numbers
        assert behind.tolist() == behind_longs.tolist() == skipped.tolist() == [*places[1:].tolist(), data.filled]
        assert np.all(ends)

    check()


def joined(parts: list[bytes]) -> tuple[WordBuffer, np.ndarray]:
    lengths = np.array([len(part) for part in parts])
    data = b"".join(parts)
    buffer = WordBuffer(len(data))
    buffer.load(MemoryBytes(data), 0, len(data))
    return buffer, np.cumsum(lengths) - lengths
