"""Where a result is written to, the terminal or a new file: the properties of the one, the check of the other, the options for both, and progress where a person watches."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from kforensics.commands.outside import check_new_file
from kforensics.errors import EvidenceError, UsageError

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
        """Say how many bytes of all inputs there are to read."""
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


def check_out(out: Path | None, inputs: Sequence[Path]) -> None:
    """Refuse, before the work, an output file that exists, has no directory, or would lie inside the evidence."""
    if out is not None:
        check_new_file(out, inputs)


class _StandardOutput:
    is_begun = False
    """Something of a result is written already."""


def forget_output() -> None:
    """Begin a command: nothing of its result is written yet."""
    _StandardOutput.is_begun = False


def write_refusal(error: EvidenceError) -> None:
    """Write the document of inputs that are refused, unless a result was begun before."""
    if not _StandardOutput.is_begun:
        from kforensics.render.emit import refusal_document

        write_result(refusal_document(error))


def _write_to_standard_output(pieces: Iterable[str]) -> None:
    for piece in pieces:  # made outside of the `try`: what evidence does not give is no fault of the output
        _StandardOutput.is_begun = True
        try:
            sys.stdout.write(piece)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _refused(error) from error
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _refused(error) from error


def _refused(error: OSError) -> UsageError:
    return UsageError(f"standard output can't be written: {error.strerror}; the result is incomplete")


def write_result(text: str | Iterable[str], out: Path | None = None) -> None:
    """Write the result, whole or piece by piece.

    Args:
        text: of the result; pieces may be made while they are written.
        out: a new file, which is removed again where it can't be written to its end; None for standard output.
    """
    pieces = (text,) if isinstance(text, str) else text
    if out is None:
        _write_to_standard_output(pieces)
        return
    try:
        with out.open("x", encoding="utf-8", newline="\n") as target:
            try:
                for piece in pieces:
                    target.write(piece)
                target.flush()
            except BaseException:
                out.unlink()  # what is not finished must not be taken for a result
                raise
    except OSError as error:
        raise UsageError(f"{out} can't be written: {error.strerror}") from error
