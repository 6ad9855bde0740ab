"""Find the first offset at which two logs hold different content, in the range that both hold.

Replicas copy batches byte for byte, so equal (base offset, leader epoch, length, crc) is equal content; whole buckets of offsets are compared by
their digests first, and batches are read only where digests differ. Below the cleaner's progress, and in logs of magic 0 and 1, batches may
differ while the records do not: there the records decide.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from kforensics.damage import Absent, Span
from kforensics.evidence.model import BUCKET_OFFSETS, BatchReader, Citation, Replica
from kforensics.formats.log.batch_table import CODEC_MASK, DELETE_HORIZON_BIT, TIMESTAMP_TYPE_BIT, BatchTable
from kforensics.formats.log.records import Record
from kforensics.protocol.epochs import epoch_at
from kforensics.reconcile.logs.loaded_log import LoadedLog, are_loaded_alike
from kforensics.units import OffsetRange

_CHUNK_BUCKETS = 16

_SAME_BATCH = ("base_offset", "last_offset", "crc", "length", "magic")
"""The parts of two batches that are equal where they hold the same records: the checksum covers all but base offset, length and leader epoch."""


def common_range(one: LoadedLog, other: LoadedLog) -> OffsetRange | None:
    """Return the offsets that both logs hold on local disk, or None if the ranges do not overlap."""
    first = max(one.content_start_offset, other.content_start_offset)
    last = min(one.log_end_offset, other.log_end_offset) - 1
    return OffsetRange(first, last) if first <= last else None


def same_batches_until(one: LoadedLog, other: LoadedLog, start: int, reader: BatchReader) -> int:
    """Return the offset up to which two logs go on with the same batches from an offset on, leader epochs aside."""
    last = min(one.log_end_offset, other.log_end_offset) - 1
    if start > last:
        return start
    until = start
    for mine, its in zip(
        reader.batches(one.replica, start, last), reader.batches(other.replica, start, last), strict=False
    ):
        if mine["base_offset"] != until or any(mine[name] != its[name] for name in _SAME_BATCH):
            break
        until = int(mine["last_offset"]) + 1
    return until


def same_batches_from(one: LoadedLog, other: LoadedLog, start: int, reader: BatchReader) -> int:
    """Return the offset from which on two logs hold the same batches up to the end of the shorter one, leader epochs aside; that end where their last batches differ."""
    end = min(one.log_end_offset, other.log_end_offset)
    if start >= end:
        return end
    mine, its = (reader.batches(view.replica, start, end - 1)[::-1] for view in (one, other))
    since = end
    for left, right in zip(mine, its, strict=False):
        if left["last_offset"] != since - 1 or any(left[name] != right[name] for name in _SAME_BATCH):
            break
        since = int(left["base_offset"])
    return max(since, start)


def suspect_ranges(one: LoadedLog, other: LoadedLog, common: OffsetRange) -> Iterator[OffsetRange]:
    """Yield runs of offsets, of bounded size, whose digests do not prove them equal."""
    left, right = one.digests, other.digests
    # numpy's own union loads its masked arrays, which takes 10 ms.
    buckets = {*left["bucket"].tolist(), *right["bucket"].tolist()}
    first, last = common.first // BUCKET_OFFSETS, common.last // BUCKET_OFFSETS
    run: list[int] = []
    for bucket in sorted(one for one in buckets if first <= one <= last):
        if _same_digest(left, right, bucket):
            continue
        if run and (bucket != run[-1] + 1 or len(run) >= _CHUNK_BUCKETS):
            yield _clip(run, common)
            run = []
        run.append(bucket)
    if run:
        yield _clip(run, common)


def _same_digest(left: np.ndarray, right: np.ndarray, bucket: int) -> bool:
    here, there = np.searchsorted(left["bucket"], bucket), np.searchsorted(right["bucket"], bucket)
    if here >= len(left) or there >= len(right):
        return False
    mine, its = left[here], right[there]
    return all(mine[name] == its[name] for name in ("bucket", "low", "high", "batches"))


def _clip(buckets: list[int], common: OffsetRange) -> OffsetRange:
    return OffsetRange(
        max(common.first, buckets[0] * BUCKET_OFFSETS), min(common.last, (buckets[-1] + 1) * BUCKET_OFFSETS - 1)
    )


_KEY_COLUMNS = ("base_offset", "partition_leader_epoch", "length", "crc")
_MOST_MISSING = 200_000
_WIDER = 16
"""The factor by which more is read where the last batches of two logs differ."""

DivergenceKind = Literal["epoch", "content", "record"]


class Divergence(NamedTuple):
    """The first difference of two logs: its offset, its kind, and the bytes of both logs that show it."""

    offset: int
    kind: DivergenceKind
    detail: str
    citations: tuple[Citation, ...]
    is_open: bool = False
    """Compaction may explain it: no input holds what would show it, and none shows that it is not so."""


class EndsDoNotDecideError(Exception):
    """The batches where two logs part contradict the epochs that are known of what was not read: all of both has to be read."""

    def __init__(self, *replicas: Replica) -> None:
        super().__init__(*(replica.path for replica in replicas))


def first_divergence(
    one: LoadedLog,
    other: LoadedLog,
    reader: BatchReader,
    undecided: list[OffsetRange] | None = None,
    *,
    witnesses: Sequence[LoadedLog] = (),
    start: int = 0,
) -> Divergence | None:
    """Find the first offset in the common range where the content differs; None if all of it is equal.

    Args:
        undecided: takes up the runs before it of which what is at hand proves neither.
        witnesses: other logs of the partition, which may hold what superseded a record that a cleaner removed.

    Returns:
        The first that is proven, else the first that is open.
    """
    common = common_range(one, other)
    if common is None or start > common.last:
        return None
    common = OffsetRange(max(common.first, start), common.last)
    if common.first < max(one.replica.unread_below, other.replica.unread_below):
        return _divergence_by_ends(one, other, common, reader, undecided, witnesses)
    if one.digest_bytes == other.digest_bytes:  # so it is of nearly all
        return None
    question: Divergence | None = None
    read_from = max(one.replica.batches_from, other.replica.batches_from)
    for suspect in split_at(suspect_ranges(one, other, common), read_from):
        if suspect.first >= read_from:
            found = _compare_range(one, other, suspect, reader, undecided, witnesses)
        else:
            for view in (one, other):
                _rows(view, suspect, reader)  # asked for so that the reader notes what it does not have
            found = _by_digests(one, other, suspect, common)
            if found is None and undecided is not None:
                undecided.append(suspect)
        if found is not None and not found.is_open:
            return found
        question = question or found
    return question


def divergence_past_damage(
    one: LoadedLog,
    other: LoadedLog,
    found: Divergence | None,
    reader: BatchReader,
    *,
    witnesses: Sequence[LoadedLog] = (),
) -> Divergence | None:
    """Return the first difference of two logs that is not damage of either, nor a missing segment: beside these both can hold the same records."""
    while found is not None and (damaged := damage_at(found.offset, one, other)) is not None:
        found = first_divergence(one, other, reader, witnesses=witnesses, start=damaged.last + 1)
    return found


def damage_at(offset: int, *views: LoadedLog) -> OffsetRange | None:
    """Return the damaged or missing range of any of the logs that an offset lies in, or None."""
    ranges = (one for view in views for one in view.lost_ranges)
    return next((one for one in ranges if one.first <= offset <= one.last), None)


def agreed_until(one: LoadedLog, other: LoadedLog, parted_at: int | None) -> int:
    """Return the exclusive offset up to which both logs hold the same; 0 if they have no offset in common, since nothing shows it then."""
    if common_range(one, other) is None:
        return 0
    return min(one.log_end_offset, other.log_end_offset) if parted_at is None else parted_at


def _by_digests(one: LoadedLog, other: LoadedLog, suspect: OffsetRange, common: OffsetRange) -> Divergence | None:
    """Find a difference by epochs and digests alone, without the bytes of a log: an offset of another epoch, or a bucket that both logs hold completely."""
    parted = _first_other_epoch(one, other, suspect)
    if parted is not None:
        detail = f"leader epoch {_epoch_words(one, parted)} here, {_epoch_words(other, parted)} there"
        return Divergence(offset=parted, kind="epoch", detail=detail, citations=())
    if min(_magic(one), _magic(other)) < 2:
        return None
    for bucket in range(suspect.first // BUCKET_OFFSETS, suspect.last // BUCKET_OFFSETS + 1):
        first, last = bucket * BUCKET_OFFSETS, (bucket + 1) * BUCKET_OFFSETS - 1
        is_whole = common.first <= first and last <= common.last
        if is_whole and first >= max(one.cleaned_below, other.cleaned_below):
            detail = f"the digests of offsets {first} to {last} differ; the bytes are not at hand here: drill on the node itself"
            return Divergence(offset=first, kind="content", detail=detail, citations=())
    return None


def _first_other_epoch(one: LoadedLog, other: LoadedLog, within: OffsetRange) -> int | None:
    starts = {entry.start_offset for view in (one, other) for entry in view.batch_epochs}
    offsets = sorted({within.first, *(start for start in starts if within.first < start <= within.last)})
    return next((o for o in offsets if epoch_at(one.batch_epochs, o) != epoch_at(other.batch_epochs, o)), None)


def _epoch_words(view: LoadedLog, offset: int) -> str:
    epoch = epoch_at(view.batch_epochs, offset)
    return "none" if isinstance(epoch, Absent) else str(epoch)


def _magic(view: LoadedLog) -> int:
    return 2 if isinstance(view.oldest_magic, Absent) else view.oldest_magic


def _divergence_by_ends(
    one: LoadedLog,
    other: LoadedLog,
    common: OffsetRange,
    reader: BatchReader,
    undecided: list[OffsetRange] | None,
    witnesses: Sequence[LoadedLog],
) -> Divergence | None:
    """Find the first difference by leader epochs, and by the batches around where they part, or before the end of the shorter log.

    Replicas that hold one batch of an epoch hold the same below it, unless content was changed or lost in one of them: what lies below the last batch
    before that place that is in both logs is taken up as undecided.
    """
    if undecided is None and are_loaded_alike((one, other)) and _is_end_at_hand(one):
        return None  # as of nearly all
    parted = _first_other_epoch(one, other, common)
    edge = common.last + 1 if parted is None else parted
    first = _last_shared(one, other, OffsetRange(common.first, edge - 1), reader) if edge > common.first else edge
    if undecided is not None and first > common.first:
        undecided.append(OffsetRange(common.first, first - 1))
    by_record_below = max(one.cleaned_below, other.cleaned_below)
    last = common.last if edge < by_record_below else min(edge, common.last)
    found = _compare_range(one, other, OffsetRange(first, last), reader, undecided, witnesses)
    if found is None and parted is not None and parted >= by_record_below:
        raise EndsDoNotDecideError(one.replica, other.replica)
    return found


def _is_end_at_hand(view: LoadedLog) -> bool:
    """Whether the last batch of a log was read and kept."""
    last = next((one for one in reversed(view.segments) if one.batch_count), None)
    return last is not None and not isinstance(last.batches, Absent) and last.last_offset == view.log_end_offset - 1


def _last_shared(one: LoadedLog, other: LoadedLog, below: OffsetRange, reader: BatchReader) -> int:
    """Return the base offset of a batch near the end of a range from which on both logs hold the same up to its end, the first offset where none is found."""
    length = 1
    while length < below.count:
        wanted = OffsetRange(below.last - length + 1, below.last)
        mine, its = (reader.batches(view.replica, *wanted)[:1] for view in (one, other))
        is_inside = len(mine) and below.first <= mine["base_offset"][0] and mine["last_offset"][0] <= below.last
        if is_inside and _first_mismatch(mine, its) is None:
            return int(mine["base_offset"][0])
        length *= _WIDER
    return below.first


def _compare_range(
    one: LoadedLog,
    other: LoadedLog,
    common: OffsetRange,
    reader: BatchReader,
    undecided: list[OffsetRange] | None,
    witnesses: Sequence[LoadedLog],
) -> Divergence | None:
    has_records = one.replica.has_records and other.replica.has_records
    by_record_below = max(one.cleaned_below, other.cleaned_below)
    start = common.first
    question: Divergence | None = None
    while start <= common.last:
        left = _rows(one, OffsetRange(start, common.last), reader)
        right = _rows(other, OffsetRange(start, common.last), reader)
        at = _first_mismatch(left, right)
        if at is None:
            return question
        mine = left[at] if at < len(left) else None
        its = right[at] if at < len(right) else None
        offset = min(int(row["base_offset"]) for row in (mine, its) if row is not None)
        last = _last_to_compare_by_record(mine, its, offset, common.last, by_record_below)
        if last is None:
            return _batch_divergence(one, other, offset, mine, its)
        by_record = OffsetRange(max(offset, start), last)
        if not has_records and (by_times := _by_first_times(one, other, mine, its)) is not None:
            return by_times
        if not has_records:
            for view in (one, other):
                # As above: the reader notes what a capture does not hold.
                next(reader.records(view.replica, *by_record), None)
        found = _compare_records(one, other, by_record, reader, witnesses) if has_records else None
        if found is not None and not found.is_open:
            return found
        question = question or found
        if not has_records and undecided is not None:
            undecided.append(by_record)
        start = last + 1
    return question


def _last_to_compare_by_record(
    mine: np.void | None, its: np.void | None, offset: int, end: int, by_record_below: int
) -> int | None:
    """Return how records decide if batches differ, or None if the batches decide."""
    rows = [row for row in (mine, its) if row is not None]
    if any(row["magic"] < 2 for row in rows):
        return end
    if offset < by_record_below:
        return min(end, by_record_below - 1)
    codecs = {int(row["attributes"]) & CODEC_MASK for row in rows}
    epochs = {int(row["partition_leader_epoch"]) for row in rows}
    bases = {int(row["base_offset"]) for row in rows}
    if len(rows) == 2 and (len(codecs), len(epochs), len(bases)) == (2, 1, 1):
        return min(end, max(int(row["last_offset"]) for row in rows))
    return None


def _by_first_times(one: LoadedLog, other: LoadedLog, mine: np.void | None, its: np.void | None) -> Divergence | None:
    """Return what the headers of two whole batches prove of their first records, whose times they have: that these differ."""
    if mine is None or its is None or min(int(mine["magic"]), int(its["magic"])) < 2:
        return None
    offset = int(mine["base_offset"])
    is_whole = all(row["count"] == row["last_offset"] - row["base_offset"] + 1 for row in (mine, its))
    times = [_first_time(row) for row in (mine, its)]
    if offset != int(its["base_offset"]) or not is_whole or None in times or times[0] == times[1]:
        return None
    citations = tuple(
        Citation(
            input=view.replica.input,
            path=view.replica.segments[int(row["segment"])].path,
            span=Span(int(row["position"]), 0),
        )
        for view, row in ((one, mine), (other, its))
    )
    return Divergence(
        offset=offset, kind="record", detail=f"the record at offset {offset} differs", citations=citations
    )


def _first_time(row: np.void) -> int | None:
    """Return the time of a batch's first record, none where its header does not say it."""
    attributes = int(row["attributes"])
    if attributes & TIMESTAMP_TYPE_BIT:
        time = int(row["max_timestamp"])
    elif attributes & DELETE_HORIZON_BIT:
        return None
    else:
        time = int(row["base_timestamp"])
    return time if time >= 0 else None


