"""The sequence numbers of idempotent producers over the batches of a log: where they do not follow each other."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kforensics.formats.index import ProducerEntry
from kforensics.formats.log.batch_table import CONTROL_BIT, TRANSACTIONAL_BIT, BatchTable

_LARGEST = 0x7FFFFFFF
"""The sequence that 0 follows."""

MOST_BREAKS = 1_000
"""Places of one log that are kept one by one."""


class SequenceBreak(NamedTuple):
    """Two batches of one producer in a row that do not follow each other."""

    producer_id: int
    producer_epoch: int
    after_offset: int
    """The last offset of the first batch."""
    offset: int
    """The first offset of the second one."""
    expected: int
    """0 where the producer's epoch was raised in between."""
    found: int

    @property
    def is_repeat(self) -> bool:
        """Whether the second batch has sequences that came before; else some are missing."""
        return self._distance > _LARGEST // 2

    @property
    def length(self) -> int:
        """How many sequences are missing or, of a repeat, how far it goes back."""
        return _LARGEST + 1 - self._distance if self.is_repeat else self._distance

    @property
    def _distance(self) -> int:
        return (self.found - self.expected) & _LARGEST

    @property
    def first(self) -> int:
        """The first sequence that is missing, or there again."""
        return self.found if self.is_repeat else self.expected

    @property
    def last(self) -> int:
        """The last sequence that is missing, or was there before."""
        return ((self.expected if self.is_repeat else self.found) - 1) & _LARGEST


class WrittenAgain(NamedTuple):
    """A batch that seems to be an earlier one, which its producer sent again as it began its sequences anew: of equal length, records and times."""

    producer_id: int
    producer_epoch: int
    """The later one."""
    first_offset: int
    """Of the first batch."""
    offset: int
    """Of the second one."""
    records: int
    positions: tuple[int, int]
    """Of both batches in their file."""
    length: int
    """Of either."""


_MOST_IN_FLIGHT = 5
"""Batches of a partition that an idempotent producer has under way at most (`max.in.flight.requests.per.connection`)."""


class _Batch(NamedTuple):
    """The first or the last batch of a producer."""

    producer_epoch: int
    first_sequence: int
    next_sequence: int
    base_offset: int
    last_offset: int


