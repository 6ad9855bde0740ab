"""Who holds what: records that one replica alone holds, and replicas that hold a damaged range intact."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kforensics.damage import Absent, Damage
from kforensics.evidence.checks.context import CheckedPartition, SoundRange
from kforensics.evidence.model import Input
from kforensics.reconcile.committed.judge import CommitJudge, CommittedCounts, CommittedRun, count_runs
from kforensics.reconcile.logs.loaded_log import LoadedLog
from kforensics.reconcile.logs.log_pairs import LogPairs
from kforensics.units import OffsetRange, TopicPartition


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


@dataclass(frozen=True, slots=True, kw_only=True)
class IntactReplica:
    """A replica that holds every offset of a damaged range in sound batches of the same leader epochs."""

    input: int
    broker_id: int | Absent
    path: str


class IntactReplicas:
    """Answers, for all replicas among the inputs, who holds a range intact.

    Args:
        partitions: every partition directory that was checked.
    """

    def __init__(self, partitions: Sequence[CheckedPartition], inputs: Sequence[Input]) -> None:
        self._inputs = inputs
        self._by_partition: dict[TopicPartition, list[CheckedPartition]] = defaultdict(list)
        self._by_directory: dict[tuple[int, str], CheckedPartition] = {}
        for one in partitions:
            self._by_directory[one.context.input, one.context.path] = one
            if not isinstance(one.context.topic_partition, Absent):
                self._by_partition[one.context.topic_partition].append(one)

    def holders(self, owner: CheckedPartition, damage: Damage) -> tuple[IntactReplica, ...]:
        """Return other replicas of the partition that hold the lost offsets; none where no offset is known to be lost."""
        lost = damage.offsets_lost
        if isinstance(lost, Absent) or isinstance(owner.context.topic_partition, Absent):
            return ()
        window = _epoch_window(owner.coverage, lost)
        found = []
        for other in self._by_partition[owner.context.topic_partition]:
            if (
                other is owner
                or _is_other_topic(owner.topic_id, other.topic_id)
                or not _holds(other.coverage, lost, window)
            ):
                continue
            described = self._inputs[other.context.input]
            found.append(
                IntactReplica(input=other.context.input, broker_id=described.broker_id, path=other.context.path)
            )
        return tuple(found)

    def owner(self, input_index: int, path: str) -> CheckedPartition | None:
        """Return the partition directory that a file is in, or None where it is in none."""
        folder = path.rpartition("/")[0]
        return self._by_directory.get((input_index, folder)) or self._by_directory.get((input_index, path))


def _is_other_topic(one: str | Absent, other: str | Absent) -> bool:
    # An id that is not written yet says nothing.
    return not isinstance(one, Absent) and not isinstance(other, Absent) and one != other


def _epoch_window(coverage: Sequence[SoundRange], lost: OffsetRange) -> tuple[int, int]:
    """Return the leader epochs between which the lost range lies, by the sound batches around it."""
    epochs = [entry for part in coverage for entry in part.epochs]
    lowest = max((epoch for epoch, first in epochs if first <= lost.first), default=-1)
    highest = min((epoch for epoch, first in epochs if first > lost.last), default=1 << 31)
    return lowest, highest


def _holds(coverage: Sequence[SoundRange], lost: OffsetRange, window: tuple[int, int]) -> bool:
    first = lost.first
    for part in coverage:
        if part.first_offset <= first <= part.last_offset:
            first = part.last_offset + 1
        if any(start <= lost.last and end >= lost.first for start, end in part.lost):
            return False
    if first <= lost.last:
        return False
    held = [epoch for part in coverage for epoch, start in part.epochs if start <= lost.last]
    return not held or window[0] <= max(held) <= window[1]
