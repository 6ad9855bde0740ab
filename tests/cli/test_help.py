"""Help on topics and findings, colour, quiet and brief."""

import re
from pathlib import Path

import pytest

from kforensics.ask.commands import FUNCTIONS as COMMANDS
from kforensics.cli.app import run
from kforensics.cli.fleet import fleet
from kforensics.cli.help import examples_of, topic_names, topic_text
from kforensics.errors import UsageError
from kforensics.exits import EXIT_MEANINGS, SHORT_MEANINGS
from kforensics.findings.answers.model import STATES
from kforensics.findings.rule import all_rules
from kforensics.render.emit import SHAPES

README = Path(__file__).parents[2] / "README.md"


def test_the_topics_are_listed(capsys):
    assert run(["help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in topic_names())
    assert "kforensics help high-watermark" in out
    assert {"formats", "exit-codes", "paths", "redaction"} <= set(topic_names())


@pytest.mark.parametrize("name", topic_names())
@pytest.mark.some(3)
def test_a_topic_fits_a_page(name, capsys):
    assert run(["help", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == ""
    assert max(map(len, lines)) <= 160


def test_every_finding_has_help(capsys):
    for code, kind in all_rules().items():
        assert topic_text(code).startswith(f"{code}: {kind.title}\n")
    assert run(["help", "kf201"]) == 0
    assert "What to do: " in capsys.readouterr().out


def test_topics_that_are_made_of_tables_name_all_of_them():
    assert all(f"  {shape} " in topic_text("formats") for shape in SHAPES)
    codes = " ".join(topic_text("exit-codes").split())
    assert all(f"{command}: {next(iter(states))}" in codes for command, states in STATES.items())


def test_the_meanings_of_exit_codes_are_the_same_wherever_they_are_listed():
    codes = " ".join(topic_text("exit-codes").split())
    readme = README.read_text()
    for code, meaning in EXIT_MEANINGS.items():
        assert f" {code:d} {meaning}" in codes
        assert f"| {code:d} | {meaning[0].lower()}{meaning[1:].rstrip('.')} |" in readme

    assert list(EXIT_MEANINGS) == list(SHORT_MEANINGS)


def test_a_command_has_help_there_too(capsys):
    assert run(["help", "verify"]) == 0
    assert "Usage: kforensics verify" in capsys.readouterr().out


def test_no_such_topic_names_the_nearest(capsys):
    assert run(["help", "exit-code"]) == 2
    assert "did you mean exit-codes" in capsys.readouterr().err
    with pytest.raises(UsageError, match="the topics are"):
        topic_text("zzz")


def test_every_command_has_examples_of_itself():
    names = {*COMMANDS, "help"}
    names |= {f"fleet {one.callback.__name__}" for one in fleet.registered_commands if one.callback and not one.name}
    assert all(examples_of(name) for name in names)
    assert all(line.startswith(f"kforensics {name}") for name in names for _, line in examples_of(name))


@pytest.mark.parametrize("arguments", [["--color", "always", "ls"], ["ls", "--color", "always"]])
def test_colour_can_be_asked_for_before_and_after_the_command(arguments, fixtures, capsys):
    node = str(fixtures / "unclean-election" / "broker-2")
    run([*arguments, node])
    assert "\x1b[1m" in capsys.readouterr().out
    run([*arguments, node, "--color", "never"])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["ls", "verify", "metadata", "dump"])
def test_quiet_is_the_headline_alone(name, fixtures, capsys):
    node = str(fixtures / "unclean-election" / "broker-2")
    code = run([name, node])
    capsys.readouterr()
    assert run([name, "-q", node]) == code
    out, err = capsys.readouterr()
    assert (out.count("\n"), err) == (1, "")
    assert run([name, "-q", node, "--format", "json"]) == 2
    assert "--quiet writes one line of text" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*COMMANDS, "fleet audit", "fleet report", "fleet trend", "fleet history"])
@pytest.mark.some(7)
def test_the_short_help_has_the_options_that_people_need_and_examples(name, capsys):
    assert run([*name.split(), "-h"]) == 0
    short = capsys.readouterr().out
    assert run([*name.split(), "--help"]) == 0
    whole = capsys.readouterr().out

    options = [line for line in short.splitlines() if line.startswith("  -")]
    assert 1 <= len(options) <= 10
    assert 1 <= short.count("\n  $ kforensics ") <= 3
    assert len(short) < len(whole)
    assert f"Usage: kforensics {name} " in short


def test_the_short_help_of_the_program_lists_its_commands_and_begins_with_the_first_question(capsys):
    assert run(["-h"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in COMMANDS)
    assert "$ kforensics triage broker-1 broker-2 broker-3 logs" in out


@pytest.mark.parametrize(
    "words", [["high-watermark"], ["HW"], ["high_watermark"], ["high", "watermark"], ["High-Watermark"]]
)
def test_a_word_of_the_glossary_is_explained(words, capsys):
    assert run(["help", *words]) == 0
    out = capsys.readouterr().out
    assert out.startswith("high watermark, HW (high_watermark)\n  The offset below which")
    assert "*" not in out


@pytest.mark.slow
def test_every_word_of_the_glossary_can_be_looked_up():
    bold = set(re.findall(r"^\| \*\*([^*`]+)\*\*", (README.parent / "docs" / "glossary.md").read_text(), re.MULTILINE))
    assert len(bold) > 60
    assert all(topic_text(word.replace(" ", "-")) for word in bold)
    assert all(word in topic_text("glossary") for word in bold)


def test_completion_is_offered(capsys):
    assert run(["--help"]) == 0
    assert "--install-completion" in capsys.readouterr().out
