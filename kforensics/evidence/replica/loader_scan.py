"""A segment as a load scans it: the batches that `read_batches` finds one by one, the sound ones as columns, and by several processes where there is much to scan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import accumulate, repeat, takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kforensics.damage import Absent
from kforensics.errors import EvidenceError
from kforensics.evidence.parallel import WORTH_A_PROCESS, Progress, spread
from kforensics.evidence.replica.loader_batches import read_batches, transaction_end
from kforensics.evidence.replica.loader_values import Batches, LoadedBatch, LoadFailure, TransactionEnd
from kforensics.evidence.segment_parts import Part, split_segment
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable, empty_batches
from kforensics.formats.log.headers import NEWEST_MAGIC
from kforensics.formats.primitives.word_buffer import WordBuffer
from kforensics.formats.segment.entries import read_entries
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.source.naming import parse_file_name

WINDOW_LENGTH = 6 << 20
"""Bytes that are read at once; a longer batch, and those behind it, are read one by one."""
WORTH_COLUMNS = 64 << 10
"""Bytes for which columns pay; the batches of a smaller segment are read one by one."""
GROUP_LENGTH = 1 << 30
"""Bytes of segments that are scanned ahead for each process: a segment is rarely longer."""


class _Scanned(NamedTuple):
    """What a scan found in a part of a segment."""

    sound: BatchTable
    """The batches of magic 2 with the right checksum that follow each other from its start on."""
    ends: dict[int, TransactionEnd | LoadFailure | Absent]
    """What the markers in them say, by row."""
    rest: Batches
    """What is behind them, up to the end of the part or to where the reader ends."""
    version: tuple[int, ...]
    """The version of the file that was read."""


ScannedParts = Mapping[int, tuple[Part, _Scanned | None]]
"""Parts of a segment by the positions at which they begin; None for one that could not be read."""


class ScansAhead:
    """Segments that loads are expected to scan: when one of them is asked for, several processes scan it and those that come next."""

    def __init__(self, *, jobs: int) -> None:
        self.jobs = jobs
        self._planned: Sequence[tuple[str, int]] = ()
        self._places: dict[str, int] = {}
        self._found: dict[str, ScannedParts] = {}

    def plan(self, planned: Sequence[tuple[str, int]]) -> None:
        """Expect segments to be asked for.

        Args:
            planned: paths and lengths, in the order in which they are expected to be asked for.
        """
        self._planned = planned
        self._places = {path: at for at, (path, _) in enumerate(planned)}

    @contextmanager
    def left_to_each(self) -> Iterator[None]:
        """Start no processes meanwhile: whoever asks for a segment scans it."""
        jobs, self.jobs = self.jobs, 1
        try:
            yield
        finally:
            self.jobs = jobs

    def take(self, path: str, length: int) -> ScannedParts:
        """Return the parts of a segment once; none where whoever asks is to scan it.

        Args:
            path: of the segment, which need not be expected.
            length: in bytes.
        """
        if self.jobs > 1 and path not in self._found:
            self._found = self._scan(self._group(path, length))
        return self._found.pop(path, {})

    def _group(self, path: str, length: int) -> list[tuple[str, int]]:
        """Return a segment with those that come next, as many as are worth their memory."""
        if path not in self._places:
            return [(path, length)]
        first = self._places[path]
        lengths = accumulate(length for _, length in self._planned[first:])
        count = sum(1 for _ in takewhile(lambda total: total <= self.jobs * GROUP_LENGTH, lengths))
        return list(self._planned[first : first + max(count, 1)])

    def _scan(self, group: list[tuple[str, int]]) -> dict[str, ScannedParts]:
        if sum(length for _, length in group) < 2 * WORTH_A_PROCESS:
            return {path: {} for path, _ in group}
        tasks = [(path, part) for path, length in group for part in self._split(path, length)]
        lengths = dict(group)
        weights = [part.length(lengths[path]) for path, part in tasks]
        found: dict[str, dict[int, tuple[Part, _Scanned | None]]] = {path: {} for path, _ in group}
        scan = partial(_scan_part, WordBuffer(0))
        for (path, part), one in zip(tasks, spread(scan, tasks, weights=weights, jobs=self.jobs), strict=True):
            found[path][part.start] = part, one
        return dict(found)

    def _split(self, path: str, length: int) -> list[Part]:
        base_offset = parse_file_name(path.rpartition("/")[2]).base_offset
        known = base_offset if isinstance(base_offset, int) else None
        return split_segment(Path(path), length=length, base_offset=known, jobs=self.jobs)


def _scan_part(window: WordBuffer, task: tuple[str, Part], _: Progress) -> _Scanned | None:
    path, part = task
    try:
        with open_evidence(path) as file:
            return _scan(file, part, window)
    except EvidenceError:
        return None  # it is met again, and named, where the segment is asked for


def scan_batches(file: EvidenceFile, start: int, parts: ScannedParts) -> Batches:
    """Return the batches from a position on with their checksums compared, as `read_batches` does.

    Args:
        start: where the first one begins.
        parts: those of it that have been scanned already.

    Raises:
        EvidenceError: the file can't be read, or became shorter.
    """
    if not file.is_of_the_system or file.size - start < WORTH_COLUMNS:
        return read_batches(file, start, checked=True)
    batches: list[LoadedBatch] = []
    position, window = start, WordBuffer(0)
    while True:
        part, one = parts.get(position, (Part(position, None), None))
        if one is None or one.version != file.version:
            # No part begins here, as where a batch of the part before ends elsewhere, or the file has changed.
            part = Part(position, None)
            one = _scan(file, part, window)
        batches += _loaded(one)
        batches += one.rest.batches
        position = one.rest.end
        if part.end is None or position < part.end:
            return replace(one.rest, batches=tuple(batches))


def _scan(file: EvidenceFile, part: Part, window: WordBuffer) -> _Scanned:
    position, stop = part.start, file.size if part.end is None else part.end
    tables: list[BatchTable] = []
    ends: dict[int, TransactionEnd | LoadFailure | Absent] = {}
    count = 0
    while position < stop:
        window.load(file, position, min(WINDOW_LENGTH, file.size - position))
        table = read_entries(window, 0, stop - position, position, with_checksums=True).table
        is_sound = table["crc_valid"] & (table["magic"] == NEWEST_MAGIC)
        rows = table if is_sound.all() else table[: int(np.argmin(is_sound))]
        if not len(rows):
            break
        is_marker = (rows["attributes"] & CONTROL_BIT != 0) & (rows["producer_id"] >= 0)
        for at in np.flatnonzero(is_marker).tolist():
            begin = int(rows["position"][at]) - position
            data = window.view[begin : begin + int(rows["length"][at])]
            ends[count + at] = transaction_end(data, int(rows["count"][at]))
        tables.append(rows)
        count += len(rows)
        position = int(rows["position"][-1]) + int(rows["length"][-1])
        if len(rows) < len(table):
            break
    sound = np.concatenate(tables) if tables else empty_batches()
    return _Scanned(sound, ends, read_batches(file, position, checked=True, end=part.end), file.version)


def _loaded(one: _Scanned) -> Iterable[LoadedBatch]:
    """Return sound rows as the reader gives them: a value for each field of `LoadedBatch`, in their order."""
    rows, count = one.sound, len(one.sound)
    ends: list[TransactionEnd | LoadFailure | Absent] = [Absent.NOT_APPLICABLE] * count
    for at, end in one.ends.items():
        ends[at] = end
    numbers = (
        rows["position"],
        rows["length"],
        rows["base_offset"],
        rows["last_offset"],
        rows["magic"],
        rows["partition_leader_epoch"],
        rows["max_timestamp"],
        rows["producer_id"],
        rows["producer_epoch"],
        rows["count"],
        rows["attributes"] & TRANSACTIONAL_BIT != 0,
        rows["attributes"] & CONTROL_BIT != 0,
        rows["crc_valid"],
    )
    no_failure = repeat(Absent.NOT_APPLICABLE, count)
    columns = (
        *(one.tolist() for one in numbers),
        ends,
        rows["base_sequence"].tolist(),
        repeat(False, count),
        no_failure,
    )
    return map(LoadedBatch._make, zip(*columns, strict=True))
