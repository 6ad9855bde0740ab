"""Batches in bytes that are no segment: a disk image, whose files are deleted, in pieces, or lack a directory.

A place is a candidate by its header; the checksum proves a batch. Behind a proven batch the next one is looked for at once, since a log lies in a file one batch
behind the other. Offsets below 2^48 and batches below 128 MB are looked for. A batch of magic 2 is proven by CRC-32C over all but offset, length, epoch and
magic: one in 2^32 candidates can be wrong. A message of magic 0 or 1 is proven by CRC-32 and by lengths of key and value that fit its own, which is less.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.log.batch_table import CODEC_MASK, BatchTable
from kforensics.formats.log.headers import BATCH_HEADER, LOG_OVERHEAD, SMALLEST_BATCH_LENGTH
from kforensics.formats.log.records import SMALLEST_RECORD
from kforensics.formats.primitives.word_buffer import SegmentBytes, WordBuffer
from kforensics.formats.segment.entries import claimed_length, read_entries
from kforensics.formats.segment.resync import checksums_of

WINDOW_LENGTH = 4 << 20
"""The bytes that are held at once."""

LARGEST_BATCH = 96 << 20
_PIECE = 128 << 10
"""The bytes that are compared at once: small enough for the cache of a processor."""
_PROOF_ALLOWANCE = 64 << 20
_PROOF_FACTOR = 8


def carve_batches(source: SegmentBytes, start: int, end: int) -> Iterator[BatchTable]:
    """Yield every batch whose checksum holds in a run of bytes, some that lie one behind the other at a time.

    Args:
        source: the bytes.
        start: where to begin.
        end: where to stop; batches that reach beyond it are left out.
    """
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
        for place in _candidates(window, at, stop):
            length = claimed_length(window.view, place) or 0
            if not length or length > LARGEST_BATCH or position + place + length > end or length > allowance:
                continue
            allowance -= length
            stored, computed = checksums_of(source, position + place, length)
            if stored == computed:
                return _Found(place, length, allowance)
        at = stop
    return _Found(None, 0, allowance)


def _candidates(window: WordBuffer, start: int, stop: int) -> list[int]:
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