def _rows(view: LoadedLog, offsets: OffsetRange, reader: BatchReader) -> BatchTable:
    rows = reader.batches(view.replica, offsets.first, offsets.last)
    return rows[
        (rows["base_offset"] >= offsets.first)
        & (rows["base_offset"] <= offsets.last)
        & (rows["last_offset"] < view.log_end_offset)
    ]


def _first_mismatch(left: BatchTable, right: BatchTable) -> int | None:
    shared = min(len(left), len(right))
    differs = np.zeros(shared, dtype=bool)
    for name in _KEY_COLUMNS:
        differs |= left[name][:shared] != right[name][:shared]
    if differs.any():
        return int(np.argmax(differs))
    return None if len(left) == len(right) else shared


def _batch_divergence(
    one: LoadedLog, other: LoadedLog, offset: int, mine: np.void | None, its: np.void | None
) -> Divergence:
    sides = ((one, mine), (other, its))
    holders = [(view, row) for view, row in sides if row is not None and int(row["base_offset"]) == offset]
    citations = tuple(_cite_batch(view, row) for view, row in holders)
    if len(holders) == 2:
        first, second = holders[0][1], holders[1][1]
        if first["partition_leader_epoch"] != second["partition_leader_epoch"]:
            words = f"leader epoch {first['partition_leader_epoch']} here, {second['partition_leader_epoch']} there"
            return Divergence(offset=offset, kind="epoch", detail=words, citations=citations)
        words = f"batch of {first['length']} bytes, crc {first['crc']:08x} here; {second['length']} bytes, crc {second['crc']:08x} there"
        return Divergence(offset=offset, kind="content", detail=words, citations=citations)
    lacking = next(view for view, row in sides if not any(view is holder for holder, _ in holders))
    lost = next((d for d in lacking.damaged if d.offsets.first <= offset <= d.offsets.last), None)
    if lost is not None:
        detail = f"the batch at offset {offset} is damaged in {lacking.replica.path}"
        return Divergence(offset=offset, kind="content", detail=detail, citations=(*citations, lost.citation))
    detail = f"{lacking.replica.path} holds no batch at offset {offset}"
    return Divergence(offset=offset, kind="content", detail=detail, citations=citations)


