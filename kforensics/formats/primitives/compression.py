"""The four codecs of record batches, each with a hard bound on its output.

gzip: RFC 1952, one or more members. snappy: xerial's framing (8 bytes of magic, version, compatible version, then raw blocks each behind an int32
length), or one raw block as some C clients write. lz4: frames of independent blocks; those inside magic 0 carry a header checksum over the wrong bytes
(KAFKA-3160), so the header checksum is never asked. zstd: frames, magic 2 only, since 2.1.

gzip is read by ISA-L, which is more than twice as fast; cramjam judges what ISA-L does not read in one call.

A length inside compressed bytes is a claim: no decoder allocates by it, none writes above `limit`. zstd holds its window beside the output, as much of
it as the output fills: the two together are bounded. Kafka's own reader refuses windows above 128 MiB, and so does this one; what the highest
levels declare (level 22: 128 MiB, whatever the content) is read.
"""

import zlib
from collections.abc import Iterator
from struct import Struct

import cramjam
import xxhash
from isal import isal_zlib

from kforensics.damage import Span
from kforensics.errors import UnsupportedFormat
from kforensics.formats.primitives.numbers import BadCompression, Codec, OutputLimitReached, WindowTooLarge

Buffer = bytes | bytearray | memoryview

OUTPUT_LIMIT = 40 << 20
"""The largest decompressed batch that is read, in bytes."""

HELD_LIMIT = 48 << 20
"""Bytes that the output of zstd and the part of its window that this output fills may take together."""

SMALLEST_LIMIT = HELD_LIMIT // 2
"""The output limit of a codec that holds all of its output once more."""

WRAPPED_LIMIT = 16 << 20
"""The largest decompressed wrapper of magic 0 and 1, in bytes: sixteen times the default `message.max.bytes`. Its messages are held beside it one by one."""

LARGEST_WINDOW = 128 << 20
"""The largest zstd window, in bytes, as in zstd's own readers and in Kafka's."""

LARGEST_COPIED = 1 << 20
"""A larger output stays in the buffer that it was written to."""

GZIP_FORMAT = 31
"""zlib's `wbits` of a gzip member with the largest window."""

LARGEST_GZIP_COPIED = 8 << 20
"""The largest output that ISA-L returns as a copy; cramjam writes a larger one into the buffer."""

GZIP_FLAGS_PLACE = 3
GZIP_RESERVED_FLAGS = 0xE0  # ISA-L reads past them; RFC 1952 forbids them

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = Struct(">8sii")
XERIAL_BLOCK_LENGTH = 32 << 10
LZ4_MAGIC = b"\x04\x22\x4d\x18"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_SKIPPABLE = range(0x184D2A50, 0x184D2A60)


def output_limit(codec: int, data: Buffer) -> int:
    """Return the most bytes that a batch may decompress to, given the memory that its codec needs beside them by the windows that zstd frames declare."""
    if codec != Codec.ZSTD:
        return OUTPUT_LIMIT
    window = max(zstd_windows(memoryview(data)), default=0)
    return max(SMALLEST_LIMIT, min(OUTPUT_LIMIT, HELD_LIMIT - window))


def decompress(codec: int, data: Buffer, limit: int = OUTPUT_LIMIT) -> bytes | memoryview:
    """Decompress bytes.

    Raises:
        OutputLimitReached: the output is longer than `limit`.
    """
    limit = min(limit, output_limit(codec, data))
    room = min(limit, max(4 * len(data), 1 << 12))
    while (output := _output_within(codec, data, room, may_grow=room < limit)) is None:
        room = min(limit, room * 4)
    return bytes(output) if len(output) <= LARGEST_COPIED else output


def _output_within(codec: int, data: Buffer, room: int, *, may_grow: bool) -> memoryview | None:
    """Return the output if it fits, or None if the caller may try a larger buffer; nothing refers to the smaller one then."""
    buffer = bytearray(room)
    try:
        length = decompress_into(codec, data, memoryview(buffer))
    except OutputLimitReached:
        if may_grow:
            return None
        raise
    return memoryview(buffer)[:length].toreadonly()


