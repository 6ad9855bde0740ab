"""Records of a span of time by the time indexes: of each segment the batches from the index's position on, of which only those are decoded whose headers leave room for such a record.

An entry of a time index says the largest timestamp up to an offset (`TimeIndex.maybeAppend`), so the lower bound of the span alone is looked up; timestamps need not rise.
A batch's largest timestamp is in its header. Its first one is no lower bound: records may be older than the first of their batch.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kforensics.commands.tracing.scan import (
    LEFT_OVER,
    Hit,
    ScannedPartition,
    ScannedReplica,
    SearchedFile,
    Taker,
    kind_of,
    scanned_replica,
)
from kforensics.damage import Damage
from kforensics.errors import EvidenceError
from kforensics.evidence.content.index_range import find_range
from kforensics.evidence.content.search import RecordSearch
from kforensics.evidence.discovery.partition_dirs import PartitionPlace
from kforensics.evidence.model import Segment
from kforensics.evidence.replica.collect import CollectedReplica, collect_replica
from kforensics.formats.log.batch_table import NEWEST_MAGIC, TIMESTAMP_TYPE_BIT, BatchTable
from kforensics.formats.segment.walk import Level, iter_record_chunks, walk_segment
from kforensics.reconcile.trace.model import CopyKind
from kforensics.source.mapped import EvidenceFile, open_evidence
from kforensics.units import Depth


def search_by_time(
    group: Sequence[PartitionPlace], ranks: Mapping[int, int], search: RecordSearch
) -> ScannedPartition | None:
    """Return the directories of a partition, read at their ends, and the copies that match; None where that is not enough to say all of them.

    It is not where anything is damaged, captured or left over, where segments do not join, where records are of transactions or too many to be held,
    and where the live replicas do not all hold the same of them.
    """
    replicas: list[ScannedReplica] = []
    hits: list[Hit] = []
    for place in group:
        one = _searched(place, ranks, search)
        if one is None:
            return None
        replicas.append(one[0])
        hits += one[1]
    if any(hit.record.is_transactional for hit in hits) or not _agree(replicas, hits):
        return None
    return ScannedPartition(replicas, len(hits), hits)


def _searched(
    place: PartitionPlace, ranks: Mapping[int, int], search: RecordSearch
) -> tuple[ScannedReplica, list[Hit]] | None:
    if not place.state.store.holds_bytes:
        return None
    collected = collect_replica(place, left_over=LEFT_OVER, depth=Depth.TAILS)
    replica = collected.replica
    if collected.problems or replica.damage or replica.deleted_segments:
        return None
    files: dict[str, SearchedFile] = {}
    for segment, behind in zip(replica.segments, [*replica.segments[1:], None], strict=True):
        # A start after an unclean stop rebuilds the indexes from the recovery point on, and all of that was read.
        is_index_sound = replica.clean_shutdown or segment.unread_below > 0
        next_offset = None if behind is None else behind.base_offset
        file = _search_segment(place, segment, search, next_offset, is_index_sound=is_index_sound)
        if file is None:
            return None
        files[segment.path] = file
    segments = tuple(file.segment for file in files.values() if file.segment is not None)
    collected = CollectedReplica(replica=replace(replica, segments=segments), problems=())
    one = scanned_replica(place, collected, kind_of(replica, ranks), files)
    return one, [hit for path, file in files.items() for hit in one.hits(path, file.hits)]


def _search_segment(
    place: PartitionPlace, segment: Segment, search: RecordSearch, next_offset: int | None, *, is_index_sound: bool
) -> SearchedFile | None:
    """Return what a segment gives; None where it has to be read whole."""
    assert search.time_ms is not None
    if segment.damage:
        return None
    out = SearchedFile(segment=segment)
    if not segment.length:
        return out
    taker = Taker(search, out)
    path = place.state.root / segment.path
    try:
        with open_evidence(path) as file:
            from_ms = search.time_ms[0] if is_index_sound else None
            start, _ = find_range(
                file, path, segment.base_offset, from_offset=None, to_offset=None, from_time_ms=from_ms
            )
            end, newest_ms = None, -1
            for window in walk_segment(file, level=Level.CRC, start=start):
                batches = window.batches
                if window.damage or not batches["crc_valid"].all():
                    return None
                if not len(batches):
                    continue
                first = segment.base_offset if end is None and not start else end
                # The offset of a wrapped message set of magic 0 and 1 is that of its last message.
                if (
                    first is not None
                    and int(batches["base_offset"][0]) != first
                    and int(batches["magic"][0]) >= NEWEST_MAGIC
                ):
                    return None
                if (batches["base_offset"][1:] != batches["last_offset"][:-1] + 1).any():
                    return None
                end = int(batches["last_offset"][-1]) + 1
                newest_ms = max(newest_ms, int(batches["max_timestamp"].max()))
                if not _take(file, batches[_may_match(batches, *search.time_ms)], taker):
                    return None
            if end is None or (next_offset is not None and end != next_offset) or out.found > len(out.hits):
                return None
            out.bytes = file.size - start
    except EvidenceError:
        return None
    # What is below the start is older than the span: it makes no difference to records of the span how much.
    known = segment.max_timestamp_ms
    out.segment = replace(segment, max_timestamp_ms=max(newest_ms, known) if isinstance(known, int) else newest_ms)
    out.coverage.runs = list(_runs(segment, end))
    return out


def _may_match(batches: BatchTable, from_ms: int, before_ms: int) -> NDArray[np.bool_]:
    """Which batches may hold a record of a span of time, by their headers; all records of a batch of log-append time have its largest timestamp."""
    newest = batches["max_timestamp"]
    is_log_append = (batches["attributes"] & TIMESTAMP_TYPE_BIT) > 0
    return (newest >= from_ms) & ~(is_log_append & (newest >= before_ms))


def _take(file: EvidenceFile, batches: BatchTable, taker: Taker) -> bool:
    """Take the records of some batches; False where one of them can't be decoded."""
    starts, ends = batches["position"], batches["position"] + batches["length"]
    edges = [0, *(np.flatnonzero(starts[1:] != ends[:-1]) + 1).tolist(), len(batches)]
    for first, behind in pairwise(edges):
        if first == behind:
            continue
        for chunk in iter_record_chunks(file, start=int(starts[first]), end=int(ends[behind - 1])):
            if isinstance(chunk, Damage):
                return False
            taker.take(chunk)
    return True


