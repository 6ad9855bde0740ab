"""A captured segment becomes what a scan of its file would have given: its summary, its batches, its records; and what a capture takes of segments and indexes for that."""

import marshal
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Span
from kforensics.errors import EvidenceError
from kforensics.evidence.captured.columns import (
    BATCH_COLUMNS,
    NO_CONTROL,
    RECORD_COLUMNS,
    Run,
    column_of,
    control_records,
    gather,
    segment_of,
    unpack_batches,
    unpack_records,
)
from kforensics.evidence.model import Segment
from kforensics.formats.index import SparseIndex, parse_offset_index, read_time_ends
from kforensics.formats.log.batch_table import CONTROL_BIT, BatchTable, empty_batches
from kforensics.formats.log.records import Record
from kforensics.formats.primitives.word_buffer import MemoryBytes, SegmentBytes, read_exactly, without_zero_tail
from kforensics.formats.segment.walk import iter_records
from kforensics.source.capture import CapturedSegment
from kforensics.source.capture_file import Capture, are_whole
from kforensics.source.mapped import EvidenceFile, open_evidence

KEPT_BATCHES = 65_536
"""A segment with more batches than this keeps digests only: its table is read again where it is needed."""

_NUMBERS = (
    "valid_length",
    "batch_count",
    "record_count",
    "recovered_batch_count",
    "recovered_record_count",
)
_OPTIONAL = ("recovered_end_offset", "first_offset", "last_offset", "max_timestamp_ms")
_FIRST = ("offset", "position", "timestamp")
_LARGEST = 2**63 - 1


