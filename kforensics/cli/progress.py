"""Progress on standard error, only where a person watches."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class ByteProgress:
    """A bar that takes bytes read and findings so far."""

    def __init__(self, bar: "Progress", task: "TaskID") -> None:
        self._bar = bar
        self._task = task

    def expect(self, total: int) -> None:
        """Say how many bytes there are to read.

        Args:
            total: in bytes, of all inputs.
        """
        self._bar.update(self._task, total=total)

    def __call__(self, count: int, found: int = 0) -> None:
        """Say how many bytes were read since the last call."""
        self._bar.update(self._task, advance=count, found=found, refresh=True)


@contextmanager
def byte_progress() -> Iterator[ByteProgress]:
    """A bar for as long as it is needed."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    # Without its own thread the bar leaves the process free to fork.
    columns = (
        TextColumn("reading"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[found]} findings"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        yield ByteProgress(bar, bar.add_task("reading", total=None, found=0))
