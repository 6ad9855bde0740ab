"""The files beside a segment: its indexes, from offsets and from timestamps to positions and of aborted transactions, and snapshots of producers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.damage import Absent, Damage, DamageKind, Gravity, Span
from kforensics.errors import UnexpectedEnd, require_known
from kforensics.formats.primitives.checksum import crc32c
from kforensics.formats.primitives.numbers import INT16, INT32, INT64, UINT32, FixedLayout
from kforensics.formats.primitives.text_lines import DamageList

# The indexes beside a segment: from offsets and from timestamps to positions, and of aborted transactions.


# `<base offset>.index`: sparse entries from offsets to positions in the `.log` beside it.
#
#     entry := relative_offset int32, position int32        8 bytes, both strictly rising
#     An active segment's file is preallocated: zeros behind the last entry, trimmed when the segment is rolled or
#     closed cleanly. No checksum.
#
# The offset is that of the first record of an append up to 1.1, the last of the whole append from 2.0, the last of the
# batch at the position from 4.1;
# it need not be an offset of the log. Kafka: `OffsetIndex`, `AbstractIndex` (0.8 and later).


OFFSET_INDEX_LAYOUT = FixedLayout(relative_offset=INT32, position=INT32)
OFFSET_ENTRY_LENGTH = OFFSET_INDEX_LAYOUT.length


class SparseIndex(NamedTuple):
    """The entries of one offset or time index, as a view of the bytes they were parsed from."""

    entries: NDArray[Any]
    """Big-endian fields of the layout: `relative_offset`, and `position` or `timestamp` (ms)."""
    zero_tail: Span
    """Preallocated zeros behind the last entry; of length 0 where the file is trimmed."""
    damage: tuple[Damage, ...] = ()


def parse_offset_index(data: bytes | memoryview, length: int | None = None) -> SparseIndex:
    """Parse an offset index (`OffsetIndex`); the preallocated zeros behind the entries are a span of their own.

    Args:
        data: the file, or all of it but zeros at its end.
        length: of the file, where it is longer than `data`.

    Returns:
        The entries, and the damage of malformed ones, which stay among the entries.
    """

    def falling(offsets: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        # The first entry comes after index.interval.bytes of log.
        return np.append(positions[:1] == 0, (np.diff(offsets) <= 0) | (np.diff(positions) <= 0))

    return parse_sparse_index(
        data, length, OFFSET_INDEX_LAYOUT, falling, "an offset and a position above those of the entry before"
    )


def parse_sparse_index(
    data: bytes | memoryview,
    length: int | None,
    layout: FixedLayout,
    falling: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]],
    rising: str,
) -> SparseIndex:
    """Parse an index of entries of two rising fields, with zeros behind them (`AbstractIndex`).

    Args:
        data: the file, or all of it but zeros at its end.
        length: of the file, where it is longer than `data`.
        falling: which entries don't rise, by the values of both fields.
    """
    length = len(data) if length is None else length
    entries, tail = split_preallocated(data, length, layout)
    damage = DamageList()
    check_rounded(length, tail, layout.length, damage)
    first, second = (entries[name].astype(np.int64) for name in layout.names)
    names = [name.replace("_", " ") for name in layout.names]
    short = [f"{'an' if name.endswith('offset') else 'a'} {name.split('_')[-1]}" for name in layout.names]
    negative = (first < 0) | (second < 0)
    for at in np.flatnonzero(negative | falling(first, second)).tolist():
        damage.add(
            entry_span(at, layout.length),
            DamageKind.ORDER,
            expected=f"{short[0]} and {short[1]} of 0 or more" if negative[at] else rising,
            found=f"entry {at}: {names[0]} {first[at]}, {names[1]} {second[at]}",
        )
    return SparseIndex(entries=entries, zero_tail=tail, damage=damage.as_tuple())


def encode_index(index: SparseIndex) -> bytes:
    """Encode the file with its entries as they are, malformed ones included, and its preallocated tail of zeros (`AbstractIndex`)."""
    return index.entries.tobytes() + bytes(index.zero_tail.length)


def offset_index(entries: list[tuple[int, int]], *, preallocated: int = 0) -> SparseIndex:
    """Build an index for a file to be written, of pairs of a relative offset and a position, with zeros up to the preallocated length in bytes."""
    return build_index(OFFSET_INDEX_LAYOUT, entries, preallocated)


def build_index(layout: FixedLayout, entries: list[tuple[int, int]], preallocated: int) -> SparseIndex:
    """Build an index of any layout for a file to be written."""
    used = len(entries) * layout.length
    zeros = Span(used, max(preallocated - used, 0))
    return SparseIndex(entries=np.array(entries, dtype=layout.dtype), zero_tail=zeros)


def entry_span(at: int, entry_length: int) -> Span:
    """Return the span of an entry in an index."""
    return Span(at * entry_length, entry_length)


def split_preallocated(data: bytes | memoryview, length: int, layout: FixedLayout) -> tuple[NDArray[Any], Span]:
    """Return the entries up to the last one that is not all zeros, and the run of zeros behind it up to the length of the file.

    Returns:
        The entries in big-endian fields, and the zeros; where bytes of an incomplete last entry are not zero, these are not among them.
    """
    count = length // layout.length
    data = bytes(data) + bytes(min(-len(data) % layout.length, length - len(data)))
    held = min(len(data) // layout.length, count)
    words = np.frombuffer(data, dtype=">u4", count=held * layout.length // 4)
    used = _last_used(words) * 4
    entries = -(-used // layout.length)
    end = length
    if any(data[count * layout.length :]):
        end = count * layout.length
    start = entries * layout.length
    return np.frombuffer(data, dtype=layout.dtype, count=entries), Span(start, end - start)


def check_rounded(length: int, tail: Span, entry_length: int, damage: DamageList) -> None:
    """Record an incomplete entry at the end of the file."""
    rest = length % entry_length
    if rest:
        found = f"{rest} bytes" + (" of zeros" if tail.end == length else "")
        damage.add(
            Span(length - rest, rest),
            DamageKind.LENGTH,
            expected=f"a length that is a multiple of {entry_length}",
            found=found,
        )


def _last_used(words: NDArray[Any]) -> int:
    """Return the position behind the last word that is not zero; the search runs from the end."""
    end = len(words)
    step = 1024
    while end:
        start = max(end - step, 0)
        used = np.flatnonzero(words[start:end])
        if len(used):
            return start + int(used[-1]) + 1
        end = start
        step = min(step * 4, 1 << 20)
    return 0


# `<base offset>.timeindex`: sparse entries from timestamps to offsets (KIP-33).
#
#     entry := timestamp int64 ms, relative_offset int32     12 bytes; timestamps strictly rising, offsets not falling
#     Entry (T, o): T is the largest timestamp of the segment up to o, and o lies in a batch whose largest timestamp is T.
#     An active segment's file is preallocated: zeros behind the last entry. No checksum.
#
# Kafka: `TimeIndex` (0.10.1 and later).


TIME_INDEX_LAYOUT = FixedLayout(timestamp=INT64, relative_offset=INT32)
TIME_ENTRY_LENGTH = TIME_INDEX_LAYOUT.length


def parse_time_index(data: bytes | memoryview, length: int | None = None) -> SparseIndex:
    """Parse a time index (`TimeIndex`); the preallocated zeros behind the entries are a span of their own.

    A first entry of timestamp 0 at the base offset is all zeros, and counts as part of the tail.

    Args:
        data: the file, or all of it but zeros at its end.
        length: of the file, where it is longer than `data`.
    """

    def falling(times: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.append(
            np.zeros(min(len(times), 1), dtype=bool), (times[1:] <= times[:-1]) | (offsets[1:] < offsets[:-1])
        )

    return parse_sparse_index(
        data, length, TIME_INDEX_LAYOUT, falling, "a later timestamp than the entry before, and no lower offset"
    )


class TimeEnds(NamedTuple):
    """The first timestamp of a time index that has entries, and its last entry."""

    first_timestamp: int
    last_timestamp: int
    last_relative_offset: int


class TimeEntry(NamedTuple):
    """An entry of a time index."""

    timestamp: int
    relative_offset: int


def last_time_entry_span(length: int) -> Span | None:
    """Return where a broker finds the last entry of a time index, preallocated zeros and all; None where there is none."""
    count = length // TIME_ENTRY_LENGTH
    return entry_span(count - 1, TIME_ENTRY_LENGTH) if count else None


def read_last_time_entry(read: Callable[[int, int], bytes], length: int) -> TimeEntry | None:
    """Return the last entry of a time index as a broker reads it: by its length alone (`TimeIndex.lastEntry`).

    Args:
        read: a function of a position and a length that gives bytes of the file, fewer where it ends before.

    Returns:
        None where the file holds no whole entry, or not as many bytes as its length says.
    """
    span = last_time_entry_span(length)
    return None if span is None else _entry(read(span.position, span.length))


def read_time_ends(read: Callable[[int, int], bytes], length: int) -> TimeEnds | None:
    """Return the first timestamp and the last entry, as `read` gives bytes at a position, which a broker compares (`TimeIndex.sanityCheck`, before 2.3); None without any."""
    first = _entry(read(0, TIME_ENTRY_LENGTH))
    last = first if length // TIME_ENTRY_LENGTH == 1 else read_last_time_entry(read, length)
    return None if first is None or last is None else TimeEnds(first.timestamp, *last)


def _entry(data: bytes) -> TimeEntry | None:
    return TimeEntry(*TIME_INDEX_LAYOUT.struct.unpack(data)) if len(data) == TIME_ENTRY_LENGTH else None


def time_index(entries: list[tuple[int, int]], *, preallocated: int = 0) -> SparseIndex:
    """Build a time index for a file to be written, of pairs of a timestamp in ms and an offset relative to the segment's base offset."""
    return build_index(TIME_INDEX_LAYOUT, entries, preallocated)


