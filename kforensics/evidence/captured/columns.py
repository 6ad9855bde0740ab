"""Batches and records as narrow columns, and back: each value as its difference from what the row before lets one expect.

Most differences are zero or small, so that a row a batch takes some ten bytes once it is deflated. A column is a `.npy` file. The columns of a segment are runs of
rows in the columns of one or more groups. All arithmetic is that of 64-bit integers, which wraps: whatever offsets a log claims come back as they were.
"""

import io
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.evidence.model import DIGEST_DTYPE, Segment
from kforensics.formats.log.batch_table import CONTROL_BIT, BatchTable, empty_batches
from kforensics.formats.log.records import Record
from kforensics.source.naming import LARGEST_OFFSET
from kforensics.units import EpochEntry, OffsetRange

Columns = dict[str, NDArray[Any]]

Run = tuple[int, int, int]
"""Group, first row and count."""

DIGEST_LENGTH = 16
NO_CONTROL = -32_768
"""In the column `control`: not a control batch, or one whose type can't be read."""

_HEAD = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>..)(?P<text>\{'descr': '(?P<kind>[<>|][iu][1248])', 'fortran_order': False, "
    rb"'shape': \((?P<count>[0-9]{1,18}),(?P<digests> 16)?\), \} *\n)",
    re.DOTALL,
)
"""What `npy_of` writes before the numbers. NumPy's own reader of it evaluates the text, which fails in many ways."""

_WIDTHS = ((np.int8, 1 << 7), (np.int16, 1 << 15), (np.int32, 1 << 31))
_KEY, _VALUE, _HEADERS, _TRANSACTIONAL, _CONTROL = 1, 2, 4, 8, 16
_PLAIN = {
    "length": "length",
    "leader_epoch": "partition_leader_epoch",
    "crc": "crc",
    "magic": "magic",
    "attributes": "attributes",
    "producer_id": "producer_id",
    "producer_epoch": "producer_epoch",
}
BATCH_COLUMNS = (
    *_PLAIN,
    "offset_gap",
    "last_offset_delta",
    "position_gap",
    "missing_records",
    "timestamp_gap",
    "timestamp_span",
    "sequence_gap",
    "control",
    "coordinator_epoch",
)
RECORD_COLUMNS = (
    "offset_gap",
    "timestamp_gap",
    "flags",
    "key",
    "value",
    "headers",
    "position_gap",
    "base_offset_delta",
    "producer_id",
    "magic",
)


_DIGESTS = frozenset({"key", "value", "headers"})


class BatchPacker:
    """Turns the batches of one segment into columns, window after window."""

    def __init__(self) -> None:
        self._offset = self._position = self._timestamp = self._sequence = 0
        self.first: dict[str, int] = {}
        """Base offset, position and time of the first of them, which the columns begin from; empty before there is one."""

    def pack(self, rows: BatchTable, controls: NDArray[np.int16], epochs: NDArray[np.int32]) -> Columns:
        """Return the columns of some batches that follow those of the call before, with the coordinator's epoch of each marker, -1 for the others."""
        if not self.first:
            self._offset, self._position, self._timestamp = (
                int(rows[name][0]) for name in ("base_offset", "position", "base_timestamp")
            )
            self.first = {"offset": self._offset, "position": self._position, "timestamp": self._timestamp}
        base, last = rows["base_offset"], rows["last_offset"]
        position, length = rows["position"], rows["length"].astype(np.int64)
        stamp, sequence, count = (rows[name].astype(np.int64) for name in ("base_timestamp", "base_sequence", "count"))
        out: Columns = {name: rows[column] for name, column in _PLAIN.items()}
        out["offset_gap"] = base - _after(self._offset, last + 1)
        out["last_offset_delta"] = last - base
        out["position_gap"] = position - _after(self._position, position + length)
        out["missing_records"] = last - base + 1 - count
        out["timestamp_gap"] = stamp - _after(self._timestamp, stamp)
        out["timestamp_span"] = rows["max_timestamp"] - stamp
        out["sequence_gap"] = sequence - _after(self._sequence, sequence + count)
        out["control"] = controls
        out["coordinator_epoch"] = epochs
        self._offset, self._position = int((last[-1:] + 1)[0]), int((position + length)[-1])
        self._timestamp, self._sequence = int(stamp[-1]), int((sequence + count)[-1])
        return out


def unpack_batches(columns: Mapping[str, NDArray[Any]], first: Mapping[str, int]) -> BatchTable:
    """Return the batches of a segment out of its columns, which begin from what `BatchPacker.first` has."""
    size = len(columns["length"])
    rows = empty_batches(size)
    if not size:
        return rows
    wide = {name: columns[name].astype(np.int64) for name in BATCH_COLUMNS if name != "crc"}
    for name, column in _PLAIN.items():
        rows[column] = columns[name]
    span = wide["last_offset_delta"]
    rows["base_offset"] = _sums(wide["offset_gap"], span + 1, first["offset"])
    rows["last_offset"] = rows["base_offset"] + span
    rows["position"] = _sums(wide["position_gap"], wide["length"], first["position"])
    count = span + 1 - wide["missing_records"]
    rows["count"] = count
    rows["base_timestamp"] = np.cumsum(wide["timestamp_gap"]) + np.int64(first["timestamp"])
    rows["max_timestamp"] = rows["base_timestamp"] + wide["timestamp_span"]
    rows["base_sequence"] = _sums(wide["sequence_gap"], count, 0)
    rows["crc_valid"] = True
    return rows


def _after(first: int, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what each row is expected to begin with: the end of the one before."""
    return np.concatenate((np.array([first], dtype=np.int64), ends[:-1]))


def _sums(gaps: NDArray[np.int64], lengths: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Where each row begins, out of the gaps before rows and of their lengths."""
    before: NDArray[np.int64] = np.cumsum(gaps) + np.cumsum(lengths) - lengths + np.int64(first)
    return before


class RecordPacker:
    """Turns records whose content is digested into columns."""

    def __init__(self) -> None:
        self._last = np.zeros(3, dtype=np.int64)

    def pack(self, records: Sequence[Record]) -> Columns:
        """Return the columns of some records that follow those of the call before, digests in the place of their content."""
        offset, stamp, position, base = (
            np.array([getattr(one, name) for one in records], dtype=np.int64)
            for name in ("offset", "timestamp_ms", "batch_position", "batch_base_offset")
        )
        out: Columns = {
            "offset_gap": np.diff(offset, prepend=self._last[0]),
            "timestamp_gap": np.diff(stamp, prepend=self._last[1]),
            "position_gap": np.diff(position, prepend=self._last[2]),
            "base_offset_delta": offset - base,
            "producer_id": np.array([one.producer_id for one in records], dtype=np.int64),
            "magic": np.array([one.magic for one in records], dtype=np.int8),
            "flags": np.array([_flags(one) for one in records], dtype=np.int8),
            "key": _digests([one.key for one in records]),
            "value": _digests([one.value for one in records]),
            "headers": _digests([one.headers[0][0] if one.headers else None for one in records]),
        }
        self._last = np.array((offset[-1], stamp[-1], position[-1]), dtype=np.int64)
        return out


def _flags(one: Record) -> int:
    return (
        _KEY * (one.key is not None)
        | _VALUE * (one.value is not None)
        | _HEADERS * bool(one.headers)
        | _TRANSACTIONAL * one.is_transactional
        | _CONTROL * one.is_control
    )


def _digests(values: Sequence[Any]) -> NDArray[np.uint8]:
    joined = b"".join((value or b"")[:DIGEST_LENGTH].ljust(DIGEST_LENGTH, b"\0") for value in values)
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, DIGEST_LENGTH)


def unpack_records(columns: Mapping[str, NDArray[Any]]) -> Iterator[Record]:
    """Yield the records of a segment out of its columns, digests in the place of keys, values and headers, -1 in that of sequence and epochs."""
    sums = {
        name: np.cumsum(columns[f"{name}_gap"].astype(np.int64)).tolist()
        for name in ("offset", "timestamp", "position")
    }
    delta, producer, magic, flags = (
        columns[name].tolist() for name in ("base_offset_delta", "producer_id", "magic", "flags")
    )
    keys, values, headers = (columns[name].tobytes() for name in ("key", "value", "headers"))
    for at, offset in enumerate(sums["offset"]):
        flag, place = flags[at], slice(at * DIGEST_LENGTH, (at + 1) * DIGEST_LENGTH)
        is_control = bool(flag & _CONTROL)
        key = (keys[place][:4] if is_control else keys[place]) if flag & _KEY else None
        yield Record(
            offset=offset,
            timestamp_ms=sums["timestamp"][at],
            key=key,
            value=values[place] if flag & _VALUE and not is_control else None,
            headers=((headers[place], None),) if flag & _HEADERS else (),
            sequence=-1,
            batch_position=sums["position"][at],
            batch_base_offset=offset - delta[at],
            partition_leader_epoch=-1,
            producer_id=producer[at],
            producer_epoch=-1,
            magic=magic[at],
            is_transactional=bool(flag & _TRANSACTIONAL),
            is_control=is_control,
        )


def control_records(rows: BatchTable, controls: NDArray[np.int64]) -> Iterator[Record]:
    """Yield the control records of the batches whose type is known.

    Args:
        controls: the type of each batch, `NO_CONTROL` where it is none or could not be read.

    Yields:
        Records without a value: what a marker says beside its type is not in the columns.
    """
    for row, control in zip(rows, controls.tolist(), strict=True):
        if control == NO_CONTROL or not int(row["attributes"]) & CONTROL_BIT:
            continue
        yield Record(
            offset=int(row["base_offset"]),
            timestamp_ms=int(row["max_timestamp"]),
            key=b"\0\0" + int(control).to_bytes(2, "big", signed=True),
            value=None,
            headers=(),
            sequence=-1,
            batch_position=int(row["position"]),
            batch_base_offset=int(row["base_offset"]),
            partition_leader_epoch=int(row["partition_leader_epoch"]),
            producer_id=int(row["producer_id"]),
            producer_epoch=int(row["producer_epoch"]),
            magic=int(row["magic"]),
            is_transactional=True,
            is_control=True,
        )


# ---------------------------------------------------------------- files


def npy_of(values: NDArray[Any]) -> bytes:
    """Return a column as a `.npy` file of the narrowest type that holds all of it."""
    out = io.BytesIO()
    npy.write_array(out, np.ascontiguousarray(narrow(values)), version=(1, 0))
    return out.getvalue()


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the narrowest type that holds all of them; unsigned ones as they are."""
    if values.dtype.kind == "u" or not len(values):
        return values
    low, high = int(values.min()), int(values.max())
    for kind, limit in _WIDTHS:
        if -limit <= low and high < limit:
            return values.astype(kind)
    return values.astype(np.int64)


def column_of(data: bytes) -> NDArray[Any]:
    """Return the column in a `.npy` file, without trusting what its head says."""
    head = _HEAD.match(data)
    if (
        head is None
        or int.from_bytes(head["length"], "little") != len(head["text"])
        or (head["digests"] and head["kind"] != b"|u1")
    ):
        raise ValueError("no column")
    shape = (int(head["count"]), DIGEST_LENGTH) if head["digests"] else (int(head["count"]),)
    kind = np.dtype(head["kind"].decode())
    if math.prod(shape) * kind.itemsize != len(data) - head.end():
        raise ValueError("a column that does not have the length it claims")
    return np.frombuffer(data, dtype=kind, offset=head.end()).reshape(shape)


def gather(
    runs: Sequence[Run], names: Sequence[str], column: Callable[[int, str], NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Return the columns of some runs of rows, claims of a capture by group, first row and number of rows, one behind the other."""
    out: dict[str, NDArray[Any]] = {}
    for name in names:
        pieces = []
        for group, first, count in runs:
            whole = column(group, name)
            if (name in _DIGESTS) != (whole.ndim == 2):
                raise ValueError(f"the column {name} has another shape")
            if not 0 <= first <= first + count <= len(whole):
                raise ValueError("a run of rows ends behind its column")
            pieces.append(whole[first : first + count])
        if len(pieces) == 1:
            out[name] = pieces[0]
        else:
            wide = np.uint32 if name == "crc" else np.uint8 if name in _DIGESTS else np.int64
            shape = (0, DIGEST_LENGTH) if wide is np.uint8 else (0,)
            out[name] = np.concatenate([np.zeros(shape, dtype=wide), *(piece.astype(wide) for piece in pieces)])
        if name == "control" and not np.can_cast(narrow(out[name].astype(np.int64)).dtype, np.int16):
            raise ValueError("a type of control records above 16 bits")
    return out


# Segments as rows of plain values and back, so that what was read in one place can be judged in another.


Row = dict[str, Any]

_DIGEST_COLUMNS = ("bucket", "low", "high", "batches", "position")


def known(value: Any) -> Any:
    """Return a value as the rows of tables have it: none where it is absent, whatever the reason, and no end behind the last offset that 64 bits hold."""
    if isinstance(value, Absent):
        return None
    return min(value, LARGEST_OFFSET) if type(value) is int else value


def known_or(value: Any, absent: Absent) -> Any:
    """Return a value of a row, or the reason for which it is absent where the row has none."""
    return absent if value is None else value


# ---------------------------------------------------------------- damage


def damage_rows(path: str, damage: Iterable[Damage]) -> list[Row]:
    """Return the damaged places of a file as rows."""
    return [
        {
            "path": path,
            "position": one.span.position,
            "length": one.span.length,
            "kind": one.kind.value,
            "expected": one.expected,
            "found": one.found,
            "gravity": one.gravity.value,
            "first_offset_lost": one.offsets_lost.first if isinstance(one.offsets_lost, OffsetRange) else None,
            "last_offset_lost": one.offsets_lost.last if isinstance(one.offsets_lost, OffsetRange) else None,
        }
        for one in damage
    ]


def damage_of(rows: Iterable[Mapping[str, Any]] | None) -> tuple[Damage, ...]:
    """Return the damaged places that rows describe."""
    return tuple(
        Damage(
            span=Span(row["position"], row["length"]),
            kind=DamageKind(row["kind"]),
            expected=row["expected"],
            found=row["found"],
            gravity=Gravity(row["gravity"]),
            offsets_lost=Absent.NOT_APPLICABLE
            if row["first_offset_lost"] is None
            else OffsetRange(row["first_offset_lost"], row["last_offset_lost"]),
        )
        for row in rows or ()
    )


# ---------------------------------------------------------------- segments


_COLUMNS = (
    *("base_offset", "length", "valid_length", "first_offset", "last_offset", "recovered_end_offset"),
    *("batch_count", "record_count", "recovered_batch_count", "recovered_record_count", "magics", "max_timestamp_ms"),
    *("is_thinned", "thinned_below", "longest_batch", "changed", "mtime_ns"),
)
"""Columns that are a field of a segment, under the same name."""


def segment_row(segment: Segment, place: Mapping[str, Any], *, is_deleted: bool, scanned_ns: int) -> Row:
    """Return a segment as a row of plain values; digests and lineage have tables of their own."""
    columns = {name: known(getattr(segment, name)) for name in _COLUMNS}
    columns["magics"] = sorted(segment.magics)
    damage = damage_rows(segment.path, segment.damage)
    return {
        **place,
        "path": segment.path,
        "is_deleted": is_deleted,
        **columns,
        "scanned_ns": scanned_ns,
        "damage": damage,
    }


def digest_lists(digests: NDArray[np.void]) -> list[list[int]]:
    """Return the digests as numbers, the 128 bits as two signed words."""
    signed = digests.astype(_SIGNED_DIGEST)
    return [list(row) for row in zip(*(signed[name].tolist() for name in _DIGEST_COLUMNS), strict=True)]


_SIGNED_DIGEST = np.dtype([(name, "<i8") for name in _DIGEST_COLUMNS])


def digests_of(rows: Sequence[Sequence[int]]) -> Any:
    """Return the digests that `digest_lists` made lists of: bucket, the two signed words, batches and position of each."""
    return np.frombuffer(array("q", chain.from_iterable(rows)), dtype=DIGEST_DTYPE)


def segment_of(
    row: Mapping[str, Any],
    digests: Sequence[Sequence[int]],
    epochs: Iterable[Sequence[int]],
    *,
    batches: BatchTable | Absent = Absent.NOT_WRITTEN,
    batches_from: int = 0,
    unread_below: int = 0,
    place: Mapping[str, Any] | None = None,
    no_timestamp: Absent = Absent.NOT_APPLICABLE,
) -> Segment:
    """Return the segment that a row, its digests and its lineage describe, with the batches that are known of it.

    Args:
        epochs: leader epoch and start offset of each entry of its lineage.
        batches: those that were taken along; `NOT_WRITTEN` where none were kept.
        unread_below: the offset below which nothing was read; 0 where all was.
    """
    place = row if place is None else place
    return Segment(
        path=place["path"],
        base_offset=place["base_offset"],
        length=place["length"],
        valid_length=row["valid_length"],
        recovered_end_offset=known_or(row["recovered_end_offset"], Absent.NOT_APPLICABLE),
        first_offset=known_or(row["first_offset"], Absent.NOT_APPLICABLE),
        last_offset=known_or(row["last_offset"], Absent.NOT_APPLICABLE),
        batch_count=row["batch_count"],
        record_count=row["record_count"],
        epochs=tuple([EpochEntry(epoch, start) for epoch, start in epochs]),
        magics=frozenset(row["magics"] or ()),
        max_timestamp_ms=known_or(row["max_timestamp_ms"], no_timestamp),
        digests=digests_of(digests),
        batches=batches,
        damage=damage_of(row["damage"]) if row["damage"] else (),
        changed=bool(row["changed"]),
        mtime_ns=place["mtime_ns"],
        recovered_batch_count=row["recovered_batch_count"],
        recovered_record_count=row["recovered_record_count"],
        is_thinned=bool(row["is_thinned"]),
        thinned_below=known_or(row.get("thinned_below"), Absent.UNKNOWN),
        longest_batch=known_or(row.get("longest_batch"), Absent.UNKNOWN),
        batches_from=batches_from,
        unread_below=unread_below,
    )
