"""The frame of the screens of a fleet: the answer, and what the command shows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeVar

from kforensics.commands.result import Result
from kforensics.evidence.model import Input, Problem
from kforensics.render.escape import escape_text
from kforensics.render.text.answer import MOST_LINES, answer_lines
from kforensics.render.text.screen import Line, hanging, screen_pieces
from kforensics.render.view import View

Body = TypeVar("Body")

_ALL = 1 << 30


def whole_screen(
    lines: Callable[[Result[Body], View], Iterable[Line]],
) -> Callable[[Result[Body], View], Iterator[str]]:
    """Make the writer of a screen, line by line: the answer, and below it what a command shows.

    Args:
        lines: lays out what follows the answer.
    """

    @wraps(lines)
    def write(result: Result[Body], view: View) -> Iterator[str]:
        return screen_pieces(_framed(result, view, lines(result, view)), width=view.width, colour=view.colour)

    return write


def problem_lines(problems: Iterable[Problem], inputs: Sequence[Input]) -> Iterator[Line]:
    """Yield the lines that name what could not be read, and why."""
    for one in problems:
        what = "left out" if one.is_foreign else "not read"
        yield hanging(f"{what}: {escape_text(one.place(inputs))}: {escape_text(one.message)}")


def _framed(result: Result[Any], view: View, lines: Iterable[Line]) -> Iterator[Line]:
    yield from answer_lines(
        result.answer, command=result.command, width=view.width, most=_ALL if view.verbose else MOST_LINES
    )
    yield from lines
