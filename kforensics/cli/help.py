"""`kforensics help`: a topic, a command, a word of the glossary, or what a finding means; and the short help that `-h` shows."""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from kforensics.ask.commands import COMMANDS
from kforensics.cli.terminal import screen_width, write_result
from kforensics.errors import UsageError, did_you_mean, nearest_names
from kforensics.exits import EXIT_MEANINGS, EXIT_RULES

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def help_(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            show_default=False,
            metavar="[TOPIC]",
            help="A topic, a command, a word of the glossary, as high-watermark, or the code of a finding, as KF201.",
        ),
    ] = None,
    short_help: "ShortHelpOption" = None,  # noqa: ARG001 - its callback answers it
) -> None:
    """Explain a topic, a word or a finding: `kforensics help exit-codes`, `help high-watermark`, `help KF201`. Without a word it lists the topics."""
    if not words:
        write_result(_listing())
        return
    topic = "-".join(words)
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
    named = (one.name.removesuffix(".txt") for one in _texts().iterdir() if one.name.endswith(".txt"))
    return tuple(sorted((*named, *_MADE)))


def topic_text(name: str) -> str:
    """Return the text of a topic, of a word of the glossary, or of a finding by its code."""
    from kforensics.findings.rule import all_rules

    if name.upper() in all_rules():
        return "\n".join(_finding_lines(name.upper())) + "\n"
    if name in _MADE:
        return "\n".join(_MADE[name]()) + "\n"
    names = topic_names()
    if name in names:
        return _texts().joinpath(f"{name}.txt").read_text(encoding="utf-8")
    words = [one for one in _glossary() if _plain(name) in one.keys]
    if words:
        return "\n".join(line for one in words for line in one.lines()) + "\n"
    wanted = name.upper() if name[:2].upper() == "KF" else name.lower()
    known = [key.replace(" ", "-") for one in _glossary() for key in one.keys]
    hint = did_you_mean(nearest_names(wanted, (*names, *all_rules(), *known))) or f"the topics are {', '.join(names)}"
    raise UsageError(f"no help on {name!r}; {hint}")


def _listing() -> str:
    titles = [(name, topic_text(name).partition("\n")[0]) for name in topic_names()]
    lines = [f"  {name:<14}{title}" for name, title in titles]
    return "\n".join(
        (
            "kforensics help TOPIC, kforensics help COMMAND, kforensics help high-watermark, kforensics help KF201",
            "",
            *lines,
            "",
            "kforensics --help lists the commands.",
            "",
        )
    )


class _Word(NamedTuple):
    """A row of the glossary."""

    title: str
    keys: tuple[str, ...]
    """What it is looked up by, in small letters without hyphens: its names, and the fields that mean the same."""
    meaning: str

    def lines(self) -> Iterator[str]:
        yield self.title
        yield from textwrap.wrap(self.meaning, screen_width(), initial_indent="  ", subsequent_indent="  ")


def _glossary() -> Iterator[_Word]:
    """Yield the words of the glossary, whose Markdown is one of the pages of the documentation."""
    for line in _texts().joinpath("glossary.md").read_text(encoding="utf-8").splitlines():
        cells = [one.strip() for one in re.split(r"(?<!\\)\|", line)]
        if len(cells) != 4 or not cells[1].startswith("**"):
            continue
        fields = re.findall("`([^`]+)`", cells[1])
        names = [one.replace("**", "").strip() for one in re.sub("`[^`]+`", ",", cells[1]).split(",")]
        bold = re.findall(r"\*\*([^*]+)\*\*", cells[2])
        keys = tuple(dict.fromkeys(_plain(one) for one in (*names, *fields, *bold) if one))
        title = ", ".join(one for one in names if one) + (f" ({', '.join(fields)})" if fields else "")
        yield _Word(title, keys, re.sub(r"\*\*|\*(?=\w)|(?<=\w)\*|`", "", cells[2]).replace("\\|", "|"))


def _plain(word: str) -> str:
    return re.sub("[-_ ]+", " ", word).strip().lower()


def _glossary_lines() -> Iterator[str]:
    yield "What each word on a screen means"
    for one in _glossary():
        yield ""
        yield from one.lines()


COMMON = (
    "topics",
    "partitions",
    "before",
    "what",
    "out",
    "evidence",
    "sources",
    "new_tables",
    "check",
    "key",
    "offset",
    "line",
    "scenario",
    "protocol",
    "write",
    "since_ms",
    "until_ms",
    "at_ms",
    "groups",
    "order",
    "kafka",
    "level",
    "depth",
    "steps",
    "history_tables",
    "since",
    "output_format",
    "brief",
    "result_file",
    "read_rate",
    "is_stopped",
    "keep_going",
    "plan",
    "records",
    "show_payload",
    "history",
    "verbose",
    "quiet",
    "color",
    "jobs",
)
"""What people need most, first what they need most: `-h` shows the first of these that a command has."""
MOST_OPTIONS = 10
MOST_LETTERS = 90
"""Letters of what is said of an option: a longer sentence ends at its colon."""
MOST_EXAMPLES = 3


