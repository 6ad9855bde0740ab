"""A reader of content for the judge of a fleet: from files where they are at hand, else from what a scan carried along."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pd

from kforensics.damage import Absent
from kforensics.evidence.captured.taking import digest_record
from kforensics.evidence.model import BUCKET_OFFSETS, Replica, Segment
from kforensics.evidence.replica.batch_reader import FileBatchReader
from kforensics.fleet.content import content_part
from kforensics.fleet.tables import Tables
from kforensics.formats.log.batch_table import BatchTable, empty_batches
from kforensics.formats.log.records import Record

MOST_KEPT_ROWS = 500_000
"""Batch rows that a reader keeps, of some 90 bytes each."""

_Key = tuple[int, str, int, int]


class FleetBatchReader(FileBatchReader):
    """Batches and records of replicas at hand from their files, of others from the evidence of a scan.

    One partition's replicas are compared in pairs: what was read of a run of buckets is kept for the next pair. Where only digests
    were carried, one row per segment represents its records by their count. Where any replica's records are digests, all are.

    Args:
        roots: where each input really is.
        evidence: of each input, where its evidence is; none where its files are read.
        sources: the key of the log directory of each partition directory, by input and path.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        evidence: Sequence[Tables | None] = (),
        sources: Mapping[tuple[int, str], str] | None = None,
    ) -> None:
        super().__init__(roots)
        self._evidence = evidence
        self._sources = sources or {}
        self._digests_only = any(one is not None for one in evidence)
        self._kept: OrderedDict[_Key, BatchTable] = OrderedDict()
        self._kept_rows = 0

    def batches(self, replica: Replica, first_offset: int, last_offset: int) -> BatchTable:
        """Return the batches that touch the offsets; of a replica of which digests alone are here, one row for each segment.

        Args:
            replica: at hand as files, or as the evidence of a scan.
        """
        tables = self._tables_of(replica)
        if tables is None:
            return super().batches(replica, first_offset, last_offset)
        if not replica.is_at_hand:
            parts = [
                row
                for number, segment in enumerate(replica.segments)
                if (row := _stand_in(number, segment, first_offset, last_offset)) is not None
            ]
            return np.concatenate(parts) if parts else empty_batches()
        first, last = first_offset // BUCKET_OFFSETS, _last_offset(replica, last_offset) // BUCKET_OFFSETS
        key = (replica.input, replica.path, first, last)
        rows = self._known(key)
        if rows is None:
            within = (first * BUCKET_OFFSETS, (last + 1) * BUCKET_OFFSETS - 1)
            rows = self._keep(key, _carried_batches(tables, self._part(replica), replica, *within))
        return rows[(rows["last_offset"] >= first_offset) & (rows["base_offset"] <= last_offset)]

    def records(self, replica: Replica, first_offset: int, last_offset: int) -> Iterator[Record]:
        """Return every record at the offsets; of what was carried, digests of them, or the control records alone.

        Args:
            replica: at hand as files, or as the evidence of a scan.
        """
        tables = self._tables_of(replica)
        if tables is None:
            found = super().records(replica, first_offset, last_offset)
            # Beside captures they are digests already.
            return map(digest_record, found) if self._digests_only and not self._has_captures else found
        if not replica.is_at_hand:
            return iter(())
        if replica.has_records:
            return _carried_records(tables, self._part(replica), replica, first_offset, last_offset)
        return _control_records(tables, self._part(replica), replica, first_offset, last_offset)

    def _tables_of(self, replica: Replica) -> Tables | None:
        return self._evidence[replica.input] if self._evidence else None

    def _part(self, replica: Replica) -> str:
        return content_part(self._sources[replica.input, replica.path], replica.path)

    def _read_rows(self, replica: Replica, segment: Segment, first_offset: int, last_offset: int) -> BatchTable:
        first, last = first_offset // BUCKET_OFFSETS, last_offset // BUCKET_OFFSETS
        if not isinstance(segment.last_offset, Absent):
            last = min(last, segment.last_offset // BUCKET_OFFSETS)
        key = (replica.input, segment.path, max(first, segment.base_offset // BUCKET_OFFSETS), last)
        rows = self._known(key)
        if rows is None:
            within = (first * BUCKET_OFFSETS, (last + 1) * BUCKET_OFFSETS - 1)
            rows = self._keep(key, super()._read_rows(replica, segment, *within))
        return rows

    def _known(self, key: _Key) -> BatchTable | None:
        rows = self._kept.get(key)
        if rows is not None:
            self._kept.move_to_end(key)
        return rows

    def _keep(self, key: _Key, rows: BatchTable) -> BatchTable:
        self._kept[key] = rows
        self._kept_rows += len(rows)
        while self._kept_rows > MOST_KEPT_ROWS and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._kept_rows -= len(oldest)
        return rows


def _last_offset(replica: Replica, wanted: int) -> int:
    ends = [one.last_offset for one in replica.segments if not isinstance(one.last_offset, Absent)]
    return min(wanted, max(ends, default=wanted))


def _stand_in(number: int, segment: Segment, first_offset: int, last_offset: int) -> BatchTable | None:
    if isinstance(segment.first_offset, Absent) or isinstance(segment.last_offset, Absent):
        return None
    first, last = max(first_offset, segment.first_offset), min(last_offset, segment.last_offset)
    if first > last:
        return None
    row = empty_batches(1)
    row["base_offset"], row["last_offset"], row["segment"] = first, last, number
    row["count"] = min(last - first + 1, segment.record_count, np.iinfo(np.int32).max)
    row["magic"], row["crc_valid"], row["producer_id"] = 2, True, -1
    return row


def _in_file_order(content: pa.Table, replica: Replica, position: str) -> tuple[pa.Table, np.ndarray]:
    """Return the rows of the replica's segments, segment by segment, and the number of the segment of each."""
    numbers = {segment.path: number for number, segment in enumerate(replica.segments)}
    segments = np.array([numbers.get(path, -1) for path in content["path"].to_pylist()], dtype=np.int64)
    order = np.lexsort((content[position].to_numpy(), segments))
    order = order[segments[order] >= 0]
    return content.take(pa.array(order)), segments[order]


def _read(tables: Tables, table: str, part: str, first: str, last: str, within: tuple[int, int]) -> pa.Table:
    touches = (pd.field(last) >= within[0]) & (pd.field(first) <= within[1])
    return tables.read_part(table, part, filters=touches)


def _carried_batches(tables: Tables, part: str, replica: Replica, first_offset: int, last_offset: int) -> BatchTable:
    content = _read(tables, "batches", part, "base_offset", "last_offset", (first_offset, last_offset))
    content, segments = _in_file_order(content, replica, "position")
    rows = empty_batches(len(content))
    for name in content.schema.names:
        if name in (rows.dtype.names or ()):
            rows[name] = content[name].to_numpy()
    rows["segment"], rows["crc_valid"] = segments, True
    for name in ("base_timestamp", "max_timestamp", "producer_epoch", "base_sequence"):
        rows[name] = -1
    return rows


def _carried_records(
    tables: Tables, part: str, replica: Replica, first_offset: int, last_offset: int
) -> Iterator[Record]:
    content = _read(tables, "records", part, "offset", "offset", (first_offset, last_offset))
    content, _ = _in_file_order(content, replica, "batch_position")
    for row in content.to_pylist():
        headers = row["headers_digest"]
        yield Record(
            offset=row["offset"],
            timestamp_ms=row["timestamp_ms"],
            key=row["key_digest"],
            value=row["value_digest"],
            headers=() if headers is None else ((headers, None),),
            sequence=-1,
            batch_position=row["batch_position"],
            batch_base_offset=row["batch_base_offset"],
            partition_leader_epoch=-1,
            producer_id=row["producer_id"],
            producer_epoch=-1,
            magic=row["magic"],
            is_transactional=row["is_transactional"],
            is_control=row["is_control"],
        )


def _control_records(
    tables: Tables, part: str, replica: Replica, first_offset: int, last_offset: int
) -> Iterator[Record]:
    content = _read(tables, "batches", part, "base_offset", "last_offset", (first_offset, last_offset))
    content, _ = _in_file_order(content.filter(content["control"].is_valid()), replica, "position")
    for row in content.to_pylist():
        yield Record(
            offset=row["base_offset"],
            timestamp_ms=-1,
            key=b"\0\0" + int(row["control"]).to_bytes(2, "big", signed=True),
            value=None,
            headers=(),
            sequence=-1,
            batch_position=row["position"],
            batch_base_offset=row["base_offset"],
            partition_leader_epoch=row["partition_leader_epoch"],
            producer_id=row["producer_id"],
            producer_epoch=-1,
            magic=row["magic"],
            is_transactional=True,
            is_control=True,
        )
