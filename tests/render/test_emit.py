"""Every result of every command can be written in the formats that the table names, and in no other."""

import csv
import io
import json
from html import escape
from importlib import import_module
from typing import Any

import pytest

from kforensics.ask.commands import FUNCTIONS as COMMANDS
from kforensics.cli.app import application
from kforensics.cli.fleet import fleet
from kforensics.errors import UsageError
from kforensics.findings.answers.model import STATES
from kforensics.render.emit import (
    CONTENT,
    RENDERERS,
    SHAPES,
    OutputFormat,
    emit,
    flattener,
    formats_of,
    require_format,
    shapes_of,
    writer_of,
)
from kforensics.render.escape import escape_text
from kforensics.render.json import document as documents
from kforensics.render.view import View
from tests.builders.results import RESULTS

NAMES = sorted(
    set(COMMANDS)
    | {f"fleet {one.callback.__name__}" for one in fleet.registered_commands if one.callback and not one.name}
)
KINDS = sorted({shape for name in NAMES for shape in shapes_of(name)})
WRITING = frozenset({"salvage", "simulate write"})
"""Shapes of commands that write directories, which must be new."""


def test_every_command_can_be_written_for_people_and_for_programs():
    assert set(SHAPES) == set(KINDS)
    for shape in SHAPES:
        assert {OutputFormat.TEXT, OutputFormat.JSON} <= set(formats_of(shape))


def test_every_command_has_every_rendered_format():
    """Rows are the answer of all but these."""
    without_rows = {"capture", "simulate explore", "simulate write", "fleet history"}
    for shape in RESULTS:
        lacking = {*RENDERERS, OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.CSV} - set(formats_of(shape))
        assert lacking == ({OutputFormat.CSV} if shape in without_rows else set()), shape


@pytest.mark.parametrize("shape", KINDS)
@pytest.mark.parametrize("chosen", OutputFormat)
@pytest.mark.some(75)
def test_every_command_and_format_has_a_writer_or_a_refusal(shape, chosen):
    if chosen in formats_of(shape):
        assert callable(writer_of(shape, chosen))
    else:
        with pytest.raises(UsageError, match=f"--format {chosen} is not offered by this command; it has text, json"):
            writer_of(shape, chosen)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.some(7)
def test_the_help_names_the_formats_of_the_table(name):
    command = application()
    for word in name.split():
        command = command.commands[word]
    option = next(one for one in command.params if one.name == "output_format")
    assert option.metavar == "|".join(formats_of(*shapes_of(name)))


def test_there_is_a_result_of_every_kind():
    assert set(KINDS) == set(RESULTS)


@pytest.mark.parametrize("shape", RESULTS)
def test_every_result_is_written_in_every_format_and_ends_with_the_code_of_its_state(shape, tmp_path):
    for chosen in formats_of(shape):
        if shape in WRITING and chosen not in {OutputFormat.TEXT, OutputFormat.CSV}:
            continue
        result = RESULTS[shape](tmp_path)
        text = "".join(emit(result, chosen, View(width=80)))
        assert result.shape == shape
        assert text.endswith("\n") or not text
        assert result.exit_code in {0, 1, 3}
        assert result.answer.state in STATES[result.command]
        if chosen is OutputFormat.TEXT and shape not in CONTENT:
            assert " ".join(text.split()).startswith(" ".join(result.answer.headline.split()))
        if chosen is OutputFormat.JSON and shape not in CONTENT:
            assert f'"state": "{result.answer.state}"' in text
        if chosen is OutputFormat.HTML:
            assert escape(escape_text(result.answer.headline)) in text
        if chosen is OutputFormat.BRIEF:
            assert text.startswith(f"**{escape_text(result.answer.headline)}**")


ROWS = {
    "ls": lambda document: len(document["partitions"]),
    "diff": lambda document: sum(len(one["replicas"]) for one in document["partitions"]),
    "explain": lambda document: len(document["losses"]),
    "verify": lambda document: len(document["files"]),
    "predict": lambda document: len(document["logs"]),
    "metadata": lambda document: len(document["events"]),
    "trace": lambda document: sum(len(one["copies"]) or 1 for one in document["records"]),
    "dump": lambda document: len(document["entries"]),
    "simulate list": lambda document: len(document["scenarios"]),
    "simulate replay": lambda document: sum(
        len(step["replicas"]) for one in document["protocols"] for step in one["steps"]
    ),
}


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.some(3)
def test_the_rows_of_a_command_are_all_that_its_document_has(shape, tmp_path):
    result = RESULTS[shape](tmp_path)
    document = json.loads("".join(emit(result, OutputFormat.JSON, View())))
    rows = list(csv.DictReader(io.StringIO("".join(emit(result, OutputFormat.CSV, View())))))

    assert ROWS[shape](document) == len(rows) > 0


def _lines_of(shape):
    """The table that says what lines a document has; empty where its rows are the lines."""
    how = SHAPES[shape]
    module, _, name = how.json.partition(":")
    found = getattr(import_module(f"kforensics.render.json.{module}"), how.lines or name) if how.json else None
    return getattr(found, "lines", {})


WITH_TABLES = sorted(shape for shape in RESULTS.keys() - WRITING if _lines_of(shape))


@pytest.mark.parametrize("shape", WITH_TABLES)
@pytest.mark.some(3)
def test_lines_have_the_types_of_the_table_in_its_order(shape, tmp_path):
    lines = "".join(emit(RESULTS[shape](tmp_path), OutputFormat.JSONL, View())).splitlines()

    kinds = list(dict.fromkeys(json.loads(line)["type"] for line in lines))
    assert kinds == [kind for kind in _lines_of(shape) if kind in kinds]
    assert "result" not in kinds


@pytest.mark.parametrize(
    "shape", sorted(RESULTS.keys() - WRITING - {one for one in SHAPES if SHAPES[one].lines} - {*WITH_TABLES})
)
@pytest.mark.some(4)
def test_lines_are_all_of_the_document(shape, tmp_path):
    """Each row is a line with its type, what is left is the last one, and nothing is told twice or lost."""
    pieces = {
        one: "".join(emit(RESULTS[shape](tmp_path), one, View())) for one in (OutputFormat.JSON, OutputFormat.JSONL)
    }
    document = json.loads(pieces[OutputFormat.JSON])
    lines = [json.loads(line) for line in pieces[OutputFormat.JSONL].splitlines()]
    told: dict[str, Any] = {
        name: [] if isinstance(value, list) else None for name, value in document.items() if name in documents.ROWS
    }
    names = {kind: name for name, kind in documents.ROWS.items()}
    for line in lines[:-1]:
        name = names[line.pop("type")]
        told[name] = [*told[name], line] if isinstance(document[name], list) else line

    assert lines[-1].pop("type") == "result"
    assert lines[-1].keys() & {"answer", "inputs", "findings", "problems"} == set()
    assert _without_times(lines[-1] | told) == _without_times(document)


def _without_times(document: dict[str, Any]) -> dict[str, Any]:
    """A document without what another run writes otherwise."""
    return {name: one for name, one in document.items() if name not in {"envelope", "plan"}}


def test_a_format_of_one_shape_is_refused_for_another():
    require_format(OutputFormat.CSV, *shapes_of("simulate"))
    with pytest.raises(UsageError, match="--format csv"):
        require_format(OutputFormat.CSV, "simulate explore")


def test_only_formats_for_programs_keep_flat_reports():
    assert {one for one in OutputFormat if flattener(one)} == {OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.CSV}
