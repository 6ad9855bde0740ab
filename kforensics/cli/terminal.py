"""The properties of the terminal that a result is written to."""

import os
import sys
from enum import StrEnum
from typing import IO

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
