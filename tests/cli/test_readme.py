"""What the README shows is what is printed; `RENEW_README=1 pytest tests/cli/test_readme.py` renews its screens."""

import os
import re
import shlex

import pytest

from kforensics.cli.app import run
from tests.conftest import ROOT

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
SCREENS = re.findall(r"^```text\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)

CUT = "…\n"
"""Ends a screen of which only the first paragraphs are shown."""


def test_the_first_two_commands_are_one_line_each():
    assert [command.count("\n") for command in COMMANDS[:2]] == [1, 1]
    assert "pytest" in COMMANDS[1]


@pytest.mark.parametrize(
    ("command", "screen"),
    [
        (COMMANDS[0].rpartition("bin/kforensics ")[2].partition(" ||")[0], SCREENS[0]),
        ("ls fixtures/unclean-election/broker-1", SCREENS[1]),
    ],
)
def test_what_is_shown_is_what_is_printed(capsys, monkeypatch, command, screen):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")

    run(shlex.split(command))

    printed = capsys.readouterr().out
    if screen.endswith(CUT):
        shown = screen.removesuffix(CUT).count("\n\n") + 1
        printed = "\n\n".join(printed.split("\n\n")[:shown]) + "\n" + CUT
    if os.environ.get("RENEW_README"):
        README.write_text(README.read_text(encoding="utf-8").replace(screen, printed), encoding="utf-8")
    else:
        assert screen == printed
