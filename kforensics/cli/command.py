"""The common part of all commands: their options for output, how a result is written, and the exit code."""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import typer

from kforensics.cli.destination import check_out, write_result
from kforensics.cli.options import ColourOption, OutOption, QuietOption, VerboseOption
from kforensics.cli.terminal import ColourChoice, screen_width, speaks_unicode, wants_colour
from kforensics.commands.moment import now_ms
from kforensics.errors import UsageError
from kforensics.render.emit import (
    CONTENT,
    MEANINGS,
    OutputFormat,
    emit,
    formats_of,
    headline,
    require_format,
    shapes_of,
)
from kforensics.render.view import View
from kforensics.units import Depth

if TYPE_CHECKING:
    from kforensics.cli.progress import ByteProgress
    from kforensics.commands.cluster_evidence import Reading
    from kforensics.commands.result import Result

MOST_PROBLEMS = 20
"""Problems that are named on standard error."""

READ_NEXT = "This is the answer of the ends of the logs. Content, read now, may correct it."
CONFIRMED = "All content was read, and confirms the answer:"
CORRECTED = "All content was read, and corrects the answer:"

_ON_STANDARD_ERROR = frozenset({"dump", "metadata", "seal manifest"})
"""Shapes whose screens have no place for what could not be read."""


class Output(NamedTuple):
    """The way in which the result of one run is to be written."""

    command: str
    format: OutputFormat
    out: Path | None
    colour: ColourChoice
    quiet: bool
    verbose: bool
    context: typer.Context

    def check(self, inputs: Sequence[Path], *shapes: str) -> None:
        """Refuse, before the work, a format that there is not, and a file that may not be written.

        Args:
            inputs: that the file must be outside of.
            shapes: of the result; all that the command has where none is named.

        Raises:
            UsageError: either of them.
        """
        require_format(self.format, *(shapes or shapes_of(self.command)))
        if self.quiet and self.format is not OutputFormat.TEXT:
            raise UsageError(f"--quiet writes one line of text: it does not go with --format {self.format}")
        check_out(self.out, inputs)

    @contextmanager
    def progress(self) -> "Iterator[ByteProgress | None]":
        """A bar on standard error, only where a person watches."""
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        from kforensics.cli.progress import byte_progress

        with byte_progress() as bar:
            yield bar

    def write(self, result: "Result[Any]", **shown: bool) -> None:
        """Write the result, and what its screen does not say to standard error.

        Args:
            result: of the command.
            shown: fields of `View` that the command has options for.
        """
        content = result.shape in CONTENT
        if self.quiet and result.shape != "seal manifest":
            write_result(headline(result), self.out)
            _warn_of_records(result)
            return
        view = View(
            width=screen_width(),
            unicode=speaks_unicode(),
            colour=wants_colour(sys.stdout if self.out is None else None, self.colour),
            verbose=self.verbose,
            made_ms=now_ms() if self.format is OutputFormat.HTML else None,
            descriptor=_standard_output if self.out is None else None,
            **shown,
        )
        write_result(emit(result, self.format, view), self.out)
        if result.shape in _ON_STANDARD_ERROR:
            complain(result)
        _warn_of_records(result)
        if content and (result.exit_code or result.command == "seal"):
            typer.echo(headline(result), err=True, nl=False)

    def finish_by_depth(
        self,
        look: "Callable[[Depth, ByteProgress | None, Reading[Any] | None], Result[Any]]",
        depth: Depth | None,
        **shown: bool,
    ) -> NoReturn:
        """Write the result of a depth and end with its exit code.

        Where no depth is given and a person watches, the answer of the ends of logs is written first; then all content is read, which confirms or corrects it.

        Args:
            look: makes the result of a depth, out of what an earlier look has read.
            depth: the one that was asked for.
            shown: as for `write`.
        """
        is_watched = self.format is OutputFormat.TEXT and self.out is None and not self.quiet and sys.stdout.isatty()
        ends = None
        if depth is None and is_watched:
            ends = look(Depth.TAILS, None, None)
            self.write(ends, **shown)
            typer.echo(f"\n{READ_NEXT}")
            sys.stdout.flush()
        with self.progress() as progress:
            result = look(depth or Depth.CONTENT, progress, ends.reading if ends else None)
        if ends is None:
            self.finish(result, **shown)
        from kforensics.commands.result import confirms

        if confirms(result, ends):
            typer.echo(f"\n{CONFIRMED}\n{headline(result)}", nl=False)
            raise typer.Exit(result.exit_code)
        typer.echo(f"\n{CORRECTED}\n")
        self.finish(result, **shown)

    def finish(self, result: "Result[Any]", **shown: bool) -> NoReturn:
        """Write the result and end with its exit code.

        Args:
            result: concluded.
            **shown: what of it is shown, by the fields of `View`.
        """
        self.write(result, **shown)
        raise typer.Exit(result.exit_code)


