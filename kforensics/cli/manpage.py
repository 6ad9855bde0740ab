"""Manual pages, the page of all finding codes, and the schemas of JSON, generated: `python -m kforensics.cli.manpage [--check]`."""

import enum
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import kforensics
from kforensics import __version__
from kforensics.ask.commands import COMMANDS, FUNCTIONS
from kforensics.ask.questions import options_of
from kforensics.cli.app import PROGRAM, application
from kforensics.cli.help import choices_of, described, examples_of, topic_text
from kforensics.exits import EXIT_MEANINGS, EXIT_RULES
from kforensics.findings.rule import all_rules
from kforensics.render.json.schemas import texts

PAGE_DATE = "2026-11-21"
"""The day of the release that the pages are of: generated pages must not depend on the clock."""

FILES = {
    "meta.properties": "Says of which node and cluster a log directory is; read, as all that follow, and never written.",
    "*.log, *.index, *.timeindex, *.txnindex, *.snapshot": "Segments, their indexes, and producer snapshots.",
    "replication-offset-checkpoint, recovery-point-offset-checkpoint, log-start-offset-checkpoint": "High watermarks, recovery points and log starts of a log directory.",
    "leader-epoch-checkpoint, partition.metadata": "Epochs and topic id of a partition.",
    "server.log, state-change.log, controller.log": "Logs of brokers and controllers, which diff and explain read.",
}

PROMISE = (
    "Evidence is opened read-only, never locked and never written to; no symbolic link is followed out of an input. "
    "Results go to standard output, progress and complaints to standard error."
)


def pages() -> dict[str, str]:
    """Every generated page by its path in the repository."""
    program = application()
    commands: dict[str, Any] = dict(sorted(getattr(program, "commands", {}).items()))
    made = {f"man/{PROGRAM}.1": _group_page((PROGRAM,), program)}
    for name, command in commands.items():
        below: dict[str, Any] = dict(sorted(getattr(command, "commands", {}).items()))
        words = (PROGRAM, name)
        made[_page_path(words)] = _group_page(words, command) if below else _command_page(words, command)
        made |= {_page_path((*words, inner)): _command_page((*words, inner), one) for inner, one in below.items()}
    made["docs/findings.md"] = findings_page()
    made["kforensics/__init__.pyi"] = stub()
    made["kforensics/fleet/__init__.pyi"] = fleet_stub()
    return made | dict(texts())


def stub() -> str:
    """Return the types of the functions of the package, which are made of the options of the commands."""
    results: dict[str, str] = {}
    functions = [line for name in sorted(FUNCTIONS) for line in _function_stub(name, results)]
    errors = sorted(name for name in kforensics.__all__ if name[0].isupper())
    modules = "".join(
        f"from {module} import {name}\n" for name, module in sorted(results.items(), key=lambda one: one[::-1])
    )
    return (
        "# Generated of the options in kforensics/ask: python -m kforensics.cli.manpage\n\n"
        "from collections.abc import Iterable, Mapping\nfrom os import PathLike\nfrom typing import Any\n\n"
        f"{modules}from kforensics.errors import {', '.join(f'{one} as {one}' for one in errors)}\n"
        "from kforensics.library import Answered\n\n"
        "__version__: str\n__all__: list[str]\n\nAnyPath = str | PathLike[str]\nAnyPaths = AnyPath | Iterable[AnyPath]\n\n"
        + "\n".join(functions)
        + "\n"
    )


def fleet_stub() -> str:
    """Return the types of the functions for fleets."""
    kinds = {
        "fleet-audit": "Audited[FleetSummary]",
        "fleet-report": "Audited[Any]",
        "fleet-trend": "Answered[AuditTrend]",
        "fleet-history": "Answered[TrimmedHistory]",
    }
    functions = [
        line
        for name in sorted(name for name in COMMANDS if name.startswith("fleet-"))
        for line in _signature_stub(name, kinds.get(name, "Answered[Any]"))
    ]
    return (
        "# Generated of the options in kforensics/ask: python -m kforensics.cli.manpage\n\n"
        "from collections.abc import Iterable, Mapping\nfrom os import PathLike\nfrom typing import Any\n\n"
        "from kforensics.findings.fleet_summary import AuditTrend, FleetSummary, TrimmedHistory\n"
        "from kforensics.library import Answered, Audited\n\n"
        "__all__: list[str]\n\nAnyPath = str | PathLike[str]\nAnyPaths = AnyPath | Iterable[AnyPath]\n\n"
        + "\n".join(functions)
        + "\n"
    )


