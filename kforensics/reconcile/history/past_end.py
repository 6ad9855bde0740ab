"""High watermarks on record that lie past the end of every log given: what lay below them was committed and is on no disk here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kforensics.damage import Absent
from kforensics.evidence.model import Citation
from kforensics.reconcile.history.log_copies import LogCopy
from kforensics.reconcile.history.losses import is_in_use
from kforensics.units import OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class PastEnd:
    """One replica whose high watermark no log reaches."""

    broker_id: int | Absent
    owner: str
    high_watermark: int
    log_end: int
    """The log end offset of the longest log."""
    citation: Citation
    is_sure: bool = False
    """The broker had stopped when its directories were copied; else copying at two moments, or a power loss, may explain it."""


def high_watermarks_past_end(
    copies: Sequence[LogCopy], known: Iterable[OffsetRange], *, is_stopped: bool = False
) -> tuple[PastEnd, ...]:
    """Return every replica in use with a high watermark past the end of all of them.

    Args:
        copies: all copies of the partition's log.
        known: offsets of losses that are listed already, with the copies that show them.
        is_stopped: no broker ran when the directories as they are now were copied.
    """
    now = [copy for copy in copies if is_in_use(copy)]
    end = max((copy.view.log_end_offset for copy in now), default=0)
    reached = max((one.last + 1 for one in known), default=end)
    found = []
    for copy in now:
        recorded = copy.view.replica.high_watermark
        if isinstance(recorded, Absent) or recorded.value <= max(end, reached):
            continue
        found.append(
            PastEnd(
                broker_id=copy.broker_id,
                owner=copy.view.replica.owner,
                high_watermark=recorded.value,
                log_end=end,
                citation=recorded.citation,
                is_sure=is_stopped or copy.view.replica.clean_shutdown,
            )
        )
    return tuple(found)
