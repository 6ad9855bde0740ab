"""Variable-length integers: zig-zag varint and varlong of records, plain unsigned varint of flexible messages.

Little-endian groups of seven bits, the high bit says that more follow: at most 5 bytes for 32 bits, 10 for 64. What the last group holds above the
type's width is dropped, as Kafka's ByteUtils does.
"""

from kforensics.damage import Span
from kforensics.errors import FormatError, UnexpectedEnd

VARINT_LENGTH = 5
VARLONG_LENGTH = 10

Buffer = bytes | bytearray | memoryview


def read_uvarint(data: Buffer, position: int, end: int, limit: int = VARINT_LENGTH) -> tuple[int, int]:
    """Read an unsigned varint and return it with the position behind it (`ByteUtils.readUnsignedVarint`).

    Args:
        data: the bytes that hold the varint.
        position: where the varint begins in `data`.
        end: the position that the varint must not cross.
        limit: the most bytes that the varint may have.

    Raises:
        FormatError: the varint crosses `end` or is longer than `limit` bytes.
    """
    value = shift = 0
    last = position + limit
    for place in range(position, min(last, end)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (0xFFFFFFFF if limit == VARINT_LENGTH else 0xFFFFFFFFFFFFFFFF), place + 1
        shift += 7
    if end < last:
        raise UnexpectedEnd(Span(position, end - position), expected="a varint", found="the end of the bytes")
    raise FormatError(Span(position, limit), expected=f"a varint of at most {limit} bytes", found="a longer one")


def read_varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Read a zig-zag varint (int32) and return it with the position behind it (`ByteUtils.readVarint`).

    Args:
        data: the bytes that hold the varint.
        position: where the varint begins in `data`.
        end: the position that the varint must not cross.

    Raises:
        FormatError: the varint crosses `end` or is longer than 5 bytes.
    """
    raw, position = read_uvarint(data, position, end)
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(data: Buffer, position: int, end: int) -> tuple[int, int]:
    """Read a zig-zag varlong (int64) and return it with the position behind it (`ByteUtils.readVarlong`).

    Args:
        data: the bytes that hold the varlong.
        position: where the varlong begins in `data`.
        end: the position that the varlong must not cross.

    Raises:
        FormatError: the varlong crosses `end` or is longer than 10 bytes.
    """
    raw, position = read_uvarint(data, position, end, VARLONG_LENGTH)
    return (raw >> 1) ^ -(raw & 1), position


def encode_uvarint(value: int) -> bytes:
    """Encode a value of 0 or more as an unsigned varint."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def encode_varint(value: int) -> bytes:
    """Encode an int32 as a zig-zag varint; its varlong has the same bytes.

    Args:
        value: from -2³¹ to 2³¹ - 1.
    """
    return encode_uvarint((value << 1) ^ (value >> 31))


def encode_varlong(value: int) -> bytes:
    """Encode an int64 as a zig-zag varlong.

    Args:
        value: from -2⁶³ to 2⁶³ - 1.
    """
    return encode_uvarint((value << 1) ^ (value >> 63))
