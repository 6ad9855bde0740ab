"""Help of a command from its docstring, paragraphs as one line each: typer would break lines where the source does."""

import inspect
from collections.abc import Callable


def help_of(command: Callable[..., None]) -> str:
    """Return the paragraphs of a command's docstring, each on one line.

    Args:
        command: of which the docstring is the help.
    """
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
