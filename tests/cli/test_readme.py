import re
import shlex

import pytest

from kforensics.cli.app import run
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
SCREENS = re.findall(r"^```text\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_the_first_two_commands_are_one_line_each():
    assert [command.count("\n") for command in COMMANDS[:2]] == [1, 1]
    assert "pytest" in COMMANDS[1]


@pytest.mark.parametrize(
    ("command", "screen"),
    [(COMMANDS[0].rpartition("bin/kforensics ")[2], SCREENS[0]), ("ls fixtures/unclean-election/broker-1", SCREENS[1])],
)
def test_what_is_shown_is_what_is_printed(capsys, monkeypatch, command, screen):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")

    run(shlex.split(command))

    printed = iter(capsys.readouterr().out.splitlines())
    for line in screen.splitlines():
        assert line == "…" or line in printed
