"""The hashes of default partitioners."""

import pytest

from kforensics.protocol.coordinators import murmur2, place_key


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_that_of_the_java_client(key, expected):
    """The cases of `UtilsTest.testMurmur2` in Kafka."""
    assert murmur2(key) - ((murmur2(key) >> 31) << 32) == expected


def test_a_key_has_one_partition_by_each_partitioner():
    found = place_key(b"ord-000001", 4, is_recorded=True)

    assert (found.murmur2, found.crc32) == (1, 2)
    assert place_key(b"ord-000001", 1, is_recorded=False).murmur2 == 0
