"""An answer as the first lines of a screen: headline, NOW, WHO TO TELL, LATER, CAN'T TELL."""

from collections.abc import Iterator

from rich.text import Text

from kforensics.findings.answers.model import STATES, Answer
from kforensics.render.escape import escape_text
from kforensics.render.frame import ANSWER_PARTS
from kforensics.render.text.screen import Style, wrapped
from kforensics.words import Step

MOST_LINES = 12
"""Lines of an answer before the first fact: whoever reads it has to act on it."""

_LABEL_WIDTH = 13


def answer_lines(answer: Answer, *, command: str, width: int, most: int = MOST_LINES) -> Iterator[Text]:
    """Yield the lines of an answer, the headline first.

    Args:
        most: lines at most, but all of what to do at once; what is left out is counted in the last one.
    """
    lines = wrapped(escape_text(answer.headline), width=width, style=_answer_style(answer, command))
    least = 0
    for label, name in ANSWER_PARTS:
        for at, advice in enumerate(getattr(answer, name)):
            lines += _advice_lines(advice, lead=f"{label if not at else '':<{_LABEL_WIDTH}}", width=width)
        least = least or len(lines) * (name == "now")
    most = max(most, least + 1)
    if len(lines) > most:
        hidden = len(lines) - most + 1
        lines = [*lines[: most - 1], Text(f"… {hidden} more lines of this answer: -v shows all.", style=Style.QUIET)]
    yield from lines


def _advice_lines(advice: str, *, lead: str, width: int) -> list[Text]:
    """Return the lines of one piece of advice: its words wrapped, and each of its commands on a line of its own, as long as it is."""
    indent = " " * _LABEL_WIDTH
    if not isinstance(advice, Step) or not advice.commands:
        return wrapped(escape_text(advice), width=width, first=lead, indent=indent)
    lines = wrapped(f"{escape_text(advice.sentence.rstrip('.:'))}:", width=width, first=lead, indent=indent)
    return [*lines, *(Text(f"{indent}$ {escape_text(command)}") for command in advice.commands)]


def _answer_style(answer: Answer, command: str) -> str:
    """Return the style of a headline: good only where the state is calm, bad where it exits with 1."""
    if answer.state.is_calm:
        return Style.ANSWER_GOOD
    return {0: Style.HEADING, 1: Style.ANSWER_BAD}.get(STATES[command][answer.state], Style.ANSWER_WARNING)
