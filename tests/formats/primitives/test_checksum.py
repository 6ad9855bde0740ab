import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kforensics.formats.primitives.checksum import crc32, crc32c, reference_crc32c
from kforensics.formats.segment.diagnosis import CRC32_REFLECTED, CRC32C_REFLECTED, locate_flipped_bit

KINDS = {CRC32C_REFLECTED: crc32c, CRC32_REFLECTED: crc32}


def test_known_values():
    assert 0xE3069283 == crc32c(b"123456789")
    assert 0xCBF43926 == crc32(b"123456789")


@given(st.binary(max_size=300), st.integers(0, 300))
def test_the_fast_checksum_is_the_reference_whole_and_in_pieces(data, cut):
    reference = reference_crc32c()

    assert reference(data) == crc32c(data) == crc32c(memoryview(data)) == crc32c(data[cut:], crc32c(data[:cut]))
    assert zlib.crc32(data) == crc32(data) == crc32(data[cut:], crc32(data[:cut]))


@pytest.mark.parametrize("polynomial", KINDS)
@pytest.mark.parametrize("length", [1, 2, 40, 8191, 8192, 8193, 20_000, 3_000_000])
def test_a_flipped_bit_is_located(polynomial, length):
    rng = random.Random(length)
    data = bytearray(rng.randbytes(length))
    checksum = KINDS[polynomial]
    stored = checksum(data)
    for place in {0, length - 1, *(rng.randrange(length) for _ in range(5))}:
        bit = rng.randrange(8)
        data[place] ^= 1 << bit

        assert (place, bit) == locate_flipped_bit(stored ^ checksum(data), length, polynomial)
        data[place] ^= 1 << bit


@given(st.binary(min_size=20, max_size=200), st.sets(st.integers(0, 159), min_size=2, max_size=2))
def test_two_flipped_bits_are_not_taken_for_one(data, bits):
    damaged = bytearray(data)
    for bit in bits:
        damaged[bit // 8] ^= 1 << bit % 8

    assert locate_flipped_bit(crc32c(data) ^ crc32c(damaged), len(data)) is None


def test_no_difference_has_no_place():
    assert locate_flipped_bit(0, 100) is None
