import contextlib
import gzip
import random
import subprocess
import sys
import zlib
from struct import pack

import cramjam
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from kforensics.errors import FormatError, UnsupportedFormat
from kforensics.formats.primitives.compression import (
    OUTPUT_LIMIT,
    SMALLEST_LIMIT,
    compress,
    decompress,
    decompress_into,
    output_limit,
    zstd_windows,
)
from kforensics.formats.primitives.numbers import BadCompression, Codec, OutputLimitReached, WindowTooLarge
from tests.conftest import ROOT

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEN_GIB = 10 << 30

contents = st.one_of(
    st.binary(max_size=500), st.builds(lambda part, times: part * times, st.binary(max_size=20), st.integers(0, 20_000))
)


@given(st.sampled_from(CODECS), contents)
def test_round_trip(codec, data):
    packed = compress(codec, data)

    assert data == decompress(codec, packed)
    output = memoryview(bytearray(len(data)))
    assert len(data) == decompress_into(codec, memoryview(packed), output)
    assert data == bytes(output)


@given(st.sampled_from(CODECS), st.binary(max_size=300))
def test_any_bytes_are_data_or_an_error(codec, data):
    with contextlib.suppress(FormatError):
        assert len(decompress(codec, data, 1 << 16)) <= 1 << 16


@given(st.sampled_from(CODECS), st.binary(min_size=1, max_size=300), st.randoms(use_true_random=False))
def test_damaged_bytes_are_data_or_an_error(codec, data, rng):
    packed = bytearray(compress(codec, data * 5))
    packed[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
    with contextlib.suppress(FormatError):
        assert len(decompress(codec, packed, 1 << 16)) <= 1 << 16


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_holds_to_the_byte(codec):
    packed = compress(codec, bytes(100_000))

    assert bytes(100_000) == decompress(codec, packed, 100_000)
    with pytest.raises(OutputLimitReached):
        decompress(codec, packed, 99_999)


@pytest.mark.parametrize("codec", CODECS)
def test_cut_bytes_are_an_error(codec):
    packed = compress(codec, random.Random(1).randbytes(70_000))

    with pytest.raises(FormatError):
        decompress(codec, packed[: len(packed) // 2])


@pytest.mark.parametrize("codec", [0, 5, 6, 7])
def test_other_codecs_are_unsupported(codec):
    with pytest.raises(UnsupportedFormat):
        decompress(codec, b"")


@pytest.mark.parametrize("flag", [0x20, 0x40, 0x80])
def test_gzip_with_a_reserved_flag_is_refused(flag: int):
    data = bytearray(gzip.compress(b"one"))
    data[3] |= flag
    with pytest.raises(FormatError):
        decompress(Codec.GZIP, data)


def test_gzip_of_several_members():
    assert b"onetwo" == decompress(Codec.GZIP, gzip.compress(b"one") + gzip.compress(b"two"))


def test_snappy_as_one_raw_block():
    assert b"raw block" * 9 == decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(b"raw block" * 9)))


@pytest.mark.parametrize("length", [-1, 0x7FFFFFFF, -(1 << 31)])
def test_snappy_block_lengths_are_claims(length):
    framed = compress(Codec.SNAPPY, b"some bytes")

    with pytest.raises(FormatError):
        decompress(Codec.SNAPPY, framed[:16] + pack(">i", length) + framed[20:])


def test_lz4_with_the_header_checksum_of_magic_0():
    right = compress(Codec.LZ4, b"payload" * 50)
    wrong = compress(Codec.LZ4, b"payload" * 50, wrong_lz4_header=True)

    assert right[6] == xxhash.xxh32_intdigest(right[4:6]) >> 8 & 0xFF
    assert wrong[6] == xxhash.xxh32_intdigest(wrong[:6]) >> 8 & 0xFF
    assert right != wrong
    assert b"payload" * 50 == decompress(Codec.LZ4, right) == decompress(Codec.LZ4, wrong)


def test_lz4_frames_of_other_clients():
    data = b"content" * 1000
    block = bytes(cramjam.lz4.compress_block(data, store_size=False))
    block_checksum = pack("<I", xxhash.xxh32_intdigest(block))
    content_checksum = pack("<I", xxhash.xxh32_intdigest(data))
    descriptor = b"\x7c\x40" + pack("<Q", len(data))
    for checksum in (xxhash.xxh32_intdigest(descriptor) >> 8 & 0xFF, 0x55):
        frame = (
            b"\x04\x22\x4d\x18"
            + descriptor
            + bytes([checksum])
            + pack("<I", len(block))
            + block
            + block_checksum
            + bytes(4)
            + content_checksum
        )

        assert data == decompress(Codec.LZ4, frame)


def gzip_bomb() -> bytes:
    encoder = zlib.compressobj(9, wbits=31)
    piece = encoder.compress(bytes(1 << 20)) + encoder.flush(zlib.Z_FULL_FLUSH)
    piece_again = encoder.compress(bytes(1 << 20)) + encoder.flush(zlib.Z_FULL_FLUSH)
    return piece + piece_again * 1100


def snappy_raw_bomb() -> bytes:
    claim = bytearray()
    length = (1 << 32) - 1
    while length > 0x7F:
        claim.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes(claim) + bytes([length]) + b"\x00a" + b"\xfe\x01\x00" * 340_000


def snappy_xerial_bomb() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(1 << 24)))
    return b"\x82SNAPPY\x00" + pack(">ii", 1, 1) + (pack(">I", len(block)) + block) * 40


