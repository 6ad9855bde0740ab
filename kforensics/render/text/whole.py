"""The frame of every screen: the seal where it does not hold, the answer, what the command shows, the seal."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from rich.text import Text

from kforensics.commands.result import Result
from kforensics.evidence.model import Input, Problem
from kforensics.render.escape import escape_text
from kforensics.render.text.answer import MOST_LINES, answer_lines
from kforensics.render.text.screen import INDENT, Style, screen_pieces, wrapped
from kforensics.render.view import View

if TYPE_CHECKING:
    from kforensics.commands.sealing.report import CheckedSeal

Body = TypeVar("Body")

_ALL = 1 << 30


def whole_screen(
    lines: Callable[[Result[Body], View], Iterable[Text | str]],
) -> Callable[[Result[Body], View], Iterator[str]]:
    """Make the writer of a screen, line by line: the answer and the seal around what a command shows.

    Args:
        lines: lays out what follows the answer.
    """

    @wraps(lines)
    def write(result: Result[Body], view: View) -> Iterator[str]:
        return screen_pieces(_framed(result, view, lines(result, view)), colour=view.colour)

    return write


def problem_lines(problems: Iterable[Problem], inputs: Sequence[Input], width: int) -> Iterator[Text]:
    """Yield the lines that name what could not be read, and why.

    Args:
        problems: of the result.
        inputs: all that were given.
        width: in columns.
    """
    for one in problems:
        words = f"not read: {escape_text(one.place(inputs))}: {escape_text(one.message)}"
        yield from wrapped(words, width=width, indent=INDENT * 2, first=INDENT)


def _framed(result: Result[Any], view: View, lines: Iterable[Text | str]) -> Iterator[Text | str]:
    seal, answer = result.seal, result.answer
    if seal is not None and not seal.holds:
        words = (
            "NOT WHAT WAS SEALED: the inputs differ from the manifest (`kforensics seal --check` lists where), "
            "and this report rests on them as they are now."
        )
        yield from wrapped(words, width=view.width, style=Style.ANSWER_BAD)
    most = _ALL if view.verbose else MOST_LINES
    yield from answer_lines(answer, command=result.command, width=view.width, most=most)
    yield from lines
    if seal is not None:
        yield Text()
        yield from _seal_lines(seal, view.width)


def _seal_lines(seal: "CheckedSeal", width: int) -> Iterator[Text]:
    from kforensics.commands.sealing.report import seal_sentence  # noqa: PLC0415 - few reports name a seal

    style = Style.QUIET if seal.holds else Style.ANSWER_BAD
    yield from wrapped(escape_text(seal_sentence(seal)), width=width, style=style)
