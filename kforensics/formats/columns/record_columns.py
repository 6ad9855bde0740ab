"""Records of many batches at once, as columns: with all starts known, each field of all records is decoded by whole-column arithmetic.

The fast path answers one question for certain: whether a batch is sound. The exact reader in records.py reads any other batch, and finds
it sound after all or says what is wrong with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Span
from kforensics.errors import FormatError
from kforensics.formats.columns.batch_checks import PAYLOAD_LENGTH, ExactReads
from kforensics.formats.columns.record_chain import (
    Flags,
    Lanes,
    Piece,
    Positions,
    Values,
    chain_pieces,
    read_varints,
    read_varlongs,
    skip_varlongs,
)
from kforensics.formats.log.batch_table import BATCH_HEADER, CODEC_MASK, BatchTable
from kforensics.formats.log.records import (
    MOST_HEADERS,
    SMALLEST_RECORD,
    RecordLayout,
    iter_record_layouts,
    skip_headers,
)
from kforensics.formats.primitives.compression import SMALLEST_LIMIT, decompress_into, output_limit
from kforensics.formats.primitives.numbers import OutputLimitReached
from kforensics.formats.primitives.word_buffer import WordBuffer

FEW_RECORDS = 128
"""Below it headers are read one record after the other."""


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Records in file order; positions are places in the buffer that holds the bodies, lengths are -1 for null."""

    rows: NDArray[np.int64]
    """The row of the batch of each record."""
    timestamp_delta: Values
    offset_delta: Values
    key_position: Positions
    key_length: Values
    value_position: Positions
    value_length: Values
    header_position: Positions
    header_count: Values
    end: Positions

    def part(self, first: int, end: int) -> "RecordColumns":
        """Return the records from `first` up to `end`, without `end`."""
        return RecordColumns(*(getattr(self, name)[first:end] for name in self.__slots__))


class BodyDamage(NamedTuple):
    """A batch whose body cannot be read, or whose records are malformed as the exact reader found."""

    row: int
    error: FormatError
    """Its span is in the buffer that was read."""
    start: int | None = None
    """Where the batch would begin in that buffer; none where it can't be decompressed."""


def find_damaged_bodies(buffer: WordBuffer, lanes: Lanes, exact: ExactReads) -> list[BodyDamage]:
    """Return the batches whose records are malformed.

    Args:
        exact: the budget of the exact reader; a doubtful lane beyond it counts as malformed, without the first wrong record.
    """
    doubtful: set[int] = set()
    previous_delta = -1
    for piece in chain_pieces(buffer, lanes):
        columns, sound_records = _decode(buffer, piece, for_reading=False)
        sound = _sound_lanes(piece, columns, sound_records, previous_delta if piece.skipped else -1)
        previous_delta = int(columns.offset_delta[-1]) if len(columns.offset_delta) else -1
        if not sound.all():
            doubtful.update((piece.first_lane + np.flatnonzero(~sound)).tolist())
    return [
        _lane_damage(lanes, lane, error)
        for lane in sorted(doubtful)
        if (error := _exact_error(buffer, lanes, lane, exact)) is not None
    ]


def iter_columns(buffer: WordBuffer, lanes: Lanes, exact: ExactReads) -> Iterator[RecordColumns | BodyDamage]:
    """Yield the columns of all records in file order, and each damage behind the readable records of its lane.

    Args:
        exact: the budget of the exact reader; of a doubtful lane beyond it no record is yielded.
    """
    previous_delta = -1
    given_up = -1
    for piece in chain_pieces(buffer, lanes):
        if piece.first_lane == given_up:
            continue
        columns, sound_records = _decode(buffer, piece, for_reading=True)
        sound = _sound_lanes(piece, columns, sound_records, previous_delta if piece.skipped else -1)
        previous_delta = int(columns.offset_delta[-1]) if len(columns.offset_delta) else -1
        if sound.all():
            yield columns
            continue
        ends = np.cumsum(piece.counts).tolist()
        for lane, end in enumerate(ends):
            if sound[lane]:
                yield columns.part(ends[lane - 1] if lane else 0, end)
            else:
                given_up = piece.first_lane + lane
                yield from _exact_columns(buffer, lanes, given_up, piece.skipped, exact)


