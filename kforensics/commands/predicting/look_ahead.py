"""Directories that several processes look at before the fates of all are known: what each loads to, and which segments are scanned in parts."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kforensics.commands.predicting.directories import StartedDirectory, topic_id_of
from kforensics.commands.predicting.log_starts import LogStarts, expected_scans, needed_load
from kforensics.commands.processes import in_chunks, spread
from kforensics.damage import Absent
from kforensics.evidence.parallel import WORTH_A_PROCESS
from kforensics.evidence.replica.loader_scan import WORTH_COLUMNS, ScansAhead
from kforensics.evidence.replica.loader_values import Content, Need
from kforensics.evidence.segment_parts import SMALLEST_PART
from kforensics.protocol.loading.node import Fate
from kforensics.protocol.loading.starts import LogLoad
from kforensics.protocol.loading.values import LoadOutcome, Unpredictable
from kforensics.reconcile.logs.predicted_load import PredictedLog
from kforensics.source.foreign import ForeignPath

CLEAN_LOG, UNCLEAN_LOG = WORTH_A_PROCESS // 500, WORTH_A_PROCESS // 200
"""The bytes that take as long to read as a small log takes to load, after a clean shutdown and without one."""
WEIGHT_OF_A_TASK, LOGS_OF_A_TASK = WORTH_A_PROCESS // 5, 100
"""The most bytes to read, and the most logs, that a process takes at a time."""


class Ahead(NamedTuple):
    """What was found of a log before the fates of directories are known."""

    topic_id: str | Absent
    log: PredictedLog
    """The log as it is predicted to load, with its likely fate."""
    load: LogLoad | None
    """What the start of the node depends on; none where it needs no more than the name."""


def look_ahead(
    directories: Sequence[StartedDirectory],
    markers: Mapping[tuple[int, str], bool],
    starts: LogStarts,
    scans: ScansAhead,
    likely_fate: Callable[[StartedDirectory], Fate],
    *,
    is_reached: bool,
) -> dict[int, Ahead]:
    """Load in several processes the logs whose files are not asked for again, and plan the scans of the others.

    Logs that are unusual or large are left to the caller, and so are all where there are few.

    Args:
        directories: of the node, as they were found.
        markers: whether each log directory holds the marker of a clean shutdown.
        is_reached: whether the start comes to loading logs.

    Returns:
        What was found, by the place of the log among the directories.
    """
    if scans.jobs < 2:
        return {}
    places: list[int] = []
    weights: list[int] = []
    planned: list[tuple[str, int]] = []
    for at, directory in enumerate(directories):
        if isinstance(directory.within.one.root, ForeignPath):
            continue
        is_kept = directory.within.keeps_reads
        if not markers[directory.place]:
            scanned = expected_scans(directory, clean=False)
            if is_kept or _is_large(scanned):
                planned += _worth_planning(directory, scanned)
            else:
                places.append(at)
                weights.append(UNCLEAN_LOG + sum(length for _, length in scanned))
        elif not is_kept:
            places.append(at)
            weights.append(CLEAN_LOG)
    scans.plan(planned)
    jobs = min(scans.jobs, sum(weights) // WORTH_A_PROCESS)
    if jobs < 2:
        return {}
    chunks = list(in_chunks(weights, weight=WEIGHT_OF_A_TASK, most=LOGS_OF_A_TASK))
    tasks = [places[first:end] for first, end in chunks]

    def look(directories: Sequence[StartedDirectory], task: Sequence[int]) -> list[Ahead | None]:
        return [
            _ahead_of(one, starts, likely_fate(one), clean=markers[one.place], is_reached=is_reached)
            for one in (directories[at] for at in task)
        ]

    with scans.left_to_each():
        sums = [sum(weights[first:end]) for first, end in chunks]
        found = spread(look, directories, tasks, jobs=jobs, weights=sums, joins=True)
    return {
        at: one
        for task, ahead in zip(tasks, found, strict=True)
        for at, one in zip(task, ahead, strict=True)
        if one is not None
    }


def _ahead_of(
    directory: StartedDirectory, starts: LogStarts, fate: Fate, *, clean: bool, is_reached: bool
) -> Ahead | None:
    disk, ahead = directory.disk, None
    if not directory.links and not directory.obstacles:
        outcome: LoadOutcome | Unpredictable | None = starts.load_after_clean_shutdown(directory) if clean else None
        load: LogLoad | None = None
        if outcome is None and not _is_large(expected_scans(directory, clean=clean)):
            load = starts.load(directory, clean=clean)
            outcome = load.outcome
        if outcome is not None:
            log = starts.describe(1, directory, outcome, fate, is_reached=is_reached)
            topic_id = topic_id_of(disk)
            ahead = None if disk.unreadable else Ahead(topic_id, log, load and needed_load(load))
    directory.forget()
    return ahead


def _is_large(scanned: Sequence[tuple[str, int]]) -> bool:
    """Whether a segment is scanned in parts."""
    return any(length >= 2 * SMALLEST_PART for _, length in scanned)


def _worth_planning(directory: StartedDirectory, scanned: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return paths and lengths of the segments that pay and have not been read."""
    disk = directory.disk
    return [
        (f"{disk.folder}/{name}", length)
        for name, length in scanned
        if length >= WORTH_COLUMNS and Need(name, Content.CHECKED_BATCHES) not in disk.read
    ]
