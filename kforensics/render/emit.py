"""How each result is written: one table of commands and formats, and nothing chosen anywhere else."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    BRIEF = "brief"


MEANINGS = {
    OutputFormat.TEXT: "for people",
    OutputFormat.JSON: "one document for programs",
    OutputFormat.JSONL: "one object a line",
    OutputFormat.HTML: "a page to keep",
    OutputFormat.SARIF: "for viewers of CI results",
    OutputFormat.BRIEF: "the answer alone in five lines of Markdown",
}


Writer = Callable[["Result[Any]", View], Iterable[str]]
"""Makes the output of a concluded result: it takes the result and what of it is shown, and gives pieces, which may be made while they are written."""

_T, _J, _L = OutputFormat.TEXT, OutputFormat.JSON, OutputFormat.JSONL
_H, _S, _B = OutputFormat.HTML, OutputFormat.SARIF, OutputFormat.BRIEF

WRITERS: dict[tuple[str, OutputFormat], str] = {
    ("ls", _T): "text.ls:write",
    ("ls", _J): "json.ls:write",
    ("ls", _L): "json.ls:write_lines",
    ("dump", _T): "text.dump:write",
    ("dump", _J): "json.dump_content:write",
    ("dump", _L): "json.dump_content:write_lines",
    ("capture", _T): "text.capture:write",
    ("capture", _J): "json.capture:write",
    ("diff", _T): "text.diff:write",
    ("diff", _J): "json.diff:write",
    ("diff", _L): "json.diff:write_lines",
    ("diff", _B): "text.answer:write_brief",
    ("explain", _T): "text.explain:write",
    ("explain", _J): "json.explain:write",
    ("explain", _L): "json.explain:write_lines",
    ("explain", _H): "html.explain_page:write",
    ("explain", _B): "text.answer:write_brief",
    ("verify", _T): "text.verify:write",
    ("verify", _J): "json.verify:write",
    ("verify", _L): "json.verify:write_lines",
    ("verify", _S): "sarif:write",
    ("predict", _T): "text.predict:write",
    ("predict", _J): "json.predict:write",
    ("salvage", _T): "text.salvage:write",
    ("salvage", _J): "json.salvage:write",
    ("metadata", _T): "text.metadata:write",
    ("metadata", _J): "json.metadata:write",
    ("metadata", _L): "json.metadata:write_lines",
    ("groups", _T): "text.groups:write",
    ("groups", _J): "json.groups:write",
    ("groups", _L): "json.groups:write_lines",
    ("transactions", _T): "text.transactions:write",
    ("transactions", _J): "json.transactions:write",
    ("transactions", _L): "json.transactions:write_lines",
    ("trace", _T): "text.trace:write",
    ("trace", _J): "json.trace:write",
    ("trace", _L): "json.trace:write_lines",
    ("trace", _H): "html.trace_page:write",
    ("trace", _B): "text.answer:write_brief",
    # A manifest has one form.
    ("seal manifest", _T): "json.seal:write_manifest",
    ("seal manifest", _J): "json.seal:write_manifest",
    ("seal manifest", _L): "json.seal:write_manifest",
    ("seal check", _T): "text.seal:write",
    ("seal check", _J): "json.seal:write",
    ("simulate list", _T): "text.simulate:write_list",
    ("simulate list", _J): "json.simulate:write_list",
    ("simulate replay", _T): "text.simulate:write_replays",
    ("simulate replay", _J): "json.simulate:write_replays",
    ("simulate replay", _H): "html.simulate:write",
    ("simulate explore", _T): "text.simulate:write_exploration",
    ("simulate explore", _J): "json.simulate:write_exploration",
    ("simulate write", _T): "text.simulate:write_written",
    ("simulate write", _J): "json.simulate:write_written",
    ("fleet audit", _T): "text.fleet:write",
    ("fleet audit", _J): "json.fleet:write",
    ("fleet audit", _L): "json.fleet:write_line",
    ("fleet audit", _H): "html.fleet_page:write",
    ("fleet report", _T): "text.fleet:write",
    ("fleet report", _J): "json.fleet:write",
    ("fleet report", _L): "json.fleet:write_line",
    ("fleet report", _H): "html.fleet_page:write",
    ("fleet comparison", _T): "text.fleet_comparison:write",
    ("fleet comparison", _J): "json.fleet:write_comparison",
    ("fleet comparison", _H): "html.fleet_comparison:write",
    ("fleet trend", _T): "text.fleet_trend:write",
    ("fleet trend", _J): "json.fleet:write_trend",
    ("fleet trend", _L): "json.fleet:write_trend_lines",
    ("fleet scan", _T): "text.fleet_scan:write",
    ("fleet scan", _J): "json.fleet:write_scan",
}
"""By the shape of a result and a format: the module below `kforensics.render` and the function in it that writes it. They are loaded when they are needed."""

_SHAPES = {
    "seal": ("seal manifest", "seal check"),
    "simulate": ("simulate list", "simulate replay", "simulate explore", "simulate write"),
    "fleet report": ("fleet report", "fleet comparison"),
}
"""The shapes of the results of a command, where they are not one of its own name."""

CONTENT = frozenset({"dump", "seal manifest"})
"""Shapes whose text is content, read while it is written: the answer is known only afterwards."""


def shapes_of(command: str) -> tuple[str, ...]:
    """Return the shapes that results of a command can have.

    Args:
        command: as the command line names it; one without an entry has the shape of its name.
    """
    return _SHAPES.get(command, (command,))


def formats_of(*shapes: str) -> tuple[OutputFormat, ...]:
    """Return the formats in which any of the shapes can be written."""
    return tuple(one for one in OutputFormat if any((shape, one) in WRITERS for shape in shapes))


def require_format(chosen: OutputFormat, *shapes: str) -> None:
    """Refuse an output format that none of the shapes has.

    Args:
        chosen: as `--format` names it.
        *shapes: those that the result may have.

    Raises:
        UsageError: it is not offered.
        MissingExtra: an optional package that it needs is not installed.
    """
    offered = formats_of(*shapes)
    if chosen not in offered:
        raise UsageError(f"--format {chosen} is not offered by this command; it has {', '.join(offered)}")
    if chosen is OutputFormat.HTML and any(WRITERS.get((shape, chosen)) != "html.simulate:write" for shape in shapes):
        from kforensics.render.html.pages import require_engine  # noqa: PLC0415 - for pages alone

        require_engine()


def writer_of(shape: str, chosen: OutputFormat) -> Writer:
    """Return the function that writes results of a shape in a format.

    Args:
        shape: the kind of result, a first key of `WRITERS`.
        chosen: the format that was asked for.

    Raises:
        UsageError: the shape does not have the format.
    """
    require_format(chosen, shape)
    module, _, name = WRITERS[shape, chosen].partition(":")
    writer: Writer = getattr(import_module(f"kforensics.render.{module}"), name)
    return writer


def emit(result: "Result[Any]", chosen: OutputFormat, view: View) -> Iterable[str]:
    """Return a result in a format, piece by piece.

    Raises:
        UsageError: results of its shape do not have this format.
    """
    return writer_of(result.shape, chosen)(result, view)


def flattener(chosen: OutputFormat) -> Callable[[Any, Any], bytes] | None:
    """Return the function that makes of the report on a partition what a format keeps of it; None where the report itself is needed.

    Args:
        chosen: as `--format` names it.
    """
    if chosen not in {OutputFormat.JSON, OutputFormat.JSONL}:
        return None
    from kforensics.render.json.diff import flatten  # noqa: PLC0415 - for JSON alone

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
    """Return the JSON document of inputs that are refused.

    Args:
        error: an `InputsRefused` says of each path what is wrong with it.
    """
    from kforensics.render.json.refusal import refusal_document as write  # noqa: PLC0415 - `--help` does not need it

    return write(error)
