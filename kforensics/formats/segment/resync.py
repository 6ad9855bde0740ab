"""Find the next sound batch behind a damaged place.

Candidates are places with a plausible header, found by whole-array comparison; the checksum proves a batch. The bytes may be hostile: the work spent on
proofs is bounded by the bytes searched, so a file made of plausible headers can't cost more than linear time.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.log.batch_table import CODEC_MASK
from kforensics.formats.log.headers import (
    BATCH_HEADER,
    CRC_COVERED_POSITION,
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MESSAGE_CRC_COVERED,
)
from kforensics.formats.log.records import SMALLEST_RECORD
from kforensics.formats.primitives.checksum import crc32, crc32c
from kforensics.formats.primitives.codec import Codec
from kforensics.formats.primitives.word_buffer import SegmentBytes, WordBuffer
from kforensics.formats.primitives.zeros import first_nonzero
from kforensics.formats.segment.entries import SMALLEST_LENGTH

SEARCH_LENGTH = 1 << 20
"""The bytes that are searched at once."""

_FIRST_SEARCH_LENGTH = 16 << 10

OFFSET_REACH = 1 << 31
"""A segment's offsets lie this near to each other, since they are stored relative to its base as int32."""

_PROOF_ALLOWANCE = 64 << 20
_PROOF_FACTOR = 8
_PROOF_PIECE = 1 << 20


class SoundBatch(NamedTuple):
    """A batch or message whose checksum holds."""

    position: int
    length: int
    base_offset: int
    """The base offset; of a wrapper, the offset of its last message."""


class Expectation(NamedTuple):
    """The facts about the log before the place where the search starts."""

    last_offset: int | None = None
    """Offsets are not far from it; messages of magic 0 and 1 lie above it, or they are the inner ones of a wrapper."""
    plain_from: int = 0
    """The position from which a plain message of magic 0 or 1 is believed: before it one may lie in a damaged wrapper, as it was stored."""


NOTHING_KNOWN = Expectation()


def find_sound_batch(
    source: SegmentBytes, start: int, end: int, expected: Expectation = NOTHING_KNOWN
) -> SoundBatch | None:
    """Return the first batch that begins in `start` … `end` - 1, is as expected, and whose checksum holds.

    Args:
        start: the first position that is searched.
        end: the position behind the last one; a batch may reach beyond it.
        expected: what the log before says of offsets and of plain messages.

    Returns:
        The batch, or None; also None where plausible headers used up the bytes that may be read for proofs.
    """
    end = min(end, source.size)
    allowance = _PROOF_ALLOWANCE
    length = _FIRST_SEARCH_LENGTH
    window = WordBuffer(0)
    while start < end:
        # The next sound batch is mostly near.
        length = min(length, end - start)
        window.load(source, start, length + BATCH_HEADER.length)
        if window.filled and not window.octets[: window.filled].any():
            # An entry begins at most where the last byte of its length is the first that is not zero.
            reach = min(end + LOG_OVERHEAD, source.size)
            begin = min(first_nonzero(source, start + window.filled, reach) - LOG_OVERHEAD + 1, end)
            allowance += _PROOF_FACTOR * (begin - start)
            start = max(begin, start + length)
            continue
        allowance += _PROOF_FACTOR * length
        for place in _candidates(window, length, start, source.size, expected).tolist():
            batch = _described(window.view, place, start)
            if batch.length <= allowance:
                allowance -= batch.length
                if is_sound(source, batch.position, batch.length):
                    return batch
        start += length
        length = min(length * 4, SEARCH_LENGTH)
    return None


def _described(view: memoryview, place: int, start: int) -> SoundBatch:
    base_offset = int.from_bytes(view[place : place + 8], signed=True)
    return SoundBatch(
        start + place, int.from_bytes(view[place + 8 : place + 12], signed=True) + LOG_OVERHEAD, base_offset
    )


