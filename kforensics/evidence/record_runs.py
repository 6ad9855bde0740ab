"""Records of a segment as columns wherever its batches are sound, and one by one elsewhere: the fast way to all of them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Damage, DamageKind, Span
from kforensics.formats.batch_table import CODEC_MASK, CONTROL_BIT, BatchTable
from kforensics.formats.bodies import PAYLOAD_LENGTH, Bodies, compressed_bodies, plain_bodies
from kforensics.formats.record_columns import LaneDamage, RecordColumns, iter_columns
from kforensics.formats.records import Record
from kforensics.formats.segment import Level, SegmentWindow, iter_window_records, walk_segment
from kforensics.formats.word_buffer import WordBuffer
from kforensics.source.mapped import EvidenceFile


class ColumnRun(NamedTuple):
    """Records of neighbouring sound batches; good until the next run is asked for."""

    view: memoryview
    """The bytes in which keys, values and headers lie."""
    columns: RecordColumns
    batches: BatchTable
    """What `columns.rows` indexes."""


class WindowEnd(NamedTuple):
    """A window of the walk is through: where the next one begins, and what its order must be checked against."""

    position: int
    first_offset: int
    last_offset: int
    first_epoch: int
    highest_epoch: int
    has_damage: bool


class RunReader:
    """Reads one segment or a range of it."""

    def __init__(self, file: EvidenceFile) -> None:
        self._file = file
        self._buffer = WordBuffer(0)
        self._payload = WordBuffer(0)

    def walk(
        self, start: int, end: int | None, *, skip_to: int = 0
    ) -> Iterator[ColumnRun | Record | Damage | WindowEnd]:
        """Everything that begins in the range and not before `skip_to`, in file order."""
        for whole in walk_segment(self._file, level=Level.CRC, start=start, end=end):
            window = _behind(whole, skip_to) if skip_to > whole.span.position else whole
            if self._fits_columns(window):
                yield from self._runs(window)
            else:
                yield from iter_window_records(self._file, window)
            yield _window_end(window)

    def _fits_columns(self, window: SegmentWindow) -> bool:
        batches = window.batches
        if window.damage or not len(batches) or (batches["magic"] != 2).any():
            return False
        return self._buffer.load(self._file, window.span.position, window.span.length) == window.span.length

    def _runs(self, window: SegmentWindow) -> Iterator[ColumnRun | Record | Damage]:
        batches = window.batches
        kinds = np.where(
            batches["attributes"] & CONTROL_BIT != 0, 2, (batches["attributes"] & CODEC_MASK != 0).astype(np.int64)
        )
        bounds = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(batches)]
        for first, end in pairwise(bounds):
            rows = np.arange(first, end, dtype=np.int64)
            match int(kinds[first]):
                case 0:
                    bodies = plain_bodies(self._buffer, batches, rows, window.span.position)
                    yield from self._columns(bodies, batches)
                case 1:
                    yield from self._compressed(batches, rows, window.span.position)
                case _:
                    part = SegmentWindow(span=window.span, batches=batches[rows], damage=(), record_count=len(rows))
                    yield from iter_window_records(self._file, part)

    def _compressed(
        self, batches: BatchTable, rows: NDArray[np.int64], file_position: int
    ) -> Iterator[ColumnRun | Damage]:
        self._payload.ensure(PAYLOAD_LENGTH)
        for bodies in compressed_bodies(self._buffer, self._payload, batches, rows, file_position):
            if isinstance(bodies, Bodies):
                yield from self._columns(bodies, batches)
            else:
                error = bodies.error
                yield _damage(batches[bodies.row], DamageKind.COMPRESSION, error.expected, error.found)

    def _columns(self, bodies: Bodies, batches: BatchTable) -> Iterator[ColumnRun | Damage]:
        for part in iter_columns(bodies.buffer, bodies.lanes):
            if isinstance(part, LaneDamage):
                batch = batches[bodies.lanes.rows[part.lane]]
                yield _damage(batch, DamageKind.RECORD, part.error.expected, part.error.found)
            else:
                yield ColumnRun(bodies.buffer.view, part, batches)


def _behind(window: SegmentWindow, position: int) -> SegmentWindow:
    """What of a window begins at or behind a position; what came before has served to judge its order."""
    return replace(
        window,
        batches=window.batches[window.batches["position"] >= position],
        damage=tuple(damage for damage in window.damage if damage.span.position >= position),
    )


def _damage(batch: np.void, kind: DamageKind, expected: str, found: str) -> Damage:
    return Damage(span=Span(int(batch["position"]), int(batch["length"])), kind=kind, expected=expected, found=found)


def _window_end(window: SegmentWindow) -> WindowEnd:
    batches = window.batches
    if not len(batches):
        return WindowEnd(window.span.end, -1, -1, -1, -1, has_damage=bool(window.damage))
    return WindowEnd(
        window.span.end,
        int(batches["base_offset"][0]),
        int(batches["last_offset"].max()),
        int(batches["partition_leader_epoch"][0]),
        int(batches["partition_leader_epoch"].max()),
        has_damage=bool(window.damage),
    )
