"""Whether a copy of a node's directories can have been taken while its broker ran.

A broker writes its checkpoints and its logs at different moments, and a copy reads them one after the other: a high watermark or recovery point a little
above the log end then is no loss. A power loss leaves the same picture. A clean stop leaves a marker and checkpoints that fit.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue, Replica
from kforensics.evidence.replica.unaccounted import Sign, unaccounted_offsets
from kforensics.units import TopicPartition


class Stop(StrEnum):
    """The way in which the node of the directories stopped."""

    CLEAN = "clean"
    """Every log directory has the marker of a clean stop."""
    NOT_SHOWN = "not-shown"
    """One has none: the broker ran, was killed or lost power."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """A log that ends below what a checkpoint of the same copy says."""

    topic_partition: TopicPartition
    log_end_offset: int
    checkpoint: str
    """`high_watermark` or `recovery_point`."""
    value: CheckpointValue
    can_be_copying: bool
    """The checkpoint was written after the log's last change, or when is not known: copying at two moments explains it."""

    @property
    def count(self) -> int:
        """Offsets between the log end and the checkpoint."""
        return self.value.value - self.log_end_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyMoment:
    """The way in which one node stopped and its directories were copied."""

    input: int
    broker_id: int | Absent
    stop: Stop
    unsettled: tuple[Unsettled, ...]

    @property
    def may_be_copied_while_running(self) -> bool:
        """Whether logs end below checkpoints as copying a running broker leaves them; a power loss looks alike."""
        return self.stop is Stop.NOT_SHOWN and any(one.can_be_copying for one in self.unsettled)


def copy_moments(replicas: Iterable[Replica]) -> tuple[CopyMoment, ...]:
    """Return how each node stopped, by its live replicas of any partitions, in the order of the inputs.

    Args:
        replicas: of one moment; those of a single partition say nothing of the others.
    """
    by_input: dict[int, list[Replica]] = {}
    for replica in replicas:
        if replica.state == "live":
            by_input.setdefault(replica.input, []).append(replica)
    return tuple(
        CopyMoment(
            input=number,
            broker_id=members[0].broker_id,
            stop=Stop.CLEAN if all(one.clean_shutdown for one in members) else Stop.NOT_SHOWN,
            unsettled=tuple(found for one in members for found in _unsettled(one)),
        )
        for number, members in sorted(by_input.items())
    )


def _unsettled(replica: Replica) -> Iterator[Unsettled]:
    if not any(one.sign is Sign.ABOVE_END for one in unaccounted_offsets(replica)):
        return
    end = replica.lineage.log_end_offset
    changed_ns = max((one.mtime_ns for one in replica.segments), default=0)
    named = (("high_watermark", replica.high_watermark), ("recovery_point", replica.recovery_point))
    for name, value in named:
        if isinstance(value, CheckpointValue) and value.value > end:
            written_ns = replica.checkpoint_times_ns.get(name, 0)
            yield Unsettled(
                topic_partition=replica.topic_partition,
                log_end_offset=end,
                checkpoint=name,
                value=value,
                can_be_copying=not written_ns or not changed_ns or written_ns >= changed_ns,
            )
