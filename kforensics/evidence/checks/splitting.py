"""A large segment in parts that can be walked at the same time: each begins at a batch, which the walk of the part before must reach."""

from collections.abc import Iterator
from dataclasses import replace

from kforensics.errors import EvidenceError
from kforensics.evidence.checks.segment_scan import ScanTask
from kforensics.formats.segment.resync import Expectation, SoundBatch, find_sound_batch
from kforensics.source.mapped import EvidenceFile, open_evidence

SMALLEST_PART = 24 << 20
"""Bytes of a segment for which a part of its own pays."""

PARTS_PER_JOB = 2
"""More parts than processes, so that none waits long for the others."""

SEARCHED = (128 << 10, 16 << 20)
"""Bytes behind a wished-for place in which a batch is looked for; nearly always the first few suffice."""


def split_task(task: ScanTask, length: int, jobs: int) -> Iterator[ScanTask]:
    """Yield the task in parts, in file order; the parts of a file that can't be opened are the task itself.

    Args:
        task: a whole segment.
        length: of the segment in bytes; parts are not smaller than `SMALLEST_PART`.
        jobs: the number of processes.
    """
    count = min(max(length // SMALLEST_PART, 1), jobs * PARTS_PER_JOB)
    try:
        places = _places(task, length, count) if count > 1 else []
    except EvidenceError:
        places = []
    bounds = [0, *places]
    for at, start in enumerate(bounds):
        yield replace(task, start=start, end=bounds[at + 1] if at + 1 < len(bounds) else None)


def _places(task: ScanTask, length: int, count: int) -> list[int]:
    places: list[int] = []
    with open_evidence(task.path) as file:
        for part in range(1, count):
            wished = length * part // count
            batch = _batch_behind(file, wished, length, task.base_offset)
            if batch is not None and batch.position > (places[-1] if places else 0):
                places.append(batch.position)
    return places


def _batch_behind(file: EvidenceFile, wished: int, length: int, base_offset: int) -> SoundBatch | None:
    for reach in SEARCHED:
        batch = find_sound_batch(file, wished, min(wished + reach, length), Expectation(last_offset=base_offset))
        if batch is not None:
            return batch
    return None
