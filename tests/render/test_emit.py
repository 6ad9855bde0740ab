"""Every result of every command can be written in the formats that the table names, and in no other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import kforensics
from kforensics.ask.model import Ask
from kforensics.ask.simulate import SimulateAsk
from kforensics.cli.app import COMMANDS, application
from kforensics.cli.fleet import fleet
from kforensics.commands import capture, groups, predict, salvage, simulate, trace, transactions
from kforensics.errors import UsageError
from kforensics.findings.answers.model import STATES
from kforensics.render.emit import (
    CONTENT,
    WRITERS,
    OutputFormat,
    emit,
    flattener,
    formats_of,
    require_format,
    shapes_of,
    writer_of,
)
from kforensics.render.view import View

NAMES = sorted(set(COMMANDS) | {f"fleet {one.callback.__name__}" for one in fleet.registered_commands if one.callback})
SHAPES = sorted({shape for name in NAMES for shape in shapes_of(name)})
WRITING = frozenset({"salvage", "simulate write"})
"""Shapes of commands that write directories, which must be new."""


def results(fixtures: Path, tmp_path: Path) -> dict[str, Callable[[], Any]]:
    """A result of each shape that needs no Spark."""
    node = fixtures / "unclean-election" / "broker-2"
    manifest = tmp_path / "manifest"
    manifest.write_text("".join(kforensics.seal(node, jobs=1).body.pieces))
    explored = SimulateAsk(model="hw")
    return {
        "ls": lambda: kforensics.ls(node),
        "dump": lambda: kforensics.dump(node / "orders-0"),
        "diff": lambda: kforensics.diff(node, jobs=1),
        "explain": lambda: kforensics.explain(node, jobs=1),
        "verify": lambda: kforensics.verify(node, jobs=1),
        "metadata": lambda: kforensics.metadata(node),
        "capture": lambda: capture.run(Ask(paths=(node,), out=None)),
        "predict": lambda: predict.run(Ask(paths=(node,))),
        "groups": lambda: groups.run(Ask(paths=(node,), jobs=1)),
        "transactions": lambda: transactions.run(Ask(paths=(node,), jobs=1)),
        "salvage": lambda: salvage.run(Ask(paths=(node,), out=tmp_path / "salvaged", jobs=1)),
        "trace": lambda: trace.run(Ask(paths=(node,), topics=frozenset({"orders"}), offset=0, jobs=1)),
        "seal manifest": lambda: kforensics.seal(node, jobs=1),
        "seal check": lambda: kforensics.seal(node, check=manifest, jobs=1),
        "simulate list": lambda: simulate.run(SimulateAsk()),
        "simulate replay": lambda: simulate.run(SimulateAsk(scenario="hw-loss")),
        "simulate explore": lambda: simulate.run(explored),
        "simulate write": lambda: simulate.run(SimulateAsk(write=tmp_path / "written", scenario="hw-loss"), repr),
    }


def test_every_command_has_writers_for_people_and_for_programs():
    assert {shape for shape, _ in WRITERS} == set(SHAPES)
    for shape in SHAPES:
        assert {OutputFormat.TEXT, OutputFormat.JSON} <= set(formats_of(shape))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("chosen", OutputFormat)
def test_every_command_and_format_has_a_writer_or_a_refusal(shape, chosen):
    if (shape, chosen) in WRITERS:
        assert callable(writer_of(shape, chosen))
    else:
        with pytest.raises(UsageError, match=f"--format {chosen} is not offered by this command; it has text, json"):
            writer_of(shape, chosen)


@pytest.mark.parametrize("name", NAMES)
def test_the_help_names_the_formats_of_the_table(name):
    command: Any = get_command(application())
    for word in name.split():
        command = command.commands[word]
    option = next(one for one in command.params if one.name == "output_format")
    assert option.metavar == "|".join(formats_of(*shapes_of(name)))


def test_every_shape_is_written_in_every_format_and_ends_with_the_code_of_its_state(fixtures, tmp_path):
    made = results(fixtures, tmp_path)
    assert set(SHAPES) - set(made) == {"fleet audit", "fleet report", "fleet comparison", "fleet scan", "fleet trend"}
    for shape, make in made.items():
        for chosen in formats_of(shape):
            if shape in WRITING and chosen is not OutputFormat.TEXT:
                continue
            result = make()
            text = "".join(emit(result, chosen, View(width=80)))
            assert result.shape == shape
            assert text.endswith("\n") or not text
            assert result.exit_code in {0, 1, 3}
            assert result.answer.state in STATES[result.command]
            if chosen is OutputFormat.TEXT and shape not in CONTENT:
                assert " ".join(text.split()).startswith(" ".join(result.answer.headline.split()))
            if chosen is OutputFormat.JSON and shape not in CONTENT:
                assert f'"state": "{result.answer.state}"' in text


def test_a_format_of_one_shape_is_refused_for_another():
    require_format(OutputFormat.HTML, *shapes_of("simulate"))
    with pytest.raises(UsageError, match="--format html"):
        require_format(OutputFormat.HTML, "simulate list")


def test_only_documents_and_lines_keep_flat_reports():
    assert [one for one in OutputFormat if flattener(one)] == [OutputFormat.JSON, OutputFormat.JSONL]
