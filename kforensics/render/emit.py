"""How each result is written: one table of commands and formats, and nothing chosen anywhere else."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from kforensics.ask.commands import FUNCTIONS
from kforensics.errors import UsageError
from kforensics.render.view import View

if TYPE_CHECKING:
    from kforensics.commands.result import Result
    from kforensics.errors import EvidenceError


class OutputFormat(StrEnum):
    """The formats of a result; each command has some of these."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    HTML = "html"
    SARIF = "sarif"
    MARKDOWN = "markdown"
    BRIEF = "brief"
    CSV = "csv"
    TIMESKETCH = "timesketch"


MEANINGS = {
    OutputFormat.TEXT: "for people",
    OutputFormat.JSON: "one document for programs",
    OutputFormat.JSONL: "one object a line",
    OutputFormat.HTML: "a page to keep",
    OutputFormat.SARIF: "for viewers of CI results",
    OutputFormat.MARKDOWN: "for a ticket",
    OutputFormat.BRIEF: "the answer alone in five lines of Markdown",
    OutputFormat.CSV: "all rows for spreadsheets",
    OutputFormat.TIMESKETCH: "the events for Timesketch, one object a line",
}


Writer = Callable[["Result[Any]", View], Iterable[str]]
"""Makes the output of a concluded result: it takes the result and what of it is shown, and gives pieces, which may be made while they are written."""

RENDERERS = {
    OutputFormat.TEXT: "text:write",
    OutputFormat.HTML: "page:write",
    OutputFormat.MARKDOWN: "markdown:write",
    OutputFormat.BRIEF: "markdown:write_brief",
}
"""The formats that every view has, each with its module below `kforensics.render.formats`, and its function there."""


class Shape(NamedTuple):
    """How results of one kind are written: a view for all formats that render blocks, and what has writers of its own."""

    view: str = ""
    """The module below `kforensics.render.views`, and its function that yields blocks."""
    rows: str = ""
    """The place in the document of the rows that are the answer, where rows are the answer (`formats.rows`)."""
    json: str = ""
    """The module below `kforensics.render.json`, and its document, or the function that writes it; where that is not said, the document has the fields of the body."""
    lines: str = ""
    """The document there whose table says what its lines are, or the function that writes them, where `json` is a function; without a table the rows of the document are
    the lines."""
    others: dict[OutputFormat, str] = {}  # noqa: RUF012 - a default of a row of a table
    """Writers of other formats: the module below `kforensics.render`, and the function in it."""

    def formats(self) -> Iterator[OutputFormat]:
        """Yield the formats that results have."""
        for one in OutputFormat:
            is_given = self.view if one in RENDERERS else one is OutputFormat.CSV and self.rows
            if is_given or one in self.others or one in {OutputFormat.JSON, OutputFormat.JSONL}:
                yield one


_EVENTS = {OutputFormat.TIMESKETCH: "json.explain:write_timesketch"}

SHAPES: dict[str, Shape] = {
    "triage": Shape("triage:blocks", "topics", "explain:TRIAGE", others=_EVENTS),
    "ls": Shape("ls:blocks", "partitions", "files:write_listing", "write_listed"),
    "dump": Shape("dump:blocks", "*", "dump:write", "write_lines"),
    "capture": Shape("seal:capture_blocks"),
    "diff": Shape("diff:blocks", "*.replicas", "replicas:write", "DIFF"),
    "explain": Shape("explain:blocks", "losses", "explain:EXPLAIN", others=_EVENTS),
    "logs": Shape("logs:blocks", "kinds", "logs:LOGS"),
    "verify": Shape("verify:blocks", "files", "files:VERIFY", others={OutputFormat.SARIF: "sarif:write"}),
    "predict": Shape("predict:blocks", "logs", "start:PREDICT"),
    "salvage": Shape("salvage:blocks", "partitions", "salvage:SALVAGE"),
    "metadata": Shape("metadata:blocks", "events", "metadata:METADATA"),
    "groups": Shape("groups:blocks", "groups.positions", "coordinators:GROUPS"),
    "transactions": Shape("transactions:blocks", "partitions.open|torn", "coordinators:TRANSACTIONS"),
    "trace": Shape("trace:blocks", "records.copies", "trace:write", "write_lines_of_records"),
    # A manifest has one form; the others list what it names.
    "seal manifest": Shape(
        "seal:manifest_blocks",
        "entries",
        "files:write_manifest",
        others={OutputFormat.TEXT: "json.files:write_manifest"},
    ),
    "seal check": Shape("seal:blocks", "differences", "files:write_check"),
    "simulate list": Shape("simulate:scenarios", "scenarios", "simulate:write_list"),
    "simulate replay": Shape("simulate:replays", "protocols.steps.replicas", "simulate:write_replays"),
    "simulate explore": Shape("simulate:exploration", "", "simulate:write_exploration"),
    "simulate write": Shape("simulate:written", "", "simulate:write_written"),
    "fleet audit": Shape("fleet:audit", "partitions", "fleet:write", "AUDIT"),
    "fleet report": Shape("fleet:audit", "partitions", "fleet:write", "REPORT"),
    "fleet comparison": Shape(
        "fleet:comparison",
        "new_findings|worse_findings|changed_findings|better_findings|unchecked_findings|gone_findings",
        "fleet:COMPARISON",
    ),
    "fleet trend": Shape("fleet:trend", "audits", "fleet:TREND"),
    "fleet history": Shape("fleet:history", "", "fleet:HISTORY"),
}
"""By the kind of a result, how it is written. Modules are loaded when they are needed."""