def lz4_bomb(wrong_header: bool) -> bytes:
    frame = compress(Codec.LZ4, bytes(1 << 16), wrong_lz4_header=wrong_header)
    return frame[:7] + frame[7:-4] * 4000 + frame[-4:]


def zstd_bomb(window: int = 0x58) -> bytes:
    """RLE blocks of 128 KiB, four bytes each; the window descriptor says 2^(10 + window >> 3)."""
    block = (128 << 10) << 3 | 1 << 1
    return b"\x28\xb5\x2f\xfd\x00" + bytes([window]) + (block.to_bytes(3, "little") + b"\x00") * (TEN_GIB >> 17)


BOMBS = {
    "gzip": (Codec.GZIP, gzip_bomb),
    "snappy-raw": (Codec.SNAPPY, snappy_raw_bomb),
    "snappy-xerial": (Codec.SNAPPY, snappy_xerial_bomb),
    "lz4": (Codec.LZ4, lambda: lz4_bomb(wrong_header=False)),
    "lz4-magic-0": (Codec.LZ4, lambda: lz4_bomb(wrong_header=True)),
    "zstd": (Codec.ZSTD, zstd_bomb),
    "zstd-window": (Codec.ZSTD, lambda: zstd_bomb(0xA8)),
}


@pytest.mark.process
@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.some(3)
def test_a_bomb_costs_no_more_than_the_limit(name):
    script = (
        "import sys\n"
        "from tests.peak import own_peak_mebibytes\n"
        "from kforensics.errors import FormatError\n"
        "from kforensics.formats.primitives.compression import decompress\n"
        "data = sys.stdin.buffer.read()\n"
        "try:\n"
        f"    decompress({int(BOMBS[name][0])}, data)\n"
        "except FormatError as error:\n"
        "    print(int(own_peak_mebibytes()), type(error).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=BOMBS[name][1](), capture_output=True, check=True, cwd=ROOT
    )
    peak, kind = done.stdout.decode().split()

    assert int(peak) < 250
    assert kind == ("WindowTooLarge" if name == "zstd-window" else "OutputLimitReached") or name == "snappy-raw"


def frame(window: int, size: int, *, is_single: bool = False) -> bytes:
    """A zstd frame of runs of zeros with a window descriptor, or with the size of its content."""
    descriptor = 0x20 | 2 << 6 if is_single else 0
    head = size.to_bytes(4, "little") if is_single else bytes([window])
    runs = [min(128 << 10, size - at) for at in range(0, size, 128 << 10)]
    blocks = b"".join(
        (run << 3 | 1 << 1 | (at == len(runs) - 1)).to_bytes(3, "little") + b"\0" for at, run in enumerate(runs)
    )
    return b"\x28\xb5\x2f\xfd" + bytes([descriptor]) + head + blocks


def test_the_windows_of_all_frames_are_found():
    skippable = b"\x50\x2a\x4d\x18\x05\x00\x00\x00hello"
    data = frame(0, 1000) + skippable + frame((27 - 10) << 3, 300_000) + frame(0, 5000, is_single=True) + frame(0x0F, 1)

    assert [1 << 10, 128 << 20, 5000, (2048 // 8) * 15] == list(zstd_windows(memoryview(data)))


@given(data=st.binary(max_size=100), prefix=st.sampled_from([b"", b"\x28\xb5\x2f\xfd"]))
def test_windows_of_any_bytes(data, prefix):
    assert all(window >= 0 for window in zstd_windows(memoryview(prefix + data)))


@pytest.mark.parametrize("level_22_content", [b"", b"some", bytes(20 << 20)])
def test_the_window_of_level_22_is_read(level_22_content):
    data = frame((27 - 10) << 3, len(level_22_content)) if level_22_content else b"\x28\xb5\x2f\xfd\x00\x88\x01\x00\x00"

    assert len(decompress(Codec.ZSTD, data)) == len(level_22_content)


@pytest.mark.parametrize("descriptor", [(27 - 10) << 3 | 1, (28 - 10) << 3, 0xFF])
def test_a_window_above_what_kafka_reads_is_named(descriptor):
    for data in (frame(descriptor, 100), frame(0, 100) + frame(descriptor, 100)):
        with pytest.raises(WindowTooLarge, match="zstd window"):
            decompress(Codec.ZSTD, data)


def test_the_length_of_a_skippable_frame_is_no_window():
    skippable = b"\x50\x2a\x4d\x18" + (0xC000).to_bytes(4, "little") + bytes(0xC000)

    assert bytes(100) == bytes(decompress(Codec.ZSTD, skippable + frame(0, 100)))
    with pytest.raises(BadCompression):
        decompress(Codec.ZSTD, b"\x29" + frame(0xFF, 100)[1:])


def test_output_and_window_share_their_limit():
    assert output_limit(Codec.GZIP, b"") == OUTPUT_LIMIT
    assert output_limit(Codec.ZSTD, frame((23 - 10) << 3, 100)) == OUTPUT_LIMIT
    assert output_limit(Codec.ZSTD, frame((25 - 10) << 3, 100)) == SMALLEST_LIMIT
    assert output_limit(Codec.ZSTD, frame(0, 100) + frame((27 - 10) << 3, 100)) == SMALLEST_LIMIT


def test_an_lz4_frame_that_ends_before_its_header_checksum():
    # With the size of the content, which this descriptor declares, the header would be longer than all of it.
    with pytest.raises(BadCompression):
        decompress(Codec.LZ4, b"\x04\x22\x4d\x18\x68\x40" + bytes(4))


def test_no_codec_is_made_up():
    with pytest.raises(UnsupportedFormat, match="found 7"):
        compress(7, b"x")
