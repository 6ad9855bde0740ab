"""A large segment in parts that can be walked at the same time: each begins at a batch, which the walk of the part before must reach."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kforensics.damage import Damage
from kforensics.errors import EvidenceError
from kforensics.evidence.parallel import Progress, spread
from kforensics.formats.log.batch_table import BatchTable, empty_batches
from kforensics.formats.segment.resync import Expectation, SoundBatch, find_sound_batch
from kforensics.formats.segment.walk import Level, walk_segment
from kforensics.source.mapped import EvidenceFile, open_evidence

SMALLEST_PART = 24 << 20
"""Bytes of a segment for which a part of its own pays."""

PARTS_PER_JOB = 2
"""More parts than processes, so that none waits long for the others."""

SEARCHED = (128 << 10, 16 << 20)
"""Bytes behind a wished-for place in which a batch is looked for; nearly always the first few suffice."""

MOST_SENT = 1 << 16
"""Batches of a part that are sent from process to process: where more of them are wanted, walking it here costs less."""

Keep = Callable[[BatchTable], BatchTable]
"""A function that returns those of a window's sound batches that a reader needs, in their order."""


class Part(NamedTuple):
    """A part of a segment."""

    start: int
    """The position of its first batch."""
    end: int | None
    """The position behind it; none for the end of the segment."""

    def length(self, size: int) -> int:
        """Return its bytes."""
        return (size if self.end is None else self.end) - self.start


class Extent(NamedTuple):
    """What decides whether two parts of a segment fit together."""

    start: int
    stop: int
    """The position behind its last batch."""
    first_offset: int | None
    """None where no batch is in it, as for the others."""
    last_offset: int | None
    first_epoch: int | None
    """None where no batch has a leader epoch, as for the highest."""
    highest_epoch: int | None
    lacks_epochs: bool
    """Whether a batch of magic 2 has no leader epoch."""

    def is_followed_by(self, other: "Extent") -> bool:
        """Whether another part begins where this one ends, neither offsets nor leader epochs go back there, and not only one of them has batches without leader epochs."""
        if self.stop != other.start:
            return False
        if self.last_offset is not None and other.first_offset is not None and other.first_offset <= self.last_offset:
            return False
        if self.first_epoch is None and other.first_epoch is None:
            return True
        if self.lacks_epochs or other.lacks_epochs:
            return False  # which batches lack one is decided by those before and behind them
        return other.first_epoch is None or self.highest_epoch is None or other.first_epoch >= self.highest_epoch


def split_segment(path: Path, *, length: int, base_offset: int | None, jobs: int) -> list[Part]:
    """Return the parts of a segment in file order; one where it is small, or can't be opened."""
    count = min(length // SMALLEST_PART, jobs * PARTS_PER_JOB) if jobs > 1 else 1
    if count > 1:
        try:
            with open_evidence(path) as file:
                return parts_of_file(file, length=length, base_offset=base_offset, count=count)
        except EvidenceError:
            pass  # it is met again, and named, where the segment is walked as one
    return [Part(0, None)]


def parts_of_file(file: EvidenceFile, *, length: int, base_offset: int | None, count: int) -> list[Part]:
    """Return parts of about the same length, in file order; fewer where no batch is found that one could begin at."""
    starts = [0]
    for part in range(1, count):
        batch = _batch_behind(file, length * part // count, length, base_offset)
        if batch is not None and batch.position > starts[-1]:
            starts.append(batch.position)
    return [Part(start, end) for start, end in zip(starts, [*starts[1:], None], strict=True)]


def _batch_behind(file: EvidenceFile, wished: int, length: int, base_offset: int | None) -> SoundBatch | None:
    for reach in SEARCHED:
        batch = find_sound_batch(file, wished, min(wished + reach, length), Expectation(last_offset=base_offset))
        if batch is not None:
            return batch
    return None


def walk_sound_batches(
    file: EvidenceFile, *, base_offset: int, keep: Keep, jobs: int
) -> Iterator[tuple[BatchTable, tuple[Damage, ...]]]:
    """Yield the sound batches of a segment with the damage among them, in file order; a segment without damage may be walked in parts by several processes.

    Args:
        keep: picks those that are sent from another process, of any run of batches, wherever it begins; what is read here is given whole.
    """
    jobs = jobs if file.is_of_the_system else 1
    parts = split_segment(file.path, length=file.size, base_offset=base_offset, jobs=jobs)
    if len(parts) > 1:
        tables = _walked_in_parts(file, parts, keep, jobs)
        if tables is not None:
            yield from ((table, ()) for table in tables)
            return
    for window in walk_segment(file, level=Level.CRC):
        yield window.batches[window.batches["crc_valid"]], window.damage


def _walked_in_parts(file: EvidenceFile, parts: list[Part], keep: Keep, jobs: int) -> list[BatchTable] | None:
    """Return what is kept of each part; none where a part has damage, which its neighbours explain, or where parts don't fit together."""
    weights = [part.length(file.size) for part in parts]
    walked = spread(partial(_walk_part, file.path, keep), parts, weights=weights, jobs=jobs)
    tables: list[BatchTable] = []
    before: Extent | None = None
    for one in walked:
        if one is None or (before is not None and not before.is_followed_by(one[0])):
            return None
        before = one[0]
        tables.append(one[1])
    return tables


def _walk_part(path: Path, keep: Keep, part: Part, progress: Progress) -> tuple[Extent, BatchTable] | None:
    kept: list[BatchTable] = []
    extent = empty_extent(part.start)
    try:
        with open_evidence(path) as file:
            for window in walk_segment(file, level=Level.CRC, start=part.start, end=part.end):
                if window.damage:
                    return None
                extent = extended(extent, window.batches, window.span.end)
                kept.append(keep(window.batches))
                if sum(map(len, kept)) > MOST_SENT:
                    return None
                progress(window.span.length)
    except EvidenceError:
        return None  # it is met again, and named, where the segment is walked as one
    return extent, np.concatenate(kept) if kept else empty_batches()


def empty_extent(start: int) -> Extent:
    """Return the extent of a part of which nothing was walked yet."""
    return Extent(start, start, None, None, None, None, lacks_epochs=False)


def extended(extent: Extent, batches: BatchTable, stop: int) -> Extent:
    """Return the extent with the batches that follow, up to a position."""
    if not len(batches):
        return extent._replace(stop=stop)
    last, epochs = int(batches["last_offset"].max()), batches["partition_leader_epoch"]
    known = epochs[epochs >= 0]
    first, highest = (int(known[0]), int(known.max())) if len(known) else (None, None)
    return Extent(
        extent.start,
        stop,
        int(batches["base_offset"][0]) if extent.first_offset is None else extent.first_offset,
        last if extent.last_offset is None else max(extent.last_offset, last),
        first if extent.first_epoch is None else extent.first_epoch,
        max((one for one in (extent.highest_epoch, highest) if one is not None), default=None),
        lacks_epochs=extent.lacks_epochs or lack_epochs(batches),
    )


def lack_epochs(batches: BatchTable) -> bool:
    """Whether a batch of magic 2 has no leader epoch."""
    return bool(((batches["magic"] == 2) & (batches["partition_leader_epoch"] < 0)).any())
