"""Makers of input that means harm: bombs, lies about lengths and counts, names that steer terminals."""

import zlib
from pathlib import Path

import cramjam

from kforensics.formats.log.batches import (
    Message,
    build_record_batch,
    encode_message,
    encode_record_batch,
    with_right_crc,
)
from kforensics.formats.primitives.compression import compress
from kforensics.formats.primitives.numbers import Codec, encode_varint

TIME_MS = 1_700_000_000_000
COUNT_POSITION = 57
ATTRIBUTES_POSITION = 21

ESCAPES = (
    "\x1b[2J", "\x1b[31m", "\x1b]0;title\x07", "\x1b]52;c;cm0gLXJmIC8=\x07", "\x1b]8;;http://example.org\x07link\x1b]8;;\x07", "\x1bP1$r\x1b\\",
    "\x1b[6n", "\x1b[?1049h", "\x1bc", "\x1b(0", "\x1b[8m", "\x1b[1000B", "\x9b2J", "\x9d0;title\x9c", "\x90q\x9c", "\x84", "\x85",
    "\u202e", "\u202d", "\u202a", "\u202b", "\u202c", "\u2066", "\u2067", "\u2068", "\u2069", "\u200e", "\u200f", "\u2028", "\u2029", "\ufeff",
    "\r", "\n", "\b", "\x7f", "\t", "\x00", "\x07", "\x0e", "\udc9b", "\ue000",
)  # fmt: skip
"""What a terminal or its user could be deceived by."""


def sound_batch(offset: int, *, count: int = 1, key: bytes = b"k", value: bytes = b"v") -> bytes:
    """A small batch with nothing wrong."""
    return encode_record_batch(build_record_batch(offset, [(TIME_MS, key, value)] * count))


def batch_with_body(offset: int, body: bytes, *, codec: int = 0, count: int = 1) -> bytes:
    """A batch whose checksum holds over whatever body."""
    header = bytearray(sound_batch(offset)[:61])
    header[8:12] = (len(body) + 49).to_bytes(4, "big")
    header[ATTRIBUTES_POSITION : ATTRIBUTES_POSITION + 2] = codec.to_bytes(2, "big")
    header[COUNT_POSITION:] = (count & 0xFFFFFFFF).to_bytes(4, "big")
    return with_right_crc(bytes(header) + body)


def bombs() -> dict[str, tuple[int, bytes, int]]:
    """By name: the codec, about a mebibyte of compressed data, and the bytes that it claims or inflates to."""
    return {
        "gzip": (1, _gzip_bomb(), 1 << 30),
        "snappy": (2, _snappy_bomb(), 21 << 20),
        "snappy-raw-claim": (2, b"\xff\xff\xff\xff\x0f" + bytes(1 << 20), (1 << 32) - 1),
        "lz4": (3, _lz4_bomb(wrong_header=False), 256 << 20),
        "lz4-old-header": (3, _lz4_bomb(wrong_header=True), 256 << 20),
        "zstd": (4, zstd_bomb(), 10 << 30),
        "zstd-window": (4, zstd_bomb(window_descriptor=(31 - 10) << 3), 10 << 30),
    }


def _gzip_bomb() -> bytes:
    """Deflate of a gibibyte of zeros: a flushed piece of it, many times over."""
    encoder = zlib.compressobj(9, zlib.DEFLATED, -15)
    encoder.compress(bytes(1 << 20))
    encoder.flush(zlib.Z_FULL_FLUSH)
    piece = encoder.compress(bytes(1 << 20)) + encoder.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + piece * 1024


def _snappy_bomb() -> bytes:
    framed = compress(Codec.SNAPPY, bytes(1 << 20))
    return framed + framed[16:] * 20


def _lz4_bomb(*, wrong_header: bool) -> bytes:
    frame = compress(Codec.LZ4, b"", wrong_lz4_header=wrong_header)
    block = bytes(cramjam.lz4.compress_block(bytes(1 << 16), store_size=False))
    return frame[:7] + (len(block).to_bytes(4, "little") + block) * 4096 + bytes(4)


def zstd_bomb(window_descriptor: int = (27 - 10) << 3) -> bytes:
    """A frame of 81,920 runs of 128 KiB of one byte each: 10 GiB in 320 KiB."""
    run = (128 << 10 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd\x00" + bytes([window_descriptor]) + run * 81_920


def nested_wrappers(depth: int, magic: int = 1) -> bytes:
    """A message in a wrapper in a wrapper …, where the format allows one level."""
    inner = encode_message(Message(2, magic, 0, TIME_MS, b"k", b"v"))
    for _ in range(depth):
        inner = encode_message(Message(2, magic, Codec.GZIP, TIME_MS, None, compress(Codec.GZIP, inner)))
    return inner


def record(value: bytes = b"v", *, key_length: bytes | None = None, headers: bytes = b"\x00") -> bytes:
    """One record of a body, its parts as given."""
    key = (encode_varint(1) if key_length is None else key_length) + b"k"
    content = b"\x00\x00\x00" + key + encode_varint(len(value)) + value + headers
    return encode_varint(len(content)) + content


def write_partition(log_dir: Path, name: str, *segments: bytes) -> Path:
    """A partition directory with segments that begin at offset 0, 1000, 2000 …"""
    folder = log_dir / name
    folder.mkdir(parents=True)
    for number, data in enumerate(segments):
        (folder / f"{number * 1000:020d}.log").write_bytes(data)
    (log_dir / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    return folder