def _candidates(window: WordBuffer, length: int, start: int, size: int, expected: Expectation) -> NDArray[np.int64]:
    """Return the positions of plausible headers in the window, which is at `start` in the file."""
    octets = np.frombuffer(window.view, dtype=np.uint8)
    reach = min(length, window.filled - HEADER_UP_TO_MAGIC + 1)
    if reach <= 0:
        return np.empty(0, dtype=np.int64)
    places = np.flatnonzero(octets[16 : 16 + reach] <= 2)
    # The top bytes of offset and length are small: most places fall here, before whole headers are gathered.
    places = places[(octets[places + 8] < 0x80) & (octets[places] < 0x80)]
    lengths = np.ndarray((reach,), ">i4", buffer=window.view, offset=8, strides=(1,))[places].astype(np.int64)
    places = places[(lengths >= _SMALLEST[octets[places + 16]]) & (lengths + LOG_OVERHEAD <= size - start - places)]
    headers = window.headers[places].view(BATCH_HEADER.dtype)
    magic, offsets = headers["magic"], headers["base_offset"].astype(np.int64)
    kept = offsets >= 0
    attributes = octets[places + 17]
    is_message = (attributes <= 0x0F) & (attributes & CODEC_MASK <= Codec.LZ4)
    is_message &= (attributes & CODEC_MASK > 0) | (places + start >= expected.plain_from)
    if expected.last_offset is not None:
        kept &= abs(offsets - expected.last_offset) < OFFSET_REACH
        is_message &= offsets > expected.last_offset
    found: NDArray[np.int64] = places[kept & np.where(magic == 2, _is_plausible_batch(headers), is_message)]
    return found


_SMALLEST = np.array([SMALLEST_LENGTH[magic] for magic in (0, 1, 2)])


def _is_plausible_batch(headers: NDArray[np.void]) -> NDArray[np.bool_]:
    attributes = headers["attributes"]
    counts = headers["record_count"].astype(np.int64)
    body = headers["batch_length"].astype(np.int64) + LOG_OVERHEAD - BATCH_HEADER.length
    plausible: NDArray[np.bool_] = (attributes >= 0) & (attributes < 0x80) & (attributes & CODEC_MASK <= 4)
    plausible &= (counts >= 0) & (counts <= headers["last_offset_delta"].astype(np.int64) + 1)
    plausible &= (attributes & CODEC_MASK > 0) | (counts * SMALLEST_RECORD <= body)
    return plausible


def is_sound(source: SegmentBytes, position: int, length: int) -> bool:
    """Return whether the checksum of the entry is right; the entry is read in pieces, whatever its length.

    Args:
        position: where the entry begins in the file.
        length: of the whole entry; bytes behind the end of the file are missing from the checksum.
    """
    stored, computed = checksums_of(source, position, length)
    return stored == computed


def checksums_of(source: SegmentBytes, position: int, length: int, magic: int | None = None) -> tuple[int, int]:
    """Return the stored and the computed checksum of an entry, read as its own magic or as another.

    Args:
        position: where the entry begins in the file.
        length: of the whole entry, at least that of its header; it is read in pieces.
        magic: the magic to read it as, None for its own: 2 has a CRC-32C, every other number a CRC-32.
    """
    buffer = memoryview(bytearray(min(_PROOF_PIECE, length)))
    filled = source.read_into(position, buffer)
    is_batch = (buffer[16] if magic is None else magic) == 2
    crc_position, covered = (
        (BATCH_HEADER.position_of("crc"), CRC_COVERED_POSITION) if is_batch else (12, MESSAGE_CRC_COVERED)
    )
    checksum = crc32c if is_batch else crc32
    stored = int.from_bytes(buffer[crc_position : crc_position + 4])
    computed = checksum(buffer[covered:filled])
    done = filled
    while filled and done < length:
        filled = source.read_into(position + done, buffer[: min(len(buffer), length - done)])
        computed = checksum(buffer[:filled], computed)
        done += filled
    return stored, computed