def _runs(segment: Segment, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the offsets of a segment by leader epoch."""
    first = segment.base_offset
    epochs = [(max(one.start_offset, first), one.leader_epoch) for one in segment.epochs]
    if not epochs or epochs[0][0] > first:
        epochs = [(first, -1), *epochs]
    for (start, epoch), (behind, _) in pairwise([*epochs, (end, -1)]):
        if behind > start:
            yield start, behind - 1, epoch


def _agree(replicas: Sequence[ScannedReplica], hits: Sequence[Hit]) -> bool:
    """Whether each live replica holds the same at each offset that is found and that its log has."""
    live = [one for one in replicas if one.kind is CopyKind.LIVE]
    held: dict[tuple[int, str], dict[int, tuple[object, ...]]] = {
        (one.replica.input, one.replica.path): {} for one in live
    }
    for hit in hits:
        if hit.file.kind is CopyKind.LIVE:
            record = hit.record
            content = (record.partition_leader_epoch, record.timestamp_ms, record.key, record.value, record.headers)
            held[hit.file.replica.input, hit.file.replica.path][record.offset] = content
    found = {offset: content for those in held.values() for offset, content in those.items()}
    offsets = {hit.record.offset for hit in hits}
    if offsets - found.keys():
        return False
    for one in live:
        own = held[one.replica.input, one.replica.path]
        first, last = one.coverage.runs[0][0] if one.coverage.runs else 0, one.log.log_end_offset
        if any(first <= offset < last and own.get(offset) != content for offset, content in found.items()):
            return False
    return True
