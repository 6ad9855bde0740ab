"""The record bodies of a window's batches, decompressed where they are compressed, as lanes for the column reader."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.errors import FormatError
from kforensics.formats.columns.decoding_limits import PAYLOAD_LENGTH
from kforensics.formats.columns.record_chain import Lanes
from kforensics.formats.log.batch_table import CODEC_MASK, BatchTable
from kforensics.formats.log.headers import BATCH_HEADER
from kforensics.formats.log.records import SMALLEST_RECORD
from kforensics.formats.primitives.codec import OutputLimitReached
from kforensics.formats.primitives.compression import SMALLEST_LIMIT, decompress_into, output_limit
from kforensics.formats.primitives.word_buffer import WordBuffer


class Bodies(NamedTuple):
    """Bodies side by side in one buffer, valid until the next bodies are read."""

    buffer: WordBuffer
    lanes: Lanes


class BodyDamage(NamedTuple):
    """A batch whose body cannot be read."""

    row: int
    error: FormatError


def plain_bodies(window: WordBuffer, table: BatchTable, rows: NDArray[np.int64], file_position: int) -> Bodies:
    """Return the uncompressed bodies without a copy.

    Args:
        window: the bytes of the batches, whole.
        rows: the numbers of uncompressed batches of magic 2 in `table`.
        file_position: the position of the window's first byte in the file.

    Returns:
        Lanes whose counts, which are claims of the headers, are limited to one record more than the bytes can hold.
    """
    starts = table["position"][rows] - file_position
    return Bodies(window, _lanes(table, rows, starts + BATCH_HEADER.length, starts + table["length"][rows]))


def compressed_bodies(
    window: WordBuffer, payload: WordBuffer, table: BatchTable, rows: NDArray[np.int64], file_position: int
) -> Iterator[Bodies | BodyDamage]:
    """Yield the compressed bodies in file order, as many at a time as the payload buffer holds.

    Args:
        window: the bytes of the batches, whole.
        payload: where bodies are decompressed to; it grows up to the output limit of the codec, and shrinks again.
        rows: the numbers of compressed batches of magic 2 in `table`.
        file_position: the position of the window's first byte in the file.

    Yields:
        Bodies, valid until the next ones are asked for, and each batch that can't be decompressed.
    """
    places = (table["position"][rows] - file_position).tolist()
    lengths = table["length"][rows].tolist()
    codecs = (table["attributes"][rows] & CODEC_MASK).tolist()
    ends: list[int] = []
    first = index = used = 0
    expansion = 1.0
    while index < len(rows):
        body = window.view[places[index] + BATCH_HEADER.length : places[index] + lengths[index]]
        # An earlier batch, whose codec needs less memory beside its output, may have made the payload buffer grow.
        is_too_large = payload.capacity > SMALLEST_LIMIT and payload.capacity > output_limit(codecs[index], body)
        if is_too_large and not used:
            payload.shrink(PAYLOAD_LENGTH)
        room = payload.view[used : payload.capacity]
        outcome: int | FormatError | None = None
        if not used or (expansion * len(body) <= len(room) and not is_too_large):
            outcome = _try_decompress(codecs[index], body, room)
        if isinstance(outcome, int):
            used += outcome
            ends.append(used)
            expansion = max(1.0, outcome / max(len(body), 1))
            index += 1
            continue
        if used:
            yield _filled(payload, table, rows[first:index], ends)
        del room  # a view of the payload would keep what it grows out of alive
        is_small = isinstance(outcome, OutputLimitReached) and not used
        if is_small and payload.capacity < (limit := output_limit(codecs[index], body)):
            payload.ensure(_next_capacity(payload.capacity, limit))
        elif outcome is not None and not (isinstance(outcome, OutputLimitReached) and used):
            yield BodyDamage(int(rows[index]), outcome)
            index += 1
        first, used, ends = index, 0, []
    if ends:
        yield _filled(payload, table, rows[first:index], ends)


def _next_capacity(capacity: int, limit: int) -> int:
    # One step leads from there to the limit: an allocator may keep what it gets back between smaller steps.
    return limit if capacity >= PAYLOAD_LENGTH else min(max(capacity * 8, 1 << 16), PAYLOAD_LENGTH)


def _try_decompress(codec: int, body: memoryview, room: memoryview) -> int | FormatError:
    try:
        return decompress_into(codec, body, room)
    except FormatError as error:
        return error.as_value()


def _filled(payload: WordBuffer, table: BatchTable, rows: NDArray[np.int64], ends: list[int]) -> Bodies:
    bounds = np.array([0, *ends], dtype=np.int64)
    payload.filled = ends[-1]
    return Bodies(payload, _lanes(table, rows, bounds[:-1], bounds[1:]))


def _lanes(table: BatchTable, rows: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Lanes:
    # A count is a claim: it is limited to one record more than the body can hold, and the exact reader reports the missing one.
    counts = np.minimum(table["count"][rows].astype(np.int64), (ends - starts) // SMALLEST_RECORD + 1)
    return Lanes(rows, starts, ends, np.maximum(counts, 0), table["last_offset"][rows] - table["base_offset"][rows])
