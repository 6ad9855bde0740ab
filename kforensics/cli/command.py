"""The common part of all commands: their options for output, how a result is written, and the exit code."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import typer

from kforensics.ask.commands import COMMANDS
from kforensics.ask.model import Ask
from kforensics.ask.option import Spelled
from kforensics.ask.questions import ask_of, options_of
from kforensics.cli.help import ShortHelpOption
from kforensics.cli.terminal import (
    ColourChoice,
    ColourOption,
    OutOption,
    QuietOption,
    VerboseOption,
    check_out,
    screen_width,
    speaks_unicode,
    wants_colour,
    write_result,
)
from kforensics.errors import UsageError
from kforensics.render.emit import (
    CONTENT,
    MEANINGS,
    OutputFormat,
    emit,
    flattener,
    formats_of,
    headline,
    require_format,
    shapes_of,
)
from kforensics.render.view import View
from kforensics.units import Depth

if TYPE_CHECKING:
    from kforensics.case.model import Case
    from kforensics.cli.terminal import ByteProgress
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
    shown: Mapping[str, bool]
    """The options that say what of the result is shown, by the fields of `View`."""

    def check(self, inputs: Sequence[Path], *shapes: str) -> None:
        """Refuse, before the work, a format that there is not, and a file that may not be written."""
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
        from kforensics.cli.terminal import byte_progress

        with byte_progress() as bar:
            yield bar

    def write(self, result: "Result[Any]") -> None:
        """Write the result, and what its screen does not say to standard error."""
        from kforensics.commands.result import now_ms

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
            **self.shown,
        )
        write_result(emit(result, self.format, view), self.out)
        if result.shape in _ON_STANDARD_ERROR:
            complain(result)
        _warn_of_records(result)
        if content and (result.exit_code or result.command == "seal"):
            typer.echo(headline(result), err=True, nl=False)

    def finish_by_depth(
        self,
        look: "Callable[[Depth, ByteProgress | None, Case | None], Result[Any]]",
        depth: Depth | None,
    ) -> NoReturn:
        """Write the result of a depth and end with its exit code.

        Where no depth is given and a person watches, the answer of the ends of logs is written first; then all content is read, which confirms or corrects it.
        """
        is_watched = self.format is OutputFormat.TEXT and self.out is None and not self.quiet and sys.stdout.isatty()
        ends = None
        if depth is None and is_watched:
            ends = look(Depth.TAILS, None, None)
            self.write(ends)
            typer.echo(f"\n{READ_NEXT}")
            sys.stdout.flush()
        with self.progress() as progress:
            result = look(depth or Depth.CONTENT, progress, ends.case if ends else None)
        if ends is None:
            self.finish(result)
        from kforensics.commands.result import confirms

        if confirms(result, ends):
            typer.echo(f"\n{CONFIRMED}\n{headline(result)}", nl=False)
            raise typer.Exit(result.exit_code)
        typer.echo(f"\n{CORRECTED}\n")
        self.finish(result)

    def finish(self, result: "Result[Any]") -> NoReturn:
        """Write the result and end with its exit code."""
        self.write(result)
        raise typer.Exit(result.exit_code)


def complain(result: "Result[Any]") -> None:
    """Name what could not be read, on standard error."""
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


Answering = Callable[["Output", Any], None]


def question(name: str) -> Callable[[Answering], Callable[..., None]]:
    """Make a command of a function that answers what is asked: its options, and those for output."""

    def decorate(answer: Answering) -> Callable[..., None]:
        shown_as = name.replace("-", " ")
        offered = formats_of(*shapes_of(shown_as))
        asked = options_of(name)
        has_out = all("--out" not in one.option.flags for one in asked)
        options = [
            ("output_format", _format_option(offered), OutputFormat.TEXT),
            *([("brief", _BriefOption, False)] if OutputFormat.BRIEF in offered else []),
            *([("result_file", OutOption, None)] if has_out else []),
            ("color", ColourOption, None),
            ("quiet", QuietOption, False),
            ("verbose", VerboseOption, False),
            ("short_help", ShortHelpOption, None),
        ]

        def run(context: typer.Context, **values: Any) -> None:
            given = {key: values.pop(key, None) for key, _, _ in options}
            ask = ask_of(name, values)
            output = Output(
                command=shown_as,
                format=OutputFormat.BRIEF if given.get("brief") else given["output_format"],
                out=given.get("result_file"),
                colour=given["color"] or context.obj or ColourChoice.AUTO,
                quiet=given["quiet"],
                verbose=given["verbose"],
                shown={one.option.shown: getattr(ask, one.field) for one in asked if one.option.shown},
            )
            answer(output, ask)

        parameters = [
            inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context),
            *(_keyword(one.field, *_annotated(one, name)) for one in asked),
            *(_keyword(key, kind, default) for key, kind, default in options),
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # typer reads options from it
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__name__ = name.rpartition("-")[2]
        run.__doc__ = COMMANDS[name].words
        return run

    return decorate


def command_of(name: str) -> Callable[..., None]:
    """Return a command whose result is written as it comes."""
    return question(name)(_answer)


def _answer(output: "Output", ask: Ask) -> None:
    output.check(ask.inputs)
    from kforensics.case.processes import paced

    module = import_module(f"kforensics.commands.{output.command}")
    run, ask = module.run, paced(ask)
    takes = inspect.signature(run).parameters.keys()
    if "flatten" in takes:
        flatten = flattener(output.format)
        run = partial(run, flatten=flatten, keep_quiet=flatten is None and output.verbose)
    if "hash_files" in takes:
        run = partial(run, hash_files=output.format is OutputFormat.HTML)
    if "progress" not in takes:
        output.finish(run(ask))
    if "case" in takes:
        output.finish_by_depth(
            lambda depth, progress, case: run(replace(ask, depth=depth), progress, case=case), ask.depth
        )
    with output.progress() as progress:
        result = run(ask, progress)
    output.finish(result)


def _enumeration(name: str, choices: Sequence[str]) -> Any:
    return StrEnum(name, {choice: choice for choice in choices})


def _keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _annotated(one: Spelled, command: str) -> tuple[Any, Any]:
    """Return the type of an option, with its words, and its default, as typer reads them."""
    declared = one.option
    kind: Any = one.kind
    if kind is bool:
        return Annotated[bool, typer.Option(*declared.flags, help=one.help(command))], False
    if declared.choices:
        kind = _enumeration(one.field, declared.choices)
    elif declared.read is not None:
        kind = str
    default = one.default or None
    words: dict[str, Any] = {
        "help": one.help(command),
        "metavar": one.metavar(command),
        "min": declared.least,
        "max": declared.most,
        "show_default": isinstance(default, (str, int)),
        "case_sensitive": False,
    }
    if one.field in _COMPLETED:
        words["autocompletion"] = _completion_of(_COMPLETED[one.field])
    is_needed = declared.is_needed or not (declared.flags or str(words["metavar"]).startswith("["))
    spelled = typer.Option(*declared.flags, **words) if declared.flags else typer.Argument(**words)
    whole: Any = list[kind] if declared.many else kind
    if is_needed:
        return Annotated[whole, spelled], inspect.Parameter.empty
    return Annotated[whole | None, spelled], kind(default) if declared.choices and default else default


_COMPLETED = {"topics": "topics", "partitions": "partitions", "leader": "brokers", "broker": "brokers"}
"""Options of which a shell completes the value by what is below the paths on the line."""


def _completion_of(names: str) -> Callable[[typer.Context, str], list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        # An option whose value is still to come ends the reading of the line: the paths are among what is left then.
        paths = ctx.params.get("paths") or [Path(one) for one in ctx.args if not one.startswith("-")]
        from kforensics.commands.ls import names_below

        found = getattr(names_below(paths, ctx.params.get("topics") or ()), names)
        return [one for one in found if one.startswith(incomplete)]

    return complete


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