def decompress_into(codec: int, data: Buffer, output: memoryview) -> int:
    """Decompress into a buffer, whose length bounds the output, and return the number of bytes written."""
    view = memoryview(data)
    try:
        match codec:
            case Codec.GZIP:
                return _gzip_into(view, output)
            case Codec.SNAPPY:
                return _snappy_into(view, output)
            case Codec.LZ4:
                return cramjam.lz4.decompress_into(_with_right_header_checksum(view), output)
            case Codec.ZSTD:
                return _zstd_into(view, output)
    except cramjam.DecompressionError as error:
        if "write whole buffer" in str(error):
            raise _limit_reached(view, output) from None
        raise BadCompression(
            Span(0, len(view)), expected=f"{Codec(codec).name.lower()} data", found=str(error)
        ) from None
    raise UnsupportedFormat(Span(0, len(view)), expected="a codec from 1 to 4", found=str(codec))


def _limit_reached(data: memoryview, output: memoryview) -> OutputLimitReached:
    return OutputLimitReached(Span(0, len(data)), expected=f"at most {len(output)} bytes decompressed", found="more")


def _gzip_into(data: memoryview, output: memoryview) -> int:
    """Decompress one whole member by ISA-L; cramjam reads several members, breaks and damage, in linear time."""
    limit = min(len(output), LARGEST_GZIP_COPIED)
    member = isal_zlib.decompressobj(GZIP_FORMAT)
    try:
        part = member.decompress(data, limit + 1)
    except isal_zlib.error:  # type: ignore[misc]  # its stub declares an instance
        part = b""
    is_sound = member.eof and not member.unused_data and not data[GZIP_FLAGS_PLACE] & GZIP_RESERVED_FLAGS
    if not is_sound or len(part) > limit:
        part = b""  # not to be held beside the output
        length: int = cramjam.gzip.decompress_into(data, output)
        return length
    output[: len(part)] = part
    return len(part)


def _snappy_into(data: memoryview, output: memoryview) -> int:
    if bytes(data[:8]) != XERIAL_MAGIC:
        return _snappy_block_into(data, output, 0)
    position = XERIAL_HEADER.size
    written = 0
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], signed=True)
        position += 4
        if not 0 <= length <= len(data) - position:
            raise BadCompression(
                Span(position - 4, 4), expected=f"a block of at most {len(data) - position} bytes", found=str(length)
            )
        written += _snappy_block_into(data[position : position + length], output, written)
        position += length
    return written


def _snappy_block_into(block: memoryview, output: memoryview, written: int) -> int:
    if cramjam.snappy.decompress_raw_len(block) > len(output) - written:
        raise _limit_reached(block, output)
    length: int = cramjam.snappy.decompress_raw_into(block, output[written:])
    return length


def _zstd_into(data: memoryview, output: memoryview) -> int:
    # Every batch passes here: only the window descriptor of the first frame is read; the library has the same bound for the later ones.
    declares_more = len(data) > _SHORTEST_FRAME_HEADER and data[5] > _LARGEST_WINDOW_DESCRIPTOR
    if declares_more and not data[4] & _SINGLE_SEGMENT and data[:4] == ZSTD_MAGIC:
        raise _window_too_large(data)
    try:
        length: int = cramjam.zstd.decompress_into(data, output)
    except cramjam.DecompressionError:
        if max(zstd_windows(data), default=0) > LARGEST_WINDOW:
            raise _window_too_large(data) from None
        raise
    return length


def _window_too_large(data: memoryview) -> WindowTooLarge:
    window = max(zstd_windows(data), default=0)
    expected = f"a zstd window of at most {LARGEST_WINDOW} bytes, as Kafka's own reader allows"
    return WindowTooLarge(Span(0, len(data)), expected=expected, found=f"{window} bytes")


_SHORTEST_FRAME_HEADER = 6
_SINGLE_SEGMENT = 0x20
_LARGEST_WINDOW_DESCRIPTOR = (27 - 10) << 3
_CONTENT_SIZE_LENGTHS = (0, 2, 4, 8)
_DICTIONARY_LENGTHS = (0, 1, 2, 4)
_RUN_BLOCK = 1


