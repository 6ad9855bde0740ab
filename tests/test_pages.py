"""What the pages in docs/ show is what is printed, and the commands in them exist; `RENEW_DOCS=1 pytest tests/test_pages.py` renews the screens."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import kforensics
from kforensics.cli.app import application, run
from tests.conftest import ROOT
from tests.sentences import MOST_IN_DOCS, texts_of, too_long, words_of

PACKAGE = Path(kforensics.__file__).parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SCREEN = re.compile(r"^```sh\n(kforensics [^\n]+)\n```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCREENS = [
    pytest.param(page, *found.groups(), id=f"{page.stem}: {found[1]}")
    for page in PAGES
    for found in SCREEN.finditer(page.read_text(encoding="utf-8"))
]

NAMED_FILE = re.compile(r"(?:(?<=`)(?!/)|(?=\b(?:tests|kforensics)/))([\w./-]+/[\w.-]+\.(?:py|md|toml|yml|txt))\b")

REST = "…\n"
"""Ends a screen of which only the first paragraphs are shown."""


@pytest.mark.parametrize(("page", "command", "screen"), SCREENS)
def test_what_is_shown_is_what_is_printed(capsys, monkeypatch, page, command, screen):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")

    run(shlex.split(command)[1:])

    printed = capsys.readouterr().out
    if screen.endswith(REST):
        shown = screen.removesuffix(REST).count("\n\n") + 1
        printed = "\n\n".join(printed.split("\n\n")[:shown]).rstrip("\n") + "\n" + REST
    if os.environ.get("RENEW_DOCS"):
        before, after = (f"```sh\n{command}\n```\n\n```text\n{text}```\n" for text in (screen, printed))
        page.write_text(page.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    else:
        assert screen == printed


def commands_shown() -> Iterator[tuple[str, str]]:
    """Each line of code on a page that calls kforensics, with its place."""
    for page in PAGES:
        fenced = False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            if line.startswith("```"):
                fenced = not fenced
            called = re.match(r"(?:    )?(?:\.venv/bin/)?(kforensics [a-z-].*)", line)
            if called and (fenced or line.startswith("    ")):
                yield f"{page.relative_to(ROOT)}:{number}", called[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_sentence_of_a_page_is_too_long(page):
    assert [] == too_long(texts_of(page), MOST_IN_DOCS)


def test_long_sentences_are_found():
    text = " ".join(["word"] * 40)

    assert [] == too_long([f"{text}. {text.title()}"], MOST_IN_DOCS)
    assert [(80, f"{text}, {text}")] == too_long([f"{text},\n{text}"], MOST_IN_DOCS)
    # Code, paths and the target of a link are a word each, and marks are none.
    assert 5 == words_of('see `one two three` – [the page](a.md "title") and')


def test_every_command_and_option_on_a_page_exists():
    wrong = []
    program = application()
    for place, line in commands_shown():
        words = line.split()[1:]
        command = program
        while words and words[0] in getattr(command, "commands", {}):
            command = getattr(command, "commands")[words.pop(0)]  # noqa: B009
        if command is program and words and (ROOT / words[0]).exists():
            command = getattr(program, "commands")["triage"]  # noqa: B009
            words.pop(0)
        if getattr(command, "commands", {}) and not words[0].startswith("-"):
            wrong.append(f"{place}: no command {words[0]}")
        known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
        wrong += [f"{place}: no option {word}" for word in words if re.match(r"--?[a-z]", word) and word not in known]

    assert wrong == []


def test_pages_show_screens_and_commands():
    assert len(SCREENS) >= 8
    assert len(list(commands_shown())) >= 40


def test_every_file_that_a_page_names_exists():
    pages = [
        *PAGES,
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        ROOT / "CHANGELOG.md",
        ROOT / "fixtures" / "README.md",
    ]
    missing = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in pages
        for path in NAMED_FILE.findall(page.read_text(encoding="utf-8"))
        if f"New `{path}`" not in page.read_text(encoding="utf-8")  # what a worked example adds
        if not any((root / path).exists() for root in (ROOT, PACKAGE.parent, PACKAGE))
    ]

    assert missing == []
