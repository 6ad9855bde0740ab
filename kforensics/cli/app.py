"""The command `kforensics`: its commands, and the one place that turns an error into words."""

import errno
import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import pairwise, takewhile
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from kforensics import __version__
from kforensics.ask.commands import FUNCTIONS
from kforensics.cli.command import command_of
from kforensics.cli.help import ShortHelpOption, epilog_of, help_of
from kforensics.cli.terminal import ColourOption, forget_output, write_refusal
from kforensics.errors import (
    EvidenceError,
    FormatError,
    InputsRefused,
    KforensicsError,
    MissingExtra,
    MomentsMixed,
    Stopped,
    UsageError,
    did_you_mean,
    nearest_names,
)
from kforensics.exits import SHORT_MEANINGS, ExitCode

PROGRAM = "kforensics"

_COMPLETION = f"_{PROGRAM.upper()}_COMPLETE"
"""The variable by which a shell asks what a line could go on with."""

GARBAGE_THRESHOLD = 400_000
"""Objects made between two searches for garbage: more than a small comparison makes and more than the tables of a piece of a segment, since
evidence has no cycles and a search among 50,000 objects takes 17 ms."""

KEPT_BLOCK = 20 << 20
"""Bytes of a block that is allocated and freed at the start: from then on glibc keeps freed blocks of up to this size, where it would map the arrays of each piece of a
segment again, 20,000 pages for a gigabyte of records."""

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

_OWN = {"capture": "own.capture", "seal": "own.seal", "simulate": "own.simulate", "help": "help.help_"}
"""Commands with a function of their own, and where it is."""

EVERY_COMMAND = (*FUNCTIONS, "help", "fleet")

_NAMED_PARTITION = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<number>[0-9]+)")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