def _cite_batch(view: LoadedLog, row: np.void) -> Citation:
    segment = view.replica.segments[int(row["segment"])]
    return Citation(input=view.replica.input, path=segment.path, span=Span(int(row["position"]), int(row["length"])))


def _compare_records(
    one: LoadedLog, other: LoadedLog, offsets: OffsetRange, reader: BatchReader, witnesses: Sequence[LoadedLog]
) -> Divergence | None:
    question: Divergence | None = None
    missing: list[tuple[int, LoadedLog, Record]] = []
    for offset, mine, its in _paired(_records(one, offsets, reader), _records(other, offsets, reader)):
        if mine is not None and its is not None:
            if _same_record(mine, its):
                continue
            detail = f"the record at offset {offset} differs"
            return _earliest(
                _unexplained(missing, one, other, reader, witnesses),
                Divergence(
                    offset=offset,
                    kind="record",
                    detail=detail,
                    citations=(_cite_record(one, mine), _cite_record(other, its)),
                ),
            )
        holder, record = (one, mine) if mine is not None else (other, its)
        assert record is not None
        missing.append((offset, holder, record))
        if len(missing) >= _MOST_MISSING:
            found = _unexplained(missing, one, other, reader, witnesses)
            if found is not None and not found.is_open:
                return found
            question = question or found
            missing.clear()
    found = _unexplained(missing, one, other, reader, witnesses)
    return found if question is None or (found is not None and not found.is_open) else question


