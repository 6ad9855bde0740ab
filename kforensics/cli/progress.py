"""Progress on standard error, only where a person watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def byte_progress(*, quiet: bool, total: int | None = None) -> Iterator[Callable[[int, int], None] | None]:
    """A bar that is told of bytes read and findings so far; none where nobody watches."""
    if quiet:
        yield None
        return
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
        task = bar.add_task("reading", total=total, found=0)

        def advance(count: int, found: int) -> None:
            bar.update(task, advance=count, found=found, refresh=True)

        yield advance
