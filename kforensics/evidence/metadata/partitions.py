"""The partitions of a metadata log with all their states: rows of numbers, made into values when they are asked for."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from kforensics.evidence.metadata.files import RecordPlaces
from kforensics.evidence.metadata.state import PartitionState
from kforensics.evidence.metadata.steps import STEP_DTYPE, PartitionStatus, Steps
from kforensics.formats.primitives.numbers import distinct

Rows = NDArray[np.intp]

NO_ROW = -1
ROWS_AT_ONCE = 1 << 12
"""Rows that are made into values together."""


class StepColumns(NamedTuple):
    """Some steps, as lists."""

    rows: list[int]
    offsets: list[int]
    timestamps_ms: list[int]
    partitions: list[int]
    """Their numbers."""
    leader_epochs: list[int]
    kinds: list[int]
    """The same for steps that change the same, whichever partition they change."""


class PartitionStates(Sequence[PartitionState]):
    """The states of one partition, oldest first, each made when it is asked for."""

    def __init__(self, histories: "PartitionHistories", rows: Rows) -> None:
        self._histories = histories
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> PartitionState: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[PartitionState]: ...

    def __getitem__(self, place: int | slice) -> PartitionState | Sequence[PartitionState]:
        if isinstance(place, slice):
            return PartitionStates(self._histories, self._rows[place])
        return self._histories.state(int(self._rows[place]))

    def __iter__(self) -> Iterator[PartitionState]:
        return self._histories.states(self._rows)


class PartitionHistories(Mapping[tuple[str, int], Sequence[PartitionState]]):
    """The states of each partition, oldest first, by topic id and partition.

    A partition has a number, its place in the order in which they came; a step is a row.
    """

    def __init__(
        self,
        keys: Sequence[tuple[str, int]],
        topics: Sequence[str],
        statuses: Sequence[PartitionStatus],
        steps: Steps,
        places: RecordPlaces,
    ) -> None:
        self.topics = topics
        """The name of each one's topic."""
        self.keys_by_number = keys
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._statuses = statuses
        self._steps = steps
        self._places = places

    @classmethod
    def empty(cls) -> Self:
        """Return the histories of no partition at all."""
        return cls((), (), (), np.zeros(0, STEP_DTYPE), RecordPlaces(0))

    def __len__(self) -> int:
        return len(self.keys_by_number)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self.keys_by_number)

    def __getitem__(self, key: tuple[str, int]) -> Sequence[PartitionState]:
        return PartitionStates(self, self._rows_of(self._numbers[key]))

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def state(self, row: int) -> PartitionState:
        """Return the state that a step leads to."""
        return next(self.states(np.array([row])))

    def states(self, rows: Rows) -> Iterator[PartitionState]:
        """Yield the states that steps lead to."""
        for first in range(0, len(rows), ROWS_AT_ONCE):
            for step in self._steps[rows[first : first + ROWS_AT_ONCE]].tolist():
                offset, timestamp_ms, place, number, status, leader_epoch, partition_epoch = step
                leader, *rest = self._statuses[status]
                topic_id, partition = self.keys_by_number[number]
                head = self.topics[number], topic_id, partition, leader, leader_epoch, partition_epoch
                yield PartitionState._make((*head, *rest, self._places.when(place, offset, timestamp_ms)))

    def changes(self, rows: Rows) -> Iterator[tuple[PartitionState | None, PartitionState]]:
        """Yield the states before and behind steps; none before where the step is the first of its partition."""
        before = self._before[rows]
        is_first = before == NO_ROW
        states_before = self.states(before[~is_first])
        for begins, state in zip(is_first.tolist(), self.states(rows), strict=True):
            yield (None if begins else next(states_before)), state

    def newest(self, key: tuple[str, int]) -> PartitionState | None:
        """Return the last state of a partition, none where the log does not know it."""
        number = self._numbers.get(key)
        return None if number is None else self.state(int(self._rows_of(number)[-1]))

    def at(self, key: tuple[str, int], offset: int) -> PartitionState | None:
        """Return the state of a partition once the records up to and with `offset` are applied; None where none was about it by then."""
        number = self._numbers.get(key)
        if number is None:
            return None
        rows = self._rows_of(number)
        found = int(np.searchsorted(rows, self._end(offset)))
        return self.state(int(rows[found - 1])) if found else None

    def all_at(self, offset: int) -> Iterator[PartitionState]:
        """Return the state of every partition once the records up to and with `offset` are applied."""
        end = self._end(offset)
        last = np.full(len(self), NO_ROW, np.intp)
        last[self._steps["partition"][:end]] = np.arange(end)
        return self.states(last[last != NO_ROW])

    def rows(
        self,
        *,
        topics: Collection[str] = (),
        partitions: Collection[int] = (),
        up_to: int | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
    ) -> Rows:
        """Return the steps of all partitions, or of those asked for, in the order of the log."""
        found = self._rows_named(topics, partitions, len(self._steps) if up_to is None else self._end(up_to))
        times = self._steps["timestamp_ms"][found]
        if since_ms is not None:
            found, times = found[times >= since_ms], times[times >= since_ms]
        return found if until_ms is None else found[times < until_ms]

    def _rows_named(self, topics: Collection[str], partitions: Collection[int], end: int) -> Rows:
        if not topics and not partitions:
            return np.arange(end)
        wanted = [
            number
            for number, (name, key) in enumerate(zip(self.topics, self.keys_by_number, strict=True))
            if (not topics or name in topics) and (not partitions or key[1] in partitions)
        ]
        found = np.concatenate([np.zeros(0, np.intp), *map(self._rows_of, wanted)])
        return np.sort(found[found < end])

    def offsets(self, rows: Rows) -> NDArray[np.int64]:
        """Return the metadata offsets of steps."""
        found: NDArray[np.int64] = self._steps["offset"][rows]
        return found

    def numbers(self, rows: Rows) -> list[int]:
        """Return the numbers of the partitions that steps are about, each once."""
        found: list[int] = distinct(self._steps["partition"][rows]).tolist()
        return found

    def columns(self, rows: Rows) -> StepColumns:
        """Return the steps as lists, for callers that read many of them."""
        steps, before = self._steps[rows], self._before[rows]
        is_first = before == NO_ROW
        status_before = np.where(is_first, NO_ROW, self._steps["status"][before]).astype(np.int64)
        epoch_change = _epoch_changes(steps, self._steps[before], is_first)
        from_snapshot = self._places.are_snapshots(steps["place"])
        return StepColumns(
            rows.tolist(),
            steps["offset"].tolist(),
            steps["timestamp_ms"].tolist(),
            steps["partition"].tolist(),
            steps["leader_epoch"].tolist(),
            (
                (status_before + 1) << 35 | steps["status"].astype(np.int64) << 3 | epoch_change << 1 | from_snapshot
            ).tolist(),
        )

    def rows_that(self, test: Callable[[PartitionState | None, PartitionState], bool]) -> Rows:
        """Return the steps that pass a test, which is asked once for steps that change the same.

        Args:
            test: asks for the states before and behind a step, of which it may compare all but partition, offset, time and partition epoch.
        """
        steps, before = self._steps, self._before
        is_first = before == NO_ROW
        status_before = np.where(is_first, NO_ROW, steps["status"][before]).astype(np.int64)
        epoch_change = _epoch_changes(steps, steps[before], is_first)
        kinds = (status_before + 1) << 34 | steps["status"].astype(np.int64) << 2 | epoch_change
        _, examples, kind_of = np.unique(kinds, return_index=True, return_inverse=True)
        passes = np.fromiter((test(*change) for change in self.changes(examples)), np.bool_, len(examples))
        return np.flatnonzero(passes[kind_of]) if len(examples) else examples

    def last_offset_by(self, time_ms: int) -> int:
        """Return the offset of the last step that a record dates up to a time, -1 for none."""
        steps = self._steps
        dated = steps["offset"][(steps["timestamp_ms"] > 0) & (steps["timestamp_ms"] <= time_ms)]
        return int(dated.max(initial=-1))

    def epoch_starts(self) -> Iterator[tuple[tuple[str, int], int, int]]:
        """Yield the time at which each leader epoch of each partition began, of those that a record dates."""
        steps = self._steps[self._order]
        steps = steps[(steps["timestamp_ms"] > 0) & ~self._places.are_snapshots(steps["place"])]
        is_start = np.ones(len(steps), np.bool_)
        is_start[1:] = (np.diff(steps["partition"]) != 0) | (np.diff(steps["leader_epoch"]) != 0)
        columns = (steps[name][is_start].tolist() for name in ("partition", "leader_epoch", "timestamp_ms"))
        for number, leader_epoch, time_ms in zip(*columns, strict=True):
            yield self.keys_by_number[number], leader_epoch, time_ms

    def _end(self, offset: int) -> int:
        return int(np.searchsorted(self._steps["offset"], offset, side="right"))

    def _rows_of(self, number: int) -> Rows:
        first, end = self._bounds[number : number + 2].tolist()
        return self._order[first:end]

    @cached_property
    def _order(self) -> Rows:
        """Return all rows, partition by partition."""
        return np.argsort(self._steps["partition"], kind="stable")

    @cached_property
    def _bounds(self) -> Rows:
        """Return the places at which the rows of each partition begin in that order."""
        counts = np.bincount(self._steps["partition"], minlength=len(self))
        return np.concatenate(([0], np.cumsum(counts)))

    @cached_property
    def _before(self) -> Rows:
        """Return for each row the row before it of the same partition."""
        order = self._order
        before = np.full(len(order), NO_ROW, np.intp)
        is_same = np.diff(self._steps["partition"][order]) == 0
        before[order[1:][is_same]] = order[:-1][is_same]
        return before


def _epoch_changes(steps: NDArray[Any], before: NDArray[Any], is_first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for each step 0 where its leader epoch is that of the step before, 1 where it is later or the first, 2 where it is earlier."""
    sign = np.sign(steps["leader_epoch"].astype(np.int64) - before["leader_epoch"])
    return np.where(is_first, 1, np.where(sign < 0, 2, sign)).astype(np.int64)
