"""The two checksums of Kafka's formats: CRC-32C (magic 2, producer snapshots) and CRC-32 (magic 0 and 1).

`crc32c` uses the processor's instruction and takes any buffer without a copy; crcmod is the independent reference, and replaces it where it is missing.
"""

from collections.abc import Callable
from zlib import crc32 as zlib_crc32

__all__ = ["Buffer", "crc32", "crc32c", "reference_crc32c"]

Buffer = bytes | bytearray | memoryview

CRC32C_POLYNOMIAL = 0x11EDC6F41


def reference_crc32c() -> Callable[[Buffer], int]:
    """Return crcmod's CRC-32C, which is table-driven and independent of the processor."""
    import crcmod  # noqa: PLC0415 - only needed as reference and fallback

    function: Callable[[Buffer], int] = crcmod.mkCrcFun(CRC32C_POLYNOMIAL, initCrc=0, rev=True, xorOut=0xFFFFFFFF)
    return function


try:
    from crc32c import crc32c
except ImportError:  # pragma: no cover
    crc32c = reference_crc32c()  # type: ignore[assignment]


def crc32(data: Buffer, value: int = 0) -> int:
    """Return the CRC-32 (IEEE) of a buffer, which messages of magic 0 and 1 carry."""
    return zlib_crc32(data, value)