class SequenceScan:
    """What is kept of producers' sequences while the batches of a log pass.

    A batch that begins at 0 never counts: producers before 2.5 begin there again, in the same epoch, once their leader does not know them any more (KIP-360).
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self.breaks: list[SequenceBreak] = []
        self.again: list[WrittenAgain] = []
        self.is_thinned = False
        """Records or offsets are missing, as a cleaner leaves a log: its sequences have gaps then."""
        self.first_batches: dict[int, _Batch] = {}
        self.last_batches: dict[int, _Batch] = {}
        self.start_offset: int | None = None
        self.end_offset: int | None = None

    def begin(self, producers: Iterable[ProducerEntry]) -> None:
        """Take the last batch of each producer before the log begins, by the producer snapshot of that offset."""
        for one in producers:
            if one.last_sequence >= 0:
                follows = (one.last_sequence + 1) & _LARGEST
                last = one.last_offset
                self.last_batches[one.producer_id] = _Batch(one.producer_epoch, one.last_sequence, follows, last, last)

    def add(self, batches: BatchTable) -> None:
        """Add the sound batches that come next."""
        if self.is_thinned or not len(batches):
            return
        spans = batches["last_offset"] - batches["base_offset"] + 1
        is_whole = bool((batches["count"] == spans).all())
        self.is_thinned |= not is_whole or bool((batches["base_offset"][1:] != batches["last_offset"][:-1] + 1).any())
        self._add_offsets(int(batches["base_offset"][0]), int(batches["last_offset"][-1]) + 1)
        is_numbered = (batches["producer_id"] >= 0) & (batches["base_sequence"] >= 0) & (batches["magic"] == 2)
        at = np.flatnonzero(is_numbered & ((batches["attributes"] & CONTROL_BIT) == 0))
        if not len(at):
            return
        # Column by column: whole rows are slow to copy.
        ids = batches["producer_id"][at]
        if bool((ids[1:] != ids[:-1]).any()):
            order = np.argsort(ids, kind="stable")
            at, ids = at[order], ids[order]
        sequences, bases = batches["base_sequence"][at].astype(np.int64), batches["base_offset"][at]
        lasts, epochs = batches["last_offset"][at], batches["producer_epoch"][at]
        follows = (sequences + lasts - bases + 1) & _LARGEST
        is_other = ids[1:] != ids[:-1]
        is_plain = (batches["attributes"][at] & TRANSACTIONAL_BIT) == 0  # a transaction may have an epoch of its own
        is_anew = (epochs[1:] > epochs[:-1]) | ((epochs[1:] == epochs[:-1]) & (sequences[1:] == 0))
        self._find_again(batches, at, np.flatnonzero(~is_other & is_anew & is_plain[1:]) + 1)
        columns = (epochs, sequences, follows, bases, lasts)
        breaks = np.flatnonzero(~is_other & (sequences[1:] != follows[:-1]) & (sequences[1:] != 0))
        for producer_id, before, batch in zip(
            ids[breaks].tolist(), _rows(columns, breaks), _rows(columns, breaks + 1), strict=True
        ):
            self._note(producer_id, before, batch)
        ends = np.flatnonzero(is_other)
        firsts, ends = np.concatenate(([0], ends + 1)), np.concatenate((ends, [len(ids) - 1]))
        producers = ids[firsts].tolist()
        self._follow(
            dict(zip(producers, _rows(columns, firsts), strict=True)),
            dict(zip(producers, _rows(columns, ends), strict=True)),
        )
        self.breaks.sort(key=lambda one: one.offset)

    def _find_again(self, batches: BatchTable, at: NDArray[np.int64], bumps: NDArray[np.int64]) -> None:
        """Note the batches from where a producer began anew that equal one before."""
        for bump in bumps.tolist():
            rows = batches[at[max(bump - _MOST_IN_FLIGHT, 0) : bump + _MOST_IN_FLIGHT]]
            rows = rows[rows["producer_id"] == batches["producer_id"][at[bump]]]
            epoch = int(batches["producer_epoch"][at[bump]])
            is_before = rows["base_offset"] < batches["base_offset"][at[bump]]
            before = list(rows[is_before])
            for row in rows[~is_before & (rows["producer_epoch"] == epoch)]:
                same = next((one for one in before if all(one[name] == row[name] for name in _EQUAL)), None)
                if same is not None and len(self.again) < MOST_BREAKS:
                    offsets = int(same["base_offset"]), int(row["base_offset"])
                    places = int(same["position"]), int(row["position"])
                    self.again.append(
                        WrittenAgain(
                            int(row["producer_id"]), epoch, *offsets, int(row["count"]), places, int(row["length"])
                        )
                    )

    def extend(self, other: "SequenceScan") -> None:
        """Add what was scanned of the batches that come next."""
        self.is_thinned |= other.is_thinned
        if other.start_offset is not None and other.end_offset is not None:
            self._add_offsets(other.start_offset, other.end_offset)
        self._follow(other.first_batches, other.last_batches)
        self.breaks = sorted([*self.breaks, *other.breaks], key=lambda one: one.offset)
        self.again = [*self.again, *other.again][:MOST_BREAKS]

    def _add_offsets(self, first: int, end: int) -> None:
        self.is_thinned |= self.end_offset is not None and first != self.end_offset
        self.start_offset = first if self.start_offset is None else self.start_offset
        self.end_offset = end

    def _follow(self, first: dict[int, _Batch], last: dict[int, _Batch]) -> None:
        for producer_id, batch in first.items():
            before = self.last_batches.get(producer_id)
            if before is None:
                self.first_batches[producer_id] = batch
            else:
                self._note(producer_id, before, batch)
        self.last_batches.update(last)

    def _note(self, producer_id: int, before: _Batch, batch: _Batch) -> None:
        # A raised epoch begins at 0 (KIP-360); a lower one is of a producer that was fenced since.
        expected = 0 if batch.producer_epoch > before.producer_epoch else before.next_sequence
        is_break = batch.producer_epoch >= before.producer_epoch and batch.first_sequence not in {0, expected}
        if is_break and len(self.breaks) < MOST_BREAKS:
            self.breaks.append(
                SequenceBreak(
                    producer_id,
                    batch.producer_epoch,
                    before.last_offset,
                    batch.base_offset,
                    expected,
                    batch.first_sequence,
                )
            )


_EQUAL = ("length", "count", "base_timestamp", "max_timestamp", "attributes")
"""What is equal in a batch that is sent again: its records, and how they are compressed."""


def _rows(columns: Sequence[NDArray[Any]], at: NDArray[np.int64]) -> Iterator[_Batch]:
    return map(_Batch._make, zip(*(column[at].tolist() for column in columns), strict=True))


def joined_scans(parts: Iterable[SequenceScan], producers: Iterable[ProducerEntry] = ()) -> SequenceScan:
    """Return the scan of several parts of a log, one behind the other, from the producers on that the snapshot at its first offset has."""
    joined = SequenceScan()
    joined.begin(producers)
    for part in parts:
        joined.extend(part)
    return joined


def told_breaks(breaks: Iterable[SequenceBreak], snapshots: Mapping[int, Collection[int]]) -> tuple[SequenceBreak, ...]:
    """Return the breaks without those of producers that the broker had forgotten in between, by the producer snapshots at some offsets."""
    return tuple(
        one
        for one in breaks
        if all(one.producer_id in known for at, known in snapshots.items() if one.after_offset < at <= one.offset)
    )