def _earliest(one: Divergence | None, other: Divergence) -> Divergence:
    return one if one is not None and (one.is_open, one.offset) < (other.is_open, other.offset) else other


def _records(view: LoadedLog, offsets: OffsetRange, reader: BatchReader) -> Iterator[Record]:
    """Yield records in file order, only the first of each offset, and none whose offset is lower than the one before."""
    highest = offsets.first - 1
    for record in reader.records(view.replica, offsets.first, offsets.last):
        if record.offset > highest and record.offset < view.log_end_offset:
            highest = record.offset
            yield record


def _paired(left: Iterator[Record], right: Iterator[Record]) -> Iterator[tuple[int, Record | None, Record | None]]:
    mine, its = next(left, None), next(right, None)
    while mine is not None or its is not None:
        if its is None or (mine is not None and mine.offset < its.offset):
            assert mine is not None
            yield mine.offset, mine, None
            mine = next(left, None)
        elif mine is None or its.offset < mine.offset:
            yield its.offset, None, its
            its = next(right, None)
        else:
            yield mine.offset, mine, its
            mine, its = next(left, None), next(right, None)


def _same_record(mine: Record, its: Record) -> bool:
    if mine.key != its.key or mine.value != its.value:
        return False
    # A conversion to magic 0 drops the timestamp, one to magic 1 the headers.
    if mine.magic >= 1 and its.magic >= 1 and mine.timestamp_ms != its.timestamp_ms:
        return False
    return not (mine.magic >= 2 and its.magic >= 2 and mine.headers != its.headers)