def _frame_header(data: memoryview, start: int) -> tuple[int, int, bool]:
    """Return where a frame header ends (RFC 8878, 3.1.1.1), the window that it declares, or the size of the content instead, and whether a checksum follows.

    At least `_SHORTEST_FRAME_HEADER` bytes are there.
    """
    descriptor = data[start + 4]
    has_checksum = bool(descriptor & 0x04)
    place = start + 5
    if not descriptor & _SINGLE_SEGMENT:
        exponent, mantissa = data[place] >> 3, data[place] & 7
        base = 1 << 10 + exponent
        end = place + 1 + _DICTIONARY_LENGTHS[descriptor & 3] + _CONTENT_SIZE_LENGTHS[descriptor >> 6]
        return end, base + (base >> 3) * mantissa, has_checksum
    place += _DICTIONARY_LENGTHS[descriptor & 3]
    length = _CONTENT_SIZE_LENGTHS[descriptor >> 6] or 1
    size = int.from_bytes(data[place : place + length], "little") + (256 if length == 2 else 0)
    return place + length, size, has_checksum


def zstd_windows(data: memoryview) -> Iterator[int]:
    """Yield the window of each frame in bytes, as far as the headers and lengths can be followed."""
    start = 0
    while start + _SHORTEST_FRAME_HEADER < len(data):
        if int.from_bytes(data[start : start + 4], "little") in ZSTD_SKIPPABLE:
            start += 8 + int.from_bytes(data[start + 4 : start + 8], "little")
            continue
        if data[start : start + 4] != ZSTD_MAGIC:
            return
        start, window, has_checksum = _frame_header(data, start)
        yield window
        is_last = False
        while not is_last and start + 3 <= len(data):
            block = int.from_bytes(data[start : start + 3], "little")
            is_last = bool(block & 1)
            start += 3 + (1 if block >> 1 & 3 == _RUN_BLOCK else block >> 3)
        start += 4 * has_checksum


def _with_right_header_checksum(data: memoryview) -> Buffer:
    """Return the frame with the correct header checksum: Kafka's magic 0 frames hash four bytes too many (KAFKA-3160)."""
    if len(data) < 7 or bytes(data[:4]) != LZ4_MAGIC:
        return data
    place = 14 if data[4] & 0x08 else 6
    if place >= len(data):
        return data
    right = xxhash.xxh32_intdigest(bytes(data[4:place])) >> 8 & 0xFF
    if data[place] == right:
        return data
    patched = bytearray(data)
    patched[place] = right
    return patched


def compress(codec: int, data: Buffer, *, wrong_lz4_header: bool = False) -> bytes:
    """Compress bytes as Kafka's producer frames them, for magic 0 with a header checksum that covers the wrong bytes (KAFKA-3160)."""
    match codec:
        case Codec.GZIP:
            encoder = zlib.compressobj(wbits=31)
            return encoder.compress(data) + encoder.flush()
        case Codec.SNAPPY:
            return _xerial(memoryview(data))
        case Codec.LZ4:
            return _lz4_frame(memoryview(data), wrong_lz4_header)
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(memoryview(data)))
    raise UnsupportedFormat(Span(0, len(data)), expected="a codec from 1 to 4", found=str(codec))


def _xerial(data: memoryview) -> bytes:
    framed = bytearray(XERIAL_HEADER.pack(XERIAL_MAGIC, 1, 1))
    for start in range(0, len(data), XERIAL_BLOCK_LENGTH):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + XERIAL_BLOCK_LENGTH]))
        framed += len(block).to_bytes(4)
        framed += block
    return bytes(framed)


def _lz4_frame(data: memoryview, wrong_header: bool) -> bytes:
    """Return an LZ4 frame of independent blocks of 64 KiB without checksums and content size (FLG 0x60, BD 0x40)."""
    descriptor = b"\x60\x40"
    hashed = LZ4_MAGIC + descriptor if wrong_header else descriptor
    frame = bytearray(LZ4_MAGIC + descriptor)
    frame.append(xxhash.xxh32_intdigest(hashed) >> 8 & 0xFF)
    for start in range(0, len(data), 1 << 16):
        block = data[start : start + (1 << 16)]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            frame += len(packed).to_bytes(4, "little") + packed
        else:
            frame += (len(block) | 0x80000000).to_bytes(4, "little") + block
    frame += bytes(4)
    return bytes(frame)