def complain(result: "Result[Any]") -> None:
    """Name what could not be read, on standard error.

    Args:
        result: of which `MOST_PROBLEMS` problems are named, and the others counted.
    """
    from kforensics.render.escape import escape_text

    problems = result.problems
    for one in problems[:MOST_PROBLEMS]:
        typer.echo(f"kforensics: {escape_text(one.place(result.inputs))}: {escape_text(one.message)}", err=True)
    if len(problems) > MOST_PROBLEMS:
        typer.echo(f"kforensics: and {len(problems) - MOST_PROBLEMS:,} more", err=True)


def _warn_of_records(result: "Result[Any]") -> None:
    """Name the captures among the inputs that hold records of users."""
    from kforensics.render.escape import escape_text

    for path in result.private_inputs:
        words = "it holds records of users (it was taken with --with-tail): keep it as private as the log directories"
        typer.echo(f"kforensics: {escape_text(path)}: {words}", err=True)


def _standard_output() -> int:
    sys.stdout.flush()
    return sys.stdout.fileno()


def with_output(name: str, *, has_out: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options for output; it gets what they come to as its first argument.

    Args:
        name: of the command in the table of writers.
        has_out: whether a file can be named for the result.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        offered = formats_of(*shapes_of(name))
        options = [
            ("output_format", _format_option(offered), OutputFormat.TEXT),
            *([("brief", _BriefOption, False)] if OutputFormat.BRIEF in offered else []),
            *([("out", OutOption, None)] if has_out else []),
            ("color", ColourOption, None),
            ("quiet", QuietOption, False),
            ("verbose", VerboseOption, False),
        ]

        def run(context: typer.Context, **values: Any) -> None:
            given = {key: values.pop(key, None) for key, _, _ in options}
            function(
                Output(
                    command=name,
                    format=OutputFormat.BRIEF if given.get("brief") else given["output_format"],
                    out=given.get("out"),
                    colour=given["color"] or context.obj or ColourChoice.AUTO,
                    quiet=given["quiet"],
                    verbose=given["verbose"],
                    context=context,
                ),
                **values,
            )

        own = list(inspect.signature(function).parameters.values())[1:]
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context),
            *(one.replace(kind=keyword) for one in own),
            *(inspect.Parameter(key, keyword, default=default, annotation=kind) for key, kind, default in options),
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # typer reads options from it
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__name__ = function.__name__
        run.__doc__ = function.__doc__
        run.__module__ = function.__module__
        return run

    return decorate


def _format_option(offered: Sequence[OutputFormat]) -> Any:
    option = typer.Option(
        "--format",
        metavar="|".join(offered),  # what the command has, not all that there are
        help=f"How the result is written: {', '.join(f'{one} {MEANINGS[one]}' for one in offered)}.",
        case_sensitive=False,
        autocompletion=lambda: [one.value for one in offered],
    )
    return Annotated[OutputFormat, option]


_BriefOption = Annotated[
    bool, typer.Option("--brief", help="Write the answer alone in five lines of Markdown, for a chat: --format brief.")
]
