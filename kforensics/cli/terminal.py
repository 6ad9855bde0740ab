"""The terminal that a result is written to: its properties, the options for its output, and progress where a person watches."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

DEFAULT_WIDTH = 80
WIDEST = 120
"""Longer lines are hard to read, however wide the terminal."""


class ColourChoice(StrEnum):
    """The cases in which text is coloured."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def screen_width(stream: IO[str] | None = None) -> int:
    """Return the columns to lay out for: COLUMNS where set, else the terminal's, at most 120; 80 where there is none."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and len(chosen) < 6 and int(chosen) >= 20:
        return min(int(chosen), WIDEST)
    stream = stream or sys.stdout
    try:
        return min(max(os.get_terminal_size(stream.fileno()).columns, 40), WIDEST)
    except (OSError, ValueError, AttributeError):
        return DEFAULT_WIDTH


def speaks_unicode(stream: IO[str] | None = None) -> bool:
    """Whether lines and marks beyond ASCII can be written to the stream."""
    encoding = getattr(stream or sys.stdout, "encoding", None) or "ascii"
    try:
        "━─╳≠…→".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def wants_colour(stream: IO[str] | None, choice: ColourChoice = ColourChoice.AUTO) -> bool:
    """Whether text is coloured: as chosen, else on a terminal only, and not where NO_COLOR or a dumb terminal forbids it.

    Args:
        stream: None where the result is written to a file, which gets colour only where it is always wanted.
    """
    if choice is not ColourChoice.AUTO or stream is None:
        return choice is ColourChoice.ALWAYS
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") != "dumb"


option = partial(typer.Option, show_default=False)
"""An option without a default value to show."""

OutOption = Annotated[
    Path | None,
    option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write the result to a new FILE, outside of every input, instead of standard output.",
    ),
]

VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Also list what is fine.")]

QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Write only the first line of the answer; the exit code says the rest.")
]

ColourOption = Annotated[
    ColourChoice | None,
    option(
        "--color",
        help="When text is coloured; auto: on a terminal, unless NO_COLOR is set. It can be given before the command, too.",
        case_sensitive=False,
    ),
]


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
