"""The checks of a batch whose checksum is right, without its records: the values of its header, and the messages of a wrapper."""

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.errors import FormatError, LimitReached, UnsupportedFormat, newer_than_known
from kforensics.formats.log.batch_table import BATCH_HEADER, CODEC_MASK, BatchTable
from kforensics.formats.log.records import SMALLEST_RECORD, CountMismatch
from kforensics.formats.primitives.numbers import BadCompression, Codec, WindowTooLarge
from kforensics.formats.primitives.word_buffer import WordBuffer
from kforensics.units import OffsetRange

PAYLOAD_LENGTH = 8 << 20
"""The bytes that are decompressed before they are decoded; a larger batch makes the buffer grow up to the output limit."""


class ExactReads:
    """The budget of the exact reader, in bytes of bodies: a few hundred compressed bytes hold millions of records, and each costs it microseconds."""

    def __init__(self, allowance: int) -> None:
        self._left = allowance

    def take(self, length: int) -> bool:
        """Return whether this many bytes of a body may be read, and take them from the budget."""
        if length > self._left:
            return False
        self._left -= length
        return True


Flags = NDArray[np.bool_]


class WindowBatches:
    """The batches of one window, their bytes, and which of them are sound so far."""

    def __init__(
        self, window: WordBuffer, payload: WordBuffer, table: BatchTable, file_position: int, exact: ExactReads
    ) -> None:
        self.window = window
        self.payload = payload
        self.exact = exact
        self.table = table
        self.file_position = file_position
        self.sound: Flags = table["crc_valid"].copy()
        self.damage: list[Damage] = []

    def reject(self, row: int, kind: DamageKind, expected: str, found: str, gravity: Gravity = Gravity.DAMAGE) -> None:
        """Record that a batch is malformed or can't be read: it is sound no longer, and its whole extent becomes damage.

        Args:
            gravity: `unread` where a limit of kforensics is all that is wrong with it.
        """
        batch = self.table[row]
        self.sound[row] = False
        first, last = int(batch["base_offset"]), int(batch["last_offset"])
        self.damage.append(
            Damage(
                span=Span(int(batch["position"]), int(batch["length"])),
                kind=kind,
                expected=expected,
                found=found,
                gravity=gravity,
                offsets_lost=OffsetRange(first, last) if first <= last else Absent.UNKNOWN,
            )
        )

    def reject_body(self, row: int, error: FormatError, start: int | None = None) -> None:
        """Record the exact reader's error in a batch; the kind of damage follows from the class of the error.

        Args:
            error: its span is relative to the buffer that was read.
            start: the position of the batch in that buffer, for a position in the file; None where the bytes were decompressed.
        """
        batch = self.table[row]
        if isinstance(error, LimitReached | WindowTooLarge):
            kind, where = DamageKind.TOO_LARGE, ""
        elif isinstance(error, UnsupportedFormat):
            kind, where = DamageKind.UNSUPPORTED, ""
        elif isinstance(error, BadCompression):
            kind, where = DamageKind.COMPRESSION, ""
        else:
            kind = DamageKind.COUNT if isinstance(error, CountMismatch) else DamageKind.RECORD
            is_plain = start is not None and not batch["attributes"] & CODEC_MASK
            where = f" at byte {int(batch['position']) + error.span.position - (start or 0)}" if is_plain else ""
        gravity = Gravity.UNREAD if isinstance(error, LimitReached) else Gravity.DAMAGE
        self.reject(row, kind, error.expected, error.found + where, gravity)


def check_headers(batches: WindowBatches) -> None:
    """Reject impossible numbers in headers: codecs, offset deltas and record counts.

    Args:
        batches: those found sound are checked; the count of a compressed body is only held against the offsets.
    """
    table = batches.table
    counts = table["count"].astype(np.int64)
    deltas = table["last_offset"] - table["base_offset"]
    codecs = table["attributes"] & CODEC_MASK
    body_lengths = table["length"].astype(np.int64) - BATCH_HEADER.length
    is_batch = batches.sound & (table["magic"] == 2)
    newest_codecs = np.where(table["magic"] == 2, Codec.ZSTD, Codec.LZ4)
    wrong_codec = codecs > newest_codecs
    wrong_count = is_batch & (
        (deltas < 0)
        | (counts < 0)
        | (counts > deltas + 1)
        | ((codecs == 0) & (counts * SMALLEST_RECORD > body_lengths))
    )
    for row in np.flatnonzero(batches.sound & (wrong_codec | wrong_count)).tolist():
        if wrong_codec[row]:
            found = newer_than_known("codec", int(codecs[row]), int(newest_codecs[row]))
            batches.reject(row, DamageKind.UNSUPPORTED, "a known codec", found)
        elif deltas[row] < 0:
            batches.reject(row, DamageKind.COUNT, "a last offset delta of 0 or more", str(deltas[row]))
        else:
            most = int(deltas[row]) + 1
            if codecs[row] == 0:
                most = min(most, int(body_lengths[row]) // SMALLEST_RECORD)
            batches.reject(row, DamageKind.COUNT, f"0 to {most} records", str(counts[row]))


def open_wrappers(batches: WindowBatches) -> None:
    """Fill in the first offset and the record count of wrappers, which only their messages show, and check these messages.

    Args:
        batches: `base_offset` and `count` of its compressed messages of magic 0 and 1 are set in place; malformed ones are rejected.
    """
    table = batches.table
    is_wrapper = batches.sound & (table["magic"] < 2) & (table["attributes"] & CODEC_MASK > 0)
    if not is_wrapper.any():
        return
    from kforensics.formats.log.batches import summarize_wrapper  # noqa: PLC0415 - what decompresses; no broker since 0.11 writes wrappers

    for row in np.flatnonzero(is_wrapper).tolist():
        start = int(table["position"][row]) - batches.file_position
        try:
            first, count = summarize_wrapper(batches.window.view[start : start + int(table["length"][row])])
        except FormatError as error:
            batches.reject_body(row, error)
        else:
            table["base_offset"][row] = first
            table["count"][row] = count
