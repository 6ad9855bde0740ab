"""Events of all log files in one order of time, each with the node that wrote it and its time in UTC."""

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.model import Citation
from kforensics.formats.log_lines.event import LogEvent
from kforensics.reconcile.observed.clocks import Clock


class LoggedEvent(NamedTuple):
    """One event with its node, its time in UTC, and its file."""

    event: LogEvent
    node_id: int | Absent
    time_ms: int | Absent
    file: LogFile

    @property
    def citation(self) -> Citation:
        """Return the citation of the event; it is made on demand, since most events are never cited."""
        return self.file.cite(self.event)


def order_events(files: Sequence[LogFile], clocks: Sequence[Clock]) -> tuple[LoggedEvent, ...]:
    """Return all events by time; lines of one file keep their order, and a line without a time follows the line before it.

    Args:
        files: the log files.
        clocks: one for each of them, in their order.
    """
    keyed = []
    for at, (file, clock) in enumerate(zip(files, clocks, strict=True)):
        latest = 0
        for number, event in enumerate(file.events):
            time_ms = clock.utc_ms(event)
            # A clock that jumps back must not change the order of a file's lines.
            latest = max(latest, time_ms) if isinstance(time_ms, int) else latest
            node = file.node_id if isinstance(event.broker_id, Absent) else event.broker_id
            keyed.append((latest, at, number, LoggedEvent(event, node, time_ms, file)))
    keyed.sort(key=itemgetter(0, 1, 2))
    return tuple(item for _, _, _, item in keyed)