def _show_short(context: typer.Context, asked: bool | None) -> None:
    if asked and not context.resilient_parsing:
        write_result("\n".join(_short_lines(context)) + "\n")
        raise typer.Exit


ShortHelpOption = Annotated[
    bool | None,  # none where it is not given: to read a value of a switch, typer loads pydantic
    typer.Option(
        "-h",
        help="Show a short help: the options that people need most, and examples.",
        callback=_show_short,
        is_eager=True,
        expose_value=False,
    ),
]


def _short_lines(context: typer.Context) -> Iterator[str]:
    command: Any = context.command
    path = context.command_path
    yield f"Usage: {path} {' '.join(command.collect_usage_pieces(context))}"
    yield ""
    yield from textwrap.wrap(_first_paragraph(command.help), screen_width())
    commands = getattr(command, "commands", {})
    shown = () if commands else command.params
    named = {one.name: one for one in shown if one.opts[0].startswith("-") and not one.hidden}
    options = [named[name] for name in COMMON if name in named][:MOST_OPTIONS]
    yield ""
    yield from _in_columns(
        [(name, _first_paragraph(one.help).partition(": ")[0]) for name, one in commands.items()]
        or [(_spelled(one), one.help or "") for one in options]
    )
    examples = examples_of(path.partition(" ")[2] or "triage")[:MOST_EXAMPLES]
    for words, line in examples:
        yield ""
        yield f"{described(words)}"
        yield f"  $ {line}"
    yield ""
    all_options = "all options and " if commands or len(named) > len(options) else ""
    yield from textwrap.wrap(
        f"{path} --help has {all_options}more words; kforensics help explains topics and terms.", screen_width()
    )


def _first_paragraph(words: str | None) -> str:
    return " ".join((words or "").split("\n\n")[0].replace("`", "").split())


def _spelled(option: Any) -> str:
    flags = ", ".join(sorted(option.opts[:2], key=len))
    value = "" if option.is_flag else f" {option.metavar or '|'.join(choices_of(option)) or 'WORD'}"
    return flags + (value if len(value) <= MOST_OPTIONS * 2 else f" {option.name.upper().rpartition('_')[2]}")


def choices_of(parameter: Any) -> list[str]:
    """Return what an option may be, where that is one of some words."""
    described = getattr(parameter, "type_descriptor", None) or parameter.type
    return [str(getattr(one, "value", one)) for one in getattr(described, "choices", None) or ()]


def _in_columns(rows: list[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each, with the first sentence of its words."""
    width = min(max((len(left) for left, _ in rows), default=0), 26) + 4
    for left, words in rows:
        first = re.split(r"(?<=[a-z)])[.;] ", words.strip())[0].rstrip(".:")
        if len(first) > MOST_LETTERS:
            first = first.partition(": ")[0]
        lines = textwrap.wrap(first, max(screen_width() - width, 20)) or [""]
        head = f"  {left}"
        if len(head) + 2 > width:
            yield head
            head = ""
        yield f"{head:<{width}}{lines[0]}"
        yield from (f"{'':<{width}}{line}" for line in lines[1:])


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
    for rule in EXIT_RULES:
        yield from (*textwrap.wrap(rule, screen_width()), "")
    yield "The states of each command, worst first, each with its exit code:"
    yield ""
    for command, states in STATES.items():
        words = ", ".join(f"{state} {code}" for state, code in states.items())
        yield from textwrap.wrap(f"{command}: {words}", screen_width(), initial_indent="  ", subsequent_indent="    ")


_MADE: dict[str, Callable[[], Iterator[str]]] = {
    "formats": _format_lines,
    "exit-codes": _code_lines,
    "glossary": _glossary_lines,
}
"""Topics that are made of the tables that the commands use."""


OF_HELP = (
    ("What a word means", "kforensics help high-watermark"),
    ("What a finding means", "kforensics help KF201"),
    ("What exit codes say", "kforensics help exit-codes"),
)


def examples_of(name: str) -> tuple[tuple[str, str], ...]:
    """Return the examples of a command by its name on the command line: each a purpose, and a line."""
    command = COMMANDS.get(name.replace(" ", "-"))
    return command.examples if command else OF_HELP if name == "help" else ()


def described(words: str) -> str:
    """Return the purpose of an example, as the line before it says."""
    return words if words.endswith("?") else f"{words}:"


def epilog_of(name: str) -> str:
    """Return the examples of a command as the end of its help: paragraphs, as typer lays them out."""
    return "\n\n".join(("Examples:", *(f"{described(words)}\n\n  $ {line}" for words, line in examples_of(name))))


def help_of(command: Callable[..., None]) -> str:
    """Return the paragraphs of a command's docstring, each on one line: typer would break lines where the source does."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