def _unexplained(
    missing: list[tuple[int, LoadedLog, Record]],
    one: LoadedLog,
    other: LoadedLog,
    reader: BatchReader,
    witnesses: Sequence[LoadedLog],
) -> Divergence | None:
    """Find the first record that one log lacks and whose absence compaction does not explain.

    A cleaner drops a record for a later one of its key, an expired tombstone or marker, and the records of an aborted transaction. What superseded a
    record may be in any log of the partition; below the cleaner's progress a record without a successor is a question, for its successor can
    have been removed as well. A cleaner drops a tombstone only after what it deletes: a log that has that and not the tombstone never had it, as a
    replica that was away for longer than `delete.retention.ms`.
    """
    first: Divergence | None = None
    for holder, lacking in ((one, other), (other, one)):
        mine = [(offset, record) for offset, view, record in missing if view is holder]
        if not mine:
            continue
        cleaned = lacking.cleaned_below
        candidates = [
            (o, r) for o, r in mine if o < cleaned and not r.is_control and r.value is not None and r.key is not None
        ]
        others = [view for view in witnesses if view is not holder and view is not lacking]
        beyond = [(o, r) for o, r in mine if o >= cleaned]
        undeleted = _undeleted([(o, r) for o, r in mine if o < cleaned and r.value is None], lacking, reader)
        if undeleted is not None:
            (offset, record), kept = undeleted
            detail = (
                f"{lacking.replica.path} holds the record at offset {kept.offset} of the key that the tombstone at offset {offset} deletes,"
                " and lacks the tombstone: who reads it there has a key that is deleted elsewhere"
            )
            cited = (_cite_record(holder, record), _cite_record(lacking, kept))
            first = _earliest(first, Divergence(offset=offset, kind="record", detail=detail, citations=cited))
        for items, is_open in (
            (beyond, False),
            (_not_superseded(candidates, (holder, lacking, *others), reader), True),
        ):
            if not items:
                continue
            offset, record = min(items, key=lambda item: item[0])
            detail = f"{lacking.replica.path} holds no record at offset {offset}, and none that supersedes it"
            if is_open:
                detail += "; its log is compacted there, and no input holds a later record of that key"
            found = Divergence(
                offset=offset, kind="record", detail=detail, citations=(_cite_record(holder, record),), is_open=is_open
            )
            first = _earliest(first, found)
    return first