def captured_segment(file: CapturedSegment, *, path: str, base_offset: int, with_batches: bool = True) -> Segment:
    """Return the findings in a segment at the time of its capture.

    Args:
        with_batches: whether the table of batches is wanted; else a segment without damage has none, and `BatchReader` reads it where it is asked for.
    """
    row = file.row
    try:
        _check(row)
        unread = unread_below(file)
        batches: BatchTable | Absent = Absent.NOT_WRITTEN
        if row["batch_count"] <= KEPT_BATCHES and (with_batches or unread or row["damage"]):
            batches = _whole_table(file)
        is_unknown = unread and not row["batch_count"] and row["max_timestamp_ms"] is None
        return segment_of(
            row,
            row["digests"],
            row["epochs"],
            batches=batches,
            batches_from=_batches_from(file),
            unread_below=unread,
            place={"path": path, "base_offset": base_offset, "length": file.size, "mtime_ns": file.mtime_ns},
            no_timestamp=Absent.UNKNOWN if is_unknown else Absent.NOT_APPLICABLE,
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise file.capture.refuse(f"what it says of {file.inner} is impossible: {error!r}") from error


_DECIDES = itemgetter(
    *(
        *_NUMBERS,
        *_OPTIONAL,
        "longest_batch",
        "thinned_below",
        "digests",
        "epochs",
        "magics",
        "is_thinned",
        "changed",
        "damage",
    )
)


def findings_in(row: Mapping[str, Any]) -> bytes | None:
    """Return all of what a capture says of a segment that its summary is made of, to be compared with what is said of others; none where a part of it is missing or impossible, or it was not read whole.

    As bytes, 4.0 and `true` are not taken for the equal numbers 4 and 1, which they are refused for elsewhere.
    """
    if row.get("unread_below"):
        return None
    try:
        last, held = -1, 0
        for run in row["batches"]:
            if not _is_run(run, last):
                return None
            last, held = run[0], held + run[2]
        carried_from = None if held == row["batch_count"] else row["carried_from"]
        return marshal.dumps((*_DECIDES(row), held, carried_from), _BY_VALUE)
    except (KeyError, TypeError, ValueError):
        return None


_BY_VALUE = 0
"""The version of `marshal` that writes equal values as equal bytes, shared or not."""


def unread_below(file: CapturedSegment) -> int:
    """Return the offset below which nothing of the segment was read when it was captured at depth tails; 0 where all was."""
    value = file.row.get("unread_below", 0)
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise file.capture.refuse(f"what it says of {file.inner} is impossible: {value!r} as an offset")
    return value


def _batches_from(file: CapturedSegment) -> int:
    if unread := unread_below(file):
        start = carried_from(file)
        return unread if start is None else start
    count, first, last = (file.row[name] for name in ("batch_count", "first_offset", "last_offset"))
    if not count or last is None:
        return 0
    held = sum(run[2] for run in _runs(file, "batches"))
    if held == count:
        return 0
    start = carried_from(file)
    if held > count or (start is not None and first is not None and start <= first):
        raise ValueError(f"{held} rows of {count} batches from offset {start}")
    return int(last) + 1 if start is None else start


def _check(row: Mapping[str, Any]) -> None:
    if not are_whole(_OF_NUMBERS(row), 0, _LARGEST):
        raise ValueError("a count or a length")
    for value in (*_OF_OPTIONAL(row), row.get("longest_batch"), row.get("thinned_below")):
        if value is not None and not (isinstance(value, int) and -_LARGEST <= value <= _LARGEST):
            raise ValueError("an offset or a time")
    for name, width in (("digests", 5), ("epochs", 2)):
        for one in row[name]:
            if len(one) != width or not are_whole(one, -_LARGEST - 1, _LARGEST + 1):
                raise ValueError(name)
    if not are_whole(row["magics"], 0, 127):
        raise ValueError("magics")


_OF_NUMBERS, _OF_OPTIONAL = itemgetter(*_NUMBERS), itemgetter(*_OPTIONAL)


def _whole_table(file: CapturedSegment) -> BatchTable | Absent:
    count = file.row["batch_count"]
    if unread_below(file):
        rows = captured_batches(file) if count else empty_batches()
        return rows[len(rows) - count :] if 0 < count <= len(rows) else Absent.NOT_WRITTEN
    if not file.row["batch_count"]:
        return captured_batches(file)
    whole = sum(run[2] for run in _runs(file, "batches")) == file.row["batch_count"]
    return captured_batches(file) if whole else Absent.NOT_WRITTEN


def carried_from(file: CapturedSegment) -> int | None:
    """Return the first offset from which the batches of the segment were taken along, none where none were."""
    value = file.row.get("carried_from")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def captured_tail(file: CapturedSegment) -> tuple[int, int, int] | None:
    """Return the offset behind the last sound batch, its leader epoch and its highest timestamp in ms; none where no batch is sound."""
    tail = file.row.get("tail")
    if tail is None:
        return None
    if not isinstance(tail, list) or len(tail) != 3 or not all(type(one) is int for one in tail):
        raise file.capture.refuse(f"what it says of the end of {file.inner} is impossible")
    end, epoch, timestamp = tail
    return end, epoch, timestamp


def captured_extent(file: CapturedSegment) -> tuple[Span, int]:
    """Return the span of the first sound batch, and the position behind the last one; zeros where no batch is sound."""
    extent = file.row.get("extent")
    if extent is None:
        return Span(0, 0), 0
    if not isinstance(extent, list) or len(extent) != 3 or not all(type(one) is int and one >= 0 for one in extent):
        raise file.capture.refuse(f"what it says of the sound part of {file.inner} is impossible")
    return Span(extent[0], extent[1]), extent[2]


COMMIT_FIELDS = 7
"""What is kept of a commit."""


def captured_commits(file: CapturedSegment) -> Iterator[tuple[str, int, str, int, int | None, int, int]]:
    """Yield topic, partition, group, highest offset, leader epoch, time and batch position of what each group committed in a leader epoch, as a segment of `__consumer_offsets` has it."""
    claimed = file.row.get("commits") or []
    for one in claimed if isinstance(claimed, list) else [None]:
        if not isinstance(one, list) or len(one) != COMMIT_FIELDS:
            raise file.capture.refuse(f"what it says of commits in {file.inner} is impossible")
        topic, partition, group, offset, leader_epoch, time_ms, position = one
        numbers = (partition, offset, time_ms, position, 0 if leader_epoch is None else leader_epoch)
        if not (isinstance(topic, str) and isinstance(group, str) and all(map(_is_number, numbers))):
            raise file.capture.refuse(f"what it says of commits in {file.inner} is impossible")
        yield topic, partition, group, offset, leader_epoch, time_ms, position


def has_records(file: CapturedSegment) -> bool:
    """Whether digests of the records of the segment were taken along."""
    return file.row.get("records") is not None


def captured_batches(file: CapturedSegment) -> BatchTable:
    """Return the batches of the segment that were taken along, in file order; those whose checksum fails are not among them."""
    runs = _runs(file, "batches")
    if not runs:
        return empty_batches()
    first = file.row.get("first")
    if not isinstance(first, dict) or not all(_is_number(first.get(name)) for name in _FIRST):
        raise file.capture.refuse(f"what it says of the first batch of {file.inner} is impossible")
    return unpack_batches(_gathered(file, runs, "batches", BATCH_COLUMNS), first)


def captured_controls(file: CapturedSegment) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of the type of each batch that `captured_batches` gives, and its coordinator's epoch.

    The type is `NO_CONTROL` where it is no control batch, or where its type could not be read; the epoch -1 where there is none.
    """
    runs = _runs(file, "batches")
    if not runs:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    columns = _gathered(file, runs, "batches", ("control", "coordinator_epoch"))
    return columns["control"].astype(np.int64), columns["coordinator_epoch"].astype(np.int64)


def captured_columns(file: CapturedSegment, kind: Literal["batches", "records"]) -> dict[str, NDArray[Any]]:
    """Return the columns of the batches or of the digested records, as `unpack_batches` and `unpack_records` take them; empty where there are none."""
    runs = _runs(file, kind)
    return _gathered(file, runs, kind, BATCH_COLUMNS if kind == "batches" else RECORD_COLUMNS) if runs else {}


def captured_records(file: CapturedSegment) -> Iterator[Record]:
    """Yield the records of the segment, digested; where they were not taken along, its control records."""
    if has_records(file):
        if runs := _runs(file, "records"):
            yield from unpack_records(_gathered(file, runs, "records", RECORD_COLUMNS))
        return
    if not _runs(file, "batches"):
        return
    yield from control_records(captured_batches(file), captured_controls(file)[0])


def _is_number(value: object) -> bool:
    return type(value) is int and -_LARGEST - 1 <= value <= _LARGEST


def _runs(file: CapturedSegment, name: str) -> tuple[Run, ...]:
    """Return the runs of rows of a segment in a table, which its capture claims."""
    runs: list[Run] = []
    claimed = file.row.get(name) or []
    for one in claimed if isinstance(claimed, list) else [claimed]:
        if not _is_run(one, runs[-1][0] if runs else -1):
            raise file.capture.refuse(
                f"what it says of the {name} of {file.inner} is impossible: {one!r} as a run of rows"
            )
        runs.append(tuple(one))
    return tuple(runs)


def _is_run(one: Any, last_group: int) -> bool:
    """Whether a value of a capture can be a run of rows behind those of a group."""
    return (
        isinstance(one, list)
        and len(one) == 3
        and {*map(type, one)} == {int}
        and min(one) >= 0
        and max(one) <= _LARGEST
        and one[0] > last_group
    )


def _gathered(file: CapturedSegment, runs: Sequence[Run], table: str, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    try:
        return gather(runs, names, lambda group, name: _column(file.capture, group, table, name))
    except (ValueError, TypeError) as error:
        raise file.capture.refuse(f"its rows of {file.inner} can't be used: {error}") from error


def _column(capture: Capture, group: int, table: str, name: str) -> NDArray[Any]:
    data = capture.column(group, table, name)
    if data is None and name == "coordinator_epoch":  # captures of earlier versions have none
        return np.full(len(_column(capture, group, table, "control")), -1, dtype=np.int8)
    if data is None:
        raise ValueError(f"there is no column {name} in group {group}")
    known = _columns.setdefault(capture, OrderedDict())
    kept = known.get((group, table, name))
    if kept is None or kept[0] is not data:
        kept = known[group, table, name] = data, column_of(data)
        while len(known) > _KEPT_COLUMNS:
            known.popitem(last=False)
    return kept[1]


_KEPT_COLUMNS = 32
_columns: "WeakKeyDictionary[Capture, OrderedDict[tuple[int, str, str], tuple[bytes, NDArray[Any]]]]" = (
    WeakKeyDictionary()
)
"""Columns of the captures that are open, each with the bytes that it views: thousands of segments have rows in one."""


# The bytes of segments that a capture taken with `--with-tail` holds: the ends of logs, as they are on the broker.


def readable_ranges(file: EvidenceFile) -> tuple[Span, ...]:
    """Return the ranges of a segment that can be read: all of a file; of a captured segment what its capture holds, anything else is a `MissingBytes`.

    Args:
        file: the segment, as `open_evidence` gives it. A captured one is a source of bytes like any other file, with the length and the positions of the file on the broker:
            `walk_segment(file, level=Level.CRC, start=range.position)` reads the batches of a range, which begins at a batch wherever the log before it is sound.

    Returns:
        The ranges in the order of their positions, with bytes between any two of them missing; empty where the capture holds no bytes.
    """
    if not isinstance(file, CapturedSegment):
        return (Span(0, file.size),) if file.size else ()
    out: list[Span] = []
    for one in file.held():
        if out and out[-1].end == one.position:
            out[-1] = Span(out[-1].position, out[-1].length + one.length)
        else:
            out.append(Span(one.position, one.length))
    return tuple(out)


def is_whole(file: EvidenceFile) -> bool:
    """Whether all bytes of a segment can be read: of a captured one only where the capture holds them."""
    return readable_ranges(file) == ((Span(0, file.size),) if file.size else ())


# Digests, which replace the content of records where the content itself stays on the broker.


CONTROL_BATCH_LIMIT = 4_096
"""Bytes of a control batch that are looked at; brokers write some 80."""

_DIGEST_SIZE = 16
_MARKERS, _MARKER_LENGTH = frozenset({0, 1}), 6
"""The types ABORT and COMMIT, and the length of the version and the coordinator's epoch in their values (EndTxnMarker.json)."""


def digest_record(record: Record, key: bytes = b"") -> Record:
    """Return the record with digests in the place of key, value and headers; control records, which hold nothing private, as they are.

    Args:
        key: of the digests; without one, whoever guesses the content can confirm the guess.
    """
    if record.is_control:
        return record
    headers = ((_digest(repr(record.headers).encode(), key), None),) if record.headers else ()
    return record._replace(key=_digest(record.key, key), value=_digest(record.value, key), headers=headers)


def _digest(content: bytes | None, key: bytes) -> Any:
    import hashlib  # noqa: PLC0415 - OpenSSL, 3 ms, for captures alone

    return None if content is None else hashlib.blake2b(content, digest_size=_DIGEST_SIZE, key=key).digest()


def controls(batches: BatchTable, source: SegmentBytes) -> tuple[NDArray[np.int16], NDArray[np.int32]]:
    """Return the type of each control batch of magic 2, and the coordinator's epoch, -1 where it has none; `NO_CONTROL` for all other batches and where it can't be read.

    Args:
        source: the segment, of which `CONTROL_BATCH_LIMIT` bytes of a batch are read at most.
    """
    types = np.full(len(batches), NO_CONTROL, np.int16)
    epochs = np.full(len(batches), -1, np.int32)
    for at in np.flatnonzero(((batches["attributes"] & CONTROL_BIT) != 0) & (batches["magic"] == 2)):
        length = min(int(batches["length"][at]), CONTROL_BATCH_LIMIT)
        data = read_exactly(source, int(batches["position"][at]), length)
        record = next((one for one in iter_records(MemoryBytes(data)) if isinstance(one, Record)), None)
        if record is not None and record.key is not None and len(record.key) >= 4:
            kind, value = int.from_bytes(record.key[2:4], "big", signed=True), record.value or b""
            is_marker = kind in _MARKERS and len(value) >= _MARKER_LENGTH
            types[at] = kind
            epochs[at] = int.from_bytes(value[2:_MARKER_LENGTH], "big", signed=True) if is_marker else -1
    return types, epochs


# What a capture keeps of the indexes of a segment: what a broker looks up in them when it loads the log, and no more.
#
# An offset index whose entries all lead to batches comes to their number and the last of them: whichever entry a lookup ends at, the search behind it finds the same
# batch. Of a time index a start reads the last entry (`AbstractIndex`, `TimeIndex.lastEntry`), before 2.3 the first timestamp, too (`TimeIndex.sanityCheck`).


T = TypeVar("T")

OFFSET_INDEX, TIME_INDEX = ".index", ".timeindex"
LARGEST_INDEX = 64 << 20
"""Bytes of an offset index up to which its entries are held against the batches."""


class IndexWatch:
    """Holds the entries of a segment's offset index against its batches, window after window.

    Args:
        endings: of the indexes that it has under the names that a broker loads it by, none where they are empty.
    """

    def __init__(self, log: Path, base_offset: int, endings: Collection[str]) -> None:
        self._index = _opened(log.with_suffix(OFFSET_INDEX), _offset_index) if OFFSET_INDEX in endings else None
        self._time_ends = _opened(log.with_suffix(TIME_INDEX), _time_ends) if TIME_INDEX in endings else None
        self._led = 0
        self._is_sound = self._index is not None and not self._index.damage
        if self._index is not None:
            self._offsets = self._index.entries["relative_offset"].astype(np.int64) + base_offset
            self._positions = self._index.entries["position"].astype(np.int64)

    def see(self, sound: BatchTable) -> None:
        """Look at the entries that name the places of some batches in file order, at least one, which follow those of the call before."""
        if not self._is_sound:
            return
        positions = sound["position"]
        first, end = np.searchsorted(self._positions, (int(positions[0]), int(positions[-1]) + 1))
        at = np.searchsorted(positions, self._positions[first:end])
        leads = positions[at] == self._positions[first:end]
        self._is_sound = bool((leads & (sound["base_offset"][at] <= self._offsets[first:end])).all())
        self._led += int(end - first)

    def contents(self, *, is_damaged: bool) -> dict[str, dict[str, Any]]:
        """Return what the capture says of each index, by its ending; nothing of one that has to be read itself.

        Args:
            is_damaged: whether the log is, so that a search does not find the same batch from every place before it.
        """
        out: dict[str, dict[str, Any]] = {}
        if self._index is not None and not is_damaged and self._is_sound and self._led == len(self._positions):
            last = self._index.entries[-1].tolist() if self._led else [0, 0]
            out[OFFSET_INDEX] = {"index": {"entries": self._led, "last": list(last)}}
        if self._time_ends is not None:
            out[TIME_INDEX] = {"index": self._time_ends}
        return out


def _opened(path: Path, read: Callable[[EvidenceFile], T]) -> T | None:
    try:
        with open_evidence(path) as file:
            return read(file)
    except EvidenceError:
        return None  # it is named where the file itself is asked for


def _offset_index(file: EvidenceFile) -> SparseIndex:
    file.require_at_most(LARGEST_INDEX)
    return parse_offset_index(without_zero_tail(file), file.size)


def _time_ends(file: EvidenceFile) -> dict[str, int]:
    ends = read_time_ends(file.read, file.size)
    return {"last_timestamp": -1} if ends is None else ends._asdict()
