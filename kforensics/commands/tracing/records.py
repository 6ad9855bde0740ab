"""The records that match, each with its copies: from what was held of them, or read again, slice by slice of the offsets, where they are too many."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from kforensics.commands.tracing.scan import Hit, Markers, ScannedReplica, records_with_horizons
from kforensics.damage import Absent, Damage
from kforensics.errors import EvidenceError
from kforensics.evidence.captured.reading import readable_ranges
from kforensics.evidence.content.search import RecordSearch
from kforensics.evidence.model import Segment
from kforensics.evidence.replica.batch_reader import start_position
from kforensics.formats.columns.record_stream import part_of, split_control
from kforensics.formats.log.records import Record
from kforensics.formats.segment.walk import iter_record_chunks
from kforensics.reconcile.trace.found_record import FoundCopy, FoundRecord
from kforensics.source.mapped import open_evidence
from kforensics.units import OffsetRange

SLICE_BYTES = 1 << 20
SLICE_OFFSETS = 8192

Place = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """Reads matching records again, by slices of offsets.

    Args:
        slices: as `slices_of` gives them.
    """

    replicas: tuple[ScannedReplica, ...]
    search: RecordSearch
    slices: tuple[OffsetRange, ...]

    def hits(self, offsets: OffsetRange) -> list[Hit]:
        """Return the copies at some offsets, both ends included; what can't be read any more gives none."""
        return [
            hit
            for one in self.replicas
            for segment in one.files()
            if _touches(segment, offsets)
            for hit in one.hits(segment.path, self._records(one, segment, offsets))
        ]

    def _records(self, one: ScannedReplica, segment: Segment, offsets: OffsetRange) -> Iterator[tuple[Record, int]]:
        root = one.place.state.root
        start = start_position(segment, offsets.first)
        try:
            with open_evidence(root / segment.path if segment.path != "." else root) as file:
                for span in readable_ranges(file):
                    if span.end <= start:
                        continue
                    end = min(span.end, _end_position(segment, offsets.last))
                    for chunk in iter_record_chunks(file, start=max(span.position, start), end=end):
                        if isinstance(chunk, Damage):
                            continue
                        for part, is_control in split_control(chunk):
                            if is_control:
                                continue
                            rows = self.search.find(part)
                            at = part.offset[rows]
                            rows = rows[(at >= offsets.first) & (at <= offsets.last)]
                            if len(rows):
                                yield from records_with_horizons(part_of(part, rows))
        except EvidenceError:
            return  # that it changed since it was read is a problem already


def slices_of(replicas: Sequence[ScannedReplica]) -> tuple[OffsetRange, ...]:
    """Return ranges of offsets of which each copy holds some thousand records and not much more than a MiB, as far as its batches are known."""
    edges: set[int] = set()
    last = -1
    for one in replicas:
        for segment in one.files():
            if isinstance(segment.last_offset, Absent):
                continue
            last = max(last, segment.last_offset)
            batches = segment.batches
            if isinstance(batches, Absent):
                edges.update((segment.digests["bucket"] * np.int64(65_536)).tolist())
                continue
            pieces = np.maximum(
                (batches["position"] + batches["length"]) // SLICE_BYTES, batches["last_offset"] // SLICE_OFFSETS
            )
            edges.update(batches["base_offset"][np.flatnonzero(np.diff(pieces, prepend=-1) != 0)].tolist())
    ordered = sorted({0, *(edge for edge in edges if 0 < edge <= last), last + 1})
    return tuple(OffsetRange(first, end - 1) for first, end in pairwise(ordered) if end > first)


def _touches(segment: Segment, offsets: OffsetRange) -> bool:
    first, last = segment.first_offset, segment.last_offset
    return (
        not isinstance(first, Absent)
        and not isinstance(last, Absent)
        and first <= offsets.last
        and last >= offsets.first
    )


def _end_position(segment: Segment, last_offset: int) -> int:
    """Return a position behind every batch that touches the offset or one below it."""
    if isinstance(segment.batches, Absent):
        later = segment.digests[segment.digests["bucket"] > last_offset // 65_536]
        return int(later["position"][0]) if len(later) and not segment.damage else segment.length
    touching = segment.batches[segment.batches["base_offset"] <= last_offset]
    return int((touching["position"] + touching["length"]).max()) if len(touching) else segment.length


def grouped(hits: Sequence[Hit], markers: Mapping[Place, Markers]) -> Iterator[FoundRecord]:
    """Yield the distinct records among the hits, by topic id, offset, leader epoch and content."""
    at_offset: dict[int, list[Hit]] = {}
    for hit in hits:
        offset = hit.record.offset
        if offset in at_offset:
            at_offset[offset].append(hit)
        else:
            at_offset[offset] = [hit]
    for offset in sorted(at_offset):
        those = at_offset[offset]
        if len(those) == 1:
            named = those[0].file.replica.topic_id
            yield _found(those, Absent.UNKNOWN if isinstance(named, Absent) else named, markers)
        else:
            yield from _distinct(those, markers)


def _distinct(hits: Sequence[Hit], markers: Mapping[Place, Markers]) -> Iterator[FoundRecord]:
    """Yield the distinct records at one offset."""
    groups: dict[tuple[Any, ...], list[Hit]] = defaultdict(list)
    for hit in hits:
        record, topic_id = hit.record, hit.file.replica.topic_id
        content = (record.timestamp_ms, record.key, record.value, record.headers)
        name = "" if isinstance(topic_id, Absent) else topic_id
        groups[record.offset, record.partition_leader_epoch, name, content].append(hit)
    _join_nameless(groups)
    for key in sorted(groups, key=_by_place):
        yield _found(groups[key], key[2] or Absent.UNKNOWN, markers)


def _found(hits: Sequence[Hit], topic_id: str | Absent, markers: Mapping[Place, Markers]) -> FoundRecord:
    record = hits[0].record
    outcome: bool | Absent | None = Absent.NOT_APPLICABLE
    if record.is_transactional:
        outcome = outcome_of(record, (markers[hit.file.replica.input, hit.file.replica.path] for hit in hits))
    copies = [FoundCopy(file, copy.batch_position, horizon) for file, copy, horizon in hits]
    return FoundRecord(record, topic_id, tuple(copies), outcome)


def _by_place(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return key[:3]


def _join_nameless(groups: dict[tuple[Any, ...], list[Hit]]) -> None:
    """Join copies in directories without a topic id with the record that one with an id holds, where there is one such alone."""
    named: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for key in groups:
        if key[2]:
            named[key[0], key[1], key[3]].append(key)
    for key in [key for key in groups if not key[2]]:
        twins = named.get((key[0], key[1], key[3]), ())
        if len(twins) == 1:
            groups[twins[0]] += groups.pop(key)


def outcome_of(record: Record, markers: Iterable[Markers]) -> bool | Absent | None:
    """Return whether the transaction of a record was aborted, None where no marker follows in any of some logs; absent for records of none."""
    if not record.is_transactional:
        return Absent.NOT_APPLICABLE
    ends = [end for one in markers if (end := one.after(record.producer_id, record.offset)) is not None]
    return min(ends)[1] if ends else None
