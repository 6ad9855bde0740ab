"""Who holds what alone: records of which one replica is the only holder, and distinct records that a change of leader loses."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kforensics.reconcile.committed.judge import CommitJudge, CommittedCounts, CommittedRun, count_runs
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.logs.log_pairs import LogPairs
from kforensics.units import OffsetRange


class SoleHolder(NamedTuple):
    """A replica that alone, among those given, holds the records of its log from an offset on."""

    view: LoadedLog
    offsets: OffsetRange
    runs: tuple[CommittedRun, ...]
    counts: CommittedCounts
    is_tail_of_a_copy: bool
    """The others may hold them too: a replica that the record calls in sync was copied while it ran, or lost power."""
    is_other_content: bool
    """Another replica holds other content at these offsets, at least at the first of them."""


def sole_runs(
    view: LoadedLog,
    others: Sequence[LoadedLog],
    logs: LogPairs,
    judge: CommitJudge,
) -> tuple[OffsetRange, tuple[CommittedRun, ...]] | None:
    """Return the part of a log that no other log holds, in runs of one certainty; none where there is no such part."""
    first = max([view.content_start_offset, *(logs.held_until(view, other) for other in others)])
    end = min([view.log_end_offset, *(logs.held_again_from(view, other) for other in others)])
    if first >= end:
        return None
    offsets = OffsetRange(first, end - 1)
    held = (logs.same_again(view, other) for other in others)
    pieces = offsets.without(one for one in held if one is not None)
    return offsets, tuple(run for piece in pieces for run in count_runs(judge.runs(view, piece), view, logs.reader))


def distinct_counts(
    losses: Iterable[tuple[LoadedLog, int, int]],
    logs: LogPairs,
    judge: CommitJudge,
) -> CommittedCounts:
    """Return records between two offsets in several logs, each counted once by offset and content.

    Logs that agree up to an offset hold the same records below it, so what the one has been counted for is left out of the other.

    Args:
        losses: logs, each with the offset from which on it is counted, and that at which its records are not counted any more.
    """
    total = CommittedCounts()
    counted: list[tuple[LoadedLog, int, int]] = []
    for view, first, end in sorted(losses, key=lambda item: (item[1] - item[2], str(item[0].replica.path))):
        shared: list[OffsetRange] = []
        for other, other_first, other_end in counted:
            both = [OffsetRange(other_first, min(logs.same_records_until(view, other), other_end) - 1)]
            if other is not view and (again := logs.same_again(view, other)) is not None:
                both.append(OffsetRange(max(again.first, other_first), min(again.last, other_end - 1)))
            # What a log can't give has not been counted with it.
            shared += [held for one in both if one.count > 0 for held in one.without(other.lost_ranges)]
        for piece in OffsetRange(first, end - 1).without(shared):
            total += CommittedCounts.of(count_runs(judge.runs(view, piece), view, logs.reader))
        counted.append((view, first, end))
    return total
