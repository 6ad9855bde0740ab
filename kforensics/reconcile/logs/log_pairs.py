"""The logs of one partition compared with each other, two at a time: up to where they agree, and what each holds of another."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

from kforensics.evidence.model import BatchReader
from kforensics.reconcile.logs.divergence import (
    Divergence,
    agreed_until,
    common_range,
    divergence_past_damage,
    first_divergence,
    same_batches_from,
    same_batches_until,
)
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.units import OffsetRange

Value = TypeVar("Value")
OfPair = Callable[["LogPairs", LoadedLog, LoadedLog], Value]


def _once(*, is_mutual: bool = False) -> Callable[[OfPair[Value]], OfPair[Value]]:
    """Let a method say of two logs what it said of them first, or of them in the other order."""

    def known(method: OfPair[Value]) -> OfPair[Value]:
        @wraps(method)
        def of(logs: "LogPairs", one: LoadedLog, other: LoadedLog, /) -> Value:
            at = (method.__name__, id(one), id(other))
            if at not in logs.known:
                value = method(logs, one, other)
                # The logs are held too, so that no later one takes the id of one of them.
                logs.known[at] = (value, one, other)
                if is_mutual:
                    logs.known[method.__name__, id(other), id(one)] = (value, one, other)
            return logs.known[at][0]  # type: ignore[no-any-return]

        return of

    return known


class LogPairs:
    """What two logs of a partition have in common, found once for each two.

    Args:
        reader: gives batches where digests differ.
        witnesses: all logs of the partition, which tell which of two that differ is damaged.
    """

    def __init__(self, reader: BatchReader, witnesses: Sequence[LoadedLog]) -> None:
        self.reader = reader
        self.undecided: list[OffsetRange] = []
        """Runs of offsets of two logs that may differ: what is at hand proves neither."""
        self.known: dict[tuple[str, int, int], tuple[Any, LoadedLog, LoadedLog]] = {}
        self._witnesses = witnesses

    @_once(is_mutual=True)
    def divergence(self, one: LoadedLog, other: LoadedLog) -> Divergence | None:
        """Return the first difference of two logs."""
        return first_divergence(one, other, self.reader, self.undecided, witnesses=self._witnesses)

    def agree_until(self, one: LoadedLog, other: LoadedLog) -> int:
        """Return the exclusive offset up to which two logs hold the same."""
        found = self.divergence(one, other)
        return agreed_until(one, other, found.offset if found is not None and not found.is_open else None)

    @_once(is_mutual=True)
    def past_damage(self, one: LoadedLog, other: LoadedLog) -> Divergence | None:
        """Return the first difference that is not damage of either log."""
        found = self.divergence(one, other)
        return divergence_past_damage(one, other, found, self.reader, witnesses=self._witnesses)

    @_once()
    def held_until(self, view: LoadedLog, other: LoadedLog) -> int:
        """Return the offset below which another log holds all of a log, or held it until retention or a request removed it there."""
        if common_range(view, other) is None and other.log_start_offset > view.content_start_offset:
            return min(other.log_start_offset, view.log_end_offset)
        return min(self.same_records_until(view, other), view.log_end_offset)

    @_once()
    def held_again_from(self, view: LoadedLog, other: LoadedLog) -> int:
        """Return the offset from which on another log holds all of a log, up to its end; its end where the other one ends before it, or with other records."""
        if other.log_end_offset < view.log_end_offset or common_range(view, other) is None:
            return view.log_end_offset
        return same_batches_from(view, other, self.held_until(view, other), self.reader)

    @_once()
    def same_again(self, view: LoadedLog, other: LoadedLog) -> OffsetRange | None:
        """Return the offsets behind other content at which two logs hold the same batches again, up to the end of the shorter one."""
        end, parted = min(view.log_end_offset, other.log_end_offset), self.held_until(view, other)
        if parted >= end or common_range(view, other) is None:
            return None
        since = same_batches_from(view, other, parted, self.reader)
        return OffsetRange(since, end - 1) if since < end else None

    @_once()
    def lacked_by(self, other: LoadedLog, view: LoadedLog) -> Sequence[OffsetRange]:
        """Return the offsets of a log that another one does not hold, or holds with other content."""
        first = max(self.held_until(view, other), view.content_start_offset)
        end = self.held_again_from(view, other)
        again = self.same_again(view, other)
        return tuple(OffsetRange(first, end - 1).without([again] if again else []))

    @_once()
    def same_records_until(self, one: LoadedLog, other: LoadedLog) -> int:
        """Return the offset up to which both logs hold the same records, whatever leader epoch their batches carry; damaged ranges of either are passed over.

        The epoch of a batch lies outside its checksum: a replica can hold the very batches of the leader under another epoch. It truncates them, and
        fetches them again.
        """
        found = self.past_damage(one, other)
        until = agreed_until(one, other, found.offset if found is not None and not found.is_open else None)
        is_by_epoch = found is not None and found.kind == "epoch" and not found.is_open
        return same_batches_until(one, other, until, self.reader) if is_by_epoch else until
