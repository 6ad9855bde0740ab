"""Events of all log files in one order of time, each with the node that wrote it and its time in UTC."""

import re
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from kforensics.damage import Absent
from kforensics.evidence.broker_logs import LogFile
from kforensics.evidence.model import Citation
from kforensics.formats.log_lines.event import LogEvent
from kforensics.reconcile.observed.clocks import Clock

_ROTATED = re.compile(r"(?<=\.log)[.\-_](\d+|\d{4}-\d{2}-\d{2}.*?)(\.gz)?$")
"""The end of a rotated file's name, by number or by date; the file without one is written last."""
_OTHER_DIRECTORIES = ("-delete", "-future", "-stray")


class LoggedEvent(NamedTuple):
    """One event with its node, its time in UTC, and its file; sequences of them are of all nodes, in the order of time."""

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

    A file that is being written follows those that were rotated out of it, whatever its times say.
    """
    keyed = []
    rotated = _ends_of_rotated(files, clocks)
    for at, (file, clock) in enumerate(zip(files, clocks, strict=True)):
        latest = 0 if _is_rotated(file) else rotated.get(log_written(file), -1) + 1
        for number, event in enumerate(file.events):
            time_ms = clock.utc_ms(event)
            # A clock that jumps back must not change the order of a file's lines.
            latest = max(latest, time_ms) if isinstance(time_ms, int) else latest
            node = file.node_id if isinstance(event.broker_id, Absent) else event.broker_id
            keyed.append((latest, at, number, LoggedEvent(event, node, time_ms, file)))
    keyed.sort(key=itemgetter(0, 1, 2))
    return tuple(item for _, _, _, item in keyed)


def is_of_other_directory(event: LogEvent) -> bool:
    """Whether a line is about a directory of a partition that is not its log: it was put aside, or is a future replica."""
    directory = event.fields.get("directory")
    return isinstance(directory, str) and directory.endswith(_OTHER_DIRECTORIES)


def log_written(file: LogFile) -> tuple[int | Absent, str]:
    """Return what is the same of a file and of those that were rotated out of it, whether they are given singly or by their directory.

    Args:
        file: of any node; copies in two directories are two logs.
    """
    return file.node_id, _ROTATED.sub("", file.location)


def _is_rotated(file: LogFile) -> bool:
    return _ROTATED.search(file.location) is not None


def _ends_of_rotated(files: Sequence[LogFile], clocks: Sequence[Clock]) -> dict[tuple[int | Absent, str], int]:
    """Return the latest time of the files that were rotated out of each, in UTC ms."""
    ends: dict[tuple[int | Absent, str], int] = {}
    for file, clock in zip(files, clocks, strict=True):
        if _is_rotated(file):
            times = [time for event in file.events if isinstance(time := clock.utc_ms(event), int)]
            key = log_written(file)
            ends[key] = max(*times, ends.get(key, 0), 0) if times else ends.get(key, 0)
    return ends