SEVERAL = {
    "seal": ("seal manifest", "seal check"),
    "simulate": ("simulate list", "simulate replay", "simulate explore", "simulate write"),
    "fleet report": ("fleet report", "fleet comparison"),
}
"""The shapes of the results of a command, where they are not one of its own name."""

SHAPES |= {name: Shape(f"{name}:blocks") for name in FUNCTIONS if name not in {*SHAPES, *SEVERAL}}

CONTENT = frozenset({"dump", "seal manifest"})
"""Shapes whose text is content, read while it is written: the answer is known only afterwards."""


def shapes_of(command: str) -> tuple[str, ...]:
    """Return the shapes that results of a command can have."""
    return SEVERAL.get(command, (command,))


def formats_of(*shapes: str) -> tuple[OutputFormat, ...]:
    """Return the formats in which any of the shapes can be written."""
    found = {one for shape in shapes for one in SHAPES[shape].formats()}
    return tuple(one for one in OutputFormat if one in found)


def require_format(chosen: OutputFormat, *shapes: str) -> None:
    """Refuse an output format that none of the shapes has."""
    offered = formats_of(*shapes)
    if chosen not in offered:
        raise UsageError(f"--format {chosen} is not offered by this command; it has {', '.join(offered)}")


def writer_of(shape: str, chosen: OutputFormat) -> Writer:
    """Return the function that writes results of a shape in a format."""
    require_format(chosen, shape)
    how = SHAPES[shape]
    writer: Writer
    if chosen in how.others:
        writer = _loaded(how.others[chosen])
    elif chosen is OutputFormat.JSON:
        writer = _of_document(_loaded(f"json.{how.json}") if how.json else None, shape)
    elif chosen is OutputFormat.JSONL:
        place = f"{how.json.partition(':')[0]}:{how.lines}" if how.lines else how.json
        writer = _of_lines(_loaded(f"json.{place}") if place else None, shape, is_writer=bool(how.lines))
    elif chosen is OutputFormat.CSV:
        source = writer_of(shape, OutputFormat.JSONL if how.rows.startswith("*") else OutputFormat.JSON)
        writer = partial(_loaded("formats.rows:write"), place=how.rows, source=source)
    else:
        writer = partial(_loaded(f"formats.{RENDERERS[chosen]}"), content=_loaded(f"views.{how.view}"))
    return writer


def _of_document(found: Any, shape: str) -> Writer:
    """Return a writer as it is, or that of a document of which a table has every field, or whose fields are those of the body."""
    from kforensics.render.json.document import write_document  # noqa: PLC0415 - for documents alone
    from kforensics.render.json.shape import plain_document  # noqa: PLC0415 - likewise

    if callable(found):
        written: Writer = found
        return written
    return lambda result, _view: write_document(found or plain_document(shape, type(result.body)), result)


def _of_lines(found: Any, shape: str, *, is_writer: bool) -> Writer:
    """Return the writer of an object a line: as it is, by the table of a document, or of the rows of one that has no such table."""
    from kforensics.render.json.document import write_lines, write_rows  # noqa: PLC0415 - for documents alone

    if is_writer and callable(found):
        written: Writer = found
        return written
    if getattr(found, "lines", None):
        return lambda result, _view: write_lines(found, result)
    return partial(write_rows, source=writer_of(shape, OutputFormat.JSON))


def _loaded(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"kforensics.render.{module}"), name)


def emit(result: "Result[Any]", chosen: OutputFormat, view: View) -> Iterable[str]:
    """Return a result in a format, piece by piece."""
    return writer_of(result.shape, chosen)(result, view)


def flattener(chosen: OutputFormat) -> Callable[[Any, Any], bytes] | None:
    """Return the function that makes of the report on a partition what a format keeps of it; None where the report itself is needed."""
    if chosen not in {OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.CSV}:
        return None
    flatten: Callable[[Any, Any], bytes] = _loaded("json.replicas:flatten")
    return flatten


def headline(result: "Result[Any]") -> str:
    """Return the first line of the answer, made safe for a terminal, with its line break."""
    from kforensics.render.escape import escape_text  # noqa: PLC0415 - `--help` does not need it

    return f"{escape_text(result.answer.headline)}\n"


def truth_json(value: object) -> str:
    """Return a value as one line of JSON, as `simulate` writes what is true of its directories."""
    from kforensics.render.json.document import json_line  # noqa: PLC0415 - `--help` does not need it

    return json_line(value)


def refusal_document(error: "EvidenceError") -> str:
    """Return the JSON document of inputs that are refused."""
    from kforensics.render.json.document import refusal_document as write  # noqa: PLC0415 - `--help` does not need it

    return write(error)