def _decode(buffer: WordBuffer, piece: Piece, *, for_reading: bool) -> tuple[RecordColumns, Flags]:
    """Return the columns of a piece, and which records are surely as the format says; rows and timestamps cost extra, and mean nothing without."""
    limits = piece.limits
    behind_attributes = piece.positions + 1
    if for_reading:
        timestamp_delta, position, has_time = read_varlongs(buffer, behind_attributes)
    else:
        timestamp_delta = behind_attributes
        position, has_time = skip_varlongs(buffer, behind_attributes)
    offset_delta, position, has_offset = read_varints(buffer, position)
    key_length, key_position, complete = read_varints(buffer, position)
    position = key_position + np.maximum(key_length, 0)
    sound = (key_length >= -1) & (position <= limits)
    sound &= complete & has_time & has_offset
    value_length, value_position, complete = read_varints(buffer, _where_sound(sound, position, limits))
    position = value_position + np.maximum(value_length, 0)
    sound &= value_length >= -1
    sound &= position <= limits
    sound &= complete
    header_count, header_position, complete = read_varints(buffer, _where_sound(sound, position, limits))
    sound &= complete
    end = header_position
    if header_count.any():
        sound &= (header_count >= 0) & (header_count <= MOST_HEADERS)
        end = _behind_headers(buffer, header_position, header_count, limits, sound)
    sound &= end == limits
    columns = RecordColumns(
        np.repeat(piece.lanes.rows, piece.counts) if for_reading else piece.positions,
        timestamp_delta,
        offset_delta,
        key_position,
        key_length,
        value_position,
        value_length,
        header_position,
        header_count,
        limits,
    )
    return columns, sound


def _where_sound(sound: Flags, position: Positions, limits: Positions) -> Positions:
    """Return the next field's place, or the record's end where a length can't be right, so that no place leaves the buffer."""
    return position if sound.all() else np.where(sound, position, limits)


def _behind_headers(
    buffer: WordBuffer, header_position: Positions, header_count: Values, limits: Positions, sound: Flags
) -> Positions:
    """Return the position behind each record's headers; one that differs from the record's end where they do not fit."""
    end = header_position.copy()
    active = np.flatnonzero(sound & (header_count > 0))
    position, left, limit = header_position[active], header_count[active], limits[active]
    while len(active) >= FEW_RECORDS:
        name_length, behind, complete = read_varints(buffer, position)
        position = behind + np.maximum(name_length, 0)
        fits = complete & (name_length >= 0) & (position <= limit)
        value_length, behind, complete = read_varints(buffer, np.where(fits, position, limit))
        position = behind + np.maximum(value_length, 0)
        fits &= complete & (value_length >= -1) & (position <= limit)
        left = left - 1
        end[active] = np.where(fits, position, -1)
        stays = fits & (left > 0)
        active, position, left, limit = active[stays], position[stays], left[stays], limit[stays]
    for record, start, count, bound in zip(
        active.tolist(), position.tolist(), left.tolist(), limit.tolist(), strict=True
    ):
        try:
            end[record] = skip_headers(buffer.content, start, bound, count)
        except FormatError:
            end[record] = -1
    return end


