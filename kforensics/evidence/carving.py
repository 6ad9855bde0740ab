"""Disk images read without their file system: the batches that lie in them, as chains of batches that lay in one file.

Batches that touch each other inside of a block of the file system were written to one file. At the boundary of a block another file may begin: there the chain
continues only where the next offset follows the last one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent
from kforensics.evidence.model import BUCKET_OFFSETS, BatchReader, Replica, Segment
from kforensics.evidence.replica.segments import add_digests, digest_batches
from kforensics.formats.log.batch_table import CODEC_MASK, CONTROL_BIT, BatchTable, empty_batches
from kforensics.formats.log.records import Record
from kforensics.formats.primitives.numbers import distinct
from kforensics.formats.segment.resync import carve_batches
from kforensics.formats.segment.walk import Level, iter_records, walk_segment
from kforensics.source.mapped import EvidenceFile, data_extents, open_image
from kforensics.units import EpochEntry

BLOCK_LENGTH = 512
"""The smallest block of a file system or disk: files begin at its multiples."""
MOST_SAMPLES = 64
"""Batches of a chain whose identity is kept."""
_DIGESTS_AT_ONCE = 64


@dataclass(slots=True)
class Chain:
    """Batches that lie one behind the other in one file of an image."""

    image: int
    """The index of the image."""
    start: int
    end: int
    """Position of the first byte, and behind the last one."""
    first_offset: int
    last_offset: int
    first_epoch: int
    last_epoch: int
    first_producer: tuple[int, int, int]
    """Producer, epoch and sequence of the first data batch; -1 for none."""
    last_producer: tuple[int, int, int]
    """Producer, epoch and the sequence that follows the last data batch."""
    first_timestamp_ms: int
    last_timestamp_ms: int
    batches: int = 0
    records: int = 0
    magics: frozenset[int] = frozenset()
    epochs: list[EpochEntry] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    digests: list[NDArray[np.void]] = field(default_factory=list)
    _stride: int = 1

    def add(self, rows: BatchTable) -> None:
        """Add the batches behind those that are in it already."""
        hashes = identity_hashes(rows)
        wanted = np.flatnonzero((np.arange(len(rows)) + self.batches) % self._stride == 0)
        self.samples += hashes[wanted].tolist()
        while len(self.samples) > MOST_SAMPLES:
            self.samples = self.samples[::2]
            self._stride *= 2
        self.batches += len(rows)
        data = rows[~((rows["magic"] == 2) & (rows["attributes"] & CONTROL_BIT > 0))]
        self.records += int(data["count"].sum())
        self.magics |= frozenset(distinct(rows["magic"]).tolist())
        self.end = int(rows["position"][-1]) + int(rows["length"][-1])
        self.last_offset = int(rows["last_offset"][-1])
        self.last_epoch = int(rows["partition_leader_epoch"][-1])
        self.last_timestamp_ms = max(self.last_timestamp_ms, int(rows["max_timestamp"].max()))
        for at in (0, *(np.flatnonzero(np.diff(rows["partition_leader_epoch"])) + 1).tolist()):
            epoch = int(rows["partition_leader_epoch"][at])
            if epoch >= 0 and (not self.epochs or self.epochs[-1].leader_epoch != epoch):
                self.epochs.append(EpochEntry(epoch, int(rows["base_offset"][at])))
        if len(data):
            last = data[-1]
            follows = int(last["base_sequence"]) + int(last["last_offset"]) - int(last["base_offset"]) + 1
            self.last_producer = (int(last["producer_id"]), int(last["producer_epoch"]), follows)
            if self.first_producer[0] < 0:
                first = data[0]
                self.first_producer = (
                    int(first["producer_id"]),
                    int(first["producer_epoch"]),
                    int(first["base_sequence"]),
                )
        self.digests.append(digest_batches(rows))
        if len(self.digests) > _DIGESTS_AT_ONCE:
            self.digests = [add_digests(self.digests)]

    def segment(self, path: str) -> Segment:
        """Return the chain as what it was a part of: a segment that begins at its first offset."""
        return Segment(
            path=path,
            base_offset=self.first_offset,
            length=self.end,
            valid_length=self.end,
            recovered_end_offset=self.last_offset + 1,
            first_offset=self.first_offset,
            last_offset=self.last_offset,
            batch_count=self.batches,
            record_count=self.records,
            epochs=tuple(self.epochs),
            magics=self.magics,
            max_timestamp_ms=self.last_timestamp_ms if self.last_timestamp_ms >= 0 else Absent.NOT_APPLICABLE,
            digests=add_digests(self.digests),
            batches=Absent.NOT_WRITTEN,
        )


def carve_image(path: Path, image: int) -> tuple[int, list[Chain]]:
    """Return the size of a disk image or block device, and every chain of batches in it; memory grows with the pieces of files, not with their length."""
    chains: list[Chain] = []
    with open_image(path) as file:
        for start, end in data_extents(file):
            for table in carve_batches(file, start, end):
                for rows in _pieces(table):
                    if chains and _continues(chains[-1], rows):
                        chains[-1].add(rows)
                    else:
                        chains.append(_chain(image, rows))
        return file.size, chains


def _pieces(table: BatchTable) -> Iterator[BatchTable]:
    """Yield a chain by position, split where another file begins."""
    follows = _follow(table[:-1], table[1:])
    edges = [0, *(np.flatnonzero(~follows) + 1).tolist(), len(table)]
    for first, end in pairwise(edges):
        yield table[first:end]


def _follow(before: BatchTable, after: BatchTable) -> NDArray[np.bool_]:
    rises = (after["base_offset"] > before["last_offset"]) & (
        after["partition_leader_epoch"] >= before["partition_leader_epoch"]
    )
    # A wrapper of magic 0 or 1 has the offset of its last message.
    wrapped = (after["magic"] < 2) & (after["attributes"] & CODEC_MASK > 0)
    near = (after["base_offset"] == before["last_offset"] + 1) | wrapped
    found: NDArray[np.bool_] = rises & (near | (after["position"] % BLOCK_LENGTH != 0))
    return found


def _continues(chain: Chain, rows: BatchTable) -> bool:
    first = rows[0]
    if int(first["position"]) != chain.end or int(first["base_offset"]) <= chain.last_offset:
        return False
    if int(first["partition_leader_epoch"]) < chain.last_epoch:
        return False
    wrapped = first["magic"] < 2 and first["attributes"] & CODEC_MASK > 0
    return bool(wrapped or chain.end % BLOCK_LENGTH or int(first["base_offset"]) == chain.last_offset + 1)


def _chain(image: int, rows: BatchTable) -> Chain:
    first = rows[0]
    chain = Chain(
        image=image,
        start=int(first["position"]),
        end=0,
        first_offset=int(first["base_offset"]),
        last_offset=0,
        first_epoch=int(first["partition_leader_epoch"]),
        last_epoch=0,
        first_producer=(-1, -1, -1),
        last_producer=(-1, -1, -1),
        first_timestamp_ms=int(first["max_timestamp"]),
        last_timestamp_ms=-1,
    )
    chain.add(rows)
    return chain


_MULTIPLIERS = tuple(
    np.uint64(one) for one in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93)
)


def identity_hashes(rows: BatchTable) -> NDArray[np.uint64]:
    """Return 64 bits over offsets, length and checksum of each batch; of a wrapper of magic 0 or 1 over its last offset alone, which its header has."""
    out = np.zeros(len(rows), dtype=np.uint64)
    first = np.where(rows["magic"] == 2, rows["base_offset"], rows["last_offset"])
    with np.errstate(over="ignore"):
        columns = (first, rows["last_offset"], rows["crc"], rows["length"])
        for column, factor in zip(columns, _MULTIPLIERS, strict=True):
            out ^= column.astype(np.uint64) * factor
            out ^= out >> np.uint64(29)
            out *= _MULTIPLIERS[0]
    return out


class CarvedReader:
    """Rows of carved chains out of their images, and of everything else by another reader.

    Args:
        images: where each image is, by the index of its input.
        starts: for each carved replica, by its path, the position at which each of its chains begins.
    """

    def __init__(self, otherwise: BatchReader, images: dict[int, Path], starts: dict[str, tuple[int, ...]]) -> None:
        self._otherwise = otherwise
        self._images = images
        self._starts = starts
        self._open: dict[int, EvidenceFile] = {}

    def batches(self, replica: Replica, first_offset: int, last_offset: int) -> BatchTable:
        """Return every sound batch that touches the offsets; `segment` indexes `replica.segments`."""
        if replica.input not in self._images:
            return self._otherwise.batches(replica, first_offset, last_offset)
        parts = []
        for at, (segment, start) in enumerate(zip(replica.segments, self._starts[replica.path], strict=True)):
            if isinstance(segment.first_offset, int) and isinstance(segment.last_offset, int):
                if segment.first_offset > last_offset or segment.last_offset < first_offset:
                    continue
                rows = self._rows(replica.input, segment, start, first_offset, last_offset)
                rows["segment"] = at
                parts.append(rows)
        return np.concatenate(parts) if parts else empty_batches()

    def _rows(self, image: int, segment: Segment, start: int, first: int, last: int) -> BatchTable:
        earlier = segment.digests[segment.digests["bucket"] < first // BUCKET_OFFSETS]
        begin = int(earlier["position"][-1]) if len(earlier) else start
        parts = []
        for window in walk_segment(self._file(image), level=Level.CRC, start=begin, end=segment.length):
            rows = window.batches
            kept = rows["crc_valid"] & (rows["last_offset"] >= first) & (rows["base_offset"] <= last)
            parts.append(rows[kept])
            if len(rows) and int(rows["base_offset"][-1]) > last:
                break
        return np.concatenate(parts).copy() if parts else empty_batches()

    def records(self, replica: Replica, first_offset: int, last_offset: int) -> Iterator[Record]:
        """Yield every record at the offsets."""
        if replica.input not in self._images:
            yield from self._otherwise.records(replica, first_offset, last_offset)
            return
        for segment, start in zip(replica.segments, self._starts[replica.path], strict=True):
            for record in iter_records(self._file(replica.input), start=start, end=segment.length):
                if isinstance(record, Record) and first_offset <= record.offset <= last_offset:
                    yield record

    def _file(self, image: int) -> EvidenceFile:
        if image not in self._open:
            self._open[image] = open_image(self._images[image])
        return self._open[image]

    def close(self) -> None:
        """Close the images."""
        for file in self._open.values():
            file.close()
        self._open.clear()
