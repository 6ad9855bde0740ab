#!/usr/bin/env python3
"""A hook of mkdocs: while the site is built it puts what `--help` says of every command into docs/reference/commands.md.

Links to files outside of docs/, which work where the repository is read, become links to the repository.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from kforensics.cli.app import PROGRAM, application
from kforensics.cli.help import choices_of

PLACE = "<!-- commands -->"
OUTSIDE = re.compile(r"\]\(\.\./((?:kforensics|tests|fixtures|man)/|[A-Z]+\.md)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Fill the place of the commands on the one page that has it, and turn links out of docs/ to the repository."""
    if "/" not in page.file.src_uri:
        markdown = OUTSIDE.sub(rf"]({config.repo_url.rstrip('/')}/blob/main/\1", markdown)
    return markdown.replace(PLACE, "\n".join(commands())) if PLACE in markdown else markdown


def commands() -> Iterator[str]:
    """Yield the section of each command, with those of its own commands behind it, as Markdown."""
    program = application()
    for name, command in sorted(getattr(program, "commands", {}).items()):
        yield from _section((PROGRAM, name), command)
        for inner, one in sorted(getattr(command, "commands", {}).items()):
            yield from _section((PROGRAM, name, inner), one)


def _section(words: Sequence[str], command: Any) -> Iterator[str]:
    options = [one for one in command.params if one.opts[0].startswith("-") and not one.hidden]
    arguments = [one for one in command.params if not one.opts[0].startswith("-")]
    yield from ("", f"## {' '.join(words)}", "", (command.help or "").strip(), "")
    synopsis = [*words, "[OPTION …]", *(_metavar(one) for one in arguments)]
    if getattr(command, "commands", {}):
        synopsis = [*words, "COMMAND"]
    yield from ("```text", " ".join(synopsis), "```", "")
    yield from (f"`{_metavar(one)}`: {one.help or ''}\n" for one in arguments)
    if options:
        yield from ("| option | |", "|---|---|")
    for one in options:
        names = ", ".join(f"`{name}`" for name in sorted(one.opts, key=len))
        value = "" if one.is_flag else f" {_metavar(one)}"
        yield f"| {names}{_cell(value)} | {_cell(one.help or '')} |"


def _metavar(parameter: Any) -> str:
    words = "|".join(choices_of(parameter))
    return str(parameter.metavar or words or parameter.name.upper())


def _cell(words: str) -> str:
    return " ".join(words.split()).replace("|", r"\|").replace("<", "&lt;")
