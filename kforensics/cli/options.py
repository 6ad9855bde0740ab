"""The options that every command has for its output."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kforensics.cli.terminal import ColourChoice

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