def kforensics(
    context: typer.Context,
    *,
    color: ColourOption = None,
    version: Annotated[  # noqa: ARG001 - its callback answers it
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
    short_help: ShortHelpOption = None,  # noqa: ARG001 - likewise
) -> None:
    """Read-only log forensics over Kafka broker data directories: what was lost, was it committed, who still has it.

    In an incident: `kforensics PATH...`, with all that there is, data directories, captures and log files. It says what is lost or at risk, what to do
    first, and which command has more.

    Nothing is ever written below an input.
    """
    context.obj = color


class _Program(TyperGroup):
    """The program, whose first question needs no name: what a shell completes behind a path is asked of `triage`, too."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, list(_with_question(args)))


def _own(module: str, name: str) -> Callable[..., None]:
    found: Callable[..., None] = getattr(import_module(f"kforensics.cli.{module}"), name)
    return found


@cache
def application(names: tuple[str, ...] = EVERY_COMMAND) -> Any:
    """Make the application with some of its commands, once in a process: to load all takes 20 ms."""
    app = typer.Typer(
        name=PROGRAM,
        cls=_Program,
        add_completion=True,
        no_args_is_help=True,
        context_settings={"help_option_names": ["--help"]},
        pretty_exceptions_enable=False,
        pretty_exceptions_show_locals=False,  # locals hold payloads, which are private
    )
    app.callback(help=_help())(kforensics)
    for name in names:
        if name == "fleet":
            app.add_typer(import_module("kforensics.cli.fleet").fleet)
            continue
        command: Callable[..., None] = _own(*_OWN[name].split(".")) if name in _OWN else command_of(name)
        app.command(name=name, help=help_of(command), epilog=epilog_of(name))(command)
    return get_command(app)


def _help() -> str:
    codes = ", ".join(f"{code:d} {meaning}" for code, meaning in SHORT_MEANINGS.items())
    return f"{help_of(kforensics)} Exit codes: {codes}."


def main() -> None:
    """Run the command line and exit."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    bytes(KEPT_BLOCK)
    if hasattr(signal, "SIGCHLD"):
        # Inherited from a parent that ignores it, it would leave no exit code of any process to ask for.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no algebra is done here, and numpy's idle threads take 50 ms
    for name in ("stdout", "stderr"):
        # Whoever started the program closed it: there is nothing to read it from, and the exit code is true.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    _exchange_handler(signal.SIG_DFL, signal.default_int_handler)
    code = run(sys.argv[1:])
    _exchange_handler(signal.default_int_handler, signal.SIG_DFL)
    gc.freeze()  # or the interpreter would search all that was imported for garbage before it ends: 20 ms
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = ExitCode.PIPE_CLOSED
    except OSError:  # reported already, where the result was written
        code = code or ExitCode.USAGE
    else:
        sys.exit(code)
    # The interpreter flushes once more at its end, which must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _exchange_handler(old: object, new: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    """Let an interrupt be an exception while a command runs, and the end of the process before and after; where a parent ignores it, it stays ignored."""
    if signal.getsignal(signal.SIGINT) is old:
        signal.signal(signal.SIGINT, new)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; every error ends here as words on standard error."""
    forget_output()
    arguments = _with_question(arguments)
    try:
        arguments = _with_topics(arguments)
        if os.environ.get(_COMPLETION):
            application().main([], PROGRAM)  # it answers the shell, and exits
        with application(_reachable(arguments)).make_context(PROGRAM, list(arguments)) as context:
            context.command.invoke(context)
    except SystemExit as finished:
        return int(finished.code or 0)
    except typer.Exit as finished:
        return finished.exit_code
    except typer.TyperException as error:  # wrong options and arguments, found while they were parsed
        if arguments:  # without any the help has been shown already
            _say(f"{PROGRAM}: {error.format_message()}\nTry '{PROGRAM} {_help_for(arguments)}'.")
        return ExitCode.USAGE
    except BrokenPipeError:
        return ExitCode.PIPE_CLOSED
    except (KeyboardInterrupt, typer.Abort):
        _say(f"{PROGRAM}: stopped; nothing was concluded")
        return ExitCode.INTERRUPTED
    except Stopped as error:
        _say(error_words(error))
        return ExitCode.INTERRUPTED
    except KforensicsError as error:
        _say(error_words(error))
        if isinstance(error, EvidenceError) and _wants_document(arguments):
            try:
                write_refusal(error)
            except BrokenPipeError:
                return ExitCode.PIPE_CLOSED
            except UsageError as full:
                _say(error_words(full))
        return ExitCode.USAGE if isinstance(error, (UsageError, MissingExtra)) else ExitCode.INCOMPLETE
    except OSError as error:
        if error.errno not in _NO_ROOM:
            return _report_defect(error)
        _say(
            f"{PROGRAM}: standard output can't be written: {error.strerror}"
        )  # help that was asked for, on a full disk
        return ExitCode.USAGE
    except MemoryError:
        _say(f"{PROGRAM}: there is not enough memory; nothing was concluded")
        return ExitCode.INCOMPLETE
    except Exception as error:  # noqa: BLE001 - whatever it is, an operator gets one line and a code that identifies it
        return _report_defect(error)
    return ExitCode.NOTHING_FOUND


def _with_question(arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments with the first question before a path that no command is named before, whether it is there or mistyped."""
    first = arguments[0] if arguments else "-"
    if first.startswith("-") or first in EVERY_COMMAND:
        return arguments
    is_path = os.sep in first or os.path.lexists(first)
    return ["triage", *arguments] if is_path or not nearest_names(first, EVERY_COMMAND) else arguments


def _with_topics(arguments: Sequence[str]) -> Sequence[str]:
    """Return the arguments with topic and number of each partition that is named as screens name it, `-p orders-0`.

    Raises:
        UsageError: they name several partitions of which topics and numbers together would ask for more.
    """
    asked: list[str] = []
    named: set[tuple[str, str]] = set()
    words = iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in {"-p", "--partition"}:
            asked += [word] if word != "--" else [word, *words]
        elif (found := _NAMED_PARTITION.fullmatch(value := value if equals else next(words, ""))) is None:
            asked += [flag, value]
        else:
            named.add((found["topic"], found["number"]))
            asked += ["--topic", found["topic"], flag, found["number"]]
    if len({topic for topic, _ in named}) * len({number for _, number in named}) > len(named):
        raise UsageError("--partition names partitions of several topics and numbers: ask for one after the other")
    return asked if named else arguments


def _reachable(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command that the arguments begin with; all of them where it is `help`, or none."""
    if arguments[:1] == ["--version"]:
        return ()  # it is answered before a command is looked up
    return (arguments[0],) if arguments and arguments[0] in {*FUNCTIONS, "fleet"} else EVERY_COMMAND


def _report_defect(error: Exception) -> ExitCode:
    _say(defect_words(error))
    if os.environ.get("KFORENSICS_TRACEBACK"):
        import traceback

        _say("".join(traceback.format_exception(error)))
    return ExitCode.DEFECT


def error_words(error: KforensicsError) -> str:
    """Say what happened, where, and the likely causes."""
    from kforensics.render.escape import escape_text

    match error:
        case InputsRefused():
            lines = [f"{PROGRAM}: nothing was analysed: {escape_text(error.problem)}"]
            named = len(error.errors) > 1 and not isinstance(error, MomentsMixed)
            lines += [
                f"  {escape_text(words)}"
                for one in error.errors
                for words in (*((str(one),) if named else ()), *_hints(one))
            ]
            return "\n".join([*lines, *(f"  {escape_text(words)}" for words in error.advice)])
        case EvidenceError():
            lines = [f"{PROGRAM}: {escape_text(error.path)}: {escape_text(error.problem)}"]
            lines += [f"  {escape_text(words)}" for words in _hints(error)]
            return "\n".join(lines)
        case FormatError():
            return f"{PROGRAM}: {escape_text(str(error))}"
    return f"{PROGRAM}: {escape_text(str(error))}"


def _hints(error: EvidenceError) -> Iterator[str]:
    """Yield what is there instead of what was named, else why it may not be there."""
    if error.nearest:
        yield did_you_mean(error.nearest)
    else:
        yield from (f"likely: {cause}" for cause in error.causes)


_OUT_IS_NO_DOCUMENT = (["capture"], ["fleet"], ["salvage"])
"""Commands of which --out names a capture, tables or records, with the document on standard output."""


def _wants_document(arguments: Sequence[str]) -> bool:
    """Whether one JSON document is what the arguments ask for, on standard output."""
    options = list(takewhile(lambda one: one != "--", arguments))
    chosen = [after for one, after in pairwise([*options, ""]) if one == "--format"]
    chosen += [one.partition("=")[2] for one in options if one.startswith("--format=")]
    to_file = options[:1] not in _OUT_IS_NO_DOCUMENT and any(re.match("-o|--out(=|$)", one) for one in options)
    return bool(chosen) and chosen[-1].lower() == "json" and not to_file


def defect_words(error: BaseException) -> str:
    """Return one line that lets a maintainer find a defect, without payloads."""
    import traceback

    from kforensics.render.escape import escape_text, shorten

    frames = traceback.extract_tb(error.__traceback__)
    package = Path(__file__).parent.parent
    inside = [frame for frame in frames if Path(frame.filename).is_relative_to(package)]
    place = (
        f"{Path(inside[-1].filename).relative_to(package.parent)}:{inside[-1].lineno}" if inside else "unknown place"
    )
    what = shorten(escape_text(f"{type(error).__name__}: {error}"), 160)
    return (
        f"{PROGRAM}: a defect in kforensics {__version__} itself, at {place}: {what} "
        "(the evidence is untouched; KFORENSICS_TRACEBACK=1 shows more for a report)"
    )


def _help_for(arguments: Sequence[str]) -> str:
    return f"{arguments[0]} --help" if arguments and arguments[0] in {*FUNCTIONS, "help"} else "--help"


def _say(words: str) -> None:
    with suppress(OSError):  # where nothing can be said, the exit code still is
        typer.echo(words, err=True)