# `<base offset>.txnindex`: the aborted transactions whose marker lies in the segment (KIP-98).
#
#     entry := version int16 (0), producer_id int64, first_offset int64, last_offset int64, last_stable_offset int64
#     34 bytes
#     last_offset is that of the ABORT marker and rises strictly. Never preallocated, absent until the first abort.
#     No checksum.
#
# Kafka: `TransactionIndex`, `AbortedTxn` (0.11 and later); a partial entry at the end is ignored by its iterator.


TXN_INDEX_LAYOUT = FixedLayout(
    version=INT16,
    producer_id=INT64,
    first_offset=INT64,
    last_offset=INT64,
    last_stable_offset=INT64,
)
TXN_ENTRY_LENGTH = TXN_INDEX_LAYOUT.length
TXN_INDEX_VERSION = 0


class AbortedTransaction(NamedTuple):
    """One aborted transaction: its producer, its first offset, the offset of its marker, and the last stable offset at that time."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnIndex:
    """The entries of one transaction index, in the order of the file."""

    entries: tuple[AbortedTransaction, ...] = ()
    damage: tuple[Damage, ...] = field(default=())


def parse_txn_index(data: bytes | memoryview) -> TxnIndex:
    """Parse a transaction index (`TransactionIndex`); malformed entries stay among the entries, an incomplete one at the end is damage alone."""
    damage = DamageList()
    whole = len(data) // TXN_ENTRY_LENGTH * TXN_ENTRY_LENGTH
    entries = tuple(AbortedTransaction(*values) for values in TXN_INDEX_LAYOUT.struct.iter_unpack(data[:whole]))
    for at, entry in enumerate(entries):
        wrong = _what_is_wrong(entry, entries[at - 1] if at else None)
        if wrong:
            damage.add(
                entry_span(at, TXN_ENTRY_LENGTH), DamageKind.INDEX, expected=wrong, found=f"entry {at}: {_shown(entry)}"
            )
    check_rounded(len(data), Span(len(data), -1), TXN_ENTRY_LENGTH, damage)
    return TxnIndex(entries=entries, damage=damage.as_tuple())


def encode_aborted_transactions(entries: Iterable[AbortedTransaction]) -> bytes:
    """Encode a transaction index of these entries in their order; a broker writes them with rising offsets of their markers (`TransactionIndex`)."""
    return b"".join(TXN_INDEX_LAYOUT.struct.pack(*entry) for entry in entries)


def _what_is_wrong(entry: AbortedTransaction, before: AbortedTransaction | None) -> str:
    if entry.version != TXN_INDEX_VERSION:
        return f"version {TXN_INDEX_VERSION}"
    if entry.producer_id < 0:
        return "a producer id of 0 or more"
    if not 0 <= entry.first_offset <= entry.last_offset:
        return "a first offset that is 0 or more and not above the last"
    if before is not None and entry.last_offset <= before.last_offset:
        return f"a last offset above {before.last_offset}, that of the entry before"
    return ""


def _shown(entry: AbortedTransaction) -> str:
    return f"version {entry.version}, producer {entry.producer_id}, offsets {entry.first_offset} to {entry.last_offset}"


# `<offset>.snapshot`: the state of every idempotent producer after all records below that offset (KIP-98).
#
#     header := version int16 (1), crc uint32, count int32                                              10 bytes
#     entry  := producer_id int64, producer_epoch int16, last_sequence int32, last_offset int64, offset_delta int32,
#               timestamp int64, coordinator_epoch int32, current_transaction_first_offset int64        46 bytes
#     The CRC-32C covers everything behind itself: the count and the entries.
#
# A log without such producers still has empty ones, of 10 bytes. Kafka: `ProducerStateManager` (0.11 and later, version
# 1 throughout). Its -1 in
# `last_offset` (no batch, only markers), `last_sequence`, `coordinator_epoch` and `current_transaction_first_offset`
# (none open) is kept in the entry:
# replaying a log compares them as they are.


HEADER_LAYOUT = FixedLayout(version=INT16, crc=UINT32, count=INT32)
ENTRY_LAYOUT = FixedLayout(
    producer_id=INT64,
    producer_epoch=INT16,
    last_sequence=INT32,
    last_offset=INT64,
    offset_delta=INT32,
    timestamp=INT64,
    coordinator_epoch=INT32,
    current_transaction_first_offset=INT64,
)
SNAPSHOT_HEADER_LENGTH = HEADER_LAYOUT.length
SNAPSHOT_ENTRY_LENGTH = ENTRY_LAYOUT.length
PRODUCER_SNAPSHOT_VERSION = 1
_CRC_COVERS_FROM = HEADER_LAYOUT.position_of("count")
NONE = -1


class ProducerEntry(NamedTuple):
    """The last batch of one producer, and its open transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSnapshot:
    """The producers in the order of the file, and whether the checksum is right."""

    entries: tuple[ProducerEntry, ...] = ()
    crc: int | Absent = Absent.NOT_WRITTEN
    crc_valid: bool = True
    damage: tuple[Damage, ...] = field(default=())