def _function_stub(name: str, results: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a function; the class of its body is added to the results."""
    run = inspect.signature(import_module(f"kforensics.commands.{name}").run)
    body = re.fullmatch(r".*Result\[(.+)\]", str(run.return_annotation).replace("typing.", ""))
    assert body is not None
    kind = body[1]
    if "." in kind:
        module, _, kind = kind.rpartition(".")
        results[kind] = module
    if name == "seal":
        kind = "Any"  # a new manifest, or with `check` the comparison with one
    yield from _signature_stub(name, f"Answered[{kind}]")


def _signature_stub(name: str, result: str) -> Iterator[str]:
    yield f"def {name.removeprefix('fleet-')}("
    yield "    *paths: AnyPaths,"
    for one in options_of(name):
        if one.option.flags:
            yield f"    {one.name}: {one.taken_type} = ...,"
    if name == "fleet-audit":
        yield "    session: Any = ...,"
    yield f") -> {result}:"
    yield f'    """{COMMANDS[name].words.partition(chr(10))[0]}"""'


def findings_page() -> str:
    """Return all finding codes with what they mean, as Markdown."""
    lines = [
        "# Findings",
        "",
        "Codes are stable: none is reused or changes its meaning. Generated from `kforensics/findings/rules/`.",
        "",
    ]
    for code, kind in all_rules().items():
        references = f" ({', '.join(kind.references)})" if kind.references else ""
        lines += [f"## {code}: {kind.title}", "", f"{kind.meaning} {kind.advice}{references}", ""]
    return "\n".join(lines)


def _page_path(words: Sequence[str]) -> str:
    return f"man/{'-'.join(words)}.1"


def _group_page(words: Sequence[str], group: Any) -> str:
    """The page of the program, or of a command that has commands of its own."""
    commands: dict[str, Any] = dict(sorted(group.commands.items()))
    lines = [
        *_head("-".join(words), group.help),
        ".SH SYNOPSIS",
        f".B {_escape(' '.join(words))}",
        r"[\fIOPTION\fR]",
        r"\fICOMMAND\fR",
        r"[\fIARGUMENT\fR ...]",
    ]
    lines += [".SH DESCRIPTION", *_paragraphs(group.help)]
    if len(words) == 1:
        lines += [".PP", _text(PROMISE)]
    lines += [".SH COMMANDS"]
    for name, command in commands.items():
        lines += [".TP", rf"\fB{_escape(' '.join((*words, name)))}\fR", _text(_sentence(command.help))]
    others = [*_above(words), *("-".join((*words, name)) for name in commands)]
    lines += [".SH OPTIONS", *_options(group.params), *_exit_status(), ".SH SEE ALSO", *_see_also(others)]
    return "\n".join(lines) + "\n"


def _command_page(words: Sequence[str], command: Any) -> str:
    arguments = [parameter for parameter in command.params if not _is_option(parameter)]
    lines = [
        *_head("-".join(words), command.help),
        ".SH SYNOPSIS",
        f".B {_escape(' '.join(words))}",
        r"[\fIOPTION\fR ...]",
    ]
    lines += [rf"\fI{_escape(_metavar(argument))}\fR" for argument in arguments]
    lines += [".SH DESCRIPTION", *_paragraphs(command.help)]
    for argument in arguments:
        lines += [".TP", rf"\fI{_escape(_metavar(argument))}\fR", _text(argument.help or "")]
    lines += [".SH OPTIONS", *_options(command.params), *_exit_status()]
    lines += [*_examples(" ".join(words[1:])), *_environment(), *_files(), ".SH SEE ALSO", *_see_also(_above(words))]
    return "\n".join(lines) + "\n"


def _above(words: Sequence[str]) -> list[str]:
    """The pages of the commands that contain a command."""
    return ["-".join(words[:count]) for count in range(1, len(words))]


def _head(name: str, words: str | None) -> list[str]:
    summary = _sentence(words).rstrip(".")
    title = _escape(name.upper())
    return [
        f'.TH {title} 1 {PAGE_DATE} "{PROGRAM} {__version__}"',
        ".SH NAME",
        rf"{_escape(name)} \-",
        _text(summary),
    ]


def _sentence(words: str | None) -> str:
    """The first paragraph of a help text as one line."""
    return " ".join((words or "").strip().split("\n\n")[0].split())


def _paragraphs(words: str | None) -> Iterator[str]:
    for place, paragraph in enumerate(re.split(r"\n\s*\n", (words or "").strip())):
        if place:
            yield ".PP"
        yield _text(" ".join(paragraph.split()))


def _options(parameters: Iterable[Any]) -> Iterator[str]:
    for parameter in parameters:
        if _is_option(parameter) and not parameter.hidden:
            yield ".TP"
            value = "" if parameter.is_flag else rf" \fI{_escape(_metavar(parameter))}\fR"
            yield (
                ", ".join(rf"\fB{_escape(option)}\fR" for option in (*parameter.opts, *parameter.secondary_opts))
                + value
            )
            yield _text(_option_help(parameter))
    yield from (".TP", r"\fB\-\-help\fR", "Show the help and exit.")


def _option_help(parameter: Any) -> str:
    words = parameter.help or ""
    choices = choices_of(parameter)
    if choices and not parameter.metavar:
        words += f" One of {', '.join(choices)}."
    default = parameter.default
    if parameter.show_default and not parameter.is_flag and default is not None and not callable(default):
        words += f" The default is {default.value if isinstance(default, enum.Enum) else default}."
    return words


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or ("WORD" if choices_of(parameter) else parameter.name.upper()))


def _is_option(parameter: Any) -> bool:
    return bool(parameter.opts[0].startswith("-"))


def _exit_status() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code, words in EXIT_MEANINGS.items():
        yield from (".TP", rf"\fB{int(code)}\fR", _text(words))
    for rule in EXIT_RULES:
        yield from (".PP", _text(rule))


def _examples(name: str) -> Iterator[str]:
    yield ".SH EXAMPLES"
    for words, line in examples_of(name):
        yield from (".PP", _text(described(words)), ".PP", ".RS 4", ".nf", _escape(line), ".fi", ".RE")


def _environment() -> Iterator[str]:
    yield ".SH ENVIRONMENT"
    for line in topic_text("environment").splitlines()[2:]:
        name, _, words = line.partition(" ")
        yield from (".TP", rf"\fB{_escape(name)}\fR", _text(words.strip()))


def _files() -> Iterator[str]:
    yield ".SH FILES"
    for names, words in FILES.items():
        yield from (".TP", rf"\fI{_escape(names)}\fR", _text(words))


def _see_also(names: Iterable[str]) -> list[str]:
    return [",\n".join(f".BR {_escape(name)} (1)" for name in names).replace("(1),\n", "(1) ,\n")]


def _escape(text: str) -> str:
    return text.replace("\\", r"\e").replace("-", r"\-")


def _text(words: str) -> str:
    """Running text, in short lines of which none can be taken for a request."""
    escaped = re.sub(r"(?<![\w-])-{1,2}(?=\w)", lambda dashes: r"\-" * len(dashes[0]), words.replace("\\", r"\e"))
    lines = textwrap.wrap(escaped, width=76, break_long_words=False, break_on_hyphens=False)
    return "\n".join(r"\&" + line if line.startswith((".", "'")) else line for line in lines)


def main(arguments: list[str]) -> int:
    """Write all pages, or with `--check` only say which are not up to date, and return the exit code."""
    root = Path(__file__).parent.parent.parent
    stale = []
    made = pages()
    for name, text in made.items():
        path = root / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    there = [*sorted((root / "man").glob("*.1")), *sorted((root / "kforensics" / "schema").glob("*.json"))]
    obsolete = [path for path in there if path.relative_to(root).as_posix() not in made]
    stale += [path.relative_to(root).as_posix() for path in obsolete]
    if "--check" not in arguments:
        for path in obsolete:
            path.unlink()
        return 0
    for name in stale:
        sys.stderr.write(f"{name} is not up to date: run python -m kforensics.cli.manpage\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
