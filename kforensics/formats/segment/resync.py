"""Find the next sound batch behind a damaged place.

Candidates are places with a plausible header, found by whole-array comparison; the checksum proves a batch. The bytes may be hostile: the work spent on
proofs is bounded by the bytes searched, so a file made of plausible headers can't cost more than linear time.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.log.batch_table import (
    BATCH_HEADER,
    CODEC_MASK,
    CRC_COVERED_POSITION,
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MESSAGE_CRC_COVERED,
    SMALLEST_BATCH_LENGTH,
    BatchTable,
)
from kforensics.formats.log.records import SMALLEST_RECORD
from kforensics.formats.primitives.checksum import crc32, crc32c
from kforensics.formats.primitives.numbers import Codec
from kforensics.formats.primitives.word_buffer import SegmentBytes, WordBuffer, first_nonzero
from kforensics.formats.segment.entries import SMALLEST_LENGTH, claimed_length, read_entries

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
        end: the position behind the last one; a batch may reach beyond it.

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
    """Return whether the checksum of the entry is right, which is read in pieces, whatever its length; bytes behind the end of the file are missing from it."""
    stored, computed = checksums_of(source, position, length)
    return stored == computed


def checksums_of(source: SegmentBytes, position: int, length: int, magic: int | None = None) -> tuple[int, int]:
    """Return the stored and the computed checksum of an entry, read as its own magic or as another: 2 has a CRC-32C, every other number a CRC-32."""
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


# Batches in bytes that are no segment: a disk image, whose files are deleted, in pieces, or lack a directory.
#
# A place is a candidate by its header; the checksum proves a batch. Behind a proven batch the next one is looked for at once, since a log lies in a file one batch
# behind the other. Offsets below 2^48 and batches below 128 MB are looked for. A batch of magic 2 is proven by CRC-32C over all but offset, length, epoch and
# magic: one in 2^32 candidates can be wrong. A message of magic 0 or 1 is proven by CRC-32 and by lengths of key and value that fit its own, which is less.


WINDOW_LENGTH = 4 << 20
"""The bytes that are held at once."""

LARGEST_BATCH = 96 << 20
_PIECE = 128 << 10
"""The bytes that are compared at once: small enough for the cache of a processor."""


def carve_batches(source: SegmentBytes, start: int, end: int) -> Iterator[BatchTable]:
    """Yield every batch whose checksum holds and that ends in a run of bytes, some that lie one behind the other at a time."""
    end = min(end, source.size)
    window = WordBuffer(0)
    position = start
    allowance = _PROOF_ALLOWANCE
    while position + BATCH_HEADER.length <= end:
        window.load(source, position, min(WINDOW_LENGTH, end - position))
        if window.filled < BATCH_HEADER.length:
            return
        allowance += _PROOF_FACTOR * window.filled
        at = 0
        while at < window.filled:
            found = _first_sound(window, at, position, end, source, allowance)
            allowance = found.allowance
            if found.place is None:
                # The header of a batch may begin in the last bytes.
                at = window.filled - (BATCH_HEADER.length - 1 if position + window.filled < end else 0)
                break
            if found.place + found.length > window.filled:
                at = found.place
                if found.length > WINDOW_LENGTH:
                    window.load(source, position + at, found.length)
                    yield _chain(window, 0, position + at)[:1]
                    at += found.length
                break
            table = _chain(window, found.place, position)
            yield table
            at = int(table["position"][-1]) + int(table["length"][-1]) - position
        position += at


class _Found:
    """The next proven batch in a window."""

    __slots__ = ("allowance", "length", "place")

    def __init__(self, place: int | None, length: int, allowance: int) -> None:
        self.place, self.length, self.allowance = place, length, allowance


def _first_sound(window: WordBuffer, at: int, position: int, end: int, source: SegmentBytes, allowance: int) -> _Found:
    reach = window.filled - BATCH_HEADER.length + 1
    while at < reach:
        stop = min(at + _PIECE, reach)
        for place in _heads_in(window, at, stop):
            length = claimed_length(window.view, place) or 0
            if not length or length > LARGEST_BATCH or position + place + length > end or length > allowance:
                continue
            allowance -= length
            stored, computed = checksums_of(source, position + place, length)
            if stored == computed:
                return _Found(place, length, allowance)
        at = stop
    return _Found(None, 0, allowance)


def _heads_in(window: WordBuffer, start: int, stop: int) -> list[int]:
    """Places in the window from `start` up to `stop` where a header is plausible."""
    octets = window.octets
    if not octets[start : stop + BATCH_HEADER.length].any():
        return []
    magic = octets[start + 16 : stop + 16]
    likely = octets[start:stop] == 0
    likely &= octets[start + 1 : stop + 1] == 0
    likely &= octets[start + 8 : stop + 8] < 8
    likely &= magic <= 2
    likely &= (octets[start + 9 : stop + 9] | octets[start + 10 : stop + 10] | octets[start + 11 : stop + 11]) != 0
    if not likely.any():
        return []
    places = np.flatnonzero(likely) + start
    is_batch = octets[places + 16] == 2
    batches = _plausible_batches(window, places[is_batch])
    messages = _plausible_messages(window, places[~is_batch])
    return sorted([*batches.tolist(), *messages])


def _plausible_batches(window: WordBuffer, places: NDArray[np.int64]) -> NDArray[np.int64]:
    places = places[(window.octets[places + 21] == 0) & (window.octets[places + 22] < 0x80)]
    headers = window.headers[places].view(BATCH_HEADER.dtype)
    length = headers["batch_length"].astype(np.int64)
    count = headers["record_count"].astype(np.int64)
    kept = (length >= SMALLEST_BATCH_LENGTH) & (count >= 0)
    kept &= count <= headers["last_offset_delta"].astype(np.int64) + 1
    codec = headers["attributes"] & CODEC_MASK
    kept &= codec <= 4
    kept &= (codec > 0) | (count * SMALLEST_RECORD <= length + LOG_OVERHEAD - BATCH_HEADER.length)
    found: NDArray[np.int64] = places[kept]
    return found


def _plausible_messages(window: WordBuffer, places: NDArray[np.int64]) -> list[int]:
    # A header of a batch fits behind each place, and so does the length of a key; a first byte of 0 keeps messages below 16 MB.
    octets, view = window.octets, window.view
    places = places[(octets[places + 17] <= 0x0F) & (octets[places + 8] == 0)]
    found = []
    for place in places.tolist():
        length = int.from_bytes(view[place + 8 : place + 12])
        key_at = place + (18 if view[place + 16] == 0 else 26)
        end = place + LOG_OVERHEAD + length
        key_length = int.from_bytes(view[key_at : key_at + 4], signed=True)
        value_at = key_at + 4 + max(key_length, 0)
        if key_length < -1 or value_at + 4 > end or value_at + 4 > window.filled:
            continue
        value_length = int.from_bytes(view[value_at : value_at + 4], signed=True)
        if value_length >= -1 and value_at + 4 + max(value_length, 0) == end:
            found.append(place)
    return found


def _chain(window: WordBuffer, place: int, position: int) -> BatchTable:
    """Return the proven batch at a place and those that follow it without a break and whose checksums hold."""
    entries = read_entries(window, place, window.filled, position, with_checksums=True)
    table = entries.table
    sound = table["crc_valid"] & (table["base_offset"] >= 0) & (table["last_offset"] >= table["base_offset"])
    sound[0] = True
    modern = table["magic"] == 2
    sound &= ~modern | ((table["attributes"] >= 0) & (table["attributes"] < 0x80) & (table["count"] >= 0))
    return table if sound.all() else table[: max(int(np.argmin(sound)), 1)]
