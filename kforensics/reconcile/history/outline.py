"""The outline of a log at one moment: what a picture of it needs, without the batches."""

from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.model import CheckpointValue
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.units import EpochEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOutline:
    """One copy of a partition's log: where it is, of which moment it is, and its first and last offsets."""

    input: int
    path: str
    broker_id: int | Absent
    rank: int
    """Snapshots count up with time; what is now has the highest."""
    is_final: bool
    """Whether it is the log as it is now, not out of an earlier snapshot."""
    is_remnant: bool
    """Whether it has only segments that were renamed for deletion."""
    state: str
    """`live`, `future`, `stray` or `deleted`, from the directory's name."""
    log_start_offset: int
    log_end_offset: int
    epochs: tuple[EpochEntry, ...]
    high_watermark: int | Absent
    """The checkpointed value; absent where no checkpoint has one."""
    first_base_offset: int | Absent = Absent.UNKNOWN
    """The base offset of the oldest segment on disk."""
    log_start: CheckpointValue | Absent = Absent.NOT_WRITTEN
    """The checkpointed log start: brokers write it down only where the log does not begin with its oldest segment."""
    newest_ms: int | Absent = Absent.UNKNOWN
    """The newest time of its records; unknown where it holds none."""


def outline_of(copy: LogCopy) -> LogOutline:
    """Return the outline that a picture of the copy shows.

    Args:
        copy: its epochs are those of its checkpoint, or of its batches where it has none.
    """
    view = copy.view
    replica = view.replica
    recorded = replica.high_watermark
    return LogOutline(
        input=replica.input,
        path=replica.path,
        broker_id=replica.broker_id,
        rank=copy.rank,
        is_final=copy.is_final,
        is_remnant=copy.is_remnant,
        state=replica.state,
        log_start_offset=view.log_start_offset,
        log_end_offset=view.log_end_offset,
        epochs=view.epochs or view.batch_epochs,
        high_watermark=recorded if isinstance(recorded, Absent) else recorded.value,
        first_base_offset=replica.segments[0].base_offset if replica.segments else Absent.NOT_APPLICABLE,
        log_start=replica.log_start,
        newest_ms=max(
            (one.max_timestamp_ms for one in view.segments if isinstance(one.max_timestamp_ms, int)),
            default=Absent.UNKNOWN,
        ),
    )
