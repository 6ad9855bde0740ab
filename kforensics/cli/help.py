"""`kforensics help`: a topic, a command, or what a finding means."""

import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from kforensics.cli.destination import write_result
from kforensics.cli.terminal import screen_width
from kforensics.errors import UsageError, did_you_mean, nearest_names
from kforensics.exits import EXIT_MEANINGS

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def help_(
    context: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(
            show_default=False, metavar="[TOPIC]", help="A topic, a command, or the code of a finding, as KF201."
        ),
    ] = None,
) -> None:
    """Explain a topic or a finding: `kforensics help exit-codes`, `kforensics help KF201`. Without a word it lists the topics."""
    if topic is None:
        write_result(_listing())
        return
    commands = getattr(context.find_root().command, "commands", {})
    if topic in commands and topic != "help":
        command = commands[topic]
        with command.make_context(topic, [], parent=context.find_root(), resilient_parsing=True) as own:
            write_result(command.get_help(own).rstrip() + "\n")
        return
    write_result(topic_text(topic))


def _texts() -> "Traversable":
    from importlib.resources import files

    return files(__package__).joinpath("topics")


def topic_names() -> tuple[str, ...]:
    """The names of all topics."""
    named = (one.name.removesuffix(".txt") for one in _texts().iterdir())
    return tuple(sorted((*named, *_MADE)))


def topic_text(name: str) -> str:
    """Return the text of a topic, or of a finding by its code."""
    from kforensics.findings.rule import all_rules

    if name.upper() in all_rules():
        return "\n".join(_finding_lines(name.upper())) + "\n"
    if name in _MADE:
        return "\n".join(_MADE[name]()) + "\n"
    names = topic_names()
    if name in names:
        return _texts().joinpath(f"{name}.txt").read_text(encoding="utf-8")
    wanted = name.upper() if name[:2].upper() == "KF" else name
    hint = did_you_mean(nearest_names(wanted, (*names, *all_rules()))) or f"the topics are {', '.join(names)}"
    raise UsageError(f"no help on {name!r}; {hint}")


def _listing() -> str:
    titles = [(name, topic_text(name).partition("\n")[0]) for name in topic_names()]
    lines = [f"  {name:<14}{title}" for name, title in titles]
    return "\n".join(
        (
            "kforensics help TOPIC, kforensics help COMMAND, kforensics help KF201",
            "",
            *lines,
            "",
            "kforensics --help lists the commands.",
            "",
        )
    )


def _finding_lines(code: str) -> Iterator[str]:
    from kforensics.findings.rule import rule_of

    kind = rule_of(code)
    yield f"{code}: {kind.title}"
    yield ""
    width = screen_width()
    yield from textwrap.wrap(kind.meaning, width)
    if kind.advice:
        yield ""
        yield from textwrap.wrap(f"What to do: {kind.advice}", width)
    if kind.references:
        yield ""
        yield from textwrap.wrap(f"See {', '.join(kind.references)}.", width)


def _format_lines() -> Iterator[str]:
    from kforensics.render.emit import MEANINGS, SHAPES

    yield "In which formats results are written"
    yield ""
    widest = max(map(len, SHAPES))
    for shape, how in SHAPES.items():
        yield f"  {shape:<{widest}}  {', '.join(how.formats())}"
    yield ""
    for one, meaning in MEANINGS.items():
        yield f"  {one:<8}  {meaning}"
    yield ""
    yield "The fields of documents and lines are a promise: docs/json.md, and a JSON Schema for each in kforensics/schema."


def _code_lines() -> Iterator[str]:
    from kforensics.findings.answers.model import STATES

    yield "What exit codes say"
    yield ""
    for code, meaning in EXIT_MEANINGS.items():
        yield from textwrap.wrap(meaning, screen_width(), initial_indent=f"  {code:d}  ", subsequent_indent="     ")
    yield ""
    yield "The states of each command, worst first, each with its exit code:"
    yield ""
    for command, states in STATES.items():
        words = ", ".join(f"{state} {code}" for state, code in states.items())
        yield from textwrap.wrap(f"{command}: {words}", screen_width(), initial_indent="  ", subsequent_indent="    ")


_MADE: dict[str, Callable[[], Iterator[str]]] = {"formats": _format_lines, "exit-codes": _code_lines}
"""Topics that are made of the tables that the commands use."""
