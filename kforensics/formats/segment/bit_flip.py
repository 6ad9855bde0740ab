"""Locate a single flipped bit from a checksum alone.

A CRC is linear: flipping the bit at distance m from the end of the data changes the checksum by a value that depends on m only, x^m in the CRC's own
arithmetic. The difference of stored and computed checksum is therefore a discrete logarithm away from the place. Baby steps and giant steps find it: a
table of the first 2^16 powers, and one multiplication by x^-65536 for every 8 KiB of the batch.
"""

from functools import cache
from typing import NamedTuple

_BABY_STEPS = 1 << 16

CRC32C_REFLECTED = 0x82F63B78
CRC32_REFLECTED = 0xEDB88320


class FlippedBit(NamedTuple):
    """A bit of the covered bytes: the byte's place among them and the bit in it, 0 the lowest."""

    place: int
    bit: int


def locate_flipped_bit(syndrome: int, length: int, polynomial: int = CRC32C_REFLECTED) -> FlippedBit | None:
    """Find the one bit whose flip explains a wrong checksum.

    Args:
        length: the number of bytes that the checksum covers.

    Returns:
        The bit, or None if no single bit explains the difference.
    """
    if syndrome == 0:
        return None
    powers = _powers(polynomial)
    tables = _giant_step(polynomial)
    for giant in range(length * 8 // _BABY_STEPS + 1):
        baby = powers.get(syndrome)
        if baby is not None:
            distance = giant * _BABY_STEPS + baby
            behind, bit = divmod(distance - 1, 8)
            if 0 <= behind < length:
                return FlippedBit(length - 1 - behind, 7 - bit)
        syndrome = (
            tables[0][syndrome & 0xFF]
            ^ tables[1][syndrome >> 8 & 0xFF]
            ^ tables[2][syndrome >> 16 & 0xFF]
            ^ tables[3][syndrome >> 24]
        )
    return None


@cache
def _powers(polynomial: int) -> dict[int, int]:
    """Exponents of the first powers of x, from 1 on: what one bit becomes after so many steps of the shift register."""
    powers = {}
    value = 1
    for exponent in range(1, _BABY_STEPS + 1):
        value = value >> 1 ^ (polynomial if value & 1 else 0)
        powers[value] = exponent
    return powers


@cache
def _giant_step(polynomial: int) -> tuple[list[int], ...]:
    """Multiplication by x to the power of minus the baby steps, as one table for each byte of the value."""
    images = [_step_back(1 << bit, polynomial) for bit in range(32)]
    for _ in range(_BABY_STEPS.bit_length() - 1):
        images = [_combined(images, image) for image in images]
    return tuple([_combined(images[8 * byte : 8 * byte + 8], value) for value in range(256)] for byte in range(4))


def _step_back(value: int, polynomial: int) -> int:
    """Undo one step of the shift register: the highest bit shows whether the step mixed in the polynomial."""
    return (value ^ polynomial) << 1 & 0xFFFFFFFF | 1 if value & 0x80000000 else value << 1


def _combined(images: list[int], value: int) -> int:
    """Return a linear map, given as the images of the bits, applied to a value."""
    combined = 0
    for bit, image in enumerate(images):
        if value >> bit & 1:
            combined ^= image
    return combined
