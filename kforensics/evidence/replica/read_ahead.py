"""Read what the ends of many logs need in two rounds, with many requests at once, before each log is looked at by itself."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.replica.positions import PAGE, indexed_position
from kforensics.formats.index.sparse import OFFSET_ENTRY_LENGTH, last_time_entry_span
from kforensics.formats.log.batch_table import BATCH_HEADER
from kforensics.source.capture import CapturePath
from kforensics.source.mapped import held_ranges
from kforensics.source.naming import FileKind
from kforensics.source.ranges import Range, at_hand
from kforensics.source.walk import FoundDirectory, FoundFile, walk_partition
from kforensics.units import METADATA_TOPICS, TopicPartition

LARGEST_END = 1 << 20
"""The bytes of the end of a log that are read ahead; the end of a longer one is read when it is looked at."""

AROUND_PARTING = 64 << 10
"""The bytes of the end of a log that are read ahead where the epoch checkpoints of its replicas differ."""

SMALL_FILE = 64 << 10
"""The bytes of a larger epoch checkpoint or partition.metadata are not read ahead."""


class _End(NamedTuple):
    """The last segment of a log that was stopped cleanly."""

    place: PartitionPlace
    log: FoundFile
    offset_index: FoundFile
    epochs: FoundFile | None


@contextmanager
def ends_at_hand(groups: Iterable[Sequence[PartitionPlace]]) -> Iterator[None]:
    """Hold the ends of logs in memory for as long as the block runs."""
    wanted: list[Range] = []
    ends: dict[TopicPartition, list[_End]] = defaultdict(list)
    for place in (place for group in groups for place in group):
        if isinstance(place.state.root, CapturePath) or place.topic_partition.topic in METADATA_TOPICS:
            continue
        end = _end_of(place, wanted)
        if end is not None:
            ends[place.topic_partition].append(end)
    with at_hand(wanted), at_hand(one for group in ends.values() for one in _last_batches(group)):
        yield


def _end_of(place: PartitionPlace, wanted: list[Range]) -> _End | None:
    """Note what is read of a log whatever its end is, and return its last segment where its end alone is read."""
    root = place.state.root
    kinds: dict[FileKind, list[FoundFile]] = defaultdict(list)
    for found in walk_partition(place.state.listings, place.path, name=place.path.rpartition("/")[2]):
        if not isinstance(found, FoundFile) or not isinstance(found.partition, FoundDirectory):
            continue
        if not found.name.is_transient:
            kinds[found.name.kind].append(found)
    small = [*kinds[FileKind.LEADER_EPOCH_CHECKPOINT], *kinds[FileKind.PARTITION_METADATA]]
    wanted += [Range(root / one.path, 0, one.length) for one in small if 0 < one.length <= SMALL_FILE]
    logs = sorted((one for one in kinds[FileKind.SEGMENT] if one.length), key=lambda one: one.path)
    if not logs or not place.state.clean_shutdown:
        return None
    wanted.append(Range(root / logs[0].path, 0, BATCH_HEADER.length))
    beside = {one.path: one for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX) for one in kinds[kind]}
    times = beside.get(logs[-1].path.removesuffix(".log") + ".timeindex")
    if times is not None and (last := last_time_entry_span(times.length)) is not None:
        wanted.append(Range(root / times.path, last.position, last.length))
    index = beside.get(logs[-1].path.removesuffix(".log") + ".index")
    if index is None or index.length < OFFSET_ENTRY_LENGTH:
        wanted.append(Range(root / logs[-1].path, 0, min(logs[-1].length, LARGEST_END)))
        return None
    page = (index.length - OFFSET_ENTRY_LENGTH) // PAGE * PAGE
    wanted.append(Range(root / index.path, page, index.length - page))
    return _End(place, logs[-1], index, next(iter(kinds[FileKind.LEADER_EPOCH_CHECKPOINT]), None))


def _last_batches(group: Sequence[_End]) -> Iterator[Range]:
    """Yield the end of each log of a partition, and more where their epoch checkpoints show that they part."""
    checkpoints = {
        bytes(held_ranges.find(str(one.place.state.root / one.epochs.path), 0, one.epochs.length) or b"")
        for one in group
        if one.epochs is not None
    }
    for one in group:
        root = one.place.state.root
        start = indexed_position(root / one.offset_index.path)
        if len(checkpoints) > 1:
            start = min(start, max(one.log.length - AROUND_PARTING, 0))
        if 0 <= one.log.length - start <= LARGEST_END:
            yield Range(root / one.log.path, start, one.log.length - start)
