"""The codecs of record batches by number, and what can be wrong with compressed bytes."""

from enum import IntEnum

from kforensics.errors import FormatError, LimitReached


class Codec(IntEnum):
    """The codec in bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BadCompression(FormatError):  # noqa: N818  # named like its siblings in errors.py
    """The codec cannot read the bytes."""


class OutputLimitReached(LimitReached):  # likewise
    """The output is larger than allowed: the bytes are a decompression bomb, or the caller's buffer is small."""


class WindowTooLarge(FormatError):  # noqa: N818  # likewise
    """A zstd frame declares a window that no reader of Kafka accepts."""
