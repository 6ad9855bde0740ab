"""Help of a command from its docstring, paragraphs as one line each: typer would break lines where the source does."""

import inspect
from collections.abc import Callable


def help_of(command: Callable[..., None]) -> str:
    """The docstring's paragraphs."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
