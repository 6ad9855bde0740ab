"""Runs `dump`: file after file, item after item, so that nothing is held in memory but what is on its way out."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import typer

from kforensics import __version__
from kforensics.cli.dump_lines import LineOptions, is_damaging, line_windows, write_record_lines
from kforensics.cli.exits import ExitCode, exit_code_of
from kforensics.cli.options import OutputFormat
from kforensics.cli.output import write_result
from kforensics.commands.processes import default_jobs
from kforensics.commands.redaction.pseudonyms import Pseudonyms
from kforensics.commands.redaction.records import redact_item
from kforensics.damage import Damage, Gravity
from kforensics.errors import EvidenceError
from kforensics.evidence.content.items import DumpItem, Selection, decoder_of_file, recognised_name, walk_items
from kforensics.evidence.discovery.inputs import WHOLE_INPUT, FoundInput, Inputs, find_inputs
from kforensics.evidence.model import Problem
from kforensics.render.escape import escape_text
from kforensics.render.json.document import to_plain
from kforensics.render.json.dump import dump_line, plain_item
from kforensics.render.text.dump import text_lines
from kforensics.source.mapped import open_evidence
from kforensics.source.naming import FileKind, FileName, parse_file_name
from kforensics.source.walk import FoundDirectory, FoundFile, Obstacle

UNOPENED = frozenset({FileKind.SYMBOLIC_LINK, FileKind.SPECIAL})

NOT_DUMPED = {
    FileKind.UNKNOWN: "neither its name nor its first bytes are those of a file of a data directory",
    FileKind.LOG_FILE: "a log of a process, not a file of a data directory: `kforensics explain` reads those",
    FileKind.SERVER_PROPERTIES: "a configuration, not a file of a data directory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpOptions:
    """How the content is shown."""

    records: bool
    show_payload: bool
    as_text: bool
    pseudonyms: Pseudonyms | None
    """What stands for payloads and names; None where they are shown as they are."""
    selection: Selection
    output_format: OutputFormat
    jobs: int
    writes_directly: bool
    """Lines may go to standard output past the writer of text."""


@dataclass(slots=True)
class _Looked:
    """What was met while the content went out."""

    problems: list[Problem] = field(default_factory=list)
    damaged: bool = False

    def exit_code(self) -> ExitCode:
        if self.damaged and not self.problems:
            return ExitCode.FINDINGS
        return exit_code_of((), self.problems)


@dataclass(frozen=True, slots=True)
class _Target:
    """One file to dump, and how it is called in the output."""

    input: int
    path: Path
    relative: str
    shown: str
    name: FileName


def run_dump(
    paths: Sequence[Path],
    *,
    records: bool,
    show_payload: bool,
    as_text: bool,
    pseudonyms: Pseudonyms | None,
    selection: Selection,
    output_format: OutputFormat,
    keep_going: bool,
    out: Path | None,
    jobs: int | None,
) -> ExitCode:
    """Write the content of all files that the paths stand for."""
    options = DumpOptions(
        records=records,
        show_payload=show_payload,
        as_text=as_text,
        pseudonyms=pseudonyms,
        selection=selection,
        output_format=output_format,
        # A file of one's own is written by one process: standard output is what programs read in bulk.
        jobs=1 if out is not None else jobs or default_jobs(),
        writes_directly=out is None and output_format is OutputFormat.JSONL,
    )
    inputs = find_inputs(paths, why_not=why_not_dumped, keep_going=keep_going)
    looked = _Looked(problems=list(inputs.problems))
    targets = list(_targets(inputs, looked))
    pieces = {OutputFormat.JSONL: _jsonl, OutputFormat.JSON: _json, OutputFormat.TEXT: _text}[output_format]
    write_result(pieces(inputs, targets, options, looked), out)
    _report_problems(inputs, looked)
    return looked.exit_code()


def why_not_dumped(found: FoundInput) -> str:
    """A file is known by its name, or by its content as a segment."""
    name = parse_file_name(Path(found.described.path).name)
    if name.kind is FileKind.UNKNOWN:
        name = parse_file_name(found.root.name)
    with open_evidence(found.root) as file:
        return NOT_DUMPED.get(recognised_name(file, name).kind, "")


def _targets(inputs: Inputs, looked: _Looked) -> Iterator[_Target]:
    for number, one in enumerate(inputs.found):
        for found in one.walk():
            match found:
                case Obstacle():
                    looked.problems.append(Problem(input=number, path=found.path, message=found.message))
                case FoundDirectory():
                    pass
                case FoundFile() if found.name.kind not in UNOPENED:
                    yield _target(number, one, found)


def _target(number: int, one: FoundInput, found: FoundFile) -> _Target:
    whole = found.path == WHOLE_INPUT
    path = one.root if whole else one.root / found.path
    shown = one.described.path if whole else f"{one.described.path.rstrip('/')}/{found.path}"
    return _Target(number, path, found.path, shown, found.name)


def _items(target: _Target, options: DumpOptions, looked: _Looked) -> Iterator[DumpItem]:
    """The items of one file; what goes wrong becomes a problem, and the other files are still read."""
    try:
        with open_evidence(target.path) as file:
            name = recognised_name(file, target.name)
            if name.kind in NOT_DUMPED and target.relative == WHOLE_INPUT:
                looked.problems.append(Problem(input=target.input, path=target.relative, message=NOT_DUMPED[name.kind]))
                return
            for item in walk_items(file, target.path, name, records=options.records, selection=options.selection):
                if isinstance(item, Damage) and item.gravity is Gravity.DAMAGE:
                    looked.damaged = True
                yield redact_item(item, options.pseudonyms) if options.pseudonyms else item
    except EvidenceError as error:
        looked.problems.append(Problem(input=target.input, path=target.relative, message=error.problem))


def _jsonl(_inputs: Inputs, targets: Sequence[_Target], options: DumpOptions, looked: _Looked) -> Iterator[str]:
    several = len(targets) > 1
    for target in targets:
        label = f', "file": {json.dumps(to_plain(target.shown))}' if several else ""
        if has_plain_records(target, options):
            yield from _record_lines(target, options, looked, label)
            continue
        for item in _items(target, options, looked):
            plain = plain_item(item, show_payload=options.show_payload, as_text=options.as_text)
            yield dump_line(plain, label)


def has_plain_records(target: _Target, options: DumpOptions) -> bool:
    """Whether all records of a segment are asked for and are no topic of Kafka's own: then columns make the lines."""
    if (
        options.pseudonyms
        or not options.records
        or not options.selection.is_everything
        or target.name.kind is not FileKind.SEGMENT
    ):
        return False
    return decoder_of_file(target.path, target.name) is None


