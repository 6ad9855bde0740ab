"""The files among the inputs that may be logs of brokers, by name and place."""

from pathlib import Path
from typing import NamedTuple

from kforensics.evidence.discovery.inputs import Inputs
from kforensics.source.naming import FileKind
from kforensics.source.walk import FoundFile


class LogPlace(NamedTuple):
    """A file that may be a broker's log."""

    root: Path
    """The real path of the input."""
    path: str
    """The path relative to the input; `.` where the input is the file."""
    input: int

    @property
    def location(self) -> Path:
        """The real path of the file."""
        return self.root if self.path == "." else self.root / self.path


def find_logs(inputs: Inputs) -> list[LogPlace]:
    """Return the files among the inputs that may be broker logs.

    Args:
        inputs: of which log files given alone, and directories without data directories, are looked at.
    """
    return [
        LogPlace(found.root, item.path, index)
        for index, found in enumerate(inputs.found)
        if found.described.kind in {"log-files", FileKind.LOG_FILE.value}
        for item in found.walk()
        if isinstance(item, FoundFile) and item.name.kind in {FileKind.LOG_FILE, FileKind.UNKNOWN}
    ]
