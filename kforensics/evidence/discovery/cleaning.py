"""How far the cleaner of a compacted topic has got, by names, lengths and times of segments and its checkpoint alone."""

from collections.abc import Iterable
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.discovery.partition_dirs import PartitionPlace, checkpoint_value
from kforensics.evidence.model import CheckpointValue
from kforensics.source.naming import FileKind, FileSuffix
from kforensics.source.walk import FoundFile, walk_partition
from kforensics.units import OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC

_COMPACTED = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_TOPIC})
"""Topics that brokers create with `cleanup.policy=compact`; any other is one where the cleaner's checkpoint names it."""

_FEWEST_SEGMENTS = 3
_LEAST_HOURS_MS = 3_600_000
"""A running cleaner looks every 15 seconds for a log of which half is dirty (`log.cleaner.backoff.ms`, `min.cleanable.dirty.ratio`)."""


class CleanerLag(NamedTuple):
    """Closed segments that a running cleaner would have compacted."""

    cleaner_point: int | Absent
    """Where the cleaner stands by its checkpoint; absent where that does not name the log."""
    first_offset: int
    """Where they begin."""
    end_offset: int
    """Where the active segment begins, which no cleaner touches."""
    segments: int
    bytes: int
    percent: int
    """Of the bytes of all closed segments."""
    since_ms: int
    """When the oldest of them was written last."""


def cleaner_lag(topic: str, files: Iterable[FoundFile], cleaner_point: int | Absent) -> CleanerLag | None:
    """Return how much waits for the cleaner, none where it may only not have come to it yet."""
    if topic not in _COMPACTED and not isinstance(cleaner_point, int):
        return None
    live = sorted(
        (base, file.length, file.mtime_ns // 1_000_000)
        for file in files
        if file.name.kind is FileKind.SEGMENT
        and file.name.suffix is FileSuffix.NONE
        and isinstance(base := file.name.base_offset, int)
    )
    if len(live) <= _FEWEST_SEGMENTS:
        return None
    point = cleaner_point if isinstance(cleaner_point, int) else 0
    closed, end = live[:-1], live[-1][0]
    dirty = [one for one in closed if one[0] >= point]
    total, waiting = sum(length for _, length, _ in closed), sum(length for _, length, _ in dirty)
    if len(dirty) < _FEWEST_SEGMENTS or waiting * 2 < total or dirty[-1][2] - dirty[0][2] < _LEAST_HOURS_MS:
        return None
    return CleanerLag(
        cleaner_point, max(dirty[0][0], point), end, len(dirty), waiting, waiting * 100 // total, dirty[0][2]
    )


def cleaner_lag_of(place: PartitionPlace) -> CleanerLag | None:
    """Return the same of a partition directory that was found."""
    point = checkpoint_value(place.state, "cleaner_point", place.topic_partition)
    name = place.path.rpartition("/")[2]
    files = (one for one in walk_partition(place.state.listings, place.path, name=name) if isinstance(one, FoundFile))
    value = point.value if isinstance(point, CheckpointValue) else point
    return cleaner_lag(place.topic_partition.topic, files, value)
