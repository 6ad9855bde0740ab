"""One document, and objects a line, of any result: what `docs/json.md` promises of all commands, also where inputs are refused."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from kforensics import __version__
from kforensics.commands.result import Conclusion, Result
from kforensics.errors import EvidenceError, InputsRefused
from kforensics.evidence.model import Citation, Input, Problem
from kforensics.evidence.plain import to_plain
from kforensics.findings.answers.model import Answer, State
from kforensics.findings.model import Finding
from kforensics.render.json.shape import Document, Field, Shape, own, shape
from kforensics.render.view import View

SCHEMA_NUMBER = 2
"""The number of the promise, the same in every document."""


def document(
    result: Result[Any],
    name: str,
    fields: Mapping[str, Any] = MappingProxyType({}),
    *,
    streams: Mapping[str, Iterable[Any]] = MappingProxyType({}),
    after: Callable[[], Mapping[str, Any]] = dict,
) -> Iterator[str]:
    """Yield the one document of `--format json`, piece by piece, ending in a line break.

    Args:
        streams: lists too long to hold: values, or text that is JSON already.
        after: gives the fields that are known only when the streams have been written.
    """
    head = {
        "schema": f"kforensics/{name}/{SCHEMA_NUMBER}",
        "tool_version": __version__,
        "inputs": result.inputs,
        **fields,
    }
    if result.seal is not None:
        head["seal"] = SEAL.plain(result.seal)
    yield json.dumps(to_plain(head), indent=2)[:-2]
    for key, items in streams.items():
        yield f',\n  "{key}": ['
        separator = "\n    "
        for item in items:
            yield separator + (item if isinstance(item, str) else json.dumps(to_plain(item)))
            separator = ",\n    "
        yield "]"
    found = result.conclusion
    tail = {
        **after(),
        "answer": found.answer,
        "findings": found.findings,
        "problems": found.problems,
        "exit_code": result.exit_code,
    }
    yield ",\n" + json.dumps(to_plain(tail), indent=2)[2:] + "\n"


def write_document(
    told: Document, result: Result[Any], *, after: Callable[[], Mapping[str, Any]] = dict, **given: Iterable[Any]
) -> Iterator[str]:
    """Return a document whose fields a table has; streamed lists that are not made of the body alone are given."""
    streams = {**dict(told.tail.pairs(result.body)), **given}
    return document(result, told.name, dict(told.head.pairs(result.body)), streams=streams, after=after)


def write_lines(told: Document, result: Result[Any], **given: Iterable[Any]) -> Iterator[str]:
    """Yield the lines that a table has, each with its type before its fields; values that are not made of the result alone are given by their type."""
    for kind, of in told.lines.items():
        if kind in given:
            values = given[kind]
        elif not of:
            values = COMMON_LINES[kind][1](result)
        else:
            values = told.whole.field_of(result.body, of) if isinstance(of, str) else of.get(result)
        yield from _typed_lines(kind, values)


def _typed_lines(kind: str, values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        is_json = isinstance(value, str)
        yield f'{{"type": "{kind}", {value[1:]}\n' if is_json else json_line({"type": kind, **to_plain(value)})


_ROW_TYPES = (
    *("finding", "problem", "partition", "file", "event", "kind", "failure", "difference"),
    *("start", "log", "version", "topic", "question", "scenario", "protocol", "step"),
)
ROWS = {
    "answer": "answer",
    "inputs": "input",
    "seal": "seal",
    **{f"{name}s": name for name in _ROW_TYPES},
    **{f"{name}_findings": f"{name}-finding" for name in ("new", "worse", "changed", "better", "unchecked", "gone")},
    "changes": "change",
    "entries": "entry",
    "metadata_logs": "metadata-log",
    "ways_out": "way-out",
    "not_asked": "not-asked",
}
"""Fields of a document that are lines of `--format jsonl`, where no other lines are made of it, with the `type` of these."""
REST = "result"
"""The `type` of the last line then: it has the fields that are no lines."""


def write_rows(
    result: Result[Any], view: View, *, source: Callable[[Result[Any], View], Iterable[str]]
) -> Iterator[str]:
    """Yield the document in lines: the answer, then its rows in their order, and last what is left."""
    found = json.loads("".join(source(result, view._replace(descriptor=None))))
    lines = {
        name: found.pop(name) for name in sorted(found, key="answer".__ne__) if name in ROWS and found[name] is not None
    }
    for name, rows in lines.items():
        yield from _typed_lines(ROWS[name], rows if isinstance(rows, list) else (rows,))
    yield from _typed_lines(REST, (found,))


def json_line(value: Any) -> str:
    """Return a value as a line, with its line break."""
    return json.dumps(to_plain(value), separators=(", ", ": ")) + "\n"


shape(
    Citation,
    "Where a statement can be checked: a run of bytes or a line of a file.",
    {**own("input path"), "position": "span.position", "length": "span.length", "line": ""},
)
shape(
    Problem,
    "Something that could not be read, or is newer than kforensics knows.",
    own("input path position message"),
)
SEAL = Shape(
    "CheckedSeal",
    "The manifest that the inputs were compared with, and whether it holds.",
    {
        "manifest_sha256": "",
        "tool_version": "",
        **own("sealed_ms sealed_utc case_id operator", "envelope."),
        **own("holds sealed held changes uncovered"),
    },
)
COMMON_LINES: dict[str, tuple[Any, Callable[[Result[Any]], Iterable[Any]]]] = {
    "answer": (Answer, lambda result: (result.answer,)),
    "input": (Input, lambda result: result.inputs),
    "seal": (SEAL, lambda result: () if result.seal is None else (SEAL.plain(result.seal),)),
    "finding": (Finding, lambda result: result.findings),
    "problem": (Problem, lambda result: result.problems),
}
"""By `type`, lines that any command may have: what they are of, and their values."""
LAST_LINES = dict.fromkeys(("seal", "finding", "problem"), "")
"""The last lines of a command that judges."""


REFUSAL = Document(
    "refusal",
    object,
    {
        name: Field(lambda _: (), "Empty: nothing was analysed.", list)
        for name in ("partitions", "truncations", "losses")
    },
    command="ls",
)


def refusal_document(error: EvidenceError) -> str:
    """Return the document `kforensics/refusal/1`, the same for every command.

    Returns:
        An answer of state `unknown`, the paths that are refused as inputs, and a problem for each; the tables of an analysis are empty.
    """
    errors = error.errors if isinstance(error, InputsRefused) else (error,)
    answer = Answer(
        state=State.UNKNOWN,
        headline=f"Nothing was analysed: {error}.",
        now=tuple(f"Did you mean {name}?" for one in errors for name in one.nearest[:1]),
        unknown=("Everything: no input was analysed.",),
    )
    conclusion = Conclusion(
        answer=answer,
        problems=tuple(Problem(input=at, path=".", message=one.problem) for at, one in enumerate(errors)),
    )
    inputs = tuple(Input(path=one.path, kind="unreadable") for one in errors)
    # Every command that reads inputs has the state, with the same exit code.
    result = Result(command="ls", inputs=inputs, body=None, concluded=conclusion)
    return "".join(write_document(REFUSAL, result))