def _undeleted(
    tombstones: list[tuple[int, Record]], lacking: LoadedLog, reader: BatchReader
) -> tuple[tuple[int, Record], Record] | None:
    """Return the first of the tombstones that a log lacks while an earlier record is the last that it holds of the key, with that record."""
    left: dict[bytes | None, tuple[int, Record]] = {r.key: (o, r) for o, r in tombstones if r.key is not None}
    kept: dict[bytes | None, Record] = {}
    if left:
        for record in reader.records(lacking.replica, lacking.content_start_offset, lacking.log_end_offset - 1):
            found = left.get(record.key)
            if found is None or record.is_control:
                continue
            # What an aborted transaction wrote is of no key: which one was, is not asked here.
            if record.offset > found[0] or record.is_transactional:
                del left[record.key]
                kept.pop(record.key, None)
                if not left:
                    return None
            elif record.value is not None:
                kept[record.key] = record
            else:
                kept.pop(record.key, None)
    shown = [(left[key], record) for key, record in kept.items()]
    return min(shown, key=lambda one: one[0][0], default=None)


def _not_superseded(
    candidates: list[tuple[int, Record]], views: Sequence[LoadedLog], reader: BatchReader
) -> list[tuple[int, Record]]:
    if not candidates:
        return []
    by_key: dict[bytes | None, list[tuple[int, Record]]] = {}
    by_producer: dict[int, list[tuple[int, Record]]] = {}
    for offset, record in candidates:
        by_key.setdefault(record.key, []).append((offset, record))
        if record.is_transactional:
            by_producer.setdefault(record.producer_id, []).append((offset, record))
    left = {offset for offset, _ in candidates}
    first = candidates[0][0]
    for at, view in enumerate(views):
        for record in reader.records(view.replica, first, view.log_end_offset - 1):
            if record.is_control:
                ended = by_producer.pop(record.producer_id, []) if at == 0 else []
                if record.key is not None and record.key[2:4] == b"\x00\x00":  # an ABORT marker
                    left.difference_update(offset for offset, _ in ended if offset < record.offset)
            else:
                left.difference_update(offset for offset, _ in by_key.get(record.key, ()) if offset < record.offset)
            if not left:
                return []
    return [(offset, record) for offset, record in candidates if offset in left]


def _cite_record(view: LoadedLog, record: Record) -> Citation:
    segment = max(
        (s for s in view.replica.segments if s.base_offset <= record.offset),
        key=lambda s: s.base_offset,
        default=view.replica.segments[0],
    )
    return Citation(input=view.replica.input, path=segment.path, span=Span(record.batch_position, 0))


def split_at(runs: Iterable[OffsetRange], at: int) -> Iterator[OffsetRange]:
    """Yield the runs, that in which an offset lies in two: below it, and from it on."""
    for run in runs:
        if run.first < at <= run.last:
            yield OffsetRange(run.first, at - 1)
            yield OffsetRange(at, run.last)
        else:
            yield run
