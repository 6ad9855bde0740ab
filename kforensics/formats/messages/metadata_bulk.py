"""Sort records of the metadata log, many at once, by how they are decoded.

    value of a PartitionRecord       := frame_version (1), api_key (3), version, int32 partition, uuid topic, other fields
    value of a PartitionChangeRecord := the same with api_key 5

Nearly every record of a large log is one of these, or a NoOpRecord: `01 14 00 00`. A record of a partition is split in
two: the first 20 bytes name the partition, and the rest holds its other fields. The rest is the same for many partitions
and repeats, so that it need not be decoded each time. Every other record, and one that is framed in any other
way, is left to the exact reader, `metadata.py`, which has the fields of every record by version.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.columns.record_stream import RecordChunk
from kforensics.formats.log.batch_table import CONTROL_BIT
from kforensics.formats.log.records import slice_nullable
from kforensics.formats.messages.frame import FRAME_VERSION
from kforensics.formats.messages.metadata import NO_OP, PARTITION, PARTITION_CHANGE

FRAME_LENGTH = 3
SUBJECT_LENGTH = 20
"""The bytes that name the partition: its number and the topic id."""

_WHAT = FRAME_LENGTH + SUBJECT_LENGTH
_LONG_VARINT = 0x80
_NO_OP_LENGTH = FRAME_LENGTH + 1


class PartitionRecords(NamedTuple):
    """Consecutive records of partitions that have one kind and version."""

    rows: NDArray[np.intp]
    """Their rows in the chunk."""
    are_changes: bool
    """Whether they are PartitionChangeRecords; otherwise they are PartitionRecords."""
    version: int
    subjects: list[bytes]
    tails: list[bytes]

    def value(self, at: int) -> bytes:
        """Return the value of one of the records as in the log."""
        key = _CHANGE_KEY if self.are_changes else _PARTITION_KEY
        return bytes((FRAME_VERSION, key, self.version)) + self.subjects[at] + self.tails[at]


class OtherRecord(NamedTuple):
    """A record for the exact reader."""

    row: int
    """The row of the record in the chunk."""
    is_control: bool
    key: bytes | None
    value: bytes | None


def sort_records(chunk: RecordChunk, rows: NDArray[np.intp]) -> Iterator[PartitionRecords | OtherRecord]:
    """Yield the records at `rows` in their order without the NoOpRecords, which change nothing: runs of partition records of one kind and version, and each other record, whose kind only the exact reader decides."""
    if not len(rows):
        return
    is_control = chunk.batches["attributes"][chunk.rows[rows]] & CONTROL_BIT > 0
    is_of_partition, is_no_op, key, version = _kinds(chunk, rows, is_control)
    is_kept = ~is_no_op
    rows, is_control = rows[is_kept], is_control[is_kept]
    is_other = ~is_of_partition[is_kept]
    subjects, tails = _split(chunk, rows[~is_other])
    key, version = key[is_kept], version[is_kept]
    differs = (key[1:] != key[:-1]) | (version[1:] != version[:-1])
    edges = np.flatnonzero(is_other[1:] | is_other[:-1] | differs) + 1
    taken = 0
    for first, end in zip([0, *edges.tolist()], [*edges.tolist(), len(rows)], strict=True):
        if end == first:
            continue
        if is_other[first]:
            row = int(rows[first])
            yield OtherRecord(
                row,
                bool(is_control[first]),
                slice_nullable(chunk.view, int(chunk.key_position[row]), int(chunk.key_length[row])),
                slice_nullable(chunk.view, int(chunk.value_position[row]), int(chunk.value_length[row])),
            )
            continue
        part = slice(taken, taken + end - first)
        taken = part.stop
        are_changes = bool(key[first] == _CHANGE_KEY)
        yield PartitionRecords(rows[first:end], are_changes, int(version[first]), subjects[part], tails[part])


def _kinds(
    chunk: RecordChunk, rows: NDArray[np.intp], is_control: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.uint8], NDArray[np.uint8]]:
    """Return of each record whether it is one of a partition or a NoOpRecord, its api key and its version."""
    if len(chunk.view) < _NO_OP_LENGTH:
        nothing = np.zeros(len(rows), np.bool_)
        return nothing, nothing, nothing.view(np.uint8), nothing.view(np.uint8)
    content = np.frombuffer(chunk.view, np.uint8)
    length = chunk.value_length[rows]
    is_framed = (length >= _NO_OP_LENGTH) & ~is_control
    # A record without a frame gets any four bytes: they are not used.
    start = np.where(is_framed, chunk.value_position[rows], 0)
    is_framed &= content[start] == FRAME_VERSION
    key, version = content[start + 1], content[start + 2]
    is_no_op = (length == _NO_OP_LENGTH) & (version == 0) & (content[start + FRAME_LENGTH] == 0)
    is_of_partition = ((key == _CHANGE_KEY) | (key == _PARTITION_KEY)) & (version < _LONG_VARINT)
    return is_framed & is_of_partition & (length > _WHAT), is_framed & (key == _NO_OP_KEY) & is_no_op, key, version


def _split(chunk: RecordChunk, rows: NDArray[np.intp]) -> tuple[list[bytes], list[bytes]]:
    """Split records of partitions into the bytes that name the partition and the rest."""
    if not len(rows):
        return [], []
    positions, lengths = chunk.value_position[rows], chunk.value_length[rows]
    base = int(positions.min())
    # One copy of them all: a slice of bytes takes half the time of one of a view.
    data = bytes(chunk.view[base : int((positions + lengths).max())])
    starts = (positions - base + FRAME_LENGTH).tolist()
    ends = (positions - base + lengths).tolist()
    subjects = [data[start : start + SUBJECT_LENGTH] for start in starts]
    return subjects, [data[start + SUBJECT_LENGTH : end] for start, end in zip(starts, ends, strict=True)]


def _key_of(key: int | None) -> int:
    assert key is not None
    return key


_CHANGE_KEY = _key_of(PARTITION_CHANGE.api_key)
_PARTITION_KEY = _key_of(PARTITION.api_key)
_NO_OP_KEY = _key_of(NO_OP.api_key)
