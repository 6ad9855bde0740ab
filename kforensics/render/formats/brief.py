"""The answer alone in Markdown, for a chat: five lines at most."""

from collections.abc import Iterator
from typing import Any

from kforensics.commands.result import Result
from kforensics.findings.answers.model import Answer
from kforensics.render.escape import escape_text
from kforensics.render.frame import ANSWER_PARTS, Content
from kforensics.render.view import View


def write(result: Result[Any], _view: View, *, content: Content) -> Iterator[str]:  # noqa: ARG001 - the answer says it all
    """Yield the answer of a result."""
    return (f"{line}\n" for line in brief_lines(result.answer))


def brief_lines(answer: Answer) -> list[str]:
    """Return the headline and one line each of what to do, whom to tell, later and unknown, without line breaks."""
    lines = [f"**{answer.headline}**"]
    for label, name in ANSWER_PARTS:
        sentences = getattr(answer, name)
        if sentences:
            more = f" (+{len(sentences) - 1} more)" if len(sentences) > 1 else ""
            lines.append(f"- *{label.capitalize()}*: {sentences[0]}{more}")
    return [escape_text(line) for line in lines]