def parse_producer_snapshot(data: bytes | memoryview) -> ProducerSnapshot:
    """Parse a producer snapshot (`ProducerStateManager.readSnapshot`); with a wrong checksum the entries are decoded all the same.

    Returns:
        As many whole entries as the file holds, whatever its count claims; a wrong count or checksum is damage.

    Raises:
        UnexpectedEnd: the file is shorter than its header (brokers up to 2.7 could leave it empty, KAFKA-9892).
    """
    length = len(data)
    if length < SNAPSHOT_HEADER_LENGTH:
        raise UnexpectedEnd(
            Span(0, length), expected=f"a header of {SNAPSHOT_HEADER_LENGTH} bytes", found=f"{length} bytes"
        )
    version, stored, count = HEADER_LAYOUT.struct.unpack_from(data)
    known = PRODUCER_SNAPSHOT_VERSION
    require_known(Span(0, 2), "producer snapshot version", found=version, newest=known, oldest=known)
    damage = DamageList()
    computed = crc32c(data[_CRC_COVERS_FROM:])
    if computed != stored:
        damage.add(
            Span(0, length), DamageKind.CRC, expected=f"checksum {stored:08x}, as stored", found=f"{computed:08x}"
        )
    room = (length - SNAPSHOT_HEADER_LENGTH) // SNAPSHOT_ENTRY_LENGTH
    if length != SNAPSHOT_HEADER_LENGTH + count * SNAPSHOT_ENTRY_LENGTH:
        where = Span(_CRC_COVERS_FROM, 4)
        damage.add(
            where,
            DamageKind.COUNT,
            expected=f"a count for {length - SNAPSHOT_HEADER_LENGTH} bytes of entries",
            found=f"a count of {count}",
        )
    body = data[SNAPSHOT_HEADER_LENGTH : SNAPSHOT_HEADER_LENGTH + room * SNAPSHOT_ENTRY_LENGTH]
    entries = tuple(ProducerEntry(*values) for values in ENTRY_LAYOUT.struct.iter_unpack(body))
    return ProducerSnapshot(entries=entries, crc=stored, crc_valid=computed == stored, damage=damage.as_tuple())


def encode_producers(entries: Iterable[ProducerEntry]) -> bytes:
    """Encode a snapshot of these producers with its checksum, and -1 for what one does not have (`ProducerStateManager.writeSnapshot`, version 1)."""
    body = [ENTRY_LAYOUT.struct.pack(*entry) for entry in entries]
    covered = HEADER_LAYOUT.struct.pack(PRODUCER_SNAPSHOT_VERSION, 0, len(body))[_CRC_COVERS_FROM:] + b"".join(body)
    return HEADER_LAYOUT.struct.pack(PRODUCER_SNAPSHOT_VERSION, crc32c(covered), len(body))[:_CRC_COVERS_FROM] + covered


def empty_file_damage() -> Damage:
    """Return the damage of a snapshot of 0 bytes, which a broker deletes when it loads the log to use an older one."""
    return Damage(
        span=Span(0, 0),
        kind=DamageKind.LENGTH,
        expected=f"a header of {SNAPSHOT_HEADER_LENGTH} bytes",
        found="an empty file",
        gravity=Gravity.REBUILDABLE,
    )
