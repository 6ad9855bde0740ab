"""The other replicas among the inputs that hold a damaged range intact."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kforensics.damage import Absent, Damage
from kforensics.evidence.checks.context import CheckedPartition, SoundRange
from kforensics.evidence.model import Input
from kforensics.units import OffsetRange, TopicPartition


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
        """Return other replicas of the partition that hold the lost offsets; none where no offset is known to be lost.

        Args:
            owner: the partition directory that is damaged.
            damage: with the offsets that are lost by it.
        """
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
        """Return the partition directory that a file is in, or None where it is in none.

        Args:
            input_index: the number of the input, from 0.
            path: of the file, or of the directory itself, relative to the input.
        """
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
