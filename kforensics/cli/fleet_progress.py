"""How far an audit is, on standard error where a person watches: stage, tasks, bytes, time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int, int, int], None]


@contextmanager
def stage_progress(*, quiet: bool) -> Iterator[Progress | None]:
    """A bar that is told the stage, its tasks done and in all, and its bytes; none where nobody watches."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from kforensics.render.text import byte_count

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} tasks {task.fields[amount]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting Spark", total=1, amount="")

        def tell(stage: str, done: int, tasks: int, length: int, findings: int) -> None:
            if bar.tasks[0].description != stage:
                bar.reset(task, total=max(tasks, 1), description=stage)
            amount = f"{byte_count(length * done // max(tasks, 1))} of {byte_count(length)}" if length else ""
            if findings:
                amount += f" {findings} findings"
            bar.update(task, completed=done, total=max(tasks, 1), amount=amount)

        yield tell