def _record_lines(target: _Target, options: DumpOptions, looked: _Looked, label: str) -> Iterator[str]:
    lines = LineOptions(show_payload=options.show_payload, as_text=options.as_text, label=label)
    try:
        with open_evidence(target.path) as file:
            if options.writes_directly:
                # The lines of the files before must be out first.
                looked.damaged |= write_record_lines(file, target.path, lines, jobs=options.jobs)
                return
            for some, damage in line_windows(file, lines):
                looked.damaged |= is_damaging(damage)
                yield from (line.decode("ascii") for line in some)
    except EvidenceError as error:
        looked.problems.append(Problem(input=target.input, path=target.relative, message=error.problem))


def _json(inputs: Inputs, targets: Sequence[_Target], options: DumpOptions, looked: _Looked) -> Iterator[str]:
    """One document, written as it comes: its end is known only when everything has been read."""
    head = {
        "schema": "kforensics/dump/1",
        "tool_version": __version__,
        "inputs": [to_plain(one) for one in inputs.described],
    }
    yield json.dumps(head)[:-1] + ', "entries": ['
    before = "\n"
    for line in _jsonl(inputs, targets, options, looked):
        yield before + line.rstrip("\n")
        before = ",\n"
    tail = {"findings": [], "problems": to_plain(looked.problems), "exit_code": int(looked.exit_code())}
    yield "\n], " + json.dumps(tail)[1:] + "\n"


def _text(_inputs: Inputs, targets: Sequence[_Target], options: DumpOptions, looked: _Looked) -> Iterator[str]:
    several = len(targets) > 1
    for number, target in enumerate(targets):
        if several:
            yield ("\n" if number else "") + escape_text(target.shown) + "\n"
        unread = len(looked.problems)
        item = None
        for item in _items(target, options, looked):
            for line in text_lines(item, show_payload=options.show_payload, as_text=options.as_text):
                yield line + "\n"
        if item is None and len(looked.problems) == unread:
            yield "no entries\n" if options.selection.is_everything else "nothing that was asked for\n"


def _report_problems(inputs: Inputs, looked: _Looked) -> None:
    for problem in looked.problems:
        given = inputs.found[problem.input].described.path
        where = given if problem.path == WHOLE_INPUT else f"{given}/{problem.path}"
        typer.echo(f"kforensics: {escape_text(where)}: {escape_text(problem.message)}", err=True)