def _sound_lanes(piece: Piece, columns: RecordColumns, sound_records: Flags, previous_delta: int) -> Flags:
    """Which lanes hold exactly their records, with offset deltas that rise up to the last one at most."""
    sound: Flags = piece.sound & (piece.lanes.starts == piece.lanes.ends)
    filled = piece.counts > 0
    if not filled.any():
        return sound
    counts = piece.counts[filled]
    lasts = np.cumsum(counts) - 1
    firsts = lasts - counts + 1
    deltas = columns.offset_delta
    rises = np.empty(len(deltas), dtype=np.bool_)
    np.greater(deltas[1:], deltas[:-1], out=rises[1:])
    rises[firsts] = deltas[firsts] > previous_delta
    rises &= sound_records
    good = piece.sound[filled] & (deltas[lasts] <= piece.lanes.last_offset_deltas[filled])
    if piece.is_rest:
        good &= piece.limits[lasts] == piece.lanes.ends[filled]
    if not rises.all():
        good &= np.logical_and.reduceat(rises, firsts)
    sound[filled] = good
    return sound


def _exact_layouts(buffer: WordBuffer, lanes: Lanes, lane: int) -> Iterator[RecordLayout]:
    return iter_record_layouts(
        buffer.view,
        int(lanes.starts[lane]),
        int(lanes.ends[lane]),
        int(lanes.counts[lane]),
        int(lanes.last_offset_deltas[lane]),
    )


def _not_looked_for(lanes: Lanes, lane: int) -> FormatError:
    start, end = int(lanes.starts[lane]), int(lanes.ends[lane])
    return FormatError(
        Span(start, end - start),
        expected=f"{lanes.counts[lane]} records as the format has them",
        found=f"others in {end - start} bytes, of which the first was not looked for",
    )


def _exact_error(buffer: WordBuffer, lanes: Lanes, lane: int, exact: ExactReads) -> FormatError | None:
    if not exact.take(int(lanes.ends[lane] - lanes.starts[lane])):
        return _not_looked_for(lanes, lane)
    try:
        for _ in _exact_layouts(buffer, lanes, lane):
            pass
    except FormatError as error:
        return error.as_value()
    return None


def _exact_columns(
    buffer: WordBuffer, lanes: Lanes, lane: int, skip: int, exact: ExactReads
) -> Iterator[RecordColumns | BodyDamage]:
    """Yield a lane's records behind the first `skip`, by the exact reader, and what is wrong with them."""
    if not exact.take(int(lanes.ends[lane] - lanes.starts[lane])):
        yield _lane_damage(lanes, lane, _not_looked_for(lanes, lane))
        return
    layouts = _exact_layouts(buffer, lanes, lane)
    error: FormatError | None = None
    is_done = False
    while not is_done:
        taken: list[RecordLayout] = []
        try:
            for layout in islice(layouts, 4096):
                taken.append(layout)  # noqa: PERF402  # what came before an error is kept
        except FormatError as caught:
            error = caught.as_value()
        is_done = error is not None or not taken
        skipped = min(skip, len(taken))
        skip -= skipped
        if taken[skipped:]:
            yield _columns_of(taken[skipped:], int(lanes.rows[lane]))
    if error is not None:
        yield _lane_damage(lanes, lane, error)


def _lane_damage(lanes: Lanes, lane: int, error: FormatError) -> BodyDamage:
    return BodyDamage(int(lanes.rows[lane]), error, int(lanes.starts[lane]) - BATCH_HEADER.length)


def _columns_of(layouts: list[RecordLayout], row: int) -> RecordColumns:
    table = np.array(layouts, dtype=np.int64)
    return RecordColumns(np.full(len(layouts), row), *(table[:, column] for column in range(1, table.shape[1])))


# The record bodies of a window's batches, decompressed where they are compressed, as lanes for the column reader.


class Bodies(NamedTuple):
    """Bodies side by side in one buffer, valid until the next bodies are read."""

    buffer: WordBuffer
    lanes: Lanes


def plain_bodies(window: WordBuffer, table: BatchTable, rows: NDArray[np.int64], file_position: int) -> Bodies:
    """Return the uncompressed bodies without a copy.

    Args:
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
        payload: where bodies are decompressed to; it grows up to the output limit of the codec, and shrinks again.

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
