"""Values as JSON: the promise of `docs/json.md` in one place.

What is not there is `{"absent": why}`, bytes are `{"base64": …}`, and so is a path or name that is no text. Everything
outside ASCII is escaped, so that no terminal can be steered by it and no locale matters.
"""

import base64
import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from kforensics import __version__
from kforensics.commands.result import Result
from kforensics.damage import Absent, Span
from kforensics.evidence.model import Citation, Problem
from kforensics.findings.answers.model import Answer
from kforensics.units import EpochEntry

if TYPE_CHECKING:
    from kforensics.commands.sealing.report import CheckedSeal


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
        result: gives inputs, answer, findings, problems, exit code and seal.
        streams: lists too long to hold: values, or text that is JSON already.
        after: gives the fields that are known only when the streams have been written.
    """
    head = {"schema": f"kforensics/{name}/1", "tool_version": __version__, "inputs": result.inputs, **fields}
    if result.seal is not None:
        head["seal"] = _plain_seal(result.seal)
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
        "answer": plain_answer(found.answer),
        "findings": found.findings,
        "problems": found.problems,
        "exit_code": result.exit_code,
    }
    yield ",\n" + json.dumps(to_plain(tail), indent=2)[2:] + "\n"


def typed_lines(*kinds: tuple[str, Iterable[Any]]) -> Iterator[str]:
    """Yield values as lines, each with its type before its fields."""
    for kind, values in kinds:
        for value in values:
            yield json_line({"type": kind, **to_plain(value)})


def _plain_seal(seal: "CheckedSeal") -> Mapping[str, Any]:
    """Return the seal as the document of a report shows it."""
    from kforensics.evidence.seal.state import Change  # noqa: PLC0415 - few reports name a seal

    return {
        "manifest_sha256": seal.manifest_sha256,
        "tool_version": seal.tool_version,
        **to_plain(seal.envelope),
        "holds": seal.holds,
        "sealed": seal.sealed,
        "held": seal.held,
        "changes": {change.value: seal.changes[change] for change in Change},
        "uncovered": seal.uncovered,
    }


def fields_of(value: object, *names: str) -> dict[str, Any]:
    """Return fields of a value under their own names.

    Args:
        value: of any class that has them.
        names: in the order in which they are wanted.
    """
    return {name: getattr(value, name) for name in names}


def seal_objects(result: Result[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the seal as an object of `--format jsonl`, where there is one."""
    if result.seal is not None:
        yield _plain_seal(result.seal)


def json_line(value: Any) -> str:
    """Return one object of `--format jsonl`, with its line break.

    Raises:
        TypeError: a value has no form in JSON.
    """
    return json.dumps(to_plain(value), separators=(", ", ": ")) + "\n"


_AS_THEY_ARE = frozenset({int, bool, float, type(None)})


def to_plain(value: Any) -> Any:
    """Return the value as dicts, lists, strings and numbers, by the rules of the promise.

    Args:
        value: of dataclasses, named tuples, numpy's values and plain ones.

    Raises:
        TypeError: a value has no form in JSON.
    """
    kind = type(value)  # most values are of these kinds, and the cases below ask for one class after the other
    if kind in _AS_THEY_ARE:
        return value
    if kind is str:
        return _plain_text(value)
    if kind is dict:
        return {_plain_key(key): to_plain(item) for key, item in value.items()}
    match value:
        case Absent():
            return {"absent": value.value}
        case None | bool() | float():
            return value
        case Enum():
            return to_plain(value.value)
        case str():
            return _plain_text(value)
        case int():
            return int(value)
        case bytes() | bytearray() | memoryview():
            return plain_bytes(value)
        case Citation():
            return _plain_citation(value)
        case Problem():
            return {
                "input": value.input,
                "path": _plain_text(value.path),
                "position": to_plain(value.position),
                "message": to_plain(value.message),
            }
        case EpochEntry():
            return [value.leader_epoch, value.start_offset]
        case PurePath():
            return _plain_text(str(value))
        case Mapping():
            return {_plain_key(key): to_plain(item) for key, item in value.items()}
        case np.generic():
            return to_plain(value.item())
        case np.ndarray():
            return to_plain(value.tolist())
        case tuple() if hasattr(value, "_asdict"):
            return {key: to_plain(item) for key, item in value._asdict().items()}
        case set() | frozenset():
            return sorted((to_plain(item) for item in value), key=json.dumps)
        case list() | tuple() | Iterator():
            return [to_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def plain_bytes(value: bytes | bytearray | memoryview) -> dict[str, str]:
    """Return bytes in the form that survives any reader: `{"base64": …}`.

    Args:
        value: any bytes.
    """
    return {"base64": base64.b64encode(value).decode("ascii")}


def _plain_text(text: str) -> str | dict[str, str]:
    # A file name that is not UTF-8 comes from the system with lone surrogates, which JSON readers refuse.
    try:
        text.encode()
    except UnicodeEncodeError:
        return (
            plain_bytes(os.fsencode(text))
            if _is_file_system_text(text)
            else plain_bytes(text.encode("utf-8", errors="surrogatepass"))
        )
    return text


def _is_file_system_text(text: str) -> bool:
    return all(not "\ud800" <= character <= "\udfff" or "\udc80" <= character <= "\udcff" for character in text)


def _plain_key(key: Any) -> str:
    plain = to_plain(key)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _plain_citation(citation: Citation) -> dict[str, Any]:
    span = citation.span
    return {
        "input": citation.input,
        "path": _plain_text(citation.path),
        "position": span.position if isinstance(span, Span) else to_plain(span),
        "length": span.length if isinstance(span, Span) else to_plain(span),
        "line": to_plain(citation.line),
    }


def plain_answer(answer: Answer) -> dict[str, Any]:
    """Return the fields that `docs/json.md` promises, in their order."""
    return {
        "state": answer.state.value,
        "headline": answer.headline,
        "now": list(answer.now),
        "tell": list(answer.tell),
        "later": list(answer.later),
        "unknown": list(answer.unknown),
    }
